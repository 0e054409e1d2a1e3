//! One accepted socket: TLS first where its listener says so, then bytes between it and the cluster.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

use super::{Shared, SimHandle, stopped};
use crate::node::{ConnectionId, Listener};

/// Bytes read at once.
const READ_LEN: usize = 64 << 10;

/// An accepted socket and where it came from.
pub(super) struct Accepted {
    pub(super) handle: SimHandle,
    pub(super) node: usize,
    pub(super) kind: Listener,
    pub(super) peer: SocketAddr,
    pub(super) stop: watch::Receiver<bool>,
}

impl Accepted {
    /// Enters it into the cluster and serves it to its end.
    pub(super) async fn serve(self, stream: TcpStream) {
        // Best effort: it only changes latency.
        let _ = stream.set_nodelay(true);
        if let Some(id) = self.enter() {
            serve(self.handle, id, stream, self.stop).await;
        }
    }

    /// The same after a TLS handshake, which nobody may draw out.
    #[cfg(feature = "tls")]
    pub(super) async fn serve_tls(mut self, stream: TcpStream, acceptor: super::tls::Acceptor) {
        // Best effort: it only changes latency.
        let _ = stream.set_nodelay(true);
        let shaken = tokio::select! {
            shaken = acceptor.shake(stream) => shaken,
            () = stopped(&mut self.stop) => return,
        };
        // A client that fails has been told so in TLS's own words.
        let Some((stream, tls)) = shaken else {
            return;
        };
        if let Some(id) = self.enter() {
            self.handle
                .shared
                .with(|cluster, _| cluster.set_tls(id, tls));
            serve(self.handle, id, stream, self.stop).await;
        }
    }

    fn enter(&self) -> Option<ConnectionId> {
        self.handle
            .shared
            .with(|cluster, now| cluster.accept(self.node, self.kind, self.peer, now))
    }
}

/// Forgets a connection however its task ends.
struct Registration {
    shared: Arc<Shared>,
    id: ConnectionId,
    waker: Arc<Notify>,
}

impl Registration {
    fn new(shared: Arc<Shared>, id: ConnectionId) -> Self {
        let waker = Arc::new(Notify::new());
        let mut wakers = shared.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.insert(id, Arc::clone(&waker));
        drop(wakers);
        Self { shared, id, waker }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut wakers = self
            .shared
            .wakers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        wakers.remove(&self.id);
        drop(wakers);
        self.shared.with(|cluster, _| cluster.disconnect(self.id));
    }
}

async fn serve(
    handle: SimHandle,
    id: ConnectionId,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    mut stop: watch::Receiver<bool>,
) {
    let shared = Arc::clone(&handle.shared);
    let registration = Registration::new(Arc::clone(&shared), id);
    let mut input = vec![0; READ_LEN];
    loop {
        let (output, due, closed, now) = shared.with(|cluster, now| {
            let output = cluster.take_output(id, now);
            (
                output,
                cluster.next_output_at(id),
                cluster.is_closed(id),
                now,
            )
        });
        if !output.is_empty() {
            let write = async {
                stream.write_all(&output).await?;
                stream.flush().await
            };
            let written = tokio::select! {
                written = write => written,
                () = stopped(&mut stop) => break,
            };
            if written.is_err() {
                break;
            }
        }
        if closed && due.is_none() {
            break;
        }
        let wait = due.map(|due| u64::try_from(due.saturating_sub(now)).unwrap_or(0));
        let timer = tokio::time::sleep(Duration::from_micros(wait.unwrap_or(0)));
        tokio::select! {
            read = stream.read(&mut input), if !closed => match read {
                Ok(len) if len > 0 => {
                    shared.with(|cluster, now| cluster.feed(id, &input[..len], now));
                }
                _ => break,
            },
            () = registration.waker.notified() => {}
            () = timer, if wait.is_some() => {}
            () = stopped(&mut stop) => break,
        }
    }
    // The peer may be gone already.
    let _ = stream.shutdown().await;
}
