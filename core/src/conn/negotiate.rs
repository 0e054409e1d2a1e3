//! The handshake of one connection:
//! OPTIONS → SUPPORTED → STARTUP → (AUTHENTICATE) → (REGISTER) → ready.
//!
//! Only the frame that a state waits for has a way through, in one `match`; an
//! ERROR becomes [`ErrorKind::Server`], anything else is [`PeerMisbehaved`] or
//! [`PeerIncompatible`]. Requests are numbered by stream id (0, 1, 2, ..), so an answer to an
//! earlier step cannot be taken for one to a later step.
//!
//! Compressed replies are not expected: compression is not asked for yet.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::BytesMut;

use super::auth::Authenticator;
use super::extensions::{Agreed, Offer, TabletsRouting, key};
use crate::error::{Error, ErrorKind, PeerIncompatible, PeerMisbehaved};
use crate::sync::Shared;
use crate::wire::request::{AuthResponse, Options, Register, RequestBody, Startup};
use crate::wire::response::{AuthChallenge, Authenticate, ErrorCode, ServerError, Supported};
use crate::wire::{
    Dialect, EncodeError, Flags, FrameHeader, Opcode, ProtocolVersion, Reader, put_frame,
};

/// What every connection of a session says in its handshake.
#[derive(Clone)]
#[non_exhaustive]
pub struct HandshakeConfig {
    /// The protocol version to speak.
    pub version: ProtocolVersion,
    /// Answers authentication, if the node asks for it.
    pub authenticator: Option<Shared<dyn Authenticator>>,
    /// Further STARTUP options: driver name and version, session id.
    pub startup_options: Vec<(String, String)>,
    /// Event types to REGISTER for; none skips that step.
    pub events: Vec<&'static str>,
    /// The newest tablets extension to use.
    pub tablets_max: TabletsRouting,
}

impl HandshakeConfig {
    /// A plain handshake.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self {
            version,
            authenticator: None,
            startup_options: Vec::new(),
            events: Vec::new(),
            tablets_max: TabletsRouting::V2,
        }
    }
}

impl fmt::Debug for HandshakeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeConfig")
            .field("version", &self.version)
            .field("authenticates", &self.authenticator.is_some())
            .field("startup_options", &self.startup_options)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// Where a frame led.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// One step further; the output has the next request.
    Next(Negotiation),
    /// Done.
    Ready(Agreed),
}

/// The current state of a handshake.
#[derive(Debug)]
pub struct Negotiation {
    config: Shared<HandshakeConfig>,
    /// The stream of the request that is under way.
    stream: i16,
    expected: Expected,
    /// What is agreed so far.
    agreed: Agreed,
}

/// What the request under way is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// OPTIONS was sent.
    Supported,
    /// STARTUP was sent.
    ReadyOrAuthenticate,
    /// AUTH_RESPONSE was sent.
    AuthSuccess,
    /// REGISTER was sent.
    Registered,
}

impl Negotiation {
    /// Begins a handshake; appends OPTIONS to `output`.
    pub fn start(config: Shared<HandshakeConfig>, output: &mut BytesMut) -> Result<Self, Error> {
        let agreed = Agreed {
            version: config.version,
            tablets: TabletsRouting::Off,
            metadata_id: false,
            is_authenticated: false,
            offer: Offer::default(),
        };
        let started = Self {
            config,
            stream: 0,
            expected: Expected::Supported,
            agreed,
        };
        started.put(output, Options::OPCODE, &mut |_| Ok(()))?;
        Ok(started)
    }

    /// Takes the peer's next frame, appends the next request to `output`.
    pub fn handle_frame(
        mut self,
        header: &FrameHeader,
        body: &[u8],
        output: &mut BytesMut,
    ) -> Result<Step, Error> {
        Ok(match self.advance(header, body, output)? {
            None => Step::Next(self),
            Some(agreed) => Step::Ready(agreed),
        })
    }

    /// The same in place; of no use any more after an error or the end.
    pub(crate) fn advance(
        &mut self,
        header: &FrameHeader,
        body: &[u8],
        output: &mut BytesMut,
    ) -> Result<Option<Agreed>, Error> {
        let mut body = Reader::new(body);
        if header.opcode == Opcode::Error {
            let dialect = Dialect::plain(header.version);
            let error = ServerError::parse(&dialect, &mut body).map_err(|_| malformed())?;
            return Err(self.refused(error));
        }
        if header.version != self.config.version {
            return Err(version_refused(
                self.config.version,
                "it answers in another version",
            ));
        }
        if header.flags.contains(Flags::COMPRESSION) {
            return Err(PeerMisbehaved::BadCompression.into());
        }
        if header.opcode == Opcode::Event && self.expected == Expected::Registered {
            // An event may overtake the answer to REGISTER; the state it tells of is read anyway.
            return Ok(None);
        }
        if header.stream != self.stream {
            return Err(PeerMisbehaved::BadStreamId.into());
        }
        self.stream = self.stream.saturating_add(1);
        match (self.expected, header.opcode) {
            (Expected::Supported, Opcode::Supported) => self.supported(&mut body, output)?,
            (Expected::ReadyOrAuthenticate, Opcode::Ready) => return self.accepted(output),
            (Expected::ReadyOrAuthenticate, Opcode::Authenticate) => {
                self.authenticate(&mut body, output)?;
            }
            (Expected::AuthSuccess, Opcode::AuthChallenge) => self.challenged(&mut body, output)?,
            (Expected::AuthSuccess, Opcode::AuthSuccess) => {
                self.agreed.is_authenticated = true;
                return self.accepted(output);
            }
            (Expected::Registered, Opcode::Ready) => return Ok(Some(self.agreed)),
            _ => return Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
        Ok(None)
    }

    /// Chooses from what the node offers, and opens the conversation.
    fn supported(&mut self, body: &mut Reader<'_>, output: &mut BytesMut) -> Result<(), Error> {
        let supported = Supported::parse(body).map_err(|_| malformed())?;
        let offer = Offer::parse(&supported);
        self.agreed.tablets = tablets(&self.config, &offer);
        self.agreed.metadata_id = offer.metadata_id || self.config.version.has_metadata_id();
        self.agreed.offer = offer;
        self.expected = Expected::ReadyOrAuthenticate;
        let options = startup_options(&self.config, &self.agreed);
        let startup = Startup(options.iter().copied());
        self.put(output, Opcode::Startup, &mut |sink| {
            startup.put(self.config.version, sink)
        })
    }

    fn authenticate(&mut self, body: &mut Reader<'_>, output: &mut BytesMut) -> Result<(), Error> {
        let class = Authenticate::parse(body).map_err(|_| malformed())?.class;
        let Some(authenticator) = &self.config.authenticator else {
            let kind = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
            return Err(Error::with_text(kind, class));
        };
        let token = authenticator.initial_response(class)?;
        self.put_token(&token, output)
    }

    fn challenged(&mut self, body: &mut Reader<'_>, output: &mut BytesMut) -> Result<(), Error> {
        let challenge = AuthChallenge::parse(body).map_err(|_| malformed())?;
        let Some(authenticator) = &self.config.authenticator else {
            return Err(Error::bug("a challenge without an authenticator"));
        };
        let token = authenticator.evaluate(challenge.token)?;
        self.put_token(&token, output)
    }

    fn put_token(&mut self, token: &[u8], output: &mut BytesMut) -> Result<(), Error> {
        self.expected = Expected::AuthSuccess;
        let response = AuthResponse { token: Some(token) };
        self.put(output, Opcode::AuthResponse, &mut |sink| {
            response.put(self.config.version, sink)
        })
    }

    /// The conversation is open: that is all, unless events are wanted.
    fn accepted(&mut self, output: &mut BytesMut) -> Result<Option<Agreed>, Error> {
        if self.config.events.is_empty() {
            return Ok(Some(self.agreed));
        }
        self.expected = Expected::Registered;
        let register = Register {
            events: &self.config.events,
        };
        self.put(output, Opcode::Register, &mut |sink| {
            register.put(self.config.version, sink)
        })?;
        Ok(None)
    }

    fn put(
        &self,
        output: &mut BytesMut,
        opcode: Opcode,
        body: &mut dyn FnMut(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<(), Error> {
        let header = FrameHeader {
            version: self.config.version,
            flags: Flags::NONE,
            stream: self.stream,
            opcode,
            body_len: 0,
        };
        Ok(put_frame(output, header, body)?)
    }

    /// An ERROR frame in the handshake. A refusal of the version comes on stream 0 whatever was
    /// asked, in words that differ between servers but always name the version.
    fn refused(&self, error: ServerError) -> Error {
        let names_version = has_words(&error.message, "protocol version")
            || has_words(&error.message, "invalid or unsupported protocol");
        if error.code == ErrorCode::Protocol
            && self.expected == Expected::Supported
            && (names_version || self.config.version > ProtocolVersion::V4)
        {
            return version_refused(self.config.version, &error.message);
        }
        Error::from_server(error)
    }
}

/// Whether a text has these words, in capitals or not. The library's search in strings is made
/// for long ones, and larger than the rest of a handshake.
fn has_words(text: &str, words: &str) -> bool {
    let mut places = text.as_bytes().windows(words.len());
    places.any(|place| place.eq_ignore_ascii_case(words.as_bytes()))
}

fn tablets(config: &HandshakeConfig, offer: &Offer) -> TabletsRouting {
    match (config.tablets_max, offer.tablets()) {
        (TabletsRouting::Off, _) => TabletsRouting::Off,
        (TabletsRouting::V1, TabletsRouting::V2) if offer.tablets_v1 => TabletsRouting::V1,
        (TabletsRouting::V1, TabletsRouting::V2) => TabletsRouting::Off,
        (_, offered) => offered,
    }
}

/// STARTUP's options: an extension is switched on by the presence of its key, so only what is
/// offered and wanted is named.
fn startup_options<'a>(config: &'a HandshakeConfig, agreed: &Agreed) -> Vec<(&'a str, &'a str)> {
    let mut options = Vec::from([(key::CQL_VERSION, "3.0.0")]);
    for (name, value) in &config.startup_options {
        options.push((name, value));
    }
    let (offer, tablets) = (&agreed.offer, agreed.tablets);
    let extensions = [
        (key::LWT_MARK, offer.lwt_mask.is_some()),
        (key::RATE_LIMIT_ERROR, offer.rate_limit_error.is_some()),
        (key::METADATA_ID, offer.metadata_id),
        (key::TABLETS_V1, tablets == TabletsRouting::V1),
        (key::TABLETS_V2, tablets == TabletsRouting::V2),
    ];
    for (name, is_on) in extensions {
        if is_on {
            options.push((name, ""));
        }
    }
    options
}

fn malformed() -> Error {
    PeerMisbehaved::MalformedBody.into()
}

fn version_refused(asked: ProtocolVersion, text: &str) -> Error {
    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
    Error::with_text(
        kind,
        alloc::format!("asked for version {}: {text}", asked.number()),
    )
}
