//! Models of the hand-overs between a connection's task and its callers: every order of two or
//! three threads over the shipped [`Cell`] and [`Exchange`].
//!
//! Only what surrounds them is a stand-in: the task answers each request at once instead of using
//! a link, and callers park their thread until they are woken. A wake that gets lost leaves all
//! threads parked, which loom reports as a deadlock.

use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::task::Wake;

use bytes::BytesMut;
use loom::thread::{JoinHandle, Thread, current, park, spawn};

use super::cell::{Caller, Cell, Settled};
use super::exchange::{Exchange, Exchanged};
use super::transport::Clock;
use super::wakers::Wakers;
use crate::cluster::ConnectionId;
use crate::conn::extensions::{Agreed, Offer, TabletsRouting};
use crate::conn::{Body, ConnectionLimits, Received, RequestHead};
use crate::error::{Applied, ErrorKind, LinkError, LinkErrorKind};
use crate::sync::Shared;
use crate::time::Instant;
use crate::wire::{Flags, FrameHeader, HEADER_LEN, Opcode, ProtocolVersion};

/// Runs a model; more than three switches away from a thread that could go on are not tried.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn a_submission_is_written_though_the_task_goes_idle() {
    model(|| {
        let cell = cell(2);
        let task = Task::spawn(&cell);
        let caller = caller(&cell, 1);
        assert_eq!(answer(block_on(request(&cell, 2))), 2);
        assert_eq!(answer(caller.join().unwrap()), 1);
        finish(&cell, task, 2);
    });
}

#[test]
fn a_request_dropped_while_it_is_answered_frees_its_id_once() {
    model(|| {
        let cell = cell(1);
        let task = Task::spawn(&cell);
        let mut dropped = request(&cell, 1);
        let first = poll_once(&mut dropped);
        assert!(first.is_pending());
        // It waits for the id of the request that is dropped meanwhile.
        let caller = caller(&cell, 2);
        drop(dropped);
        assert_eq!(answer(caller.join().unwrap()), 2);
        finish(&cell, task, 2);
    });
}

#[test]
fn a_close_tells_those_who_wait_for_answers_and_for_ids() {
    model(|| {
        let cell = cell(1);
        let mut sent = request(&cell, 1);
        assert!(poll_once(&mut sent).is_pending());
        let queued = caller(&cell, 2);
        let task = Task::spawn_silent(&cell);
        cell.request_close(false);
        for outcome in [block_on(sent), queued.join().unwrap()] {
            let Exchanged::Failed(error) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(error.kind(), ErrorKind::Link(CLOSED));
            assert_eq!(error.applied(), Applied::No, "nothing was written");
        }
        task.join().unwrap();
        assert_eq!(cell.in_flight(), 0);
    });
}

#[test]
fn a_grant_that_is_dropped_passes_on() {
    model(|| {
        let cell = cell(1);
        let mut first = request(&cell, 1);
        assert!(poll_once(&mut first).is_pending());
        let mut dropped = request(&cell, 2);
        assert!(poll_once(&mut dropped).is_pending());
        let task = Task::spawn(&cell);
        let last = caller(&cell, 3);
        assert_eq!(answer(block_on(first)), 1);
        drop(dropped);
        assert_eq!(answer(last.join().unwrap()), 3);
        finish(&cell, task, 2);
    });
}

#[test]
fn a_granted_id_is_not_taken_by_a_newcomer() {
    model(|| {
        let cell = cell(1);
        let mut first = request(&cell, 1);
        assert!(poll_once(&mut first).is_pending());
        let task = Task::spawn(&cell);
        let waiter = caller(&cell, 2);
        assert_eq!(answer(block_on(first)), 1);
        assert_eq!(answer(block_on(request(&cell, 3))), 3);
        assert_eq!(answer(waiter.join().unwrap()), 2);
        finish(&cell, task, 3);
    });
}

/// With one id the second caller waits for it, with more both wait for answers.
#[test]
fn a_drain_ends_when_the_last_caller_gives_up() {
    for (in_flight, written) in [(1, &[1][..]), (8, &[1, 2])] {
        model(move || {
            let cell = cell(in_flight);
            let (mut one, mut other) = (request(&cell, 1), request(&cell, 2));
            assert!(poll_once(&mut one).is_pending());
            assert!(poll_once(&mut other).is_pending());
            let task = Task::spawn_silent(&cell);
            cell.request_close(true);
            let dropper = spawn(move || drop(other));
            drop(one);
            dropper.join().unwrap();
            assert_eq!(task.join().unwrap(), written);
        });
    }
}

/// The task ends by draining: it has answered `answered` requests and no id is left in use.
fn finish(cell: &Cell, task: JoinHandle<Vec<u8>>, answered: usize) {
    cell.request_close(true);
    let mut tags = task.join().unwrap();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(
        tags.len(),
        answered,
        "each request is written once: {tags:?}"
    );
    assert_eq!((cell.in_flight(), cell.orphans()), (0, 0));
}

/// The stand-in of the connection task.
struct Task {
    cell: Shared<Cell>,
    answers: bool,
    tags: Vec<u8>,
}

impl Task {
    fn spawn(cell: &Shared<Cell>) -> JoinHandle<Vec<u8>> {
        Self::start(cell, true)
    }

    /// One that never answers.
    fn spawn_silent(cell: &Shared<Cell>) -> JoinHandle<Vec<u8>> {
        Self::start(cell, false)
    }

    fn start(cell: &Shared<Cell>, answers: bool) -> JoinHandle<Vec<u8>> {
        let mut task = Self {
            cell: Shared::clone(cell),
            answers,
            tags: Vec::new(),
        };
        spawn(move || {
            task.run();
            task.tags
        })
    }

    fn run(&mut self) {
        let waker = waker();
        loop {
            match self.cell.settle(Some(waker.clone()), 0, false).unwrap() {
                Settled::Ended => break,
                Settled::OutputWaits => self.take_output(),
                Settled::Idle { .. } => park(),
            }
        }
        self.cell
            .close(&LinkError::new(LinkErrorKind::ClosedByUs).into(), 0, false);
    }

    /// Takes the output and sends every request back as its own answer, if it answers.
    fn take_output(&mut self) {
        let (mut output, mut wakers) = (BytesMut::new(), Wakers::new());
        self.with(&mut wakers, |connection, wakers| {
            connection.swap_output(&mut output, |caller| wakers.extend(caller));
        });
        while !output.is_empty() {
            let frame = output.split_to(HEADER_LEN + 1);
            let (stream, tag) = (i16::from_be_bytes([frame[2], frame[3]]), frame[HEADER_LEN]);
            self.tags.push(tag);
            if !self.answers {
                continue;
            }
            let header = FrameHeader {
                version: ProtocolVersion::V4,
                flags: Flags::NONE,
                stream,
                opcode: Opcode::Result,
                body_len: 1,
            };
            let body = Body::from_slice(&[tag]);
            self.with(&mut wakers, |connection, wakers| {
                let tell = |caller: Caller| wakers.extend(caller);
                let received = connection.handle_frame(Instant::ZERO, &header, body, tell);
                assert!(matches!(received, Ok(Received::Answer | Received::Stray)));
            });
        }
    }

    fn with<R>(
        &self,
        wakers: &mut Wakers,
        action: impl FnOnce(&mut crate::conn::Connection<Caller>, &mut Wakers) -> R,
    ) -> R {
        let result = self
            .cell
            .with(|locked| action(&mut locked.connection, wakers));
        wakers.wake_all();
        result.unwrap()
    }
}

/// A thread that makes one request and waits for its end.
fn caller(cell: &Shared<Cell>, tag: u8) -> JoinHandle<Exchanged> {
    let cell = Shared::clone(cell);
    spawn(move || block_on(request(&cell, tag)))
}

fn request(cell: &Shared<Cell>, tag: u8) -> Exchange<Vec<u8>> {
    let head = RequestHead::new(Opcode::Query);
    Exchange::new(
        Shared::clone(cell),
        head,
        Instant::FAR_FUTURE,
        true,
        Vec::from([tag]),
    )
}

fn answer(outcome: Exchanged) -> u8 {
    match outcome {
        Exchanged::Answer(answer) => answer.body.as_slice()[0],
        other => panic!("{other:?}"),
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    core::pin::Pin::new(future).poll(&mut Context::from_waker(&waker()))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), waker());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}

/// Unparks the thread that made it.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Shared<Self>) {
        self.0.unpark();
    }
}

fn waker() -> Waker {
    Waker::from(Shared::new(Unpark(current())))
}

fn cell(in_flight: u16) -> Shared<Cell> {
    let agreed = Agreed {
        version: ProtocolVersion::V4,
        tablets: TabletsRouting::Off,
        metadata_id: false,
        compression: None,
        is_authenticated: false,
        offer: Offer::default(),
    };
    let limits = ConnectionLimits {
        in_flight,
        ..ConnectionLimits::default()
    };
    let clock: Shared<dyn Clock> = Shared::new(Stopped);
    Shared::new(Cell::new(ConnectionId(1), agreed, None, limits, clock))
}

/// Time does not pass.
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

const CLOSED: LinkError = LinkError::new(LinkErrorKind::ClosedByUs);
