//! Requests: what is to be asked, and how far it has come.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::BytesMut;

use super::machine::NONE;
use super::plane::{Candidate, Route, TableKey};
use super::statement::Statement;
use crate::config::HAS_TOPOLOGY;
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::conn::{Answer, RequestHead, SlotKey};
use crate::error::Error;
use crate::routing::Token;
use crate::sync::Local;
use crate::time::Instant;
use crate::wire::request::{Prepare, RequestBody};
use crate::wire::{
    Consistency, EncodeError, Flags, Opcode, ProtocolVersion, Reader, SerialConsistency, Values,
};
use crate::words::boxed;

/// How a request is to be run; what is `None` is as the session is set.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written by the layer above field by field"
)]
pub struct RequestOptions<'a> {
    /// The consistency level.
    pub consistency: Option<Consistency>,
    /// That of a condition.
    pub serial_consistency: Option<SerialConsistency>,
    /// Rows of a page; 0 or less asks for all at once.
    pub page_size: Option<i32>,
    /// Where to go on.
    pub paging_state: Option<&'a [u8]>,
    /// The time of writing, in microseconds since 1970.
    pub timestamp: Option<i64>,
    /// How long it may take in all.
    pub timeout: Option<Duration>,
    /// Whether running it twice does the same as running it once.
    pub is_idempotent: bool,
    /// Whether the node is to record what it does.
    pub is_traced: bool,
    /// Whether the rows may come in pieces, see [`Host::begin`](super::Host::begin).
    pub is_streamed: bool,
}

/// A part of a batch: a prepared statement, or a text.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third kind")]
pub enum BatchPart<'a> {
    /// A statement by its number, and its values.
    Statement(u32, Values<'a>),
    /// A text and its values.
    Text(&'a str, Values<'a>),
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) opcode: Opcode,
    /// Its body; that of EXECUTE without what stands in front of the parameters.
    pub(super) body: BytesMut,
    /// The text to prepare.
    pub(super) text: Box<str>,
    /// A text that reads or writes rows, which some connections take as a prepared statement only.
    pub(super) is_data: bool,
    /// What is executed, and its number.
    pub(super) executed: Option<(u32, Local<Statement>)>,
    /// The prepared statements of a batch.
    pub(super) batched: Vec<Local<Statement>>,
    pub(super) is_traced: bool,
    pub(super) is_idempotent: bool,
    pub(super) is_streamed: bool,
    /// Some of its rows are on their way to the caller: it cannot be made again.
    pub(super) has_begun: bool,
    pub(super) deadline: Instant,
    pub(super) consistency: Consistency,
    pub(super) serial_consistency: Option<SerialConsistency>,
    /// Where its row lives, and in which table.
    pub(super) token: Option<Token>,
    pub(super) table: Option<TableKey>,
    /// Where it goes, once that was chosen, and the members that have failed it.
    pub(super) target: Option<Candidate>,
    pub(super) tried: heapless::Vec<u16, TRIED_MAX>,
    /// The link that it is on, while it is under way.
    pub(super) on: Option<(u32, SlotKey)>,
    /// Which of its statements the node lacks and is being given, and on which link. A QUERY's is its
    /// own text.
    pub(super) preparing: Option<(u32, usize)>,
    pub(super) prepared_again: u8,
    /// It was sent beside the handshake.
    pub(super) is_early: bool,
    /// Attempts that left us, those that failed, and those made again at once.
    pub(super) attempts: u8,
    pub(super) failed: u8,
    pub(super) retries: u8,
    pub(super) may_be_applied: bool,
}

impl Request {
    #[cold]
    pub(super) fn new() -> Self {
        Self {
            opcode: Opcode::Query,
            body: BytesMut::new(),
            text: Box::default(),
            executed: None,
            batched: Vec::new(),
            is_traced: false,
            is_idempotent: false,
            is_streamed: false,
            has_begun: false,
            deadline: Instant::ZERO,
            is_data: false,
            consistency: Consistency::One,
            serial_consistency: None,
            token: None,
            table: None,
            target: None,
            tried: heapless::Vec::new(),
            on: None,
            preparing: None,
            prepared_again: 0,
            is_early: false,
            attempts: 0,
            failed: 0,
            retries: 0,
            may_be_applied: false,
        }
    }

    /// As if it were new, but for the room that was taken; moving a whole one would be dearer.
    pub(super) fn clear(&mut self) {
        let Self {
            // Set for each request.
            opcode: _,
            is_traced: _,
            is_idempotent: _,
            is_streamed: _,
            deadline: _,
            consistency: _,
            serial_consistency: _,
            body,
            text,
            executed,
            batched,
            is_data,
            has_begun,
            token,
            table,
            target,
            tried,
            on,
            preparing,
            prepared_again,
            is_early,
            attempts,
            failed,
            retries,
            may_be_applied,
        } = self;
        body.clear();
        if !text.is_empty() {
            *text = Box::default();
        }
        batched.clear();
        tried.clear();
        (*executed, *preparing, *target) = (None, None, None);
        (*token, *table, *on) = (None, None, None);
        (*is_data, *has_begun) = (false, false);
        (*is_early, *may_be_applied) = (false, false);
        (*prepared_again, *attempts, *failed, *retries) = (0, 0, 0, 0);
    }

    /// What choosing its target needs to know.
    pub(super) fn route(&self) -> Route {
        let executed = self.executed.as_ref();
        Route {
            table: self.table,
            token: self.token,
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            is_lwt: executed.is_some_and(|(_, statement)| statement.is_lwt),
        }
    }

    pub(super) fn head(&self) -> RequestHead {
        let (opcode, is_traced) = match self.preparing {
            Some(_) => (Opcode::Prepare, false),
            None => (self.opcode, self.is_traced),
        };
        let mut head = RequestHead::new(opcode);
        if is_traced {
            head.flags = Flags::TRACING;
        }
        head
    }

    /// The body of the next frame; `prepare` is what a PREPARE is written in.
    pub(super) fn parts<'a>(
        &'a self,
        agreed: &Agreed,
        block: &'a [u8],
        prepare: &'a mut BytesMut,
    ) -> Result<[&'a [u8]; 4], EncodeError> {
        if let Some((_, place)) = self.preparing {
            let text = match self.statement(place) {
                Some(statement) => &*statement.text,
                None => self.text_and_parameters().0,
            };
            put_prepare(text, agreed.version, prepare)?;
            return Ok([prepare, &[], &[], &[]]);
        }
        if self.opcode != Opcode::Execute {
            return Ok([&self.body, &[], &[], &[]]);
        }
        let executed = self.executed.as_ref();
        let id = executed.map_or(&[][..], |(_, statement)| &*statement.id);
        // None is held: the columns are asked for each time.
        let metadata_id = if agreed.metadata_id { &[0; 2][..] } else { &[] };
        let has_block = agreed.tablets == TabletsRouting::V2;
        let block = if has_block { block } else { &[] };
        Ok([id, metadata_id, &self.body, block])
    }

    /// Whether the statement has to be prepared first on a connection like this: only EXECUTE can carry
    /// the version block that nodes demand of reads and writes of strongly consistent tables, and of
    /// others whose key is bound. A QUERY without it is applied and answered by an error.
    pub(super) fn needs_preparing(&self, agreed: &Agreed) -> bool {
        self.is_data && self.is_text() && agreed.tablets == TabletsRouting::V2
    }

    /// Whether it is a text that may have to be prepared.
    fn is_text(&self) -> bool {
        HAS_DATA_TEXTS && self.opcode == Opcode::Query
    }

    /// A node has taken what it lacked: the request is executed next.
    pub(super) fn handle_prepared(
        &mut self,
        place: usize,
        answer: &Answer,
        agreed: &Agreed,
    ) -> Result<(), Error> {
        if !self.is_text() {
            let statement = self.statement(place);
            return statement.map_or(Ok(()), |statement| statement.check_same(answer, agreed));
        }
        let (text, parameters) = self.text_and_parameters();
        let statement = Statement::new(boxed(text), answer, agreed, &mut |_, _| None)?;
        (self.opcode, self.body) = (Opcode::Execute, BytesMut::from(parameters));
        self.executed = Some((NONE, Local::new(statement)));
        Ok(())
    }

    /// The two parts of a QUERY; the second stands behind an id in EXECUTE.
    fn text_and_parameters(&self) -> (&str, &[u8]) {
        let mut reader = Reader::new(&self.body);
        let text = reader.bytes("statement").ok().flatten();
        let text = text.and_then(|text| core::str::from_utf8(text).ok());
        (text.unwrap_or_default(), reader.rest())
    }

    /// One of the prepared statements that it executes.
    pub(super) fn statement(&self, place: usize) -> Option<&Local<Statement>> {
        match &self.executed {
            Some((_, statement)) => Some(statement).filter(|_| place == 0),
            None => self.batched.get(place),
        }
    }
}

/// Whether texts may read and write rows where these live on members; without the topology no text has
/// to be prepared.
pub(super) const HAS_DATA_TEXTS: bool = HAS_TOPOLOGY && cfg!(any(test, feature = "data-texts"));

/// Members that one request remembers to have failed it: more than it has attempts.
const TRIED_MAX: usize = 8;

pub(super) fn put_prepare(
    text: &str,
    version: ProtocolVersion,
    sink: &mut BytesMut,
) -> Result<(), EncodeError> {
    let prepare = Prepare {
        text,
        keyspace: None,
    };
    prepare.put(version, sink)
}
