//! Writes with a condition, which replicas agree on: a name that is taken once, a value that is changed
//! only if it is still the one that was read.

use messina_core::wire::SerialConsistency;
use messina_tokio::{Error, Session, Statement};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    let take = session.prepare(TAKE).await?;
    for owner in ["ann", "bob"] {
        let taken = session.execute(&take, ("berth 1", owner)).await?;
        // The answer says whether it was applied, and if not, what stands there.
        println!("{owner} takes the berth: {:?}", taken.applied());
    }

    // Compare and set, until nobody was faster. Reads at a serial level see writes that are not over yet.
    let read = Statement::new(READ).with_serial_consistency(SerialConsistency::LocalSerial);
    let read = session.prepare(read).await?;
    let change = session.prepare(CHANGE).await?;
    loop {
        let found = session.execute(&read, ("berth 1",)).await?;
        let (visits,) = found.single_row::<(Option<i32>,)>()?;
        let next = visits.unwrap_or(0) + 1;
        let changed = session.execute(&change, (next, "berth 1", visits)).await?;
        if changed.applied() == Some(true) {
            println!("visits: {next}");
            return Ok(());
        }
    }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.berths
    (name text PRIMARY KEY, owner text, visits int)";
const TAKE: &str = "INSERT INTO jobs.berths (name, owner) VALUES (?, ?) IF NOT EXISTS";
const READ: &str = "SELECT visits FROM jobs.berths WHERE name = ?";
const CHANGE: &str = "UPDATE jobs.berths SET visits = ? WHERE name = ? IF visits = ?";
