//! Rows written and read. Statements are prepared once: that is where types are checked, and where the
//! driver learns which column makes the replica.

use messina_tokio::{Error, Session};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    for harbour in [("Messina", 65.0, Some(12)), ("Scilla", 8.5, None)] {
        session.execute(&insert, harbour).await?;
    }

    let select = session.prepare(SELECT).await?;
    let found = session.execute(&select, ("Messina",)).await?;
    let (name, depth, berths) = found.single_row::<(String, f64, Option<i32>)>()?;
    println!("{name}: {depth} m, {berths:?} berths");

    // Text is not copied if the row borrows it from the answer.
    let all = session.query(ALL, ()).await?;
    for row in all.rows::<(&str, f64, Option<i32>)>()? {
        let (name, depth, berths) = row?;
        println!("{name}: {depth} m, {berths:?} berths");
    }
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.harbours
    (name text PRIMARY KEY, depth double, berths int)";
const INSERT: &str = "INSERT INTO jobs.harbours (name, depth, berths) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT name, depth, berths FROM jobs.harbours WHERE name = ?";
const ALL: &str = "SELECT name, depth, berths FROM jobs.harbours";
