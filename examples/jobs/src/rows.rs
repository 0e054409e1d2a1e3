//! Rows written and read, as structs and as tuples. Statements are prepared once: that is where types are
//! checked, and where the driver learns which column makes the replica.

use messina_tokio::{DecodeRow, EncodeRow, Error, Session};

/// Fields go by their names to the markers, and columns to the fields.
#[derive(Debug, EncodeRow, DecodeRow)]
struct Harbour<'a> {
    // Text is not copied if it is borrowed from the answer.
    name: &'a str,
    depth: f64,
    berths: Option<i32>,
}

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    let messina = Harbour {
        name: "Messina",
        depth: 65.0,
        berths: Some(12),
    };
    session.execute(&insert, messina).await?;
    // A tuple goes by the order of the markers.
    session
        .execute(&insert, ("Scilla", 8.5, None::<i32>))
        .await?;

    let select = session.prepare(SELECT).await?;
    let found = session.execute(&select, ("Messina",)).await?;
    println!("{:?}", found.single_row::<Harbour<'_>>()?);

    let all = session.query(ALL, ()).await?;
    for row in all.rows::<(&str, f64)>()? {
        let (name, depth) = row?;
        println!("{name}: {depth} m");
    }
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.harbours
    (name text PRIMARY KEY, depth double, berths int)";
const INSERT: &str = "INSERT INTO jobs.harbours (name, depth, berths) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT * FROM jobs.harbours WHERE name = ?";
const ALL: &str = "SELECT name, depth FROM jobs.harbours";
