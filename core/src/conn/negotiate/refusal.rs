//! Refusals of a protocol version, told from other errors.

use crate::error::{Error, ErrorKind, PeerIncompatible};
use crate::wire::ProtocolVersion;
use crate::wire::response::{ErrorCode, ServerError};
use crate::words::{explain, joined};

/// An ERROR frame in the handshake, perhaps in answer to the first request. A refusal of the version
/// comes on stream 0 whatever was asked, in words that differ between servers but always name the
/// version.
pub(super) fn refused(asked: ProtocolVersion, is_first: bool, error: ServerError) -> Error {
    let names_version = has_words(&error.message, "protocol version")
        || has_words(&error.message, "invalid or unsupported protocol");
    if error.code == ErrorCode::Protocol
        && is_first
        && (names_version || asked > ProtocolVersion::V4)
    {
        return version_refused(asked, &error.message);
    }
    Error::from_server(error)
}

/// Whether a text has these words, in capitals or not. The library's search in strings is made
/// for long ones, and larger than the rest of a handshake.
fn has_words(text: &str, words: &str) -> bool {
    let mut places = text.as_bytes().windows(words.len());
    places.any(|place| place.eq_ignore_ascii_case(words.as_bytes()))
}

pub(super) fn version_refused(asked: ProtocolVersion, text: &str) -> Error {
    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
    let number = match asked {
        ProtocolVersion::V3 => "3",
        ProtocolVersion::V4 => "4",
        ProtocolVersion::V5 => "5",
    };
    let text = explain(|all| all.push_str(&joined(&["asked for version ", number, ": ", text])));
    Error::with_text(kind, text)
}
