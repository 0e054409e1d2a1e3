//! Column types, parsed once, and the columns of a statement.
//!
//! Nested types stand behind [`Shared`], so that a type is cheap to clone into an error or a plan.
//! Depth is bounded where types are parsed: here by the wire layer, in class texts by `class`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::class;
use crate::gather::Gather;
use crate::sync::Shared;
use crate::wire::response::{
    ColumnSpec as RawColumn, Columns, TYPE_DEPTH_MAX, TypeOption, type_number,
};
use crate::wire::{ParseError, ParseErrorKind, Reader};
use crate::words::{self, boxed};

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
        Self::read(&mut Reader::new(option.as_bytes()), TYPE_DEPTH_MAX)
    }

    fn read(reader: &mut Reader<'_>, depth_left: usize) -> Result<Self, ParseError> {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(ParseError::new("type", 0, ParseErrorKind::TooDeep));
        };
        let number = reader.short("type")?;
        let (nest, count) = match number {
            type_number::CUSTOM => return class::parse(reader.string("class")?, depth_left),
            type_number::LIST => (Nest::List, 1),
            type_number::SET => (Nest::Set, 1),
            type_number::MAP => (Nest::Map, 2),
            type_number::TUPLE => (Nest::Tuple, reader.short("number of fields")?),
            type_number::UDT => {
                let keyspace = boxed(reader.string("keyspace of user type")?);
                let name = boxed(reader.string("name of user type")?);
                (Nest::Udt(keyspace, name), reader.short("number of fields")?)
            }
            number => return Ok(Self::from_number(number)),
        };
        let mut parts = Parts::new();
        for _ in 0..count {
            let name = match nest {
                Nest::Udt(..) => reader.string("name of user type field")?,
                _ => "",
            };
            parts.push((boxed(name), Self::read(reader, depth_left)?));
        }
        Ok(Self::nest(nest, parts))
    }

    /// The type of these parts, one for each element type or field; only fields of a user-defined type
    /// have names.
    pub(super) fn nest(nest: Nest, mut parts: Parts) -> Self {
        match nest {
            Nest::Tuple => {
                let types = parts.into_iter().map(|(_, ty)| ty);
                return Self::Tuple(Shared::from(types.gather()));
            }
            Nest::Udt(keyspace, name) => {
                let fields = parts.into_boxed_slice();
                return Self::Udt(Shared::new(UdtType {
                    keyspace,
                    name,
                    fields,
                }));
            }
            _ => {}
        }
        let element = last(&mut parts);
        match nest {
            Nest::Map => Self::Map(Shared::new((last(&mut parts), element))),
            Nest::Vector(dimension) => Self::Vector(Shared::new(VectorType { element, dimension })),
            Nest::List => Self::List(Shared::new(element)),
            _ => Self::Set(Shared::new(element)),
        }
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

    /// The number of a type without parameters, 0 of one with.
    const fn native_number(&self) -> u16 {
        match self {
            Self::Ascii => 0x01,
            Self::BigInt => 0x02,
            Self::Blob => 0x03,
            Self::Boolean => 0x04,
            Self::Counter => 0x05,
            Self::Decimal => 0x06,
            Self::Double => 0x07,
            Self::Float => 0x08,
            Self::Int => 0x09,
            Self::Timestamp => 0x0b,
            Self::Uuid => 0x0c,
            Self::Text => 0x0d,
            Self::Varint => 0x0e,
            Self::Timeuuid => 0x0f,
            Self::Inet => 0x10,
            Self::Date => 0x11,
            Self::Time => 0x12,
            Self::SmallInt => 0x13,
            Self::TinyInt => 0x14,
            Self::Duration => 0x15,
            _ => 0,
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

/// Names of the types without parameters, by their numbers from 1 on.
const NAMES: &str = "ascii bigint blob boolean counter decimal double float int text timestamp uuid \
     text varint timeuuid inet date time smallint tinyint duration";

/// What a type with parameters is.
pub(super) enum Nest {
    List,
    Set,
    Map,
    Tuple,
    /// Keyspace and name.
    Udt(Box<str>, Box<str>),
    /// The dimension.
    Vector(u32),
}

/// What it is made of: names, empty but for fields of a user-defined type, and types.
pub(super) type Parts = Vec<(Box<str>, ColumnType)>;

/// Takes the last of them; those who read types give as many as there have to be.
#[inline(never)]
fn last(parts: &mut Parts) -> ColumnType {
    let part = parts.pop();
    part.map_or(ColumnType::Unknown(u16::MAX), |(_, ty)| ty)
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
        let (opening, first, second) = match self {
            Self::List(element) => ("list<", &**element, None),
            Self::Set(element) => ("set<", &**element, None),
            Self::Map(map) => ("map<", &map.0, Some(&map.1)),
            Self::Vector(vector) => ("vector<", &vector.element, None),
            Self::Tuple(fields) => {
                formatter.write_str("tuple")?;
                let mut separator = "<";
                for field in fields.iter() {
                    formatter.write_str(core::mem::replace(&mut separator, ", "))?;
                    field.fmt(formatter)?;
                }
                // Without fields there was no bracket yet.
                return formatter.write_str(if fields.is_empty() { "<>" } else { ">" });
            }
            Self::Udt(udt) => return write!(formatter, "{}.{}", udt.keyspace, udt.name),
            Self::Custom(class) => return write!(formatter, "'{class}'"),
            Self::Unknown(number) => return write!(formatter, "type 0x{number:04x}"),
            native => {
                let place = usize::from(native.native_number().saturating_sub(1));
                return formatter.write_str(words::at(NAMES, place));
            }
        };
        formatter.write_str(opening)?;
        first.fmt(formatter)?;
        if let Some(second) = second {
            formatter.write_str(", ")?;
            second.fmt(formatter)?;
        }
        if let Self::Vector(vector) = self {
            write!(formatter, ", {}", vector.dimension)?;
        }
        formatter.write_str(">")
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
        _ => Shared::from(boxed(name)),
    };
    Ok(ColumnSpec {
        keyspace: shared(raw.keyspace, before.map(|column| &column.keyspace)),
        table: shared(raw.table, before.map(|column| &column.table)),
        name: boxed(raw.name),
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
