//! The listeners of a node.

use core::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::Accepted;
use super::{CONNECTIONS_MAX, SimHandle, stopped};
use crate::node::Listener;

/// What a listener is there for.
#[derive(Clone)]
pub(super) struct Port {
    pub(super) node: usize,
    pub(super) kind: Listener,
    #[cfg(feature = "tls")]
    pub(super) acceptor: Option<super::tls::Acceptor>,
}

/// Accepts for one node while it lives; closes the port while it does not.
pub(super) async fn listen(
    handle: SimHandle,
    port: Port,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    let mut changes = handle.shared.changes.subscribe();
    let theirs = stop.clone();
    let node = port.node;
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let alive = handle.shared.with(|cluster, _| cluster.is_alive(node));
        if !alive {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
            if listener.is_none() {
                // Somebody sits on the port; look again soon.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            result = accepted => match result {
                Ok((stream, peer)) if connections.len() < CONNECTIONS_MAX => {
                    let accepted = Accepted {
                        handle: handle.clone(),
                        node,
                        kind: port.kind,
                        peer,
                        stop: theirs.clone(),
                    };
                    #[cfg(feature = "tls")]
                    if let Some(acceptor) = port.acceptor.clone() {
                        connections.spawn(accepted.serve_tls(stream, acceptor));
                        continue;
                    }
                    connections.spawn(accepted.serve(stream));
                }
                Ok(_) => {}
                // Out of file descriptors or the like: do not spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            _ = changes.changed() => {}
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
