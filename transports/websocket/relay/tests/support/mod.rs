//! A relay in this process, nodes that echo, and clients of both forms of the tunnel.
#![allow(dead_code, reason = "not every test uses all of it")]

use core::net::SocketAddr;
use core::time::Duration;

use bytes::BytesMut;
use data_encoding::BASE64URL_NOPAD;
use futures_util::{SinkExt, StreamExt};
use messina_relay::{Drained, Relay, RelayConfig, Rule};
use messina_websocket::tunnel::{ChannelId, Limits, Progress, Reason, Tunnel, Wish};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

/// An OPTIONS frame: what a client may begin with.
pub(crate) const OPTIONS: &[u8] = &[4, 0, 0, 1, 5, 0, 0, 0, 0];

/// Longest that anything may take.
pub(crate) const HANG: Duration = Duration::from_secs(20);

/// A relay for the time of a test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Drained>,
}

impl Running {
    /// Starts one that allows these rules.
    pub(crate) async fn start(rules: &[&str], change: impl FnOnce(&mut RelayConfig)) -> Self {
        let mut config = RelayConfig::new("127.0.0.1:0".parse().unwrap());
        config.metrics = Some("127.0.0.1:0".parse().unwrap());
        config.allow = rules
            .iter()
            .map(|rule| Rule::parse(rule).unwrap())
            .collect();
        change(&mut config);
        let relay = Relay::bind(config).await.unwrap();
        let address = relay.local_addr().unwrap();
        let metrics = relay.metrics_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(relay.run(async {
            let _ = stopped.await;
        }));
        let stop = Some(stop);
        Self {
            address,
            metrics,
            stop,
            task,
        }
    }

    /// Tells it to stop; how it ends is [`Self::drained`].
    pub(crate) fn tell_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub(crate) async fn drained(self) -> Drained {
        timeout(HANG, self.task).await.unwrap().unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.tell_to_stop();
        self.drained().await;
    }

    /// What stands behind a name in the metrics.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = get(self.metrics, "/metrics").await;
        let line = text.lines().find(|line| {
            let rest = line.strip_prefix("messina_relay_");
            rest.and_then(|rest| rest.strip_prefix(name))
                .is_some_and(|rest| rest.starts_with(' '))
        });
        let value = line.and_then(|line| line.rsplit(' ').next());
        value
            .unwrap_or_else(|| panic!("{name} in {text}"))
            .parse()
            .unwrap()
    }

    /// Opens a WebSocket, or the status and the reason of the refusal.
    pub(crate) async fn socket(
        &self,
        query: &str,
        protocols: &str,
        origin: Option<&str>,
    ) -> Result<WebSocketStream<TcpStream>, (u16, String)> {
        socket(self.address, query, protocols, origin).await
    }

    /// A plain tunnel to a target.
    pub(crate) async fn plain(&self, target: &str, token: &str) -> Result<Plain, (u16, String)> {
        plain(self.address, target, token).await
    }

    /// A multiplexed tunnel.
    pub(crate) async fn mux(&self, token: &str) -> Result<Mux, (u16, String)> {
        mux(self.address, token).await
    }
}

async fn socket(
    relay: SocketAddr,
    query: &str,
    protocols: &str,
    origin: Option<&str>,
) -> Result<WebSocketStream<TcpStream>, (u16, String)> {
    let url = format!("ws://{relay}/cql{query}");
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("Sec-WebSocket-Protocol", protocols.parse().unwrap());
    if let Some(origin) = origin {
        headers.insert("Origin", origin.parse().unwrap());
    }
    let stream = TcpStream::connect(relay).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let opened = tokio_tungstenite::client_async(request, stream);
    match timeout(HANG, opened).await.expect("an answer in time") {
        Ok((socket, response)) => {
            let chosen = &response.headers()["Sec-WebSocket-Protocol"];
            assert!(chosen == "cql" || chosen == "cql.mux.v1", "{chosen:?}");
            Ok(socket)
        }
        Err(WsError::Http(response)) => {
            let body = response.body().clone().unwrap_or_default();
            let body = String::from_utf8(body).unwrap();
            Err((response.status().as_u16(), body.trim().to_owned()))
        }
        Err(error) => panic!("{error}"),
    }
}

/// A plain tunnel to a target.
pub(crate) async fn plain(
    relay: SocketAddr,
    target: &str,
    token: &str,
) -> Result<Plain, (u16, String)> {
    let query = format!("?target={target}");
    let socket = socket(relay, &query, &protocols("cql", token), None).await?;
    Ok(Plain {
        socket,
        received: Vec::new(),
    })
}

/// A multiplexed tunnel.
pub(crate) async fn mux(relay: SocketAddr, token: &str) -> Result<Mux, (u16, String)> {
    let socket = socket(relay, "", &protocols("cql.mux.v1", token), None).await?;
    let tunnel = Tunnel::client(Limits::client());
    Ok(Mux { socket, tunnel })
}

/// The sub-protocols, with a token unless it is empty.
pub(crate) fn protocols(protocol: &str, token: &str) -> String {
    match token {
        "" => protocol.to_owned(),
        _ => format!(
            "{protocol}, token.{}",
            BASE64URL_NOPAD.encode(token.as_bytes())
        ),
    }
}

/// A plain tunnel.
pub(crate) struct Plain {
    pub(crate) socket: WebSocketStream<TcpStream>,
    received: Vec<u8>,
}

impl Plain {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let message = Message::Binary(bytes.to_vec().into());
        self.socket.send(message).await.unwrap();
    }

    /// Exactly this many bytes.
    pub(crate) async fn receive(&mut self, len: usize) -> Vec<u8> {
        while self.received.len() < len {
            match timeout(HANG, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Binary(bytes))) => self.received.extend_from_slice(&bytes),
                other => panic!("{other:?}"),
            }
        }
        self.received.drain(..len).collect()
    }

    /// The code and the reason that it is closed with.
    pub(crate) async fn closed(mut self) -> (u16, String) {
        loop {
            match timeout(HANG, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Binary(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A multiplexed tunnel.
pub(crate) struct Mux {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) tunnel: Tunnel,
}

impl Mux {
    pub(crate) fn open(&mut self, target: &str, wish: Wish) -> ChannelId {
        self.tunnel.open(target, wish).unwrap()
    }

    pub(crate) async fn flush(&mut self) {
        while let Some(bytes) = self.tunnel.poll_output(64 << 10) {
            let message = Message::Binary(bytes.freeze());
            self.socket.send(message).await.unwrap();
        }
    }

    /// Takes one message; the close frame if it is one.
    pub(crate) async fn step(&mut self) -> Option<(u16, String)> {
        self.flush().await;
        match timeout(HANG, self.socket.next()).await.unwrap() {
            Some(Ok(Message::Binary(bytes))) => {
                self.tunnel.handle_input(&bytes).unwrap();
                None
            }
            Some(Ok(Message::Close(Some(frame)))) => {
                Some((frame.code.into(), frame.reason.to_string()))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Writes everything, as credit comes.
    pub(crate) async fn send(&mut self, id: ChannelId, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.tunnel.write(id, bytes).unwrap() {
                Some(len) => bytes = &bytes[len..],
                None if self.tunnel.output_len() > 0 => self.flush().await,
                None => assert_eq!(self.step().await, None),
            }
        }
        self.flush().await;
    }

    pub(crate) async fn receive(&mut self, id: ChannelId, len: usize) -> Vec<u8> {
        let mut received = Vec::new();
        while received.len() < len {
            let mut piece = BytesMut::new();
            match self.tunnel.read(id, &mut piece).unwrap() {
                Some(0) => panic!("finished after {} bytes", received.len()),
                Some(_) => received.extend_from_slice(&piece),
                None => assert_eq!(self.step().await, None),
            }
        }
        assert_eq!(received.len(), len);
        received
    }

    /// How the opening of a channel ends.
    pub(crate) async fn opened(&mut self, id: ChannelId) -> Result<u16, (Reason, String)> {
        loop {
            match self.tunnel.progress(id) {
                Progress::Open(port) => return Ok(port.map_or(0, core::num::NonZero::get)),
                Progress::Closed(reason) => {
                    return Err((reason, self.tunnel.close_text(id).to_owned()));
                }
                _ => assert_eq!(self.step().await, None),
            }
        }
    }

    /// Why a channel was closed.
    pub(crate) async fn closed(&mut self, id: ChannelId) -> (Reason, String) {
        loop {
            if let Progress::Closed(reason) = self.tunnel.progress(id) {
                return (reason, self.tunnel.close_text(id).to_owned());
            }
            assert_eq!(self.step().await, None);
        }
    }
}

/// A node that sends back whatever it gets, and finishes when its peer has.
pub(crate) async fn echo_node() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.set_nodelay(true).unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

/// The body of an answer over HTTP.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    timeout(HANG, read).await.unwrap().unwrap();
    answer
}
