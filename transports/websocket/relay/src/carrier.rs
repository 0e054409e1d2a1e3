//! The client's side of all channels of one WebSocket, in either form of the tunnel: multiplexed,
//! or the plain stream of one connection. Channels are the same for both. Pure.

use bytes::{Buf, BytesMut};
use messina_websocket::tunnel::{self, ChannelId, Progress, Reason, Tunnel, Violation, Wish};

use crate::limits::Limits;

/// A channel within its WebSocket; none in the plain form, which has only one.
pub(crate) type Id = Option<ChannelId>;

/// A channel that the client asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: Id,
    pub(crate) target: String,
    pub(crate) wish: Wish,
}

/// Either form.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// With the bound of its output.
    Mux(Box<Tunnel>, usize),
    Plain(Box<Plain>),
}

/// One connection's bytes.
#[derive(Debug)]
pub(crate) struct Plain {
    asked: Option<(String, Wish)>,
    incoming: BytesMut,
    incoming_max: usize,
    output: BytesMut,
    output_max: usize,
    /// The node has finished; the WebSocket closes behind the last byte.
    is_finished: bool,
    ended: Option<(Reason, String)>,
    is_changed: bool,
    /// A write took nothing.
    is_blocked: bool,
}

impl Carrier {
    pub(crate) fn mux(limits: &Limits) -> Self {
        let mut bounds = tunnel::Limits::relay();
        bounds.channels_max = limits.channels_max;
        bounds.window = limits.window;
        bounds.output_max = limits.output_max;
        Self::Mux(Box::new(Tunnel::relay(bounds)), limits.output_max)
    }

    pub(crate) fn plain(target: String, wish: Wish, limits: &Limits) -> Self {
        Self::Plain(Box::new(Plain {
            asked: Some((target, wish)),
            incoming: BytesMut::new(),
            incoming_max: usize::try_from(limits.window).unwrap_or(usize::MAX),
            output: BytesMut::new(),
            output_max: limits.output_max,
            is_finished: false,
            ended: None,
            is_changed: false,
            is_blocked: false,
        }))
    }

    /// Whether another message may be read.
    pub(crate) fn wants_input(&self) -> bool {
        match self {
            Self::Mux(tunnel, _) => tunnel.wants_input(),
            Self::Plain(plain) => plain.incoming.len() < plain.incoming_max,
        }
    }

    /// Takes a message.
    pub(crate) fn handle_input(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        match self {
            Self::Mux(tunnel, _) => tunnel.handle_input(bytes),
            Self::Plain(plain) => {
                if plain.ended.is_none() {
                    plain.incoming.extend_from_slice(bytes);
                    plain.is_changed = true;
                }
                Ok(())
            }
        }
    }

    /// The client has closed the WebSocket, or it was lost.
    pub(crate) fn handle_lost(&mut self) {
        match self {
            Self::Mux(tunnel, _) => tunnel.handle_lost(),
            Self::Plain(plain) => plain.end(Reason::Lost, ""),
        }
    }

    /// Bytes of the next message.
    pub(crate) fn poll_output(&mut self, max: usize) -> Option<BytesMut> {
        match self {
            Self::Mux(tunnel, _) => tunnel.poll_output(max),
            Self::Plain(plain) if plain.output.is_empty() => None,
            Self::Plain(plain) => {
                let len = plain.output.len().min(max);
                let taken = plain.output.split_to(len);
                plain.is_changed |= core::mem::take(&mut plain.is_blocked);
                Some(taken)
            }
        }
    }

    /// Whether data of any channel would be taken, as far as its credit goes.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Mux(tunnel, output_max) => tunnel.output_len() < *output_max,
            Self::Plain(plain) => plain.output.len() < plain.output_max,
        }
    }

    pub(crate) fn has_output(&self) -> bool {
        match self {
            Self::Mux(tunnel, _) => tunnel.output_len() > 0,
            Self::Plain(plain) => !plain.output.is_empty(),
        }
    }

    /// A channel about which something is new.
    pub(crate) fn poll_changed(&mut self) -> Option<Id> {
        match self {
            Self::Mux(tunnel, _) => tunnel.poll_changed().map(Some),
            Self::Plain(plain) => core::mem::take(&mut plain.is_changed).then_some(None),
        }
    }

    pub(crate) fn poll_asked(&mut self) -> Option<Asked> {
        match self {
            Self::Mux(tunnel, _) => tunnel.poll_opening().map(|opening| Asked {
                id: Some(opening.channel),
                target: opening.target,
                wish: opening.wish,
            }),
            Self::Plain(plain) => plain.asked.take().map(|(target, wish)| Asked {
                id: None,
                target,
                wish,
            }),
        }
    }

    /// No new channels; the client hears of it where the form has a word for that.
    pub(crate) fn drain(&mut self) {
        if let Self::Mux(tunnel, _) = self {
            tunnel.drain();
        }
    }

    /// The plain form only: why the WebSocket is to be closed, once everything was sent.
    pub(crate) fn end(&self) -> Option<(Reason, &str)> {
        match self {
            Self::Mux(..) => None,
            Self::Plain(plain) if !plain.output.is_empty() => None,
            Self::Plain(plain) => match &plain.ended {
                Some((reason, text)) => Some((*reason, text)),
                None => plain.is_finished.then_some((Reason::Abandoned, "")),
            },
        }
    }

    // One channel.

    /// Whether the client has closed it, or is gone.
    pub(crate) fn is_closed(&self, id: Id) -> bool {
        match (self, id) {
            (Self::Mux(tunnel, _), Some(id)) => {
                matches!(tunnel.progress(id), Progress::Closed(_))
            }
            (Self::Plain(plain), _) => plain.ended.is_some(),
            (Self::Mux(..), None) => true,
        }
    }

    /// It leads somewhere; the port it comes from.
    pub(crate) fn accept(&mut self, id: Id, port: u16) {
        if let (Self::Mux(tunnel, _), Some(id)) = (self, id) {
            tunnel.accept(id, port);
        }
    }

    /// Reads into a buffer: by exchange if that is empty, else as many bytes as it has room for.
    /// `Ok(Some(0))`: the client has finished.
    pub(crate) fn read(&mut self, id: Id, into: &mut BytesMut) -> Result<Option<usize>, Reason> {
        match (self, id) {
            (Self::Mux(tunnel, _), Some(id)) => tunnel.read(id, into),
            (Self::Plain(plain), _) => plain.read(into),
            (Self::Mux(..), None) => Err(Reason::Abandoned),
        }
    }

    /// Takes some of the bytes; `None`: none now, and a change is told when that is over.
    pub(crate) fn write(&mut self, id: Id, bytes: &[u8]) -> Result<Option<usize>, Reason> {
        match (self, id) {
            (Self::Mux(tunnel, _), Some(id)) => tunnel.write(id, bytes),
            (Self::Plain(plain), _) => plain.write(bytes),
            (Self::Mux(..), None) => Err(Reason::Abandoned),
        }
    }

    /// Nothing more comes from the node.
    pub(crate) fn finish(&mut self, id: Id) {
        match (self, id) {
            (Self::Mux(tunnel, _), Some(id)) => tunnel.finish(id),
            (Self::Plain(plain), _) => plain.is_finished = true,
            (Self::Mux(..), None) => {}
        }
    }

    /// It is over; the client hears why.
    pub(crate) fn close(&mut self, id: Id, reason: Reason, text: &str) {
        match (self, id) {
            (Self::Mux(tunnel, _), Some(id)) => {
                tunnel.close(id, reason, text);
                tunnel.release(id);
            }
            (Self::Plain(plain), _) => plain.end(reason, text),
            (Self::Mux(..), None) => {}
        }
    }
}

impl Plain {
    fn read(&mut self, into: &mut BytesMut) -> Result<Option<usize>, Reason> {
        if self.incoming.is_empty() {
            return match &self.ended {
                Some((reason, _)) => Err(*reason),
                None => Ok(None),
            };
        }
        if into.is_empty() {
            core::mem::swap(into, &mut self.incoming);
            return Ok(Some(into.len()));
        }
        let len = self.incoming.len().min(into.capacity() - into.len());
        into.extend_from_slice(&self.incoming[..len]);
        self.incoming.advance(len);
        Ok(Some(len))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Option<usize>, Reason> {
        if let Some((reason, _)) = &self.ended {
            return Err(*reason);
        }
        let room = self.output_max.saturating_sub(self.output.len());
        let len = bytes.len().min(room);
        if len == 0 {
            self.is_blocked = true;
            return Ok(None);
        }
        self.output.extend_from_slice(&bytes[..len]);
        Ok(Some(len))
    }

    fn end(&mut self, reason: Reason, text: &str) {
        if self.ended.is_none() {
            self.ended = Some((reason, text.to_owned()));
            self.is_changed = true;
        }
    }
}
