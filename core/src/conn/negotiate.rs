//! The handshake of one connection as typed states:
//! OPTIONS → SUPPORTED → STARTUP → (AUTHENTICATE) → (REGISTER) → ready.
//!
//! Each state is a struct that consumes itself. Only the frame it waits for has a way through; an
//! ERROR becomes [`ErrorKind::Server`], anything else is [`PeerMisbehaved`] or
//! [`PeerIncompatible`]. Requests are numbered by stream id (0, 1, 2, ..), so an answer to an
//! earlier step cannot be taken for one to a later step.
//!
//! Compressed replies are not expected: compression is not asked for yet.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bytes::BytesMut;

use super::auth::Authenticator;
use super::extensions::{Agreed, Offer, TabletsRouting, key};
use crate::error::{Error, ErrorKind, PeerIncompatible, PeerMisbehaved};
use crate::sync::Shared;
use crate::wire::request::{AuthResponse, Options, Register, RequestBody, Startup, put_request};
use crate::wire::response::{AuthChallenge, Authenticate, ErrorCode, ServerError, Supported};
use crate::wire::{Dialect, Flags, FrameHeader, Opcode, ProtocolVersion, Reader};

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
    state: State,
}

#[derive(Debug)]
enum State {
    Options(ExpectSupported),
    Startup(ExpectReady),
    Auth(ExpectAuthSuccess),
    Register(ExpectRegistered),
}

impl Negotiation {
    /// Begins a handshake; appends OPTIONS to `output`.
    pub fn start(config: Shared<HandshakeConfig>, output: &mut BytesMut) -> Result<Self, Error> {
        let started = Self {
            config,
            stream: 0,
            state: State::Options(ExpectSupported),
        };
        started.put(output, &Options)?;
        Ok(started)
    }

    /// Takes the peer's next frame, appends the next request to `output`.
    pub fn handle_frame(
        mut self,
        header: &FrameHeader,
        body: &[u8],
        output: &mut BytesMut,
    ) -> Result<Step, Error> {
        let dialect = Dialect::plain(header.version);
        if header.opcode == Opcode::Error {
            let error =
                ServerError::parse(&dialect, &mut Reader::new(body)).map_err(|_| malformed())?;
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
        if header.opcode == Opcode::Event && matches!(self.state, State::Register(_)) {
            // An event may overtake the answer to REGISTER; the state it tells of is read anyway.
            return Ok(Step::Next(self));
        }
        if header.stream != self.stream {
            return Err(PeerMisbehaved::BadStreamId.into());
        }
        self.stream = self.stream.saturating_add(1);
        let frame = Frame {
            opcode: header.opcode,
            body,
        };
        let Self {
            config,
            stream,
            state,
        } = self;
        let next = match state {
            State::Options(state) => state.handle(&config, &frame)?,
            State::Startup(state) => state.handle(&config, &frame)?,
            State::Auth(state) => state.handle(&config, &frame)?,
            State::Register(state) => state.handle(&frame)?,
        };
        let (state, request) = match next {
            Next::Ready(agreed) => return Ok(Step::Ready(agreed)),
            Next::Ask(state, request) => (state, request),
        };
        let next = Self {
            config,
            stream,
            state,
        };
        next.put_request(output, &request)?;
        Ok(Step::Next(next))
    }

    fn put_request(&self, output: &mut BytesMut, request: &Request) -> Result<(), Error> {
        match request {
            Request::Startup(offer) => self.put(
                output,
                &Startup(startup_options(&self.config, offer).into_iter()),
            ),
            Request::AuthResponse(token) => self.put(output, &AuthResponse { token: Some(token) }),
            Request::Register => self.put(
                output,
                &Register {
                    events: &self.config.events,
                },
            ),
        }
    }

    fn put(&self, output: &mut BytesMut, request: &impl RequestBody) -> Result<(), Error> {
        Ok(put_request(
            output,
            self.config.version,
            Flags::NONE,
            self.stream,
            request,
        )?)
    }

    /// An ERROR frame in the handshake. A refusal of the version comes on stream 0 whatever was
    /// asked, in words that differ between servers but always name the version.
    fn refused(&self, error: ServerError) -> Error {
        let text = error.message.to_ascii_lowercase();
        let names_version = text.contains("unsupported protocol version")
            || text.contains("invalid or unsupported protocol")
            || text.contains("protocol version");
        if error.code == ErrorCode::Protocol
            && matches!(self.state, State::Options(_))
            && (names_version || self.config.version > ProtocolVersion::V4)
        {
            return version_refused(self.config.version, &error.message);
        }
        Error::from_server(error)
    }
}

/// A frame of the expected version without its stream id.
struct Frame<'a> {
    opcode: Opcode,
    body: &'a [u8],
}

enum Next {
    Ask(State, Request),
    Ready(Agreed),
}

enum Request {
    Startup(Offer),
    AuthResponse(Vec<u8>),
    Register,
}

/// OPTIONS was sent.
#[derive(Debug)]
struct ExpectSupported;

impl ExpectSupported {
    fn handle(self, _config: &HandshakeConfig, frame: &Frame<'_>) -> Result<Next, Error> {
        if frame.opcode != Opcode::Supported {
            return Err(PeerMisbehaved::UnexpectedFrame.into());
        }
        let supported = Supported::parse(&mut Reader::new(frame.body)).map_err(|_| malformed())?;
        let offer = Offer::parse(&supported);
        Ok(Next::Ask(
            State::Startup(ExpectReady { offer }),
            Request::Startup(offer),
        ))
    }
}

/// STARTUP was sent.
#[derive(Debug)]
struct ExpectReady {
    offer: Offer,
}

impl ExpectReady {
    fn handle(self, config: &HandshakeConfig, frame: &Frame<'_>) -> Result<Next, Error> {
        match frame.opcode {
            Opcode::Ready => Ok(register(config, self.offer, false)),
            Opcode::Authenticate => {
                let authenticate =
                    Authenticate::parse(&mut Reader::new(frame.body)).map_err(|_| malformed())?;
                let Some(authenticator) = &config.authenticator else {
                    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
                    return Err(Error::with_text(kind, authenticate.class.to_string()));
                };
                let token = authenticator.initial_response(authenticate.class)?;
                let state = State::Auth(ExpectAuthSuccess { offer: self.offer });
                Ok(Next::Ask(state, Request::AuthResponse(token)))
            }
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
    }
}

/// AUTH_RESPONSE was sent.
#[derive(Debug)]
struct ExpectAuthSuccess {
    offer: Offer,
}

impl ExpectAuthSuccess {
    fn handle(self, config: &HandshakeConfig, frame: &Frame<'_>) -> Result<Next, Error> {
        match frame.opcode {
            Opcode::AuthSuccess => Ok(register(config, self.offer, true)),
            Opcode::AuthChallenge => {
                let challenge =
                    AuthChallenge::parse(&mut Reader::new(frame.body)).map_err(|_| malformed())?;
                let Some(authenticator) = &config.authenticator else {
                    return Err(Error::bug("a challenge without an authenticator"));
                };
                let token = authenticator.evaluate(challenge.token)?;
                Ok(Next::Ask(State::Auth(self), Request::AuthResponse(token)))
            }
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
    }
}

/// REGISTER was sent.
#[derive(Debug)]
struct ExpectRegistered {
    agreed: Agreed,
}

impl ExpectRegistered {
    fn handle(self, frame: &Frame<'_>) -> Result<Next, Error> {
        match frame.opcode {
            Opcode::Ready => Ok(Next::Ready(self.agreed)),
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
    }
}

fn register(config: &HandshakeConfig, offer: Offer, is_authenticated: bool) -> Next {
    let agreed = Agreed {
        version: config.version,
        tablets: tablets(config, &offer),
        metadata_id: offer.metadata_id || config.version.has_metadata_id(),
        is_authenticated,
        offer,
    };
    if config.events.is_empty() {
        return Next::Ready(agreed);
    }
    Next::Ask(
        State::Register(ExpectRegistered { agreed }),
        Request::Register,
    )
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
fn startup_options<'a>(config: &'a HandshakeConfig, offer: &Offer) -> Vec<(&'a str, &'a str)> {
    let mut options = Vec::from([(key::CQL_VERSION, "3.0.0")]);
    options.extend(
        config
            .startup_options
            .iter()
            .map(|(name, value)| (&**name, &**value)),
    );
    let tablets = tablets(config, offer);
    let extensions = [
        (key::LWT_MARK, offer.lwt_mask.is_some()),
        (key::RATE_LIMIT_ERROR, offer.rate_limit_error.is_some()),
        (key::METADATA_ID, offer.metadata_id),
        (key::TABLETS_V1, tablets == TabletsRouting::V1),
        (key::TABLETS_V2, tablets == TabletsRouting::V2),
    ];
    options.extend(
        extensions
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| (*name, "")),
    );
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
