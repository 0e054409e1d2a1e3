//! Errors, sorted by who is at fault.
//!
//! [`Error`] is one pointer: a result that may hold one is moved at every call, and mostly holds none.
//! In a register it costs a comparison, where two words would go through memory each time. What it
//! was, whether the request may have been applied, where and at which attempt stand behind it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use crate::digits::put_signed;
use crate::sync::Shared;
use crate::types::{BindError, RowError};
use crate::wire::response::{ErrorCode, ServerError};
use crate::wire::{EncodeError, ParseError};
use crate::words::{HAS_TEXTS, put, put_char, put_digit};

/// What went wrong, where, and whether the request may have taken effect all the same.
#[derive(PartialEq)]
pub struct Error(Box<Full>);

impl Clone for Error {
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Clone, PartialEq)]
struct Full {
    kind: ErrorKind,
    place: Place,
    /// Shared, so that a clone, as each request of a closed connection gets one, copies no text.
    detail: Option<Shared<Detail>>,
}

/// Where a request failed, and how far it had come.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    applied: Applied,
    attempt: u8,
    node: u16,
    shard: u16,
}

/// Whether the failed request may have changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Applied {
    /// Nothing was sent, or the server rejected it.
    No,
    /// It may have happened.
    Unknown,
}

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server answered with this error; [`Error::server`] has the whole of it.
    Server(ErrorCode),
    /// The peer broke the protocol.
    PeerMisbehaved(PeerMisbehaved),
    /// The peer is correct but we cannot work with it.
    PeerIncompatible(PeerIncompatible),
    /// The link could not be opened or broke.
    Link(LinkError),
    /// No node could be reached; the text tells the cause for each that was tried.
    Unreachable,
    /// Something took too long.
    Timeout(TimeoutKind),
    /// The node or shard that the statement is to go to, and nowhere else, is out of reach.
    Target(TargetProblem),
    /// All connections that could serve the request are full, and so is the queue before them.
    Busy,
    /// A bound of [`Limits`](crate::config::Limits) was reached.
    Limit(LimitField),
    /// A value or statement cannot be written.
    Encode(EncodeFailure),
    /// A response or a value in it cannot be read.
    Decode(DecodeFailure),
    /// The caller did something that can never work.
    ApiMisuse(ApiMisuse),
    /// The configuration is not usable.
    Config(ConfigProblem),
    /// A broken invariant of this crate.
    Bug,
}

/// How the peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// The header is not one of a response frame of the agreed version.
    BadHeader,
    /// A frame of this opcode does not belong here.
    UnexpectedFrame,
    /// A negative stream id other than that of events.
    BadStreamId,
    /// A body that cannot be parsed.
    MalformedBody,
    /// A compressed body that does not decompress, or compression that was not agreed.
    BadCompression,
    /// A segment of protocol 5 that is not what was sent, or that may not come there.
    #[cfg(any(test, feature = "protocol-v5"))]
    BadSegment,
    /// Frames for streams nobody uses keep coming.
    UnknownStreams,
    /// The connection reached another node than the one it was meant for.
    WrongHost,
}

/// Why a correct peer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerIncompatible {
    /// It does not speak a protocol version that we may use.
    ProtocolVersion,
    /// It wants authentication and no credentials are configured.
    CredentialsMissing,
    /// It wants an authentication that the authenticator cannot give.
    Authentication,
    /// It does not offer the compression that was asked for.
    Compression,
    /// It offers a protocol version and refuses it, as a relay may whose node offers more than it passes
    /// on; connecting anew helps.
    #[cfg(any(test, feature = "protocol-v5"))]
    OfferedVersion,
    /// It does not offer what it did when it was met before; connecting anew helps.
    OfferChanged,
}

/// Why the only target of a statement is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetProblem {
    /// No node has this host id, as far as the session knows.
    UnknownNode,
    /// The node has no such shard, or does not shard.
    UnknownShard,
    /// There is no open connection to it: it is down, left out by the session's filter, or its
    /// connections are not open yet.
    NotConnected,
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// Opening a link.
    Connect,
    /// The handshake on an open link.
    Handshake,
    /// A request.
    Request,
    /// A heartbeat.
    Heartbeat,
    /// An orderly close.
    Close,
}

/// The bound that was reached; each is a field of [`Limits`](crate::config::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitField {
    /// `frame_len_max`.
    FrameLen,
    /// `orphans_per_connection`.
    Orphans,
    /// `pending_bytes_per_connection`.
    PendingBytes,
    /// `nodes`.
    Nodes,
    /// `prepared_statements`.
    PreparedStatements,
    /// `row_window`.
    RowWindow,
}

/// What could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncodeFailure {
    /// The request itself: see [`Error::encode_error`].
    Request,
    /// A value: see [`Error::bind_error`].
    Value,
}

/// What could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFailure {
    /// The response itself: see [`Error::parse_error`].
    Response,
    /// A value: see [`Error::row_error`].
    Value,
}

/// Misuse by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// The session is closed, or its driver was dropped.
    SessionClosed,
    /// Another kind of result was expected.
    NotRows,
    /// Not exactly one row.
    NotOneRow,
    /// Values for a statement that the session must not send unprepared.
    ValuesUnprepared,
    /// The markers of a prepared statement are of other types now, as when its table was made
    /// anew. The values were not sent; the statement is to be prepared again.
    StaleStatement,
}

/// What is wrong with the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// No contact point, or one that is not `host[:port]`.
    ContactPoint,
    /// A name that is not a keyspace's.
    Keyspace,
    /// A limit or timeout outside its range.
    OutOfRange,
    /// Certificates or keys that cannot be used.
    Tls,
    /// The address of a relay that cannot be used.
    Relay,
}

/// The part of an error that needs the heap.
#[derive(Debug, PartialEq)]
enum Detail {
    Server(ServerError),
    Text(String),
    Encode(EncodeError),
    Parse(ParseError),
    Value(Box<dyn ValueError>),
    History(Vec<Error>),
}

/// What is wrong with a value. Behind a table, so that a build that decodes and binds no values has
/// no code that tells of types; with little in it, since all of it is in every other build.
trait ValueError: Any + Send + Sync {
    fn text(&self) -> String;
}

impl ValueError for BindError {
    fn text(&self) -> String {
        alloc::format!("{self}")
    }
}

impl ValueError for RowError {
    fn text(&self) -> String {
        alloc::format!("{self}")
    }
}

impl dyn ValueError {
    fn as_type<T: 'static>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

impl fmt::Debug for dyn ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The same if it says the same.
impl PartialEq for dyn ValueError {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Error {
    /// An error of this kind; nothing was applied.
    #[cold]
    #[inline(never)]
    pub fn new(kind: ErrorKind) -> Self {
        Self::full(kind, None)
    }

    #[cold]
    #[inline(never)]
    fn detailed(kind: ErrorKind, detail: Detail) -> Self {
        Self::full(kind, Some(Shared::new(detail)))
    }

    fn of_value(kind: ErrorKind, error: impl ValueError) -> Self {
        Self::detailed(kind, Detail::Value(Box::new(error)))
    }

    fn full(kind: ErrorKind, detail: Option<Shared<Detail>>) -> Self {
        Self(Box::new(Full {
            kind,
            place: Place::NOWHERE,
            detail,
        }))
    }

    /// An error frame of the server.
    #[cold]
    #[inline(never)]
    pub fn from_server(error: ServerError) -> Self {
        let applied = applied(error.code);
        Self::detailed(ErrorKind::Server(error.code), Detail::Server(error)).with_applied(applied)
    }

    /// The same with a text that explains it.
    #[cold]
    #[inline(never)]
    pub fn with_text(kind: ErrorKind, text: impl Into<String>) -> Self {
        if !HAS_TEXTS {
            return Self::new(kind);
        }
        Self::detailed(kind, Detail::Text(text.into()))
    }

    /// Values that cannot be bound; nothing was sent.
    #[cold]
    #[inline(never)]
    pub fn bind(error: BindError) -> Self {
        Self::of_value(ErrorKind::Encode(EncodeFailure::Value), error)
    }

    /// A row that cannot be decoded.
    #[cold]
    #[inline(never)]
    pub fn row(error: RowError) -> Self {
        Self::of_value(ErrorKind::Decode(DecodeFailure::Value), error)
    }

    /// A broken invariant of this crate.
    #[cold]
    #[inline(never)]
    pub fn bug(what: &'static str) -> Self {
        Self::with_text(ErrorKind::Bug, what)
    }

    /// The same with the error that led to it. No text is made before somebody asks for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn caused_by(kind: ErrorKind, cause: Self) -> Self {
        Self::detailed(kind, Detail::History(Vec::from([cause])))
    }

    /// No node could be reached; `causes` are the last errors of those tried.
    #[cold]
    #[inline(never)]
    pub fn unreachable(causes: Vec<Self>) -> Self {
        Self::detailed(ErrorKind::Unreachable, Detail::History(causes))
    }

    /// The same error, marked as possibly applied or not.
    #[must_use]
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn with_applied(mut self, applied: Applied) -> Self {
        self.place_mut().applied = applied;
        self
    }

    /// The same error with the node and shard of the attempt that failed.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn at(mut self, node: Option<u16>, shard: Option<u16>, attempt: u8) -> Self {
        let place = self.place_mut();
        place.node = node.unwrap_or(NOWHERE);
        place.shard = shard.unwrap_or(NOWHERE);
        place.attempt = attempt;
        self
    }

    /// Who is at fault.
    pub const fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The server's error frame, for [`ErrorKind::Server`].
    pub fn server(&self) -> Option<&ServerError> {
        match self.detail() {
            Some(Detail::Server(error)) => Some(error),
            _ => None,
        }
    }

    /// The value that could not be bound, for [`EncodeFailure::Value`].
    pub fn bind_error(&self) -> Option<&BindError> {
        match self.detail() {
            Some(Detail::Value(error)) => error.as_type(),
            _ => None,
        }
    }

    /// The request that could not be written, for [`EncodeFailure::Request`].
    pub fn encode_error(&self) -> Option<&EncodeError> {
        match self.detail() {
            Some(Detail::Encode(error)) => Some(error),
            _ => None,
        }
    }

    /// The response that could not be read, for [`DecodeFailure::Response`].
    pub fn parse_error(&self) -> Option<&ParseError> {
        match self.detail() {
            Some(Detail::Parse(error)) => Some(error),
            _ => None,
        }
    }

    /// The row that could not be decoded, for [`DecodeFailure::Value`].
    pub fn row_error(&self) -> Option<&RowError> {
        match self.detail() {
            Some(Detail::Value(error)) => error.as_type(),
            _ => None,
        }
    }

    /// Why each node that was tried could not be reached, for [`ErrorKind::Unreachable`]; for a link
    /// that we closed what we closed it for, if it was given up.
    pub fn causes(&self) -> &[Self] {
        match self.detail() {
            Some(Detail::History(causes)) => causes,
            _ => &[],
        }
    }

    /// The text that it was given, if it was.
    pub(crate) fn own_text(&self) -> Option<&str> {
        match self.detail() {
            Some(Detail::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether the request may have changed something in spite of the error.
    pub fn may_have_been_applied(&self) -> bool {
        self.applied() == Applied::Unknown
    }

    /// Whether the same request may go well at another time, or at another node: nothing is wrong
    /// with the request itself. Whether it is safe to send it again is another question; see
    /// [`may_have_been_applied`](Self::may_have_been_applied).
    pub fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Server(code) => matches!(
                code,
                ErrorCode::Server
                    | ErrorCode::Unavailable
                    | ErrorCode::Overloaded
                    | ErrorCode::IsBootstrapping
                    | ErrorCode::Truncate
                    | ErrorCode::WriteTimeout
                    | ErrorCode::ReadTimeout
                    | ErrorCode::ReadFailure
                    | ErrorCode::WriteFailure
                    | ErrorCode::CasWriteUnknown
                    | ErrorCode::RateLimit
            ),
            ErrorKind::PeerMisbehaved(_)
            | ErrorKind::Link(_)
            | ErrorKind::Unreachable
            | ErrorKind::Timeout(_)
            | ErrorKind::Target(TargetProblem::NotConnected)
            | ErrorKind::Busy => true,
            _ => false,
        }
    }

    /// Whether the failed request may have changed anything.
    pub fn applied(&self) -> Applied {
        self.place().applied
    }

    /// Which attempt failed, counted from 0.
    pub fn attempt(&self) -> u8 {
        self.place().attempt
    }

    /// The node's index in the session's topology.
    pub fn node(&self) -> Option<u16> {
        Some(self.place().node).filter(|&node| node != NOWHERE)
    }

    /// The shard.
    pub fn shard(&self) -> Option<u16> {
        Some(self.place().shard).filter(|&shard| shard != NOWHERE)
    }

    const fn place(&self) -> &Place {
        &self.0.place
    }

    fn place_mut(&mut self) -> &mut Place {
        &mut self.0.place
    }

    fn detail(&self) -> Option<&Detail> {
        self.0.detail.as_deref()
    }
}

impl Place {
    const NOWHERE: Self = Self {
        applied: Applied::No,
        attempt: 0,
        node: NOWHERE,
        shard: NOWHERE,
    };
}

/// Whether a request that the server answered with this error may have changed something. A
/// timeout or failure may come after some replicas have written; an unexpected error may come
/// after anything.
const fn applied(code: ErrorCode) -> Applied {
    match code {
        ErrorCode::Server
        | ErrorCode::WriteTimeout
        | ErrorCode::WriteFailure
        | ErrorCode::CdcWriteFailure
        | ErrorCode::CasWriteUnknown
        | ErrorCode::Truncate
        | ErrorCode::Other(_) => Applied::Unknown,
        _ => Applied::No,
    }
}

const NOWHERE: u16 = u16::MAX;

impl Error {
    /// What [`Display`](fmt::Display) shows. Small images do without the library's formatting.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.put_text(&mut text);
        text
    }

    fn put_text(&self, text: &mut String) {
        match (self.kind(), self.detail()) {
            (_, Some(Detail::Server(error))) => error.put_text(text),
            (_, Some(Detail::Encode(error))) => error.put_text(text),
            (_, Some(Detail::Parse(error))) => error.put_text(text),
            (_, Some(Detail::Value(error))) => put(text, &error.text()),
            (kind, Some(Detail::History(causes))) => {
                put_phrase(text, kind);
                let mut separator = ": ";
                for cause in causes {
                    put(text, separator);
                    cause.put_text(text);
                    separator = "; ";
                }
            }
            (kind, Some(Detail::Text(more))) => {
                put_phrase(text, kind);
                put(text, ": ");
                put(text, more);
            }
            (kind, _) => put_phrase(text, kind),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// One phrase for each kind.
fn put_phrase(text: &mut String, kind: ErrorKind) {
    let phrase = match kind {
        ErrorKind::Server(code) => return code.put_text(text),
        ErrorKind::PeerMisbehaved(how) => match how {
            PeerMisbehaved::BadHeader => "the peer sent something that is not CQL",
            PeerMisbehaved::UnexpectedFrame => "the peer sent a frame that does not belong here",
            PeerMisbehaved::BadStreamId => "the peer used a stream id that is not allowed",
            PeerMisbehaved::MalformedBody => "the peer sent a malformed body",
            PeerMisbehaved::BadCompression => "the peer sent a body that does not decompress",
            #[cfg(any(test, feature = "protocol-v5"))]
            PeerMisbehaved::BadSegment => "the peer sent a segment that is corrupt",
            PeerMisbehaved::UnknownStreams => "the peer answers requests that nobody made",
            PeerMisbehaved::WrongHost => "the connection reached another node",
        },
        ErrorKind::PeerIncompatible(why) => match why {
            PeerIncompatible::ProtocolVersion => "the peer does not speak this protocol version",
            PeerIncompatible::CredentialsMissing => {
                "the peer wants a user and password, none is configured"
            }
            PeerIncompatible::Authentication => "the peer wants another way of authentication",
            PeerIncompatible::Compression => "the peer does not offer the compression asked for",
            #[cfg(any(test, feature = "protocol-v5"))]
            PeerIncompatible::OfferedVersion => {
                "the peer refuses a protocol version that it offers"
            }
            PeerIncompatible::OfferChanged => "the peer offers other extensions than before",
        },
        ErrorKind::Link(error) => return error.put_text(text),
        ErrorKind::Unreachable => "no node could be reached",
        ErrorKind::Timeout(what) => match what {
            TimeoutKind::Connect => "connecting took too long",
            TimeoutKind::Handshake => "the handshake took too long",
            TimeoutKind::Request => "no answer within the request timeout",
            TimeoutKind::Heartbeat => "no answer to the heartbeat",
            TimeoutKind::Close => "closing took too long",
        },
        ErrorKind::Target(why) => match why {
            TargetProblem::UnknownNode => "the statement's target is not known",
            TargetProblem::UnknownShard => "the statement's target does not have the shard",
            TargetProblem::NotConnected => "the statement's target is not connected",
        },
        ErrorKind::Busy => "all connections are busy and the queue is full",
        ErrorKind::Limit(field) => match field {
            LimitField::FrameLen => "the frame is longer than frame_len_max",
            LimitField::Orphans => "too many requests were given up on this connection",
            LimitField::PendingBytes => "too many bytes wait to be sent",
            LimitField::Nodes => "the cluster has more nodes than the limit",
            LimitField::PreparedStatements => "too many prepared statements",
            LimitField::RowWindow => "a row is longer than row_window",
        },
        ErrorKind::Encode(EncodeFailure::Request) => "the request cannot be encoded",
        ErrorKind::Encode(EncodeFailure::Value) => "a value cannot be encoded",
        ErrorKind::Decode(DecodeFailure::Response) => "the response cannot be decoded",
        ErrorKind::Decode(DecodeFailure::Value) => "a value cannot be decoded",
        ErrorKind::ApiMisuse(how) => match how {
            ApiMisuse::SessionClosed => "the session is closed",
            ApiMisuse::NotRows => "the statement returned no rows",
            ApiMisuse::NotOneRow => "the statement did not return exactly one row",
            ApiMisuse::ValuesUnprepared => "a statement with values must be prepared",
            ApiMisuse::StaleStatement => "the statement takes other values now: prepare it again",
        },
        ErrorKind::Config(what) => match what {
            ConfigProblem::ContactPoint => "not a usable contact point",
            ConfigProblem::Keyspace => "not a keyspace name",
            ConfigProblem::OutOfRange => "a setting is out of its range",
            ConfigProblem::Tls => "TLS cannot be set up",
            ConfigProblem::Relay => "the address of a relay cannot be used",
        },
        ErrorKind::Bug => "bug in messina",
    };
    put(text, phrase);
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Error({:?}, applied {:?}: {self})",
            self.kind(),
            self.applied()
        )
    }
}

impl core::error::Error for Error {}

impl From<LinkError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: LinkError) -> Self {
        Self::new(ErrorKind::Link(error))
    }
}

impl From<PeerMisbehaved> for Error {
    #[cold]
    #[inline(never)]
    fn from(how: PeerMisbehaved) -> Self {
        Self::new(ErrorKind::PeerMisbehaved(how))
    }
}

impl From<EncodeError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: EncodeError) -> Self {
        Self::detailed(
            ErrorKind::Encode(EncodeFailure::Request),
            Detail::Encode(error),
        )
    }
}

impl From<ParseError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: ParseError) -> Self {
        Self::detailed(
            ErrorKind::Decode(DecodeFailure::Response),
            Detail::Parse(error),
        )
    }
}

/// A text from outside in an error or warning: between quotes, and without a way to end the line
/// or to turn the reading direction. In place of `Debug`, whose tables of printable characters
/// are larger than all texts of this crate.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(self.0))
    }
}

/// The same as a text.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            put(&mut shown, "\\u{");
            let code = u32::from(c);
            for shift in [12, 8, 4, 0] {
                if code >> shift > 0 || shift == 0 {
                    put_digit(&mut shown, code >> shift);
                }
            }
            put_char(&mut shown, '}');
            continue;
        }
        if matches!(c, '"' | '\\') {
            put_char(&mut shown, '\\');
        }
        put_char(&mut shown, c);
    }
    put_char(&mut shown, '"');
    shown
}

/// Why a link could not be opened or broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkError {
    kind: LinkErrorKind,
    more: LinkDetail,
}

/// What is known beside the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LinkDetail {
    None,
    Tls(TlsFailure),
    OsCode(i32),
    Said(u16, &'static str),
}

/// The causes a transport can tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum LinkErrorKind {
    /// The name has no address.
    Resolve,
    /// Nothing listens there.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// No way to that host or network.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// TLS failed: certificate, name, or protocol; [`LinkError::tls_failure`] tells which.
    Tls,
    /// The wished source port is taken.
    PortInUse,
    /// The peer closed the connection.
    ClosedByPeer,
    /// We closed it: the session ends or the connection was given up.
    ClosedByUs,
    /// The platform said something else.
    Other,
}

/// Why TLS failed, as far as a transport can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The certificate is not valid any more, by the local clock.
    Expired,
    /// The certificate is not valid yet, by the local clock.
    NotYetValid,
    /// No trusted authority has signed the certificate.
    UnknownIssuer,
    /// The certificate is for other names or addresses.
    NameMismatch,
    /// The certificate is unusable in another way: signature, purpose, encoding, revoked.
    BadCertificate,
    /// What the peer sent is not TLS.
    NotTls,
    /// No protocol version or cipher is common to both.
    NothingInCommon,
    /// The peer refused: it may want a certificate of ours, or another one.
    RefusedByPeer,
}

impl TlsFailure {
    const fn phrase(self) -> &'static str {
        match self {
            Self::Expired => "the certificate has expired",
            Self::NotYetValid => "the certificate is not valid yet",
            Self::UnknownIssuer => "the certificate's issuer is not trusted",
            Self::NameMismatch => "the certificate is for another name or address",
            Self::BadCertificate => "the certificate is not usable",
            Self::NotTls => "the peer does not speak TLS",
            Self::NothingInCommon => "no protocol version or cipher in common",
            Self::RefusedByPeer => "the peer refused",
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase())
    }
}

impl LinkError {
    /// The wished source port is taken.
    pub const PORT_IN_USE: Self = Self::new(LinkErrorKind::PortInUse);
    /// The peer closed the connection.
    pub const CLOSED_BY_PEER: Self = Self::new(LinkErrorKind::ClosedByPeer);
    /// No answer in time.
    pub const TIMED_OUT: Self = Self::new(LinkErrorKind::TimedOut);

    /// An error of this kind.
    pub const fn new(kind: LinkErrorKind) -> Self {
        let more = LinkDetail::None;
        Self { kind, more }
    }

    /// TLS failed for this reason.
    pub const fn tls(why: TlsFailure) -> Self {
        let more = LinkDetail::Tls(why);
        let kind = LinkErrorKind::Tls;
        Self { kind, more }
    }

    /// The same with the platform's own error number.
    pub const fn with_os_code(kind: LinkErrorKind, os_code: i32) -> Self {
        let more = match os_code {
            0 => LinkDetail::None,
            code => LinkDetail::OsCode(code),
        };
        Self { kind, more }
    }

    /// Something between us and the node, such as a relay, said why: a number of its protocol and
    /// its meaning.
    pub const fn said(kind: LinkErrorKind, code: u16, meaning: &'static str) -> Self {
        let more = LinkDetail::Said(code, meaning);
        Self { kind, more }
    }

    /// The kind.
    pub const fn kind(self) -> LinkErrorKind {
        self.kind
    }

    /// Why TLS failed, for [`LinkErrorKind::Tls`] where the transport can tell.
    pub const fn tls_failure(self) -> Option<TlsFailure> {
        match self.more {
            LinkDetail::Tls(why) => Some(why),
            _ => None,
        }
    }

    /// The platform's own error number, if it gave one.
    pub const fn os_code(self) -> Option<i32> {
        match self.more {
            LinkDetail::OsCode(code) => Some(code),
            _ => None,
        }
    }

    /// What [`Self::said`] was told.
    pub const fn saying(self) -> Option<(u16, &'static str)> {
        match self.more {
            LinkDetail::Said(code, meaning) => Some((code, meaning)),
            _ => None,
        }
    }
}

impl LinkError {
    fn put_text(&self, text: &mut String) {
        put(
            text,
            match self.kind {
                LinkErrorKind::Resolve => "name has no address",
                LinkErrorKind::Refused => "connection refused",
                LinkErrorKind::Reset => "connection reset by peer",
                LinkErrorKind::Unreachable => "host unreachable",
                LinkErrorKind::TimedOut => "no answer in time",
                LinkErrorKind::Tls => "TLS failed",
                LinkErrorKind::PortInUse => "source port in use",
                LinkErrorKind::ClosedByPeer => "closed by peer",
                LinkErrorKind::ClosedByUs => "closed by this side",
                LinkErrorKind::Other => "link failed",
            },
        );
        let (before, said, code) = match self.more {
            LinkDetail::None => return,
            LinkDetail::Tls(why) => (": ", why.phrase(), None),
            LinkDetail::OsCode(code) => (" (os error ", "", Some(code)),
            LinkDetail::Said(code, meaning) => {
                put(text, ": ");
                (meaning, " (code ", Some(i32::from(code)))
            }
        };
        put(text, before);
        put(text, said);
        if let Some(code) = code {
            put_signed(text, code);
            text.push(')');
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put_text(&mut text);
        f.write_str(&text)
    }
}

impl core::error::Error for LinkError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_behind_what_it_led_to() {
        let link = ErrorKind::Link(LinkError::new(LinkErrorKind::ClosedByUs));
        let cause = Error::new(ErrorKind::Limit(LimitField::Orphans));
        let error = Error::caused_by(link, cause.clone());
        assert_eq!((error.kind(), error.causes()), (link, &[cause][..]));
        assert_eq!(
            alloc::format!("{error}"),
            "closed by this side: too many requests were given up on this connection"
        );
    }

    #[test]
    fn errors_stay_small() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }
}
