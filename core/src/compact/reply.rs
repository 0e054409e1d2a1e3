//! What a statement brought, kept as the bytes that came.
//!
//! Nothing is taken apart before it is asked for, and each question walks what stands before the rows
//! anew: a reply is mostly asked one thing, once. A reply of more than 32 bytes is a part of the
//! buffer that was read into; while it is kept the next read takes a buffer of its own.

use core::fmt;
use core::marker::PhantomData;

use bytes::BytesMut;
use uuid::Uuid;

use super::cursor::{Front, parse_front};
use super::host::Answered;
use super::rows::{Cells, FromCells, Stop, type_numbers};
use crate::conn::Answer;
use crate::error::{ApiMisuse, DecodeFailure, Error, ErrorKind, PeerMisbehaved};
use crate::types::ResultMetadata;
use crate::wire::response::{RawRow, RowsContent, RowsMetadata};
use crate::wire::{Flags, StringList};

/// The outcome of a statement.
#[derive(Clone)]
pub struct Reply {
    answer: Answer,
    node: u16,
    shard: Option<u16>,
    attempts: u8,
}

impl Reply {
    pub(super) fn new(answered: Answered<'_>) -> Self {
        Self {
            answer: answered.answer,
            node: answered.node,
            shard: answered.agreed.shard().map(|shard| shard.value()),
            attempts: answered.attempts,
        }
    }

    pub(super) fn into_body(self) -> (Flags, BytesMut) {
        (self.answer.flags, self.answer.body.into_bytes())
    }

    fn front(&self) -> Result<(Front<'_>, &[u8]), Error> {
        parse_front(self.answer.flags, self.answer.body.as_slice())
    }

    /// What stands before the rows, and the rows.
    fn parts(&self) -> Result<(RowsMetadata<'_>, u32, &[u8]), Error> {
        let (front, content) = self.front()?;
        let metadata = front.metadata.ok_or_else(not_rows)?;
        // So many can be in the bytes.
        RowsContent::new(metadata.column_count, front.row_count, content)?;
        Ok((metadata, front.row_count, content))
    }

    /// Whether there are rows, be they none.
    pub fn is_rows(&self) -> bool {
        self.parts().is_ok()
    }

    /// Rows in this page.
    pub fn row_count(&self) -> u32 {
        self.parts().map_or(0, |(_, count, _)| count)
    }

    /// The rows of this page as `R`, such as a tuple. Types are checked once.
    ///
    /// Fails with [`ApiMisuse::NotRows`] if the statement returned none at all, or with
    /// [`DecodeFailure::Value`] if they are of other types.
    pub fn rows<'a, R: FromCells<'a>>(&'a self) -> Result<Rows<'a, R>, Error> {
        let (metadata, row_count, content) = self.parts()?;
        let columns = metadata.columns.ok_or(PeerMisbehaved::MalformedBody)?;
        if !R::is_of(&mut type_numbers(columns)) {
            return Err(other_type());
        }
        Ok(Rows {
            cells: Cells::new(metadata.column_count, content),
            rows_left: row_count,
            of: PhantomData,
        })
    }

    /// The first row, if there is one.
    pub fn first_row<'a, R: FromCells<'a>>(&'a self) -> Result<Option<R>, Error> {
        self.rows()?.next().transpose()
    }

    /// The only row.
    ///
    /// Fails with [`ApiMisuse::NotOneRow`] if there is another number of rows.
    pub fn single_row<'a, R: FromCells<'a>>(&'a self) -> Result<R, Error> {
        let mut rows = self.rows()?;
        match (rows.rows_left, rows.next()) {
            (1, Some(row)) => row,
            _ => Err(Error::new(ErrorKind::ApiMisuse(ApiMisuse::NotOneRow))),
        }
    }

    /// Whether a conditional statement or batch was applied, by the column `[applied]` in front of
    /// its rows; `None` for others.
    pub fn applied(&self) -> Option<bool> {
        let (metadata, _, content) = self.parts().ok()?;
        let first = metadata.columns?.iter().next()?;
        if first.name != "[applied]" || first.ty.number() != BOOLEAN {
            return None;
        }
        // The length of the first cell, and its byte.
        match content {
            [0, 0, 0, 1, applied, ..] => Some(*applied != 0),
            _ => None,
        }
    }

    /// Where the next page begins; `None` if this was the last one.
    pub fn paging_state(&self) -> Option<&[u8]> {
        self.parts().ok()?.0.paging_state
    }

    /// The columns with all that is known of their types, to read rows by
    /// [`DecodeRow`](crate::types::DecodeRow). Brings the code that knows all types.
    pub fn metadata(&self) -> Result<ResultMetadata, Error> {
        let columns = self.parts()?.0.columns;
        let columns = columns.ok_or(PeerMisbehaved::MalformedBody)?;
        Ok(ResultMetadata::parse(columns)?)
    }

    /// The rows as they came, to be read by [`metadata`](Self::metadata).
    pub fn raw_rows(&self) -> Result<Rows<'_, RawRow<'_>>, Error> {
        self.rows()
    }

    /// Warnings of the node.
    pub fn warnings(&self) -> StringList<'_> {
        let front = self.front();
        front.map_or_else(
            |_| StringList::default(),
            |(front, _)| front.extras.warnings,
        )
    }

    /// The id of the node's trace, if one was asked for.
    pub fn tracing_id(&self) -> Option<Uuid> {
        self.front().ok()?.0.extras.trace_id
    }

    /// The node that answered, by its number in [`Status::nodes`](super::Status::nodes).
    pub const fn node(&self) -> u16 {
        self.node
    }

    /// The shard of the connection that was used, where the node shards.
    pub const fn shard(&self) -> Option<u16> {
        self.shard
    }

    /// Attempts made, this one included.
    pub const fn attempts(&self) -> u8 {
        self.attempts
    }
}

/// Shows no values: they are a user's.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("body", &self.answer.body)
            .field("node", &self.node)
            .field("shard", &self.shard)
            .field("attempts", &self.attempts)
            .finish()
    }
}

/// Rows of one page, read one by one. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Rows<'a, R> {
    cells: Cells<'a>,
    rows_left: u32,
    of: PhantomData<fn() -> R>,
}

impl<'a, R: FromCells<'a>> Iterator for Rows<'a, R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows_left = self.rows_left.checked_sub(1)?;
        let row = R::from_cells(&mut self.cells);
        if row.is_err() {
            self.rows_left = 0;
        }
        Some(row.map_err(stopped))
    }
}

#[cold]
#[inline(never)]
pub(super) fn stopped(stop: Stop) -> Error {
    match stop {
        Stop::Short => PeerMisbehaved::MalformedBody.into(),
        Stop::Unfit => other_type(),
    }
}

pub(super) fn other_type() -> Error {
    Error::new(ErrorKind::Decode(DecodeFailure::Value))
}

pub(super) fn not_rows() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::NotRows))
}

/// The number of the type `boolean`.
const BOOLEAN: u16 = 4;
