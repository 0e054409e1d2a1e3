//! Enumerations without fields as values: by the names of their variants, or by their numbers.

use core::any::type_name;

use crate::types::cell::fixed;
use crate::types::{
    ColumnType, DecodeValue, DecodeValueError, EncodeValue, EncodeValueError, TypeMismatch,
    ValueWriter, Written,
};

/// Writes the name of a variant of `T` as text.
pub fn encode_variant<T>(
    name: &str,
    ty: &ColumnType,
    writer: ValueWriter<'_>,
) -> Result<Written, EncodeValueError> {
    check_variant::<T>(ty)?;
    name.encode(ty, writer)
}

/// Whether values of a type can be names of variants of `T`.
pub fn check_variant<T>(ty: &ColumnType) -> Result<(), TypeMismatch> {
    match ty {
        ColumnType::Ascii | ColumnType::Text => Ok(()),
        _ => Err(TypeMismatch::new(type_name::<T>(), ty)),
    }
}

/// Reads the name of a variant of `T`.
pub fn decode_variant<'a, T>(
    ty: &ColumnType,
    cell: Option<&'a [u8]>,
) -> Result<&'a str, DecodeValueError> {
    check_variant::<T>(ty)?;
    <&str>::decode(ty, cell)
}

/// Writes the number of a variant of `T` as an integer of the type's width.
pub fn encode_number<T>(
    number: i64,
    ty: &ColumnType,
    writer: ValueWriter<'_>,
) -> Result<Written, EncodeValueError> {
    let too_large = |_| EncodeValueError::OutOfRange;
    match ty {
        ColumnType::TinyInt => i8::try_from(number).map_err(too_large)?.encode(ty, writer),
        ColumnType::SmallInt => i16::try_from(number).map_err(too_large)?.encode(ty, writer),
        ColumnType::Int => i32::try_from(number).map_err(too_large)?.encode(ty, writer),
        ColumnType::BigInt => number.encode(ty, writer),
        _ => Err(TypeMismatch::new(type_name::<T>(), ty).into()),
    }
}

/// Whether values of a type can be numbers of variants of `T`.
pub fn check_number<T>(ty: &ColumnType) -> Result<(), TypeMismatch> {
    match ty {
        ColumnType::TinyInt | ColumnType::SmallInt | ColumnType::Int | ColumnType::BigInt => Ok(()),
        _ => Err(TypeMismatch::new(type_name::<T>(), ty)),
    }
}

/// Reads the number of a variant of `T` from an integer of any width.
pub fn decode_number<T>(ty: &ColumnType, cell: Option<&[u8]>) -> Result<i64, DecodeValueError> {
    match ty {
        ColumnType::TinyInt => Ok(i8::from_be_bytes(fixed(cell)?).into()),
        ColumnType::SmallInt => Ok(i16::from_be_bytes(fixed(cell)?).into()),
        ColumnType::Int => Ok(i32::from_be_bytes(fixed(cell)?).into()),
        ColumnType::BigInt => Ok(i64::from_be_bytes(fixed(cell)?)),
        _ => Err(TypeMismatch::new(type_name::<T>(), ty).into()),
    }
}

/// A text or number that stands for no variant of `T`.
#[cold]
pub fn no_variant<T>() -> DecodeValueError {
    DecodeValueError::NoVariant(type_name::<T>())
}
