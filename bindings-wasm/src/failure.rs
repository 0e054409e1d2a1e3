//! Failures as the shell is told of them.

use messina_core::error::{Error, ErrorKind, PeerIncompatible};
use messina_core::wire::ConsistencyCode;
use messina_core::wire::response::{ErrorCode, ErrorDetail, RateLimitedOperation};

use crate::message::{Effect, FORBIDDEN};
use crate::outbox::Outbox;

impl Outbox {
    pub(crate) fn put_failure(&mut self, request: u32, error: &Error) {
        self.put(Effect::Failed, request);
        let code = match error.kind() {
            ErrorKind::Server(code) => code.number().unwrap_or(0),
            _ => 0,
        };
        let is_applied = u32::from(error.may_have_been_applied());
        let is_transient = u32::from(error.is_transient() && !is_forbidden(error.kind()));
        let attempts = error.node().map_or(0, |_| u32::from(error.attempt()) + 1);
        self.put_text(kind_name(error.kind()));
        self.put_word(code.cast_unsigned());
        self.put_word(is_applied | (is_transient << 1));
        self.put_maybe(error.node());
        self.put_maybe(error.shard());
        self.put_word(attempts);
        self.put_text(&error.text());
        let detail = error.server().and_then(|server| server.detail().ok());
        self.put_facts(detail.as_ref());
    }

    fn put_facts(&mut self, detail: Option<&ErrorDetail>) {
        let count_at = self.reserve_words(1);
        let mut facts = Facts {
            outbox: self,
            count: 0,
        };
        if let Some(detail) = detail {
            facts.put_detail(detail);
        }
        let count = facts.count;
        if let Some(word) = self.reserved(count_at).next() {
            *word = count.to_le_bytes();
        }
    }
}

/// Facts that are being written.
struct Facts<'a> {
    outbox: &'a mut Outbox,
    count: u32,
}

impl Facts<'_> {
    fn put_detail(&mut self, detail: &ErrorDetail) {
        match detail {
            ErrorDetail::Unavailable {
                consistency,
                required,
                alive,
            } => {
                self.level(*consistency);
                self.number("required", *required);
                self.number("alive", *alive);
            }
            ErrorDetail::WriteTimeout {
                consistency,
                received,
                required,
                write_type,
                ..
            } => {
                self.counts(*consistency, *received, *required);
                self.text("writeType", write_type.name());
            }
            ErrorDetail::ReadTimeout {
                consistency,
                received,
                required,
                data_present,
            } => {
                self.counts(*consistency, *received, *required);
                self.flag("dataPresent", *data_present);
            }
            ErrorDetail::ReadFailure {
                consistency,
                received,
                required,
                failures,
                data_present,
            } => {
                self.counts(*consistency, *received, *required);
                self.number("failures", failures.count);
                self.flag("dataPresent", *data_present);
            }
            ErrorDetail::WriteFailure {
                consistency,
                received,
                required,
                failures,
                write_type,
            } => {
                self.counts(*consistency, *received, *required);
                self.number("failures", failures.count);
                self.text("writeType", write_type.name());
            }
            ErrorDetail::CasWriteUnknown {
                consistency,
                received,
                required,
            } => self.counts(*consistency, *received, *required),
            ErrorDetail::FunctionFailure {
                keyspace, function, ..
            } => {
                self.text("keyspace", keyspace);
                self.text("function", function);
            }
            ErrorDetail::AlreadyExists { keyspace, table } => {
                self.text("keyspace", keyspace);
                self.text("table", table);
            }
            ErrorDetail::RateLimit {
                operation,
                rejected_by_coordinator,
                ..
            } => {
                let name = match operation {
                    RateLimitedOperation::Read => "read",
                    RateLimitedOperation::Write => "write",
                    _ => "other",
                };
                self.text("operation", name);
                self.flag("rejectedByCoordinator", *rejected_by_coordinator);
            }
            _ => {}
        }
    }

    fn counts(&mut self, consistency: ConsistencyCode, received: i32, required: i32) {
        self.level(consistency);
        self.number("received", received);
        self.number("required", required);
    }

    fn level(&mut self, consistency: ConsistencyCode) {
        let name = consistency.level().map_or("unknown", |level| level.name());
        self.text("consistency", name);
    }

    fn number(&mut self, name: &str, value: i32) {
        self.begin(name, 0);
        self.outbox.put_word(value.cast_unsigned());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.begin(name, 1);
        self.outbox.put_text(value);
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.begin(name, 2);
        self.outbox.put_word(u32::from(value));
    }

    fn begin(&mut self, name: &str, tag: u32) {
        self.count += 1;
        self.outbox.put_text(name);
        self.outbox.put_word(tag);
    }
}

/// Whether a relay does not lead there, which no repetition changes.
fn is_forbidden(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Link(link) if link.saying().is_some_and(|(code, _)| code == FORBIDDEN))
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
        // Nobody but a relay says why a link failed.
        ErrorKind::Link(link) if link.saying().is_some() => "relay",
        ErrorKind::Link(_) | ErrorKind::Unreachable => "transport",
        ErrorKind::Timeout(_) => "timeout",
        ErrorKind::Busy | ErrorKind::Limit(_) => "limit",
        ErrorKind::Encode(_) => "encode",
        ErrorKind::ApiMisuse(_) => "usage",
        ErrorKind::Config(_) => "config",
        _ => "bug",
    }
}
