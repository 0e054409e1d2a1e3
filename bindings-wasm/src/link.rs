//! Links as byte queues: the shell moves the bytes, a task of core reads and writes them.
//!
//! Outgoing bytes are bounded by [`UNSENT_MAX`], counted until the shell says that the network has
//! taken them; incoming ones by what core has asked for, since its tasks read whatever is there.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use bytes::BytesMut;
use messina_core::drive::{self, Steering};
use messina_core::error::{LinkError, LinkErrorKind};

use crate::message::Effect;
use crate::outbox::Outbox;
use crate::slab::Slab;

/// All links of one instance.
#[derive(Debug)]
pub(crate) struct Links(RefCell<Slab<State>>);

#[derive(Debug)]
struct State {
    /// Where to; taken when the shell is told to open it.
    wanted: Option<Wanted>,
    phase: Phase,
    incoming: BytesMut,
    outgoing: Vec<u8>,
    /// Bytes that the shell has and the network has not taken yet.
    unsent: usize,
    /// The task has more to write than may be unsent.
    waits_for_room: bool,
    given_up: Option<GivenUp>,
    /// The one task that uses the link.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Wanted {
    host: String,
    port: u16,
    steering: Steering,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Opening,
    Open,
    /// Closed by the peer, or broken.
    Ended(Result<(), LinkError>),
}

/// The task has done with the link.
#[derive(Clone, Copy, Debug)]
enum GivenUp {
    Close,
    Abort,
}

impl Links {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Slab::new())))
    }

    /// Begins to open a link; fails if there are too many.
    pub(crate) fn connect(
        self: &Rc<Self>,
        host: &dyn core::fmt::Display,
        port: u16,
        steering: Steering,
    ) -> Connecting {
        let wanted = Wanted {
            host: host.to_string(),
            port,
            steering,
        };
        let state = State {
            wanted: Some(wanted),
            phase: Phase::Opening,
            incoming: BytesMut::new(),
            outgoing: Vec::new(),
            unsent: 0,
            waits_for_room: false,
            given_up: None,
            waker: None,
        };
        let number = self.0.borrow_mut().insert(state).ok();
        Connecting(number.map(|number| Link {
            links: Rc::clone(self),
            number,
            is_closed: false,
        }))
    }

    pub(crate) fn handle_opened(&self, number: u32) {
        self.change(number, |state| state.phase = Phase::Open);
    }

    /// It could not be opened, or broke.
    pub(crate) fn handle_failed(&self, number: u32, error: LinkError) {
        self.change(number, |state| state.phase = Phase::Ended(Err(error)));
    }

    /// The peer has closed it.
    pub(crate) fn handle_closed(&self, number: u32) {
        self.change(number, |state| {
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(Ok(()));
            }
        });
    }

    /// Bytes came.
    pub(crate) fn handle_bytes(&self, number: u32, bytes: BytesMut) {
        self.change(number, |state| {
            if state.given_up.is_some() {
                return;
            }
            if state.incoming.is_empty() {
                state.incoming = bytes;
            } else {
                state.incoming.extend_from_slice(&bytes);
            }
        });
    }

    /// The network has taken this many bytes; whether the link's task waited for that.
    pub(crate) fn handle_sent(&self, number: u32, len: usize) -> bool {
        let mut links = self.0.borrow_mut();
        let Some(state) = links.get_mut(number) else {
            return false;
        };
        state.unsent = state.unsent.saturating_sub(len);
        let waited = core::mem::take(&mut state.waits_for_room);
        if waited && let Some(waker) = state.waker.take() {
            waker.wake();
        }
        waited
    }

    /// Writes what the shell has to do, and forgets links that are given up.
    pub(crate) fn put_effects(&self, outbox: &mut Outbox) {
        let mut links = self.0.borrow_mut();
        let mut gone = Vec::new();
        for (number, state) in links.iter_mut() {
            let is_unknown = state.wanted.is_some() && state.given_up.is_some();
            if let (Some(wanted), false) = (state.wanted.take(), is_unknown) {
                wanted.put(number, outbox);
            }
            if !state.outgoing.is_empty() {
                outbox.put(Effect::Send, number);
                outbox.put_bytes(&state.outgoing);
                state.unsent = state.unsent.saturating_add(state.outgoing.len());
                state.outgoing.clear();
            }
            if let Some(how) = state.given_up {
                if !is_unknown {
                    let effect = match how {
                        GivenUp::Close => Effect::Close,
                        GivenUp::Abort => Effect::Abort,
                    };
                    outbox.put(effect, number);
                }
                gone.push(number);
            }
        }
        for number in gone {
            links.remove(number);
        }
    }

    /// The shell's word changes a link: its task has to look.
    fn change(&self, number: u32, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.0.borrow_mut().get_mut(number) {
            change(state);
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Wanted {
    fn put(&self, number: u32, outbox: &mut Outbox) {
        let (shard, of, port) = match self.steering {
            Steering::Shard { shard, of } => (Some(shard), of.get(), 0),
            Steering::Port(port) => (None, 0, port.get()),
            _ => (None, 0, 0),
        };
        outbox.put(Effect::Connect, number);
        outbox.put_text(&self.host);
        outbox.put_word(u32::from(self.port));
        outbox.put_maybe(shard);
        outbox.put_word(u32::from(of));
        outbox.put_word(u32::from(port));
    }
}

/// A link that is being opened; `None` once it was handed out, or if there was no room for it.
#[derive(Debug)]
pub(crate) struct Connecting(Option<Link>);

impl Future for Connecting {
    type Output = Result<Link, LinkError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let phase = self.0.as_ref().and_then(|link| {
            link.with(|state| {
                state.waker = Some(cx.waker().clone());
                state.phase
            })
        });
        match phase {
            Some(Phase::Opening) => Poll::Pending,
            Some(Phase::Ended(Err(error))) => Poll::Ready(Err(error)),
            Some(Phase::Open) => Poll::Ready(self.0.take().ok_or(BROKEN)),
            Some(Phase::Ended(Ok(()))) => Poll::Ready(Err(LinkError::CLOSED_BY_PEER)),
            None => Poll::Ready(Err(BROKEN)),
        }
    }
}

/// An open link.
#[derive(Debug)]
pub(crate) struct Link {
    links: Rc<Links>,
    number: u32,
    is_closed: bool,
}

impl Link {
    fn with<R>(&self, action: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.links.0.borrow_mut().get_mut(self.number).map(action)
    }

    fn give_up(&mut self, how: GivenUp) {
        if !self.is_closed {
            self.is_closed = true;
            self.with(|state| state.given_up = Some(how));
        }
    }
}

impl drive::Link for Link {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Ok(0));
        }
        let read = self.with(|state| {
            if state.incoming.is_empty() {
                if let Phase::Ended(how) = state.phase {
                    return Poll::Ready(how.map(|()| 0));
                }
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if into.is_empty() {
                *into = core::mem::take(&mut state.incoming);
                return Poll::Ready(Ok(into.len()));
            }
            let spare = into.capacity().saturating_sub(into.len());
            let len = spare.min(state.incoming.len());
            into.extend_from_slice(&state.incoming.split_to(len));
            Poll::Ready(Ok(len))
        });
        read.unwrap_or(Poll::Ready(Err(BROKEN)))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        if self.is_closed {
            return Poll::Ready(Err(LinkError::new(LinkErrorKind::ClosedByUs)));
        }
        let written = self.with(|state| {
            if let Phase::Ended(how) = state.phase {
                return Poll::Ready(Err(how.err().unwrap_or(LinkError::CLOSED_BY_PEER)));
            }
            let held = state.outgoing.len().saturating_add(state.unsent);
            let len = UNSENT_MAX.saturating_sub(held).min(bytes.len());
            if len == 0 {
                state.waits_for_room = true;
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state
                .outgoing
                .extend_from_slice(bytes.get(..len).unwrap_or_default());
            Poll::Ready(Ok(len))
        });
        written.unwrap_or(Poll::Ready(Err(BROKEN)))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        self.give_up(GivenUp::Close);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.give_up(GivenUp::Abort);
    }
}

/// Bytes of one link that wait for the network.
const UNSENT_MAX: usize = 256 << 10;

/// The link is not in the table, or the table is full.
const BROKEN: LinkError = LinkError::new(LinkErrorKind::Other);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;
    use alloc::boxed::Box;
    use drive::Link as _;
    use messina_core::testing::link_contract;

    /// What the shell is told: the output's number, the link, and the host or the bytes.
    fn told(links: &Links) -> Vec<(u32, u32, Vec<u8>)> {
        let mut outbox = Outbox::new();
        links.put_effects(&mut outbox);
        let (mut found, mut rest) = (Vec::new(), outbox.as_bytes());
        while !rest.is_empty() {
            let (what, link) = (take_word(&mut rest), take_word(&mut rest));
            let mut bytes = Vec::new();
            if what == Effect::Connect as u32 || what == Effect::Send as u32 {
                let len = take_word(&mut rest) as usize;
                bytes.extend_from_slice(&rest[..len]);
                rest = &rest[len.next_multiple_of(4)..];
            }
            if what == Effect::Connect as u32 {
                let told: [u32; 4] = core::array::from_fn(|_| take_word(&mut rest));
                assert_eq!(told, [9042, 3, 8, 0]);
            }
            found.push((what, link, bytes));
        }
        found
    }

    const SHARD: Steering = Steering::Shard {
        shard: 3,
        of: core::num::NonZeroU16::new(8).unwrap(),
    };

    fn take_word(rest: &mut &[u8]) -> u32 {
        let (word, after) = rest.split_first_chunk().unwrap();
        *rest = after;
        u32::from_le_bytes(*word)
    }

    fn open(links: &Rc<Links>) -> Link {
        let mut connecting = links.connect(&"node", 9042, SHARD);
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut connecting).poll(cx).is_pending());
        let number = connecting.0.as_ref().unwrap().number;
        assert_eq!(
            told(links),
            [(Effect::Connect as u32, number, b"node".to_vec())]
        );
        links.handle_opened(number);
        let Poll::Ready(Ok(link)) = Pin::new(&mut connecting).poll(cx) else {
            panic!("an opened link is ready");
        };
        link
    }

    #[test]
    fn keeps_the_contract_of_links() {
        let links = Links::new();
        let link = open(&links);
        let (mut executor, outcome) = (Executor::default(), Rc::new(RefCell::new(None)));
        let keep = Rc::clone(&outcome);
        executor.spawn(|_| {
            Box::pin(async move {
                *keep.borrow_mut() = Some(link_contract(link).await);
            })
        });
        let mut is_closed = false;
        for _ in 0..1_000_000 {
            assert!(executor.run(1_000_000));
            for (what, number, bytes) in told(&links) {
                if what == Effect::Send as u32 {
                    links.handle_sent(number, bytes.len());
                    bytes
                        .chunks(4099)
                        .for_each(|part| links.handle_bytes(number, part.into()));
                }
                is_closed |= what == Effect::Close as u32;
            }
            if outcome.borrow().is_some() {
                break;
            }
        }
        assert_eq!((outcome.take(), is_closed), (Some(Ok(())), true));
        assert_eq!(told(&links), []);
    }

    #[test]
    fn bytes_wait_until_the_network_has_taken_earlier_ones() {
        let links = Links::new();
        let mut link = open(&links);
        let cx = &mut Context::from_waker(Waker::noop());
        let bytes = alloc::vec![7; UNSENT_MAX + 1];
        assert_eq!(link.poll_write(cx, &bytes), Poll::Ready(Ok(UNSENT_MAX)));
        assert!(link.poll_write(cx, &bytes).is_pending());
        assert_eq!(told(&links)[0].2.len(), UNSENT_MAX);
        assert!(link.poll_write(cx, &bytes).is_pending());
        links.handle_sent(link.number, 5);
        assert_eq!(link.poll_write(cx, &bytes), Poll::Ready(Ok(5)));
    }

    #[test]
    fn ends_and_failures_are_sticky_and_come_after_the_bytes() {
        for (failure, read, write) in [
            (None, Ok(0), LinkError::CLOSED_BY_PEER),
            (
                Some(LinkError::TIMED_OUT),
                Err(LinkError::TIMED_OUT),
                LinkError::TIMED_OUT,
            ),
        ] {
            let links = Links::new();
            let mut link = open(&links);
            links.handle_bytes(link.number, BytesMut::from(&b"ab"[..]));
            match failure {
                Some(error) => links.handle_failed(link.number, error),
                None => links.handle_closed(link.number),
            }
            links.handle_closed(link.number);
            let cx = &mut Context::from_waker(Waker::noop());
            let mut into = BytesMut::new();
            assert_eq!(link.poll_read(cx, &mut into), Poll::Ready(Ok(2)));
            for _ in 0..2 {
                assert_eq!(link.poll_read(cx, &mut BytesMut::new()), Poll::Ready(read));
                assert_eq!(link.poll_write(cx, b"c"), Poll::Ready(Err(write)));
            }
        }
    }

    #[test]
    fn a_link_that_is_given_up_is_told_once_and_its_number_is_free_again() {
        let links = Links::new();
        // Never told of, so there is nothing to close.
        drop(links.connect(&"node", 9042, SHARD));
        assert_eq!(told(&links), []);
        let link = open(&links);
        let number = link.number;
        drop(link);
        links.handle_bytes(number, BytesMut::from(&b"late"[..]));
        assert_eq!(told(&links), [(Effect::Abort as u32, number, Vec::new())]);
        assert_eq!(told(&links), []);
        assert_eq!(open(&links).number, number);
    }
}
