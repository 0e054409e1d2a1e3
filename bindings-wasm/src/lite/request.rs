//! A request on its way, and how it is written.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::BytesMut;
use messina_core::config::Config;
use messina_core::conn::{RequestHead, SlotKey};
use messina_core::error::{EncodeFailure, Error, ErrorKind};
use messina_core::time::Instant;
use messina_core::wire::request::{
    Batch, BatchKind, BatchStatement, BatchStatementKind, Prepare, QueryParameters,
    RequestBody as _,
};
use messina_core::wire::{EncodeError, Flags, Opcode, ProtocolVersion, Sink as _, Values};

use super::contact::put_number;
use crate::input::{take_bytes, take_word};
use crate::options::Options;
use crate::outbox::NONE;
use crate::settings::broken_input;
use crate::slab::Slab;

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) id: Box<[u8]>,
    /// The markers as the node told them.
    pub(super) markers: Box<[u8]>,
    pub(super) marker_count: u32,
    /// It brings rows whatever happens, so a time of writing says nothing.
    pub(super) is_read: bool,
}

/// A prepared statement that the shell holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) statement: Rc<Statement>,
    /// The columns that the shell was told for it: whether they have one table, how many, as told.
    pub(super) told: Option<(bool, u32, Box<[u8]>)>,
}

/// What a request is, apart from how far it has come.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) opcode: Opcode,
    body: BytesMut,
    /// Where the id of the result's columns has to stand if the connection agreed on those.
    metadata_id_at: Option<usize>,
    /// The text to prepare.
    pub(super) text: String,
    /// What is executed, and the shell's number for it.
    pub(super) executed: Option<(u32, Rc<Statement>)>,
    /// All prepared statements in it.
    pub(super) statements: Vec<Rc<Statement>>,
    is_traced: bool,
    pub(super) is_idempotent: bool,
    timeout: Option<Duration>,
}

/// A request that the shell waits for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) written: Written,
    pub(super) deadline: Instant,
    /// On the connection, while it is under way.
    pub(super) key: Option<SlotKey>,
    /// The statement that the node has lost and is being given.
    pub(super) preparing: Option<Rc<Statement>>,
    pub(super) prepared_again: usize,
    /// It was sent beside the handshake.
    pub(super) is_early: bool,
    /// Attempts that left us, those that failed, and those made again at once.
    pub(super) attempts: u8,
    pub(super) failed: u8,
    pub(super) retries: u8,
    pub(super) may_be_applied: bool,
}

impl Request {
    pub(super) fn new(written: Written, config: &Config, now: Instant) -> Self {
        let timeout = written.timeout.unwrap_or(config.timeouts.request);
        Self {
            written,
            deadline: now.saturating_add(timeout),
            key: None,
            preparing: None,
            prepared_again: 0,
            is_early: false,
            attempts: 0,
            failed: 0,
            retries: 0,
            may_be_applied: false,
        }
    }

    pub(super) fn head(&self) -> RequestHead {
        let (opcode, is_traced) = match self.preparing {
            Some(_) => (Opcode::Prepare, false),
            None => (self.written.opcode, self.written.is_traced),
        };
        let mut head = RequestHead::new(opcode);
        if is_traced {
            head.flags = Flags::TRACING;
        }
        head
    }

    /// Writes the body of the next frame.
    pub(super) fn put(
        &self,
        version: ProtocolVersion,
        has_metadata_id: bool,
        sink: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        if let Some(statement) = &self.preparing {
            return put_prepare(&statement.text, version, sink);
        }
        let body = &self.written.body;
        let at = self.written.metadata_id_at.filter(|_| has_metadata_id);
        let (front, back) = body.split_at_checked(at.unwrap_or(0)).unwrap_or_default();
        sink.extend_from_slice(front);
        if at.is_some() {
            // None is held: the columns are asked for each time.
            sink.extend_from_slice(&[0, 0]);
        }
        sink.extend_from_slice(back);
        Ok(())
    }
}

fn put_prepare(
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

/// A PREPARE.
pub(super) fn prepare(text: &[u8], config: &Config) -> Result<Written, Error> {
    let text = text_of(text)?;
    let mut body = BytesMut::new();
    put_prepare(&text, config.protocol, &mut body)?;
    Ok(Written {
        text,
        is_idempotent: true,
        ..written(Opcode::Prepare, body, None)
    })
}

/// A QUERY without values.
pub(super) fn query(
    text: &[u8],
    options: &Options,
    config: &Config,
    timestamp: Option<i64>,
) -> Result<Written, Error> {
    let mut body = BytesMut::new();
    body.put_long_string("statement", &text_of(text)?)?;
    put_parameters(&mut body, options, config, timestamp, Values::EMPTY)?;
    Ok(written(Opcode::Query, body, Some(options)))
}

/// An EXECUTE; `number` is the shell's for the statement.
pub(super) fn execute(
    number: u32,
    statement: Rc<Statement>,
    values: (u16, &[u8]),
    options: &Options,
    config: &Config,
    timestamp: Option<i64>,
) -> Result<Written, Error> {
    let values = values_of(&statement, values)?;
    let timestamp = timestamp.filter(|_| !statement.is_read || options.timestamp().is_some());
    let mut body = BytesMut::new();
    body.put_short_bytes("prepared id", &statement.id)?;
    let metadata_id_at = Some(body.len());
    put_parameters(&mut body, options, config, timestamp, values)?;
    Ok(Written {
        metadata_id_at,
        statements: Vec::from([statement.clone()]),
        executed: Some((number, statement)),
        ..written(Opcode::Execute, body, Some(options))
    })
}

/// A BATCH; see [`message`](crate::message) for how its statements stand in the input.
pub(super) fn batch(
    kind: BatchKind,
    mut input: &[u8],
    held: &Slab<Held>,
    options: &Options,
    config: &Config,
    timestamp: Option<i64>,
) -> Result<Written, Error> {
    let (mut parts, mut statements) = (Vec::new(), Vec::new());
    while !input.is_empty() {
        let number = take_word(&mut input)?;
        let count = u16::try_from(take_word(&mut input)?).map_err(|_| broken_input())?;
        let bytes = take_bytes(&mut input)?;
        parts.push(if number == NONE {
            let text = core::str::from_utf8(bytes).map_err(|_| broken_input())?;
            (None, text, Values::EMPTY)
        } else {
            let statement = statement(held, number)?;
            let values = values_of(statement, (count, bytes))?;
            statements.push(statement.clone());
            (Some(&*statement.id), "", values)
        });
    }
    let batch = Batch {
        kind,
        statements: parts.iter().map(|(id, text, values)| BatchStatement {
            kind: match id {
                Some(id) => BatchStatementKind::Prepared(id),
                None => BatchStatementKind::Text(text),
            },
            values: *values,
        }),
        consistency: options.consistency().unwrap_or(config.consistency),
        serial_consistency: options
            .serial_consistency()
            .or(Some(config.serial_consistency)),
        timestamp,
        keyspace: None,
        now_in_seconds: None,
    };
    let mut body = BytesMut::new();
    batch.put(config.protocol, &mut body)?;
    Ok(Written {
        statements,
        ..written(Opcode::Batch, body, Some(options))
    })
}

fn written(opcode: Opcode, body: BytesMut, options: Option<&Options>) -> Written {
    Written {
        opcode,
        body,
        metadata_id_at: None,
        text: String::new(),
        executed: None,
        statements: Vec::new(),
        is_traced: options.is_some_and(Options::is_traced),
        is_idempotent: options.is_some_and(Options::is_idempotent),
        timeout: options.and_then(Options::timeout),
    }
}

fn put_parameters(
    body: &mut BytesMut,
    options: &Options,
    config: &Config,
    timestamp: Option<i64>,
    values: Values<'_>,
) -> Result<(), Error> {
    let page_size = options.page_size().or(config.page_size);
    let parameters = QueryParameters {
        values,
        page_size: page_size.filter(|rows| *rows > 0),
        paging_state: options.paging_state(),
        serial_consistency: options
            .serial_consistency()
            .or(Some(config.serial_consistency)),
        timestamp,
        ..QueryParameters::new(options.consistency().unwrap_or(config.consistency))
    };
    Ok(parameters.put(config.protocol, body)?)
}

fn values_of<'a>(
    statement: &Statement,
    (count, bytes): (u16, &'a [u8]),
) -> Result<Values<'a>, Error> {
    let values = Values::parse(count, false, bytes);
    match values {
        Ok(values) if u32::from(count) == statement.marker_count => Ok(values),
        _ => {
            let kind = ErrorKind::Encode(EncodeFailure::Value);
            let mut text = String::new();
            put_number(&mut text, u32::from(count));
            text.push_str(" values for ");
            put_number(&mut text, statement.marker_count);
            text.push_str(" markers");
            Err(Error::with_text(kind, text))
        }
    }
}

/// The statement that the shell calls by this number.
pub(super) fn statement(held: &Slab<Held>, number: u32) -> Result<&Rc<Statement>, Error> {
    match held.get(number) {
        Some(held) => Ok(&held.statement),
        None => Err(Error::bug("a statement that was released")),
    }
}

fn text_of(input: &[u8]) -> Result<String, Error> {
    let text = core::str::from_utf8(input).map_err(|_| Error::bug("a text is not UTF-8"))?;
    Ok(String::from(text))
}
