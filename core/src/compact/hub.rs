//! What a session, its futures and its runner share: the machine, and a seat for each request that
//! somebody waits for.
//!
//! All of it is behind one lock, in which nothing foreign runs: wakers are cloned, woken and dropped
//! outside, links are polled outside, and values are encoded outside. A warm request takes no heap:
//! seats are used again, and so are the buffers that values are bound in.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};

use super::host::{Done, Host};
use super::machine::{Machine, NONE};
use super::reply::Reply;
use super::request::Statement;
use super::rows::{Binder, type_numbers};
use super::slab::Slab;
use crate::drive::Clock;
use crate::drive::wakers::Wakers;
use crate::error::{ApiMisuse, Error, ErrorKind, PeerMisbehaved};
use crate::sync::{Local, Mutex, assert_unlocked};
use crate::target::{Security, SteeringKind, Target};
use crate::time::Instant;
use crate::wire::request::QueryParameters;
use crate::wire::{Flags, FrameHeader};

/// See the module.
pub(super) struct Hub {
    pub(super) clock: Local<dyn Clock>,
    state: Mutex<State>,
}

/// What is behind the lock.
pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) desk: Desk,
    /// Who runs the machine, and whether it has something to do.
    pub(super) runner: Option<Waker>,
    pub(super) is_stirred: bool,
    /// The runner is polled again before its task rests, if it was called.
    pub(super) is_near: bool,
    pub(super) is_called: bool,
    /// The earliest deadline of what was submitted since the machine was run, and to be written.
    pub(super) due: Option<Instant>,
    /// When an orderly end is given up.
    pub(super) close_by: Instant,
    /// The runner has ended, and how.
    pub(super) over: Option<Result<(), Error>>,
}

/// The machine's host: it only takes down what is to be done outside of the lock.
pub(super) struct Desk {
    pub(super) seats: Slab<Seat>,
    /// The seat of each request, by the machine's number.
    tickets: Vec<u32>,
    /// The request that ends when the session can be used, and how it did.
    pub(super) beginning: u32,
    pub(super) begun: Option<Result<(), Error>>,
    /// Who waits for the beginning or the end.
    pub(super) watchers: Vec<Waker>,
    pub(super) orders: Vec<Order>,
    pub(super) wakers: Wakers,
    /// Prepared statements, by the machine's number.
    held: Vec<Option<Local<Held>>>,
    prepared: u32,
    /// A buffer to bind values in, and one window for rows with room for the numbers of their types.
    pub(super) buffer: BytesMut,
    pub(super) window: Option<(BytesMut, Vec<u16>)>,
    steering: SteeringKind,
    security: Security,
}

/// What the runner is to do.
#[derive(Debug)]
pub(super) enum Order {
    Connect(u32, Target),
    Abort(u32),
    Close(u32),
}

/// A request that somebody waits for.
pub(super) struct Seat {
    /// The machine's number; none once the request has ended, since others may have it then.
    request: u32,
    waker: Option<Waker>,
    stage: Stage,
}

enum Stage {
    Waiting,
    Flowing(Flow),
    Done(Result<Outcome, Error>),
}

/// How a request has ended well.
pub(super) enum Outcome {
    Session,
    Prepared(u32),
    Reply(Reply),
}

/// A result whose body comes in pieces.
#[derive(Default)]
pub(super) struct Flow {
    /// Flags of the frame and length of the body, not told yet.
    header: Option<(Flags, usize)>,
    piece: Option<Bytes>,
    window: Window,
    /// What goes on when the reader waits again: the link is read, and the machine runs, which may
    /// have bytes of the body.
    is_unread: bool,
    is_stalled: bool,
    end: Option<Result<(), Error>>,
}

/// Where the window is that the reader finds rows in.
#[derive(Default)]
enum Window {
    #[default]
    InUse,
    /// The reader waits for more bytes in it.
    Waiting(BytesMut),
    /// These have come.
    Filled(BytesMut),
}

/// What comes next of a streamed result.
pub(super) enum Next {
    Header(Flags, usize),
    Piece(Bytes),
    /// The window has more bytes.
    Filled,
    End,
}

/// A prepared statement.
pub(super) struct Held {
    pub(super) statement: Local<Statement>,
    /// Which of those that were prepared under its number.
    pub(super) serial: u32,
    /// Types of the markers.
    pub(super) type_numbers: Box<[u16]>,
}

impl Hub {
    pub(super) fn new(
        clock: Local<dyn Clock>,
        machine: Machine,
        beginning: u32,
        steering: SteeringKind,
        security: Security,
    ) -> Self {
        let desk = Desk {
            seats: Slab::new(),
            tickets: Vec::new(),
            beginning,
            begun: None,
            watchers: Vec::new(),
            orders: Vec::new(),
            wakers: Wakers::new(),
            held: Vec::new(),
            prepared: 0,
            buffer: BytesMut::new(),
            window: None,
            steering,
            security,
        };
        Self {
            clock,
            state: Mutex::new(State {
                machine,
                desk,
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
            let head_len = QueryParameters::head_len(state.machine.config.protocol);
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

impl Desk {
    /// A seat for a request that has begun.
    fn seat(&mut self, request: u32, is_streamed: bool) -> Result<u32, Error> {
        let stage = match is_streamed {
            true => Stage::Flowing(Flow::default()),
            false => Stage::Waiting,
        };
        let seat = Seat {
            request,
            waker: None,
            stage,
        };
        let busy = || Error::new(ErrorKind::Busy);
        if request == NONE {
            return Err(busy());
        }
        let ticket = self.seats.insert(seat).ok_or_else(busy)?;
        let place = place(request);
        if self.tickets.len() <= place {
            self.tickets.resize(place.saturating_add(1), NONE);
        }
        if let Some(known) = self.tickets.get_mut(place) {
            *known = ticket;
        }
        Ok(ticket)
    }

    fn unseat(&mut self, request: u32) -> Option<u32> {
        let ticket = self.tickets.get_mut(place(request))?;
        Some(core::mem::replace(ticket, NONE)).filter(|ticket| *ticket != NONE)
    }

    fn look(
        &mut self,
        ticket: u32,
        waker: Waker,
    ) -> (Option<Result<Outcome, Error>>, Option<Waker>) {
        let Some(seat) = self.seats.get_mut(ticket) else {
            return (Some(Err(session_closed())), Some(waker));
        };
        if !matches!(seat.stage, Stage::Done(_)) {
            return (None, seat.waker.replace(waker));
        }
        let stage = core::mem::replace(&mut seat.stage, Stage::Waiting);
        // Its waker was taken when it was done.
        self.seats.discard(ticket);
        match stage {
            Stage::Done(outcome) => (Some(outcome), Some(waker)),
            _ => (Some(Err(session_closed())), Some(waker)),
        }
    }

    /// The window of a reader that waits, to be read into and given back; nothing if it does not.
    pub(super) fn lend_window(&mut self, request: u32) -> Option<BytesMut> {
        let (flow, _) = self.flow(request)?;
        if flow.has_room() {
            return core::mem::take(&mut flow.window).bytes();
        }
        flow.is_unread = true;
        None
    }

    /// Takes it back; tells who waits for what has come. `is_known` if the link tells when more has.
    pub(super) fn return_window(
        &mut self,
        request: u32,
        window: BytesMut,
        is_filled: bool,
        is_known: bool,
    ) -> Option<Waker> {
        let (flow, waker) = self.flow(request)?;
        if is_filled {
            flow.window = Window::Filled(window);
            flow.is_unread = !is_known;
            return waker.take();
        }
        flow.window = Window::Waiting(window);
        None
    }

    pub(super) fn held_at(&self, number: u32) -> Option<&Local<Held>> {
        self.held.get(place(number))?.as_ref()
    }

    /// Whether the statement was not released since.
    pub(super) fn has(&self, number: u32, serial: u32) -> bool {
        self.held_at(number)
            .is_some_and(|held| held.serial == serial)
    }

    /// The number of the statement with this text.
    pub(super) fn find(&self, text: &str) -> Option<(u32, u32)> {
        let is_it = |held: &Held| *held.statement.text == *text;
        let mut all = (0..).zip(&self.held);
        all.find_map(|(number, held)| {
            let held = held.as_deref().filter(|held| is_it(held))?;
            Some((number, held.serial))
        })
    }

    pub(super) fn release(&mut self, number: u32) -> Option<Local<Held>> {
        self.held.get_mut(place(number))?.take()
    }

    fn keep(&mut self, number: u32, statement: &Local<Statement>) -> Result<(), Error> {
        let columns = statement.prepared()?.bound.columns;
        let held = Held {
            statement: Local::clone(statement),
            serial: self.prepared,
            type_numbers: type_numbers(columns).collect(),
        };
        self.prepared = self.prepared.wrapping_add(1);
        let place = place(number);
        while self.held.len() <= place {
            self.held.push(None);
        }
        if let Some(known) = self.held.get_mut(place) {
            *known = Some(Local::new(held));
        }
        Ok(())
    }

    /// All who wait for the beginning or the end.
    pub(super) fn call_watchers(&mut self) {
        for waker in self.watchers.drain(..) {
            self.wakers.extend(Some(waker));
        }
    }

    /// The runner has ended: nothing more will come.
    pub(super) fn end(&mut self, error: &Error) {
        for ticket in 0..self.seats.end() {
            let Some(seat) = self.seats.get_mut(ticket) else {
                continue;
            };
            seat.request = NONE;
            match &mut seat.stage {
                Stage::Waiting => seat.stage = Stage::Done(Err(error.clone())),
                Stage::Flowing(flow) if flow.end.is_none() => flow.end = Some(Err(error.clone())),
                _ => continue,
            }
            self.wakers.extend(seat.waker.take());
        }
        self.call_watchers();
    }

    fn flow(&mut self, request: u32) -> Option<(&mut Flow, &mut Option<Waker>)> {
        let ticket = self.tickets.get(place(request))?;
        match self.seats.get_mut(*ticket)? {
            Seat {
                stage: Stage::Flowing(flow),
                waker,
                ..
            } => Some((flow, waker)),
            _ => None,
        }
    }
}

impl Desk {
    #[inline(never)]
    fn order(&mut self, order: Order) {
        self.orders.push(order);
    }
}

impl Host for Desk {
    fn connect(&mut self, link: u32, target: Target) {
        self.order(Order::Connect(link, target));
    }

    fn abort(&mut self, link: u32) {
        self.order(Order::Abort(link));
    }

    fn close(&mut self, link: u32) {
        self.order(Order::Close(link));
    }

    fn steering(&self) -> SteeringKind {
        self.steering
    }

    fn security(&self) -> Security {
        self.security
    }

    fn done(&mut self, request: u32, outcome: Result<Done<'_>, Error>) {
        let outcome = match outcome {
            Ok(Done::Session) => Ok(Outcome::Session),
            Ok(Done::Prepared(number, statement)) => self
                .keep(number, statement)
                .map(|()| Outcome::Prepared(number)),
            Ok(Done::Answer(answered)) => Ok(Outcome::Reply(Reply::new(answered))),
            Err(error) => Err(error),
        };
        if request == self.beginning {
            self.beginning = NONE;
            self.begun = Some(outcome.map(drop));
            return self.call_watchers();
        }
        let Some(ticket) = self.unseat(request) else {
            return;
        };
        let Some(seat) = self.seats.get_mut(ticket) else {
            return;
        };
        seat.request = NONE;
        match &mut seat.stage {
            Stage::Flowing(flow) => flow.finish(outcome),
            stage => *stage = Stage::Done(outcome),
        }
        let waker = seat.waker.take();
        self.wakers.extend(waker);
    }

    fn begin(&mut self, request: u32, header: &FrameHeader) -> bool {
        let Some((flow, waker)) = self.flow(request) else {
            return false;
        };
        let len = usize::try_from(header.body_len).unwrap_or(usize::MAX);
        flow.header = Some((header.flags, len));
        let waker = waker.take();
        self.wakers.extend(waker);
        true
    }

    fn has_room(&mut self, request: u32) -> bool {
        self.flow(request).is_none_or(|(flow, _)| {
            flow.is_stalled = !flow.has_room();
            !flow.is_stalled
        })
    }

    fn piece(&mut self, request: u32, bytes: Bytes) {
        let Some((flow, waker)) = self.flow(request) else {
            return;
        };
        flow.piece = Some(bytes);
        let waker = waker.take();
        self.wakers.extend(waker);
    }
}

impl Window {
    fn bytes(self) -> Option<BytesMut> {
        match self {
            Self::InUse => None,
            Self::Waiting(bytes) | Self::Filled(bytes) => Some(bytes),
        }
    }
}

impl Flow {
    /// Whether the reader waits for bytes.
    const fn has_room(&self) -> bool {
        matches!(self.window, Window::Waiting(_)) && self.piece.is_none()
    }

    /// The next part, and the window with it; or the window is taken.
    fn next(&mut self, window: &mut BytesMut) -> Option<Result<Next, Error>> {
        let is_filled = matches!(self.window, Window::Filled(_));
        let next = if let Some((flags, len)) = self.header.take() {
            Ok(Next::Header(flags, len))
        } else if let Some(piece) = self.piece.take() {
            Ok(Next::Piece(piece))
        } else if is_filled {
            Ok(Next::Filled)
        } else if let Some(end) = &self.end {
            end.clone().map(|()| Next::End)
        } else {
            if matches!(self.window, Window::InUse) {
                self.window = Window::Waiting(core::mem::take(window));
            }
            return None;
        };
        if let Some(bytes) = core::mem::take(&mut self.window).bytes() {
            *window = bytes;
        }
        Some(next)
    }

    fn finish(&mut self, outcome: Result<Outcome, Error>) {
        self.end = Some(match outcome {
            // It came whole after all.
            Ok(Outcome::Reply(reply)) => {
                let (flags, body) = reply.into_body();
                if !body.is_empty() {
                    self.header = Some((flags, body.len()));
                    self.piece = Some(body);
                }
                Ok(())
            }
            Ok(_) => Err(PeerMisbehaved::UnexpectedFrame.into()),
            Err(error) => Err(error),
        });
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

pub(super) fn session_closed() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed))
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use alloc::task::Wake;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Instant {
            Instant::ZERO
        }
    }

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Local<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_reader_wakes_the_runner_once_for_room_that_was_wanted() {
        let machine = Machine::new(Config::mcu(), 1);
        let clock: Local<dyn Clock> = Local::new(Still);
        let hub = Hub::new(clock, machine, NONE, SteeringKind::None, Security::Plain);
        let ticket = hub.with(|state| state.desk.seat(3, true));
        let ticket = ticket.expect("no panic").expect("a seat");
        let woken = Local::new(Count::default());
        let wakes = || {
            // It leaves its waker again with each poll.
            let waker = Waker::from(Local::clone(&woken));
            hub.with(|state| state.runner = Some(waker));
            woken.0.load(Relaxed)
        };
        let lend = || hub.with(|state| state.desk.lend_window(3)).flatten();
        let mut cx = Context::from_waker(Waker::noop());
        let mut window = BytesMut::with_capacity(8);

        assert_eq!(wakes(), 0);
        for _ in 0..3 {
            assert!(hub.poll_flow(ticket, &mut window, &mut cx).is_pending());
            assert_eq!((wakes(), window.capacity()), (0, 0));
        }
        let mut lent = lend().expect("it waits");
        assert!(lent.capacity() >= 8);
        lent.extend_from_slice(b"row");
        let reader = hub.with(|state| state.desk.return_window(3, lent, true, false));
        assert!(reader.flatten().is_some() && lend().is_none());
        let next = hub.poll_flow(ticket, &mut window, &mut cx);
        assert!(matches!(next, Poll::Ready(Ok(Next::Filled))));
        assert_eq!((wakes(), &window[..], lend()), (0, &b"row"[..], None));
        for _ in 0..3 {
            assert!(hub.poll_flow(ticket, &mut window, &mut cx).is_pending());
            assert_eq!(wakes(), 1);
        }
        let lent = lend().expect("it waits again");
        hub.with(|state| state.desk.return_window(3, lent, false, true));
        assert_eq!(
            hub.cancel(ticket).expect("the window").as_ref(),
            b"row".as_slice()
        );
        assert!(lend().is_none());
    }
}
