//! One request on one connection, as a future: submit at the first poll, take the answer at a
//! later one. Dropping it makes the request an orphan of its connection.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::BytesMut;

use super::cell::{Cell, Standby, Standing, Submitted};
use super::tally::Aim;
use crate::conn::extensions::Agreed;
use crate::conn::{Answer, RequestHead, SlotKey, Ticket};
use crate::error::{Applied, Error, ErrorKind, TimeoutKind};
use crate::routing::ShardIdx;
use crate::sync::Shared;
use crate::time::Instant;
use crate::wire::EncodeError;

/// Writes a request's body for a connection: what it agreed decides the layout. May be called
/// more than once, and runs under the connection's lock, so it only writes.
pub(crate) trait FrameBody {
    fn put(&self, agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError>;
}

/// A body that is encoded already.
impl FrameBody for alloc::vec::Vec<u8> {
    fn put(&self, _agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError> {
        sink.extend_from_slice(self);
        Ok(())
    }
}

/// What became of a request on one connection.
#[derive(Debug)]
pub(crate) enum Exchanged {
    /// The answer.
    Answer(Answer),
    /// The connection has no room, and its queue neither if the caller wanted to wait.
    Full,
    /// It failed.
    Failed(Error),
}

/// A request on one connection.
pub(crate) struct Exchange<B> {
    course: Course,
    body: B,
}

/// All of it but the body, which differs in type: the code is there once.
struct Course {
    cell: Shared<Cell>,
    head: RequestHead,
    give_up_at: Instant,
    aim: Aim,
    state: State,
    /// It was sent beside the handshake, so it may be refused as too early: then it is sent once
    /// more behind that.
    may_be_early: bool,
}

enum State {
    /// Not polled yet. `wait` joins the queue when the connection is full.
    New {
        wait: bool,
    },
    Queued(Ticket),
    Sent(SlotKey),
    Done,
}

impl<B: FrameBody> Exchange<B> {
    pub(crate) const fn new(
        cell: Shared<Cell>,
        head: RequestHead,
        give_up_at: Instant,
        wait: bool,
        body: B,
    ) -> Self {
        let course = Course {
            cell,
            head,
            give_up_at,
            aim: Aim::None,
            state: State::New { wait },
            may_be_early: false,
        };
        Self { course, body }
    }

    /// Counts it by whether the connection is on this shard.
    pub(crate) fn meant_for(mut self, shard: Option<ShardIdx>) -> Self {
        self.course.aim = match shard {
            None => Aim::None,
            shard if self.course.cell.agreed().shard() == shard => Aim::Reached,
            Some(_) => Aim::Missed,
        };
        self
    }
}

impl Course {
    fn submit(
        &self,
        cx: &mut Context<'_>,
        granted: Option<Ticket>,
        body: &dyn FrameBody,
    ) -> Result<Submitted, Error> {
        let cell = &self.cell;
        cell.submit(
            cx.waker().clone(),
            self.give_up_at,
            self.head,
            self.aim,
            granted,
            &mut |sink| body.put(cell.agreed(), sink),
        )
    }

    /// Whether it was refused as too early and waits for its second turn.
    fn comes_again(&mut self, cx: &Context<'_>) -> Result<bool, Error> {
        let State::Sent(key) = self.state else {
            return Ok(false);
        };
        let ticket = self.cell.wait_again(key, cx.waker(), self.give_up_at)?;
        if let Some(ticket) = ticket {
            self.may_be_early = false;
            self.state = State::Queued(ticket);
        }
        Ok(ticket.is_some())
    }

    fn poll(&mut self, cx: &mut Context<'_>, body: &dyn FrameBody) -> Poll<Exchanged> {
        match self.try_poll(cx, body) {
            Ok(poll) => poll,
            Err(error) => {
                // An error of the lock or of a closed connection leaves nothing to cancel.
                self.state = State::Done;
                Poll::Ready(Exchanged::Failed(error))
            }
        }
    }

    fn try_poll(
        &mut self,
        cx: &mut Context<'_>,
        body: &dyn FrameBody,
    ) -> Result<Poll<Exchanged>, Error> {
        if self.may_be_early && self.comes_again(cx)? {
            return Ok(Poll::Pending);
        }
        match self.state {
            State::New { wait } => match self.submit(cx, None, body)? {
                Submitted::Sent(key) => {
                    self.may_be_early = self.cell.is_early();
                    self.state = State::Sent(key);
                    Ok(Poll::Pending)
                }
                Submitted::Full if wait => {
                    match self.cell.wait(cx.waker().clone(), self.give_up_at) {
                        Ok(ticket) => {
                            self.state = State::Queued(ticket);
                            Ok(Poll::Pending)
                        }
                        Err(error) if error.kind() == ErrorKind::Busy => {
                            self.state = State::Done;
                            Ok(Poll::Ready(Exchanged::Full))
                        }
                        Err(error) => Err(error),
                    }
                }
                Submitted::Full => Ok(Poll::Ready(Exchanged::Full)),
            },
            State::Queued(ticket) => match self.cell.poll_turn(ticket, cx.waker())? {
                Standby::Waiting => Ok(Poll::Pending),
                Standby::Granted => match self.submit(cx, Some(ticket), body)? {
                    Submitted::Sent(key) => {
                        self.state = State::Sent(key);
                        Ok(Poll::Pending)
                    }
                    Submitted::Full => Err(Error::bug("a grant without a stream id")),
                },
                Standby::Expired => {
                    self.state = State::Done;
                    Err(timed_out(Applied::No))
                }
            },
            State::Sent(key) => match self.cell.poll_answer(key, cx.waker())? {
                Standing::Pending => Ok(Poll::Pending),
                Standing::Done(outcome) => {
                    self.state = State::Done;
                    outcome.map(|answer| Poll::Ready(Exchanged::Answer(answer)))
                }
                Standing::Expired => {
                    self.state = State::Done;
                    // The bytes may be on their way still, whoever holds them now.
                    Err(timed_out(Applied::Unknown))
                }
            },
            State::Done => Err(Error::bug("an exchange was polled after its end")),
        }
    }
}

impl<B: FrameBody + Unpin> Future for Exchange<B> {
    type Output = Exchanged;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Exchanged> {
        let exchange = self.get_mut();
        exchange.course.poll(cx, &exchange.body)
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        match self.state {
            State::Sent(key) => self.cell.cancel(key),
            State::Queued(ticket) => self.cell.leave(ticket),
            State::New { .. } | State::Done => {}
        }
    }
}

fn timed_out(applied: Applied) -> Error {
    Error::new(ErrorKind::Timeout(TimeoutKind::Request)).with_applied(applied)
}
