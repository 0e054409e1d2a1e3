//! What a session's handles, futures, tasks and driver share.
//!
//! The data plane reads immutable snapshots (the view, the pools) and locks nothing here. Reports
//! to the control plane go through the inbox; callers who wait for the session stand in its life.

use alloc::vec::Vec;
use core::fmt;

use super::cell::Cell;
use super::inbox::{Inbox, Report};
use super::life::{Life, Settling};
use super::pools::Pools;
use super::transport::Clock;
use crate::cluster::prepared::{PreparedCache, PreparedStatement};
use crate::cluster::{ControlPlane, Status as Summary, learn};
use crate::config::{Config, HAS_TOPOLOGY, Routing};
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::rng::mix;
use crate::routing::{LearnedTablet, PayloadError, TableRef, TabletStore, Target, View};
use crate::sync::{Gauge, Mutex, Shared, Snapshot};

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
    #[cfg(feature = "lwt-learning")]
    lwt_marks: Mutex<super::lwt_learning::LwtMarks>,
    timestamps: Mutex<i64>,
    inbox: Inbox,
    life: Life,
}

impl Hub {
    pub(super) fn new(
        config: Shared<Config>,
        clock: Shared<dyn Clock>,
        engine: &ControlPlane,
        seed: u64,
    ) -> Self {
        let inbox = Inbox::new(config.limits.inbox);
        let prepared = PreparedCache::new(config.limits.prepared_statements, mix(seed));
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
            #[cfg(feature = "lwt-learning")]
            lwt_marks: Mutex::new(super::lwt_learning::LwtMarks::default()),
            timestamps: Mutex::new(i64::MIN),
            inbox,
            life: Life::new(),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether one connection is all there is.
    pub(crate) fn is_single(&self) -> bool {
        !HAS_TOPOLOGY || self.config.routing == Routing::Single
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

    /// Statements that an earlier session has prepared.
    pub(super) fn keep_statements(&self, statements: Vec<Shared<PreparedStatement>>) {
        for statement in statements {
            let evicted = self.prepared.with(|cache| cache.insert(statement));
            drop(evicted);
        }
    }

    /// Forgets the statements whose table is gone or was made anew: the types of their markers may
    /// be others now.
    pub(super) fn drop_orphaned_statements(&self, view: &View) {
        let is_kept = |statement: &PreparedStatement| !statement.has_lost_its_table(view);
        let dropped = self.prepared.with(|cache| cache.retain(is_kept));
        drop(dropped);
    }

    #[cfg(feature = "lwt-learning")]
    pub(super) const fn lwt_marks(&self) -> &Mutex<super::lwt_learning::LwtMarks> {
        &self.lwt_marks
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
        self.inbox.push(report);
    }

    /// The connection for a target. A shard that is opened at its first use is asked for, once.
    pub(super) fn pick(&self, target: &Target, entropy: u64) -> Option<Shared<Cell>> {
        let (node, shard) = (target.node, target.shard);
        self.pools.with(|pools| {
            let cell = pools.pick(node, shard, entropy)?;
            if cell.agreed().shard() != shard
                && let Some(shard) = shard
                && let Some(wish) = pools.wish(node, shard)
                && !self.inbox.push(Report::ShardWanted(node, shard))
            {
                wish.take_back();
            }
            Some(Shared::clone(cell))
        })
    }

    /// Stores the tablet of an answer to a statement on this table.
    pub(crate) fn learn(&self, table: TableRef, read: Result<LearnedTablet, PayloadError>) {
        if self.is_single() {
            return;
        }
        let news = self
            .view
            .with(|view| learn(&self.tablets, view, table, read));
        if let Some(news) = news {
            self.report(Report::Tablet(news));
        }
    }

    /// What the control plane is to be told.
    pub(super) const fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// How far the session has come.
    pub(crate) const fn life(&self) -> &Life {
        &self.life
    }

    /// Asks the control plane to see the schema settle.
    pub(crate) fn settle(&self) -> Result<Settling<'_>, Error> {
        let settling = self.life.settle()?;
        self.report(Report::Settle(settling.id()));
        Ok(settling)
    }

    /// Why the session cannot be used, if it cannot.
    pub(crate) fn over(&self) -> Option<Error> {
        self.life.over()
    }

    pub(super) fn set_over(&self, error: Error) {
        let ended = self.pools.with(Pools::ended);
        self.pools.store(Shared::new(ended));
        self.life.set_over(error);
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The session is over because nobody wants it any more.
pub(super) fn session_closed() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed))
}

#[cfg(all(test, not(messina_loom)))]
mod tests {
    use super::*;
    use crate::cluster::SettleId;
    use crate::drive::transport::{Security, SteeringKind};
    use crate::time::Instant;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use core::task::{Context, Poll, Waker};
    use std::task::Wake;
    use std::vec::Vec;

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
        let now = Instant::ZERO;
        let engine = ControlPlane::new(Shared::clone(&config), none, plain, 1, now, None);
        let clock: Shared<dyn Clock> = Shared::new(Stopped);
        Hub::new(config, clock, &engine, 1)
    }

    fn waiting(hub: &Hub) -> (usize, usize) {
        hub.life().counts()
    }

    #[test]
    fn every_schema_wait_hears_of_its_end() {
        let (hub, mut cx) = (hub(), Context::from_waker(Waker::noop()));
        let mut waits: Vec<_> = (0..200).map(|_| hub.settle().unwrap()).collect();
        for wait in &mut waits {
            assert!(wait.poll(&mut cx).is_pending());
        }
        for id in 1..=200 {
            hub.life().set_settled(SettleId(id), id % 2 == 0);
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
        let mut watch = hub.life().watch();
        for waker in &wakers {
            let waker = Waker::from(Shared::clone(waker));
            assert!(
                watch
                    .poll_ready(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        assert_eq!(waiting(&hub), (1, 0));
        hub.life().set_ready();
        let woken = wakers.map(|waker| waker.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 0, 1], "the newest only");
        let mut other = hub.life().watch();
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
        assert_eq!(hub.inbox().take_all().len(), 0);
        assert_eq!(waiting(&hub), (0, 0));
    }
}
