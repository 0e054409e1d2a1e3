//! Which members to try for a request, in which order: the rules of [`crate::routing::plan`].
//!
//! Replicas in the preferred rack, then in the preferred data centre, then, if the policy allows,
//! remote ones; then the other members in the same order. Within a distance chance decides, and of
//! the first two the one that is clearly less loaded comes first. Members without a link come last,
//! members that are down or disabled not at all. Before all that stands the leader, where a request
//! needs one.

use super::members::{Distance, Member};
use super::tablets::REPLICAS_MAX;
use super::{KeyspaceKind, Plane, TableKey};

use crate::rng::mix;
use crate::routing::{Reason, ShardIdx, Token};
use crate::wire::{Consistency, SerialConsistency};

/// What planning needs to know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the request field by field"
)]
pub struct Route {
    /// Its table, if it was prepared and the table fits.
    pub table: Option<TableKey>,
    /// The token of its partition, if it addresses one.
    pub token: Option<Token>,
    /// The level that is actually sent.
    pub consistency: Consistency,
    /// The level of its condition, if it has one. Counts for conditional statements only.
    pub serial_consistency: Option<SerialConsistency>,
    /// Whether it is a conditional statement.
    pub is_lwt: bool,
}

/// A member to try, and the shard whose link to use if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The member.
    pub member: u16,
    /// The shard; `None` if any link of the member will do.
    pub shard: Option<ShardIdx>,
    /// Why it stands in the plan.
    pub reason: Reason,
}

/// Where to try a request, best first.
pub type Plan = heapless::Vec<Candidate, 8>;

/// Requests in flight to a member, or to one of its shards; `None` if there is no link to the member.
pub type LoadOf<'a> = dyn Fn(u16, Option<ShardIdx>) -> Option<u32> + 'a;

impl Route {
    /// Whether its level counts replicas in the coordinator's data centre only.
    const fn is_dc_local(&self) -> bool {
        let is_local = matches!(
            self.consistency,
            Consistency::LocalOne | Consistency::LocalQuorum | Consistency::LocalSerial
        );
        is_local
            || (self.is_lwt
                && matches!(
                    self.serial_consistency,
                    Some(SerialConsistency::LocalSerial)
                ))
    }

    /// Reads at ONE and LOCAL_ONE any replica serves, everything else the leader alone.
    const fn needs_leader(&self) -> bool {
        !matches!(self.consistency, Consistency::One | Consistency::LocalOne)
    }
}

/// A replica that may be contacted.
#[derive(Clone, Copy)]
struct Ranked {
    member: u16,
    shard: Option<ShardIdx>,
    /// Replicas with the same class are equally good: whether there is no link, and the distance.
    class: (bool, Distance),
}

/// The replicas of a request as they are listed, and which of them leads.
#[derive(Default)]
pub(super) struct Located {
    pub(super) replicas: heapless::Vec<(u16, Option<ShardIdx>), REPLICAS_MAX>,
    leader: Option<(u16, Option<ShardIdx>)>,
    /// Set if the list is sorted by host id: a number that differs from tablet to tablet.
    rotation: Option<u64>,
}

impl Plane {
    /// The members to try for a request, best first; at most eight. `load` tells of links, `entropy`
    /// decides where chance does.
    pub fn plan(&self, route: &Route, entropy: u64, load: &LoadOf<'_>) -> Plan {
        let policy = &self.policy;
        let mut located = self.locate(route);
        if located.replicas.is_empty() && route.token.is_some() {
            self.degraded.set(self.degraded.get().wrapping_add(1));
        }
        let is_serial = matches!(
            route.consistency,
            Consistency::Serial | Consistency::LocalSerial
        );
        let is_ordered = route.is_lwt || is_serial || !policy.shuffle;
        if route.is_lwt && policy.rotate_lwt {
            located.rotate();
        }
        // Where chance must not decide, the token does: clients differ, but each is steady.
        let entropy = match route.token {
            Some(token) if is_ordered => mix(token.value().cast_unsigned()),
            None if is_ordered => 0,
            _ => entropy,
        };
        let leader = located.leader.filter(|&(member, _)| {
            let reach = self
                .member(member)
                .and_then(|member| member.reach(policy.dc_failover));
            let wants = policy.tablet_leader && route.needs_leader();
            wants && reach.is_some() && load(member, None).is_some()
        });
        let stays = route.is_dc_local() && !policy.dc_failover_at_local_levels;
        let mut planning = Planning {
            plane: self,
            load,
            remote_allowed: policy.dc_failover && !stays,
            tour: Tour::new(self.members().len(), entropy),
            replicas: heapless::Vec::new(),
            plan: Plan::new(),
        };
        planning.rank(&located, is_ordered, entropy);
        planning.fill(leader);
        if !is_ordered {
            planning.choose_of_two_strangers();
        }
        planning.plan
    }

    /// The replicas of a request, from the tablet that owns its token, or from the ring.
    fn locate(&self, route: &Route) -> Located {
        let mut located = Located::default();
        let (Some(table), Some(token)) = (route.table, route.token) else {
            return located;
        };
        let Some(tablet) = self.tablet_at(table, token) else {
            #[cfg(any(test, feature = "compact-ring"))]
            self.locate_on_ring(table, token, &mut located);
            return located;
        };
        let kind = self.keyspace_of(table).map(|keyspace| keyspace.kind);
        let is_led = tablet.has_version && kind == Some(KeyspaceKind::StrongTablets);
        let mut is_first = true;
        for replica in tablet.replicas() {
            if let Some(member) = self.member(replica.node) {
                // A shard that the node does not have is none.
                let shard = member.sharding().and_then(|map| map.check(replica.shard));
                let resolved = (replica.node, shard);
                if is_first && is_led {
                    located.leader = Some(resolved);
                }
                // The capacities are the same.
                let _fits = located.replicas.push(resolved);
            }
            is_first = false;
        }
        located.rotation = tablet.has_version.then(|| mix(tablet.last.cast_unsigned()));
        located
    }
}

impl Located {
    /// Starts the list at a replica that depends on the tablet.
    fn rotate(&mut self) {
        if let Some(rotation) = self.rotation {
            let start = rotation
                .checked_rem(self.replicas.len() as u64)
                .unwrap_or(0);
            self.replicas
                .rotate_left(usize::try_from(start).unwrap_or(0));
        }
    }
}

/// A plan in the making.
struct Planning<'a> {
    plane: &'a Plane,
    load: &'a LoadOf<'a>,
    remote_allowed: bool,
    tour: Tour,
    /// In the order of the base plan.
    replicas: heapless::Vec<Ranked, REPLICAS_MAX>,
    plan: Plan,
}

impl Planning<'_> {
    fn is_linked(&self, member: u16) -> bool {
        (self.load)(member, None).is_some()
    }

    fn is_replica(&self, member: u16) -> bool {
        self.replicas.iter().any(|replica| replica.member == member)
    }

    /// Puts the replicas that may be contacted into the order of the base plan.
    fn rank(&mut self, located: &Located, is_ordered: bool, entropy: u64) {
        for &(member, shard) in &located.replicas {
            let known = self.plane.member(member);
            let reach = known.and_then(|member| member.reach(self.remote_allowed));
            // A list from the network may name a node twice.
            if let Some(distance) = reach
                && !self.is_replica(member)
            {
                let class = (!self.is_linked(member), distance);
                let _fits = self.replicas.push(Ranked {
                    member,
                    shard,
                    class,
                });
            }
        }
        if !is_ordered {
            shuffle(&mut self.replicas, entropy);
        }
        sort(&mut self.replicas);
        if let [first, second, ..] = &*self.replicas
            && !is_ordered
            && first.class == second.class
            && self.is_busier((first.member, first.shard), (second.member, second.shard))
        {
            self.replicas.swap(0, 1);
        }
    }

    /// Fills the list: the leader, replicas, other members, then the same without links. Members
    /// that own no tokens come in only where no other one has a link.
    fn fill(&mut self, leader: Option<(u16, Option<ShardIdx>)>) {
        if let Some((member, shard)) = leader {
            self.push(member, shard, Reason::Leader);
        }
        let promoted = leader.map(|(member, _)| member);
        for is_linked in [true, false] {
            for at in 0..self.replicas.len() {
                if let Some(&Ranked {
                    member,
                    shard,
                    class: (is_cut, distance),
                }) = self.replicas.get(at)
                    && is_cut != is_linked
                    && Some(member) != promoted
                {
                    let reason = match distance {
                        Distance::Rack => Reason::Rack,
                        Distance::Dc => Reason::Dc,
                        Distance::Remote => Reason::Remote,
                    };
                    self.push(member, shard, reason);
                }
            }
            self.push_strangers(is_linked, true);
            if is_linked && self.plan.is_empty() {
                self.push_strangers(true, false);
            }
        }
    }

    /// Members that are no replicas, by distance, and in a drawn order within each.
    fn push_strangers(&mut self, is_linked: bool, has_tokens: bool) {
        for distance in Distance::ALL {
            for number in self.tour.clone() {
                let fits = |member: &Member| {
                    member.has_tokens == has_tokens
                        && member.reach(self.remote_allowed) == Some(distance)
                };
                if !self.plan.is_full()
                    && self.plane.member(number).is_some_and(fits)
                    && !self.is_replica(number)
                    && self.is_linked(number) == is_linked
                {
                    self.push(number, None, Reason::Any);
                }
            }
        }
    }

    fn push(&mut self, member: u16, shard: Option<ShardIdx>, reason: Reason) {
        let _first_ones = self.plan.push(Candidate {
            member,
            shard,
            reason,
        });
    }

    /// The less loaded of the first two also where there are no replicas to choose from.
    fn choose_of_two_strangers(&mut self) {
        let class = |candidate: &Candidate| {
            let member = self.plane.member(candidate.member);
            let distance = member.and_then(|member| member.reach(self.remote_allowed));
            (candidate.reason, self.is_linked(candidate.member), distance)
        };
        if let [first, second, ..] = &*self.plan
            && first.reason == Reason::Any
            && class(first) == class(second)
            && self.is_busier((first.member, None), (second.member, None))
        {
            self.plan.swap(0, 1);
        }
    }

    /// Whether one is so much busier than the other that the draw between them is overruled: by
    /// twice the root of their sum, as in [`crate::routing`].
    fn is_busier(
        &self,
        (left, left_shard): (u16, Option<ShardIdx>),
        (right, right_shard): (u16, Option<ShardIdx>),
    ) -> bool {
        let left = (self.load)(left, left_shard).unwrap_or(0);
        let right = (self.load)(right, right_shard).unwrap_or(0);
        let difference = left.saturating_sub(right);
        difference.saturating_mul(difference) > left.saturating_add(right).saturating_mul(4)
    }
}

/// By class; equals keep their order.
fn sort(replicas: &mut [Ranked]) {
    for end in 1..replicas.len() {
        for place in (1..=end).rev() {
            let pair = replicas.get_mut(place.saturating_sub(1)..=place);
            if let Some([before, after]) = pair
                && before.class > after.class
            {
                core::mem::swap(before, after);
            } else {
                break;
            }
        }
    }
}

/// Fisher and Yates, from the numbers that follow from `entropy`.
fn shuffle(replicas: &mut [Ranked], mut entropy: u64) {
    for end in (2..=replicas.len()).rev() {
        entropy = mix(entropy);
        let drawn = scaled(entropy, end);
        if let Some((last, before)) = replicas
            .get_mut(..end)
            .and_then(|items| items.split_last_mut())
            && let Some(drawn) = before.get_mut(drawn)
        {
            core::mem::swap(last, drawn);
        }
    }
}

/// A number below `bound` from the lower half of one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is what is wanted"
)]
fn scaled(entropy: u64, bound: usize) -> usize {
    let product = u64::from(entropy as u32).saturating_mul(bound as u64);
    usize::try_from(product >> 32).unwrap_or(0)
}

/// Every number below `len` once, from a start and in steps that chance chooses, so that the one
/// behind a dead member differs from draw to draw.
#[derive(Clone)]
struct Tour {
    len: usize,
    next: usize,
    step: usize,
    left: usize,
}

impl Tour {
    fn new(len: usize, entropy: u64) -> Self {
        let entropy = mix(entropy);
        let step = STEPS.get(scaled(entropy >> 32, STEPS.len()));
        // A prime above every length shares no factor with it, nor does its remainder.
        let step = step.and_then(|step| step.checked_rem(len)).unwrap_or(0);
        Self {
            len,
            next: scaled(entropy, len),
            step,
            left: len,
        }
    }
}

impl Iterator for Tour {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        let next = at.saturating_add(self.step);
        self.next = next.checked_sub(self.len).unwrap_or(next);
        u16::try_from(at).ok()
    }
}

/// Primes above the greatest number of members.
const STEPS: [usize; 8] = [
    65_537, 65_539, 65_543, 65_551, 65_557, 65_563, 65_579, 65_581,
];
