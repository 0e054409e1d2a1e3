//! The driver for servers in one task: its control plane and its connections, polled in turn.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use messina_core::drive::{ConnectionTask, Driver};
use messina_embassy::EmbassyTransport;

/// Runs a session. Ends when the session was closed and its connections have ended; dropping it
/// ends the session at once.
#[must_use = "a session does nothing unless its runner is polled"]
pub(crate) struct Runner<'d> {
    driver: Driver<EmbassyTransport<'d>>,
    driver_is_done: bool,
    /// At most as many as the pool has sockets get further than their first poll.
    connections: Vec<ConnectionTask<EmbassyTransport<'d>>>,
}

impl<'d> Runner<'d> {
    /// A runner that will hold `connections` without growing.
    pub(crate) fn new(driver: Driver<EmbassyTransport<'d>>, connections: usize) -> Self {
        Self {
            driver,
            driver_is_done: false,
            connections: Vec::with_capacity(connections),
        }
    }
}

impl Future for Runner<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        while !self.driver_is_done {
            match self.driver.poll_next(cx) {
                Poll::Ready(Some(connection)) => self.connections.push(connection),
                Poll::Ready(None) => self.driver_is_done = true,
                Poll::Pending => break,
            }
        }
        self.connections
            .retain_mut(|connection| Pin::new(connection).poll(cx).is_pending());
        if self.driver_is_done && self.connections.is_empty() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}
