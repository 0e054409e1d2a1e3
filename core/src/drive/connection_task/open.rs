//! A connection's link that takes requests.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use bytes::BytesMut;

use super::buffers::{Intake, a_piece, broken_stream, write_some};
use super::handshaking::Handshaking;
use crate::conn::framer::{Cut, FrameLimits, FramerError};
use crate::conn::negotiate::{HANDSHAKE_STREAM, Negotiation};
use crate::conn::{Body, Received};
use crate::drive::cell::{Caller, Cell, Settled};
use crate::drive::hub::Hub;
use crate::drive::inbox::Report;
use crate::drive::transport::{Clock, Link, Timer};
use crate::drive::wakers::Wakers;
use crate::error::{Error, ErrorKind, LimitField, LinkError, PeerMisbehaved, TimeoutKind};
use crate::sync::{Shared, assert_unlocked};
use crate::time::Instant;
use crate::wire::{Flags, FrameHeader, Inflate, Opcode};

/// How an open connection ended.
pub(super) enum Ended {
    Broken(Error),
    /// It was told to end and has nothing left to do.
    Drained,
}

/// A link that takes requests.
pub(super) struct Open<L> {
    pub(super) link: L,
    pub(super) cell: Shared<Cell>,
    intake: Intake,
    /// Bytes being written; callers fill the other buffer.
    output: BytesMut,
    /// Bytes of the frames in the segment that is being written, none of which the link took yet.
    in_segment: usize,
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
    pub(super) fn early(handshaking: Handshaking<L>, cell: Shared<Cell>) -> Self {
        let deadline = handshaking.deadline;
        let (mut open, negotiation) = Self::new(handshaking, cell);
        open.early = Some(Box::new(Early {
            negotiation,
            deadline,
        }));
        open
    }

    pub(super) fn new(handshaking: Handshaking<L>, cell: Shared<Cell>) -> (Self, Negotiation) {
        let open = Self {
            link: handshaking.link,
            cell,
            intake: handshaking.intake,
            output: BytesMut::new(),
            in_segment: 0,
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

    pub(super) fn poll(
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
            let mut taken = 0;
            let outcome = write_some(&mut self.link, cx, &mut self.output, &mut taken);
            self.count_written(taken);
            outcome?;
            self.needs_flush |= taken > 0;
            if !self.output.is_empty() {
                return Ok(());
            }
        }
        if self.needs_flush {
            self.needs_flush = self.link.poll_flush(cx)?.is_pending();
        }
        Ok(())
    }

    /// The link took so many bytes. Of a segment whose first byte it took all frames count: too soon
    /// rather than too late.
    #[inline(always)]
    fn count_written(&mut self, taken: usize) {
        let of_frames = match self.intake.segments {
            None => taken,
            Some(_) if taken > 0 => core::mem::take(&mut self.in_segment),
            Some(_) => 0,
        };
        self.written = self.written.saturating_add(of_frames);
    }

    /// Swaps buffers if there is output, and it was deferred once already if it has to be.
    fn take_output(&mut self, hub: &Hub) -> Result<bool, Error> {
        if self.put_segment() {
            return Ok(true);
        }
        if hub.config().write_deferral && !self.may_write {
            return Ok(false);
        }
        self.may_write = false;
        let output = match &mut self.intake.segments {
            None => &mut self.output,
            Some(segments) => segments.queue(),
        };
        let wakers = &mut self.wakers;
        let written = core::mem::take(&mut self.written);
        self.cell.with(|locked| {
            locked.connection.handle_written(written);
            locked
                .connection
                .swap_output(output, |caller| wakers.extend(caller));
        })?;
        self.wakers.wake_all();
        Ok(self.put_segment() || !self.output.is_empty())
    }

    /// Puts frames that were taken already into the next segment, if they travel so.
    #[inline(always)]
    fn put_segment(&mut self) -> bool {
        self.intake.segments.is_some() && self.put_next_segment()
    }

    #[inline(never)]
    fn put_next_segment(&mut self) -> bool {
        let Some(segments) = &mut self.intake.segments else {
            return false;
        };
        self.in_segment = segments.put_next(&mut self.output);
        self.in_segment > 0
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
            self.intake.make_room(hub.config().limits.read_chunk);
            match self.link.poll_read(cx, &mut self.intake.bytes) {
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
            let Some(cut) = self.intake.poll_cut().map_err(|error| {
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
        // The flag means nothing where segments are compressed.
        let compression = compression.filter(|_| {
            header.flags.contains(Flags::COMPRESSION) && self.intake.segments.is_none()
        });
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
            let tell = |caller: Caller| wakers.extend(caller);
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
                let tell = |caller: Caller| wakers.extend(caller);
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
    pub(super) fn close(&self, error: &Error) {
        let is_refused = self.early.is_some()
            && matches!(
                error.kind(),
                ErrorKind::Server(_) | ErrorKind::PeerIncompatible(_)
            );
        self.cell.close(error, self.written, is_refused);
    }
}

/// Frames that one poll handles before the task lets others run.
pub(super) const FRAMES_PER_POLL: usize = 128;
