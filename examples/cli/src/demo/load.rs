//! Requests on one table, many at a time, and where they arrived.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;
use messina_core::drive::{Prepared, QueryResult};
use messina_core::routing::Source;
use tokio::task::JoinSet;

use super::table::Table;
use super::tally::{Arrivals, Tally};
use super::world::{Nodes, World};
use crate::connect::Connected;
use crate::failure::Failure;
use crate::table_kind::Kind;

/// Keys that a table without tablets is tried with before the measured work, and any table whose
/// nodes cannot be asked for its tablets.
const FIRST_KEYS: usize = 64;

/// Keys that are looked at to see whether the driver knows all tablets.
const CHECKED_KEYS: usize = 10_000;

/// How long the driver may take to meet all tablets and to store what it was told.
const LEARN_LIMIT: Duration = Duration::from_secs(5);

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Writes the row of a key.
    Write,
    /// Reads it and compares.
    Read,
}

/// Work on one table.
#[derive(Clone, Debug)]
pub(super) struct Load {
    connected: Connected,
    nodes: Option<Nodes>,
    table: Table,
    concurrency: u16,
    progress: ProgressBar,
}

impl Load {
    pub(super) fn new(
        connected: &Connected,
        world: &World,
        table: &Table,
        concurrency: u16,
        progress: ProgressBar,
    ) -> Self {
        Self {
            connected: connected.clone(),
            nodes: world.nodes(),
            table: table.clone(),
            concurrency,
            progress,
        }
    }

    pub(super) const fn table(&self) -> &Table {
        &self.table
    }

    pub(super) const fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    pub(super) const fn progress(&self) -> &ProgressBar {
        &self.progress
    }

    pub(super) const fn concurrency(&self) -> u16 {
        self.concurrency
    }

    pub(super) fn say(&self, what: &'static str) {
        self.progress.set_message(what);
        self.progress.tick();
    }

    /// The token of a key.
    pub(super) fn token(&self, key: i64) -> Option<i64> {
        let route = self.connected.session.route(&self.table.select, (key,));
        Some(route.ok()?.token?.value())
    }

    /// Meets every tablet, and waits until the driver knows them all. The tally is that of the
    /// first meetings alone.
    pub(super) async fn learn(&self, keys: &[i64]) -> Result<Tally, Failure> {
        let first = self.one_of_each_tablet(keys);
        let tally = self.run(Work::Write, &first).await?;
        let give_up_at = Instant::now() + LEARN_LIMIT;
        let mut unknown: Vec<i64> = keys.iter().copied().take(CHECKED_KEYS).collect();
        loop {
            unknown.retain(|key| !self.is_known(*key));
            if unknown.is_empty() || Instant::now() >= give_up_at {
                break;
            }
            // Tablets not met yet, and payloads that were dropped or are still being stored.
            let some = unknown.len().min(FIRST_KEYS);
            self.run(Work::Write, &unknown[..some]).await?;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.progress.reset();
        Ok(tally)
    }

    fn one_of_each_tablet(&self, keys: &[i64]) -> Vec<i64> {
        let Some(nodes) = self
            .nodes
            .as_ref()
            .filter(|_| self.table.kind.has_tablets())
        else {
            return keys.iter().copied().take(FIRST_KEYS).collect();
        };
        let count = nodes.tablet_count(self.table.name());
        let mut chosen = vec![None; count];
        for key in keys {
            let token = self.token(*key);
            let tablet = token.and_then(|token| nodes.tablet_of(self.table.name(), token));
            if let Some(place) = tablet.and_then(|tablet| chosen.get_mut(tablet)) {
                place.get_or_insert(*key);
            }
            if chosen.iter().all(Option::is_some) {
                break;
            }
        }
        chosen.into_iter().flatten().collect()
    }

    /// Whether the driver knows where a key lives, and who leads there.
    fn is_known(&self, key: i64) -> bool {
        let Ok(route) = self.connected.session.route(&self.table.select, (key,)) else {
            return false;
        };
        let needs_leader = self.table.kind == Kind::Strong;
        route.plan.source() != Source::None && (!needs_leader || route.plan.leader().is_some())
    }

    pub(super) async fn write_and_read(&self, keys: &[i64]) -> Result<Tally, Failure> {
        let mut tally = self.run(Work::Write, keys).await?;
        tally.add(self.run(Work::Read, keys).await?);
        Ok(tally)
    }

    /// One request for each key.
    pub(super) async fn run(&self, work: Work, keys: &[i64]) -> Result<Tally, Failure> {
        let before = self.counted();
        let (keys, next) = (Arc::<[i64]>::from(keys), Arc::new(AtomicUsize::new(0)));
        let mut workers = JoinSet::new();
        for _ in 0..keys.len().min(usize::from(self.concurrency)) {
            let (load, keys, next) = (self.clone(), Arc::clone(&keys), Arc::clone(&next));
            workers.spawn(async move { load.worker(work, &keys, &next).await });
        }
        let mut tally = Tally::new();
        while let Some(ended) = workers.join_next().await {
            tally.add(ended.map_err(|error| Failure::new("bug", error.to_string()))?);
        }
        tally.nodes = before.and_then(|before| Some(self.counted()? - before));
        Ok(tally)
    }

    fn counted(&self) -> Option<Arrivals> {
        let nodes = self.nodes.as_ref()?;
        Some(Arrivals::of_nodes(nodes.counted(&self.table.full_name())))
    }

    async fn worker(&self, work: Work, keys: &[i64], next: &AtomicUsize) -> Tally {
        let mut tally = Tally::new();
        while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.request(work, *key, &mut tally).await;
            self.progress.inc(1);
        }
        tally
    }

    async fn request(&self, work: Work, key: i64, tally: &mut Tally) {
        let (statement, session) = (self.statement(work), &self.connected.session);
        let (note, weight) = row(key);
        let (route, started, outcome) = match work {
            Work::Write => {
                let values = (key, note.as_str(), weight);
                let route = session.route(statement, values);
                let started = Instant::now();
                (route, started, session.execute(statement, values).await)
            }
            Work::Read => {
                let route = session.route(statement, (key,));
                let started = Instant::now();
                (route, started, session.execute(statement, (key,)).await)
            }
        };
        let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        match (route, outcome) {
            (Ok(route), Ok(result)) => {
                tally.latency_us.saturating_record(elapsed);
                tally.driver += Arrivals::of_driver(&route, result.info());
                if work == Work::Read && !is_row(&result, &note, weight) {
                    tally.fail(Failure::new(
                        "bug",
                        format!("row {key} was not read as written"),
                    ));
                }
            }
            (Err(error), _) | (_, Err(error)) => tally.fail(self.connected.failure(&error)),
        }
    }

    const fn statement(&self, work: Work) -> &Prepared {
        match work {
            Work::Write => &self.table.insert,
            Work::Read => &self.table.select,
        }
    }
}

/// The row of a key.
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
fn row(key: i64) -> (String, f64) {
    (format!("letter {key}"), key as f64 / 4.0)
}

fn is_row(result: &QueryResult, note: &str, weight: f64) -> bool {
    result
        .single_row::<(String, f64)>()
        .is_ok_and(|row| row.0 == note && (row.1 - weight).abs() < f64::EPSILON)
}
