//! Rust values that cells can become.
//!
//! The type is checked once per result ([`DecodeValue::type_check`]); decoding a cell of a type that
//! was not checked is an error or a wrong value, never a panic. Text and bytes can borrow from the
//! row.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::any::type_name;
use core::hash::{BuildHasher, Hash};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use uuid::Uuid;

use super::cell::{Elements, Fields, VectorElements, element_type, fixed, present};
use super::{
    ColumnType, Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlVarint,
    DecodeValueError, MaybeEmpty, TypeMismatch, vint,
};
use crate::wire::{ParseErrorKind, Reader};

/// A value that a cell of some CQL types can become.
pub trait DecodeValue<'a>: Sized {
    /// Whether cells of type `ty` can become one.
    fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch>;

    /// Reads a cell of type `ty`; null is `None`.
    fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError>;
}

pub(super) fn mismatch<T>(ty: &ColumnType) -> TypeMismatch {
    TypeMismatch::new(type_name::<T>(), ty)
}

/// Implements the trait for types that need nothing of the column type.
macro_rules! decode_plain {
    ($($rust:ty: $($cql:pat_param)|+ => |$cell:ident| $value:expr;)+) => {$(
        impl<'a> DecodeValue<'a> for $rust {
            fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
                match ty {
                    $($cql)|+ => Ok(()),
                    _ => Err(mismatch::<Self>(ty)),
                }
            }

            fn decode(_: &ColumnType, $cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
                $value
            }
        }
    )+};
}

use ColumnType as Type;

decode_plain! {
    bool: Type::Boolean => |cell| Ok(fixed::<1>(cell)? != [0]);
    i8: Type::TinyInt => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    i16: Type::SmallInt => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    i32: Type::Int => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    i64: Type::BigInt => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    f32: Type::Float => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    f64: Type::Double => |cell| Ok(Self::from_be_bytes(fixed(cell)?));
    Counter: Type::Counter => |cell| Ok(Self(i64::from_be_bytes(fixed(cell)?)));
    CqlVarint: Type::Varint => |cell| varint(present(cell)?);
    i128: Type::Varint => |cell| {
        Self::try_from(&varint(present(cell)?)?).map_err(|_| DecodeValueError::OutOfRange)
    };
    CqlDecimal: Type::Decimal => |cell| decimal(present(cell)?);
    CqlDate: Type::Date => |cell| Ok(Self::from_wire(u32::from_be_bytes(fixed(cell)?)));
    CqlTime: Type::Time => |cell| Ok(Self { nanoseconds: i64::from_be_bytes(fixed(cell)?) });
    CqlTimestamp: Type::Timestamp => |cell| {
        Ok(Self { milliseconds: i64::from_be_bytes(fixed(cell)?) })
    };
    CqlDuration: Type::Duration => |cell| duration(present(cell)?);
    Uuid: Type::Uuid | Type::Timeuuid => |cell| Ok(Self::from_bytes(fixed(cell)?));
    Ipv4Addr: Type::Inet => |cell| Ok(Self::from(fixed::<4>(cell)?));
    Ipv6Addr: Type::Inet => |cell| Ok(Self::from(fixed::<16>(cell)?));
    IpAddr: Type::Inet => |cell| match present(cell)?.len() {
        4 => Ok(Self::from(fixed::<4>(cell)?)),
        _ => Ok(Self::from(fixed::<16>(cell)?)),
    };
    &'a str: Type::Ascii | Type::Text => |cell| text(cell);
    String: Type::Ascii | Type::Text => |cell| text(cell).map(Self::from);
    &'a [u8]: Type::Blob | Type::Custom(_) | Type::Unknown(_) => |cell| {
        cell.ok_or(DecodeValueError::Null)
    };
    Vec<u8>: Type::Blob | Type::Custom(_) | Type::Unknown(_) => |cell| {
        cell.map(Self::from).ok_or(DecodeValueError::Null)
    };
    Bytes: Type::Blob | Type::Custom(_) | Type::Unknown(_) => |cell| {
        cell.map(Self::copy_from_slice).ok_or(DecodeValueError::Null)
    };
}

fn text(cell: Option<&[u8]>) -> Result<&str, DecodeValueError> {
    let bytes = cell.ok_or(DecodeValueError::Null)?;
    core::str::from_utf8(bytes).map_err(|_| {
        Reader::new(bytes)
            .error("text", ParseErrorKind::NotUtf8)
            .into()
    })
}

fn varint(bytes: &[u8]) -> Result<CqlVarint, DecodeValueError> {
    CqlVarint::from_signed_bytes(bytes).ok_or(DecodeValueError::Empty)
}

fn decimal(bytes: &[u8]) -> Result<CqlDecimal, DecodeValueError> {
    let mut reader = Reader::new(bytes);
    let scale = reader.int("scale of decimal")?;
    let too_short = DecodeValueError::Length {
        expected: 5,
        got: bytes.len(),
    };
    let unscaled = CqlVarint::from_signed_bytes(reader.rest()).ok_or(too_short)?;
    Ok(CqlDecimal { unscaled, scale })
}

fn duration(bytes: &[u8]) -> Result<CqlDuration, DecodeValueError> {
    let mut reader = Reader::new(bytes);
    let mut part = |what| vint::parse_signed(&mut reader, what);
    let (months, days) = (part("months of duration")?, part("days of duration")?);
    let nanoseconds = part("nanoseconds of duration")?;
    reader.finish("duration")?;
    let narrow = |part: i64| i32::try_from(part).map_err(|_| DecodeValueError::OutOfRange);
    Ok(CqlDuration {
        months: narrow(months)?,
        days: narrow(days)?,
        nanoseconds,
    })
}

impl<'a, T: DecodeValue<'a>> DecodeValue<'a> for Option<T> {
    fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
        T::type_check(ty)
    }

    fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
        cell.map(|bytes| T::decode(ty, Some(bytes))).transpose()
    }
}

impl<'a, T: DecodeValue<'a>> DecodeValue<'a> for MaybeEmpty<T> {
    fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
        T::type_check(ty)
    }

    fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
        match cell {
            Some([]) if !ty.has_zero_length_value() => Ok(Self::Empty),
            cell => T::decode(ty, cell).map(Self::Value),
        }
    }
}

/// Hands each element of a list, set or vector to `take`. A list or set that is null has none: nodes keep
/// an empty collection as no cells at all, and answer null for it.
pub(super) fn decode_sequence<'a>(
    ty: &ColumnType,
    cell: Option<&'a [u8]>,
    mut take: impl FnMut(&ColumnType, Option<&'a [u8]>) -> Result<(), DecodeValueError>,
) -> Result<(), DecodeValueError> {
    if let ColumnType::Vector(vector) = ty {
        let cell = cell.ok_or(DecodeValueError::Null)?;
        let mut elements = VectorElements::parse(vector, cell)?;
        while let Some(element) = elements.next() {
            take(&vector.element, Some(element?))?;
        }
        return elements.finish();
    }
    let Some(element_type) = element_type(ty) else {
        return Err(TypeMismatch::new("sequence", ty).into());
    };
    let Some(cell) = cell else {
        return Ok(());
    };
    let mut elements = Elements::parse(cell, 1)?;
    while let Some(element) = elements.next() {
        take(element_type, element?)?;
    }
    elements.finish()
}

/// Hands each key and value of a map to `take`; one that is null has none, as above.
pub(super) fn decode_map<'a>(
    ty: &ColumnType,
    cell: Option<&'a [u8]>,
    mut take: impl FnMut(
        (&ColumnType, Option<&'a [u8]>),
        (&ColumnType, Option<&'a [u8]>),
    ) -> Result<(), DecodeValueError>,
) -> Result<(), DecodeValueError> {
    let ColumnType::Map(types) = ty else {
        return Err(TypeMismatch::new("map", ty).into());
    };
    let Some(cell) = cell else {
        return Ok(());
    };
    let mut elements = Elements::parse(cell, 2)?;
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        take((&types.0, key?), (&types.1, value?))?;
    }
    elements.finish()
}

/// Implements the trait for collections of elements.
macro_rules! decode_sequences {
    ($([$($generics:tt)*] $rust:ty, $($cql:ident)|+ => $insert:ident;)+) => {$(
        impl<'a, $($generics)*> DecodeValue<'a> for $rust {
            fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
                match (ty, element_type(ty)) {
                    ($(ColumnType::$cql(_))|+, Some(element)) => T::type_check(element),
                    _ => Err(mismatch::<Self>(ty)),
                }
            }

            fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
                let mut values = Self::default();
                decode_sequence(ty, cell, |ty, element| {
                    values.$insert(T::decode(ty, element)?);
                    Ok(())
                })?;
                Ok(values)
            }
        }
    )+};
}

decode_sequences! {
    [T: DecodeValue<'a>] Vec<T>, List | Set | Vector => push;
    [T: DecodeValue<'a> + Ord] BTreeSet<T>, Set => insert;
    [T: DecodeValue<'a> + Eq + Hash, S: BuildHasher + Default] hashbrown::HashSet<T, S>, Set => insert;
}

/// Implements the trait for maps.
macro_rules! decode_maps {
    ($([$($generics:tt)*] $rust:ty;)+) => {$(
        impl<'a, $($generics)*> DecodeValue<'a> for $rust {
            fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
                let ColumnType::Map(types) = ty else { return Err(mismatch::<Self>(ty)) };
                K::type_check(&types.0)?;
                V::type_check(&types.1)
            }

            fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
                let mut values = Self::default();
                decode_map(ty, cell, |(key_type, key), (value_type, value)| {
                    values.insert(K::decode(key_type, key)?, V::decode(value_type, value)?);
                    Ok(())
                })?;
                Ok(values)
            }
        }
    )+};
}

decode_maps! {
    [K: DecodeValue<'a> + Ord, V: DecodeValue<'a>] BTreeMap<K, V>;
    [K: DecodeValue<'a> + Eq + Hash, V: DecodeValue<'a>, S: BuildHasher + Default]
        hashbrown::HashMap<K, V, S>;
}

#[cfg(feature = "std")]
pub(super) use {decode_maps, decode_sequences};

impl<'a, T: DecodeValue<'a>, const N: usize> DecodeValue<'a> for [T; N] {
    fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
        match ty {
            ColumnType::Vector(vector) if usize::try_from(vector.dimension) == Ok(N) => {
                T::type_check(&vector.element)
            }
            _ => Err(mismatch::<Self>(ty)),
        }
    }

    fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
        let values = Vec::<T>::decode(ty, cell)?;
        Self::try_from(values).map_err(|values| DecodeValueError::Length {
            expected: N,
            got: values.len(),
        })
    }
}

/// Implements the trait for tuples of as many fields as the type has.
macro_rules! decode_tuple {
    ($count:literal: $($field:ident)+) => {
        impl<'a, $($field: DecodeValue<'a>),+> DecodeValue<'a> for ($($field,)+) {
            fn type_check(ty: &ColumnType) -> Result<(), TypeMismatch> {
                let ColumnType::Tuple(types) = ty else { return Err(mismatch::<Self>(ty)) };
                if types.len() != $count {
                    return Err(mismatch::<Self>(ty));
                }
                let mut types = types.iter();
                $(if let Some(ty) = types.next() {
                    $field::type_check(ty)?;
                })+
                Ok(())
            }

            fn decode(ty: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
                let cell = cell.ok_or(DecodeValueError::Null)?;
                let ColumnType::Tuple(types) = ty else { return Err(mismatch::<Self>(ty).into()) };
                let mut types = types.iter();
                let mut fields = Fields::new(cell);
                Ok(($({
                    let field = types.next().ok_or_else(|| mismatch::<Self>(ty))?;
                    $field::decode(field, fields.next()?)?
                },)+))
            }
        }
    };
}

decode_tuple!(1: A);
decode_tuple!(2: A B);
decode_tuple!(3: A B C);
decode_tuple!(4: A B C D);
decode_tuple!(5: A B C D E);
decode_tuple!(6: A B C D E F);
decode_tuple!(7: A B C D E F G);
decode_tuple!(8: A B C D E F G H);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::testing::{bytes, ty};
    use core::fmt::Debug;
    use std::vec;

    fn decode<T: for<'a> DecodeValue<'a>>(
        class: &str,
        cell: Option<&str>,
    ) -> Result<T, DecodeValueError> {
        T::type_check(&ty(class))?;
        let cell = cell.map(bytes);
        T::decode(&ty(class), cell.as_deref())
    }

    fn check<T: for<'a> DecodeValue<'a> + PartialEq + Debug>(class: &str, cell: &str, value: T) {
        assert_eq!(decode::<T>(class, Some(cell)), Ok(value), "{class} {cell}");
    }

    #[test]
    fn null_empty_and_wrong_lengths_are_errors_of_their_own() {
        assert_eq!(decode::<i64>("LongType", None), Err(DecodeValueError::Null));
        assert_eq!(
            decode::<i64>("LongType", Some("")),
            Err(DecodeValueError::Empty)
        );
        let length = DecodeValueError::Length {
            expected: 8,
            got: 4,
        };
        assert_eq!(decode::<i64>("LongType", Some("00000000")), Err(length));
        assert_eq!(decode::<Option<i64>>("LongType", None), Ok(None));
        assert_eq!(
            decode::<Option<i64>>("LongType", Some("")),
            Err(DecodeValueError::Empty)
        );
        assert_eq!(
            decode::<MaybeEmpty<i64>>("LongType", Some("")),
            Ok(MaybeEmpty::Empty)
        );
        check("UTF8Type", "", MaybeEmpty::Value(String::new()));
        assert_eq!(decode::<Option<String>>("UTF8Type", None), Ok(None));
        check("UTF8Type", "", Some(String::new()));
    }

    #[test]
    fn text_and_bytes_borrow_from_the_row() {
        let row = bytes("c3bc00");
        let cell = Some(&row[..2]);
        let text = <&str>::decode(&ColumnType::Text, cell).unwrap();
        assert_eq!((text, text.as_ptr()), ("ü", row.as_ptr()));
        let blob = <&[u8]>::decode(&ColumnType::Blob, cell).unwrap();
        assert_eq!(blob.as_ptr(), row.as_ptr());
        let error = <&str>::decode(&ColumnType::Text, Some(&row[1..])).unwrap_err();
        assert!(matches!(error, DecodeValueError::Parse(_)));
    }

    #[test]
    fn a_varint_fits_or_is_an_error() {
        check("IntegerType", "d8f0", -10_000_i128);
        check("IntegerType", "0000007f", 127_i128);
        let error = decode::<i128>("IntegerType", Some("00b70cefb9c19c9c5112972fd01a4e676d"));
        assert_eq!(error, Err(DecodeValueError::OutOfRange));
        assert_eq!(
            decode::<i128>("IntegerType", Some("")),
            Err(DecodeValueError::Empty)
        );
    }

    #[test]
    fn typed_tuples_follow_the_rules_of_dynamic_ones() {
        type Three = (Option<i32>, Option<String>, Option<i64>);
        let class = "TupleType(Int32Type,UTF8Type,LongType)";
        check::<Three>(class, "0000000400000001", (Some(1), None, None));
        check::<Three>(
            class,
            "00000004000000010000000161",
            (Some(1), Some("a".into()), None),
        );
        check::<Three>(class, "ffffffffffffffffffffffff", (None, None, None));
        assert_eq!(decode::<Option<Three>>(class, None), Ok(None));
        assert!(decode::<Three>(class, None).is_err());
        assert!(matches!(
            decode::<(i32, String)>(class, Some("")),
            Err(DecodeValueError::Mismatch(_))
        ));
        check(
            "ListType(FrozenType(TupleType(Int32Type,UTF8Type)))",
            "000000020000000800000004000000010000000d00000004000000020000000162",
            vec![(1, None), (2, Some(String::from("b")))],
        );
    }

    #[test]
    fn a_collection_that_is_null_is_empty_unless_it_is_asked_for() {
        let none = Ok(Vec::<i32>::new());
        assert_eq!(decode("ListType(Int32Type)", None), none);
        assert_eq!(decode("SetType(Int32Type)", None), none);
        assert_eq!(
            decode("MapType(Int32Type,Int32Type)", None),
            Ok(BTreeMap::<i32, i32>::new())
        );
        assert_eq!(decode("ListType(Int32Type)", None), Ok(None::<Vec<i32>>));
        let vector = decode::<Vec<f32>>("VectorType(FloatType,3)", None);
        assert_eq!(vector, Err(DecodeValueError::Null));
        let missing = decode::<[f32; 3]>("VectorType(FloatType,3)", None);
        assert_eq!(missing, Err(DecodeValueError::Null));
    }

    #[test]
    fn collections_and_vectors() {
        check(
            "SetType(Int32Type)",
            "000000010000000400000001",
            BTreeSet::from([1]),
        );
        let map = "0000000100000001610000000400000007";
        check(
            "MapType(UTF8Type,Int32Type)",
            map,
            BTreeMap::from([(String::from("a"), 7)]),
        );
        check(
            "VectorType(FloatType,3)",
            "3fc00000c000000000000000",
            [1.5_f32, -2.0, 0.0],
        );
        check(
            "VectorType(FloatType,3)",
            "3fc00000c000000000000000",
            vec![1.5_f32, -2.0, 0.0],
        );
        assert!(decode::<[f32; 2]>("VectorType(FloatType,3)", Some("")).is_err());
        assert!(decode::<Vec<f32>>("VectorType(FloatType,3)", Some("")).is_err());
        for cell in ["0000", "ffffffff", "7fffffff", "000000020000000400000001"] {
            assert!(
                decode::<Vec<i32>>("ListType(Int32Type)", Some(cell)).is_err(),
                "{cell}"
            );
        }
    }

    #[test]
    fn types_that_do_not_fit_are_found_before_any_cell() {
        let mismatch = i64::type_check(&ColumnType::Int).unwrap_err();
        assert_eq!((mismatch.rust, mismatch.cql), ("i64", ColumnType::Int));
        assert!(Vec::<i32>::type_check(&ty("ListType(LongType)")).is_err());
        assert!(BTreeMap::<i32, i32>::type_check(&ty("MapType(Int32Type,LongType)")).is_err());
        assert!(<[f32; 2]>::type_check(&ty("VectorType(FloatType,3)")).is_err());
        // Not checked, still no panic.
        assert!(Vec::<i32>::decode(&ColumnType::Int, Some(&[0; 4])).is_err());
        assert!(<(i32,)>::decode(&ColumnType::Int, Some(&[0; 4])).is_err());
    }
}
