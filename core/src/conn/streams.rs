//! Stream ids of one connection: a slab of slots whose index is the stream id.
//!
//! Allocation and release are O(1), last in first out, without hashing. A slot carries a
//! generation, so a key of a request that is over never reaches the request that follows on the
//! same id. A request that its caller gave up leaves an *orphan*: the id stays reserved until the
//! late answer comes, so that it can never complete another request.
//!
//! Stream 0 is never given out: nodes report there what concerns the whole connection.
//!
//! Deadlines need no queue of their own: the slab keeps a lower bound of all of them and is
//! scanned when that bound has come, which happens at most once in the shortest timeout in use.

use alloc::vec::Vec;

use crate::error::Error;
use crate::time::Instant;

use super::answer::Answer;

/// Names one request of a connection, for as long as its slot belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotKey {
    index: u16,
    generation: u32,
}

impl SlotKey {
    /// The stream id on the wire.
    pub const fn stream_id(self) -> u16 {
        self.index
    }
}

/// What an answer from the wire met.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery<S> {
    /// Its caller, who must be told.
    Caller(S),
    /// An orphan: the id is free again and the answer was dropped.
    Orphan,
    /// Nobody: the id was not in use.
    Nobody,
}

/// What a caller finds in its slot.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a, S> {
    /// No answer yet; the caller's own part of the slot.
    Pending(&'a mut S),
    /// The outcome; the slot is free now.
    Done(Result<Answer, Error>),
    /// The request was given up at its deadline; its id is an orphan now.
    Expired,
}

#[derive(Debug)]
struct Slot<S> {
    generation: u32,
    state: State<S>,
}

#[derive(Debug)]
enum State<S> {
    Free {
        next: Option<u16>,
    },
    Reserved,
    /// `offset` is where the request's first byte stands in the connection's output stream.
    Waiting {
        caller: S,
        offset: u64,
        give_up_at: Instant,
    },
    Done(Result<Answer, Error>),
    Orphan {
        since: Instant,
    },
}

impl<S> Slot<S> {
    /// Its id waits for the late answer; the key must not find that again.
    fn give_up(&mut self, now: Instant) -> State<S> {
        self.generation = self.generation.wrapping_add(1);
        core::mem::replace(&mut self.state, State::Orphan { since: now })
    }
}

/// The slab.
#[derive(Debug)]
pub struct StreamIds<S> {
    slots: Vec<Slot<S>>,
    free: Option<u16>,
    max: u16,
    in_use: u16,
    orphans: u16,
    earliest: Instant,
}

impl<S> StreamIds<S> {
    /// At most `max` requests at once; the slab grows as they are used.
    pub fn new(max: u16) -> Self {
        Self {
            slots: Vec::new(),
            free: None,
            max: max.clamp(1, STREAM_IDS_MAX),
            in_use: 0,
            orphans: 0,
            earliest: Instant::FAR_FUTURE,
        }
    }

    /// Reserves an id for a request whose bytes begin at `offset` of the output. `None` when all
    /// are in use.
    pub fn allocate(&mut self, caller: S, offset: u64, give_up_at: Instant) -> Option<SlotKey> {
        let state = State::Waiting {
            caller,
            offset,
            give_up_at,
        };
        let key = match self.free {
            Some(index) => {
                let slot = self.slots.get_mut(usize::from(index))?;
                let State::Free { next } = slot.state else {
                    return None;
                };
                self.free = next;
                slot.state = state;
                SlotKey {
                    index,
                    generation: slot.generation,
                }
            }
            None => {
                if self.slots.is_empty() {
                    self.slots.push(Slot {
                        generation: 0,
                        state: State::Reserved,
                    });
                }
                let index = u16::try_from(self.slots.len())
                    .ok()
                    .filter(|&index| index <= self.max)?;
                self.slots.push(Slot {
                    generation: 0,
                    state,
                });
                SlotKey {
                    index,
                    generation: 0,
                }
            }
        };
        self.in_use = self.in_use.saturating_add(1);
        self.earliest = self.earliest.min(give_up_at);
        Some(key)
    }

    /// What is kept for the request that waits on a stream.
    pub fn waiting(&self, stream_id: u16) -> Option<&S> {
        match &self.slots.get(usize::from(stream_id))?.state {
            State::Waiting { caller, .. } => Some(caller),
            _ => None,
        }
    }

    /// Delivers an answer from the wire.
    pub fn answer(&mut self, stream_id: u16, outcome: Result<Answer, Error>) -> Delivery<S> {
        let Some(slot) = self.slots.get_mut(usize::from(stream_id)) else {
            return Delivery::Nobody;
        };
        match core::mem::replace(&mut slot.state, State::Done(outcome)) {
            State::Waiting { caller, .. } => Delivery::Caller(caller),
            State::Orphan { .. } => {
                self.orphans = self.orphans.saturating_sub(1);
                self.release(stream_id);
                Delivery::Orphan
            }
            other @ (State::Free { .. } | State::Reserved | State::Done(_)) => {
                slot.state = other;
                Delivery::Nobody
            }
        }
    }

    /// When the request on this id is given up, if one waits there.
    pub fn give_up_at(&self, stream_id: u16) -> Option<Instant> {
        match self.slots.get(usize::from(stream_id))?.state {
            State::Waiting { give_up_at, .. } => Some(give_up_at),
            _ => None,
        }
    }

    /// The answer that the key's caller has not taken yet.
    pub fn answered(&self, key: SlotKey) -> Option<&Answer> {
        let slot = self.slots.get(usize::from(key.index))?;
        match &slot.state {
            State::Done(Ok(answer)) if slot.generation == key.generation => Some(answer),
            _ => None,
        }
    }

    /// Whether an answer of this kind has not been taken yet. Looks at all slots.
    pub fn any_answered(&self, is_meant: impl Fn(&Answer) -> bool) -> bool {
        self.slots.iter().any(|slot| match &slot.state {
            State::Done(Ok(answer)) => is_meant(answer),
            _ => false,
        })
    }

    /// Whether the key's request still waits for its answer.
    pub fn is_pending(&self, key: SlotKey) -> bool {
        self.slots.get(usize::from(key.index)).is_some_and(|slot| {
            slot.generation == key.generation && matches!(slot.state, State::Waiting { .. })
        })
    }

    /// Looks for the outcome and takes it if it is there.
    pub fn poll(&mut self, key: SlotKey) -> Progress<'_, S> {
        let Some(slot) = self.slots.get(usize::from(key.index)) else {
            return Progress::Expired;
        };
        if slot.generation != key.generation {
            return Progress::Expired;
        }
        if matches!(slot.state, State::Done(_)) {
            return match self.release(key.index) {
                Some(State::Done(outcome)) => Progress::Done(outcome),
                _ => Progress::Expired,
            };
        }
        match self
            .slots
            .get_mut(usize::from(key.index))
            .map(|slot| &mut slot.state)
        {
            Some(State::Waiting { caller, .. }) => Progress::Pending(caller),
            _ => Progress::Expired,
        }
    }

    /// The caller does not want the outcome any more. Gives back its part of the slot, to be
    /// dropped outside any lock, and the answer if there was one.
    pub fn cancel(&mut self, key: SlotKey, now: Instant) -> (Option<S>, Option<Answer>) {
        let Some(slot) = self.slots.get_mut(usize::from(key.index)) else {
            return (None, None);
        };
        if slot.generation != key.generation {
            return (None, None);
        }
        match slot.state {
            State::Waiting { .. } => {
                let state = slot.give_up(now);
                self.orphans = self.orphans.saturating_add(1);
                match state {
                    State::Waiting { caller, .. } => (Some(caller), None),
                    _ => (None, None),
                }
            }
            State::Done(_) => match self.release(key.index) {
                Some(State::Done(outcome)) => (None, outcome.ok()),
                _ => (None, None),
            },
            State::Free { .. } | State::Reserved | State::Orphan { .. } => (None, None),
        }
    }

    /// The same where nothing is to be given back.
    pub fn forget(&mut self, key: SlotKey, now: Instant) {
        let Some(slot) = self.slots.get_mut(usize::from(key.index)) else {
            return;
        };
        if slot.generation != key.generation {
            return;
        }
        match slot.state {
            State::Waiting { .. } => {
                slot.give_up(now);
                self.orphans = self.orphans.saturating_add(1);
            }
            State::Done(_) => {
                self.release(key.index);
            }
            State::Free { .. } | State::Reserved | State::Orphan { .. } => {}
        }
    }

    /// Gives up every request whose deadline has come: its id becomes an orphan and its caller is
    /// passed to `expired`, to be told.
    pub fn expire(&mut self, now: Instant, mut expired: impl FnMut(S)) {
        if now < self.earliest {
            return;
        }
        let mut earliest = Instant::FAR_FUTURE;
        for slot in &mut self.slots {
            let State::Waiting { give_up_at, .. } = slot.state else {
                continue;
            };
            if give_up_at > now {
                earliest = earliest.min(give_up_at);
                continue;
            }
            let state = slot.give_up(now);
            self.orphans = self.orphans.saturating_add(1);
            if let State::Waiting { caller, .. } = state {
                expired(caller);
            }
        }
        self.earliest = earliest;
    }

    /// The connection is over: every waiting request fails. `written` is how far the output had
    /// been handed to the link; `fail` makes the error for a request that was, or was not, partly
    /// written. Callers to be told are passed to `each`.
    pub fn fail_all(
        &mut self,
        written: u64,
        mut fail: impl FnMut(bool) -> Error,
        mut each: impl FnMut(S),
    ) {
        for slot in &mut self.slots {
            let State::Waiting { offset, .. } = slot.state else {
                continue;
            };
            let outcome = Err(fail(offset < written));
            if let State::Waiting { caller, .. } =
                core::mem::replace(&mut slot.state, State::Done(outcome))
            {
                each(caller);
            }
        }
        self.earliest = Instant::FAR_FUTURE;
    }

    /// A lower bound of all deadlines.
    pub const fn earliest(&self) -> Instant {
        self.earliest
    }

    /// Whether a request waits for its answer. Looks at all slots.
    pub fn any_pending(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| matches!(slot.state, State::Waiting { .. }))
    }

    /// Ids that cannot be given out: waiting, done but not taken, and orphans.
    pub const fn in_use(&self) -> u16 {
        self.in_use
    }

    /// Ids that wait for the late answer of a request given up.
    pub const fn orphans(&self) -> u16 {
        self.orphans
    }

    /// Ids that could be given out now.
    pub const fn available(&self) -> u16 {
        self.max.saturating_sub(self.in_use)
    }

    /// Orphans that have waited since before `limit`.
    pub fn orphans_older_than(&self, limit: Instant) -> usize {
        self.slots
            .iter()
            .filter(|slot| matches!(slot.state, State::Orphan { since } if since < limit))
            .count()
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn release(&mut self, index: u16) -> Option<State<S>> {
        let slot = self.slots.get_mut(usize::from(index))?;
        let state = core::mem::replace(&mut slot.state, State::Free { next: self.free });
        slot.generation = slot.generation.wrapping_add(1);
        self.free = Some(index);
        self.in_use = self.in_use.saturating_sub(1);
        Some(state)
    }
}

/// Stream ids are the non-negative half of 16 bits; 0 is reserved.
const STREAM_IDS_MAX: u16 = i16::MAX as u16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::answer::Body;
    use crate::error::{ErrorKind, TimeoutKind};
    use crate::wire::{Flags, Opcode};

    const NEVER: Instant = Instant::FAR_FUTURE;

    fn void() -> Result<Answer, Error> {
        Ok(Answer {
            opcode: Opcode::Result,
            flags: Flags::NONE,
            body: Body::from_slice(&[0, 0, 0, 1]),
        })
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn ids_are_reused_last_in_first_out_and_never_beyond_the_maximum() {
        let mut ids = StreamIds::new(3);
        let keys: Vec<_> = (0..3).filter_map(|n| ids.allocate(n, 0, NEVER)).collect();
        assert_eq!(
            keys.iter().map(|key| key.stream_id()).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert_eq!(ids.allocate(9, 0, NEVER), None);
        for id in [1, 3] {
            assert_eq!(ids.answer(id, void()), Delivery::Caller(id - 1));
            assert!(matches!(
                ids.poll(keys[usize::from(id) - 1]),
                Progress::Done(Ok(_))
            ));
        }
        assert_eq!(ids.allocate(4, 0, NEVER).map(SlotKey::stream_id), Some(3));
        assert_eq!(ids.allocate(5, 0, NEVER).map(SlotKey::stream_id), Some(1));
        assert_eq!((ids.in_use(), ids.available()), (3, 0));
    }

    #[test]
    fn an_answer_reaches_only_the_request_it_belongs_to() {
        let mut ids = StreamIds::new(8);
        let first = ids.allocate('a', 0, NEVER).unwrap();
        assert_eq!(ids.cancel(first, at(1)), (Some('a'), None));
        // The id stays reserved: the next request gets another one.
        let second = ids.allocate('b', 0, NEVER).unwrap();
        assert_ne!(first.stream_id(), second.stream_id());
        assert_eq!(ids.answer(first.stream_id(), void()), Delivery::Orphan);
        assert!(matches!(ids.poll(first), Progress::Expired));
        assert!(matches!(ids.poll(second), Progress::Pending('b')));
        // Now it is free, and the old key is still of no use.
        let third = ids.allocate('c', 0, NEVER).unwrap();
        assert_eq!(first.stream_id(), third.stream_id());
        assert!(matches!(ids.poll(first), Progress::Expired));
        assert_eq!(ids.cancel(first, at(2)), (None, None));
        assert!(matches!(ids.poll(third), Progress::Pending('c')));
    }

    #[test]
    fn answers_for_nobody_change_nothing() {
        let mut ids = StreamIds::new(4);
        assert_eq!(ids.answer(0, void()), Delivery::Nobody);
        assert_eq!(ids.answer(1, void()), Delivery::Nobody);
        let key = ids.allocate((), 0, NEVER).unwrap();
        assert_eq!(ids.answer(0x7fff, void()), Delivery::Nobody);
        assert_eq!(ids.answer(1, void()), Delivery::Caller(()));
        assert_eq!(
            ids.answer(1, void()),
            Delivery::Nobody,
            "a doubled answer is dropped"
        );
        assert!(matches!(ids.poll(key), Progress::Done(Ok(_))));
        assert_eq!(ids.answer(1, void()), Delivery::Nobody);
        assert_eq!(ids.in_use(), 0);
    }

    #[test]
    fn deadlines_expire_in_any_order_and_leave_orphans() {
        let mut ids = StreamIds::new(8);
        for (name, due) in [('a', 30), ('b', 10), ('c', 20)] {
            ids.allocate(name, 0, at(due)).unwrap();
        }
        assert_eq!(ids.earliest(), at(10));
        let mut gone = Vec::new();
        ids.expire(at(9), |name| gone.push(name));
        assert_eq!(gone, []);
        ids.expire(at(20), |name| gone.push(name));
        assert_eq!(gone, ['b', 'c']);
        assert_eq!(
            (ids.earliest(), ids.orphans(), ids.in_use()),
            (at(30), 2, 3)
        );
        assert_eq!(ids.orphans_older_than(at(21)), 2);
        assert_eq!(ids.orphans_older_than(at(20)), 0);
    }

    #[test]
    fn a_lost_connection_tells_who_may_have_been_sent() {
        let mut ids = StreamIds::new(8);
        let sent = ids.allocate('s', 0, NEVER).unwrap();
        let unsent = ids.allocate('u', 50, NEVER).unwrap();
        let mut told = Vec::new();
        let error = |partly: bool| {
            Error::new(if partly {
                ErrorKind::Busy
            } else {
                ErrorKind::Timeout(TimeoutKind::Close)
            })
        };
        ids.fail_all(50, error, |name| told.push(name));
        assert_eq!(told, ['s', 'u']);
        assert!(matches!(ids.poll(sent), Progress::Done(Err(e)) if e.kind() == ErrorKind::Busy));
        assert!(matches!(ids.poll(unsent), Progress::Done(Err(e)) if e.kind() != ErrorKind::Busy));
        assert_eq!(ids.in_use(), 0);
    }
}
