//! The clock that stands still between two calls of the shell, and the deadlines it is told.
//!
//! Timers are few (one for each connection, one for the control plane), so the next deadline is
//! found by looking at all of them.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};

use messina_core::drive::{self, Clock};
use messina_core::time::{Instant, UnixMicros};

use crate::slab::Slab;

/// What the shell said last. Atomics only because core wants a clock that is `Send + Sync`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShellClock(Arc<Ticks>);

#[derive(Debug, Default)]
struct Ticks {
    now: AtomicU64,
    wall: AtomicI64,
}

impl Clock for ShellClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.now.load(Relaxed))
    }

    fn wall_clock(&self) -> Option<UnixMicros> {
        let wall = self.0.wall.load(Relaxed);
        (wall > 0).then_some(UnixMicros(wall))
    }
}

/// Clock and timers of one instance.
#[derive(Debug)]
pub(crate) struct Time {
    clock: ShellClock,
    timers: RefCell<Slab<Armed>>,
}

#[derive(Debug)]
struct Armed {
    at: Instant,
    /// Whoever saw that it has not fired yet.
    waker: Option<Waker>,
}

impl Time {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            clock: ShellClock::default(),
            timers: RefCell::new(Slab::new()),
        })
    }

    pub(crate) fn clock(&self) -> ShellClock {
        self.clock.clone()
    }

    /// Moves the clock and wakes whoever waited for that. Both are milliseconds; what is not a
    /// number counts as 0, and the clock never goes back.
    pub(crate) fn tick(&self, now: f64, wall: f64) {
        let ticks = &self.clock.0;
        ticks.now.fetch_max((now * 1000.0) as u64, Relaxed);
        ticks.wall.store((wall * 1000.0) as i64, Relaxed);
        let now = self.clock.now();
        for (_, timer) in self.timers.borrow_mut().iter_mut() {
            if timer.at <= now
                && let Some(waker) = timer.waker.take()
            {
                waker.wake();
            }
        }
    }

    /// When to tick next at the latest, in milliseconds; infinity if nobody waits.
    pub(crate) fn next_deadline(&self) -> f64 {
        let mut timers = self.timers.borrow_mut();
        let waited_for = timers.iter_mut().filter(|(_, timer)| timer.waker.is_some());
        match waited_for.map(|(_, timer)| timer.at).min() {
            Some(at) if at < Instant::FAR_FUTURE => at.as_micros() as f64 / 1000.0,
            _ => f64::INFINITY,
        }
    }

    pub(crate) fn timer(self: &Rc<Self>) -> Timer {
        let armed = Armed {
            at: Instant::FAR_FUTURE,
            waker: None,
        };
        // A timer without a number never fires: links are bounded far below that many.
        let number = self.timers.borrow_mut().insert(armed).unwrap_or(u32::MAX);
        Timer {
            time: Rc::clone(self),
            number,
        }
    }
}

/// One timer, re-armed at will.
#[derive(Debug)]
pub(crate) struct Timer {
    time: Rc<Time>,
    number: u32,
}

impl drive::Timer for Timer {
    fn arm(&mut self, at: Option<Instant>) {
        if let Some(timer) = self.time.timers.borrow_mut().get_mut(self.number) {
            timer.at = at.unwrap_or(Instant::FAR_FUTURE);
        }
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.time.clock.now();
        match self.time.timers.borrow_mut().get_mut(self.number) {
            Some(timer) if timer.at <= now => Poll::Ready(()),
            Some(timer) => {
                timer.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.time.timers.borrow_mut().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use drive::Timer as _;

    #[test]
    fn fires_at_its_time_and_stays_fired() {
        let time = Time::new();
        time.tick(10.0, 0.0);
        let mut timer = time.timer();
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(timer.poll_fired(cx).is_pending());
        assert_eq!(time.next_deadline(), f64::INFINITY);
        timer.arm(Some(Instant::from_micros(12_500)));
        assert_eq!(time.next_deadline(), 12.5);
        time.tick(12.4, 0.0);
        assert!(timer.poll_fired(cx).is_pending());
        time.tick(12.5, 0.0);
        assert!(timer.poll_fired(cx).is_ready() && timer.poll_fired(cx).is_ready());
        assert_eq!(time.next_deadline(), f64::INFINITY);
        timer.arm(None);
        assert!(timer.poll_fired(cx).is_pending());
    }

    #[test]
    fn the_clock_never_goes_back() {
        let time = Time::new();
        let clock = time.clock();
        for (said, expected) in [
            (5.0, 5000),
            (4.0, 5000),
            (f64::NAN, 5000),
            (-1.0, 5000),
            (6.5, 6500),
        ] {
            time.tick(said, 0.0);
            assert_eq!(
                clock.now(),
                Instant::ZERO.saturating_add(Duration::from_micros(expected))
            );
        }
        assert_eq!(clock.wall_clock(), None);
        time.tick(7.0, 1_700_000_000_000.0);
        assert_eq!(clock.wall_clock(), Some(UnixMicros(1_700_000_000_000_000)));
    }
}
