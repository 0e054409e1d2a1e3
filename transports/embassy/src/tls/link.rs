//! One TLS connection as a core [`Link`]: the near ends of a slot's rings.

use core::fmt;
use core::num::NonZeroU16;
use core::task::{Context, Poll};

use bytes::BytesMut;
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};

use super::slot::{Slot, State};

/// A TLS 1.3 connection over embassy-net. Dropping it resets the connection and gives its memory
/// back.
pub struct TlsLink<'d> {
    slot: &'d Slot<'d>,
    /// We have begun to close; nothing more is written.
    is_closing: bool,
}

impl<'d> TlsLink<'d> {
    pub(super) const fn new(slot: &'d Slot<'d>) -> Self {
        Self {
            slot,
            is_closing: false,
        }
    }

    /// How the task has ended the connection, once it has.
    fn poll_ended(&self, cx: &Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.slot.state() {
            State::Ended(how) => Poll::Ready(how),
            _ => {
                self.slot.watch(cx);
                Poll::Pending
            }
        }
    }

    /// The same for what the peer sends: it may have ended that before.
    fn poll_over(&self, cx: &Context<'_>) -> Poll<Result<(), LinkError>> {
        let ended = self.poll_ended(cx);
        if ended.is_pending() && self.slot.peer_has_closed() {
            return Poll::Ready(Ok(()));
        }
        ended
    }
}

impl Link for TlsLink<'_> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let spare = into.capacity().saturating_sub(into.len());
        if spare == 0 {
            // Against the contract; zero bytes read would look like the end.
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Other)));
        }
        if !self.is_closing {
            let len = self.slot.take(into, spare);
            if len > 0 {
                return Poll::Ready(Ok(len));
            }
        }
        self.poll_over(cx).map_ok(|()| 0)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        let over = self.poll_over(cx);
        if let Poll::Ready(Err(error)) = over {
            return Poll::Ready(Err(error));
        }
        if self.is_closing {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::ClosedByUs)));
        }
        if over.is_ready() {
            return Poll::Ready(Err(LinkError::CLOSED_BY_PEER));
        }
        match self.slot.put(bytes) {
            0 => Poll::Pending,
            len => Poll::Ready(Ok(len)),
        }
    }

    /// The task writes all that is in the ring by itself.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.poll_ended(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if !self.is_closing {
            self.is_closing = true;
            self.slot.close();
        }
        self.poll_ended(cx)
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        self.slot.source_port()
    }
}

impl Drop for TlsLink<'_> {
    fn drop(&mut self) {
        self.slot.abandon();
    }
}

impl fmt::Debug for TlsLink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsLink")
            .field("state", &self.slot.state())
            .field("source_port", &self.source_port())
            .finish_non_exhaustive()
    }
}
