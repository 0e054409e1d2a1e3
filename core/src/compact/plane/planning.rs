//! Which members to try for a request, in which order: the rules of [`crate::routing::plan`].
//!
//! Replicas in the preferred rack, then in the preferred data centre, then, if the policy allows,
//! remote ones; then the other members in the same order. Within a distance chance decides, and of
//! the first two the one that is clearly less loaded comes first. Members without a link come last,
//! and not at all if they are said to be down; members that are disabled never. Before all that
//! stands the leader, where a request needs one.

use super::members::{Distance, Member};
use super::tablets::{REPLICAS_MAX, Record};
use super::{KeyspaceKind, Plane, TableKey};

use crate::rng;
use crate::routing::{Reason, ShardIdx, Token, VersionBlock, is_dc_local, needs_leader};
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

/// A replica: a member, and the shard if the member has it.
pub(super) type Place = (u16, Option<ShardIdx>);

/// The replicas of a request as they are listed, and which of them leads.
#[derive(Default)]
pub(super) struct Located {
    pub(super) replicas: heapless::Vec<Place, REPLICAS_MAX>,
    leader: Option<Place>,
    /// Where a list sorted by host id begins if it is to differ from tablet to tablet.
    rotation: usize,
}

impl Plane {
    /// The members to try for a request, best first; at most eight. `load` tells of links, `entropy`
    /// decides where chance does.
    #[inline(never)]
    pub fn plan(&self, route: &Route, entropy: u64, load: &LoadOf<'_>) -> Plan {
        let mut plan = Plan::new();
        self.put_plan(route, entropy, load, &mut plan);
        plan
    }

    /// Puts the members to try for a request into `plan`, and tells its version block as
    /// [`probe`](Self::probe) does.
    pub fn route(
        &self,
        route: &Route,
        entropy: u64,
        load: &LoadOf<'_>,
        plan: &mut Plan,
    ) -> VersionBlock {
        let record = self.put_plan(route, entropy, load, plan);
        record.map_or_else(|| VersionBlock::unknown(entropy), Record::next_block)
    }

    fn put_plan(
        &self,
        route: &Route,
        entropy: u64,
        load: &LoadOf<'_>,
        plan: &mut Plan,
    ) -> Option<&Record> {
        plan.clear();
        let policy = &self.policy;
        let mut located = Located::default();
        let record = self.locate(route, &mut located);
        if located.replicas.is_empty() && route.token.is_some() {
            self.degraded.set(self.degraded.get().wrapping_add(1));
        }
        let is_serial = matches!(
            route.consistency,
            Consistency::Serial | Consistency::LocalSerial
        );
        let is_ordered = route.is_lwt || is_serial || !policy.shuffle;
        // Where chance must not decide, the token does: clients differ, but each is steady.
        let entropy = match route.token {
            Some(token) if is_ordered => mix(token.value().cast_unsigned()),
            None if is_ordered => 0,
            _ => entropy,
        };
        let wants_leader = policy.tablet_leader && needs_leader(route.consistency);
        let leader = located.leader.filter(|_| wants_leader);
        let condition = route.serial_consistency.filter(|_| route.is_lwt);
        let is_dc_local = is_dc_local(route.consistency, condition);
        let stays = is_dc_local && !policy.dc_failover_at_local_levels;
        let mut planning = Planning {
            plane: self,
            load,
            remote_allowed: policy.dc_failover,
            is_ordered,
            draw: Draw::new(entropy),
            replicas: heapless::Vec::new(),
            plan,
        };
        if let Some(leader) = leader
            && planning.class(leader.0).is_some_and(|class| class < CUT)
        {
            planning.push(leader, Reason::Leader);
        }
        planning.remote_allowed &= !stays;
        planning.rank(&located);
        planning.fill();
        record
    }

    /// The replicas of a request, from the tablet that owns its token, or from the ring.
    fn locate(&self, route: &Route, located: &mut Located) -> Option<&Record> {
        let (table, token) = (route.table?, route.token?);
        let Some(tablet) = self.tablet_at(table, token) else {
            #[cfg(any(test, feature = "compact-ring"))]
            self.locate_on_ring(table, token, located);
            return None;
        };
        let kind = self.keyspace_of(table).map(|keyspace| keyspace.kind);
        let mut is_led = tablet.has_version && kind == Some(KeyspaceKind::StrongTablets);
        for replica in tablet.replicas() {
            if let Some(member) = self.member(replica.node) {
                // A shard that the node does not have is none.
                let shard = member.sharding().and_then(|map| map.check(replica.shard));
                let place = (replica.node, shard);
                if is_led {
                    located.leader = Some(place);
                }
                // The capacities are the same.
                let _fits = located.replicas.push(place);
            }
            is_led = false;
        }
        if tablet.has_version && route.is_lwt && self.policy.rotate_lwt {
            let drawn = mix(tablet.last.cast_unsigned());
            located.rotation = remainder(drawn, located.replicas.len());
        }
        tablet.first()
    }
}

/// A replica that may be contacted, and its class.
#[derive(Clone, Copy)]
struct Ranked {
    place: Place,
    class: u8,
}

/// Members with the same class are equally good: their distance, and this more without a link.
const CUT: u8 = 4;

/// A plan in the making.
struct Planning<'a> {
    plane: &'a Plane,
    load: &'a LoadOf<'a>,
    remote_allowed: bool,
    /// Chance must not decide, nor load.
    is_ordered: bool,
    draw: Draw,
    /// In the order of the base plan.
    replicas: heapless::Vec<Ranked, REPLICAS_MAX>,
    plan: &'a mut Plan,
}

impl Planning<'_> {
    /// How good a member is; nothing if the policy would not contact it.
    #[inline(never)]
    fn class(&self, member: u16) -> Option<u8> {
        let is_linked = (self.load)(member, None).is_some();
        let known = self.plane.member(member)?;
        let distance = known.reach(self.remote_allowed, is_linked)?;
        let cut = if is_linked { 0 } else { CUT };
        Some(distance as u8 | cut)
    }

    #[inline(never)]
    fn is_replica(&self, member: u16) -> bool {
        self.replicas
            .iter()
            .any(|replica| replica.place.0 == member)
    }

    /// Puts the replicas that may be contacted into the order of the base plan.
    fn rank(&mut self, located: &Located) {
        let (head, tail) = located
            .replicas
            .split_at_checked(located.rotation)
            .unwrap_or_default();
        for &place in tail.iter().chain(head) {
            // A list from the network may name a node twice.
            if let Some(class) = self.class(place.0)
                && !self.is_replica(place.0)
            {
                let _fits = self.replicas.push(Ranked { place, class });
            }
        }
        for end in (2..=self.replicas.len()).rev() {
            // Fisher and Yates.
            let drawn = self.draw.below(end);
            if let Some([rest @ .., last]) = self.replicas.get_mut(..end)
                && let Some(other) = rest.get_mut(drawn)
                && !self.is_ordered
            {
                core::mem::swap(last, other);
            }
        }
        for end in (1..self.replicas.len()).rev() {
            for at in 0..end {
                if let Some([before, after, ..]) = self.replicas.get_mut(at..)
                    && before.class > after.class
                {
                    core::mem::swap(before, after);
                }
            }
        }
        if let [first, second, ..] = &*self.replicas
            && first.class == second.class
            && self.is_busier(first.place, second.place)
            && let [first, second, ..] = &mut *self.replicas
        {
            core::mem::swap(first, second);
        }
    }

    /// Fills the list behind the leader: replicas, other members, then the same without links.
    /// Members that own no tokens come in only where no other one has a link.
    fn fill(&mut self) {
        let leader = self.plan.first().map(|leader| leader.member);
        for cut in [0, CUT] {
            for at in 0..self.replicas.len() {
                if let Some(&Ranked { place, class }) = self.replicas.get(at)
                    && class & CUT == cut
                    && Some(place.0) != leader
                {
                    let reason = match class & !CUT {
                        0 => Reason::Rack,
                        1 => Reason::Dc,
                        _ => Reason::Remote,
                    };
                    self.push(place, reason);
                }
            }
            self.push_strangers(cut, true);
            if self.plan.is_empty() && cut == 0 {
                self.push_strangers(cut, false);
            }
        }
    }

    /// Members that are no replicas, by distance, and in a drawn order within each.
    fn push_strangers(&mut self, cut: u8, has_tokens: bool) {
        let members = self.plane.members();
        if self.replicas.len() >= members.len() {
            // Each of them is a replica.
            return;
        }
        for distance in Distance::ALL {
            let class = distance as u8 | cut;
            let begun = self.plan.len();
            let mut tour = self.draw.clone();
            let (mut at, step) = (tour.below(members.len()), tour.step(members.len()));
            for _ in members {
                let number = u16::try_from(at).unwrap_or(u16::MAX);
                let is_meant = |member: &Member| {
                    member.distance == distance && member.has_tokens == has_tokens
                };
                if members.get(at).is_some_and(is_meant)
                    && !self.plan.is_full()
                    && !self.is_replica(number)
                    && self.class(number) == Some(class)
                {
                    self.push((number, None), Reason::Any);
                }
                at = at.saturating_add(step);
                at = at.checked_sub(members.len()).unwrap_or(at);
            }
            // Of the first two the less loaded, also where there are no replicas to choose from.
            if begun == 0
                && let [first, second, ..] = &**self.plan
                && self.is_busier((first.member, None), (second.member, None))
                && let [first, second, ..] = &mut **self.plan
            {
                core::mem::swap(first, second);
            }
        }
    }

    fn push(&mut self, (member, shard): Place, reason: Reason) {
        let _first_ones = self.plan.push(Candidate {
            member,
            shard,
            reason,
        });
    }

    /// Whether one is so much busier than the other that the draw between them is overruled: by
    /// twice the root of their sum, as in [`crate::routing`].
    fn is_busier(&self, left: Place, right: Place) -> bool {
        let [left, right] = [left, right].map(|(member, shard)| (self.load)(member, shard));
        let (left, right) = (left.unwrap_or(0), right.unwrap_or(0));
        let difference = left.saturating_sub(right);
        let is_clear =
            difference.saturating_mul(difference) > left.saturating_add(right).saturating_mul(4);
        is_clear && !self.is_ordered
    }
}

/// Numbers that follow from one: a linear congruential generator, its upper bits used.
#[derive(Clone)]
struct Draw(u32);

impl Draw {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both halves are folded into one"
    )]
    const fn new(entropy: u64) -> Self {
        Self((entropy ^ (entropy >> 32)) as u32)
    }

    /// A number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
        let product = u64::from(self.0).wrapping_mul(bound as u64);
        usize::try_from(product >> 32).unwrap_or(0)
    }

    /// A step by which every place of `len` is come by: the member behind a dead one differs from draw
    /// to draw.
    fn step(&mut self, len: usize) -> usize {
        // Primes above every length share no factor with it, nor do their remainders.
        let prime = STEPS.get(self.below(STEPS.len()));
        prime.and_then(|prime| prime.checked_rem(len)).unwrap_or(0)
    }
}

const STEPS: [usize; 8] = [
    65_537, 65_539, 65_543, 65_551, 65_557, 65_563, 65_579, 65_581,
];

/// One copy of it.
#[inline(never)]
const fn mix(word: u64) -> u64 {
    rng::mix(word)
}

/// The remainder of a long number by a short one, without a long division.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
fn remainder(number: u64, by: usize) -> usize {
    let by = by as u32;
    let rest = |number: u32| number.checked_rem(by).unwrap_or(0);
    let carry = rest(rest(u32::MAX).wrapping_add(1));
    let upper = rest((number >> 32) as u32).wrapping_mul(carry);
    rest(rest(upper).wrapping_add(rest(number as u32))) as usize
}
