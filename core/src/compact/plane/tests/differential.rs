//! Plans of a plane and of the planner of servers, side by side: random clusters, tablets, policies,
//! requests and loads.
//!
//! Both must list the same leader, and the same classes in the same order; the same members within
//! each class, in the same order where no chance is involved.

use super::*;
use crate::rng::SmallRng;
use crate::routing::{
    KeyspaceConsistency, KeyspaceSpec, LearnedReplica, LearnedTablet, Load, NodeIdx, NodeSpec,
    Partitioner, Policy, Reason, ReplicationStrategy, RouteRequest, RoutingLimits, ShardIdx,
    ShardMap, Table, TableSpec, TabletVersion, Target, Token, View, ViewWriter,
};
use crate::wire::{Consistency, SerialConsistency};
use core::net::{IpAddr, SocketAddr};
use std::boxed::Box;
use std::format;
use std::string::String;

/// Both sides, fed with the same.
struct World {
    rng: SmallRng,
    writer: ViewWriter,
    plane: Plane,
    policy: Policy,
    nodes: u16,
    keys: Vec<(&'static str, TableKey)>,
    loads: Vec<Option<u32>>,
}

impl Load for World {
    fn in_flight(&self, node: NodeIdx, shard: Option<ShardIdx>) -> u32 {
        self.load(node.value(), shard).unwrap_or(0)
    }

    fn is_connected(&self, node: NodeIdx) -> bool {
        self.load(node.value(), None).is_some()
    }
}

const KEYSPACES: [&str; 5] = ["eventual", "strong", "network", "simple", "everywhere"];

fn pick<T: Clone>(rng: &mut SmallRng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

fn is_one_of(rng: &mut SmallRng, bound: u64) -> bool {
    rng.below(bound) == 0
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::from_seed(seed);
        let name = |rng: &mut SmallRng, names: &[&'static str]| -> Option<Box<str>> {
            Some(pick(rng, names))
                .filter(|name| !name.is_empty())
                .map(Into::into)
        };
        let policy = Policy {
            preferred_dc: name(&mut rng, &["", "a", "a", "b", "nowhere"]),
            preferred_rack: name(&mut rng, &["", "r1", "r2", "r9"]),
            dc_failover: is_one_of(&mut rng, 2),
            dc_failover_at_local_levels: is_one_of(&mut rng, 3),
            tablet_leader: !is_one_of(&mut rng, 5),
            shuffle: !is_one_of(&mut rng, 3),
            rotate_lwt: is_one_of(&mut rng, 2),
            ..Policy::default()
        };
        let mut world = Self {
            writer: ViewWriter::new(RoutingLimits::default()),
            plane: Plane::with_limits(LIMITS, policy.clone()),
            policy,
            nodes: 1 + rng.below(11) as u16,
            keys: Vec::new(),
            loads: Vec::new(),
            rng,
        };
        world.put_nodes();
        world.put_keyspaces();
        for _ in 0..world.rng.below(12) {
            world.put_tablet();
        }
        world
    }

    fn load(&self, node: u16, shard: Option<ShardIdx>) -> Option<u32> {
        let load = self.loads[usize::from(node)]?;
        Some(load + shard.map_or(0, |shard| u32::from(shard.value()) * 3))
    }

    fn put_nodes(&mut self) {
        let mut specs = Vec::new();
        for number in 0..self.nodes {
            let rng = &mut self.rng;
            let load = Some(pick(rng, &[0, 0, 1, 4, 40])).filter(|_| rng.below(5) > 0);
            self.loads.push(load);
            let tokens = (0..rng.below(5)).map(|_| rng.below(1000) as i64).collect();
            specs.push(NodeSpec {
                host_id: host(number),
                address: SocketAddr::from(([10, 0, 0, number as u8], 9042)),
                dc: pick(rng, &["a", "a", "b", "c"]).into(),
                rack: pick(rng, &["r1", "r2", "r3"]).into(),
                tokens,
                // There, what a live connection tells is told to the view.
                is_up: !is_one_of(rng, 6) || load.is_some(),
                is_enabled: true,
            });
        }
        self.writer.set_nodes(&specs);
        for (spec, number) in specs.iter().zip(0..) {
            let row = MemberRow {
                host_id: spec.host_id,
                address: Some(spec.address.ip()),
                broadcast: None::<IpAddr>,
                dc: &spec.dc,
                rack: &spec.rack,
                has_tokens: !spec.tokens.is_empty(),
            };
            assert_eq!(self.plane.put_member(&row), Some(number));
            let is_up = spec.is_up && !is_one_of(&mut self.rng, 6);
            let is_linked = self.loads[usize::from(number)].is_some();
            self.plane
                .set_up(number, if is_linked { is_up } else { spec.is_up });
            self.plane.ring.put_all(number, &spec.tokens);
            let count = self.rng.below(9) as u16;
            let sharding = ShardMap::new(count, 12).ok();
            self.plane.set_sharding(number, sharding);
            self.writer
                .set_shard_map(NodeIdx::from_value(number).unwrap(), sharding);
        }
        self.plane.ring.end(&self.plane.cluster);
    }

    fn put_keyspaces(&mut self) {
        for name in KEYSPACES {
            let rng = &mut self.rng;
            let factor = rng.below(5) as u16;
            let mut factors = Vec::new();
            for dc in ["a", "b", "c", "d"] {
                if !is_one_of(rng, 3) {
                    factors.push((Box::from(dc), 1 + rng.below(4) as u16));
                }
            }
            let (kind, strategy) = match name {
                "eventual" => (KeyspaceKind::Tablets, ReplicationStrategy::Unknown),
                "strong" => (KeyspaceKind::StrongTablets, ReplicationStrategy::Unknown),
                "network" => (
                    KeyspaceKind::Vnodes,
                    ReplicationStrategy::NetworkTopology {
                        factors: factors.into(),
                    },
                ),
                "simple" => (KeyspaceKind::Vnodes, ReplicationStrategy::Simple { factor }),
                _ => (KeyspaceKind::Vnodes, ReplicationStrategy::Everywhere),
            };
            let spec = KeyspaceSpec {
                name: name.into(),
                strategy: strategy.clone(),
                has_tablets: kind != KeyspaceKind::Vnodes,
                consistency: match kind {
                    KeyspaceKind::StrongTablets => KeyspaceConsistency::Strong,
                    _ => KeyspaceConsistency::Eventual,
                },
            };
            let table = TableSpec {
                name: "t".into(),
                id: Uuid::from_u128(1),
                partitioner: Some(Partitioner::Murmur3),
            };
            self.writer.put_keyspace(spec, Vec::from([table]));
            self.keys.push((name, self.plane.table(name, "t").unwrap()));
            let key = self.plane.table(name, "t").unwrap();
            self.plane.put_kind(key, kind);
            let strategy = match strategy {
                ReplicationStrategy::Simple { factor } => ring::Strategy::Simple(factor),
                ReplicationStrategy::NetworkTopology { factors } => {
                    let number = |dc: &str, plane: &mut Plane| plane.cluster.intern(dc, 64);
                    let numbered = factors.iter();
                    let numbered =
                        numbered.map(|(dc, factor)| (number(dc, &mut self.plane), *factor));
                    ring::Strategy::Network(numbered.collect())
                }
                _ => ring::Strategy::None,
            };
            self.plane.keyspaces.last_mut().unwrap().strategy = strategy;
        }
        self.writer.view();
    }

    fn put_tablet(&mut self) {
        let rng = &mut self.rng;
        let (name, key) = self.keys[rng.below(2) as usize];
        let first = rng.below(1000) as i64;
        let range = (first, first + 1 + rng.below(300) as i64);
        let version = Some(rng.next_u64()).filter(|_| rng.below(4) > 0);
        let version = version.map(TabletVersion::new);
        // Hosts beyond the nodes are not known.
        let bound = u64::from(self.nodes) + 2;
        let count = 1 + rng.below(6);
        let replicas: Vec<(Uuid, u16)> = (0..count)
            .map(|_| (host(rng.below(bound) as u16), rng.below(10) as u16))
            .collect();
        let named = |&(host_id, shard): &(Uuid, u16)| LearnedReplica { host_id, shard };
        let learned = replicas.iter().map(named).collect();
        let learned = LearnedTablet::new(range.0, range.1, version, learned).unwrap();
        let handle = self
            .writer
            .view()
            .table_by_name(name, "t")
            .unwrap()
            .handle();
        self.writer.learn(handle, &learned);
        self.plane.put_tablet(key, range, version, &replicas);
    }

    fn route(&mut self) -> (&'static str, Route) {
        let rng = &mut self.rng;
        let (name, key) = pick(rng, &self.keys);
        let levels = [
            Consistency::One,
            Consistency::LocalOne,
            Consistency::Quorum,
            Consistency::LocalQuorum,
            Consistency::All,
            Consistency::Serial,
            Consistency::LocalSerial,
        ];
        let serial = [
            None,
            Some(SerialConsistency::Serial),
            Some(SerialConsistency::LocalSerial),
        ];
        let route = Route {
            table: Some(key).filter(|_| rng.below(8) > 0),
            token: Some(Token::new(rng.below(1400) as i64)).filter(|_| rng.below(8) > 0),
            consistency: pick(rng, &levels),
            serial_consistency: pick(rng, &serial),
            is_lwt: is_one_of(rng, 3),
        };
        (name, route)
    }

    fn compare(&mut self, view: &View) -> usize {
        let (name, route) = self.route();
        let request = RouteRequest {
            table: route
                .table
                .and_then(|_| view.table_by_name(name, "t"))
                .map(Table::handle),
            token: route.token,
            consistency: route.consistency,
            is_lwt: route.is_lwt,
            serial_consistency: route.serial_consistency,
        };
        let entropy = self.rng.next_u64();
        let theirs = crate::routing::plan(view, &request, &self.policy, &*self, entropy, 0);
        let load = |node, shard| self.load(node, shard);
        let ours = plan(&self.plane, &route, entropy, &load);
        let is_serial = matches!(
            route.consistency,
            Consistency::Serial | Consistency::LocalSerial
        );
        let is_ordered = route.is_lwt || is_serial || !self.policy.shuffle;

        let theirs: Vec<Candidate> = theirs.targets().iter().map(candidate).collect();
        let told = || format!("{name} {route:?}\n{:?}\n{ours:?}\n{theirs:?}", self.policy);
        let classes = |plan: &[Candidate]| -> Vec<_> {
            plan.iter().map(|candidate| self.class(candidate)).collect()
        };
        assert_eq!(classes(&ours), classes(&theirs), "{}", told());
        let last = ours.last().map(|last| self.class(last));
        for class in classes(&ours) {
            let of_class = |plan: &[Candidate]| -> Vec<(u16, Option<ShardIdx>)> {
                let same = plan
                    .iter()
                    .filter(|candidate| self.class(candidate) == class);
                same.map(|candidate| (candidate.member, candidate.shard))
                    .collect()
            };
            let (mut left, mut right) = (of_class(&ours), of_class(&theirs));
            let is_drawn = !is_ordered || class.0 == Reason::Any;
            if is_drawn {
                left.sort_unstable();
                right.sort_unstable();
            }
            // Which of the last ones fit is for chance to say.
            if !is_drawn || ours.len() < 8 || last != Some(class) {
                assert_eq!(left, right, "{}", told());
            }
        }
        let is_led = ours
            .first()
            .is_some_and(|first| first.reason == Reason::Leader);
        if let [first, second, ..] = &*ours
            && !is_ordered
            && !is_led
            && self.class(first) == self.class(second)
        {
            let load = |of: &Candidate| self.load(of.member, of.shard).unwrap_or(0);
            assert!(!is_busier(load(first), load(second)), "{}", told());
        }
        ours.len()
    }

    /// Members of the same class are equally good.
    fn class(&self, candidate: &Candidate) -> (Reason, bool, members::Distance) {
        let is_linked = self.loads[usize::from(candidate.member)].is_some();
        let distance = self.plane.members()[usize::from(candidate.member)].distance;
        (candidate.reason, is_linked, distance)
    }
}

/// All targets, one after the other as each fails, but no more than a plan of servers has.
fn plan(plane: &Plane, route: &Route, entropy: u64, load: &LoadOf<'_>) -> Vec<Candidate> {
    let (mut plan, mut tried) = (Vec::new(), Vec::new());
    while plan.len() < 8
        && let (Some(target), _) = plane.choose(route, &tried, entropy, load)
    {
        assert!(plane.has_more(route, &tried, load));
        tried.push(target.member);
        plan.push(target);
    }
    assert!(plan.len() == 8 || !plane.has_more(route, &tried, load));
    plan
}

fn candidate(target: &Target) -> Candidate {
    Candidate {
        member: target.node.value(),
        shard: target.shard,
        reason: target.reason,
    }
}

/// The rule as the policy's documentation tells it.
fn is_busier(left: u32, right: u32) -> bool {
    left > right && (f64::from(left) - f64::from(right)) > 2.0 * f64::from(left + right).sqrt()
}

#[test]
fn plans_agree_with_those_of_servers() {
    let mut seen = [0_usize; 9];
    for seed in 0..3000 {
        let mut world = World::new(seed);
        let view = world.writer.view();
        for _ in 0..20 {
            seen[world.compare(&view)] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 500), "{seen:?}");
}

/// Without load equal replicas are first equally often, and so are equal members without replicas.
#[test]
fn chance_is_even() {
    for name in ["eventual", "none"] {
        let mut plane = Plane::with_limits(LIMITS, Policy::default());
        for number in 0..5 {
            let row = MemberRow {
                host_id: host(number),
                address: None,
                broadcast: None,
                dc: "a",
                rack: "r",
                has_tokens: true,
            };
            plane.put_member(&row);
        }
        let key = plane.table("eventual", "t").unwrap();
        let replicas: Vec<_> = (0..5).map(|number| (host(number), 0)).collect();
        plane.put_tablet(key, (0, 10), None, &replicas);
        let route = Route {
            table: Some(key).filter(|_| name == "eventual"),
            token: Some(Token::new(5)),
            consistency: Consistency::Quorum,
            serial_consistency: None,
            is_lwt: false,
        };
        let mut rng = SmallRng::from_seed(7);
        let mut counts = std::collections::BTreeMap::<(u16, u16), u32>::new();
        for _ in 0..40_000 {
            let plan = plan(&plane, &route, rng.next_u64(), &|_, _| Some(0));
            assert_eq!(plan.len(), 5);
            *counts.entry((plan[0].member, plan[1].member)).or_default() += 1;
        }
        // Twenty pairs, 2,000 each on average.
        let report: String = format!("{name}: {counts:?}");
        assert!(
            counts.len() == 20 && counts.values().all(|&count| count > 1_600),
            "{report}"
        );
    }
}
