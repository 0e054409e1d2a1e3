//! Durations: three counts that do not convert into each other, as variable length integers and as
//! text.
//!
//! The integer format is that of the `duration` type in the native protocol, version 5 section 6:
//! the number of leading ones of the first byte says how many bytes follow.

use super::super::codec::Reader;

/// Months, days and nanoseconds of one sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) nanos: i64,
}

/// A value of three zigzag integers, or none if it is no duration.
pub(crate) fn parse(bytes: &[u8]) -> Option<Duration> {
    let mut reader = Reader::new(bytes);
    let mut next = || unsigned(&mut reader).map(unzigzag);
    let (months, days, nanos) = (next()?, next()?, next()?);
    let duration = Duration {
        months: months.try_into().ok()?,
        days: days.try_into().ok()?,
        nanos,
    };
    let parts = [months, days, nanos];
    let one_sign = parts.iter().all(|part| *part >= 0) || parts.iter().all(|part| *part <= 0);
    (one_sign && reader.rest().is_empty()).then_some(duration)
}

/// A variable length integer.
pub(crate) fn unsigned(reader: &mut Reader<'_>) -> Option<u64> {
    let first = *reader.take(1).ok()?.first()?;
    let more = first.leading_ones();
    let head = if more >= 7 {
        0
    } else {
        u64::from(first & (0x7f >> more))
    };
    let rest = reader.take(usize::try_from(more).ok()?).ok()?;
    Some(
        rest.iter()
            .fold(head, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// Appends a variable length integer.
pub(crate) fn put_unsigned(value: u64, out: &mut Vec<u8>) {
    let bits = 64 - (value | 1).leading_zeros();
    let more = (bits - 1) / 7;
    let more = more.min(8);
    if more == 8 {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    let bytes = value.to_be_bytes();
    let start = 7 - usize::try_from(more).unwrap_or(0);
    let ones = !(0xffu16 >> more);
    let [_, mark] = ones.to_be_bytes();
    out.push(bytes[start] | mark);
    out.extend_from_slice(&bytes[start + 1..]);
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

impl Duration {
    pub(crate) fn serialize(self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in [i64::from(self.months), i64::from(self.days), self.nanos] {
            put_unsigned(zigzag(part), &mut out);
        }
        out
    }

    /// `1y2mo3w4d5h6m7s8ms9us10ns` or `P1Y2M3DT4H5M6S`, a minus before it.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let lower = text.to_lowercase();
        let mut parts: [i64; 3] = [0; 3];
        let iso = lower.strip_prefix('p');
        let mut in_time = iso.is_none();
        let mut rest = iso.unwrap_or(&lower);
        let mut any = false;
        while !rest.is_empty() {
            if iso.is_some()
                && let Some(time) = rest.strip_prefix('t')
            {
                in_time = true;
                rest = time;
                continue;
            }
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let count: i64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let len = rest
                .find(|c: char| c.is_ascii_digit() || (iso.is_some() && c == 't'))
                .unwrap_or(rest.len());
            let (slot, scale) = unit(&rest[..len], iso.is_some(), in_time)?;
            parts[slot] = parts[slot].checked_add(count.checked_mul(scale)?)?;
            rest = &rest[len..];
            any = true;
        }
        let sign = if negative { -1 } else { 1 };
        any.then_some(())?;
        Some(Self {
            months: (sign * parts[0]).try_into().ok()?,
            days: (sign * parts[1]).try_into().ok()?,
            nanos: sign * parts[2],
        })
    }
}

/// Which part a unit counts in, and how much it is there.
fn unit(name: &str, iso: bool, in_time: bool) -> Option<(usize, i64)> {
    const SECOND: i64 = 1_000_000_000;
    Some(match (name, iso, in_time) {
        ("y", false, _) | ("y", true, false) => (0, 12),
        ("mo", false, _) | ("m", true, false) => (0, 1),
        ("w", false, _) | ("w", true, false) => (1, 7),
        ("d", false, _) | ("d", true, false) => (1, 1),
        ("h", _, true) => (2, 3600 * SECOND),
        ("m", _, true) => (2, 60 * SECOND),
        ("s", _, true) => (2, SECOND),
        ("ms", false, _) => (2, 1_000_000),
        ("us" | "µs" | "μs", false, _) => (2, 1000),
        ("ns", false, _) => (2, 1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{hex, unhex};
    use super::*;

    #[test]
    fn integers_have_the_lengths_of_the_protocol() {
        // Value and bytes as the protocol's description of vints has them.
        let cases = [
            (0u64, "00"),
            (1, "01"),
            (127, "7f"),
            (128, "8080"),
            (16383, "bfff"),
            (16384, "c04000"),
            (u64::from(u32::MAX), "f0ffffffff"),
            ((1 << 56) - 1, "feffffffffffffff"),
            (1 << 56, "ff0100000000000000"),
            (u64::MAX, "ffffffffffffffffff"),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            put_unsigned(value, &mut out);
            assert_eq!(hex(&out), bytes, "{value}");
            let bytes = unhex(bytes);
            assert_eq!(unsigned(&mut Reader::new(&bytes)), Some(value));
            for len in 0..bytes.len() {
                assert_eq!(unsigned(&mut Reader::new(&bytes[..len])), None);
            }
        }
    }

    #[test]
    fn texts_of_both_forms() {
        let cases = [
            ("1y2mo3w4d", Some((14, 25, 0))),
            ("-1h2m3s4ms5us6ns", Some((0, 0, -3_723_004_005_006))),
            ("P1Y2M3DT4H5M6S", Some((14, 3, 14_706_000_000_000))),
            ("p2w", Some((0, 14, 0))),
            ("PT1M", Some((0, 0, 60_000_000_000))),
            ("1x", None),
            ("1", None),
            ("", None),
            ("P", None),
            ("99999999999y", None),
        ];
        for (text, expected) in cases {
            let found = Duration::from_text(text).map(|d| (d.months, d.days, d.nanos));
            assert_eq!(found, expected, "{text}");
        }
        let negative = Duration::from_text("-1mo2d3ns").unwrap();
        assert_eq!(hex(&negative.serialize()), "010305");
        assert_eq!(parse(&unhex("010305")), Some(negative));
    }
}
