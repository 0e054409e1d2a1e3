//! Everything that can be set, with defaults that are safe on a bad day.

#[cfg(any(test, feature = "client-routes"))]
mod client_routes;
mod protocol;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use core::num::{NonZeroU16, NonZeroUsize};
use core::time::Duration;

use crate::address::ip;
use crate::cluster::WarmStart;
use crate::conn::ConnectionLimits;
use crate::conn::auth::Authenticator;
use crate::conn::extensions::TabletsRouting;
use crate::conn::framer::FrameLimits;
use crate::digits::{nonzero, number};
use crate::error::{ConfigProblem, Error, ErrorKind, quoted};
use crate::routing::{HostFilter, Policy, PortRange};
use crate::sync::Shared;
use crate::target::{Endpoint, Name, name};
use crate::wire::{Compression, Consistency, ProtocolVersion, SerialConsistency};
use crate::words::joined;

#[cfg(any(test, feature = "client-routes"))]
pub use client_routes::ClientRoutes;
pub use protocol::ProtocolVersions;

/// The port of plain CQL.
pub const DEFAULT_PORT: u16 = 9042;

/// Whether this build can know more of a cluster than one connection.
pub(crate) const HAS_TOPOLOGY: bool = cfg!(any(test, feature = "topology"));

/// The newest version that this build speaks.
const VERSION_MAX: ProtocolVersion = match cfg!(any(test, feature = "protocol-v5")) {
    true => ProtocolVersion::V5,
    false => ProtocolVersion::V4,
};

/// How much of the cluster a session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// All nodes, their shards and tablets, the schema: requests go where their data is. Needs
    /// feature `topology`.
    Full,
    /// One connection, to whichever contact point answers first; when it ends the contact points
    /// are tried again. No system table is read and no event heard, so the first request can be
    /// sent as soon as the handshake is over, and little memory is needed. The node passes requests
    /// on to those that hold the data, which costs them a hop; [`Config::policy`],
    /// [`Config::pool`] and [`Config::host_filter`] mean nothing. After a change of the schema
    /// nobody waits for the other nodes.
    Single,
}

impl Routing {
    /// All that this build can do.
    pub const MOST: Self = if HAS_TOPOLOGY {
        Self::Full
    } else {
        Self::Single
    };
}

/// How a session behaves. [`Config::server`] and [`Config::mcu`] are the two presets.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where to look for the cluster first.
    pub contact_points: Vec<Endpoint>,
    /// The keyspace of unqualified names, set on every connection; in
    /// [`compact`](crate::compact) with feature `keyspaces`.
    pub keyspace: Option<String>,
    /// Answers authentication.
    pub authenticator: Option<Shared<dyn Authenticator>>,
    /// The name to verify under TLS instead of the address.
    pub server_name: Option<Name>,
    /// The protocol versions that may be spoken. [`compact`](crate::compact) does not speak
    /// version 5.
    pub protocol: ProtocolVersions,
    /// How frames are compressed; nodes that do not offer it cannot be used. Its variants come with
    /// the features `lz4` and `snappy`.
    pub compression: Option<Compression>,
    /// The newest tablets extension to use.
    pub tablets_max: TabletsRouting,
    /// Level of statements that do not set their own.
    pub consistency: Consistency,
    /// Serial level of statements that do not set their own.
    pub serial_consistency: SerialConsistency,
    /// Rows a page; `None` lets the server send everything at once.
    pub page_size: Option<i32>,
    /// Whether writes carry a timestamp made here; only where there is a wall clock.
    pub client_timestamps: bool,
    /// How much of the cluster to know.
    pub routing: Routing,
    /// Which nodes to prefer.
    pub policy: Policy,
    /// A policy of the user's own that changes what `policy` plans.
    #[cfg(feature = "targeting")]
    pub custom_policy: Option<Shared<dyn crate::routing::CustomPolicy>>,
    /// Says which nodes may be used at all; every one where there is none.
    pub host_filter: Option<Shared<dyn HostFilter>>,
    /// Connections for each node.
    pub pool: PoolConfig,
    /// Reaches nodes by the routes that the cluster has for certain clients; `None` by their own
    /// addresses.
    #[cfg(any(test, feature = "client-routes"))]
    pub client_routes: Option<ClientRoutes>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Every other bound.
    pub limits: Limits,
    /// Whether the first requests wait for as few answers as can be. Only with [`Routing::Single`],
    /// and with feature `early-requests`.
    ///
    /// OPTIONS and STARTUP are sent together: STARTUP asks for what a
    /// [warm start](Self::warm_start) remembers of nodes, else for no extension of the protocol.
    /// Requests are sent beside the login, behind which
    /// [`Session::ready`](crate::drive::Session::ready) does not wait: a wrong password is the error
    /// of the first requests. A request that a node refuses because its login is not over, as Apache
    /// Cassandra does, is sent once more afterwards; nothing is applied twice. A node to which all
    /// that does not fit is met again without STARTUP ahead of its answer.
    pub early_requests: bool,
    /// Whether a connection task that finds output re-queues itself once before writing, so that
    /// callers that are about to submit share the write.
    pub write_deferral: bool,
    /// Told to the server as APPLICATION_NAME.
    pub application_name: Option<String>,
    /// Told to the server as APPLICATION_VERSION.
    pub application_version: Option<String>,
    /// What an earlier session saved by `Session::warm_start`. It counts only if that session shares
    /// a contact point with this one or knew one as a node, and not where client routes are
    /// followed.
    pub warm_start: Option<WarmStart>,
}

impl Config {
    /// Defaults for servers.
    pub fn server() -> Self {
        Self {
            contact_points: Vec::new(),
            keyspace: None,
            authenticator: None,
            server_name: None,
            protocol: ProtocolVersions::AUTOMATIC,
            compression: None,
            tablets_max: TabletsRouting::V2,
            consistency: Consistency::LocalQuorum,
            serial_consistency: SerialConsistency::LocalSerial,
            page_size: Some(5000),
            client_timestamps: true,
            routing: Routing::MOST,
            policy: Policy::default(),
            #[cfg(feature = "targeting")]
            custom_policy: None,
            host_filter: None,
            pool: PoolConfig::default(),
            #[cfg(any(test, feature = "client-routes"))]
            client_routes: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            early_requests: false,
            write_deferral: true,
            application_name: None,
            application_version: None,
            warm_start: None,
        }
    }

    /// Defaults for microcontrollers: one connection a node, small buffers, no deferral.
    pub fn mcu() -> Self {
        Self {
            page_size: Some(16),
            client_timestamps: false,
            pool: PoolConfig {
                size: PoolSize::PerHost(ONE),
                ..PoolConfig::default()
            },
            limits: Limits::mcu(),
            write_deferral: false,
            ..Self::server()
        }
    }

    /// Adds contact points: `host`, `host:port`, `[v6]:port`; a comma separates several.
    ///
    /// Fails with [`ConfigProblem::ContactPoint`] and adds nothing if one cannot be understood.
    pub fn add_contact_points(&mut self, list: &str) -> Result<(), Error> {
        let before = self.contact_points.len();
        for point in list.as_bytes().split(|byte| *byte == b',') {
            let point = core::str::from_utf8(point).unwrap_or_default();
            match parse_contact_point(point.trim_ascii()) {
                Ok(endpoint) => self.contact_points.push(endpoint),
                Err(error) => {
                    self.contact_points.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Fails with the first setting that cannot work.
    pub fn check(&self) -> Result<(), Error> {
        if self.contact_points.is_empty() {
            return Err(contact_point("at least one is needed"));
        }
        #[cfg(any(test, feature = "client-routes"))]
        self.client_routes
            .as_ref()
            .map_or(Ok(()), ClientRoutes::check)?;
        let timeouts = &self.timeouts;
        let zero = [
            &timeouts.connect,
            &timeouts.request,
            &timeouts.control,
            &timeouts.reconnect_base,
            // A heartbeat of no interval would never let a connection rest, and one without time
            // for its answer would end every idle connection.
            &self.limits.connection.heartbeat_interval,
            &self.limits.connection.heartbeat_timeout,
        ]
        .iter()
        .any(|duration| duration.is_zero());
        let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
        if zero || timeouts.reconnect_base > timeouts.reconnect_max {
            let text = "timeouts and heartbeats must not be zero, nor base above maximum";
            return Err(Error::with_text(kind, text));
        }
        if self.routing == Routing::Full && !HAS_TOPOLOGY {
            let text = "this build knows one connection only";
            return Err(Error::with_text(kind, text));
        }
        if self.protocol.first() > VERSION_MAX {
            let text = "protocol 5";
            return Err(Error::with_text(kind, text));
        }
        #[cfg(any(test, feature = "protocol-v5"))]
        if self.protocol.first() == ProtocolVersion::V5
            && !self.compression.is_none_or(Compression::is_in_version_5)
        {
            return Err(Error::with_text(kind, "protocol 5 knows LZ4 only"));
        }
        if self.limits.connection.in_flight == 0 {
            let text = "a connection without requests in flight is of no use";
            return Err(Error::with_text(kind, text));
        }
        Ok(())
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("contact_points", &self.contact_points)
            .field("keyspace", &self.keyspace)
            .field("authenticates", &self.authenticator.is_some())
            .field("consistency", &self.consistency)
            .field("pool", &self.pool)
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How many connections a node gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolSize {
    /// This many for each shard; for each node where it does not shard, and in
    /// [`compact`](crate::compact) without feature `shard-pools`.
    PerShard(NonZeroU16),
    /// This many for each node, whatever their shards.
    PerHost(NonZeroU16),
}

/// Connections for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolConfig {
    /// How many.
    pub size: PoolSize,
    /// Whether requests go to the connection of their shard.
    pub shard_aware: bool,
    /// Whether the shard-aware port is used to reach wished shards.
    pub shard_aware_port: bool,
    /// Source ports to draw from.
    pub source_ports: PortRange,
    /// Whether the connection to a shard is opened at the first request that wants it, and not
    /// before. Until it is open another connection of the node takes the requests. Counts for
    /// [`PoolSize::PerShard`] only.
    pub lazy_shards: bool,
    /// Connections to all nodes together, those under way included and those that finish their
    /// last requests not. Every node gets its first before any gets its second; with more nodes
    /// than this some get none.
    pub connections_max: Option<NonZeroUsize>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            size: PoolSize::PerShard(ONE),
            shard_aware: true,
            shard_aware_port: true,
            source_ports: PortRange::EPHEMERAL,
            lazy_shards: false,
            connections_max: None,
        }
    }
}

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Opening a link and its handshake together; also the first contact with the cluster.
    pub connect: Duration,
    /// One request with all its attempts.
    pub request: Duration,
    /// One question of the control connection.
    pub control: Duration,
    /// Waiting for all nodes to agree on the schema after a change.
    pub schema_agreement: Duration,
    /// First pause before a node is tried again.
    pub reconnect_base: Duration,
    /// Longest pause.
    pub reconnect_max: Duration,
    /// Reading the cluster's topology again without being told to.
    pub refresh_interval: Duration,
    /// An orderly close of a link.
    pub close: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(10),
            control: Duration::from_secs(5),
            schema_agreement: Duration::from_secs(10),
            reconnect_base: Duration::from_millis(50),
            reconnect_max: Duration::from_secs(10),
            refresh_interval: Duration::from_secs(60),
            close: Duration::from_secs(1),
        }
    }
}

/// Every bound that is not a time. Reaching one is an error or a wait, as the field says; nothing
/// grows beyond it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bounds of each connection.
    pub connection: ConnectionLimits,
    /// Bounds of frames.
    pub frame: FrameLimits,
    /// Bytes that one read asks for.
    pub read_chunk: usize,
    /// Nodes that are kept; more are ignored with a warning.
    pub nodes: u16,
    /// Bytes of learned tablets; the least used are dropped.
    pub tablet_bytes: usize,
    /// Events and news of tablets that wait for the control plane; more are dropped.
    pub inbox: usize,
    /// Prepared statements that are kept; the least used are dropped.
    pub prepared_statements: usize,
    /// Connects under way at once.
    pub connecting: usize,
    /// Bytes of the window that streamed rows go through; a longer row is an error. Only for
    /// [`compact`](crate::compact).
    pub row_window: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connection: ConnectionLimits::default(),
            frame: FrameLimits::new(256 << 20, 0),
            read_chunk: 64 << 10,
            nodes: 4096,
            tablet_bytes: 32 << 20,
            inbox: 1024,
            prepared_statements: 4096,
            connecting: 64,
            row_window: 64 << 10,
        }
    }
}

impl Limits {
    /// Bounds for microcontrollers.
    pub fn mcu() -> Self {
        Self {
            connection: ConnectionLimits {
                in_flight: 8,
                waiting: 8,
                pending_bytes: 1024,
                orphans: 4,
                ..ConnectionLimits::default()
            },
            frame: FrameLimits::new(8 << 10, 16 << 20),
            read_chunk: 1 << 10,
            nodes: 8,
            tablet_bytes: 4 << 10,
            inbox: 4,
            prepared_statements: 8,
            connecting: 1,
            row_window: 2 << 10,
        }
    }
}

const ONE: NonZeroU16 = NonZeroU16::MIN;

#[inline(never)]
fn parse_contact_point(point: &str) -> Result<Endpoint, Error> {
    read_contact_point(point).map_err(|what| contact_point(&joined(&[&quoted(point), what])))
}

fn read_contact_point(point: &str) -> Result<Endpoint, &'static str> {
    let bytes = point.as_bytes();
    let last = bytes.iter().rposition(|byte| *byte == b':');
    let is_one = last == bytes.iter().position(|byte| *byte == b':');
    let (mut host, mut port) = (point, DEFAULT_PORT);
    // An address of version 6 has colons of its own, so it stands in brackets before a port.
    if let Some(place) = last
        && let Some((front, back)) = point.split_at_checked(place)
        && (is_one || front.ends_with(']'))
    {
        let digits = back.get(1..).unwrap_or_default();
        host = front;
        port = nonzero(digits).ok_or(" has no valid port")?.get();
    }
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(ip) = ip(bare.unwrap_or(host)) {
        return Ok(Endpoint::Addr(SocketAddr::new(ip, port)));
    }
    if let Some(endpoint) = bare.and_then(|bare| scoped(bare, port)) {
        return Ok(endpoint);
    }
    host_name(host, port).ok_or(" is not HOST or HOST:PORT")
}

/// An address that holds within one network only, whose number follows it.
fn scoped(text: &str, port: u16) -> Option<Endpoint> {
    let place = text.bytes().position(|byte| byte == b'%')?;
    let (address, scope) = text.split_at_checked(place)?;
    let (IpAddr::V6(ip), Some(scope)) = (ip(address)?, number(scope.get(1..)?)) else {
        return None;
    };
    let address = SocketAddrV6::new(ip, port, 0, scope);
    Some(Endpoint::Addr(SocketAddr::V6(address)))
}

/// An endpoint of an address or a name.
#[cfg(any(test, feature = "client-routes"))]
pub(crate) fn host_endpoint(host: &str, port: u16) -> Option<Endpoint> {
    match ip(host) {
        Some(ip) => Some(Endpoint::Addr(SocketAddr::new(ip, port))),
        None => host_name(host, port),
    }
}

fn host_name(host: &str, port: u16) -> Option<Endpoint> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = !host.is_empty() && host.bytes().all(valid);
    let host = name(host).filter(|_| is_name)?;
    Some(Endpoint::Name { host, port })
}

fn contact_point(text: &str) -> Error {
    Error::with_text(ErrorKind::Config(ConfigProblem::ContactPoint), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contact_points_come_in_many_shapes() {
        let name = |host: &str, port| Endpoint::Name {
            host: Name::from(host),
            port,
        };
        let addr = |text: &str| Endpoint::Addr(text.parse().unwrap());
        for (text, expected) in [
            ("127.0.0.1", addr("127.0.0.1:9042")),
            ("127.0.0.1:1234", addr("127.0.0.1:1234")),
            ("::1", addr("[::1]:9042")),
            ("[::1]", addr("[::1]:9042")),
            ("[2001:db8::1]:7", addr("[2001:db8::1]:7")),
            ("[fe80::1%3]:7", addr("[fe80::1%3]:7")),
            ("node-1.example", name("node-1.example", 9042)),
            ("localhost:19042", name("localhost", 19042)),
        ] {
            assert_eq!(parse_contact_point(text).unwrap(), expected);
        }
        for text in [
            "",
            ":9042",
            "host:",
            "host:0",
            "host:65536",
            "host:x",
            "a b",
            "ho/st:1",
        ] {
            let kind = ErrorKind::Config(ConfigProblem::ContactPoint);
            assert_eq!(
                parse_contact_point(text).unwrap_err().kind(),
                kind,
                "{text}"
            );
        }
    }

    #[test]
    fn lists_are_taken_whole_or_not_at_all() {
        let mut config = Config::server();
        assert!(config.check().is_err());
        config.add_contact_points("127.0.0.1, node:1").unwrap();
        assert!(config.add_contact_points("fine,:bad").is_err());
        assert_eq!(config.contact_points.len(), 2);
        config.check().unwrap();
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let breaks: [fn(&mut Config); 10] = [
            |config| config.contact_points.clear(),
            |config| config.timeouts.connect = Duration::ZERO,
            |config| config.timeouts.request = Duration::ZERO,
            |config| config.timeouts.control = Duration::ZERO,
            |config| config.timeouts.reconnect_base = Duration::ZERO,
            |config| config.timeouts.reconnect_max = Duration::from_millis(1),
            |config| config.limits.connection.heartbeat_interval = Duration::ZERO,
            |config| config.limits.connection.heartbeat_timeout = Duration::ZERO,
            |config| config.limits.connection.in_flight = 0,
            |config| config.client_routes = Some(ClientRoutes::new([""])),
        ];
        for (place, change) in breaks.iter().enumerate() {
            let mut config = Config::server();
            config.add_contact_points("127.0.0.1").unwrap();
            config.check().unwrap();
            change(&mut config);
            let kind = config.check().map_err(|error| error.kind());
            assert!(matches!(kind, Err(ErrorKind::Config(_))), "{place}");
        }
    }
}
