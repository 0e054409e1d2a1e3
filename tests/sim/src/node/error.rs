//! What a node says no with: the CQL errors and their bodies.
//!
//! Holds facts, not sentences, where the protocol has fields for them; the text is made from the
//! fields. It decides nothing about connections: whether an error closes one is the business of
//! `connection`. Codes and layouts follow the native protocol and ScyllaDB's additions to it.

use super::codec::{Consistency, Writer};

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CqlError {
    /// 0x0000, anything unexpected.
    Server(String),
    /// 0x000A, the client broke the protocol.
    Protocol(String),
    /// 0x0100, login refused.
    BadCredentials(String),
    /// 0x1000, not enough live replicas.
    Unavailable {
        /// Level of the request.
        consistency: Consistency,
        /// Replicas the level asks for.
        required: i32,
        /// Replicas alive.
        alive: i32,
    },
    /// 0x1001, shed load.
    Overloaded(String),
    /// 0x1100, the write was not acknowledged in time.
    WriteTimeout {
        /// Level of the request.
        consistency: Consistency,
        /// Acknowledgements received.
        received: i32,
        /// Acknowledgements waited for.
        block_for: i32,
        /// `SIMPLE`, `BATCH`, `CAS`…
        write_type: String,
    },
    /// 0x1200, replicas did not answer in time.
    ReadTimeout {
        /// Level of the request.
        consistency: Consistency,
        /// Answers received.
        received: i32,
        /// Answers waited for.
        block_for: i32,
        /// Whether the data (not only digests) had arrived.
        data_present: bool,
    },
    /// 0x1300, replicas failed a read.
    ReadFailure {
        /// Level of the request.
        consistency: Consistency,
        /// Answers received.
        received: i32,
        /// Answers waited for.
        block_for: i32,
        /// Failures seen.
        failures: i32,
        /// Whether the data had arrived.
        data_present: bool,
    },
    /// 0x1500, replicas failed a write.
    WriteFailure {
        /// Level of the request.
        consistency: Consistency,
        /// Acknowledgements received.
        received: i32,
        /// Acknowledgements waited for.
        block_for: i32,
        /// Failures seen.
        failures: i32,
        /// `SIMPLE`, `BATCH`, `CAS`…
        write_type: String,
    },
    /// 0x2000, the text is not CQL.
    Syntax(String),
    /// 0x2100, not permitted.
    Unauthorized(String),
    /// 0x2200, CQL that cannot be carried out.
    Invalid(String),
    /// 0x2300, refused by configuration.
    Config(String),
    /// 0x2400, a keyspace (empty table) or table of that name exists.
    AlreadyExists {
        /// Keyspace name.
        keyspace: String,
        /// Table name, empty for a keyspace.
        table: String,
    },
    /// 0x2500, this node does not know the prepared id.
    Unprepared(Vec<u8>),
    /// 0xF000 where negotiated, else 0x2300: a partition's rate limit was hit.
    RateLimit {
        /// Keyspace name.
        keyspace: String,
        /// Table name.
        table: String,
        /// Whether a write was refused.
        write: bool,
        /// Whether the coordinator refused (else the replicas).
        by_coordinator: bool,
    },
}

/// The advertised code of rate limit errors.
pub(crate) const RATE_LIMIT_CODE: i32 = 0xF000;

impl CqlError {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    pub(crate) fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }

    /// The typical error of a name as the control port and tests use it (`overloaded`,
    /// `read_timeout`, …), or none for an unknown name.
    pub fn named(name: &str, message: &str) -> Option<Self> {
        let consistency = Consistency::Quorum;
        let text = || message.to_owned();
        Some(match name {
            "server_error" => Self::Server(text()),
            "protocol" | "protocol_error" => Self::Protocol(text()),
            "bad_credentials" => Self::BadCredentials(text()),
            "unavailable" => Self::Unavailable {
                consistency,
                required: 2,
                alive: 1,
            },
            "overloaded" => Self::Overloaded(text()),
            "write_timeout" => Self::WriteTimeout {
                consistency,
                received: 1,
                block_for: 2,
                write_type: "SIMPLE".to_owned(),
            },
            "read_timeout" => Self::ReadTimeout {
                consistency,
                received: 1,
                block_for: 2,
                data_present: false,
            },
            "read_failure" => Self::ReadFailure {
                consistency,
                received: 1,
                block_for: 2,
                failures: 1,
                data_present: false,
            },
            "write_failure" => Self::WriteFailure {
                consistency,
                received: 1,
                block_for: 2,
                failures: 1,
                write_type: "SIMPLE".to_owned(),
            },
            "syntax_error" => Self::Syntax(text()),
            "unauthorized" => Self::Unauthorized(text()),
            "invalid" => Self::Invalid(text()),
            "config_error" => Self::Config(text()),
            "already_exists" => Self::AlreadyExists {
                keyspace: "ks".to_owned(),
                table: "t".to_owned(),
            },
            "rate_limit" => Self::RateLimit {
                keyspace: "ks".to_owned(),
                table: "t".to_owned(),
                write: true,
                by_coordinator: false,
            },
            _ => return None,
        })
    }

    /// The code on a connection of `version` that did or did not negotiate rate limit errors.
    fn code(&self, version: u8, rate_limit: bool) -> i32 {
        match self {
            Self::Server(_) => 0x0000,
            Self::Protocol(_) => 0x000A,
            Self::BadCredentials(_) => 0x0100,
            Self::Unavailable { .. } => 0x1000,
            Self::Overloaded(_) => 0x1001,
            Self::WriteTimeout { .. } => 0x1100,
            Self::ReadTimeout { .. } => 0x1200,
            Self::ReadFailure { .. } => {
                if version < 4 {
                    0x1200
                } else {
                    0x1300
                }
            }
            Self::WriteFailure { .. } => {
                if version < 4 {
                    0x1100
                } else {
                    0x1500
                }
            }
            Self::Syntax(_) => 0x2000,
            Self::Unauthorized(_) => 0x2100,
            Self::Invalid(_) => 0x2200,
            Self::Config(_) => 0x2300,
            Self::AlreadyExists { .. } => 0x2400,
            Self::Unprepared(_) => 0x2500,
            Self::RateLimit { .. } if rate_limit => RATE_LIMIT_CODE,
            Self::RateLimit { .. } => 0x2300,
        }
    }

    /// The message text.
    pub fn message(&self) -> String {
        match self {
            Self::Server(text)
            | Self::Protocol(text)
            | Self::BadCredentials(text)
            | Self::Overloaded(text)
            | Self::Syntax(text)
            | Self::Unauthorized(text)
            | Self::Invalid(text)
            | Self::Config(text) => text.clone(),
            Self::Unavailable {
                consistency,
                required,
                alive,
            } => format!(
                "Cannot achieve consistency level for cl {consistency}. Requires {required}, \
                 alive {alive}"
            ),
            Self::WriteTimeout {
                consistency,
                received,
                block_for,
                ..
            }
            | Self::ReadTimeout {
                consistency,
                received,
                block_for,
                ..
            } => format!(
                "Operation timed out - received only {received} responses from {block_for} \
                 CL={consistency}."
            ),
            Self::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                ..
            }
            | Self::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                ..
            } => format!(
                "Operation failed - received {received} responses and {failures} failures from \
                 {block_for} CL={consistency}."
            ),
            Self::AlreadyExists { keyspace, table } if table.is_empty() => {
                format!("Cannot add existing keyspace \"{keyspace}\"")
            }
            Self::AlreadyExists { keyspace, table } => {
                format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
            }
            Self::Unprepared(id) => {
                format!(
                    "No prepared statement with ID {} found.",
                    super::value::hex(id)
                )
            }
            Self::RateLimit {
                keyspace,
                table,
                write,
                by_coordinator,
            } => format!(
                "Per-partition rate limit reached for {} in table {keyspace}.{table}, rejected by \
                 {}",
                if *write { "write" } else { "read" },
                if *by_coordinator {
                    "coordinator"
                } else {
                    "replicas"
                },
            ),
        }
    }

    /// Writes the ERROR body.
    pub(crate) fn put(&self, out: &mut Writer, version: u8, rate_limit: bool) {
        out.int(self.code(version, rate_limit));
        out.string(&self.message());
        let failures_counted = version >= 4;
        match self {
            Self::Unavailable {
                consistency,
                required,
                alive,
            } => {
                out.short(consistency.code());
                out.int(*required);
                out.int(*alive);
            }
            Self::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
            } => {
                out.short(consistency.code());
                out.int(*received);
                out.int(*block_for);
                out.string(write_type);
            }
            Self::ReadTimeout {
                consistency,
                received,
                block_for,
                data_present,
            } => {
                out.short(consistency.code());
                out.int(*received);
                out.int(*block_for);
                out.byte(u8::from(*data_present));
            }
            Self::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                data_present,
            } => {
                out.short(consistency.code());
                out.int(*received);
                out.int(*block_for);
                if failures_counted {
                    out.int(*failures);
                }
                out.byte(u8::from(*data_present));
            }
            Self::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                write_type,
            } => {
                out.short(consistency.code());
                out.int(*received);
                out.int(*block_for);
                if failures_counted {
                    out.int(*failures);
                }
                out.string(write_type);
            }
            Self::AlreadyExists { keyspace, table } => {
                out.string(keyspace);
                out.string(table);
            }
            Self::Unprepared(id) => out.short_bytes(id),
            Self::RateLimit {
                write,
                by_coordinator,
                ..
            } if rate_limit => {
                out.byte(u8::from(*write));
                out.byte(u8::from(*by_coordinator));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::{hex, unhex};
    use super::*;

    fn body(error: &CqlError, version: u8, rate_limit: bool) -> String {
        let mut out = Writer::default();
        error.put(&mut out, version, rate_limit);
        hex(&out.into_bytes())
    }

    #[test]
    fn bodies_are_those_of_a_real_node() {
        let unavailable = CqlError::Unavailable {
            consistency: Consistency::Quorum,
            required: 2,
            alive: 1,
        };
        assert_eq!(
            body(&unavailable, 4, false),
            "00001000004343616e6e6f74206163686965766520636f6e73697374656e6379206c6576656c20666f72\
             20636c2051554f52554d2e20526571756972657320322c20616c697665203100040000000200000001"
        );
        let id = unhex("cc1b08caacde12ecf33f1a3dacf9e218");
        assert_eq!(
            body(&CqlError::Unprepared(id), 4, false),
            "0000250000454e6f2070726570617265642073746174656d656e742077697468204944206363316230386\
             3616163646531326563663333663161336461636639653231382066\
             6f756e642e0010cc1b08caacde12ecf33f1a3dacf9e218"
        );
        let limit = CqlError::RateLimit {
            keyspace: "ks".into(),
            table: "t".into(),
            write: true,
            by_coordinator: false,
        };
        let text = "004e5065722d706172746974696f6e2072617465206c696d6974207265616368656420666f7220777\
                    269746520696e207461626c65206b732e742c2072656a6563746564206279207265706c6963617\
                    3";
        assert_eq!(body(&limit, 4, true), format!("0000f000{text}0100"));
        assert_eq!(body(&limit, 4, false), format!("00002300{text}"));
    }

    #[test]
    fn failures_turn_into_timeouts_on_version_three() {
        let failure = CqlError::ReadFailure {
            consistency: Consistency::LocalQuorum,
            received: 1,
            block_for: 2,
            failures: 1,
            data_present: false,
        };
        assert!(body(&failure, 4, false).ends_with("000600000001000000020000000100"));
        assert!(body(&failure, 4, false).starts_with("00001300"));
        assert!(body(&failure, 3, false).ends_with("0006000000010000000200"));
        assert!(body(&failure, 3, false).starts_with("00001200"));
    }
}
