//! One connection under sequences of operations, beside a model that keeps what must be true.
//!
//! The model knows each stream id by what the wire owes it. Callers are numbers from 1; 0 is the
//! default that stands where a caller was taken out.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, BytesMut};
use messina_core::conn::{
    Answer, Body, Connection, ConnectionLimits, Outcome, Received, Refused, RequestHead, SlotKey,
    Ticket, Turn,
};
use messina_core::error::{Error, ErrorKind, LimitField, LinkError};
use messina_core::time::Instant;
use messina_core::wire::{EncodeError, Flags, FrameHeader, HEADER_LEN, Opcode, ProtocolVersion};

use super::{Input, Target};

pub(super) const CONNECTION: Target = Target {
    name: "connection",
    body,
    corpus,
};

const VERSION: ProtocolVersion = ProtocolVersion::V4;

/// Limits, then operations until the bytes end, then a close.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut play = Play::new(&mut input);
    while !input.is_empty() {
        play.step(&mut input);
        play.check();
    }
    play.close();
    play.leave_nothing();
}

/// What stands behind a stream id.
#[derive(Debug)]
enum Id {
    Waiting {
        key: SlotKey,
        caller: u64,
        give_up_at: Instant,
        offset: u64,
    },
    Done {
        key: SlotKey,
        outcome: Expected,
    },
    Orphan,
    Heartbeat,
}

#[derive(Debug)]
enum Expected {
    Answer(Opcode, Vec<u8>),
    TooLong,
    Closed { applied: bool },
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    caller: u64,
    give_up_at: Instant,
    state: WaiterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaiterState {
    Queued,
    Granted,
    Expired,
}

struct Play {
    connection: Connection<u64>,
    limits: ConnectionLimits,
    now: Instant,
    heard_at: Instant,
    next_caller: u64,
    ids: BTreeMap<u16, Id>,
    /// Keys of requests that are over.
    stale: VecDeque<SlotKey>,
    waiters: Vec<Waiter>,
    /// Frames that wait for the link: stream and body, `None` for a heartbeat's.
    unsent: VecDeque<(u16, Vec<u8>)>,
    queued: u64,
    handed_out: u64,
    written: u64,
    strays: u32,
    is_draining: bool,
    is_over: bool,
}

/// A body that cannot be written, or the frame around it.
#[derive(Debug)]
struct CannotWrite;

impl From<EncodeError> for CannotWrite {
    fn from(_: EncodeError) -> Self {
        Self
    }
}

impl Play {
    fn new(input: &mut Input<'_>) -> Self {
        let mut limits = ConnectionLimits::default();
        limits.in_flight = u16::from(input.byte() % 8) + 1;
        limits.waiting = input.below(6);
        limits.pending_bytes = input.pick(&[1 << 20, 0, 30, 100]);
        limits.orphans = u16::from(input.byte() % 8);
        limits.orphan_age = input.pick(&[1_000, 50, 0]).micros();
        limits.heartbeat_interval = input.pick(&[1_000_000, 500, 1]).micros();
        limits.heartbeat_timeout = input.pick(&[1_000_000, 500, 1]).micros();
        let now = Instant::from_micros(10);
        Self {
            connection: Connection::new(VERSION, limits, now),
            limits,
            now,
            heard_at: now,
            next_caller: 1,
            ids: BTreeMap::new(),
            stale: VecDeque::new(),
            waiters: Vec::new(),
            unsent: VecDeque::new(),
            queued: 0,
            handed_out: 0,
            written: 0,
            strays: 0,
            is_draining: false,
            is_over: false,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 20 {
            0..=3 => self.submit(input),
            4 | 5 => self.wait(input),
            6 | 7 => self.poll_turn(input),
            8 => self.leave(input),
            9 | 10 => self.poll_answer(input),
            11 => self.cancel(input),
            12..=14 => self.frame(input),
            15 => self.too_long(input),
            16 | 17 => self.time(input),
            18 => self.write(input),
            _ => match input.byte() {
                0..=99 => self.stale(input),
                100..=199 => self.write(input),
                200..=229 => {
                    self.connection.drain();
                    self.is_draining = true;
                }
                _ => self.close(),
            },
        }
    }

    fn caller(&mut self) -> u64 {
        self.next_caller += 1;
        self.next_caller
    }

    fn deadline(&self, input: &mut Input<'_>) -> Instant {
        self.now.saturating_add(u64::from(input.word()).micros())
    }

    fn submit(&mut self, input: &mut Input<'_>) {
        let (caller, give_up_at) = (self.caller(), self.deadline(input));
        let (body, fails) = request_body(caller, input);
        let is_full = self.room() <= self.granted();
        let head = RequestHead::new(Opcode::Query);
        let outcome = self
            .connection
            .submit(caller, give_up_at, head, |output: &mut BytesMut| {
                output.extend_from_slice(&body);
                if fails { Err(CannotWrite) } else { Ok(()) }
            });
        match outcome {
            Ok(key) => {
                assert!(!self.is_over && !self.is_draining && !is_full && !fails);
                self.submitted(key, caller, give_up_at, body);
            }
            Err(Refused::Closed(back, _)) => {
                assert!(self.is_over || self.is_draining);
                assert_eq!(back, caller);
            }
            Err(Refused::Full(back)) => assert_eq!((back, is_full), (caller, true)),
            Err(Refused::Encode(back, _)) => assert_eq!((back, fails), (caller, true)),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn submitted(&mut self, key: SlotKey, caller: u64, give_up_at: Instant, body: Vec<u8>) {
        let stream = key.stream_id();
        assert!((1..=self.limits.in_flight).contains(&stream));
        let offset = self.queued;
        let id = Id::Waiting {
            key,
            caller,
            give_up_at,
            offset,
        };
        let before = self.ids.insert(stream, id);
        assert!(
            before.is_none(),
            "stream {stream} given out twice: {before:?}"
        );
        self.queued += length(HEADER_LEN + body.len());
        self.unsent.push_back((stream, body));
    }

    fn wait(&mut self, input: &mut Input<'_>) {
        let (caller, give_up_at) = (self.caller(), self.deadline(input));
        let mut told = Vec::new();
        match self
            .connection
            .wait(caller, give_up_at, |who| told.push(who))
        {
            Ok(ticket) => {
                assert!(!self.is_over && !self.is_draining);
                assert!(self.waiters.len() < self.limits.waiting);
                self.waiters.push(Waiter {
                    ticket,
                    caller,
                    give_up_at,
                    state: WaiterState::Queued,
                });
            }
            Err((back, _)) => {
                let is_full = self.waiters.len() >= self.limits.waiting;
                assert!(self.is_over || self.is_draining || is_full);
                assert_eq!(back, caller);
            }
        }
        self.grants(told);
    }

    /// A granted waiter submits, now or after a later look, or finds that it cannot.
    fn poll_turn(&mut self, input: &mut Input<'_>) {
        let Some(at) = self.any_waiter(input) else {
            return;
        };
        let (ticket, caller, state) = {
            let waiter = &self.waiters[at];
            (waiter.ticket, waiter.caller, waiter.state)
        };
        match self.connection.poll_turn(ticket) {
            Err(_) => assert!(self.is_over),
            Ok(Turn::Waiting(held)) => assert_eq!((*held, state), (caller, WaiterState::Queued)),
            Ok(Turn::Expired) => {
                assert_eq!(state, WaiterState::Expired);
                self.waiters.remove(at);
            }
            Ok(Turn::Granted) => {
                assert_eq!(state, WaiterState::Granted);
                if !input.one_in(4) {
                    self.waiters.remove(at);
                    self.submit_granted(ticket, input);
                }
            }
            Ok(other) => panic!("{other:?}"),
        }
    }

    fn submit_granted(&mut self, ticket: Ticket, input: &mut Input<'_>) {
        let (caller, give_up_at) = (self.caller(), self.deadline(input));
        let (body, fails) = request_body(caller, input);
        let head = RequestHead::new(Opcode::Query);
        let outcome = self.connection.submit_granted(
            ticket,
            caller,
            give_up_at,
            head,
            |output: &mut BytesMut| {
                output.extend_from_slice(&body);
                if fails { Err(CannotWrite) } else { Ok(()) }
            },
        );
        match outcome {
            Ok(key) => self.submitted(key, caller, give_up_at, body),
            Err(Refused::Encode(..)) if fails => {
                let mut told = Vec::new();
                self.connection.pass_on(|who| told.push(who));
                self.grants(told);
            }
            Err(other) => panic!("a grant is worth an id: {other:?}"),
        }
    }

    fn leave(&mut self, input: &mut Input<'_>) {
        let Some(at) = self.any_waiter(input) else {
            return;
        };
        let waiter = self.waiters.remove(at);
        let mut told = Vec::new();
        let back = self.connection.leave(waiter.ticket, |who| told.push(who));
        match waiter.state {
            WaiterState::Queued => assert_eq!(back, Some(waiter.caller)),
            _ => assert_eq!(back, Some(0), "it was told already"),
        }
        self.grants(told);
    }

    fn poll_answer(&mut self, input: &mut Input<'_>) {
        let Some((stream, key)) = self.any_request(input) else {
            return;
        };
        let mut told = Vec::new();
        let outcome = self.connection.poll_answer(key, |who| told.push(who));
        match (outcome, &self.ids[&stream]) {
            (Outcome::Pending(held), Id::Waiting { caller, .. }) => assert_eq!(held, caller),
            (
                Outcome::Done(outcome),
                Id::Done {
                    outcome: expected, ..
                },
            ) => {
                expected.check(outcome);
                self.forget(stream, key);
            }
            (got, expected) => panic!("{got:?} where {expected:?} is"),
        }
        self.grants(told);
    }

    fn cancel(&mut self, input: &mut Input<'_>) {
        let Some((stream, key)) = self.any_request(input) else {
            return;
        };
        let mut told = Vec::new();
        let given_back = self.connection.cancel(key, self.now, |who| told.push(who));
        match &self.ids[&stream] {
            Id::Waiting { caller, .. } => {
                assert_eq!(given_back, (Some(*caller), None));
                self.ids.insert(stream, Id::Orphan);
                self.remember(key);
            }
            Id::Done { outcome, .. } => {
                let (caller, answer) = given_back;
                assert_eq!(caller, None, "it was told already");
                match (answer, outcome) {
                    (Some(answer), expected) => expected.check(Ok(answer)),
                    (None, expected) => assert!(!matches!(expected, Expected::Answer(..))),
                }
                self.forget(stream, key);
            }
            Id::Orphan | Id::Heartbeat => unreachable!("no request"),
        }
        self.grants(told);
    }

    /// A key whose request is over finds nothing and changes nothing.
    fn stale(&mut self, input: &mut Input<'_>) {
        if self.stale.is_empty() {
            return;
        }
        let key = self.stale[input.below(self.stale.len())];
        let mut told = Vec::new();
        let outcome = self.connection.poll_answer(key, |who| told.push(who));
        assert!(matches!(outcome, Outcome::Expired), "{outcome:?}");
        let given_back = self.connection.cancel(key, self.now, |who| told.push(who));
        assert_eq!((given_back, told), ((None, None), vec![]));
    }

    fn frame(&mut self, input: &mut Input<'_>) {
        if self.is_over {
            return;
        }
        let opcode = input.pick(&RESPONSES);
        let stream = self.any_stream(input);
        let version = if input.one_in(32) {
            ProtocolVersion::V3
        } else {
            VERSION
        };
        // Long ones are kept in another way than short ones.
        let body = vec![input.byte(); input.pick(&[4, 0, 32, 33, 90])];
        let header = header(version, stream, opcode, body.len());
        self.heard_at = self.now;
        let mut told = Vec::new();
        let bytes = Body::from_slice(&body);
        let received = self
            .connection
            .handle_frame(self.now, &header, bytes, |who| told.push(who));
        let is_about_all = stream == 0 && opcode == Opcode::Error;
        if version != VERSION || is_about_all {
            assert!(received.is_err());
            return self.close();
        }
        if opcode == Opcode::Event {
            return match received {
                Ok(Received::Event(event)) => {
                    assert_eq!((stream, event.as_slice()), (-1, &body[..]))
                }
                Ok(other) => panic!("an event taken for {other:?}"),
                Err(_) => {
                    assert_ne!(stream, -1);
                    self.close();
                }
            };
        }
        let Ok(stream) = u16::try_from(stream) else {
            assert!(received.is_err());
            return self.close();
        };
        let expected = self.answered(stream, Expected::Answer(opcode, body), told);
        match received {
            Ok(received) => assert_eq!(received, expected),
            Err(_) => {
                assert!(self.strays > STRAYS_MAX, "given up for {stream}");
                self.close();
            }
        }
    }

    fn too_long(&mut self, input: &mut Input<'_>) {
        if self.is_over {
            return;
        }
        let stream = self.any_stream(input);
        let header = header(VERSION, stream, Opcode::Result, 1 << 30);
        let mut told = Vec::new();
        self.connection
            .handle_too_long(&header, |who| told.push(who));
        match u16::try_from(stream) {
            Ok(stream) => drop(self.answered(stream, Expected::TooLong, told)),
            Err(_) => assert!(told.is_empty()),
        }
    }

    /// Whom an answer on this stream belongs to, and that nobody else was told of it.
    fn answered(&mut self, stream: u16, outcome: Expected, mut told: Vec<u64>) -> Received {
        let received = match self.ids.get(&stream) {
            Some(&Id::Waiting { key, caller, .. }) => {
                assert_eq!(told, [caller]);
                told.clear();
                self.ids.insert(stream, Id::Done { key, outcome });
                Received::Answer
            }
            Some(Id::Heartbeat) => {
                self.ids.remove(&stream);
                Received::Answer
            }
            Some(Id::Orphan) => {
                self.ids.remove(&stream);
                Received::Stray
            }
            Some(Id::Done { .. }) | None => {
                self.strays += 1;
                Received::Stray
            }
        };
        self.grants(told);
        received
    }

    fn time(&mut self, input: &mut Input<'_>) {
        let pause = match input.byte() {
            0..=99 => u64::from(input.byte()),
            100..=199 => u64::from(input.word()),
            _ => u64::from(input.word()) << 8,
        };
        if self.is_over {
            return;
        }
        self.now = self.now.saturating_add(pause.micros());
        let mut told = Vec::new();
        let outcome = self
            .connection
            .handle_timeout(self.now, |who| told.push(who));
        let mut expected = Vec::new();
        let mut over = Vec::new();
        for (&stream, id) in &self.ids {
            if let &Id::Waiting {
                key,
                caller,
                give_up_at,
                ..
            } = id
                && give_up_at <= self.now
            {
                expected.push(caller);
                over.push((stream, key));
            }
        }
        for (stream, key) in over {
            self.ids.insert(stream, Id::Orphan);
            self.remember(key);
        }
        for waiter in &mut self.waiters {
            if waiter.state != WaiterState::Expired && waiter.give_up_at <= self.now {
                let is_queued = waiter.state == WaiterState::Queued;
                expected.push(if is_queued { waiter.caller } else { 0 });
                waiter.state = WaiterState::Expired;
            }
        }
        let granted = told.split_off(expected.len().min(told.len()));
        assert_eq!(told, expected, "exactly those that are late are told");
        self.grants(granted);
        match outcome {
            Ok(()) => {
                self.note_heartbeat();
                assert!(
                    self.connection.poll_timeout() > self.now,
                    "time stands still"
                );
            }
            Err(error) => {
                let is_orphans = error.kind() == ErrorKind::Limit(LimitField::Orphans);
                let too_many = self.connection.orphans() > self.orphans_max();
                assert!(!is_orphans || too_many, "{error}");
                let has_heartbeat = self.ids.values().any(|id| matches!(id, Id::Heartbeat));
                assert!(is_orphans || has_heartbeat, "{error}");
                // A heartbeat that is late has become an orphan, like any request.
                self.drop_heartbeat_if_orphaned();
                self.close();
            }
        }
    }

    fn orphans_max(&self) -> u16 {
        let ids = self.limits.in_flight;
        self.limits.orphans.min(ids - ids.div_ceil(4))
    }

    /// One id more in use than there were requests is a heartbeat; the output says which.
    fn note_heartbeat(&mut self) {
        let known = self.ids.len();
        let in_use = usize::from(self.connection.in_use());
        if in_use == known {
            return;
        }
        assert_eq!(in_use, known + 1);
        let due = self.heard_at.saturating_add(self.limits.heartbeat_interval);
        assert!(self.now >= due, "a heartbeat too early");
        self.queued += length(HEADER_LEN);
        self.take_output();
        assert_eq!(self.ids.len(), in_use);
    }

    fn drop_heartbeat_if_orphaned(&mut self) {
        let orphans = self.ids.values().filter(|id| matches!(id, Id::Orphan));
        if usize::from(self.connection.orphans()) > orphans.count() {
            for id in self.ids.values_mut() {
                if matches!(id, Id::Heartbeat) {
                    *id = Id::Orphan;
                }
            }
        }
    }

    /// The link takes all bytes from the connection and writes some of those it has.
    fn write(&mut self, input: &mut Input<'_>) {
        if self.is_over {
            return;
        }
        self.take_output();
        let left = self.handed_out - self.written;
        let len = left.min(u64::from(input.word()));
        self.connection
            .handle_written(usize::try_from(len).expect("64 bits"));
        self.written += len;
    }

    fn take_output(&mut self) {
        let (mut output, mut told) = (BytesMut::new(), Vec::new());
        self.connection
            .swap_output(&mut output, |who| told.push(who));
        self.handed_out += length(output.len());
        assert_eq!(
            self.handed_out, self.queued,
            "bytes beside those of requests"
        );
        while output.has_remaining() {
            assert_eq!(output.get_u16(), u16::from(VERSION.number()) << 8);
            let (stream, opcode) = (output.get_u16(), output.get_u8());
            let body_len = output.get_u32();
            let body = output.split_to(usize::try_from(body_len).expect("64 bits"));
            if opcode == Opcode::Options.code() {
                assert!(body.is_empty());
                let before = self.ids.insert(stream, Id::Heartbeat);
                assert!(
                    before.is_none(),
                    "stream {stream} given out twice: {before:?}"
                );
                continue;
            }
            assert_eq!(opcode, Opcode::Query.code());
            let expected = self.unsent.pop_front();
            assert_eq!(expected, Some((stream, body.to_vec())), "in order");
        }
        assert!(self.unsent.is_empty());
        self.grants(told);
    }

    fn close(&mut self) {
        if self.is_over {
            return;
        }
        let mut told = Vec::new();
        let error = Error::from(LinkError::CLOSED_BY_PEER);
        self.connection.close(&error, |who| told.push(who));
        self.is_over = true;
        let mut expected: Vec<u64> = Vec::new();
        for id in self.ids.values_mut() {
            if let Id::Waiting {
                key,
                caller,
                offset,
                ..
            } = *id
            {
                expected.push(caller);
                let applied = offset < self.written;
                *id = Id::Done {
                    key,
                    outcome: Expected::Closed { applied },
                };
            }
        }
        let queued = |waiter: &Waiter| (waiter.state == WaiterState::Queued, waiter.caller);
        let waiters = self.waiters.drain(..).map(|waiter| queued(&waiter));
        expected.extend(waiters.map(|(is_queued, caller)| if is_queued { caller } else { 0 }));
        assert_eq!(told, expected, "everybody is told of the end");
        self.unsent.clear();
    }

    /// Everybody looks a last time: then only what the wire still owes is left.
    fn leave_nothing(&mut self) {
        while let Some((stream, key)) = self.any_request(&mut Input::new(&[])) {
            let outcome = self.connection.poll_answer(key, |_| panic!("nobody waits"));
            match (outcome, &self.ids[&stream]) {
                (
                    Outcome::Done(outcome),
                    Id::Done {
                        outcome: expected, ..
                    },
                ) => {
                    expected.check(outcome);
                }
                (got, expected) => panic!("{got:?} where {expected:?} is"),
            }
            self.ids.remove(&stream);
        }
        let heartbeats = self.ids.values().filter(|id| matches!(id, Id::Heartbeat));
        let heartbeats = u16::try_from(heartbeats.count()).expect("one");
        assert_eq!(
            self.connection.in_use(),
            self.connection.orphans() + heartbeats
        );
        assert_eq!(self.connection.poll_timeout(), Instant::FAR_FUTURE);
        assert!(!self.connection.has_output());
    }

    /// What must hold after every operation.
    fn check(&self) {
        let connection = &self.connection;
        assert_eq!(usize::from(connection.in_use()), self.ids.len());
        assert!(connection.in_use() <= self.limits.in_flight);
        let orphans = self.ids.values().filter(|id| matches!(id, Id::Orphan));
        let orphans = orphans.count();
        assert_eq!(usize::from(connection.orphans()), orphans);
        let pending = self.queued - self.handed_out;
        let is_waiting = |waiter: &Waiter| waiter.state != WaiterState::Expired;
        let is_pending = |id: &Id| matches!(id, Id::Waiting { .. } | Id::Heartbeat);
        let is_idle = pending == 0 && !self.ids.values().any(is_pending);
        let is_drained =
            self.is_draining && (self.is_over || is_idle) && !self.waiters.iter().any(is_waiting);
        assert_eq!(connection.is_drained(), is_drained);
        if self.is_over {
            return;
        }
        assert_eq!(connection.has_output(), pending > 0);
        let available = self.limits.in_flight - connection.in_use();
        assert!(self.granted() <= available, "more grants than ids");
        let is_queued = |waiter: &&Waiter| waiter.state == WaiterState::Queued;
        let is_idle = self.granted() < self.room();
        assert!(
            !is_idle || !self.waiters.iter().any(|waiter| is_queued(&waiter)),
            "an id is free and somebody waits for it"
        );
        let due = self.ids.values().filter_map(|id| match id {
            Id::Waiting { give_up_at, .. } => Some(*give_up_at),
            _ => None,
        });
        let waiting = self.waiters.iter().filter(|waiter| is_waiting(waiter));
        let due = due.chain(waiting.map(|waiter| waiter.give_up_at)).min();
        assert!(
            due.is_none_or(|due| connection.poll_timeout() <= due),
            "late"
        );
    }

    /// Those told beside callers with an answer are waiters whose turn has come, in their order.
    fn grants(&mut self, told: Vec<u64>) {
        let is_any = !told.is_empty();
        for caller in told {
            let mut queued = self.waiters.iter_mut();
            let first = queued.find(|waiter| waiter.state == WaiterState::Queued);
            let first = first.expect("somebody waits");
            assert_eq!(caller, first.caller, "not whose turn it was");
            first.state = WaiterState::Granted;
        }
        assert!(
            !is_any || self.granted() <= self.room(),
            "more grants than room"
        );
    }

    fn granted(&self) -> u16 {
        let granted = |waiter: &&Waiter| waiter.state == WaiterState::Granted;
        u16::try_from(self.waiters.iter().filter(granted).count()).expect("few")
    }

    fn room(&self) -> u16 {
        let pending = self.queued - self.handed_out;
        if pending > 0 && pending >= length(self.limits.pending_bytes) {
            return 0;
        }
        self.limits.in_flight - self.connection.in_use()
    }

    fn any_waiter(&self, input: &mut Input<'_>) -> Option<usize> {
        let count = self.waiters.len();
        (count > 0).then(|| input.below(count))
    }

    /// A request whose caller has not seen its end.
    fn any_request(&self, input: &mut Input<'_>) -> Option<(u16, SlotKey)> {
        let request = |(&stream, id): (&u16, &Id)| match id {
            Id::Waiting { key, .. } | Id::Done { key, .. } => Some((stream, *key)),
            Id::Orphan | Id::Heartbeat => None,
        };
        let requests: Vec<_> = self.ids.iter().filter_map(request).collect();
        (!requests.is_empty()).then(|| input.pick(&requests))
    }

    fn any_stream(&self, input: &mut Input<'_>) -> i16 {
        let used: Vec<u16> = self.ids.keys().copied().collect();
        match input.byte() {
            0..=199 if !used.is_empty() => input.pick(&used).cast_signed(),
            0..=239 => input.pick(&[-1, 0, 1, 2, 9, i16::MIN, i16::MAX]),
            _ => input.word().cast_signed(),
        }
    }

    fn forget(&mut self, stream: u16, key: SlotKey) {
        self.ids.remove(&stream);
        self.remember(key);
    }

    fn remember(&mut self, key: SlotKey) {
        self.stale.push_back(key);
        if self.stale.len() > 8 {
            self.stale.pop_front();
        }
    }
}

impl Expected {
    fn check(&self, outcome: Result<Answer, Error>) {
        match (self, outcome) {
            (Self::Answer(opcode, body), Ok(answer)) => {
                assert_eq!(
                    (answer.opcode, answer.body.as_slice()),
                    (*opcode, &body[..])
                );
            }
            (Self::TooLong, Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Limit(LimitField::FrameLen));
            }
            (Self::Closed { applied }, Err(error)) => {
                assert_eq!(error.may_have_been_applied(), *applied);
            }
            (expected, got) => panic!("{got:?} where {expected:?} was to come"),
        }
    }
}

/// The caller's number and some more bytes; sometimes writing it fails after half of it.
fn request_body(caller: u64, input: &mut Input<'_>) -> (Vec<u8>, bool) {
    let mut body = caller.to_be_bytes().to_vec();
    body.resize(8 + input.below(40), 0xaa);
    (body, input.one_in(16))
}

fn header(version: ProtocolVersion, stream: i16, opcode: Opcode, body_len: usize) -> FrameHeader {
    FrameHeader {
        version,
        flags: Flags::NONE,
        stream,
        opcode,
        body_len: u32::try_from(body_len).expect("short"),
    }
}

fn length(len: usize) -> u64 {
    u64::try_from(len).expect("64 bits")
}

trait Micros {
    fn micros(self) -> Duration;
}

impl Micros for u64 {
    fn micros(self) -> Duration {
        Duration::from_micros(self)
    }
}

const RESPONSES: [Opcode; 6] = [
    Opcode::Result,
    Opcode::Error,
    Opcode::Event,
    Opcode::Ready,
    Opcode::Supported,
    Opcode::AuthSuccess,
];

/// Answers to nobody that a connection bears.
const STRAYS_MAX: u32 = 64;

/// Sequences with a purpose; the numbers are those of [`Play::step`].
fn corpus() -> Vec<Vec<u8>> {
    let limits = [3, 5, 0, 7, 0, 0, 0];
    let tight = [0, 5, 2, 0, 1, 1, 1];
    let submit = [0, 0x7f, 0xff, 5, 0];
    let wait = [4, 0x7f, 0xff];
    let (turn, leave) = ([6, 0, 0x7f, 0xff, 9, 0], [8, 0]);
    let (poll, cancel) = ([9, 0], [11, 0]);
    let answer = [12, 0, 0, 0, 0, 7, 0];
    let (later, much_later) = ([16, 0, 90], [16, 255, 0xff, 0xff]);
    let write = [18, 0, 20];
    let all = [
        &submit[..],
        &submit,
        &write,
        &answer,
        &poll,
        &cancel,
        &answer,
        &later,
        &submit,
        &wait,
        &wait,
        &answer,
        &poll,
        &turn,
        &leave,
        &much_later,
        &answer,
        &write,
        &write,
    ];
    let crowd = [
        &submit[..],
        &submit,
        &submit,
        &submit,
        &wait,
        &wait,
        &wait,
        &answer,
        &poll,
        &later,
        &turn,
        &cancel,
        &answer,
        &leave,
        &turn,
        &much_later,
    ];
    let beats = [
        &later[..],
        &write,
        &later,
        &wait,
        &later,
        &answer,
        &turn,
        &later,
        &later,
    ];
    let patterns = [&all[..], &crowd, &beats];
    let mut corpus = Vec::new();
    for limits in [limits, tight] {
        for pattern in patterns {
            corpus.push([&limits[..], &pattern.concat()].concat());
        }
    }
    corpus
}
