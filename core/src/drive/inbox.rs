//! Reports from the data plane to the control plane: one bounded queue.
//!
//! News of tablets, events and wishes for shards are dropped when it is full: the server repeats
//! the first, a refresh makes up for the second, and the next request repeats the last. What a
//! connection task says of its own connection is never dropped: it says so a bounded number of
//! times.

use alloc::collections::VecDeque;
use core::task::{Context, Poll, Waker};

use super::cell::Cell;
use crate::cluster::{ConnectionId, SettleId, TabletNews};
use crate::conn::Body;
use crate::error::Error;
use crate::routing::{NodeIdx, ShardIdx};
use crate::sync::{Mutex, Shared, assert_unlocked};

/// Something the control plane must hear of.
#[derive(Debug)]
pub(super) enum Report {
    Connected(Shared<Cell>),
    ConnectFailed(ConnectionId, Error),
    Closed(ConnectionId, Error),
    Event(ConnectionId, Body),
    Tablet(TabletNews),
    /// A request wanted a shard whose connection is opened at its first use only.
    ShardWanted(NodeIdx, ShardIdx),
    Settle(SettleId),
    Shutdown,
}

impl Report {
    const fn is_droppable(&self) -> bool {
        matches!(
            self,
            Self::Event(..) | Self::Tablet(_) | Self::ShardWanted(..)
        )
    }
}

/// Reports under way to the driver.
#[derive(Debug)]
pub(super) struct Inbox {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Report>,
    /// Reports that may be dropped, among those in the queue.
    droppable: usize,
    driver: Option<Waker>,
}

impl Inbox {
    /// At most `max` reports of the droppable kinds wait at once.
    pub(super) fn new(max: usize) -> Self {
        let state = Mutex::new(State::default());
        Self { max, state }
    }

    /// Tells the control plane. False if the report was dropped.
    pub(super) fn push(&self, report: Report) -> bool {
        assert_unlocked();
        let droppable = report.is_droppable();
        let outcome = self.state.with(|state| {
            if droppable && state.droppable >= self.max {
                return (Some(report), None);
            }
            state.droppable = state.droppable.saturating_add(usize::from(droppable));
            state.queue.push_back(report);
            (None, state.driver.take())
        });
        match outcome {
            Ok((None, driver)) => {
                driver.into_iter().for_each(Waker::wake);
                true
            }
            Ok((Some(_), _)) | Err(_) => false,
        }
    }

    /// The next report, for the driver.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Report> {
        let waker = cx.waker().clone();
        let outcome = self.state.with(|state| match state.queue.pop_front() {
            Some(report) => {
                if report.is_droppable() {
                    state.droppable = state.droppable.saturating_sub(1);
                }
                (Some(report), Some(waker))
            }
            None => (None, state.driver.replace(waker)),
        });
        match outcome {
            Ok((Some(report), _)) => Poll::Ready(report),
            Ok((None, _)) | Err(_) => Poll::Pending,
        }
    }

    /// The reports that nobody will take any more.
    pub(super) fn take_all(&self) -> VecDeque<Report> {
        let taken = self.state.with(|state| {
            state.droppable = 0;
            core::mem::take(&mut state.queue)
        });
        taken.unwrap_or_default()
    }
}
