//! Rust values that can be bound.
//!
//! Each implementation checks the column's type first; what does not fit is a [`TypeMismatch`] and
//! writes nothing.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::any::type_name;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use uuid::Uuid;

use super::cell::element_type;
use super::{
    ColumnType, Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlVarint,
    EncodeValueError, MaybeEmpty, TypeMismatch, ValueWriter, Written, vint,
};

/// A value that can be bound to a marker of some CQL types.
pub trait EncodeValue {
    /// Writes the value as one of type `ty`.
    fn encode(&self, ty: &ColumnType, writer: ValueWriter<'_>)
    -> Result<Written, EncodeValueError>;
}

/// Leaves the column as it is. Only for bind markers, and not on protocol version 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unset;

/// A value, or [`Unset`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there is no third case")]
pub enum MaybeUnset<T> {
    /// Leave the column as it is.
    #[default]
    Unset,
    /// A value.
    Set(T),
}

fn mismatch<T: ?Sized>(ty: &ColumnType) -> EncodeValueError {
    TypeMismatch::new(type_name::<T>(), ty).into()
}

/// Implements the trait for types that are a few bytes.
macro_rules! encode_bytes {
    ($($rust:ty: $($cql:ident)|+ => |$value:ident| $bytes:expr;)+) => {$(
        impl EncodeValue for $rust {
            fn encode(
                &self,
                ty: &ColumnType,
                writer: ValueWriter<'_>,
            ) -> Result<Written, EncodeValueError> {
                let $value = self;
                match ty {
                    $(ColumnType::$cql)|+ => writer.value($bytes),
                    _ => Err(mismatch::<Self>(ty)),
                }
            }
        }
    )+};
}

encode_bytes! {
    bool: Boolean => |value| &[u8::from(*value)];
    i8: TinyInt => |value| &value.to_be_bytes();
    i16: SmallInt => |value| &value.to_be_bytes();
    i32: Int => |value| &value.to_be_bytes();
    i64: BigInt => |value| &value.to_be_bytes();
    f32: Float => |value| &value.to_be_bytes();
    f64: Double => |value| &value.to_be_bytes();
    i128: Varint => |value| CqlVarint::from(*value).as_signed_bytes();
    Counter: Counter => |value| &value.0.to_be_bytes();
    CqlVarint: Varint => |value| value.as_signed_bytes();
    CqlDate: Date => |value| &value.to_wire().to_be_bytes();
    CqlTime: Time => |value| &value.nanoseconds.to_be_bytes();
    CqlTimestamp: Timestamp => |value| &value.milliseconds.to_be_bytes();
    Uuid: Uuid | Timeuuid => |value| value.as_bytes();
    Ipv4Addr: Inet => |value| &value.octets();
    Ipv6Addr: Inet => |value| &value.octets();
    str: Ascii | Text => |value| value.as_bytes();
    String: Ascii | Text => |value| value.as_bytes();
}

/// Implements the trait for byte strings, which also stand for values of types that are not known.
macro_rules! encode_blob {
    ($([$($generics:tt)*] $rust:ty;)+) => {$(
        impl<$($generics)*> EncodeValue for $rust {
            fn encode(
                &self,
                ty: &ColumnType,
                writer: ValueWriter<'_>,
            ) -> Result<Written, EncodeValueError> {
                match ty {
                    ColumnType::Blob | ColumnType::Custom(_) | ColumnType::Unknown(_) => {
                        writer.value(self.as_ref())
                    }
                    _ => Err(mismatch::<Self>(ty)),
                }
            }
        }
    )+};
}

encode_blob! {
    [] [u8];
    [] Vec<u8>;
    [] Bytes;
    [const N: usize] [u8; N];
}

impl EncodeValue for IpAddr {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        match self {
            Self::V4(address) => address.encode(ty, writer),
            Self::V6(address) => address.encode(ty, writer),
        }
    }
}

impl EncodeValue for CqlDecimal {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        let ColumnType::Decimal = ty else {
            return Err(mismatch::<Self>(ty));
        };
        writer.value_with(|content| {
            content.put(&self.scale.to_be_bytes());
            content.put(self.unscaled.as_signed_bytes());
            Ok(())
        })
    }
}

impl EncodeValue for CqlDuration {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        let ColumnType::Duration = ty else {
            return Err(mismatch::<Self>(ty));
        };
        writer.value_with(|content| {
            vint::put_signed(content.sink(), i64::from(self.months));
            vint::put_signed(content.sink(), i64::from(self.days));
            vint::put_signed(content.sink(), self.nanoseconds);
            Ok(())
        })
    }
}

impl EncodeValue for Unset {
    fn encode(&self, _: &ColumnType, writer: ValueWriter<'_>) -> Result<Written, EncodeValueError> {
        writer.unset()
    }
}

impl<T: EncodeValue> EncodeValue for MaybeUnset<T> {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        match self {
            Self::Unset => writer.unset(),
            Self::Set(value) => value.encode(ty, writer),
        }
    }
}

impl<T: EncodeValue> EncodeValue for MaybeEmpty<T> {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        match self {
            Self::Empty => writer.value(&[]),
            Self::Value(value) => value.encode(ty, writer),
        }
    }
}

impl<T: EncodeValue> EncodeValue for Option<T> {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        match self {
            None => writer.null(),
            Some(value) => value.encode(ty, writer),
        }
    }
}

impl<T: EncodeValue + ?Sized> EncodeValue for &T {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        (**self).encode(ty, writer)
    }
}

impl<T: EncodeValue + ?Sized> EncodeValue for Box<T> {
    fn encode(
        &self,
        ty: &ColumnType,
        writer: ValueWriter<'_>,
    ) -> Result<Written, EncodeValueError> {
        (**self).encode(ty, writer)
    }
}

/// Writes elements as a list, set or vector.
pub(super) fn encode_sequence<'v, T: EncodeValue + 'v>(
    rust: &'static str,
    ty: &ColumnType,
    writer: ValueWriter<'_>,
    elements: impl ExactSizeIterator<Item = &'v T>,
) -> Result<Written, EncodeValueError> {
    let Some(element) = element_type(ty) else {
        return Err(TypeMismatch::new(rust, ty).into());
    };
    if let ColumnType::Vector(vector) = ty {
        let (expected, got) = (vector.dimension, elements.len());
        if usize::try_from(expected) != Ok(got) {
            return Err(EncodeValueError::Dimension { expected, got });
        }
        return writer.value_with(|content| {
            for value in elements {
                value.encode(element, content.vector_element(element))?;
            }
            Ok(())
        });
    }
    writer.value_with(|content| {
        content.put_count(elements.len())?;
        for value in elements {
            value.encode(element, content.nested())?;
        }
        Ok(())
    })
}

/// Writes keys and values as a map.
pub(super) fn encode_map<'v, K: EncodeValue + 'v, V: EncodeValue + 'v>(
    rust: &'static str,
    ty: &ColumnType,
    writer: ValueWriter<'_>,
    entries: impl ExactSizeIterator<Item = (&'v K, &'v V)>,
) -> Result<Written, EncodeValueError> {
    let ColumnType::Map(types) = ty else {
        return Err(TypeMismatch::new(rust, ty).into());
    };
    writer.value_with(|content| {
        content.put_count(entries.len())?;
        for (key, value) in entries {
            key.encode(&types.0, content.nested())?;
            value.encode(&types.1, content.nested())?;
        }
        Ok(())
    })
}

/// Implements the trait for collections.
macro_rules! encode_collections {
    ($([$($generics:tt)*] $rust:ty => $encode:ident;)+) => {$(
        impl<$($generics)*> EncodeValue for $rust {
            fn encode(
                &self,
                ty: &ColumnType,
                writer: ValueWriter<'_>,
            ) -> Result<Written, EncodeValueError> {
                $encode(type_name::<Self>(), ty, writer, self.iter())
            }
        }
    )+};
}

encode_collections! {
    [T: EncodeValue] [T] => encode_sequence;
    [T: EncodeValue] Vec<T> => encode_sequence;
    [T: EncodeValue, const N: usize] [T; N] => encode_sequence;
    [T: EncodeValue] BTreeSet<T> => encode_sequence;
    [T: EncodeValue, S] hashbrown::HashSet<T, S> => encode_sequence;
    [K: EncodeValue, V: EncodeValue] BTreeMap<K, V> => encode_map;
    [K: EncodeValue, V: EncodeValue, S] hashbrown::HashMap<K, V, S> => encode_map;
}

#[cfg(feature = "std")]
pub(super) use encode_collections;

/// The fields of a tuple type, if so many may be given.
pub(super) fn tuple_fields<'t>(
    rust: &'static str,
    ty: &'t ColumnType,
    got: usize,
) -> Result<&'t [ColumnType], EncodeValueError> {
    let ColumnType::Tuple(fields) = ty else {
        return Err(TypeMismatch::new(rust, ty).into());
    };
    if got > fields.len() {
        return Err(EncodeValueError::TupleLength {
            expected: fields.len(),
            got,
        });
    }
    Ok(fields)
}

/// Implements the trait for tuples; a shorter tuple fits a longer type.
macro_rules! encode_tuple {
    ($count:literal: $($field:ident)+) => {
        impl<$($field: EncodeValue),+> EncodeValue for ($($field,)+) {
            #[expect(non_snake_case, reason = "one name for the type and the field")]
            fn encode(
                &self,
                ty: &ColumnType,
                writer: ValueWriter<'_>,
            ) -> Result<Written, EncodeValueError> {
                let mut types = tuple_fields(type_name::<Self>(), ty, $count)?.iter();
                let ($($field,)+) = self;
                writer.value_with(|content| {
                    $(if let Some(ty) = types.next() {
                        $field.encode(ty, content.nested())?;
                    })+
                    Ok(())
                })
            }
        }
    };
}

encode_tuple!(1: A);
encode_tuple!(2: A B);
encode_tuple!(3: A B C);
encode_tuple!(4: A B C D);
encode_tuple!(5: A B C D E);
encode_tuple!(6: A B C D E F);
encode_tuple!(7: A B C D E F G);
encode_tuple!(8: A B C D E F G H);
