//! Decimals: an integer of any length and the power of ten that divides it.

use super::bignum;

/// A decimal in pieces: its value is `±digits / 10^scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    pub(crate) digits: String,
    pub(crate) scale: i64,
}

impl Decimal {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        let (negative, digits) = bignum::digits(unscaled)?;
        Some(Self {
            negative,
            digits,
            scale: i64::from(i32::from_be_bytes(*scale)),
        })
    }

    /// `12`, `-1.50`, `2.5e-3`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{part}");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let part = i64::try_from(part.len()).ok()?;
        Some(Self {
            negative,
            digits,
            scale: part - i64::from(exponent),
        })
    }

    pub(crate) fn serialize(&self) -> Option<Vec<u8>> {
        let scale = i32::try_from(self.scale).ok()?;
        let sign = if self.negative { "-" } else { "" };
        let unscaled = bignum::parse(&format!("{sign}{}", self.digits))?;
        Some([scale.to_be_bytes().to_vec(), unscaled].concat())
    }

    /// Plain text where it is short, with an exponent otherwise.
    pub(crate) fn text(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let len = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        if self.scale == 0 {
            return format!("{sign}{}", self.digits);
        }
        let point = len - self.scale;
        if self.scale > 0 && point > -6 {
            let padded = match usize::try_from(1 - point) {
                Ok(zeros) if point <= 0 => "0".repeat(zeros) + &self.digits,
                _ => self.digits.clone(),
            };
            let at = usize::try_from(point.max(1)).unwrap_or(1);
            return format!("{sign}{}.{}", &padded[..at], &padded[at..]);
        }
        let (first, rest) = self.digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{dot}{rest}E{:+}", point - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{hex, unhex};
    use super::*;

    #[test]
    fn texts_and_bytes() {
        let cases = [
            ("0", "0000000000", "0"),
            ("1.50", "000000020096", "1.50"),
            ("-0.005", "00000003fb", "-0.005"),
            ("2.5e3", "fffffffe19", "2.5E+3"),
            ("1e-10", "0000000a01", "1E-10"),
            ("123456789.25", "0000000202dfdc1c4d", "123456789.25"),
        ];
        for (text, bytes, shown) in cases {
            let decimal = Decimal::from_text(text).unwrap();
            assert_eq!(hex(&decimal.serialize().unwrap()), bytes, "{text}");
            assert_eq!(Decimal::parse(&unhex(bytes)).unwrap().text(), shown);
        }
        for bad in ["", "1.x", ".", "e5", "1e99999999999"] {
            assert_eq!(Decimal::from_text(bad), None, "{bad}");
        }
    }
}
