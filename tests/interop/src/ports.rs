//! Free loopback ports for servers that must be told their port.
//!
//! Binding to port 0 would draw from the range that outgoing connections use, and one of them
//! could take the port between the check and the server's own bind. So ports come from below that
//! range, each tried by binding it on every address that the server will use.

use core::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU16, Ordering},
};
use std::net::TcpListener;

use anyhow::{Result, bail};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port that is free on the first `addresses` addresses of 127.0.0.0/8 (127.0.0.1, 127.0.0.2, …)
/// and that this process did not give out before.
///
/// # Errors
/// Fails when no port of the range is free.
pub fn free(addresses: u8) -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two harnesses at once begin at different places.
    let start = (std::process::id().wrapping_mul(97) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = (u32::from(start) + u32::from(step)) % u32::from(COUNT);
        let port = FIRST + offset as u16;
        let free =
            (1..=addresses).all(|i| TcpListener::bind((Ipv4Addr::new(127, 0, 0, i), port)).is_ok());
        if free {
            return Ok(port);
        }
    }
    bail!("no free port from {FIRST} to {}", FIRST + COUNT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_and_given_out_once() {
        let first = free(2).unwrap();
        let second = free(2).unwrap();
        assert_ne!(first, second);
        TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), first)).unwrap();
    }
}
