//! Callers that wait for a free stream id, first in, first out.
//!
//! The task that frees an id *grants* it to the first waiter; the grant reserves one id until the
//! waiter takes it or gives up, in which case it passes to the next one. Looking does not take it:
//! between a look and the submission another caller could get the id. The queue is bounded.

use alloc::collections::VecDeque;

use crate::time::Instant;

/// Names one waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What a waiter finds.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Turn<'a, S> {
    /// Not yet; the waiter's own part.
    Waiting(&'a mut S),
    /// An id is reserved, until [`Waiters::take`] or [`Waiters::leave`].
    Granted,
    /// Its deadline passed; the waiter has left the queue.
    Expired,
}

#[derive(Debug)]
struct Waiter<S> {
    ticket: Ticket,
    caller: S,
    give_up_at: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Granted,
    Expired,
}

/// The queue.
#[derive(Debug)]
pub struct Waiters<S> {
    queue: VecDeque<Waiter<S>>,
    max: usize,
    next: u64,
    granted: u16,
    earliest: Instant,
}

impl<S> Waiters<S> {
    /// At most `max` waiters at once.
    pub const fn new(max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            max,
            next: 0,
            granted: 0,
            earliest: Instant::FAR_FUTURE,
        }
    }

    /// Joins the queue; gives the caller's part back when it is full.
    pub fn join(&mut self, caller: S, give_up_at: Instant) -> Result<Ticket, S> {
        if self.queue.len() >= self.max {
            return Err(caller);
        }
        let ticket = Ticket(self.next);
        self.next = self.next.saturating_add(1);
        self.queue.push_back(Waiter {
            ticket,
            caller,
            give_up_at,
            state: State::Queued,
        });
        self.earliest = self.earliest.min(give_up_at);
        Ok(ticket)
    }

    /// How it stands with a waiter.
    pub fn poll(&mut self, ticket: Ticket) -> Turn<'_, S> {
        let Some(index) = self.position(ticket) else {
            return Turn::Expired;
        };
        match self.queue.get(index).map(|waiter| waiter.state) {
            Some(State::Queued) => {}
            Some(State::Granted) => return Turn::Granted,
            Some(State::Expired) | None => {
                self.queue.remove(index);
                return Turn::Expired;
            }
        }
        match self.queue.get_mut(index) {
            Some(waiter) => Turn::Waiting(&mut waiter.caller),
            None => Turn::Expired,
        }
    }

    /// Takes a grant: the waiter leaves the queue and the id it was given is to be allocated now.
    /// `false` if it has no grant.
    pub fn take(&mut self, ticket: Ticket) -> bool {
        let is_granted = |waiter: &Waiter<S>| waiter.state == State::Granted;
        let Some(index) = self.position(ticket) else {
            return false;
        };
        if !self.queue.get(index).is_some_and(is_granted) {
            return false;
        }
        self.granted = self.granted.saturating_sub(1);
        self.queue.remove(index);
        true
    }

    /// Leaves the queue; gives back the caller's part, to be dropped outside any lock. A grant it
    /// held is free again: call [`Waiters::grant`] afterwards.
    pub fn leave(&mut self, ticket: Ticket) -> Option<S> {
        let waiter = self.queue.remove(self.position(ticket)?)?;
        if waiter.state == State::Granted {
            self.granted = self.granted.saturating_sub(1);
        }
        Some(waiter.caller)
    }

    /// Grants ids to waiters while more are `available` than are granted already. The callers to
    /// be told are passed to `each` by reference: they stay in the queue until they look.
    pub fn grant(&mut self, available: u16, mut each: impl FnMut(&mut S)) {
        if self.queue.is_empty() {
            return;
        }
        for waiter in self
            .queue
            .iter_mut()
            .filter(|waiter| waiter.state == State::Queued)
        {
            if self.granted >= available {
                return;
            }
            waiter.state = State::Granted;
            self.granted = self.granted.saturating_add(1);
            each(&mut waiter.caller);
        }
    }

    /// Gives up the waiters whose deadline has come, granted ones too: a caller that does not look
    /// must not keep an id for ever. Call [`Waiters::grant`] afterwards.
    pub fn expire(&mut self, now: Instant, mut each: impl FnMut(&mut S)) {
        if now < self.earliest {
            return;
        }
        self.earliest = Instant::FAR_FUTURE;
        for waiter in self
            .queue
            .iter_mut()
            .filter(|waiter| waiter.state != State::Expired)
        {
            if waiter.give_up_at <= now {
                if waiter.state == State::Granted {
                    self.granted = self.granted.saturating_sub(1);
                }
                waiter.state = State::Expired;
                each(&mut waiter.caller);
            } else {
                self.earliest = self.earliest.min(waiter.give_up_at);
            }
        }
    }

    /// The connection is over; everybody is told and finds out by polling the connection.
    pub fn fail_all(&mut self, mut each: impl FnMut(S)) {
        self.granted = 0;
        self.earliest = Instant::FAR_FUTURE;
        while let Some(waiter) = self.queue.pop_front() {
            each(waiter.caller);
        }
    }

    /// Ids reserved for waiters that have not looked yet.
    pub const fn granted(&self) -> u16 {
        self.granted
    }

    /// Whether nobody waits; those who have not seen yet that they have expired do not count.
    pub fn is_empty(&self) -> bool {
        self.queue
            .iter()
            .all(|waiter| waiter.state == State::Expired)
    }

    /// A lower bound of all deadlines.
    pub const fn earliest(&self) -> Instant {
        self.earliest
    }

    /// Tickets only grow along the queue.
    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.queue
            .binary_search_by_key(&ticket, |waiter| waiter.ticket)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const NEVER: Instant = Instant::FAR_FUTURE;

    fn granted(waiters: &mut Waiters<char>, available: u16) -> Vec<char> {
        let mut told = Vec::new();
        waiters.grant(available, |name| told.push(*name));
        told
    }

    #[test]
    fn grants_go_in_order_of_arrival_and_only_as_far_as_ids_reach() {
        let mut waiters = Waiters::new(10);
        let tickets: Vec<_> = "abc"
            .chars()
            .map(|c| waiters.join(c, NEVER).unwrap())
            .collect();
        assert_eq!(granted(&mut waiters, 1), ['a']);
        assert_eq!(granted(&mut waiters, 1), [], "the id is reserved");
        assert_eq!(waiters.granted(), 1);
        assert_eq!(waiters.poll(tickets[0]), Turn::Granted);
        assert_eq!(waiters.granted(), 1, "a look does not take it");
        assert!(waiters.take(tickets[0]));
        assert!(!waiters.take(tickets[0]));
        assert!(!waiters.take(tickets[1]));
        assert!(matches!(waiters.poll(tickets[1]), Turn::Waiting('b')));
        assert_eq!(granted(&mut waiters, 2), ['b', 'c']);
    }

    #[test]
    fn a_grant_that_is_dropped_passes_on() {
        let mut waiters = Waiters::new(10);
        let first = waiters.join('a', NEVER).unwrap();
        waiters.join('b', NEVER).unwrap();
        assert_eq!(granted(&mut waiters, 1), ['a']);
        assert_eq!(waiters.leave(first), Some('a'));
        assert_eq!(granted(&mut waiters, 1), ['b']);
        assert_eq!(waiters.leave(first), None);
    }

    #[test]
    fn the_queue_is_bounded_and_deadlines_empty_it() {
        let mut waiters = Waiters::new(2);
        let early = waiters.join('a', Instant::from_micros(5)).unwrap();
        let late = waiters.join('b', Instant::from_micros(9)).unwrap();
        assert_eq!(waiters.join('c', NEVER), Err('c'));
        let mut told = Vec::new();
        waiters.expire(Instant::from_micros(5), |name| told.push(*name));
        assert_eq!(
            (told, waiters.earliest()),
            (Vec::from(['a']), Instant::from_micros(9))
        );
        assert_eq!(waiters.poll(early), Turn::Expired);
        assert_eq!(granted(&mut waiters, 1), ['b']);
        assert_eq!(waiters.poll(late), Turn::Granted);
        assert!(waiters.take(late));
        assert!(waiters.is_empty());
    }
}
