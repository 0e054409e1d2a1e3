//! Several statements as one request: what callers build, and how a session routes and sends it.
//!
//! Values are encoded when a statement is pushed, all into one buffer; [`Batch::clear`] keeps it,
//! so a batch that is filled again costs no heap call. Statements of a batch never carry a result
//! metadata id or a tablet version block, whatever their connection agreed.
//!
//! A batch is routed by its first statement that has a token: exact if all statements fall into
//! one tablet, a guess like any other if not, since the coordinator passes the parts on. Answers to
//! batches bring no tablets, so a session that sends nothing else learns none and its batches go to
//! any live node. It is left at that: whatever would teach it, such as a read of a key that nobody
//! asked for, costs the cluster a request to save it the passing on of another.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::outgoing::{Content, Outgoing};
use super::rows::QueryResult;
use super::session::{Session, does_not_fit, key_too_long};
use super::statement::{Prepared, Statement, StatementOptions, keyspace_setter, option_setters};
use crate::cluster::prepared::PreparedStatement;
use crate::error::Error;
use crate::routing::{KeyError, TableRef, Token, View};
use crate::sorted::sort_by;
use crate::sync::Shared;
use crate::types::EncodeRow;
use crate::wire::request::{BatchKind, BatchStatement, BatchStatementKind};
use crate::wire::{
    Consistency, EncodeError, EncodeErrorKind, SerialConsistency, Values, ValuesBuilder,
};

/// Statements that are sent as one request.
///
/// ```no_run
/// # use messina_core::drive::{Batch, Prepared, Session};
/// # use messina_core::error::Error;
/// # async fn example(session: Session, insert: Prepared) -> Result<(), Error> {
/// let mut batch = Batch::unlogged();
/// for id in 0..10_i32 {
///     batch.push(&insert, (id, "text"))?;
/// }
/// session.batch(&batch).await?;
/// batch.clear();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Batch {
    kind: BatchKind,
    options: StatementOptions,
    entries: Vec<Entry>,
    /// Encoded values, one statement behind the other.
    bytes: Vec<u8>,
    /// Bytes that all statements take on the wire.
    wire_len: usize,
    is_lwt: bool,
    all_idempotent: bool,
}

/// One statement: its values end at `end` and begin where those of the one before end.
#[derive(Clone)]
struct Entry {
    name: Name,
    end: usize,
    value_count: u16,
    has_unset: bool,
}

#[derive(Clone)]
enum Name {
    Text(Box<str>),
    Prepared(Shared<PreparedStatement>),
}

impl Batch {
    /// An empty batch.
    pub fn new(kind: BatchKind) -> Self {
        Self {
            kind,
            options: StatementOptions::default(),
            entries: Vec::new(),
            bytes: Vec::new(),
            wire_len: 0,
            is_lwt: false,
            all_idempotent: true,
        }
    }

    /// All or nothing, through the batch log.
    pub fn logged() -> Self {
        Self::new(BatchKind::Logged)
    }

    /// No promise beyond one partition.
    pub fn unlogged() -> Self {
        Self::new(BatchKind::Unlogged)
    }

    /// Updates of counters. Never repeated once it may have been applied.
    pub fn counter() -> Self {
        Self::new(BatchKind::Counter)
    }

    option_setters!();
    keyspace_setter!();

    /// Adds a prepared statement with values for all of its markers, which are encoded at once. Of
    /// the statement's own options only its idempotence counts.
    ///
    /// Fails and leaves the batch as it was if the values do not fit the markers (preparing the
    /// text again asks a node then), or at the
    /// 65,536th statement.
    pub fn push(&mut self, prepared: &Prepared, values: impl EncodeRow) -> Result<(), Error> {
        self.check_room()?;
        let start = self.bytes.len();
        let mut builder = ValuesBuilder::new(&mut self.bytes);
        if let Err(error) = prepared.inner().bind(&values, &mut builder) {
            self.bytes.truncate(start);
            return Err(does_not_fit(prepared, error));
        }
        let (value_count, has_unset) = builder.finish().shape();
        let statement = Shared::clone(prepared.shared());
        let name_len = SHORT + statement.id().len();
        self.is_lwt |= statement.is_lwt();
        self.all_idempotent &= prepared.options().is_idempotent;
        self.add(Name::Prepared(statement), name_len, value_count, has_unset);
        Ok(())
    }

    /// Adds a statement by its text, without values: one with values is to be prepared. Of its
    /// options only its idempotence counts, and nobody looks whether it is conditional.
    ///
    /// Fails at the 65,536th statement.
    pub fn push_text<'a>(&mut self, statement: impl Into<Statement<'a>>) -> Result<(), Error> {
        self.check_room()?;
        let statement = statement.into();
        let name_len = INT + statement.text().len();
        self.all_idempotent &= statement.options().is_idempotent;
        self.add(Name::Text(statement.text().into()), name_len, 0, false);
        Ok(())
    }

    /// Takes all statements out. Kind, options and memory stay.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        (self.wire_len, self.is_lwt, self.all_idempotent) = (0, false, true);
    }

    /// Statements in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What it promises.
    pub const fn kind(&self) -> BatchKind {
        self.kind
    }

    /// Whether one of its prepared statements is conditional.
    pub const fn is_lwt(&self) -> bool {
        self.is_lwt
    }

    /// Whether it may be repeated although it may have been applied: if it was said to be
    /// idempotent, or all of its statements were; counter updates never.
    pub fn is_idempotent(&self) -> bool {
        let all = self.all_idempotent && !self.is_empty();
        (self.options.is_idempotent || all) && self.kind != BatchKind::Counter
    }

    /// Bytes that its statements take in a request.
    pub const fn wire_len(&self) -> usize {
        self.wire_len
    }

    fn check_room(&self) -> Result<(), EncodeError> {
        let count = self.entries.len().saturating_add(1);
        let max = u32::from(u16::MAX);
        if u32::try_from(count).is_ok_and(|count| count <= max) {
            return Ok(());
        }
        let kind = EncodeErrorKind::TooMany { count, max };
        Err(EncodeError::new("statements of a batch", kind))
    }

    /// Adds an entry whose values are in the buffer already.
    fn add(&mut self, name: Name, name_len: usize, value_count: u16, has_unset: bool) {
        let start = self.entries.last().map_or(0, |entry| entry.end);
        let end = self.bytes.len();
        let len = BYTE + name_len + SHORT + end.saturating_sub(start);
        self.wire_len = self.wire_len.saturating_add(len);
        self.entries.push(Entry {
            name,
            end,
            value_count,
            has_unset,
        });
    }

    /// The statements as they are written.
    pub(super) fn statements(&self) -> impl Iterator<Item = BatchStatement<'_>> + Clone {
        self.parts().map(|(entry, values)| BatchStatement {
            kind: match &entry.name {
                Name::Text(text) => BatchStatementKind::Text(text),
                Name::Prepared(statement) => BatchStatementKind::Prepared(statement.id()),
            },
            values,
        })
    }

    /// The prepared statement of this id.
    pub(super) fn statement(&self, id: &[u8]) -> Option<&PreparedStatement> {
        self.prepared().find(|statement| statement.id() == id)
    }

    /// Prepared statements, each counted once.
    pub(super) fn distinct_statements(&self) -> usize {
        let mut ids: Vec<_> = self.prepared().map(PreparedStatement::id).collect();
        sort_by(&mut ids, Ord::cmp);
        ids.dedup();
        ids.len()
    }

    /// The table of all its statements, if they are of one only.
    pub(super) fn only_table(&self, view: &View) -> Option<TableRef> {
        let mut tables = self.entries.iter().map(|entry| match &entry.name {
            Name::Text(_) => None,
            Name::Prepared(statement) => statement.table(view),
        });
        let first = tables.next()??;
        tables.all(|table| table == Some(first)).then_some(first)
    }

    /// Table and token of the first statement that has one.
    fn locate(&self, view: &View) -> Result<(Option<TableRef>, Option<Token>), KeyError> {
        for (entry, values) in self.parts() {
            let Name::Prepared(statement) = &entry.name else {
                continue;
            };
            if let Some(token) = statement.token(view, values)? {
                return Ok((statement.table(view), Some(token)));
            }
        }
        Ok((None, None))
    }

    fn prepared(&self) -> impl Iterator<Item = &PreparedStatement> {
        self.entries.iter().filter_map(|entry| match &entry.name {
            Name::Text(_) => None,
            Name::Prepared(statement) => Some(&**statement),
        })
    }

    /// The statements with their values.
    fn parts(&self) -> impl Iterator<Item = (&Entry, Values<'_>)> + Clone {
        let starts = core::iter::once(0).chain(self.entries.iter().map(|entry| entry.end));
        starts.zip(&self.entries).map(|(start, entry)| {
            let bytes = self.bytes.get(start..entry.end).unwrap_or_default();
            let values = Values::encoded(entry.value_count, entry.has_unset, bytes);
            (entry, values)
        })
    }
}

/// Shows the shape only: the values are a user's data.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("kind", &self.kind)
            .field("statements", &self.len())
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Runs a batch. What conditional statements found comes as rows, one for each statement; see
    /// [`QueryResult::applied`].
    ///
    /// It goes where its first statement with a token goes, and in the way of conditional
    /// statements if one of them is marked so. A node that has lost some of the statements gets
    /// them back, each once, before the batch is repeated there.
    ///
    /// Fails without sending anything if the batch is longer than
    /// [`request_len_max`](crate::conn::ConnectionLimits::request_len_max).
    pub async fn batch(&self, batch: &Batch) -> Result<QueryResult, Error> {
        let (mut table, mut token) = (None, None);
        if !self.hub().is_single() {
            let located = self.hub().view().with(|view| batch.locate(view));
            (table, token) = located.map_err(|_| key_too_long())?;
        }
        let content = Content::Batch(batch);
        let request = Outgoing::new(self.hub(), content, &batch.options, table, token, None);
        let ran = request.run().await?;
        request.decode(ran)
    }
}

const BYTE: usize = 1;
const SHORT: usize = 2;
const INT: usize = 4;
