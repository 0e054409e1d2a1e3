//! Constants of CQL text to serialized values of native types.

use bytes::Bytes;

use super::super::cql::Literal;
use super::super::error::CqlError;
use super::decimal::Decimal;
use super::duration::Duration;
use super::{CqlType, Native, bignum, calendar, inet};

impl CqlType {
    /// Serializes a literal of CQL text.
    pub(crate) fn literal(&self, literal: &Literal, column: &str) -> Result<Bytes, CqlError> {
        self.native()
            .and_then(|native| native_literal(native, literal))
            .ok_or_else(|| {
                CqlError::Invalid(format!(
                    "Invalid {} constant ({}) for \"{column}\" of type {self}",
                    literal.kind(),
                    literal.text()
                ))
            })
    }
}

fn native_literal(native: Native, literal: &Literal) -> Option<Bytes> {
    let bytes = match literal {
        Literal::Integer(text) => integer(native, text)?,
        Literal::Float(text) => float(native, text)?,
        Literal::Text(text) => quoted(native, text)?,
        Literal::Boolean(value) if native == Native::Boolean => vec![u8::from(*value)],
        Literal::Blob(bytes) if native == Native::Blob => bytes.clone(),
        Literal::Uuid(bytes) if native == Native::Uuid => bytes.to_vec(),
        Literal::Uuid(bytes) if native == Native::TimeUuid && bytes[6] >> 4 == 1 => bytes.to_vec(),
        Literal::Duration(text) if native == Native::Duration => {
            Duration::from_text(text)?.serialize()
        }
        _ => return None,
    };
    Some(bytes.into())
}

fn integer(native: Native, text: &str) -> Option<Vec<u8>> {
    Some(match native {
        Native::TinyInt => text.parse::<i8>().ok()?.to_be_bytes().into(),
        Native::SmallInt => text.parse::<i16>().ok()?.to_be_bytes().into(),
        Native::Int => text.parse::<i32>().ok()?.to_be_bytes().into(),
        Native::BigInt | Native::Timestamp | Native::Counter => {
            text.parse::<i64>().ok()?.to_be_bytes().into()
        }
        Native::Date => text.parse::<u32>().ok()?.to_be_bytes().into(),
        Native::Time => {
            let nanos = text.parse::<i64>().ok()?;
            (0..86_400_000_000_000)
                .contains(&nanos)
                .then(|| nanos.to_be_bytes().into())?
        }
        Native::Varint => bignum::parse(text)?,
        _ => return float(native, text),
    })
}

fn float(native: Native, text: &str) -> Option<Vec<u8>> {
    Some(match native {
        Native::Double => text.parse::<f64>().ok()?.to_be_bytes().into(),
        Native::Float => text.parse::<f32>().ok()?.to_be_bytes().into(),
        Native::Decimal => Decimal::from_text(text)?.serialize()?,
        _ => return None,
    })
}

fn quoted(native: Native, text: &str) -> Option<Vec<u8>> {
    Some(match native {
        Native::Text => text.as_bytes().to_vec(),
        Native::Ascii if text.is_ascii() => text.as_bytes().to_vec(),
        Native::Inet => inet(text.parse().ok()?).to_vec(),
        Native::Date => date_bytes(calendar::parse_date(text)?)?,
        Native::Time => calendar::parse_time(text)?.to_be_bytes().into(),
        Native::Timestamp => calendar::parse_timestamp(text)?.to_be_bytes().into(),
        _ => return None,
    })
}

/// Days from 1970-01-01 as a date counts them: from the middle of the unsigned range.
pub(crate) fn date_bytes(days: i64) -> Option<Vec<u8>> {
    let shifted = u32::try_from(days + (1 << 31)).ok()?;
    Some(shifted.to_be_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    #[test]
    fn constants_of_every_native_type() {
        let text = |text: &str| Literal::Text(text.to_owned());
        let integer = |text: &str| Literal::Integer(text.to_owned());
        let float = |text: &str| Literal::Float(text.to_owned());
        let cases = [
            (Native::Ascii, text("a"), Some("61")),
            (Native::Ascii, text("\u{e9}"), None),
            (Native::Text, text("\u{e9}"), Some("c3a9")),
            (Native::Text, integer("1"), None),
            (Native::BigInt, integer("-2"), Some("fffffffffffffffe")),
            (Native::Int, integer("2147483648"), None),
            (Native::SmallInt, integer("-32768"), Some("8000")),
            (Native::TinyInt, integer("128"), None),
            (Native::Varint, integer("-129"), Some("ff7f")),
            (Native::Decimal, float("1.5"), Some("000000010f")),
            (Native::Decimal, integer("15"), Some("000000000f")),
            (Native::Double, float("1.5"), Some("3ff8000000000000")),
            (Native::Float, integer("2"), Some("40000000")),
            (Native::Blob, Literal::Blob(vec![0xca]), Some("ca")),
            (Native::Blob, text("ca"), None),
            (Native::Boolean, Literal::Boolean(true), Some("01")),
            (Native::Date, text("1970-01-02"), Some("80000001")),
            (Native::Date, integer("2147483648"), Some("80000000")),
            (Native::Time, text("00:00:01"), Some("000000003b9aca00")),
            (Native::Time, integer("86400000000000"), None),
            (
                Native::Timestamp,
                text("1970-01-01T00:00:01Z"),
                Some("00000000000003e8"),
            ),
            (Native::Timestamp, integer("-1"), Some("ffffffffffffffff")),
            (Native::Inet, text("127.0.0.1"), Some("7f000001")),
            (Native::Inet, text("nowhere"), None),
            (
                Native::Duration,
                Literal::Duration("1mo2d3ns".to_owned()),
                Some("020406"),
            ),
            (
                Native::Uuid,
                Literal::Uuid([7; 16]),
                Some("07070707070707070707070707070707"),
            ),
            (Native::TimeUuid, Literal::Uuid([7; 16]), None),
        ];
        for (native, literal, expected) in cases {
            let found = native_literal(native, &literal).map(|bytes| hex(&bytes));
            assert_eq!(found.as_deref(), expected, "{native:?} {literal:?}");
        }
    }
}
