//! A process that begins where the last one ended: connected to all nodes and shards at once, statements
//! prepared, tablets and leaders known.

use messina_tokio::Session;

use crate::{Failure, Place};

/// Runs the job.
pub async fn run(session: &Session, place: &Place) -> Result<(), Failure> {
    session.query(TABLE, ()).await?;
    session.prepare(SELECT).await?;
    // At the end, or now and then: at most a megabyte. No password is in it, but the texts of statements.
    let saved = session.warm_start(1 << 20);
    println!("{} bytes to begin with", saved.len());

    // The next process. Bytes that are out of date, damaged or of another cluster only cost time.
    let next = place.builder().warm_start(saved).connect().await?;
    println!("{} statements known at once", next.status().prepared);
    let select = next.prepare(SELECT).await?;
    let found = next.execute(&select, (7,)).await?;
    println!("{} rows", found.row_count());
    next.close().await;
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.notes (id int PRIMARY KEY, note text)";
const SELECT: &str = "SELECT note FROM jobs.notes WHERE id = ?";
