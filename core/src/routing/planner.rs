//! Which nodes to try for a request, in which order. Pure: a view, a request and a policy give a
//! plan; chance comes in as a number.
//!
//! The base plan: replicas in the preferred rack, then in the preferred data centre, then, if the
//! policy allows, remote ones; then the other nodes in the same order of distance. Within a
//! distance the order is drawn by chance, and of the first two the less loaded one comes first.
//! Nodes without a connection come last, nodes that are down or disabled not at all. With a tablet
//! not learned yet there are no replicas, so the plan begins with live local nodes.
//!
//! Strongly consistent tables: a request that is not a read at ONE or LOCAL_ONE goes to the
//! leader first, if its tablet came with a version, and the policy would contact it, and it is up;
//! behind it stands the base plan as it would have been, without it. Rules of ScyllaDB's document
//! on tablet awareness.
//!
//! Conditional statements: replicas in the order they are listed, no chance and no load, so that
//! all clients meet at the same one.
//!
//! Cost: no allocation, no lock; names of the preferred places are looked up once per plan.

use super::plan::{Plan, Reason, Source, Target};
use super::tablet::Replica;
use super::tablet_table::PLANNED_REPLICAS;
use super::view::{KeyspaceConsistency, Placement};
use super::{DcIdx, Node, NodeIdx, RackIdx, ShardIdx, TableRef, Token, Topology, View};
use crate::rng::{SmallRng, mix};
use crate::wire::Consistency;
use alloc::boxed::Box;

/// What planning needs to know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the request field by field"
)]
pub struct RouteRequest {
    /// Its table, if it was prepared and the table is known.
    pub table: Option<TableRef>,
    /// The token of its partition, if it addresses one.
    pub token: Option<Token>,
    /// The level that is actually sent.
    pub consistency: Consistency,
    /// Whether it is a conditional statement.
    pub is_lwt: bool,
}

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

/// The targets of a request behind the first `skip`.
///
/// With the same view, connections and `entropy`, plans with rising `skip` join to one order in
/// which every node that the policy allows stands exactly once; an empty plan means that all were
/// listed. If the policy names a data centre without nodes and forbids failover, there are none.
pub fn plan(
    view: &View,
    request: &RouteRequest,
    policy: &Policy,
    load: &impl Load,
    entropy: u64,
    skip: usize,
) -> Plan {
    let topology = view.topology();
    let scope = Scope::new(topology, policy);
    let mut located = Located::new(view, request);
    let is_serial = matches!(
        request.consistency,
        Consistency::Serial | Consistency::LocalSerial
    );
    let is_ordered = request.is_lwt || is_serial || !policy.shuffle;
    if request.is_lwt && policy.rotate_lwt {
        located.rotate();
    }
    // Where chance must not decide, the token does: clients differ, but each is steady.
    let entropy = match request.token {
        Some(token) if is_ordered => mix(token.value().cast_unsigned()),
        None if is_ordered => 0,
        _ => entropy,
    };
    let leader = located
        .leader
        .filter(|_| policy.tablet_leader && needs_leader(request));
    let mut planning = Planning {
        topology,
        scope,
        load,
        entropy,
        replicas: heapless::Vec::new(),
        skip,
        targets: heapless::Vec::new(),
    };
    planning.rank_replicas(&located, is_ordered);
    planning.fill(leader.map(|(node, _)| node));
    if !is_ordered && skip == 0 {
        planning.choose_of_two_strangers();
    }
    Plan {
        targets: planning.targets,
        source: located.source,
        leader,
    }
}

/// Reads at ONE and LOCAL_ONE may be served by any replica, everything else by the leader alone.
/// Writes at these two levels the server refuses wherever they go.
const fn needs_leader(request: &RouteRequest) -> bool {
    !matches!(
        request.consistency,
        Consistency::One | Consistency::LocalOne
    )
}

/// How far a node is, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Rack,
    Dc,
    Remote,
}

/// The preferred places of a policy in one topology.
#[derive(Clone, Copy, Debug)]
struct Scope {
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
    fn new(topology: &Topology, policy: &Policy) -> Self {
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
    fn distance(self, node: &Node) -> Option<Distance> {
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
    fn candidates(self, topology: &Topology, distance: Distance) -> &[NodeIdx] {
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

/// The replicas of a request in the order listed.
struct Located {
    source: Source,
    replicas: heapless::Vec<(NodeIdx, Option<ShardIdx>), PLANNED_REPLICAS>,
    /// The leader of its tablet, if the table has such and we know it.
    leader: Option<(NodeIdx, Option<ShardIdx>)>,
    /// Set if the list is sorted by host id: a number that differs from tablet to tablet.
    rotation: Option<u64>,
}

impl Located {
    fn new(view: &View, request: &RouteRequest) -> Self {
        let nothing = Self {
            source: Source::None,
            replicas: heapless::Vec::new(),
            leader: None,
            rotation: None,
        };
        let table = request.table.and_then(|handle| view.table(handle));
        let (Some(table), Some(token)) = (table, request.token) else {
            return nothing;
        };
        let topology = view.topology();
        match &table.placement {
            Placement::Ring(strategy) => {
                let Some(ring) = view.ring(*strategy) else {
                    return nothing;
                };
                let replicas = ring.of(token).iter().map(|&idx| {
                    let shard_map = topology.node(idx).and_then(Node::shard_map);
                    (idx, shard_map.map(|shards| shards.shard_of(token)))
                });
                let replicas = replicas.take(PLANNED_REPLICAS).collect();
                Self {
                    source: Source::Ring,
                    replicas,
                    ..nothing
                }
            }
            Placement::Tablets(tablets, consistency) => {
                let Some(hit) = tablets.find(token) else {
                    return nothing;
                };
                let resolve = |replica: &Replica| {
                    let node = topology.node(replica.node()?)?;
                    // A shard that the node does not have is none.
                    let shard = node
                        .shard_map()
                        .and_then(|shards| shards.check(replica.shard));
                    Some((node.idx(), shard))
                };
                let is_led = *consistency == KeyspaceConsistency::Strong && hit.version.is_some();
                Self {
                    source: Source::Tablet,
                    replicas: hit.replicas.iter().filter_map(resolve).collect(),
                    leader: hit.replicas.first().filter(|_| is_led).and_then(resolve),
                    rotation: hit.version.map(|_| mix(hit.last.cast_unsigned())),
                }
            }
        }
    }

    fn rotate(&mut self) {
        let Some(rotation) = self.rotation else {
            return;
        };
        let start = rotation
            .checked_rem(self.replicas.len() as u64)
            .unwrap_or(0);
        self.replicas
            .rotate_left(usize::try_from(start).unwrap_or(0));
    }
}

/// A replica that may be contacted.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    node: NodeIdx,
    shard: Option<ShardIdx>,
    is_connected: bool,
    distance: Distance,
    /// Its place after the draw.
    drawn: u8,
}

impl Ranked {
    /// Replicas with the same class are equally good.
    const fn class(&self) -> (bool, Distance) {
        (!self.is_connected, self.distance)
    }

    const fn reason(&self) -> Reason {
        match self.distance {
            Distance::Rack => Reason::Rack,
            Distance::Dc => Reason::Dc,
            Distance::Remote => Reason::Remote,
        }
    }
}

/// A plan in the making.
struct Planning<'a, L> {
    topology: &'a Topology,
    scope: Scope,
    load: &'a L,
    entropy: u64,
    /// Replicas in the order of the base plan.
    replicas: heapless::Vec<Ranked, PLANNED_REPLICAS>,
    /// Targets still to be passed over.
    skip: usize,
    targets: heapless::Vec<Target, { Plan::TARGETS_MAX }>,
}

impl<L: Load> Planning<'_, L> {
    /// Puts the replicas that may be contacted into the order of the base plan.
    fn rank_replicas(&mut self, located: &Located, is_ordered: bool) {
        for &(idx, shard) in &located.replicas {
            let node = self.topology.node(idx);
            let Some(distance) = node.and_then(|node| self.scope.distance(node)) else {
                continue;
            };
            // A list from the network may name a node twice.
            if self.is_replica(idx) {
                continue;
            }
            let is_connected = self.load.is_connected(idx);
            let ranked = Ranked {
                node: idx,
                shard,
                is_connected,
                distance,
                drawn: 0,
            };
            // The capacities are the same.
            let _fits = self.replicas.push(ranked);
        }
        if !is_ordered {
            shuffle(&mut self.replicas, self.entropy);
        }
        for (drawn, replica) in (0..).zip(self.replicas.iter_mut()) {
            replica.drawn = drawn;
        }
        self.replicas
            .sort_unstable_by_key(|replica| (replica.class(), replica.drawn));
        if let [first, second, ..] = &mut *self.replicas
            && !is_ordered
            && first.class() == second.class()
        {
            let in_flight = |replica: &Ranked| self.load.in_flight(replica.node, replica.shard);
            if in_flight(second) < in_flight(first) {
                core::mem::swap(first, second);
            }
        }
    }

    fn is_replica(&self, idx: NodeIdx) -> bool {
        self.replicas.iter().any(|replica| replica.node == idx)
    }

    /// Fills the list: the leader, replicas, other nodes, then the same without connections.
    fn fill(&mut self, leader: Option<NodeIdx>) {
        let leads = |replica: &Ranked| Some(replica.node) == leader && replica.is_connected;
        let leader = self.replicas.iter().copied().find(leads);
        if let Some(Ranked { node, shard, .. }) = leader {
            self.push(Target {
                node,
                shard,
                reason: Reason::Leader,
            });
        }
        let promoted = leader.map(|leader| leader.node);
        for is_connected in [true, false] {
            for at in 0..self.replicas.len() {
                let Some(&replica) = self.replicas.get(at) else {
                    break;
                };
                if replica.is_connected == is_connected && Some(replica.node) != promoted {
                    let Ranked { node, shard, .. } = replica;
                    self.push(Target {
                        node,
                        shard,
                        reason: replica.reason(),
                    });
                }
            }
            for distance in [Distance::Rack, Distance::Dc, Distance::Remote] {
                self.push_strangers(distance, is_connected);
            }
        }
    }

    /// Nodes of a distance that are no replicas, in a drawn order.
    fn push_strangers(&mut self, distance: Distance, is_connected: bool) {
        let candidates = self.scope.candidates(self.topology, distance);
        for at in Tour::new(candidates.len(), self.entropy) {
            if self.targets.is_full() {
                return;
            }
            let Some(&idx) = candidates.get(at) else {
                continue;
            };
            let node = self.topology.node(idx);
            if node.and_then(|node| self.scope.distance(node)) == Some(distance)
                && !self.is_replica(idx)
                && self.load.is_connected(idx) == is_connected
            {
                self.push(Target {
                    node: idx,
                    shard: None,
                    reason: Reason::Any,
                });
            }
        }
    }

    fn push(&mut self, target: Target) {
        match self.skip.checked_sub(1) {
            Some(left) => self.skip = left,
            // What does not fit comes with the next plan.
            None => {
                let _fits = self.targets.push(target);
            }
        }
    }

    /// The less loaded of the first two also where there are no replicas to choose from.
    fn choose_of_two_strangers(&mut self) {
        let (topology, scope, load) = (self.topology, self.scope, self.load);
        let class = |target: &Target| {
            let distance = topology
                .node(target.node)
                .and_then(|node| scope.distance(node));
            (target.reason, load.is_connected(target.node), distance)
        };
        if let [first, second, ..] = &mut *self.targets
            && first.reason == Reason::Any
            && class(first) == class(second)
            && load.in_flight(second.node, None) < load.in_flight(first.node, None)
        {
            core::mem::swap(first, second);
        }
    }
}

/// Fisher and Yates, from the numbers that follow from `entropy`.
fn shuffle(replicas: &mut [Ranked], entropy: u64) {
    let mut rng = SmallRng::from_seed(entropy);
    for at in (1..replicas.len()).rev() {
        let bound = at.saturating_add(1) as u64;
        replicas.swap(at, usize::try_from(rng.below(bound)).unwrap_or(at));
    }
}

/// Every number below `len` once, from a start and in steps that `entropy` chooses. Not every
/// order can come up, but the node that follows a dead one differs from draw to draw, which a
/// plain rotation would not give.
struct Tour {
    len: usize,
    next: usize,
    step: usize,
    left: usize,
}

impl Tour {
    fn new(len: usize, entropy: u64) -> Self {
        let mut rng = SmallRng::from_seed(entropy);
        let next = usize::try_from(rng.below(len as u64)).unwrap_or(0);
        let which = usize::try_from(rng.below(STEPS.len() as u64)).unwrap_or(0);
        // A prime above every length shares no factor with it, nor does its remainder.
        let step = STEPS
            .get(which)
            .and_then(|step| step.checked_rem(len))
            .unwrap_or(0);
        Self {
            len,
            next,
            step,
            left: len,
        }
    }
}

impl Iterator for Tour {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = at
            .saturating_add(self.step)
            .checked_rem(self.len)
            .unwrap_or(0);
        Some(at)
    }
}

/// Primes above the greatest number of nodes.
const STEPS: [usize; 8] = [
    65_537, 65_539, 65_543, 65_551, 65_557, 65_563, 65_579, 65_581,
];
