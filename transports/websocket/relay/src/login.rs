//! Logs in to the node in the client's stead, so that a browser never holds a password.
//!
//! STARTUP goes to the node as the client wrote it. When the node asks for a login, the client
//! does not hear of it: AUTHENTICATE is answered here (SASL PLAIN), and the node's AUTH_SUCCESS
//! becomes the READY that the client waits for. What the client sends meanwhile waits. A login
//! that fails becomes an error without the user's name.
//!
//! Protocol 5 changes its framing in the middle of this, so its clients are told that it is not
//! supported, as ScyllaDB does, and come again with 4. Pure.

use core::fmt;

use bytes::{Buf, BytesMut};

use crate::cql::{
    AUTH_CHALLENGE, AUTH_RESPONSE, AUTH_SUCCESS, AUTHENTICATE, ERROR, Header, READY, REQUEST,
    RESPONSE, STARTUP,
};

/// A user of the cluster and the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Box<str>,
    password: Box<str>,
}

impl Credentials {
    /// These.
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
        }
    }

    /// The token of SASL PLAIN as the body of AUTH_RESPONSE.
    fn body(&self) -> Vec<u8> {
        let token = ["", &self.user, &self.password].join("\0");
        let len = i32::try_from(token.len()).unwrap_or(i32::MAX);
        [&len.to_be_bytes(), token.as_bytes()].concat()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// The state of one connection's login.
#[derive(Debug)]
pub(crate) struct Login {
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Frames of the client go by until its STARTUP.
    Open,
    /// STARTUP has gone to the node; the client waits.
    Started(Header),
    /// The credentials have gone to the node.
    Answered(Header),
    /// The client hears no more: it spoke a version that cannot be bridged, or login failed.
    Over,
    /// Bytes go by.
    Done,
}

/// Why nothing more can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotCql;

impl Login {
    pub(crate) const fn new() -> Self {
        Self { stage: Stage::Open }
    }

    /// Whether bytes go by from now on.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Whether nothing more will be taken from the client: what was put for it is the last.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Moves whole frames of the client to the node, up to STARTUP. The rest stays.
    pub(crate) fn handle_client(
        &mut self,
        from_client: &mut BytesMut,
        to_node: &mut BytesMut,
        to_client: &mut BytesMut,
    ) -> Result<(), NotCql> {
        while self.stage == Stage::Open {
            let Some(header) = Header::read(from_client) else {
                return Ok(());
            };
            if header.body_len > BODY_LEN_MAX {
                return Err(NotCql);
            }
            if header.version > VERSION_MAX {
                put_unsupported(header, to_client);
                self.stage = Stage::Over;
                return Ok(());
            }
            let len = Header::LEN + header.body_len;
            if from_client.len() < len {
                return Ok(());
            }
            to_node.extend_from_slice(&from_client.split_to(len));
            if header.opcode == STARTUP {
                self.stage = Stage::Started(header);
            }
        }
        if self.is_done() {
            to_node.extend_from_slice(from_client);
            from_client.clear();
        }
        Ok(())
    }

    /// Moves whole frames of the node to the client, all but those of the login.
    pub(crate) fn handle_node(
        &mut self,
        credentials: &Credentials,
        from_node: &mut BytesMut,
        to_node: &mut BytesMut,
        to_client: &mut BytesMut,
    ) -> Result<(), NotCql> {
        while !self.is_done() {
            if self.is_over() {
                from_node.clear();
                return Ok(());
            }
            let Some(header) = Header::read(from_node) else {
                return Ok(());
            };
            if header.body_len > BODY_LEN_MAX || header.version & RESPONSE == 0 {
                return Err(NotCql);
            }
            let len = Header::LEN + header.body_len;
            if from_node.len() < len {
                return Ok(());
            }
            let answers = |asked: Header| asked.stream == header.stream;
            match (self.stage, header.opcode) {
                (Stage::Started(asked), AUTHENTICATE) if answers(asked) => {
                    let answer = asked.frame(REQUEST, AUTH_RESPONSE, &credentials.body());
                    to_node.extend_from_slice(&answer);
                    from_node.advance(len);
                    self.stage = Stage::Answered(asked);
                    continue;
                }
                (Stage::Answered(asked), AUTH_SUCCESS) if answers(asked) => {
                    to_client.extend_from_slice(&asked.frame(RESPONSE, READY, &[]));
                    from_node.advance(len);
                    self.stage = Stage::Done;
                    continue;
                }
                (Stage::Answered(asked), ERROR | AUTH_CHALLENGE) if answers(asked) => {
                    put_error(asked, BAD_CREDENTIALS, "the relay cannot log in", to_client);
                    self.stage = Stage::Over;
                    continue;
                }
                (Stage::Started(asked), READY) if answers(asked) => self.stage = Stage::Done,
                // The client may try another STARTUP.
                (Stage::Started(asked), ERROR) if answers(asked) => self.stage = Stage::Open,
                _ => {}
            }
            to_client.extend_from_slice(&from_node.split_to(len));
        }
        to_client.extend_from_slice(from_node);
        from_node.clear();
        Ok(())
    }
}

/// What ScyllaDB says to a version that it does not speak.
fn put_unsupported(header: Header, to_client: &mut BytesMut) {
    let version = header.version;
    let header = Header {
        version: VERSION_MAX,
        stream: [0; 2],
        ..header
    };
    let message = format!("Invalid or unsupported protocol version: {version}");
    put_error(header, PROTOCOL_ERROR, &message, to_client);
}

fn put_error(header: Header, code: i32, message: &str, to_client: &mut BytesMut) {
    let len = u16::try_from(message.len()).unwrap_or(u16::MAX);
    let body = [
        &code.to_be_bytes()[..],
        &len.to_be_bytes(),
        message.as_bytes(),
    ];
    to_client.extend_from_slice(&header.frame(RESPONSE, ERROR, &body.concat()));
}

/// Newest version that is bridged.
const VERSION_MAX: u8 = 4;

/// Most bytes of a frame before the login is over; SUPPORTED has less than one kilobyte.
const BODY_LEN_MAX: usize = 100_000;

const PROTOCOL_ERROR: i32 = 0x000a;
const BAD_CREDENTIALS: i32 = 0x0100;

#[cfg(test)]
mod tests {
    use super::*;

    const STARTUP_V4: &[u8] = b"\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0";
    const QUERY: &[u8] = b"\x04\0\0\x02\x07\0\0\0\x01x";
    const AUTHENTICATE_FRAME: &[u8] = b"\x84\0\0\x01\x03\0\0\0\x03\0\x01A";
    const AUTH_SUCCESS_FRAME: &[u8] = b"\x84\0\0\x01\x10\0\0\0\x04\xff\xff\xff\xff";

    /// The bridge between two ends that hold what came.
    struct Bridge {
        login: Login,
        from_client: BytesMut,
        from_node: BytesMut,
        node: BytesMut,
        client: BytesMut,
    }

    impl Bridge {
        fn new() -> Self {
            Self {
                login: Login::new(),
                from_client: BytesMut::new(),
                from_node: BytesMut::new(),
                node: BytesMut::new(),
                client: BytesMut::new(),
            }
        }

        fn client_sends(&mut self, bytes: &[u8]) -> Result<(), NotCql> {
            self.from_client.extend_from_slice(bytes);
            let (node, client) = (&mut self.node, &mut self.client);
            self.login
                .handle_client(&mut self.from_client, node, client)
        }

        fn node_sends(&mut self, bytes: &[u8]) -> Result<(), NotCql> {
            self.from_node.extend_from_slice(bytes);
            let (node, client) = (&mut self.node, &mut self.client);
            let credentials = Credentials::new("u", "p");
            self.login
                .handle_node(&credentials, &mut self.from_node, node, client)?;
            // Whatever waits may go on now.
            self.client_sends(&[])
        }

        fn node_has(&mut self) -> BytesMut {
            self.node.split()
        }

        fn client_has(&mut self) -> BytesMut {
            self.client.split()
        }
    }

    #[test]
    fn the_client_does_not_hear_of_the_login() {
        let mut bridge = Bridge::new();
        bridge.client_sends(STARTUP_V4).unwrap();
        // Sent without waiting for READY.
        bridge.client_sends(QUERY).unwrap();
        assert_eq!(bridge.node_has(), STARTUP_V4);
        bridge.node_sends(AUTHENTICATE_FRAME).unwrap();
        assert_eq!(
            bridge.node_has(),
            &b"\x04\0\0\x01\x0f\0\0\0\x08\0\0\0\x04\0u\0p"[..]
        );
        assert_eq!(bridge.client_has(), &b""[..]);
        bridge.node_sends(AUTH_SUCCESS_FRAME).unwrap();
        assert_eq!(bridge.client_has(), &b"\x84\0\0\x01\x02\0\0\0\0"[..]);
        assert_eq!(bridge.node_has(), QUERY);
        assert!(bridge.login.is_done());
    }

    #[test]
    fn pieces_of_any_size_make_the_same() {
        let mut bridge = Bridge::new();
        for byte in STARTUP_V4.iter().chain(QUERY) {
            bridge.client_sends(&[*byte]).unwrap();
        }
        assert_eq!(bridge.node_has(), STARTUP_V4);
        for byte in AUTHENTICATE_FRAME.iter().chain(AUTH_SUCCESS_FRAME) {
            bridge.node_sends(&[*byte]).unwrap();
        }
        assert_eq!(bridge.client_has(), &b"\x84\0\0\x01\x02\0\0\0\0"[..]);
        assert!(bridge.node_has().ends_with(QUERY));
    }

    #[test]
    fn a_node_without_logins_is_passed_through() {
        let mut bridge = Bridge::new();
        bridge.client_sends(STARTUP_V4).unwrap();
        let ready = b"\x84\0\0\x01\x02\0\0\0\0rest";
        bridge.node_sends(ready).unwrap();
        assert_eq!(bridge.client_has(), &ready[..]);
        assert!(bridge.login.is_done());
    }

    #[test]
    fn a_failed_login_tells_nothing_of_the_user() {
        let mut bridge = Bridge::new();
        bridge.client_sends(STARTUP_V4).unwrap();
        bridge.node_sends(AUTHENTICATE_FRAME).unwrap();
        bridge
            .node_sends(b"\x84\0\0\x01\0\0\0\0\x0c\0\0\x01\0\0\x06user u")
            .unwrap();
        let told = bridge.client_has();
        assert!(
            told.starts_with(b"\x84\0\0\x01\0\0\0\0\x1d\0\0\x01\0"),
            "{told:?}"
        );
        assert!(told.ends_with(b"the relay cannot log in"), "{told:?}");
        assert!(bridge.login.is_over());
        bridge.client_sends(QUERY).unwrap();
        assert!(!bridge.node_has().ends_with(QUERY));
    }

    #[test]
    fn clients_of_protocol_5_are_asked_for_4() {
        let mut bridge = Bridge::new();
        bridge.client_sends(b"\x05\0\0\x07\x05\0\0\0\0").unwrap();
        let told = "840000000000000030\
            0000000a002a496e76616c6964206f7220756e737570706f727465642070726f746f636f6c2076657273696f6e3a2035";
        let told = data_encoding::HEXLOWER.decode(told.as_bytes()).unwrap();
        assert_eq!(bridge.client_has(), told);
        assert_eq!(bridge.node_has(), &b""[..]);
        assert!(bridge.login.is_over());
    }

    #[test]
    fn lengths_are_bounded() {
        let mut bridge = Bridge::new();
        assert!(
            bridge
                .client_sends(b"\x04\0\0\0\x05\x7f\xff\xff\xff")
                .is_err()
        );
        let mut bridge = Bridge::new();
        bridge.client_sends(STARTUP_V4).unwrap();
        assert!(
            bridge
                .node_sends(b"\x84\0\0\x01\x03\xff\xff\xff\xff")
                .is_err()
        );
    }
}
