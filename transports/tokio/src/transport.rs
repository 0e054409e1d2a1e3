//! TCP through the operating system, with a free choice of source ports.

use core::future::Future;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use core::pin::Pin;
use std::io;

use messina_core::drive::{Endpoint, Name, Resolved, Steering, SteeringKind, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use tokio::net::{TcpSocket, lookup_host};

use crate::link::{TcpLink, link_error};
use crate::time::{TokioClock, TokioTimer};

/// The transport. Cheap to clone; all clones share one clock.
#[derive(Clone, Debug)]
pub struct TokioTransport {
    clock: TokioClock,
}

impl TokioTransport {
    /// A transport on the current runtime.
    pub fn new() -> Self {
        Self {
            clock: TokioClock::new(),
        }
    }
}

impl Default for TokioTransport {
    fn default() -> Self {
        Self::new()
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + Send>>;

impl Transport for TokioTransport {
    type Link = TcpLink;
    type Timer = TokioTimer;
    type Clock = TokioClock;
    type Connecting = Boxed<TcpLink>;
    type Resolving = Boxed<Resolved>;

    fn resolve(&self, name: &Name) -> Self::Resolving {
        let name = Name::clone(name);
        Box::pin(async move {
            let found = lookup_host((&*name, 0)).await;
            let addrs = found.map_err(|_| LinkError::new(LinkErrorKind::Resolve))?;
            Ok(Resolved::Addrs(
                addrs.map(|addr| addr.ip()).take(16).collect(),
            ))
        })
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        Box::pin(async move {
            let port = match target.steering {
                Steering::Port(port) => Some(port),
                _ => None,
            };
            let addr = match &target.endpoint {
                Endpoint::Addr(addr) => *addr,
                Endpoint::Name { host, port } => lookup_host((&**host, *port))
                    .await
                    .ok()
                    .and_then(|mut addrs| addrs.next())
                    .ok_or(LinkError::new(LinkErrorKind::Resolve))?,
                _ => return Err(LinkError::new(LinkErrorKind::Unreachable)),
            };
            open(addr, port).await.map_err(|error| link_error(&error))
        })
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::ExactPort
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer::new(self.clock)
    }

    fn clock(&self) -> TokioClock {
        self.clock
    }
}

async fn open(addr: SocketAddr, port: Option<NonZeroU16>) -> io::Result<TcpLink> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(port) = port {
        // A port whose last connection to another node has just closed may be used again; a taken
        // one is then refused by `connect` as "address not available".
        socket.set_reuseaddr(true)?;
        let any = match addr {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port.get()).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port.get()).into(),
        };
        socket.bind(any)?;
    }
    TcpLink::new(socket.connect(addr).await?)
}
