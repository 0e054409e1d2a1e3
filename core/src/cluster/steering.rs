//! How often a pool tries to reach shards: by source port, and blindly through the normal port.
//!
//! Both end by themselves. Steering rests for minutes when it does not work; blind tries come in
//! rounds of a few for each shard, with growing pauses between them.

use crate::sorted::SortedMap;
use core::net::SocketAddr;
use core::time::Duration;

use crate::routing::{ShardIdx, SourcePorts};
use crate::target::Endpoint;
use crate::time::Instant;

/// Steering towards shards through the shard-aware port.
#[derive(Debug, Default)]
pub(super) struct Steer {
    pub(super) rests_until: Option<Instant>,
    pub(super) is_nat_suspected: bool,
    pub(super) misses: u32,
    /// Ports not tried yet, for shards whose last port was taken.
    pub(super) cursors: SortedMap<ShardIdx, SourcePorts>,
}

/// Filling through the normal port, where the node chooses the shard.
#[derive(Debug)]
pub(super) struct Blind {
    pub(super) tries_left: u32,
    pub(super) rounds: u32,
    pub(super) paused_until: Option<Instant>,
}

impl Steer {
    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    pub(super) fn rest(&mut self, now: Instant, pause: Duration) {
        let until = now.saturating_add(pause);
        self.rests_until = Some(self.rests_until.map_or(until, |before| before.max(until)));
        self.cursors.clear();
    }
}

impl Blind {
    pub(super) fn new(shards: u16) -> Self {
        Self {
            tries_left: u32::from(shards) * TRIES_PER_SHARD,
            rounds: 0,
            paused_until: None,
        }
    }

    pub(super) fn pause(&mut self, now: Instant) {
        let pause = BLIND_PAUSE.saturating_mul(1 << self.rounds.min(10));
        self.rounds = self.rounds.saturating_add(1);
        self.paused_until = Some(now.saturating_add(pause.min(BLIND_PAUSE_MAX)));
    }
}

/// The same host on another port, where there is such a thing.
pub(super) fn with_port(endpoint: &Endpoint, port: u16) -> Option<Endpoint> {
    match endpoint {
        Endpoint::Addr(addr) => Some(Endpoint::Addr(SocketAddr::new(addr.ip(), port))),
        Endpoint::Name { host, .. } => Some(Endpoint::Name {
            host: host.clone(),
            port,
        }),
        Endpoint::Local(_) => None,
    }
}

/// How long steering rests when shards reached are not those asked for.
pub(super) const NAT_REST: Duration = Duration::from_secs(600);
/// How long it rests when all source ports of a shard are taken or there are none.
pub(super) const NO_PORT_REST: Duration = Duration::from_secs(600);
/// How long it rests when the shard-aware port cannot be connected to.
pub(super) const REFUSED_REST: Duration = Duration::from_secs(60);
/// Fruitless connects through the normal port before the first pause.
pub(super) const TRIES_PER_SHARD: u32 = 3;
/// The first pause after fruitless tries, and the longest.
const BLIND_PAUSE: Duration = Duration::from_secs(10);
const BLIND_PAUSE_MAX: Duration = Duration::from_secs(600);
