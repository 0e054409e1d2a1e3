//! One open connection as callers see it: the lock around its state, and who has to be woken.
//!
//! Costs of one request here: two short locks (submit, take the answer) and one share of the lock
//! that the connection task takes for each chunk it has read. Wakers are cloned, woken and dropped
//! outside the lock only.
//!
//! The connection task is woken by a submitter when it is idle, or when the new request's deadline
//! comes before its timer. While it is not idle it looks at the output by itself before it sleeps;
//! both sides decide under the same lock, so no submission is missed.

use core::fmt;
use core::num::NonZeroU16;
use core::task::Waker;

use bytes::BytesMut;

use super::tally::{Aim, ShardTally};
use super::transport::Clock;
use super::wakers::Wakers;
use crate::cluster::ConnectionId;
use crate::conn::extensions::Agreed;
use crate::conn::{
    Answer, Connection, ConnectionLimits, Outcome, Refused, RequestHead, SlotKey, Ticket, Turn,
};
use crate::error::Error;
use crate::sync::{Gauge, Mutex, Poisoned, Shared, assert_unlocked};
use crate::time::Instant;
use crate::wire::EncodeError;

/// What a caller leaves in its slot.
pub(crate) type Caller = Option<Waker>;

/// An open connection, shared between its task and its callers.
pub(crate) struct Cell {
    id: ConnectionId,
    agreed: Agreed,
    source_port: Option<NonZeroU16>,
    /// 1 while its handshake is under way.
    early: Gauge,
    clock: Shared<dyn Clock>,
    load: Load,
    locked: Mutex<Locked>,
}

/// Requests under way, on a cache line of its own: planners of all cores read it.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Load(Gauge);

/// What the lock protects.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) connection: Connection<Caller>,
    pub(super) task: TaskState,
    pub(super) tally: ShardTally,
}

/// What submitters need to know of the connection task.
#[derive(Debug)]
pub(super) struct TaskState {
    /// Taken by whoever wakes the task; the task puts a new one before it sleeps.
    pub(super) waker: Option<Waker>,
    /// The task sleeps and does not know of any output.
    pub(super) is_idle: bool,
    /// When its timer will wake it.
    pub(super) wakes_at: Instant,
    /// The connection is to end; `true` lets requests under way finish.
    pub(super) close: Option<bool>,
}

/// How a submission ended that was not refused for good.
pub(crate) enum Submitted {
    /// Under way.
    Sent(SlotKey),
    /// No stream id or no room now.
    Full,
}

/// How a request stands.
pub(crate) enum Standing {
    /// No answer yet; the waker is in its slot.
    Pending,
    /// Answered or failed.
    Done(Result<Answer, Error>),
    /// Given up at its deadline.
    Expired,
}

/// What the connection task does next.
#[derive(Debug)]
pub(super) enum Settled {
    /// It was told to end, and has nothing left to do if it was to drain.
    Ended,
    /// Callers have left output since it looked.
    OutputWaits,
    /// It sleeps; its timer must wake it then.
    Idle {
        /// When.
        wakes_at: Instant,
    },
}

/// How a waiter stands.
pub(crate) enum Standby {
    /// Not yet.
    Waiting,
    /// An id is reserved for the caller: submit with the ticket.
    Granted,
    /// Given up at its deadline.
    Expired,
}

impl Cell {
    pub(crate) fn new(
        id: ConnectionId,
        agreed: Agreed,
        source_port: Option<NonZeroU16>,
        limits: ConnectionLimits,
        clock: Shared<dyn Clock>,
    ) -> Self {
        let task = TaskState {
            waker: None,
            is_idle: false,
            wakes_at: Instant::FAR_FUTURE,
            close: None,
        };
        let mut connection = Connection::new(agreed.version, limits, clock.now());
        // Where frames travel in segments, those are compressed instead.
        let compression = agreed.compression;
        connection.set_compression(compression.filter(|_| !agreed.version.has_segments()));
        Self {
            id,
            agreed,
            source_port,
            early: Gauge::default(),
            clock,
            load: Load::default(),
            locked: Mutex::new(Locked {
                connection,
                task,
                tally: ShardTally::default(),
            }),
        }
    }

    /// Its handshake is still under way.
    pub(crate) fn early(self) -> Self {
        self.early.store(1);
        self
    }

    /// Whether a request that is sent now may be refused because the handshake is not over.
    pub(crate) fn is_early(&self) -> bool {
        self.early.load() != 0
    }

    /// No request is taken until the handshake is over; they may wait for that.
    pub(super) fn hold(&self) -> Result<(), Error> {
        self.with(|locked| locked.connection.hold())
    }

    /// The handshake is over.
    pub(super) fn release(&self) -> Result<(), Error> {
        self.early.store(0);
        let mut wakers = Wakers::new();
        self.with(|locked| locked.connection.release(|caller| wakers.extend(caller)))?;
        wakers.wake_all();
        Ok(())
    }

    pub(crate) const fn id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) const fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    pub(crate) const fn source_port(&self) -> Option<NonZeroU16> {
        self.source_port
    }

    /// Stream ids in use, as of the last change.
    pub(crate) fn in_flight(&self) -> u32 {
        self.load.0.load()
    }

    /// Stream ids that wait for late answers.
    pub(crate) fn orphans(&self) -> u16 {
        self.locked
            .with(|locked| locked.connection.orphans())
            .unwrap_or(0)
    }

    /// Its requests that were meant for a shard.
    pub(crate) fn tally(&self) -> ShardTally {
        let tally = self.locked.with(|locked| locked.tally);
        tally.unwrap_or_default()
    }

    /// Submits a request. `granted` takes the id reserved for that waiter.
    pub(crate) fn submit(
        &self,
        waker: Waker,
        give_up_at: Instant,
        head: RequestHead,
        aim: Aim,
        granted: Option<Ticket>,
        body: &mut dyn FnMut(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<Submitted, Error> {
        assert_unlocked();
        let mut wakers = Wakers::new();
        let outcome = self.with(|locked| {
            let connection = &mut locked.connection;
            let outcome = match granted {
                Some(ticket) => {
                    connection.submit_granted(ticket, Some(waker), give_up_at, head, body)
                }
                None => connection.submit(Some(waker), give_up_at, head, body),
            };
            match outcome {
                Ok(_) => {
                    locked.tally.count(aim);
                    wakers.extend(locked.task.take_waker(give_up_at));
                }
                Err(_) if granted.is_some() => connection.pass_on(|caller| wakers.extend(caller)),
                Err(_) => {}
            }
            outcome
        })?;
        wakers.wake_all();
        match outcome {
            Ok(key) => Ok(Submitted::Sent(key)),
            Err(Refused::Full(_)) => Ok(Submitted::Full),
            Err(Refused::Closed(_, error)) => Err(error),
            Err(Refused::Encode(_, error)) => Err(error.into()),
        }
    }

    /// Joins the queue for a stream id.
    pub(crate) fn wait(&self, waker: Waker, give_up_at: Instant) -> Result<Ticket, Error> {
        assert_unlocked();
        let mut wakers = Wakers::new();
        let joined = self.with(|locked| {
            let tell = |caller: Caller| wakers.extend(caller);
            let joined = locked.connection.wait(Some(waker), give_up_at, tell);
            if joined.is_ok() {
                wakers.extend(locked.task.take_waker_for_deadline(give_up_at));
            }
            joined
        })?;
        wakers.wake_all();
        joined.map_err(|(_waker, error)| error)
    }

    /// Joins the queue again, if the request was refused as too early; see
    /// [`Connection::wait_again`](crate::conn::Connection::wait_again).
    pub(crate) fn wait_again(
        &self,
        key: SlotKey,
        waker: &Waker,
        give_up_at: Instant,
    ) -> Result<Option<Ticket>, Error> {
        assert_unlocked();
        let (mut wakers, waker) = (Wakers::new(), waker.clone());
        let joined = self.with(|locked| {
            let tell = |caller: Caller| wakers.extend(caller);
            let connection = &mut locked.connection;
            let joined = connection.wait_again(key, Some(waker), give_up_at, tell);
            if joined.is_some() {
                wakers.extend(locked.task.take_waker_for_deadline(give_up_at));
            }
            joined
        });
        wakers.wake_all();
        joined
    }

    /// How it stands with a waiter; replaces its waker if it has changed.
    pub(crate) fn poll_turn(&self, ticket: Ticket, waker: &Waker) -> Result<Standby, Error> {
        let stale = self.with(|locked| {
            Ok::<_, Error>(match locked.connection.poll_turn(ticket)? {
                Turn::Waiting(Some(held)) if held.will_wake(waker) => Some(Standby::Waiting),
                Turn::Waiting(_) => None,
                Turn::Granted => Some(Standby::Granted),
                Turn::Expired => Some(Standby::Expired),
            })
        })??;
        if let Some(standby) = stale {
            return Ok(standby);
        }
        let mut fresh = Some(waker.clone());
        self.with(|locked| {
            Ok(match locked.connection.poll_turn(ticket)? {
                Turn::Waiting(held) => {
                    core::mem::swap(held, &mut fresh);
                    Standby::Waiting
                }
                Turn::Granted => Standby::Granted,
                Turn::Expired => Standby::Expired,
            })
        })?
    }

    /// A waiter gives up its place.
    pub(crate) fn leave(&self, ticket: Ticket) {
        assert_unlocked();
        let mut wakers = Wakers::new();
        let left = self.with(|locked| {
            let left = locked
                .connection
                .leave(ticket, |caller| wakers.extend(caller));
            wakers.extend(locked.waker_if_drained());
            left
        });
        wakers.wake_all();
        drop(left);
    }

    /// How it stands with a request; replaces its waker if it has changed.
    pub(crate) fn poll_answer(&self, key: SlotKey, waker: &Waker) -> Result<Standing, Error> {
        let mut wakers = Wakers::new();
        let first = self.with(|locked| {
            look(locked, key, &mut wakers, |held| {
                held.as_ref().is_some_and(|held| held.will_wake(waker))
            })
        });
        wakers.wake_all();
        if let Some(standing) = first? {
            return Ok(standing);
        }
        let mut fresh = Some(waker.clone());
        let second = self.with(|locked| {
            look(locked, key, &mut wakers, |held| {
                core::mem::swap(held, &mut fresh);
                true
            })
        });
        wakers.wake_all();
        Ok(second?.unwrap_or(Standing::Pending))
    }

    /// The caller gives its request up.
    pub(crate) fn cancel(&self, key: SlotKey) {
        assert_unlocked();
        let now = self.clock.now();
        let mut wakers = Wakers::new();
        let held = self.with(|locked| {
            let tell = |caller: Caller| wakers.extend(caller);
            let held = locked.connection.cancel(key, now, tell);
            let due = locked.connection.poll_timeout();
            wakers.extend(locked.task.take_waker_for_deadline(due));
            wakers.extend(locked.waker_if_drained());
            held
        });
        wakers.wake_all();
        drop(held);
    }

    /// The connection is to end.
    pub(crate) fn request_close(&self, drain: bool) {
        assert_unlocked();
        let task = self.with(|locked| {
            let already = locked.task.close.unwrap_or(true);
            locked.task.close = Some(drain && already);
            if drain {
                locked.connection.drain();
            }
            locked.task.waker.take()
        });
        if let Ok(Some(task)) = task {
            task.wake();
        }
    }

    /// The connection task decides whether it may sleep and leaves `waker` behind. The link took
    /// `written` bytes that the connection does not know of yet; `writing` tells that the task
    /// holds more, which the link will wake it for.
    pub(super) fn settle(
        &self,
        waker: Option<Waker>,
        written: usize,
        writing: bool,
    ) -> Result<Settled, Error> {
        let (settled, unused) = self.with(|locked| {
            let (connection, task) = (&mut locked.connection, &mut locked.task);
            connection.handle_written(written);
            match task.close {
                Some(false) => return (Settled::Ended, waker),
                Some(true) if !writing && connection.is_drained() => {
                    return (Settled::Ended, waker);
                }
                Some(true) | None => {}
            }
            let unused = core::mem::replace(&mut task.waker, waker);
            if !writing && connection.has_output() {
                task.is_idle = false;
                return (Settled::OutputWaits, unused);
            }
            task.is_idle = !writing;
            task.wakes_at = connection.poll_timeout();
            let wakes_at = task.wakes_at;
            (Settled::Idle { wakes_at }, unused)
        })?;
        drop(unused);
        Ok(settled)
    }

    /// The connection is over: whoever waits is told. `written` as for [`Cell::settle`]; with
    /// `is_refused` the node never took it.
    pub(super) fn close(&self, error: &Error, written: usize, is_refused: bool) {
        let mut wakers = Wakers::new();
        let _ = self.with(|locked| {
            locked.connection.handle_written(written);
            let tell = |caller: Caller| wakers.extend(caller);
            match is_refused {
                true => locked.connection.refuse(error, tell),
                false => locked.connection.close(error, tell),
            }
        });
        wakers.wake_all();
    }

    /// Runs `action` under the lock and publishes the load afterwards.
    pub(super) fn with<R>(&self, action: impl FnOnce(&mut Locked) -> R) -> Result<R, Error> {
        self.locked
            .with(|locked| {
                let result = action(locked);
                self.load.0.store(u32::from(locked.connection.in_use()));
                result
            })
            .map_err(|Poisoned| Error::bug("a connection's lock is poisoned"))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Locked {
    /// The task's waker if a drain has come to its end.
    fn waker_if_drained(&mut self) -> Option<Waker> {
        if !self.connection.is_drained() {
            return None;
        }
        self.task.waker.take()
    }
}

impl TaskState {
    /// The task's waker if it must hear of new output.
    fn take_waker(&mut self, give_up_at: Instant) -> Option<Waker> {
        if !self.is_idle {
            return self.take_waker_for_deadline(give_up_at);
        }
        self.is_idle = false;
        self.waker.take()
    }

    /// The task's waker if its timer would come too late.
    fn take_waker_for_deadline(&mut self, give_up_at: Instant) -> Option<Waker> {
        if give_up_at >= self.wakes_at {
            return None;
        }
        self.is_idle = false;
        self.waker.take()
    }
}

/// One look at a slot. `keep` sees the waker of a pending request and says whether it may stay;
/// `None` if it may not.
fn look(
    locked: &mut Locked,
    key: SlotKey,
    wakers: &mut Wakers,
    keep: impl FnOnce(&mut Caller) -> bool,
) -> Option<Standing> {
    match locked
        .connection
        .poll_answer(key, |caller| wakers.extend(caller))
    {
        Outcome::Pending(held) => keep(held).then_some(Standing::Pending),
        Outcome::Done(outcome) => {
            wakers.extend(locked.waker_if_drained());
            Some(Standing::Done(outcome))
        }
        Outcome::Expired => Some(Standing::Expired),
    }
}
