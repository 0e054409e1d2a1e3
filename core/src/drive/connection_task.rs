//! Pumps one link and the state of one connection: connect, handshake, requests and answers,
//! close. The platform runs one such task for each connection, wherever it likes.
//!
//! Work per poll is bounded: after `FRAMES_PER_POLL` frames the task re-queues itself. Nothing
//! foreign runs under the connection's lock.
//!
//! *Deferred write.* When the task finds output it re-queues itself once before it writes
//! (`Config::write_deferral`). Callers that were woken by the same batch of answers, or that are
//! about to submit, then share one write; woken at once after the first submission, many frames
//! become a system call of their own. CPU time of the client for one prepared read (3 nodes of 4
//! shards, 2 cores, tokio, median of 5 rounds in turns):
//!
//! | runtime | in flight | deferred | at once |
//! |---|---|---|---|
//! | current-thread | 16 | 9.7 µs | 10.3 µs |
//! | current-thread | 256 | 3.6 µs | 3.6 µs |
//! | current-thread | 1024 | 3.1 µs | 3.1 µs |
//! | multi-thread | 16 | 12.9 µs | 13.9 µs |
//! | multi-thread | 256 | 4.5 µs | 8.4 µs |
//! | multi-thread | 1024 | 4.0 µs | 8.1 µs |
//!
//! On the current-thread runtime a woken task stands in line behind the callers anyway, so nothing is
//! lost or won; on the multi-thread one it halves the cost and doubles the reads a second at 256
//! (109 k against 54 k). So it is on by default, whatever the runtime. The figures come from
//! `cargo run -p messina-bench --profile bench -- throughput`; what a request costs in heap calls
//! (none) and instructions is held by the same package's `counts`.

mod buffers;
mod handshaking;
mod open;
#[cfg(all(test, not(messina_loom)))]
mod tests;

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use self::handshaking::Handshaking;
use self::open::{Ended, Open};
use super::cell::Cell;
use super::hub::Hub;
use super::inbox::Report;
use super::transport::{Clock as _, Link as _, Target, Timer as _, Transport};
use crate::cluster::ConnectionId;
use crate::conn::negotiate::HandshakeConfig;
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use crate::sync::{Local, Shared, assert_unlocked};
use crate::time::Instant;

/// One connection of a session, to be polled by the platform until it is done. Dropping it aborts
/// the link and fails whatever is under way.
#[must_use = "a connection does nothing unless its task is polled"]
pub struct ConnectionTask<T: Transport> {
    id: ConnectionId,
    hub: Shared<Hub>,
    clock: T::Clock,
    timer: T::Timer,
    phase: Phase<T>,
}

enum Phase<T: Transport> {
    Connecting {
        connecting: T::Connecting,
        handshake: Local<HandshakeConfig>,
        deadline: Instant,
    },
    Handshaking(Handshaking<T::Link>),
    Open(Open<T::Link>),
    Closing {
        link: T::Link,
        deadline: Instant,
        error: Error,
    },
    Done,
}

impl<T: Transport> ConnectionTask<T> {
    pub(super) fn new(
        transport: &T,
        hub: Shared<Hub>,
        id: ConnectionId,
        target: Target,
        handshake: Local<HandshakeConfig>,
    ) -> Self {
        let deadline = target.deadline;
        let mut timer = transport.timer();
        timer.arm(Some(deadline));
        Self {
            id,
            hub,
            clock: transport.clock(),
            timer,
            phase: Phase::Connecting {
                connecting: transport.connect(target),
                handshake,
                deadline,
            },
        }
    }

    fn poll_phase(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.phase {
                Phase::Connecting {
                    connecting,
                    handshake,
                    deadline,
                } => {
                    let error = match Pin::new(connecting).poll(cx) {
                        Poll::Ready(Ok(link)) => {
                            let (handshake, deadline) = (Local::clone(handshake), *deadline);
                            match Handshaking::start(link, handshake, deadline, &self.hub) {
                                Ok(handshaking) => {
                                    self.phase = Phase::Handshaking(handshaking);
                                    continue;
                                }
                                Err(error) => error,
                            }
                        }
                        Poll::Ready(Err(error)) => error.into(),
                        Poll::Pending => match self.timer.poll_fired(cx) {
                            Poll::Pending => return Poll::Pending,
                            Poll::Ready(()) if self.clock.now() < *deadline => {
                                self.timer.arm(Some(*deadline));
                                continue;
                            }
                            Poll::Ready(()) => Error::new(ErrorKind::Timeout(TimeoutKind::Connect)),
                        },
                    };
                    return self.fail(error);
                }
                Phase::Handshaking(handshaking) => {
                    match handshaking.poll(cx, &mut self.timer, &self.clock) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Err(error)) => return self.fail(error),
                        Poll::Ready(Ok((agreed, is_early))) => {
                            let Phase::Handshaking(done) =
                                core::mem::replace(&mut self.phase, Phase::Done)
                            else {
                                return Poll::Ready(());
                            };
                            let limits = self.hub.config().limits.connection;
                            let port = done.link.source_port();
                            let clock = Shared::clone(self.hub.clock());
                            let cell = Cell::new(self.id, agreed, port, limits, clock);
                            let open = if is_early {
                                Open::early(done, Shared::new(cell.early()))
                            } else {
                                Open::new(done, Shared::new(cell)).0
                            };
                            self.hub
                                .report(Report::Connected(Shared::clone(&open.cell)));
                            if self.hub.over().is_some() {
                                // Nobody may be left to close it. Asked after the report: either
                                // the driver finds that, or this sees the end.
                                open.cell.request_close(false);
                            }
                            self.phase = Phase::Open(open);
                        }
                    }
                }
                Phase::Open(open) => match open.poll(cx, &mut self.timer, &self.clock, &self.hub) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ended::Broken(error)) => return self.fail(error),
                    Poll::Ready(Ended::Drained) => {
                        let Phase::Open(open) = core::mem::replace(&mut self.phase, Phase::Done)
                        else {
                            return Poll::Ready(());
                        };
                        let error = LinkError::new(LinkErrorKind::ClosedByUs).into();
                        open.close(&error);
                        let close = self.hub.config().timeouts.close;
                        let deadline = self.clock.now().saturating_add(close);
                        self.timer.arm(Some(deadline));
                        self.phase = Phase::Closing {
                            link: open.link,
                            deadline,
                            error,
                        };
                    }
                },
                Phase::Closing {
                    link,
                    deadline,
                    error,
                } => {
                    assert_unlocked();
                    if link.poll_close(cx).is_pending() {
                        if self.timer.poll_fired(cx).is_pending() {
                            return Poll::Pending;
                        }
                        if self.clock.now() < *deadline {
                            self.timer.arm(Some(*deadline));
                            continue;
                        }
                    }
                    let error = error.clone();
                    return self.fail(error);
                }
                Phase::Done => return Poll::Ready(()),
            }
        }
    }

    /// Ends the task: tells whoever waits, then the control plane.
    fn fail(&mut self, error: Error) -> Poll<()> {
        match core::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Connecting { .. } | Phase::Handshaking(_) => {
                self.hub.report(Report::ConnectFailed(self.id, error));
            }
            Phase::Open(open) => {
                open.close(&error);
                self.hub.report(Report::Closed(self.id, error));
            }
            Phase::Closing { .. } => self.hub.report(Report::Closed(self.id, error)),
            Phase::Done => {}
        }
        Poll::Ready(())
    }
}

impl<T: Transport> Future for ConnectionTask<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_phase(cx)
    }
}

impl<T: Transport> Drop for ConnectionTask<T> {
    fn drop(&mut self) {
        let _ = self.fail(LinkError::new(LinkErrorKind::ClosedByUs).into());
    }
}

impl<T: Transport> fmt::Debug for ConnectionTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            Phase::Connecting { .. } => "connecting",
            Phase::Handshaking(_) => "handshaking",
            Phase::Open(_) => "open",
            Phase::Closing { .. } => "closing",
            Phase::Done => "done",
        };
        f.debug_struct("ConnectionTask")
            .field("id", &self.id)
            .field("phase", &phase)
            .finish()
    }
}
