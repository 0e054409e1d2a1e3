//! TCP through the operating system, with a free choice of source ports; under TLS where asked.

use core::future::Future;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use core::pin::Pin;
use std::io;

use messina_core::drive::{Endpoint, Name, Resolved, Steering, SteeringKind, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

use crate::link::{TokioLink, link_error};
use crate::time::{TokioClock, TokioTimer};

/// The transport. Cheap to clone; all clones share one clock.
#[derive(Clone, Debug)]
pub struct TokioTransport {
    clock: TokioClock,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::Handshake>,
}

impl TokioTransport {
    /// A transport on the current runtime.
    pub fn new() -> Self {
        Self {
            clock: TokioClock::new(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// A transport whose links are under TLS. Fails when the options contradict each other, such
    /// as a certificate with the key of another.
    #[cfg(feature = "tls")]
    pub fn with_tls(options: crate::TlsOptions) -> Result<Self, messina_core::error::Error> {
        Ok(Self {
            tls: Some(crate::tls::Handshake::new(options)?),
            ..Self::new()
        })
    }
}

impl Default for TokioTransport {
    fn default() -> Self {
        Self::new()
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + Send>>;

impl Transport for TokioTransport {
    type Link = TokioLink;
    type Timer = TokioTimer;
    type Clock = TokioClock;
    type Connecting = Boxed<TokioLink>;
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
        #[cfg(feature = "tls")]
        let (tls, deadline) = (self.tls.clone(), self.clock.at(target.deadline));
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
            let opened = open(addr, port).await;
            let stream = opened.map_err(|error| link_error(&error))?;
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                // Whoever is dialed by name is verified by it; a set name comes before.
                let dialed = match &target.endpoint {
                    Endpoint::Name { host, .. } => Some(&**host),
                    _ => None,
                };
                let name = target.server_name.as_deref().or(dialed);
                let handshake = tls.shake(stream, addr.ip(), name);
                return match tokio::time::timeout_at(deadline, handshake).await {
                    Ok(stream) => Ok(TokioLink::tls(stream?)),
                    Err(_) => Err(LinkError::TIMED_OUT),
                };
            }
            Ok(TokioLink::plain(stream))
        })
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::ExactPort
    }

    #[cfg(feature = "tls")]
    fn security(&self) -> messina_core::drive::Security {
        match self.tls {
            Some(_) => messina_core::drive::Security::Tls,
            None => messina_core::drive::Security::Plain,
        }
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer::new(self.clock)
    }

    fn clock(&self) -> TokioClock {
        self.clock
    }
}

async fn open(addr: SocketAddr, port: Option<NonZeroU16>) -> io::Result<TcpStream> {
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
    let stream = socket.connect(addr).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
