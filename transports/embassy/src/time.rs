//! Timer and clock on embassy-time. Core's instants and embassy's count from the same start, in
//! microseconds here and in the driver's ticks there.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};

use embassy_time::Timer as EmbassySleep;
use messina_core::drive::{Clock, Timer};
use messina_core::time::{Instant, UnixMicros};

/// Now, in core's terms.
pub(crate) fn now() -> Instant {
    Instant::from_micros(embassy_time::Instant::now().as_micros())
}

/// The first tick that is not before `at`; `None` where embassy-time cannot count that far.
pub(crate) fn tick_at(at: Instant) -> Option<embassy_time::Instant> {
    let tick = embassy_time::Instant::try_from_micros(at.as_micros())?;
    if tick.as_micros() < at.as_micros() {
        let next = tick.as_ticks().checked_add(1)?;
        return Some(embassy_time::Instant::from_ticks(next));
    }
    Some(tick)
}

/// The tick that is so far from now; the last one that can be counted, in place of the library's panic.
#[inline(never)]
pub(crate) fn after(duration: embassy_time::Duration) -> embassy_time::Instant {
    embassy_time::Instant::now().saturating_add(duration)
}

/// Ready at that tick.
pub(crate) fn poll_at(at: embassy_time::Instant, cx: &mut Context<'_>) -> Poll<()> {
    if embassy_time::Instant::now() >= at {
        return Poll::Ready(());
    }
    wake_at(at, cx);
    Poll::Pending
}

/// Leaves the waker in the timer queue, to be woken at that tick or, if it has come, at once.
pub(crate) fn wake_at(at: embassy_time::Instant, cx: &mut Context<'_>) {
    // Its first poll is never ready: it fills the queue, and that is all that is wanted of it.
    let _ = pin!(EmbassySleep::at(at)).poll(cx);
}

/// A timer that is asked anew at each poll and therefore costs nothing to re-arm.
#[derive(Debug, Default)]
pub struct EmbassyTimer {
    at: Option<Instant>,
}

impl Timer for EmbassyTimer {
    fn arm(&mut self, at: Option<Instant>) {
        self.at = at;
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        match tick_at(at) {
            Some(tick) => poll_at(tick, cx),
            None => Poll::Pending,
        }
    }
}

/// embassy-time's clock, and the wall clock if the firmware has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyClock {
    wall_clock: Option<fn() -> Option<UnixMicros>>,
}

impl EmbassyClock {
    pub(crate) const fn new(wall_clock: Option<fn() -> Option<UnixMicros>>) -> Self {
        Self { wall_clock }
    }
}

impl Clock for EmbassyClock {
    fn now(&self) -> Instant {
        now()
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        self.wall_clock.and_then(|read| read())
    }
}
