//! What small images leave out: the driver without its optional features, where only the words beside
//! errors, and what a feature is for, may be missing. Unit tests cannot say this: they have all features.
#![cfg(not(feature = "error-texts"))]

use bytes::BytesMut;
use messina_core::compact::{Done, Host, Machine, RequestOptions};
use messina_core::config::Config;
use messina_core::conn::negotiate::{HandshakeConfig, Negotiation};
use messina_core::error::{ApiMisuse, Error, ErrorKind, PeerIncompatible};
use messina_core::target::Target;
use messina_core::time::Instant;
use messina_core::wire::response::ErrorCode;
use messina_core::wire::{Flags, FrameHeader, Opcode, ProtocolVersion, Values};

/// The error that an ERROR frame in answer to OPTIONS ends a handshake with.
fn refusal(code: i32, message: &str) -> Error {
    let mut body = Vec::from(code.to_be_bytes());
    body.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
    body.extend(message.bytes());
    let header = FrameHeader {
        version: ProtocolVersion::V4,
        flags: Flags::NONE,
        stream: 0,
        opcode: Opcode::Error,
        body_len: u32::try_from(body.len()).unwrap(),
    };
    let config = HandshakeConfig::new(ProtocolVersion::V4).into();
    let mut output = BytesMut::new();
    let handshake = Negotiation::start(config, &mut output).unwrap();
    handshake
        .handle_frame(&header, &body, &mut output)
        .unwrap_err()
}

#[test]
fn a_refused_version_is_told_by_its_kind() {
    for message in [
        "Invalid or unsupported protocol version (4); highest supported is 3",
        "invalid or unsupported protocol",
        "Unsupported PROTOCOL VERSION: 4",
    ] {
        let kind = refusal(0x000A, message).kind();
        let expected = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
        assert_eq!(kind, expected, "{message}");
    }
}

#[test]
fn other_errors_of_a_node_keep_its_words() {
    let error = refusal(0x000A, "malformed");
    assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Protocol));
    let said = error.server().map(|server| &*server.message);
    assert_eq!(said, Some("malformed"));
}

/// Keeps how requests ended.
#[derive(Default)]
struct Ends(Vec<(u32, ErrorKind)>);

impl Host for Ends {
    fn connect(&mut self, _: u32, _: Target) {}
    fn abort(&mut self, _: u32) {}
    fn close(&mut self, _: u32) {}
    fn done(&mut self, request: u32, outcome: Result<Done<'_>, Error>) {
        self.0
            .extend(outcome.err().map(|error| (request, error.kind())));
    }
}

#[test]
fn texts_that_read_rows_are_refused_where_they_cannot_be_prepared() {
    let mut config = Config::mcu();
    config.add_contact_points("10.0.0.1").unwrap();
    let mut machine = Machine::new(config, 7);
    machine.set_time(Instant::ZERO, None);
    machine.start();
    let request = machine.query(
        "SELECT v FROM ks.t",
        Values::EMPTY,
        &RequestOptions::default(),
    );
    let mut ends = Ends::default();
    machine.run(Instant::ZERO, None, &mut ends);
    let refused = ErrorKind::ApiMisuse(ApiMisuse::ValuesUnprepared);
    assert_eq!(ends.0, [(request, refused)]);
}

#[test]
fn names_of_places_are_refused_where_there_can_be_none() {
    let mut config = Config::mcu();
    let refused = config.add_contact_points("node.plant").unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Config(_)), "{refused}");
    config.add_contact_points("10.0.0.1, [::1]:9042").unwrap();
}
