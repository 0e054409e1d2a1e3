//! A fourth transport, written here in under 100 lines: Unix sockets. It proves that the trait asks
//! for nothing that only TCP has, and it runs the whole driver against a simulated node.

use core::future::{Future, Ready, ready};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::path::PathBuf;

use bytes::BytesMut;
use messina_core::config::Config;
use messina_core::drive::{Endpoint, Link, Name, Resolved, Target, Transport, start};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use messina_tokio::{TokioClock, TokioTransport};
use tokio::io::AsyncWrite;
use tokio::net::{TcpStream, UnixListener, UnixStream};

// ---- the transport -------------------------------------------------------------------------------

struct UnixTransport {
    path: PathBuf,
    time: TokioTransport,
}

struct UnixLink(UnixStream);

fn broken(_: std::io::Error) -> LinkError {
    LinkError::new(LinkErrorKind::Other)
}

impl Link for UnixLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        tokio_util::io::poll_read_buf(Pin::new(&mut self.0), cx, into).map_err(broken)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        Pin::new(&mut self.0).poll_write(cx, bytes).map_err(broken)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Pin::new(&mut self.0).poll_flush(cx).map_err(broken)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Pin::new(&mut self.0).poll_shutdown(cx).map_err(broken)
    }
}

impl Transport for UnixTransport {
    type Link = UnixLink;
    type Timer = messina_tokio::TokioTimer;
    type Clock = TokioClock;
    type Connecting = Pin<Box<dyn Future<Output = Result<UnixLink, LinkError>> + Send>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, _target: Target) -> Self::Connecting {
        let path = self.path.clone();
        Box::pin(async move {
            let stream = UnixStream::connect(path).await;
            stream
                .map(UnixLink)
                .map_err(|_| LinkError::new(LinkErrorKind::Refused))
        })
    }

    fn timer(&self) -> Self::Timer {
        self.time.timer()
    }

    fn clock(&self) -> TokioClock {
        self.time.clock()
    }
}

// ---- the proof -----------------------------------------------------------------------------------

/// Joins a Unix socket to a TCP address. Ends with the runtime.
async fn bridge(path: &std::path::Path, to: Option<core::net::SocketAddr>) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                match to {
                    Some(to) => {
                        let mut node = TcpStream::connect(to).await.unwrap();
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
                    }
                    None => {
                        let (mut read, mut write) = client.split();
                        let _ = tokio::io::copy(&mut read, &mut write).await;
                    }
                }
            });
        }
    });
}

fn socket_path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("messina-{name}-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[tokio::test]
async fn the_link_keeps_its_contract() {
    let path = socket_path("echo");
    bridge(&path, None).await;
    let transport = UnixTransport {
        path: path.clone(),
        time: TokioTransport::new(),
    };
    let target = Target::new(Endpoint::Local(Name::from("echo")), Instant::FAR_FUTURE);
    link_contract(transport.connect(target).await.unwrap())
        .await
        .unwrap();
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn the_driver_runs_over_it() {
    let mut options = Options::uniform(1, 2);
    options.port = 0;
    options.shard_aware_port = None;
    let server = SimServer::start(options).await.unwrap();
    let path = socket_path("node");
    bridge(&path, Some(server.contacts()[0])).await;
    let transport = UnixTransport {
        path: path.clone(),
        time: TokioTransport::new(),
    };
    let mut config = Config::server();
    config
        .contact_points
        .push(Endpoint::Local(Name::from("node")));
    let (session, mut driver) = start(config, transport, &mut FixedSeed).unwrap();
    let running = tokio::spawn(async move {
        while let Some(connection) = driver.next_connection().await {
            tokio::spawn(connection);
        }
    });
    session.ready().await.unwrap();
    let result = session
        .query("SELECT cluster_name FROM system.local", ())
        .await
        .unwrap();
    assert_eq!(result.single_row::<(&str,)>().unwrap().0, "messina sim");
    drop((result, session));
    running.await.unwrap();
    std::fs::remove_file(path).unwrap();
}

/// The seed of a test run.
struct FixedSeed;

impl rand_core::TryRng for FixedSeed {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(7)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(7)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> {
        to.fill(7);
        Ok(())
    }
}
