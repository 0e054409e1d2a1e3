//! RESULT: which of the five kinds of outcome a statement had.

use super::{Prepared, Rows, SchemaChange};
use crate::wire::{Dialect, ParseError, Reader};

/// The RESULT response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultBody<'a> {
    /// Done, nothing to tell.
    Void,
    /// Rows.
    Rows(Rows<'a>),
    /// The connection's keyspace was changed to this one.
    SetKeyspace(&'a str),
    /// A statement was prepared.
    Prepared(Prepared<'a>),
    /// The schema was changed.
    SchemaChange(SchemaChange<'a>),
}

impl<'a> ResultBody<'a> {
    /// Reads the body.
    pub fn parse(dialect: &Dialect, reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let start = reader.clone();
        Ok(match reader.bits("result kind")? {
            1 => Self::Void,
            2 => Self::Rows(Rows::parse(reader)?),
            3 => Self::SetKeyspace(reader.string("keyspace")?),
            4 => Self::Prepared(Prepared::parse(dialect, reader)?),
            5 => Self::SchemaChange(SchemaChange::parse(reader)?),
            kind => return Err(start.unknown_code("result kind", kind)),
        })
    }
}
