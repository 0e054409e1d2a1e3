//! Those who make requests.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use console::style;
use messina_core::drive::Pager;
use messina_core::error::Error;
use tokio::task::JoinSet;

use super::arguments::{BenchArguments, Workload};
use super::rows::Random;
use super::schedule::Schedule;
use super::table::Table;
use super::tally::Tally;
use crate::connect::Connected;
use crate::failure::Failure;
use crate::figures::{counted, grouped, micros};

/// Requests of one kind on one table.
#[derive(Clone, Debug)]
pub(super) struct Load {
    connected: Connected,
    table: Arc<Table>,
    workload: Workload,
    seed: u64,
    concurrency: u16,
    schedule: Arc<Schedule>,
    /// Several, so that workers on different threads seldom wait for each other; and not one for
    /// each worker, since each is large.
    tallies: Arc<[Mutex<Tally>]>,
    requests: Arc<AtomicU64>,
    errors: Arc<AtomicU64>,
}

/// Tallies that workers share.
const TALLIES: usize = 16;

impl Load {
    pub(super) fn new(
        arguments: &BenchArguments,
        connected: &Connected,
        table: Table,
        schedule: &Arc<Schedule>,
    ) -> Self {
        let tallies = TALLIES.min(arguments.concurrency.into());
        Self {
            connected: connected.clone(),
            table: Arc::new(table),
            workload: arguments.workload,
            seed: arguments.seed,
            concurrency: arguments.concurrency,
            schedule: Arc::clone(schedule),
            tallies: (0..tallies).map(|_| Mutex::new(Tally::new())).collect(),
            requests: Arc::default(),
            errors: Arc::default(),
        }
    }

    /// Starts all workers; each ends when the schedule has no more turns.
    pub(super) fn spawn(&self) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        for worker in 0..self.concurrency {
            let load = self.clone();
            workers.spawn(async move {
                match load.workload {
                    Workload::Scan => load.scan(worker).await,
                    _ => load.ask(worker).await,
                }
            });
        }
        workers
    }

    /// Requests that have ended.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// What all workers have counted.
    pub(super) fn tally(&self) -> Tally {
        let mut sum = Tally::new();
        for tally in &*self.tallies {
            sum.add(&tally.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }

    /// Figures of a line.
    pub(super) fn live(&self, elapsed: Duration) -> String {
        let tally = self.tally();
        let at = |quantile| micros(tally.latency_us.value_at_quantile(quantile));
        let mut line = format!(
            "{}/s  p50 {}  p99 {}",
            grouped(per_second(tally.latency_us.len(), elapsed)),
            at(0.5),
            at(0.99),
        );
        let errors = self.errors.load(Ordering::Relaxed);
        if errors > 0 {
            line.push_str(&format!("  {}", style(counted(errors, "error")).red()));
        }
        line
    }

    /// Writes and reads single rows.
    async fn ask(&self, worker: u16) {
        let mut random = Random::new(self.seed ^ u64::from(worker).rotate_left(32));
        while let Some(turn) = self.schedule.turn().await {
            let mut key = random.below(self.table.rows);
            let writes = match self.workload {
                // One after the other: as many requests as there are rows leave none out.
                Workload::Write => {
                    let at = turn.index % u64::from(self.table.rows);
                    key = u32::try_from(at).unwrap_or(0);
                    true
                }
                Workload::Mixed => random.next() >> 63 == 0,
                Workload::Read | Workload::Scan => false,
            };
            let outcome = if writes {
                self.table.write(&self.connected, key.into()).await
            } else {
                self.table.read(&self.connected, key.into()).await
            };
            let outcome = outcome.map(|result| (1, result.info().tablet_learned));
            self.record(worker, turn.due, outcome);
        }
    }

    /// Reads the whole table again and again, a page at each turn.
    async fn scan(&self, worker: u16) {
        let mut scan: Option<(Pager<'_>, u64)> = None;
        while let Some(turn) = self.schedule.turn().await {
            let outcome = self.next_page(&mut scan).await;
            if outcome.is_err() {
                scan = None;
            }
            self.record(worker, turn.due, outcome);
        }
    }

    /// The next page, of a new scan if the last one came to its end: its rows, and whether it
    /// taught the driver a tablet.
    async fn next_page<'a>(
        &'a self,
        scan: &mut Option<(Pager<'a>, u64)>,
    ) -> Result<(u64, bool), Failure> {
        let fail = |error: Error| self.connected.failure(&error);
        let (mut pager, seen) = match scan.take() {
            Some(scan) => scan,
            None => (self.table.pages(&self.connected).map_err(fail)?, 0),
        };
        // A pager that is kept has a next page.
        let Some(page) = pager.next_page().await.map_err(fail)? else {
            return Err(Failure::new("bug", "a page got lost"));
        };
        let found = self.table.check_page(&page).map_err(fail)??;
        let seen = seen + found;
        if page.paging_state().is_some() {
            *scan = Some((pager, seen));
        } else {
            self.table.check_scan(seen)?;
        }
        let count = u64::try_from(page.row_count()).unwrap_or(u64::MAX);
        Ok((count, page.info().tablet_learned))
    }

    fn record(&self, worker: u16, due: Instant, outcome: Result<(u64, bool), Failure>) {
        let latency = due.elapsed();
        self.requests.fetch_add(1, Ordering::Relaxed);
        let Some(tally) = self.tallies.get(usize::from(worker) % self.tallies.len()) else {
            return;
        };
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok((rows, taught)) => tally.answered(latency, rows, taught),
            Err(failure) => {
                tally.failed(failure);
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A row that is not as it was written, or is not there.
pub(super) fn wrong_row(message: String) -> Failure {
    Failure::new("wrong_row", message)
}

/// How many a second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure of a line"
)]
fn per_second(count: u64, elapsed: Duration) -> u64 {
    (count as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}
