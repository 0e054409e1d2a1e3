//! What a session, its futures and its runner share: the machine, and its desk.
//!
//! All of it is behind one lock, in which nothing foreign runs: wakers are cloned, woken and dropped
//! outside, links are polled outside, and values are encoded outside. A warm request takes no heap:
//! seats are used again, and so are the buffers that values are bound in.

use core::fmt;
use core::task::{Context, Poll, Waker};

use bytes::BytesMut;

use super::binding::Binder;
use super::desk::{Desk, Held, Outcome, Stage};
use super::ending::session_closed;
use super::machine::{Machine, NONE};
#[cfg(any(test, feature = "streams"))]
use super::{desk::Seat, flow::Next};
use crate::config::Config;
use crate::drive::Clock;
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::sync::{Local, Mutex, assert_unlocked};
use crate::target::{Security, SteeringKind};
use crate::time::Instant;
use crate::wire::request::QueryParameters;

/// See the module.
pub(super) struct Hub {
    pub(super) clock: Local<dyn Clock>,
    state: Mutex<State>,
}

/// What is behind the lock.
// In this order: what is near the start is reached by shorter instructions.
#[repr(C)]
pub(super) struct State {
    pub(super) is_stirred: bool,
    /// The runner is polled again before its task rests, if it was called.
    pub(super) is_near: bool,
    pub(super) is_called: bool,
    /// Who runs the machine, and whether it has something to do.
    pub(super) runner: Option<Waker>,
    /// The earliest deadline of what was submitted since the machine was run, and to be written.
    pub(super) due: Option<Instant>,
    /// When an orderly end is given up.
    pub(super) close_by: Instant,
    /// The runner has ended, and how.
    pub(super) over: Option<Result<(), Error>>,
    pub(super) desk: Desk,
    pub(super) machine: Machine,
}

impl Hub {
    // Where it is called, so that the machine is made in its place: a second one on the stack would be
    // more than all the rest.
    #[inline(always)]
    pub(super) fn new(
        clock: Local<dyn Clock>,
        config: Config,
        seed: u64,
        steering: SteeringKind,
        security: Security,
    ) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                machine: Machine::new(config, seed),
                desk: Desk::new(steering, security),
                runner: None,
                is_stirred: true,
                is_near: false,
                is_called: false,
                due: None,
                close_by: Instant::FAR_FUTURE,
                over: None,
            }),
        }
    }

    /// Nothing if a panic has happened inside.
    pub(super) fn with<R>(&self, action: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.state.with(action).ok()
    }

    /// Does something that the runner has to look at.
    pub(super) fn stir<R>(&self, action: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.rouse(|state| {
            state.is_stirred = true;
            action(state)
        })
    }

    /// The same for what tells by itself whether the machine is to be run.
    fn rouse<R>(&self, action: impl FnOnce(&mut State) -> R) -> Option<R> {
        let (result, waker) = self.with(|state| (action(state), state.call_runner()))?;
        if let Some(waker) = waker {
            assert_unlocked();
            waker.wake();
        }
        Some(result)
    }

    /// Begins a request, and gives it a seat.
    #[inline(never)]
    pub(super) fn submit(
        &self,
        is_streamed: bool,
        begin: &mut dyn FnMut(&mut State) -> u32,
    ) -> Result<u32, Error> {
        let (now, wall) = (self.clock.now(), self.clock.wall_clock());
        let ticket = self.rouse(|state| {
            match &state.over {
                None => {}
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok(())) => return Err(session_closed()),
            }
            state.machine.set_time(now, wall);
            let request = begin(state);
            match state.machine.submit_at_once(request) {
                Some(deadline) => {
                    let due = state.due.get_or_insert(deadline);
                    *due = deadline.min(*due);
                }
                None => state.is_stirred = true,
            }
            state.desk.seat(request, is_streamed)
        });
        ticket.unwrap_or_else(|| Err(session_closed()))
    }

    /// The end of a request; its seat is free then.
    #[inline(never)]
    pub(super) fn poll_outcome(
        &self,
        ticket: u32,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Outcome, Error>> {
        let waker = cx.waker().clone();
        // Wakers that are not needed any more are dropped out here.
        let looked = self.with(|state| state.desk.look(ticket, waker));
        match looked {
            Some((Some(outcome), _)) => Poll::Ready(outcome),
            Some((None, _)) => Poll::Pending,
            None => Poll::Ready(Err(session_closed())),
        }
    }

    /// The next part of a streamed result; the one before was used up. While there is none the window
    /// is with the hub, to be read into.
    #[cfg(any(test, feature = "streams"))]
    #[inline(never)]
    pub(super) fn poll_flow(
        &self,
        ticket: u32,
        window: &mut BytesMut,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Next, Error>> {
        let waker = cx.waker().clone();
        let looked = self.with(|state| {
            let Some(Seat {
                stage: Stage::Flowing(flow),
                waker: known,
                ..
            }) = state.desk.seats.get_mut(ticket)
            else {
                return (Some(Err(session_closed())), Some(waker), None);
            };
            if let Some(next) = flow.next(window) {
                return (Some(next), Some(waker), None);
            }
            // Not each time that nothing is there: two that share a task would wake each other for
            // as long as the node takes.
            let is_awaited = flow.is_stalled || flow.is_unread;
            state.is_stirred |= flow.is_stalled;
            (flow.is_stalled, flow.is_unread) = (false, false);
            let old = known.replace(waker);
            let runner = match is_awaited {
                true => state.call_runner(),
                false => None,
            };
            (None, old, runner)
        });
        let Some((next, _old, runner)) = looked else {
            return Poll::Ready(Err(session_closed()));
        };
        if let Some(runner) = runner {
            assert_unlocked();
            runner.wake();
        }
        next.map_or(Poll::Pending, Poll::Ready)
    }

    /// Gives a request up, or what it has brought; tells the window that was with it.
    pub(super) fn cancel(&self, ticket: u32) -> Option<BytesMut> {
        let seat = self.stir(|state| {
            let seat = state.desk.seats.remove(ticket)?;
            if seat.request != NONE {
                state.desk.unseat(seat.request);
                state.machine.cancel(seat.request);
            }
            Some(seat)
        });
        // Its waker and what it holds are dropped out here.
        match seat.flatten()?.stage {
            Stage::Flowing(flow) => flow.window.bytes(),
            _ => None,
        }
    }

    /// The session's beginning (or its end, if `is_end`).
    pub(super) fn poll_life(&self, is_end: bool, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let waker = cx.waker().clone();
        let looked = self.with(|state| {
            let begun = state.desk.begun.as_ref().filter(|_| !is_end);
            match begun.or(state.over.as_ref()) {
                Some(outcome) => (Poll::Ready(outcome.clone()), Some(waker)),
                None => {
                    let watchers = &mut state.desk.watchers;
                    let is_known = watchers.iter().any(|known| known.will_wake(&waker));
                    let spare = if is_known {
                        Some(waker)
                    } else {
                        watchers.push(waker);
                        None
                    };
                    (Poll::Pending, spare)
                }
            }
        });
        looked.map_or(Poll::Ready(Err(session_closed())), |(life, _)| life)
    }

    /// A statement that was prepared and not released since, and what its values are bound in.
    pub(super) fn held(&self, number: u32, serial: u32) -> Result<(Local<Held>, Binder), Error> {
        let found = self.with(|state| {
            let held = state.desk.held_at(number)?;
            let held = (held.serial == serial).then(|| Local::clone(held))?;
            let head_len = QueryParameters::head_len(state.machine.config.protocol.first());
            Some((held, core::mem::take(&mut state.desk.buffer), head_len))
        });
        let (held, buffer, head_len) = found.flatten().ok_or_else(stale)?;
        Ok((held, Binder::behind(buffer, head_len)))
    }
}

impl State {
    /// The runner's waker, unless the runner goes on without being woken.
    const fn call_runner(&mut self) -> Option<Waker> {
        if self.is_near {
            self.is_called = true;
            return None;
        }
        self.runner.take()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

/// The statement was released.
pub(super) fn stale() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::StaleStatement))
}

#[cfg(test)]
mod tests;
