//! One link: its handshake, the frames that come, the bytes that go.

use alloc::vec::Vec;

use bytes::{Buf as _, Bytes, BytesMut};
use messina_core::Shared;
use messina_core::config::Config;
use messina_core::conn::Connection;
use messina_core::conn::extensions::Agreed;
use messina_core::conn::framer::{Cut, Framer, FramerError};
use messina_core::conn::negotiate::{HANDSHAKE_STREAM, HandshakeConfig, Negotiation};
use messina_core::error::{Error, ErrorKind, LimitField, LinkError, PeerMisbehaved, TimeoutKind};
use messina_core::time::Instant;
use messina_core::wire::{FrameHeader, Opcode};

use crate::message::Effect;
use crate::outbox::Outbox;

/// A link from the wish for it to its end.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u32,
    /// Its contact point.
    pub(super) point: usize,
    /// When the handshake has to be over.
    deadline: Instant,
    is_open: bool,
    /// What the shell said of its end.
    ended: Option<LinkError>,
    framer: Framer,
    input: BytesMut,
    header: Option<FrameHeader>,
    body: Bytes,
    negotiation: Option<Negotiation>,
    /// There once requests are taken.
    pub(super) connection: Option<Connection<u32>>,
    pub(super) agreed: Option<Agreed>,
    output: BytesMut,
    /// Bytes in front of the output that are no request's.
    handshake_len: usize,
    /// Bytes that the shell has and the network has not taken yet.
    unsent: usize,
    waits_for_room: bool,
}

impl Link {
    pub(super) fn new(number: u32, point: usize, config: &Config, deadline: Instant) -> Self {
        Self {
            number,
            point,
            deadline,
            is_open: false,
            ended: None,
            framer: Framer::new(config.limits.frame),
            input: BytesMut::new(),
            header: None,
            body: Bytes::new(),
            negotiation: None,
            connection: None,
            agreed: None,
            output: BytesMut::new(),
            handshake_len: 0,
            unsent: 0,
            waits_for_room: false,
        }
    }

    /// It is open: the handshake begins.
    pub(super) fn handle_opened(&mut self, handshake: &Shared<HandshakeConfig>) {
        if self.is_open {
            return;
        }
        self.is_open = true;
        // A request that cannot be written ends the link by its deadline.
        self.negotiation = Negotiation::start(handshake.clone(), &mut self.output).ok();
    }

    pub(super) fn handle_ended(&mut self, error: LinkError) {
        self.ended.get_or_insert(error);
    }

    pub(super) fn handle_bytes(&mut self, bytes: BytesMut) {
        if self.input.is_empty() {
            self.input = bytes;
        } else {
            self.input.extend_from_slice(&bytes);
        }
    }

    /// The network has taken bytes; whether others waited for that.
    pub(super) const fn handle_sent(&mut self, len: usize) -> bool {
        self.unsent = self.unsent.saturating_sub(len);
        core::mem::replace(&mut self.waits_for_room, false)
    }

    /// Whether the handshake goes on, be it beside requests.
    pub(super) const fn is_in_handshake(&self) -> bool {
        self.agreed.is_none() || self.negotiation.is_some()
    }

    /// Does what bytes and time ask for; requests to be looked at are `told`. After an error it is
    /// of no use.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        config: &Config,
        told: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if self.is_in_handshake() && now >= self.deadline {
            return Err(Error::new(ErrorKind::Timeout(if self.is_open {
                TimeoutKind::Handshake
            } else {
                TimeoutKind::Connect
            })));
        }
        loop {
            let cut = match self.framer.poll_cut(&mut self.input) {
                Ok(Some(cut)) => cut,
                Ok(None) => break,
                Err(error) => return Err(self.broken_stream(&error, told)),
            };
            match cut {
                Cut::Start(header) => self.header = Some(header),
                Cut::Piece(bytes) => self.body = bytes,
                Cut::End => {
                    let body = core::mem::take(&mut self.body);
                    if let Some(header) = self.header.take() {
                        self.handle_frame(&header, body, now, config, told)?;
                    }
                }
                // Nothing is skipped: frames are within the limit or end the link.
                _ => return Err(PeerMisbehaved::MalformedBody.into()),
            }
        }
        if let Some(connection) = &mut self.connection
            && connection.poll_timeout() <= now
        {
            connection.handle_timeout(now, |caller| told.push(caller))?;
        }
        match self.ended {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// The request whose answer is too long fails with a cause of its own.
    fn broken_stream(&mut self, error: &FramerError, told: &mut Vec<u32>) -> Error {
        match error {
            FramerError::TooLong(header) => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_too_long(header, |caller| told.push(caller));
                }
                Error::new(ErrorKind::Limit(LimitField::FrameLen))
            }
            _ => PeerMisbehaved::BadHeader.into(),
        }
    }

    fn handle_frame(
        &mut self,
        header: &FrameHeader,
        body: Bytes,
        now: Instant,
        config: &Config,
        told: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let mut tell = |caller| told.push(caller);
        if let Some(negotiation) = &mut self.negotiation {
            match &mut self.connection {
                // A request was refused beside the handshake: the next ones wait for its end.
                Some(connection) if header.stream != HANDSHAKE_STREAM => {
                    if header.opcode == Opcode::Error {
                        connection.hold();
                    }
                }
                connection => {
                    let done = negotiation.advance(header, &body, &mut self.output)?;
                    let may_begin = done.or_else(|| negotiation.early());
                    match (connection, may_begin) {
                        (Some(connection), _) if done.is_some() => connection.release(&mut tell),
                        (Some(connection), _) => connection.hold(),
                        (None, Some(agreed)) => {
                            let limits = config.limits.connection;
                            self.connection = Some(Connection::new(agreed.version, limits, now));
                            self.agreed = Some(agreed);
                            self.handshake_len = self.output.len();
                        }
                        (None, None) => {}
                    }
                    if done.is_some() {
                        self.negotiation = None;
                    }
                    return Ok(());
                }
            }
        }
        match &mut self.connection {
            Some(connection) => connection.handle_frame(now, header, body, tell).map(|_| ()),
            None => Err(PeerMisbehaved::UnexpectedFrame.into()),
        }
    }

    /// Ends the requests under way, which are told; they are to be looked at before it is dropped.
    pub(super) fn fail(&mut self, error: &Error, told: &mut Vec<u32>) {
        let is_refused = self.negotiation.is_some()
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

    /// Hands bytes to the shell, as many as may be under way.
    pub(super) fn put_output(&mut self, outbox: &mut Outbox) {
        loop {
            if self.output.is_empty()
                && let Some(connection) = &mut self.connection
            {
                // Nobody waits in the connection's own queue.
                connection.swap_output(&mut self.output, |_| ());
            }
            if self.output.is_empty() {
                return;
            }
            let len = UNSENT_MAX
                .saturating_sub(self.unsent)
                .min(self.output.len());
            if len == 0 {
                self.waits_for_room = true;
                return;
            }
            outbox.put(Effect::Send, self.number);
            outbox.put_bytes(self.output.get(..len).unwrap_or_default());
            self.output.advance(len);
            self.unsent = self.unsent.saturating_add(len);
            let of_handshake = self.handshake_len.min(len);
            self.handshake_len = self.handshake_len.saturating_sub(of_handshake);
            if let Some(connection) = &mut self.connection {
                connection.handle_written(len.saturating_sub(of_handshake));
            }
        }
    }

    /// Whether all was handed over.
    pub(super) fn is_idle(&self) -> bool {
        let connection = self.connection.as_ref();
        self.output.is_empty() && connection.is_none_or(|connection| !connection.has_output())
    }

    /// When it wants to be advanced at the latest.
    pub(super) fn next_at(&self) -> Instant {
        let handshake = match self.is_in_handshake() {
            true => self.deadline,
            false => Instant::FAR_FUTURE,
        };
        let connection = self.connection.as_ref().map(Connection::poll_timeout);
        connection.map_or(handshake, |at| at.min(handshake))
    }
}

/// Bytes of one link that wait for the network.
const UNSENT_MAX: usize = 256 << 10;
