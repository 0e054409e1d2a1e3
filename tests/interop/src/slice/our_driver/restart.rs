//! The node stops and starts again under load, and every error has to tell the truth about its
//! write.
//!
//! Half of the writers insert rows of their own, marked as safe to repeat: each that was
//! acknowledged must be there afterwards. The other half add to counters, which nothing may repeat:
//! afterwards a counter is at least what was acknowledged and at most that and what is in doubt.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{collections::BTreeMap, sync::Arc, time::Instant};

use anyhow::{Context as _, Result, ensure};
use messina_core::error::ErrorKind;
use messina_core::types::Counter;
use messina_tokio::{Error, Prepared, Session};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::cassandra::Cassandra;

const CREATE_ROWS: &str =
    "CREATE TABLE driver.written (writer int, number int, PRIMARY KEY (writer, number))";
const CREATE_SUMS: &str = "CREATE TABLE driver.added (writer int PRIMARY KEY, times counter)";
const INSERT: &str = "INSERT INTO driver.written (writer, number) VALUES (?, ?)";
const ADD: &str = "UPDATE driver.added SET times = times + 1 WHERE writer = ?";

const WRITERS: i32 = 64;

/// Load before the node stops and after it was reached again.
const CALM: Duration = Duration::from_secs(1);

/// The node is back: so long may the driver take to find out. Its longest pause is 10 s.
const RECOVER_WITHIN: Duration = Duration::from_secs(15);

pub(super) fn run(runtime: &Runtime, session: &Session, node: &mut Cassandra) -> Result<String> {
    let load = runtime.block_on(Load::start(session))?;
    std::thread::sleep(CALM);
    let stopped = node.stop()?;
    ensure!(!stopped.killed, "the node did not end on SIGTERM");
    node.start_again()?;
    let back = Instant::now();
    let recovered = runtime.block_on(recovered(session));
    let seconds = back.elapsed().as_secs_f64();
    std::thread::sleep(CALM);
    let tallies = runtime.block_on(load.finish())?;
    recovered.with_context(|| summary(&tallies))?;
    let checked = runtime.block_on(check(session, &tallies))?;
    Ok(format!(
        "down {:.1} s, back after {seconds:.1} s; {}; {checked}",
        stopped.seconds + node.start_seconds(),
        summary(&tallies)
    ))
}

/// Waits until a request is answered again.
async fn recovered(session: &Session) -> Result<()> {
    let start = Instant::now();
    loop {
        let Err(error) = session.query("SELECT key FROM system.local", ()).await else {
            return Ok(());
        };
        ensure!(
            start.elapsed() < RECOVER_WITHIN,
            "not reached again: {error}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What became of one writer's requests.
#[derive(Debug, Default)]
struct Tally {
    acknowledged: Vec<i32>,
    in_doubt: i64,
    not_applied: i64,
    errors: BTreeMap<String, u64>,
}

impl Tally {
    fn note(&mut self, number: i32, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => self.acknowledged.push(number),
            Err(error) => {
                match error.may_have_been_applied() {
                    true => self.in_doubt += 1,
                    false => self.not_applied += 1,
                }
                *self.errors.entry(kind(&error)).or_default() += 1;
            }
        }
    }
}

fn kind(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Server(code) => format!("{code}"),
        kind => format!("{kind:?}"),
    }
}

/// The writers.
struct Load {
    stop: Arc<AtomicBool>,
    writers: JoinSet<(i32, Tally)>,
}

impl Load {
    async fn start(session: &Session) -> Result<Self> {
        session.query(CREATE_ROWS, ()).await?;
        session.query(CREATE_SUMS, ()).await?;
        let insert = session.prepare(INSERT).await?.idempotent();
        let add = session.prepare(ADD).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let (session, stop) = (session.clone(), Arc::clone(&stop));
            let (insert, add) = (insert.clone(), add.clone());
            writers.spawn(async move {
                let mut tally = Tally::default();
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let outcome = one(&session, &insert, &add, writer, number).await;
                    let failed = outcome.is_err();
                    tally.note(number, outcome);
                    number += 1;
                    if failed {
                        // With no connection every request fails at once.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                (writer, tally)
            });
        }
        Ok(Self { stop, writers })
    }

    /// Every request must resolve, each within its time limit of 10 s.
    async fn finish(mut self) -> Result<BTreeMap<i32, Tally>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut tallies = BTreeMap::new();
        let all = async {
            while let Some(writer) = self.writers.join_next().await {
                let (writer, tally) = writer.context("a writer panicked")?;
                tallies.insert(writer, tally);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_secs(20), all)
            .await
            .context("requests that never resolve")??;
        Ok(tallies)
    }
}

async fn one(
    session: &Session,
    insert: &Prepared,
    add: &Prepared,
    writer: i32,
    number: i32,
) -> Result<(), Error> {
    if adds(writer) {
        session.execute(add, (writer,)).await?;
    } else {
        session.execute(insert, (writer, number)).await?;
    }
    Ok(())
}

const fn adds(writer: i32) -> bool {
    writer % 2 == 1
}

/// Compares what each writer was told with what the node holds.
async fn check(session: &Session, tallies: &BTreeMap<i32, Tally>) -> Result<String> {
    let rows = session
        .prepare("SELECT number FROM driver.written WHERE writer = ?")
        .await?;
    let sums = session
        .prepare("SELECT times FROM driver.added WHERE writer = ?")
        .await?;
    let (mut present, mut added) = (0, 0);
    for (&writer, tally) in tallies {
        let acknowledged = tally.acknowledged.len() as i64;
        ensure!(acknowledged > 0, "writer {writer} wrote nothing: {tally:?}");
        if adds(writer) {
            let result = session.execute(&sums, (writer,)).await?;
            let (Counter(times),) = result.single_row()?;
            ensure!(
                (acknowledged..=acknowledged + tally.in_doubt).contains(&times),
                "writer {writer} was told {acknowledged}, {} in doubt, and the node has {times}",
                tally.in_doubt
            );
            added += times;
            continue;
        }
        let mut found = Vec::new();
        let mut pager = session.pages(&rows, (writer,))?;
        while let Some(page) = pager.next_page().await? {
            for row in page.rows::<(i32,)>()? {
                found.push(row?.0);
            }
        }
        let missing = tally
            .acknowledged
            .iter()
            .find(|number| found.binary_search(number).is_err());
        ensure!(
            missing.is_none(),
            "row {missing:?} of writer {writer} is lost"
        );
        let unasked = found.len() as i64 - acknowledged;
        ensure!(
            unasked <= tally.in_doubt,
            "writer {writer}: {unasked} rows more than acknowledged, {} in doubt",
            tally.in_doubt
        );
        present += found.len();
    }
    Ok(format!("{present} rows and {added} additions agree"))
}

fn summary(tallies: &BTreeMap<i32, Tally>) -> String {
    let (mut acknowledged, mut in_doubt, mut not_applied) = (0, 0, 0);
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for tally in tallies.values() {
        acknowledged += tally.acknowledged.len();
        in_doubt += tally.in_doubt;
        not_applied += tally.not_applied;
        for (kind, count) in &tally.errors {
            *errors.entry(kind).or_default() += count;
        }
    }
    let errors: Vec<String> = errors
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!(
        "{acknowledged} acknowledged, {in_doubt} in doubt, {not_applied} not applied ({})",
        errors.join(", ")
    )
}
