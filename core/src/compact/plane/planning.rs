//! Which member to try for a request, and which next: the rules of [`crate::routing::plan`].
//!
//! Replicas in the preferred rack, then in the preferred data centre, then, if the policy allows,
//! remote ones; then the other members in the same order. Within a distance chance decides, and of
//! the first two the one that is clearly less loaded comes first. Members without a link come last,
//! and not at all if they are said to be down; members that are disabled never. Before all that
//! stands the leader, where a request needs one.
//!
//! There is no list: most requests are tried once, so the best member is looked for that was not tried
//! yet. Every member has a rank, and the lowest one wins.

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
    rotation: u32,
}

impl Located {
    /// The replica at a member, and its place in the list. One from the network may name a node twice:
    /// the first counts.
    #[inline(never)]
    fn at(&self, member: u16) -> Option<(u32, Place)> {
        let mut found = None;
        for (at, replica) in (0_u32..).zip(&self.replicas) {
            // From where the list begins; those before that come behind the others.
            let at = at.wrapping_sub(self.rotation);
            if replica.0 == member && found.is_none_or(|(before, _)| at < before) {
                found = Some((at, *replica));
            }
        }
        found
    }
}

impl Plane {
    /// The member to try for a request that these have failed, and its version block as
    /// [`probe`](Self::probe) tells it. `load` tells of links, `entropy` decides where chance does.
    #[inline(never)]
    pub fn choose(
        &self,
        route: &Route,
        tried: &[u16],
        entropy: u64,
        load: &LoadOf<'_>,
    ) -> (Option<Candidate>, VersionBlock) {
        let mut located = Located::default();
        let record = self.locate(route, &mut located);
        if located.replicas.is_empty() && route.token.is_some() {
            self.degraded.set(self.degraded.get().wrapping_add(1));
        }
        let chosen = self.choose_of(&located, route, tried, entropy, load);
        let block = match record {
            Some(record) => record.next_block(),
            None => VersionBlock::unknown(entropy),
        };
        (chosen, block)
    }

    /// Whether there is a member to try that has not failed it yet.
    pub fn has_more(&self, route: &Route, tried: &[u16], load: &LoadOf<'_>) -> bool {
        let mut located = Located::default();
        self.locate(route, &mut located);
        self.choose_of(&located, route, tried, 0, load).is_some()
    }

    fn choose_of(
        &self,
        located: &Located,
        route: &Route,
        tried: &[u16],
        entropy: u64,
        load: &LoadOf<'_>,
    ) -> Option<Candidate> {
        let policy = &self.policy;
        let mut choosing = Choosing {
            plane: self,
            load,
            tried,
            remote_allowed: policy.dc_failover,
            first: None,
            second: None,
        };
        if let Some((member, shard)) = located.leader
            && policy.tablet_leader
            && needs_leader(route.consistency)
            && choosing.rank(member).is_some_and(|rank| rank < UNLINKED)
        {
            let reason = Reason::Leader;
            return Some(Candidate {
                member,
                shard,
                reason,
            });
        }
        let condition = route.serial_consistency.filter(|_| route.is_lwt);
        let stays = is_dc_local(route.consistency, condition);
        choosing.remote_allowed &= !stays || policy.dc_failover_at_local_levels;
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
        let mut draw = Draw::new(entropy);
        // Members that own no tokens are taken only where no other one has a link.
        let owns = |member: u16| {
            let known = self.member(member);
            known.is_some_and(|known| known.has_tokens) || located.at(member).is_some()
        };
        let takes_all = !tried.iter().any(|member| owns(*member));
        for (number, member) in (0..).zip(self.members()) {
            let drawn = draw.next();
            match located.at(number) {
                Some((at, place)) => {
                    choosing.consider(place, 0, if is_ordered { at } else { drawn });
                }
                None if member.has_tokens => choosing.consider((number, None), STRANGER, drawn),
                None if takes_all => {
                    choosing.consider((number, None), STRANGER | TOKENLESS, drawn);
                }
                None => {}
            }
        }
        let first = choosing.first?;
        let second = choosing.second.filter(|_| !is_ordered && tried.is_empty());
        let chosen = match second {
            Some(second) if choosing.is_busier(first, second) => second,
            _ => first,
        };
        let reason = match chosen.rank & !UNLINKED {
            0 => Reason::Rack,
            1 => Reason::Dc,
            2 => Reason::Remote,
            _ => Reason::Any,
        };
        let (member, shard) = chosen.place;
        Some(Candidate {
            member,
            shard,
            reason,
        })
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

/// A member that may be tried: what is equal in all is for chance to decide.
#[derive(Clone, Copy)]
struct Ranked {
    place: Place,
    rank: u8,
    drawn: u32,
}

/// The rank of a member is its distance, and more for what stands against it.
const STRANGER: u8 = 4;
const TOKENLESS: u8 = 8;
const UNLINKED: u8 = 16;

/// The choice in the making.
struct Choosing<'a> {
    plane: &'a Plane,
    load: &'a LoadOf<'a>,
    tried: &'a [u16],
    remote_allowed: bool,
    /// The best of those that were considered, and the next one if it is as good.
    first: Option<Ranked>,
    second: Option<Ranked>,
}

impl Choosing<'_> {
    /// How good a member is; nothing if it was tried, or the policy would not contact it.
    #[inline(never)]
    fn rank(&self, member: u16) -> Option<u8> {
        if self.tried.contains(&member) {
            return None;
        }
        let is_linked = (self.load)(member, None).is_some();
        let known = self.plane.member(member)?;
        let distance = known.reach(self.remote_allowed, is_linked)?;
        let rank = if is_linked { 0 } else { UNLINKED };
        Some(distance as u8 | rank)
    }

    #[inline(never)]
    fn consider(&mut self, place: Place, more: u8, drawn: u32) {
        if self.first.is_some_and(|first| first.rank < more) {
            return;
        }
        let Some(rank) = self.rank(place.0) else {
            return;
        };
        let rank = rank | more;
        // Who has neither a link nor tokens is of no use.
        if rank >= UNLINKED | TOKENLESS {
            return;
        }
        let new = Ranked { place, rank, drawn };
        match self.first {
            Some(first) if first.rank < rank => {}
            Some(first) if first.rank == rank && first.drawn <= drawn => {
                if self.second.is_none_or(|second| drawn < second.drawn) {
                    self.second = Some(new);
                }
            }
            first => {
                self.second = first.filter(|first| first.rank == rank);
                self.first = Some(new);
            }
        }
    }

    /// Whether one is so much busier than the other that the draw between them is overruled: by
    /// twice the root of their sum, as in [`crate::routing`].
    fn is_busier(&self, left: Ranked, right: Ranked) -> bool {
        let [left, right] = [left, right].map(|ranked| {
            let (member, shard) = ranked.place;
            (self.load)(member, shard).unwrap_or(0)
        });
        let difference = left.saturating_sub(right);
        difference.saturating_mul(difference) > left.saturating_add(right).saturating_mul(4)
    }
}

/// Numbers that follow from one: a linear congruential generator.
struct Draw(u32);

impl Draw {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both halves are folded into one"
    )]
    const fn new(entropy: u64) -> Self {
        Self((entropy ^ (entropy >> 32)) as u32)
    }

    const fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
        self.0
    }
}

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
fn remainder(number: u64, by: usize) -> u32 {
    let by = by as u32;
    let rest = |number: u32| number.checked_rem(by).unwrap_or(0);
    let carry = rest(rest(u32::MAX).wrapping_add(1));
    let upper = rest((number >> 32) as u32).wrapping_mul(carry);
    rest(rest(upper).wrapping_add(rest(number as u32)))
}
