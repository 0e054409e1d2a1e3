//! A token bucket: how many readings may be written now.

use core::time::Duration;

use messina_core::time::Instant;

/// Lets a number of readings through each second, and some at once after a pause.
///
/// A gateway that comes back with a full flash would otherwise take the whole link from what is
/// measured now, and a thousand of them the cluster.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// Time that one token takes to come, in microseconds.
    interval: u64,
    burst: u32,
    /// When the bucket was, or will be, empty.
    empty_at: u64,
}

impl TokenBucket {
    /// `per_second` readings in the long run, `burst` at once; a full bucket. Zeros are taken as one.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            interval: (1_000_000 / u64::from(per_second.max(1))).max(1),
            burst: burst.max(1),
            empty_at: 0,
        }
    }

    /// How many may pass now.
    pub fn available(&self, now: Instant) -> u32 {
        let tokens = now.as_micros().saturating_sub(self.empty_at) / self.interval;
        u32::try_from(tokens).map_or(self.burst, |tokens| tokens.min(self.burst))
    }

    /// When `count` may pass, or as many as ever may at once.
    pub fn next_at(&self, count: u32) -> Instant {
        let needed = u64::from(count.min(self.burst));
        Instant::from_micros(
            self.empty_at
                .saturating_add(needed.saturating_mul(self.interval)),
        )
    }

    /// They pass. More than are there are taken from the future.
    pub fn take(&mut self, now: Instant, count: u32) {
        let full_at = now
            .as_micros()
            .saturating_sub(u64::from(self.burst).saturating_mul(self.interval));
        let taken = u64::from(count).saturating_mul(self.interval);
        self.empty_at = self.empty_at.max(full_at).saturating_add(taken);
    }

    /// The time in which one token comes.
    pub const fn interval(&self) -> Duration {
        Duration::from_micros(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let at = |millis: u64| Instant::from_micros(5_000_000 + millis * 1000);
        let mut bucket = TokenBucket::new(10, 4);
        assert_eq!(bucket.available(at(0)), 4);
        bucket.take(at(0), 4);
        assert_eq!(bucket.available(at(99)), 0);
        assert_eq!(bucket.next_at(1), at(100));
        assert_eq!(bucket.available(at(100)), 1);
        assert_eq!(bucket.available(at(399)), 3);
        assert_eq!(bucket.available(at(60_000)), 4, "no more than the burst");
        bucket.take(at(60_000), 6);
        assert_eq!(bucket.next_at(1), at(60_300), "taken from the future");
        assert_eq!(bucket.next_at(99), at(60_600));
    }
}
