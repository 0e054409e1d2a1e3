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
    /// The kind of [`SetKeyspace`](Self::SetKeyspace).
    pub(crate) const SET_KEYSPACE: u32 = 3;
    /// The kind of [`Prepared`](Self::Prepared).
    pub(crate) const PREPARED: u32 = 4;

    /// Reads the body.
    pub fn parse(dialect: &Dialect, reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let start = reader.clone();
        Ok(match reader.bits("result kind")? {
            1 => Self::Void,
            2 => Self::Rows(Rows::parse(reader)?),
            Self::SET_KEYSPACE => Self::SetKeyspace(reader.string("keyspace")?),
            Self::PREPARED => Self::Prepared(Prepared::parse(dialect, reader)?),
            5 => Self::SchemaChange(SchemaChange::parse(reader)?),
            kind => return Err(start.unknown_code("result kind", kind)),
        })
    }
}
