//! Binding and decoding of [`CqlValue`], by the type of the column alone.

use alloc::vec::Vec;

use super::cell::Fields;
use super::decode::{decode_map, decode_sequence};
use super::encode::{encode_sequence, tuple_fields};
use super::value::UdtValue;
use super::{
    ColumnType, CqlValue, DecodeValue, DecodeValueError, EncodeValue, EncodeValueError,
    TypeMismatch, UdtType, ValueWriter, Written,
};
use crate::sync::Shared;

impl EncodeValue for CqlValue {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        match self {
            Self::Null => writer.null(),
            Self::Unset => writer.unset(),
            Self::Empty => writer.value(&[]),
            Self::Ascii(value) | Self::Text(value) => value.encode(ty, writer),
            Self::BigInt(value) => value.encode(ty, writer),
            Self::Blob(value) | Self::Custom(value) => value.encode(ty, writer),
            Self::Boolean(value) => value.encode(ty, writer),
            Self::Counter(value) => value.encode(ty, writer),
            Self::Decimal(value) => value.encode(ty, writer),
            Self::Double(value) => value.encode(ty, writer),
            Self::Float(value) => value.encode(ty, writer),
            Self::Int(value) => value.encode(ty, writer),
            Self::Timestamp(value) => value.encode(ty, writer),
            Self::Uuid(value) | Self::Timeuuid(value) => value.encode(ty, writer),
            Self::Varint(value) => value.encode(ty, writer),
            Self::Inet(value) => value.encode(ty, writer),
            Self::Date(value) => value.encode(ty, writer),
            Self::Time(value) => value.encode(ty, writer),
            Self::SmallInt(value) => value.encode(ty, writer),
            Self::TinyInt(value) => value.encode(ty, writer),
            Self::Duration(value) => value.encode(ty, writer),
            Self::List(elements) if matches!(ty, ColumnType::List(_)) => {
                encode_sequence("list", ty, writer, elements.iter())
            }
            Self::Set(elements) if matches!(ty, ColumnType::Set(_)) => {
                encode_sequence("set", ty, writer, elements.iter())
            }
            Self::Vector(elements) if matches!(ty, ColumnType::Vector(_)) => {
                encode_sequence("vector", ty, writer, elements.iter())
            }
            Self::List(_) => Err(mismatch("list", ty).into()),
            Self::Set(_) => Err(mismatch("set", ty).into()),
            Self::Vector(_) => Err(mismatch("vector", ty).into()),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key, value));
                super::encode::encode_map("map", ty, writer, entries)
            }
            Self::Tuple(values) => {
                let types = tuple_fields("tuple", ty, values.len())?;
                writer.value_with(|content| {
                    for (ty, value) in types.iter().zip(values) {
                        value.encode(ty, content.nested())?;
                    }
                    Ok(())
                })
            }
            Self::Udt(value) => match ty {
                ColumnType::Udt(udt) => encode_udt(value, udt, writer),
                _ => Err(mismatch("user-defined type", ty).into()),
            },
        }
    }
}

/// Writes the fields in the order of the type; those not given are null.
fn encode_udt(
    value: &UdtValue,
    udt: &UdtType,
    writer: ValueWriter<'_>,
) -> Result<Written, EncodeValueError> {
    let known = |name: &str| udt.fields.iter().any(|(field, _)| **field == *name);
    if let Some((name, _)) = value.fields.iter().find(|(name, _)| !known(name)) {
        return Err(EncodeValueError::UnknownField(name.clone()));
    }
    writer.value_with(|content| {
        for (name, ty) in &udt.fields {
            value
                .get(name)
                .unwrap_or(&CqlValue::Null)
                .encode(ty, content.nested())?;
        }
        Ok(())
    })
}

impl<'a> DecodeValue<'a> for CqlValue {
    fn type_check(_: &ColumnType) -> Result<(), TypeMismatch> {
        Ok(())
    }

    /// Null is [`CqlValue::Null`], and no bytes where the type needs some is [`CqlValue::Empty`].
    fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
        let Some(bytes) = cell else {
            return Ok(Self::Null);
        };
        // A vector of no bytes is no vector, and must not pass for an empty one.
        let is_vector = matches!(ty, ColumnType::Vector(_));
        if bytes.is_empty() && !ty.has_zero_length_value() && !is_vector {
            return Ok(Self::Empty);
        }
        Ok(match ty {
            ColumnType::Ascii => Self::Ascii(DecodeValue::decode(ty, cell)?),
            ColumnType::BigInt => Self::BigInt(DecodeValue::decode(ty, cell)?),
            ColumnType::Blob => Self::Blob(DecodeValue::decode(ty, cell)?),
            ColumnType::Boolean => Self::Boolean(DecodeValue::decode(ty, cell)?),
            ColumnType::Counter => Self::Counter(DecodeValue::decode(ty, cell)?),
            ColumnType::Decimal => Self::Decimal(DecodeValue::decode(ty, cell)?),
            ColumnType::Double => Self::Double(DecodeValue::decode(ty, cell)?),
            ColumnType::Float => Self::Float(DecodeValue::decode(ty, cell)?),
            ColumnType::Int => Self::Int(DecodeValue::decode(ty, cell)?),
            ColumnType::Timestamp => Self::Timestamp(DecodeValue::decode(ty, cell)?),
            ColumnType::Uuid => Self::Uuid(DecodeValue::decode(ty, cell)?),
            ColumnType::Text => Self::Text(DecodeValue::decode(ty, cell)?),
            ColumnType::Varint => Self::Varint(DecodeValue::decode(ty, cell)?),
            ColumnType::Timeuuid => Self::Timeuuid(DecodeValue::decode(ty, cell)?),
            ColumnType::Inet => Self::Inet(DecodeValue::decode(ty, cell)?),
            ColumnType::Date => Self::Date(DecodeValue::decode(ty, cell)?),
            ColumnType::Time => Self::Time(DecodeValue::decode(ty, cell)?),
            ColumnType::SmallInt => Self::SmallInt(DecodeValue::decode(ty, cell)?),
            ColumnType::TinyInt => Self::TinyInt(DecodeValue::decode(ty, cell)?),
            ColumnType::Duration => Self::Duration(DecodeValue::decode(ty, cell)?),
            ColumnType::List(_) => Self::List(DecodeValue::decode(ty, cell)?),
            ColumnType::Set(_) => Self::Set(decode_elements(ty, cell)?),
            ColumnType::Vector(_) => Self::Vector(decode_elements(ty, cell)?),
            ColumnType::Map(_) => Self::Map(decode_entries(ty, cell)?),
            ColumnType::Tuple(types) => Self::Tuple(decode_tuple(types, bytes)?),
            ColumnType::Udt(udt) => Self::Udt(decode_udt(udt, bytes)?),
            ColumnType::Custom(_) | ColumnType::Unknown(_) => Self::Custom(Vec::from(bytes)),
        })
    }
}

fn decode_elements(
    ty: &ColumnType,
    cell: Option<&[u8]>,
) -> Result<Vec<CqlValue>, DecodeValueError> {
    let mut values = Vec::new();
    decode_sequence(ty, cell, |ty, element| {
        values.push(CqlValue::decode(ty, element)?);
        Ok(())
    })?;
    Ok(values)
}

fn decode_entries(
    ty: &ColumnType,
    cell: Option<&[u8]>,
) -> Result<Vec<(CqlValue, CqlValue)>, DecodeValueError> {
    let mut entries = Vec::new();
    decode_map(ty, cell, |(key_type, key), (value_type, value)| {
        entries.push((
            CqlValue::decode(key_type, key)?,
            CqlValue::decode(value_type, value)?,
        ));
        Ok(())
    })?;
    Ok(entries)
}

fn decode_tuple(
    types: &Shared<[ColumnType]>,
    bytes: &[u8],
) -> Result<Vec<CqlValue>, DecodeValueError> {
    let mut fields = Fields::new(bytes);
    types
        .iter()
        .map(|ty| CqlValue::decode(ty, fields.next()?))
        .collect()
}

fn decode_udt(udt: &UdtType, bytes: &[u8]) -> Result<UdtValue, DecodeValueError> {
    let mut values = Fields::new(bytes);
    let fields = udt
        .fields
        .iter()
        .map(|(name, ty)| Ok((name.clone(), CqlValue::decode(ty, values.next()?)?)))
        .collect::<Result<_, DecodeValueError>>()?;
    Ok(UdtValue { fields })
}

fn mismatch(rust: &'static str, ty: &ColumnType) -> TypeMismatch {
    TypeMismatch {
        rust,
        cql: ty.clone(),
    }
}
