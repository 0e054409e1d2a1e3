//! Callers who wait until all nodes agree on the schema.
//!
//! While somebody waits, `schema_version` of the local node and of all peers is read at a fixed
//! pace. Agreement counts only for those who waited when the reading began; afterwards the schema
//! is read once more, and only a reading that began after the agreement lets a caller go.

use alloc::vec::Vec;
use core::time::Duration;

use uuid::Uuid;

use super::SettleId;
use crate::gather::Gather;
use crate::time::Instant;

/// Everybody who waits.
#[derive(Debug, Default)]
pub(super) struct Settle {
    waiting: Vec<Waiter>,
    poll: Option<Poll>,
    next_poll_at: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    id: SettleId,
    deadline: Instant,
    state: WaiterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaiterState {
    /// For agreement.
    New,
    /// A reading of the versions that counts for it is under way.
    Polling,
    /// For a reading of the schema to begin.
    Settled { agreed: bool },
    /// For that reading to end.
    Refreshing { agreed: bool },
}

/// One reading of the versions.
#[derive(Debug, Default)]
struct Poll {
    local: Option<Option<Uuid>>,
    peers: Option<Vec<(Uuid, Option<Uuid>)>>,
}

/// What a reading of the versions says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PollAnswer {
    /// The local node's version.
    Local(Option<Uuid>),
    /// Host ids and versions of peers.
    Peers(Vec<(Uuid, Option<Uuid>)>),
    /// It failed.
    Failed,
}

impl Settle {
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, id: SettleId, now: Instant, timeout: Duration) {
        self.waiting.push(Waiter {
            id,
            deadline: now.saturating_add(timeout),
            state: WaiterState::New,
        });
        self.next_poll_at.get_or_insert(now);
    }

    /// Whether the versions are to be read now; the caller asks both questions if so.
    pub(super) fn start_poll(&mut self, now: Instant) -> bool {
        let is_due = self.next_poll_at.is_some_and(|at| at <= now);
        if !is_due || self.poll.is_some() || !self.is_polled_for() {
            return false;
        }
        for waiter in &mut self.waiting {
            if waiter.state == WaiterState::New {
                waiter.state = WaiterState::Polling;
            }
        }
        self.poll = Some(Poll::default());
        self.next_poll_at = Some(now.saturating_add(POLL_EVERY));
        true
    }

    /// Takes one of the two answers. `is_up` tells which peers count. True: the schema is to be
    /// read.
    pub(super) fn handle_answer(
        &mut self,
        answer: PollAnswer,
        is_up: impl Fn(Uuid) -> bool,
    ) -> bool {
        let Some(poll) = &mut self.poll else {
            return false;
        };
        match answer {
            PollAnswer::Local(version) => poll.local = Some(version),
            PollAnswer::Peers(peers) => poll.peers = Some(peers),
            PollAnswer::Failed => {
                self.abort_poll();
                return false;
            }
        }
        let (Some(local), Some(peers)) = (poll.local, &poll.peers) else {
            return false;
        };
        let agrees =
            |(host_id, version): &(Uuid, Option<Uuid>)| *version == local || !is_up(*host_id);
        let agreed = local.is_some() && peers.iter().all(agrees);
        self.poll = None;
        let mut is_settled = false;
        for waiter in &mut self.waiting {
            if waiter.state == WaiterState::Polling {
                is_settled |= agreed;
                waiter.state = if agreed {
                    WaiterState::Settled { agreed: true }
                } else {
                    WaiterState::New
                };
            }
        }
        is_settled
    }

    /// The connection that was asked is gone.
    pub(super) fn abort_poll(&mut self) {
        self.poll = None;
        for waiter in &mut self.waiting {
            if waiter.state == WaiterState::Polling {
                waiter.state = WaiterState::New;
            }
        }
    }

    /// Looks at the deadlines. Gives those who have waited beyond all of them, and whether the
    /// schema is to be read for others.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        grace: Duration,
    ) -> (Vec<SettleId>, bool) {
        let mut wants_refresh = false;
        for waiter in &mut self.waiting {
            let is_polled = matches!(waiter.state, WaiterState::New | WaiterState::Polling);
            if is_polled && waiter.deadline <= now {
                waiter.state = WaiterState::Settled { agreed: false };
                wants_refresh = true;
            }
        }
        let is_lost = |waiter: &Waiter| waiter.deadline.saturating_add(grace) <= now;
        let lost = self.waiting.iter().filter(|waiter| is_lost(waiter));
        let lost = lost.map(|waiter| waiter.id).gather();
        self.waiting.retain(|waiter| !is_lost(waiter));
        self.rest_if_idle();
        (lost, wants_refresh)
    }

    /// A reading of the schema begins.
    pub(super) fn refresh_started(&mut self) {
        for waiter in &mut self.waiting {
            if let WaiterState::Settled { agreed } = waiter.state {
                waiter.state = WaiterState::Refreshing { agreed };
            }
        }
    }

    /// It failed; another one will follow.
    pub(super) fn refresh_failed(&mut self) {
        for waiter in &mut self.waiting {
            if let WaiterState::Refreshing { agreed } = waiter.state {
                waiter.state = WaiterState::Settled { agreed };
            }
        }
    }

    /// It ended: these may go.
    pub(super) fn refresh_ended(&mut self) -> Vec<(SettleId, bool)> {
        let mut done = Vec::new();
        self.waiting.retain(|waiter| match waiter.state {
            WaiterState::Refreshing { agreed } => {
                done.push((waiter.id, agreed));
                false
            }
            _ => true,
        });
        self.rest_if_idle();
        done
    }

    /// Everybody, when the session ends.
    pub(super) fn take_all(&mut self) -> Vec<SettleId> {
        self.poll = None;
        let waiting = core::mem::take(&mut self.waiting);
        waiting.into_iter().map(|waiter| waiter.id).gather()
    }

    pub(super) fn next_at(&self, grace: Duration, consider: &mut dyn FnMut(Option<Instant>)) {
        if self.poll.is_none() && self.is_polled_for() {
            consider(self.next_poll_at);
        }
        for waiter in &self.waiting {
            consider(Some(match waiter.state {
                WaiterState::New | WaiterState::Polling => waiter.deadline,
                _ => waiter.deadline.saturating_add(grace),
            }));
        }
    }

    fn is_polled_for(&self) -> bool {
        let polled =
            |waiter: &Waiter| matches!(waiter.state, WaiterState::New | WaiterState::Polling);
        self.waiting.iter().any(polled)
    }

    fn rest_if_idle(&mut self) {
        if self.waiting.is_empty() {
            self.next_poll_at = None;
        }
    }
}

/// How often the versions are read.
const POLL_EVERY: Duration = Duration::from_millis(200);
