//! Runs a session in one task: all of its links and its machine, polled in turn, nothing spawned.
//!
//! Each wake goes round once: links are read, the machine goes on, links are written; again only if
//! something was read, or a link may be read now that was not to be before. The machine is left alone
//! by a wake that brings it nothing: no time, no request but those that were submitted where they
//! began, and no bytes but those that a reader of rows waits for.
//!
//! The links belong to the runner and are polled outside of the lock; their buffers are lent by the
//! machine, so that no byte is copied between them. Work of one poll is bounded: after
//! [`ROUNDS_MAX`] rounds the task queues itself again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use super::beside::Neighbour;
use super::desk::Order;
use super::ending::session_closed;
use super::hub::{Hub, State};
use super::machine::Phase;
use super::wires::{Stage, Wire};
use crate::drive::{Endpoint, Timer as _, Transport};
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use crate::sync::{Local, assert_unlocked};
use crate::time::Instant;

/// Runs a session; to be polled until it is done, which it is when the session was closed and its
/// links are, or when it has ended by an error. Dropping it aborts the links and fails whatever is
/// under way.
#[must_use = "a session does nothing unless its runner is polled"]
pub struct Runner<T: Transport> {
    transport: T,
    pub(super) hub: Local<Hub>,
    pub(super) neighbour: Neighbour,
    timer: T::Timer,
    wires: Vec<Box<Wire<T>>>,
    orders: Vec<Order>,
    wakers: Vec<Waker>,
    read_chunk: usize,
    close: Duration,
    /// When the machine wants to go on, and what the timer is armed for.
    next: Instant,
    armed: Instant,
    is_done: bool,
}

impl<T: Transport> Runner<T> {
    pub(super) fn new(transport: T, hub: Local<Hub>, read_chunk: usize, close: Duration) -> Self {
        Self {
            timer: transport.timer(),
            transport,
            hub,
            neighbour: Neighbour::default(),
            wires: Vec::new(),
            orders: Vec::new(),
            wakers: Vec::new(),
            read_chunk,
            close,
            next: Instant::ZERO,
            armed: Instant::ZERO,
            is_done: false,
        }
    }

    // What is called in the loop stays out of it: the compiler would work out all of its addresses
    // before each first round.
    #[inline(never)]
    fn poll_rounds(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (mut must_run, due) = self.take_calls(cx.waker());
        self.next = due.map_or(self.next, |due| due.min(self.next));
        let (mut must_read, mut must_write) = (true, due.is_some());
        for _ in 0..ROUNDS_MAX {
            let mut has_read = false;
            if must_read {
                for wire in &mut self.wires {
                    let wakers = &mut self.wakers;
                    has_read |=
                        wire.poll_read(cx, &self.transport, &self.hub, self.read_chunk, wakers);
                }
            }
            if !self.wakers.is_empty() {
                self.wake();
            }
            if !(must_run || has_read) {
                for wire in &mut self.wires {
                    if must_write || wire.is_writing() {
                        must_run |= wire.poll_write(cx, &self.hub);
                    }
                }
                must_write = false;
                if !must_run {
                    if self.poll_timer(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.give_up_closing();
                }
            }
            let is_over = self.run();
            must_run = self.carry_out();
            for wire in &mut self.wires {
                must_run |= wire.poll_write(cx, &self.hub);
            }
            self.wires.retain(|wire| !wire.is_ended());
            if is_over && self.wires.is_empty() {
                self.finish(None);
                return Poll::Ready(());
            }
            // Links that were read to their end wake this task by themselves.
            let is_unread = self.wires.iter().any(|wire| wire.is_unread);
            must_read = has_read || must_run || is_unread;
        }
        self.hub.with(|state| state.is_stirred = true);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Leaves the waker, and takes what it was called for before: whether the machine is to run, and
    /// when the first request is over that began without it.
    fn take_calls(&self, waker: &Waker) -> (bool, Option<Instant>) {
        let take = |state: &mut State| {
            state.is_near = self.neighbour.is_near;
            (core::mem::take(&mut state.is_stirred), state.due.take())
        };
        // Most often it is there, and is neither cloned nor dropped.
        let known = self.hub.with(|state| {
            let runner = state.runner.as_ref()?;
            runner.will_wake(waker).then(|| take(state))
        });
        let taken = known.unwrap_or(Some((true, None)));
        taken.unwrap_or_else(|| {
            let waker = waker.clone();
            let replaced = self
                .hub
                .with(|state| (state.runner.replace(waker), take(state)));
            replaced.map_or((true, None), |(_old, taken)| taken)
        })
    }

    /// The machine goes on; whether there is nothing more for it to do.
    #[inline(never)]
    fn run(&mut self) -> bool {
        let (now, wall) = (self.hub.clock.now(), self.hub.clock.wall_clock());
        let (orders, wakers) = (&mut self.orders, &mut self.wakers);
        let ran = self.hub.with(|state| {
            let next = state.machine.run(now, wall, &mut state.desk);
            core::mem::swap(&mut state.desk.orders, orders);
            core::mem::swap(&mut state.desk.wakers, wakers);
            let machine = &state.machine;
            let is_over = !machine.is_open() && !machine.is_closing();
            (next.min(state.close_by), state.close_by, is_over)
        });
        self.wake();
        let closed = (Instant::FAR_FUTURE, Instant::ZERO, true);
        let (next, close_by, is_over) = ran.unwrap_or(closed);
        self.next = next;
        if now >= close_by {
            let error = Error::new(ErrorKind::Timeout(TimeoutKind::Close));
            self.wires.clear();
            self.orders.clear();
            self.finish(Some(error));
            return true;
        }
        is_over
    }

    fn wake(&mut self) {
        let neighbour = &mut self.neighbour;
        assert_unlocked();
        for waker in self.wakers.drain(..) {
            match neighbour.takes(&waker) {
                true => drop(waker),
                false => waker.wake(),
            }
        }
    }

    /// Does what the machine wants; whether it wanted anything.
    #[inline(never)]
    fn carry_out(&mut self) -> bool {
        if self.orders.is_empty() {
            return false;
        }
        let close_by = self.hub.clock.now().saturating_add(self.close);
        for order in self.orders.drain(..) {
            let number = match &order {
                Order::Connect(number, _) | Order::Abort(number) | Order::Close(number) => *number,
            };
            if let Order::Connect(_, target) = order {
                if !T::RESOLVES && matches!(target.endpoint, Endpoint::Name { .. }) {
                    let error = LinkError::new(LinkErrorKind::Resolve);
                    self.hub
                        .with(|state| state.machine.handle_ended(number, error));
                } else {
                    self.wires
                        .push(Box::new(Wire::new(number, &self.transport, target)));
                }
                continue;
            }
            let is_it = |wire: &&mut Box<Wire<T>>| wire.number == number && !wire.is_closing();
            if let Some(wire) = self.wires.iter_mut().find(is_it) {
                match (order, &wire.stage) {
                    (Order::Close(_), Stage::Open(_)) => wire.close_by = close_by,
                    _ => wire.stage = Stage::Ended,
                }
            }
        }
        true
    }

    /// Ready when the machine is to go on, or a link has not closed in time.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.wires.iter().map(|wire| wire.close_by);
        let at = closing.fold(self.next, Instant::min);
        if self.armed != at {
            self.armed = at;
            self.timer
                .arm(Some(at).filter(|at| *at < Instant::FAR_FUTURE));
        }
        assert_unlocked();
        let fired = self.timer.poll_fired(cx);
        if fired.is_ready() {
            // It may be early; it is armed anew then.
            self.armed = Instant::ZERO;
        }
        fired
    }

    fn give_up_closing(&mut self) {
        let now = self.hub.clock.now();
        for wire in &mut self.wires {
            if wire.close_by <= now {
                wire.stage = Stage::Ended;
            }
        }
    }

    /// Nothing more will come: tells whoever waits.
    fn finish(&mut self, error: Option<Error>) {
        if core::mem::replace(&mut self.is_done, true) {
            return;
        }
        let wakers = &mut self.wakers;
        let runner = self.hub.with(|state| {
            let error = error.or_else(|| match &state.machine.phase {
                Phase::Over(error) => Some(error.clone()),
                _ => None,
            });
            state
                .desk
                .end(&error.clone().unwrap_or_else(session_closed));
            state.over = Some(error.map_or(Ok(()), Err));
            core::mem::swap(&mut state.desk.wakers, wakers);
            state.runner.take()
        });
        drop(runner);
        self.wake();
    }
}

// Nothing in it is pinned.
impl<T: Transport> Unpin for Runner<T> {}

impl<T: Transport> Future for Runner<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.is_done {
            true => Poll::Ready(()),
            false => self.poll_rounds(cx),
        }
    }
}

impl<T: Transport> Drop for Runner<T> {
    fn drop(&mut self) {
        self.finish(Some(session_closed()));
    }
}

impl<T: Transport> fmt::Debug for Runner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("links", &self.wires.len())
            .finish_non_exhaustive()
    }
}

/// Rounds of one poll before the task lets others run.
const ROUNDS_MAX: u32 = 32;
