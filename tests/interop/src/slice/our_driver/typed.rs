//! Values of Rust types through the typed traits, against the same columns as the dynamic ones; and
//! what is no value: counters, null and unset.

use core::fmt::Debug;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use messina_core::error::{EncodeFailure, ErrorKind};
use messina_core::types::{
    Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint,
    DecodeValue, EncodeValue, MaybeEmpty, MaybeUnset, Unset,
};
use messina_tokio::Session;
use uuid::Uuid;

pub(super) async fn run(session: Session) -> Result<String> {
    let mut both_ways = BothWays {
        session,
        columns: 0,
        values: 0,
    };
    both_ways.scalars().await?;
    both_ways.composites().await?;
    let BothWays {
        values, columns, ..
    } = both_ways;
    Ok(format!(
        "{values} values of {columns} Rust types as written"
    ))
}

struct BothWays {
    session: Session,
    columns: usize,
    values: usize,
}

impl BothWays {
    async fn scalars(&mut self) -> Result<()> {
        let v6: IpAddr = "2001:db8::1".parse()?;
        let varint = CqlVarint::from(i128::MIN);
        let decimal = |scale| CqlDecimal {
            unscaled: CqlVarint::from(-5_i64),
            scale,
        };
        self.check("boolean", &[true, false]).await?;
        self.check("tinyint", &[0, i8::MIN, i8::MAX]).await?;
        self.check("smallint", &[0, i16::MIN, i16::MAX]).await?;
        self.check("int", &[0, i32::MIN, i32::MAX]).await?;
        self.check("bigint", &[0, i64::MIN, i64::MAX]).await?;
        self.check("varint", &[0, i128::MIN, i128::MAX]).await?;
        self.check("varint", &[varint]).await?;
        self.check("float", &[0.0, f32::MIN_POSITIVE, f32::INFINITY])
            .await?;
        self.check("double", &[0.1, f64::MIN_POSITIVE, f64::NEG_INFINITY])
            .await?;
        self.check(
            "decimal",
            &[decimal(i32::MAX), decimal(0), decimal(i32::MIN)],
        )
        .await?;
        self.check("text", &[String::new(), "grün".to_owned()])
            .await?;
        self.check("ascii", &["~".to_owned()]).await?;
        self.check("blob", &[vec![], vec![0_u8, 255]]).await?;
        self.check("blob", &[bytes::Bytes::from_static(b"\xff")])
            .await?;
        self.check("uuid", &[Uuid::nil(), Uuid::max()]).await?;
        self.check(
            "timeuuid",
            &[Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080)],
        )
        .await?;
        self.check("inet", &[v6, IpAddr::V4(Ipv4Addr::BROADCAST)])
            .await?;
        let days = [0, i32::MIN, i32::MAX];
        self.check(
            "date",
            &days.map(|days_since_epoch| CqlDate { days_since_epoch }),
        )
        .await?;
        let nanoseconds = [0, 86_399_999_999_999];
        self.check(
            "time",
            &nanoseconds.map(|nanoseconds| CqlTime { nanoseconds }),
        )
        .await?;
        let milliseconds = [0, i64::MIN, i64::MAX];
        self.check(
            "timestamp",
            &milliseconds.map(|milliseconds| CqlTimestamp { milliseconds }),
        )
        .await?;
        let duration = |months, days, nanoseconds| CqlDuration {
            months,
            days,
            nanoseconds,
        };
        let durations = [
            duration(0, 0, 0),
            duration(-1, -2, -3),
            duration(i32::MAX, 0, i64::MAX),
        ];
        self.check("duration", &durations).await?;
        self.check("int", &[None, Some(7)]).await?;
        self.check("int", &[MaybeEmpty::Empty, MaybeEmpty::Value(7)])
            .await
    }

    async fn composites(&mut self) -> Result<()> {
        self.check("frozen<list<int>>", &[vec![], vec![1, -1]])
            .await?;
        let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let sets: [BTreeSet<String>; 2] = [set(&[]), set(&["b", "a"])];
        self.check("frozen<set<text>>", &sets).await?;
        let map = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), -1)]);
        self.check("frozen<map<text, int>>", &[map]).await?;
        let inner = BTreeMap::from([(String::new(), vec![0_u8])]);
        self.check(
            "map<int, frozen<map<text, blob>>>",
            &[BTreeMap::from([(7, inner)])],
        )
        .await?;
        let tuples = [
            (Some(1), Some("a".to_owned()), Some(-1_i64)),
            (None, Some(String::new()), None),
        ];
        self.check("tuple<int, text, bigint>", &tuples).await?;
        self.check("vector<float, 3>", &[vec![1.5_f32, -2.0, 0.0]])
            .await?;
        self.check("vector<text, 2>", &[vec![String::new(), "grün".to_owned()]])
            .await?;
        self.check(
            "vector<vector<float, 2>, 2>",
            &[vec![vec![1.0_f32, 2.0], vec![3.0, 4.0]]],
        )
        .await
    }

    /// Writes each value, reads it back as the same Rust type, writes what was read as a dynamic
    /// value, and compares the two as JSON of the node.
    async fn check<T>(&mut self, ty: &str, values: &[T]) -> Result<()>
    where
        T: EncodeValue + for<'a> DecodeValue<'a> + PartialEq + Debug,
    {
        let index = super::values::index_of(ty).with_context(|| format!("no column {ty}"))?;
        let insert = format!("INSERT INTO driver.values (id, c{index}) VALUES (?, ?)");
        let select = format!("SELECT c{index} FROM driver.values WHERE id = ?");
        let insert = self.session.prepare(insert).await?;
        let select = self.session.prepare(select).await?;
        for value in values {
            let context = || format!("{ty} {value:?}");
            self.session
                .execute(&insert, (-1, value))
                .await
                .with_context(context)?;
            let result = self.session.execute(&select, (-1,)).await?;
            let (read,): (T,) = result.single_row().with_context(context)?;
            ensure!(read == *value, "{ty}: wrote {value:?} and read {read:?}");

            let (dynamic, cell) = dynamic(&self.session, index, -1).await?;
            self.session
                .execute(&insert, (-2, &dynamic))
                .await
                .with_context(context)?;
            let (again, other) = self::dynamic(&self.session, index, -2).await?;
            ensure!(
                cell == other && dynamic == again,
                "{ty} {value:?}: {cell:?} as {dynamic:?}, then {other:?} as {again:?}"
            );
            self.values += 1;
        }
        self.columns += 1;
        Ok(())
    }
}

/// The value of a cell, and its bytes.
async fn dynamic(
    session: &Session,
    index: usize,
    id: i32,
) -> Result<(CqlValue, super::values::Cell)> {
    let select = format!("SELECT c{index}, c{index} AS bytes FROM driver.values WHERE id = ?");
    let select = session.prepare(select).await?;
    Ok(session.execute(&select, (id,)).await?.single_row()?)
}

pub(super) async fn counters_null_and_unset(session: Session) -> Result<String> {
    counters(&session).await?;
    null_and_unset(&session).await?;
    refused_before_sending(&session).await?;
    Ok(
        "counted to both ends; null deletes, unset keeps; what does not fit was not sent"
            .to_owned(),
    )
}

async fn counters(session: &Session) -> Result<()> {
    let create = "CREATE TABLE driver.counters (id int PRIMARY KEY, hits counter)";
    session.query(create, ()).await?;
    let add = session
        .prepare("UPDATE driver.counters SET hits = hits + ? WHERE id = ?")
        .await?;
    let select = session
        .prepare("SELECT hits FROM driver.counters WHERE id = ?")
        .await?;
    for (id, steps) in [
        (1, [i64::MAX, 0, 0]),
        (2, [i64::MIN, 1, -1]),
        (3, [5, -7, 1]),
    ] {
        for step in steps {
            session.execute(&add, (Counter(step), id)).await?;
        }
        let result = session.execute(&select, (id,)).await?;
        let (hits,): (Counter,) = result.single_row()?;
        let sum: i64 = steps.iter().sum();
        ensure!(hits == Counter(sum), "{steps:?} became {hits:?}");
        let row: Vec<CqlValue> = result.single_row()?;
        ensure!(row == [CqlValue::Counter(hits)], "{steps:?} became {row:?}");
    }
    Ok(())
}

async fn null_and_unset(session: &Session) -> Result<()> {
    let create = "CREATE TABLE driver.nulls (id int PRIMARY KEY, a int, b text, c list<int>)";
    session.query(create, ()).await?;
    let insert = session
        .prepare("INSERT INTO driver.nulls (id, a, b, c) VALUES (?, ?, ?, ?)")
        .await?;
    let select = session
        .prepare("SELECT a, b, c FROM driver.nulls WHERE id = 1")
        .await?;
    type Row = (Option<i32>, Option<String>, Option<Vec<i32>>);
    let read =
        async || -> Result<Row> { Ok(session.execute(&select, ()).await?.single_row::<Row>()?) };
    let full = (Some(1), Some("x".to_owned()), Some(vec![3]));
    session.execute(&insert, (1, 1, "x", vec![3])).await?;
    ensure!(read().await? == full, "not as written");
    session
        .execute(
            &insert,
            (1, Unset, MaybeUnset::<&str>::Unset, CqlValue::Unset),
        )
        .await?;
    ensure!(read().await? == full, "unset changed something");
    session
        .execute(&insert, (1, MaybeUnset::Set(2), None::<&str>, Unset))
        .await?;
    ensure!(
        read().await? == (Some(2), None, Some(vec![3])),
        "null deleted nothing"
    );
    // No collection is the same as an empty one.
    session
        .execute(&insert, (1, CqlValue::Null, "", Vec::<i32>::new()))
        .await?;
    ensure!(
        read().await? == (None, Some(String::new()), None),
        "an empty list is a list"
    );
    // Unset in the key: the node's refusal, not ours.
    match session.execute(&insert, (Unset, 1, "x", vec![3])).await {
        Err(error) if error.server().is_some() && !error.may_have_been_applied() => Ok(()),
        other => bail!("an unset key brought {other:?}"),
    }
}

async fn refused_before_sending(session: &Session) -> Result<()> {
    let insert = session
        .prepare("INSERT INTO driver.nulls (id, a) VALUES (?, ?)")
        .await?;
    let errors = [
        session.execute(&insert, (1,)).await.err(),
        session.execute(&insert, (1, "text")).await.err(),
        session.execute(&insert, (1_i64, 1)).await.err(),
        session
            .execute(&insert, vec![CqlValue::Int(1), CqlValue::BigInt(1)])
            .await
            .err(),
    ];
    for error in errors {
        let error = error.context("values that do not fit were sent")?;
        ensure!(
            error.kind() == ErrorKind::Encode(EncodeFailure::Value)
                && !error.may_have_been_applied(),
            "the error is {error:?}"
        );
    }
    Ok(())
}
