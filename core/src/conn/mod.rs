//! One connection, sans-IO: requests in, bytes out; frames in, answers out.
//!
//! [`Connection`] is the whole state of an open link after its handshake. Output order is
//! submission order. It never reads a clock, wakes anybody or touches a socket: callers are told
//! by handing their `S` (whatever the layer above keeps per caller, a waker say) to the `tell`
//! closure, which must only collect.
//!
//! What belongs beside it: [`framer`] cuts frames, [`negotiate`] does the handshake,
//! [`extensions`] knows what was agreed. Protocol facts: native protocol v4 sections 2 and 4.
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
pub mod extensions;
pub mod framer;
pub mod negotiate;
mod streams;
#[cfg(test)]
mod tests;
mod waiters;

use core::time::Duration;

use bytes::{BufMut as _, BytesMut};

pub use answer::{Answer, Body};
pub use streams::{Delivery, Progress, SlotKey, StreamIds};
pub use waiters::{Ticket, Turn, Waiters};

use self::negotiate::HAS_EARLY_REQUESTS;
use crate::error::{Applied, LinkError, LinkErrorKind};
use crate::error::{Error, ErrorKind, LimitField, PeerMisbehaved, TimeoutKind};
use crate::time::{Instant, micros};
use crate::wire::response::{ErrorCode, Extras, ServerError};
use crate::wire::{
    Compression, Dialect, EncodeError, Flags, FrameHeader, Opcode, ProtocolVersion, Reader,
    check_request_len, compress_frame, finish_frame, patch_stream,
};

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Requests under way at once, orphans included.
    pub in_flight: u16,
    /// Callers that may wait for a free stream id; a request that finds all queues full fails as
    /// [`Busy`](ErrorKind::Busy).
    pub waiting: usize,
    /// Bytes that may wait for the link. A single request larger than this is still taken when
    /// nothing else waits.
    pub pending_bytes: usize,
    /// Longest body of a request; a longer one is refused before its first byte. Servers take no
    /// more than 256 MiB.
    pub request_len_max: u32,
    /// Requests given up whose answer has not come for longer than `orphan_age`. With more of
    /// them, or when they hold more than three quarters of all ids, the connection is given up.
    pub orphans: u16,
    /// See `orphans`.
    pub orphan_age: Duration,
    /// An OPTIONS request is sent when nothing was heard for this long.
    pub heartbeat_interval: Duration,
    /// How long its answer may take.
    pub heartbeat_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            in_flight: 2048,
            waiting: 4096,
            pending_bytes: 16 << 20,
            request_len_max: 256 << 20,
            orphans: 1024,
            orphan_age: Duration::from_secs(1),
            heartbeat_interval: Duration::from_secs(30),
            heartbeat_timeout: Duration::from_secs(10),
        }
    }
}

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

    /// Takes a request: reserves a stream id and appends the frame to the output. `body` writes
    /// the body; if it fails nothing was written and the id is free again.
    pub fn submit<E: From<EncodeError>>(
        &mut self,
        caller: S,
        give_up_at: Instant,
        request: RequestHead,
        body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<SlotKey, Refused<S, E>> {
        if let Some(error) = &self.over {
            return Err(Refused::Closed(caller, error.clone()));
        }
        if self.draining {
            return Err(Refused::Closed(caller, closed_by_us()));
        }
        if self.room() <= self.granted() {
            return Err(Refused::Full(caller));
        }
        self.put(caller, give_up_at, request, body)
    }

    /// Takes the request of a waiter whose turn has come (see [`Connection::poll_turn`]), and its
    /// grant with it, in one step. If it fails the grant is gone: [`Connection::pass_on`].
    pub fn submit_granted<E: From<EncodeError>>(
        &mut self,
        ticket: Ticket,
        caller: S,
        give_up_at: Instant,
        request: RequestHead,
        body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<SlotKey, Refused<S, E>> {
        match &self.over {
            Some(error) => Err(Refused::Closed(caller, error.clone())),
            None if self.waiters.take(ticket) => self.put(caller, give_up_at, request, body),
            None => Err(Refused::Full(caller)),
        }
    }

    /// A grant was not used: the next waiter gets it.
    pub fn pass_on(&mut self, mut tell: impl FnMut(S)) {
        self.grant(&mut tell);
    }

    fn put<E: From<EncodeError>>(
        &mut self,
        caller: S,
        give_up_at: Instant,
        request: RequestHead,
        body: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<SlotKey, Refused<S, E>> {
        if self.streams.available() == 0 {
            return Err(Refused::Full(caller));
        }
        let before = self.output.len();
        let header = FrameHeader {
            version: self.version,
            flags: request.flags,
            stream: 0,
            opcode: request.opcode,
            body_len: 0,
        };
        let max = self.limits.request_len_max;
        // A header alone cannot fail.
        let head = header.put_request(&mut self.output).map_err(E::from);
        let written = head
            .and_then(|()| body(&mut self.output))
            .and_then(|()| Ok(finish_frame(&mut self.output, before, max)?));
        match written {
            Ok(()) => self
                .commit(caller, give_up_at, before)
                .map_err(Refused::Full),
            Err(error) => {
                self.output.truncate(before);
                Err(Refused::Encode(caller, error))
            }
        }
    }

    /// The same for a body that is there already, in parts.
    pub fn submit_parts(
        &mut self,
        caller: S,
        give_up_at: Instant,
        request: RequestHead,
        parts: &[&[u8]],
    ) -> Result<SlotKey, Refused<S, EncodeError>> {
        if let Some(error) = &self.over {
            return Err(Refused::Closed(caller, error.clone()));
        }
        if !self.has_room() {
            return Err(Refused::Full(caller));
        }
        let len = parts
            .iter()
            .fold(0_usize, |len, part| len.saturating_add(part.len()));
        let header = |stream: u16, body_len: u32| FrameHeader {
            version: self.version,
            flags: request.flags,
            stream: i16::try_from(stream).unwrap_or(i16::MAX),
            opcode: request.opcode,
            body_len,
        };
        let body_len = match check_request_len(len, self.limits.request_len_max) {
            Ok(len) => len,
            Err(error) => return Err(Refused::Encode(caller, error)),
        };
        let owner = Owner::Caller(caller);
        let Some(key) = self.streams.allocate(owner, self.queued, give_up_at) else {
            return Err(Refused::Full(S::default()));
        };
        let before = self.output.len();
        let header = header(key.stream_id(), body_len).request_bytes();
        self.output.reserve(len.saturating_add(header.len()));
        self.output.put_slice(&header);
        for part in parts {
            self.output.put_slice(part);
        }
        if let Some(compression) = self.compression {
            compress_frame(compression, &mut self.output, before);
        }
        self.count_queued(before);
        Ok(key)
    }

    /// Whether a request would be taken now.
    pub fn has_room(&self) -> bool {
        self.over.is_none() && !self.draining && self.room() > self.granted()
    }

    /// The frame that begins at `before` is whole: it gets its stream id. That comes after the body: a
    /// body that cannot be written must not cost one.
    #[cfg_attr(not(target_pointer_width = "32"), inline(always))]
    fn commit(&mut self, caller: S, give_up_at: Instant, before: usize) -> Result<SlotKey, S> {
        if let Some(compression) = self.compression {
            compress_frame(compression, &mut self.output, before);
        }
        let owner = Owner::Caller(caller);
        let Some(key) = self.streams.allocate(owner, self.queued, give_up_at) else {
            self.output.truncate(before);
            return Err(S::default());
        };
        let stream = i16::try_from(key.stream_id()).unwrap_or(i16::MAX);
        patch_stream(&mut self.output, before, stream);
        self.count_queued(before);
        Ok(key)
    }

    /// What stands behind `before` in the output is on its way.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline(always))]
    fn count_queued(&mut self, before: usize) {
        let len = self.output.len().saturating_sub(before);
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        self.queued = self.queued.saturating_add(len);
    }

    /// Joins the queue for a stream id. Gives the caller's part back when the queue is full. If
    /// there is room by now the grant comes at once: the caller is told like any other.
    pub fn wait(
        &mut self,
        caller: S,
        give_up_at: Instant,
        mut tell: impl FnMut(S),
    ) -> Result<Ticket, (S, Error)> {
        if let Some(error) = &self.over {
            return Err((caller, error.clone()));
        }
        if self.draining {
            return Err((caller, closed_by_us()));
        }
        if !WAITING {
            return Err((caller, Error::new(ErrorKind::Busy)));
        }
        match self.waiters.join(caller, give_up_at) {
            Ok(ticket) => {
                self.grant(&mut tell);
                Ok(ticket)
            }
            Err(caller) => Err((caller, Error::new(ErrorKind::Busy))),
        }
    }

    /// A request was sent beside the handshake: if it was refused as too early, its outcome is
    /// dropped and the caller joins the queue instead, also of a connection that takes no more
    /// requests, for this one it has taken. `None` if there is no such outcome, or no room.
    pub fn wait_again(
        &mut self,
        key: SlotKey,
        caller: S,
        give_up_at: Instant,
        mut tell: impl FnMut(S),
    ) -> Option<Ticket> {
        let answer = self.streams.answered(key)?;
        if self.over.is_some() || !is_refusal_of_early(self.version, answer) {
            return None;
        }
        let ticket = self.waiters.join(caller, give_up_at).ok()?;
        let _refusal = self.streams.poll(key);
        self.grant(&mut tell);
        Some(ticket)
    }

    /// How it stands with a waiter.
    pub fn poll_turn(&mut self, ticket: Ticket) -> Result<Turn<'_, S>, Error> {
        match &self.over {
            Some(error) => Err(error.clone()),
            None => Ok(self.waiters.poll(ticket)),
        }
    }

    /// A waiter gives up its place; a grant it held passes to the next one.
    pub fn leave(&mut self, ticket: Ticket, mut tell: impl FnMut(S)) -> Option<S> {
        let caller = self.waiters.leave(ticket);
        self.grant(&mut tell);
        caller
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

    /// Does what is due at `now`: gives up late requests and waiters, sends a heartbeat. An error
    /// means that the connection cannot go on.
    pub fn handle_timeout(&mut self, now: Instant, mut tell: impl FnMut(S)) -> Result<(), Error> {
        let mut heartbeat_late = false;
        self.streams.expire(now, |owner| match owner {
            Owner::Caller(caller) => tell(caller),
            Owner::Heartbeat => heartbeat_late = true,
        });
        if WAITING {
            self.waiters
                .expire(now, |caller| tell(core::mem::take(caller)));
            self.grant(&mut tell);
        }
        if HAS_EARLY_REQUESTS && now >= self.repeats_until {
            self.repeats_until = Instant::ZERO;
        }
        if heartbeat_late {
            return Err(Error::new(ErrorKind::Timeout(TimeoutKind::Heartbeat)));
        }
        self.check_orphans(now)?;
        if self.over.is_none() && self.heartbeat.is_none() && now >= self.heartbeat_due() {
            self.put_heartbeat(now);
        }
        Ok(())
    }

    /// Many orphans are normal for a moment; old ones mean that the node has lost requests, and
    /// their ids with them.
    fn check_orphans(&mut self, now: Instant) -> Result<(), Error> {
        let max = self.orphans_max();
        if now >= self.orphans_due {
            let limit = now.saturating_sub(self.limits.orphan_age);
            if self.streams.orphans_older_than(limit) > usize::from(max) {
                return Err(Error::new(ErrorKind::Limit(LimitField::Orphans)));
            }
            self.orphans_due = Instant::FAR_FUTURE;
        }
        self.watch_orphans(now);
        Ok(())
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn watch_orphans(&mut self, now: Instant) {
        if self.streams.orphans() > self.orphans_max() && self.orphans_due == Instant::FAR_FUTURE {
            // One microsecond more, so that they are older than the limit then.
            let age = self
                .limits
                .orphan_age
                .saturating_add(Duration::from_micros(1));
            self.orphans_due = now.saturating_add(age);
        }
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn orphans_max(&self) -> u16 {
        let ids = self.limits.in_flight;
        self.limits.orphans.min(ids.saturating_sub(ids.div_ceil(4)))
    }

    fn put_heartbeat(&mut self, now: Instant) {
        let give_up_at = now.saturating_add(self.limits.heartbeat_timeout);
        // An id that was granted belongs to its waiter.
        let key = if self.streams.available() > self.granted() {
            self.streams
                .allocate(Owner::Heartbeat, self.queued, give_up_at)
        } else {
            None
        };
        let Some(key) = key else {
            // All ids are taken: the deadlines of those requests will tell.
            self.heard_at = now;
            return;
        };
        let header = FrameHeader {
            version: self.version,
            flags: Flags::NONE,
            stream: i16::try_from(key.stream_id()).unwrap_or(i16::MAX),
            opcode: Opcode::Options,
            body_len: 0,
        };
        let before = self.output.len();
        if header.put_request(&mut self.output).is_ok() {
            self.count_queued(before);
            self.heartbeat = Some(key);
        }
    }

    const fn heartbeat_due(&self) -> Instant {
        let due = self.heard_at.as_micros();
        Instant::from_micros(due.saturating_add(self.heartbeat_micros))
    }

    /// When [`Connection::handle_timeout`] wants to be called next; may be early, never late.
    pub fn poll_timeout(&self) -> Instant {
        if self.over.is_some() {
            return Instant::FAR_FUTURE;
        }
        let heartbeat = match self.heartbeat {
            Some(_) => Instant::FAR_FUTURE,
            None => self.heartbeat_due(),
        };
        let repeats = match self.repeats_until {
            until if HAS_EARLY_REQUESTS && self.draining && until > Instant::ZERO => until,
            _ => Instant::FAR_FUTURE,
        };
        let mut callers = self.streams.earliest();
        if WAITING {
            callers = callers.min(self.waiters.earliest());
        }
        callers.min(heartbeat).min(self.orphans_due).min(repeats)
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

    /// Takes no more requests; those under way finish.
    pub const fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether a drained connection has nothing left to do. Outcomes that were not taken yet can
    /// be taken when it is over as well.
    pub fn is_drained(&self) -> bool {
        self.draining
            && self.output.is_empty()
            && self.waiters.is_empty()
            && !self.streams.any_pending()
            && !self.awaits_repeats()
    }

    /// Whether a caller whose request was refused as too early has not come again yet.
    fn awaits_repeats(&self) -> bool {
        let version = self.version;
        HAS_EARLY_REQUESTS
            && self.repeats_until > Instant::ZERO
            && self
                .streams
                .any_answered(|answer| is_refusal_of_early(version, answer))
    }

    /// Takes no new request until [`Connection::release`]; they may wait.
    pub const fn hold(&mut self) {
        self.was_held = true;
        self.is_held = true;
    }

    /// Requests are taken again.
    pub fn release(&mut self, mut tell: impl FnMut(S)) {
        self.is_held = false;
        self.grant(&mut tell);
    }

    /// The node refused the connection in its handshake, so it has done nothing of what was sent.
    /// All requests fail with the cause.
    pub fn refuse(&mut self, error: &Error, tell: impl FnMut(S)) {
        let error = error.clone().with_applied(Applied::No);
        self.end(&error, Applied::No, tell);
    }

    /// The connection is over. Requests that were partly written may have been applied, the
    /// others were not. Their error is that of a broken link, whatever the cause: a limit or an
    /// error of the server that ended the connection was not about them, and they may be tried
    /// elsewhere under the rules of lost requests.
    pub fn close(&mut self, error: &Error, tell: impl FnMut(S)) {
        self.end(&lost(error), Applied::Unknown, tell);
    }

    /// What was partly written is marked as `written`.
    fn end(&mut self, error: &Error, written: Applied, mut tell: impl FnMut(S)) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(error.clone());
        let fail = |partly: bool| {
            let applied = if partly { written } else { Applied::No };
            error.clone().with_applied(applied)
        };
        self.streams.fail_all(self.written, fail, |owner| {
            if let Owner::Caller(caller) = owner {
                tell(caller);
            }
        });
        if WAITING {
            self.waiters.fail_all(tell);
        }
        self.output = BytesMut::new();
    }

    /// Why the connection is over, if it is.
    pub const fn over(&self) -> Option<&Error> {
        self.over.as_ref()
    }

    /// Stream ids in use: requests under way, outcomes not taken yet, and orphans.
    pub const fn in_use(&self) -> u16 {
        self.streams.in_use()
    }

    /// Stream ids reserved for late answers.
    pub const fn orphans(&self) -> u16 {
        self.streams.orphans()
    }

    fn grant(&mut self, tell: &mut dyn FnMut(S)) {
        if WAITING {
            let room = self.room();
            self.waiters
                .grant(room, |caller| tell(core::mem::take(caller)));
        }
    }

    /// Ids that belong to waiters.
    const fn granted(&self) -> u16 {
        match WAITING {
            true => self.waiters.granted(),
            false => 0,
        }
    }

    /// How many more requests may be taken, grants included.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn room(&self) -> u16 {
        let pending = self.output.len();
        if self.is_held || (pending > 0 && pending >= self.limits.pending_bytes) {
            return 0;
        }
        self.streams.available()
    }
}

/// The same for an answer that was not read yet.
#[cold]
#[inline(never)]
fn is_refusal_of_early(version: ProtocolVersion, answer: &Answer) -> bool {
    if answer.opcode != Opcode::Error {
        return false;
    }
    let mut reader = Reader::new(answer.body.as_slice());
    let error = Extras::parse(answer.flags, &mut reader)
        .and_then(|_extras| ServerError::parse(&Dialect::plain(version), &mut reader));
    error.is_ok_and(|error| is_too_early(&Error::from_server(error)))
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

/// What requests learn of the end of their connection. Nothing of them was written, unless the
/// error is marked otherwise.
fn lost(cause: &Error) -> Error {
    let error = match cause.kind() {
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_) => cause.clone(),
        _ => {
            let kind = ErrorKind::Link(LinkError::new(LinkErrorKind::ClosedByUs));
            Error::caused_by(kind, cause.clone())
        }
    };
    error.with_applied(Applied::No)
}

/// What a node says about the whole connection before it closes it.
fn connection_error(version: ProtocolVersion, body: &[u8]) -> Error {
    match ServerError::parse(&Dialect::plain(version), &mut Reader::new(body)) {
        Ok(error) => Error::from_server(error),
        Err(_) => PeerMisbehaved::MalformedBody.into(),
    }
}

fn closed_by_us() -> Error {
    Error::new(ErrorKind::Link(LinkError::new(LinkErrorKind::ClosedByUs)))
}

/// The stream id of events.
const EVENT_STREAM: i16 = -1;

/// The stream id of errors that concern the whole connection; never given to a request.
const CONNECTION_STREAM: i16 = 0;

/// Answers to nobody's request that are dropped before the connection is given up.
const STRAYS_MAX: u32 = 64;
