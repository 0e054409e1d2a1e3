//! The order of a handshake and what each of its answers means, frame by frame.

use bytes::BytesMut;

use messina_conformance::hex::hex;
use messina_core::Shared;
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::conn::negotiate::{HandshakeConfig, Negotiation, Step};
use messina_core::error::{Error, ErrorKind, PeerIncompatible, PeerMisbehaved};
use messina_core::wire::response::ErrorCode;
use messina_core::wire::{FrameHeader, Opcode, ProtocolVersion};

/// An empty SUPPORTED on stream 0.
pub(crate) const SUPPORTED_NOTHING: &str = "84 00 0000 06 00000002 0000";
const READY_ON_1: &str = "84 00 0001 02 00000000";
const AUTHENTICATE_ON_1: &str = "84 00 0001 03 00000031 002f
    6f72672e6170616368652e63617373616e6472612e617574682e50617373776f726441757468656e74696361746f72";

/// A handshake and all that it has sent.
pub(crate) struct Talk {
    state: Option<Negotiation>,
    sent: BytesMut,
}

impl Talk {
    pub(crate) fn begin(config: HandshakeConfig) -> Self {
        let mut sent = BytesMut::new();
        let state = Negotiation::start(Shared::new(config), &mut sent).unwrap();
        Self {
            state: Some(state),
            sent,
        }
    }

    /// Takes a whole frame of the node.
    pub(crate) fn hear(&mut self, frame: &[u8]) -> Result<Step, Error> {
        let (header, body) = frame.split_first_chunk().unwrap();
        let header = FrameHeader::parse_response(*header).unwrap();
        assert_eq!(usize::try_from(header.body_len), Ok(body.len()));
        let state = self.state.take().expect("the handshake goes on");
        state.handle_frame(&header, body, &mut self.sent)
    }

    /// The same where one more request must follow; gives its opcode.
    pub(crate) fn go_on(&mut self, frame: &str) -> u8 {
        self.sent.clear();
        match self.hear(&hex(frame)).unwrap() {
            Step::Next(state) => self.state = Some(state),
            step => panic!("{step:?}"),
        }
        let request = &self.sent[..];
        let len = u32::from_be_bytes(request[5..9].try_into().unwrap());
        assert_eq!(usize::try_from(len), Ok(request.len() - 9), "one request");
        request[4]
    }

    pub(crate) fn sent(&self) -> &[u8] {
        &self.sent
    }
}

pub(crate) fn config() -> HandshakeConfig {
    HandshakeConfig::new(ProtocolVersion::V4)
}

fn with_password() -> HandshakeConfig {
    let mut config = config();
    config.authenticator = Some(Shared::new(PlainAuthenticator::new(
        "cassandra",
        "cassandra",
    )));
    config
}

/// The refusal has another version than was asked in, comes on stream 0, and is told from other
/// protocol errors by its words.
#[test]
fn a_version_is_refused_on_stream_zero() {
    let refused = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
    let protocol = ErrorKind::Server(ErrorCode::Protocol);
    let invalid = "84 00 0000 00 00000030 0000000a 002a 496e76616c6964206f7220756e737570706f72
                   7465642070726f746f636f6c2076657273696f6e3a20";
    // "x" says nothing of versions.
    let other = "84 00 0000 00 00000007 0000000a 0001 78";
    for (version, frame, expected) in [
        (ProtocolVersion::V5, format!("{invalid} 35"), refused),
        (ProtocolVersion::V4, format!("{invalid} 34"), refused),
        (ProtocolVersion::V4, other.to_owned(), protocol),
    ] {
        let mut talk = Talk::begin(HandshakeConfig::new(version));
        let error = talk.hear(&hex(&frame)).unwrap_err();
        assert_eq!(error.kind(), expected, "{version}: {frame}");
    }
    // A node that goes on in another version than it was asked in is none we can talk to.
    let mut talk = Talk::begin(HandshakeConfig::new(ProtocolVersion::V3));
    let error = talk.hear(&hex(SUPPORTED_NOTHING)).unwrap_err();
    assert_eq!(error.kind(), refused);
}

#[test]
fn a_success_without_a_token_may_be_empty_or_null() {
    for token in ["00000000", "ffffffff"] {
        let mut talk = Talk::begin(with_password());
        talk.go_on(SUPPORTED_NOTHING);
        talk.go_on(AUTHENTICATE_ON_1);
        let success = format!("84 00 0002 10 00000004 {token}");
        match talk.hear(&hex(&success)).unwrap() {
            Step::Ready(agreed) => assert!(agreed.is_authenticated),
            step => panic!("{step:?}"),
        }
    }
}

/// OPTIONS only at the beginning: between AUTHENTICATE and AUTH_SUCCESS a node refuses it.
#[test]
fn each_answer_is_followed_by_the_one_request_that_may_follow() {
    let mut config = with_password();
    config.events = vec!["STATUS_CHANGE"];
    let mut talk = Talk::begin(config);
    assert_eq!(talk.sent(), hex("04 00 0000 05 00000000"));
    assert_eq!(talk.go_on(SUPPORTED_NOTHING), Opcode::Startup.code());
    assert_eq!(talk.go_on(AUTHENTICATE_ON_1), Opcode::AuthResponse.code());
    assert_eq!(
        talk.sent(),
        hex("04 00 0002 0f 00000018 00000014 00 63617373616e647261 00 63617373616e647261")
    );
    let register = talk.go_on("84 00 0002 10 00000004 00000000");
    assert_eq!(register, Opcode::Register.code());
    assert_eq!(
        talk.sent(),
        hex("04 00 0003 0b 00000011 0001 000d 5354415455535f4348414e4745")
    );
    let ready = talk.hear(&hex("84 00 0003 02 00000000")).unwrap();
    assert!(matches!(ready, Step::Ready(_)));
}

/// A node keeps the connection open after a wrong password, and would let us guess again.
#[test]
fn a_wrong_password_is_not_tried_again() {
    let mut talk = Talk::begin(with_password());
    talk.go_on(SUPPORTED_NOTHING);
    talk.go_on(AUTHENTICATE_ON_1);
    let sent = talk.sent().len();
    let refusal = "84 00 0002 00 0000002c 00000100 0026 557365726e616d6520616e642f6f722070617373
                   776f72642061726520696e636f7272656374";
    let error = talk.hear(&hex(refusal)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::BadCredentials));
    assert_eq!(talk.sent().len(), sent);
}

/// A second answer, and one on a stream that was not asked on, end the handshake.
#[test]
fn answers_come_on_the_stream_that_was_asked_on() {
    let mut talk = Talk::begin(config());
    talk.go_on(SUPPORTED_NOTHING);
    let ready = talk.hear(&hex(READY_ON_1)).unwrap();
    assert!(matches!(ready, Step::Ready(_)));
    for stray in ["84 00 0000 02 00000000", "84 00 0002 02 00000000"] {
        let mut talk = Talk::begin(config());
        talk.go_on(SUPPORTED_NOTHING);
        let error = talk.hear(&hex(stray)).unwrap_err();
        let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadStreamId);
        assert_eq!(error.kind(), kind);
    }
}
