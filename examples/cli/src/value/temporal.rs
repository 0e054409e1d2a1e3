//! Dates, times, timestamps and durations as text.
//!
//! The calendar is the proleptic Gregorian one with a year 0, as in ISO 8601; years outside
//! 0 to 9999 carry a sign. Every value that can arrive has a text that reads back as the same.

use messina_core::types::{CqlDate, CqlDuration, CqlTime, CqlTimestamp};

const DAY_MS: i64 = 86_400_000;
const DAY_NS: i64 = 86_400_000_000_000;

pub(super) fn date_text(date: CqlDate) -> String {
    day_text(i64::from(date.days_since_epoch))
}

pub(super) fn parse_date(text: &str) -> Option<CqlDate> {
    let days_since_epoch = i32::try_from(parse_day(text)?).ok()?;
    Some(CqlDate { days_since_epoch })
}

/// `None` for what is no time of day; servers do not send such.
pub(super) fn time_text(time: CqlTime) -> Option<String> {
    let ns = time.nanoseconds;
    if !(0..DAY_NS).contains(&ns) {
        return None;
    }
    let seconds = ns / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = ns % 1_000_000_000;
    Some(format!("{hour:02}:{minute:02}:{second:02}.{fraction:09}"))
}

pub(super) fn parse_time(text: &str) -> Option<CqlTime> {
    let nanoseconds = parse_clock(text)?;
    Some(CqlTime { nanoseconds })
}

pub(super) fn timestamp_text(timestamp: CqlTimestamp) -> String {
    let (day, ms) = (
        timestamp.milliseconds.div_euclid(DAY_MS),
        timestamp.milliseconds.rem_euclid(DAY_MS),
    );
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1000 % 60, ms % 1000);
    format!(
        "{}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z",
        day_text(day)
    )
}

/// A day, or a day and a time of at most millisecond precision with an offset (UTC if it has
/// none).
pub(super) fn parse_timestamp(text: &str) -> Option<CqlTimestamp> {
    let Some((day, clock)) = text.split_once(['T', ' ']) else {
        return at(parse_day(text)?, 0);
    };
    let (clock, offset_minutes) = split_offset(clock)?;
    let ns = parse_clock(clock)?;
    if ns % 1_000_000 != 0 {
        return None;
    }
    at(parse_day(day)?, ns / 1_000_000 - offset_minutes * 60_000)
}

fn at(day: i64, ms: i64) -> Option<CqlTimestamp> {
    let milliseconds = day.checked_mul(DAY_MS)?.checked_add(ms)?;
    Some(CqlTimestamp { milliseconds })
}

/// `Z`, `±HH:MM`, `±HHMM` or nothing at the end of a time.
fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(place) = clock.rfind(['+', '-']) else {
        return Some((clock, 0));
    };
    let (clock, offset) = clock.split_at(place);
    let (sign, digits) = offset.split_at(1);
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None => digits.split_at_checked(2)?,
    };
    let minutes = fixed(hours, 2, 18)? * 60 + fixed(minutes, 2, 59)?;
    Some((clock, if sign == "-" { -minutes } else { minutes }))
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`, as nanoseconds.
fn parse_clock(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let hours = fixed(parts.next()?, 2, 23)?;
    let minutes = fixed(parts.next()?, 2, 59)?;
    let seconds = match parts.next() {
        Some(seconds) => fixed(seconds, 2, 59)?,
        None if text.contains('.') => return None,
        None => 0,
    };
    if parts.next().is_some() || !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let nanoseconds = fixed(&format!("{fraction:0<9}"), 9, 999_999_999)?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanoseconds)
}

/// A number of exactly `len` digits that is at most `max`.
fn fixed(text: &str, len: usize, max: i64) -> Option<i64> {
    let digits = text.len() == len && text.bytes().all(|digit| digit.is_ascii_digit());
    let number = text.parse().ok()?;
    (digits && number <= max).then_some(number)
}

/// Days since the epoch as a date. Years are counted from March, so that the leap day is the last
/// day of one; an era is 400 of them and always 146,097 days.
fn day_text(days: i64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        ..0 => format!("-{:04}-{month:02}-{day:02}", -year),
        _ => format!("+{year}-{month:02}-{day:02}"),
    }
}

fn parse_day(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = digits.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(4..=10).contains(&year.len()) {
        return None;
    }
    let year = sign * fixed(year, year.len(), i64::MAX)?;
    let (month, day) = (fixed(month, 2, 12)?, fixed(day, 2, 31)?);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let shifted = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = era * 146_097 + of_era - 719_468;
    // The 31st of a shorter month would come out as a day of the next one.
    let canonical = day_text(days);
    canonical
        .ends_with(&format!("-{month:02}-{day:02}"))
        .then_some(days)
}

const NANOSECOND_UNITS: [(&str, i64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// CQL's form: `1y2mo3d4h5m6s7ms8us9ns`, a minus in front of all if no part is positive. Parts of
/// both signs, which servers refuse, carry their own.
pub(super) fn duration_text(duration: CqlDuration) -> String {
    let CqlDuration {
        months,
        days,
        nanoseconds,
    } = duration;
    let parts = [i64::from(months), i64::from(days), nanoseconds];
    let all_negative = parts.iter().all(|part| *part <= 0) && parts.iter().any(|part| *part < 0);
    let mut text = String::from(if all_negative { "-" } else { "" });
    let mut push = |negative: bool, amount: u64, unit: &str| {
        if amount > 0 {
            let sign = if negative && !all_negative { "-" } else { "" };
            text.push_str(&format!("{sign}{amount}{unit}"));
        }
    };
    let all_months = u64::from(months.unsigned_abs());
    push(months < 0, all_months / 12, "y");
    push(months < 0, all_months % 12, "mo");
    push(days < 0, u64::from(days.unsigned_abs()), "d");
    let mut left = nanoseconds.unsigned_abs();
    for (unit, length) in NANOSECOND_UNITS {
        let length = length.unsigned_abs();
        push(nanoseconds < 0, left / length, unit);
        left %= length;
    }
    if text.is_empty() {
        text.push_str("0ns");
    }
    text
}

pub(super) fn parse_duration(text: &str) -> Option<CqlDuration> {
    let (outer, mut rest) = match text.strip_prefix('-') {
        // A minus in front of all, or of the first part alone if another part has its own.
        Some(rest) if !rest.contains('-') => (-1, rest),
        _ => (1, text),
    };
    let (mut months, mut days, mut nanoseconds) = (0_i128, 0_i128, 0_i128);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (sign, unsigned) = match rest.strip_prefix('-') {
            Some(unsigned) => (-outer, unsigned),
            None => (outer, rest),
        };
        let unit_at = unsigned.find(|c: char| !c.is_ascii_digit())?;
        let (digits, tail) = unsigned.split_at(unit_at);
        let amount = sign
            * digits
                .parse::<i128>()
                .ok()
                .filter(|amount| *amount <= 1 << 64)?;
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '-')
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(end);
        match unit.to_ascii_lowercase().as_str() {
            "y" => months += amount * 12,
            "mo" => months += amount,
            "w" => days += amount * 7,
            "d" => days += amount,
            "\u{b5}s" | "\u{3bc}s" => nanoseconds += amount * 1000,
            unit => {
                let (_, length) = NANOSECOND_UNITS.iter().find(|(name, _)| *name == unit)?;
                nanoseconds += amount * i128::from(*length);
            }
        }
        rest = next;
    }
    Some(CqlDuration {
        months: i32::try_from(months).ok()?,
        days: i32::try_from(days).ok()?,
        nanoseconds: i64::try_from(nanoseconds).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_both_ways() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (20_786, "2026-11-29"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
            (i32::MAX, "+5881580-07-11"),
            (i32::MIN, "-5877641-06-23"),
        ] {
            let date = CqlDate {
                days_since_epoch: days,
            };
            assert_eq!(date_text(date), text);
            assert_eq!(parse_date(text), Some(date), "{text}");
        }
        for text in [
            "",
            "2026-13-01",
            "2026-02-29",
            "2026-1-01",
            "26-01-01",
            "2026-00-10",
            "2026-04-31",
            "2026-01-01-01",
            "x026-01-01",
            "5881580-07-12",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    /// Every day of four centuries follows the one before and reads back.
    #[test]
    fn every_day_of_an_era() {
        let mut before = day_text(-1);
        for days in 0..146_097 {
            let text = day_text(days);
            assert_eq!(parse_day(&text), Some(days));
            assert!(text > before, "{before} {text}");
            before = text;
        }
    }

    #[test]
    fn times_both_ways() {
        for (nanoseconds, text) in [
            (0, "00:00:00.000000000"),
            (43_200_000_000_000, "12:00:00.000000000"),
            (DAY_NS - 1, "23:59:59.999999999"),
        ] {
            assert_eq!(time_text(CqlTime { nanoseconds }).unwrap(), text);
            assert_eq!(parse_time(text), Some(CqlTime { nanoseconds }));
        }
        assert_eq!(parse_time("01:02").unwrap().nanoseconds, 3_720_000_000_000);
        assert_eq!(parse_time("00:00:00.5").unwrap().nanoseconds, 500_000_000);
        for nanoseconds in [-1, DAY_NS] {
            assert_eq!(time_text(CqlTime { nanoseconds }), None);
        }
        for text in [
            "",
            "1:00",
            "24:00:00",
            "12:60:00",
            "12:00:60",
            "12:00:00.",
            "12:00.5",
            "12:00:00.0000000001",
            "-1:00:00",
            "12:00:00:00",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_both_ways() {
        for (milliseconds, text) in [
            (1_795_953_600_000, "2026-11-29T12:00:00.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (i64::MAX, "+292278994-08-17T07:12:55.807Z"),
            (i64::MIN, "-292275055-05-16T16:47:04.192Z"),
        ] {
            let timestamp = CqlTimestamp { milliseconds };
            assert_eq!(timestamp_text(timestamp), text);
            let day_start_fits = milliseconds != i64::MIN;
            if day_start_fits {
                assert_eq!(parse_timestamp(text), Some(timestamp), "{text}");
            }
        }
        for text in [
            "2026-11-29 12:00",
            "2026-11-29T12:00:00Z",
            "2026-11-29T14:30:00.000+02:30",
            "2026-11-29T07:00:00-0500",
        ] {
            assert_eq!(
                parse_timestamp(text).unwrap().milliseconds,
                1_795_953_600_000,
                "{text}"
            );
        }
        for text in [
            "",
            "12:00",
            "2026-11-29T",
            "2026-11-29T12:00:00.0001Z",
            "2026-11-29T12:00:00+1",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn durations_both_ways() {
        let duration = |months, days, nanoseconds| CqlDuration {
            months,
            days,
            nanoseconds,
        };
        for (value, text) in [
            (duration(1, 2, 3), "1mo2d3ns"),
            (duration(-1, -2, -3), "-1mo2d3ns"),
            (duration(14, 0, 3_723_004_005_006), "1y2mo1h2m3s4ms5us6ns"),
            (duration(0, 0, 0), "0ns"),
            (duration(1, -1, 0), "1mo-1d"),
            (duration(-13, 1, 0), "-1y-1mo1d"),
            (
                duration(i32::MIN, 0, i64::MIN),
                "-178956970y8mo2562047h47m16s854ms775us808ns",
            ),
        ] {
            assert_eq!(duration_text(value), text);
            assert_eq!(parse_duration(text), Some(value), "{text}");
        }
        assert_eq!(parse_duration("2w"), Some(duration(0, 14, 0)));
        assert_eq!(parse_duration("3\u{b5}s"), Some(duration(0, 0, 3000)));
        for text in [
            "",
            "-",
            "1",
            "mo",
            "1x",
            "1mo 2d",
            "2147483648mo",
            "99999999999999999999999d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
