//! Pumps one link and the state of one connection: connect, handshake, requests and answers,
//! close. The platform runs one such task for each connection, wherever it likes.
//!
//! Work per poll is bounded: after [`FRAMES_PER_POLL`] frames the task re-queues itself. Nothing
//! foreign runs under the connection's lock.
//!
//! *Deferred write.* When the task finds output it re-queues itself once before it writes
//! (`Config::write_deferral`). Callers that were woken by the same batch of answers, or that are
//! about to submit, then share one write; woken at once after the first submission, many frames
//! become a system call of their own. CPU time of the client for one prepared read (3 nodes of 4
//! shards, 2 cores, tokio, median of 5 rounds in turns):
//!
//! | runtime | in flight | deferred | at once |
//! |---|---|---|---|
//! | current-thread | 16 | 9.7 µs | 10.3 µs |
//! | current-thread | 256 | 3.6 µs | 3.6 µs |
//! | current-thread | 1024 | 3.1 µs | 3.1 µs |
//! | multi-thread | 16 | 12.9 µs | 13.9 µs |
//! | multi-thread | 256 | 4.5 µs | 8.4 µs |
//! | multi-thread | 1024 | 4.0 µs | 8.1 µs |
//!
//! On the current-thread runtime a woken task stands in line behind the callers anyway, so nothing is
//! lost or won; on the multi-thread one it halves the cost and doubles the reads a second at 256
//! (109 k against 54 k). So it is on by default, whatever the runtime. The figures come from
//! `cargo run -p messina-bench --profile bench -- throughput`; what a request costs in heap calls
//! (none) and instructions is held by the same package's `counts`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};

use super::cell::{Cell, Settled};
use super::hub::Hub;
use super::inbox::Report;
use super::transport::{Clock, Link, Target, Timer, Transport};
use super::wakers::Wakers;
use crate::cluster::ConnectionId;
use crate::conn::extensions::Agreed;
use crate::conn::framer::{Cut, FrameLimits, Framer, FramerError};
use crate::conn::negotiate::{HANDSHAKE_STREAM, HandshakeConfig, Negotiation};
use crate::conn::{Body, Received};
use crate::error::TimeoutKind;
use crate::error::{Error, ErrorKind, LimitField, LinkError, LinkErrorKind, PeerMisbehaved};
use crate::sync::{Local, Shared, assert_unlocked};
use crate::time::Instant;
use crate::wire::{Flags, FrameHeader, Inflate, Opcode};

/// Frames that one poll handles before the task lets others run.
const FRAMES_PER_POLL: usize = 128;

/// One connection of a session, to be polled by the platform until it is done. Dropping it aborts
/// the link and fails whatever is under way.
#[must_use = "a connection does nothing unless its task is polled"]
pub struct ConnectionTask<T: Transport> {
    id: ConnectionId,
    hub: Shared<Hub>,
    clock: T::Clock,
    timer: T::Timer,
    phase: Phase<T>,
}

enum Phase<T: Transport> {
    Connecting {
        connecting: T::Connecting,
        handshake: Local<HandshakeConfig>,
        deadline: Instant,
    },
    Handshaking(Handshaking<T::Link>),
    Open(Open<T::Link>),
    Closing {
        link: T::Link,
        deadline: Instant,
        error: Error,
    },
    Done,
}

impl<T: Transport> ConnectionTask<T> {
    pub(super) fn new(
        transport: &T,
        hub: Shared<Hub>,
        id: ConnectionId,
        target: Target,
        handshake: Local<HandshakeConfig>,
    ) -> Self {
        let deadline = target.deadline;
        let mut timer = transport.timer();
        timer.arm(Some(deadline));
        Self {
            id,
            hub,
            clock: transport.clock(),
            timer,
            phase: Phase::Connecting {
                connecting: transport.connect(target),
                handshake,
                deadline,
            },
        }
    }

    fn poll_phase(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.phase {
                Phase::Connecting {
                    connecting,
                    handshake,
                    deadline,
                } => {
                    let error = match Pin::new(connecting).poll(cx) {
                        Poll::Ready(Ok(link)) => {
                            let (handshake, deadline) = (Local::clone(handshake), *deadline);
                            match Handshaking::start(link, handshake, deadline, &self.hub) {
                                Ok(handshaking) => {
                                    self.phase = Phase::Handshaking(handshaking);
                                    continue;
                                }
                                Err(error) => error,
                            }
                        }
                        Poll::Ready(Err(error)) => error.into(),
                        Poll::Pending => match self.timer.poll_fired(cx) {
                            Poll::Pending => return Poll::Pending,
                            Poll::Ready(()) if self.clock.now() < *deadline => {
                                self.timer.arm(Some(*deadline));
                                continue;
                            }
                            Poll::Ready(()) => Error::new(ErrorKind::Timeout(TimeoutKind::Connect)),
                        },
                    };
                    return self.fail(error);
                }
                Phase::Handshaking(handshaking) => {
                    match handshaking.poll(cx, &mut self.timer, &self.clock) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Err(error)) => return self.fail(error),
                        Poll::Ready(Ok((agreed, is_early))) => {
                            let Phase::Handshaking(done) =
                                core::mem::replace(&mut self.phase, Phase::Done)
                            else {
                                return Poll::Ready(());
                            };
                            let limits = self.hub.config().limits.connection;
                            let port = done.link.source_port();
                            let clock = Shared::clone(self.hub.clock());
                            let cell = Cell::new(self.id, agreed, port, limits, clock);
                            let open = if is_early {
                                Open::early(done, Shared::new(cell.early()))
                            } else {
                                Open::new(done, Shared::new(cell)).0
                            };
                            self.hub
                                .report(Report::Connected(Shared::clone(&open.cell)));
                            if self.hub.over().is_some() {
                                // Nobody may be left to close it. Asked after the report: either
                                // the driver finds that, or this sees the end.
                                open.cell.request_close(false);
                            }
                            self.phase = Phase::Open(open);
                        }
                    }
                }
                Phase::Open(open) => match open.poll(cx, &mut self.timer, &self.clock, &self.hub) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ended::Broken(error)) => return self.fail(error),
                    Poll::Ready(Ended::Drained) => {
                        let Phase::Open(open) = core::mem::replace(&mut self.phase, Phase::Done)
                        else {
                            return Poll::Ready(());
                        };
                        let error = LinkError::new(LinkErrorKind::ClosedByUs).into();
                        open.close(&error);
                        let close = self.hub.config().timeouts.close;
                        let deadline = self.clock.now().saturating_add(close);
                        self.timer.arm(Some(deadline));
                        self.phase = Phase::Closing {
                            link: open.link,
                            deadline,
                            error,
                        };
                    }
                },
                Phase::Closing {
                    link,
                    deadline,
                    error,
                } => {
                    assert_unlocked();
                    if link.poll_close(cx).is_pending() {
                        if self.timer.poll_fired(cx).is_pending() {
                            return Poll::Pending;
                        }
                        if self.clock.now() < *deadline {
                            self.timer.arm(Some(*deadline));
                            continue;
                        }
                    }
                    let error = error.clone();
                    return self.fail(error);
                }
                Phase::Done => return Poll::Ready(()),
            }
        }
    }

    /// Ends the task: tells whoever waits, then the control plane.
    fn fail(&mut self, error: Error) -> Poll<()> {
        match core::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Connecting { .. } | Phase::Handshaking(_) => {
                self.hub.report(Report::ConnectFailed(self.id, error));
            }
            Phase::Open(open) => {
                open.close(&error);
                self.hub.report(Report::Closed(self.id, error));
            }
            Phase::Closing { .. } => self.hub.report(Report::Closed(self.id, error)),
            Phase::Done => {}
        }
        Poll::Ready(())
    }
}

impl<T: Transport> Future for ConnectionTask<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_phase(cx)
    }
}

impl<T: Transport> Drop for ConnectionTask<T> {
    fn drop(&mut self) {
        let _ = self.fail(LinkError::new(LinkErrorKind::ClosedByUs).into());
    }
}

impl<T: Transport> fmt::Debug for ConnectionTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            Phase::Connecting { .. } => "connecting",
            Phase::Handshaking(_) => "handshaking",
            Phase::Open(_) => "open",
            Phase::Closing { .. } => "closing",
            Phase::Done => "done",
        };
        f.debug_struct("ConnectionTask")
            .field("id", &self.id)
            .field("phase", &phase)
            .finish()
    }
}

/// A link in its handshake.
struct Handshaking<L> {
    link: L,
    /// `None` only while a step is taken.
    negotiation: Negotiation,
    framer: Framer,
    input: BytesMut,
    output: BytesMut,
    needs_flush: bool,
    deadline: Instant,
    read_chunk: usize,
    started: Option<FrameHeader>,
}

impl<L: Link> Handshaking<L> {
    fn start(
        link: L,
        config: Local<HandshakeConfig>,
        deadline: Instant,
        hub: &Hub,
    ) -> Result<Self, Error> {
        let limits = &hub.config().limits;
        let mut output = BytesMut::new();
        let negotiation = Negotiation::start(config, &mut output)?;
        Ok(Self {
            link,
            negotiation,
            framer: Framer::new(limits.frame),
            input: BytesMut::new(),
            output,
            needs_flush: false,
            deadline,
            read_chunk: limits.read_chunk,
            started: None,
        })
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut impl Timer,
        clock: &impl Clock,
    ) -> Poll<Result<(Agreed, bool), Error>> {
        if clock.now() >= self.deadline {
            let error = Error::new(ErrorKind::Timeout(TimeoutKind::Handshake));
            return Poll::Ready(Err(error));
        }
        for _ in 0..HANDSHAKE_READS_PER_POLL {
            if let Some(ready) = self.poll_frames()? {
                return Poll::Ready(Ok((ready, false)));
            }
            assert_unlocked();
            self.needs_flush |= !self.output.is_empty();
            write_some(&mut self.link, cx, &mut self.output, &mut 0)?;
            if self.needs_flush && self.output.is_empty() {
                self.needs_flush = self.link.poll_flush(cx)?.is_pending();
            }
            if self.output.is_empty() && self.negotiation.is_early() {
                return Poll::Ready(Ok((*self.negotiation.agreed(), true)));
            }
            make_room(
                &self.framer,
                &mut self.input,
                self.read_chunk.min(HANDSHAKE_CHUNK),
            );
            match self.link.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(LinkError::CLOSED_BY_PEER.into())),
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {}
            }
            while timer.poll_fired(cx).is_ready() {
                if clock.now() >= self.deadline {
                    let error = Error::new(ErrorKind::Timeout(TimeoutKind::Handshake));
                    return Poll::Ready(Err(error));
                }
                timer.arm(Some(self.deadline));
            }
            return Poll::Pending;
        }
        // A peer that sends without end must not keep the task, nor outlast the deadline.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Handles the frames that are there.
    fn poll_frames(&mut self) -> Result<Option<Agreed>, Error> {
        while let Some(cut) = self
            .framer
            .poll_cut(&mut self.input)
            .map_err(broken_stream)?
        {
            match cut {
                Cut::Start(header) => self.started = Some(header),
                Cut::Piece(_) => return Err(a_piece()),
                Cut::TooLong(_) => return Err(PeerMisbehaved::MalformedBody.into()),
                Cut::End(body) => {
                    let Some(header) = self.started.take() else {
                        return Err(Error::bug("the end of a frame without its start"));
                    };
                    if self.negotiation.advance(&header, &body, &mut self.output)? {
                        return Ok(Some(*self.negotiation.agreed()));
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cold]
fn a_piece() -> Error {
    Error::bug("a part of a body that is wanted whole")
}

/// How an open connection ended.
enum Ended {
    Broken(Error),
    /// It was told to end and has nothing left to do.
    Drained,
}

/// A link that takes requests.
struct Open<L> {
    link: L,
    cell: Shared<Cell>,
    framer: Framer,
    input: BytesMut,
    /// Bytes being written; callers fill the other buffer.
    output: BytesMut,
    /// Bytes the link took that the connection does not know of yet.
    written: usize,
    needs_flush: bool,
    /// Output was seen by an earlier poll: it may be written now.
    may_write: bool,
    started: Option<FrameHeader>,
    frames: Vec<(FrameHeader, Body)>,
    wakers: Wakers,
    /// The waker of the last poll: the timer and the link have it.
    waker: Option<Waker>,
    /// When the timer fires; far future when it is not armed.
    armed: Instant,
    /// There while the handshake is not over yet.
    early: Option<Box<Early>>,
}

/// The rest of a handshake beside which requests are taken already.
struct Early {
    negotiation: Negotiation,
    deadline: Instant,
}

impl<L: Link> Open<L> {
    fn early(handshaking: Handshaking<L>, cell: Shared<Cell>) -> Self {
        let deadline = handshaking.deadline;
        let (mut open, negotiation) = Self::new(handshaking, cell);
        open.early = Some(Box::new(Early {
            negotiation,
            deadline,
        }));
        open
    }

    fn new(handshaking: Handshaking<L>, cell: Shared<Cell>) -> (Self, Negotiation) {
        let open = Self {
            link: handshaking.link,
            cell,
            framer: handshaking.framer,
            input: handshaking.input,
            output: BytesMut::new(),
            written: 0,
            needs_flush: handshaking.needs_flush,
            may_write: false,
            started: None,
            frames: Vec::new(),
            wakers: Wakers::new(),
            waker: None,
            // Left to fire: armed for later instead, it might keep this time and not be asked.
            armed: handshaking.deadline,
            early: None,
        };
        (open, handshaking.negotiation)
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut impl Timer,
        clock: &impl Clock,
        hub: &Hub,
    ) -> Poll<Ended> {
        match self.try_poll(cx, timer, clock, hub) {
            Ok(Some(ended)) => Poll::Ready(ended),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Ended::Broken(error)),
        }
    }

    fn try_poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut impl Timer,
        clock: &impl Clock,
        hub: &Hub,
    ) -> Result<Option<Ended>, Error> {
        let now = clock.now();
        if self.handshake_ends() <= now {
            return Err(Error::new(ErrorKind::Timeout(TimeoutKind::Handshake)));
        }
        let same_waker = self
            .waker
            .as_ref()
            .is_some_and(|held| held.will_wake(cx.waker()));
        if !same_waker {
            self.waker = Some(cx.waker().clone());
        }
        if now >= self.armed {
            self.armed = Instant::FAR_FUTURE;
            self.handle_timeout(now)?;
        } else if !same_waker && self.armed < Instant::FAR_FUTURE && timer.poll_fired(cx).is_ready()
        {
            // The timer had to know the new waker, but has fired since: it is armed again below.
            self.armed = Instant::FAR_FUTURE;
        }
        self.poll_write(cx, hub)?;
        let was_early = self.early.is_some();
        let budget_left = self.poll_read(cx, now, hub)?;
        if was_early && !self.output.is_empty() {
            // Perhaps the handshake's next word.
            self.poll_write(cx, hub)?;
        }
        let again = match self.settle()? {
            Settled::Ended => return Ok(Some(Ended::Drained)),
            Settled::OutputWaits => {
                self.may_write = true;
                true
            }
            Settled::Idle { wakes_at } => {
                self.arm(cx, timer, wakes_at.min(self.handshake_ends()), clock)?;
                false
            }
        };
        if again || !budget_left {
            assert_unlocked();
            cx.waker().wake_by_ref();
        }
        Ok(None)
    }

    /// When a handshake that is still under way has taken too long.
    fn handshake_ends(&self) -> Instant {
        let early = self.early.as_ref();
        early.map_or(Instant::FAR_FUTURE, |early| early.deadline)
    }

    /// Takes the frames of the handshake out of those that were cut. If a request is refused beside
    /// it, or it takes longer than one answer, the next ones wait for its end.
    fn go_on_with_handshake(&mut self) -> Result<(), Error> {
        let mut place = 0;
        while let (Some(early), Some((header, _))) = (&mut self.early, self.frames.get(place)) {
            if header.stream != HANDSHAKE_STREAM {
                if header.opcode == Opcode::Error {
                    self.cell.hold()?;
                }
                place = place.saturating_add(1);
                continue;
            }
            let (header, body) = self.frames.remove(place);
            // Its bytes are written behind what is being written. That they count as a request's
            // makes one that is lost look written a little too soon, which is the safe side.
            let done = early
                .negotiation
                .advance(&header, body.as_slice(), &mut self.output)?;
            match done {
                true => {
                    self.early = None;
                    self.cell.release()?;
                }
                false => self.cell.hold()?,
            }
        }
        Ok(())
    }

    /// Decides whether the task may sleep.
    fn settle(&mut self) -> Result<Settled, Error> {
        let writing = !self.output.is_empty();
        let written = core::mem::take(&mut self.written);
        self.cell.settle(self.waker.clone(), written, writing)
    }

    fn arm(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut impl Timer,
        wakes_at: Instant,
        clock: &impl Clock,
    ) -> Result<(), Error> {
        if wakes_at >= self.armed {
            return Ok(());
        }
        self.armed = wakes_at;
        timer.arm(Some(wakes_at));
        while timer.poll_fired(cx).is_ready() {
            let now = clock.now();
            if now < self.armed {
                timer.arm(Some(self.armed));
                continue;
            }
            // Due at once: come back instead of recursing.
            cx.waker().wake_by_ref();
            break;
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        let wakers = &mut self.wakers;
        let outcome = self.cell.with(|locked| {
            locked
                .connection
                .handle_timeout(now, |caller| wakers.extend(caller))
        });
        self.wakers.wake_all();
        outcome?
    }

    /// Writes what is there, taking the callers' buffer when the own one is empty.
    fn poll_write(&mut self, cx: &mut Context<'_>, hub: &Hub) -> Result<(), Error> {
        loop {
            if self.output.is_empty() && !self.take_output(hub)? {
                break;
            }
            assert_unlocked();
            let before = self.written;
            write_some(&mut self.link, cx, &mut self.output, &mut self.written)?;
            self.needs_flush |= self.written > before;
            if !self.output.is_empty() {
                return Ok(());
            }
        }
        if self.needs_flush {
            self.needs_flush = self.link.poll_flush(cx)?.is_pending();
        }
        Ok(())
    }

    /// Swaps buffers if there is output, and it was deferred once already if it has to be.
    fn take_output(&mut self, hub: &Hub) -> Result<bool, Error> {
        if hub.config().write_deferral && !self.may_write {
            return Ok(false);
        }
        self.may_write = false;
        let (output, wakers) = (&mut self.output, &mut self.wakers);
        let written = core::mem::take(&mut self.written);
        self.cell.with(|locked| {
            locked.connection.handle_written(written);
            locked
                .connection
                .swap_output(output, |caller| wakers.extend(caller));
        })?;
        self.wakers.wake_all();
        Ok(!self.output.is_empty())
    }

    /// Reads and delivers until the link has no more or the budget is spent; `false` if spent.
    fn poll_read(&mut self, cx: &mut Context<'_>, now: Instant, hub: &Hub) -> Result<bool, Error> {
        let mut budget = FRAMES_PER_POLL;
        loop {
            let cut = self.cut_frames(budget, hub.config().limits.frame);
            // What came whole before a broken frame is delivered.
            self.deliver(now, hub)?;
            budget = budget.saturating_sub(cut?);
            if budget == 0 {
                return Ok(false);
            }
            assert_unlocked();
            make_room(
                &self.framer,
                &mut self.input,
                hub.config().limits.read_chunk,
            );
            match self.link.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) => return Err(LinkError::CLOSED_BY_PEER.into()),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => return Ok(true),
            }
        }
    }

    /// Cuts at most `max` frames of what was read into `self.frames`.
    fn cut_frames(&mut self, max: usize, limits: FrameLimits) -> Result<usize, Error> {
        let mut cut_frames = 0;
        while cut_frames < max {
            let Some(cut) = self.framer.poll_cut(&mut self.input).map_err(|error| {
                if let FramerError::TooLong(header) = &error {
                    self.fail_too_long(header);
                }
                broken_stream(error)
            })?
            else {
                break;
            };
            match cut {
                Cut::Start(header) => self.started = Some(header),
                Cut::Piece(_) => return Err(a_piece()),
                Cut::End(body) => {
                    let header = self
                        .started
                        .take()
                        .ok_or_else(|| Error::bug("a body without a header"))?;
                    if let Some((header, body)) = self.inflate(header, body, limits) {
                        self.frames.push((header, body));
                    }
                    cut_frames = cut_frames.saturating_add(1);
                }
                Cut::TooLong(header) => {
                    self.fail_too_long(&header);
                    cut_frames = cut_frames.saturating_add(1);
                }
            }
        }
        Ok(cut_frames)
    }

    /// The frame with its body as it was before it was compressed; none if that is too long or
    /// corrupt, and its request has been told: the next frame is found all the same.
    fn inflate(
        &mut self,
        mut header: FrameHeader,
        body: BytesMut,
        limits: FrameLimits,
    ) -> Option<(FrameHeader, Body)> {
        let compression = self.cell.agreed().compression;
        let compression = compression.filter(|_| header.flags.contains(Flags::COMPRESSION));
        let Some(compression) = compression else {
            return Some((header, Body::new(body)));
        };
        header.flags = header.flags.without(Flags::COMPRESSION);
        let error = match compression.inflate(&body, limits.frame_len_max) {
            Ok(body) => return Some((header, Body::new(body))),
            Err(Inflate::TooLong) => Error::new(ErrorKind::Limit(LimitField::FrameLen)),
            Err(Inflate::Corrupt) => PeerMisbehaved::BadCompression.into(),
        };
        self.fail_unreadable(&header, error);
        None
    }

    /// The request whose answer is of no use fails with a cause of its own.
    fn fail_unreadable(&mut self, header: &FrameHeader, error: Error) {
        let wakers = &mut self.wakers;
        let _ = self.cell.with(|locked| {
            let tell = |caller: super::cell::Caller| wakers.extend(caller);
            locked.connection.handle_unreadable(header, error, tell);
        });
        self.wakers.wake_all();
    }

    fn fail_too_long(&mut self, header: &FrameHeader) {
        self.fail_unreadable(header, Error::new(ErrorKind::Limit(LimitField::FrameLen)));
    }

    /// Hands all frames that were cut to their callers under one lock.
    fn deliver(&mut self, now: Instant, hub: &Hub) -> Result<(), Error> {
        if self.frames.is_empty() {
            return Ok(());
        }
        if self.early.is_some() {
            self.go_on_with_handshake()?;
        }
        let (frames, wakers) = (&mut self.frames, &mut self.wakers);
        let mut events = Vec::new();
        let outcome = self.cell.with(|locked| {
            for (header, body) in frames.drain(..) {
                let tell = |caller: super::cell::Caller| wakers.extend(caller);
                if let Received::Event(body) =
                    locked.connection.handle_frame(now, &header, body, tell)?
                {
                    events.push(body);
                }
            }
            Ok(())
        });
        self.wakers.wake_all();
        for body in events {
            hub.report(Report::Event(self.cell.id(), body));
        }
        outcome?
    }

    /// Fails whatever is under way.
    fn close(&self, error: &Error) {
        let is_refused = self.early.is_some()
            && matches!(
                error.kind(),
                ErrorKind::Server(_) | ErrorKind::PeerIncompatible(_)
            );
        self.cell.close(error, self.written, is_refused);
    }
}

/// Writes from the front of `output` until the link takes no more. Adds what it took to `written`
/// at once, since what was taken before an error may have reached the peer.
fn write_some(
    link: &mut impl Link,
    cx: &mut Context<'_>,
    output: &mut BytesMut,
    written: &mut usize,
) -> Result<(), Error> {
    while !output.is_empty() {
        match link.poll_write(cx, output) {
            Poll::Pending => break,
            Poll::Ready(Ok(0)) => return Err(LinkError::CLOSED_BY_PEER.into()),
            Poll::Ready(Ok(len)) => {
                let len = len.min(output.len());
                output.advance(len);
                *written = written.saturating_add(len);
            }
            Poll::Ready(Err(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes room for a read. A chunk is used up before the next one is taken; `reserve` takes the
/// old one again when none of its slices is left.
fn make_room(framer: &Framer, input: &mut BytesMut, chunk: usize) {
    let wanted = framer.wanted(input, chunk);
    let spare = input.capacity().saturating_sub(input.len());
    if spare < wanted.min(SPARE_MIN) || spare == 0 {
        input.reserve(wanted.max(chunk));
    }
}

fn broken_stream(error: FramerError) -> Error {
    match error {
        FramerError::Header(error) => {
            let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader);
            Error::with_text(kind, alloc::format!("{error}"))
        }
        FramerError::TooLong(header) => {
            let kind = ErrorKind::Limit(LimitField::FrameLen);
            Error::with_text(kind, alloc::format!("{} bytes declared", header.body_len))
        }
    }
}

/// A read chunk with less room than this is replaced.
const SPARE_MIN: usize = 4 << 10;

/// Reads of a handshake that one poll does; answers are few.
const HANDSHAKE_READS_PER_POLL: usize = 16;

/// Answers of a handshake are short.
const HANDSHAKE_CHUNK: usize = 4 << 10;

#[cfg(all(test, not(messina_loom)))]
mod tests;
