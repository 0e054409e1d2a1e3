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
    let mut given = value.fields.iter();
    while let Some((name, _)) = given.next() {
        if !known(name) {
            return Err(EncodeValueError::UnknownField(name.clone()));
        }
        // One of the two would be lost without a word.
        if given.clone().any(|(other, _)| other == name) {
            return Err(EncodeValueError::FieldTwice(name.clone()));
        }
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
    TypeMismatch::new(rust, ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::testing::{bytes, encode, ty};
    use crate::types::{
        Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlVarint,
    };
    use crate::wire::ParseErrorKind;
    use alloc::boxed::Box;
    use alloc::collections::BTreeSet;
    use core::net::IpAddr;
    use std::string::String;
    use std::vec;
    use uuid::Uuid;

    fn decode(class: &str, cell: &str) -> Result<CqlValue, DecodeValueError> {
        CqlValue::decode(&ty(class), Some(&bytes(cell)))
    }

    fn int(value: i32) -> CqlValue {
        CqlValue::Int(value)
    }

    fn text(value: &str) -> CqlValue {
        CqlValue::Text(value.into())
    }

    fn udt(fields: &[(&str, CqlValue)]) -> CqlValue {
        let fields = fields
            .iter()
            .map(|(name, value)| (Box::from(*name), value.clone()))
            .collect();
        CqlValue::Udt(UdtValue { fields })
    }

    fn duration(months: i32, days: i32, nanoseconds: i64) -> CqlValue {
        CqlValue::Duration(CqlDuration {
            months,
            days,
            nanoseconds,
        })
    }

    /// Values whose bytes are given by the specification or by servers; both ways.
    #[test]
    fn values_of_every_type_both_ways() {
        let uuid = Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        let unscaled = CqlVarint::from(-10_000_i64);
        let float = CqlValue::Float;
        let floats = |a, b| CqlValue::Vector(vec![float(a), float(b)]);
        let table = [
            ("AsciiType", "6162", CqlValue::Ascii("ab".into())),
            ("LongType", "fffffffffffffffe", CqlValue::BigInt(-2)),
            ("BytesType", "00ff", CqlValue::Blob(vec![0, 255])),
            ("BytesType", "", CqlValue::Blob(vec![])),
            ("BooleanType", "01", CqlValue::Boolean(true)),
            ("BooleanType", "00", CqlValue::Boolean(false)),
            (
                "CounterColumnType",
                "0000000000000005",
                CqlValue::Counter(Counter(5)),
            ),
            (
                "DecimalType",
                "00000002d8f0",
                CqlValue::Decimal(CqlDecimal { unscaled, scale: 2 }),
            ),
            ("DoubleType", "3ff8000000000000", CqlValue::Double(1.5)),
            ("FloatType", "c0000000", CqlValue::Float(-2.0)),
            ("Int32Type", "80000000", int(i32::MIN)),
            (
                "TimestampType",
                "ffffffffffffffff",
                CqlValue::Timestamp(CqlTimestamp { milliseconds: -1 }),
            ),
            (
                "UUIDType",
                "0102030405060708090a0b0c0d0e0f10",
                CqlValue::Uuid(uuid),
            ),
            (
                "TimeUUIDType",
                "0102030405060708090a0b0c0d0e0f10",
                CqlValue::Timeuuid(uuid),
            ),
            ("UTF8Type", "c3bc", text("ü")),
            ("UTF8Type", "", text("")),
            (
                "IntegerType",
                "0080",
                CqlValue::Varint(CqlVarint::from(128_i64)),
            ),
            (
                "InetAddressType",
                "7f000001",
                CqlValue::Inet(IpAddr::from([127, 0, 0, 1])),
            ),
            (
                "InetAddressType",
                "20010db8000000000000000000000001",
                CqlValue::Inet("2001:db8::1".parse().unwrap()),
            ),
            (
                "SimpleDateType",
                "7fffffff",
                CqlValue::Date(CqlDate {
                    days_since_epoch: -1,
                }),
            ),
            (
                "TimeType",
                "00004e94914effff",
                CqlValue::Time(CqlTime {
                    nanoseconds: 86_399_999_999_999,
                }),
            ),
            ("ShortType", "fffe", CqlValue::SmallInt(-2)),
            ("ByteType", "80", CqlValue::TinyInt(i8::MIN)),
            ("DurationType", "020406", duration(1, 2, 3)),
            ("DurationType", "010305", duration(-1, -2, -3)),
            ("DurationType", "000000", duration(0, 0, 0)),
            ("DurationType", "020100", duration(1, -1, 0)),
            (
                "DurationType",
                "0000f200000000",
                duration(0, 0, 4_294_967_296),
            ),
            (
                "DurationType",
                "0000fc9d29229dfffe",
                duration(0, 0, 86_399_999_999_999),
            ),
            (
                "DurationType",
                "0000ffffffffffffffffff",
                duration(0, 0, i64::MIN),
            ),
            (
                "DurationType",
                "f0fffffffef0fffffffefffffffffffffffffe",
                duration(i32::MAX, i32::MAX, i64::MAX),
            ),
            (
                "DurationType",
                "f0fffffffff0ffffffffffffffffffffffffff",
                duration(i32::MIN, i32::MIN, i64::MIN),
            ),
            ("ListType(Int32Type)", "00000000", CqlValue::List(vec![])),
            (
                "ListType(Int32Type)",
                "000000020000000400000001ffffffff",
                CqlValue::List(vec![int(1), CqlValue::Null]),
            ),
            (
                "SetType(UTF8Type)",
                "000000010000000161",
                CqlValue::Set(vec![text("a")]),
            ),
            (
                "MapType(UTF8Type,Int32Type)",
                "0000000100000001610000000400000007",
                CqlValue::Map(vec![(text("a"), int(7))]),
            ),
            (
                "TupleType(Int32Type,UTF8Type,LongType)",
                "ffffffffffffffffffffffff",
                CqlValue::Tuple(vec![CqlValue::Null; 3]),
            ),
            (
                "UserType(k,75,61:Int32Type,62:UTF8Type)",
                "00000004000000070000000178",
                udt(&[("a", int(7)), ("b", text("x"))]),
            ),
            (
                "VectorType(FloatType,3)",
                "3fc00000c000000000000000",
                CqlValue::Vector(vec![float(1.5), float(-2.0), float(0.0)]),
            ),
            (
                "VectorType(ShortType,2)",
                "02000102fffe",
                CqlValue::Vector(vec![CqlValue::SmallInt(1), CqlValue::SmallInt(-2)]),
            ),
            (
                "VectorType(ByteType,2)",
                "010101ff",
                CqlValue::Vector(vec![CqlValue::TinyInt(1), CqlValue::TinyInt(-1)]),
            ),
            (
                "VectorType(SimpleDateType,1)",
                "0480000000",
                CqlValue::Vector(vec![CqlValue::Date(CqlDate {
                    days_since_epoch: 0,
                })]),
            ),
            (
                "VectorType(CounterColumnType,1)",
                "080000000000000005",
                CqlValue::Vector(vec![CqlValue::Counter(Counter(5))]),
            ),
            (
                "VectorType(InetAddressType,1)",
                "047f000001",
                CqlValue::Vector(vec![CqlValue::Inet(IpAddr::from([127, 0, 0, 1]))]),
            ),
            (
                "VectorType(BooleanType,3)",
                "010001",
                CqlValue::Vector([true, false, true].map(CqlValue::Boolean).to_vec()),
            ),
            (
                "VectorType(VectorType(FloatType,2),2)",
                "3f800000400000004040000040800000",
                CqlValue::Vector(vec![floats(1.0, 2.0), floats(3.0, 4.0)]),
            ),
            (
                "VectorType(ListType(Int32Type),1)",
                "0c000000010000000400000009",
                CqlValue::Vector(vec![CqlValue::List(vec![int(9)])]),
            ),
            ("com.example.Point", "0102", CqlValue::Custom(vec![1, 2])),
        ];
        for (class, cell, value) in table {
            assert_eq!(decode(class, cell).as_ref(), Ok(&value), "{class} {cell}");
            let written = encode(&ty(class), &value).unwrap();
            let len = i32::try_from(cell.len() / 2).unwrap().to_be_bytes();
            assert_eq!(written, [&len[..], &bytes(cell)].concat(), "{class} {cell}");
        }
    }

    #[test]
    fn null_and_empty_are_not_values() {
        for class in [
            "LongType",
            "UTF8Type",
            "ListType(Int32Type)",
            "UserType(k,75)",
            "IntegerType",
        ] {
            assert_eq!(CqlValue::decode(&ty(class), None), Ok(CqlValue::Null));
            assert_eq!(
                encode(&ty(class), &CqlValue::Null).unwrap(),
                bytes("ffffffff")
            );
            assert_eq!(
                encode(&ty(class), &CqlValue::Unset).unwrap(),
                bytes("fffffffe")
            );
            assert_eq!(
                encode(&ty(class), &CqlValue::Empty).unwrap(),
                bytes("00000000")
            );
        }
        for class in [
            "LongType",
            "IntegerType",
            "DecimalType",
            "InetAddressType",
            "DurationType",
        ] {
            assert_eq!(decode(class, ""), Ok(CqlValue::Empty), "{class}");
        }
        assert_eq!(
            decode("ListType(Int32Type)", ""),
            Ok(CqlValue::List(vec![]))
        );
        assert_eq!(
            decode("MapType(Int32Type,Int32Type)", ""),
            Ok(CqlValue::Map(vec![]))
        );
    }

    #[test]
    fn user_types_may_have_grown_or_shrunk() {
        let class = "UserType(k,75,61:Int32Type,62:UTF8Type)";
        let table = [
            (
                "0000000400000007",
                udt(&[("a", int(7)), ("b", CqlValue::Null)]),
            ),
            ("", udt(&[("a", CqlValue::Null), ("b", CqlValue::Null)])),
            (
                "000000040000000700000001780000000400000009",
                udt(&[("a", int(7)), ("b", text("x"))]),
            ),
        ];
        for (cell, value) in table {
            assert_eq!(decode(class, cell), Ok(value));
        }
        assert!(matches!(
            decode(class, "000000040000"),
            Err(DecodeValueError::Parse(_))
        ));
        let outer =
            "UserType(k,6f,69:FrozenType(UserType(k,75,78:Int32Type,79:Int32Type)),74:UTF8Type)";
        let inner = udt(&[("x", int(1)), ("y", CqlValue::Null)]);
        assert_eq!(
            decode(outer, "000000080000000400000001000000017a"),
            Ok(udt(&[("i", inner), ("t", text("z"))]))
        );
    }

    #[test]
    fn user_types_are_bound_by_field_name() {
        let ty = ty("UserType(k,75,61:Int32Type,62:UTF8Type)");
        let turned = udt(&[("b", text("x")), ("a", int(7))]);
        assert_eq!(
            encode(&ty, &turned).unwrap(),
            bytes("0000000d00000004000000070000000178")
        );
        let short = udt(&[("b", text("x"))]);
        assert_eq!(
            encode(&ty, &short).unwrap(),
            bytes("00000009ffffffff0000000178")
        );
        let unknown = udt(&[("c", int(1))]);
        assert_eq!(
            encode(&ty, &unknown),
            Err(EncodeValueError::UnknownField("c".into()))
        );
        let twice = udt(&[("a", int(1)), ("b", text("x")), ("a", int(2))]);
        assert_eq!(
            encode(&ty, &twice),
            Err(EncodeValueError::FieldTwice("a".into()))
        );
    }

    #[test]
    fn tuples_may_be_shorter_than_their_type() {
        let class = "TupleType(Int32Type,UTF8Type,LongType)";
        let null = CqlValue::Null;
        let one = CqlValue::Tuple(vec![int(1), null.clone(), null.clone()]);
        assert_eq!(decode(class, "0000000400000001"), Ok(one));
        let two = CqlValue::Tuple(vec![int(1), text("a"), null.clone()]);
        assert_eq!(decode(class, "00000004000000010000000161"), Ok(two));
        assert_eq!(CqlValue::decode(&ty(class), None), Ok(null.clone()));
        assert_eq!(
            decode(
                "ListType(FrozenType(TupleType(Int32Type,UTF8Type)))",
                "000000020000000800000004000000010000000d00000004000000020000000162"
            ),
            Ok(CqlValue::List(vec![
                CqlValue::Tuple(vec![int(1), null]),
                CqlValue::Tuple(vec![int(2), text("b")]),
            ]))
        );
        let short = encode(&ty(class), &CqlValue::Tuple(vec![int(1)])).unwrap();
        assert_eq!(short, bytes("000000080000000400000001"));
        let long = CqlValue::Tuple(vec![int(1); 4]);
        let error = EncodeValueError::TupleLength {
            expected: 3,
            got: 4,
        };
        assert_eq!(encode(&ty(class), &long), Err(error));
    }

    #[test]
    fn collections_that_lie_are_errors() {
        let count = |count| ParseErrorKind::BadCount { count };
        let truncated = |needed, left| ParseErrorKind::Truncated { needed, left };
        let (list, map) = ("ListType(Int32Type)", "MapType(Int32Type,Int32Type)");
        // A count that the bytes cannot hold is refused before anything is read by it.
        let table = [
            (list, "0000", truncated(4, 2)),
            (list, "ffffffff", count(-1)),
            (list, "7fffffff", count(i32::MAX)),
            (list, "000000020000000400000001", truncated(4, 0)),
            (list, "00000001000000646162", truncated(100, 2)),
            (list, "0000000009", ParseErrorKind::Trailing { extra: 1 }),
            (map, "40000000", count(0x4000_0000)),
            (map, "7fffffff", count(i32::MAX)),
            (map, "0000000200000004000000010000", count(2)),
            (map, "000000010000000400000001ff", truncated(4, 1)),
        ];
        for (class, cell, kind) in table {
            let Err(DecodeValueError::Parse(error)) = decode(class, cell) else {
                panic!("{cell}")
            };
            assert_eq!(error.kind, kind, "{class} {cell}");
        }
        let error = decode("SetType(Int32Type)", "7fffffff");
        assert!(matches!(error, Err(DecodeValueError::Parse(_))));
    }

    #[test]
    fn vectors_have_their_dimension_or_are_errors() {
        let length = |expected, got| DecodeValueError::Length { expected, got };
        let floats = "VectorType(FloatType,3)";
        let wide = "VectorType(LongType,4294967295)";
        let wider = "VectorType(VectorType(LongType,4294967295),4294967295)";
        let table = [
            (floats, "3fc00000c0000000", length(12, 8)),
            (floats, "3fc00000c00000000000000000", length(12, 13)),
            (floats, "", DecodeValueError::Empty),
            (wide, "0000000000000001", length(34_359_738_360, 8)),
            (wider, "0001", length(usize::MAX, 2)),
            ("VectorType(ShortType,2)", "00", length(2, 1)),
        ];
        for (class, cell, error) in table {
            assert_eq!(decode(class, cell), Err(error), "{class} {cell}");
        }
        for cell in [
            "020001",
            "02000102fffe00",
            "02000103fffe",
            "ffffffffffffffffff00",
        ] {
            decode("VectorType(ShortType,2)", cell).unwrap_err();
        }
        let error = EncodeValueError::Dimension {
            expected: 3,
            got: 2,
        };
        let short = CqlValue::Vector(vec![CqlValue::Float(1.0), CqlValue::Float(2.0)]);
        assert_eq!(encode(&ty(floats), &short), Err(error));
    }

    #[test]
    fn durations_that_do_not_fit_are_errors() {
        assert_eq!(
            decode("DurationType", "f1000000000000"),
            Err(DecodeValueError::OutOfRange)
        );
        for cell in ["0000f2000000", "02040600", "00", "0000"] {
            let error = decode("DurationType", cell).unwrap_err();
            assert!(matches!(error, DecodeValueError::Parse(_)), "{cell}");
        }
    }

    #[test]
    fn unset_and_null_have_their_places() {
        let inside = [
            ("ListType(Int32Type)", CqlValue::List(vec![CqlValue::Unset])),
            (
                "MapType(Int32Type,Int32Type)",
                CqlValue::Map(vec![(int(1), CqlValue::Unset)]),
            ),
            (
                "TupleType(Int32Type)",
                CqlValue::Tuple(vec![CqlValue::Unset]),
            ),
            (
                "UserType(k,75,61:Int32Type)",
                udt(&[("a", CqlValue::Unset)]),
            ),
            (
                "VectorType(Int32Type,1)",
                CqlValue::Vector(vec![CqlValue::Unset]),
            ),
            (
                "VectorType(Int32Type,1)",
                CqlValue::Vector(vec![CqlValue::Null]),
            ),
            (
                "VectorType(UTF8Type,1)",
                CqlValue::Vector(vec![CqlValue::Null]),
            ),
            (
                "VectorType(Int32Type,1)",
                CqlValue::Vector(vec![CqlValue::Empty]),
            ),
        ];
        for (class, value) in inside {
            let error = encode(&ty(class), &value).unwrap_err();
            assert!(
                matches!(error, EncodeValueError::Encode(_)),
                "{class} {error}"
            );
        }
    }

    #[test]
    fn every_value_fits_only_its_types() {
        let unscaled = CqlVarint::from(0_i64);
        let values = [
            (CqlValue::Ascii(String::new()), &["ascii", "text"][..]),
            (text(""), &["ascii", "text"]),
            (CqlValue::BigInt(0), &["bigint"]),
            (CqlValue::Blob(vec![]), &["blob"]),
            (CqlValue::Custom(vec![]), &["blob"]),
            (CqlValue::Boolean(false), &["boolean"]),
            (CqlValue::Counter(Counter(0)), &["counter"]),
            (
                CqlValue::Decimal(CqlDecimal { unscaled, scale: 0 }),
                &["decimal"],
            ),
            (CqlValue::Double(0.0), &["double"]),
            (CqlValue::Float(0.0), &["float"]),
            (int(0), &["int"]),
            (
                CqlValue::Timestamp(CqlTimestamp { milliseconds: 0 }),
                &["timestamp"],
            ),
            (CqlValue::Uuid(Uuid::nil()), &["uuid", "timeuuid"]),
            (CqlValue::Timeuuid(Uuid::nil()), &["uuid", "timeuuid"]),
            (CqlValue::Varint(CqlVarint::from(0_i64)), &["varint"]),
            (CqlValue::Inet(IpAddr::from([0; 4])), &["inet"]),
            (CqlValue::Inet(IpAddr::from([0; 16])), &["inet"]),
            (
                CqlValue::Date(CqlDate {
                    days_since_epoch: 0,
                }),
                &["date"],
            ),
            (CqlValue::Time(CqlTime { nanoseconds: 0 }), &["time"]),
            (CqlValue::SmallInt(0), &["smallint"]),
            (CqlValue::TinyInt(0), &["tinyint"]),
            (duration(0, 0, 0), &["duration"]),
            (CqlValue::Set(vec![]), &[]),
            (CqlValue::Map(vec![]), &[]),
            (CqlValue::Vector(vec![]), &[]),
            (CqlValue::List(vec![]), &[]),
            (CqlValue::Tuple(vec![]), &[]),
            (udt(&[]), &[]),
        ];
        let mut natives = BTreeSet::<&str>::new();
        for (value, names) in values {
            natives.extend(names);
            for number in 0x01..=0x15 {
                let ty = ColumnType::from_number(number);
                let ColumnType::Unknown(_) = ty else {
                    let fits = names.contains(&std::format!("{ty}").as_str());
                    assert_eq!(encode(&ty, &value).is_ok(), fits, "{value:?} {ty}");
                    continue;
                };
            }
        }
        assert_eq!(natives.len(), 20, "each type once at least: {natives:?}");
    }

    /// Inside of collections, tuples and user types too; what does not fit leaves nothing behind.
    #[test]
    fn nested_values_fit_only_their_types() {
        let (one, a) = (|| int(1), || text("a"));
        for (class, value) in [
            ("ListType(Int32Type)", CqlValue::Set(vec![])),
            ("SetType(Int32Type)", CqlValue::List(vec![])),
            ("VectorType(Int32Type,1)", CqlValue::List(vec![one()])),
            ("ListType(Int32Type)", CqlValue::Vector(vec![one()])),
            ("MapType(Int32Type,Int32Type)", CqlValue::List(vec![])),
            ("TupleType(Int32Type)", CqlValue::List(vec![one()])),
            ("UserType(k,75,61:Int32Type)", CqlValue::Map(vec![])),
            ("Int32Type", CqlValue::Tuple(vec![one()])),
            ("Int32Type", udt(&[("a", one())])),
            ("ListType(Int32Type)", CqlValue::List(vec![one(), a()])),
            ("SetType(Int32Type)", CqlValue::Set(vec![one(), a()])),
            (
                "VectorType(Int32Type,2)",
                CqlValue::Vector(vec![one(), a()]),
            ),
            (
                "MapType(Int32Type,UTF8Type)",
                CqlValue::Map(vec![(one(), a()), (a(), a())]),
            ),
            (
                "MapType(Int32Type,UTF8Type)",
                CqlValue::Map(vec![(one(), a()), (one(), one())]),
            ),
            (
                "TupleType(Int32Type,UTF8Type)",
                CqlValue::Tuple(vec![one(), one()]),
            ),
            (
                "UserType(k,75,61:Int32Type,62:UTF8Type)",
                udt(&[("a", one()), ("b", one())]),
            ),
        ] {
            let error = encode(&ty(class), &value);
            assert!(
                matches!(error, Err(EncodeValueError::Mismatch(_))),
                "{class} {error:?}"
            );
        }
    }

    /// Cells of zeros, of every length from none to twenty.
    #[test]
    fn values_have_their_length_or_are_errors() {
        for (class, least, most) in [
            ("BooleanType", 1, 1),
            ("ByteType", 1, 1),
            ("ShortType", 2, 2),
            ("Int32Type", 4, 4),
            ("FloatType", 4, 4),
            ("SimpleDateType", 4, 4),
            ("LongType", 8, 8),
            ("CounterColumnType", 8, 8),
            ("DoubleType", 8, 8),
            ("TimestampType", 8, 8),
            ("TimeType", 8, 8),
            ("UUIDType", 16, 16),
            ("TimeUUIDType", 16, 16),
            ("IntegerType", 1, 20),
            ("DecimalType", 5, 20),
            // Three zeros of one byte each.
            ("DurationType", 3, 3),
            ("AsciiType", 0, 20),
            ("UTF8Type", 0, 20),
            ("BytesType", 0, 20),
        ] {
            for len in 0..=20 {
                let value = decode(class, &"00".repeat(len));
                let fits = (least..=most).contains(&len);
                match len {
                    0 if !fits => assert_eq!(value, Ok(CqlValue::Empty), "{class}"),
                    _ => assert_eq!(value.is_ok(), fits, "{class} of {len} bytes: {value:?}"),
                }
            }
        }
        for len in 1..=20 {
            let value = decode("InetAddressType", &"00".repeat(len));
            assert_eq!(value.is_ok(), [4, 16].contains(&len), "{len} bytes");
        }
    }
}
