//! Connect, create, prepare, insert, select.
//!
//! The cluster's address comes as the first argument or in `MESSINA_CONTACT`. For a cluster to try
//! it on, run `cargo run --release -p messina-cli -- sim`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

use messina_tokio::{DecodeRow, EncodeRow};

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
    let catania = Harbour {
        name: "Catania".to_owned(),
        depth: 12.5,
        berths: None,
    };
    session.execute(&insert, &catania).await?;

    let found = session.query(SELECT, ()).await?;
    for row in found.rows::<Harbour>()? {
        println!("{:?}", row?);
    }
    Ok(())
}

#[derive(Debug, EncodeRow, DecodeRow)]
struct Harbour {
    name: String,
    depth: f64,
    berths: Option<i32>,
}

const KEYSPACE: &str = "CREATE KEYSPACE IF NOT EXISTS quickstart WITH replication =
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS quickstart.harbours
    (name text PRIMARY KEY, depth double, berths int)";
const INSERT: &str = "INSERT INTO quickstart.harbours (name, depth, berths) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT berths, depth, name FROM quickstart.harbours";

fn contact() -> Result<String, &'static str> {
    let argument = std::env::args().nth(1);
    argument
        .or_else(|| std::env::var("MESSINA_CONTACT").ok())
        .ok_or("usage: messina-quickstart HOST[:PORT]")
}
