//! Requests on their way into a connection: taken, or in the queue for a stream id.

use bytes::{BufMut as _, BytesMut};

use super::ending::closed_by_us;
use super::{Answer, Connection, Owner, Refused, RequestHead, SlotKey, Ticket, Turn, is_too_early};
use crate::error::{Error, ErrorKind};
use crate::time::Instant;
use crate::wire::response::{Extras, ServerError};
use crate::wire::{
    Dialect, EncodeError, FrameHeader, Opcode, ProtocolVersion, Reader, check_request_len,
    compress_frame, finish_frame, patch_stream,
};

impl<S: Default, const WAITING: bool> Connection<S, WAITING> {
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
        let body_len = match check_request_len(len, self.limits.request_len_max) {
            Ok(len) => len,
            Err(error) => return Err(Refused::Encode(caller, error)),
        };
        let owner = Owner::Caller(caller);
        let Some(key) = self.streams.allocate(owner, self.queued, give_up_at) else {
            return Err(Refused::Full(S::default()));
        };
        let before = self.output.len();
        let header = FrameHeader {
            version: self.version,
            flags: request.flags,
            stream: i16::try_from(key.stream_id()).unwrap_or(i16::MAX),
            opcode: request.opcode,
            body_len,
        };
        let header = header.request_bytes();
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
    pub(super) fn count_queued(&mut self, before: usize) {
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

    pub(super) fn grant(&mut self, tell: &mut dyn FnMut(S)) {
        if WAITING {
            let room = self.room();
            self.waiters
                .grant(room, |caller| tell(core::mem::take(caller)));
        }
    }

    /// Ids that belong to waiters.
    pub(super) const fn granted(&self) -> u16 {
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

/// Whether an answer refuses a request because the login is not over yet.
#[cold]
#[inline(never)]
pub(super) fn is_refusal_of_early(version: ProtocolVersion, answer: &Answer) -> bool {
    if answer.opcode != Opcode::Error {
        return false;
    }
    let mut reader = Reader::new(answer.body.as_slice());
    let error = Extras::parse(answer.flags, &mut reader)
        .and_then(|_extras| ServerError::parse(&Dialect::plain(version), &mut reader));
    error.is_ok_and(|error| is_too_early(&Error::from_server(error)))
}
