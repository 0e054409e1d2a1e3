//! core's `Transport` by a WebSocket for each link, and the way to the relay for the mux.

use core::future::{Future, Ready, ready};
use core::net::IpAddr;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use std::boxed::Box;
use std::string::String;
use std::sync::Arc;
use std::vec;

use messina_core::drive::{Endpoint, Name, Resolved, SteeringKind, Target, Transport};
use messina_core::error::{Error, LinkError, LinkErrorKind};
use messina_tokio::{TokioClock, TokioLink, TokioTimer, TokioTransport};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::error::{ProtocolError, SubProtocolError};
use tokio_tungstenite::tungstenite::http::Uri;
use tokio_tungstenite::tungstenite::{self, ClientRequestBuilder};

use super::link::{WebSocketLink, config, link_error};
use super::relay::Relay;
#[cfg(not(feature = "webpki-roots"))]
use super::relay::unusable;
use crate::answer::{DEFAULT_PATH, query, token_entry};
use crate::mux::{Mux, Pump};
use crate::protocol::Protocol;
use crate::tunnel::Limits;
use crate::{CQL, CQL_MUX};

/// The transport. Cheap to clone; all clones share one clock.
///
/// With [`Protocol::Cql`] each link is a WebSocket of its own, its target and the wished shard in
/// the query of the address. With [`Protocol::Mux`] its links lead to the relay and no further:
/// [`WebSocketTransport::into_mux`] makes a transport of it.
#[derive(Clone, Debug)]
pub struct WebSocketTransport {
    socket: TokioTransport,
    relay: Arc<Relay>,
    /// The endpoint chose no sub-protocol, so none is asked for any more.
    is_bare: Arc<AtomicBool>,
}

impl WebSocketTransport {
    /// A transport on the current runtime. Fails when `wss://` cannot be used: the feature `tls` is
    /// off, or nobody to trust was named.
    pub fn new(relay: Relay) -> Result<Self, Error> {
        Ok(Self {
            socket: socket(&relay)?,
            relay: Arc::new(relay),
            is_bare: Arc::default(),
        })
    }

    /// A transport whose links share one WebSocket, and the pump to spawn for it.
    pub fn into_mux(self) -> (Mux<Self>, Pump<Self>) {
        let relay = Endpoint::Local("".into());
        Mux::new(self, relay, Limits::client())
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + Send>>;

impl Transport for WebSocketTransport {
    type Link = WebSocketLink;
    type Timer = TokioTimer;
    type Clock = TokioClock;
    type Connecting = Boxed<WebSocketLink>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        let this = self.clone();
        Box::pin(async move { this.open(&target).await })
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::BestEffortShard
    }

    fn timer(&self) -> TokioTimer {
        self.socket.timer()
    }

    fn clock(&self) -> TokioClock {
        self.socket.clock()
    }
}

impl WebSocketTransport {
    async fn open(&self, target: &Target) -> Result<WebSocketLink, LinkError> {
        let uri = self
            .uri(target)
            .ok_or(LinkError::new(LinkErrorKind::Other))?;
        let is_bare = self.is_bare.load(Ordering::Relaxed);
        match self.shake(self.dial(target).await?, &uri, is_bare).await {
            // Not a messina relay; whatever carries bytes will do.
            Err(tungstenite::Error::Protocol(NO_PROTOCOL)) if self.relay.may_be_foreign() => {
                let opened = self.shake(self.dial(target).await?, &uri, true).await;
                self.is_bare.store(opened.is_ok(), Ordering::Relaxed);
                opened
            }
            opened => opened,
        }
        .map_err(|error| link_error(&error))
    }

    /// A socket to the relay, under TLS where the address says so.
    async fn dial(&self, target: &Target) -> Result<TokioLink, LinkError> {
        let uri = &self.relay.uri;
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let usual = if self.relay.is_secure() { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        let (addrs, name) = match host.parse::<IpAddr>() {
            Ok(addr) => (vec![addr], None),
            Err(_) => {
                let name = Name::from(host);
                match self.socket.resolve(&name).await? {
                    Resolved::Addrs(addrs) => (addrs.into_iter().collect(), Some(name)),
                    _ => return Err(LinkError::new(LinkErrorKind::Resolve)),
                }
            }
        };
        let mut failure = LinkError::new(LinkErrorKind::Resolve);
        for addr in addrs {
            let endpoint = Endpoint::Addr((addr, port).into());
            let mut relay = Target::new(endpoint, target.deadline);
            relay.server_name.clone_from(&name);
            match self.socket.connect(relay).await {
                Ok(socket) => return Ok(socket),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn shake(
        &self,
        socket: TokioLink,
        uri: &Uri,
        is_bare: bool,
    ) -> Result<WebSocketLink, tungstenite::Error> {
        let mut request = ClientRequestBuilder::new(uri.clone());
        if !is_bare {
            request = request.with_sub_protocol(match self.relay.protocol {
                Protocol::Cql => CQL,
                Protocol::Mux => CQL_MUX,
            });
        }
        if let Some(token) = &self.relay.token {
            request = request.with_sub_protocol(token_entry(&token()));
        }
        let (stream, _) = client_async_with_config(request, socket, Some(config())).await?;
        Ok(WebSocketLink::new(stream))
    }

    /// The address to ask for: the relay's and, where it is not told inside a tunnel, the target.
    fn uri(&self, target: &Target) -> Option<Uri> {
        let uri = &self.relay.uri;
        let mut text = String::from(match uri.path() {
            "" | "/" => DEFAULT_PATH,
            path => path,
        });
        let mut separator = '?';
        let mut add = |part: &str| {
            text.push(separator);
            text.push_str(part);
            separator = '&';
        };
        if let Some(query) = uri.query() {
            add(query);
        }
        if self.relay.protocol == Protocol::Cql {
            add(&query(target));
        }
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(text.parse().ok()?);
        Uri::from_parts(parts).ok()
    }
}

#[cfg(feature = "tls")]
fn socket(relay: &Relay) -> Result<TokioTransport, Error> {
    match &relay.tls {
        _ if !relay.is_secure() => Ok(TokioTransport::new()),
        Some(options) => TokioTransport::with_tls(options.clone()),
        #[cfg(feature = "webpki-roots")]
        None => TokioTransport::with_tls(messina_tokio::TlsOptions::with_public_roots()),
        #[cfg(not(feature = "webpki-roots"))]
        None => Err(unusable(&"wss:// needs `Relay::tls`")),
    }
}

#[cfg(not(feature = "tls"))]
fn socket(relay: &Relay) -> Result<TokioTransport, Error> {
    if relay.is_secure() {
        return Err(unusable(&"wss:// needs the feature `tls`"));
    }
    Ok(TokioTransport::new())
}

/// The endpoint has chosen none of the sub-protocols.
const NO_PROTOCOL: ProtocolError =
    ProtocolError::SecWebSocketSubProtocolError(SubProtocolError::NoSubProtocol);

#[cfg(test)]
mod tests {
    use core::num::NonZeroU16;
    use std::format;
    use std::string::ToString;

    use messina_core::drive::Steering;
    use messina_core::time::Instant;

    use super::*;

    #[test]
    fn targets_stand_in_the_query_of_plain_links_only() {
        let of = NonZeroU16::new(8).expect("not zero");
        let endpoint = |host: &str| Endpoint::Name {
            host: host.into(),
            port: 9042,
        };
        let table = [
            ("ws://r", "node", Protocol::Mux, "ws://r/cql"),
            (
                "ws://r:1/",
                "node",
                Protocol::Cql,
                "ws://r:1/cql?target=node:9042&shard=3&of=8",
            ),
            (
                "ws://r/a?b=c",
                "n&o d",
                Protocol::Cql,
                "ws://r/a?b=c&target=n%26o%20d:9042&shard=3&of=8",
            ),
            ("ws://r/a?b=c", "node", Protocol::Mux, "ws://r/a?b=c"),
        ];
        for (url, host, protocol, expected) in table {
            let relay = Relay::new(url).expect("an address").protocol(protocol);
            let transport = WebSocketTransport::new(relay).expect("usable");
            let mut target = Target::new(endpoint(host), Instant::ZERO);
            target.steering = Steering::Shard { shard: 3, of };
            let uri = transport.uri(&target).expect("an address");
            assert_eq!(uri.to_string(), expected);
        }
        let mut target = Target::new(
            Endpoint::Addr((core::net::Ipv6Addr::LOCALHOST, 9042).into()),
            Instant::ZERO,
        );
        target.steering = Steering::None;
        let relay = Relay::new("ws://r").expect("an address");
        let transport = WebSocketTransport::new(relay.protocol(Protocol::Cql)).expect("usable");
        let uri = transport.uri(&target).expect("an address");
        assert_eq!(uri.to_string(), "ws://r/cql?target=%5B::1%5D:9042");
    }

    #[test]
    fn only_addresses_of_web_sockets_are_taken() {
        for url in ["", "r", "http://r", "ws://", "ws:///cql", "wss://a b"] {
            assert!(Relay::new(url).is_err(), "{url}");
        }
        let relay = Relay::new("wss://r").expect("an address").token("secret");
        assert!(!format!("{relay:?}").contains("secret"));
        #[cfg(not(feature = "tls"))]
        assert!(WebSocketTransport::new(relay).is_err());
    }
}
