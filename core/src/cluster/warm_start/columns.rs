//! Columns of statements as they stand in a blob.
//!
//! Not the protocol's own form: that has no number for vectors. Types that are known there keep
//! their number, others have one that the protocol does not use in a single byte.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::codec::items;
use crate::sync::Shared;
use crate::types::{ColumnSpec, ColumnType, UdtType, VectorType};
use crate::wire::response::TYPE_DEPTH_MAX;
use crate::wire::{EncodeError, ParseError, ParseErrorKind, Reader, Sink};

/// Writes columns; keyspace and table only where they are not those of the column before.
pub(in crate::cluster) fn put_columns(
    out: &mut Vec<u8>,
    columns: &[ColumnSpec],
) -> Result<(), EncodeError> {
    let mut table = None;
    for column in columns {
        let own = (&*column.keyspace, &*column.table);
        if table == Some(own) {
            out.put_byte(SAME_TABLE);
        } else {
            table = Some(own);
            out.put_byte(OWN_TABLE);
            out.put_string("keyspace of column", own.0)?;
            out.put_string("table of column", own.1)?;
        }
        out.put_string("column name", &column.name)?;
        put_type(out, &column.ty)?;
    }
    out.put_byte(END);
    Ok(())
}

/// Reads what [`put_columns`] wrote.
pub(in crate::cluster) fn parse_columns(
    reader: &mut Reader<'_>,
) -> Result<Vec<ColumnSpec>, ParseError> {
    let mut columns = Vec::<ColumnSpec>::new();
    loop {
        let start = reader.clone();
        let (keyspace, table) = match (reader.byte("column")?, columns.last()) {
            (END, _) => return Ok(columns),
            (SAME_TABLE, Some(last)) => (Shared::clone(&last.keyspace), Shared::clone(&last.table)),
            (OWN_TABLE, _) => (
                Shared::from(Box::<str>::from(reader.string("keyspace of column")?)),
                Shared::from(Box::<str>::from(reader.string("table of column")?)),
            ),
            (code, _) => return Err(start.error("column", unknown(code))),
        };
        columns.push(ColumnSpec {
            keyspace,
            table,
            name: reader.string("column name")?.into(),
            ty: parse_type(reader, TYPE_DEPTH_MAX)?,
        });
    }
}

fn put_type(out: &mut Vec<u8>, ty: &ColumnType) -> Result<(), EncodeError> {
    match ty {
        ColumnType::List(element) => {
            out.put_byte(LIST);
            put_type(out, element)
        }
        ColumnType::Set(element) => {
            out.put_byte(SET);
            put_type(out, element)
        }
        ColumnType::Map(map) => {
            out.put_byte(MAP);
            put_type(out, &map.0)?;
            put_type(out, &map.1)
        }
        ColumnType::Tuple(fields) => {
            out.put_byte(TUPLE);
            for field in fields.iter() {
                out.put_byte(1);
                put_type(out, field)?;
            }
            out.put_byte(END);
            Ok(())
        }
        ColumnType::Udt(udt) => {
            out.put_byte(UDT);
            out.put_string("keyspace of user type", &udt.keyspace)?;
            out.put_string("name of user type", &udt.name)?;
            for (name, field) in &udt.fields {
                out.put_byte(1);
                out.put_string("name of user type field", name)?;
                put_type(out, field)?;
            }
            out.put_byte(END);
            Ok(())
        }
        ColumnType::Vector(vector) => {
            out.put_byte(VECTOR);
            out.put_bits(vector.dimension);
            put_type(out, &vector.element)
        }
        ColumnType::Custom(class) => {
            out.put_byte(CUSTOM);
            out.put_bytes("class of custom type", class.as_bytes())
        }
        ColumnType::Unknown(number) => {
            out.put_byte(UNKNOWN);
            out.put_short(*number);
            Ok(())
        }
        native => {
            // Natives have the numbers 1 to 21; which one is asked of the one table that knows.
            let is_it = |number: &u8| ColumnType::from_number(u16::from(*number)) == *native;
            out.put_byte((1..LIST).find(is_it).unwrap_or(UNKNOWN));
            Ok(())
        }
    }
}

fn parse_type(reader: &mut Reader<'_>, depth_left: usize) -> Result<ColumnType, ParseError> {
    let start = reader.clone();
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err(start.error("type", ParseErrorKind::TooDeep));
    };
    Ok(match reader.byte("type")? {
        UNKNOWN => ColumnType::from_number(reader.short("type number")?),
        LIST => ColumnType::List(Shared::new(parse_type(reader, depth_left)?)),
        SET => ColumnType::Set(Shared::new(parse_type(reader, depth_left)?)),
        MAP => {
            let key = parse_type(reader, depth_left)?;
            ColumnType::Map(Shared::new((key, parse_type(reader, depth_left)?)))
        }
        TUPLE => {
            let fields = items(reader, |reader| parse_type(reader, depth_left))?;
            ColumnType::Tuple(Shared::from(fields))
        }
        UDT => {
            let keyspace = reader.string("keyspace of user type")?.into();
            let name = reader.string("name of user type")?.into();
            let fields = items(reader, |reader| {
                let name = reader.string("name of user type field")?.into();
                Ok((name, parse_type(reader, depth_left)?))
            })?;
            ColumnType::Udt(Shared::new(UdtType {
                keyspace,
                name,
                fields: fields.into_boxed_slice(),
            }))
        }
        VECTOR => match reader.bits("dimension")? {
            0 => return Err(start.error("dimension", ParseErrorKind::OutOfRange)),
            dimension => ColumnType::Vector(Shared::new(VectorType {
                element: parse_type(reader, depth_left)?,
                dimension,
            })),
        },
        CUSTOM => {
            let class = reader.bytes("class of custom type")?.unwrap_or_default();
            let class = core::str::from_utf8(class)
                .map_err(|_| start.error("class of custom type", ParseErrorKind::NotUtf8))?;
            ColumnType::Custom(Shared::from(Box::<str>::from(class)))
        }
        number => match ColumnType::from_number(u16::from(number)) {
            ColumnType::Unknown(_) => return Err(start.error("type", unknown(number))),
            native => native,
        },
    })
}

fn unknown(code: u8) -> ParseErrorKind {
    ParseErrorKind::UnknownCode {
        code: u32::from(code),
    }
}

const END: u8 = 0;
const SAME_TABLE: u8 = 1;
const OWN_TABLE: u8 = 2;

const UNKNOWN: u8 = 0;
const LIST: u8 = 0x20;
const MAP: u8 = 0x21;
const SET: u8 = 0x22;
const UDT: u8 = 0x30;
const TUPLE: u8 = 0x31;
const VECTOR: u8 = 0x40;
const CUSTOM: u8 = 0x41;
