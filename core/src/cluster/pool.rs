//! The connections of one node: which are wanted, which there are, what to connect to next.
//!
//! Pure bookkeeping: [`Pool::next_connect`] says what to connect to, the outcome comes back through
//! `handle_*`. The source port is a wish; the shard that the node reports is the truth, so a
//! connection is kept by where it landed. Surplus connections stay parked while the pool is being
//! filled, since a node gives a new connection to its least loaded shard; both their number and
//! the tries are bounded, and after a fruitless round come growing pauses.

use crate::sorted::SortedMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU16;
use core::time::Duration;

use uuid::Uuid;

use super::ConnectionId;
use super::reconnect::Backoff;
use super::steering::{
    Blind, NAT_REST, NO_PORT_REST, REFUSED_REST, Steer, TRIES_PER_SHARD, with_port,
};
use crate::config::{PoolConfig, PoolSize};
use crate::conn::extensions::{Agreed, ShardAwarePorts};
use crate::error::{Error, ErrorKind, LinkErrorKind};
use crate::rng::SmallRng;
use crate::routing::{ShardIdx, ShardMap, SourcePorts};
use crate::target::{Endpoint, Security, Steering, SteeringKind};
use crate::time::Instant;

/// What the pools of a session have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolSettings {
    pub(super) config: PoolConfig,
    pub(super) steering: SteeringKind,
    pub(super) security: Security,
    pub(super) reconnect_base: Duration,
    pub(super) reconnect_max: Duration,
}

/// The connections of one node.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) host_id: Uuid,
    pub(super) endpoint: Endpoint,
    /// The address that events name the node by.
    pub(super) broadcast: Option<IpAddr>,
    settings: PoolSettings,
    members: SortedMap<ConnectionId, Member>,
    layout: Layout,
    ports: ShardAwarePorts,
    backoff: Backoff,
    steer: Steer,
    blind: Blind,
    is_known_down: bool,
}

/// What is known of the node's shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// No connection has told yet.
    Unknown,
    /// The node does not shard, or shards do not matter.
    Whole,
    Sharded(ShardMap),
}

#[derive(Debug)]
struct Member {
    state: MemberState,
    wish: Wish,
    shard: Option<ShardIdx>,
    since: Instant,
    /// It costs one of the blind tries unless it lands where it is wanted.
    is_blind_try: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Connecting,
    /// Open and wanted, but not in the keyspace yet.
    Preparing,
    Open,
    /// Open and not wanted; kept until the pool is filled.
    Parked,
}

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
    pub(super) fn new(host_id: Uuid, endpoint: Endpoint, settings: PoolSettings) -> Self {
        Self {
            host_id,
            endpoint,
            broadcast: None,
            settings,
            members: SortedMap::new(),
            layout: Layout::Unknown,
            ports: ShardAwarePorts::default(),
            backoff: Backoff::new(settings.reconnect_base, settings.reconnect_max),
            steer: Steer::default(),
            blind: Blind::new(1),
            is_known_down: false,
        }
    }

    /// What to connect to next, if anything is missing and may be tried now. The caller connects
    /// and says so by [`Pool::started`].
    pub(super) fn next_connect(&mut self, now: Instant, rng: &mut SmallRng) -> Option<Dial> {
        if !self.backoff.may_try(now) {
            return None;
        }
        let anywhere = Dial {
            endpoint: self.endpoint.clone(),
            steering: Steering::None,
            wish: Wish::Anywhere,
        };
        if !self.has_open() {
            // One connect finds out whether the node is there, and how it shards.
            let idle = self.connecting().next().is_none();
            return idle.then_some(anywhere);
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

    pub(super) fn started(&mut self, id: ConnectionId, wish: Wish, now: Instant) {
        let is_blind_try = wish == Wish::Anywhere && self.has_open() && self.per_shard().is_some();
        if is_blind_try {
            self.blind.tries_left = self.blind.tries_left.saturating_sub(1);
        }
        let member = Member {
            state: MemberState::Connecting,
            wish,
            shard: None,
            since: now,
            is_blind_try,
        };
        self.members.insert(id, member);
    }

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
        landing.is_wanted = self.is_lacking(shard);
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

    /// A wanted connection takes requests from now on.
    pub(super) fn handle_prepared(&mut self, id: ConnectionId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.state = MemberState::Open;
        }
    }

    /// A connect failed. Says whether this is a failure of the node.
    pub(super) fn handle_failed(
        &mut self,
        id: ConnectionId,
        error: &Error,
        now: Instant,
        rng: &mut SmallRng,
    ) -> bool {
        let Some(member) = self.members.remove(&id) else {
            return false;
        };
        if member.is_blind_try {
            // Not fruitless but failed, which is what the back-off is for.
            self.blind.tries_left = self.blind.tries_left.saturating_add(1);
        }
        let is_port_in_use = matches!(
            error.kind(),
            ErrorKind::Link(error) if error.kind() == LinkErrorKind::PortInUse
        );
        match member.wish {
            Wish::Port(shard) if is_port_in_use => {
                let left = self.steer.cursors.get(&shard).map_or(0, SourcePorts::len);
                if left == 0 {
                    self.steer.rest(now, NO_PORT_REST);
                }
                false
            }
            Wish::Port(_) | Wish::BestEffort(_) if self.has_open() => {
                self.steer.rest(now, REFUSED_REST);
                false
            }
            _ => {
                self.backoff.failed(member.since, now, rng);
                self.is_known_down = !self.has_open();
                true
            }
        }
    }

    /// An open connection ended, or turned out to be unusable.
    pub(super) fn handle_closed(&mut self, id: ConnectionId, now: Instant, rng: &mut SmallRng) {
        let Some(member) = self.members.remove(&id) else {
            return;
        };
        if member.state != MemberState::Parked {
            self.backoff.failed(member.since, now, rng);
        }
    }

    /// An event says that the node is up.
    pub(super) fn hint_up(&mut self, now: Instant, rng: &mut SmallRng) {
        self.is_known_down = false;
        self.backoff.hurry(now, rng);
    }

    /// An event says that the node is down. A live connection knows better.
    pub(super) fn hint_down(&mut self) {
        self.is_known_down = !self.has_open();
    }

    /// When [`Pool::next_connect`] may have something to say without anything having happened.
    pub(super) fn next_at(&self, consider: &mut dyn FnMut(Option<Instant>)) {
        if self.occupied() < self.wanted() {
            consider(self.backoff.retry_at());
            consider(self.blind.paused_until);
            consider(self.steer.rests_until);
        }
    }

    /// Connections that take requests, and their shards.
    pub(super) fn open(&self) -> impl Iterator<Item = (ConnectionId, Option<ShardIdx>)> {
        let open = |(_, member): &(_, &Member)| member.state == MemberState::Open;
        self.members
            .iter()
            .filter(open)
            .map(|(&id, member)| (id, member.shard))
    }

    /// All connections, open or not.
    pub(super) fn all(&self) -> impl Iterator<Item = ConnectionId> {
        self.members.keys().copied()
    }

    pub(super) fn is_up(&self) -> bool {
        self.has_open() || !self.is_known_down
    }

    /// Whether any connection is open, wanted or not.
    pub(super) fn has_open(&self) -> bool {
        let open = |member: &Member| member.state != MemberState::Connecting;
        self.members.values().any(open)
    }

    /// How many connections are wanted, as far as that is known.
    pub(super) fn wanted(&self) -> usize {
        match (self.settings.config.size, self.layout) {
            (PoolSize::PerShard(each), Layout::Sharded(map)) => {
                let wanted = usize::from(each.get()) * usize::from(map.count().get());
                wanted.min(CONNECTIONS_MAX)
            }
            (PoolSize::PerShard(each) | PoolSize::PerHost(each), _) => usize::from(each.get()),
        }
    }

    pub(super) const fn shard_map(&self) -> Option<ShardMap> {
        match self.layout {
            Layout::Sharded(map) => Some(map),
            Layout::Unknown | Layout::Whole => None,
        }
    }

    /// The shard-aware port that fits the transport. TLS never falls back to one named as plain.
    pub(super) const fn shard_aware_port(&self) -> Option<NonZeroU16> {
        match self.settings.security {
            Security::Plain => self.ports.plain,
            Security::Tls => self.ports.tls,
        }
    }

    /// Whether steering rests because the shards reached were not those asked for.
    pub(super) fn is_nat_resting(&self, now: Instant) -> bool {
        self.steer.is_nat_suspected && self.steer.is_resting(now)
    }

    fn connecting(&self) -> impl Iterator<Item = &Member> {
        let connecting = |member: &&Member| member.state == MemberState::Connecting;
        self.members.values().filter(connecting)
    }

    /// Connections that count towards the wanted number.
    fn occupied(&self) -> usize {
        let counts = |member: &&Member| member.state != MemberState::Parked;
        self.members.values().filter(counts).count()
    }

    /// The shards and the number for each, where the pool is laid out by shards.
    const fn per_shard(&self) -> Option<(ShardMap, NonZeroU16)> {
        match (self.settings.config.size, self.layout) {
            (PoolSize::PerShard(each), Layout::Sharded(map)) => Some((map, each)),
            _ => None,
        }
    }

    /// Whether one more connection on this shard is wanted.
    fn is_lacking(&self, shard: Option<ShardIdx>) -> bool {
        match (self.per_shard(), shard) {
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
            let missing = each.get().saturating_sub(taken);
            core::iter::repeat_n(shard, usize::from(missing))
        };
        shards(map).zip(taken).flat_map(missing).collect()
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

    fn blind_connecting(&self) -> usize {
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

    /// The node shards in another way than was known: what was opened before is for nothing.
    fn lay_out(&mut self, layout: Layout, newest: ConnectionId, close: &mut Vec<ConnectionId>) {
        let first_time = self.layout == Layout::Unknown;
        self.layout = layout;
        let count = self.shard_map().map_or(1, |map| map.count().get());
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
        let mut surplus: Vec<ConnectionId> = self.members.iter().filter_map(parked).collect();
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

/// The shards that get connections of their own.
fn shards(map: ShardMap) -> impl ExactSizeIterator<Item = ShardIdx> {
    let count = usize::from(map.count().get()).min(CONNECTIONS_MAX);
    (0..u16::try_from(count).unwrap_or(u16::MAX)).map(ShardIdx::new)
}

/// Connections to one node: a node's number of shards is its own claim. Shards beyond are served by
/// the connections to others.
const CONNECTIONS_MAX: usize = 1024;
