//! One link: its handshake, the frames that come, the bytes that go.

use alloc::vec::Vec;

use bytes::{Buf as _, BytesMut};

use super::machine::HAS_KEYSPACES;
use crate::config::Limits;
use crate::conn::extensions::Agreed;
use crate::conn::framer::{BodyMode, Cut, Framer, FramerError};
use crate::conn::negotiate::{HANDSHAKE_STREAM, HAS_EARLY_REQUESTS, HandshakeConfig, Negotiation};
use crate::conn::{Body, Connection, Received, SlotKey};
use crate::error::{Error, ErrorKind, LimitField, LinkError, PeerMisbehaved, TimeoutKind};
use crate::sync::Local;
use crate::target::Endpoint;
use crate::time::Instant;
use crate::wire::{FrameHeader, Opcode};

/// A link from the wish for it to its end.
#[derive(Debug)]
// In this order: what is near the start is reached by shorter instructions.
#[repr(C)]
pub(super) struct Link {
    /// Whether it was seen that it is not one too many.
    pub(super) is_settled: bool,
    is_open: bool,
    is_skipping: bool,
    /// Its reader has no room: nothing is to be read.
    is_stalled: bool,
    /// The question for the keyspace was refused as too early.
    pub(super) is_asked_again: bool,
    /// The member that it leads to, once that is known.
    pub(super) member: Option<u16>,
    /// Its number in answers and errors, once it was told.
    pub(super) node: Option<u16>,
    /// The shard that was wished for.
    pub(super) wish: Option<u16>,
    /// It looks for a first connection, at this place; others belong to a member's pool.
    pub(super) walk: Option<u16>,
    pub(super) number: u32,
    pub(super) keyspace: Keyspace,
    /// Why it is of no use any more, though the link is whole.
    pub(super) failed: Option<Error>,
    /// Bytes that the platform has taken as a buffer and not written yet.
    lent: usize,
    /// Bytes in front of the output that are no request's.
    handshake_len: usize,
    /// The request whose body is being streamed, and whether nobody wants the rest.
    streamed: Option<u32>,
    header: Option<FrameHeader>,
    pub(super) input: BytesMut,
    output: BytesMut,
    /// Event bodies that nobody has looked at.
    pub(super) events: Vec<Body>,
    /// Statements below this number were given to its node, or need not be; the one that is now.
    pub(super) given: u32,
    pub(super) giving: Option<SlotKey>,
    /// There once requests are taken.
    pub(super) connection: Option<Connection<u32, false>>,
    pub(super) agreed: Option<Agreed>,
    negotiation: Option<Negotiation>,
    framer: Framer,
    /// When the handshake has to be over.
    deadline: Instant,
    /// When it was adopted.
    pub(super) since: Instant,
    pub(super) place: Endpoint,
    /// What the platform said of its end.
    ended: Option<LinkError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyspace {
    ToAsk,
    Asked(SlotKey),
    /// Or none is wanted: requests are taken.
    Set,
}

/// Who takes the pieces of streamed bodies.
pub(super) trait Pieces {
    /// A result begins, with these flags: whether its body is to come in pieces.
    fn begin(&mut self, request: u32, header: &FrameHeader) -> bool;
    /// Whether the next piece may come.
    fn has_room(&mut self, request: u32) -> bool;
    fn put(&mut self, request: u32, piece: BytesMut);
}

impl Link {
    pub(super) fn new(number: u32, place: Endpoint, limits: &Limits, deadline: Instant) -> Self {
        Self {
            number,
            place,
            walk: None,
            member: None,
            node: None,
            wish: None,
            is_settled: false,
            deadline,
            is_open: false,
            ended: None,
            failed: None,
            framer: Framer::new(limits.frame),
            input: BytesMut::new(),
            header: None,
            streamed: None,
            is_skipping: false,
            is_stalled: false,
            negotiation: None,
            connection: None,
            agreed: None,
            output: BytesMut::new(),
            lent: 0,
            handshake_len: 0,
            given: 0,
            giving: None,
            keyspace: Keyspace::Set,
            is_asked_again: false,
            since: Instant::ZERO,
            events: Vec::new(),
        }
    }

    /// It is open: the handshake begins.
    pub(super) fn handle_opened(&mut self, handshake: &Local<HandshakeConfig>) {
        if self.is_open {
            return;
        }
        self.is_open = true;
        let negotiation = self.negotiation.insert(Negotiation::new(handshake.clone()));
        // What cannot be written ends the link by its deadline.
        let _whatever = negotiation.begin(&mut self.output);
    }

    pub(super) fn handle_ended(&mut self, error: LinkError) {
        self.ended.get_or_insert(error);
    }

    /// Whether the handshake goes on, be it beside requests.
    pub(super) const fn is_in_handshake(&self) -> bool {
        self.agreed.is_none() || self.negotiation.is_some()
    }

    /// Whether it takes requests of the session.
    pub(super) fn serves(&self) -> bool {
        self.connection.is_some() && self.has_keyspace() && self.failed.is_none()
    }

    /// Whether its keyspace is set, or none is wanted.
    pub(super) fn has_keyspace(&self) -> bool {
        !HAS_KEYSPACES || self.keyspace == Keyspace::Set
    }

    /// The shard at its other end.
    pub(super) fn shard(&self) -> Option<u16> {
        Some(self.agreed.as_ref()?.shard()?.value())
    }

    /// Does what bytes and time ask for; requests to be looked at are `told`. After an error it is
    /// of no use.
    #[inline(never)]
    pub(super) fn advance(
        &mut self,
        now: Instant,
        limits: &Limits,
        pieces: &mut dyn Pieces,
        told: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.is_in_handshake() && now >= self.deadline {
            return Err(Error::new(ErrorKind::Timeout(if self.is_open {
                TimeoutKind::Handshake
            } else {
                TimeoutKind::Connect
            })));
        }
        self.read(now, limits, pieces, told)?;
        if let Some(connection) = &mut self.connection
            && connection.poll_timeout() <= now
        {
            connection.handle_timeout(now, |caller| told.push(caller))?;
        }
        match self.ended {
            // What has come is still of use, and may wait for its reader.
            Some(error) if !HAS_STREAMS || self.streamed.is_none() || self.input.is_empty() => {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn read(
        &mut self,
        now: Instant,
        limits: &Limits,
        pieces: &mut dyn Pieces,
        told: &mut Vec<u32>,
    ) -> Result<(), Error> {
        loop {
            self.is_stalled = false;
            if HAS_STREAMS
                && let Some(request) = self.streamed
                && !self.is_skipping
                && self.framer.body_left() > 0
            {
                self.is_skipping = !self.is_awaited(request);
                self.is_stalled = !self.is_skipping && !pieces.has_room(request);
                if self.is_stalled {
                    return Ok(());
                }
            }
            let cut = match self.framer.poll_cut(&mut self.input) {
                Ok(Some(cut)) => cut,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let too_long = match &error {
                        FramerError::TooLong(header) => Some(header),
                        _ => None,
                    };
                    return Err(self.broken_stream(too_long, told));
                }
            };
            match cut {
                Cut::Start(header) => {
                    if HAS_STREAMS {
                        self.begin_body(&header, pieces);
                    }
                    self.header = Some(header);
                }
                // Too long to be held, not to be streamed.
                Cut::TooLong(header) if HAS_STREAMS && self.begin_body(&header, pieces) => {
                    self.header = Some(header);
                }
                Cut::Piece(bytes) => {
                    self.hand_on(bytes, pieces);
                }
                Cut::End(body) => {
                    let body = self.hand_on(body, pieces);
                    self.streamed = None;
                    if let Some(header) = self.header.take() {
                        self.handle_frame(&header, body, now, limits, told)?;
                    }
                }
                Cut::TooLong(header) => {
                    if let Some(connection) = &mut self.connection {
                        connection.handle_too_long(&header, |caller| told.push(caller));
                    }
                }
            }
        }
    }

    /// Gives bytes of a streamed body to its reader, unless nobody wants the rest; others come back.
    fn hand_on(&self, bytes: BytesMut, pieces: &mut dyn Pieces) -> BytesMut {
        let Some(request) = self.streamed.filter(|_| HAS_STREAMS) else {
            return bytes;
        };
        if !self.is_skipping && !bytes.is_empty() {
            pieces.put(request, bytes);
        }
        BytesMut::new()
    }

    /// A result for a request that wants it in pieces is handed on as it comes.
    fn begin_body(&mut self, header: &FrameHeader, pieces: &mut dyn Pieces) -> bool {
        let caller = self.connection.as_ref().and_then(|connection| {
            let stream = u16::try_from(header.stream).ok()?;
            connection.caller_of(stream).copied()
        });
        if header.opcode == Opcode::Result
            && let Some(request) = caller
            && pieces.begin(request, header)
        {
            self.streamed = Some(request);
            self.is_skipping = false;
            self.framer.set_mode(BodyMode::Streaming);
            return true;
        }
        false
    }

    /// Whether the request that is being streamed was not given up since.
    fn is_awaited(&self, request: u32) -> bool {
        let stream = self.header.as_ref().map(|header| header.stream);
        let stream = stream.and_then(|stream| u16::try_from(stream).ok());
        let connection = self.connection.as_ref();
        connection
            .zip(stream)
            .and_then(|(connection, stream)| connection.caller_of(stream))
            == Some(&request)
    }

    /// The request whose answer is too long fails with a cause of its own.
    fn broken_stream(&mut self, too_long: Option<&FrameHeader>, told: &mut Vec<u32>) -> Error {
        let Some(header) = too_long else {
            return PeerMisbehaved::BadHeader.into();
        };
        if let Some(connection) = &mut self.connection {
            connection.handle_too_long(header, |caller| told.push(caller));
        }
        Error::new(ErrorKind::Limit(LimitField::FrameLen))
    }

    #[inline(never)]
    fn handle_frame(
        &mut self,
        header: &FrameHeader,
        body: BytesMut,
        now: Instant,
        limits: &Limits,
        told: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let mut tell = |caller| told.push(caller);
        if let Some(negotiation) = &mut self.negotiation {
            match &mut self.connection {
                // A request was refused beside the handshake: the next ones wait for its end.
                Some(connection) if HAS_EARLY_REQUESTS && header.stream != HANDSHAKE_STREAM => {
                    if header.opcode == Opcode::Error {
                        connection.hold();
                    }
                }
                connection => {
                    let is_done = negotiation.advance(header, &body, &mut self.output)?;
                    match connection {
                        Some(connection) if is_done => connection.release(&mut tell),
                        Some(connection) => connection.hold(),
                        None if is_done || negotiation.is_early() => {
                            let agreed = *negotiation.agreed();
                            let limits = limits.connection;
                            self.connection = Some(Connection::new(agreed.version, limits, now));
                            self.agreed = Some(agreed);
                            self.handshake_len = self.output.len();
                        }
                        None => {}
                    }
                    if is_done {
                        self.negotiation = None;
                    }
                    return Ok(());
                }
            }
        }
        let Some(connection) = &mut self.connection else {
            return Err(PeerMisbehaved::UnexpectedFrame.into());
        };
        let body = Body::new(body);
        if let Received::Event(body) = connection.handle_frame(now, header, body, tell)?
            && self.events.len() < EVENTS_MAX
        {
            self.events.push(body);
        }
        Ok(())
    }

    /// Ends the requests under way, which are told; they are to be looked at before it is dropped.
    pub(super) fn fail(&mut self, error: &Error, told: &mut Vec<u32>) {
        let is_refused = HAS_EARLY_REQUESTS
            && self.negotiation.is_some()
            && matches!(
                error.kind(),
                ErrorKind::Server(_) | ErrorKind::PeerIncompatible(_)
            );
        if let Some(connection) = &mut self.connection {
            let tell = |caller| told.push(caller);
            match is_refused {
                true => connection.refuse(error, tell),
                false => connection.close(error, tell),
            }
        }
    }

    /// What waits to be written.
    pub(super) fn output(&mut self) -> &[u8] {
        if self.output.is_empty()
            && let Some(connection) = &mut self.connection
            && connection.has_output()
        {
            // Nobody waits in the connection's own queue.
            connection.swap_output(&mut self.output, |_| ());
        }
        &self.output
    }

    pub(super) fn handle_written(&mut self, len: usize) {
        let len = len.min(self.output.len());
        self.output.advance(len);
        if self.output.is_empty() {
            // Its room is used again from the start.
            self.output.clear();
        }
        self.count_written(len);
    }

    /// Exchanges an empty buffer for the bytes that wait to be written.
    pub(super) fn swap_output(&mut self, empty: &mut BytesMut) {
        // Buffers go round only with bytes in them, so that a few requests have warmed all.
        if !self.output().is_empty() {
            core::mem::swap(&mut self.output, empty);
            self.lent = self.lent.saturating_add(empty.len());
        }
    }

    /// That many bytes of a buffer given by [`swap_output`](Self::swap_output) were taken.
    pub(super) fn handle_taken(&mut self, len: usize) {
        self.lent = self.lent.saturating_sub(len);
        self.count_written(len);
    }

    fn count_written(&mut self, len: usize) {
        let of_handshake = self.handshake_len.min(len);
        self.handshake_len = self.handshake_len.saturating_sub(of_handshake);
        if let Some(connection) = &mut self.connection {
            connection.handle_written(len.saturating_sub(of_handshake));
        }
    }

    /// Whether all was handed over.
    pub(super) fn is_idle(&self) -> bool {
        let connection = self.connection.as_ref();
        self.output.is_empty()
            && self.lent == 0
            && connection.is_none_or(|connection| !connection.has_output())
    }

    /// The buffer to read into, to be given back as `input`, and how much room it should have; `None`
    /// while nothing is to be read.
    pub(super) fn lend_input(&mut self, chunk: usize) -> Option<(BytesMut, usize)> {
        if self.is_stalled || self.ended.is_some() {
            return None;
        }
        let wanted = self.framer.wanted(&self.input, chunk);
        Some((core::mem::take(&mut self.input), wanted))
    }

    /// The request whose body comes next, and how much of it: a reader that waits may be given these
    /// bytes as they are read, past this link, which is told by [`pass`](Self::pass).
    pub(super) fn passing(&self) -> Option<(u32, usize)> {
        let request = self.streamed.filter(|_| HAS_STREAMS)?;
        let left = self.framer.body_left();
        let is_next = left > 0 && self.input.is_empty() && !self.is_skipping;
        (is_next && self.is_awaited(request)).then_some((request, left))
    }

    /// So many bytes of the body have come past the link, and then these, which are not of it; whether it
    /// has to look at that.
    pub(super) fn pass(&mut self, len: usize, behind: &[u8]) -> bool {
        self.framer.pass(len);
        self.input.extend_from_slice(behind);
        self.framer.body_left() == 0
    }

    /// When it wants to be advanced at the latest.
    pub(super) fn next_at(&self) -> Instant {
        match &self.connection {
            Some(connection) if HAS_EARLY_REQUESTS && self.is_in_handshake() => {
                self.deadline.min(connection.poll_timeout())
            }
            Some(connection) => connection.poll_timeout(),
            None => self.deadline,
        }
    }
}

/// Whether bodies can come in pieces.
const HAS_STREAMS: bool = cfg!(any(test, feature = "streams"));

/// Events of one connection that are kept until they are looked at; the state that they tell of is
/// read anew anyway.
const EVENTS_MAX: usize = 16;
