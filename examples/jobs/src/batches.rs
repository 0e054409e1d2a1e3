//! Several writes as one request. One partition: they are applied together at once. Several: a logged
//! batch is applied as a whole in the end, and costs the nodes more.

use messina_tokio::{Batch, Error, Session};

/// Runs the job.
pub async fn run(session: &Session) -> Result<(), Error> {
    for table in TABLES {
        session.query(table, ()).await?;
    }
    let order = session.prepare(ORDER).await?;
    let item = session.prepare(ITEM).await?;

    // One partition.
    let mut batch = Batch::unlogged();
    batch.push(&order, (7, "ann"))?;
    for (line, what) in [(1, "rope"), (2, "anchor")] {
        batch.push(&item, (7, line, what))?;
    }
    session.batch(&batch).await?;

    // Two tables: both, or neither.
    let by_customer = session.prepare(BY_CUSTOMER).await?;
    let mut batch = Batch::logged();
    batch.push(&order, (8, "bob"))?;
    batch.push(&by_customer, ("bob", 8))?;
    session.batch(&batch).await?;

    let items = session.query(ITEMS, (7,)).await?;
    for row in items.rows::<(i32, &str)>()? {
        let (line, what) = row?;
        println!("order 7, line {line}: {what}");
    }
    Ok(())
}

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS jobs.orders
        (id int, line int, what text, customer text static, PRIMARY KEY (id, line))",
    "CREATE TABLE IF NOT EXISTS jobs.orders_by_customer
        (customer text, id int, PRIMARY KEY (customer, id))",
];
const ORDER: &str = "INSERT INTO jobs.orders (id, customer) VALUES (?, ?)";
const ITEM: &str = "INSERT INTO jobs.orders (id, line, what) VALUES (?, ?, ?)";
const BY_CUSTOMER: &str = "INSERT INTO jobs.orders_by_customer (customer, id) VALUES (?, ?)";
const ITEMS: &str = "SELECT line, what FROM jobs.orders WHERE id = ?";
