//! The vnode ring: which nodes hold a token of a keyspace without tablets.
//!
//! A token belongs to the first node token that is not below it, after the greatest to the least.
//! From there replicas are found by walking on, as Cassandra and ScyllaDB do: `SimpleStrategy`
//! takes the next distinct nodes; `NetworkTopologyStrategy` takes the factor of each data centre,
//! and there a node of a rack already seen only as often as racks are missing (factor less number
//! of racks). Nodes without tokens own nothing and do not count. The walk is done once for every
//! token when the ring or the strategy changes; a lookup is one binary search.

use super::{Node, NodeIdx, Token, Topology};
use crate::digits::number;
use crate::gather::Gather;
use crate::sorted::{sort_by, sort_few};
use crate::sync::Shared;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How a keyspace places its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicationStrategy {
    /// The next distinct nodes, wherever they are.
    Simple {
        /// How many.
        factor: u16,
    },
    /// So many in each data centre, over its racks.
    NetworkTopology {
        /// Data centres and their factors, sorted by name, without those of factor 0.
        factors: Box<[(Box<str>, u16)]>,
    },
    /// Every node holds everything: any node is as good as another.
    Everywhere,
    /// Every node holds its own: no routing by token.
    Local,
    /// A class or an option that we do not know: no routing by token.
    Unknown,
}

impl ReplicationStrategy {
    /// The strategy of a `replication` map as `system_schema.keyspaces` has it. The class may
    /// come with or without its package.
    pub fn from_options<'a>(options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut class = "";
        let mut factors: Vec<(&str, &str)> = Vec::new();
        for (name, value) in options {
            match name {
                "class" => class = value.strip_prefix(PACKAGE).unwrap_or(value),
                _ => factors.push((name, value)),
            }
        }
        match class {
            "SimpleStrategy" => Self::simple(&factors),
            "NetworkTopologyStrategy" => Self::network_topology(&factors),
            "EverywhereStrategy" => Self::Everywhere,
            "LocalStrategy" => Self::Local,
            _ => Self::Unknown,
        }
    }

    fn simple(factors: &[(&str, &str)]) -> Self {
        let factor = factors
            .iter()
            .find(|(name, _)| *name == "replication_factor");
        match factor.and_then(|(_, value)| parse_factor(value)) {
            Some(factor) => Self::Simple { factor },
            None => Self::Unknown,
        }
    }

    fn network_topology(options: &[(&str, &str)]) -> Self {
        let mut factors: Vec<(Box<str>, u16)> = Vec::new();
        // The shorthand was expanded by the server when the keyspace was made.
        for (dc, value) in options
            .iter()
            .filter(|(name, _)| *name != "replication_factor")
        {
            match parse_factor(value) {
                Some(0) => {}
                Some(factor) => factors.push((Box::from(*dc), factor)),
                None => return Self::Unknown,
            }
        }
        sort_few(&mut factors, Clone::clone);
        factors.dedup_by(|a, b| a.0 == b.0);
        Self::NetworkTopology {
            factors: factors.into_boxed_slice(),
        }
    }

    /// Whether a token says which nodes are replicas.
    pub(super) const fn routes_by_token(&self) -> bool {
        matches!(self, Self::Simple { .. } | Self::NetworkTopology { .. })
    }
}

const PACKAGE: &str = "org.apache.cassandra.locator.";

/// A factor, or "all/transient", of which all hold data.
fn parse_factor(value: &str) -> Option<u16> {
    let all = value.split_once('/').map_or(value, |(all, _)| all);
    number(all.trim())
}

/// All node tokens in order, with their owners.
#[derive(Debug, Default)]
pub(super) struct Ring {
    tokens: Box<[i64]>,
    owners: Box<[NodeIdx]>,
}

impl Ring {
    /// The ring of a topology. If two nodes claim one token the lower index has it.
    pub(super) fn new(topology: &Topology) -> Self {
        let mut entries: Vec<(i64, NodeIdx)> = Vec::new();
        for node in topology.nodes() {
            for &token in node.tokens() {
                entries.push((token, node.idx()));
            }
        }
        sort_by(&mut entries, Ord::cmp);
        entries.dedup_by_key(|&mut (token, _)| token);
        let (mut tokens, mut owners) = (Vec::new(), Vec::new());
        for (token, owner) in entries {
            tokens.push(token);
            owners.push(owner);
        }
        Self {
            tokens: tokens.into_boxed_slice(),
            owners: owners.into_boxed_slice(),
        }
    }

    /// The place of the node token that a token belongs to.
    fn place_of(&self, token: Token) -> usize {
        let place = self.tokens.partition_point(|&end| end < token.value());
        if place < self.tokens.len() { place } else { 0 }
    }

    /// The owners from a place on, once round.
    fn walk(&self, place: usize) -> impl Iterator<Item = NodeIdx> {
        let (before, after) = self.owners.split_at_checked(place).unwrap_or_default();
        after.iter().chain(before).copied()
    }
}

/// The replicas of every token under one strategy.
#[derive(Debug)]
pub(super) struct RingReplicas {
    ring: Shared<Ring>,
    strategy: ReplicationStrategy,
    /// Replicas of each node token: the same number for all.
    stride: usize,
    replicas: Box<[NodeIdx]>,
}

impl RingReplicas {
    /// Walks the ring for every token. Lists are cut so that all together have at most
    /// `entries_max` entries; the nodes cut off are then found as ordinary nodes.
    pub(super) fn new(
        ring: &Shared<Ring>,
        topology: &Topology,
        strategy: &ReplicationStrategy,
        entries_max: usize,
    ) -> Self {
        let mut walker = Walker::new(ring, topology, strategy);
        let places = ring.tokens.len();
        let fitting = entries_max.checked_div(places).unwrap_or(0);
        let stride = walker.replica_count().min(fitting);
        let mut replicas = Vec::with_capacity(places.saturating_mul(stride));
        for place in 0..places {
            walker.start();
            let found = ring
                .walk(place)
                .filter(|&idx| walker.takes(topology, idx))
                .take(stride);
            replicas.extend(found);
        }
        debug_assert_eq!(replicas.len(), places.saturating_mul(stride));
        let (ring, strategy) = (ring.clone(), strategy.clone());
        Self {
            ring,
            strategy,
            stride,
            replicas: replicas.into_boxed_slice(),
        }
    }

    /// The replicas of a token in the order of the ring.
    pub(super) fn of(&self, token: Token) -> &[NodeIdx] {
        let start = self.ring.place_of(token).saturating_mul(self.stride);
        let end = start.saturating_add(self.stride);
        self.replicas.get(start..end).unwrap_or_default()
    }

    /// Whether these are the lists of this ring and strategy.
    pub(super) fn is_of(&self, ring: &Shared<Ring>, strategy: &ReplicationStrategy) -> bool {
        Shared::ptr_eq(&self.ring, ring) && self.strategy == *strategy
    }
}

/// Decides during a walk which nodes are replicas.
struct Walker {
    /// By node: the walk that took it last.
    taken: Vec<u32>,
    /// By rack: the walk that saw it last.
    racks: Vec<u32>,
    walk: u32,
    rule: Rule,
}

enum Rule {
    Simple {
        factor: usize,
        left: usize,
    },
    /// By data centre.
    Network {
        plan: Vec<DcShare>,
        left: Vec<DcShare>,
    },
}

/// What one data centre may still take.
#[derive(Clone, Copy, Default)]
struct DcShare {
    replicas: usize,
    rack_repeats: usize,
}

impl Walker {
    fn new(ring: &Ring, topology: &Topology, strategy: &ReplicationStrategy) -> Self {
        // A node may have tokens and still own nothing: others claim them too.
        let mut owns = alloc::vec![false; topology.idx_end()];
        for owner in &ring.owners {
            if let Some(owns) = owns.get_mut(usize::from(owner.value())) {
                *owns = true;
            }
        }
        let is_owner = |node: &&Node| owns.get(usize::from(node.idx().value())) == Some(&true);
        let owners = || topology.nodes().filter(is_owner);
        let rule = match strategy {
            ReplicationStrategy::Simple { factor } => Rule::Simple {
                factor: usize::from(*factor).min(owners().count()),
                left: 0,
            },
            ReplicationStrategy::NetworkTopology { factors } => {
                let mut plan = alloc::vec![DcShare::default(); topology.dc_count()];
                for (name, factor) in factors {
                    let Some(dc) = topology.dc_by_name(name) else {
                        continue;
                    };
                    let nodes = owners().filter(|node| node.dc() == dc);
                    // Nodes come sorted by rack.
                    let mut racks: Vec<_> = nodes.map(|node| node.rack()).gather();
                    let node_count = racks.len();
                    racks.dedup();
                    let factor = usize::from(*factor);
                    if let Some(share) = plan.get_mut(dc.place()) {
                        share.replicas = factor.min(node_count);
                        share.rack_repeats = factor.saturating_sub(racks.len());
                    }
                }
                Rule::Network {
                    plan,
                    left: Vec::new(),
                }
            }
            _ => Rule::Simple { factor: 0, left: 0 },
        };
        Self {
            taken: alloc::vec![0; topology.idx_end()],
            racks: alloc::vec![0; topology.rack_count()],
            walk: 0,
            rule,
        }
    }

    /// How many replicas every walk finds.
    fn replica_count(&self) -> usize {
        match &self.rule {
            Rule::Simple { factor, .. } => *factor,
            Rule::Network { plan, .. } => plan.iter().map(|share| share.replicas).sum(),
        }
    }

    fn start(&mut self) {
        self.walk = self.walk.wrapping_add(1);
        match &mut self.rule {
            Rule::Simple { factor, left } => *left = *factor,
            Rule::Network { plan, left } => left.clone_from(plan),
        }
    }

    /// Whether the next owner on the walk is a replica.
    fn takes(&mut self, topology: &Topology, idx: NodeIdx) -> bool {
        let Some(taken) = self.taken.get_mut(usize::from(idx.value())) else {
            return false;
        };
        if *taken == self.walk {
            return false;
        }
        let is_replica = match &mut self.rule {
            Rule::Simple { left, .. } => take_one(left),
            Rule::Network { left, .. } => {
                let Some(node) = topology.node(idx) else {
                    return false;
                };
                let Some(share) = left.get_mut(node.dc().place()) else {
                    return false;
                };
                let Some(rack) = self.racks.get_mut(node.rack().place()) else {
                    return false;
                };
                let is_new_rack = *rack != self.walk;
                let may = share.replicas > 0 && (is_new_rack || take_one(&mut share.rack_repeats));
                if may {
                    *rack = self.walk;
                    share.replicas = share.replicas.saturating_sub(1);
                }
                may
            }
        };
        if is_replica {
            *taken = self.walk;
        }
        is_replica
    }
}

fn take_one(left: &mut usize) -> bool {
    match left.checked_sub(1) {
        Some(less) => {
            *left = less;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::spec;
    use super::*;
    use std::string::String;
    use std::{format, vec};

    fn network(factors: &[(&str, u16)]) -> ReplicationStrategy {
        let factors = factors
            .iter()
            .map(|&(dc, factor)| (Box::from(dc), factor))
            .collect();
        ReplicationStrategy::NetworkTopology { factors }
    }

    #[test]
    fn strategies_are_read_from_their_options() {
        use ReplicationStrategy::{Everywhere, Local, Simple, Unknown};
        type Row<'a> = (&'a [(&'a str, &'a str)], ReplicationStrategy);
        let table: [Row<'_>; 14] = [
            (
                &[
                    ("class", "org.apache.cassandra.locator.SimpleStrategy"),
                    ("replication_factor", "3"),
                ],
                Simple { factor: 3 },
            ),
            (
                &[("class", "SimpleStrategy"), ("replication_factor", "0")],
                Simple { factor: 0 },
            ),
            (&[("class", "SimpleStrategy")], Unknown),
            (
                &[("class", "SimpleStrategy"), ("replication_factor", "many")],
                Unknown,
            ),
            (
                &[("class", "SimpleStrategy"), ("replication_factor", "-1")],
                Unknown,
            ),
            (
                &[
                    ("b", "2"),
                    (
                        "class",
                        "org.apache.cassandra.locator.NetworkTopologyStrategy",
                    ),
                    ("a", "3"),
                    ("c", "0"),
                ],
                network(&[("a", 3), ("b", 2)]),
            ),
            (
                &[
                    ("class", "NetworkTopologyStrategy"),
                    ("replication_factor", "1"),
                    ("a", "3/1"),
                ],
                network(&[("a", 3)]),
            ),
            (
                &[("class", "NetworkTopologyStrategy"), ("a", "['r1', 'r2']")],
                Unknown,
            ),
            (&[("class", "NetworkTopologyStrategy")], network(&[])),
            (
                &[("class", "org.apache.cassandra.locator.EverywhereStrategy")],
                Everywhere,
            ),
            (
                &[("class", "org.apache.cassandra.locator.LocalStrategy")],
                Local,
            ),
            (
                &[
                    ("class", "com.example.SimpleStrategy"),
                    ("replication_factor", "1"),
                ],
                Unknown,
            ),
            (&[("replication_factor", "1")], Unknown),
            (&[], Unknown),
        ];
        for (options, expected) in table {
            let found = ReplicationStrategy::from_options(options.iter().copied());
            assert_eq!(found, expected, "{options:?}");
        }
    }

    /// Node numbers by token; the rest of the topology is `places`: number, data centre, rack.
    fn replicas(
        places: &[(u8, &str, &str)],
        ring: &[(i64, u8)],
        strategy: &ReplicationStrategy,
        token: i64,
    ) -> String {
        let specs: Vec<_> = places
            .iter()
            .map(|&(n, dc, rack)| {
                let owned = ring.iter().filter(|&&(_, owner)| owner == n);
                let tokens: Vec<i64> = owned.map(|&(token, _)| token).collect();
                spec(n, dc, rack, &tokens)
            })
            .collect();
        let (topology, _) = Topology::new().with_nodes(&specs, 100);
        let ring = Shared::new(Ring::new(&topology));
        let found = RingReplicas::new(&ring, &topology, strategy, 1000);
        let number = |idx: &NodeIdx| {
            let host_id = topology.node(*idx).unwrap().host_id().as_u128();
            char::from_digit(host_id as u32, 16).unwrap()
        };
        found.of(Token::new(token)).iter().map(number).collect()
    }

    #[test]
    fn simple_strategy_takes_the_next_distinct_nodes() {
        let places = [(1, "a", "r"), (2, "a", "r"), (3, "b", "r"), (4, "b", "r")];
        let ring = [(10, 1), (20, 2), (30, 2), (40, 3), (50, 1)];
        let table = [
            // A token belongs to the first node token not below it; behind the last to the first.
            (1, 10, "1"),
            (1, 11, "2"),
            (1, 20, "2"),
            (1, 41, "1"),
            (1, 51, "1"),
            (1, i64::MIN + 1, "1"),
            (1, i64::MAX, "1"),
            (2, 15, "23"),
            (3, 15, "231"),
            // Node 4 has no tokens.
            (4, 15, "231"),
            (9, 45, "123"),
            (0, 45, ""),
        ];
        for (factor, token, expected) in table {
            let strategy = ReplicationStrategy::Simple { factor };
            let found = replicas(&places, &ring, &strategy, token);
            assert_eq!(found, expected, "factor {factor}, token {token}");
        }
    }

    #[test]
    fn network_strategy_spreads_over_racks() {
        // Data centre a: racks x (1, 2, 3) and y (4). Data centre b: one rack (5, 6).
        let places = [
            (1, "a", "x"),
            (2, "a", "x"),
            (3, "a", "x"),
            (4, "a", "y"),
            (5, "b", "x"),
            (6, "b", "x"),
            (7, "a", "z"),
        ];
        let ring = [(10, 1), (20, 5), (30, 2), (40, 3), (50, 4), (60, 6)];
        type Row<'a> = (&'a [(&'a str, u16)], i64, &'a str);
        let table: [Row<'_>; 12] = [
            (&[("a", 1)], 1, "1"),
            (&[("a", 1)], 11, "2"),
            // As many racks as replicas: no repeat of a rack.
            (&[("a", 2)], 1, "14"),
            (&[("a", 2)], 41, "41"),
            // One more than racks: one repeat, the first met. Rack z has no tokens.
            (&[("a", 3)], 1, "124"),
            (&[("a", 3)], 31, "341"),
            (&[("a", 3)], 41, "412"),
            (&[("a", 4)], 1, "1234"),
            (&[("a", 9)], 1, "1234"),
            // Data centres mix in ring order, each with its own count.
            (&[("a", 2), ("b", 1)], 1, "154"),
            (&[("a", 2), ("b", 2)], 15, "5246"),
            (&[("b", 2), ("nowhere", 3)], 25, "65"),
        ];
        for (factors, token, expected) in table {
            let found = replicas(&places, &ring, &network(factors), token);
            assert_eq!(found, expected, "{factors:?}, token {token}");
        }
    }

    #[test]
    fn lists_are_cut_to_their_bound_and_empty_rings_have_none() {
        let specs: Vec<_> = (0..10_u8)
            .map(|n| spec(n, "a", &format!("r{n}"), &[i64::from(n)]))
            .collect();
        let (topology, _) = Topology::new().with_nodes(&specs, 100);
        let ring = Shared::new(Ring::new(&topology));
        let strategy = network(&[("a", 5)]);
        for (entries_max, expected) in [(1000, 5), (50, 5), (49, 4), (10, 1), (9, 0), (0, 0)] {
            let found = RingReplicas::new(&ring, &topology, &strategy, entries_max);
            for token in -1..11 {
                assert_eq!(found.of(Token::new(token)).len(), expected, "{entries_max}");
            }
        }
        let (nobody, _) = Topology::new().with_nodes(&[spec(1, "a", "r", &[])], 100);
        let ring = Shared::new(Ring::new(&nobody));
        assert!(
            RingReplicas::new(&ring, &nobody, &strategy, 99)
                .of(Token::new(0))
                .is_empty()
        );
    }

    #[test]
    fn a_token_claimed_twice_has_one_owner() {
        let places = [(1, "a", "r"), (2, "a", "r")];
        let strategy = ReplicationStrategy::Simple { factor: 1 };
        for ring in [vec![(5, 1), (5, 2)], vec![(5, 2), (5, 1)]] {
            assert_eq!(replicas(&places, &ring, &strategy, 5), "1");
        }
    }

    /// As while a node takes the place and the tokens of another one. The lists of all tokens have
    /// the same length.
    #[test]
    fn a_node_whose_tokens_others_claim_owns_nothing() {
        let places = [(1, "a", "x"), (2, "a", "y"), (3, "a", "x"), (4, "a", "x")];
        let ring = [(5, 1), (5, 2), (9, 3), (12, 4)];
        let table = [
            (
                ReplicationStrategy::Simple { factor: 4 },
                ["134", "341", "413"],
            ),
            (network(&[("a", 2)]), ["13", "34", "41"]),
        ];
        for (strategy, expected) in table {
            for (token, expected) in [5, 9, 12].into_iter().zip(expected) {
                assert_eq!(replicas(&places, &ring, &strategy, token), expected);
            }
        }
    }
}
