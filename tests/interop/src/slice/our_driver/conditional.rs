//! Conditional writes, prepared and not: whether they were applied, and what stood there before.
//!
//! Cassandra answers `[applied]` alone when a condition held, and the columns in question with it
//! when not, so the columns of one statement differ from answer to answer and PREPARED names none.

use anyhow::{Context as _, Result, ensure};
use messina_core::types::CqlValue;
use messina_core::wire::SerialConsistency;
use messina_tokio::{QueryResult, Session};

const CREATE: &str = "CREATE TABLE driver.conditional (id int PRIMARY KEY, name text, age int)";
const INSERT: &str =
    "INSERT INTO driver.conditional (id, name, age) VALUES (?, ?, ?) IF NOT EXISTS";
const UPDATE: &str = "UPDATE driver.conditional SET name = ? WHERE id = ? IF age = ?";
const DELETE: &str = "DELETE FROM driver.conditional WHERE id = ? IF EXISTS";

pub(super) async fn run(session: Session) -> Result<String> {
    session.query(CREATE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    let applied = session.execute(&insert, (1, "ann", 40)).await?;
    expect(&applied, true, &[])?;

    let before = ["id", "age", "name"];
    let refused = session.execute(&insert, (1, "bob", 50)).await?;
    expect(&refused, false, &before)?;
    let row: (bool, i32, i32, String) = refused.single_row()?;
    ensure!(row == (false, 1, 40, "ann".to_owned()), "before: {row:?}");

    // A row with a null: its column must come all the same.
    let applied = session.execute(&insert, (2, None::<&str>, 1)).await?;
    expect(&applied, true, &[])?;
    let refused = session.execute(&insert, (2, "bob", 50)).await?;
    expect(&refused, false, &before)?;
    let row: (bool, i32, i32, Option<String>) = refused.single_row()?;
    ensure!(row == (false, 2, 1, None), "before: {row:?}");

    let update = session.prepare(UPDATE).await?;
    for level in [SerialConsistency::Serial, SerialConsistency::LocalSerial] {
        let update = update.clone().with_serial_consistency(level);
        let refused = session.execute(&update, ("eve", 1, 41)).await?;
        expect(&refused, false, &["age"])?;
        let row: Vec<CqlValue> = refused.single_row()?;
        ensure!(
            row == [CqlValue::Boolean(false), CqlValue::Int(40)],
            "before: {row:?}"
        );
        let applied = session.execute(&update, ("eve", 1, 40)).await?;
        expect(&applied, true, &[])?;
    }
    let nothing = session.execute(&update, ("eve", 99, 1)).await?;
    expect(&nothing, false, &[])?;

    let delete = session.prepare(DELETE).await?;
    expect(&session.execute(&delete, (1,)).await?, true, &[])?;
    expect(&session.execute(&delete, (1,)).await?, false, &[])?;
    let text = "INSERT INTO driver.conditional (id) VALUES (2) IF NOT EXISTS";
    let refused = session.query_unprepared(text).await?;
    expect(&refused, false, &before)?;
    let plain = session
        .query("SELECT id FROM driver.conditional", ())
        .await?;
    ensure!(
        plain.applied().is_none() && plain.row_count() == 1,
        "left: {plain:?}"
    );
    Ok("applied and refused, prepared and not, with what stood there before".to_owned())
}

/// Checks `[applied]` and the names of the columns behind it.
pub(super) fn expect(result: &QueryResult, applied: bool, columns: &[&str]) -> Result<()> {
    let found = result.applied().context("no [applied]")?;
    let names: Vec<&str> = result
        .columns()
        .iter()
        .map(|column| &*column.name)
        .collect();
    ensure!(
        found == applied && names[1..] == *columns,
        "[applied] is {found} with columns {names:?}"
    );
    Ok(())
}
