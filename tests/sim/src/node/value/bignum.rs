//! Integers of any length: two's complement bytes, as `varint` has them, to decimal digits and
//! back.

/// Longest integer that is turned into digits or made from them, as the time grows with the square
/// of the length.
pub(crate) const BYTES_MAX: usize = 1 << 14;

/// Most digits of an integer of text: those of a little less than [`BYTES_MAX`].
const DIGITS_MAX: usize = 39_000;

/// Digits that one step of a conversion handles.
const STEP_DIGITS: usize = 9;
const STEP: u64 = 1_000_000_000;

/// Sign and decimal digits without leading zeros; zero has the one digit `0`. None if it is longer
/// than [`BYTES_MAX`].
pub(crate) fn digits(bytes: &[u8]) -> Option<(bool, String)> {
    if bytes.len() > BYTES_MAX {
        return None;
    }

    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut limbs = limbs(bytes, negative);
    let mut groups = Vec::new();
    while !limbs.is_empty() {
        let mut remainder = 0u64;
        for limb in &mut limbs {
            let value = remainder << 32 | u64::from(*limb);
            *limb = u32::try_from(value / STEP).unwrap_or(0);
            remainder = value % STEP;
        }
        groups.push(remainder);
        let zeros = limbs.iter().take_while(|limb| **limb == 0).count();
        limbs.drain(..zeros);
    }
    let mut text: String = groups
        .iter()
        .rev()
        .map(|group| format!("{group:0STEP_DIGITS$}"))
        .collect();
    let zeros = text.len() - text.trim_start_matches('0').len();
    text.drain(..zeros);
    if text.is_empty() {
        text.push('0');
    }
    Some((negative, text))
}

/// Big-endian limbs of the magnitude, the first one not zero.
fn limbs(bytes: &[u8], negative: bool) -> Vec<u32> {
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            let (value, over) = (!*byte).overflowing_add(u8::from(carry));
            *byte = value;
            carry = over;
        }
        // Only the most negative value of a length overflows, and then it is 80 00… already.
    }
    let mut limbs: Vec<u32> = magnitude
        .rchunks(4)
        .rev()
        .map(|chunk| {
            chunk
                .iter()
                .fold(0, |limb, byte| limb << 8 | u32::from(*byte))
        })
        .collect();
    let zeros = limbs.iter().take_while(|limb| **limb == 0).count();
    limbs.drain(..zeros);
    limbs
}

/// Two's complement bytes, as few as possible, of digits with an optional minus.
pub(crate) fn parse(text: &str) -> Option<Vec<u8>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty()
        || digits.len() > DIGITS_MAX
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    // Little-endian while it grows.
    let mut limbs: Vec<u32> = Vec::new();
    let head = digits.len() % STEP_DIGITS;
    let (first, rest) = digits.split_at(head);
    let groups = core::iter::once(first)
        .filter(|group| !group.is_empty())
        .chain(
            (0..rest.len())
                .step_by(STEP_DIGITS)
                .map(|at| &rest[at..at + STEP_DIGITS]),
        );
    for group in groups {
        let mut carry: u64 = group.parse().ok()?;
        for limb in &mut limbs {
            let value = u64::from(*limb) * STEP + carry;
            *limb = u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
            carry = value >> 32;
        }
        if carry > 0 {
            limbs.push(u32::try_from(carry).unwrap_or(0));
        }
    }
    let mut bytes = vec![0];
    bytes.extend(limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()));
    if negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            let (value, over) = (!*byte).overflowing_add(u8::from(carry));
            *byte = value;
            carry = over;
        }
    }
    let kept = shortest(&bytes).len();
    bytes.drain(..bytes.len() - kept);
    Some(bytes)
}

/// The bytes without those that only repeat the sign.
pub(crate) fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && let Some(second) = rest.first()
        && matches!((first, second & 0x80), (0, 0) | (0xff, 0x80))
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::{hex, unhex};
    use super::*;

    #[test]
    fn integers_of_every_length() {
        let cases = [
            ("0", "00"),
            ("1", "01"),
            ("-1", "ff"),
            ("127", "7f"),
            ("128", "0080"),
            ("-128", "80"),
            ("-129", "ff7f"),
            ("255", "00ff"),
            ("256", "0100"),
            ("-32768", "8000"),
            ("1000000000", "3b9aca00"),
            ("18446744073709551616", "010000000000000000"),
            ("-18446744073709551616", "ff0000000000000000"),
            (
                "340282366920938463463374607431768211455",
                "00ffffffffffffffffffffffffffffffff",
            ),
        ];
        for (text, bytes) in cases {
            assert_eq!(
                parse(text).map(|found| hex(&found)).as_deref(),
                Some(bytes),
                "{text}"
            );
            let (negative, digits) = digits(&unhex(bytes)).unwrap();
            let found = format!("{}{digits}", if negative { "-" } else { "" });
            assert_eq!(found, text, "{bytes}");
        }
        assert_eq!(digits(&[]), Some((false, "0".to_owned())));
        assert_eq!(digits(&[1; BYTES_MAX + 1]), None);
        assert_eq!(parse(&"9".repeat(DIGITS_MAX + 1)), None);
        let longest = parse(&"9".repeat(DIGITS_MAX)).unwrap();
        assert_eq!(digits(&longest), Some((false, "9".repeat(DIGITS_MAX))));
        assert_eq!(hex(shortest(&unhex("0000007f"))), "7f");
        assert_eq!(hex(shortest(&unhex("ffffff80"))), "80");
        for bad in ["", "-", "1x", "1.0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
