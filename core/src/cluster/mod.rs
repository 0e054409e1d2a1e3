//! The control plane, sans-IO: what should be connected, what is known of the cluster.
//!
//! [`Engine`] takes [`Input`]s, gives [`Output`]s and one next deadline. It never waits, never
//! reads a clock and owns no socket: `drive` carries its outputs out.
//!
//! One request of the control plane goes like this: `Output::Ask` names an open connection and a
//! frame body; `drive` sends it like any request and answers with `Input::Answered`.

#[cfg(any(test, feature = "client-routes"))]
mod client_routes;
#[cfg(not(any(test, feature = "client-routes")))]
#[path = "no_client_routes.rs"]
mod client_routes;
mod contact;
mod control;
mod dialing;
mod discovery;
mod duty;
mod engine;
mod filling;
mod found;
pub mod kind;
mod landing;
mod learning;
mod links;
pub(crate) mod naming;
mod nodes;
mod plane;
mod pool;
pub mod prepared;
#[cfg(any(test, feature = "client-routes", feature = "lwt-learning"))]
pub(crate) mod quoting;
mod readings;
mod reconnect;
mod rows;
mod schema;
mod settle;
mod single;
mod status;
mod steering;
#[cfg(test)]
pub(crate) mod tests;
mod version;
mod warm_start;
mod warming;
mod warnings;

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use crate::conn::extensions::{Agreed, Offer};
use crate::conn::{Answer, Body};
use crate::error::{Error, LinkError};
use crate::routing::{NodeIdx, ShardIdx, View};
use crate::sync::Shared;
use crate::target::{Name, Resolved, Target};
use crate::wire::{Opcode, ProtocolVersion};

pub use client_routes::NodeRoute;
#[cfg(any(test, feature = "client-routes"))]
pub use client_routes::RouteProblem;
pub use engine::Engine;
pub use learning::{TabletNews, learn};
pub(crate) use plane::ControlPlane;
pub use single::Single;
pub use status::{Counters, KeyspaceSummary, NodeStatus, Status};
pub use warm_start::{Sources, WarmStart, save};

/// Names one connection of a session, from its first attempt to its end. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// Names one question of the control plane. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u32);

/// Names one name look-up. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupId(pub u32);

/// Names one caller of `Session` who waits for the schema to settle. Given out by `drive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettleId(pub u32);

/// What happened outside.
#[derive(Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "look-ups are rare, and inputs are passed on, not stored"
)]
pub enum Input {
    /// A look-up ended.
    Resolved {
        /// Which.
        id: LookupId,
        /// Its addresses.
        result: Result<Resolved, LinkError>,
    },
    /// A connection finished its handshake and takes requests.
    Connected {
        /// Which.
        id: ConnectionId,
        /// What it agreed; SUPPORTED tells where it really landed.
        agreed: Agreed,
        /// The local port, where the transport knows it.
        source_port: Option<NonZeroU16>,
    },
    /// A connection attempt ended without a connection.
    ConnectFailed {
        /// Which.
        id: ConnectionId,
        /// Why.
        error: Error,
    },
    /// An open connection ended.
    Closed {
        /// Which.
        id: ConnectionId,
        /// Why.
        error: Error,
    },
    /// A question was answered, failed, or timed out.
    Answered {
        /// Which.
        id: QuestionId,
        /// The undecoded answer.
        answer: Result<Answer, Error>,
    },
    /// An event frame's body.
    Event {
        /// The connection it came on.
        id: ConnectionId,
        /// The body.
        body: Body,
    },
    /// A response carried a tablet that the control plane must hear of.
    Tablet(TabletNews),
    /// A request wanted a shard whose connection is opened at its first use only.
    ShardWanted {
        /// The node.
        node: NodeIdx,
        /// The shard.
        shard: ShardIdx,
    },
    /// A statement of the user changed the schema; tell `id` when all nodes agree and the view is
    /// fresh.
    Settle {
        /// Whom to tell.
        id: SettleId,
    },
    /// The session ends.
    Shutdown,
}

/// What is to be done outside.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Look a name up.
    Resolve {
        /// Names the look-up.
        id: LookupId,
        /// The name.
        name: Name,
    },
    /// Open a connection: link and handshake.
    Connect {
        /// Names the connection.
        id: ConnectionId,
        /// Where to.
        target: Target,
        /// Event types to register for in the handshake; usually none.
        events: &'static [&'static str],
        /// The protocol version to ask in.
        version: ProtocolVersion,
        /// Whether STARTUP may be in a newer one that the node offers.
        may_rise: bool,
        /// What its node offered an earlier session.
        assumed: Option<Offer>,
    },
    /// End a connection, or give up its attempt. `drain` lets requests under way finish.
    Close {
        /// Which.
        id: ConnectionId,
        /// Finish what is under way first.
        drain: bool,
    },
    /// Send a question on an open connection.
    Ask {
        /// Names the question.
        id: QuestionId,
        /// On which connection.
        on: ConnectionId,
        /// What the body is.
        opcode: Opcode,
        /// The whole frame body, encoded for that connection's version.
        body: Vec<u8>,
    },
    /// What is known has changed: publish this view to the planner.
    Publish(Shared<View>),
    /// Which connections serve which node and shard has changed.
    Assign(Vec<Assignment>),
    /// The session can be used: one connection is open and the topology is known.
    Ready,
    /// The first contact failed for good; the session cannot start.
    Failed(Error),
    /// The schema has settled (or its deadline has passed: then `agreed` is false).
    Settled {
        /// Whom to tell.
        id: SettleId,
        /// Whether all nodes agree.
        agreed: bool,
    },
    /// Something an operator should know; each is said once for the same cause.
    Warning(String),
}

/// The connections of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The node.
    pub node: NodeIdx,
    /// Its open connections and the shard that each serves, `None` where the node does not shard.
    pub connections: Vec<(ConnectionId, Option<ShardIdx>)>,
    /// Its shards, if the connection to each is opened at the first request that wants it; tell by
    /// [`Input::ShardWanted`].
    pub lazy_shards: Option<u16>,
}
