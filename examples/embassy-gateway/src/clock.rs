//! Timestamps: given once, when a reading is taken, and never changed.
//!
//! A board often learns the time of day long after it began to measure. Until then readings are
//! stamped with the time since the boot; once the clock is known they are all dated by the same
//! difference, which the flash remembers beside them, so that a repetition after a reset dates them
//! alike. [`Certainty`] goes into the table, for a reader to judge by.

use messina_core::time::{Instant, UnixMicros};

/// How the time of a reading is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Certainty {
    /// The clock was read when the reading was taken.
    Read = 0,
    /// Counted back: the clock became known later in the same boot.
    Dated = 1,
    /// The clock had run back. The time is after those of all readings before, nothing more.
    Held = 2,
    /// That boot never knew the time. This is the latest that it can have been.
    Latest = 3,
}

impl Certainty {
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Read,
            1 => Self::Dated,
            2 => Self::Held,
            3 => Self::Latest,
            _ => return None,
        })
    }

    /// The number that stands in flash and in the table.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// When a reading was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stamp {
    /// Microseconds since 1970, final.
    Wall {
        /// Microseconds since 1970.
        micros: i64,
        /// How they are known.
        certainty: Certainty,
    },
    /// The clock was not known. Microseconds since the boot.
    Uptime {
        /// Microseconds since the boot.
        micros: u64,
    },
}

/// Dates the readings of one boot that were taken before its clock was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dating {
    /// When the boot began, in microseconds since 1970.
    pub start: i64,
    /// How that is known.
    pub certainty: Certainty,
}

impl Dating {
    /// The final time of a reading that was taken so long after the boot.
    pub(crate) fn date(self, uptime_micros: u64) -> (i64, Certainty) {
        let uptime = i64::try_from(uptime_micros).unwrap_or(i64::MAX);
        (self.start.saturating_add(uptime), self.certainty)
    }
}

/// Gives stamps, each later than the one before.
#[derive(Debug)]
pub(crate) struct Timekeeper {
    /// Wall clock minus uptime.
    offset: Option<i64>,
    dating: Option<Dating>,
    uptime_last: u64,
    wall_last: i64,
}

impl Timekeeper {
    pub(crate) const fn new() -> Self {
        Self {
            offset: None,
            dating: None,
            uptime_last: 0,
            wall_last: i64::MIN,
        }
    }

    /// No stamp from now on is at or before `micros`, the newest that an earlier boot has given.
    pub(crate) fn begin_after(&mut self, micros: i64) {
        self.wall_last = self.wall_last.max(micros);
    }

    pub(crate) fn stamp(&mut self, now: Instant) -> Stamp {
        let uptime = now.as_micros().max(self.uptime_last.saturating_add(1));
        self.uptime_last = uptime;
        let Some(offset) = self.offset else {
            return Stamp::Uptime { micros: uptime };
        };
        let wall = signed(now).saturating_add(offset);
        let is_back = self.wall_last.saturating_sub(wall) > HELD_AFTER_MICROS;
        self.wall_last = wall.max(self.wall_last.saturating_add(1));
        Stamp::Wall {
            micros: self.wall_last,
            certainty: match is_back {
                true => Certainty::Held,
                false => Certainty::Read,
            },
        }
    }

    /// The clock is known, or is known better. How the readings before are dated is settled by the
    /// first call.
    pub(crate) fn set_wall_clock(&mut self, now: Instant, wall: UnixMicros) -> Dating {
        let offset = wall.0.saturating_sub(signed(now));
        self.offset = Some(offset);
        if let Some(dating) = self.dating {
            return dating;
        }
        // A clock that once was wrong by years must not hold up all that follow it.
        if self.wall_last > wall.0.saturating_add(BACK_MAX_MICROS) {
            self.wall_last = i64::MIN;
        }
        let dating = if offset > self.wall_last {
            Dating {
                start: offset,
                certainty: Certainty::Dated,
            }
        } else {
            Dating {
                start: self.wall_last,
                certainty: Certainty::Held,
            }
        };
        self.wall_last = dating.date(self.uptime_last).0;
        *self.dating.insert(dating)
    }

    pub(crate) const fn dating(&self) -> Option<Dating> {
        self.dating
    }

    pub(crate) fn wall_clock(&self, now: Instant) -> Option<UnixMicros> {
        let offset = self.offset?;
        Some(UnixMicros(signed(now).saturating_add(offset)))
    }
}

fn signed(now: Instant) -> i64 {
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// A clock that is set by less is not said to have run back.
const HELD_AFTER_MICROS: i64 = 1_000_000;

/// An earlier boot's stamps that are further ahead of the clock than this are taken for wrong.
const BACK_MAX_MICROS: i64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_2026: i64 = 1_767_225_600_000_000;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn wall(micros: i64, certainty: Certainty) -> Stamp {
        Stamp::Wall { micros, certainty }
    }

    #[test]
    fn stamps_rise_before_and_after_the_clock_is_known() {
        let mut keeper = Timekeeper::new();
        assert_eq!(keeper.stamp(at(5)), Stamp::Uptime { micros: 5 });
        assert_eq!(keeper.stamp(at(5)), Stamp::Uptime { micros: 6 });
        let dating = keeper.set_wall_clock(at(5), UnixMicros(YEAR_2026 + 5));
        assert_eq!(dating.date(6), (YEAR_2026 + 6, Certainty::Dated));
        // The reading dated to the same microsecond came first.
        assert_eq!(keeper.stamp(at(6)), wall(YEAR_2026 + 7, Certainty::Read));
    }

    #[test]
    fn a_clock_that_runs_back_holds_the_stamps_and_says_so() {
        let mut keeper = Timekeeper::new();
        keeper.set_wall_clock(at(0), UnixMicros(YEAR_2026));
        assert_eq!(keeper.stamp(at(10)), wall(YEAR_2026 + 10, Certainty::Read));
        let dating = keeper.set_wall_clock(at(20), UnixMicros(YEAR_2026 - 5_000_000));
        assert_eq!(dating.start, YEAR_2026, "settled by the first call");
        assert_eq!(keeper.stamp(at(30)), wall(YEAR_2026 + 11, Certainty::Held));
    }

    #[test]
    fn an_earlier_boot_is_followed_unless_its_clock_was_far_off() {
        let mut keeper = Timekeeper::new();
        keeper.begin_after(YEAR_2026 + 60_000_000);
        let dating = keeper.set_wall_clock(at(0), UnixMicros(YEAR_2026));
        assert_eq!(dating.start, YEAR_2026 + 60_000_000);
        assert_eq!(dating.certainty, Certainty::Held);

        let mut keeper = Timekeeper::new();
        keeper.begin_after(i64::MAX);
        let dating = keeper.set_wall_clock(at(0), UnixMicros(YEAR_2026));
        assert_eq!(dating.start, YEAR_2026);
        assert_eq!(dating.certainty, Certainty::Dated);
    }
}
