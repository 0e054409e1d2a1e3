//! The table of each kind: schema, rows one by one and in pages.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Row;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::output::check;
use crate::row::{KEY, row};
use crate::values::{Bound, type_name};
use crate::visit::{Visit, keyspace};

type Rows = Arc<Vec<Vec<Bound>>>;

/// The two statements of a table.
struct Prepared {
    insert: PreparedStatement,
    select: PreparedStatement,
}

impl Visit<'_> {
    /// Writes, reads, does both again when warm, and reads all in pages.
    pub(crate) async fn table(&self, kind: &str) {
        let count = self.options.cluster["rows"].as_u64();
        let count = count
            .or_else(|| self.part("rows").as_u64())
            .unwrap_or_default();
        let rows: Rows = Arc::new((0..count as u32).map(row).collect());
        let table = Some(kind);
        if check("schema", table, self.create_table(kind))
            .await
            .is_none()
        {
            return;
        }
        let Some(prepared) = check("prepare", table, self.prepare_rows(kind)).await else {
            return;
        };
        check("write", table, self.write(&prepared, &rows)).await;
        check("read", table, self.read_rows(&prepared, &rows)).await;
        check(
            "warm_write",
            table,
            self.counted(self.write(&prepared, &rows)),
        )
        .await;
        check(
            "warm_read",
            table,
            self.counted(self.read_rows(&prepared, &rows)),
        )
        .await;
        // A strongly consistent table answers for one partition at a time.
        if kind != "strong" {
            check("pages", table, self.pages(kind, &rows)).await;
        }
    }

    async fn create_table(&self, kind: &str) -> Result<(Value, ())> {
        self.unprepared(&self.part("keyspaces")[kind], kind).await?;
        self.unprepared(&self.part("table")["create"], kind).await?;
        let state = self.session.get_cluster_state();
        let known = state
            .get_keyspace(keyspace(kind))
            .context("it knows not the keyspace")?;
        let table = known.tables.get("rows").context("it knows not the table")?;
        let columns = table.columns.iter();
        let columns: Map<_, _> = columns
            .map(|(name, column)| (name.clone(), type_name(&column.typ).into()))
            .collect();
        let saw = json!({
            "partition_key": table.partition_key,
            "clustering_key": table.clustering_key,
            "columns": columns,
        });
        Ok((saw, ()))
    }

    async fn prepare_rows(&self, kind: &str) -> Result<(Value, Prepared)> {
        let insert = self.prepare("table", "insert", kind).await?;
        let select = self.prepare("table", "select", kind).await?;
        let mut key = insert.get_variable_pk_indexes().to_vec();
        key.sort_by_key(|part| part.sequence);
        let saw = json!({
            "insert": insert.get_variable_col_specs().len(),
            "key": key.iter().map(|part| part.index).collect::<Vec<_>>(),
            "select": select.get_variable_col_specs().len(),
        });
        Ok((saw, Prepared { insert, select }))
    }

    /// With the simulator's counters from before and after.
    async fn counted(
        &self,
        action: impl Future<Output = Result<(Value, ())>>,
    ) -> Result<(Value, ())> {
        let before = self.stats()?;
        let (mut saw, ()) = action.await?;
        saw["before"] = before;
        saw["after"] = self.stats()?;
        Ok((saw, ()))
    }

    async fn write(&self, prepared: &Prepared, rows: &Rows) -> Result<(Value, ())> {
        let all = self.concurrently(&prepared.insert, rows, async |session, insert, row| {
            let answer = session.execute_unpaged(&insert, row).await?;
            Ok((true, shard_of(answer.request_coordinator())))
        });
        Ok((all.await?.saw("written"), ()))
    }

    async fn read_rows(&self, prepared: &Prepared, rows: &Rows) -> Result<(Value, ())> {
        let all = self.concurrently(&prepared.select, rows, async |session, select, row| {
            let answer = session
                .execute_unpaged(&select, &row[..KEY])
                .await?
                .into_rows_result()?;
            let shard = shard_of(answer.request_coordinator());
            let same = answer.rows_num() == 1 && answer.single_row::<Row>()?.columns == row;
            Ok((same, shard))
        });
        Ok((all.await?.saw("same"), ()))
    }

    /// `action` for each row, as many at a time as the scenario says.
    async fn concurrently<F>(
        &self,
        statement: &PreparedStatement,
        rows: &Rows,
        action: impl Fn(Arc<Session>, PreparedStatement, Vec<Bound>) -> F + Clone + Send + 'static,
    ) -> Result<Tally>
    where
        F: Future<Output = Result<(bool, Shard)>> + Send,
    {
        let wide = self
            .part("concurrency")
            .as_u64()
            .context("no concurrency")?;
        let next = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..wide {
            let (session, statement) = (Arc::clone(&self.session), statement.clone());
            let (next, rows, action) = (Arc::clone(&next), Arc::clone(rows), action.clone());
            workers.spawn(async move {
                let mut tally = Tally::default();
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    tally.add(action(Arc::clone(&session), statement.clone(), row.clone()).await);
                }
                tally
            });
        }
        let mut sum = Tally::default();
        while let Some(tally) = workers.join_next().await {
            sum.merge(tally?);
        }
        Ok(sum)
    }

    async fn pages(&self, kind: &str, rows: &Rows) -> Result<(Value, ())> {
        let mut scan = self.prepare("table", "scan", kind).await?;
        let size = self.part("page_size").as_i64().context("no page size")?;
        scan.set_page_size(i32::try_from(size)?);
        let (mut pages, mut keys, mut longest) = (0, Vec::new(), 0);
        let mut state = PagingState::start();
        loop {
            let (page, next) = self.session.execute_single_page(&scan, (), state).await?;
            pages += 1;
            let page = page.into_rows_result()?;
            longest = longest.max(page.rows_num());
            for row in page.rows::<Row>()? {
                keys.push(format!("{:?}", row?.columns));
            }
            match next.into_paging_control_flow() {
                core::ops::ControlFlow::Continue(next) => state = next,
                core::ops::ControlFlow::Break(()) => break,
            }
        }
        let count = keys.len();
        let known: BTreeSet<_> = keys.into_iter().collect();
        let known = rows
            .iter()
            .filter(|row| known.contains(&format!("{:?}", &row[..KEY])))
            .count();
        let counted = self.prepare("table", "count", kind).await?;
        let counted = self.one(&counted, &json!([])).await?;
        let saw = json!({ "rows": count, "known": known, "pages": pages, "longest": longest,
            "count": counted[0] });
        Ok((saw, ()))
    }
}

/// A node's host id and the shard that answered; `None` where nodes have no shards.
type Shard = Option<(u128, u32)>;

fn shard_of(coordinator: &scylla::response::Coordinator) -> Shard {
    Some((coordinator.node().host_id.as_u128(), coordinator.shard()?))
}

/// What came of many executions.
#[derive(Default)]
struct Tally {
    good: usize,
    shards: BTreeSet<(u128, u32)>,
    first_error: Option<String>,
}

impl Tally {
    fn add(&mut self, result: Result<(bool, Shard)>) {
        match result {
            Ok((good, shard)) => {
                self.good += usize::from(good);
                self.shards.extend(shard);
            }
            Err(error) => {
                self.first_error.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.good += other.good;
        self.shards.extend(other.shards);
        self.first_error = self.first_error.take().or(other.first_error);
    }

    fn saw(self, name: &str) -> Value {
        let mut saw = json!({ name: self.good, "shards_reached": self.shards.len() });
        if let Some(error) = self.first_error {
            saw["first_error"] = json!(error);
        }
        saw
    }
}
