//! Time as plain numbers. State machines never read a clock: they are told what time it is.
//!
//! [`Instant`] counts microseconds since an origin that only the transport knows, so a test may
//! start at zero and a microcontroller may use its own timer. No operation here can panic.

use core::fmt;
use core::time::Duration;

/// A point on the transport's monotonic clock, in microseconds since that clock's own start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The clock's own start.
    pub const ZERO: Self = Self(0);
    /// Later than every deadline: "never".
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `micros` microseconds after the clock's start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the clock's start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This instant moved into the future; saturates at [`Instant::FAR_FUTURE`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// This instant moved into the past; saturates at [`Instant::ZERO`].
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// Time passed since `earlier`, zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// Whole microseconds of a duration, saturating. Wide multiplication is long on small targets.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(crate) const fn micros(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000)
        .saturating_add(duration.subsec_micros() as u64)
}

/// Wall-clock time in microseconds since the Unix epoch; only client timestamps use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMicros(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_saturate() {
        assert_eq!(
            Instant::from_micros(5)
                .saturating_add(Duration::from_millis(1))
                .as_micros(),
            1005
        );
        assert_eq!(
            Instant::ZERO.saturating_add(Duration::MAX),
            Instant::FAR_FUTURE
        );
        assert_eq!(
            Instant::FAR_FUTURE.saturating_add(Duration::from_secs(1)),
            Instant::FAR_FUTURE
        );
    }

    #[test]
    fn differences_never_go_below_zero() {
        let (early, late) = (Instant::from_micros(10), Instant::from_micros(25));
        assert_eq!(late.saturating_since(early), Duration::from_micros(15));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }
}
