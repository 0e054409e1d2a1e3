//! Columns that come and go while prepared statements run: never a wrong value.
//!
//! On version 4 the node has no way to say that the columns of a statement changed, and on 5 one that
//! has failed nodes; so answers carry their columns each time, and these decide. After a change the node has forgotten the
//! statement; the driver gives it back under the same id.

use core::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use messina_core::error::{DecodeFailure, ErrorKind};
use messina_core::types::CqlValue;
use messina_tokio::{Prepared, QueryResult, Session};
use tokio::task::JoinSet;

const CREATE: &str = "CREATE TABLE driver.altered (id int PRIMARY KEY, name text, zip int)";
const INSERT: &str = "INSERT INTO driver.altered (id, name, zip) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT * FROM driver.altered WHERE id = ?";

/// Each comes between other columns in the order of the names, so that a decoder which goes by old
/// columns takes one for the other.
const CHANGES: [&str; 5] = [
    "ALTER TABLE driver.altered ADD m bigint",
    "ALTER TABLE driver.altered ADD middle int",
    "ALTER TABLE driver.altered DROP m",
    "ALTER TABLE driver.altered ADD nil text",
    "ALTER TABLE driver.altered DROP middle",
];

const READERS: i32 = 8;

pub(super) async fn run(session: Session) -> Result<String> {
    session.query(CREATE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    for id in 0..READERS {
        session
            .execute(&insert, (id, format!("n{id}"), -id))
            .await?;
    }
    let select = session.prepare(SELECT).await?;
    let shared = Arc::new(Shared::default());
    let mut readers = JoinSet::new();
    for id in 0..READERS {
        let (session, select, shared) = (session.clone(), select.clone(), Arc::clone(&shared));
        readers.spawn(async move { shared.read(&session, &select, id).await });
    }
    let changed = changes(&session).await;
    shared.stop.store(true, Ordering::Relaxed);
    while let Some(reader) = readers.join_next().await {
        reader.context("a reader panicked")??;
    }
    changed?;
    let settled = settled(&session, &select).await?;
    let (reads, again) = (&shared.reads, &shared.prepared_again);
    Ok(format!(
        "{} reads over {} changes, {} met a node that had forgotten; {settled}",
        reads.load(Ordering::Relaxed),
        CHANGES.len(),
        again.load(Ordering::Relaxed),
    ))
}

async fn changes(session: &Session) -> Result<()> {
    for change in CHANGES {
        tokio::time::sleep(Duration::from_millis(100)).await;
        session.query(change, ()).await.context(change)?;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

/// What the readers count.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    reads: AtomicU64,
    prepared_again: AtomicU64,
}

impl Shared {
    /// Reads one row over and over, and checks each value by the name of its column.
    async fn read(&self, session: &Session, select: &Prepared, id: i32) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let result = session.execute(select, (id,)).await?;
            check(&result, id)?;
            self.reads.fetch_add(1, Ordering::Relaxed);
            if result.info().attempts > 1 {
                self.prepared_again.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

fn check(result: &QueryResult, id: i32) -> Result<()> {
    let row: Vec<CqlValue> = result.single_row()?;
    for (column, value) in result.columns().iter().zip(&row) {
        let expected = match &*column.name {
            "id" => CqlValue::Int(id),
            "name" => CqlValue::Text(format!("n{id}")),
            "zip" => CqlValue::Int(-id),
            "m" | "middle" | "nil" => CqlValue::Null,
            other => anyhow::bail!("a column {other}"),
        };
        ensure!(
            *value == expected,
            "{} of row {id} is {value:?}, columns {:?}",
            column.name,
            result.columns()
        );
    }
    Ok(())
}

/// The old statement with the new columns: they come with the answer, and a Rust type for the old
/// ones is refused instead of misread.
async fn settled(session: &Session, select: &Prepared) -> Result<String> {
    let result = session.execute(select, (1,)).await?;
    let names: Vec<&str> = result
        .columns()
        .iter()
        .map(|column| &*column.name)
        .collect();
    ensure!(names == ["id", "name", "nil", "zip"], "columns {names:?}");
    let row: (i32, String, Option<String>, i32) = result.single_row()?;
    ensure!(row == (1, "n1".to_owned(), None, -1), "row {row:?}");
    let error = result.single_row::<(i32, String, i32)>().err();
    let error = error.context("a row of four columns became one of three")?;
    ensure!(
        error.kind() == ErrorKind::Decode(DecodeFailure::Value),
        "the error is {error:?}"
    );
    Ok(format!("then {} columns", names.len()))
}
