//! Class texts of custom types, such as
//! `org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType, 3)`.
//!
//! Servers name types without a number in the protocol by the class that implements them. What
//! parses becomes an ordinary type; any other text stays a custom type. Only a vector that claims an
//! impossible dimension, and nesting beyond the bound, are errors.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::column::{ColumnType, UdtType, VectorType};
use crate::digits::{hex_digit, number};
use crate::sync::Shared;
use crate::wire::{ParseError, ParseErrorKind};

/// Reads a class text.
pub(super) fn parse(text: &str, depth_left: usize) -> Result<ColumnType, ParseError> {
    let mut cursor = Cursor { rest: text };
    let kind = match cursor.class(depth_left) {
        Ok(ty) if cursor.rest.trim().is_empty() => return Ok(ty),
        Ok(_) | Err(Stop::Unknown) => {
            return Ok(ColumnType::Custom(Shared::from(Box::<str>::from(text))));
        }
        Err(Stop::TooDeep) => ParseErrorKind::TooDeep,
        Err(Stop::BadDimension) => ParseErrorKind::OutOfRange,
    };
    Err(ParseError::new("class of custom type", 0, kind))
}

/// Why a text is no known type.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Unknown,
    TooDeep,
    BadDimension,
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn class(&mut self, depth_left: usize) -> Result<ColumnType, Stop> {
        let depth_left = depth_left.checked_sub(1).ok_or(Stop::TooDeep)?;
        let name = self.word();
        let name = name
            .strip_prefix("org.apache.cassandra.db.marshal.")
            .unwrap_or(name);
        if let Some(ty) = native(name) {
            return Ok(ty);
        }
        self.expect('(')?;
        let ty = match name {
            "ListType" => ColumnType::List(Shared::new(self.class(depth_left)?)),
            "SetType" => ColumnType::Set(Shared::new(self.class(depth_left)?)),
            "MapType" => {
                let key = self.class(depth_left)?;
                self.expect(',')?;
                ColumnType::Map(Shared::new((key, self.class(depth_left)?)))
            }
            "TupleType" => self.tuple(depth_left)?,
            "UserType" => self.user_type(depth_left)?,
            "VectorType" => self.vector(depth_left)?,
            "FrozenType" | "ReversedType" => self.class(depth_left)?,
            _ => return Err(Stop::Unknown),
        };
        self.expect(')')?;
        Ok(ty)
    }

    fn tuple(&mut self, depth_left: usize) -> Result<ColumnType, Stop> {
        let mut fields = Vec::from([self.class(depth_left)?]);
        while self.skip(',') {
            fields.push(self.class(depth_left)?);
        }
        Ok(ColumnType::Tuple(Shared::from(fields)))
    }

    /// Keyspace, then the type's name and each field's name in hexadecimal.
    fn user_type(&mut self, depth_left: usize) -> Result<ColumnType, Stop> {
        let keyspace = self.word().into();
        self.expect(',')?;
        let name = unhex(self.word())?;
        let mut fields = Vec::new();
        while self.skip(',') {
            let field = unhex(self.word())?;
            self.expect(':')?;
            fields.push((field, self.class(depth_left)?));
        }
        let fields = fields.into_boxed_slice();
        Ok(ColumnType::Udt(Shared::new(UdtType {
            keyspace,
            name,
            fields,
        })))
    }

    fn vector(&mut self, depth_left: usize) -> Result<ColumnType, Stop> {
        let element = self.class(depth_left)?;
        self.expect(',')?;
        let digits = self.word();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(Stop::Unknown);
        }
        match number(digits) {
            Some(dimension) if dimension > 0 => Ok(ColumnType::Vector(Shared::new(VectorType {
                element,
                dimension,
            }))),
            _ => Err(Stop::BadDimension),
        }
    }

    /// Everything up to the next delimiter, without spaces around.
    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(['(', ')', ',', ':'])
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        word.trim()
    }

    fn skip(&mut self, delimiter: char) -> bool {
        let stripped = self.rest.trim_start().strip_prefix(delimiter);
        if let Some(rest) = stripped {
            self.rest = rest;
        }
        stripped.is_some()
    }

    fn expect(&mut self, delimiter: char) -> Result<(), Stop> {
        if self.skip(delimiter) {
            Ok(())
        } else {
            Err(Stop::Unknown)
        }
    }
}

fn native(name: &str) -> Option<ColumnType> {
    Some(match name {
        "AsciiType" => ColumnType::Ascii,
        "LongType" => ColumnType::BigInt,
        "BytesType" => ColumnType::Blob,
        "BooleanType" => ColumnType::Boolean,
        "CounterColumnType" => ColumnType::Counter,
        "DecimalType" => ColumnType::Decimal,
        "DoubleType" => ColumnType::Double,
        "FloatType" => ColumnType::Float,
        "Int32Type" => ColumnType::Int,
        "TimestampType" | "DateType" => ColumnType::Timestamp,
        "UUIDType" => ColumnType::Uuid,
        "UTF8Type" => ColumnType::Text,
        "IntegerType" => ColumnType::Varint,
        "TimeUUIDType" => ColumnType::Timeuuid,
        "InetAddressType" => ColumnType::Inet,
        "SimpleDateType" => ColumnType::Date,
        "TimeType" => ColumnType::Time,
        "ShortType" => ColumnType::SmallInt,
        "ByteType" => ColumnType::TinyInt,
        "DurationType" => ColumnType::Duration,
        _ => return None,
    })
}

fn unhex(text: &str) -> Result<Box<str>, Stop> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return Err(Stop::Unknown);
    };
    let mut bytes = Vec::new();
    for [high, low] in pairs {
        let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low)) else {
            return Err(Stop::Unknown);
        };
        bytes.push(high << 4 | low);
    }
    Ok(String::from_utf8(bytes)
        .map_err(|_| Stop::Unknown)?
        .into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;

    const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

    #[test]
    fn known_classes_become_ordinary_types() {
        let table = [
            ("VectorType(@FloatType, 3)", "vector<float, 3>"),
            (
                "VectorType(@VectorType(@FloatType , 2),2)",
                "vector<vector<float, 2>, 2>",
            ),
            ("DurationType", "duration"),
            (
                "MapType(@UTF8Type,@FrozenType(@ListType(@Int32Type)))",
                "map<text, list<int>>",
            ),
            (
                "TupleType(@ByteType,@ShortType)",
                "tuple<tinyint, smallint>",
            ),
            ("ReversedType(@TimeUUIDType)", "timeuuid"),
            ("UserType(ks,61646472,7a6970:@Int32Type)", "ks.addr"),
        ];
        for (class, expected) in table {
            let text = format!("{PACKAGE}{}", class.replace('@', PACKAGE));
            assert_eq!(parse(&text, 32).unwrap().to_string(), expected, "{text}");
        }
        let text = "UserType(ks,61646472,7a6970:Int32Type,6162:UTF8Type)";
        let ColumnType::Udt(udt) = parse(text, 32).unwrap() else {
            panic!()
        };
        assert_eq!(udt.fields[0], ("zip".into(), ColumnType::Int));
        assert_eq!(udt.fields[1], ("ab".into(), ColumnType::Text));
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "",
            "com.example.PointType",
            "com.example.LongType",
            "ListType",
            "ListType(",
            "ListType(Int32Type",
            "ListType(Int32Type))",
            "MapType(Int32Type)",
            "VectorType(FloatType)",
            "VectorType(FloatType, x)",
            "VectorType(FloatType, -1)",
            "UserType(ks,6g)",
            "UserType(ks,616)",
            "UserType(ks,ff)",
            "Int32Type é",
        ] {
            assert_eq!(
                parse(text, 32).unwrap(),
                ColumnType::Custom(Shared::from(Box::from(text)))
            );
        }
    }

    #[test]
    fn impossible_vectors_and_deep_nesting_are_errors() {
        for dimension in ["0", "4294967296", "2305843009213693953"] {
            let text = format!("{PACKAGE}VectorType({PACKAGE}LongType, {dimension})");
            assert_eq!(
                parse(&text, 32).unwrap_err().kind,
                ParseErrorKind::OutOfRange
            );
        }
        for (depth, good) in [(31, true), (32, false), (100_000, false)] {
            let text = format!(
                "{}Int32Type{}",
                "ListType(".repeat(depth),
                ")".repeat(depth)
            );
            assert_eq!(parse(&text, 32).is_ok(), good, "{depth}");
        }
    }
}
