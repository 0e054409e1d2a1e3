//! What becomes of a connection that opened: the shard that the node reports is the truth.
//!
//! It is kept by where it landed, whatever it was meant for. Surplus stays parked while the pool is
//! being filled, since a node gives a new connection to its least loaded shard; how many stay is
//! bounded, and all go when the pool is full or a round of tries is over.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::ConnectionId;
use super::filling::{CONNECTIONS_MAX, Wish};
use super::pool::{Layout, Member, MemberState, Pool};
use super::steering::{Blind, NAT_REST, Steer, TRIES_PER_SHARD};
use crate::conn::extensions::Agreed;
use crate::gather::Gather;
use crate::routing::{ShardIdx, ShardMap};
use crate::time::Instant;

/// What becomes of a connection that opened, and of others by it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Landing {
    /// It is wanted; otherwise it is parked or among `close`.
    pub(super) is_wanted: bool,
    /// These are to be closed.
    pub(super) close: Vec<ConnectionId>,
    /// The node shards in another way than was known.
    pub(super) is_layout_new: bool,
    /// It landed on another shard than it was steered to.
    pub(super) is_mismatch: bool,
    /// The source port seems to be rewritten on the way; said at the first mismatch.
    pub(super) is_nat_found: bool,
}

impl Pool {
    /// Takes over a connection that was opened before the node was known.
    pub(super) fn adopt(&mut self, id: ConnectionId, agreed: &Agreed, now: Instant) -> Landing {
        self.started(id, Wish::Anywhere, now);
        self.handle_connected(id, agreed, now)
    }

    pub(super) fn handle_connected(
        &mut self,
        id: ConnectionId,
        agreed: &Agreed,
        now: Instant,
    ) -> Landing {
        let mut landing = Landing::default();
        let Some(member) = self.members.get_mut(&id) else {
            landing.close.push(id);
            return landing;
        };
        let wish = member.wish;
        let is_blind_try = core::mem::take(&mut member.is_blind_try);
        self.backoff.opened(now);
        self.is_known_down = false;
        self.is_expected = false;
        self.ports = agreed.offer.ports;
        let sharding = agreed
            .offer
            .sharding
            .filter(|_| self.settings.config.shard_aware);
        let layout = sharding.map_or(Layout::Whole, |sharding| Layout::Sharded(sharding.map));
        let shard = sharding.map(|sharding| sharding.shard);
        if self.layout != layout {
            landing.is_layout_new = true;
            self.lay_out(layout, id, &mut landing.close);
        } else {
            self.judge_steering(wish, shard, now, &mut landing);
        }
        // A node that is not called is not connected to: this one found the cluster.
        landing.is_wanted = !self.is_called || self.is_lacking(shard);
        if let Some(member) = self.members.get_mut(&id) {
            (member.shard, member.since) = (shard, now);
            member.state = if landing.is_wanted {
                MemberState::Preparing
            } else {
                MemberState::Parked
            };
        }
        if landing.is_wanted && is_blind_try {
            self.blind.tries_left = self.blind.tries_left.saturating_add(1);
        }
        self.unpark(now, &mut landing.close);
        landing
    }

    /// The node shards in another way than was known: what was opened before is for nothing.
    fn lay_out(&mut self, layout: Layout, newest: ConnectionId, close: &mut Vec<ConnectionId>) {
        let first_time = self.layout == Layout::Unknown;
        let before = self.shard_map().map(ShardMap::count);
        self.layout = layout;
        let now = self.shard_map().map(ShardMap::count);
        if now != before {
            self.wished.clear();
        }
        let count = now.map_or(1, NonZeroU16::get);
        self.blind = Blind::new(count);
        if first_time {
            return;
        }
        self.steer = Steer::default();
        let old = |(id, member): (&ConnectionId, &Member)| {
            (*id != newest && member.state != MemberState::Connecting).then_some(*id)
        };
        close.extend(self.members.iter().filter_map(old));
        for id in close {
            self.members.remove(id);
        }
    }

    /// Compares the wish with where it landed.
    fn judge_steering(
        &mut self,
        wish: Wish,
        shard: Option<ShardIdx>,
        now: Instant,
        landing: &mut Landing,
    ) {
        let wished = match wish {
            Wish::Anywhere => return,
            Wish::Port(shard) | Wish::BestEffort(shard) => shard,
        };
        self.steer.cursors.remove(&wished);
        if shard == Some(wished) {
            self.steer.misses = 0;
            return;
        }
        landing.is_mismatch = true;
        self.steer.misses = self.steer.misses.saturating_add(1);
        let count = self.shard_map().map_or(1, |map| map.count().get());
        let is_hopeless = match wish {
            Wish::Port(_) => true,
            Wish::BestEffort(_) | Wish::Anywhere => self.steer.misses >= u32::from(count),
        };
        if is_hopeless && !self.steer.is_resting(now) {
            landing.is_nat_found = true;
            self.steer.is_nat_suspected = true;
            self.steer.rest(now, NAT_REST);
        }
    }

    /// Lets surplus connections go when they have done their service: the pool is full, there are
    /// too many, or this round of tries is over.
    fn unpark(&mut self, now: Instant, close: &mut Vec<ConnectionId>) {
        let parked = |(id, member): (&ConnectionId, &Member)| {
            (member.state == MemberState::Parked).then_some(*id)
        };
        let mut surplus: Vec<ConnectionId> = self.members.iter().filter_map(parked).gather();
        let Some((map, _)) = self.per_shard() else {
            self.close_all(surplus, close);
            return;
        };
        let is_full = self.occupied() >= self.wanted() && self.connecting().next().is_none();
        if is_full {
            self.blind = Blind::new(map.count().get());
        } else if self.blind.tries_left == 0
            && self.blind.paused_until.is_none()
            && self.blind_connecting() == 0
        {
            self.blind.pause(now);
        }
        let bound = usize::from(map.count().get()) * TRIES_PER_SHARD as usize;
        let bound = bound.min(CONNECTIONS_MAX);
        if !is_full && self.blind.paused_until.is_none() {
            // The oldest are let go first.
            surplus.truncate(surplus.len().saturating_sub(bound));
        }
        self.close_all(surplus, close);
    }

    fn close_all(&mut self, ids: Vec<ConnectionId>, close: &mut Vec<ConnectionId>) {
        for id in &ids {
            self.members.remove(id);
        }
        close.extend(ids);
    }
}
