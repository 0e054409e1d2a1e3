//! Collections and user-defined types; null, which deletes, and unset, which leaves what is there.

use std::collections::{BTreeMap, HashSet};

use messina_tokio::types::{CqlValue, Unset};
use messina_tokio::{DecodeValue, EncodeValue, Error, Session};

/// A value of the type `yard`.
#[derive(Debug, EncodeValue, DecodeValue)]
struct Yard {
    town: String,
    year: i32,
}

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    for text in SCHEMA {
        session.query(text, ()).await?;
    }
    let insert = session.prepare(INSERT).await?;
    let flags = HashSet::from(["IT", "MT"]);
    let calls = BTreeMap::from([("Genoa", 3), ("Naples", 1)]);
    session
        .execute(
            &insert,
            ("Aurora", vec![12.5, 11.0], flags, calls, "a note"),
        )
        .await?;

    // Null deletes the note; unset leaves speeds, flags and calls as they are.
    session
        .execute(&insert, ("Aurora", Unset, Unset, Unset, None::<&str>))
        .await?;

    type Row = (
        Vec<f64>,
        HashSet<String>,
        BTreeMap<String, i32>,
        Option<String>,
    );
    let found = session.query(SELECT, ("Aurora",)).await?;
    let (speeds, flags, calls, note) = found.single_row::<Row>()?;
    println!(
        "speeds {speeds:?}, {} flags, calls {calls:?}, note {note:?}",
        flags.len()
    );

    // A value of a user-defined type, field by field; and as it comes where nobody knows its type.
    let build = session.prepare(BUILD).await?;
    let yard = Yard {
        town: String::from("Genoa"),
        year: 1998,
    };
    session.execute(&build, (yard, "Aurora")).await?;
    let built = session.query(BUILT, ("Aurora",)).await?;
    println!("built: {:?}", built.single_row::<(Yard,)>()?.0);
    println!("built: {:?}", built.single_row::<(CqlValue,)>()?.0);
    Ok(())
}

const SCHEMA: [&str; 2] = [
    "CREATE TYPE IF NOT EXISTS jobs.yard (town text, year int)",
    "CREATE TABLE IF NOT EXISTS jobs.ships (name text PRIMARY KEY, speeds list<double>,
        flags set<text>, calls map<text, int>, note text, built frozen<yard>)",
];
const INSERT: &str = "INSERT INTO jobs.ships (name, speeds, flags, calls, note)
    VALUES (?, ?, ?, ?, ?)";
const BUILD: &str = "UPDATE jobs.ships SET built = ? WHERE name = ?";
const BUILT: &str = "SELECT built FROM jobs.ships WHERE name = ?";
const SELECT: &str = "SELECT speeds, flags, calls, note FROM jobs.ships WHERE name = ?";
