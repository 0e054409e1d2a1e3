//! One connection, sans-IO: requests in, bytes out; frames in, answers out.
//!
//! [`Connection`] is the whole state of an open link after its handshake. Output order is
//! submission order. It never reads a clock, wakes anybody or touches a socket: callers are told
//! by handing their `S` (whatever the layer above keeps per caller, a waker say) to the `tell`
//! closure, which must only collect.
//!
//! What it does stands by subject in `submitting` (requests taken and queued), `timing` (deadlines,
//! orphans, heartbeats) and `ending`; here are frames that come. What belongs beside it: [`framer`]
//! cuts frames, `segments` finds them in those of protocol 5, [`negotiate`] does the handshake,
//! [`extensions`] knows what was agreed. Protocol facts: native protocol v4 and v5, sections 2 and 4.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod answer;
pub mod auth;
mod ending;
pub mod extensions;
pub mod framer;
mod limits;
pub mod negotiate;
#[cfg(any(test, feature = "protocol-v5"))]
pub mod segments;
#[cfg(not(any(test, feature = "protocol-v5")))]
#[path = "no_segments.rs"]
pub(crate) mod segments;
mod streams;
mod submitting;
#[cfg(test)]
mod tests;
mod timing;
mod waiters;

use bytes::BytesMut;

pub use answer::{Answer, Body};
pub use limits::ConnectionLimits;
pub use streams::{Delivery, Progress, SlotKey, StreamIds};
pub use waiters::{Ticket, Turn, Waiters};

use self::negotiate::HAS_EARLY_REQUESTS;
use self::submitting::is_refusal_of_early;
use crate::error::{Applied, Error, ErrorKind, LimitField, PeerMisbehaved};
use crate::time::{Instant, micros};
use crate::wire::response::{ErrorCode, ServerError};
use crate::wire::{Compression, Dialect, Flags, FrameHeader, Opcode, ProtocolVersion, Reader};

/// A request that was not taken; nothing of it was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused<S, E> {
    /// All stream ids are in use, or too many bytes wait for the link. The caller may
    /// [`Connection::wait`].
    Full(S),
    /// The connection is over.
    Closed(S, Error),
    /// The body cannot be written.
    Encode(S, E),
}

/// What a frame from the peer was.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// An answer; its caller was told.
    Answer,
    /// The answer of nobody's request, dropped: late, or never asked for.
    Stray,
    /// An event body, for the control plane.
    Event(Body),
}

/// The part of a slot that belongs to whoever made the request.
#[derive(Debug)]
enum Owner<S> {
    Caller(S),
    Heartbeat,
}

/// The state of one open link. `S` is what the layer above keeps for each caller; `WAITING` says
/// whether callers may wait here for a free stream id. A layer with a queue of its own needs no
/// second one, nor its code.
#[derive(Debug)]
pub struct Connection<S, const WAITING: bool = true> {
    version: ProtocolVersion,
    compression: Option<Compression>,
    limits: ConnectionLimits,
    streams: StreamIds<Owner<S>>,
    waiters: Waiters<S>,
    output: BytesMut,
    /// Bytes ever put into `output`, and how many of them the link has taken.
    queued: u64,
    written: u64,
    heard_at: Instant,
    /// The interval in microseconds: asked for with each step.
    heartbeat_micros: u64,
    heartbeat: Option<SlotKey>,
    strays: u32,
    /// How many orphans are few.
    orphans_max: u16,
    /// When the age of orphans is looked at; far future while there are few.
    orphans_due: Instant,
    over: Option<Error>,
    draining: bool,
    /// Nothing is taken for the moment.
    is_held: bool,
    /// It was so at some time: requests may have been sent too early.
    was_held: bool,
    /// Until when a drain waits for those to come again that were refused as too early.
    repeats_until: Instant,
}

impl<S: Default, const WAITING: bool> Connection<S, WAITING> {
    /// The state of a link whose handshake is done.
    pub fn new(version: ProtocolVersion, limits: ConnectionLimits, now: Instant) -> Self {
        Self {
            version,
            compression: None,
            limits,
            streams: StreamIds::new(limits.in_flight),
            waiters: Waiters::new(limits.waiting),
            output: BytesMut::new(),
            queued: 0,
            written: 0,
            heard_at: now,
            heartbeat_micros: micros(limits.heartbeat_interval),
            heartbeat: None,
            strays: 0,
            orphans_max: {
                let ids = limits.in_flight;
                limits.orphans.min(ids.saturating_sub(ids.div_ceil(4)))
            },
            orphans_due: Instant::FAR_FUTURE,
            over: None,
            draining: false,
            is_held: false,
            was_held: false,
            repeats_until: Instant::ZERO,
        }
    }

    /// Compresses the bodies of long requests from now on, under whatever lock they are submitted
    /// under. Answers are not looked at: their bodies come inflated.
    pub const fn set_compression(&mut self, compression: Option<Compression>) {
        self.compression = compression;
    }

    /// How it stands with a request. Taking an outcome frees its id.
    pub fn poll_answer(&mut self, key: SlotKey, mut tell: impl FnMut(S)) -> Outcome<'_, S> {
        // Two looks because the borrow of a pending caller must outlive this function.
        if self.streams.is_pending(key) {
            return match self.streams.poll(key) {
                Progress::Pending(Owner::Caller(caller)) => Outcome::Pending(caller),
                _ => Outcome::Expired,
            };
        }
        let outcome = match self.streams.poll(key) {
            Progress::Done(outcome) => outcome,
            Progress::Pending(_) | Progress::Expired => return Outcome::Expired,
        };
        self.grant(&mut tell);
        Outcome::Done(outcome)
    }

    /// Who waits for the answer on a stream, if anybody does.
    pub fn caller_of(&self, stream: u16) -> Option<&S> {
        match self.streams.waiting(stream)? {
            Owner::Caller(caller) => Some(caller),
            Owner::Heartbeat => None,
        }
    }

    /// The caller gives its request up. Its id stays reserved until the answer comes. Whatever
    /// the slot held is given back, to be dropped outside any lock.
    pub fn cancel(
        &mut self,
        key: SlotKey,
        now: Instant,
        mut tell: impl FnMut(S),
    ) -> (Option<S>, Option<Answer>) {
        let (owner, answer) = self.streams.cancel(key, now);
        self.watch_orphans(now);
        self.grant(&mut tell);
        let caller = match owner {
            Some(Owner::Caller(caller)) => Some(caller),
            Some(Owner::Heartbeat) | None => None,
        };
        (caller, answer)
    }

    /// The same where nothing is to be given back, and nobody waits here.
    pub fn forget(&mut self, key: SlotKey, now: Instant) {
        self.streams.forget(key, now);
        self.watch_orphans(now);
    }

    /// Takes one frame from the peer. An error means that the connection cannot go on; the caller
    /// closes it with [`Connection::close`].
    pub fn handle_frame(
        &mut self,
        now: Instant,
        header: &FrameHeader,
        body: Body,
        mut tell: impl FnMut(S),
    ) -> Result<Received, Error> {
        self.heard_at = now;
        if header.version != self.version {
            return Err(PeerMisbehaved::BadHeader.into());
        }
        if header.opcode == Opcode::Event {
            return match header.stream {
                EVENT_STREAM => Ok(Received::Event(body)),
                _ => Err(PeerMisbehaved::BadStreamId.into()),
            };
        }
        if header.stream == CONNECTION_STREAM && header.opcode == Opcode::Error {
            return Err(connection_error(header.version, body.as_slice()));
        }
        let Ok(stream) = u16::try_from(header.stream) else {
            return Err(PeerMisbehaved::BadStreamId.into());
        };
        let answer = Answer {
            opcode: header.opcode,
            flags: header.flags,
            body,
        };
        if HAS_EARLY_REQUESTS
            && self.was_held
            && is_refusal_of_early(self.version, &answer)
            && let Some(give_up_at) = self.streams.give_up_at(stream)
        {
            self.repeats_until = self.repeats_until.max(give_up_at);
        }
        match self.streams.answer(stream, Ok(answer)) {
            Delivery::Caller(Owner::Caller(caller)) => {
                tell(caller);
                Ok(Received::Answer)
            }
            other => self.deliver(other, &mut tell),
        }
    }

    /// The body of an answer is longer than may be read: only its request fails, if the peer can
    /// be followed past it.
    pub fn handle_too_long(&mut self, header: &FrameHeader, tell: impl FnMut(S)) {
        let error = Error::new(ErrorKind::Limit(LimitField::FrameLen));
        self.handle_unreadable(header, error, tell);
    }

    /// The same for a body that is of no use for another reason. What became of the request nobody
    /// knows.
    pub fn handle_unreadable(
        &mut self,
        header: &FrameHeader,
        error: Error,
        mut tell: impl FnMut(S),
    ) {
        if let Ok(stream) = u16::try_from(header.stream) {
            let error = error.with_applied(Applied::Unknown);
            let delivery = self.streams.answer(stream, Err(error));
            let _ = self.deliver(delivery, &mut tell);
        }
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn deliver(
        &mut self,
        delivery: Delivery<Owner<S>>,
        tell: &mut dyn FnMut(S),
    ) -> Result<Received, Error> {
        match delivery {
            Delivery::Caller(Owner::Caller(caller)) => {
                tell(caller);
                Ok(Received::Answer)
            }
            Delivery::Caller(Owner::Heartbeat) => {
                if let Some(key) = self.heartbeat.take() {
                    let _ = self.streams.poll(key);
                }
                self.grant(tell);
                Ok(Received::Answer)
            }
            Delivery::Orphan => {
                self.grant(tell);
                Ok(Received::Stray)
            }
            Delivery::Nobody => {
                self.strays = self.strays.saturating_add(1);
                match self.strays > STRAYS_MAX {
                    true => Err(PeerMisbehaved::UnknownStreams.into()),
                    false => Ok(Received::Stray),
                }
            }
        }
    }

    /// Whether bytes wait for the link.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Swaps the waiting output with `buffer`, which must be empty: the task writes one while
    /// callers fill the other.
    pub fn swap_output(&mut self, buffer: &mut BytesMut, mut tell: impl FnMut(S)) {
        core::mem::swap(&mut self.output, buffer);
        self.grant(&mut tell);
    }

    /// The link took `len` bytes.
    pub fn handle_written(&mut self, len: usize) {
        self.written = self
            .written
            .saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
    }

    /// Stream ids in use: requests under way, outcomes not taken yet, and orphans.
    pub const fn in_use(&self) -> u16 {
        self.streams.in_use()
    }

    /// Stream ids reserved for late answers.
    pub const fn orphans(&self) -> u16 {
        self.streams.orphans()
    }
}

/// Whether a node refused a request because its login is not over yet.
pub fn is_too_early(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ErrorCode::Protocol | ErrorCode::Unauthorized)
    )
}

/// The head of a request frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// What the body is.
    pub opcode: Opcode,
    /// Tracing and the like; compression is the connection's own affair.
    pub flags: Flags,
}

impl RequestHead {
    /// A request without flags.
    pub const fn new(opcode: Opcode) -> Self {
        Self {
            opcode,
            flags: Flags::NONE,
        }
    }
}

/// What a caller finds in its slot.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome<'a, S> {
    /// No answer yet; the caller's own part of the slot.
    Pending(&'a mut S),
    /// The answer, or why there is none.
    Done(Result<Answer, Error>),
    /// The request was given up at its deadline.
    Expired,
}

/// What a node says about the whole connection before it closes it.
fn connection_error(version: ProtocolVersion, body: &[u8]) -> Error {
    match ServerError::parse(&Dialect::plain(version), &mut Reader::new(body)) {
        Ok(error) => Error::from_server(error),
        Err(_) => PeerMisbehaved::MalformedBody.into(),
    }
}

/// The stream id of events.
const EVENT_STREAM: i16 = -1;

/// The stream id of errors that concern the whole connection; never given to a request.
const CONNECTION_STREAM: i16 = 0;

/// Answers to nobody's request that are dropped before the connection is given up.
const STRAYS_MAX: u32 = 64;
