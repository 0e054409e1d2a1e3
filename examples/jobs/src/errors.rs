//! What can go wrong with a request, and what a program does about it.

use core::time::Duration;

use messina_core::error::ErrorKind;
use messina_core::wire::Consistency;
use messina_tokio::{Error, Session, Statement};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    // A mistake in the statement: nothing was done, and trying again changes nothing.
    match session.prepare("SELECT nothing FROM jobs.nowhere").await {
        Err(error) => println!("mistake: {error}"),
        Ok(_) => println!("somebody has made that table"),
    }

    // Values of another type are found before anything is sent.
    session.query(TABLE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    if let Err(error) = session.execute(&insert, ("seven", "a text")).await {
        println!("does not fit: {error}");
    }

    // A limit that no answer can keep.
    let hurried = Statement::new(INSERT)
        .with_consistency(Consistency::LocalQuorum)
        .with_timeout(Duration::from_nanos(1));
    let hurried = session.prepare(hurried).await;
    let outcome = match &hurried {
        Ok(insert) => session.execute(insert, (7, "a text")).await.map(drop),
        Err(error) => Err(error.clone()),
    };
    if let Err(error) = outcome {
        println!("{}: {error}", what_to_do(&error));
    }
    Ok(())
}

/// The three questions that a program has.
fn what_to_do(error: &Error) -> &'static str {
    match error.kind() {
        // Did it happen? Write the same again only if twice is the same as once.
        _ if error.may_have_been_applied() => "look whether it was written",
        // Can it go better later? The driver has tried other nodes already.
        _ if error.is_transient() => "try again in a while",
        ErrorKind::ApiMisuse(_) | ErrorKind::Encode(_) => "mend the program",
        _ => "tell an operator",
    }
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.notes (id int PRIMARY KEY, note text)";
const INSERT: &str = "INSERT INTO jobs.notes (id, note) VALUES (?, ?)";
