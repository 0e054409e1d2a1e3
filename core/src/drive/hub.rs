//! What a session's handles, futures, tasks and driver share.
//!
//! The data plane reads immutable snapshots (the view, the pools) and locks nothing here. Reports
//! to the control plane go through one bounded queue; news of tablets and events are dropped when
//! it is full, because the server repeats the ones and a refresh makes up for the others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::cell::Cell;
use super::transport::Clock;
use crate::cluster::prepared::PreparedCache;
use crate::cluster::{
    Assignment, ConnectionId, Engine, SettleId, Status as Summary, TabletNews, learn,
};
use crate::config::Config;
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::rng::mix;
use crate::routing::{
    LearnedTablet, Load, NodeIdx, PayloadError, ShardIdx, TableRef, TabletStore, View,
};
use crate::sorted::sort_few;
use crate::sync::{Gauge, Mutex, Shared, Snapshot, assert_unlocked};

/// Something the control plane must hear of.
#[derive(Debug)]
pub(super) enum Report {
    Connected(Shared<Cell>),
    ConnectFailed(ConnectionId, Error),
    Closed(ConnectionId, Error),
    Event(ConnectionId, Bytes),
    Tablet(TabletNews),
    Settle(SettleId),
    Shutdown,
}

/// The shared part of a session.
pub(crate) struct Hub {
    config: Shared<Config>,
    clock: Shared<dyn Clock>,
    view: Snapshot<View>,
    tablets: TabletStore,
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
    /// Schema waits of living callers; once they have ended, whether all nodes agreed.
    settling: Vec<(SettleId, Option<bool>)>,
    /// One waker for each living [`Watch`] that waits.
    waiting: Vec<(u64, Waker)>,
    watch_next: u64,
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
        engine: &Engine,
        seed: u64,
    ) -> Self {
        let prepared = PreparedCache::new(config.limits.prepared_statements, mix(seed));
        let life = Life {
            stage: Stage::Starting,
            settling: Vec::new(),
            waiting: Vec::new(),
            watch_next: 0,
        };
        Self {
            config,
            clock,
            view: Snapshot::new(engine.view()),
            tablets: engine.tablets(),
            pools: Snapshot::new(Shared::new(Pools::default())),
            summary: Snapshot::new(Shared::new(engine.status())),
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
        let droppable = matches!(report, Report::Event(..) | Report::Tablet(_));
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
                if matches!(report, Report::Event(..) | Report::Tablet(_)) {
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

    /// Stores the tablet of an answer to a statement on this table.
    pub(crate) fn learn(&self, table: TableRef, read: Result<LearnedTablet, PayloadError>) {
        let news = self
            .view
            .with(|view| learn(&self.tablets, view, table, read));
        if let Some(news) = news {
            self.report(Report::Tablet(news));
        }
    }

    /// The reports that nobody will take any more.
    pub(super) fn take_reports(&self) -> VecDeque<Report> {
        let taken = self.inbox.with(|inbox| {
            inbox.droppable = 0;
            core::mem::take(&mut inbox.queue)
        });
        taken.unwrap_or_default()
    }

    /// Asks the control plane to see the schema settle.
    pub(crate) fn settle(&self) -> Result<Settling<'_>, Error> {
        let id = self
            .inbox
            .with(|inbox| {
                inbox.settle_next = inbox.settle_next.wrapping_add(1);
                SettleId(inbox.settle_next)
            })
            .map_err(|_| poisoned())?;
        let over = self.life.with(|life| {
            if let Stage::Over(error) = &life.stage {
                return Some(error.clone());
            }
            life.settling.push((id, None));
            None
        });
        if let Some(error) = over.map_err(|_| poisoned())? {
            return Err(error);
        }
        self.report(Report::Settle(id));
        let watch = self.watch();
        Ok(Settling { watch, id })
    }

    pub(super) fn set_settled(&self, id: SettleId, agreed: bool) {
        self.change_life(|life| {
            // A caller that gave up has taken its place away.
            let place = life
                .settling
                .iter_mut()
                .find(|(settling, _)| *settling == id);
            if let Some((_, outcome)) = place {
                *outcome = Some(agreed);
            }
        });
    }

    /// Watches how far the session has come.
    pub(crate) const fn watch(&self) -> Watch<'_> {
        Watch {
            hub: self,
            place: None,
        }
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

    fn change_life(&self, change: impl FnOnce(&mut Life)) {
        let outcome = self.life.with(|life| {
            change(life);
            core::mem::take(&mut life.waiting)
        });
        if let Ok(waiting) = outcome {
            assert_unlocked();
            waiting.into_iter().for_each(|(_, waker)| waker.wake());
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

/// A caller that waits for the session to come further. Dropping it forgets its waker.
pub(crate) struct Watch<'a> {
    hub: &'a Hub,
    place: Option<u64>,
}

impl Watch<'_> {
    /// Whether the session can be used.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll(cx, |life| match &life.stage {
            Stage::Starting => None,
            Stage::Ready => Some(Ok(())),
            Stage::Over(error) => Some(Err(error.clone())),
        })
    }

    /// Whether the session has ended.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll(cx, |life| match &life.stage {
            Stage::Starting | Stage::Ready => None,
            Stage::Over(_) => Some(Ok(())),
        })
    }

    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&mut Life) -> Option<Result<R, Error>>,
    ) -> Poll<Result<R, Error>> {
        let (waker, held) = (cx.waker().clone(), self.place);
        let outcome = self.hub.life.with(|life| {
            if let Some(outcome) = look(life) {
                return (Poll::Ready(outcome), held, Some(waker));
            }
            let place = held.unwrap_or(life.watch_next);
            if held.is_none() {
                life.watch_next = life.watch_next.wrapping_add(1);
            }
            let unused = match life.waiting.iter_mut().find(|(id, _)| *id == place) {
                Some((_, held)) => Some(core::mem::replace(held, waker)),
                None => {
                    life.waiting.push((place, waker));
                    None
                }
            };
            (Poll::Pending, Some(place), unused)
        });
        match outcome {
            Ok((poll, place, _unused)) => {
                self.place = place;
                poll
            }
            Err(_) => Poll::Ready(Err(poisoned())),
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let unused = self.hub.life.with(|life| {
            let found = life.waiting.iter().position(|(id, _)| *id == place)?;
            Some(life.waiting.swap_remove(found))
        });
        drop(unused);
    }
}

/// A caller that waits for the schema to settle. Dropping it takes its place away.
pub(crate) struct Settling<'a> {
    watch: Watch<'a>,
    id: SettleId,
}

impl Settling<'_> {
    /// Whether all nodes agreed on the schema.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        let id = self.id;
        self.watch.poll(cx, |life| {
            if let Stage::Over(error) = &life.stage {
                return Some(Err(error.clone()));
            }
            let mut places = life.settling.iter();
            places.find(|(settling, _)| *settling == id)?.1.map(Ok)
        })
    }
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let id = self.id;
        let _ = self.watch.hub.life.with(|life| {
            life.settling.retain(|(settling, _)| *settling != id);
        });
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
            sort_few(&mut pool.connections, |(shard, cell)| (*shard, cell.id()));
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

#[cfg(all(test, not(messina_loom)))]
mod tests {
    use super::*;
    use crate::cluster::Engine;
    use crate::drive::transport::{Security, SteeringKind};
    use crate::time::Instant;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Instant {
            Instant::ZERO
        }
    }

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Shared<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn hub() -> Hub {
        let mut config = Config::server();
        config.add_contact_points("127.0.0.1").unwrap();
        let config = Shared::new(config);
        let (none, plain) = (SteeringKind::None, Security::Plain);
        let engine = Engine::new(Shared::clone(&config), none, plain, 1, Instant::ZERO);
        let clock: Shared<dyn Clock> = Shared::new(Stopped);
        Hub::new(config, clock, &engine, 1)
    }

    fn waiting(hub: &Hub) -> (usize, usize) {
        hub.life
            .with(|life| (life.waiting.len(), life.settling.len()))
            .unwrap()
    }

    #[test]
    fn every_schema_wait_hears_of_its_end() {
        let (hub, mut cx) = (hub(), Context::from_waker(Waker::noop()));
        let mut waits: Vec<_> = (0..200).map(|_| hub.settle().unwrap()).collect();
        for wait in &mut waits {
            assert!(wait.poll(&mut cx).is_pending());
        }
        for id in 1..=200 {
            hub.set_settled(SettleId(id), id % 2 == 0);
        }
        for (id, wait) in (1..).zip(&mut waits) {
            assert_eq!(wait.poll(&mut cx), Poll::Ready(Ok(id % 2 == 0)));
        }
        drop(waits);
        assert_eq!(waiting(&hub), (0, 0));
    }

    #[test]
    fn whoever_waits_holds_one_place_and_gives_it_back() {
        let hub = hub();
        let wakers: [Shared<Counting>; 3] = Default::default();
        let mut watch = hub.watch();
        for waker in &wakers {
            let waker = Waker::from(Shared::clone(waker));
            assert!(
                watch
                    .poll_ready(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        assert_eq!(waiting(&hub), (1, 0));
        hub.set_ready();
        let woken = wakers.map(|waker| waker.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 0, 1], "the newest only");
        let mut other = hub.watch();
        assert!(
            other
                .poll_over(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(waiting(&hub), (1, 0));
        drop(other);
        assert_eq!(waiting(&hub), (0, 0));
    }

    #[test]
    fn a_session_that_is_over_gathers_no_reports() {
        let hub = hub();
        hub.set_over(session_closed());
        for _ in 0..10 {
            assert_eq!(hub.settle().err(), Some(session_closed()));
        }
        assert_eq!(hub.take_reports().len(), 0);
        assert_eq!(waiting(&hub), (0, 0));
    }
}
