//! Batches of every kind: what they wrote, what they refused, and statements that the node forgot.

use anyhow::{Context as _, Result, ensure};
use messina_core::drive::Batch;
use messina_core::error::ErrorKind;
use messina_core::types::{Counter, CqlValue};
use messina_core::wire::response::ErrorCode;
use messina_tokio::{Prepared, Session};

use super::conditional::expect;

const CREATE: [&str; 3] = [
    "CREATE TABLE driver.batched (part int, num int, val text, PRIMARY KEY (part, num))",
    "CREATE TABLE driver.copied (num int PRIMARY KEY, val text)",
    "CREATE TABLE driver.tallied (id int PRIMARY KEY, hits counter)",
];
const INSERT: &str = "INSERT INTO driver.batched (part, num, val) VALUES (?, ?, ?)";
const COPY: &str = "INSERT INTO driver.copied (num, val) VALUES (?, ?)";
const COUNT: &str = "UPDATE driver.tallied SET hits = hits + ? WHERE id = ?";

/// Rows of the largest batch; the node refuses one of more than 50 KiB.
const ROWS: i32 = 1_000;

pub(super) async fn run(session: Session) -> Result<String> {
    for cql in CREATE {
        session.query(cql, ()).await?;
    }
    let trial = Trial {
        insert: session.prepare(INSERT).await?,
        copy: session.prepare(COPY).await?,
        count: session.prepare(COUNT).await?,
        session,
    };
    trial.logged().await.context("logged")?;
    trial.unlogged().await.context("unlogged")?;
    trial.counters().await.context("counter")?;
    trial.conditional().await.context("conditional")?;
    trial.forgotten().await.context("forgotten")?;
    trial.refused().await.context("refused")?;
    Ok(format!(
        "logged, unlogged of {ROWS} rows, counter, conditional; forgotten statements given back"
    ))
}

struct Trial {
    session: Session,
    insert: Prepared,
    copy: Prepared,
    count: Prepared,
}

impl Trial {
    /// Two tables, prepared and by text; an older timestamp loses against what stands there.
    async fn logged(&self) -> Result<()> {
        let mut batch = Batch::logged();
        batch.push(&self.insert, (1, 1, "one"))?;
        batch.push(&self.copy, (1, None::<&str>))?;
        batch.push_text("INSERT INTO driver.copied (num, val) VALUES (2, 'two')")?;
        let result = self.session.batch(&batch).await?;
        ensure!(
            !result.is_rows() && result.applied().is_none(),
            "rows: {result:?}"
        );
        let mut older = Batch::logged().with_timestamp(1);
        older.push(&self.insert, (1, 1, "older"))?;
        self.session.batch(&older).await?;
        ensure!(
            self.rows(1).await? == [(1, Some("one".to_owned()))],
            "not as written"
        );
        let copies = self
            .session
            .query("SELECT val FROM driver.copied", ())
            .await?;
        ensure!(copies.row_count() == 2, "{} copies", copies.row_count());
        Ok(())
    }

    async fn unlogged(&self) -> Result<()> {
        let mut batch = Batch::unlogged();
        for num in 0..ROWS {
            batch.push(&self.insert, (2, num, format!("v{num}")))?;
        }
        self.session.batch(&batch).await?;
        let rows = self.rows(2).await?;
        let expected: Vec<_> = (0..ROWS)
            .map(|num| (num, Some(format!("v{num}"))))
            .collect();
        ensure!(rows == expected, "{} rows of {ROWS}", rows.len());
        Ok(())
    }

    async fn counters(&self) -> Result<()> {
        let mut batch = Batch::counter();
        for hits in [5, -7, 1] {
            batch.push(&self.count, (Counter(hits), 1))?;
        }
        batch.push(&self.count, (Counter(i64::MIN), 2))?;
        self.session.batch(&batch).await?;
        let select = "SELECT id, hits FROM driver.tallied WHERE id IN (1, 2)";
        let result = self.session.query(select, ()).await?;
        let sums: Vec<(i32, Counter)> = result.rows()?.collect::<Result<_, _>>()?;
        ensure!(
            sums == [(1, Counter(-1)), (2, Counter(i64::MIN))],
            "sums {sums:?}"
        );
        Ok(())
    }

    /// All or nothing within one partition, with what stood in the way.
    async fn conditional(&self) -> Result<()> {
        let once = self
            .session
            .prepare(format!("{INSERT} IF NOT EXISTS"))
            .await?;
        let mut batch = Batch::logged();
        for num in [1, 2] {
            batch.push(&once, (3, num, format!("first {num}")))?;
        }
        let applied = self.session.batch(&batch).await?;
        expect(&applied, true, &[])?;
        let mut batch = Batch::logged();
        for num in [2, 3] {
            batch.push(&once, (3, num, format!("second {num}")))?;
        }
        let refused = self.session.batch(&batch).await?;
        expect(&refused, false, &["part", "num", "val"])?;
        let row: Vec<CqlValue> = refused.single_row()?;
        let first = CqlValue::Text("first 2".to_owned());
        ensure!(
            row[1..] == [CqlValue::Int(3), CqlValue::Int(2), first],
            "in the way: {row:?}"
        );
        ensure!(self.rows(3).await?.len() == 2, "half of it was applied");
        Ok(())
    }

    /// A change of each table makes the node forget its statements; the batch names two of them.
    async fn forgotten(&self) -> Result<()> {
        for table in ["batched", "copied"] {
            let cql = format!("ALTER TABLE driver.{table} ADD more int");
            self.session.query(cql, ()).await?;
        }
        let mut batch = Batch::logged();
        batch.push(&self.insert, (4, 1, "again"))?;
        batch.push(&self.copy, (4, "again"))?;
        self.session.batch(&batch).await?;
        ensure!(
            self.rows(4).await? == [(1, Some("again".to_owned()))],
            "not as written"
        );
        Ok(())
    }

    /// What the node refuses was not applied, and the error says so.
    async fn refused(&self) -> Result<()> {
        let mut mixed = Batch::logged();
        mixed.push(&self.insert, (5, 1, "mixed"))?;
        mixed.push(&self.count, (Counter(1), 5))?;
        let mut reading = Batch::unlogged();
        reading.push_text("SELECT * FROM driver.batched")?;
        let mut large = Batch::unlogged();
        large.push(&self.insert, (5, 2, "x".repeat(60 * 1024)))?;
        large.push(&self.insert, (6, 2, "y"))?;
        for batch in [mixed, reading, large] {
            let error = self.session.batch(&batch).await.err();
            let error = error.with_context(|| format!("{batch:?} was taken"))?;
            ensure!(
                error.kind() == ErrorKind::Server(ErrorCode::Invalid)
                    && !error.may_have_been_applied(),
                "{error:?}"
            );
        }
        ensure!(self.rows(5).await?.is_empty(), "a refused batch wrote");
        let mut unfit = Batch::logged();
        ensure!(
            unfit.push(&self.insert, (1, 2)).is_err(),
            "two values for three markers"
        );
        ensure!(unfit.is_empty(), "a statement without values is left");
        Ok(())
    }

    async fn rows(&self, part: i32) -> Result<Vec<(i32, Option<String>)>> {
        let select = "SELECT num, val FROM driver.batched WHERE part = ?";
        let result = self.session.query(select, (part,)).await?;
        Ok(result.rows()?.collect::<Result<_, _>>()?)
    }
}
