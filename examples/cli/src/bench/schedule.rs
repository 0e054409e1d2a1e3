//! When requests begin, and when there are no more.
//!
//! Closed: whoever is free takes the next turn at once. Open, with a rate: turn `i` is due at
//! `start + i / rate` and handed out then by a thread of its own, because timers of the runtime
//! are too coarse; whoever takes a turn late is told when it was due.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::Semaphore;

use super::BenchArguments;
use crate::failure::Failure;

/// Hands out turns.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Turns in all.
    total: u64,
    /// No turn begins later.
    time: Option<Duration>,
    rate: Option<u32>,
    /// Those who take turns.
    takers: u16,
    next: AtomicU64,
    begun: AtomicU64,
    is_stopped: AtomicBool,
    started: OnceLock<Instant>,
    /// One permit for each turn that is due; used with a rate only.
    due: Semaphore,
}

/// Leave to make a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Counted from 0.
    pub(super) index: u64,
    /// When it is due.
    pub(super) due: Instant,
}

/// Parts that progress is shown in.
pub(super) const STEPS: u64 = 1000;

/// The least time between two looks at what is due, and the most.
const NAP: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(20));

impl Schedule {
    pub(super) fn new(arguments: &BenchArguments) -> Self {
        let seconds = arguments.seconds();
        let at_rate = |seconds: u32| match arguments.rate {
            Some(rate) => u64::from(rate) * u64::from(seconds),
            None => u64::MAX,
        };
        Self {
            total: seconds.map_or_else(|| arguments.requests.unwrap_or(0), at_rate),
            time: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            rate: arguments.rate,
            takers: arguments.concurrency,
            next: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            started: OnceLock::new(),
            due: Semaphore::new(0),
        }
    }

    /// The clock runs from now on.
    pub(super) fn start(self: &Arc<Self>) -> Result<(), Failure> {
        self.started.get_or_init(Instant::now);
        if let Some(rate) = self.rate {
            let schedule = Arc::clone(self);
            std::thread::Builder::new()
                .name("pace".to_owned())
                .spawn(move || schedule.hand_out(rate))
                .map_err(|error| Failure::io("cannot start a thread", &error))?;
        }
        Ok(())
    }

    /// Waits for the next turn. `None`: there are no more.
    pub(super) async fn turn(&self) -> Option<Turn> {
        if self.rate.is_some() {
            self.due.acquire().await.ok()?.forget();
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let (now, started) = (Instant::now(), *self.started.get()?);
        let is_late = self.time.is_some_and(|time| now - started >= time);
        if index >= self.total || is_late || self.is_stopped() {
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let due = match self.rate {
            Some(rate) => started + due_after(index, rate),
            None => now,
        };
        Some(Turn { index, due })
    }

    /// No turn begins any more.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Turns that were due but that nobody was free to take, if there is a rate.
    pub(super) fn not_begun(&self) -> Option<u64> {
        let due = self.due_until(self.elapsed(), self.rate?);
        Some(due.saturating_sub(self.begun.load(Ordering::Relaxed)))
    }

    /// How far it has come, of [`STEPS`].
    pub(super) fn steps_done(&self, requests: u64) -> u64 {
        let (done, all) = match self.time {
            Some(time) => (self.elapsed().as_micros(), time.as_micros()),
            None => (requests.into(), self.total.into()),
        };
        let steps = done.saturating_mul(STEPS.into()) / all.max(1);
        u64::try_from(steps).map_or(STEPS, |steps| steps.min(STEPS))
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Turns that are due when so much time has passed.
    fn due_until(&self, elapsed: Duration, rate: u32) -> u64 {
        let passed = elapsed.as_nanos().saturating_mul(rate.into()) / NANOS;
        let due = u64::try_from(passed).map_or(u64::MAX, |passed| passed.saturating_add(1));
        due.min(self.total)
    }

    /// Gives a permit for each turn as it becomes due; at the end one to each taker, who then sees
    /// that there are no more turns.
    fn hand_out(&self, rate: u32) {
        let mut given = 0;
        loop {
            let elapsed = self.elapsed();
            let due = self.due_until(elapsed, rate);
            self.due
                .add_permits(usize::try_from(due - given).unwrap_or(0));
            given = due;
            let is_over = self.time.is_some_and(|time| elapsed >= time);
            if is_over || given >= self.total || self.is_stopped() {
                break;
            }
            let next = due_after(given, rate).saturating_sub(elapsed);
            std::thread::sleep(next.clamp(NAP.0, NAP.1));
        }
        self.due.add_permits(usize::from(self.takers));
    }
}

/// When a turn is due after the start.
fn due_after(index: u64, rate: u32) -> Duration {
    let nanos = u128::from(index) * NANOS / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

const NANOS: u128 = 1_000_000_000;
