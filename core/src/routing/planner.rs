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
use crate::sorted::sort_few;
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
        sort_few(&mut self.replicas, |replica| {
            (replica.class(), replica.drawn)
        });
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

#[cfg(test)]
mod tests {
    use super::super::topology::tests::spec;
    use super::super::*;
    use super::{STEPS, Tour};
    use crate::wire::Consistency;
    use std::boxed::Box;
    use std::collections::{BTreeMap, BTreeSet};
    use std::string::{String, ToString};
    use std::vec::Vec;
    use std::{format, vec};
    use uuid::Uuid;

    /// What connections there are, by node number.
    #[derive(Default)]
    struct Fake {
        in_flight: BTreeMap<u8, u32>,
        unconnected: BTreeSet<u8>,
    }

    /// Nodes stand under their number less one.
    fn number(idx: NodeIdx) -> u8 {
        idx.value() as u8 + 1
    }

    impl Load for Fake {
        fn in_flight(&self, node: NodeIdx, _: Option<ShardIdx>) -> u32 {
            self.in_flight.get(&number(node)).copied().unwrap_or(0)
        }

        fn is_connected(&self, node: NodeIdx) -> bool {
            !self.unconnected.contains(&number(node))
        }
    }

    /// Racks r1 and r2 of data centre a, and data centre b.
    const NODES: [(u8, &str, &str); 6] = [
        (1, "a", "r1"),
        (2, "a", "r1"),
        (3, "a", "r2"),
        (4, "a", "r2"),
        (5, "b", "r1"),
        (6, "b", "r1"),
    ];

    fn writer(nodes: &[(u8, &str, &str)]) -> ViewWriter {
        let mut writer = ViewWriter::new(RoutingLimits::default());
        let specs: Vec<_> = nodes
            .iter()
            .map(|&(n, dc, rack)| spec(n, dc, rack, &[i64::from(n) * 100]))
            .collect();
        for idx in writer.set_nodes(&specs).added {
            writer.set_shard_map(idx, ShardMap::new(8, 12).ok());
        }
        let factors = Box::new([("a".into(), 2), ("b".into(), 1)]);
        let keyspace = |name: &str, has_tablets, consistency| KeyspaceSpec {
            name: name.into(),
            strategy: ReplicationStrategy::NetworkTopology {
                factors: factors.clone(),
            },
            has_tablets,
            consistency,
        };
        let table = || {
            let partitioner = Some(Partitioner::Murmur3);
            vec![TableSpec {
                name: "t".into(),
                id: Uuid::from_u128(1),
                partitioner,
            }]
        };
        let (eventual, strong) = (KeyspaceConsistency::Eventual, KeyspaceConsistency::Strong);
        writer.put_keyspace(keyspace("eventual", true, eventual), table());
        writer.put_keyspace(keyspace("strong", true, strong), table());
        writer.put_keyspace(keyspace("vnode", false, eventual), table());
        writer
    }

    fn learn(
        writer: &mut ViewWriter,
        keyspace: &str,
        version: Option<u64>,
        replicas: &[(u8, u16)],
    ) {
        let replica = |&(n, shard): &(u8, u16)| LearnedReplica {
            host_id: Uuid::from_u128(u128::from(n)),
            shard,
        };
        let replicas = replicas.iter().map(replica).collect();
        let version = version.map(TabletVersion::new);
        let tablet = LearnedTablet::new(0, 1000, version, replicas).unwrap();
        let handle = writer.view().table_by_name(keyspace, "t").unwrap().handle();
        writer.learn(handle, &tablet);
    }

    fn request(view: &View, keyspace: &str, token: i64, consistency: Consistency) -> RouteRequest {
        RouteRequest {
            table: view.table_by_name(keyspace, "t").map(Table::handle),
            token: Some(Token::new(token)),
            consistency,
            is_lwt: false,
        }
    }

    fn policy(dc: &str, rack: &str, dc_failover: bool) -> Policy {
        let named = |name: &str| (!name.is_empty()).then(|| name.into());
        Policy {
            preferred_dc: named(dc),
            preferred_rack: named(rack),
            dc_failover,
            shuffle: false,
            ..Policy::default()
        }
    }

    fn letter(reason: Reason) -> char {
        match reason {
            Reason::Leader => 'L',
            Reason::Rack => 'R',
            Reason::Dc => 'D',
            Reason::Remote => 'F',
            Reason::Any => 'a',
        }
    }

    /// The replicas of a plan in order, other nodes as a set behind: "3D/7 1D/0 | 2 4".
    fn show(plan: &Plan) -> String {
        let (mut replicas, mut others) = (Vec::new(), BTreeSet::new());
        for target in plan.targets() {
            let (n, shard) = (number(target.node), target.shard);
            if target.reason == Reason::Any {
                assert_eq!(shard, None);
                others.insert(n.to_string());
            } else {
                let shard = shard.map_or(String::new(), |shard| format!("/{shard}"));
                replicas.push(format!("{n}{}{shard}", letter(target.reason)));
            }
        }
        let others = others.into_iter().collect::<Vec<_>>().join(" ");
        format!("{} | {others}", replicas.join(" ")).trim().into()
    }

    fn order(plan: &Plan) -> Vec<u8> {
        plan.targets()
            .iter()
            .map(|target| number(target.node))
            .collect()
    }

    #[test]
    fn replicas_come_by_distance_then_other_nodes() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "eventual", None, &[(5, 1), (3, 2), (1, 3)]);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::LocalQuorum);
        let table = [
            // Without a preference every node is local; the order is the listed one.
            ("", "", false, "5D/1 3D/2 1D/3 | 2 4 6"),
            ("", "r1", false, "5D/1 3D/2 1D/3 | 2 4 6"),
            ("a", "", false, "3D/2 1D/3 | 2 4"),
            ("a", "", true, "3D/2 1D/3 5F/1 | 2 4 6"),
            ("a", "r1", false, "1R/3 3D/2 | 2 4"),
            ("a", "r2", true, "3R/2 1D/3 5F/1 | 2 4 6"),
            ("a", "r9", false, "3D/2 1D/3 | 2 4"),
            ("b", "", false, "5D/1 | 6"),
            ("b", "r1", true, "5R/1 3F/2 1F/3 | 2 4 6"),
            ("nowhere", "", false, "|"),
            ("nowhere", "r1", true, "5F/1 3F/2 1F/3 | 2 4 6"),
        ];
        for (dc, rack, failover, expected) in table {
            let policy = policy(dc, rack, failover);
            for entropy in 0..20 {
                let plan = plan(&view, &request, &policy, &Fake::default(), entropy, 0);
                assert_eq!(show(&plan), expected, "{dc}/{rack} failover {failover}");
                assert_eq!((plan.source(), plan.leader()), (Source::Tablet, None));
            }
        }
    }

    #[test]
    fn other_nodes_come_by_distance_too() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "eventual", None, &[(4, 0)]);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::One);
        let policy = Policy {
            shuffle: true,
            ..policy("a", "r1", true)
        };
        let mut seen = BTreeSet::new();
        for entropy in 0..200 {
            let order = order(&plan(
                &view,
                &request,
                &policy,
                &Fake::default(),
                entropy,
                0,
            ));
            let place = |n: u8| order.iter().position(|&found| found == n).unwrap();
            assert_eq!((place(4), order[3], order.len()), (0, 3, 6));
            assert!(place(1) < 3 && place(2) < 3 && place(5) > 3 && place(6) > 3);
            seen.insert(order);
        }
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn unknown_tablets_and_tokens_go_to_live_local_nodes() {
        let mut writer = writer(&NODES);
        writer.set_up(
            writer
                .topology()
                .node_by_host_id(Uuid::from_u128(2))
                .unwrap(),
            false,
        );
        writer.set_enabled(
            writer
                .topology()
                .node_by_host_id(Uuid::from_u128(3))
                .unwrap(),
            false,
        );
        let view = writer.view();
        let mut unconnected = Fake::default();
        unconnected.unconnected.insert(1);
        let known = request(&view, "eventual", 50, Consistency::One);
        let rows = [
            known,
            RouteRequest {
                token: None,
                ..known
            },
            RouteRequest {
                table: None,
                ..known
            },
            request(&view, "absent", 50, Consistency::One),
        ];
        for request in rows {
            for entropy in 0..30 {
                let policy = Policy {
                    shuffle: true,
                    ..policy("a", "", false)
                };
                let found = plan(&view, &request, &policy, &Fake::default(), entropy, 0);
                assert_eq!(
                    (show(&found), found.source()),
                    ("| 1 4".into(), Source::None)
                );
                let found = plan(&view, &request, &policy, &unconnected, entropy, 0);
                assert_eq!(order(&found), [4, 1], "without a connection comes last");
            }
        }
    }

    #[test]
    fn vnode_tables_use_the_ring_and_each_nodes_own_shards() {
        let mut writer = writer(&NODES);
        let idx = |n: u8| {
            writer
                .topology()
                .node_by_host_id(Uuid::from_u128(n.into()))
                .unwrap()
        };
        let (two, three) = (idx(2), idx(3));
        writer.set_shard_map(three, ShardMap::new(12, 0).ok());
        let view = writer.view();
        // Shards of token 150 by the formula: none of 8 with 12 bits ignored, the sixth of 12.
        let at = |view: &View| request(view, "vnode", 150, Consistency::Quorum);
        let fake = Fake::default();
        let found = plan(&view, &at(&view), &policy("a", "", true), &fake, 1, 0);
        assert_eq!(
            (show(&found), found.source()),
            ("2D/0 3D/6 5F/0 | 1 4 6".into(), Source::Ring)
        );
        writer.set_shard_map(two, None);
        let view = writer.view();
        let found = plan(&view, &at(&view), &policy("a", "", false), &fake, 1, 0);
        assert_eq!(show(&found), "2D 3D/6 | 1 4");
    }

    #[test]
    fn shards_a_node_does_not_have_are_none() {
        for (shard, expected) in [
            (3, "1D/3"),
            (7, "1D/7"),
            (8, "1D"),
            (9, "1D"),
            (65535, "1D"),
        ] {
            let mut writer = writer(&[(1, "a", "r1")]);
            learn(&mut writer, "eventual", None, &[(1, shard)]);
            let view = writer.view();
            let request = request(&view, "eventual", 50, Consistency::One);
            let plan = plan(
                &view,
                &request,
                &policy("a", "", false),
                &Fake::default(),
                0,
                0,
            );
            assert_eq!(show(&plan), format!("{expected} |"));
        }
    }

    /// Reads and writes: all levels but ONE and LOCAL_ONE, strong tables only, versions only.
    #[test]
    fn the_leader_is_first_for_what_only_it_can_serve() {
        for consistency in Consistency::ALL {
            for (keyspace, is_strong) in [("strong", true), ("eventual", false)] {
                for version in [None, Some(1)] {
                    for tablet_leader in [false, true] {
                        let mut writer = writer(&NODES);
                        learn(&mut writer, keyspace, version, &[(3, 6), (1, 3), (5, 1)]);
                        let view = writer.view();
                        let request = request(&view, keyspace, 50, consistency);
                        let policy = Policy {
                            tablet_leader,
                            ..policy("a", "r1", false)
                        };
                        let plan = plan(&view, &request, &policy, &Fake::default(), 5, 0);
                        let any_replica =
                            matches!(consistency, Consistency::One | Consistency::LocalOne);
                        let expected =
                            is_strong && version.is_some() && tablet_leader && !any_replica;
                        let order = if expected { "3L/6 1R/3" } else { "1R/3 3D/6" };
                        let name = format!("{keyspace} {consistency:?} {version:?}");
                        assert_eq!(show(&plan), format!("{order} | 2 4"), "{name}");
                        assert_eq!(
                            plan.leader().map(|(idx, _)| number(idx)),
                            expected.then_some(3)
                        );
                    }
                }
            }
        }
    }

    /// A leader in each place, in each state, under each policy.
    #[test]
    fn the_leader_never_overrides_the_policy() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum State {
            Good,
            Down,
            Disabled,
            Unconnected,
        }
        use State::{Disabled, Down, Good, Unconnected};
        let table = [
            (1, "a", "r1", false, Good, "1L/1 3D/3 | 2 4"),
            (3, "a", "r1", false, Good, "3L/3 1R/1 | 2 4"),
            // Remote: not without failover, and before a replica in the rack with it.
            (5, "a", "r1", false, Good, "1R/1 3D/3 | 2 4"),
            (5, "a", "r1", true, Good, "5L/5 1R/1 3D/3 | 2 4 6"),
            (5, "", "", false, Good, "5L/5 1D/1 3D/3 | 2 4 6"),
            (3, "b", "", false, Good, "5D/5 | 6"),
            (3, "b", "", true, Good, "3L/3 5D/5 1F/1 | 2 4 6"),
            (3, "nowhere", "", false, Good, "|"),
            // Not one that is down, filtered or not connected.
            (3, "a", "r1", false, Down, "1R/1 | 2 4"),
            (3, "a", "r1", false, Disabled, "1R/1 | 2 4"),
            (5, "a", "r1", true, Down, "1R/1 3D/3 | 2 4 6"),
            (3, "a", "r1", false, Unconnected, "1R/1 3D/3 | 2 4"),
        ];
        for (leader, dc, rack, failover, state, expected) in table {
            let mut writer = writer(&NODES);
            let mut replicas = vec![(1, 1), (3, 3), (5, 5)];
            let at = replicas.iter().position(|&(n, _)| n == leader).unwrap();
            replicas.rotate_left(at);
            learn(&mut writer, "strong", Some(1), &replicas);
            let host_id = Uuid::from_u128(leader.into());
            let idx = writer.topology().node_by_host_id(host_id).unwrap();
            writer.set_up(idx, state != Down);
            writer.set_enabled(idx, state != Disabled);
            let mut fake = Fake::default();
            if state == Unconnected {
                fake.unconnected.insert(leader);
            }
            let view = writer.view();
            let request = request(&view, "strong", 50, Consistency::LocalQuorum);
            let found = plan(&view, &request, &policy(dc, rack, failover), &fake, 3, 0);
            let name = format!("leader {leader}, {dc}/{rack} failover {failover} {state:?}");
            assert_eq!(show(&found), expected, "{name}");
            assert_eq!(
                found.leader().map(|(idx, _)| number(idx)),
                Some(leader),
                "{name}"
            );
        }
    }

    /// With chance and load: the leader, then exactly the base plan without it.
    #[test]
    fn behind_the_leader_stands_the_base_plan() {
        let mut writer = writer(&NODES);
        learn(
            &mut writer,
            "strong",
            Some(1),
            &[(3, 6), (1, 3), (4, 0), (2, 1), (5, 1)],
        );
        let view = writer.view();
        let base = request(&view, "strong", 50, Consistency::LocalOne);
        let led = request(&view, "strong", 50, Consistency::Quorum);
        let in_flight = (1..7).map(|n| (n, u32::from(n * 7 % 5))).collect();
        let fake = Fake {
            in_flight,
            unconnected: BTreeSet::from([2]),
        };
        for (dc, rack, failover) in [("a", "r1", true), ("a", "", false), ("", "", false)] {
            let policy = Policy {
                shuffle: true,
                ..policy(dc, rack, failover)
            };
            for entropy in 0..300 {
                let base = order(&plan(&view, &base, &policy, &fake, entropy, 0));
                let led = order(&plan(&view, &led, &policy, &fake, entropy, 0));
                let without: Vec<u8> = base.into_iter().filter(|&n| n != 3).collect();
                assert_eq!((led[0], &led[1..]), (3, &without[..]));
            }
        }
    }

    #[test]
    fn an_unresolved_leader_is_none_and_the_next_replica_is_not_taken_for_it() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "strong", Some(1), &[(9, 0), (3, 6), (1, 3)]);
        let view = writer.view();
        let request = request(&view, "strong", 50, Consistency::Quorum);
        let found = plan(
            &view,
            &request,
            &policy("a", "r1", false),
            &Fake::default(),
            3,
            0,
        );
        assert_eq!(
            (show(&found), found.leader()),
            ("1R/3 3D/6 | 2 4".into(), None)
        );
        // It becomes known: now it leads.
        let mut nodes: Vec<_> = NODES
            .iter()
            .map(|&(n, dc, r)| spec(n, dc, r, &[i64::from(n) * 100]))
            .collect();
        nodes.push(spec(9, "a", "r2", &[]));
        writer.set_nodes(&nodes);
        let view = writer.view();
        let found = plan(
            &view,
            &request,
            &policy("a", "r1", false),
            &Fake::default(),
            3,
            0,
        );
        assert_eq!(order(&found)[..3], [7, 1, 3]);
        assert_eq!(found.targets()[0].reason, Reason::Leader);
    }

    #[test]
    fn conditional_statements_keep_the_listed_order() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "eventual", Some(77), &[(4, 0), (1, 1), (3, 2)]);
        let idx = |n: u8| {
            writer
                .topology()
                .node_by_host_id(Uuid::from_u128(n.into()))
                .unwrap()
        };
        let four = idx(4);
        // The first is heavily loaded, which must not matter.
        let fake = Fake {
            in_flight: BTreeMap::from([(4, 99)]),
            ..Fake::default()
        };
        for state in ["up", "down", "filtered", "up again"] {
            writer.set_up(four, state != "down");
            writer.set_enabled(four, state != "filtered");
            let view = writer.view();
            let plain = request(&view, "eventual", 50, Consistency::Quorum);
            let serial = request(&view, "eventual", 50, Consistency::LocalSerial);
            for request in [
                RouteRequest {
                    is_lwt: true,
                    ..plain
                },
                serial,
            ] {
                for entropy in 0..100 {
                    let policy = Policy {
                        shuffle: true,
                        ..policy("a", "", false)
                    };
                    let found = show(&plan(&view, &request, &policy, &fake, entropy, 0));
                    let expected = match state {
                        "up" | "up again" => "4D/0 1D/1 3D/2 | 2",
                        _ => "1D/1 3D/2 | 2",
                    };
                    assert_eq!(found, expected, "{state}");
                }
            }
        }
    }

    #[test]
    fn conditional_statements_may_rotate_by_tablet() {
        let mut writer = writer(&NODES);
        let handle = writer
            .view()
            .table_by_name("eventual", "t")
            .unwrap()
            .handle();
        let replicas = [(1, 1), (3, 2), (4, 0)].map(|(n, shard)| LearnedReplica {
            host_id: Uuid::from_u128(n),
            shard,
        });
        let mut firsts = BTreeMap::<u8, u32>::new();
        let policy = Policy {
            rotate_lwt: true,
            ..policy("a", "", false)
        };
        for tablet in 0..300 {
            let version = Some(TabletVersion::new(5));
            let range = (tablet * 10, tablet * 10 + 10);
            let learned = LearnedTablet::new(range.0, range.1, version, Box::new(replicas));
            writer.learn(handle, &learned.unwrap());
            let view = writer.view();
            let first = |token: i64, is_lwt: bool| {
                let plain = request(&view, "eventual", token, Consistency::Quorum);
                let request = RouteRequest { is_lwt, ..plain };
                let found = order(&plan(&view, &request, &policy, &Fake::default(), 0, 0));
                found[0]
            };
            let all: BTreeSet<u8> = (1..=10).map(|at| first(range.0 + at, true)).collect();
            assert_eq!(
                all.len(),
                1,
                "every key of a tablet has the same first replica"
            );
            assert_eq!(first(range.1, false), 1);
            *firsts.entry(*all.first().unwrap()).or_default() += 1;
        }
        assert_eq!(firsts.len(), 3);
        assert!(
            firsts.values().all(|&count| (70..130).contains(&count)),
            "{firsts:?}"
        );
    }

    #[test]
    fn equal_replicas_share_evenly_and_the_less_loaded_of_two_wins() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "eventual", Some(1), &[(1, 0), (3, 0), (4, 0)]);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::Quorum);
        let policy = Policy {
            shuffle: true,
            ..policy("a", "", false)
        };
        let count = |fake: &Fake| {
            let mut firsts = BTreeMap::<u8, u32>::new();
            let mut orders = BTreeSet::new();
            for entropy in 0..3000 {
                let order = order(&plan(&view, &request, &policy, fake, entropy, 0));
                *firsts.entry(order[0]).or_default() += 1;
                orders.insert(order[..3].to_vec());
            }
            (firsts, orders.len())
        };
        let (firsts, orders) = count(&Fake::default());
        assert_eq!((firsts.len(), orders), (3, 6));
        assert!(
            firsts.values().all(|&count| (900..1100).contains(&count)),
            "{firsts:?}"
        );
        let in_flight = BTreeMap::from([(1, 5), (3, 0), (4, 9)]);
        let (firsts, _) = count(&Fake {
            in_flight,
            ..Fake::default()
        });
        // 3 if it is among the two (two thirds), else 1, never 4.
        assert_eq!(firsts.keys().copied().collect::<Vec<_>>(), [1, 3]);
        assert!((1900..2100).contains(&firsts[&3]), "{firsts:?}");
    }

    #[test]
    fn the_two_to_choose_from_are_connected() {
        let mut writer = writer(&NODES);
        learn(&mut writer, "eventual", Some(1), &[(1, 0), (3, 0), (4, 0)]);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::Quorum);
        let policy = Policy {
            shuffle: true,
            ..policy("a", "", false)
        };
        for idle in [3, 4] {
            let in_flight = (1..=4).map(|n| (n, u32::from(n != idle))).collect();
            let fake = Fake {
                in_flight,
                unconnected: BTreeSet::from([1, 2]),
            };
            for entropy in 0..100 {
                let order = order(&plan(&view, &request, &policy, &fake, entropy, 0));
                assert_eq!(order, [idle, 7 - idle, 1, 2]);
            }
        }
    }

    #[test]
    fn requests_without_replicas_share_evenly_too() {
        let names: Vec<_> = (1..=5).map(|n| (n, "a", "r1")).collect();
        let mut writer = writer(&names);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::Quorum);
        let policy = Policy::default();
        let count = |fake: &Fake| {
            let mut firsts = BTreeMap::<u8, u32>::new();
            for entropy in 0..5000 {
                let order = order(&plan(&view, &request, &policy, fake, entropy, 0));
                *firsts.entry(order[0]).or_default() += 1;
            }
            firsts
        };
        let even = count(&Fake::default());
        assert_eq!(even.len(), 5);
        assert!(
            even.values().all(|&count| (880..1120).contains(&count)),
            "{even:?}"
        );
        let in_flight = BTreeMap::from([(1, 9), (2, 9), (4, 9), (5, 9)]);
        let uneven = count(&Fake {
            in_flight,
            ..Fake::default()
        });
        assert!(uneven[&3] > 1500, "{uneven:?}");
        // A dead node's share goes to all others.
        writer.set_up(
            writer
                .topology()
                .node_by_host_id(Uuid::from_u128(3))
                .unwrap(),
            false,
        );
        let view = writer.view();
        let mut firsts = BTreeMap::<u8, u32>::new();
        for entropy in 0..4000 {
            let order = order(&plan(
                &view,
                &request,
                &policy,
                &Fake::default(),
                entropy,
                0,
            ));
            *firsts.entry(order[0]).or_default() += 1;
        }
        assert!(
            firsts.values().all(|&count| (850..1150).contains(&count)),
            "{firsts:?}"
        );
    }

    /// Plans behind one another list every allowed node once, whatever the policy.
    #[test]
    fn planning_on_never_ends_while_hosts_remain() {
        let nodes: Vec<(u8, &str, &str)> = (1..=40_u8)
            .map(|n| {
                (
                    n,
                    ["a", "b"][n as usize / 25],
                    ["r1", "r2", "r3"][n as usize % 3],
                )
            })
            .collect();
        let mut writer = writer(&nodes);
        let replicas: Vec<_> = (3..=19).rev().step_by(2).map(|n| (n, 0)).collect();
        learn(&mut writer, "strong", Some(1), &replicas);
        let view = writer.view();
        let unconnected = (1..=40).filter(|n| n % 4 == 1).collect();
        let in_flight = (1..=40).map(|n| (n, u32::from(n % 7))).collect();
        let busy = Fake {
            in_flight,
            unconnected,
        };
        for (dc, rack, failover, allowed) in [
            ("", "", false, 40),
            ("a", "r1", true, 40),
            ("a", "r2", false, 24),
            ("b", "", false, 16),
        ] {
            let policy = Policy {
                shuffle: true,
                ..policy(dc, rack, failover)
            };
            for keyspace in ["strong", "eventual", "vnode"] {
                for is_lwt in [false, true] {
                    for entropy in 0..20 {
                        let plain = request(&view, keyspace, 50, Consistency::Quorum);
                        let request = RouteRequest { is_lwt, ..plain };
                        let (mut seen, mut connected) = (Vec::new(), true);
                        loop {
                            let next = plan(&view, &request, &policy, &busy, entropy, seen.len());
                            seen.extend(order(&next));
                            if !next.may_go_on() {
                                break;
                            }
                        }
                        let end = plan(&view, &request, &policy, &busy, entropy, seen.len());
                        assert!(end.targets().is_empty());
                        for n in &seen {
                            assert!(connected || busy.unconnected.contains(n), "{seen:?}");
                            connected = !busy.unconnected.contains(n);
                        }
                        let distinct: BTreeSet<u8> = seen.iter().copied().collect();
                        assert_eq!((seen.len(), distinct.len()), (allowed, allowed), "{seen:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_list_that_names_a_node_twice_gives_it_once() {
        let mut writer = writer(&NODES);
        learn(
            &mut writer,
            "strong",
            Some(1),
            &[(3, 6), (3, 2), (1, 3), (3, 1)],
        );
        let view = writer.view();
        let rows = [
            (Consistency::Quorum, "3L/6 1D/3 | 2 4"),
            (Consistency::One, "3D/6 1D/3 | 2 4"),
        ];
        for (consistency, expected) in rows {
            let request = request(&view, "strong", 50, consistency);
            let found = plan(
                &view,
                &request,
                &policy("a", "", false),
                &Fake::default(),
                3,
                0,
            );
            assert_eq!(show(&found), expected);
        }
    }

    #[test]
    fn tours_visit_every_place_once() {
        for step in STEPS {
            assert!(
                step > 65_535 && (2..300).all(|divisor| step % divisor != 0),
                "{step}"
            );
        }
        for len in (0..150).chain([4096, 65_535]) {
            for entropy in 0..16 {
                let mut places: Vec<usize> = Tour::new(len, entropy).collect();
                places.sort_unstable();
                assert!(places.iter().copied().eq(0..len), "{len}");
            }
        }
    }
}
