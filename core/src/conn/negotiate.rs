//! The handshake of one connection:
//! OPTIONS → SUPPORTED → STARTUP → (AUTHENTICATE) → (REGISTER) → ready.
//!
//! Only the frame that a state waits for has a way through, in one `match`; an
//! ERROR becomes [`ErrorKind::Server`], anything else is [`PeerMisbehaved`] or
//! [`PeerIncompatible`]. Requests are numbered by stream id (0, 1, 2, ..), so an answer to an
//! earlier step cannot be taken for one to a later step.
//!
//! Where the node's offer is remembered from an earlier connection, OPTIONS and STARTUP are written
//! together, which saves a round trip: nodes answer both in order, since neither lets them read on
//! before it is answered. SUPPORTED then shows whether the assumption held; if STARTUP would have
//! been another one the handshake fails, and is to be begun anew without assumption.
//!
//! The token never goes along: Apache Cassandra loses what stands behind STARTUP in the same packet.
//!
//! With [`HandshakeConfig::early`], what a node offers beyond the assumption is left off; only what
//! was assumed and is not offered makes the handshake fail then.
//!
//! Where requests may come early (see [`HandshakeConfig::early`]), the connection takes them beside
//! the last request of the handshake. That one then stands on stream 0, which no request uses.
//!
//! With `HandshakeConfig::may_rise` SUPPORTED decides over the version: OPTIONS is asked in version 4,
//! and STARTUP opens the conversation in version 5 if that is offered. Apache Cassandra takes the
//! version of a connection from its STARTUP. The answer to that is the last frame outside of
//! segments; AUTH_RESPONSE is in one.
//!
//! A node may compress what it answers from STARTUP on; the flag of each frame tells.

mod config;
mod offered;
mod refusal;
#[cfg(test)]
mod tests;

use bytes::BytesMut;

pub use self::config::HandshakeConfig;
use self::offered::{agree, offers, startup_options};
use self::refusal::{refused, version_refused};
use super::extensions::{Agreed, Offer, TabletsRouting};
use crate::error::{Error, ErrorKind, PeerIncompatible, PeerMisbehaved};
use crate::sync::Local;
use crate::wire::request::{AuthResponse, Options, Register, RequestBody, Startup};
#[cfg(any(test, feature = "protocol-v5"))]
use crate::wire::response::ErrorCode;
use crate::wire::response::{AuthChallenge, Authenticate, ServerError, Supported};
use crate::wire::{
    Dialect, EncodeError, Flags, FrameHeader, Opcode, ProtocolVersion, Reader, put_frame,
};

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
    config: Local<HandshakeConfig>,
    /// The stream of the request that is under way.
    stream: i16,
    expected: Expected,
    /// What is agreed so far.
    agreed: Agreed,
    /// The node has asked for more than the first token.
    is_challenged: bool,
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
    pub fn start(config: Local<HandshakeConfig>, output: &mut BytesMut) -> Result<Self, Error> {
        let mut started = Self::new(config);
        started.begin(output)?;
        Ok(started)
    }

    /// A handshake that was not begun.
    pub(crate) fn new(config: Local<HandshakeConfig>) -> Self {
        let agreed = Agreed {
            version: config.version,
            tablets: TabletsRouting::Off,
            metadata_id: false,
            is_authenticated: false,
            compression: config.compression,
            offer: Offer::default(),
        };
        Self {
            config,
            stream: 0,
            expected: Expected::Supported,
            agreed,
            is_challenged: false,
        }
    }

    /// Appends its first requests to `output`.
    pub(crate) fn begin(&mut self, output: &mut BytesMut) -> Result<(), Error> {
        self.put(output, Options::OPCODE, &mut |_| Ok(()))?;
        if HAS_EARLY_REQUESTS && let Some(offer) = &self.config.assumed {
            self.stream = 1;
            agree(&self.config, &mut self.agreed, offer);
            self.put_startup(output)?;
            self.stream = 0;
        }
        Ok(())
    }

    /// Takes the peer's next frame, appends the next request to `output`.
    pub fn handle_frame(
        mut self,
        header: &FrameHeader,
        body: &[u8],
        output: &mut BytesMut,
    ) -> Result<Step, Error> {
        Ok(match self.advance(header, body, output)? {
            false => Step::Next(self),
            true => Step::Ready(self.agreed),
        })
    }

    /// The same in place: whether all is [`agreed`](Self::agreed). Of no use any more after an error or
    /// the end.
    #[inline(never)]
    pub fn advance(
        &mut self,
        header: &FrameHeader,
        body: &[u8],
        output: &mut BytesMut,
    ) -> Result<bool, Error> {
        let inflated;
        let version = self.answer_version();
        let is_compressed = header.flags.contains(Flags::COMPRESSION);
        let mut body = Reader::new(if is_compressed && !has_segments(version) {
            inflated = self.inflate(body)?;
            &inflated
        } else {
            body
        });
        if header.opcode == Opcode::Error {
            let dialect = Dialect::plain(header.version);
            let error = ServerError::parse(&dialect, &mut body).map_err(|_| malformed())?;
            let is_first = self.expected == Expected::Supported;
            #[cfg(any(test, feature = "protocol-v5"))]
            if self.expected == Expected::ReadyOrAuthenticate
                && self.agreed.version > self.config.version
                && error.code == ErrorCode::Protocol
            {
                let kind = ErrorKind::PeerIncompatible(PeerIncompatible::OfferedVersion);
                return Err(Error::with_text(kind, error.message));
            }
            return Err(refused(version, is_first, error));
        }
        if header.version != version {
            return Err(version_refused(version, "it answers in another version"));
        }
        if header.opcode == Opcode::Event && self.expected == Expected::Registered {
            // An event may overtake the answer to REGISTER; the state it tells of is read anyway.
            return Ok(false);
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
            (Expected::AuthSuccess, Opcode::AuthChallenge) if HAS_LOGIN => {
                self.challenged(&mut body, output)?;
            }
            (Expected::AuthSuccess, Opcode::AuthSuccess) if HAS_LOGIN => {
                self.agreed.is_authenticated = true;
                return self.accepted(output);
            }
            (Expected::Registered, Opcode::Ready) => return Ok(true),
            _ => return Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
        Ok(false)
    }

    /// The version of the answer to the request under way: SUPPORTED comes in that of OPTIONS.
    fn answer_version(&self) -> ProtocolVersion {
        match self.expected {
            Expected::Supported if HAS_SEGMENTS => self.config.version,
            _ => self.agreed.version,
        }
    }

    /// Whether all behind this answer, which was taken, travels in segments, as does all that is sent
    /// from now on: the answer to STARTUP is the last frame by itself.
    #[cfg(any(test, feature = "protocol-v5"))]
    pub const fn begins_segments(&self, answer: &FrameHeader) -> bool {
        let is_to_startup = matches!(answer.opcode, Opcode::Ready | Opcode::Authenticate);
        is_to_startup && answer.version.has_segments()
    }

    /// What is agreed so far.
    pub const fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Whether requests may be sent beside the one that is under way.
    pub fn is_early(&self) -> bool {
        let may_come = match self.expected {
            Expected::AuthSuccess => !self.is_challenged,
            // Behind the answer to an OPTIONS that went together with STARTUP the next one is near.
            Expected::ReadyOrAuthenticate => {
                self.config.authenticator.is_none() && self.config.assumed.is_none()
            }
            Expected::Supported | Expected::Registered => false,
        };
        may_come && self.may_be_early()
    }

    fn may_be_early(&self) -> bool {
        HAS_EARLY_REQUESTS
            && self.config.early
            && self.config.events.is_empty()
            && !has_segments(self.agreed.version)
    }

    /// The stream of a request that others may be sent beside.
    fn share_connection(&mut self) {
        if self.may_be_early() {
            self.stream = HANDSHAKE_STREAM;
        }
    }

    /// A compressed body. Nothing is compressed before STARTUP has been answered.
    fn inflate(&self, body: &[u8]) -> Result<BytesMut, Error> {
        match self.config.compression {
            Some(compression) if self.expected != Expected::Supported => {
                compression.inflate(body, INFLATED_MAX).ok()
            }
            _ => None,
        }
        .ok_or_else(|| PeerMisbehaved::BadCompression.into())
    }

    /// Chooses from what the node offers, and opens the conversation.
    fn supported(&mut self, body: &mut Reader<'_>, output: &mut BytesMut) -> Result<(), Error> {
        let supported = Supported::parse(body).map_err(|_| malformed())?;
        if let Some(wanted) = self.config.compression
            && !offers(&supported, wanted)
        {
            let kind = ErrorKind::PeerIncompatible(PeerIncompatible::Compression);
            return Err(Error::with_text(kind, wanted.name()));
        }
        let offer = Offer::parse(&supported);
        if HAS_EARLY_REQUESTS && self.config.assumed.is_some() {
            // What was agreed on that assumption.
            let assumed = self.agreed;
            let sent = startup_options(&self.config, &assumed);
            agree(&self.config, &mut self.agreed, &offer);
            let agreed = &mut self.agreed;
            let offered = startup_options(&self.config, agreed);
            let is_within = sent.iter().all(|option| offered.contains(option));
            let is_beyond = sent.len() != offered.len() && !self.config.early;
            let is_risen = HAS_SEGMENTS && agreed.version != assumed.version;
            if !is_within || is_beyond || is_risen {
                return Err(offer_changed());
            }
            agreed.metadata_id &= assumed.metadata_id;
            agreed.tablets = assumed.tablets;
            // A node marks nothing unless it was asked to.
            let is_marked = assumed.offer.lwt_mask.is_some();
            agreed.offer.lwt_mask = agreed.offer.lwt_mask.filter(|_| is_marked);
        } else {
            agree(&self.config, &mut self.agreed, &offer);
            if self.config.authenticator.is_none() {
                self.share_connection();
            }
            self.put_startup(output)?;
        }
        self.expected = Expected::ReadyOrAuthenticate;
        Ok(())
    }

    fn put_startup(&self, output: &mut BytesMut) -> Result<(), Error> {
        let options = startup_options(&self.config, &self.agreed);
        let startup = Startup(options.iter().copied());
        self.put(output, Opcode::Startup, &mut |sink| {
            startup.put(self.agreed.version, sink)
        })
    }

    fn authenticate(&mut self, body: &mut Reader<'_>, output: &mut BytesMut) -> Result<(), Error> {
        let class = Authenticate::parse(body).map_err(|_| malformed())?.class;
        let authenticator = self.config.authenticator.as_ref();
        let Some(authenticator) = authenticator.filter(|_| HAS_LOGIN) else {
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
        self.is_challenged = true;
        self.put_token(&token, output)
    }

    fn put_token(&mut self, token: &[u8], output: &mut BytesMut) -> Result<(), Error> {
        self.expected = Expected::AuthSuccess;
        self.share_connection();
        let response = AuthResponse { token: Some(token) };
        self.put(output, Opcode::AuthResponse, &mut |sink| {
            response.put(self.agreed.version, sink)
        })
    }

    /// The conversation is open: that is all, unless events are wanted.
    fn accepted(&mut self, output: &mut BytesMut) -> Result<bool, Error> {
        if self.config.events.is_empty() {
            return Ok(true);
        }
        self.expected = Expected::Registered;
        let register = Register {
            events: &self.config.events,
        };
        self.put(output, Opcode::Register, &mut |sink| {
            register.put(self.agreed.version, sink)
        })?;
        Ok(false)
    }

    #[inline(never)]
    fn put(
        &self,
        output: &mut BytesMut,
        opcode: Opcode,
        body: &mut dyn FnMut(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<(), Error> {
        let header = FrameHeader {
            version: self.agreed.version,
            flags: Flags::NONE,
            stream: self.stream,
            opcode,
            body_len: 0,
        };
        Ok(put_frame(output, header, body)?)
    }
}

/// Whether connections of this build may take requests before the handshake is over.
pub(crate) const HAS_EARLY_REQUESTS: bool = cfg!(any(test, feature = "early-requests"));

/// Where the handshake goes on when requests are under way beside it; never given to a request.
pub const HANDSHAKE_STREAM: i16 = 0;

/// Whether this build speaks protocol 5.
const HAS_SEGMENTS: bool = cfg!(any(test, feature = "protocol-v5"));

/// Whether frames travel in segments; what a build does not speak costs it nothing.
const fn has_segments(version: ProtocolVersion) -> bool {
    HAS_SEGMENTS && version.has_segments()
}

/// Whether this build can log in.
const HAS_LOGIN: bool = cfg!(any(test, feature = "login"));

/// Longest body of a handshake, after it was compressed.
const INFLATED_MAX: u32 = 1 << 20;

/// The assumption was wrong; without one the handshake may go well.
fn offer_changed() -> Error {
    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
    Error::new(kind)
}

fn malformed() -> Error {
    PeerMisbehaved::MalformedBody.into()
}
