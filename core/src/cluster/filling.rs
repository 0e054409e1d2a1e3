//! What a pool lacks, and the next connect that may bring it.
//!
//! The first connect of a node goes anywhere: it finds out whether the node is there, and how it
//! shards. Then each missing shard is steered to, while steering works; what steering does not
//! bring is tried for through the normal port, a bounded number of times in a round.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::pool::{Layout, Member, MemberState, Pool};
use super::steering::{Blind, NO_PORT_REST, with_port};
use crate::config::PoolSize;
use crate::gather::Gather;
use crate::rng::SmallRng;
use crate::routing::{ShardIdx, ShardMap};
use crate::target::{Endpoint, Steering, SteeringKind};
use crate::time::Instant;

/// Where a connect was meant to land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Anywhere,
    Port(ShardIdx),
    BestEffort(ShardIdx),
}

/// What to connect to.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) endpoint: Endpoint,
    pub(super) steering: Steering,
    pub(super) wish: Wish,
}

impl Pool {
    /// Whether it is worth asking for [`Pool::next_connect`].
    pub(super) fn may_lack(&self, now: Instant) -> bool {
        let knows = self.has_open() || self.is_expected;
        let is_idle = knows || self.connecting().next().is_none();
        self.is_called && is_idle && self.backoff.may_try(now) && self.occupied() < self.wanted()
    }

    /// What to connect to next, if anything is missing and may be tried now. The caller connects
    /// and says so by [`Pool::started`].
    pub(super) fn next_connect(&mut self, now: Instant, rng: &mut SmallRng) -> Option<Dial> {
        if !self.is_called || self.is_cut_off() || !self.backoff.may_try(now) {
            return None;
        }
        let anywhere = Dial {
            endpoint: self.endpoint.clone(),
            steering: Steering::None,
            wish: Wish::Anywhere,
        };
        if !self.has_open() {
            let expected = self.per_shard().filter(|_| self.is_expected);
            let steered = expected.and_then(|(map, each)| {
                let lacking = self.lacking(map, each);
                self.next_steered(map, &lacking, now, rng)
            });
            // One connect finds out whether the node is there, and how it shards.
            let idle = self.connecting().next().is_none();
            return steered.or_else(|| idle.then_some(anywhere));
        }
        if self.occupied() >= self.wanted() {
            return None;
        }
        let Some((map, each)) = self.per_shard() else {
            return Some(anywhere);
        };
        let lacking = self.lacking(map, each);
        let steered = self.next_steered(map, &lacking, now, rng);
        steered.or_else(|| self.may_go_blind(&lacking, now).then_some(anywhere))
    }

    /// Whether it has the connections that it gets for certain: all, if shards can be chosen.
    pub(super) fn has_what_it_gets(&self, now: Instant) -> bool {
        let (open, port) = (self.open().count(), self.shard_aware_port());
        let is_steered = port.is_some()
            && self.settings.config.shard_aware_port
            && self.settings.steering != SteeringKind::None
            && !self.steer.is_resting(now);
        open >= self.wanted() || (open > 0 && !is_steered)
    }

    /// How many connections are wanted, as far as that is known.
    pub(super) fn wanted(&self) -> usize {
        match (self.settings.config.size, self.layout) {
            _ if !self.is_called => 0,
            (PoolSize::PerShard(each), Layout::Sharded(_)) if self.is_lazy() => {
                let wished = self.wished.len().saturating_mul(usize::from(each.get()));
                let (_, beside) = self.landed_lazily();
                // One that landed on a shard nobody asked for serves the whole node.
                wished.saturating_add(beside).clamp(1, CONNECTIONS_MAX)
            }
            _ => self.wanted_at_once(),
        }
    }

    fn wanted_at_once(&self) -> usize {
        match (self.settings.config.size, self.layout) {
            (PoolSize::PerShard(each), Layout::Sharded(map)) => {
                let wanted = usize::from(each.get()) * usize::from(map.count().get());
                wanted.min(CONNECTIONS_MAX)
            }
            (PoolSize::PerShard(each) | PoolSize::PerHost(each), _) => usize::from(each.get()),
        }
    }

    /// The shards and the number for each, where the pool is laid out by shards.
    pub(super) const fn per_shard(&self) -> Option<(ShardMap, NonZeroU16)> {
        match (self.settings.config.size, self.layout) {
            (PoolSize::PerShard(each), Layout::Sharded(map)) => Some((map, each)),
            _ => None,
        }
    }

    /// Whether shards get their connection at the first request that wants one.
    const fn is_lazy(&self) -> bool {
        self.settings.config.lazy_shards
    }

    /// The shards that a request may wish for, where they are opened at first use.
    pub(super) fn lazy_shards(&self) -> Option<u16> {
        let (map, _) = self.per_shard().filter(|_| self.is_lazy())?;
        u16::try_from(shards(map).len()).ok()
    }

    /// A request wants this shard.
    pub(super) fn wish(&mut self, shard: ShardIdx) {
        let is_there = self.lazy_shards().is_some_and(|end| shard.value() < end);
        if let Err(place) = self.wished.binary_search(&shard)
            && is_there
        {
            self.wished.insert(place, shard);
            self.blind = Blind::new(self.shard_map().map_or(1, |map| map.count().get()));
        }
    }

    fn is_wished(&self, shard: ShardIdx) -> bool {
        !self.is_lazy() || self.wished.binary_search(&shard).is_ok()
    }

    /// Wanted connections on shards that were wished for, and beside them.
    fn landed_lazily(&self) -> (usize, usize) {
        let landed =
            |member: &&Member| matches!(member.state, MemberState::Preparing | MemberState::Open);
        let wished = |member: &Member| member.shard.is_some_and(|shard| self.is_wished(shard));
        let mut counts = (0_usize, 0_usize);
        for member in self.members.values().filter(landed) {
            let count = if wished(member) {
                &mut counts.0
            } else {
                &mut counts.1
            };
            *count = count.saturating_add(1);
        }
        counts
    }

    /// Whether one more connection on this shard is wanted.
    pub(super) fn is_lacking(&self, shard: Option<ShardIdx>) -> bool {
        match (self.per_shard(), shard) {
            (Some(_), Some(shard)) if !self.is_wished(shard) => self.landed_lazily() == (0, 0),
            (Some((_, each)), Some(shard)) => self.landed(shard) < usize::from(each.get()),
            _ => {
                let open = |member: &&Member| {
                    matches!(member.state, MemberState::Preparing | MemberState::Open)
                };
                self.members.values().filter(open).count() < self.wanted()
            }
        }
    }

    /// Wanted connections on a shard.
    fn landed(&self, shard: ShardIdx) -> usize {
        let on_shard = |member: &&Member| {
            matches!(member.state, MemberState::Preparing | MemberState::Open)
                && member.shard == Some(shard)
        };
        self.members.values().filter(on_shard).count()
    }

    /// The shards to which connections or steered connects are missing, once for each of them.
    fn lacking(&self, map: ShardMap, each: NonZeroU16) -> Vec<ShardIdx> {
        let mut taken = alloc::vec![0_u16; shards(map).len()];
        for member in self.members.values() {
            let shard = match (member.state, member.wish) {
                (MemberState::Connecting, Wish::Port(shard) | Wish::BestEffort(shard)) => shard,
                (MemberState::Connecting, Wish::Anywhere) | (MemberState::Parked, _) => continue,
                (MemberState::Preparing | MemberState::Open, _) => match member.shard {
                    Some(shard) => shard,
                    None => continue,
                },
            };
            if let Some(taken) = taken.get_mut(usize::from(shard.value())) {
                *taken = taken.saturating_add(1);
            }
        }
        let missing = |(shard, taken): (ShardIdx, u16)| {
            let each = if self.is_wished(shard) { each.get() } else { 0 };
            let missing = each.saturating_sub(taken);
            core::iter::repeat_n(shard, usize::from(missing))
        };
        shards(map).zip(taken).flat_map(missing).gather()
    }

    fn next_steered(
        &mut self,
        map: ShardMap,
        lacking: &[ShardIdx],
        now: Instant,
        rng: &mut SmallRng,
    ) -> Option<Dial> {
        let port = self
            .shard_aware_port()
            .filter(|_| self.settings.config.shard_aware_port)
            .filter(|_| self.settings.steering != SteeringKind::None)?;
        let endpoint = with_port(&self.endpoint, port.get())?;
        if self.steer.is_resting(now) {
            return None;
        }
        // Connects under way to anywhere may fill the first of them.
        let shard = *lacking.get(self.blind_connecting())?;
        if self.settings.steering == SteeringKind::BestEffortShard {
            let (number, of) = (shard.value(), map.count());
            return Some(Dial {
                endpoint,
                steering: Steering::Shard { shard: number, of },
                wish: Wish::BestEffort(shard),
            });
        }
        let range = self.settings.config.source_ports;
        let ports = self
            .steer
            .cursors
            .get_or_insert_with(shard, || map.source_ports(shard, range, rng.next_u64()));
        let Some(port) = ports.next().and_then(NonZeroU16::new) else {
            self.steer.rest(now, NO_PORT_REST);
            return None;
        };
        Some(Dial {
            endpoint,
            steering: Steering::Port(port),
            wish: Wish::Port(shard),
        })
    }

    pub(super) fn blind_connecting(&self) -> usize {
        let blind = |member: &&Member| member.wish == Wish::Anywhere;
        self.connecting().filter(blind).count()
    }

    /// Whether one more connect through the normal port may be made.
    fn may_go_blind(&mut self, lacking: &[ShardIdx], now: Instant) -> bool {
        if lacking.len() <= self.blind_connecting() {
            return false;
        }
        if self.blind.paused_until.is_some_and(|until| until <= now) {
            self.blind.paused_until = None;
            self.blind.tries_left = u32::try_from(lacking.len()).unwrap_or(u32::MAX);
        }
        self.blind.paused_until.is_none() && self.blind.tries_left > 0
    }
}

/// The shards that get connections of their own.
fn shards(map: ShardMap) -> impl ExactSizeIterator<Item = ShardIdx> {
    let count = usize::from(map.count().get()).min(CONNECTIONS_MAX);
    (0..u16::try_from(count).unwrap_or(u16::MAX)).map(ShardIdx::new)
}

/// Connections to one node: a node's number of shards is its own claim. Shards beyond are served by
/// the connections to others.
pub(super) const CONNECTIONS_MAX: usize = 1024;
