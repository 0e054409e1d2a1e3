//! The driver's transport: links that lead to a script, timers and clock of the simulator's world.

use core::cell::{Cell, RefCell};
use core::future::{Ready, ready};
use core::net::SocketAddr;
use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::BytesMut;
use messina_core::drive::{Endpoint, Link, Name, Resolved, Target, Transport};
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::testing::{MemoryLink, memory_pair};
use messina_sim::link::{SimClock, SimTimer, SimTransport, World};

/// What the far end of a link lets it do.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Most bytes that one write takes.
    pub(crate) per_write: Cell<usize>,
    /// Bytes it takes before it takes no more.
    pub(crate) left: Cell<usize>,
    /// What comes then: this error, or nothing.
    pub(crate) then: Cell<Option<LinkError>>,
    /// Flush and close never end.
    pub(crate) hangs: Cell<bool>,
    writer: RefCell<Option<Waker>>,
}

impl Gate {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            per_write: Cell::new(usize::MAX),
            left: Cell::new(usize::MAX),
            then: Cell::new(None),
            hangs: Cell::new(false),
            writer: RefCell::default(),
        })
    }

    pub(crate) fn open(&self) {
        self.left.set(usize::MAX);
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

/// The driver's end of a link.
#[derive(Debug)]
pub struct ScriptLink {
    inner: MemoryLink,
    gate: Rc<Gate>,
}

impl Link for ScriptLink {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        self.inner.poll_read(cx, into)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        let gate = &self.gate;
        let max = gate.left.get().min(gate.per_write.get()).min(bytes.len());
        if max == 0 {
            if let Some(error) = gate.then.get() {
                self.inner.reset(error);
                return Poll::Ready(Err(error));
            }
            *gate.writer.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let written = self.inner.poll_write(cx, &bytes[..max]);
        if let Poll::Ready(Ok(len)) = written {
            gate.left.set(gate.left.get() - len);
        }
        written
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.gate.hangs.get() {
            true => Poll::Pending,
            false => self.inner.poll_flush(cx),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.gate.hangs.get() {
            true => Poll::Pending,
            false => self.inner.poll_close(cx),
        }
    }
}

/// A link that was dialled, seen from the node.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) link: MemoryLink,
    pub(crate) gate: Rc<Gate>,
}

/// Who was dialled, and who does not answer.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    waiting: BTreeMap<SocketAddr, VecDeque<Accepted>>,
    refusing: BTreeSet<SocketAddr>,
    pub(crate) refused_at: Vec<u64>,
    acceptor: Option<Waker>,
}

impl Exchange {
    pub(crate) fn refuse(&mut self, at: SocketAddr, refuses: bool) {
        match refuses {
            true => self.refusing.insert(at),
            false => self.refusing.remove(&at),
        };
    }

    pub(crate) fn poll_accept(&mut self, at: SocketAddr, cx: &Context<'_>) -> Poll<Accepted> {
        match self.waiting.entry(at).or_default().pop_front() {
            Some(accepted) => Poll::Ready(accepted),
            None => {
                self.acceptor = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn is_waiting(&self, at: SocketAddr) -> bool {
        self.waiting.get(&at).is_some_and(|queue| !queue.is_empty())
    }
}

/// The transport of a scene. Links have no latency and hold any number of bytes.
#[derive(Debug)]
pub struct ScriptTransport {
    sim: SimTransport,
    world: World,
    exchange: Rc<RefCell<Exchange>>,
}

impl ScriptTransport {
    pub(crate) fn new(world: &World, exchange: Rc<RefCell<Exchange>>) -> Self {
        Self {
            sim: SimTransport::new(world),
            world: world.clone(),
            exchange,
        }
    }
}

impl Transport for ScriptTransport {
    type Link = ScriptLink;
    type Timer = SimTimer;
    type Clock = SimClock;
    type Connecting = Ready<Result<ScriptLink, LinkError>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Err(LinkError::new(LinkErrorKind::Resolve)))
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        let mut exchange = self.exchange.borrow_mut();
        let Endpoint::Addr(at) = target.endpoint else {
            return ready(Err(LinkError::new(LinkErrorKind::Unreachable)));
        };
        if exchange.refusing.contains(&at) {
            exchange.refused_at.push(self.world.now());
            return ready(Err(LinkError::new(LinkErrorKind::Refused)));
        }
        let (ours, theirs) = memory_pair(usize::MAX);
        let gate = Gate::new();
        let accepted = Accepted {
            link: theirs,
            gate: Rc::clone(&gate),
        };
        exchange.waiting.entry(at).or_default().push_back(accepted);
        if let Some(acceptor) = exchange.acceptor.take() {
            acceptor.wake();
        }
        ready(Ok(ScriptLink { inner: ours, gate }))
    }

    fn timer(&self) -> SimTimer {
        self.sim.timer()
    }

    fn clock(&self) -> SimClock {
        self.sim.clock()
    }
}
