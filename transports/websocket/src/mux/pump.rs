//! The future that carries tunnels over their links: it alone reads and writes these.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::{Buf, BytesMut};
use messina_core::Shared;
use messina_core::drive::{Clock, Link, Timer, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::Instant;

use super::Hub;
use super::cell::Cell;
use crate::sync::Lock;

/// Carries the tunnels of one [`Mux`](super::Mux). The platform runs it as a task of its own; it
/// ends when the mux and all its links are gone. Dropped before that, it fails them.
#[must_use = "nothing moves through a tunnel while its pump is not run"]
pub struct Pump<T: Transport> {
    hub: Shared<Lock<Hub<T>>>,
    clock: T::Clock,
    carriers: Vec<Carrier<T>>,
}

/// One tunnel and the link below it.
struct Carrier<T: Transport> {
    wire: Wire<T>,
    timer: T::Timer,
    closing_until: Instant,
    buffers: Buffers,
}

enum Wire<T: Transport> {
    Connecting(T::Connecting),
    Open(T::Link),
    Closing(T::Link),
    Gone,
}

/// What is between a tunnel and its link. Not generic.
struct Buffers {
    cell: Shared<Cell>,
    incoming: BytesMut,
    outgoing: BytesMut,
    is_unflushed: bool,
}

impl<T: Transport> Pump<T> {
    pub(super) const fn new(hub: Shared<Lock<Hub<T>>>, clock: T::Clock) -> Self {
        Self {
            hub,
            clock,
            carriers: Vec::new(),
        }
    }
}

// Its parts are only used where they stand if they are `Unpin` themselves.
impl<T: Transport> Unpin for Pump<T> {}

impl<T: Transport> Future for Pump<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let waker = Some(cx.waker().clone());
        let (started, is_closed, old) = this.hub.with(|hub| {
            let old = core::mem::replace(&mut hub.pump, waker);
            (core::mem::take(&mut hub.started), hub.is_closed, old)
        });
        drop(old);
        let started = started.into_iter().map(|started| Carrier {
            wire: Wire::Connecting(started.connecting),
            timer: started.timer,
            closing_until: Instant::ZERO,
            buffers: Buffers::new(started.cell),
        });
        this.carriers.extend(started);
        let clock = &this.clock;
        this.carriers
            .retain_mut(|carrier| carrier.poll(cx, clock, is_closed).is_pending());
        if is_closed && this.carriers.is_empty() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl<T: Transport> Drop for Pump<T> {
    fn drop(&mut self) {
        let started = self.hub.with(|hub| {
            hub.is_pump_gone = true;
            core::mem::take(&mut hub.started)
        });
        for started in &started {
            started.cell.handle_end(CLOSED_BY_US);
        }
        for carrier in &self.carriers {
            carrier.buffers.cell.handle_end(CLOSED_BY_US);
        }
    }
}

impl<T: Transport> fmt::Debug for Pump<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pump")
    }
}

impl<T: Transport> Carrier<T> {
    /// Ready when there is nothing more to do.
    fn poll(&mut self, cx: &mut Context<'_>, clock: &T::Clock, is_closed: bool) -> Poll<()> {
        let buffers = &mut self.buffers;
        // Before anything is looked at, so that what changes meanwhile is looked at again.
        buffers.cell.set_pump(cx.waker());
        if let Wire::Connecting(connecting) = &mut self.wire {
            match Pin::new(connecting).poll(cx) {
                Poll::Ready(Ok(link)) => {
                    self.wire = Wire::Open(link);
                    buffers.cell.handle_open();
                }
                Poll::Ready(Err(error)) => return buffers.end(error),
                // Those who wanted it have given it up.
                Poll::Pending if buffers.cell.is_unused() => return buffers.end(CLOSED_BY_US),
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Wire::Open(link) = &mut self.wire {
            if let Poll::Ready(error) = buffers.poll(cx, link) {
                return buffers.end(error);
            }
            let due = buffers.cell.answer_due();
            self.timer.arm(due);
            if self.timer.poll_fired(cx).is_ready() && due.is_some_and(|due| due <= clock.now()) {
                return buffers.end(LinkError::TIMED_OUT);
            }
            if !buffers.is_done(is_closed) {
                return Poll::Pending;
            }
            let _ = buffers.end(CLOSED_BY_US);
            let until = clock.now().saturating_add(CLOSE_TIMEOUT);
            self.timer.arm(Some(until));
            self.closing_until = until;
            if let Wire::Open(link) = core::mem::replace(&mut self.wire, Wire::Gone) {
                self.wire = Wire::Closing(link);
            }
        }
        match &mut self.wire {
            Wire::Closing(link) => {
                let is_late = self.timer.poll_fired(cx).is_ready();
                if is_late && self.closing_until <= clock.now() {
                    return Poll::Ready(());
                }
                link.poll_close(cx).map(drop)
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Buffers {
    fn new(cell: Shared<Cell>) -> Self {
        Self {
            cell,
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            is_unflushed: false,
        }
    }

    /// Moves bytes until neither direction can go on; ready when the link or the peer has failed.
    fn poll(&mut self, cx: &mut Context<'_>, link: &mut dyn Link) -> Poll<LinkError> {
        for _ in 0..TURNS_MAX {
            let (sent, received) = (self.send(cx, link), self.receive(cx, link));
            match (sent, received) {
                (Err(error), _) | (_, Err(error)) => return Poll::Ready(error),
                (Ok(false), Ok(false)) => return Poll::Pending,
                _ => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether something was sent.
    fn send(&mut self, cx: &mut Context<'_>, link: &mut dyn Link) -> Result<bool, LinkError> {
        if self.outgoing.is_empty() {
            let output = self
                .cell
                .carry(|state| state.tunnel.poll_output(usize::MAX));
            self.outgoing = output.unwrap_or_default();
        }
        if self.outgoing.is_empty() {
            if self.is_unflushed
                && let Poll::Ready(flushed) = link.poll_flush(cx)
            {
                self.is_unflushed = false;
                flushed?;
            }
            return Ok(false);
        }
        match link.poll_write(cx, &self.outgoing) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => Err(LinkError::CLOSED_BY_PEER),
            Poll::Ready(len) => {
                self.is_unflushed = true;
                self.outgoing.advance(len?.min(self.outgoing.len()));
                Ok(true)
            }
        }
    }

    /// Whether something came.
    fn receive(&mut self, cx: &mut Context<'_>, link: &mut dyn Link) -> Result<bool, LinkError> {
        if !self.cell.carry(|state| state.tunnel.wants_input()) {
            return Ok(false);
        }
        self.incoming.clear();
        // A link may give a buffer of its own, of any size; an idle tunnel keeps a small one.
        if self.incoming.capacity() > INCOMING_KEPT {
            self.incoming = BytesMut::new();
        }
        self.incoming.reserve(INCOMING_LEN);
        match link.poll_read(cx, &mut self.incoming) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => Err(LinkError::CLOSED_BY_PEER),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(_)) => {
                let incoming = &self.incoming;
                let taken = self.cell.carry(|state| {
                    state.answer_due = None;
                    state.tunnel.handle_input(incoming)
                });
                taken.map_err(|violation| {
                    LinkError::said(LinkErrorKind::Other, PROTOCOL_ERROR, violation.as_str())
                })?;
                Ok(true)
            }
        }
    }

    /// Whether the link can be closed: nobody uses the tunnel, or ever will.
    fn is_done(&self, is_closed: bool) -> bool {
        let is_idle = self.cell.carry(|state| {
            let is_last = is_closed || state.tunnel.is_draining();
            is_last && state.tunnel.channel_count() == 0 && state.tunnel.output_len() == 0
        });
        is_idle && self.outgoing.is_empty()
    }

    fn end(&self, error: LinkError) -> Poll<()> {
        self.cell.handle_end(error);
        Poll::Ready(())
    }
}

const CLOSED_BY_US: LinkError = LinkError::new(LinkErrorKind::ClosedByUs);

/// WebSocket's own close code for it.
const PROTOCOL_ERROR: u16 = 1002;

/// How long an orderly close may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Turns of both directions in one poll.
const TURNS_MAX: usize = 64;

/// Room for one read.
const INCOMING_LEN: usize = 4 << 10;

/// Longer buffers are not kept.
const INCOMING_KEPT: usize = 64 << 10;
