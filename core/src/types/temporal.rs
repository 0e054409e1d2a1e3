//! Dates, times, timestamps and durations, as plain numbers.
//!
//! Calendars are left to libraries made for them.

/// A day: days since 1970-01-01, which may be negative.
///
/// On the wire the epoch stands in the middle of an unsigned number, so every `i32` is a date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CqlDate {
    /// Days since 1970-01-01.
    pub days_since_epoch: i32,
}

impl CqlDate {
    const SIGN: u32 = 0x8000_0000;

    /// From the unsigned form of the wire.
    #[must_use]
    pub const fn from_wire(days: u32) -> Self {
        Self {
            days_since_epoch: (days ^ Self::SIGN).cast_signed(),
        }
    }

    /// The unsigned form of the wire.
    #[must_use]
    pub const fn to_wire(self) -> u32 {
        self.days_since_epoch.cast_unsigned() ^ Self::SIGN
    }
}

/// A time of day: nanoseconds since midnight.
///
/// Servers take only what is below one day; any number that arrives is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CqlTime {
    /// Nanoseconds since midnight.
    pub nanoseconds: i64,
}

/// A point in time: milliseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CqlTimestamp {
    /// Milliseconds since the epoch.
    pub milliseconds: i64,
}

/// A duration. Months and days have no fixed length, so the three parts stay apart.
///
/// Servers want all parts of one sign; any combination that arrives is kept, and one that is bound
/// goes out unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CqlDuration {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_stands_in_the_middle_of_the_dates() {
        for (wire, days) in [
            (0x8000_0000, 0),
            (0x8000_0001, 1),
            (0x7fff_ffff, -1),
            (0, i32::MIN),
            (u32::MAX, i32::MAX),
        ] {
            assert_eq!(CqlDate::from_wire(wire).days_since_epoch, days);
            assert_eq!(
                CqlDate {
                    days_since_epoch: days
                }
                .to_wire(),
                wire
            );
        }
    }
}
