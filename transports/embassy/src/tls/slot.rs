//! Where a link and the task that carries its bytes meet: two rings, the state of the connection,
//! and the wakers of both sides. One thread, so cells and no locks; nothing is borrowed over a wait
//! but the record buffers, and those by the task alone.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::net::IpAddr;
use core::num::NonZeroU16;
use core::task::{Context, Poll, Waker};

use bytes::BytesMut;
use embassy_time::Instant;
use messina_core::drive::Name;
use messina_core::error::LinkError;

use super::certificate::PeerName;
use super::ring::Ring;
use crate::connecting::EmbassyConnecting;
use crate::time::EmbassyClock;

/// A connection that the task shall open.
pub(super) struct Request<'d> {
    pub(super) connecting: EmbassyConnecting<'d>,
    pub(super) peer: Dialed,
    pub(super) deadline: Instant,
    pub(super) clock: EmbassyClock,
}

/// Whom the certificate must be for.
pub(super) enum Dialed {
    Name(Name),
    Address(IpAddr),
}

impl Dialed {
    pub(super) fn as_peer_name(&self) -> PeerName<'_> {
        match self {
            // A configured server name may be an address too.
            Self::Name(name) => match name.parse() {
                Ok(address) => PeerName::Ip(address),
                Err(_) => PeerName::Dns(name),
            },
            Self::Address(address) => PeerName::Ip(*address),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// The request waits for the task, or the task is at work on it.
    Opening,
    Open,
    /// The task is done with it. The owner may not have read all.
    Ended(Result<(), LinkError>),
    /// The owner is gone. The task tidies up.
    Abandoned,
}

/// Memory and meeting point of one connection.
pub(super) struct Slot<'d> {
    state: Cell<State>,
    request: Cell<Option<Request<'d>>>,
    is_closing: Cell<bool>,
    /// The peer has said that nothing more will come.
    peer_has_closed: Cell<bool>,
    source_port: Cell<Option<NonZeroU16>>,
    incoming: RefCell<Ring<'d>>,
    outgoing: RefCell<Ring<'d>>,
    pub(super) records: RefCell<Records<'d>>,
    task: WakerCell,
    /// The task, when it waits for room.
    room: WakerCell,
    owner: WakerCell,
}

/// Memory for one record of each direction.
pub(super) struct Records<'d> {
    pub(super) read: &'d mut [u8],
    pub(super) write: &'d mut [u8],
}

impl<'d> Slot<'d> {
    pub(super) const fn new(
        records: Records<'d>,
        incoming: &'d mut [u8],
        outgoing: &'d mut [u8],
    ) -> Self {
        Self {
            state: Cell::new(State::Free),
            request: Cell::new(None),
            is_closing: Cell::new(false),
            peer_has_closed: Cell::new(false),
            source_port: Cell::new(None),
            incoming: RefCell::new(Ring::new(incoming)),
            outgoing: RefCell::new(Ring::new(outgoing)),
            records: RefCell::new(records),
            task: WakerCell::new(),
            room: WakerCell::new(),
            owner: WakerCell::new(),
        }
    }

    // What the owner of the connection calls.

    pub(super) const fn state(&self) -> State {
        self.state.get()
    }

    pub(super) const fn source_port(&self) -> Option<NonZeroU16> {
        self.source_port.get()
    }

    pub(super) const fn peer_has_closed(&self) -> bool {
        self.peer_has_closed.get()
    }

    pub(super) fn ask(&self, request: Request<'d>) {
        self.is_closing.set(false);
        self.peer_has_closed.set(false);
        self.source_port.set(None);
        self.incoming.borrow_mut().clear();
        self.outgoing.borrow_mut().clear();
        self.request.set(Some(request));
        self.state.set(State::Opening);
        self.task.wake();
    }

    /// The owner is there no more, or wants no more.
    pub(super) fn abandon(&self) {
        let was_taken = self.request.take().is_none();
        let is_over = matches!(self.state.get(), State::Free | State::Ended(_));
        if was_taken && !is_over {
            self.state.set(State::Abandoned);
            self.task.wake();
        } else {
            self.state.set(State::Free);
        }
    }

    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.task.wake();
    }

    /// Wakes the owner at the next change.
    pub(super) fn watch(&self, cx: &Context<'_>) {
        self.owner.register(cx.waker());
    }

    /// Appends what has arrived, at most `spare` bytes.
    pub(super) fn take(&self, into: &mut BytesMut, spare: usize) -> usize {
        let mut incoming = self.incoming.borrow_mut();
        let front = incoming.front();
        let front = front.get(..spare).unwrap_or(front);
        into.extend_from_slice(front);
        let len = front.len();
        incoming.consume(len);
        self.room.wake();
        len
    }

    pub(super) fn put(&self, bytes: &[u8]) -> usize {
        let len = self.outgoing.borrow_mut().push(bytes);
        self.task.wake();
        len
    }

    // What the task calls.

    pub(super) async fn request(&self) -> Request<'d> {
        poll_fn(|cx| {
            self.task.register(cx.waker());
            self.request.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    pub(super) async fn abandoned(&self) {
        poll_fn(|cx| {
            self.task.register(cx.waker());
            match self.state.get() {
                State::Abandoned => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
    }

    pub(super) fn opened(&self, source_port: Option<NonZeroU16>) {
        if self.state.get() == State::Opening {
            self.source_port.set(source_port);
            self.state.set(State::Open);
            self.owner.wake();
        }
    }

    pub(super) fn closed_by_peer(&self) {
        self.peer_has_closed.set(true);
        self.owner.wake();
    }

    pub(super) fn ended(&self, how: Result<(), LinkError>) {
        self.state.set(match self.state.get() {
            State::Abandoned => State::Free,
            _ => State::Ended(how),
        });
        self.owner.wake();
    }

    /// Waits for room and takes some of `bytes`, which are not empty.
    pub(super) fn poll_arrived(&self, cx: &Context<'_>, bytes: &[u8]) -> Poll<usize> {
        let len = self.incoming.borrow_mut().push(bytes);
        if len == 0 {
            self.room.register(cx.waker());
            return Poll::Pending;
        }
        self.owner.wake();
        Poll::Ready(len)
    }

    /// Waits for bytes that shall go out, and copies some. `0`: there are none and the owner wants
    /// to close.
    pub(super) fn poll_outgoing(&self, cx: &Context<'_>, into: &mut [u8]) -> Poll<usize> {
        let mut outgoing = self.outgoing.borrow_mut();
        let front = outgoing.front();
        let len = front.len().min(into.len());
        if len == 0 && !self.is_closing.get() {
            self.task.register(cx.waker());
            return Poll::Pending;
        }
        into.iter_mut()
            .zip(front)
            .for_each(|(to, byte)| *to = *byte);
        outgoing.consume(len);
        self.owner.wake();
        Poll::Ready(len)
    }

    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.borrow().is_empty()
    }
}

/// The waker of one side.
struct WakerCell(Cell<Option<Waker>>);

impl WakerCell {
    const fn new() -> Self {
        Self(Cell::new(None))
    }

    fn register(&self, waker: &Waker) {
        let kept = self.0.take().filter(|kept| kept.will_wake(waker));
        self.0.set(Some(kept.unwrap_or_else(|| waker.clone())));
    }

    fn wake(&self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}
