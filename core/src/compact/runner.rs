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
use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use bytes::{Buf as _, BytesMut};

use super::beside::Neighbour;
use super::desk::Order;
use super::hub::{Hub, State, session_closed};
use super::machine::Phase;
use crate::drive::wakers::Wakers;
use crate::drive::{Endpoint, Link as _, Resolved, Target, Timer as _, Transport};
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use crate::sync::{Local, assert_unlocked};
use crate::target::RESOLVED_MAX;
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
    wires: Vec<Wire<T>>,
    orders: Vec<Order>,
    wakers: Wakers,
    read_chunk: usize,
    close: Duration,
    /// When the machine wants to go on, and what the timer is armed for.
    next: Instant,
    armed: Instant,
    is_done: bool,
}

/// A link, as the platform has it.
struct Wire<T: Transport> {
    number: u32,
    stage: Stage<T>,
    /// What else may be connected to, if it leads to a name.
    choice: Option<Box<Choice>>,
    /// Bytes that the machine has given and the link has not taken.
    output: BytesMut,
    needs_flush: bool,
    /// It is being closed, until then; far future while it is not.
    close_by: Instant,
    /// It was not read when it was last asked, since nothing was to be.
    is_unread: bool,
}

enum Stage<T: Transport> {
    Resolving(T::Resolving),
    Connecting(T::Connecting),
    Open(T::Link),
    Ended,
}

/// A name, its addresses, and how many of them were tried.
struct Choice {
    target: Target,
    addresses: heapless::Vec<IpAddr, RESOLVED_MAX>,
    tried: usize,
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
            wakers: Wakers::new(),
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
        self.wakers.wake_others(|waker| neighbour.takes(waker));
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
                    self.wires.push(Wire::new(number, &self.transport, target));
                }
                continue;
            }
            let is_it = |wire: &&mut Wire<T>| wire.number == number && !wire.is_closing();
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

impl<T: Transport> Wire<T> {
    /// Names are looked up first.
    fn new(number: u32, transport: &T, target: Target) -> Self {
        let (stage, choice) = match &target.endpoint {
            Endpoint::Name { host, .. } if T::RESOLVES => {
                let resolving = transport.resolve(host);
                let choice = Choice {
                    target,
                    addresses: heapless::Vec::new(),
                    tried: 0,
                };
                (Stage::Resolving(resolving), Some(Box::new(choice)))
            }
            _ => (Stage::Connecting(transport.connect(target)), None),
        };
        Self {
            number,
            stage,
            choice,
            output: BytesMut::new(),
            needs_flush: false,
            close_by: Instant::FAR_FUTURE,
            is_unread: false,
        }
    }

    /// Goes on to the next address of a name; whether there is one.
    fn connect_next(&mut self, transport: &T) -> bool {
        let Some(choice) = self.choice.as_mut().filter(|_| T::RESOLVES) else {
            return false;
        };
        let (target, address) = (&choice.target, choice.addresses.get(choice.tried));
        let (Some(&address), Endpoint::Name { port, .. }) = (address, &target.endpoint) else {
            return false;
        };
        choice.tried = choice.tried.saturating_add(1);
        let address = Endpoint::Addr(SocketAddr::new(address, *port));
        let mut next = Target::new(address, target.deadline);
        next.steering = target.steering;
        next.server_name.clone_from(&target.server_name);
        self.stage = Stage::Connecting(transport.connect(next));
        true
    }

    /// Whether bytes were not taken by the link yet.
    fn is_writing(&self) -> bool {
        self.needs_flush || !self.output.is_empty()
    }

    const fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    fn is_closing(&self) -> bool {
        self.is_ended() || self.close_by < Instant::FAR_FUTURE
    }

    /// Goes on with whatever the link is about; whether something has happened.
    #[inline(never)]
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        transport: &T,
        hub: &Hub,
        chunk: usize,
        wakers: &mut Wakers,
    ) -> bool {
        assert_unlocked();
        let link = match &mut self.stage {
            Stage::Open(link) if self.close_by == Instant::FAR_FUTURE => link,
            _ => return self.poll_stage(cx, transport, hub),
        };
        match read(cx, link, self.number, hub, chunk, wakers) {
            Ok(has_read) => {
                self.is_unread = has_read.is_none();
                has_read == Some(true)
            }
            Err(error) => {
                self.fail(hub, error);
                true
            }
        }
    }

    /// The same for a link that is not open yet, or being closed.
    #[inline(never)]
    fn poll_stage(&mut self, cx: &mut Context<'_>, transport: &T, hub: &Hub) -> bool {
        match &mut self.stage {
            Stage::Resolving(_) if !T::RESOLVES => false,
            Stage::Resolving(resolving) => {
                let Poll::Ready(resolved) = Pin::new(resolving).poll(cx) else {
                    return false;
                };
                let begun = resolved.map(|resolved| match resolved {
                    Resolved::KeepName => self.choice.take().is_some_and(|choice| {
                        self.stage = Stage::Connecting(transport.connect(choice.target));
                        true
                    }),
                    Resolved::Addrs(addresses) => {
                        if let Some(choice) = &mut self.choice {
                            choice.addresses = addresses;
                        }
                        self.connect_next(transport)
                    }
                });
                match begun {
                    Ok(true) => {}
                    Ok(false) => self.fail(hub, LinkError::new(LinkErrorKind::Resolve)),
                    Err(error) => self.fail(hub, error),
                }
                true
            }
            Stage::Connecting(connecting) => {
                let Poll::Ready(connected) = Pin::new(connecting).poll(cx) else {
                    return false;
                };
                match connected {
                    Ok(link) => {
                        self.stage = Stage::Open(link);
                        hub.with(|state| state.machine.handle_opened(self.number));
                    }
                    Err(error) => {
                        if !self.connect_next(transport) {
                            self.fail(hub, error);
                        }
                    }
                }
                true
            }
            Stage::Open(link) => {
                let is_closed = link.poll_close(cx).is_ready();
                if is_closed {
                    self.stage = Stage::Ended;
                }
                is_closed
            }
            Stage::Ended => false,
        }
    }

    /// Writes what there is; whether the machine has to look at that.
    #[inline(never)]
    fn poll_write(&mut self, cx: &mut Context<'_>, hub: &Hub) -> bool {
        let link = match &mut self.stage {
            Stage::Open(link) if self.close_by == Instant::FAR_FUTURE => link,
            _ => return false,
        };
        let (number, mut must_run) = (self.number, false);
        let failed = loop {
            if self.output.is_empty() {
                let output = &mut self.output;
                hub.with(|state| {
                    if let Some(link) = state.machine.link(number) {
                        link.swap_output(output);
                    }
                });
                if self.output.is_empty() {
                    break None;
                }
            }
            assert_unlocked();
            match link.poll_write(cx, &self.output) {
                Poll::Pending => return must_run,
                Poll::Ready(Ok(0)) => break Some(LinkError::CLOSED_BY_PEER),
                Poll::Ready(Err(error)) => break Some(error),
                Poll::Ready(Ok(len)) => {
                    let len = len.min(self.output.len());
                    self.output.advance(len);
                    self.needs_flush = true;
                    let (closing, has_more) = hub
                        .with(|state| {
                            let has_more = state.machine.link(number).is_some_and(|link| {
                                link.handle_taken(len);
                                !link.is_idle()
                            });
                            (state.machine.is_closing(), has_more)
                        })
                        .unwrap_or_default();
                    must_run |= closing;
                    if !has_more {
                        break None;
                    }
                }
            }
        };
        let failed = failed.or_else(|| {
            if !self.needs_flush {
                return None;
            }
            match link.poll_flush(cx) {
                Poll::Pending => None,
                Poll::Ready(Ok(())) => {
                    self.needs_flush = false;
                    None
                }
                Poll::Ready(Err(error)) => Some(error),
            }
        });
        if let Some(error) = failed {
            self.fail(hub, error);
            return true;
        }
        must_run
    }

    fn fail(&mut self, hub: &Hub, error: LinkError) {
        self.stage = Stage::Ended;
        hub.with(|state| state.machine.handle_ended(self.number, error));
    }
}

/// Reads once into the machine's buffer, or into the window of a reader that waits for just these
/// bytes; whether something has come for the machine, or nothing if nothing is to be read now.
fn read(
    cx: &mut Context<'_>,
    link: &mut impl crate::drive::Link,
    number: u32,
    hub: &Hub,
    chunk: usize,
    wakers: &mut Wakers,
) -> Result<Option<bool>, LinkError> {
    let lent = hub.with(|state| {
        let of_machine = state.machine.link(number)?;
        let Some((request, left)) = of_machine.passing() else {
            let (input, wanted) = of_machine.lend_input(chunk)?;
            return Some((input, Lent::Input(wanted)));
        };
        let window = state.desk.lend_window(request)?;
        Some((window, Lent::Window(request, left)))
    });
    let Some(Some((mut buffer, lent))) = lent else {
        return Ok(None);
    };
    let before = buffer.len();
    match lent {
        Lent::Input(wanted) => make_room(&mut buffer, wanted, chunk),
        Lent::Window(..) if buffer.capacity() == before => buffer.reserve(chunk.max(1)),
        Lent::Window(..) => {}
    }
    let mut read = link.poll_read(cx, &mut buffer);
    let mut is_known = read.is_pending();
    if let Lent::Window(_, left) = lent {
        // All that fits, so that the reader is woken once for it; at best until the link has the waker,
        // so that the reader need not call for more.
        let is_right = |read: &Poll<_>| matches!(read, Poll::Ready(Ok(1..)));
        while is_right(&read)
            && buffer.len() < buffer.capacity()
            && buffer.len().saturating_sub(before) < left
        {
            match link.poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    is_known = true;
                    break;
                }
                more => read = more,
            }
        }
    }
    let returned = hub.with(|state| {
        let of_machine = state.machine.link(number)?;
        let Lent::Window(request, left) = lent else {
            of_machine.input = buffer;
            return None;
        };
        // What is behind the body is not the reader's.
        let end = before.saturating_add(left).min(buffer.len());
        let behind = buffer.get(end..).unwrap_or_default();
        let must_run = of_machine.pass(end.saturating_sub(before), behind);
        buffer.truncate(end);
        let is_filled = end > before;
        let waker = state
            .desk
            .return_window(request, buffer, is_filled, is_known);
        Some((must_run, waker))
    });
    // Until the reader waits again nothing is to be read, unless the body is over.
    let has_read = match returned.flatten() {
        None => Some(true),
        Some((must_run, waker)) => {
            wakers.extend(waker);
            must_run.then_some(true)
        }
    };
    match read {
        Poll::Pending => Ok(Some(false)),
        Poll::Ready(Ok(0)) => Err(LinkError::CLOSED_BY_PEER),
        Poll::Ready(Ok(_)) => Ok(has_read),
        Poll::Ready(Err(error)) => Err(error),
    }
}

/// What a link is read into.
enum Lent {
    /// The machine's buffer, which is to have so much room.
    Input(usize),
    /// The window of this request's reader, for so many bytes.
    Window(u32, usize),
}

/// Makes room for a read. The same memory is used again, from its start, as soon as no answer is a
/// slice of it; another is taken only if there is no room at all.
fn make_room(input: &mut BytesMut, wanted: usize, chunk: usize) {
    let spare = input.capacity().saturating_sub(input.len());
    let missing = wanted.max(chunk.saturating_sub(input.len()));
    let is_enough = match input.is_empty() {
        true => spare >= chunk,
        false => spare >= wanted.min(SPARE_MIN),
    };
    if !is_enough && !input.try_reclaim(missing) && spare == 0 {
        input.reserve(missing);
    }
}

/// Rounds of one poll before the task lets others run.
const ROUNDS_MAX: u32 = 32;

/// A read buffer with more room than this is read into as it is.
const SPARE_MIN: usize = 4 << 10;
