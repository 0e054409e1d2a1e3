//! Requests: what is to be asked, and how far it has come.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::BytesMut;

use super::binding::Binder;
use super::machine::{HAS_WARM_STARTS, Machine, NONE};
use super::plane::{Candidate, Route, TableKey};
use super::statement::Statement;
use super::text::is_users_data;
use crate::config::HAS_TOPOLOGY;
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::conn::{Answer, RequestHead, SlotKey};
use crate::error::Error;
use crate::routing::Token;
use crate::sync::Local;
use crate::time::Instant;
use crate::wire::request::{
    Batch, BatchKind, BatchStatement, BatchStatementKind, Prepare, QueryParameters, RequestBody,
};
use crate::wire::{
    Consistency, EncodeError, Flags, Opcode, ProtocolVersion, Reader, SerialConsistency, Sink as _,
    Values,
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
    is_data: bool,
    /// What is executed, and its number.
    pub(super) executed: Option<(u32, Local<Statement>)>,
    /// The prepared statements of a batch.
    batched: Vec<Local<Statement>>,
    is_traced: bool,
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
    fn new() -> Self {
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

    /// Whether it is a text that may have to be prepared; without the topology no text has.
    fn is_text(&self) -> bool {
        HAS_TOPOLOGY && self.opcode == Opcode::Query
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

impl Machine {
    /// Prepares a text; ends as [`Done::Prepared`](super::Done::Prepared). One that an earlier session
    /// has saved is there at once.
    pub fn prepare(&mut self, text: &str) -> u32 {
        if HAS_WARM_STARTS {
            let saved = self.saved.iter().find(|saved| *saved.text == *text);
            if let Some(statement) = saved.cloned() {
                return self.give_statement(statement);
            }
        }
        let mut request = self.new_request(Opcode::Prepare, &RequestOptions::default());
        request.is_idempotent = true;
        let written = put_prepare(text, self.config.protocol, &mut request.body);
        request.text = boxed(text);
        self.begin(request, written.map_err(Error::from))
    }

    /// Runs a text with values for its markers.
    pub fn query(&mut self, text: &str, values: Values<'_>, options: &RequestOptions<'_>) -> u32 {
        let mut request = self.new_request(Opcode::Query, options);
        request.is_data = self.is_full() && is_users_data(text);
        let written = request
            .body
            .put_long_string("statement", text)
            .map_err(Error::from)
            .and_then(|()| self.put_parameters(&mut request, values, options, false));
        self.begin(request, written)
    }

    /// Executes a prepared statement with values for its markers.
    pub fn execute(
        &mut self,
        statement: u32,
        values: Values<'_>,
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Execute, options);
        let written = self.aim(&mut request, statement, values);
        let written =
            written.and_then(|is_read| self.put_parameters(&mut request, values, options, is_read));
        self.begin(request, written)
    }

    /// The same with values that stand where they are sent from, in a buffer that is exchanged for an
    /// empty one.
    pub(super) fn execute_bound(
        &mut self,
        statement: u32,
        binder: &mut Binder,
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Execute, options);
        let written = self.put_bound(&mut request, statement, binder, options);
        self.begin(request, written)
    }

    fn put_bound(
        &mut self,
        request: &mut Request,
        statement: u32,
        binder: &mut Binder,
        options: &RequestOptions<'_>,
    ) -> Result<(), Error> {
        let is_read = self.aim(request, statement, binder.values())?;
        let parameters = self.parameters(request, options, is_read);
        let with_values = QueryParameters {
            values: binder.values(),
            ..parameters
        };
        let head = with_values.head(self.config.protocol)?;
        binder.put_head(&head);
        parameters.put_tail(&mut binder.bytes)?;
        core::mem::swap(&mut request.body, &mut binder.bytes);
        Ok(())
    }

    /// Notes what is executed and where its row lives; whether it only reads.
    fn aim(&self, request: &mut Request, number: u32, values: Values<'_>) -> Result<bool, Error> {
        let statement = self.held(number)?.clone();
        statement.check_count(values)?;
        request.table = statement.table;
        if self.is_full() {
            request.token = statement.token(&self.plane, values);
        }
        let is_read = statement.is_read;
        request.executed = Some((number, statement));
        Ok(is_read)
    }

    /// Runs statements as a batch.
    pub fn batch(
        &mut self,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Batch, options);
        let written = self.put_batch(&mut request, kind, parts, options);
        self.begin(request, written)
    }

    fn put_batch(
        &mut self,
        request: &mut Request,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        options: &RequestOptions<'_>,
    ) -> Result<(), Error> {
        for part in parts {
            if let BatchPart::Statement(number, values) = part {
                let statement = self.held(*number)?;
                statement.check_count(*values)?;
                request.batched.push(statement.clone());
            }
        }
        // A batch goes where its first statement's row lives.
        if self.is_full()
            && let Some(BatchPart::Statement(_, values)) = parts.first()
            && let Some(first) = request.batched.first()
        {
            request.table = first.table;
            request.token = first.token(&self.plane, *values);
        }
        let timestamp = options.timestamp.or_else(|| self.timestamp());
        let batch = Batch {
            kind,
            statements: parts.iter().map(|part| match part {
                BatchPart::Statement(number, values) => BatchStatement {
                    kind: BatchStatementKind::Prepared(match self.statements.get(*number) {
                        Some(statement) => statement.id(),
                        None => &[],
                    }),
                    values: *values,
                },
                BatchPart::Text(text, values) => BatchStatement {
                    kind: BatchStatementKind::Text(text),
                    values: *values,
                },
            }),
            consistency: request.consistency,
            serial_consistency: request.serial_consistency,
            timestamp,
            keyspace: None,
            now_in_seconds: None,
        };
        Ok(batch.put(self.config.protocol, &mut request.body)?)
    }

    fn held(&self, number: u32) -> Result<&Local<Statement>, Error> {
        match self.statements.get(number) {
            Some(statement) => Ok(statement),
            None => Err(Error::bug("a statement that was released")),
        }
    }

    /// A request that is not written yet; one that has ended is used again.
    fn new_request(&mut self, opcode: Opcode, options: &RequestOptions<'_>) -> Box<Request> {
        let config = &self.config;
        let timeout = options.timeout.unwrap_or(config.timeouts.request);
        let serial = options.serial_consistency;
        let spare = self.spare.pop();
        let mut request = spare.unwrap_or_else(|| Box::new(Request::new()));
        request.opcode = opcode;
        request.is_traced = options.is_traced;
        request.is_idempotent = options.is_idempotent;
        request.is_streamed = options.is_streamed;
        request.deadline = self.now.saturating_add(timeout);
        request.consistency = options.consistency.unwrap_or(config.consistency);
        request.serial_consistency = serial.or(Some(config.serial_consistency));
        request
    }

    fn put_parameters(
        &mut self,
        request: &mut Request,
        values: Values<'_>,
        options: &RequestOptions<'_>,
        is_read: bool,
    ) -> Result<(), Error> {
        let parameters = QueryParameters {
            values,
            ..self.parameters(request, options, is_read)
        };
        Ok(parameters.put(self.config.protocol, &mut request.body)?)
    }

    /// All but the values.
    fn parameters<'a>(
        &mut self,
        request: &Request,
        options: &RequestOptions<'a>,
        is_read: bool,
    ) -> QueryParameters<'a> {
        let timestamp = match options.timestamp {
            None if !is_read => self.timestamp(),
            given => given,
        };
        let page_size = options.page_size.or(self.config.page_size);
        QueryParameters {
            page_size: page_size.filter(|rows| *rows > 0),
            paging_state: options.paging_state,
            serial_consistency: request.serial_consistency,
            timestamp,
            ..QueryParameters::new(request.consistency)
        }
    }
}
