//! Class texts of custom types, such as
//! `org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType, 3)`.
//!
//! Servers name types without a number in the protocol by the class that implements them. What
//! parses becomes an ordinary type; any other text stays a custom type. Only a vector that claims an
//! impossible dimension, and nesting beyond the bound, are errors.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::column::{ColumnType, Nest, Parts};
use crate::digits::{hex_digit, number};
use crate::sync::Shared;
use crate::wire::{ParseError, ParseErrorKind};
use crate::words::{boxed, place};

/// Reads a class text.
pub(super) fn parse(text: &str, depth_left: usize) -> Result<ColumnType, ParseError> {
    let mut cursor = Cursor { rest: text };
    let kind = match cursor.class(depth_left) {
        Ok(ty) if cursor.rest.trim_ascii().is_empty() => return Ok(ty),
        Ok(_) | Err(Stop::Unknown) => {
            return Ok(ColumnType::Custom(Shared::from(boxed(text))));
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
        let known = name
            .strip_suffix("Type")
            .and_then(|name| place(NAMES, name));
        let known = known.ok_or(Stop::Unknown)?;
        let Some(nested) = known.checked_sub(NATIVE_COUNT) else {
            return Ok(match known {
                DATE => ColumnType::Timestamp,
                known => {
                    let number = u16::try_from(known).unwrap_or_default();
                    ColumnType::from_number(number.saturating_add(1))
                }
            });
        };
        self.expect(b'(')?;
        // How many types there are within, where the name alone tells.
        let (mut nest, count) = match nested {
            0 => (Nest::List, 1),
            1 => (Nest::Set, 1),
            2 => (Nest::Map, 2),
            3 => (Nest::Tuple, usize::MAX),
            4 => {
                // Keyspace, then the type's name and each field's name in hexadecimal.
                let keyspace = boxed(self.word());
                self.expect(b',')?;
                (Nest::Udt(keyspace, unhex(self.word())?), usize::MAX)
            }
            5 => (Nest::Vector(0), 1),
            // Frozen or reversed: the type within.
            _ => {
                let ty = self.class(depth_left)?;
                return self.expect(b')').map(|()| ty);
            }
        };
        let is_user_type = matches!(nest, Nest::Udt(..));
        let mut parts = Parts::new();
        while parts.len() < count {
            if (is_user_type || !parts.is_empty()) && !self.skip(b',') {
                if count == usize::MAX {
                    break;
                }
                return Err(Stop::Unknown);
            }
            let mut name = Box::default();
            if is_user_type {
                name = unhex(self.word())?;
                self.expect(b':')?;
            }
            parts.push((name, self.class(depth_left)?));
        }
        if let Nest::Vector(dimension) = &mut nest {
            *dimension = self.dimension()?;
        }
        self.expect(b')')?;
        Ok(ColumnType::nest(nest, parts))
    }

    fn dimension(&mut self) -> Result<u32, Stop> {
        self.expect(b',')?;
        let digits = self.word();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(Stop::Unknown);
        }
        let dimension = number(digits).filter(|dimension| *dimension > 0);
        dimension.ok_or(Stop::BadDimension)
    }

    /// Everything up to the next delimiter, without spaces around.
    fn word(&mut self) -> &'a str {
        let is_delimiter = |byte| matches!(byte, b'(' | b')' | b',' | b':');
        let end = self.rest.bytes().position(is_delimiter);
        let end = end.unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or_default();
        self.rest = rest;
        word.trim_ascii()
    }

    fn skip(&mut self, delimiter: u8) -> bool {
        let trimmed = self.rest.trim_ascii_start();
        let is_there = trimmed.as_bytes().first() == Some(&delimiter);
        if is_there {
            self.rest = trimmed.get(1..).unwrap_or_default();
        }
        is_there
    }

    fn expect(&mut self, delimiter: u8) -> Result<(), Stop> {
        match self.skip(delimiter) {
            true => Ok(()),
            false => Err(Stop::Unknown),
        }
    }
}

/// Names of classes without their last four letters: those without parameters by the numbers that
/// the protocol has for their types, from 1 on, then the others.
const NAMES: &str = "Ascii Long Bytes Boolean CounterColumn Decimal Double Float Int32 UTF8 Timestamp \
     UUID Date Integer TimeUUID InetAddress SimpleDate Time Short Byte Duration \
     List Set Map Tuple User Vector Frozen Reversed";

/// Classes without parameters.
const NATIVE_COUNT: usize = 21;

/// The older name of a timestamp's class; it stands where text, which has two numbers, could be again.
const DATE: usize = 12;

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
    core::str::from_utf8(&bytes)
        .map(boxed)
        .map_err(|_| Stop::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;

    const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

    #[test]
    fn every_class_without_parameters_is_known() {
        for (class, expected) in [
            ("Ascii", "ascii"),
            ("Long", "bigint"),
            ("Bytes", "blob"),
            ("Boolean", "boolean"),
            ("CounterColumn", "counter"),
            ("Decimal", "decimal"),
            ("Double", "double"),
            ("Float", "float"),
            ("Int32", "int"),
            ("Timestamp", "timestamp"),
            ("Date", "timestamp"),
            ("UUID", "uuid"),
            ("UTF8", "text"),
            ("Integer", "varint"),
            ("TimeUUID", "timeuuid"),
            ("InetAddress", "inet"),
            ("SimpleDate", "date"),
            ("Time", "time"),
            ("Short", "smallint"),
            ("Byte", "tinyint"),
            ("Duration", "duration"),
        ] {
            for text in [
                format!("{class}Type"),
                format!(" {PACKAGE}{class}Type "),
                format!("FrozenType({class}Type)"),
            ] {
                assert_eq!(parse(&text, 32).unwrap().to_string(), expected, "{text}");
            }
            for text in [format!("{class}Types"), format!("{class}Type()")] {
                let custom = ColumnType::Custom(Shared::from(Box::from(&*text)));
                assert_eq!(parse(&text, 32).unwrap(), custom);
            }
        }
    }

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
            ("SetType(@TupleType(@TimeType))", "set<tuple<time>>"),
            ("UserType(ks,61646472)", "ks.addr"),
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
            "MapType(Int32Type,Int32Type,Int32Type)",
            "ListType(Int32Type,Int32Type)",
            "TupleType()",
            "FrozenType(Int32Type,Int32Type)",
            "VectorType()",
            "VectorType(FloatType, 3, 3)",
            "UserType(ks)",
            "UserType(ks,61 62:Int32Type)",
            "Type",
            "Ascii LongType",
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
