//! The connections of one node: which are wanted, which there are, what to connect to next.
//!
//! Pure bookkeeping: [`Pool::next_connect`] says what to connect to, the outcome comes back through
//! `handle_*`. The source port is a wish; the shard that the node reports is the truth. What is
//! missing and how it is reached stands in `filling`, what becomes of what opened in `landing`.

use crate::gather::Gather;
use crate::sorted::SortedMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU16;
use core::time::Duration;

use uuid::Uuid;

use super::ConnectionId;
use super::client_routes::NodeRoute;
use super::duty::Duty;
use super::filling::Wish;
use super::reconnect::Backoff;
use super::steering::{Blind, NO_PORT_REST, REFUSED_REST, Steer};
use crate::config::PoolConfig;
use crate::conn::extensions::ShardAwarePorts;
use crate::error::{Error, ErrorKind, LinkErrorKind};
use crate::rng::SmallRng;
use crate::routing::{ShardIdx, ShardMap, SourcePorts};
use crate::target::{Endpoint, Security, SteeringKind};
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
    /// The way to `endpoint`; without one nothing is connected.
    pub(super) route: NodeRoute,
    /// The address that events name the node by.
    pub(super) broadcast: Option<IpAddr>,
    pub(super) duty: Duty,
    /// Whether connections are wanted at all, by its duty and by how the other nodes are.
    pub(super) is_called: bool,
    pub(super) settings: PoolSettings,
    pub(super) members: SortedMap<ConnectionId, Member>,
    pub(super) layout: Layout,
    pub(super) ports: ShardAwarePorts,
    pub(super) backoff: Backoff,
    pub(super) steer: Steer,
    pub(super) blind: Blind,
    /// Shards that a request has wanted, sorted; only where they are opened at first use.
    pub(super) wished: Vec<ShardIdx>,
    pub(super) is_known_down: bool,
    /// The layout is known from an earlier session: no connect has to find it out.
    pub(super) is_expected: bool,
}

/// What is known of the node's shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// No connection has told yet.
    Unknown,
    /// The node does not shard, or shards do not matter.
    Whole,
    Sharded(ShardMap),
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) state: MemberState,
    pub(super) wish: Wish,
    pub(super) shard: Option<ShardIdx>,
    pub(super) since: Instant,
    /// It costs one of the blind tries unless it lands where it is wanted.
    pub(super) is_blind_try: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    Connecting,
    /// Open and wanted, but not in the keyspace yet.
    Preparing,
    Open,
    /// Open and not wanted; kept until the pool is filled.
    Parked,
}

impl Pool {
    pub(super) fn new(host_id: Uuid, endpoint: Endpoint, settings: PoolSettings) -> Self {
        Self {
            host_id,
            endpoint,
            route: NodeRoute::Direct,
            broadcast: None,
            duty: Duty::Serves,
            is_called: true,
            settings,
            members: SortedMap::new(),
            layout: Layout::Unknown,
            ports: ShardAwarePorts::default(),
            backoff: Backoff::new(settings.reconnect_base, settings.reconnect_max),
            steer: Steer::default(),
            blind: Blind::new(1),
            wished: Vec::new(),
            is_known_down: false,
            is_expected: false,
        }
    }

    /// An earlier session knew how the node shards, and where source ports choose the shard.
    pub(super) fn expect(&mut self, map: ShardMap, ports: ShardAwarePorts) {
        if self.settings.config.shard_aware {
            self.layout = Layout::Sharded(map);
            self.blind = Blind::new(map.count().get());
            self.ports = ports;
            self.is_expected = true;
        }
    }

    /// A connect ended without having told anything of the node.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        if self
            .members
            .remove(&id)
            .is_some_and(|member| member.is_blind_try)
        {
            self.blind.tries_left = self.blind.tries_left.saturating_add(1);
        }
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
                self.is_expected = false;
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

    /// What the node is to the session; how the other nodes are decides whether one that stands in
    /// is called.
    pub(super) fn set_duty(&mut self, duty: Duty) {
        if self.duty != duty {
            (self.duty, self.is_called) = (duty, duty == Duty::Serves);
        }
    }

    /// Gives up all connections but the one with the control role.
    pub(super) fn dismiss(&mut self, control: Option<ConnectionId>) -> Vec<ConnectionId> {
        let gone = |id: &ConnectionId| Some(*id) != control;
        let dismissed: Vec<ConnectionId> = self.all().filter(gone).gather();
        for id in &dismissed {
            self.members.remove(id);
        }
        dismissed
    }

    /// Gives up one of several connections, the newest, but not the one with the control role.
    pub(super) fn spare_one(&mut self, control: Option<ConnectionId>) -> Option<ConnectionId> {
        self.all().nth(1)?;
        let newest = self.all().filter(|id| Some(*id) != control).max()?;
        self.members.remove(&newest);
        Some(newest)
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
        if self.occupied() < self.wanted() && !self.is_cut_off() {
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

    /// The shard-aware ports, unless steering rests.
    pub(super) fn working_ports(&self, now: Instant) -> ShardAwarePorts {
        match self.steer.is_resting(now) {
            true => ShardAwarePorts::default(),
            false => self.ports,
        }
    }

    /// Whether steering rests because the shards reached were not those asked for.
    pub(super) fn is_nat_resting(&self, now: Instant) -> bool {
        self.steer.is_nat_suspected && self.steer.is_resting(now)
    }

    pub(super) fn connecting(&self) -> impl Iterator<Item = &Member> {
        let connecting = |member: &&Member| member.state == MemberState::Connecting;
        self.members.values().filter(connecting)
    }

    /// Connections that count towards the wanted number.
    pub(super) fn occupied(&self) -> usize {
        let counts = |member: &&Member| member.state != MemberState::Parked;
        self.members.values().filter(counts).count()
    }
}
