//! What the machine tells its host, taken down: a seat for each request that somebody waits for, and
//! what the runner is to do outside of the lock.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

use bytes::BytesMut;

use super::ending::session_closed;
use super::flow::{Flow, Window};
use super::host::{Done, Host};
use super::machine::NONE;
use super::reply::Reply;
use super::rows::type_numbers;
use super::slab::Slab;
use super::statement::Statement;
use crate::error::{Error, ErrorKind};
use crate::sync::Local;
use crate::target::{Security, SteeringKind, Target};
use crate::wire::FrameHeader;
use crate::words::append;

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
    pub(super) wakers: Vec<Waker>,
    /// Prepared statements, by the machine's number.
    held: Vec<Option<Local<Held>>>,
    prepared: u32,
    /// A buffer to bind values in.
    pub(super) buffer: BytesMut,
    /// A window for rows, with room for the numbers of their types.
    #[cfg(any(test, feature = "streams"))]
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
    pub(super) request: u32,
    pub(super) waker: Option<Waker>,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Waiting,
    Flowing(Flow),
    Done(Result<Outcome, Error>),
}

/// How a request has ended well.
pub(super) enum Outcome {
    Session,
    /// Number and serial.
    Prepared(u32, u32),
    Reply(Reply),
}

/// A prepared statement.
pub(super) struct Held {
    pub(super) statement: Local<Statement>,
    /// Which of those that were prepared under its number.
    pub(super) serial: u32,
    /// Types of the markers.
    pub(super) type_numbers: Box<[u16]>,
}

impl Desk {
    pub(super) fn new(steering: SteeringKind, security: Security) -> Self {
        Self {
            seats: Slab::new(),
            tickets: Vec::new(),
            beginning: NONE,
            begun: None,
            watchers: Vec::new(),
            orders: Vec::new(),
            wakers: Vec::new(),
            held: Vec::new(),
            prepared: 0,
            buffer: BytesMut::new(),
            #[cfg(any(test, feature = "streams"))]
            window: None,
            steering,
            security,
        }
    }

    /// A seat for a request that has begun.
    pub(super) fn seat(&mut self, request: u32, is_streamed: bool) -> Result<u32, Error> {
        let flow = Flow::begin().filter(|_| is_streamed);
        let stage = flow.map_or(Stage::Waiting, Stage::Flowing);
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

    pub(super) fn unseat(&mut self, request: u32) -> Option<u32> {
        let ticket = self.tickets.get_mut(place(request))?;
        Some(core::mem::replace(ticket, NONE)).filter(|ticket| *ticket != NONE)
    }

    pub(super) fn look(
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

    /// Tells the serial.
    fn keep(&mut self, number: u32, statement: &Local<Statement>) -> Result<u32, Error> {
        let columns = statement.prepared()?.bound.columns;
        let mut numbers = Vec::new();
        type_numbers(columns).for_each(|number| append(&mut numbers, number));
        let serial = self.prepared;
        let held = Held {
            statement: Local::clone(statement),
            serial,
            type_numbers: numbers.into(),
        };
        self.prepared = serial.wrapping_add(1);
        let place = place(number);
        while self.held.len() <= place {
            self.held.push(None);
        }
        if let Some(known) = self.held.get_mut(place) {
            *known = Some(Local::new(held));
        }
        Ok(serial)
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
                .map(|serial| Outcome::Prepared(number, serial)),
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

    fn piece(&mut self, request: u32, bytes: BytesMut) {
        let Some((flow, waker)) = self.flow(request) else {
            return;
        };
        flow.piece = Some(bytes);
        let waker = waker.take();
        self.wakers.extend(waker);
    }
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
