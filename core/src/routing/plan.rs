//! The result of planning: an inline list of targets, best first.

use super::{NodeIdx, ShardIdx};

/// Where to try a request, best first. At most [`Plan::TARGETS_MAX`] targets at a time: when all
/// were tried and the plan [may go on](Self::may_go_on), plan again with `skip` raised by
/// [their number](Self::listed).
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) targets: heapless::Vec<Target, { Self::TARGETS_MAX }>,
    pub(super) source: Source,
    pub(super) leader: Option<(NodeIdx, Option<ShardIdx>)>,
    /// Targets that planning listed, whatever was made of them since.
    pub(super) listed: usize,
}

impl Plan {
    /// Targets of one plan.
    pub const TARGETS_MAX: usize = 8;

    /// This node and no other.
    pub(crate) fn only(node: NodeIdx) -> Self {
        let target = Target {
            node,
            shard: None,
            reason: Reason::Any,
        };
        Self {
            targets: heapless::Vec::from_iter([target]),
            source: Source::None,
            leader: None,
            listed: 1,
        }
    }

    /// The targets, best first.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Whether there may be more targets behind these.
    pub const fn may_go_on(&self) -> bool {
        self.listed == Self::TARGETS_MAX
    }

    /// By how much `skip` is to rise for the plan that goes on.
    pub const fn listed(&self) -> usize {
        self.listed
    }

    /// What told the replicas.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The replica that coordinates the request, if it needs one and we know it. It need not be
    /// a target: it may be down, or the policy may not let us contact it.
    pub const fn leader(&self) -> Option<(NodeIdx, Option<ShardIdx>)> {
        self.leader
    }
}

/// A node to try, and the shard whose connection to use if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Target {
    /// The node.
    pub node: NodeIdx,
    /// The shard; `None` if any connection of the node will do.
    pub shard: Option<ShardIdx>,
    /// Why it stands in the plan.
    pub reason: Reason,
}

/// Why a node stands in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It leads the tablet.
    Leader,
    /// A replica in the preferred rack.
    Rack,
    /// A replica in the preferred data centre, or anywhere if none is preferred.
    Dc,
    /// A replica in another data centre.
    Remote,
    /// No replica, as far as we know: it will pass the request on.
    Any,
    /// The statement names it, or a policy of the user's own.
    Custom,
}

/// What told the replicas of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// A learned tablet.
    Tablet,
    /// The vnode ring.
    Ring,
    /// Nothing: no token, an unknown table, or a tablet not learned yet.
    None,
}
