//! Connect, create, prepare, insert, select.
//!
//! The cluster's address comes as the first argument or in `MESSINA_CONTACT`. For a cluster to try
//! it on, run `cargo run --release -p messina-cli -- sim`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let contact = std::env::args()
        .nth(1)
        .or_else(|| std::env::var("MESSINA_CONTACT").ok());
    let contact = contact.ok_or("usage: messina-quickstart HOST[:PORT]")?;

    let session = messina_tokio::builder().contact(&contact).connect().await?;
    session
        .query(
            "CREATE KEYSPACE IF NOT EXISTS quickstart WITH replication = \
        {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
            (),
        )
        .await?;
    session
        .query(
            "CREATE TABLE IF NOT EXISTS quickstart.harbours \
        (name text PRIMARY KEY, depth double, berths int)",
            (),
        )
        .await?;
    let insert = session
        .prepare("INSERT INTO quickstart.harbours (name, depth, berths) VALUES (?, ?, ?)")
        .await?;
    session.execute(&insert, ("Messina", 65.0, 12)).await?;
    let found = session
        .query(
            "SELECT name, depth, berths FROM quickstart.harbours WHERE name = ?",
            ("Messina",),
        )
        .await?;
    for row in found.rows::<(String, f64, i32)>()? {
        println!("{:?}", row?);
    }
    Ok(())
}
