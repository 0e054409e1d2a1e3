//! One channel as one end sees it: credit in both directions, bytes that wait to be read, its end.

use alloc::string::String;

use bytes::{Buf, BytesMut};

use super::frame::{ChannelId, EARLY_CREDIT, Reason, Violation};

/// The state of one channel, from its `open` until its owner releases it.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    /// The relay has said that it leads somewhere.
    pub(super) is_open: bool,
    /// The source port of the relay's socket, 0 if not known.
    pub(super) port: u16,
    /// Bytes that may still be sent.
    pub(super) credit: u32,
    /// Bytes that the peer may still send.
    granted: u32,
    /// Bytes that were read since credit was given last.
    unreturned: u32,
    /// Received and not read.
    pub(super) incoming: BytesMut,
    pub(super) is_finished: bool,
    pub(super) is_peer_finished: bool,
    /// Why it was closed, if it was, and what the peer said to that.
    pub(super) ended: Option<(Reason, String)>,
    /// A write took nothing and its owner waits.
    pub(super) is_blocked: bool,
    /// It stands in the list of changed channels.
    pub(super) is_changed: bool,
}

impl Channel {
    pub(super) const fn new(id: ChannelId, incoming: BytesMut) -> Self {
        Self {
            id,
            is_open: false,
            port: 0,
            credit: EARLY_CREDIT,
            granted: EARLY_CREDIT,
            unreturned: 0,
            incoming,
            is_finished: false,
            is_peer_finished: false,
            ended: None,
            is_blocked: false,
            is_changed: false,
        }
    }

    /// Takes data of a frame whose length was checked by `handle_data_len`.
    pub(super) fn handle_data(&mut self, bytes: &[u8]) {
        if self.ended.is_none() {
            self.incoming.extend_from_slice(bytes);
        }
    }

    /// A data frame of this length begins.
    pub(super) fn handle_data_len(&mut self, len: u16) -> Result<(), Violation> {
        if self.ended.is_some() {
            return Ok(());
        }
        if self.is_peer_finished {
            return Err(Violation::AfterFinish);
        }
        let rest = self.granted.checked_sub(u32::from(len));
        self.granted = rest.ok_or(Violation::CreditExceeded)?;
        Ok(())
    }

    pub(super) fn handle_credit(&mut self, more: u32) -> Result<(), Violation> {
        let credit = self.credit.checked_add(more);
        self.credit = credit.ok_or(Violation::CreditOverflow)?;
        Ok(())
    }

    pub(super) fn handle_finish(&mut self) -> Result<(), Violation> {
        if self.ended.is_none() && core::mem::replace(&mut self.is_peer_finished, true) {
            return Err(Violation::AfterFinish);
        }
        Ok(())
    }

    /// It is over. Bytes that came before can still be read.
    pub(super) fn end(&mut self, reason: Reason, text: String) {
        if self.ended.is_none() {
            self.ended = Some((reason, text));
        }
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        self.ended.as_ref().map(|(reason, _)| *reason)
    }

    /// Both directions have come to their ends, or the channel as a whole.
    pub(super) const fn is_over(&self) -> bool {
        self.ended.is_some() || (self.is_finished && self.is_peer_finished)
    }

    /// Moves bytes to `into`: by exchange if that is empty, else as many as it has room for.
    pub(super) fn read(&mut self, into: &mut BytesMut) -> usize {
        let len = if into.is_empty() {
            core::mem::swap(into, &mut self.incoming);
            into.len()
        } else {
            let spare = into.capacity().saturating_sub(into.len());
            let len = spare.min(self.incoming.len());
            into.extend_from_slice(self.incoming.get(..len).unwrap_or_default());
            self.incoming.advance(len);
            len
        };
        // What is held was within the window, which is a u32.
        let read = u32::try_from(len).unwrap_or(u32::MAX);
        self.unreturned = self.unreturned.saturating_add(read);
        len
    }

    /// Credit that should now go to the peer: up to the window, and worth a frame.
    pub(super) fn take_credit(&mut self, window: u32, is_first: bool) -> Option<u32> {
        let more = if is_first {
            window.saturating_sub(EARLY_CREDIT)
        } else if self.unreturned >= window.div_ceil(2) {
            core::mem::take(&mut self.unreturned)
        } else {
            0
        };
        if more == 0 || self.is_peer_finished || self.ended.is_some() {
            return None;
        }
        self.granted = self.granted.saturating_add(more);
        Some(more)
    }
}
