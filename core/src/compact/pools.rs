//! Further links: as many to each member, or to each of its shards, as the settings want and the
//! bounds allow.
//!
//! A shard is only ever wished for; which one a link has reached, the node tells. Links to a shard
//! that has enough are closed, and after some of those no more is wished of that member.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU16;

use super::contact::{PROVEN_AFTER, after_pause};
use super::host::Host;
use super::link::Link;
use super::machine::Machine;
use super::random::Random;
use crate::config::{DEFAULT_PORT, HAS_TOPOLOGY, PoolSize};
use crate::conn::extensions::{Agreed, ShardAwarePorts, Sharding};
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind};
use crate::routing::{PortRange, ShardMap};
use crate::target::{Endpoint, Security, Steering, SteeringKind};
use crate::time::Instant;
use crate::words::append;

#[derive(Debug)]
pub(super) struct Pools {
    /// Members and shards that requests have missed, where links wait for that.
    wanted: Vec<(u16, u16)>,
    next_at: Instant,
}

impl Pools {
    pub(super) const fn new() -> Self {
        Self {
            wanted: Vec::new(),
            next_at: Instant::FAR_FUTURE,
        }
    }

    pub(super) const fn next_at(&self) -> Instant {
        self.next_at
    }
}

impl Machine {
    /// Opens links that are missing.
    pub(super) fn fill_pools(&mut self, host: &mut impl Host) {
        self.pools.next_at = Instant::FAR_FUTURE;
        let max = self.config.pool.connections_max;
        let max = max.map_or(usize::MAX, usize::from);
        let mut room = self.config.limits.connecting;
        for link in &self.links {
            room = room.saturating_sub(usize::from(link.connection.is_none()));
        }
        room = room.min(max.saturating_sub(self.links.len()));
        for member in 0..self.plane.members_end() {
            loop {
                if room == 0 {
                    return;
                }
                if !self.open_missing(member, host) {
                    break;
                }
                room = room.saturating_sub(1);
            }
        }
    }

    /// Opens the next link that a member lacks; whether it lacked one.
    fn open_missing(&mut self, number: u16, host: &mut impl Host) -> bool {
        let Some(member) = self.plane.member(number) else {
            return false;
        };
        if !member.is_within_reach(self.config.policy.dc_failover) {
            return false;
        }
        let mut count = 0_usize;
        let mut offered = None;
        // Links under way without a wish may each reach one of the shards that lack one.
        let mut under_way = 0_usize;
        for link in &self.links {
            if link.member == Some(number) {
                count = count.wrapping_add(1);
                offered = offered.or_else(|| link.agreed.as_ref().and_then(sharding));
                if link.connection.is_none() && link.wish.is_none() {
                    under_way = under_way.wrapping_add(1);
                }
            }
        }
        let (wanted, is_per_shard) = self.wanted();
        // Asked with each run, so that what costs least comes first.
        if !is_per_shard && count >= wanted {
            return false;
        }
        let Some(mut place) = self.member_place(number) else {
            return false;
        };
        let trouble = &member.trouble;
        if self.now < trouble.until {
            self.pools.next_at = self.pools.next_at.min(trouble.until);
            return false;
        }
        let (mut steering, mut wish) = (Steering::None, None);
        if is_per_shard {
            match offered {
                Some((sharding, ports)) => {
                    let misses = trouble.misses;
                    let shard = self.lacking_shard(number, sharding, wanted, misses, under_way);
                    let Some(shard) = shard else { return false };
                    let own_port = match host.security() {
                        Security::Plain => ports.plain,
                        Security::Tls => ports.tls,
                    };
                    let pool = &self.config.pool;
                    // Else by chance; links to shards that have enough are closed again.
                    if let Some(own_port) = own_port
                        && let Endpoint::Addr(address) = &mut place
                        && (!trouble.has_no_port && pool.shard_aware && pool.shard_aware_port)
                    {
                        steering = steering_to(
                            shard,
                            sharding.map,
                            pool.source_ports,
                            host.steering(),
                            &mut self.random,
                        );
                        if steering != Steering::None {
                            address.set_port(own_port.get());
                            wish = Some(shard);
                        }
                    }
                }
                // The first link tells how many shards there are.
                None if count > 0 => return false,
                None => {}
            }
        }
        let deadline = self.now.saturating_add(self.config.timeouts.connect);
        self.open(place, steering, deadline, host);
        if let Some(link) = self.links.last_mut() {
            (link.member, link.wish) = (Some(number), wish);
        }
        true
    }

    /// How many links a member gets, and whether each of its shards does.
    fn wanted(&self) -> (usize, bool) {
        match self.config.pool.size {
            PoolSize::PerShard(wanted) => (wanted.get().into(), HAS_SHARD_POOLS),
            PoolSize::PerHost(wanted) => (wanted.get().into(), false),
        }
    }

    /// The shard of a member that is to get the next link.
    fn lacking_shard(
        &self,
        number: u16,
        sharding: &Sharding,
        wanted: usize,
        misses: u16,
        mut under_way: usize,
    ) -> Option<u16> {
        let of = sharding.map.count().get();
        if misses > of.saturating_mul(MISSES_PER_SHARD) {
            return None;
        }
        let is_lazy = HAS_LAZY_SHARDS && self.config.pool.lazy_shards;
        for shard in 0..of {
            let mut held = 0_usize;
            for link in &self.links {
                let reached = match link.connection {
                    Some(_) => link.shard(),
                    None => link.wish,
                };
                if link.member == Some(number) && reached == Some(shard) {
                    held = held.wrapping_add(1);
                }
            }
            let may_come = !is_lazy || self.pools.wanted.contains(&(number, shard));
            if may_come && held < wanted {
                if under_way == 0 {
                    return Some(shard);
                }
                under_way = under_way.wrapping_sub(1);
            }
        }
        None
    }

    /// Ports are not told in the system tables that are read: all nodes have that of the first
    /// contact point.
    pub(super) fn port(&self) -> u16 {
        match self.config.contact_points.first() {
            Some(Endpoint::Addr(address)) => address.port(),
            Some(Endpoint::Name { port, .. }) => *port,
            _ => DEFAULT_PORT,
        }
    }

    /// Where a member is reached, if that is known.
    #[inline(never)]
    pub fn member_place(&self, member: u16) -> Option<Endpoint> {
        let address = self.plane.member(member)?.address()?;
        Some(Endpoint::Addr(SocketAddr::new(address, self.port())))
    }

    /// Where a first connection may be found: the members by their numbers, and the contact points by
    /// theirs behind all that members have.
    #[inline(never)]
    pub(super) fn places(&self) -> Vec<u16> {
        let mut places = Vec::new();
        let points = &self.config.contact_points;
        for (number, _) in (POINTS..u16::MAX).zip(points) {
            append(&mut places, number);
        }
        let members_end = if HAS_TOPOLOGY {
            self.plane.members_end()
        } else {
            0
        };
        for member in 0..members_end.min(POINTS) {
            if let Some(place) = self.member_place(member)
                && find(points, &place).is_none()
            {
                append(&mut places, member);
            }
        }
        places
    }

    /// One of them.
    pub(super) fn place(&self, number: u16) -> Option<Endpoint> {
        match number.checked_sub(POINTS) {
            Some(point) => self.config.contact_points.get(usize::from(point)).cloned(),
            None if HAS_TOPOLOGY => self.member_place(number),
            None => None,
        }
    }

    /// A request had to go to another shard.
    pub(super) fn want_shard(&mut self, member: u16, shard: u16) {
        if !HAS_LAZY_SHARDS {
            return;
        }
        let wanted = &mut self.pools.wanted;
        let is_new = self.config.pool.lazy_shards && !wanted.contains(&(member, shard));
        if is_new && wanted.len() < WANTED_MAX {
            wanted.push((member, shard));
        }
    }

    /// Finds out which member a link leads to, as far as that is known, and whether it is one too many.
    pub(super) fn place_link(&mut self, at: usize) {
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        let Some(agreed) = &link.agreed else { return };
        // The member may be another one, or somewhere else.
        link.node = None;
        link.member = match agreed.offer.host_id {
            Some(host) => self.plane.member_by_host_id(host),
            None => link
                .member
                .filter(|number| self.plane.member(*number).is_some()),
        };
        let Some(number) = link.member.filter(|_| !link.is_settled) else {
            return;
        };
        link.is_settled = true;
        let sharding = agreed.offer.sharding.map(|sharding| sharding.map);
        self.plane.set_sharding(number, sharding);
        let Some(link) = self.links.get(at) else {
            return;
        };
        let (wanted, true) = self.wanted() else {
            return;
        };
        let (Some(shard), None) = (link.shard(), link.walk) else {
            return;
        };
        let links = self.links.iter().map(|link| &**link);
        let is_same = |other: &&Link| other.member == Some(number) && other.shard() == Some(shard);
        let held = links.filter(is_same).count();
        let is_missed = link.wish.is_some_and(|wish| wish != shard);
        let is_excess = held > wanted;
        if !is_missed && !is_excess {
            return;
        }
        if let Some(member) = self.plane.member_mut(number) {
            let misses = &mut member.trouble.misses;
            *misses = misses.saturating_add(1);
        }
        if is_excess && let Some(link) = self.links.get_mut(at) {
            let closed = LinkError::new(LinkErrorKind::ClosedByUs);
            link.failed = Some(Error::new(ErrorKind::Link(closed)));
        }
    }

    /// A link of a member has ended: the next one comes after a pause.
    pub(super) fn rest_pool(&mut self, link: &Link, error: &Error) {
        let Some(number) = link.member.filter(|_| HAS_TOPOLOGY) else {
            return;
        };
        let Some(member) = self.plane.member_mut(number) else {
            return;
        };
        let trouble = &mut member.trouble;
        let is_adopted = link.connection.is_some();
        if is_adopted && self.now >= link.since.saturating_add(PROVEN_AFTER) {
            trouble.failures = 0;
        }
        let timeouts = &self.config.timeouts;
        trouble.until = after_pause(self.now, timeouts, trouble.failures, &mut self.random);
        trouble.failures = trouble.failures.saturating_add(1);
        // A port of ours that is taken says nothing of theirs.
        trouble.has_no_port |= HAS_SHARD_POOLS
            && link.wish.is_some()
            && !is_adopted
            && error.kind() != ErrorKind::Link(LinkError::PORT_IN_USE);
    }
}

/// The place of an endpoint in a list; one copy of the comparison.
#[inline(never)]
pub(super) fn find(places: &[Endpoint], place: &Endpoint) -> Option<usize> {
    places.iter().position(|known| known == place)
}

/// How a link may reach a shard.
fn steering_to(
    shard: u16,
    map: ShardMap,
    range: PortRange,
    kind: SteeringKind,
    random: &mut Random,
) -> Steering {
    match kind {
        SteeringKind::BestEffortShard => Steering::Shard {
            shard,
            of: map.count(),
        },
        SteeringKind::ExactPort => {
            let port = map.check(shard).and_then(|shard| {
                let mut fitting = map.source_ports(shard, range, random.next());
                fitting.next().and_then(NonZeroU16::new)
            });
            port.map_or(Steering::None, Steering::Port)
        }
        SteeringKind::None => Steering::None,
    }
}

/// How a node shards, and where a shard may be wished for, if it told.
fn sharding(agreed: &Agreed) -> Option<(&Sharding, &ShardAwarePorts)> {
    let offer = &agreed.offer;
    Some((offer.sharding.as_ref()?, &offer.ports))
}

/// Numbers of contact points as places begin here, where those of members end.
const POINTS: u16 = 0x8000;

/// Links that may fail to reach a wished shard, for each shard of a member, before no more is
/// wished of it.
const MISSES_PER_SHARD: u16 = 3;

/// Whether each shard may have links of its own.
const HAS_SHARD_POOLS: bool = cfg!(any(test, feature = "shard-pools"));

/// Whether links to shards may wait until a request asks for them.
const HAS_LAZY_SHARDS: bool = cfg!(any(test, feature = "lazy-shards"));

/// Shards that are remembered as wanted.
const WANTED_MAX: usize = 4096;
