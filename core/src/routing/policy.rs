//! Where a session likes its requests to go, and how far each node is by that.
//!
//! Not the order within a distance: that is the planner's. A node that is down, disabled or in a
//! data centre that the policy forbids has no distance, so nothing can put it into a plan.

use super::{DcIdx, Node, NodeIdx, RackIdx, ShardIdx, Topology};
use alloc::boxed::Box;

/// Where a session likes its requests to go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The local data centre. If none is named, every node counts as local; if no node is in
    /// it, every node counts as remote.
    pub preferred_dc: Option<Box<str>>,
    /// The local rack. Counts only together with a data centre.
    pub preferred_rack: Option<Box<str>>,
    /// Whether nodes outside the preferred data centre may be contacted at all.
    pub dc_failover: bool,
    /// Whether requests that need the leader of their tablet go to it directly.
    pub tablet_leader: bool,
    /// Whether equally near replicas are tried in an order drawn by chance, the less loaded of
    /// the first two first. Off: in the order listed.
    pub shuffle: bool,
    /// For conditional statements on tablets whose replicas are listed by host id (those with a
    /// version): start at a replica that depends on the tablet, so that the one with the lowest
    /// host id does not get all. Every client of a table must have the same setting.
    pub rotate_lwt: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            preferred_dc: None,
            preferred_rack: None,
            dc_failover: false,
            tablet_leader: true,
            shuffle: true,
            rotate_lwt: false,
        }
    }
}

/// How busy nodes are, as seen by this session. Called while planning; must be quick.
pub trait Load {
    /// Requests in flight to a shard of a node, or to the whole node.
    fn in_flight(&self, node: NodeIdx, shard: Option<ShardIdx>) -> u32;

    /// Whether there is a connection to the node.
    fn is_connected(&self, node: NodeIdx) -> bool;
}

/// How far a node is, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Rack,
    Dc,
    Remote,
}

/// The preferred places of a policy in one topology.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    local: Local,
    remote_allowed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Local {
    Everywhere,
    Nowhere,
    Dc(DcIdx, Option<RackIdx>),
}

impl Scope {
    pub(super) fn new(topology: &Topology, policy: &Policy) -> Self {
        let local = match &policy.preferred_dc {
            None => Local::Everywhere,
            Some(name) => topology.dc_by_name(name).map_or(Local::Nowhere, |dc| {
                let rack = policy.preferred_rack.as_deref();
                Local::Dc(dc, rack.and_then(|name| topology.rack_by_name(dc, name)))
            }),
        };
        Self {
            local,
            remote_allowed: policy.dc_failover,
        }
    }

    /// How far a node is; `None` if the policy would not contact it.
    pub(super) fn distance(self, node: &Node) -> Option<Distance> {
        if !node.is_up() || !node.is_enabled() {
            return None;
        }
        match self.local {
            Local::Everywhere => Some(Distance::Dc),
            Local::Dc(_, Some(rack)) if node.rack() == rack => Some(Distance::Rack),
            Local::Dc(dc, _) if node.dc() == dc => Some(Distance::Dc),
            Local::Dc(..) | Local::Nowhere => self.remote_allowed.then_some(Distance::Remote),
        }
    }

    /// Nodes among which are all of a distance.
    pub(super) fn candidates(self, topology: &Topology, distance: Distance) -> &[NodeIdx] {
        match (distance, self.local) {
            (Distance::Rack, Local::Dc(_, Some(rack))) => topology.rack_in_order(rack),
            (Distance::Dc, Local::Dc(dc, _)) => topology.dc_in_order(dc),
            (Distance::Dc, Local::Everywhere) => topology.all_in_order(),
            (Distance::Remote, Local::Dc(..) | Local::Nowhere) if self.remote_allowed => {
                topology.all_in_order()
            }
            _ => &[],
        }
    }
}
