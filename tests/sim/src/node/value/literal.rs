//! Constants of CQL text to serialized values.

use bytes::Bytes;

use super::super::cql::Literal;
use super::super::error::CqlError;
use super::{CqlType, Native, inet};

impl CqlType {
    /// Serializes a literal of CQL text.
    pub(crate) fn literal(&self, literal: &Literal, column: &str) -> Result<Bytes, CqlError> {
        let refuse = || {
            CqlError::Invalid(format!(
                "Invalid {} constant ({}) for \"{column}\" of type {self}",
                literal.kind(),
                literal.text()
            ))
        };
        let Self::Native(native) = self.thawed() else {
            return Err(refuse());
        };
        native_literal(*native, literal).ok_or_else(refuse)
    }
}

fn native_literal(native: Native, literal: &Literal) -> Option<Bytes> {
    fn integer<T: core::str::FromStr>(literal: &Literal) -> Option<T> {
        match literal {
            Literal::Integer(text) => text.parse().ok(),
            _ => None,
        }
    }
    fn floating(literal: &Literal) -> Option<f64> {
        match literal {
            Literal::Integer(text) | Literal::Float(text) => text.parse().ok(),
            _ => None,
        }
    }
    let bytes: Vec<u8> = match (native, literal) {
        (Native::Int, _) => integer::<i32>(literal)?.to_be_bytes().into(),
        (Native::BigInt, _) => integer::<i64>(literal)?.to_be_bytes().into(),
        (Native::SmallInt, _) => integer::<i16>(literal)?.to_be_bytes().into(),
        (Native::TinyInt, _) => integer::<i8>(literal)?.to_be_bytes().into(),
        (Native::Timestamp, _) => integer::<i64>(literal)?.to_be_bytes().into(),
        (Native::Double, _) => floating(literal)?.to_be_bytes().into(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding to float is the meaning"
        )]
        (Native::Float, _) => (floating(literal)? as f32).to_be_bytes().into(),
        (Native::Boolean, Literal::Boolean(value)) => vec![u8::from(*value)],
        (Native::Text, Literal::Text(text)) => text.clone().into_bytes(),
        (Native::Ascii, Literal::Text(text)) if text.is_ascii() => text.clone().into_bytes(),
        (Native::Blob, Literal::Blob(bytes)) => bytes.clone(),
        (Native::Uuid, Literal::Uuid(bytes)) => bytes.to_vec(),
        (Native::TimeUuid, Literal::Uuid(bytes)) if bytes[6] >> 4 == 1 => bytes.to_vec(),
        (Native::Inet, Literal::Text(text)) => inet(text.parse().ok()?).to_vec(),
        _ => return None,
    };
    Some(bytes.into())
}
