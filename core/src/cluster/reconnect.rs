//! When a node is tried again: exponential back-off with jitter.
//!
//! Pure numbers, no timers. The delay doubles from the base to the cap and stays there, whatever
//! the number of failures; half of it is random, so that pools that failed together do not come
//! back together. Success is counted only after a period of use: a node that accepts connections
//! and drops them at once is a failing node.

use core::time::Duration;

use crate::rng::SmallRng;
use crate::time::Instant;

/// The back-off of one node or one role.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
    failed_at: Option<Instant>,
    /// Since when it works again; cleared by the next failure.
    works_since: Option<Instant>,
    retry_at: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            failures: 0,
            failed_at: None,
            works_since: None,
            retry_at: None,
        }
    }

    /// Something begun at `began_at` failed. What was begun before the last failure tells nothing
    /// new: when a node goes down all of its connections fail, and that is one failure.
    pub(super) fn failed(&mut self, began_at: Instant, now: Instant, rng: &mut SmallRng) {
        if self.failed_at.is_some_and(|failed_at| began_at < failed_at) {
            return;
        }
        let has_proven = self
            .works_since
            .is_some_and(|since| now.saturating_since(since) >= PROVEN_AFTER);
        if has_proven {
            self.failures = 0;
        }
        let delay = delay(self.base, self.max, self.failures, rng);
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
        self.works_since = None;
        self.retry_at = Some(now.saturating_add(delay));
    }

    /// A connection opened. Counts as success only if it lasts.
    pub(super) fn opened(&mut self, now: Instant) {
        self.works_since.get_or_insert(now);
    }

    /// There is reason to believe that the next attempt succeeds: it comes within one base delay.
    pub(super) fn hurry(&mut self, now: Instant, rng: &mut SmallRng) {
        self.failures = 0;
        if self.retry_at.is_some() {
            self.retry_at = Some(now.saturating_add(delay(self.base, self.max, 0, rng)));
        }
    }

    /// Whether an attempt may be made.
    pub(super) fn may_try(&self, now: Instant) -> bool {
        self.retry_at.is_none_or(|at| at <= now)
    }

    /// When the next attempt may be made; `None` if nothing failed yet.
    pub(super) const fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

/// The pause after so many failures before: from half of `base * 2^failures` (at most `max`) to
/// the whole of it.
fn delay(base: Duration, max: Duration, failures: u32, rng: &mut SmallRng) -> Duration {
    let factor = 1_u64 << failures.min(EXPONENT_MAX);
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let whole = micros(base).saturating_mul(factor).min(micros(max));
    let half = whole / 2;
    let jitter = rng.below((whole - half).saturating_add(1));
    Duration::from_micros(half.saturating_add(jitter))
}

/// Far above any sensible ratio of cap and base, far below the width of the number.
const EXPONENT_MAX: u32 = 40;

/// How long a connection must last to count as a success.
const PROVEN_AFTER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const BASE: Duration = Duration::from_millis(50);
    const MAX: Duration = Duration::from_secs(10);

    #[test]
    fn delays_rise_to_the_cap_and_stay_for_ten_thousand_failures() {
        let mut rng = SmallRng::from_seed(1);
        let mut backoff = Backoff::new(BASE, MAX);
        let mut now = Instant::ZERO;
        for failure in 0..10_000_u32 {
            backoff.failed(now, now, &mut rng);
            let pause = backoff.retry_at().unwrap().saturating_since(now);
            let whole = BASE.saturating_mul(1 << failure.min(20)).min(MAX);
            assert!(pause <= whole && pause >= whole / 2, "{failure}: {pause:?}");
            now = backoff.retry_at().unwrap();
        }
    }

    #[test]
    fn the_extremes_of_settings_do_not_overflow() {
        let mut rng = SmallRng::from_seed(1);
        for base in [Duration::from_micros(1), BASE, Duration::MAX] {
            for failures in [0, 1, 31, 32, 63, 64, 65, u32::MAX] {
                assert!(delay(base, Duration::MAX, failures, &mut rng) >= base.min(MAX) / 2);
            }
        }
    }

    #[test]
    fn pools_that_failed_together_spread() {
        let mut pauses: Vec<Duration> = (0..100)
            .map(|seed| {
                let mut rng = SmallRng::from_seed(seed);
                delay(BASE, MAX, 20, &mut rng)
            })
            .collect();
        pauses.sort_unstable();
        assert!(pauses[99] - pauses[0] > MAX / 3);
        pauses.dedup();
        assert!(pauses.len() > 95);
    }

    #[test]
    fn success_counts_only_after_a_period_of_use() {
        let mut rng = SmallRng::from_seed(3);
        let mut backoff = Backoff::new(BASE, MAX);
        let mut now = Instant::ZERO;
        for _ in 0..30 {
            backoff.failed(now, now, &mut rng);
            now = backoff.retry_at().unwrap();
            backoff.opened(now);
        }
        assert_eq!(backoff.failures, 30);
        let later = now.saturating_add(PROVEN_AFTER);
        backoff.failed(now, later, &mut rng);
        assert_eq!(backoff.failures, 1);
    }

    #[test]
    fn failures_of_what_was_begun_before_the_last_one_are_one_failure() {
        let mut rng = SmallRng::from_seed(3);
        let mut backoff = Backoff::new(BASE, MAX);
        let at = Instant::from_micros;
        for now in 10..20 {
            backoff.failed(at(1), at(now), &mut rng);
        }
        assert_eq!(backoff.failures, 1);
        backoff.failed(at(30), at(40), &mut rng);
        assert_eq!(backoff.failures, 2);
    }
}
