//! BATCH: several statements as one request.
//!
//! Never a metadata id and never a tablet version block, whatever the connection agreed. Named
//! values do not work in batches in any protocol version and are refused here.

use super::RequestBody;
use super::query::{FLAG_KEYSPACE, FLAG_NOW_IN_SECONDS, FLAG_SERIAL_CONSISTENCY, FLAG_TIMESTAMP};
use super::query::{put_flags, put_version_5_fields};
use crate::wire::writer::short_count;
use crate::wire::{
    Consistency, EncodeError, EncodeErrorKind, Opcode, ProtocolVersion, SerialConsistency, Sink,
    Values,
};

/// What a batch promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
#[repr(u8)]
pub enum BatchKind {
    /// All or nothing, through the batch log.
    #[default]
    Logged = 0,
    /// No promise beyond one partition.
    Unlogged = 1,
    /// Counter updates.
    Counter = 2,
}

/// One statement of a batch with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchStatement<'a> {
    /// Text or prepared id.
    pub kind: BatchStatementKind<'a>,
    /// Bound values, by position.
    pub values: Values<'a>,
}

/// How a statement of a batch is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
pub enum BatchStatementKind<'a> {
    /// By its text.
    Text(&'a str),
    /// By the id from PREPARED.
    Prepared(&'a [u8]),
}

/// The BATCH request. Anything that iterates over statements gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a, I> {
    /// What the batch promises.
    pub kind: BatchKind,
    /// The statements, at most 65535.
    pub statements: I,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// For conditional writes; absent is SERIAL.
    pub serial_consistency: Option<SerialConsistency>,
    /// Write time in microseconds; absent lets the server choose.
    pub timestamp: Option<i64>,
    /// The keyspace for unqualified names; version 5 only.
    pub keyspace: Option<&'a str>,
    /// "Now" for expiry, in seconds; version 5 only.
    pub now_in_seconds: Option<i32>,
}

impl<'s, I> RequestBody for Batch<'_, I>
where
    I: IntoIterator<Item = BatchStatement<'s>> + Clone,
{
    const OPCODE: Opcode = Opcode::Batch;

    fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        sink.put_byte(self.kind as u8);
        let count = self.statements.clone().into_iter().count();
        sink.put_short(short_count("statements of a batch", count)?);
        for statement in self.statements.clone() {
            put_statement(version, sink, &statement)?;
        }
        sink.put_consistency(self.consistency);
        put_flags(version, sink, self.flags())?;
        if let Some(serial_consistency) = self.serial_consistency {
            sink.put_consistency(serial_consistency.as_consistency());
        }
        if let Some(timestamp) = self.timestamp {
            sink.put_long(timestamp);
        }
        put_version_5_fields(sink, self.keyspace, self.now_in_seconds)
    }
}

impl<I> Batch<'_, I> {
    fn flags(&self) -> u32 {
        [
            (self.serial_consistency.is_some(), FLAG_SERIAL_CONSISTENCY),
            (self.timestamp.is_some(), FLAG_TIMESTAMP),
            (self.keyspace.is_some(), FLAG_KEYSPACE),
            (self.now_in_seconds.is_some(), FLAG_NOW_IN_SECONDS),
        ]
        .into_iter()
        .filter(|(present, _)| *present)
        .fold(0, |flags, (_, flag)| flags | flag)
    }
}

fn put_statement<S: Sink + ?Sized>(
    version: ProtocolVersion,
    sink: &mut S,
    statement: &BatchStatement<'_>,
) -> Result<(), EncodeError> {
    if statement.values.is_named() && !statement.values.is_empty() {
        return Err(EncodeError::new(
            "named values in a batch",
            EncodeErrorKind::NotHere,
        ));
    }
    match statement.kind {
        BatchStatementKind::Text(text) => {
            sink.put_byte(0);
            sink.put_long_string("statement", text)?;
        }
        BatchStatementKind::Prepared(id) => {
            sink.put_byte(1);
            sink.put_short_bytes("prepared id", id)?;
        }
    }
    statement.values.put(version, sink)
}
