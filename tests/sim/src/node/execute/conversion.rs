//! `cast` and the functions that turn one native type into another.

use bytes::Bytes;

use super::super::error::CqlError;
use super::super::value::decimal::Decimal;
use super::super::value::{CqlType, Native, bigint, bignum, calendar, hex};
use super::Result;
use super::functions::{date_of_millis, millis_of};

/// The value of one type as another; null where it has none.
pub(super) fn convert(from: Native, to: Native, value: &Bytes) -> Result<Option<Bytes>> {
    if from == to {
        return Ok(Some(value.clone()));
    }
    if value.is_empty() && !matches!(from, Native::Text | Native::Ascii) {
        return Ok(None);
    }
    Ok(match to {
        Native::Text | Native::Ascii => text_of(from, value).map(Bytes::from),
        Native::Timestamp => millis(from, value).map(bigint),
        Native::Date => millis(from, value).and_then(date_of_millis),
        _ => return number(from, to, value),
    })
}

/// Milliseconds since 1970 of a value that tells a time.
fn millis(from: Native, value: &[u8]) -> Option<i64> {
    match from {
        Native::TimeUuid => millis_of(value),
        Native::Timestamp => Some(i64::from_be_bytes(value.try_into().ok()?)),
        Native::Date => Some(days(value)? * 86_400_000),
        _ => None,
    }
}

fn days(value: &[u8]) -> Option<i64> {
    let shifted = u32::from_be_bytes(value.try_into().ok()?);
    Some(i64::from(shifted) - (1 << 31))
}

fn number(from: Native, to: Native, value: &[u8]) -> Result<Option<Bytes>> {
    let Some(number) = Number::read(from, value) else {
        return Ok(None);
    };
    match number.write(to) {
        Some(bytes) => Ok(Some(bytes.into())),
        None => Err(CqlError::Invalid(format!(
            "Value is out of range when casting to {}",
            CqlType::Native(to)
        ))),
    }
}

/// A number of any native type.
pub(super) enum Number {
    Whole(i128),
    Floating(f64),
    Decimal(Decimal),
}

impl Number {
    pub(super) fn read(native: Native, value: &[u8]) -> Option<Self> {
        Some(match native {
            Native::Float => Self::Floating(f32::from_be_bytes(value.try_into().ok()?).into()),
            Native::Double => Self::Floating(f64::from_be_bytes(value.try_into().ok()?)),
            Native::Decimal => Self::Decimal(Decimal::parse(value)?),
            _ => {
                let value = bignum::shortest(value);
                let first = value.first()?;
                let fill = if first & 0x80 == 0 { 0 } else { 0xff };
                let mut bytes = [fill; 16];
                let start = bytes.len().checked_sub(value.len())?;
                bytes[start..].copy_from_slice(value);
                Self::Whole(i128::from_be_bytes(bytes))
            }
        })
    }

    pub(super) fn write(&self, to: Native) -> Option<Vec<u8>> {
        match to {
            Native::Float => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "rounding to float is the meaning"
                )]
                let value = self.floating() as f32;
                Some(value.to_be_bytes().into())
            }
            Native::Double => Some(self.floating().to_be_bytes().into()),
            Native::Decimal => match self {
                Self::Decimal(decimal) => decimal.serialize(),
                Self::Whole(value) => Decimal::from_text(&value.to_string())?.serialize(),
                Self::Floating(value) => Decimal::from_text(&format!("{value}"))?.serialize(),
            },
            _ => integer(self.whole()?, to),
        }
    }

    pub(super) fn floating(&self) -> f64 {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "the nearest double is the meaning"
            )]
            Self::Whole(value) => *value as f64,
            Self::Floating(value) => *value,
            Self::Decimal(decimal) => decimal.text().parse().unwrap_or(f64::NAN),
        }
    }

    /// Without the part after the point.
    fn whole(&self) -> Option<i128> {
        match self {
            Self::Whole(value) => Some(*value),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the part after the point is cut off, the rest saturates"
            )]
            Self::Floating(value) => Some(value.trunc() as i128),
            Self::Decimal(decimal) => {
                let sign = if decimal.negative { "-" } else { "" };
                let digits = &decimal.digits;
                let cut = usize::try_from(decimal.scale.max(0)).ok()?;
                let zeros = usize::try_from((-decimal.scale).max(0)).ok()?;
                if zeros > 38 {
                    return None;
                }
                let kept = digits.len().saturating_sub(cut);
                let text = format!("{sign}0{}{}", &digits[..kept], "0".repeat(zeros));
                text.parse().ok()
            }
        }
    }
}

/// A whole number as an integer type, none if it is out of its range.
pub(super) fn integer(value: i128, to: Native) -> Option<Vec<u8>> {
    Some(match to {
        Native::TinyInt => i8::try_from(value).ok()?.to_be_bytes().into(),
        Native::SmallInt => i16::try_from(value).ok()?.to_be_bytes().into(),
        Native::Int => i32::try_from(value).ok()?.to_be_bytes().into(),
        Native::Varint => bignum::shortest(&value.to_be_bytes()).into(),
        _ => i64::try_from(value).ok()?.to_be_bytes().into(),
    })
}

fn text_of(from: Native, value: &[u8]) -> Option<String> {
    Some(match from {
        Native::Text | Native::Ascii => core::str::from_utf8(value).ok()?.to_owned(),
        Native::Boolean => (value != [0]).to_string(),
        Native::Float => f32::from_be_bytes(value.try_into().ok()?).to_string(),
        Native::Double => f64::from_be_bytes(value.try_into().ok()?).to_string(),
        Native::Decimal => Decimal::parse(value)?.text(),
        Native::Uuid | Native::TimeUuid => uuid_text(value),
        Native::Inet => match value.len() {
            4 => core::net::Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).to_string(),
            _ => core::net::Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).to_string(),
        },
        Native::Date => calendar::date_text(days(value)?),
        Native::Time => calendar::time_text(i64::from_be_bytes(value.try_into().ok()?)),
        Native::Timestamp => calendar::timestamp_text(i64::from_be_bytes(value.try_into().ok()?)),
        Native::Blob | Native::Duration => return None,
        _ => {
            let (negative, digits) = bignum::digits(value)?;
            format!("{}{digits}", if negative { "-" } else { "" })
        }
    })
}

fn uuid_text(value: &[u8]) -> String {
    let digits = hex(value);
    let part = |from, to| digits.get(from..to).unwrap_or("");
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}
