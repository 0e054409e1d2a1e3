//! What a session's handles, futures, tasks and driver share.
//!
//! The data plane reads immutable snapshots (the view, the pools) and locks nothing here. Reports
//! to the control plane go through one bounded queue; learned tablets and events are dropped when
//! it is full, because the server repeats the ones and a refresh makes up for the others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::cell::{Cell, Wakers, wake_all};
use super::transport::Clock;
use crate::cluster::prepared::PreparedCache;
use crate::cluster::{Assignment, ConnectionId, LearnedTablet, SettleId, Status as Summary};
use crate::config::Config;
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::rng::mix;
use crate::routing::{Load, NodeIdx, ShardIdx, View};
use crate::sync::{Gauge, Mutex, Shared, Snapshot, assert_unlocked};

/// Something the control plane must hear of.
#[derive(Debug)]
pub(super) enum Report {
    Connected(Shared<Cell>),
    ConnectFailed(ConnectionId, Error),
    Closed(ConnectionId, Error),
    Event(ConnectionId, Bytes),
    Learned(LearnedTablet),
    Settle(SettleId),
    Shutdown,
}

/// The shared part of a session.
pub(crate) struct Hub {
    config: Shared<Config>,
    clock: Shared<dyn Clock>,
    view: Snapshot<View>,
    pools: Snapshot<Pools>,
    summary: Snapshot<Summary>,
    seed: u64,
    draws: Gauge,
    prepared: Mutex<PreparedCache>,
    timestamps: Mutex<i64>,
    inbox: Mutex<Inbox>,
    life: Mutex<Life>,
}

/// Reports under way to the driver.
#[derive(Debug, Default)]
struct Inbox {
    queue: VecDeque<Report>,
    /// Reports that may be dropped, among those in the queue.
    droppable: usize,
    driver: Option<Waker>,
    settle_next: u32,
}

/// How far the session has come, and who waits for more.
#[derive(Debug)]
struct Life {
    stage: Stage,
    /// Schema waits that have ended, and whether all nodes agreed.
    settled: Vec<(SettleId, bool)>,
    waiting: Wakers,
}

#[derive(Clone, Debug)]
enum Stage {
    Starting,
    Ready,
    Over(Error),
}

impl Hub {
    pub(super) fn new(
        config: Shared<Config>,
        clock: Shared<dyn Clock>,
        view: Shared<View>,
        summary: Summary,
        seed: u64,
    ) -> Self {
        let prepared = PreparedCache::new(config.limits.prepared_statements, mix(seed));
        let life = Life {
            stage: Stage::Starting,
            settled: Vec::new(),
            waiting: Wakers::new(),
        };
        Self {
            config,
            clock,
            view: Snapshot::new(view),
            pools: Snapshot::new(Shared::new(Pools::default())),
            summary: Snapshot::new(Shared::new(summary)),
            seed,
            draws: Gauge::default(),
            prepared: Mutex::new(prepared),
            timestamps: Mutex::new(i64::MIN),
            inbox: Mutex::new(Inbox::default()),
            life: Mutex::new(life),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) const fn clock(&self) -> &Shared<dyn Clock> {
        &self.clock
    }

    pub(crate) const fn view(&self) -> &Snapshot<View> {
        &self.view
    }

    pub(crate) const fn pools(&self) -> &Snapshot<Pools> {
        &self.pools
    }

    /// What the control plane knew last, for people and tools.
    pub(crate) fn summary(&self) -> Shared<Summary> {
        self.summary.load()
    }

    pub(super) fn set_summary(&self, summary: Summary) {
        self.summary.store(Shared::new(summary));
    }

    pub(crate) const fn prepared(&self) -> &Mutex<PreparedCache> {
        &self.prepared
    }

    /// A number for the choices of one request. The counter is shared but never waited for.
    pub(crate) fn draw(&self) -> u64 {
        mix(self.seed ^ u64::from(self.draws.add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next client timestamp: the wall clock, but always later than the one before. `None`
    /// where there is no wall clock or the session does not want it.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        if !self.config.client_timestamps {
            return None;
        }
        let now = self.clock.wall_clock()?.0;
        self.timestamps
            .with(|last| {
                *last = now.max(last.saturating_add(1));
                *last
            })
            .ok()
    }

    /// Tells the control plane.
    pub(super) fn report(&self, report: Report) {
        assert_unlocked();
        let droppable = matches!(report, Report::Event(..) | Report::Learned(_));
        let max = self.config.limits.inbox;
        let outcome = self.inbox.with(|inbox| {
            if droppable && inbox.droppable >= max {
                return (Some(report), None);
            }
            inbox.droppable = inbox.droppable.saturating_add(usize::from(droppable));
            inbox.queue.push_back(report);
            (None, inbox.driver.take())
        });
        if let Ok((_dropped, Some(driver))) = outcome {
            driver.wake();
        }
    }

    /// The next report, for the driver.
    pub(super) fn poll_report(&self, cx: &mut Context<'_>) -> Poll<Report> {
        let waker = cx.waker().clone();
        let outcome = self.inbox.with(|inbox| match inbox.queue.pop_front() {
            Some(report) => {
                if matches!(report, Report::Event(..) | Report::Learned(_)) {
                    inbox.droppable = inbox.droppable.saturating_sub(1);
                }
                (Some(report), Some(waker))
            }
            None => (None, inbox.driver.replace(waker)),
        });
        match outcome {
            Ok((Some(report), _)) => Poll::Ready(report),
            Ok((None, _)) | Err(_) => Poll::Pending,
        }
    }

    pub(crate) fn learn(&self, tablet: LearnedTablet) {
        self.report(Report::Learned(tablet));
    }

    /// Asks the control plane to see the schema settle.
    pub(crate) fn start_settle(&self) -> Result<SettleId, Error> {
        let id = self
            .inbox
            .with(|inbox| {
                inbox.settle_next = inbox.settle_next.wrapping_add(1);
                SettleId(inbox.settle_next)
            })
            .map_err(|_| poisoned())?;
        self.report(Report::Settle(id));
        Ok(id)
    }

    /// Whether all nodes agreed on the schema.
    pub(crate) fn poll_settled(
        &self,
        id: SettleId,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, Error>> {
        self.poll_life(cx, |life| {
            if let Stage::Over(error) = &life.stage {
                return Some(Err(error.clone()));
            }
            let place = life
                .settled
                .iter()
                .position(|(settled, _)| *settled == id)?;
            Some(Ok(life.settled.swap_remove(place).1))
        })
    }

    pub(super) fn set_settled(&self, id: SettleId, agreed: bool) {
        self.change_life(|life| {
            // A caller that gave up never takes its outcome; keep only the newest.
            if life.settled.len() >= SETTLED_MAX {
                life.settled.remove(0);
            }
            life.settled.push((id, agreed));
        });
    }

    /// Whether the session can be used.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_life(cx, |life| match &life.stage {
            Stage::Starting => None,
            Stage::Ready => Some(Ok(())),
            Stage::Over(error) => Some(Err(error.clone())),
        })
    }

    /// Whether the session has ended.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_life(cx, |life| match &life.stage {
            Stage::Starting | Stage::Ready => None,
            Stage::Over(_) => Some(Ok(())),
        })
    }

    pub(super) fn set_ready(&self) {
        self.change_life(|life| {
            if matches!(life.stage, Stage::Starting) {
                life.stage = Stage::Ready;
            }
        });
    }

    pub(super) fn set_over(&self, error: Error) {
        self.pools.store(Shared::new(Pools::default()));
        self.change_life(|life| {
            if !matches!(life.stage, Stage::Over(_)) {
                life.stage = Stage::Over(error);
            }
        });
    }

    /// Why the session cannot be used, if it cannot.
    pub(crate) fn over(&self) -> Option<Error> {
        let outcome = self.life.with(|life| match &life.stage {
            Stage::Starting | Stage::Ready => None,
            Stage::Over(error) => Some(error.clone()),
        });
        outcome.unwrap_or_else(|_| Some(poisoned()))
    }

    fn poll_life<R>(
        &self,
        cx: &mut Context<'_>,
        look: impl Fn(&mut Life) -> Option<Result<R, Error>>,
    ) -> Poll<Result<R, Error>> {
        let waker = cx.waker().clone();
        let outcome = self.life.with(|life| match look(life) {
            Some(outcome) => (Poll::Ready(outcome), Some(waker)),
            None => {
                if life.waiting.iter().any(|held| held.will_wake(&waker)) {
                    return (Poll::Pending, Some(waker));
                }
                life.waiting.push(waker);
                (Poll::Pending, None)
            }
        });
        match outcome {
            Ok((poll, _unused)) => poll,
            Err(_) => Poll::Ready(Err(poisoned())),
        }
    }

    fn change_life(&self, change: impl FnOnce(&mut Life)) {
        let outcome = self.life.with(|life| {
            change(life);
            core::mem::take(&mut life.waiting)
        });
        if let Ok(mut waiting) = outcome {
            wake_all(&mut waiting);
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The open connections by node and shard.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    /// By index of the node.
    nodes: Vec<Pool>,
}

/// The open connections of one node, sorted by shard.
#[derive(Debug, Default)]
struct Pool {
    connections: Vec<(Option<ShardIdx>, Shared<Cell>)>,
}

impl Pools {
    /// Joins the control plane's assignment with the cells that `find` knows.
    pub(super) fn new(
        assignments: &[Assignment],
        find: impl Fn(ConnectionId) -> Option<Shared<Cell>>,
    ) -> Self {
        let mut pools = Self::default();
        for assignment in assignments {
            let place = usize::from(assignment.node.value());
            if pools.nodes.len() <= place {
                pools
                    .nodes
                    .resize_with(place.saturating_add(1), Pool::default);
            }
            let Some(pool) = pools.nodes.get_mut(place) else {
                continue;
            };
            let cells = assignment.connections.iter();
            pool.connections
                .extend(cells.filter_map(|(id, shard)| Some((*shard, find(*id)?))));
            pool.connections
                .sort_by_key(|(shard, cell)| (*shard, cell.id()));
        }
        pools
    }

    /// The connection to use for a shard of a node: the least busy one of that shard, else the
    /// least busy of two drawn from all.
    pub(crate) fn pick(
        &self,
        node: NodeIdx,
        shard: Option<ShardIdx>,
        entropy: u64,
    ) -> Option<&Shared<Cell>> {
        let pool = self.pool(node)?;
        let own = pool.of_shard(shard);
        if let Some((_, cell)) = own.iter().min_by_key(|(_, cell)| cell.in_flight()) {
            return Some(cell);
        }
        let all = &pool.connections;
        let len = u64::try_from(all.len()).ok().filter(|&len| len > 0)?;
        let draw = |bits: u64| all.get(usize::try_from(bits % len).unwrap_or(0));
        let pair = [draw(entropy), draw(entropy >> 32)];
        pair.into_iter()
            .flatten()
            .map(|(_, cell)| cell)
            .min_by_key(|cell| cell.in_flight())
    }

    /// One connection of each connected node.
    pub(crate) fn one_of_each_node(&self, entropy: u64) -> Vec<(NodeIdx, Shared<Cell>)> {
        let nodes = (0..self.nodes.len()).filter_map(NodeIdx::at);
        nodes
            .filter_map(|node| Some((node, Shared::clone(self.pick(node, None, entropy)?))))
            .collect()
    }

    /// The open connections of a node.
    pub(crate) fn of_node(&self, node: NodeIdx) -> impl Iterator<Item = (Option<ShardIdx>, &Cell)> {
        let pool = self.pool(node).map_or(&[][..], |pool| &pool.connections);
        pool.iter().map(|(shard, cell)| (*shard, &**cell))
    }

    fn pool(&self, node: NodeIdx) -> Option<&Pool> {
        self.nodes.get(usize::from(node.value()))
    }
}

impl Pool {
    fn of_shard(&self, shard: Option<ShardIdx>) -> &[(Option<ShardIdx>, Shared<Cell>)] {
        if shard.is_none() {
            return &[];
        }
        let start = self.connections.partition_point(|(held, _)| *held < shard);
        let end = self.connections.partition_point(|(held, _)| *held <= shard);
        self.connections.get(start..end).unwrap_or(&[])
    }
}

impl Load for Pools {
    fn in_flight(&self, node: NodeIdx, shard: Option<ShardIdx>) -> u32 {
        let Some(pool) = self.pool(node) else {
            return 0;
        };
        let of = match pool.of_shard(shard) {
            [] => &pool.connections[..],
            own => own,
        };
        of.iter()
            .map(|(_, cell)| cell.in_flight())
            .fold(0, u32::saturating_add)
    }

    fn is_connected(&self, node: NodeIdx) -> bool {
        self.pool(node)
            .is_some_and(|pool| !pool.connections.is_empty())
    }
}

/// The session is over because nobody wants it any more.
pub(super) const fn session_closed() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed))
}

fn poisoned() -> Error {
    Error::bug("a session's lock is poisoned")
}

/// Outcomes of schema waits that are kept for callers that have not looked yet.
const SETTLED_MAX: usize = 64;
