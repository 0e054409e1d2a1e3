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
//! A node may compress what it answers from STARTUP on; the flag of each frame tells.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use bytes::BytesMut;

use super::auth::Authenticator;
use super::extensions::{Agreed, Offer, TabletsRouting, key};
use crate::error::{Error, ErrorKind, PeerIncompatible, PeerMisbehaved};
use crate::sync::{Local, Shared};
use crate::wire::request::{AuthResponse, Options, Register, RequestBody, Startup};
use crate::wire::response::{AuthChallenge, Authenticate, ErrorCode, ServerError, Supported};
use crate::wire::{
    Compression, Dialect, EncodeError, Flags, FrameHeader, Opcode, ProtocolVersion, Reader,
    put_frame,
};
use crate::words::{boxed, explain, joined};

/// What every connection of a session says in its handshake.
#[derive(Clone)]
#[non_exhaustive]
pub struct HandshakeConfig {
    /// The protocol version to speak.
    pub version: ProtocolVersion,
    /// Answers authentication, if the node asks for it.
    pub authenticator: Option<Shared<dyn Authenticator>>,
    /// How frames are to be compressed from STARTUP on.
    pub compression: Option<Compression>,
    /// Further STARTUP options: driver name and version, session id.
    pub startup_options: Vec<(&'static str, Box<str>)>,
    /// How the session is set, told as DRIVER_CONFIG to a node that keeps what clients say.
    pub driver_config: Option<Local<str>>,
    /// Event types to REGISTER for; none skips that step.
    pub events: Vec<&'static str>,
    /// The newest tablets extension to use.
    pub tablets_max: TabletsRouting,
    /// Whether requests may be sent beside AUTH_RESPONSE, or beside STARTUP if there is no
    /// authenticator, without waiting for the answer. Not together with events.
    pub early: bool,
    /// What the node offered before: STARTUP is sent at once, as if it had been offered again.
    pub assumed: Option<Offer>,
}

impl HandshakeConfig {
    /// A plain handshake.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self {
            version,
            authenticator: None,
            compression: None,
            startup_options: Vec::new(),
            driver_config: None,
            events: Vec::new(),
            tablets_max: TabletsRouting::V2,
            early: false,
            assumed: None,
        }
    }
}

impl HandshakeConfig {
    /// Adds a STARTUP option.
    #[inline(never)]
    pub fn add_startup_option(&mut self, name: &'static str, value: &str) {
        self.startup_options.push((name, boxed(value)));
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
        let mut body = Reader::new(if header.flags.contains(Flags::COMPRESSION) {
            inflated = self.inflate(body)?;
            &inflated
        } else {
            body
        });
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
            (Expected::AuthSuccess, Opcode::AuthChallenge) => self.challenged(&mut body, output)?,
            (Expected::AuthSuccess, Opcode::AuthSuccess) => {
                self.agreed.is_authenticated = true;
                return self.accepted(output);
            }
            (Expected::Registered, Opcode::Ready) => return Ok(true),
            _ => return Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
        Ok(false)
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
        HAS_EARLY_REQUESTS && self.config.early && self.config.events.is_empty()
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
            if !is_within || (sent.len() != offered.len() && !self.config.early) {
                return Err(offer_changed());
            }
            agreed.metadata_id &= assumed.metadata_id;
            agreed.tablets = assumed.tablets;
            // A node marks nothing unless it was asked to.
            let is_marked = assumed.offer.lwt_mask.is_some();
            agreed.offer.lwt_mask = agreed.offer.lwt_mask.filter(|_| is_marked);
        } else {
            if self.config.authenticator.is_none() {
                self.share_connection();
            }
            agree(&self.config, &mut self.agreed, &offer);
            self.put_startup(output)?;
        }
        self.expected = Expected::ReadyOrAuthenticate;
        Ok(())
    }

    fn put_startup(&self, output: &mut BytesMut) -> Result<(), Error> {
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
        self.is_challenged = true;
        self.put_token(&token, output)
    }

    fn put_token(&mut self, token: &[u8], output: &mut BytesMut) -> Result<(), Error> {
        self.expected = Expected::AuthSuccess;
        self.share_connection();
        let response = AuthResponse { token: Some(token) };
        self.put(output, Opcode::AuthResponse, &mut |sink| {
            response.put(self.config.version, sink)
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
            register.put(self.config.version, sink)
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

fn offers(supported: &Supported<'_>, wanted: Compression) -> bool {
    let offered = supported.get(key::COMPRESSION);
    offered.is_some_and(|names| names.iter().any(|name| name == wanted.name()))
}

/// What follows from an offer.
#[inline(never)]
fn agree(config: &HandshakeConfig, agreed: &mut Agreed, offer: &Offer) {
    agreed.tablets = tablets(config, offer);
    agreed.metadata_id = offer.metadata_id || config.version.has_metadata_id();
    agreed.offer = *offer;
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
    let mut options = Vec::new();
    put_option(&mut options, key::CQL_VERSION, "3.0.0");
    for (name, value) in &config.startup_options {
        put_option(&mut options, name, value);
    }
    let (offer, tablets) = (&agreed.offer, agreed.tablets);
    if let Some(text) = &config.driver_config
        && offer.client_options
    {
        put_option(&mut options, key::DRIVER_CONFIG, text);
    }
    if let Some(wanted) = config.compression {
        put_option(&mut options, key::COMPRESSION, wanted.name());
    }
    let are_on = [
        offer.lwt_mask.is_some(),
        offer.rate_limit_error.is_some(),
        offer.metadata_id,
        tablets == TabletsRouting::V1,
        tablets == TabletsRouting::V2,
    ];
    for (name, is_on) in EXTENSIONS.iter().zip(are_on) {
        if is_on {
            put_option(&mut options, name, "");
        }
    }
    options
}

#[inline(never)]
fn put_option<'a>(options: &mut Vec<(&'a str, &'a str)>, name: &'a str, value: &'a str) {
    options.push((name, value));
}

/// The keys of extensions that have no value.
static EXTENSIONS: [&str; 5] = [
    key::LWT_MARK,
    key::RATE_LIMIT_ERROR,
    key::METADATA_ID,
    key::TABLETS_V1,
    key::TABLETS_V2,
];

/// Whether connections of this build may take requests before the handshake is over.
pub(crate) const HAS_EARLY_REQUESTS: bool = cfg!(any(test, feature = "early-requests"));

/// Where the handshake goes on when requests are under way beside it; never given to a request.
pub const HANDSHAKE_STREAM: i16 = 0;

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

fn version_refused(asked: ProtocolVersion, text: &str) -> Error {
    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
    let number = match asked {
        ProtocolVersion::V3 => "3",
        ProtocolVersion::V4 => "4",
        ProtocolVersion::V5 => "5",
    };
    let text = explain(|all| all.push_str(&joined(&["asked for version ", number, ": ", text])));
    Error::with_text(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let plain = super::super::auth::PlainAuthenticator::new("user", "secret");
        config.authenticator = Some(Shared::new(plain));
        let shown = alloc::format!("{config:?}");
        assert!(
            shown.contains("version: V4, authenticates: true"),
            "{shown}"
        );
        assert!(!shown.contains("secret"));
    }
}

#[cfg(test)]
#[cfg(all(feature = "lz4", feature = "snappy"))]
mod compression_tests {
    use super::*;

    /// SUPPORTED with `lz4` and `snappy`, as a node names them.
    const BOTH: &[u8] = b"\0\x01\0\x0bCOMPRESSION\0\x02\0\x03lz4\0\x06snappy";
    const SNAPPY: &[u8] = b"\0\x01\0\x0bCOMPRESSION\0\x01\0\x06snappy";
    const NEITHER: &[u8] = &[0, 0];

    fn frame(flags: u8, stream: i16, opcode: Opcode, body: &[u8]) -> FrameHeader {
        FrameHeader {
            version: ProtocolVersion::V4,
            flags: Flags(flags),
            stream,
            opcode,
            body_len: body.len() as u32,
        }
    }

    fn started(
        compression: Option<Compression>,
        supported: &[u8],
    ) -> Result<(Step, BytesMut), Error> {
        let mut config = HandshakeConfig::new(ProtocolVersion::V4);
        config.compression = compression;
        let mut output = BytesMut::new();
        let negotiation = Negotiation::start(Local::new(config), &mut output)?;
        output.clear();
        let header = frame(0, 0, Opcode::Supported, supported);
        let step = negotiation.handle_frame(&header, supported, &mut output)?;
        Ok((step, output))
    }

    #[test]
    fn compression_is_asked_for_where_it_is_offered() {
        let (lz4, snappy) = (Some(Compression::Lz4), Some(Compression::Snappy));
        for (wanted, supported, told) in [
            (lz4, BOTH, Some(&b"\0\x0bCOMPRESSION\0\x03lz4"[..])),
            (snappy, BOTH, Some(b"\0\x0bCOMPRESSION\0\x06snappy")),
            (snappy, SNAPPY, Some(b"\0\x0bCOMPRESSION\0\x06snappy")),
            (None, BOTH, None),
        ] {
            let (_, output) = started(wanted, supported).unwrap();
            assert_eq!(output[..2], [4, 0], "STARTUP itself is not compressed");
            let names = |part: &[u8]| output.windows(part.len()).any(|at| at == part);
            assert_eq!(names(b"COMPRESSION"), told.is_some());
            assert!(told.is_none_or(names));
        }
        for (wanted, supported) in [(lz4, SNAPPY), (lz4, NEITHER), (snappy, NEITHER)] {
            let error = started(wanted, supported).unwrap_err();
            let kind = ErrorKind::PeerIncompatible(PeerIncompatible::Compression);
            assert_eq!(error.kind(), kind);
        }
    }

    #[test]
    fn answers_may_be_compressed_once_it_was_asked_for() {
        let (lz4, snappy) = (Some(Compression::Lz4), Some(Compression::Snappy));
        // READY as ScyllaDB sends it, as Cassandra does, and what nobody may send.
        for (wanted, flags, body, good) in [
            (lz4, 1, &[0, 0, 0, 0, 0][..], true),
            (snappy, 1, &[0], true),
            (lz4, 0, &[], true),
            (lz4, 1, &[0, 0, 0, 0], false),
            (lz4, 1, &[0, 0x10, 0, 1, 0], false),
            (None, 1, &[0, 0, 0, 0, 0], false),
        ] {
            let (Step::Next(negotiation), mut output) = started(wanted, BOTH).unwrap() else {
                panic!("STARTUP has to come");
            };
            let header = frame(flags, 1, Opcode::Ready, body);
            match negotiation.handle_frame(&header, body, &mut output) {
                Ok(Step::Ready(agreed)) => assert!(good && agreed.compression == wanted),
                Ok(step) => panic!("{step:?}"),
                Err(error) => {
                    let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression);
                    assert!(!good && error.kind() == kind, "{error:?}");
                }
            }
        }
        // A body that has something in it: AUTHENTICATE of class "a", three bytes as one literal.
        let (Step::Next(negotiation), mut output) = started(lz4, BOTH).unwrap() else {
            panic!("STARTUP has to come");
        };
        let body = b"\0\0\0\x03\x30\0\x01a";
        let header = frame(1, 1, Opcode::Authenticate, body);
        let error = negotiation.handle_frame(&header, body, &mut output);
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
        assert_eq!(error.unwrap_err().kind(), kind);
        // SUPPORTED comes too early for that.
        let mut config = HandshakeConfig::new(ProtocolVersion::V4);
        config.compression = lz4;
        let mut output = BytesMut::new();
        let negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
        let body = [&[0, 0, 0, 2, 0x20][..], NEITHER].concat();
        let header = frame(1, 0, Opcode::Supported, &body);
        let error = negotiation.handle_frame(&header, &body, &mut output);
        let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression);
        assert_eq!(error.unwrap_err().kind(), kind);
    }
}

#[cfg(test)]
mod assumed {
    use super::*;

    /// A `[string multimap]` with one value for each key.
    fn supported(pairs: &[(&str, &str)]) -> Vec<u8> {
        let short = |len: usize| u16::try_from(len).unwrap().to_be_bytes();
        let mut body = Vec::from(short(pairs.len()));
        for (key, value) in pairs {
            body.extend(short(key.len()));
            body.extend(key.bytes());
            body.extend(short(1));
            body.extend(short(value.len()));
            body.extend(value.bytes());
        }
        body
    }

    const ALL: [(&str, &str); 6] = [
        (key::CLIENT_OPTIONS, ""),
        (key::LWT_MARK, "LWT_OPTIMIZATION_META_BIT_MASK=2147483648"),
        (key::RATE_LIMIT_ERROR, "ERROR_CODE=61440"),
        (key::METADATA_ID, ""),
        (key::TABLETS_V1, ""),
        (key::TABLETS_V2, ""),
    ];

    fn header(stream: i16, opcode: Opcode, body: &[u8]) -> FrameHeader {
        FrameHeader {
            version: ProtocolVersion::V4,
            flags: Flags::NONE,
            stream,
            opcode,
            body_len: u32::try_from(body.len()).unwrap(),
        }
    }

    fn start(assumed: Option<Offer>) -> (Negotiation, BytesMut) {
        let mut config = HandshakeConfig::new(ProtocolVersion::V4);
        config.driver_config = Some(Local::from("{}"));
        config.assumed = assumed;
        let mut output = BytesMut::new();
        let negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
        (negotiation, output)
    }

    fn offer(pairs: &[(&str, &str)]) -> Offer {
        Offer::parse(&Supported::parse(&mut Reader::new(&supported(pairs))).unwrap())
    }

    /// What is written without an assumption in two steps is written with it in one, byte for byte,
    /// and the numbers are those that SUPPORTED tells.
    #[test]
    fn options_and_startup_are_written_together() {
        let body = supported(&ALL);
        let (cold, mut expected) = start(None);
        let mut later = BytesMut::new();
        let answer = header(0, Opcode::Supported, &body);
        cold.handle_frame(&answer, &body, &mut later).unwrap();
        expected.extend_from_slice(&later);

        let assumed = Offer {
            lwt_mask: Some(0),
            rate_limit_error: Some(0),
            ..offer(&ALL)
        };
        let (warm, output) = start(Some(assumed));
        assert_eq!(output, expected);
        let mut more = BytesMut::new();
        let Step::Next(warm) = warm.handle_frame(&answer, &body, &mut more).unwrap() else {
            panic!("ready before READY")
        };
        let ready = header(1, Opcode::Ready, &[]);
        let Step::Ready(agreed) = warm.handle_frame(&ready, &[], &mut more).unwrap() else {
            panic!("not ready after READY")
        };
        assert!(more.is_empty());
        assert_eq!(agreed.offer, offer(&ALL));
        assert_eq!(agreed.tablets, TabletsRouting::V2);
    }

    /// Each key missing that was assumed, and each there that was not: STARTUP would have been
    /// another one, unless the key decides nothing.
    #[test]
    fn another_offer_ends_the_handshake() {
        let all_but = |place| {
            let mut some = ALL.to_vec();
            some.remove(place);
            some
        };
        for (place, (name, _)) in ALL.into_iter().enumerate() {
            // Version 1 is not asked for where version 2 is offered.
            let matters = name != key::TABLETS_V1;
            for (assumed, offered) in [
                (ALL.to_vec(), all_but(place)),
                (all_but(place), ALL.to_vec()),
            ] {
                let (warm, _) = start(Some(offer(&assumed)));
                let body = supported(&offered);
                let frame = header(0, Opcode::Supported, &body);
                let step = warm.handle_frame(&frame, &body, &mut BytesMut::new());
                let changed = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
                match step {
                    Ok(_) => assert!(!matters, "{name}"),
                    Err(error) => assert!(matters && error.kind() == changed, "{error}"),
                }
            }
        }
    }

    fn text(text: &str) -> Vec<u8> {
        let len = u16::try_from(text.len()).unwrap();
        [&len.to_be_bytes(), text.as_bytes()].concat()
    }

    /// STARTUP went along with OPTIONS, on this assumption; then SUPPORTED comes, and READY.
    fn assuming(offer: Offer, early: bool, supported: &[u8]) -> Result<Agreed, ErrorKind> {
        let mut config = HandshakeConfig::new(ProtocolVersion::V4);
        (config.early, config.assumed) = (early, Some(offer));
        let mut output = BytesMut::new();
        let mut negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
        for (stream, opcode, body) in [(0, Opcode::Supported, supported), (1, Opcode::Ready, &[])] {
            let header = FrameHeader {
                version: ProtocolVersion::V4,
                flags: Flags::NONE,
                stream,
                opcode,
                body_len: u32::try_from(body.len()).unwrap(),
            };
            let step = negotiation.advance(&header, body, &mut output);
            if step.map_err(|error| error.kind())? {
                return Ok(*negotiation.agreed());
            }
            assert!(!negotiation.is_early(), "READY is near");
        }
        panic!("it does not end");
    }

    #[test]
    fn what_is_offered_beyond_the_assumption_is_left_off_or_an_error() {
        let mask = text("LWT_OPTIMIZATION_META_BIT_MASK=2147483648");
        let marks: &[u8] = &[&[0, 1], &text(key::LWT_MARK)[..], &[0, 1], &mask].concat();
        let marked = Offer {
            lwt_mask: Some(0),
            ..Offer::default()
        };
        let changed = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
        let mask = |agreed: Agreed| agreed.offer.lwt_mask;
        for (assumed, early, supported, expected) in [
            (Offer::default(), true, marks, Ok(None)),
            (Offer::default(), false, marks, Err(changed)),
            (Offer::default(), true, &[0, 0], Ok(None)),
            (marked, true, marks, Ok(Some(1 << 31))),
            (marked, false, marks, Ok(Some(1 << 31))),
            (marked, true, &[0, 0], Err(changed)),
        ] {
            assert_eq!(assuming(assumed, early, supported).map(mask), expected);
        }
    }
}
