//! Where a link leads and what is wished of it: plain data that the control plane decides and a
//! transport carries out.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;

use crate::sync::Shared;
use crate::time::Instant;

/// A host name, a Unix socket path or a relay's alias.
pub type Name = Shared<str>;

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// An address and port.
    Addr(SocketAddr),
    /// A name that the transport (or a relay behind it) resolves itself.
    Name {
        /// The host name.
        host: Name,
        /// The port.
        port: u16,
    },
    /// Something only the transport understands: a Unix socket path, a relay alias.
    Local(Name),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => addr.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Local(name) => f.write_str(name),
        }
    }
}

/// A wish about the source port of a link. It is never more than a wish: the shard that the node
/// reports in SUPPORTED is the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steering {
    /// Any source port.
    #[default]
    None,
    /// Exactly this one; fails with [`PORT_IN_USE`](crate::error::LinkError::PORT_IN_USE) if it is taken. Asked only of
    /// transports whose `Transport::steering` is [`SteeringKind::ExactPort`].
    Port(NonZeroU16),
    /// Any port that is `shard` modulo `of`. Asked only of transports whose
    /// `Transport::steering` is [`SteeringKind::BestEffortShard`].
    Shard {
        /// The wished shard.
        shard: u16,
        /// The node's number of shards.
        of: NonZeroU16,
    },
}

/// How well a transport can steer source ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SteeringKind {
    /// Not at all.
    None,
    /// Binds the port it is told.
    ExactPort,
    /// Tries to reach a shard in its own way.
    BestEffortShard,
}

/// Whether links of this transport are encrypted; decides which advertised port is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Security {
    /// Plain TCP or the like.
    Plain,
    /// TLS from the first byte.
    Tls,
}

/// Everything a transport needs to open one link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// Where to.
    pub endpoint: Endpoint,
    /// The wish about the source port.
    pub steering: Steering,
    /// The name to verify under TLS; `None` where the endpoint's own address is meant.
    pub server_name: Option<Name>,
    /// When the attempt is given up. The driver drops the future then; a transport may use it to
    /// tell a silent host from a refusing one.
    pub deadline: Instant,
}

impl Target {
    /// A target without wishes.
    pub const fn new(endpoint: Endpoint, deadline: Instant) -> Self {
        Self {
            endpoint,
            steering: Steering::None,
            server_name: None,
            deadline,
        }
    }
}

/// The answer of a name look-up; at most [`RESOLVED_MAX`] addresses are used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives for one look-up, on the stack"
)]
#[non_exhaustive]
pub enum Resolved {
    /// Addresses; the driver joins the port.
    Addrs(heapless::Vec<IpAddr, RESOLVED_MAX>),
    /// Leave the name as it is: something behind the transport resolves it.
    KeepName,
}

/// Most addresses of one name that are tried.
pub const RESOLVED_MAX: usize = 16;
