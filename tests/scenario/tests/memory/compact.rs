//! A warm session of the one-owner driver asks the allocator for nothing.
//!
//! The node, the link and the executor beside it have their room from the start, so that whatever is
//! counted is the driver's.

use core::cell::RefCell;
use core::future::{Future, Ready, ready};
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Wake;

use bytes::BytesMut;
use messina_core::compact::{Options, start};
use messina_core::config::{Config, Routing};
use messina_core::drive::{Clock, Endpoint, Link, Name, Resolved, Target, Timer, Transport};
use messina_core::error::{Error, ErrorKind, LinkError, LinkErrorKind};
use messina_core::time::Instant;

use super::CALLS;

/// RESULT kinds: VOID, and PREPARED with an id of one byte.
const VOID: &[u8] = &[0, 0, 0, 1];

/// Markers bigint and bigint, the first of them the key; no rows.
const INSERT: &[u8] =
    b"\x00\x00\x00\x04\x00\x01i\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\
    \x00\x02ks\x00\x01t\x00\x01a\x00\x02\x00\x01b\x00\x02\x00\x00\x00\x04\x00\x00\x00\x00";

/// A marker bigint; rows of int, bigint and double.
const SELECT: &[u8] =
    b"\x00\x00\x00\x04\x00\x01s\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\
    \x00\x02ks\x00\x01t\x00\x01a\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\
    \x00\x02ks\x00\x01t\x00\x01a\x00\x09\x00\x01b\x00\x02\x00\x01c\x00\x07";

/// What stands before rows of these columns, without their number.
const FRONT: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\
    \x00\x02ks\x00\x01t\x00\x01a\x00\x09\x00\x01b\x00\x02\x00\x01c\x00\x07";

const ROW: &[u8] =
    b"\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x08\
    \x00\x00\x00\x08\x40\x22\x00\x00\x00\x00\x00\x00";

/// A node that answers at once: statements with `i` in them are written by, others read.
#[derive(Default)]
struct Node {
    input: Vec<u8>,
    output: VecDeque<u8>,
    rows: u32,
}

impl Node {
    fn put(&mut self, stream: [u8; 2], opcode: u8, parts: &[&[u8]], rows: u32) {
        let row_bytes = rows as usize * ROW.len();
        let len = parts.iter().map(|part| part.len()).sum::<usize>() + row_bytes;
        let head = [0x84, 0, stream[0], stream[1], opcode];
        self.output.extend(head);
        self.output.extend((len as u32).to_be_bytes());
        parts.iter().for_each(|part| self.output.extend(*part));
        (0..rows).for_each(|_| self.output.extend(ROW));
    }

    fn handle(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while let Some(header) = self.input.first_chunk::<9>().copied() {
            let len = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
            if self.input.len() < 9 + len {
                return;
            }
            let (stream, opcode) = ([header[2], header[3]], header[4]);
            // The id of EXECUTE, or the first letter of the text of PREPARE.
            let named = self
                .input
                .get(9 + if opcode == 0x0a { 2 } else { 4 })
                .copied();
            let is_write = matches!(named, Some(b'i' | b'I'));
            match opcode {
                5 => self.put(stream, 6, &[&[0, 0]], 0),
                1 => self.put(stream, 2, &[], 0),
                9 if is_write => self.put(stream, 8, &[INSERT], 0),
                9 => self.put(stream, 8, &[SELECT], 0),
                0x0a if is_write => self.put(stream, 8, &[VOID], 0),
                0x0a => {
                    let rows = self.rows;
                    self.put(stream, 8, &[FRONT, &rows.to_be_bytes()], rows);
                }
                _ => self.put(stream, 8, &[VOID], 0),
            }
            self.input.drain(..9 + len);
        }
    }
}

#[derive(Clone)]
struct Near(Rc<RefCell<Node>>);

struct Still;

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant::from_micros(1)
    }
}

impl Timer for Still {
    fn arm(&mut self, _: Option<Instant>) {}

    fn poll_fired(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Link for Near {
    fn poll_read(
        &mut self,
        _: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>> {
        let output = &mut self.0.borrow_mut().output;
        let len = output.len().min(into.capacity() - into.len());
        if len == 0 {
            return Poll::Pending;
        }
        output
            .drain(..len)
            .for_each(|byte| into.extend_from_slice(&[byte]));
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>> {
        self.0.borrow_mut().handle(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }
}

impl Transport for Near {
    type Link = Self;
    type Timer = Still;
    type Clock = Still;
    type Connecting = Ready<Result<Self, LinkError>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, _: Target) -> Self::Connecting {
        ready(Ok(self.clone()))
    }

    fn timer(&self) -> Still {
        Still
    }

    fn clock(&self) -> Still {
        Still
    }
}

fn run(node: &Near, work: impl AsyncFnOnce(messina_core::compact::Session) -> Result<(), Error>) {
    let mut config = Config::mcu();
    config.routing = Routing::Single;
    config.contact_points.push(Endpoint::Local("near".into()));
    let (session, mut runner) = start(config, node.clone(), 7);
    let mut work = pin!(work(session));
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        let _ = pin!(&mut runner).poll(&mut cx);
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut cx) {
            return outcome.unwrap();
        }
    }
    panic!("it does not end");
}

fn node() -> Near {
    Near(Rc::new(RefCell::new(Node {
        input: Vec::with_capacity(64 << 10),
        output: VecDeque::with_capacity(2 << 20),
        rows: 1,
    })))
}

#[test]
fn a_warm_request_takes_no_heap() {
    let node = node();
    run(&node, async |session| {
        session.ready().await?;
        let insert = session.prepare("INSERT").await?;
        let select = session.prepare("SELECT").await?;
        let select = select.with(Options::new().idempotent());
        for round in 0..300_i64 {
            let before = CALLS.get();
            session.execute(&insert, (round, round)).await?;
            let writing = CALLS.get();
            let reply = session.execute(&select, (round,)).await?;
            assert_eq!(reply.single_row(), Ok((7, 8_i64, 9.0)));
            drop(reply);
            let reading = CALLS.get();
            let mut rows = session.stream(&select, (round,));
            while let Some(row) = rows.next().await {
                assert_eq!(row, Ok((7, 8_i64, 9.0)));
            }
            drop(rows);
            let calls = [writing - before, reading - writing, CALLS.get() - reading];
            // Whatever is kept for the next request is there after the first ones.
            assert!(round < 10 || calls == [0; 3], "round {round}: {calls:?}");
        }
        Ok(())
    });
}

/// As many rows as make a megabyte, through a window of two kilobytes.
#[test]
fn a_page_larger_than_memory_takes_no_heap() {
    let node = node();
    run(&node, async |session| {
        session.ready().await?;
        let select = session.prepare("SELECT").await?;
        let mut before = 0;
        for is_warm in [false, false, false, true] {
            node.0.borrow_mut().rows = 32_768;
            before = super::begin();
            let calls = CALLS.get();
            let mut rows = session.stream(&select, (1_i64,));
            let mut count = 0;
            while let Some(row) = rows.next().await {
                assert_eq!(row, Ok((7, 8_i64, 9.0)));
                count += 1;
            }
            assert_eq!(count, 32_768);
            drop(rows);
            let calls = CALLS.get() - calls;
            assert!(!is_warm || calls == 0, "{calls} heap calls");
        }
        let peak = super::growth_since(before);
        assert!(peak < 100, "{peak} bytes more than before");
        Ok(())
    });
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What the session and its user have for each other is done before their task rests.
#[test]
fn a_task_that_runs_both_is_not_woken_by_itself() {
    let node = node();
    node.0.borrow_mut().rows = 500;
    let mut config = Config::mcu();
    config.routing = Routing::Single;
    config.contact_points.push(Endpoint::Local("near".into()));
    let (session, mut runner) = start(config, node, 7);
    let work = pin!(async {
        session.ready().await?;
        let insert = session.prepare("INSERT").await?;
        let select = session.prepare("SELECT").await?;
        session.execute(&insert, (1_i64, 2_i64)).await?;
        let mut count = 0;
        let mut rows = session.stream(&select, (1_i64,));
        while let Some(row) = rows.next::<(i32, i64, f64)>().await {
            count += row?.0;
        }
        drop(rows);
        session.close(Duration::from_secs(1)).await?;
        Ok::<_, Error>(count)
    });
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut both = pin!(runner.beside(work));
    // The link wakes nobody.
    let outcome = (0..1000).find_map(|_| match both.as_mut().poll(&mut cx) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    });
    assert_eq!(outcome, Some(Ok(500 * 7)));
    assert_eq!(woken.0.load(Relaxed), 0);
}

/// What cannot look names up.
struct Nameless(Near);

impl Transport for Nameless {
    type Link = Near;
    type Timer = Still;
    type Clock = Still;
    type Connecting = Ready<Result<Near, LinkError>>;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    const RESOLVES: bool = false;

    fn resolve(&self, name: &Name) -> Self::Resolving {
        self.0.resolve(name)
    }

    fn connect(&self, target: Target) -> Self::Connecting {
        self.0.connect(target)
    }

    fn timer(&self) -> Still {
        Still
    }

    fn clock(&self) -> Still {
        Still
    }
}

#[test]
fn a_name_fails_where_none_is_looked_up() {
    let mut config = Config::mcu();
    config.routing = Routing::Single;
    config.add_contact_points("near.example").unwrap();
    let (session, runner) = start(config, Nameless(node()), 7);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(runner).poll(&mut cx).is_ready());
    let Poll::Ready(Err(error)) = pin!(session.ready()).poll(&mut cx) else {
        panic!("a session without an address is ready");
    };
    let resolve = LinkError::new(LinkErrorKind::Resolve);
    assert_eq!(error.kind(), ErrorKind::Link(resolve));
}
