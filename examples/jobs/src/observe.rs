//! Where a request goes and went, what the servers say of it, and how a session is connected.

use core::time::Duration;

use messina_tokio::{Error, Session, Statement};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    session.query(TABLE, ()).await?;
    let insert = session.prepare(Statement::new(INSERT).traced()).await?;

    // Where it went.
    let result = session.execute(&insert, (7, "a text")).await?;
    let info = result.info();
    let address = session.identity(info.node).map(|(_, address)| address);
    println!(
        "answered by {address:?}, shard {:?}, attempt {}",
        info.shard, info.attempts
    );
    for warning in result.warnings() {
        println!("warning: {warning}");
    }

    // Where the same would go now: the first answer may have told who has the data.
    let route = session.route(&insert, (7, "a text"))?;
    for target in route.plan.targets() {
        let address = session.identity(target.node).map(|(_, address)| address);
        println!("would go to {address:?}, shard {:?}", target.shard);
    }

    // Nodes write traces behind their answers: asked for until the duration is there.
    if let Some(id) = result.tracing_id() {
        for _ in 0..20 {
            let trace = session.trace(id).await?;
            if let Some(duration) = trace.duration {
                println!("traced: {duration:?}, {} steps", trace.events.len());
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    for node in session.status().nodes {
        let (address, links) = (node.address, node.connections.len());
        println!(
            "{address} in {}/{}: {links} connections",
            node.dc, node.rack
        );
    }
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS jobs.notes (id int PRIMARY KEY, note text)";
const INSERT: &str = "INSERT INTO jobs.notes (id, note) VALUES (?, ?)";
