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
    /// Whether failover goes for requests at LOCAL_ONE, LOCAL_QUORUM and LOCAL_SERIAL too. Their
    /// replicas are counted in the data centre of whichever node coordinates, so in another one
    /// they mean something else: a write at LOCAL_QUORUM there need not be seen by a read at
    /// LOCAL_QUORUM here, and two data centres decide conditions without each other. The leader of
    /// a strongly consistent tablet is contacted all the same: there is one for all data centres.
    pub dc_failover_at_local_levels: bool,
    /// Whether a request whose shard's connections are full goes over another connection of the
    /// same node, before other nodes are tried. Off: to other nodes, and if all are full it waits
    /// for its shard. A full connection mostly means a shard that cannot keep up, and the other
    /// shards would only pass the work on to it: one hot partition would fill all connections of
    /// the node and slow down everyone else's requests. On is for short bursts, few in flight for
    /// each connection, and keys that have one replica only.
    pub other_shards_when_full: bool,
    /// Whether requests that need the leader of their tablet go to it directly.
    pub tablet_leader: bool,
    /// Whether equally near replicas are tried in an order drawn by chance, the less loaded of
    /// the first two first. Off: in the order listed.
    pub shuffle: bool,
    /// For conditional statements on tablets whose replicas are listed by host id (those with a
    /// version): start at a replica that depends on the tablet, so that the one with the lowest
    /// host id does not get all. Every client of a table must have the same setting.
    pub rotate_lwt: bool,
    /// Whether a conditional statement reads its key first where nothing else teaches its tablet:
    /// at most once a minute for each tablet.
    #[cfg(feature = "lwt-learning")]
    pub learn_lwt: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            preferred_dc: None,
            preferred_rack: None,
            dc_failover: false,
            dc_failover_at_local_levels: false,
            other_shards_when_full: false,
            tablet_leader: true,
            shuffle: true,
            rotate_lwt: false,
            #[cfg(feature = "lwt-learning")]
            learn_lwt: true,
        }
    }
}

/// Whether `left` is so much busier than `right` that the draw between them is overruled.
///
/// Requests in flight to two equally loaded shards differ all the time by chance alone, by about
/// the root of their sum (the standard deviation, were they independent). Following each small
/// difference would undo the even draw: at low load it sends everything to whichever node
/// happened to answer last, and many clients that see the same difference move together. So twice
/// that deviation is asked for: 5 against 0, 8 against 1, 21 against 8, 130 against 100. A shard
/// that stalls is left after five requests.
pub(super) const fn is_busier(left: u32, right: u32) -> bool {
    let difference = left.saturating_sub(right) as u64;
    let sum = (left as u64).saturating_add(right as u64);
    difference.saturating_mul(difference) > sum.saturating_mul(4)
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

    /// The same for requests that must not leave the data centre.
    pub(super) const fn without_remote(self) -> Self {
        Self {
            remote_allowed: false,
            ..self
        }
    }

    /// How far a node is; `None` if the policy would not contact it.
    pub(super) fn distance(self, node: &Node) -> Option<Distance> {
        if !node.is_up() || !node.is_enabled() {
            return None;
        }
        self.reach(node)
    }

    /// The same, whatever the state of the node.
    pub(super) fn reach(self, node: &Node) -> Option<Distance> {
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
