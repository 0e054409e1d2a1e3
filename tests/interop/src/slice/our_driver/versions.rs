//! The same small session in each version of the protocol and compression, against the same node.
//!
//! What version 5 has beyond 4 is judged by the node: the keyspace of a statement by the rows that it
//! finds, the time of a statement by what has expired for it. Blobs are longer than a segment.

use anyhow::{Context as _, Result, ensure};
use messina_core::Shared;
use messina_core::config::{Config, ProtocolVersions};
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::error::{EncodeFailure, ErrorKind};
use messina_core::types::CqlValue;
use messina_core::wire::{Compression, ProtocolVersion};
use messina_tokio::{Batch, Prepared, Session, Statement};

use super::Numbers;
use crate::cassandra::Cassandra;

const LZ4: Option<Compression> = Some(Compression::Lz4);
const V4: ProtocolVersion = ProtocolVersion::V4;
const V5: ProtocolVersion = ProtocolVersion::V5;

/// Rows of the scan, all of which come in one page.
const ROWS: i32 = 5000;

/// A second in 2033, which the node takes for the present when told so.
const NOW: i32 = 2_000_000_000;

pub(super) async fn run(node: &Cassandra) -> Result<String> {
    let mut seen = Vec::new();
    for (name, versions, compression, expected) in [
        ("v4", V4.into(), None, 4),
        ("v5", V5.into(), None, 5),
        ("v5 lz4", V5.into(), LZ4, 5),
        ("auto lz4", ProtocolVersions::AUTOMATIC, LZ4, 5),
        (
            "3 to 4",
            ProtocolVersions::between(ProtocolVersion::V3, V4),
            LZ4,
            4,
        ),
        (
            "auto snappy",
            ProtocolVersions::AUTOMATIC,
            Some(Compression::Snappy),
            4,
        ),
    ] {
        let session = connect(node, versions, compression).await.context(name)?;
        let status = session.status();
        let connection = status
            .nodes
            .iter()
            .flat_map(|node| &node.connections)
            .next();
        let spoken = connection.context("no connection")?.protocol;
        ensure!(spoken == expected, "{name} speaks {spoken}");
        let keyspace = format!("version_{}", seen.len());
        check(&session, &keyspace, expected == 5)
            .await
            .context(name)?;
        session.close().await;
        seen.push(name);
    }
    Ok(format!(
        "{}: {ROWS} rows in a page, 400 kB blobs",
        seen.join(", ")
    ))
}

async fn connect(
    node: &Cassandra,
    versions: ProtocolVersions,
    compression: Option<Compression>,
) -> Result<Session> {
    let credentials = node.credentials().context("the node demands no login")?;
    let mut config = Config::server();
    config.add_contact_points(&node.address().to_string())?;
    let plain = PlainAuthenticator::new(&credentials.user, &credentials.password);
    config.authenticator = Some(Shared::new(plain));
    (config.protocol, config.compression) = (versions, compression);
    Ok(messina_tokio::connect(config).await?)
}

async fn check(session: &Session, keyspace: &str, is_5: bool) -> Result<()> {
    for cql in [
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = \
            {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ),
        format!("CREATE TABLE {keyspace}.t (k int, c int, b blob, PRIMARY KEY (k, c))"),
    ] {
        session.query(cql, ()).await?;
    }
    let insert = format!("INSERT INTO {keyspace}.t (k, c, b) VALUES (?, ?, ?)");
    let insert = session.prepare(insert).await?;
    scan(session, keyspace, &insert).await?;
    blobs(session, keyspace, &insert).await?;
    altered(session, keyspace).await?;
    let of_keyspace = Statement::new("SELECT count(*) FROM t").with_keyspace(keyspace);
    if is_5 {
        statement_in_keyspace(session, keyspace, of_keyspace).await?;
        time_of_statements(session, keyspace).await
    } else {
        let error = session.query(of_keyspace, ()).await.err();
        let kind = error.as_ref().map(messina_tokio::Error::kind);
        let refused = Some(ErrorKind::Encode(EncodeFailure::Request));
        ensure!(kind == refused, "a keyspace on version 4: {error:?}");
        Ok(())
    }
}

/// Rows by batches, then all of them in one page.
async fn scan(session: &Session, keyspace: &str, insert: &Prepared) -> Result<()> {
    let payload = |c: i32| vec![(c % 251) as u8; 40];
    let mut batch = Batch::unlogged();
    for first in (0..ROWS).step_by(500) {
        batch.clear();
        for c in first..first + 500 {
            batch.push(insert, (1, c, payload(c)))?;
        }
        session.batch(&batch).await?;
    }
    let select = format!("SELECT c, b FROM {keyspace}.t WHERE k = 1");
    let select = session.prepare(select).await?.with_page_size(ROWS);
    let page = session.execute(&select, ()).await?;
    let mut found = 0;
    for (c, row) in (0..).zip(page.rows::<(i32, Vec<u8>)>()?) {
        ensure!(row? == (c, payload(c)), "row {c}");
        found += 1;
    }
    ensure!(found == ROWS, "{found} rows");
    Ok(())
}

/// Requests and answers over several segments, some of which do not become shorter by compression.
async fn blobs(session: &Session, keyspace: &str, insert: &Prepared) -> Result<()> {
    let select = format!("SELECT b FROM {keyspace}.t WHERE k = ? AND c = ?");
    let select = session.prepare(select).await?;
    let noise = Numbers(7).bytes(400_000);
    // About the longest payload of a segment, and well above.
    let lens = [130_900, 131_000, 131_071, 131_072, 262_142, 400_000];
    for (c, len) in (0..).zip(lens) {
        for blob in [&noise[..len], &vec![c as u8; len]] {
            session.execute(insert, (2, c, blob)).await?;
            let row = session.execute(&select, (2, c)).await?;
            let (read,): (Vec<u8>,) = row.single_row()?;
            ensure!(read == blob, "a blob of {len} bytes is another");
        }
    }
    Ok(())
}

/// A prepared statement whose columns change.
async fn altered(session: &Session, keyspace: &str) -> Result<()> {
    let select = session.prepare(format!("SELECT * FROM {keyspace}.t WHERE k = 1 LIMIT 1"));
    let select = select.await?;
    for (change, columns) in [
        ("", 3),
        ("ADD a bigint", 4),
        ("ADD d text", 5),
        ("DROP a", 4),
    ] {
        if !change.is_empty() {
            let alter = format!("ALTER TABLE {keyspace}.t {change}");
            session.query(alter, ()).await?;
        }
        for _ in 0..3 {
            let result = session.execute(&select, ()).await?;
            let row: Vec<CqlValue> = result.single_row()?;
            ensure!(row.len() == columns, "{} columns after {change}", row.len());
            ensure!(row[0] == CqlValue::Int(1), "{row:?} after {change}");
            for (column, value) in result.columns().iter().zip(&row) {
                let is_new = ["a", "d"].contains(&&*column.name);
                ensure!(
                    is_new == (*value == CqlValue::Null),
                    "{}: {value:?}",
                    column.name
                );
            }
        }
    }
    Ok(())
}

/// The session has no keyspace: unqualified names are those of the statement's own.
async fn statement_in_keyspace(
    session: &Session,
    keyspace: &str,
    count: Statement<'static>,
) -> Result<()> {
    let (rows,): (i64,) = session
        .query_unprepared(count.clone())
        .await?
        .single_row()?;
    ensure!(rows == i64::from(ROWS) + 6, "{rows} rows in {keyspace}");
    let prepared = session.prepare(count).await?;
    let (again,): (i64,) = session.execute(&prepared, ()).await?.single_row()?;
    ensure!(again == rows, "{again} rows when prepared");
    let mut batch = Batch::logged().with_keyspace(keyspace);
    batch.push_text("INSERT INTO t (k, c) VALUES (3, 1)")?;
    batch.push_text("INSERT INTO t (k, c) VALUES (3, 2)")?;
    session.batch(&batch).await?;
    // The node forgets the statement; it is given back for its keyspace.
    let alter = format!("ALTER TABLE {keyspace}.t ADD e int");
    session.query(alter, ()).await?;
    let (more,): (i64,) = session.execute(&prepared, ()).await?.single_row()?;
    ensure!(more == rows + 2, "{more} rows after a batch");
    let other = session.query_unprepared("SELECT count(*) FROM t").await;
    ensure!(other.is_err(), "a table was found without a keyspace");
    Ok(())
}

/// A row that lives for a hundred seconds, looked at before and after its end.
async fn time_of_statements(session: &Session, keyspace: &str) -> Result<()> {
    let insert = format!("INSERT INTO {keyspace}.t (k, c, b) VALUES (4, ?, 0x00) USING TTL 100");
    let insert = session.prepare(insert).await?.with_now_in_seconds(NOW);
    session.execute(&insert, (1,)).await?;
    let mut batch = Batch::unlogged().with_now_in_seconds(NOW);
    batch.push(&insert, (2,))?;
    session.batch(&batch).await?;
    let select = format!("SELECT ttl(b) FROM {keyspace}.t WHERE k = 4");
    let prepared = session.prepare(select.clone()).await?;
    for (later, expected) in [(0, Some(100)), (60, Some(40)), (200, None)] {
        let now = NOW + later;
        let expected: Vec<i32> = expected.into_iter().cycle().take(2).collect();
        let text = Statement::new(select.clone()).with_now_in_seconds(now);
        for result in [
            session.query_unprepared(text).await?,
            session
                .execute(&prepared.clone().with_now_in_seconds(now), ())
                .await?,
        ] {
            let rows = result.rows::<(i32,)>()?.map(|row| Ok(row?.0));
            let rows = rows.collect::<Result<Vec<i32>>>()?;
            ensure!(rows == expected, "{rows:?} seconds left after {later}");
        }
    }
    Ok(())
}
