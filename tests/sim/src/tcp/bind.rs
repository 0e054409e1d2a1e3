//! Listening sockets on the same port of every node's address.

use core::net::IpAddr;
use std::io;

use tokio::net::TcpListener;

/// How often a set of free ports is looked for.
const PORT_TRIES: usize = 64;

/// Listeners on the same port of every address; 0 looks for such a port.
pub(super) async fn bind_all(
    addresses: &[IpAddr],
    port: u16,
) -> io::Result<(u16, Vec<TcpListener>)> {
    let tries = if port == 0 { PORT_TRIES } else { 1 };
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "a cluster needs a node");
    for _ in 0..tries {
        match bind_once(addresses, port).await {
            Ok(found) => return Ok(found),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn bind_once(addresses: &[IpAddr], mut port: u16) -> io::Result<(u16, Vec<TcpListener>)> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = TcpListener::bind((*address, port)).await?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    if listeners.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a cluster needs a node",
        ));
    }
    Ok((port, listeners))
}
