//! The platform as core sees it, and what the firmware may set.

use core::fmt;
use core::time::Duration;

use embassy_time::Instant;
use messina_core::drive::{Endpoint, Name, Steering, SteeringKind, Target, Transport};
use messina_core::time::UnixMicros;

use crate::connecting::{EmbassyConnecting, EmbassyResolving};
use crate::entropy::Seed;
use crate::link::EmbassyLink;
use crate::net::{Network, Remote, SocketPool};
use crate::steering::ShardWish;
use crate::time::{self, EmbassyClock, EmbassyTimer};

/// How a peer that vanished without a word is noticed: TCP keep-alive and timeout, which are only
/// right together.
///
/// A connection that is lost within `give_up_after` of the last byte read (less a second) is
/// reported as reset, later as timed out. With a heartbeat more often than that, this is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Liveness {
    /// An idle connection is probed this often.
    pub probe_every: Duration,
    /// A peer that answers nothing for this long is given up.
    pub give_up_after: Duration,
}

impl Liveness {
    /// Probes every `probe_every`, gives up after `give_up_after`; at least two probes fit in
    /// between, or the longer is prolonged.
    pub const fn new(probe_every: Duration, give_up_after: Duration) -> Self {
        let two_probes = probe_every.saturating_mul(2);
        let longest = if give_up_after.as_nanos() < two_probes.as_nanos() {
            two_probes
        } else {
            give_up_after
        };
        Self {
            probe_every,
            give_up_after: longest,
        }
    }
}

/// [`Liveness`] in the stack's terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) probe_every: embassy_time::Duration,
    pub(crate) give_up_after: embassy_time::Duration,
}

impl Watch {
    fn new(liveness: Liveness) -> Self {
        Self {
            probe_every: ticks(liveness.probe_every),
            give_up_after: ticks(liveness.give_up_after),
        }
    }

    /// The stack counts from the arrival of a segment, this crate from the moment it was read,
    /// which is a little later; the difference must not turn a silence into a reset.
    pub(crate) fn surely_silent_after(self) -> embassy_time::Duration {
        let reading_lag = (self.give_up_after / 4).min(embassy_time::Duration::from_secs(1));
        self.give_up_after - reading_lag
    }
}

/// What the firmware may set.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Detection of vanished peers; `None` leaves it to the driver's heartbeat alone.
    pub liveness: Option<Liveness>,
    /// How long a name may take to look up.
    pub resolve_timeout: Duration,
    /// Connections may be led to a wished shard, by drawing source ports until one belongs to it
    /// ([`SocketPool::steering`] counts). Of no use behind NAT that changes ports.
    pub steering: bool,
    /// Reads the wall clock, where the firmware knows the time; without it, statements carry no
    /// client timestamps.
    pub wall_clock: Option<fn() -> Option<UnixMicros>>,
}

impl Default for Options {
    /// Probes every 10 s, gives up after 45 s, 5 s for a look-up, any shard, no wall clock.
    fn default() -> Self {
        Self {
            liveness: Some(Liveness::new(
                Duration::from_secs(10),
                Duration::from_secs(45),
            )),
            resolve_timeout: Duration::from_secs(5),
            steering: false,
            wall_clock: None,
        }
    }
}

/// embassy-net as a [`Transport`]. Cheap to copy; all copies share the pool.
#[derive(Clone, Copy)]
pub struct EmbassyTransport<'d> {
    network: Network<'d>,
    watch: Option<Watch>,
    resolve_timeout: embassy_time::Duration,
    steering: bool,
    wall_clock: Option<fn() -> Option<UnixMicros>>,
}

impl<'d> EmbassyTransport<'d> {
    /// A transport on the pool's stack. The seed is the one that the stack and the session take
    /// theirs from; here it keeps source ports from being the same after each boot.
    pub fn new<const N: usize>(
        pool: &'d SocketPool<'d, N>,
        seed: &mut Seed,
        options: Options,
    ) -> Self {
        let network = pool.network();
        network.skip_ports(seed.next_u64());
        Self {
            network,
            watch: options.liveness.map(Watch::new),
            resolve_timeout: ticks(options.resolve_timeout),
            steering: options.steering,
            wall_clock: options.wall_clock,
        }
    }

    fn look_up(&self, name: &Name, deadline: Instant) -> EmbassyResolving<'d> {
        let patience = time::after(self.resolve_timeout);
        EmbassyResolving::new(self.network, name, patience.min(deadline))
    }
}

impl<'d> Transport for EmbassyTransport<'d> {
    type Link = EmbassyLink<'d>;
    type Timer = EmbassyTimer;
    type Clock = EmbassyClock;
    type Connecting = EmbassyConnecting<'d>;
    type Resolving = EmbassyResolving<'d>;

    const RESOLVES: bool = cfg!(feature = "dns");

    fn resolve(&self, name: &Name) -> Self::Resolving {
        self.look_up(name, Instant::MAX)
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        let deadline = time::tick_at(target.deadline).unwrap_or(Instant::MAX);
        let wish = match target.steering {
            Steering::Shard { shard, of } if cfg!(feature = "shard-pools") => {
                Some(ShardWish { shard, of })
            }
            _ => None,
        };
        #[cfg(feature = "dns")]
        let mut resolving = None;
        let remote = match target.endpoint {
            Endpoint::Addr(remote) => Remote::new(remote),
            #[cfg(feature = "dns")]
            Endpoint::Name { host, port } => {
                resolving = Some((self.look_up(&host, deadline), port));
                Remote::NOBODY
            }
            // Unix sockets and relays do not exist here.
            _ => Remote::NOBODY,
        };
        let connecting = EmbassyConnecting::new(self.network, self.watch, wish, deadline, remote);
        #[cfg(feature = "dns")]
        return connecting.after(resolving);
        #[cfg(not(feature = "dns"))]
        connecting
    }

    fn steering(&self) -> SteeringKind {
        if self.steering && cfg!(feature = "shard-pools") {
            SteeringKind::BestEffortShard
        } else {
            SteeringKind::None
        }
    }

    fn timer(&self) -> EmbassyTimer {
        EmbassyTimer::default()
    }

    fn clock(&self) -> EmbassyClock {
        EmbassyClock::new(self.wall_clock)
    }
}

impl fmt::Debug for EmbassyTransport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassyTransport")
            .field("steering", &self.steering)
            .finish_non_exhaustive()
    }
}

/// embassy-time's durations are ticks; what it cannot count is as good as for ever.
fn ticks(duration: Duration) -> embassy_time::Duration {
    duration
        .as_secs()
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(u64::from(duration.subsec_micros())))
        .and_then(embassy_time::Duration::try_from_micros)
        .unwrap_or(embassy_time::Duration::MAX)
}
