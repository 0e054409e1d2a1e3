//! Connect, create, prepare, insert, select.
//!
//! The cluster's address comes as the first argument or in `MESSINA_CONTACT`. For a cluster to try
//! it on, run `cargo run --release -p messina-cli -- sim`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

#[tokio::main]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let session = messina_tokio::builder()
        .contact(&contact()?)
        .connect()
        .await?;

    session.query(KEYSPACE, ()).await?;
    session.query(TABLE, ()).await?;
    let insert = session.prepare(INSERT).await?;
    session.execute(&insert, ("Messina", 65.0, 12)).await?;

    let found = session.query(SELECT, ("Messina",)).await?;
    for row in found.rows::<(String, f64, i32)>()? {
        println!("{:?}", row?);
    }
    Ok(())
}

const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS quickstart WITH replication =
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS quickstart.harbours
    (name text PRIMARY KEY, depth double, berths int)";
const INSERT: &str = "INSERT INTO quickstart.harbours (name, depth, berths) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT name, depth, berths FROM quickstart.harbours WHERE name = ?";

fn contact() -> Result<String, &'static str> {
    let argument = std::env::args().nth(1);
    argument
        .or_else(|| std::env::var("MESSINA_CONTACT").ok())
        .ok_or("usage: messina-quickstart HOST[:PORT]")
}
