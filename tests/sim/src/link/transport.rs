//! The driver's `Transport` over a world.

use core::future::Future;
use core::future::{Ready, ready};
use core::num::NonZeroU16;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::BytesMut;
use messina_core::drive::{
    Clock, Endpoint, Link, Name, Resolved, Steering, SteeringKind, Target, Timer, Transport,
};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::{Instant, UnixMicros};

use super::world::World;

/// Links into a world. Source ports can be chosen; names are those of proxies, and resolve to
/// nothing.
#[derive(Clone, Debug)]
pub struct SimTransport {
    world: World,
}

impl SimTransport {
    /// The transport of a world.
    pub fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
        }
    }
}

impl Transport for SimTransport {
    type Link = SimLink;
    type Timer = SimTimer;
    type Clock = SimClock;
    type Connecting = SimConnecting;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Err(LinkError::new(LinkErrorKind::Resolve)))
    }

    fn connect(&self, target: Target) -> SimConnecting {
        let now = self.world.now();
        let (at, verdict) = {
            let mut inner = self.world.lock();
            let (faults, at) = (inner.faults, now + inner.delay());
            let steered = matches!(target.steering, Steering::Port(_));
            if steered && inner.dice.hits(faults.port_in_use) {
                inner.counts.ports_in_use += 1;
                (now, Verdict::Fail(LinkError::PORT_IN_USE))
            } else if inner.dice.hits(faults.blackhole) {
                inner.counts.blackholes += 1;
                (u64::MAX, Verdict::Silence)
            } else if inner.dice.hits(faults.refuse) {
                inner.counts.refused += 1;
                (at, Verdict::Fail(LinkError::new(LinkErrorKind::Refused)))
            } else {
                let drawn = 49_152 + inner.dice.below(16_384);
                let port = match target.steering {
                    Steering::Port(port) => port.get(),
                    _ => u16::try_from(drawn).unwrap_or(49_152),
                };
                (at, Verdict::Open(port))
            }
        };
        SimConnecting {
            world: self.world.clone(),
            target,
            at,
            verdict,
            is_planned: false,
        }
    }

    fn steering(&self) -> SteeringKind {
        SteeringKind::ExactPort
    }

    fn timer(&self) -> SimTimer {
        SimTimer {
            world: self.world.clone(),
            at: None,
            planned_at: None,
        }
    }

    fn clock(&self) -> SimClock {
        SimClock {
            now: Arc::clone(&self.world.now),
        }
    }
}

/// A connect under way.
#[derive(Debug)]
pub struct SimConnecting {
    world: World,
    target: Target,
    at: u64,
    verdict: Verdict,
    is_planned: bool,
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Open(u16),
    Fail(LinkError),
    Silence,
}

impl Future for SimConnecting {
    type Output = Result<SimLink, LinkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let now = self.world.now();
        if now < self.at {
            if !self.is_planned && !matches!(self.verdict, Verdict::Silence) {
                self.is_planned = true;
                let (at, waker) = (self.at, cx.waker().clone());
                self.world.lock().plan_wake(at, waker);
            }
            return Poll::Pending;
        }
        let port = match self.verdict {
            Verdict::Fail(error) => return Poll::Ready(Err(error)),
            Verdict::Silence => return Poll::Pending,
            Verdict::Open(port) => port,
        };
        let opened = match &self.target.endpoint {
            Endpoint::Addr(addr) => self.world.lock().open(*addr, port, now),
            Endpoint::Name { host, port: to } => {
                self.world.lock().open_by_name(host, *to, port, now)
            }
            _ => Err(LinkError::new(LinkErrorKind::Unreachable)),
        };
        Poll::Ready(opened.map(|id| SimLink {
            world: self.world.clone(),
            id,
            port,
        }))
    }
}

/// An open link. Dropping it disconnects.
#[derive(Debug)]
pub struct SimLink {
    world: World,
    id: u64,
    port: u16,
}

impl Link for SimLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let spare = into.capacity() - into.len();
        assert!(spare > 0, "the caller guarantees room");
        let mut inner = self.world.lock();
        match inner.read(self.id, spare)? {
            Some(bytes) => {
                into.extend_from_slice(&bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            None => {
                inner.park_reader(self.id, cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        assert!(!bytes.is_empty(), "the caller never writes nothing");
        let now = self.world.now();
        let mut inner = self.world.lock();
        match inner.write(self.id, bytes, now)? {
            0 => {
                inner.park_writer(self.id, cx.waker().clone());
                Poll::Pending
            }
            len => Poll::Ready(Ok(len)),
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let now = self.world.now();
        self.world.lock().close(self.id, now);
        Poll::Ready(Ok(()))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        NonZeroU16::new(self.port)
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        let now = self.world.now();
        self.world.lock().close(self.id, now);
    }
}

/// A timer of the virtual clock.
#[derive(Debug)]
pub struct SimTimer {
    world: World,
    at: Option<u64>,
    /// When a wake-up is planned already.
    planned_at: Option<u64>,
}

impl Timer for SimTimer {
    fn arm(&mut self, at: Option<Instant>) {
        self.at = at
            .map(Instant::as_micros)
            .filter(|&at| at < Instant::FAR_FUTURE.as_micros());
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        if self.world.now() >= at {
            self.planned_at = None;
            return Poll::Ready(());
        }
        if self.planned_at != Some(at) {
            self.planned_at = Some(at);
            self.world.lock().plan_wake(at, cx.waker().clone());
        }
        Poll::Pending
    }
}

/// The virtual clock; its wall clock began in 2026.
#[derive(Clone, Debug)]
pub struct SimClock {
    now: Arc<AtomicU64>,
}

impl Clock for SimClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.now.load(Ordering::Relaxed))
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        let now = i64::try_from(self.now.load(Ordering::Relaxed)).ok()?;
        Some(UnixMicros(WALL_CLOCK_START + now))
    }
}

/// 2026-01-01T00:00:00Z.
const WALL_CLOCK_START: i64 = 1_767_225_600_000_000;
