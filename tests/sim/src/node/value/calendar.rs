//! Days, times and timestamps as text. All in UTC and the Gregorian calendar, also before it began.

/// Days from 1970-01-01 of a date.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day < 1 || day > last || year.abs() > 6_000_000 {
        return None;
    }
    // Years begin in March, so that the leap day is the last one.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Year, month and day of days from 1970-01-01.
pub(crate) fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + next, month, day)
}

/// Days of `yyyy-mm-dd`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = rest.split('-');
    let mut next = || number(parts.next()?);
    let (year, month, day) = (next()?, next()?, next()?);
    if parts.next().is_some() {
        return None;
    }
    days_of(if negative { -year } else { year }, month, day)
}

/// Nanoseconds of `hh:mm[:ss[.fffffffff]]`.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let hours = number(parts.next()?)?;
    let minutes = number(parts.next()?)?;
    let seconds = match parts.next() {
        Some(part) => number(part)?,
        None if fraction.is_some() => return None,
        None => 0,
    };
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let nanos = match fraction {
        Some(digits) if (1..=9).contains(&digits.len()) => number(&format!("{digits:0<9}"))?,
        Some(_) => return None,
        None => 0,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanos)
}

/// Milliseconds of `yyyy-mm-dd[Thh:mm[:ss[.fff]]][zone]`.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    const DAY_MS: i64 = 86_400_000;
    let text = text.trim();
    let split = text.find(['T', 't', ' ']);
    let (date, rest) = match split {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => {
            // A zone right after the date begins after its last two digits.
            let at = text.char_indices().nth(10).map_or(text.len(), |(at, _)| at);
            (&text[..at], &text[at..])
        }
    };
    let days = parse_date(date)?;
    let zone = rest.find(['+', '-', 'Z', 'z']).unwrap_or(rest.len());
    let (clock, zone) = (rest[..zone].trim(), &rest[zone..]);
    let nanos = match (clock, split) {
        ("", None) => 0,
        ("", Some(_)) => return None,
        (clock, _) => parse_time(clock)?,
    };
    let millis = days.checked_mul(DAY_MS)?.checked_add(nanos / 1_000_000)?;
    millis.checked_sub(zone_millis(zone)?)
}

/// `Z`, `+hh`, `+hhmm` or `+hh:mm`; nothing is UTC.
fn zone_millis(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return (zone.len() <= 1).then_some(0),
        Some('+') => 1,
        _ => -1,
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    Some(sign * (hours * 60 + minutes) * 60_000)
}

fn number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// `yyyy-mm-dd`.
pub(crate) fn date_text(days: i64) -> String {
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `hh:mm:ss.nnnnnnnnn`.
pub(crate) fn time_text(nanos: i64) -> String {
    let seconds = nanos.div_euclid(1_000_000_000);
    format!(
        "{:02}:{:02}:{:02}.{:09}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        nanos.rem_euclid(1_000_000_000)
    )
}

/// `yyyy-mm-ddThh:mm:ss.fffZ`.
pub(crate) fn timestamp_text(millis: i64) -> String {
    let time = time_text(millis.rem_euclid(86_400_000) * 1_000_000);
    let time = time.get(..12).unwrap_or("").to_owned();
    format!("{}T{time}Z", date_text(millis.div_euclid(86_400_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        let cases = [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2024-03-01", 19_783),
            ("1900-02-28", -25_509),
            ("0001-01-01", -719_162),
        ];
        for (text, days) in cases {
            assert_eq!(parse_date(text), Some(days), "{text}");
            assert_eq!(date_text(days), text);
        }
        for days in -800_000..800_000 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), Some(days));
        }
        for bad in [
            "",
            "1970",
            "1970-13-01",
            "1970-02-29",
            "1970-01-01-01",
            "x-1-1",
        ] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_and_timestamps() {
        let times = [
            ("00:00", Some(0)),
            ("08:12:54", Some(29_574_000_000_000)),
            ("08:12:54.123", Some(29_574_123_000_000)),
            ("23:59:59.999999999", Some(86_399_999_999_999)),
            ("24:00:00", None),
            ("08", None),
            ("08:12.5", None),
        ];
        for (text, nanos) in times {
            assert_eq!(parse_time(text), nanos, "{text}");
        }
        let timestamps = [
            ("2011-02-03", Some(1_296_691_200_000)),
            ("2011-02-03T04:05:00", Some(1_296_705_900_000)),
            ("2011-02-03 04:05+0000", Some(1_296_705_900_000)),
            ("2011-02-03 04:05:00.123+01:00", Some(1_296_702_300_123)),
            ("2011-02-03+0000", Some(1_296_691_200_000)),
            ("2011-02-03T04:05Z", Some(1_296_705_900_000)),
            ("2011-02-03T04:05+1\u{e9}2", None),
            ("2011-02-03T", None),
            ("yesterday", None),
        ];
        for (text, millis) in timestamps {
            assert_eq!(parse_timestamp(text), millis, "{text}");
        }
        assert_eq!(
            timestamp_text(1_296_705_900_123),
            "2011-02-03T04:05:00.123Z"
        );
        assert_eq!(timestamp_text(-1), "1969-12-31T23:59:59.999Z");
    }
}
