//! Versions that a node refuses, and what of a handshake is printed.

use super::super::*;
use crate::sync::Shared;
use crate::wire::ProtocolVersion;
use crate::wire::response::ErrorCode;

/// OPTIONS was sent and, if so, answered; then this ERROR comes on stream 0 or 1.
fn refusal(version: ProtocolVersion, opened: bool, code: u8, message: &[u8]) -> ErrorKind {
    let config = Local::new(HandshakeConfig::new(version));
    let mut output = BytesMut::new();
    let mut negotiation = Negotiation::start(config, &mut output).unwrap();
    let mut header = FrameHeader {
        version,
        flags: Flags::NONE,
        stream: 0,
        opcode: Opcode::Supported,
        body_len: 2,
    };
    if opened {
        let step = negotiation.handle_frame(&header, &[0, 0], &mut output);
        let Ok(Step::Next(next)) = step else {
            panic!("{step:?}")
        };
        negotiation = next;
    }
    header.opcode = Opcode::Error;
    let len = u8::try_from(message.len()).unwrap();
    let body = [&[0, 0, 0, code, 0, len], message].concat();
    let error = negotiation.handle_frame(&header, &body, &mut output);
    error.unwrap_err().kind()
}

#[test]
fn a_refused_version_is_told_by_words_or_by_being_the_newest() {
    const SCYLLA: &[u8] = b"Invalid or unsupported protocol version: 5";
    const CASSANDRA: &[u8] = b"Invalid or unsupported protocol version (5); supported (3/v3)";
    const V4: ProtocolVersion = ProtocolVersion::V4;
    const V5: ProtocolVersion = ProtocolVersion::V5;
    let refused = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
    let protocol = ErrorKind::Server(ErrorCode::Protocol);
    let server = ErrorKind::Server(ErrorCode::Server);
    for (version, opened, code, message, expected) in [
        (V5, false, 10, SCYLLA, refused),
        (V4, false, 10, CASSANDRA, refused),
        (V4, false, 10, b"Beta Protocol Version 4", refused),
        (V4, false, 10, b"invalid or UNSUPPORTED protocol", refused),
        (V4, false, 10, b"protocol", protocol),
        (V5, false, 10, b"no", refused),
        (ProtocolVersion::V3, false, 10, b"no", protocol),
        (V5, false, 0, SCYLLA, server),
        (V5, true, 10, SCYLLA, protocol),
        (V5, true, 0, SCYLLA, server),
    ] {
        let kind = refusal(version, opened, code, message);
        assert_eq!(kind, expected, "{version} {opened} {code} {message:?}");
    }
}

#[test]
fn a_handshake_is_printed_without_its_secrets() {
    let mut config = HandshakeConfig::new(ProtocolVersion::V4);
    let plain = crate::conn::auth::PlainAuthenticator::new("user", "secret");
    config.authenticator = Some(Shared::new(plain));
    let shown = alloc::format!("{config:?}");
    assert!(
        shown.contains("version: V4, authenticates: true"),
        "{shown}"
    );
    assert!(!shown.contains("secret"));
}
