//! Many prepared requests at once, each row checked by what its key says it must hold.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::{sync::Arc, time::Instant};

use anyhow::{Context as _, Result, ensure};
use messina_tokio::Session;
use tokio::task::JoinSet;

use super::super::doubles::mix;

/// Rows that are written and read.
pub(super) const ROWS: usize = 10_000;

const CONCURRENCY: usize = 64;

const CREATE: &str = "CREATE TABLE driver.rows \
    (id bigint PRIMARY KEY, name text, payload blob, ratio double, tag uuid)";
const INSERT: &str =
    "INSERT INTO driver.rows (id, name, payload, ratio, tag) VALUES (?, ?, ?, ?, ?)";
const SELECT: &str = "SELECT id, name, payload, ratio, tag FROM driver.rows WHERE id = ?";

/// What a row holds, in the order of its columns; every fifth name is null, every seventh payload
/// is empty.
pub(super) type Row = (i64, Option<String>, Vec<u8>, f64, uuid::Uuid);

/// The id of a row: far apart, half of them negative.
pub(super) fn id(index: usize) -> i64 {
    mix(index as u64 + 1).cast_signed()
}

/// The only row that may be found under an id.
pub(super) fn row(id: i64) -> Row {
    let seed = mix(id.cast_unsigned() ^ 0x5ca1_ab1e);
    let name = (!seed.is_multiple_of(5)).then(|| format!("náme {seed:x} \u{1f40d}"));
    let payload = seed.to_be_bytes().repeat((seed % 7) as usize);
    let tag = uuid::Uuid::from_u64_pair(seed, mix(seed));
    (id, name, payload, seed as f64 / 3.0, tag)
}

pub(super) async fn write(session: Session) -> Result<String> {
    session.query(CREATE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    ensure!(insert.is_token_aware(), "the insert is not routed");
    let start = Instant::now();
    concurrently(ROWS, move |index| {
        let (session, insert) = (session.clone(), insert.clone());
        async move {
            session.execute(&insert, row(id(index))).await?;
            Ok(())
        }
    })
    .await?;
    Ok(rate(start))
}

pub(super) async fn read(session: Session) -> Result<String> {
    let select = session.prepare(SELECT).await?;
    let start = Instant::now();
    concurrently(ROWS, move |index| {
        let (session, select) = (session.clone(), select.clone());
        async move {
            let id = id(index);
            let result = session.execute(&select, (id,)).await?;
            let found: Row = result.single_row().with_context(|| format!("row {id}"))?;
            ensure!(found == row(id), "row {id} holds {found:?}");
            Ok(())
        }
    })
    .await?;
    Ok(format!("every row as its key says, {}", rate(start)))
}

/// Does `work` for each number below `count`, so many at once as [`CONCURRENCY`] says, and stops at
/// the first failure.
pub(super) async fn concurrently<F, W>(count: usize, work: W) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
    W: Fn(usize) -> F + Clone + Send + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers: JoinSet<Result<()>> = JoinSet::new();
    for _ in 0..CONCURRENCY.min(count) {
        let (next, work) = (Arc::clone(&next), work.clone());
        workers.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return Ok(());
                }
                work(index).await?;
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.context("a worker panicked")??;
    }
    Ok(())
}

fn rate(start: Instant) -> String {
    let seconds = start.elapsed().as_secs_f64();
    format!("{:.0} a second", ROWS as f64 / seconds.max(0.001))
}
