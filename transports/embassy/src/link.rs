//! One open connection as a core [`Link`]: sticky errors, honest closing, and the difference
//! between a peer that reset and one that fell silent.

use core::fmt;
use core::num::NonZeroU16;
use core::task::{Context, Poll, ready};

use bytes::BytesMut;
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::Instant;

use crate::net::{ConnectionLost, Network, PooledSocket};
use crate::time;
use crate::transport::Liveness;

/// A TCP connection over embassy-net. Dropping it resets the connection and gives the socket back.
pub struct EmbassyLink<'d> {
    network: Network<'d>,
    socket: PooledSocket<'d>,
    liveness: Option<Liveness>,
    last_heard: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Our end was queued and waits to be acknowledged.
    Closing,
    Closed,
    Failed(LinkError),
}

impl<'d> EmbassyLink<'d> {
    pub(crate) fn new(
        network: Network<'d>,
        mut socket: PooledSocket<'d>,
        liveness: Option<Liveness>,
    ) -> Self {
        socket.watch(liveness.map(Liveness::in_ticks));
        Self {
            network,
            socket,
            liveness,
            last_heard: time::now(),
            stage: Stage::Open,
        }
    }

    /// The stack has one word for every loss. A silence as long as the agreed one, or a network
    /// that is gone, was no reset.
    fn fail(&mut self, ConnectionLost: ConnectionLost) -> LinkError {
        let silent_for = time::now().saturating_since(self.last_heard);
        let silent = self
            .liveness
            .is_some_and(|liveness| silent_for >= liveness.surely_silent_after());
        let error = if silent || !self.network.is_up() {
            self.network.silence()
        } else {
            LinkError::new(LinkErrorKind::Reset)
        };
        self.stage = Stage::Failed(error);
        error
    }
}

impl Link for EmbassyLink<'_> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        match self.stage {
            Stage::Open | Stage::Closing => {}
            Stage::Closed => return Poll::Ready(Ok(0)),
            Stage::Failed(error) => return Poll::Ready(Err(error)),
        }
        let spare = into.capacity().saturating_sub(into.len());
        if spare == 0 {
            // Against the contract; zero bytes read would look like the end.
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Other)));
        }
        match ready!(self.socket.poll_read(cx, into, spare)) {
            Ok(len) => {
                self.last_heard = time::now();
                Poll::Ready(Ok(len))
            }
            Err(lost) => Poll::Ready(Err(self.fail(lost))),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        match self.stage {
            Stage::Open => {}
            Stage::Closing | Stage::Closed => {
                return Poll::Ready(Err(LinkError::new(LinkErrorKind::ClosedByUs)));
            }
            Stage::Failed(error) => return Poll::Ready(Err(error)),
        }
        match ready!(self.socket.poll_write(cx, bytes)) {
            Ok(len) => Poll::Ready(Ok(len)),
            Err(lost) => Poll::Ready(Err(self.fail(lost))),
        }
    }

    /// The stack sends by itself. Its own flush waits for acknowledgement and reports success for
    /// dead connections as well, so it is not asked.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.stage {
            Stage::Failed(error) => Poll::Ready(Err(error)),
            Stage::Open if !self.socket.may_send() => Poll::Ready(Err(self.fail(ConnectionLost))),
            Stage::Open | Stage::Closing | Stage::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.stage {
            Stage::Open => {
                self.socket.close();
                self.stage = Stage::Closing;
            }
            Stage::Closing => {}
            Stage::Closed => return Poll::Ready(Ok(())),
            Stage::Failed(error) => return Poll::Ready(Err(error)),
        }
        ready!(self.socket.poll_acknowledged(cx));
        self.stage = Stage::Closed;
        Poll::Ready(Ok(()))
    }

    fn source_port(&self) -> Option<NonZeroU16> {
        self.socket.source_port()
    }
}

impl fmt::Debug for EmbassyLink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbassyLink")
            .field("stage", &self.stage)
            .field("source_port", &self.source_port())
            .finish_non_exhaustive()
    }
}
