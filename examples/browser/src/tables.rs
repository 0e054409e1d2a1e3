//! The tables that the page plays with: two of eventually consistent tablets, one of strongly consistent ones.

use core::error::Error;
use core::net::SocketAddr;

/// The keyspace whose tablets have leaders.
pub(crate) const STRONG_KEYSPACE: &str = "bank";

/// Two of three nodes hold a row of `shop`, so that there is a node to move a tablet to; all hold one of `bank`, so
/// that a leader can die.
const STATEMENTS: [&str; 5] = [
    "CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 2} \
     AND tablets = {'initial': 16}",
    "CREATE KEYSPACE bank WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
     AND tablets = {'initial': 16} AND consistency = 'global'",
    "CREATE TABLE shop.products (id int PRIMARY KEY, name text, price decimal, stock int, tags set<text>, \
     added timestamp)",
    "CREATE TABLE shop.orders (customer int, number int, product int, paid boolean, total decimal, id uuid, \
     PRIMARY KEY (customer, number)) WITH CLUSTERING ORDER BY (number DESC)",
    "CREATE TABLE bank.accounts (id int PRIMARY KEY, owner text, balance bigint, opened date)",
];

const NAMES: [&str; 12] = [
    "anchor",
    "bollard",
    "compass",
    "deck lamp",
    "fender",
    "ferry bell",
    "halyard",
    "lantern",
    "oilskin",
    "rudder",
    "sextant",
    "signal flag",
];
const OWNERS: [&str; 8] = [
    "Ada", "Bartolo", "Cettina", "Diego", "Elena", "Fausto", "Giulia", "Ivo",
];
const TAGS: [&str; 5] = ["brass", "deck", "new", "rope", "safety"];

/// Rows of each table, and keys that the page's load uses.
pub(crate) const KEYS: i32 = 200;

/// Creates and fills them.
pub(crate) async fn make(
    contacts: &[SocketAddr],
    user: &str,
    password: &str,
) -> Result<(), Box<dyn Error>> {
    let contact = contacts.first().ok_or("no node")?.to_string();
    let session = messina_tokio::builder()
        .contact(&contact)
        .user(user, password)
        .connect()
        .await?;
    for statement in STATEMENTS {
        session.query(statement, ()).await?;
    }
    for id in 0..KEYS {
        for statement in rows(id) {
            session.query(statement.as_str(), ()).await?;
        }
    }
    session.close().await;
    Ok(())
}

/// Statements that write the rows of one key. Literals suffice: nothing here comes from outside.
fn rows(id: i32) -> Vec<String> {
    let at = usize::try_from(id).unwrap_or(0);
    let pick = |from: &[&'static str], at: usize| from[at % from.len()];
    let (name, owner) = (pick(&NAMES, at), pick(&OWNERS, at));
    let (cents, day) = (id * 37 % 9000 + 99, id % 28 + 1);
    let mut statements = vec![
        format!(
            "INSERT INTO shop.products (id, name, price, stock, tags, added) VALUES ({id}, '{name} no. {id}', \
             {}.{:02}, {}, {{'{}', '{}'}}, '2026-03-{day:02}T08:{:02}:00.000Z')",
            cents / 100,
            cents % 100,
            id * 7 % 120,
            pick(&TAGS, at),
            pick(&TAGS, at / 5 + 2),
            id % 60,
        ),
        format!(
            "INSERT INTO bank.accounts (id, owner, balance, opened) VALUES ({id}, '{owner}', {}, '2025-11-{day:02}')",
            i64::from(id) * 1_000_003 % 750_000,
        ),
    ];
    statements.extend((1..=at % 3 + 1).map(|number| {
        format!(
            "INSERT INTO shop.orders (customer, number, product, paid, total, id) VALUES ({id}, {number}, {}, {}, \
             {}.50, {})",
            (at * 5 + number) % 200,
            number % 2 == 1,
            at * 3 + number * 11,
            uuid::Uuid::from_u64_pair(0x4d65_7373_4000_8000 | (at as u64) << 20, 0x8000_0000_0000_0000 | number as u64),
        )
    }));
    statements
}
