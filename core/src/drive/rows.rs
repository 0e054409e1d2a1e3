//! What a statement brought: rows that borrow from the response, and how the request went.
//!
//! A result keeps the response's bytes. Usually they are a slice of the chunk that was read, shared
//! with other responses; a result kept for long can be cut loose with [`QueryResult::compact`].

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use uuid::Uuid;

use crate::cluster::prepared::{PreparedStatement, ResultShape};
use crate::config::HAS_TOPOLOGY;
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::conn::{Answer, Body};
use crate::error::{ApiMisuse, Error, ErrorKind, PeerMisbehaved};
use crate::exec::paging::PagingState;
use crate::routing::{LearnedTablet, NodeIdx, PayloadError, PayloadKind, ShardIdx, parse_payload};
use crate::types::{ColumnSpec, ColumnType, DecodeRow, ResultMetadata, RowError};
use crate::wire::response::{
    Extras, ResultBody, RowsContent, RowsIter, RowsMetadata, SchemaChange,
};
use crate::wire::{Flags, Opcode, ParseError, Reader};

/// Where and how a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The node that answered; look it up in [`Status`](super::Status).
    pub node: NodeIdx,
    /// The shard of the connection that was used, where the node shards.
    pub shard: Option<ShardIdx>,
    /// Attempts made, this one included.
    pub attempts: u8,
    /// The response told a tablet.
    pub tablet_learned: bool,
    /// The statement changed the schema.
    pub schema_changed: bool,
}

/// The outcome of a statement.
#[derive(Clone, Debug)]
pub struct QueryResult {
    body: Body,
    flags: Flags,
    rows: Option<RowsPart>,
    warnings: Vec<String>,
    tracing_id: Option<Uuid>,
    keyspace_set: Option<String>,
    info: RequestInfo,
}

/// Where the rows stand in the body, and what they mean.
#[derive(Clone, Debug)]
struct RowsPart {
    columns: ResultMetadata,
    column_count: u32,
    row_count: u32,
    content_at: usize,
    paging_state: Option<PagingState>,
}

/// A result and what came with it for others.
pub(super) struct Decoded {
    pub(super) result: QueryResult,
    /// The tablet that it told.
    pub(super) tablet: Option<Result<LearnedTablet, PayloadError>>,
}

impl QueryResult {
    /// Decodes an answer to QUERY, EXECUTE or BATCH. What a request for a prepared statement was
    /// written by decodes rows without columns of their own; the statement learns of new ones.
    pub(super) fn decode(
        answer: Answer,
        agreed: &Agreed,
        prepared: Option<(&PreparedStatement, &ResultShape)>,
        mut info: RequestInfo,
    ) -> Result<Decoded, Error> {
        if answer.opcode != Opcode::Result {
            return Err(PeerMisbehaved::UnexpectedFrame.into());
        }
        let mut reader = Reader::new(answer.body.as_slice());
        let extras = Extras::parse(answer.flags, &mut reader)?;
        let tablet = if HAS_TOPOLOGY {
            tablet(&extras, agreed)
        } else {
            None
        };
        let warnings = extras.warnings.iter().map(String::from).collect();
        let tracing_id = extras.trace_id;
        let body = ResultBody::parse(&agreed.dialect(), &mut reader)?;
        let (mut rows, mut keyspace_set) = (None, None);
        match body {
            ResultBody::Rows(found) => {
                let columns = columns(&found.metadata, agreed, prepared)?;
                let content = found.content.as_bytes();
                rows = Some(RowsPart {
                    columns,
                    column_count: found.content.column_count(),
                    row_count: found.content.row_count(),
                    content_at: answer.body.as_slice().len().saturating_sub(content.len()),
                    paging_state: found.metadata.paging_state.map(paging_state),
                });
            }
            ResultBody::SetKeyspace(keyspace) => keyspace_set = Some(String::from(keyspace)),
            ResultBody::SchemaChange(SchemaChange { .. }) => info.schema_changed = true,
            _ => {}
        }
        info.tablet_learned = tablet.is_some();
        let result = Self {
            body: answer.body,
            flags: answer.flags,
            rows,
            warnings,
            tracing_id,
            keyspace_set,
            info,
        };
        Ok(Decoded { result, tablet })
    }

    /// Whether the statement returned rows, none included.
    pub const fn is_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Rows in this page.
    pub fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| {
            usize::try_from(rows.row_count).unwrap_or(usize::MAX)
        })
    }

    /// The columns of the rows; none if there are no rows.
    pub fn columns(&self) -> &[ColumnSpec] {
        self.rows
            .as_ref()
            .map_or(&[], |rows| rows.columns.columns())
    }

    /// The same as what is shared by the results of one prepared statement while its rows do not
    /// change; `None` if there are no rows.
    pub fn metadata(&self) -> Option<&ResultMetadata> {
        Some(&self.rows.as_ref()?.columns)
    }

    /// The cells of all rows as they came, one behind the other: each a big-endian length, negative
    /// for null, and its bytes. They were not looked at: go by [`rows`](Self::rows) to be told where
    /// they end too early.
    pub fn raw_cells(&self) -> &[u8] {
        let at = self.rows.as_ref().map(|rows| rows.content_at);
        at.and_then(|at| self.body.as_slice().get(at..))
            .unwrap_or_default()
    }

    /// Where the next page begins; `None` if this was the last one.
    pub fn paging_state(&self) -> Option<&PagingState> {
        self.rows.as_ref()?.paging_state.as_ref()
    }

    /// Warnings of the server.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the server sent under this key beside the result. Looked for in the body at each call.
    pub fn custom_payload(&self, key: &str) -> Option<&[u8]> {
        let extras = Extras::parse(self.flags, &mut Reader::new(self.body.as_slice())).ok()?;
        extras.custom_payload.get(key)
    }

    /// The id of the server's trace, if one was asked for.
    pub const fn tracing_id(&self) -> Option<Uuid> {
        self.tracing_id
    }

    /// The keyspace that a USE statement has set, on one connection only.
    pub fn keyspace_set(&self) -> Option<&str> {
        self.keyspace_set.as_deref()
    }

    /// Where and how the request was answered.
    pub const fn info(&self) -> RequestInfo {
        self.info
    }

    /// The rows of this page as `R`: a tuple, `Vec<CqlValue>`, or a struct that derives [`DecodeRow`]. Types
    /// are checked, and where each field of a struct stands is looked up, once.
    ///
    /// Fails if the statement returned no rows at all, or with the first column that does not fit.
    pub fn rows<'a, R: DecodeRow<'a>>(&'a self) -> Result<Rows<'a, R>, Error> {
        let part = self
            .rows
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::ApiMisuse(ApiMisuse::NotRows)))?;
        let columns = part.columns.columns();
        Ok(Rows {
            layout: R::check_columns(columns)?,
            columns,
            rows: self.content(part)?.iter(),
        })
    }

    fn content(&self, part: &RowsPart) -> Result<RowsContent<'_>, ParseError> {
        let content = self.body.as_slice().get(part.content_at..).unwrap_or(&[]);
        // The row count stands in front of the cells and was read already.
        RowsContent::new(part.column_count, part.row_count, content)
    }

    /// The only row.
    ///
    /// Fails with [`ApiMisuse::NotOneRow`] if there is another number of rows.
    pub fn single_row<'a, R: DecodeRow<'a>>(&'a self) -> Result<R, Error> {
        self.maybe_row()?
            .ok_or_else(|| Error::new(ErrorKind::ApiMisuse(ApiMisuse::NotOneRow)))
    }

    /// The only row, if there is one.
    ///
    /// Fails with [`ApiMisuse::NotOneRow`] if there are more.
    pub fn maybe_row<'a, R: DecodeRow<'a>>(&'a self) -> Result<Option<R>, Error> {
        let mut rows = self.rows::<R>()?;
        let first = rows.next().transpose()?;
        match rows.next() {
            None => Ok(first),
            Some(_) => Err(Error::new(ErrorKind::ApiMisuse(ApiMisuse::NotOneRow))),
        }
    }

    /// Whether a conditional statement or batch was applied, by the column `[applied]` in front of
    /// its rows; `None` for others. What it found instead is in the columns behind: one row for a
    /// statement, one for each statement of a batch.
    pub fn applied(&self) -> Option<bool> {
        let part = self.rows.as_ref()?;
        let first = part.columns.columns().first()?;
        if *first.name != *"[applied]" || first.ty != ColumnType::Boolean {
            return None;
        }
        let row = self.content(part).ok()?.iter().next()?.ok()?;
        match row.cells().next()?? {
            [applied] => Some(*applied != 0),
            _ => None,
        }
    }

    /// Copies the bytes, so that the chunk they came in can be freed.
    pub fn compact(&mut self) {
        self.body = Body::from_slice(self.body.as_slice());
    }
}

/// The columns of rows: those that came, else those that the request said they may be left out
/// for. A node that leaves them out unasked, or tells a change without them, may mean any.
fn columns(
    metadata: &RowsMetadata<'_>,
    agreed: &Agreed,
    prepared: Option<(&PreparedStatement, &ResultShape)>,
) -> Result<ResultMetadata, Error> {
    if let Some(columns) = metadata.columns {
        let columns = ResultMetadata::parse(columns)?;
        if let Some((statement, asked)) = prepared {
            statement.handle_rows(asked, agreed, metadata.new_metadata_id, &columns);
        }
        return Ok(columns);
    }
    let count = usize::try_from(metadata.column_count).unwrap_or(usize::MAX);
    let asked = prepared
        .map(|(_, asked)| asked)
        .filter(|asked| asked.may_skip_metadata(agreed) && metadata.new_metadata_id.is_none())
        .filter(|asked| asked.columns.columns().len() == count);
    asked
        .map(|asked| asked.columns.clone())
        .ok_or_else(|| PeerMisbehaved::MalformedBody.into())
}

fn tablet(extras: &Extras<'_>, agreed: &Agreed) -> Option<Result<LearnedTablet, PayloadError>> {
    let kind = match agreed.tablets {
        TabletsRouting::V2 => PayloadKind::V2,
        TabletsRouting::V1 => PayloadKind::V1,
        TabletsRouting::Off => return None,
    };
    let value = extras.custom_payload.get(kind.key())?;
    Some(parse_payload(kind, value))
}

fn paging_state(bytes: &[u8]) -> PagingState {
    PagingState::from_bytes(Bytes::copy_from_slice(bytes))
}

/// Rows of one page, decoded one by one. Ends after the first error.
pub struct Rows<'a, R: DecodeRow<'a>> {
    layout: R::Layout,
    columns: &'a [ColumnSpec],
    rows: RowsIter<'a>,
}

impl<'a, R: DecodeRow<'a>> Clone for Rows<'a, R> {
    fn clone(&self) -> Self {
        Self {
            layout: self.layout.clone(),
            columns: self.columns,
            rows: self.rows.clone(),
        }
    }
}

impl<'a, R: DecodeRow<'a>> fmt::Debug for Rows<'a, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Rows")
            .field("layout", &self.layout)
            .field("rows_left", &self.rows.rows_left())
            .finish_non_exhaustive()
    }
}

impl<'a, R: DecodeRow<'a>> Iterator for Rows<'a, R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(
            row.map_err(Error::from).and_then(|row| {
                R::decode_row(&self.layout, self.columns, row).map_err(Error::from)
            }),
        )
    }
}

impl From<RowError> for Error {
    fn from(error: RowError) -> Self {
        Self::row(error)
    }
}
