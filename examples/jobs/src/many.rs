//! Many writes, a bounded number of them under way: enough to keep all shards busy, and no more than the
//! cluster answers in time.

use std::time::Instant;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use messina_tokio::{Error, Session, Statement};

const WRITES: i64 = 10_000;
const UNDER_WAY: usize = 256;

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    // Written twice it is the same row: the driver may try again where it cannot know.
    let insert = session.prepare(Statement::new(INSERT).idempotent()).await?;
    let begin = Instant::now();
    stream::iter(0..WRITES)
        .map(|number| session.execute(&insert, (number, number % 97)))
        .buffer_unordered(UNDER_WAY)
        .try_for_each(async |_| Ok(()))
        .await?;
    let rate = WRITES as f64 / begin.elapsed().as_secs_f64();
    println!("{WRITES} writes, {rate:.0} each second");
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.samples (id bigint PRIMARY KEY, value bigint)";
const INSERT: &str = "INSERT INTO jobs.samples (id, value) VALUES (?, ?)";
