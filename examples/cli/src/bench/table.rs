//! The table under load: made, filled, written and read.

use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use messina_core::drive::{NodeStatus, Pager, Prepared, QueryResult, Status};
use messina_core::error::Error;
use tokio::task::JoinSet;

use super::arguments::{BenchArguments, TableName};
use super::load::wrong_row;
use super::rows::{Random, Rows};
use crate::connect::Connected;
use crate::failure::Failure;
use crate::table_kind::Kind;

/// A table that is there, and its statements.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) rows: u32,
    name: TableName,
    contents: Rows,
    /// Whether rows that were read are compared with those that were written.
    verifies: bool,
    insert: Prepared,
    select: Prepared,
    scan: Prepared,
}

impl Table {
    /// The table that the options name, made if it is not there, with its rows if they are read.
    pub(super) async fn ready(
        arguments: &BenchArguments,
        name: TableName,
        connected: &Connected,
    ) -> Result<Self, Failure> {
        if !is_there(&name, connected).await? {
            make(&name, arguments, connected).await?;
        }
        let table = Self::prepared(arguments, name, connected).await?;
        if arguments.workload.reads() && !table.has_rows(connected, arguments.seed).await? {
            return table.filled(connected, arguments.concurrency).await;
        }
        Ok(table)
    }

    async fn prepared(
        arguments: &BenchArguments,
        name: TableName,
        connected: &Connected,
    ) -> Result<Self, Failure> {
        let table = name.cql();
        let prepare = |text: String| async move {
            let prepared = connected.session.prepare(text).await;
            prepared
                .map(Prepared::idempotent)
                .map_err(|error| connected.failure(&error))
        };
        Ok(Self {
            rows: arguments.rows,
            contents: Rows::new(arguments.row_bytes),
            verifies: !arguments.no_verify,
            insert: prepare(format!("INSERT INTO {table} (k, v) VALUES (?, ?)")).await?,
            select: prepare(format!("SELECT k, v FROM {table} WHERE k = ?")).await?,
            scan: prepare(format!("SELECT k, v FROM {table}")).await?,
            name,
        })
    }

    /// Whether answers tell when a request was sent by outdated knowledge: the table has tablets,
    /// and nodes speak of them.
    pub(super) fn tells_misrouted(&self, connected: &Connected) -> bool {
        let status = connected.session.status();
        let is_it = |keyspace: &str, table: &str| {
            (keyspace, table) == (self.name.keyspace.as_str(), self.name.table.as_str())
        };
        let mut tables = status.tablets.iter();
        tables.any(|table| is_it(&table.keyspace, &table.table)) && speaks_tablets(&status)
    }

    /// Writes a row.
    pub(super) async fn write(
        &self,
        connected: &Connected,
        key: i64,
    ) -> Result<QueryResult, Failure> {
        let values = (key, self.contents.value(key));
        let written = connected.session.execute(&self.insert, values).await;
        written.map_err(|error| connected.failure(&error))
    }

    /// Reads a row, which must be as it was written.
    pub(super) async fn read(
        &self,
        connected: &Connected,
        key: i64,
    ) -> Result<QueryResult, Failure> {
        let fail = |error: Error| connected.failure(&error);
        let read = connected.session.execute(&self.select, (key,)).await;
        let read = read.map_err(fail)?;
        if !self.verifies {
            return Ok(read);
        }
        match read.maybe_row::<(i64, &[u8])>() {
            Ok(Some(row)) if self.contents.are(key, row) => Ok(read),
            Ok(Some(_)) => Err(wrong_row(format!("row {key} is not as it was written"))),
            Ok(None) => Err(wrong_row(format!("row {key} is not there"))),
            Err(error) => Err(fail(error)),
        }
    }

    /// The whole table.
    pub(super) fn pages<'a>(&'a self, connected: &'a Connected) -> Result<Pager<'a>, Error> {
        connected.session.pages(&self.scan, ())
    }

    /// Compares the rows of a page; how many of ours there were. Those beyond the rows of this
    /// load may be of an earlier one, of another size.
    pub(super) fn check_page(&self, page: &QueryResult) -> Result<Result<u64, Failure>, Error> {
        let mut ours = 0;
        if !self.verifies {
            return Ok(Ok(ours));
        }
        for row in page.rows::<(i64, &[u8])>()? {
            let row = row?;
            if !(0..i64::from(self.rows)).contains(&row.0) {
                continue;
            }
            if !self.contents.are(row.0, row) {
                let message = format!("row {} is not as it was written", row.0);
                return Ok(Err(wrong_row(message)));
            }
            ours += 1;
        }
        Ok(Ok(ours))
    }

    /// Whether a whole scan found what there is.
    pub(super) fn check_scan(&self, seen: u64) -> Result<(), Failure> {
        if self.verifies && seen != u64::from(self.rows) {
            let message = format!("a scan found {seen} of {} rows", self.rows);
            return Err(wrong_row(message));
        }
        Ok(())
    }

    /// Whether the rows seem to be there: the first, the last and some between.
    async fn has_rows(&self, connected: &Connected, seed: u64) -> Result<bool, Failure> {
        // Not the rows that the load itself begins with.
        let mut random = Random::new(!seed);
        let some = (0..LOOKED_AT).map(|_| random.below(self.rows));
        for key in [0, self.rows - 1].into_iter().chain(some) {
            match self.read(connected, key.into()).await {
                Ok(_) => {}
                Err(failure) if failure.kind() == "wrong_row" => return Ok(false),
                Err(failure) => return Err(failure),
            }
        }
        Ok(true)
    }

    /// Writes all rows; the first failure ends it.
    async fn filled(self, connected: &Connected, concurrency: u16) -> Result<Self, Failure> {
        let (table, next) = (Arc::new(self), Arc::new(AtomicU32::new(0)));
        let progress = progress_bar(table.rows);
        let mut workers = JoinSet::new();
        for _ in 0..concurrency {
            let (table, next) = (Arc::clone(&table), Arc::clone(&next));
            let (connected, progress) = (connected.clone(), progress.clone());
            workers.spawn(async move {
                loop {
                    // Wraps after four billion takers at the earliest: there are far fewer.
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    if key >= table.rows {
                        return Ok(());
                    }
                    table.write(&connected, key.into()).await?;
                    progress.inc(1);
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|error| Failure::new("bug", error.to_string()))??;
        }
        progress.finish_and_clear();
        Arc::into_inner(table).ok_or_else(|| Failure::new("bug", "the table is still being filled"))
    }
}

/// Rows that are looked at before a table is taken for filled, beside the first and the last.
const LOOKED_AT: usize = 30;

/// On standard error, if that is a terminal.
fn progress_bar(rows: u32) -> ProgressBar {
    let template = "{prefix:.bold}  {bar:24.cyan/238}  {human_pos}/{human_len} rows  {eta} left";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(rows.into())
        .with_style(style.progress_chars("━╸─"))
        .with_prefix("fill ")
}

fn speaks_tablets(status: &Status) -> bool {
    let mut connections = status.nodes.iter().flat_map(|node| &node.connections);
    connections.any(|connection| {
        let mut extensions = connection.extensions.iter();
        extensions.any(|name| name.starts_with("TABLETS"))
    })
}

/// Whether the table can be read. One with other columns is not, and will not be made either.
async fn is_there(name: &TableName, connected: &Connected) -> Result<bool, Failure> {
    let asked = format!("SELECT k, v FROM {} LIMIT 1", name.cql());
    match connected.session.prepare(asked).await {
        Ok(_) => Ok(true),
        Err(error) => match connected.failure(&error) {
            failure if failure.kind() == "invalid" => Ok(false),
            failure => Err(failure),
        },
    }
}

async fn make(
    name: &TableName,
    arguments: &BenchArguments,
    connected: &Connected,
) -> Result<(), Failure> {
    let status = connected.session.status();
    let mut keyspaces = status.cluster.keyspaces.iter();
    if !keyspaces.any(|made| *made.name == *name.keyspace) {
        make_keyspace(name, arguments.kind, &status, connected).await?;
    }
    let columns = "k bigint PRIMARY KEY, v blob";
    let cql = format!("CREATE TABLE IF NOT EXISTS {} ({columns})", name.cql());
    connected.run(&cql).await
}

/// Tries the replication that suits the cluster, then ones that a stricter cluster takes.
async fn make_keyspace(
    name: &TableName,
    kind: Option<Kind>,
    status: &Status,
    connected: &Connected,
) -> Result<(), Failure> {
    let kind = kind.unwrap_or_else(|| match speaks_tablets(status) {
        true => Kind::Eventual,
        false => Kind::Vnode,
    });
    let mut outcome = Ok(());
    for replication in replications(&status.nodes) {
        for options in kind.keyspace_options() {
            let cql = format!(
                "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {replication}{options}",
                name.keyspace_cql()
            );
            outcome = connected.run(&cql).await;
            if outcome.is_ok() {
                return Ok(());
            }
        }
    }
    outcome
}

/// Three replicas in each datacenter or as many as it has nodes; else, as many as it has racks;
/// else one.
fn replications(nodes: &[NodeStatus]) -> Vec<String> {
    let mut dcs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        dcs.entry(&node.dc).or_default().push(&node.rack);
    }
    let racks = |racks: &[&str]| {
        let mut racks = racks.to_vec();
        racks.sort_unstable();
        racks.dedup();
        racks.len()
    };
    let by_dc = |factor: &dyn Fn(&[&str]) -> usize| {
        let dcs = dcs.iter().map(|(dc, racks)| {
            let factor = factor(racks).clamp(1, 3);
            format!(", '{}': {factor}", dc.replace('\'', "''"))
        });
        format!(
            "{{'class': 'NetworkTopologyStrategy'{}}}",
            dcs.collect::<String>()
        )
    };
    let mut all = vec![
        by_dc(&|racks| racks.len()),
        by_dc(&|all| racks(all)),
        by_dc(&|_| 1),
    ];
    all.dedup();
    all
}
