//! Why a plan begins with the leader of a tablet, or why not: for people and tools.
//!
//! Not used for planning. It goes through the same rules once more, each with its own answer, so
//! that planning itself need not carry reasons about; a test holds both together for every case.
//! Rules of ScyllaDB's document on tablet awareness.

use super::planner::RouteRequest;
use super::policy::{Load, Policy, Scope};
use super::view::{KeyspaceConsistency, Placement, View};

/// Whether a plan begins with the leader of the tablet, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Leadership {
    /// It does.
    First,
    /// The table is not known, or the statement has no table.
    UnknownTable,
    /// The table has no leaders: its keyspace is eventually consistent, or has no tablets.
    Eventual,
    /// ONE and LOCAL_ONE are served by any replica.
    LevelOne,
    /// The policy switches leaders off.
    SwitchedOff,
    /// The statement does not give the whole partition key.
    NoToken,
    /// No tablet has been learned for the token yet.
    UnknownTablet,
    /// The tablet came without a version, so its first replica need not be the leader.
    Unversioned,
    /// The tablet names a node first that is not known yet.
    UnknownNode,
    /// The leader's node is down.
    Down,
    /// The session's own filter leaves the leader's node out.
    Filtered,
    /// The leader is in a data centre that the policy does not let us contact.
    ForbiddenDc,
    /// There is no connection to the leader's node.
    NotConnected,
    /// A policy of the user's own, or the target that the statement names, came first.
    Overruled,
    /// No connection has agreed the extension that tells leaders.
    NotTold,
}

/// What became of the leader in the plan for this request.
pub fn leadership(
    view: &View,
    request: &RouteRequest,
    policy: &Policy,
    load: &impl Load,
) -> Leadership {
    let Some(table) = request.table.and_then(|handle| view.table(handle)) else {
        return Leadership::UnknownTable;
    };
    let Placement::Tablets(tablets, KeyspaceConsistency::Strong) = &table.placement else {
        return Leadership::Eventual;
    };
    if !request.needs_leader() {
        return Leadership::LevelOne;
    }
    if !policy.tablet_leader {
        return Leadership::SwitchedOff;
    }
    let Some(token) = request.token else {
        return Leadership::NoToken;
    };
    let Some(hit) = tablets.find(token) else {
        return Leadership::UnknownTablet;
    };
    if hit.version.is_none() {
        return Leadership::Unversioned;
    }
    let topology = view.topology();
    let first = hit.replicas.first().and_then(|replica| replica.node());
    let Some(node) = first.and_then(|idx| topology.node(idx)) else {
        return Leadership::UnknownNode;
    };
    // Nodes that the policy does not reach are filtered out as well.
    if Scope::new(topology, policy).reach(node).is_none() {
        Leadership::ForbiddenDc
    } else if !node.is_enabled() {
        Leadership::Filtered
    } else if !node.is_up() {
        Leadership::Down
    } else if !load.is_connected(node.idx()) {
        Leadership::NotConnected
    } else {
        Leadership::First
    }
}
