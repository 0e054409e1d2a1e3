//! From an allowed target to an open socket: resolve once, check every address, dial what was
//! checked.
//!
//! A name is never handed to the operating system again after its addresses were checked, so an
//! answer that changes between check and use changes nothing. If one of a name's addresses is not
//! allowed, none is dialled: such an answer is an attack or a mistake, and the operator should know.

use core::fmt;
use core::future::Future;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;
use core::pin::Pin;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use messina_websocket::tunnel::{Reason, Wish};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use crate::allow::{AllowList, Destination, NotAllowed};
use crate::socket::{Socket, Stream};
use crate::tls::NodeTls;

/// Finds the addresses of names.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// All addresses of a name. Dropping the future gives up.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// A look-up on its way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let found = lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// What is needed to dial.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) allow: Arc<AllowList>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) source_ports: RangeInclusive<u16>,
    /// For name, connection and TLS together.
    pub(crate) timeout: Duration,
    pub(crate) tls: Option<NodeTls>,
}

/// Why there is no socket.
#[derive(Debug)]
pub(crate) enum DialError {
    NotAllowed(NotAllowed),
    Resolve,
    TimedOut,
    Io(io::Error),
    /// The node's certificate is not trusted, or it does not speak TLS.
    Tls(io::Error),
}

impl DialError {
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::NotAllowed(_) => Reason::Forbidden,
            Self::Resolve => Reason::Resolve,
            Self::TimedOut => Reason::TimedOut,
            Self::Tls(_) => Reason::Other,
            Self::Io(error) => match error.kind() {
                ErrorKind::ConnectionRefused => Reason::Refused,
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Reason::Reset,
                ErrorKind::TimedOut => Reason::TimedOut,
                _ => Reason::Unreachable,
            },
        }
    }
}

impl Dialer {
    /// Opens a socket to the destination, from a port of the wished shard if there is one free.
    pub(crate) async fn dial(self, to: Destination, wish: Wish) -> Result<Stream, DialError> {
        match timeout(self.timeout, self.dial_untimed(to, wish)).await {
            Ok(dialled) => dialled,
            Err(_) => Err(DialError::TimedOut),
        }
    }

    async fn dial_untimed(&self, to: Destination, wish: Wish) -> Result<Stream, DialError> {
        let addresses = match &to {
            Destination::Address(address) => vec![*address],
            Destination::Name(name, port) => self.resolve(name, *port).await?,
        };
        let mut last = None;
        for address in addresses {
            match self.open(address, wish).await.and_then(Socket::new) {
                Ok(socket) => return self.encrypt(socket, &to).await,
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or(DialError::Resolve, DialError::Io))
    }

    async fn encrypt(&self, socket: Socket, to: &Destination) -> Result<Stream, DialError> {
        let Some(tls) = &self.tls else {
            return Ok(Stream::Plain(socket));
        };
        let shaken = tls.shake(socket, to).await.map_err(DialError::Tls)?;
        Ok(Stream::Tls(Box::new(shaken.into())))
    }

    /// The addresses of a name that a rule lets through, each checked.
    async fn resolve(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let found = self.resolver.resolve(name).await;
        let mut found = found.map_err(|_| DialError::Resolve)?;
        found.truncate(ADDRESSES_MAX);
        let mut addresses = Vec::with_capacity(found.len());
        for address in found {
            let checked = self.allow.check(address, port, true);
            checked.map_err(DialError::NotAllowed)?;
            let address = SocketAddr::new(address, port);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }

    async fn open(&self, to: SocketAddr, wish: Wish) -> io::Result<TcpStream> {
        let Wish::Shard { shard, of } = wish else {
            return socket(to)?.connect(to).await;
        };
        for port in ports(&self.source_ports, shard, of.get()).take(PORT_TRIES_MAX) {
            let socket = socket(to)?;
            // A port whose last connection to another node has just closed may be used again; one
            // that is in use to this node is refused by `connect`.
            socket.set_reuseaddr(true)?;
            let from = match to {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            };
            let opened = match socket.bind(from) {
                Ok(()) => socket.connect(to).await,
                Err(error) => Err(error),
            };
            match opened {
                Err(error) if is_taken(&error) => {}
                opened => return opened,
            }
        }
        // It was a wish only: the node tells the client which shard it became.
        socket(to)?.connect(to).await
    }
}

fn socket(to: SocketAddr) -> io::Result<TcpSocket> {
    match to {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable
    )
}

/// The ports of a shard, from one drawn at random round to it again.
fn ports(all: &RangeInclusive<u16>, shard: u16, of: u16) -> impl Iterator<Item = u16> + use<> {
    let (first, last) = (u32::from(*all.start()), u32::from(*all.end()));
    let (shard, of) = (u32::from(shard), u32::from(of));
    let lowest = first + (shard + of - first % of) % of;
    let count = match last.checked_sub(lowest) {
        Some(room) => room / of + 1,
        None => 0,
    };
    let start = getrandom::u32().unwrap_or_default() % count.max(1);
    (0..count).map(move |turn| {
        let port = lowest + (start + turn) % count * of;
        u16::try_from(port).expect("not above the last port")
    })
}

/// Most addresses of one name.
const ADDRESSES_MAX: usize = 16;

/// Most ports that are tried for a wish.
const PORT_TRIES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers of shards and a few ranges: each port is of the shard, and none is left out.
    #[test]
    fn ports_of_a_shard_are_all_found_once() {
        for all in [49_152..=65_535, 1024..=1030, 65_530..=65_535] {
            for of in (1..=300).chain([65_535]) {
                for shard in [0, of / 2, of - 1] {
                    let mut found: Vec<u16> = ports(&all, shard, of).collect();
                    found.sort_unstable();
                    let expected: Vec<u16> =
                        all.clone().filter(|port| port % of == shard).collect();
                    assert_eq!(found, expected, "{shard} of {of}");
                }
            }
        }
    }
}
