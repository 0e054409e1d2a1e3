//! What to do after an attempt has failed: plain functions of the error, the statement's
//! idempotence and how often was tried. No policy objects, no state.
//!
//! The rules keep two promises. A request that may have been applied is not repeated unless its
//! statement is idempotent. And no error is hammered: each kind of retry is bounded.

use crate::error::{Error, ErrorKind};
use crate::wire::response::{ErrorCode, ServerError};

/// What is known when an attempt has failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Why.
    pub error: &'a Error,
    /// Whether running the statement twice does the same as running it once.
    pub is_idempotent: bool,
    /// Attempts made on the same target for the same cause.
    pub same_target_retries: u8,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Try the same target again.
    SameTarget,
    /// Go on to the next target of the plan.
    NextTarget,
    /// Give the error to the caller.
    Fail,
}

/// The default rules.
pub fn decide(failure: &Failure<'_>) -> Decision {
    let Failure {
        error,
        is_idempotent,
        same_target_retries,
    } = *failure;
    let unsent_or_idempotent = is_idempotent || !error.may_have_been_applied();
    match error.kind() {
        ErrorKind::Server(code) => {
            after_server_error(code, error.server(), is_idempotent, same_target_retries)
        }
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_) | ErrorKind::Busy
            if unsent_or_idempotent =>
        {
            Decision::NextTarget
        }
        _ => Decision::Fail,
    }
}

fn after_server_error(
    code: ErrorCode,
    error: Option<&ServerError>,
    is_idempotent: bool,
    same_target_retries: u8,
) -> Decision {
    match (code, error) {
        // Not executed: another coordinator may see more replicas, or be less busy.
        (ErrorCode::Unavailable | ErrorCode::IsBootstrapping, _) => Decision::NextTarget,
        (ErrorCode::Overloaded | ErrorCode::Server | ErrorCode::Truncate, _) if is_idempotent => {
            Decision::NextTarget
        }
        // Enough replicas answered, only the one asked for data did not: the repair that follows
        // makes a second try promising.
        (ErrorCode::ReadTimeout, Some(error))
            if same_target_retries == 0 && error.lacks_only_data() =>
        {
            Decision::SameTarget
        }
        (ErrorCode::WriteTimeout, Some(error)) if same_target_retries == 0 => {
            match error.missed_write() {
                // The batch itself was not written yet.
                Some("BATCH_LOG") => Decision::SameTarget,
                Some("SIMPLE") if is_idempotent => Decision::SameTarget,
                _ => Decision::Fail,
            }
        }
        _ => Decision::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Applied, LinkError, PeerMisbehaved, TimeoutKind};
    use crate::wire::response::ServerError;
    use crate::wire::{Dialect, ProtocolVersion, Reader};

    fn hex(text: &str) -> alloc::vec::Vec<u8> {
        let digits: alloc::vec::Vec<u8> = text
            .chars()
            .filter_map(|c| c.to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| (pair[0] << 4) | pair[1])
            .collect()
    }

    fn server(body: &str) -> Error {
        let dialect = Dialect::plain(ProtocolVersion::V4);
        Error::from_server(ServerError::parse(&dialect, &mut Reader::new(&hex(body))).unwrap())
    }

    fn decided(error: &Error, is_idempotent: bool, same_target_retries: u8) -> Decision {
        decide(&Failure {
            error,
            is_idempotent,
            same_target_retries,
        })
    }

    /// Bodies of answers to a QUORUM read and to writes; what follows for (other, idempotent).
    #[test]
    fn server_errors() {
        use Decision::{Fail, NextTarget, SameTarget};
        for (what, body, plain, idempotent) in [
            (
                "read timeout, data missing",
                "00001200 0001 78 0004 00000002 00000002 00",
                SameTarget,
                SameTarget,
            ),
            (
                "read timeout, data there",
                "00001200 0001 78 0004 00000002 00000002 01",
                Fail,
                Fail,
            ),
            (
                "read timeout, too few",
                "00001200 0001 78 0004 00000001 00000002 00",
                Fail,
                Fail,
            ),
            (
                "read timeout, too few, data",
                "00001200 0001 78 0004 00000001 00000002 01",
                Fail,
                Fail,
            ),
            (
                "write timeout SIMPLE",
                "00001100 0001 78 0001 00000000 00000002 0006 53494d504c45",
                Fail,
                SameTarget,
            ),
            (
                "write timeout COUNTER",
                "00001100 0001 78 0001 00000000 00000002 0007 434f554e544552",
                Fail,
                Fail,
            ),
            (
                "write timeout CAS",
                "00001100 0001 78 0001 00000000 00000002 0003 434153",
                Fail,
                Fail,
            ),
            (
                "write timeout BATCH_LOG",
                "00001100 0001 78 0001 00000000 00000002 0009 42415443485f4c4f47",
                SameTarget,
                SameTarget,
            ),
            (
                "write failure",
                "00001500 0001 78 0001 00000000 00000001 00000001 0006 53494d504c45",
                Fail,
                Fail,
            ),
            (
                "unavailable",
                "00001000 0001 78 0004 00000002 00000001",
                NextTarget,
                NextTarget,
            ),
            ("overloaded", "00001001 0001 78", Fail, NextTarget),
            ("server error", "00000000 0001 78", Fail, NextTarget),
            ("syntax error", "00002000 0001 78", Fail, Fail),
            ("invalid", "00002200 0001 78", Fail, Fail),
        ] {
            let error = server(body);
            assert_eq!(decided(&error, false, 0), plain, "{what}");
            assert_eq!(decided(&error, true, 0), idempotent, "{what}, idempotent");
            assert_ne!(
                decided(&error, true, 1),
                SameTarget,
                "{what}, a second time"
            );
        }
    }

    #[test]
    fn lost_connections_and_timeouts() {
        // What `conn` gives to the requests of a connection that is over.
        let lost = [
            Error::from(LinkError::CLOSED_BY_PEER),
            Error::from(PeerMisbehaved::BadHeader),
            Error::new(ErrorKind::Busy),
        ];
        for (applied, idempotent, expected) in [
            (Applied::No, false, Decision::NextTarget),
            (Applied::Unknown, false, Decision::Fail),
            (Applied::Unknown, true, Decision::NextTarget),
        ] {
            for error in &lost {
                let error = error.clone().with_applied(applied);
                assert_eq!(
                    decided(&error, idempotent, 0),
                    expected,
                    "{error:?} {idempotent}"
                );
            }
        }
        let timeout = Error::new(ErrorKind::Timeout(TimeoutKind::Request));
        assert_eq!(
            decided(&timeout, true, 0),
            Decision::Fail,
            "no time is left"
        );
    }
}
