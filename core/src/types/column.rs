//! Column types, parsed once, and the columns of a statement.
//!
//! Nested types stand behind [`Shared`], so that a type is cheap to clone into an error or a plan.
//! Depth is bounded where types are parsed: here by the wire layer, in class texts by `class`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::class;
use crate::sync::Shared;
use crate::wire::response::{
    ColumnSpec as RawColumn, Columns, TYPE_DEPTH_MAX, TypeOption, TypeOptionKind,
};
use crate::wire::{ParseError, ParseErrorKind};

/// The type of a column, a bind marker or a part of one.
///
/// Frozen and reversed are properties of a column, not of its values, and never show here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// `ascii`
    Ascii,
    /// `bigint`
    BigInt,
    /// `blob`
    Blob,
    /// `boolean`
    Boolean,
    /// `counter`
    Counter,
    /// `decimal`
    Decimal,
    /// `double`
    Double,
    /// `float`
    Float,
    /// `int`
    Int,
    /// `timestamp`
    Timestamp,
    /// `uuid`
    Uuid,
    /// `text`, also called `varchar`
    Text,
    /// `varint`
    Varint,
    /// `timeuuid`
    Timeuuid,
    /// `inet`
    Inet,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `smallint`
    SmallInt,
    /// `tinyint`
    TinyInt,
    /// `duration`
    Duration,
    /// `list<element>`
    List(Shared<Self>),
    /// `set<element>`
    Set(Shared<Self>),
    /// `map<key, value>`
    Map(Shared<(Self, Self)>),
    /// `tuple<fields>`
    Tuple(Shared<[Self]>),
    /// A user-defined type.
    Udt(Shared<UdtType>),
    /// `vector<element, dimension>`
    Vector(Shared<VectorType>),
    /// A server-side class that this crate does not know, by its text. Its values are bytes.
    Custom(Shared<str>),
    /// A type number that this crate does not know. Its values are bytes.
    Unknown(u16),
}

/// A user-defined type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdtType {
    /// The keyspace it belongs to.
    pub keyspace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its fields in order, by name and type.
    pub fields: Box<[(Box<str>, ColumnType)]>,
}

/// A vector type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorType {
    /// The type of each element.
    pub element: ColumnType,
    /// The number of elements, at least one.
    pub dimension: u32,
}

impl ColumnType {
    /// Reads a type as it stands in column metadata.
    ///
    /// Fails on vectors whose dimension is not a positive 32-bit number, and on class texts that
    /// nest too deeply. Numbers and classes that are not known are kept.
    pub fn parse(option: TypeOption<'_>) -> Result<Self, ParseError> {
        Self::parse_within(option, TYPE_DEPTH_MAX)
    }

    fn parse_within(option: TypeOption<'_>, depth_left: usize) -> Result<Self, ParseError> {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(ParseError::new("type", 0, ParseErrorKind::TooDeep));
        };
        Ok(match option.kind() {
            TypeOptionKind::Native(number) => Self::from_number(number),
            TypeOptionKind::Custom(text) => class::parse(text, depth_left)?,
            TypeOptionKind::List(element) => {
                Self::List(Shared::new(Self::parse_within(element, depth_left)?))
            }
            TypeOptionKind::Set(element) => {
                Self::Set(Shared::new(Self::parse_within(element, depth_left)?))
            }
            TypeOptionKind::Map(key, value) => {
                let key = Self::parse_within(key, depth_left)?;
                Self::Map(Shared::new((key, Self::parse_within(value, depth_left)?)))
            }
            TypeOptionKind::Tuple(fields) => {
                let mut types = Vec::new();
                for field in fields.iter() {
                    types.push(Self::parse_within(field, depth_left)?);
                }
                Self::Tuple(Shared::from(types))
            }
            TypeOptionKind::Udt {
                keyspace,
                name,
                fields,
            } => {
                let mut types = Vec::new();
                for (name, field) in fields.iter() {
                    types.push((name.into(), Self::parse_within(field, depth_left)?));
                }
                let (keyspace, name, fields) = (keyspace.into(), name.into(), types.into());
                Self::Udt(Shared::new(UdtType {
                    keyspace,
                    name,
                    fields,
                }))
            }
        })
    }

    /// Finds a type without parameters by its number in the protocol.
    #[must_use]
    pub const fn from_number(number: u16) -> Self {
        match number {
            0x01 => Self::Ascii,
            0x02 => Self::BigInt,
            0x03 => Self::Blob,
            0x04 => Self::Boolean,
            0x05 => Self::Counter,
            0x06 => Self::Decimal,
            0x07 => Self::Double,
            0x08 => Self::Float,
            0x09 => Self::Int,
            0x0b => Self::Timestamp,
            0x0c => Self::Uuid,
            0x0a | 0x0d => Self::Text,
            0x0e => Self::Varint,
            0x0f => Self::Timeuuid,
            0x10 => Self::Inet,
            0x11 => Self::Date,
            0x12 => Self::Time,
            0x13 => Self::SmallInt,
            0x14 => Self::TinyInt,
            0x15 => Self::Duration,
            number => Self::Unknown(number),
        }
    }

    /// Whether a value of no bytes is an ordinary value of the type.
    ///
    /// For text, blobs and what is opaque it is; an empty collection may be sent so, and a tuple or
    /// user-defined type of no bytes has only null fields. For all others it is "empty".
    #[must_use]
    pub const fn has_zero_length_value(&self) -> bool {
        matches!(
            self,
            Self::Ascii
                | Self::Text
                | Self::Blob
                | Self::List(_)
                | Self::Set(_)
                | Self::Map(_)
                | Self::Tuple(_)
                | Self::Udt(_)
                | Self::Custom(_)
                | Self::Unknown(_)
        )
    }

    /// The width of an element of a vector, if elements of this type carry no length there.
    ///
    /// Not every type of fixed size is one: `smallint`, `tinyint`, `date`, `time` and `counter` carry
    /// a length. `None` also if the width does not fit this machine's addresses.
    pub(crate) fn vector_width(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int | Self::Float => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::Timeuuid => Some(16),
            Self::Vector(vector) => vector.width(),
            _ => None,
        }
    }
}

impl VectorType {
    fn width(&self) -> Option<usize> {
        self.element
            .vector_width()?
            .checked_mul(usize::try_from(self.dimension).ok()?)
    }
}

/// The CQL form, without `frozen`.
impl fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Ascii => "ascii",
            Self::BigInt => "bigint",
            Self::Blob => "blob",
            Self::Boolean => "boolean",
            Self::Counter => "counter",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Float => "float",
            Self::Int => "int",
            Self::Timestamp => "timestamp",
            Self::Uuid => "uuid",
            Self::Text => "text",
            Self::Varint => "varint",
            Self::Timeuuid => "timeuuid",
            Self::Inet => "inet",
            Self::Date => "date",
            Self::Time => "time",
            Self::SmallInt => "smallint",
            Self::TinyInt => "tinyint",
            Self::Duration => "duration",
            Self::List(element) => return write!(formatter, "list<{element}>"),
            Self::Set(element) => return write!(formatter, "set<{element}>"),
            Self::Map(map) => return write!(formatter, "map<{}, {}>", map.0, map.1),
            Self::Tuple(fields) => {
                formatter.write_str("tuple<")?;
                for (index, field) in fields.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{field}")?;
                }
                return formatter.write_str(">");
            }
            Self::Udt(udt) => return write!(formatter, "{}.{}", udt.keyspace, udt.name),
            Self::Vector(vector) => {
                return write!(
                    formatter,
                    "vector<{}, {}>",
                    vector.element, vector.dimension
                );
            }
            Self::Custom(class) => return write!(formatter, "'{class}'"),
            Self::Unknown(number) => return write!(formatter, "type 0x{number:04x}"),
        };
        formatter.write_str(name)
    }
}

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of the table; shared by the columns of one table.
    pub keyspace: Shared<str>,
    /// The table; shared by its columns.
    pub table: Shared<str>,
    /// Name of the column or marker.
    pub name: Box<str>,
    /// Its type.
    pub ty: ColumnType,
}

/// The columns of a result, or the bind markers of a statement. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMetadata {
    columns: Shared<[ColumnSpec]>,
}

impl ResultMetadata {
    /// Takes columns from the metadata of a frame.
    pub fn parse(columns: Columns<'_>) -> Result<Self, ParseError> {
        let mut parsed = Vec::<ColumnSpec>::new();
        for column in columns.iter() {
            let column = owned_column(&column, parsed.last())?;
            parsed.push(column);
        }
        Ok(Self {
            columns: Shared::from(parsed),
        })
    }

    /// Takes columns that were read in another way.
    pub(crate) fn from_columns(columns: Vec<ColumnSpec>) -> Self {
        Self {
            columns: Shared::from(columns),
        }
    }

    /// The columns in order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// The position of the first column of a name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column.name == *name)
    }
}

impl Default for ResultMetadata {
    fn default() -> Self {
        Self {
            columns: Shared::from(Vec::new()),
        }
    }
}

impl From<Vec<ColumnSpec>> for ResultMetadata {
    fn from(columns: Vec<ColumnSpec>) -> Self {
        Self {
            columns: Shared::from(columns),
        }
    }
}

/// Names repeat from column to column: those of the column before are shared.
fn owned_column(
    raw: &RawColumn<'_>,
    before: Option<&ColumnSpec>,
) -> Result<ColumnSpec, ParseError> {
    let shared = |name: &str, held: Option<&Shared<str>>| match held {
        Some(held) if **held == *name => held.clone(),
        _ => Shared::from(Box::<str>::from(name)),
    };
    Ok(ColumnSpec {
        keyspace: shared(raw.keyspace, before.map(|column| &column.keyspace)),
        table: shared(raw.table, before.map(|column| &column.table)),
        name: raw.name.into(),
        ty: ColumnType::parse(raw.ty)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Reader;
    use std::string::ToString;

    fn parse(bytes: &[u8]) -> Result<ColumnType, ParseError> {
        ColumnType::parse(TypeOption::parse(&mut Reader::new(bytes)).unwrap())
    }

    #[test]
    fn numbers_of_the_specification() {
        let names = [
            (0x01, "ascii"),
            (0x02, "bigint"),
            (0x03, "blob"),
            (0x04, "boolean"),
            (0x05, "counter"),
            (0x06, "decimal"),
            (0x07, "double"),
            (0x08, "float"),
            (0x09, "int"),
            (0x0b, "timestamp"),
            (0x0c, "uuid"),
            (0x0d, "text"),
            (0x0e, "varint"),
            (0x0f, "timeuuid"),
            (0x10, "inet"),
            (0x11, "date"),
            (0x12, "time"),
            (0x13, "smallint"),
            (0x14, "tinyint"),
            (0x15, "duration"),
            (0x99, "type 0x0099"),
        ];
        for (number, name) in names {
            assert_eq!(parse(&[0, number]).unwrap().to_string(), name);
        }
    }

    #[test]
    fn nested_types_of_the_specification() {
        let udt =
            b"\x00\x30\x00\x02ks\x00\x04addr\x00\x02\x00\x06street\x00\x0d\x00\x03zip\x00\x09";
        let ColumnType::Udt(udt) = parse(udt).unwrap() else {
            panic!()
        };
        assert_eq!((&*udt.keyspace, &*udt.name), ("ks", "addr"));
        assert_eq!(udt.fields[0], ("street".into(), ColumnType::Text));
        assert_eq!(udt.fields[1], ("zip".into(), ColumnType::Int));
        let map = parse(&[
            0, 0x21, 0, 0x0d, 0, 0x20, 0, 0x31, 0, 2, 0, 9, 0, 0x22, 0, 2,
        ])
        .unwrap();
        assert_eq!(map.to_string(), "map<text, list<tuple<int, set<bigint>>>>");
    }

    #[test]
    fn a_vector_comes_as_the_text_of_its_class() {
        let text = b"org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType, 3)";
        let bytes = [&[0, 0, 0, 0x58][..], text].concat();
        let vector = parse(&bytes).unwrap();
        assert_eq!(
            (vector.to_string().as_str(), vector.vector_width()),
            ("vector<float, 3>", Some(12))
        );
    }

    #[test]
    fn names_of_the_table_are_shared() {
        let body = [
            0, 0, 0, 1, 0, 0, 0, 2, 0, 1, b'k', 0, 1, b't', 0, 1, b'a', 0, 9, 0, 1, b'b', 0, 13, 0,
            0, 0, 0,
        ];
        let rows = crate::wire::response::Rows::parse(&mut Reader::new(&body)).unwrap();
        let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
        let [a, b] = metadata.columns() else { panic!() };
        assert!(Shared::ptr_eq(&a.keyspace, &b.keyspace) && Shared::ptr_eq(&a.table, &b.table));
        assert_eq!(
            (&*a.name, &a.ty, &*b.name, &b.ty),
            ("a", &ColumnType::Int, "b", &ColumnType::Text)
        );
        assert_eq!(
            (metadata.position("b"), metadata.position("c")),
            (Some(1), None)
        );
    }
}
