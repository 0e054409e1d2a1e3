//! Numbers and identifiers as digits: one small function for each, whatever the type and its many other
//! forms.

use alloc::string::String;
use core::num::NonZeroU16;

use uuid::Uuid;

use crate::words::put_digit;

/// The number of a text, if it is one of that type, of 32 bits at most.
pub(crate) fn number<T: TryFrom<u32>>(text: &str) -> Option<T> {
    T::try_from(any_number(text)?).ok()
}

/// The same for one that may be below 0.
pub(crate) fn signed(text: &str) -> Option<i32> {
    match text.strip_prefix('-') {
        Some(digits) => 0_i32.checked_sub_unsigned(number_of_digits(digits)?),
        None => number(text),
    }
}

/// The same for a number that is not 0.
pub(crate) fn nonzero(text: &str) -> Option<NonZeroU16> {
    number(text).and_then(NonZeroU16::new)
}

/// A hexadecimal digit.
pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// A UUID in its usual form: 36 characters.
#[inline(never)]
pub(crate) fn uuid(text: &str) -> Option<Uuid> {
    if text.len() != 36 {
        return None;
    }
    let mut rest = text.bytes();
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) && rest.next() != Some(b'-') {
            return None;
        }
        let mut digit = || hex_digit(rest.next()?);
        *byte = digit()? << 4 | digit()?;
    }
    Some(Uuid::from_bytes(bytes))
}

/// The same, written.
pub(crate) fn uuid_text(id: Uuid) -> String {
    let mut text = String::new();
    for byte in id.as_bytes() {
        if HYPHENS.contains(&text.len()) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(match digit {
                0..10 => b'0' + digit,
                _ => b'a' - 10 + digit,
            }));
        }
    }
    text
}

/// Where hyphens stand in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

#[inline(never)]
fn any_number(text: &str) -> Option<u32> {
    number_of_digits(text.strip_prefix('+').unwrap_or(text))
}

#[inline(never)]
fn number_of_digits(text: &str) -> Option<u32> {
    let mut number = None;
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        let shifted = number.unwrap_or(0_u32).checked_mul(10)?;
        number = Some(shifted.checked_add(u32::from(digit))?);
    }
    number
}

/// Appends a number. Texts of errors are written by this and the next ones, since the library's formatting is
/// larger than all the rest of a small image's errors.
pub(crate) fn put_number(text: &mut String, number: u64) {
    if number >= 10 {
        put_number(text, number / 10);
    }
    put_digit(text, u32::try_from(number % 10).unwrap_or(0));
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(text: &mut String, number: i32) {
    if number < 0 {
        text.push('-');
    }
    put_number(text, u64::from(number.unsigned_abs()));
}

/// Appends a number in sixteens, with at least so many digits.
pub(crate) fn put_hex(text: &mut String, number: u32, digits: u32) {
    if number >= 16 || digits > 1 {
        put_hex(text, number / 16, digits.saturating_sub(1));
    }
    put_digit(text, number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_as_the_library_reads_it() {
        for text in [
            "",
            "0",
            "7",
            "65535",
            "65536",
            "-1",
            "+5",
            "-+5",
            "+-5",
            "-",
            "+",
            "++5",
            "2147483647",
            "2147483648",
            "-2147483648",
            "-2147483649",
            "18446744073709551615",
            "18446744073709551616",
            "-18446744073709551615",
            "1 ",
            "99999999999999999999",
        ] {
            assert_eq!(number::<u16>(text), text.parse().ok(), "{text}");
            assert_eq!(number::<u32>(text), text.parse().ok(), "{text}");
            assert_eq!(
                number::<i32>(text).filter(|n| *n >= 0),
                text.parse().ok().filter(|n: &i32| *n >= 0)
            );
            assert_eq!(nonzero(text), text.parse().ok(), "{text}");
            assert_eq!(signed(text), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn a_uuid_is_as_the_crate_writes_it_and_nothing_else_is_one() {
        let id = Uuid::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let text = uuid_text(id);
        assert_eq!(text, alloc::format!("{id}"));
        assert_eq!(uuid(&text), Some(id));
        assert_eq!(uuid(&text.to_uppercase()), Some(id));
        for cut in 0..36 {
            assert_eq!(uuid(&text[..cut]), None);
            let mut wrong = text.clone();
            wrong.replace_range(cut..=cut, "g");
            assert_eq!(uuid(&wrong), None, "{wrong}");
        }
        for wrong in [
            alloc::format!("{text}0"),
            alloc::format!("{}", id.simple()),
            alloc::format!("{{{text}}}"),
            text.replace('-', "+"),
        ] {
            assert_eq!(uuid(&wrong), None, "{wrong}");
        }
    }
}
