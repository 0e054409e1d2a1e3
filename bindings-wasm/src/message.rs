//! How settings, values and outputs are laid out in memory. `js/module.js` is the other side.
//!
//! Everything is made of 32-bit little-endian words, and of byte strings with their length in
//! front as a word. Cells are copied as CQL has them: a big-endian length (negative for null) and
//! the bytes; beside them stands a table of where each cell begins, so that JavaScript makes a
//! value only when it is asked for one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::time::Duration;

use bytes::BytesMut;
use messina_core::Shared;
use messina_core::config::Config;
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::drive::{Prepared, QueryResult};
use messina_core::error::{ConfigProblem, Error, ErrorKind, PeerIncompatible};
use messina_core::types::{
    BindError, ColumnSpec, DecodeRow, EncodeRow, EncodeValueError, RowError,
};
use messina_core::wire::response::{ErrorCode, RawRow};
use messina_core::wire::{RawValue, Sink, Values, ValuesBuilder};

/// What the shell is told. After the word come the words and byte strings named here.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Effect {
    /// Open a link: link, host, port.
    Connect = 1,
    /// Send bytes: link, bytes.
    Send = 2,
    /// Close a link when everything is sent: link.
    Close = 3,
    /// Close a link at once: link.
    Abort = 4,
    /// A request has ended well and brought nothing: request.
    Done = 5,
    /// A statement is prepared: request, statement, columns of the markers.
    Prepared = 6,
    /// Rows came: request, columns, paging state, warnings, number of rows, table, cells.
    Rows = 7,
    /// A request failed: request, kind, code, whether it may have been applied, message.
    Failed = 8,
}

/// Outputs on their way to the shell.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins an output that concerns a link or a request.
    pub(crate) fn put(&mut self, effect: Effect, number: u32) {
        self.put_word(effect as u32);
        self.put_word(number);
    }

    pub(crate) fn put_word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_word(word(bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn put_number(&mut self, number: f64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Forgets everything; keeps the memory if it is little.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_MAX);
    }

    /// A statement under the number by which it is executed.
    pub(crate) fn put_prepared(&mut self, request: u32, number: u32, prepared: &Prepared) {
        self.put(Effect::Prepared, request);
        self.put_word(number);
        self.put_columns(prepared.markers());
    }

    /// A result with everything that the shell keeps of it.
    pub(crate) fn put_result(&mut self, request: u32, result: &QueryResult) -> Result<(), Error> {
        if !result.is_rows() {
            self.put(Effect::Done, request);
            return Ok(());
        }
        let (mut table, mut cells) = (Self::new(), Self::new());
        for row in result.rows::<Cells<'_>>()? {
            for cell in row?.0.cells() {
                table.put_word(word(cells.bytes.len()));
                let len = cell.map_or(NULL, |cell| i32::try_from(cell.len()).unwrap_or(NULL));
                cells.bytes.extend_from_slice(&len.to_be_bytes());
                cells.bytes.extend_from_slice(cell.unwrap_or_default());
            }
        }
        self.put(Effect::Rows, request);
        self.put_columns(result.columns());
        let paging_state = result.paging_state().map(|state| &state.as_bytes()[..]);
        self.put_word(u32::from(paging_state.is_some()));
        self.put_bytes(paging_state.unwrap_or_default());
        self.put_word(word(result.warnings().len()));
        for warning in result.warnings() {
            self.put_bytes(warning.as_bytes());
        }
        self.put_word(word(result.row_count()));
        self.put_bytes(&table.bytes);
        self.put_bytes(&cells.bytes);
        Ok(())
    }

    pub(crate) fn put_failure(&mut self, request: u32, error: &Error) {
        self.put(Effect::Failed, request);
        let code = match error.kind() {
            ErrorKind::Server(code) => code.number().unwrap_or(0),
            _ => 0,
        };
        self.put_bytes(kind_name(error.kind()).as_bytes());
        self.put_word(code.cast_unsigned());
        self.put_word(u32::from(error.may_have_been_applied()));
        self.put_text(error);
    }

    fn put_columns(&mut self, columns: &[ColumnSpec]) {
        self.put_word(word(columns.len()));
        for column in columns {
            self.put_bytes(column.name.as_bytes());
            self.put_text(&column.ty);
        }
    }

    fn put_text(&mut self, text: &dyn fmt::Display) {
        let mut written = String::new();
        // A string takes everything.
        let _ = write!(written, "{text}");
        self.put_bytes(written.as_bytes());
    }
}

/// Who is at fault, as the shell's errors say it.
const fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Server(ErrorCode::BadCredentials | ErrorCode::Unauthorized)
        | ErrorKind::PeerIncompatible(
            PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication,
        ) => "auth",
        ErrorKind::Server(ErrorCode::Syntax) => "syntax",
        ErrorKind::Server(ErrorCode::Unavailable) => "unavailable",
        ErrorKind::Server(_) => "server",
        ErrorKind::PeerMisbehaved(_) | ErrorKind::PeerIncompatible(_) | ErrorKind::Decode(_) => {
            "protocol"
        }
        ErrorKind::Link(_) | ErrorKind::Unreachable => "transport",
        ErrorKind::Timeout(_) => "timeout",
        ErrorKind::Busy | ErrorKind::Limit(_) => "limit",
        ErrorKind::Encode(_) => "encode",
        ErrorKind::ApiMisuse(_) => "usage",
        ErrorKind::Config(_) => "config",
        _ => "bug",
    }
}

/// Reads settings: pairs of byte strings, name and value, both text.
pub(crate) fn parse_config(mut input: &[u8]) -> Result<Config, Error> {
    let mut config = Config::server();
    // Bytes come in chunks of the shell's choosing; a buffer is only needed for parts of frames.
    config.limits.read_chunk = READ_CHUNK;
    let (mut user, mut password) = (None, "");
    while !input.is_empty() {
        let name = take_text(&mut input)?;
        let value = take_text(&mut input)?;
        match name {
            "contactPoints" => config.add_contact_points(value)?,
            "keyspace" => config.keyspace = Some(value.into()),
            "user" => user = Some(value),
            "password" => password = value,
            "localDataCenter" => config.policy.preferred_dc = Some(value.into()),
            "applicationName" => config.application_name = Some(value.into()),
            "connectTimeout" => config.timeouts.connect = parse_millis(name, value)?,
            "requestTimeout" => config.timeouts.request = parse_millis(name, value)?,
            _ => return Err(bad_setting(name)),
        }
    }
    if let Some(user) = user {
        let plain = PlainAuthenticator::new(user, password);
        let boxed: Box<dyn Authenticator> = Box::new(plain);
        config.authenticator = Some(Shared::from(boxed));
    }
    Ok(config)
}

fn parse_millis(name: &str, value: &str) -> Result<Duration, Error> {
    value
        .parse()
        .map(Duration::from_millis)
        .map_err(|_| bad_setting(name))
}

fn take_text<'a>(input: &mut &'a [u8]) -> Result<&'a str, Error> {
    let (len, rest) = input.split_first_chunk().ok_or_else(broken_input)?;
    let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
    let (text, rest) = rest.split_at_checked(len).ok_or_else(broken_input)?;
    *input = rest;
    core::str::from_utf8(text).map_err(|_| broken_input())
}

fn bad_setting(name: &str) -> Error {
    let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
    Error::with_text(kind, String::from(name))
}

/// Values that the shell has encoded by the markers' types: each a big-endian length (-1 null, -2
/// unset) and its bytes.
#[derive(Debug)]
pub(crate) struct BoundValues {
    pub(crate) count: u16,
    pub(crate) bytes: BytesMut,
}

impl EncodeRow for BoundValues {
    fn encode_row<S: Sink>(
        &self,
        columns: &[ColumnSpec],
        values: &mut ValuesBuilder<S>,
    ) -> Result<(), BindError> {
        let wrong_count = BindError::Count {
            expected: columns.len(),
            got: usize::from(self.count),
        };
        let Ok(bound) = Values::parse(self.count, false, &self.bytes) else {
            return Err(wrong_count);
        };
        if usize::from(self.count) != columns.len() {
            return Err(wrong_count);
        }
        for (index, (column, (_, value))) in columns.iter().zip(bound.iter()).enumerate() {
            let put = match value {
                RawValue::Null => values.null(),
                RawValue::Unset => values.unset(),
                RawValue::Bytes(bytes) => values.value(bytes),
            };
            put.map_err(|error| BindError::Value {
                index,
                name: column.name.clone(),
                error: EncodeValueError::Encode(error),
            })?;
        }
        Ok(())
    }
}

/// A row as it came.
struct Cells<'a>(RawRow<'a>);

impl<'a> DecodeRow<'a> for Cells<'a> {
    fn check_columns(_: &[ColumnSpec]) -> Result<(), RowError> {
        Ok(())
    }

    fn decode_row(_: &[ColumnSpec], row: RawRow<'a>) -> Result<Self, RowError> {
        Ok(Self(row))
    }
}

fn word(len: usize) -> u32 {
    // Lengths fit where addresses are 32 bits.
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn broken_input() -> Error {
    Error::bug("the shell's input is malformed")
}

const NULL: i32 = -1;

/// Memory that an empty outbox may keep.
const KEPT_MAX: usize = 64 << 10;

/// Bytes that one read asks for.
const READ_CHUNK: usize = 4 << 10;
