//! Has the exchange that is recorded for the conformance tests, with crate scylla.
//!
//! The same statements and values as the harness's own `capture/exchange.rs`, so that the bytes of
//! two drivers can be compared. By hand: start `messina-interop capture`, run this against its
//! contact.

use core::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::PagingState;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{
    Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue,
    CqlVarint, MaybeUnset,
};
use uuid::Uuid;

const COLUMNS: &str = "id, c_ascii, c_bigint, c_blob, c_boolean, c_date, c_decimal, c_double, \
    c_duration, c_float, c_inet, c_smallint, c_text, c_time, c_timestamp, c_timeuuid, c_tinyint, \
    c_uuid, c_varint, c_list, c_set, c_map, c_tuple, c_place, c_vector";

const INSERT: &str = "INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let contact = std::env::args().nth(1).context("CONTACT is missing")?;
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::LocalOne)
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .build();
    let session = SessionBuilder::new()
        .known_node(contact)
        .user("cassandra", "cassandra")
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await?;
    types(&session).await?;
    pages(&session).await?;
    conditional(&session).await?;
    batches(&session).await?;
    let mut unavailable = Statement::new("INSERT INTO golden.rows (part, num) VALUES (2, 1)");
    unavailable.set_consistency(Consistency::Two);
    for statement in [Statement::new("SELEKT 1"), unavailable] {
        let error = session.query_unpaged(statement, ()).await.err();
        eprintln!("{}", error.context("a bad statement was taken")?);
    }
    Ok(())
}

async fn types(session: &Session) -> Result<()> {
    let values = values();
    let marks = vec!["?"; values.len()].join(", ");
    let insert = format!("INSERT INTO golden.types ({COLUMNS}) VALUES ({marks})");
    let insert = session.prepare(insert).await?;
    session.execute_unpaged(&insert, &values).await?;
    let mut nulls = vec![None; values.len()];
    nulls[0] = Some(CqlValue::Int(2));
    session.execute_unpaged(&insert, &nulls).await?;
    let mut unset = vec![MaybeUnset::Unset; values.len()];
    unset[0] = MaybeUnset::Set(CqlValue::Int(3));
    session.execute_unpaged(&insert, &unset).await?;
    let select = session
        .prepare("SELECT * FROM golden.types WHERE id = ?")
        .await?;
    session.execute_unpaged(&select, (1,)).await?;
    Ok(())
}

async fn pages(session: &Session) -> Result<()> {
    let mut select = session
        .prepare("SELECT part, num, val FROM golden.rows WHERE part = ?")
        .await?;
    select.set_page_size(2);
    let (_, first) = session
        .execute_single_page(&select, (1,), PagingState::start())
        .await?;
    if let core::ops::ControlFlow::Continue(state) = first.into_paging_control_flow() {
        session.execute_single_page(&select, (1,), state).await?;
    }
    Ok(())
}

async fn conditional(session: &Session) -> Result<()> {
    let mut insert = session.prepare(format!("{INSERT} IF NOT EXISTS")).await?;
    insert.set_serial_consistency(Some(SerialConsistency::LocalSerial));
    for val in ["first", "second"] {
        session.execute_unpaged(&insert, (5, 1, val)).await?;
    }
    Ok(())
}

async fn batches(session: &Session) -> Result<()> {
    let insert = session.prepare(INSERT).await?;
    let text = "INSERT INTO golden.rows (part, num, val) VALUES (7, 1, 'b')";
    for kind in [BatchType::Logged, BatchType::Unlogged] {
        let mut batch = Batch::new(kind);
        batch.append_statement(text);
        batch.append_statement(insert.clone());
        session.batch(&batch, ((), (7, 2, "c"))).await?;
    }
    let count = session
        .prepare("UPDATE golden.counts SET hits = hits + ? WHERE id = ?")
        .await?;
    let mut batch = Batch::new(BatchType::Counter);
    batch.append_statement(count);
    session.batch(&batch, ((Counter(5), 1),)).await?;
    Ok(())
}

/// One value of each type.
fn values() -> Vec<CqlValue> {
    let text = |value: &str| CqlValue::Text(value.to_owned());
    let int = CqlValue::Int;
    let wide = [&[0, 0x80][..], &[0; 15]].concat();
    let timeuuid = Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080);
    let place = vec![
        ("street".to_owned(), Some(text("Market"))),
        ("zip".to_owned(), Some(int(7))),
    ];
    vec![
        int(1),
        CqlValue::Ascii("ascii".to_owned()),
        CqlValue::BigInt(-2),
        CqlValue::Blob(vec![0, 0xff]),
        CqlValue::Boolean(true),
        CqlValue::Date(CqlDate((1 << 31) + 19_782)),
        CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_slice_and_exponent(
            &[0xff, 0x6a],
            2,
        )),
        CqlValue::Double(0.1),
        CqlValue::Duration(CqlDuration {
            months: 1,
            days: 2,
            nanoseconds: 3,
        }),
        CqlValue::Float(1.5),
        CqlValue::Inet(IpAddr::from([127, 0, 0, 1])),
        CqlValue::SmallInt(-2),
        text("grün"),
        CqlValue::Time(CqlTime(45_296_789_012_345)),
        CqlValue::Timestamp(CqlTimestamp(1_709_210_096_789)),
        CqlValue::Timeuuid(CqlTimeuuid::from(timeuuid)),
        CqlValue::TinyInt(-128),
        CqlValue::Uuid(Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef)),
        CqlValue::Varint(CqlVarint::from_signed_bytes_be(wide)),
        CqlValue::List(vec![int(1), int(-1)]),
        CqlValue::Set(vec![text("a"), text("b")]),
        CqlValue::Map(vec![(text("a"), int(1))]),
        CqlValue::Tuple(vec![Some(int(1)), Some(text("x"))]),
        CqlValue::UserDefinedType {
            keyspace: "golden".to_owned(),
            name: "place".to_owned(),
            fields: place,
        },
        CqlValue::Vector([1.5, -2.0, 0.0].map(CqlValue::Float).to_vec()),
    ]
}
