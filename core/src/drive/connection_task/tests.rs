//! The task over a link and a timer that do exactly what a script says.

mod early;

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Ready, ready};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::task::Waker;
use core::time::Duration;
use std::task::Wake;

use bytes::BytesMut;

use super::*;
use crate::cluster::ControlPlane;
use crate::config::Config;
use crate::conn::{RequestHead, SlotKey};
use crate::drive::cell::{Standing, Submitted};
use crate::drive::tally::Aim;
use crate::drive::transport::{Clock, Link, Name, Resolved, Security, SteeringKind, Timer};
use crate::error::Applied;
use crate::wire::{Opcode, ProtocolVersion};

/// A VOID result on stream 1.
const VOID: &[u8] = &[0x84, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1];
/// SUPPORTED without options on stream 0, READY on stream 1.
const SUPPORTED: &[u8] = &[0x84, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0];
const READY: &[u8] = &[0x84, 0, 0, 1, 2, 0, 0, 0, 0];

/// What the link does. It takes everything and has nothing to read unless told otherwise.
#[derive(Default)]
struct Script {
    incoming: VecDeque<u8>,
    written: Vec<u8>,
    /// Repeats this for ever.
    endless: Option<&'static [u8]>,
    /// Outcomes of the next writes.
    writes: VecDeque<Result<usize, LinkError>>,
    /// How often a flush is pending before it is done.
    flushes_pending: usize,
    flushed: bool,
    reads: usize,
    never_closes: bool,
}

#[derive(Clone, Default)]
struct ScriptLink(Rc<RefCell<Script>>);

impl Link for ScriptLink {
    fn poll_read(
        &mut self,
        _cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let mut script = self.0.borrow_mut();
        script.reads += 1;
        assert!(script.reads < 10_000, "it reads without end");
        if script.incoming.is_empty()
            && let Some(bytes) = script.endless
        {
            script.incoming.extend(bytes);
        }
        let len = script.incoming.len().min(into.capacity() - into.len());
        into.extend(script.incoming.drain(..len));
        match len {
            0 => Poll::Pending,
            len => Poll::Ready(Ok(len)),
        }
    }

    fn poll_write(
        &mut self,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, LinkError>> {
        let mut script = self.0.borrow_mut();
        script.flushed = false;
        let outcome = script.writes.pop_front().unwrap_or(Ok(bytes.len()));
        script
            .written
            .extend(bytes.iter().take(outcome.unwrap_or(0)));
        Poll::Ready(outcome)
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut script = self.0.borrow_mut();
        if script.flushes_pending > 0 {
            script.flushes_pending -= 1;
            return Poll::Pending;
        }
        script.flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.0.borrow().never_closes {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }
}

/// A clock set by hand.
#[derive(Clone, Default)]
struct HandClock(Shared<AtomicU32>);

impl HandClock {
    fn set(&self, micros: u32) {
        self.0.store(micros, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(Ordering::Relaxed).into())
    }
}

/// Reaches two seconds after the first look.
#[derive(Default)]
struct LateClock(AtomicU32);

impl Clock for LateClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.swap(2_000_000, Ordering::Relaxed).into())
    }
}

/// As lazy as the contract allows: armed for later it keeps its earlier time and fires early.
struct LazyTimer {
    clock: HandClock,
    fires_at: Option<Instant>,
    waker: Rc<RefCell<Option<(Instant, Waker)>>>,
}

impl Timer for LazyTimer {
    fn arm(&mut self, at: Option<Instant>) {
        let Some(at) = at else { return };
        let kept = self.fires_at.filter(|&kept| kept > self.clock.now());
        self.fires_at = Some(kept.map_or(at, |kept| kept.min(at)));
    }

    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.fires_at {
            Some(at) if at <= self.clock.now() => Poll::Ready(()),
            Some(at) => {
                *self.waker.borrow_mut() = Some((at, cx.waker().clone()));
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: alloc::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A transport whose only connect gives a scripted link.
#[derive(Clone, Default)]
struct Scripted {
    link: ScriptLink,
    clock: HandClock,
    timer: Rc<RefCell<Option<(Instant, Waker)>>>,
}

impl Transport for Scripted {
    type Link = ScriptLink;
    type Timer = LazyTimer;
    type Clock = HandClock;
    type Connecting = Ready<Result<ScriptLink, LinkError>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Err(LinkError::new(LinkErrorKind::Resolve)))
    }

    fn connect(&self, _target: Target) -> Self::Connecting {
        ready(Ok(self.link.clone()))
    }

    fn timer(&self) -> LazyTimer {
        LazyTimer {
            clock: self.clock.clone(),
            fires_at: None,
            waker: Rc::clone(&self.timer),
        }
    }

    fn clock(&self) -> HandClock {
        self.clock.clone()
    }
}

/// A task and everything around it.
struct Bench {
    transport: Scripted,
    hub: Shared<Hub>,
    task: ConnectionTask<Scripted>,
    wakes: alloc::sync::Arc<CountingWaker>,
}

impl Bench {
    /// In its handshake.
    fn new() -> Self {
        Self::with(|_, _| ())
    }

    fn with(change: impl FnOnce(&mut Config, &mut HandshakeConfig)) -> Self {
        let transport = Scripted::default();
        let mut config = Config::server();
        let mut handshake = HandshakeConfig::new(ProtocolVersion::V4);
        config.add_contact_points("127.0.0.1").unwrap();
        config.write_deferral = false;
        change(&mut config, &mut handshake);
        let config = Shared::new(config);
        let now = Instant::ZERO;
        let engine = ControlPlane::new(
            Shared::clone(&config),
            SteeringKind::None,
            Security::Plain,
            1,
            now,
            None,
        );
        let clock: Shared<dyn Clock> = Shared::new(transport.clock());
        let hub = Shared::new(Hub::new(config, clock, &engine, 1));
        let target = Target {
            endpoint: crate::target::Endpoint::Addr(([127, 0, 0, 1], 9042).into()),
            steering: crate::target::Steering::None,
            server_name: None,
            deadline: Instant::from_micros(5_000_000),
        };
        let handshake = Local::new(handshake);
        let id = ConnectionId(1);
        let task = ConnectionTask::new(&transport, Shared::clone(&hub), id, target, handshake);
        Self {
            transport,
            hub,
            task,
            wakes: alloc::sync::Arc::default(),
        }
    }

    /// Open.
    fn open() -> Self {
        let mut bench = Self::new();
        bench.receive(&[SUPPORTED, READY].concat());
        assert!(bench.poll().is_pending());
        bench
    }

    fn script(&self) -> core::cell::RefMut<'_, Script> {
        self.transport.link.0.borrow_mut()
    }

    fn receive(&self, bytes: &[u8]) {
        self.script().incoming.extend(bytes);
    }

    fn cell(&self) -> Shared<Cell> {
        match &self.task.phase {
            Phase::Open(open) => Shared::clone(&open.cell),
            _ => panic!("{:?}", self.task),
        }
    }

    fn poll(&mut self) -> Poll<()> {
        self.wakes.0.store(0, Ordering::Relaxed);
        let waker = Waker::from(alloc::sync::Arc::clone(&self.wakes));
        Pin::new(&mut self.task).poll(&mut Context::from_waker(&waker))
    }

    fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::Relaxed) > 0
    }

    /// Polls as often as the task is woken.
    fn run(&mut self) -> Poll<()> {
        loop {
            let poll = self.poll();
            if poll.is_ready() || !self.is_woken() {
                return poll;
            }
        }
    }

    /// Lets time pass, with all firings of the timer between.
    fn pass(&mut self, until: Duration) -> Poll<()> {
        let until = Instant::ZERO.saturating_add(until);
        for _ in 0..100 {
            let fired = self.transport.timer.borrow().clone();
            let Some((at, waker)) = fired.filter(|(at, _)| *at <= until) else {
                self.transport.clock.set(micros(until));
                return Poll::Pending;
            };
            *self.transport.timer.borrow_mut() = None;
            self.transport.clock.set(micros(at));
            waker.wake();
            if self.is_woken() && self.run().is_ready() {
                return Poll::Ready(());
            }
        }
        panic!("the timer fires without end");
    }

    fn submit(&self, cell: &Cell, give_up_at: Duration, len: usize) -> SlotKey {
        let head = RequestHead::new(Opcode::Query);
        let due = Instant::ZERO.saturating_add(give_up_at);
        let submitted = cell.submit(
            Waker::noop().clone(),
            due,
            head,
            Aim::None,
            None,
            &mut |sink| {
                sink.extend_from_slice(&alloc::vec![0; len]);
                Ok(())
            },
        );
        match submitted {
            Ok(Submitted::Sent(key)) => key,
            Ok(Submitted::Full) => panic!("full"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn micros(at: Instant) -> u32 {
    u32::try_from(at.as_micros()).unwrap()
}

fn outcome(cell: &Cell, key: SlotKey) -> Result<(), Error> {
    match cell.poll_answer(key, Waker::noop()).unwrap() {
        Standing::Done(outcome) => outcome.map(drop),
        Standing::Expired => panic!("expired"),
        Standing::Pending => panic!("pending"),
    }
}

const LONG: Duration = Duration::from_secs(3600);
const RESET: LinkError = LinkError::new(LinkErrorKind::Reset);

#[test]
fn bytes_written_before_a_write_fails_count_as_written() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let (sent, unsent) = (bench.submit(&cell, LONG, 1), bench.submit(&cell, LONG, 1));
    bench.script().writes = VecDeque::from([Ok(10), Err(RESET)]);
    assert!(bench.run().is_ready());
    assert_eq!(
        outcome(&cell, sent).unwrap_err().applied(),
        Applied::Unknown
    );
    assert_eq!(outcome(&cell, unsent).unwrap_err().applied(), Applied::No);
}

#[test]
fn answers_before_a_broken_frame_are_delivered() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let key = bench.submit(&cell, LONG, 1);
    assert!(bench.run().is_pending());
    bench.receive(&[VOID, &[0x44; 9]].concat());
    assert!(bench.run().is_ready());
    outcome(&cell, key).unwrap();
}

#[test]
fn a_drain_ends_with_the_last_answer() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let key = bench.submit(&cell, LONG, 1);
    cell.request_close(true);
    assert!(bench.run().is_pending());
    bench.receive(VOID);
    assert!(bench.run().is_ready(), "nobody has taken the answer yet");
    outcome(&cell, key).unwrap();
}

#[test]
fn a_drain_ends_when_the_last_caller_gives_up() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let key = bench.submit(&cell, LONG, 1);
    cell.request_close(true);
    assert!(bench.run().is_pending());
    cell.cancel(key);
    assert!(bench.is_woken());
    assert!(bench.run().is_ready());
}

#[test]
fn a_timer_that_fires_early_is_armed_again() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let key = bench.submit(&cell, Duration::from_secs(20), 1);
    assert!(bench.run().is_pending());
    assert!(bench.pass(Duration::from_secs(21)).is_pending());
    assert!(matches!(
        cell.poll_answer(key, Waker::noop()),
        Ok(Standing::Expired)
    ));
}

#[test]
fn a_timer_that_fires_while_the_waker_changes_is_not_lost() {
    let mut bench = Bench::open();
    let cell = bench.cell();
    let key = bench.submit(&cell, Duration::from_secs(2), 1);
    assert!(bench.run().is_pending());
    // The clock reaches the deadline just after the task has looked at it.
    let Phase::Open(open) = &mut bench.task.phase else {
        panic!()
    };
    bench.wakes = alloc::sync::Arc::default();
    let waker = Waker::from(alloc::sync::Arc::clone(&bench.wakes));
    let mut cx = Context::from_waker(&waker);
    let clock = LateClock::default();
    bench.transport.clock.set(2_000_000);
    let polled = open.poll(&mut cx, &mut bench.task.timer, &clock, &bench.hub);
    assert!(polled.is_pending());
    assert!(bench.is_woken());
    assert!(bench.run().is_pending());
    assert!(matches!(
        cell.poll_answer(key, Waker::noop()),
        Ok(Standing::Expired)
    ));
}

#[test]
fn a_close_that_the_peer_does_not_answer_ends_in_time() {
    let mut bench = Bench::open();
    bench.script().never_closes = true;
    let cell = bench.cell();
    // The timer stands at half a second; the close may take a whole one.
    let key = bench.submit(&cell, Duration::from_millis(500), 1);
    assert!(bench.run().is_pending());
    cell.cancel(key);
    cell.request_close(false);
    assert!(bench.run().is_pending());
    assert!(bench.pass(Duration::from_millis(1100)).is_ready());
}

#[test]
fn a_handshake_flushes_what_it_has_written() {
    let mut bench = Bench::new();
    bench.script().flushes_pending = 1;
    assert!(bench.run().is_pending());
    assert!(!bench.script().flushed);
    assert!(bench.poll().is_pending());
    assert!(bench.script().flushed, "it asks again");
}

#[test]
fn a_handshake_flooded_with_frames_lets_others_run_and_ends_in_time() {
    let mut bench = Bench::new();
    let mut handshake = HandshakeConfig::new(ProtocolVersion::V4);
    handshake.events = Vec::from(["STATUS_CHANGE"]);
    let Phase::Connecting {
        handshake: held, ..
    } = &mut bench.task.phase
    else {
        panic!()
    };
    *held = Local::new(handshake);
    bench.receive(&[SUPPORTED, READY].concat());
    // Events are allowed while REGISTER is under way.
    bench.script().endless = Some(&[0x84, 0, 0xff, 0xff, 0x0c, 0, 0, 0, 0]);
    assert!(bench.poll().is_pending());
    assert!(bench.is_woken());
    bench.transport.clock.set(5_000_000);
    assert!(bench.poll().is_ready());
}

#[test]
fn a_connection_that_opens_after_the_session_has_ended_closes() {
    let mut bench = Bench::new();
    bench.hub.set_over(super::super::hub::session_closed());
    bench.receive(&[SUPPORTED, READY].concat());
    assert!(bench.run().is_ready());
}

/// SUPPORTED with LZ4 alone on stream 0, and READY as a node sends it then.
#[cfg(feature = "lz4")]
const LZ4_HANDSHAKE: [&[u8]; 2] = [
    b"\x84\0\0\0\x06\0\0\0\x16\0\x01\0\x0bCOMPRESSION\0\x01\0\x03lz4",
    &[0x84, 1, 0, 1, 2, 0, 0, 0, 5, 0, 0, 0, 0, 0],
];

#[cfg(feature = "lz4")]
#[test]
fn compressed_answers_are_inflated_within_bounds() {
    use crate::error::{LimitField, PeerMisbehaved};

    let mut bench = Bench::with(|config, handshake| {
        config.limits.frame = crate::conn::framer::FrameLimits::new(22, 0);
        handshake.compression = Some(crate::wire::Compression::Lz4);
    });
    bench.receive(&LZ4_HANDSHAKE.concat());
    assert!(bench.poll().is_pending());
    let cell = bench.cell();
    assert_eq!(cell.agreed().compression.map(|it| it.name()), Some("lz4"));
    let answer = |key: SlotKey, body: &[u8]| {
        let [high, low] = key.stream_id().to_be_bytes();
        let len = u8::try_from(body.len()).unwrap();
        [&[0x84, 1, high, low, 8, 0, 0, 0, len], body].concat()
    };
    let limit = ErrorKind::Limit(LimitField::FrameLen);
    // VOID; what would be 23 bytes; a block that is cut; and VOID again.
    for (body, expected) in [
        (&[0, 0, 0, 4, 0x40, 0, 0, 0, 1][..], None),
        (&[0, 0, 0, 23, 0x40, 0, 0, 0, 1], Some(limit)),
        (
            &[0, 0, 0, 4, 0x40, 0, 0],
            Some(ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression)),
        ),
        (&[0, 0, 0, 4, 0x40, 0, 0, 0, 1], None),
    ] {
        let key = bench.submit(&cell, LONG, 4);
        bench.receive(&answer(key, body));
        assert!(bench.run().is_pending(), "the link goes on");
        let error = outcome(&cell, key).err();
        assert_eq!(error.map(|error| error.kind()), expected);
    }
}

/// The flag of each frame tells: events and refusals come as they are, whatever was agreed.
#[cfg(feature = "lz4")]
#[test]
fn frames_without_the_flag_are_taken_as_they_are() {
    let mut bench = Bench::with(|_, handshake| {
        handshake.compression = Some(crate::wire::Compression::Lz4);
    });
    bench.receive(&LZ4_HANDSHAKE.concat());
    assert!(bench.poll().is_pending());
    let cell = bench.cell();
    for (flags, body) in [
        (0, &[0, 0, 0, 1][..]),
        (1, &[0, 0, 0, 4, 0x40, 0, 0, 0, 1]),
        (0, &[0, 0, 0, 1]),
    ] {
        let key = bench.submit(&cell, LONG, 4);
        // An event in front; what it says is of no matter here.
        bench.receive(&[0x84, 0, 0xff, 0xff, 0x0c, 0, 0, 0, 2, 0, 0]);
        let [high, low] = key.stream_id().to_be_bytes();
        let len = u8::try_from(body.len()).unwrap();
        let head = [0x84, flags, high, low, 8, 0, 0, 0, len];
        bench.receive(&[&head, body].concat());
        assert!(bench.run().is_pending());
        outcome(&cell, key).unwrap();
    }
}
