//! The requests that are measured: one table, one INSERT, one SELECT, and whether an answer is the
//! one that was asked for. Nothing here allocates per request.

use core::future::Future;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

/// Creates the keyspace; every node holds every row.
pub const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'enabled': true}";
/// Creates the table.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench.readings \
    (station bigint, at int, depth double, note text, PRIMARY KEY (station, at))";
/// Writes one row.
pub const INSERT: &str =
    "INSERT INTO bench.readings (station, at, depth, note) VALUES (?, ?, ?, ?)";
/// Reads all rows of a station.
pub const SELECT: &str = "SELECT at, depth, note FROM bench.readings WHERE station = ?";
/// The text of every row.
pub const NOTE: &str = "calm, light air from north-east";

/// Which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "all there is to measure")]
pub enum Work {
    /// One row written.
    Insert,
    /// All rows of a station read and decoded.
    Select,
}

impl Work {
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Insert, Self::Select]
            .into_iter()
            .find(|work| work.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Select => "select",
        }
    }
}

/// Which rows there are: `rows` rows at each of `stations` stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Partitions.
    pub stations: u32,
    /// Rows of each.
    pub rows: u32,
}

impl Shape {
    /// So many rows at so many stations.
    pub const fn new(stations: u32, rows: u32) -> Self {
        Self { stations, rows }
    }

    /// The row that request `number` is about. Every row comes once before any comes again.
    pub const fn row(self, number: u32) -> Row {
        Row {
            station: number % self.stations,
            at: number / self.stations % self.rows,
        }
    }

    /// All rows.
    pub const fn len(self) -> u32 {
        self.stations * self.rows
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The partition.
    pub station: u32,
    /// Its place in the partition.
    pub at: u32,
}

impl Row {
    /// What is bound for it or read of it: it tells station and place.
    pub fn values(self) -> (i64, i32, f64, &'static str) {
        let depth = f64::from(self.station) + f64::from(self.at) / 1024.0;
        (i64::from(self.station), self.at.cast_signed(), depth, NOTE)
    }
}

/// Compares the rows of an answer with those of the station it was asked for.
#[derive(Debug)]
pub struct Check {
    station: u32,
    rows: u32,
    seen: u32,
}

impl Check {
    /// For the answer about a station that holds `rows` rows.
    pub const fn new(station: u32, rows: u32) -> Self {
        Self {
            station,
            rows,
            seen: 0,
        }
    }

    /// The next row.
    pub fn row(&mut self, at: i32, depth: f64, note: &str) -> Result<()> {
        let row = Row {
            station: self.station,
            at: self.seen,
        };
        let (_, want_at, want_depth, want_note) = row.values();
        let fits = at == want_at && depth.to_bits() == want_depth.to_bits() && note == want_note;
        ensure!(fits, "asked for {row:?}, got {at}, {depth}, {note:?}");
        self.seen += 1;
        Ok(())
    }

    /// No more rows.
    pub fn end(self) -> Result<()> {
        ensure!(
            self.seen == self.rows,
            "station {}: {} rows of {}",
            self.station,
            self.seen,
            self.rows
        );
        Ok(())
    }
}

/// A driver with the two statements prepared.
pub trait Driver: Clone + Send + Sync + 'static {
    /// Makes one request and checks its answer.
    fn request(&self, work: Work, row: Row, rows: u32) -> impl Future<Output = Result<()>> + Send;
}

/// What became of the requests of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// How often each request was answered, by its number.
    pub answers: Arc<[AtomicU32]>,
}

impl Outcome {
    /// Fails unless every request was answered exactly once.
    pub fn check(&self) -> Result<()> {
        for (number, answers) in self.answers.iter().enumerate() {
            let answers = answers.load(Ordering::Relaxed);
            ensure!(
                answers == 1,
                "request {number} was answered {answers} times"
            );
        }
        Ok(())
    }
}

/// Makes `requests` requests, `in_flight` at a time. Fails with the first wrong answer.
pub async fn run(
    driver: &impl Driver,
    work: Work,
    shape: Shape,
    requests: u32,
    in_flight: u32,
) -> Result<Outcome> {
    let answers: Arc<[AtomicU32]> = (0..requests).map(|_| AtomicU32::new(0)).collect();
    let next = Arc::new(AtomicU32::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..in_flight {
        let (driver, answers, next) = (driver.clone(), Arc::clone(&answers), Arc::clone(&next));
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(answers) = answers.get(number as usize) else {
                    return Ok(());
                };
                driver
                    .request(work, shape.row(number), shape.rows)
                    .await
                    .with_context(|| format!("request {number}"))?;
                answers.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        let ended: Result<()> = ended?;
        ended?;
    }
    Ok(Outcome { answers })
}
