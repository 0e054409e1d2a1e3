//! QUERY, and the parameters that it shares with EXECUTE.

use super::RequestBody;
use crate::wire::{
    Consistency, EncodeError, EncodeErrorKind, Opcode, ProtocolVersion, SerialConsistency, Sink,
    Values,
};

/// The QUERY request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// The statement.
    pub text: &'a str,
    /// How to run it.
    pub parameters: QueryParameters<'a>,
}

impl RequestBody for Query<'_> {
    const OPCODE: Opcode = Opcode::Query;

    fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        sink.put_long_string("statement", self.text)?;
        self.parameters.put(version, sink)
    }
}

/// How a statement is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryParameters<'a> {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Bound values.
    pub values: Values<'a>,
    /// Rows may come without column metadata.
    pub skip_metadata: bool,
    /// Rows wanted per page; absent is one unpaged reply.
    pub page_size: Option<i32>,
    /// Where the last page ended.
    pub paging_state: Option<&'a [u8]>,
    /// For conditional writes; absent is SERIAL.
    pub serial_consistency: Option<SerialConsistency>,
    /// Write time in microseconds; absent lets the server choose.
    pub timestamp: Option<i64>,
    /// The keyspace for unqualified names; version 5 only, and not for EXECUTE.
    pub keyspace: Option<&'a str>,
    /// "Now" for expiry, in seconds; version 5 only.
    pub now_in_seconds: Option<i32>,
}

/// A level, flags, and a count.
pub(crate) type Head = heapless::Vec<u8, 8>;

impl QueryParameters<'_> {
    /// Nothing but a consistency level.
    #[must_use]
    pub const fn new(consistency: Consistency) -> Self {
        Self {
            consistency,
            values: Values::EMPTY,
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }

    fn flags(&self) -> u32 {
        let has_values = !self.values.is_empty();
        u32::from(has_values)
            | u32::from(self.skip_metadata) << 1
            | u32::from(self.page_size.is_some()) << 2
            | u32::from(self.paging_state.is_some()) << 3
            | u32::from(self.serial_consistency.is_some()) << 4
            | u32::from(self.timestamp.is_some()) << 5
            | u32::from(has_values && self.values.is_named()) << 6
            | u32::from(self.keyspace.is_some()) << 7
            | u32::from(self.now_in_seconds.is_some()) << 8
    }

    /// Writes them as they stand in QUERY and EXECUTE.
    pub fn put<S: Sink + ?Sized>(
        &self,
        version: ProtocolVersion,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        sink.put(&self.head(version)?);
        if !self.values.is_empty() {
            sink.put(self.values.as_bytes());
        }
        self.put_tail(sink)
    }

    /// Bytes in front of values, if there are any.
    pub(crate) const fn head_len(version: ProtocolVersion) -> usize {
        if version.has_wide_flags() { 8 } else { 5 }
    }

    /// What stands in front of the bytes of the values.
    pub(crate) fn head(&self, version: ProtocolVersion) -> Result<Head, EncodeError> {
        // Small pieces are gathered first: each append to a buffer takes its time.
        let (mut head, flags) = (Head::new(), self.flags());
        let _fits = head.extend_from_slice(&self.consistency.code().to_be_bytes());
        let _fits = match version.has_wide_flags() {
            true => head.extend_from_slice(&flags.to_be_bytes()),
            false => head.extend_from_slice(&[narrow_flags(version, flags)?]),
        };
        if !self.values.is_empty() {
            self.values.check(version)?;
            let _fits = head.extend_from_slice(&self.values.len().to_be_bytes());
        }
        Ok(head)
    }

    /// What stands behind them.
    pub(crate) fn put_tail<S: Sink + ?Sized>(&self, sink: &mut S) -> Result<(), EncodeError> {
        let mut tail = heapless::Vec::<u8, 14>::new();
        if let Some(page_size) = self.page_size {
            let _fits = tail.extend_from_slice(&page_size.to_be_bytes());
        }
        if let Some(paging_state) = self.paging_state {
            sink.put(&tail);
            tail.clear();
            sink.put_bytes("paging state", paging_state)?;
        }
        if let Some(serial) = self.serial_consistency {
            let code = serial.as_consistency().code();
            let _fits = tail.extend_from_slice(&code.to_be_bytes());
        }
        if let Some(timestamp) = self.timestamp {
            let _fits = tail.extend_from_slice(&timestamp.to_be_bytes());
        }
        sink.put(&tail);
        put_version_5_fields(sink, self.keyspace, self.now_in_seconds)
    }
}

/// Writes query flags: one byte before version 5, where two of them do not exist, then four.
pub(super) fn put_flags<S: Sink + ?Sized>(
    version: ProtocolVersion,
    sink: &mut S,
    flags: u32,
) -> Result<(), EncodeError> {
    if version.has_wide_flags() {
        sink.put_bits(flags);
        return Ok(());
    }
    sink.put_byte(narrow_flags(version, flags)?);
    Ok(())
}

fn narrow_flags(version: ProtocolVersion, flags: u32) -> Result<u8, EncodeError> {
    match u8::try_from(flags) {
        Ok(byte) if flags & FLAG_KEYSPACE == 0 => Ok(byte),
        _ => {
            let kind = EncodeErrorKind::NotInVersion(version);
            Err(EncodeError::new("keyspace or now_in_seconds", kind))
        }
    }
}

pub(super) fn put_version_5_fields<S: Sink + ?Sized>(
    sink: &mut S,
    keyspace: Option<&str>,
    now_in_seconds: Option<i32>,
) -> Result<(), EncodeError> {
    if let Some(keyspace) = keyspace {
        sink.put_string("keyspace", keyspace)?;
    }
    if let Some(now_in_seconds) = now_in_seconds {
        sink.put_int(now_in_seconds);
    }
    Ok(())
}

pub(super) const FLAG_SERIAL_CONSISTENCY: u32 = 0x10;
pub(super) const FLAG_TIMESTAMP: u32 = 0x20;
pub(super) const FLAG_KEYSPACE: u32 = 0x80;
pub(super) const FLAG_NOW_IN_SECONDS: u32 = 0x100;
