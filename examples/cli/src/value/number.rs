//! Numbers of any size as text: varint and decimal.
//!
//! Decimals are written the way `java.math.BigDecimal` writes them, which keeps the scale: plain
//! where that is short, with an exponent where it is not, so that a scale of two thousand million
//! does not become as many zeros.

use messina_core::types::{CqlDecimal, CqlVarint};
use num_bigint::BigInt;

pub(super) fn varint_text(value: &CqlVarint) -> String {
    BigInt::from_signed_bytes_be(value.as_signed_bytes()).to_string()
}

pub(super) fn parse_varint(text: &str) -> Option<CqlVarint> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: BigInt = text.parse().ok()?;
    CqlVarint::from_signed_bytes(&number.to_signed_bytes_be())
}

pub(super) fn decimal_text(value: &CqlDecimal) -> String {
    let unscaled = varint_text(&value.unscaled);
    let (sign, digits) = match unscaled.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", unscaled.as_str()),
    };
    let len = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let scale = i64::from(value.scale);
    let exponent = len - 1 - scale;
    if scale == 0 {
        return unscaled;
    }
    if scale < 0 || exponent < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{exponent:+}");
    }
    // Not negative, and at most six more than there are digits.
    let scale = usize::try_from(scale).unwrap_or(0);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

pub(super) fn parse_decimal(text: &str) -> Option<CqlDecimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let unscaled = parse_varint(&format!("{whole}{fraction}"))?;
    let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(CqlDecimal {
        unscaled,
        scale: i32::try_from(scale).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(unscaled: i64, scale: i32) -> CqlDecimal {
        CqlDecimal {
            unscaled: CqlVarint::from(unscaled),
            scale,
        }
    }

    /// The examples of `BigDecimal.toString`'s documentation, and the ends of the scale.
    #[test]
    fn decimals_as_bigdecimal_writes_them() {
        for (unscaled, scale, text) in [
            (123, 0, "123"),
            (-123, 0, "-123"),
            (123, -1, "1.23E+3"),
            (123, -3, "1.23E+5"),
            (123, 1, "12.3"),
            (123, 5, "0.00123"),
            (123, 10, "1.23E-8"),
            (-123, 12, "-1.23E-10"),
            (0, 2, "0.00"),
            (1, i32::MIN, "1E+2147483648"),
            (-1, i32::MAX, "-1E-2147483647"),
        ] {
            assert_eq!(decimal_text(&decimal(unscaled, scale)), text);
            assert_eq!(
                parse_decimal(text),
                Some(decimal(unscaled, scale)),
                "{text}"
            );
        }
        for (text, unscaled, scale) in [
            ("+1.50", 150, 2),
            (".5", 5, 1),
            ("5.", 5, 0),
            ("1e3", 1, -3),
        ] {
            assert_eq!(
                parse_decimal(text),
                Some(decimal(unscaled, scale)),
                "{text}"
            );
        }
    }

    #[test]
    fn varints_of_any_size() {
        for text in [
            "0",
            "-1",
            "18446744073709551616",
            "-170141183460469231731687303715884105729",
        ] {
            assert_eq!(varint_text(&parse_varint(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "",
            "-",
            "1_000",
            "0x10",
            "1.2.3",
            "1e",
            "1e99999999999",
            "NaN",
            " 1",
            "1.-2",
        ] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
        for text in ["", "-", "1_000", "1.0", "--1", "+-1"] {
            assert_eq!(parse_varint(text), None, "{text}");
        }
    }
}
