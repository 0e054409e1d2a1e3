//! One end of a tunnel (`cql.mux.v1`): many byte streams over one. Pure: bytes in, bytes out, no
//! clock, no waker. Client, relay and the WASM module use this same code.
//!
//! The byte stream is a row of frames: kind (u8), channel (u32, little endian as all numbers),
//! length of the payload (u16), payload.
//!
//! | kind | from | payload |
//! |---|---|---|
//! | 1 open | client | wish: 0 none, 1 shard (u8); shard (u16); number of shards (u16); then the target's text |
//! | 2 opened | relay | the source port of the relay's socket (u16), 0 if it does not tell; more may follow and is skipped |
//! | 3 data | both | bytes, at most [`DATA_MAX`] |
//! | 4 credit | both | how many more bytes may be sent (u32) |
//! | 5 finish | both | none: no more data in this direction |
//! | 6 close | both | [`Reason`] (u8) and a text: both directions end now |
//! | 7 drain | relay | none, on channel 0: no new channels, come to an end soon |
//!
//! **Channels.** The client numbers them upwards from 1 and never uses a number twice, so a late
//! frame of a channel that is gone is told from one that never was: the first is skipped, the second
//! is a [`Violation`]. A violation ends the tunnel.
//!
//! **Credit.** Each end may send [`EARLY_CREDIT`] bytes on a new channel at once, the client before
//! it is `opened`. A receiver then grants up to its own [`Limits::window`] and returns credit as its
//! owner reads; what an end holds unread is at most its window for each channel.
//!
//! **Signs of life.** A relay answers every `open` at once: by a `close`, or by a credit of 0 and, once
//! the target has answered, by `opened`. A client that hears nothing takes the tunnel for dead.
//!
//! **No deadlock.** Data enters the output only while that is shorter than [`Limits::output_max`];
//! frames about channels always enter it. Those are few for each channel and message received, so
//! an end goes on taking input ([`Tunnel::wants_input`]) until its output is twice as long: two
//! ends that are both full of data still take each other's. Only a peer that makes this end answer
//! without ever reading the answers is not listened to any more.
//!
//! **Owner's duty.** Feed [`Tunnel::handle_input`] while [`Tunnel::wants_input`]; send what
//! [`Tunnel::poll_output`] gives; after either, and after every call that changes a channel, look at
//! [`Tunnel::poll_changed`] and let the tasks of these channels go on. Messages of a WebSocket are
//! handed over as they come: frames may begin and end anywhere.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod channel;
mod frame;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, BytesMut};

use channel::Channel;
pub use frame::{ChannelId, DATA_MAX, EARLY_CREDIT, Reason, TARGET_MAX, TEXT_MAX, Violation, Wish};
use frame::{Header, Kind, OPENED_LEN};

/// The bounds of one end. The two ends need not have the same.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Most channels at once, those included that are over and not released.
    pub channels_max: usize,
    /// Most bytes received and unread on one channel; at least [`EARLY_CREDIT`] counts.
    pub window: u32,
    /// Data is taken for sending while fewer bytes than this wait.
    pub output_max: usize,
}

impl Limits {
    /// For a client: large answers flow.
    pub const fn client() -> Self {
        Self {
            channels_max: 1024,
            window: 1 << 20,
            output_max: 64 << 10,
        }
    }

    /// For a relay, which holds requests of many clients while nodes are slow.
    pub const fn relay() -> Self {
        Self {
            channels_max: 256,
            window: 64 << 10,
            output_max: 64 << 10,
        }
    }
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    is_client: bool,
    limits: Limits,
    /// Sorted by number: new ones have the highest.
    channels: Vec<Channel>,
    last_opened: u32,
    is_draining: bool,
    broken: Option<Violation>,
    input: Input,
    output: BytesMut,
    changed: VecDeque<ChannelId>,
    openings: VecDeque<Opening>,
    /// Where the turn to write starts, so that it goes round.
    turn: usize,
}

/// What was read of the frame that is coming in.
#[derive(Debug)]
enum Input {
    Header([u8; Header::LEN], usize),
    /// Payload of this many bytes is still to come. What came is held, except of data.
    Payload(Header, usize, Vec<u8>),
}

/// A client wishes a channel; the relay answers by [`Tunnel::accept`] or [`Tunnel::close`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opening {
    /// The channel.
    pub channel: ChannelId,
    /// Where to: what the client wrote, up to [`TARGET_MAX`] bytes, checked by nobody yet.
    pub target: String,
    /// The wish that goes with it.
    pub wish: Wish,
}

/// How far a channel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The other end has not answered yet.
    Opening,
    /// It leads somewhere; the source port of the relay's socket if it is known.
    Open(Option<core::num::NonZeroU16>),
    /// Over.
    Closed(Reason),
}

impl Tunnel {
    /// The end that opens channels.
    pub fn client(limits: Limits) -> Self {
        Self::new(true, limits)
    }

    /// The end that is asked for them.
    pub fn relay(limits: Limits) -> Self {
        Self::new(false, limits)
    }

    fn new(is_client: bool, limits: Limits) -> Self {
        Self {
            is_client,
            limits,
            channels: Vec::new(),
            last_opened: 0,
            is_draining: false,
            broken: None,
            input: Input::Header([0; Header::LEN], 0),
            output: BytesMut::new(),
            changed: VecDeque::new(),
            openings: VecDeque::new(),
            turn: 0,
        }
    }

    // The side of the network.

    /// Whether more input is welcome; if not, again after output was taken.
    pub fn wants_input(&self) -> bool {
        self.output.len() <= self.output_hard_max()
    }

    /// Takes any piece of the stream. The first violation ends the tunnel: all channels are closed
    /// with [`Reason::Lost`] and later input gives the same violation.
    pub fn handle_input(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        if let Some(violation) = self.broken {
            return Err(violation);
        }
        while !bytes.is_empty() {
            if let Err(violation) = self.handle_piece(&mut bytes) {
                self.broken = Some(violation);
                self.handle_lost();
                return Err(violation);
            }
        }
        Ok(())
    }

    /// The stream has ended: closes all channels with [`Reason::Lost`]. What was received can still
    /// be read.
    pub fn handle_lost(&mut self) {
        self.is_draining = true;
        self.output.clear();
        self.openings.clear();
        for index in 0..self.channels.len() {
            self.end(index, Reason::Lost, String::new());
        }
    }

    /// Bytes to send, at most `max`; `None` if there are none.
    pub fn poll_output(&mut self, max: usize) -> Option<BytesMut> {
        if self.output.is_empty() {
            return None;
        }
        let taken = if self.output.len() <= max {
            core::mem::take(&mut self.output)
        } else {
            self.output.split_to(max)
        };
        if self.output.len() < self.limits.output_max {
            self.unblock();
        }
        Some(taken)
    }

    // The side of the owner.

    /// A channel about which something is new: it was opened, got bytes or came to an end, or its
    /// writer can go on. Each is named once however much is new.
    pub fn poll_changed(&mut self) -> Option<ChannelId> {
        loop {
            let id = self.changed.pop_front()?;
            if let Some(channel) = self.find(id) {
                channel.is_changed = false;
                return Some(id);
            }
        }
    }

    /// A channel that the client wishes; at a relay only.
    pub fn poll_opening(&mut self) -> Option<Opening> {
        self.openings.pop_front()
    }

    /// Opens a channel; at a client only. It can be written to at once. `None` when no more can be
    /// opened: too many, the relay is about to stop, or the tunnel is lost.
    pub fn open(&mut self, target: &str, wish: Wish) -> Option<ChannelId> {
        let is_full = self.channels.len() >= self.limits.channels_max || !self.wants_input();
        if !self.is_client || self.is_draining || is_full || target.len() > TARGET_MAX {
            return None;
        }
        let Some(number) = self.last_opened.checked_add(1) else {
            self.is_draining = true;
            return None;
        };
        self.last_opened = number;
        let id = ChannelId(number);
        self.put(Kind::Open, id, Wish::LEN.saturating_add(target.len()));
        wish.put(&mut self.output);
        self.output.put_slice(target.as_bytes());
        self.channels.push(Channel::new(id, BytesMut::new()));
        self.put_credit(self.channels.len().saturating_sub(1), true);
        Some(id)
    }

    /// The channel now leads somewhere; at a relay only.
    pub fn accept(&mut self, id: ChannelId, port: u16) {
        let Some(index) = self.index(id) else { return };
        let Some(channel) = self.channels.get_mut(index) else {
            return;
        };
        if channel.ended.is_some() || core::mem::replace(&mut channel.is_open, true) {
            return;
        }
        channel.port = port;
        self.put(Kind::Opened, id, OPENED_LEN);
        self.output.put_u16_le(port);
        self.put_credit(index, true);
    }

    /// How far the channel has come.
    pub fn progress(&self, id: ChannelId) -> Progress {
        match self.index(id).and_then(|index| self.channels.get(index)) {
            Some(channel) => match channel.reason() {
                Some(reason) => Progress::Closed(reason),
                None if channel.is_open => Progress::Open(core::num::NonZeroU16::new(channel.port)),
                None => Progress::Opening,
            },
            None => Progress::Closed(Reason::Abandoned),
        }
    }

    /// What the peer said beside the reason, if it closed the channel.
    pub fn close_text(&self, id: ChannelId) -> &str {
        let channel = self.index(id).and_then(|index| self.channels.get(index));
        let ended = channel.and_then(|channel| channel.ended.as_ref());
        ended.map_or("", |(_, text)| text)
    }

    /// Reads: by exchange if `into` is empty, else as many bytes as it has room for. `Ok(None)`:
    /// nothing there yet. `Ok(Some(0))`: the peer has finished. A closed channel gives what came
    /// before, then the reason.
    pub fn read(&mut self, id: ChannelId, into: &mut BytesMut) -> Result<Option<usize>, Reason> {
        let index = self.index(id).ok_or(Reason::Abandoned)?;
        let channel = self.channels.get_mut(index).ok_or(Reason::Abandoned)?;
        if channel.incoming.is_empty() {
            return match channel.reason() {
                _ if channel.is_peer_finished => Ok(Some(0)),
                Some(reason) => Err(reason),
                None => Ok(None),
            };
        }
        let len = channel.read(into);
        self.put_credit(index, false);
        Ok(Some(len))
    }

    /// Takes some of `bytes`, one frame at most, so that owners who go round treat channels alike.
    /// `Ok(None)`: none now; the channel is among the changed ones when that is over.
    pub fn write(&mut self, id: ChannelId, bytes: &[u8]) -> Result<Option<usize>, Reason> {
        self.write_vectored(id, &[bytes])
    }

    /// The same from the parts in their order, joined into one frame.
    pub fn write_vectored(
        &mut self,
        id: ChannelId,
        parts: &[&[u8]],
    ) -> Result<Option<usize>, Reason> {
        let is_full = self.output.len() >= self.limits.output_max;
        let channel = self.find(id).ok_or(Reason::Abandoned)?;
        if let Some(reason) = channel.reason() {
            return Err(reason);
        }
        if channel.is_finished {
            return Err(Reason::Abandoned);
        }
        let credit = usize::try_from(channel.credit).unwrap_or(usize::MAX);
        let offered = parts.iter().map(|part| part.len());
        let offered = offered.fold(0_usize, usize::saturating_add);
        let len = offered.min(credit).min(DATA_MAX);
        if len == 0 || is_full {
            channel.is_blocked = true;
            return Ok(None);
        }
        // Not more than the credit, which is a u32.
        let spent = u32::try_from(len).unwrap_or(u32::MAX);
        channel.credit = channel.credit.saturating_sub(spent);
        self.put(Kind::Data, id, len);
        let mut rest = len;
        for part in parts {
            let piece = part.get(..rest.min(part.len())).unwrap_or_default();
            self.output.put_slice(piece);
            rest = rest.saturating_sub(piece.len());
        }
        Ok(Some(len))
    }

    /// No more data will be written; reading goes on.
    pub fn finish(&mut self, id: ChannelId) {
        let Some(channel) = self.find(id) else { return };
        if channel.ended.is_none() && !core::mem::replace(&mut channel.is_finished, true) {
            self.put(Kind::Finish, id, 0);
        }
    }

    /// Closes the channel in both directions and tells the peer why, with at most [`TEXT_MAX`] bytes
    /// of text.
    pub fn close(&mut self, id: ChannelId, reason: Reason, text: &str) {
        let Some(index) = self.index(id) else { return };
        let Some(channel) = self.channels.get_mut(index) else {
            return;
        };
        if channel.is_over() {
            return;
        }
        channel.incoming = BytesMut::new();
        self.end(index, reason, String::new());
        self.put_close(id, reason, text);
    }

    /// Forgets the channel; closes it with [`Reason::Abandoned`] if it is not over.
    pub fn release(&mut self, id: ChannelId) {
        self.close(id, Reason::Abandoned, "");
        if let Some(index) = self.index(id) {
            self.channels.remove(index);
        }
        self.openings.retain(|opening| opening.channel != id);
    }

    /// Takes no new channels and tells the client so; at a relay only.
    pub fn drain(&mut self) {
        if !self.is_client && !core::mem::replace(&mut self.is_draining, true) {
            self.put(Kind::Drain, ChannelId::TUNNEL, 0);
        }
    }

    /// Whether the relay takes no new channels, or the tunnel is lost.
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// How many channels there are, those included that are over and not released.
    pub const fn channel_count(&self) -> usize {
        self.channels.len()
    }

    /// Bytes that wait to be sent.
    pub fn output_len(&self) -> usize {
        self.output.len()
    }

    // Frames that came in.

    /// Handles the next part of `bytes`: of a header, or of a payload.
    fn handle_piece(&mut self, bytes: &mut &[u8]) -> Result<(), Violation> {
        match &mut self.input {
            Input::Header(header, filled) => {
                let room = header.get_mut(*filled..).unwrap_or_default();
                let (piece, rest) = bytes.split_at(bytes.len().min(room.len()));
                room.iter_mut()
                    .zip(piece)
                    .for_each(|(to, from)| *to = *from);
                *bytes = rest;
                *filled = filled.saturating_add(piece.len());
                if *filled < Header::LEN {
                    return Ok(());
                }
                let header = Header::parse(*header)?;
                self.handle_header(header)?;
                self.input = Input::Payload(header, usize::from(header.len), Vec::new());
                if header.len == 0 {
                    return self.handle_end();
                }
            }
            Input::Payload(header, missing, held) => {
                let (piece, rest) = bytes.split_at(bytes.len().min(*missing));
                *bytes = rest;
                *missing = missing.saturating_sub(piece.len());
                let (is_end, header) = (*missing == 0, *header);
                if header.kind != Kind::Data {
                    held.extend_from_slice(piece);
                } else if let Some(index) = self.index(header.channel) {
                    if let Some(channel) = self.channels.get_mut(index) {
                        channel.handle_data(piece);
                    }
                    self.mark(index);
                }
                if is_end {
                    return self.handle_end();
                }
            }
        }
        Ok(())
    }

    /// What can be said before the payload is there.
    fn handle_header(&mut self, header: Header) -> Result<(), Violation> {
        let from_client = !self.is_client;
        match header.kind {
            Kind::Open if !from_client => return Err(Violation::WrongSide),
            Kind::Opened | Kind::Drain if from_client => return Err(Violation::WrongSide),
            Kind::Open if header.channel.0 <= self.last_opened => {
                return Err(Violation::ChannelOrder);
            }
            Kind::Open | Kind::Drain => return Ok(()),
            _ if header.channel.0 > self.last_opened => return Err(Violation::UnknownChannel),
            Kind::Data => {}
            _ => return Ok(()),
        }
        match self.find(header.channel) {
            Some(channel) => channel.handle_data_len(header.len),
            None => Ok(()),
        }
    }

    /// A frame is complete.
    fn handle_end(&mut self) -> Result<(), Violation> {
        let done = core::mem::replace(&mut self.input, Input::Header([0; Header::LEN], 0));
        let Input::Payload(Header { kind, channel, .. }, _, payload) = done else {
            return Ok(());
        };
        if kind == Kind::Open {
            return self.handle_open(channel, &payload);
        }
        if kind == Kind::Drain {
            self.is_draining = true;
            return Ok(());
        }
        let Some(index) = self.index(channel) else {
            return Ok(());
        };
        let Some(channel) = self.channels.get_mut(index) else {
            return Ok(());
        };
        match (kind, payload.as_slice()) {
            (Kind::Opened, &[low, high, ..]) => {
                if core::mem::replace(&mut channel.is_open, true) {
                    return Err(Violation::OpenedTwice);
                }
                channel.port = u16::from_le_bytes([low, high]);
            }
            (Kind::Credit, &[a, b, c, d]) => {
                let more = u32::from_le_bytes([a, b, c, d]);
                channel.handle_credit(more)?;
                if more == 0 || !core::mem::take(&mut channel.is_blocked) {
                    return Ok(());
                }
            }
            (Kind::Finish, _) => channel.handle_finish()?,
            (Kind::Close, [reason, text @ ..]) => {
                let text = core::str::from_utf8(text).map_err(|_| Violation::BadText)?;
                self.end(index, Reason::parse(*reason), String::from(text));
            }
            _ => return Ok(()),
        }
        self.mark(index);
        Ok(())
    }

    fn handle_open(&mut self, id: ChannelId, payload: &[u8]) -> Result<(), Violation> {
        let (wish, target) = payload.split_first_chunk().ok_or(Violation::BadLength)?;
        let target = core::str::from_utf8(target).map_err(|_| Violation::BadText)?;
        self.last_opened = id.0;
        if self.is_draining {
            self.put_close(id, Reason::Draining, "");
        } else if self.channels.len() >= self.limits.channels_max {
            self.put_close(id, Reason::TooMany, "");
        } else {
            self.channels.push(Channel::new(id, BytesMut::new()));
            // Nothing, but at once: a client that hears nothing knows that the tunnel is dead.
            self.put(Kind::Credit, id, 4);
            self.output.put_u32_le(0);
            self.openings.push_back(Opening {
                channel: id,
                target: String::from(target),
                wish: Wish::parse(*wish),
            });
        }
        Ok(())
    }

    // Frames that go out.

    /// Puts the header of a frame; its payload follows, of a length bounded by its kind.
    fn put(&mut self, kind: Kind, channel: ChannelId, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        Header { kind, channel, len }.put(&mut self.output);
    }

    fn put_close(&mut self, id: ChannelId, reason: Reason, text: &str) {
        let text = text.get(..text.floor_char_boundary(TEXT_MAX));
        let text = text.unwrap_or_default();
        self.put(Kind::Close, id, text.len().saturating_add(1));
        self.output.put_u8(reason as u8);
        self.output.put_slice(text.as_bytes());
    }

    fn put_credit(&mut self, index: usize, is_first: bool) {
        let window = self.limits.window;
        if let Some(channel) = self.channels.get_mut(index) {
            let id = channel.id;
            if let Some(more) = channel.take_credit(window, is_first) {
                self.put(Kind::Credit, id, 4);
                self.output.put_u32_le(more);
            }
        }
    }

    // Channels.

    fn index(&self, id: ChannelId) -> Option<usize> {
        let found = self
            .channels
            .binary_search_by_key(&id, |channel| channel.id);
        found.ok()
    }

    fn find(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let index = self.index(id)?;
        self.channels.get_mut(index)
    }

    fn end(&mut self, index: usize, reason: Reason, text: String) {
        if let Some(channel) = self.channels.get_mut(index) {
            channel.end(reason, text);
        }
        self.mark(index);
    }

    /// Puts a channel into the list of changed ones.
    fn mark(&mut self, index: usize) {
        if let Some(channel) = self.channels.get_mut(index)
            && !core::mem::replace(&mut channel.is_changed, true)
        {
            self.changed.push_back(channel.id);
        }
    }

    /// There is room in the output: those that wait for it may write, another one first each time.
    fn unblock(&mut self) {
        let count = self.channels.len();
        self.turn = self.turn.wrapping_add(1).checked_rem(count).unwrap_or(0);
        for index in (self.turn..count).chain(0..self.turn) {
            let channel = self.channels.get_mut(index);
            if channel.is_some_and(|channel| {
                channel.credit > 0 && core::mem::take(&mut channel.is_blocked)
            }) {
                self.mark(index);
            }
        }
    }

    const fn output_hard_max(&self) -> usize {
        self.limits
            .output_max
            .saturating_mul(2)
            .saturating_add(DATA_MAX)
    }
}
