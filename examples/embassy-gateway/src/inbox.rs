//! The store in RAM: a ring of fixed size that interrupts may write to.
//!
//! Nothing here waits or allocates; the critical sections copy one reading at most. What is in the
//! inbox is lost with the power, so it is emptied into flash at once, and holds only what comes while
//! the flash is busy erasing.

use core::cell::RefCell;
use core::fmt;
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::blocking_mutex::{Mutex, raw::CriticalSectionRawMutex};
use embassy_sync::waitqueue::AtomicWaker;
use messina_core::time::{Instant, UnixMicros};

use crate::clock::{Dating, Stamp, Timekeeper};
use crate::record::{Payload, is_through};

/// Who goes when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropPolicy {
    /// The oldest reading: what is happening now matters.
    Oldest,
    /// The one that comes: how it began matters.
    Newest,
}

/// A reading was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no room, and the policy keeps what is there.
    Full,
    /// The payload is longer than [`PAYLOAD_MAX`](crate::PAYLOAD_MAX).
    TooLong,
}

/// What an inbox has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxCounters {
    /// Readings taken.
    pub taken: u32,
    /// Readings handed on to a store, which has them.
    pub handed: u32,
    /// Readings that made room for newer ones.
    pub dropped: u32,
    /// Readings not taken.
    pub refused: u32,
    /// The most that were in it at once.
    pub peak: u32,
}

/// Up to `N` readings in RAM, for a `static`.
pub struct Inbox<const N: usize> {
    state: Mutex<CriticalSectionRawMutex, RefCell<State<N>>>,
    waker: AtomicWaker,
}

struct State<const N: usize> {
    policy: DropPolicy,
    ring: heapless::Deque<Waiting, N>,
    keeper: Timekeeper,
    sequence_next: u32,
    counters: InboxCounters,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) sequence: u32,
    pub(crate) stamp: Stamp,
    pub(crate) payload: Payload,
}

impl<const N: usize> Inbox<N> {
    /// An empty one.
    pub const fn new(policy: DropPolicy) -> Self {
        Self {
            state: Mutex::new(RefCell::new(State {
                policy,
                ring: heapless::Deque::new(),
                keeper: Timekeeper::new(),
                sequence_next: 0,
                counters: InboxCounters {
                    taken: 0,
                    handed: 0,
                    dropped: 0,
                    refused: 0,
                    peak: 0,
                },
            })),
            waker: AtomicWaker::new(),
        }
    }

    /// Takes a reading and stamps it. Never waits, so it may be called from an interrupt.
    ///
    /// `now` is the time since the boot.
    pub fn try_enqueue(&self, now: Instant, payload: &[u8]) -> Result<(), Refused> {
        let outcome = self.with(|state| state.take(now, payload));
        self.waker.wake();
        outcome
    }

    /// Readings in it.
    pub fn len(&self) -> usize {
        self.with(|state| state.ring.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it has done so far.
    pub fn counters(&self) -> InboxCounters {
        self.with(|state| state.counters)
    }

    /// Tells the time of day; it was this late at `now`. The first call settles how the readings
    /// before it are dated.
    pub fn set_wall_clock(&self, now: Instant, wall: UnixMicros) -> Dating {
        self.with(|state| state.keeper.set_wall_clock(now, wall))
    }

    /// The time of day, if it was ever told.
    pub fn wall_clock(&self, now: Instant) -> Option<UnixMicros> {
        self.with(|state| state.keeper.wall_clock(now))
    }

    pub(crate) fn dating(&self) -> Option<Dating> {
        self.with(|state| state.keeper.dating())
    }

    pub(crate) fn begin_after(&self, micros: i64) {
        self.with(|state| state.keeper.begin_after(micros));
    }

    /// A copy of the oldest reading: an interrupt may drop it meanwhile.
    pub(crate) fn oldest(&self) -> Option<Waiting> {
        self.with(|state| state.ring.front().cloned())
    }

    pub(crate) fn remove_through(&self, sequence: u32) {
        self.with(|state| {
            while let Some(oldest) = state.ring.front()
                && is_through(oldest.sequence, sequence)
            {
                state.ring.pop_front();
                state.counters.handed = state.counters.handed.wrapping_add(1);
            }
        });
    }

    /// Waits for a reading. Dropping the future loses nothing.
    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            match self.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    fn with<R>(&self, change: impl FnOnce(&mut State<N>) -> R) -> R {
        self.state.lock(|state| change(&mut state.borrow_mut()))
    }
}

impl<const N: usize> fmt::Debug for Inbox<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("len", &self.len())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl<const N: usize> State<N> {
    fn take(&mut self, now: Instant, payload: &[u8]) -> Result<(), Refused> {
        let counters = &mut self.counters;
        let Ok(payload) = Payload::from_slice(payload) else {
            counters.refused = counters.refused.wrapping_add(1);
            return Err(Refused::TooLong);
        };
        if self.ring.is_full() && self.policy == DropPolicy::Oldest {
            self.ring.pop_front();
            counters.dropped = counters.dropped.wrapping_add(1);
        }
        if self.ring.is_full() {
            counters.refused = counters.refused.wrapping_add(1);
            return Err(Refused::Full);
        }
        let waiting = Waiting {
            sequence: self.sequence_next,
            stamp: self.keeper.stamp(now),
            payload,
        };
        self.sequence_next = self.sequence_next.wrapping_add(1);
        // There is room, as was just seen.
        let _ = self.ring.push_back(waiting);
        counters.taken = counters.taken.wrapping_add(1);
        let len = u32::try_from(self.ring.len()).unwrap_or(u32::MAX);
        counters.peak = counters.peak.max(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enqueue<const N: usize>(inbox: &Inbox<N>, count: u8) -> [u32; 3] {
        for value in 0..count {
            let _ = inbox.try_enqueue(Instant::from_micros(u64::from(value)), &[value]);
        }
        let counters = inbox.counters();
        [counters.taken, counters.dropped, counters.refused]
    }

    #[test]
    fn the_policy_says_who_goes() {
        let oldest = Inbox::<3>::new(DropPolicy::Oldest);
        assert_eq!(enqueue(&oldest, 5), [5, 2, 0]);
        assert_eq!(oldest.oldest().unwrap().payload[..], [2]);
        let newest = Inbox::<3>::new(DropPolicy::Newest);
        assert_eq!(enqueue(&newest, 5), [3, 0, 2]);
        assert_eq!(newest.oldest().unwrap().payload[..], [0]);
        assert_eq!(newest.len(), 3);
    }

    #[test]
    fn what_is_dropped_while_it_is_copied_takes_nothing_else_along() {
        let inbox = Inbox::<2>::new(DropPolicy::Oldest);
        enqueue(&inbox, 2);
        let copied = inbox.oldest().unwrap();
        enqueue(&inbox, 1); // drops the one that was copied
        inbox.remove_through(copied.sequence);
        assert_eq!(inbox.len(), 2);
    }

    #[test]
    fn long_payloads_are_refused() {
        let inbox = Inbox::<2>::new(DropPolicy::Oldest);
        let long = [0; crate::PAYLOAD_MAX + 1];
        let outcome = inbox.try_enqueue(Instant::from_micros(0), &long);
        assert_eq!(outcome, Err(Refused::TooLong));
        assert_eq!(inbox.counters().refused, 1);
    }
}
