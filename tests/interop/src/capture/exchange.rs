//! The exchange of our own driver that is recorded; the scripts for other drivers say the same.
//!
//! Schema, every type in a prepared write and read, pages, conditional writes, batches, and one
//! error of each kind that a single node gives at once. The values are those that the conformance
//! tests expect.

use core::net::SocketAddr;

use anyhow::{Context as _, Result};
use messina_core::types::{
    CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint, UdtValue,
};
use messina_core::wire::Consistency;
use messina_tokio::{Session, Statement};
use uuid::Uuid;

const SCHEMA: [&str; 5] = [
    "CREATE KEYSPACE golden WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE golden.place (street text, zip int)",
    "CREATE TABLE golden.types (id int PRIMARY KEY, c_ascii ascii, c_bigint bigint, c_blob blob, \
    c_boolean boolean, c_date date, c_decimal decimal, c_double double, c_duration duration, \
    c_float float, c_inet inet, c_smallint smallint, c_text text, c_time time, \
    c_timestamp timestamp, c_timeuuid timeuuid, c_tinyint tinyint, c_uuid uuid, c_varint varint, \
    c_list list<int>, c_set set<text>, c_map map<text, int>, c_tuple tuple<int, text>, \
    c_place frozen<place>, c_vector vector<float, 3>)",
    "CREATE TABLE golden.rows (part int, num int, val text, PRIMARY KEY (part, num))",
    "CREATE TABLE golden.counts (id int PRIMARY KEY, hits counter)",
];

const INSERT: &str = "INSERT INTO golden.types (id, c_ascii, c_bigint, c_blob, c_boolean, c_date, \
    c_decimal, c_double, c_duration, c_float, c_inet, c_smallint, c_text, c_time, c_timestamp, \
    c_timeuuid, c_tinyint, c_uuid, c_varint, c_list, c_set, c_map, c_tuple, c_place, c_vector) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Has the exchange, over connections to `contact` that log in as the default role.
///
/// # Errors
/// Fails when something is answered otherwise than expected.
pub fn run(contact: SocketAddr) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let session = messina_tokio::builder()
            .contact(&contact.to_string())
            .user("cassandra", "cassandra")
            .connect()
            .await?;
        session.query("DROP KEYSPACE IF EXISTS golden", ()).await?;
        for cql in SCHEMA {
            session.query(cql, ()).await.context(cql)?;
        }
        types(&session).await?;
        pages(&session).await?;
        conditional(&session).await?;
        errors(&session).await?;
        session.close().await;
        anyhow::Ok(())
    })
}

async fn types(session: &Session) -> Result<()> {
    let insert = session.prepare(INSERT).await?;
    session.execute(&insert, values()).await?;
    let mut nothing = vec![CqlValue::Null; values().len()];
    nothing[0] = CqlValue::Int(2);
    session.execute(&insert, nothing).await?;
    let select = session
        .prepare("SELECT * FROM golden.types WHERE id = ?")
        .await?;
    for id in [1, 2] {
        session.execute(&select, (id,)).await?;
    }
    Ok(())
}

async fn pages(session: &Session) -> Result<()> {
    let insert = session
        .prepare("INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?)")
        .await?;
    for num in 1..=3 {
        session
            .execute(&insert, (1, num, format!("v{num}")))
            .await?;
    }
    let select = session
        .prepare("SELECT part, num, val FROM golden.rows WHERE part = ?")
        .await?
        .with_page_size(2);
    let mut pages = session.pages(&select, (1,))?;
    while pages.next_page().await?.is_some() {}
    Ok(())
}

async fn conditional(session: &Session) -> Result<()> {
    let insert = session
        .prepare("INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?) IF NOT EXISTS")
        .await?;
    for val in ["first", "second"] {
        session.execute(&insert, (9, 1, val)).await?;
    }
    let update = session
        .prepare("UPDATE golden.rows SET val = ? WHERE part = ? AND num = ? IF val = ?")
        .await?;
    session.execute(&update, ("third", 9, 1, "none")).await?;
    Ok(())
}

async fn errors(session: &Session) -> Result<()> {
    let unavailable = "INSERT INTO golden.rows (part, num) VALUES (2, 1)";
    for statement in [
        Statement::new("SELEKT 1"),
        Statement::new("SELECT nothing FROM golden.rows"),
        Statement::new(SCHEMA[0]),
        Statement::new(SCHEMA[3]),
        Statement::new(unavailable).with_consistency(Consistency::Two),
    ] {
        let text = statement.text().to_owned();
        let error = session.query_unprepared(statement).await.err();
        error.with_context(|| format!("{text} was taken"))?;
    }
    let select = session
        .prepare("SELECT part, num, val FROM golden.rows WHERE part = ?")
        .await?;
    session
        .query("ALTER TABLE golden.rows ADD more int", ())
        .await?;
    session.execute(&select, (9,)).await?;
    Ok(())
}

/// One value of each type.
fn values() -> Vec<CqlValue> {
    let text = |value: &str| CqlValue::Text(value.to_owned());
    let int = CqlValue::Int;
    let varint = CqlVarint::from_signed_bytes(&[&[0, 0x80][..], &[0; 15]].concat());
    vec![
        int(1),
        CqlValue::Ascii("ascii".to_owned()),
        CqlValue::BigInt(-2),
        CqlValue::Blob(vec![0, 0xff]),
        CqlValue::Boolean(true),
        CqlValue::Date(CqlDate {
            days_since_epoch: 19_782,
        }),
        CqlValue::Decimal(CqlDecimal {
            unscaled: CqlVarint::from(-150_i64),
            scale: 2,
        }),
        CqlValue::Double(0.1),
        CqlValue::Duration(CqlDuration {
            months: 1,
            days: 2,
            nanoseconds: 3,
        }),
        CqlValue::Float(1.5),
        CqlValue::Inet([127, 0, 0, 1].into()),
        CqlValue::SmallInt(-2),
        text("grün"),
        CqlValue::Time(CqlTime {
            nanoseconds: 45_296_789_012_345,
        }),
        CqlValue::Timestamp(CqlTimestamp {
            milliseconds: 1_709_210_096_789,
        }),
        CqlValue::Timeuuid(Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080)),
        CqlValue::TinyInt(-128),
        CqlValue::Uuid(Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef)),
        varint.map_or(CqlValue::Null, CqlValue::Varint),
        CqlValue::List(vec![int(1), int(-1)]),
        CqlValue::Set(vec![text("a"), text("b")]),
        CqlValue::Map(vec![(text("a"), int(1))]),
        CqlValue::Tuple(vec![int(1), text("x")]),
        CqlValue::Udt(UdtValue {
            fields: vec![("street".into(), text("Market")), ("zip".into(), int(7))],
        }),
        CqlValue::Vector([1.5, -2.0, 0.0].map(CqlValue::Float).to_vec()),
    ]
}
