//! One socket out of the pool: polls, closing, and its way back.

use core::future::Future;
use core::num::NonZeroU16;
use core::pin::pin;
use core::task::{Context, Poll, ready};

use bytes::BytesMut;
use embassy_net::tcp::{Error as TcpError, State, TcpSocket};
use messina_core::error::LinkError;

use super::{NO_FREE_SOCKET, Slot};
use crate::transport::Watch;

/// How reading or writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLost;

/// A socket out of the pool, returned aborted when dropped.
pub(crate) struct PooledSocket<'d> {
    slot: &'d Slot<'d>,
    /// `None` only inside `drop`.
    socket: Option<TcpSocket<'d>>,
    /// It closed before we did, so the connection ends with the acknowledgement of our end.
    peer_has_closed: bool,
}

impl<'d> PooledSocket<'d> {
    pub(super) const fn new(slot: &'d Slot<'d>, socket: TcpSocket<'d>) -> Self {
        Self {
            slot,
            socket: Some(socket),
            peer_has_closed: false,
        }
    }

    pub(super) fn socket(&mut self) -> Result<&mut TcpSocket<'d>, LinkError> {
        self.socket.as_mut().ok_or(NO_FREE_SOCKET)
    }

    /// Ready when the reset of the previous connection has left. A cut cable keeps it for ever.
    pub(crate) fn poll_reset_sent(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.socket {
            Some(socket) => pin!(socket.flush()).poll(cx).map(|_| ()),
            None => Poll::Ready(()),
        }
    }

    /// Ready when the peer has answered: the connection is open, or `false`: refused.
    pub(crate) fn poll_opened(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(false);
        };
        match socket.state() {
            State::SynSent | State::SynReceived => {
                // Never ready in these states: it leaves the waker, and that is all.
                pin!(socket.wait_write_ready()).poll(cx).map(|()| true)
            }
            State::Closed | State::TimeWait => Poll::Ready(false),
            _ => Poll::Ready(true),
        }
    }

    /// Probes the peer and gives it up after silence; both or neither.
    pub(crate) fn watch(&mut self, watch: Option<Watch>) {
        if let Some(socket) = &mut self.socket {
            socket.set_keep_alive(watch.map(|watch| watch.probe_every));
            socket.set_timeout(watch.map(|watch| watch.give_up_after));
        }
    }

    /// Appends what has arrived, at most `spare` bytes. Zero means that the peer has closed.
    ///
    /// The futures of embassy-net's sockets hold no progress, so a new one for each poll is right.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
        spare: usize,
    ) -> Poll<Result<usize, ConnectionLost>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Err(ConnectionLost));
        };
        let take = |arrived: &mut [u8]| {
            let len = arrived.len().min(spare);
            into.extend_from_slice(arrived.get(..len).unwrap_or_default());
            (len, len)
        };
        let taken = ready!(pin!(socket.read_with(take)).poll(cx));
        Poll::Ready(taken.or_else(|error| {
            // It says reset for an orderly end too; the state tells the two apart.
            let is_orderly = match socket.state() {
                State::CloseWait | State::LastAck | State::Closing | State::TimeWait => true,
                State::Closed => self.peer_has_closed,
                _ => false,
            };
            match error {
                TcpError::ConnectionReset if is_orderly => Ok(0),
                error => Err(lost(error)),
            }
        }))
    }

    /// The same into memory of a fixed size.
    #[cfg(feature = "tls")]
    pub(crate) fn poll_read_slice(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, ConnectionLost>> {
        match &mut self.socket {
            Some(socket) => pin!(socket.read(into)).poll(cx).map_err(lost),
            None => Poll::Ready(Err(ConnectionLost)),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ConnectionLost>> {
        match &mut self.socket {
            Some(socket) => pin!(socket.write(bytes)).poll(cx).map_err(lost),
            None => Poll::Ready(Err(ConnectionLost)),
        }
    }

    /// Whether the stack still takes bytes for this connection.
    pub(crate) fn may_send(&self) -> bool {
        self.socket.as_ref().is_some_and(TcpSocket::may_send)
    }

    pub(crate) fn abort(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.abort();
        }
    }

    /// Queues the end of our side behind what was written.
    pub(crate) fn close(&mut self) {
        if let Some(socket) = &mut self.socket {
            self.peer_has_closed = socket.state() == State::CloseWait;
            socket.close();
        }
    }

    /// Ready when the peer has acknowledged everything, our end included. The stack's own flush
    /// says this of a dead connection too, so its state is asked afterwards.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        let Some(socket) = &mut self.socket else {
            return Poll::Ready(Err(ConnectionLost));
        };
        let _ = ready!(pin!(socket.flush()).poll(cx));
        Poll::Ready(match socket.state() {
            State::Closed if !self.peer_has_closed => Err(ConnectionLost),
            _ => Ok(()),
        })
    }

    pub(crate) fn source_port(&self) -> Option<NonZeroU16> {
        let local = self.socket.as_ref()?.local_endpoint()?;
        NonZeroU16::new(local.port)
    }
}

const fn lost(TcpError::ConnectionReset: TcpError) -> ConnectionLost {
    ConnectionLost
}

impl Drop for PooledSocket<'_> {
    fn drop(&mut self) {
        if let Some(mut socket) = self.socket.take() {
            // A connection that both sides have ended needs no reset on top.
            if socket.state() != State::TimeWait {
                socket.abort();
            }
            self.slot.0.set(Some(socket));
        }
    }
}
