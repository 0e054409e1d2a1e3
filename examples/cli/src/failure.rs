//! What the command says when something fails: one line, or one JSON object, on standard error.
//!
//! The driver's [`Error`] knows who is at fault; here that becomes the kind of the contract, a
//! sentence that says what to do, and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use messina_core::error::{
    Applied, Error, ErrorKind, LinkErrorKind, PeerIncompatible, TimeoutKind, TlsFailure,
};
use messina_core::wire::response::{ErrorCode, ErrorDetail, RateLimitedOperation};
use serde_json::{Value, json};
use uuid::Uuid;

/// Something went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
    code: Option<i32>,
    applied: &'static str,
    attempt: u8,
    host_id: Option<Uuid>,
    shard: Option<u16>,
    rate_limit: Option<(&'static str, bool)>,
    is_silent: bool,
}

impl Failure {
    /// The command was called wrongly; nothing was done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// A value that the driver never saw, because it cannot become one of its column's type.
    pub(crate) fn encode(message: impl Into<String>) -> Self {
        Self::new("encode", message)
    }

    /// Something of this machine: a file, a socket, standard output.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self::new("io", format!("{what}: {error}"))
    }

    /// Standard output cannot be written. If nobody reads it any more, nothing is said.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self {
            is_silent: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::io("standard output", error)
        }
    }

    /// Any kind.
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: None,
            applied: "no",
            attempt: 0,
            host_id: None,
            shard: None,
            rate_limit: None,
            is_silent: false,
        }
    }

    /// What the driver says about a request; `host_id` finds the node of an index.
    pub(crate) fn of_request(error: &Error, host_id: impl FnOnce(u16) -> Option<Uuid>) -> Self {
        let (code, rate_limit) = server_facts(error);
        let applied = match error.applied() {
            Applied::No => "no",
            _ => "unknown",
        };
        Self {
            code,
            applied,
            attempt: error.attempt(),
            host_id: error.node().and_then(host_id),
            shard: error.shard(),
            rate_limit,
            ..Self::new(kind(error), error.to_string())
        }
    }

    /// What the driver says when the cluster could not be reached at all; says what to do.
    pub(crate) fn of_connect(error: &Error, contacts: &str) -> Self {
        let told = decisive(error);
        let kind = match kind(told) {
            "link" | "client_timeout" => "connect",
            kind => kind,
        };
        let advice = advice(told);
        let told_text = told.to_string();
        // The driver names the place itself where it makes a difference.
        let place = if told_text.contains(contacts) {
            String::new()
        } else {
            format!(" to {contacts}")
        };
        let message = format!("cannot connect{place}: {told_text}; {advice}");
        Self {
            code: server_facts(told).0,
            ..Self::new(kind, message)
        }
    }

    /// The kind's name.
    pub(crate) const fn kind(&self) -> &'static str {
        self.kind
    }

    /// What it says.
    pub(crate) fn message(&self) -> String {
        one_line(&self.message)
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.kind == USAGE { 2 } else { 1 })
    }

    /// Writes it to standard error.
    pub(crate) fn report(&self, as_json: bool) {
        if self.is_silent {
            return;
        }
        let mut stderr = io::stderr().lock();
        // Nobody is left to tell if standard error is gone.
        let _ = if as_json {
            writeln!(stderr, "{}", self.to_json())
        } else {
            writeln!(stderr, "error: {}", one_line(&self.message))
        };
    }

    fn to_json(&self) -> Value {
        let mut error = json!({
            "kind": self.kind,
            "message": one_line(&self.message),
            "code": self.code,
            "applied": self.applied,
            "attempt": self.attempt,
            "host_id": self.host_id.map(|id| id.to_string()),
            "shard": self.shard,
        });
        if let Some((op_type, by_coordinator)) = self.rate_limit {
            error["op_type"] = op_type.into();
            error["rejected_by_coordinator"] = by_coordinator.into();
        }
        json!({ "error": error })
    }
}

const USAGE: &str = "usage";

/// Line breaks and other control characters, which a server's text may hold, become spaces.
fn one_line(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn server_facts(error: &Error) -> (Option<i32>, Option<(&'static str, bool)>) {
    let Some(server) = error.server() else {
        return (None, None);
    };
    match server.detail() {
        // Its number is what the node told the connection, not one of the protocol.
        Ok(ErrorDetail::RateLimit {
            number,
            operation,
            rejected_by_coordinator,
        }) => {
            let rate_limit = (operation_name(operation), rejected_by_coordinator);
            (Some(number), Some(rate_limit))
        }
        _ => (server.code.number(), None),
    }
}

fn operation_name(operation: RateLimitedOperation) -> &'static str {
    match operation {
        RateLimitedOperation::Read => "read",
        RateLimitedOperation::Write => "write",
        _ => "other",
    }
}

/// The name of an error's kind in the contract.
fn kind(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Server(code) => server_kind(code),
        ErrorKind::PeerIncompatible(
            PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication,
        ) => "auth",
        ErrorKind::PeerMisbehaved(_) | ErrorKind::PeerIncompatible(_) => "protocol",
        ErrorKind::Link(link) if link.kind() == LinkErrorKind::Tls => "tls",
        ErrorKind::Link(_) => "link",
        ErrorKind::Unreachable | ErrorKind::Target(_) => "connect",
        ErrorKind::Timeout(TimeoutKind::Request) => "client_timeout",
        ErrorKind::Timeout(TimeoutKind::Connect | TimeoutKind::Handshake) => "connect",
        ErrorKind::Timeout(_) => "link",
        ErrorKind::Busy => "busy",
        ErrorKind::Limit(_) => "limit",
        ErrorKind::Encode(_) => "encode",
        ErrorKind::Decode(_) => "decode",
        ErrorKind::ApiMisuse(_) | ErrorKind::Config(_) => "config",
        _ => "bug",
    }
}

fn server_kind(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Server => "server_error",
        ErrorCode::Protocol => "protocol_error",
        ErrorCode::BadCredentials => "auth",
        ErrorCode::Unavailable => "unavailable",
        ErrorCode::Overloaded => "overloaded",
        ErrorCode::IsBootstrapping => "is_bootstrapping",
        ErrorCode::Truncate => "truncate_error",
        ErrorCode::WriteTimeout => "write_timeout",
        ErrorCode::ReadTimeout => "read_timeout",
        ErrorCode::ReadFailure => "read_failure",
        ErrorCode::FunctionFailure => "function_failure",
        ErrorCode::WriteFailure => "write_failure",
        ErrorCode::CdcWriteFailure => "cdc_write_failure",
        ErrorCode::CasWriteUnknown => "cas_write_unknown",
        ErrorCode::Syntax => "syntax_error",
        ErrorCode::Unauthorized => "unauthorized",
        ErrorCode::Invalid => "invalid",
        ErrorCode::Config => "config_error",
        ErrorCode::AlreadyExists => "already_exists",
        ErrorCode::Unprepared => "unprepared",
        ErrorCode::RateLimit => "rate_limit",
        _ => "unknown_code",
    }
}

/// Of the causes of a failed first contact, the one that says most: what a node that answered has
/// said counts more than that another did not answer.
fn decisive(error: &Error) -> &Error {
    let weight = |error: &Error| match error.kind() {
        ErrorKind::Server(_) | ErrorKind::PeerIncompatible(_) | ErrorKind::Config(_) => 4,
        ErrorKind::PeerMisbehaved(_) | ErrorKind::Decode(_) => 3,
        ErrorKind::Link(_) => 2,
        _ => 1,
    };
    error
        .causes()
        .iter()
        .rev()
        .max_by_key(|cause| weight(cause))
        .map_or(error, decisive)
}

/// What to do about a failed first contact.
fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Server(ErrorCode::BadCredentials) => "check --user and --password",
        ErrorKind::Server(ErrorCode::Invalid) => "check --keyspace",
        ErrorKind::Server(ErrorCode::Unauthorized) => "use a role that may do this",
        ErrorKind::Server(ErrorCode::Protocol)
        | ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion) => {
            "this command speaks protocols 4 and 5; see --protocol and --compression"
        }
        ErrorKind::Server(_) => "look into the server's log",
        ErrorKind::PeerIncompatible(
            PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication,
        ) => "give --user and --password (or MESSINA_PASSWORD)",
        ErrorKind::PeerIncompatible(_) | ErrorKind::Config(_) => "change the option",
        ErrorKind::PeerMisbehaved(_) | ErrorKind::Decode(_) => {
            "is this the CQL port (usually 9042)? if it wants TLS, give --tls"
        }
        ErrorKind::Link(link) => match link.kind() {
            LinkErrorKind::Resolve => "check the host name in --contact",
            LinkErrorKind::Refused => "is a node running there? check host and port in --contact",
            LinkErrorKind::Reset | LinkErrorKind::ClosedByPeer => {
                "is this the CQL port (usually 9042), does it want TLS, is the node still starting?"
            }
            LinkErrorKind::Tls => tls_advice(link.tls_failure()),
            _ => "check the network, and host and port in --contact",
        },
        ErrorKind::Timeout(_) => "check host and port in --contact, or raise --connect-timeout",
        _ => "check --contact",
    }
}

/// What to do where TLS failed.
fn tls_advice(why: Option<TlsFailure>) -> &'static str {
    match why {
        Some(TlsFailure::Expired | TlsFailure::NotYetValid) => {
            "renew it, or set the clock of this machine"
        }
        Some(TlsFailure::UnknownIssuer) => "give the authority that signed it with --ca",
        Some(TlsFailure::NameMismatch) => {
            "connect to what it names, or give that with --tls-server-name"
        }
        Some(TlsFailure::NotTls) => "leave --tls out, or check the port in --contact",
        Some(TlsFailure::RefusedByPeer) => "does it want a certificate? give --tls-cert, --tls-key",
        _ => "check the node's certificate and TLS settings",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messina_core::error::LinkError;

    #[test]
    fn what_a_node_said_counts_more_than_silence() {
        let refused = Error::from(LinkError::new(LinkErrorKind::Refused));
        let version = Error::new(ErrorKind::PeerIncompatible(
            PeerIncompatible::ProtocolVersion,
        ));
        let all = Error::unreachable(vec![refused.clone(), version.clone(), refused.clone()]);
        assert_eq!(decisive(&all), &version);
        assert_eq!(Failure::of_connect(&all, "h:1").kind(), "protocol");
        let nested = Error::unreachable(vec![Error::unreachable(vec![refused])]);
        assert_eq!(Failure::of_connect(&nested, "h:1").kind(), "connect");
        assert_eq!(
            Failure::of_connect(&Error::unreachable(Vec::new()), "h:1").kind(),
            "connect"
        );
    }

    #[test]
    fn texts_of_servers_stay_on_one_line() {
        assert_eq!(
            one_line("line 1:0\n\tno \u{1b}[31mviable\r\n"),
            "line 1:0 no [31mviable"
        );
    }

    #[test]
    fn json_has_every_field_of_the_contract() {
        let failure = Failure::usage("no contact point").to_json();
        assert_eq!(
            failure.to_string(),
            r#"{"error":{"kind":"usage","message":"no contact point","code":null,"applied":"no","attempt":0,"host_id":null,"shard":null}}"#
        );
    }
}
