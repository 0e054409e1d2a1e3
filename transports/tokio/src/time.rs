//! tokio's timer and the clocks of the operating system.
//!
//! Time is tokio's own, so a runtime with paused time pauses the driver too.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use messina_core::drive::{Clock, Timer};
use messina_core::time::{Instant, UnixMicros};
use tokio::time::{Sleep, sleep_until};

/// Microseconds since the transport was made.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
}

impl TokioClock {
    pub(crate) fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }

    pub(crate) fn at(self, instant: Instant) -> tokio::time::Instant {
        let after = Duration::from_micros(instant.as_micros()).min(FAR);
        self.start + after
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        Instant::ZERO.saturating_add(self.start.elapsed())
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok().map(UnixMicros)
    }
}

/// A timer that is armed again and again; the runtime's entry is made at the first use.
///
/// The runtime counts in milliseconds and rounds up, so a time that has come already is told
/// without asking it.
#[derive(Debug)]
pub struct TokioTimer {
    clock: TokioClock,
    sleep: Option<Pin<Box<Sleep>>>,
    at: Option<Instant>,
}

impl TokioTimer {
    pub(crate) const fn new(clock: TokioClock) -> Self {
        Self {
            clock,
            sleep: None,
            at: None,
        }
    }
}

impl Timer for TokioTimer {
    fn arm(&mut self, at: Option<Instant>) {
        self.at = at;
        let Some(at) = at else { return };
        let deadline = self.clock.at(at);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(deadline),
            None => self.sleep = Some(Box::pin(sleep_until(deadline))),
        }
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(at), Some(sleep)) = (self.at, &mut self.sleep) else {
            return Poll::Pending;
        };
        if self.clock.now() >= at || sleep.is_elapsed() {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx)
    }
}

/// Later than anybody waits; keeps additions within what the clock can hold.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
