//! ERROR: what the server said no with, and the facts that come with some codes.
//!
//! Owned, because it outlives its frame in the caller's hands. The facts are kept as they came, and
//! read when they are asked for: most callers never do, and a small image has no code then that knows
//! all of them. Write types that this crate does not know are kept. Text that is not UTF-8 is replaced,
//! not refused: neither a bad letter in a message nor in a fact must hide the error.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use super::ErrorCode;
use crate::gather::Gather;
use crate::wire::{
    ConsistencyCode, Dialect, ParseError, ParseErrorKind, ProtocolVersion, Reader, StringList,
};
use crate::words::{boxed, boxed_bytes, place, put};

/// The ERROR response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// The server's text.
    pub message: Box<str>,
    /// On the wire; where a node has chosen it, `code` does not tell.
    number: i32,
    version: ProtocolVersion,
    /// What stands behind the message.
    facts: Box<[u8]>,
}

impl ServerError {
    /// An error of the server without facts.
    #[cfg(test)]
    pub(crate) fn plain(code: ErrorCode, message: &str) -> Self {
        Self {
            code,
            message: boxed(message),
            number: code.number().unwrap_or_default(),
            version: ProtocolVersion::V4,
            facts: Box::default(),
        }
    }

    /// Reads the body to its end.
    pub fn parse(dialect: &Dialect, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let number = reader.int("error code")?;
        let code = if dialect.rate_limit_error == Some(number) {
            ErrorCode::RateLimit
        } else {
            ErrorCode::from_number(number)
        };
        let message = text(reader.short_bytes("error message")?);
        let facts = reader.rest().len().max(len_min(code));
        let facts = reader.take("facts of the error", facts)?;
        Ok(Self {
            code,
            message,
            number,
            version: dialect.version,
            facts: boxed_bytes(facts),
        })
    }

    /// The facts that come with some codes, read anew at each call; an error if they are not what the
    /// protocol says.
    pub fn detail(&self) -> Result<ErrorDetail, ParseError> {
        let mut reader = Reader::new(&self.facts);
        ErrorDetail::parse(self.version, self.code, self.number, &mut reader)
    }

    /// Whether a read that timed out had enough replicas, and not the one that was asked for data.
    pub(crate) fn lacks_only_data(&self) -> bool {
        let number = |bytes: [u8; 4]| i32::from_be_bytes(bytes);
        // Behind the level: how many have answered, how many had to.
        matches!(
            (self.code, &*self.facts),
            (ErrorCode::ReadTimeout, &[_, _, a, b, c, d, e, f, g, h, 0, ..])
                if number([a, b, c, d]) >= number([e, f, g, h])
        )
    }

    /// The name of what a write that timed out was.
    pub(crate) fn missed_write(&self) -> Option<&str> {
        if self.code != ErrorCode::WriteTimeout {
            return None;
        }
        // It stands behind a level and two counts.
        let mut reader = Reader::new(self.facts.get(10..)?);
        reader.string("write type").ok()
    }

    /// The id of a statement that the node does not know.
    pub(crate) fn unprepared_id(&self) -> Option<&[u8]> {
        if self.code != ErrorCode::Unprepared {
            return None;
        }
        Reader::new(&self.facts)
            .short_bytes("unknown prepared id")
            .ok()
    }
}

/// Bytes of facts that come with a code at least: those that what is done about the error depends on.
const fn len_min(code: ErrorCode) -> usize {
    match code {
        ErrorCode::ReadTimeout => 11,
        ErrorCode::WriteTimeout => 12,
        ErrorCode::Unavailable
        | ErrorCode::ReadFailure
        | ErrorCode::WriteFailure
        | ErrorCode::CasWriteUnknown => 10,
        ErrorCode::Unprepared | ErrorCode::RateLimit => 2,
        _ => 0,
    }
}

/// What is no UTF-8 is replaced, as the library does, whose way is made for long texts.
#[inline(never)]
fn text(mut bytes: &[u8]) -> Box<str> {
    let mut text = String::new();
    loop {
        let error = match core::str::from_utf8(bytes) {
            Ok(rest) => {
                put(&mut text, rest);
                return text.into_boxed_str();
            }
            Err(error) => error,
        };
        let (valid, rest) = bytes
            .split_at_checked(error.valid_up_to())
            .unwrap_or_default();
        put(&mut text, core::str::from_utf8(valid).unwrap_or_default());
        text.push(char::REPLACEMENT_CHARACTER);
        // Without a length the text ends within a letter.
        bytes = rest
            .get(error.error_len().unwrap_or(rest.len())..)
            .unwrap_or_default();
    }
}

impl ServerError {
    pub(crate) fn put_text(&self, text: &mut String) {
        self.code.put_text(text);
        put(text, ": ");
        put(text, &self.message);
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put_text(&mut text);
        formatter.write_str(&text)
    }
}

impl core::error::Error for ServerError {}

/// Facts that come with some error codes. Counts are as the server sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorDetail {
    /// Nothing beyond the message.
    None,
    /// With [`ErrorCode::Unavailable`].
    Unavailable {
        /// The level that could not be met.
        consistency: ConsistencyCode,
        /// Replicas it needs.
        required: i32,
        /// Replicas alive.
        alive: i32,
    },
    /// With [`ErrorCode::WriteTimeout`].
    WriteTimeout {
        /// The level that was not met.
        consistency: ConsistencyCode,
        /// Replicas that confirmed.
        received: i32,
        /// Confirmations it needs.
        required: i32,
        /// What was written.
        write_type: WriteType,
        /// How often a conditional write was beaten; version 5 only.
        contentions: Option<u16>,
    },
    /// With [`ErrorCode::ReadTimeout`].
    ReadTimeout {
        /// The level that was not met.
        consistency: ConsistencyCode,
        /// Replicas that answered.
        received: i32,
        /// Answers it needs.
        required: i32,
        /// Whether the replica asked for data was among them.
        data_present: bool,
    },
    /// With [`ErrorCode::ReadFailure`].
    ReadFailure {
        /// The level that was not met.
        consistency: ConsistencyCode,
        /// Replicas that answered.
        received: i32,
        /// Answers it needs.
        required: i32,
        /// Replicas that failed.
        failures: Failures,
        /// Whether the replica asked for data was among those that answered.
        data_present: bool,
    },
    /// With [`ErrorCode::FunctionFailure`].
    FunctionFailure {
        /// Keyspace of the function.
        keyspace: Box<str>,
        /// Name of the function.
        function: Box<str>,
        /// CQL types of its arguments.
        argument_types: Box<[Box<str>]>,
    },
    /// With [`ErrorCode::WriteFailure`].
    WriteFailure {
        /// The level that was not met.
        consistency: ConsistencyCode,
        /// Replicas that confirmed.
        received: i32,
        /// Confirmations it needs.
        required: i32,
        /// Replicas that failed.
        failures: Failures,
        /// What was written.
        write_type: WriteType,
    },
    /// With [`ErrorCode::CasWriteUnknown`].
    CasWriteUnknown {
        /// The level that was not met.
        consistency: ConsistencyCode,
        /// Replicas that confirmed.
        received: i32,
        /// Confirmations it needs.
        required: i32,
    },
    /// With [`ErrorCode::AlreadyExists`].
    AlreadyExists {
        /// The keyspace.
        keyspace: Box<str>,
        /// The table; empty if the keyspace itself exists.
        table: Box<str>,
    },
    /// With [`ErrorCode::Unprepared`].
    Unprepared {
        /// The id that the server does not know.
        id: Box<[u8]>,
    },
    /// With [`ErrorCode::RateLimit`].
    RateLimit {
        /// The number of the error, which each node chooses for itself.
        number: i32,
        /// What was limited.
        operation: RateLimitedOperation,
        /// Whether the coordinator refused, rather than the replicas.
        rejected_by_coordinator: bool,
    },
}

impl ErrorDetail {
    #[inline(never)]
    fn parse(
        version: ProtocolVersion,
        code: ErrorCode,
        number: i32,
        reader: &mut Reader<'_>,
    ) -> Result<Self, ParseError> {
        let is_read = matches!(code, ErrorCode::ReadTimeout | ErrorCode::ReadFailure);
        if is_read || matches!(code, ErrorCode::WriteTimeout | ErrorCode::WriteFailure) {
            return Self::parse_missed(version, code, is_read, reader);
        }
        Ok(match code {
            ErrorCode::Unavailable => {
                let (consistency, required, alive) = parse_counts(reader)?;
                Self::Unavailable {
                    consistency,
                    required,
                    alive,
                }
            }
            ErrorCode::CasWriteUnknown => {
                let (consistency, received, required) = parse_counts(reader)?;
                Self::CasWriteUnknown {
                    consistency,
                    received,
                    required,
                }
            }
            ErrorCode::FunctionFailure | ErrorCode::AlreadyExists => {
                let keyspace = reader.string("keyspace")?;
                let name = reader.string("function or table")?;
                if code == ErrorCode::AlreadyExists {
                    return Ok(Self::AlreadyExists {
                        keyspace: boxed(keyspace),
                        table: boxed(name),
                    });
                }
                let types = StringList::parse(reader, "argument types")?;
                Self::FunctionFailure {
                    keyspace: boxed(keyspace),
                    function: boxed(name),
                    argument_types: types.iter().map(boxed).gather().into_boxed_slice(),
                }
            }
            ErrorCode::Unprepared => Self::Unprepared {
                id: reader.short_bytes("unknown prepared id")?.into(),
            },
            ErrorCode::RateLimit => {
                let operation = reader.byte("limited operation")?;
                let by_coordinator = reader.byte("rejected by coordinator")?;
                Self::RateLimit {
                    number,
                    operation: match operation {
                        0 => RateLimitedOperation::Read,
                        1 => RateLimitedOperation::Write,
                        other => RateLimitedOperation::Other(other),
                    },
                    rejected_by_coordinator: by_coordinator != 0,
                }
            }
            _ => Self::None,
        })
    }

    /// A level that was not met, by a timeout or since replicas failed.
    #[inline(never)]
    fn parse_missed(
        version: ProtocolVersion,
        code: ErrorCode,
        is_read: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Self, ParseError> {
        let (consistency, received, required) = parse_counts(reader)?;
        let mut failures = None;
        if matches!(code, ErrorCode::ReadFailure | ErrorCode::WriteFailure) {
            failures = Some(parse_failures(version, reader)?);
        }
        if is_read {
            let data_present = reader.byte("data present")? != 0;
            return Ok(match failures {
                Some(failures) => Self::ReadFailure {
                    consistency,
                    received,
                    required,
                    failures,
                    data_present,
                },
                None => Self::ReadTimeout {
                    consistency,
                    received,
                    required,
                    data_present,
                },
            });
        }
        let name = reader.string("write type")?;
        let write_type = WriteType::from_name(name);
        if let Some(failures) = failures {
            return Ok(Self::WriteFailure {
                consistency,
                received,
                required,
                failures,
                write_type,
            });
        }
        let mut contentions = None;
        if version.has_wide_flags() && name == "CAS" {
            contentions = Some(reader.short("contentions")?);
        }
        Ok(Self::WriteTimeout {
            consistency,
            received,
            required,
            write_type,
            contentions,
        })
    }
}

#[inline(never)]
fn parse_counts(reader: &mut Reader<'_>) -> Result<(ConsistencyCode, i32, i32), ParseError> {
    let consistency = ConsistencyCode::parse(reader)?;
    Ok((
        consistency,
        reader.int("number of replicas")?,
        reader.int("number of replicas")?,
    ))
}

/// Replicas that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// Their number.
    pub count: i32,
    /// Each with the reason it gave; version 5 only.
    pub reasons: Box<[(IpAddr, u16)]>,
}

/// How many replicas failed; each with its reason from version 5 on.
#[inline(never)]
fn parse_failures(
    version: ProtocolVersion,
    reader: &mut Reader<'_>,
) -> Result<Failures, ParseError> {
    let start = reader.clone();
    let count = reader.int("number of failures")?;
    let mut reasons = Vec::new();
    if version.has_wide_flags() {
        if count < 0 {
            return Err(start.error("number of failures", ParseErrorKind::BadCount { count }));
        }
        for _ in 0..count {
            let address = reader.inet_address("address of failed replica")?;
            reasons.push((address, reader.short("reason of failure")?));
        }
    }
    let reasons = reasons.into_boxed_slice();
    Ok(Failures { count, reasons })
}

/// What a failed write was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteType {
    /// One statement.
    Simple,
    /// A logged batch, after the batch log was written.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A counter update.
    Counter,
    /// The batch log itself.
    BatchLog,
    /// A conditional write.
    Cas,
    /// A materialized view.
    View,
    /// The change log.
    Cdc,
    /// Something else, by its name.
    Other(Box<str>),
}

impl WriteType {
    /// Finds a write type by the protocol's name; unknown names are kept.
    #[must_use]
    #[inline(never)]
    pub fn from_name(name: &str) -> Self {
        match place(WRITE_TYPES, name) {
            Some(0) => Self::Simple,
            Some(1) => Self::Batch,
            Some(2) => Self::UnloggedBatch,
            Some(3) => Self::Counter,
            Some(4) => Self::BatchLog,
            Some(5) => Self::Cas,
            Some(6) => Self::View,
            Some(7) => Self::Cdc,
            _ => Self::Other(boxed(name)),
        }
    }

    /// The protocol's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
            Self::Other(name) => name,
        }
    }
}

const WRITE_TYPES: &str = "SIMPLE BATCH UNLOGGED_BATCH COUNTER BATCH_LOG CAS VIEW CDC";

impl fmt::Display for WriteType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a rate limit was reached for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateLimitedOperation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Something else, by its number.
    Other(u8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Consistency;
    use alloc::string::ToString;

    #[test]
    fn the_rate_limit_code_is_the_one_the_connection_agreed() {
        let body = [0, 0, 0xf0, 0, 0, 1, b'm', 1, 0];
        let mut dialect = Dialect::plain(ProtocolVersion::V4);
        let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
        assert_eq!(
            (error.code, error.detail()),
            (ErrorCode::Other(0xf000), Ok(ErrorDetail::None))
        );
        dialect.rate_limit_error = Some(0xf000);
        let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
        assert_eq!(error.code, ErrorCode::RateLimit);
        let operation = RateLimitedOperation::Write;
        let detail = ErrorDetail::RateLimit {
            number: 0xf000,
            operation,
            rejected_by_coordinator: false,
        };
        assert_eq!(error.detail(), Ok(detail));
    }

    #[test]
    fn failures_are_a_number_or_from_version_5_a_map_of_reasons() {
        let front = [0, 0, 0x15, 0, 0, 1, b'm', 0, 6, 0, 0, 0, 1, 0, 0, 0, 2];
        let back = [0, 6, b'S', b'I', b'M', b'P', b'L', b'E'];
        let reasons = [0, 0, 0, 1, 4, 127, 0, 0, 1, 0, 3];
        for (version, middle, expected) in [
            (ProtocolVersion::V4, &[0, 0, 0, 1][..], &[][..]),
            (
                ProtocolVersion::V5,
                &reasons,
                &[(IpAddr::from([127, 0, 0, 1]), 3)],
            ),
        ] {
            let body = [&front[..], middle, &back].concat();
            let dialect = Dialect::plain(version);
            let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
            let Ok(ErrorDetail::WriteFailure {
                failures,
                write_type,
                ..
            }) = error.detail()
            else {
                panic!("{error:?}")
            };
            assert_eq!((failures.count, &*failures.reasons), (1, expected));
            assert_eq!(write_type, WriteType::Simple);
        }
    }

    #[test]
    fn contentions_exist_only_for_conditional_writes_of_version_5() {
        let cas = [
            0, 0, 0x11, 0, 0, 1, b'm', 0, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, b'C', b'A', b'S',
        ];
        let with_contentions = [&cas[..], &[0, 7]].concat();
        for (version, body, expected) in [
            (ProtocolVersion::V4, &cas[..], None),
            (ProtocolVersion::V5, &with_contentions, Some(7)),
        ] {
            let dialect = Dialect::plain(version);
            let error = ServerError::parse(&dialect, &mut Reader::new(body)).unwrap();
            let Ok(ErrorDetail::WriteTimeout { contentions, .. }) = error.detail() else {
                panic!("{error:?}")
            };
            assert_eq!(contentions, expected);
        }
        // What is missing hides only the facts.
        let v5 = Dialect::plain(ProtocolVersion::V5);
        let cut = ServerError::parse(&v5, &mut Reader::new(&cas)).unwrap();
        assert_eq!((cut.code, &*cut.message), (ErrorCode::WriteTimeout, "m"));
        assert!(cut.detail().is_err());
        // But not what has to be there whatever comes behind it.
        let cut = &cas[..18];
        assert!(ServerError::parse(&v5, &mut Reader::new(cut)).is_err());
    }

    /// Case: UNAVAILABLE at level 9 is known, at level 11 and above it is not.
    #[test]
    fn a_level_that_is_news_does_not_hide_the_error() {
        for (level, known) in [(9_u8, true), (11, false), (0xff, false)] {
            let body = [0, 0, 0x10, 0, 0, 1, b'm', 0, level, 0, 0, 0, 3, 0, 0, 0, 2];
            let dialect = Dialect::plain(ProtocolVersion::V4);
            let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
            let Ok(ErrorDetail::Unavailable {
                consistency,
                required,
                alive,
            }) = error.detail()
            else {
                panic!("{error:?}")
            };
            assert_eq!(
                (consistency.code(), required, alive),
                (u16::from(level), 3, 2)
            );
            assert_eq!(consistency.level().is_some(), known);
        }
    }

    #[test]
    fn a_bad_letter_does_not_hide_the_error() {
        let body = [0, 0, 0x22, 0, 0, 2, b'm', 0xff];
        let dialect = Dialect::plain(ProtocolVersion::V4);
        let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
        assert_eq!(
            (error.code, &*error.message),
            (ErrorCode::Invalid, "m\u{fffd}")
        );
    }

    /// As the library does, wherever the letters break off or are wrong.
    #[test]
    fn bad_letters_are_replaced_one_by_one() {
        let letters = "a\u{e4}\u{20ac}\u{1f600}z".as_bytes();
        for start in 0..letters.len() {
            for end in start..=letters.len() {
                for wrong in [0x00, 0x80, 0xc3, 0xe2, 0xf0, 0xff] {
                    let part = &letters[start..end];
                    for bytes in [
                        part.to_vec(),
                        [part, &[wrong]].concat(),
                        [part, &[wrong], letters].concat(),
                        [&[wrong, wrong], part].concat(),
                    ] {
                        assert_eq!(
                            *text(&bytes),
                            *String::from_utf8_lossy(&bytes),
                            "{bytes:x?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_conditional_write_of_unknown_outcome_tells_its_counts() {
        let body = [0, 0, 0x17, 0, 0, 1, b'm', 0, 8, 0, 0, 0, 1, 0, 0, 0, 2];
        let dialect = Dialect::plain(ProtocolVersion::V5);
        let error = ServerError::parse(&dialect, &mut Reader::new(&body)).unwrap();
        let detail = ErrorDetail::CasWriteUnknown {
            consistency: Consistency::Serial.into(),
            received: 1,
            required: 2,
        };
        assert_eq!(
            (error.code, error.detail()),
            (ErrorCode::CasWriteUnknown, Ok(detail))
        );
    }

    #[test]
    fn write_types_have_the_specification_s_names_and_others_keep_theirs() {
        let names = [
            "SIMPLE",
            "BATCH",
            "UNLOGGED_BATCH",
            "COUNTER",
            "BATCH_LOG",
            "CAS",
            "VIEW",
            "CDC",
        ];
        for name in names {
            let write_type = WriteType::from_name(name);
            assert!(!matches!(write_type, WriteType::Other(_)), "{name}");
            assert_eq!(
                (write_type.name(), write_type.to_string().as_str()),
                (name, name)
            );
        }
        assert_eq!(
            WriteType::from_name("PAXOS"),
            WriteType::Other("PAXOS".into())
        );
        assert_eq!(WriteType::from_name("PAXOS").to_string(), "PAXOS");
    }
}
