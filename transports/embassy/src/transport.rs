//! The platform as core sees it: connects and look-ups as boxed futures (embassy-net's are
//! `async fn` without a name), and what the firmware may set.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::time::Duration;

use messina_core::drive::{Endpoint, Name, Resolved, Steering, SteeringKind, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::UnixMicros;

use crate::link::EmbassyLink;
use crate::net::{Network, ShardWish, SocketPool};
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

    /// The stack counts from the arrival of a segment, this crate from the moment it was read,
    /// which is a little later; the difference must not turn a silence into a reset.
    pub(crate) fn surely_silent_after(self) -> Duration {
        let reading_lag = (self.give_up_after / 4).min(Duration::from_secs(1));
        self.give_up_after.saturating_sub(reading_lag)
    }

    pub(crate) fn in_ticks(self) -> (embassy_time::Duration, embassy_time::Duration) {
        (ticks(self.probe_every), ticks(self.give_up_after))
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
    /// Connections may be led to a wished shard, by using up the port numbers before the next one
    /// that belongs to it. While it connects, this takes one more socket of the stack's resources.
    #[cfg(feature = "steering")]
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
            #[cfg(feature = "steering")]
            steering: false,
            wall_clock: None,
        }
    }
}

/// embassy-net as a [`Transport`]. Cheap to copy; all copies share the pool.
#[derive(Clone, Copy)]
pub struct EmbassyTransport<'d> {
    network: Network<'d>,
    options: Options,
}

impl<'d> EmbassyTransport<'d> {
    /// A transport on the pool's stack.
    pub fn new<const N: usize>(pool: &'d SocketPool<'d, N>, options: Options) -> Self {
        Self {
            network: pool.network(),
            options,
        }
    }
}

impl<'d> Transport for EmbassyTransport<'d> {
    type Link = EmbassyLink<'d>;
    type Timer = EmbassyTimer;
    type Clock = EmbassyClock;
    type Connecting = Pin<Box<dyn Future<Output = Result<EmbassyLink<'d>, LinkError>> + 'd>>;
    type Resolving = Pin<Box<dyn Future<Output = Result<Resolved, LinkError>> + 'd>>;

    fn resolve(&self, name: &Name) -> Self::Resolving {
        let (network, name) = (self.network, name.clone());
        let patience = ticks(self.options.resolve_timeout);
        Box::pin(async move { network.resolve(&name, patience).await.map(Resolved::Addrs) })
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        let Self { network, options } = *self;
        Box::pin(async move {
            let patience = ticks(options.resolve_timeout);
            let remote = match target.endpoint {
                Endpoint::Addr(addr) => addr,
                Endpoint::Name { host, port } => {
                    let addrs = network.resolve(&host, patience).await?;
                    let unresolved = LinkError::new(LinkErrorKind::Resolve);
                    SocketAddr::new(addrs.first().copied().ok_or(unresolved)?, port)
                }
                // Unix sockets and relays do not exist here.
                _ => return Err(LinkError::new(LinkErrorKind::Unreachable)),
            };
            let deadline = time::tick_at(target.deadline).unwrap_or(embassy_time::Instant::MAX);
            let wish = match target.steering {
                Steering::Shard { shard, of } => Some(ShardWish { shard, of }),
                _ => None,
            };
            let socket = network.connect(remote, wish, deadline).await?;
            Ok(EmbassyLink::new(network, socket, options.liveness))
        })
    }

    fn steering(&self) -> SteeringKind {
        #[cfg(feature = "steering")]
        if self.options.steering {
            return SteeringKind::BestEffortShard;
        }
        SteeringKind::None
    }

    fn timer(&self) -> EmbassyTimer {
        EmbassyTimer::default()
    }

    fn clock(&self) -> EmbassyClock {
        EmbassyClock::new(self.options.wall_clock)
    }
}

impl fmt::Debug for EmbassyTransport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassyTransport")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// embassy-time's durations are ticks; what it cannot count is as good as for ever.
fn ticks(duration: Duration) -> embassy_time::Duration {
    u64::try_from(duration.as_micros())
        .ok()
        .and_then(embassy_time::Duration::try_from_micros)
        .unwrap_or(embassy_time::Duration::MAX)
}
