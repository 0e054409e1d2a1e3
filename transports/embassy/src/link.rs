//! One open connection as a core [`Link`]: sticky errors, honest closing, and the difference
//! between a peer that reset and one that fell silent.

use core::fmt;
use core::num::NonZeroU16;
use core::task::{Context, Poll, ready};

use bytes::BytesMut;
use embassy_time::{Duration, Instant};
use messina_core::drive::Link;
use messina_core::error::{LinkError, LinkErrorKind};

use crate::net::{ConnectionLost, Network, PooledSocket};
use crate::time;
use crate::transport::Watch;

/// How long a close waits for the peer's acknowledgement before it becomes a reset: a lost frame
/// or two, which cost at least a second each.
const CLOSE_GRACE: Duration = Duration::from_secs(4);

/// A TCP connection over embassy-net. Dropping it resets the connection and gives the socket back.
pub struct EmbassyLink<'d> {
    network: Network<'d>,
    socket: PooledSocket<'d>,
    /// A connection that ends when this long nothing was heard was not reset.
    silent_after: Duration,
    last_heard: Instant,
    /// Bytes have come since: when is asked once for all of them.
    has_heard: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Our end was queued and waits to be acknowledged, until then.
    Closing(Instant),
    Closed,
    Failed(LinkError),
}

impl<'d> EmbassyLink<'d> {
    pub(crate) fn new(
        network: Network<'d>,
        mut socket: PooledSocket<'d>,
        watch: Option<Watch>,
    ) -> Self {
        socket.watch(watch);
        Self {
            network,
            socket,
            silent_after: watch.map_or(Duration::MAX, Watch::surely_silent_after),
            last_heard: Instant::now(),
            has_heard: false,
            stage: Stage::Open,
        }
    }

    /// The stack has one word for every loss. A silence as long as the agreed one, or a network
    /// that is gone, was no reset.
    fn fail(&mut self, ConnectionLost: ConnectionLost) -> LinkError {
        let silence = Instant::now().saturating_duration_since(self.last_heard);
        let is_silent = !self.has_heard && silence >= self.silent_after;
        let error = match self.network.state() {
            Err(missing) => missing,
            Ok(()) if is_silent => LinkError::TIMED_OUT,
            Ok(()) => LinkError::new(LinkErrorKind::Reset),
        };
        self.stage = Stage::Failed(error);
        error
    }

    /// How reading has ended, if it has.
    const fn end(&self) -> Option<Result<(), LinkError>> {
        match self.stage {
            Stage::Open | Stage::Closing(_) => None,
            Stage::Closed => Some(Ok(())),
            Stage::Failed(error) => Some(Err(error)),
        }
    }

    fn heard(
        &mut self,
        read: Poll<Result<usize, ConnectionLost>>,
    ) -> Poll<Result<usize, LinkError>> {
        match read {
            Poll::Ready(Ok(len)) => {
                self.has_heard = true;
                Poll::Ready(Ok(len))
            }
            Poll::Ready(Err(lost)) => Poll::Ready(Err(self.fail(lost))),
            // A stack that loses its address ends its connections, one that keeps it waits with
            // them, for retransmissions that come ever later. A new connection is there sooner.
            Poll::Pending if !self.network.is_link_up() => {
                Poll::Ready(Err(self.fail(ConnectionLost)))
            }
            Poll::Pending => {
                if core::mem::take(&mut self.has_heard) {
                    self.last_heard = Instant::now();
                }
                Poll::Pending
            }
        }
    }

    /// Reads into memory of a fixed size.
    #[cfg(feature = "tls")]
    pub(crate) fn poll_read_slice(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, LinkError>> {
        match self.end() {
            Some(end) => Poll::Ready(end.map(|()| 0)),
            None => {
                let read = self.socket.poll_read_slice(cx, into);
                self.heard(read)
            }
        }
    }
}

impl Link for EmbassyLink<'_> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        if let Some(end) = self.end() {
            return Poll::Ready(end.map(|()| 0));
        }
        let spare = into.capacity().saturating_sub(into.len());
        if spare == 0 {
            // Against the contract; zero bytes read would look like the end.
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::Other)));
        }
        let read = self.socket.poll_read(cx, into, spare);
        self.heard(read)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        match self.stage {
            Stage::Open => {}
            Stage::Closing(_) | Stage::Closed => {
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
            Stage::Open | Stage::Closing(_) | Stage::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let until = match self.stage {
            Stage::Open => {
                self.socket.close();
                let until = time::after(CLOSE_GRACE);
                self.stage = Stage::Closing(until);
                until
            }
            Stage::Closing(until) => until,
            Stage::Closed => return Poll::Ready(Ok(())),
            Stage::Failed(error) => return Poll::Ready(Err(error)),
        };
        match self.socket.poll_closed(cx) {
            Poll::Ready(Ok(())) => {
                self.stage = Stage::Closed;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(lost)) => Poll::Ready(Err(self.fail(lost))),
            Poll::Pending => {
                ready!(time::poll_at(until, cx));
                self.socket.abort();
                let error = self.network.silence();
                self.stage = Stage::Failed(error);
                Poll::Ready(Err(error))
            }
        }
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
