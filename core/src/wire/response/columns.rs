//! Column specifications and type options, borrowed.
//!
//! `parse` walks everything once, so that iterating later cannot fail. Types may nest at most
//! [`TYPE_DEPTH_MAX`] deep; deeper ones are an error, because everything that follows types recurses.
//! Class texts of custom types are not interpreted here.

use crate::wire::{ParseError, ParseErrorKind, Reader};

/// How deep types may nest.
pub const TYPE_DEPTH_MAX: usize = 32;

/// Numbers of types that have something behind them.
pub(crate) mod type_number {
    pub(crate) const CUSTOM: u16 = 0x00;
    pub(crate) const LIST: u16 = 0x20;
    pub(crate) const MAP: u16 = 0x21;
    pub(crate) const SET: u16 = 0x22;
    pub(crate) const UDT: u16 = 0x30;
    pub(crate) const TUPLE: u16 = 0x31;
}

use type_number::*;

/// Column specifications of a result or of bind markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns<'a> {
    count: u32,
    table: Option<(&'a str, &'a str)>,
    bytes: &'a [u8],
}

impl<'a> Columns<'a> {
    /// Reads and checks `count` columns, with keyspace and table once in front if `global`.
    pub(super) fn parse(
        reader: &mut Reader<'a>,
        count: u32,
        global: bool,
    ) -> Result<Self, ParseError> {
        let table = if global {
            Some(parse_table(reader)?)
        } else {
            None
        };
        let start = reader.clone();
        for _ in 0..count {
            ColumnSpec::parse(reader, table)?;
        }
        Ok(Self {
            count,
            table,
            bytes: reader.since(&start),
        })
    }

    /// The columns as they came, without the table in front of them that all may share.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The columns in order.
    #[must_use]
    pub const fn iter(&self) -> ColumnsIter<'a> {
        ColumnsIter {
            left: self.count,
            table: self.table,
            reader: Reader::new(self.bytes),
        }
    }

    /// Number of columns.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no column.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keyspace and table, if the same for all columns and told once.
    #[must_use]
    pub const fn global_table(&self) -> Option<(&'a str, &'a str)> {
        self.table
    }
}

impl<'a> IntoIterator for Columns<'a> {
    type Item = ColumnSpec<'a>;
    type IntoIter = ColumnsIter<'a>;

    fn into_iter(self) -> ColumnsIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Columns`].
#[derive(Clone, Debug)]
pub struct ColumnsIter<'a> {
    left: u32,
    table: Option<(&'a str, &'a str)>,
    reader: Reader<'a>,
}

impl<'a> Iterator for ColumnsIter<'a> {
    type Item = ColumnSpec<'a>;

    fn next(&mut self) -> Option<ColumnSpec<'a>> {
        self.left = self.left.checked_sub(1)?;
        ColumnSpec::parse(&mut self.reader, self.table).ok()
    }
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec<'a> {
    /// Keyspace of the table.
    pub keyspace: &'a str,
    /// Table.
    pub table: &'a str,
    /// Name of the column, or of the bind marker.
    pub name: &'a str,
    /// Type.
    pub ty: TypeOption<'a>,
}

impl<'a> ColumnSpec<'a> {
    fn parse(
        reader: &mut Reader<'a>,
        table: Option<(&'a str, &'a str)>,
    ) -> Result<Self, ParseError> {
        let (keyspace, table) = match table {
            Some(table) => table,
            None => parse_table(reader)?,
        };
        let name = reader.string("column name")?;
        Ok(Self {
            keyspace,
            table,
            name,
            ty: TypeOption::parse(reader)?,
        })
    }
}

fn parse_table<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, &'a str), ParseError> {
    Ok((
        reader.string("keyspace of column")?,
        reader.string("table of column")?,
    ))
}

/// A type, as its checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeOption<'a> {
    bytes: &'a [u8],
}

impl<'a> TypeOption<'a> {
    /// Reads and checks a type with everything nested in it.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let start = reader.clone();
        skip_type(reader, TYPE_DEPTH_MAX)?;
        Ok(Self {
            bytes: reader.since(&start),
        })
    }

    pub(crate) const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The protocol's number of the type; 0 for a class of the server's.
    #[must_use]
    pub fn number(&self) -> u16 {
        let number = self.bytes.first_chunk::<2>();
        number.map_or(CUSTOM, |bytes| u16::from_be_bytes(*bytes))
    }

    /// What kind of type it is, one level deep.
    #[must_use]
    pub fn kind(&self) -> TypeOptionKind<'a> {
        let mut reader = Reader::new(self.bytes);
        // Cannot fail, the bytes were walked; an unknown code is the harmless answer if they were not.
        parse_kind(&mut reader).unwrap_or(TypeOptionKind::Native(u16::MAX))
    }
}

/// A type, one level deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeOptionKind<'a> {
    /// A type without parameters, by its number.
    Native(u16),
    /// A server-side class; the protocol has no number for the type.
    Custom(&'a str),
    /// A list of elements.
    List(TypeOption<'a>),
    /// A set of elements.
    Set(TypeOption<'a>),
    /// A map of keys to values.
    Map(TypeOption<'a>, TypeOption<'a>),
    /// A tuple of fields.
    Tuple(TypeOptions<'a>),
    /// A user-defined type.
    Udt {
        /// Keyspace of the type.
        keyspace: &'a str,
        /// Name of the type.
        name: &'a str,
        /// Fields in order.
        fields: UdtFields<'a>,
    },
}

fn parse_kind<'a>(reader: &mut Reader<'a>) -> Result<TypeOptionKind<'a>, ParseError> {
    Ok(match reader.short("type")? {
        CUSTOM => TypeOptionKind::Custom(reader.string("class of custom type")?),
        LIST => TypeOptionKind::List(TypeOption::parse(reader)?),
        SET => TypeOptionKind::Set(TypeOption::parse(reader)?),
        MAP => TypeOptionKind::Map(TypeOption::parse(reader)?, TypeOption::parse(reader)?),
        TUPLE => {
            let count = reader.short("number of tuple fields")?;
            TypeOptionKind::Tuple(TypeOptions {
                count,
                bytes: reader.rest(),
            })
        }
        UDT => {
            let keyspace = reader.string("keyspace of user type")?;
            let name = reader.string("name of user type")?;
            let count = reader.short("number of user type fields")?;
            let fields = UdtFields {
                count,
                bytes: reader.rest(),
            };
            TypeOptionKind::Udt {
                keyspace,
                name,
                fields,
            }
        }
        code => TypeOptionKind::Native(code),
    })
}

fn skip_type(reader: &mut Reader<'_>, depth_left: usize) -> Result<(), ParseError> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err(reader.error("type", ParseErrorKind::TooDeep));
    };
    match reader.short("type")? {
        CUSTOM => {
            reader.string("class of custom type")?;
        }
        LIST | SET => skip_type(reader, depth_left)?,
        MAP => {
            skip_type(reader, depth_left)?;
            skip_type(reader, depth_left)?;
        }
        TUPLE => {
            for _ in 0..reader.short("number of tuple fields")? {
                skip_type(reader, depth_left)?;
            }
        }
        UDT => {
            reader.string("keyspace of user type")?;
            reader.string("name of user type")?;
            for _ in 0..reader.short("number of user type fields")? {
                reader.string("name of user type field")?;
                skip_type(reader, depth_left)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The field types of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeOptions<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> TypeOptions<'a> {
    /// The types in order.
    #[must_use]
    pub const fn iter(&self) -> TypeOptionsIter<'a> {
        TypeOptionsIter {
            left: self.count,
            reader: Reader::new(self.bytes),
        }
    }

    /// Number of types.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> IntoIterator for TypeOptions<'a> {
    type Item = TypeOption<'a>;
    type IntoIter = TypeOptionsIter<'a>;

    fn into_iter(self) -> TypeOptionsIter<'a> {
        self.iter()
    }
}

/// Iterates over [`TypeOptions`].
#[derive(Clone, Debug)]
pub struct TypeOptionsIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for TypeOptionsIter<'a> {
    type Item = TypeOption<'a>;

    fn next(&mut self) -> Option<TypeOption<'a>> {
        self.left = self.left.checked_sub(1)?;
        TypeOption::parse(&mut self.reader).ok()
    }
}

/// Names and types of the fields of a user-defined type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdtFields<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> UdtFields<'a> {
    /// The fields in order.
    #[must_use]
    pub const fn iter(&self) -> UdtFieldsIter<'a> {
        UdtFieldsIter {
            left: self.count,
            reader: Reader::new(self.bytes),
        }
    }

    /// Number of fields.
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> IntoIterator for UdtFields<'a> {
    type Item = (&'a str, TypeOption<'a>);
    type IntoIter = UdtFieldsIter<'a>;

    fn into_iter(self) -> UdtFieldsIter<'a> {
        self.iter()
    }
}

/// Iterates over [`UdtFields`].
#[derive(Clone, Debug)]
pub struct UdtFieldsIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for UdtFieldsIter<'a> {
    type Item = (&'a str, TypeOption<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = self.reader.string("name of user type field").ok()?;
        Some((name, TypeOption::parse(&mut self.reader).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn user_types_give_their_fields() {
        // UDT ks.addr(street text, zip int).
        let bytes =
            b"\x00\x30\x00\x02ks\x00\x04addr\x00\x02\x00\x06street\x00\x0d\x00\x03zip\x00\x09";
        let ty = TypeOption::parse(&mut Reader::new(bytes)).unwrap();
        let TypeOptionKind::Udt {
            keyspace,
            name,
            fields,
        } = ty.kind()
        else {
            panic!("{ty:?}")
        };
        assert_eq!((keyspace, name), ("ks", "addr"));
        assert_eq!((fields.len(), fields.is_empty()), (2, false));
        let fields: Vec<_> = fields.iter().map(|(name, ty)| (name, ty.kind())).collect();
        let expected = [
            ("street", TypeOptionKind::Native(0x0d)),
            ("zip", TypeOptionKind::Native(9)),
        ];
        assert_eq!(fields, expected);
        for cut in 0..bytes.len() {
            assert!(
                TypeOption::parse(&mut Reader::new(&bytes[..cut])).is_err(),
                "{cut}"
            );
        }
    }

    #[test]
    fn tuples_and_user_types_may_be_empty() {
        let pair = TypeOption::parse(&mut Reader::new(&[0, 0x31, 0, 2, 0, 9, 0, 0x0d])).unwrap();
        let TypeOptionKind::Tuple(types) = pair.kind() else {
            panic!("{pair:?}")
        };
        assert_eq!((types.len(), types.is_empty()), (2, false));
        let kinds: Vec<_> = types.iter().map(|ty| ty.kind()).collect();
        assert_eq!(
            kinds,
            [TypeOptionKind::Native(9), TypeOptionKind::Native(0x0d)]
        );
        let unit = TypeOption::parse(&mut Reader::new(&[0, 0x31, 0, 0])).unwrap();
        assert!(matches!(unit.kind(), TypeOptionKind::Tuple(types) if types.is_empty()));
        let bare = TypeOption::parse(&mut Reader::new(&[0, 0x30, 0, 0, 0, 0, 0, 0])).unwrap();
        assert!(matches!(bare.kind(), TypeOptionKind::Udt { fields, .. } if fields.is_empty()));
    }

    #[test]
    fn nesting_is_bounded() {
        for (depth, good) in [(31, true), (32, false), (100_000, false)] {
            let mut bytes: Vec<u8> = [0, 0x20].repeat(depth);
            bytes.extend_from_slice(&[0, 9]);
            let parsed = TypeOption::parse(&mut Reader::new(&bytes));
            assert_eq!(parsed.is_ok(), good, "{depth}");
            if let Err(error) = parsed {
                assert_eq!(error.kind, ParseErrorKind::TooDeep);
            }
        }
    }

    #[test]
    fn a_declared_count_is_not_believed() {
        assert!(Columns::parse(&mut Reader::new(&[0, 0, 0, 9]), u32::MAX, false).is_err());
        assert!(TypeOption::parse(&mut Reader::new(&[0, 0x31, 0xff, 0xff, 0, 9])).is_err());
    }

    #[test]
    fn the_table_stands_once_in_front_or_at_every_column() {
        let global = b"\x00\x02ks\x00\x01t\x00\x01a\x00\x09\x00\x01b\x00\x0d!";
        let each = b"\x00\x02ks\x00\x01t\x00\x01a\x00\x09\x00\x02ks\x00\x01t\x00\x01b\x00\x0d!";
        for (bytes, table) in [(&global[..], Some(("ks", "t"))), (&each[..], None)] {
            let mut reader = Reader::new(bytes);
            let columns = Columns::parse(&mut reader, 2, table.is_some()).unwrap();
            assert_eq!(reader.rest(), b"!");
            assert_eq!((columns.len(), columns.is_empty()), (2, false));
            assert_eq!(columns.global_table(), table);
            let specs: Vec<_> = columns
                .into_iter()
                .map(|column| (column.keyspace, column.table, column.name, column.ty.kind()))
                .collect();
            let expected = [
                ("ks", "t", "a", TypeOptionKind::Native(9)),
                ("ks", "t", "b", TypeOptionKind::Native(0x0d)),
            ];
            assert_eq!(specs, expected);
        }
        let none = Columns::parse(&mut Reader::new(&[]), 0, false).unwrap();
        assert_eq!(
            (none.len(), none.is_empty(), none.iter().count()),
            (0, true, 0)
        );
    }
}
