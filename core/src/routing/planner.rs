//! Which nodes to try for a request, in which order. Pure: a view, a request and a policy give a
//! plan; chance comes in as a number.
//!
//! The base plan: replicas in the preferred rack, then in the preferred data centre, then, if the
//! policy allows, remote ones; then the other nodes in the same order of distance. Within a
//! distance the order is drawn by chance, and of the first two the one that is clearly less loaded
//! comes first. Nodes without a connection come last, nodes that are down or disabled not at all,
//! nodes without tokens where no other one is connected. With a tablet not learned yet there are
//! no replicas, so the plan begins with live local nodes. Requests at LOCAL levels stay in the
//! preferred data centre, unless the policy says otherwise.
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

use super::draw::{Tour, shuffle};
use super::located::Located;
use super::plan::{Plan, Reason, Target};
use super::policy::{Distance, Load, Policy, Scope, is_busier};
use super::tablet_table::PLANNED_REPLICAS;
use super::{Node, NodeIdx, ShardIdx, TableRef, Token, Topology, View};
use crate::rng::mix;
use crate::sorted::sort_few;
use crate::wire::{Consistency, SerialConsistency};

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
    /// The level of its condition, if it has one. Counts for conditional statements only.
    pub serial_consistency: Option<SerialConsistency>,
}

impl RouteRequest {
    pub(super) const fn needs_leader(&self) -> bool {
        needs_leader(self.consistency)
    }
}

/// Whether a level, or that of the condition if there is one, counts replicas in the coordinator's
/// data centre only.
pub(crate) const fn is_dc_local(
    consistency: Consistency,
    condition: Option<SerialConsistency>,
) -> bool {
    matches!(
        consistency,
        Consistency::LocalOne | Consistency::LocalQuorum | Consistency::LocalSerial
    ) || matches!(condition, Some(SerialConsistency::LocalSerial))
}

/// Reads at ONE and LOCAL_ONE may be served by any replica, everything else by the leader alone. Writes
/// at these two levels the server refuses wherever they go.
pub(crate) const fn needs_leader(consistency: Consistency) -> bool {
    !matches!(consistency, Consistency::One | Consistency::LocalOne)
}

/// The targets of a request behind the first `skip`.
///
/// With the same view, connections and `entropy`, plans with rising `skip` join to one order in
/// which every node that the policy allows stands exactly once (those without tokens only where
/// they are needed); an empty plan means that all were listed. If the policy names a data centre
/// without nodes and forbids failover, there are none.
pub fn plan(
    view: &View,
    request: &RouteRequest,
    policy: &Policy,
    load: &impl Load,
    entropy: u64,
    skip: usize,
) -> Plan {
    let topology = view.topology();
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
        .filter(|_| policy.tablet_leader && request.needs_leader());
    let wide = Scope::new(topology, policy);
    let promoted = leader.filter(|&(idx, _)| {
        let node = topology.node(idx);
        node.is_some_and(|node| wide.distance(node).is_some()) && load.is_connected(idx)
    });
    let condition = request.serial_consistency.filter(|_| request.is_lwt);
    let is_dc_local = is_dc_local(request.consistency, condition);
    let stays = is_dc_local && !policy.dc_failover_at_local_levels;
    let scope = if stays { wide.without_remote() } else { wide };
    let mut planning = Planning {
        topology,
        scope,
        load,
        entropy,
        replicas: heapless::Vec::new(),
        skip,
        placed: 0,
        has_live: false,
        targets: heapless::Vec::new(),
    };
    planning.rank_replicas(&located, is_ordered);
    planning.fill(promoted);
    if !is_ordered && skip == 0 {
        planning.choose_of_two_strangers();
    }
    Plan {
        listed: planning.targets.len(),
        targets: planning.targets,
        source: located.source,
        leader,
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
    /// Targets listed or passed over.
    placed: usize,
    /// A connected node was listed.
    has_live: bool,
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
            if is_busier(in_flight(first), in_flight(second)) {
                core::mem::swap(first, second);
            }
        }
    }

    fn is_replica(&self, idx: NodeIdx) -> bool {
        self.replicas.iter().any(|replica| replica.node == idx)
    }

    /// Fills the list: the leader, replicas, other nodes, then the same without connections.
    /// Nodes that own no tokens come in only where no other node is connected.
    fn fill(&mut self, leader: Option<(NodeIdx, Option<ShardIdx>)>) {
        if let Some((node, shard)) = leader {
            self.push(Target {
                node,
                shard,
                reason: Reason::Leader,
            });
            self.has_live = true;
        }
        let promoted = leader.map(|(node, _)| node);
        for is_connected in [true, false] {
            // In a healthy cluster all are connected, and nobody is left to be looked for.
            if self.placed >= self.topology.len() {
                break;
            }
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
                    self.has_live |= is_connected;
                }
            }
            self.push_strangers(is_connected, true);
            if is_connected && !self.has_live {
                self.push_strangers(true, false);
            }
        }
    }

    /// Nodes that are no replicas, by distance, and in a drawn order within each.
    fn push_strangers(&mut self, is_connected: bool, has_tokens: bool) {
        for distance in [Distance::Rack, Distance::Dc, Distance::Remote] {
            let candidates = self.scope.candidates(self.topology, distance);
            for at in Tour::new(candidates.len(), self.entropy) {
                if self.targets.is_full() {
                    return;
                }
                let Some(&idx) = candidates.get(at) else {
                    continue;
                };
                let fits = |node: &Node| {
                    self.scope.distance(node) == Some(distance)
                        && node.tokens().is_empty() != has_tokens
                };
                if self.topology.node(idx).is_some_and(fits)
                    && !self.is_replica(idx)
                    && self.load.is_connected(idx) == is_connected
                {
                    self.push(Target {
                        node: idx,
                        shard: None,
                        reason: Reason::Any,
                    });
                    self.has_live |= is_connected;
                }
            }
        }
    }

    fn push(&mut self, target: Target) {
        self.placed = self.placed.saturating_add(1);
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
            && is_busier(
                load.in_flight(first.node, None),
                load.in_flight(second.node, None),
            )
        {
            core::mem::swap(first, second);
        }
    }
}

#[cfg(test)]
mod tests;
