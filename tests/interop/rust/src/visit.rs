//! A session and what all checks need of it.

use core::time::Duration;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Row;
use serde_json::{Map, Value, json};

use crate::options::Options;
use crate::output::{self, check};
use crate::values::{bind, shown};

/// One run through the scenario.
pub(crate) struct Visit<'a> {
    pub(crate) options: &'a Options,
    pub(crate) session: Arc<Session>,
}

impl<'a> Visit<'a> {
    pub(crate) async fn connect(options: &'a Options) -> Option<Self> {
        let session = check("connect", None, async {
            let mut builder = SessionBuilder::new()
                .known_node(&options.contact)
                .connection_timeout(Duration::from_secs(10));
            if let Some(user) = &options.user {
                let password = std::env::var("MESSINA_PASSWORD").context("no MESSINA_PASSWORD")?;
                builder = builder.user(user, password);
            }
            let session = builder.build().await?;
            Ok((awareness(&session), session))
        });
        let session = Arc::new(session.await?);
        Some(Self { options, session })
    }

    pub(crate) async fn run(&self) {
        for kind in self.options.cluster["tables"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.table(kind.as_str().unwrap_or_default()).await;
        }
        let (features, counters) = (
            self.options.cluster["features"].as_str(),
            self.options.cluster["counters"].as_str(),
        );
        if let Some(kind) = features {
            check("collections", None, self.collections(kind)).await;
            check("udt", None, self.udt(kind)).await;
            check("lwt", None, self.lwt(kind)).await;
            check("batch", None, self.batch(kind)).await;
            check("counter", None, self.counter(counters.unwrap_or(kind))).await;
            check("queries", None, self.queries(kind)).await;
            check("errors", None, self.errors(kind)).await;
        }
    }

    pub(crate) fn stats(&self) -> Result<Value> {
        output::stats(self.options.control.as_deref())
    }

    pub(crate) fn part(&self, name: &str) -> &Value {
        &self.options.scenario[name]
    }

    pub(crate) fn cql(&self, text: &Value, kind: &str) -> Result<String> {
        let text = text
            .as_str()
            .with_context(|| format!("{text} is no statement"))?;
        let counters = self.options.cluster["counters"]
            .as_str()
            .unwrap_or_default();
        let text = text.replace("{counters}", &keyspace(counters));
        Ok(text.replace("{keyspace}", &keyspace(kind)))
    }

    /// Plain statements go unprepared, as a person's would.
    pub(crate) async fn unprepared(&self, text: &Value, kind: &str) -> Result<()> {
        self.session
            .query_unpaged(self.cql(text, kind)?, ())
            .await?;
        Ok(())
    }

    pub(crate) async fn prepare(
        &self,
        part: &str,
        name: &str,
        kind: &str,
    ) -> Result<PreparedStatement> {
        let cql = self.cql(&self.part(part)[name], kind)?;
        Ok(self.session.prepare(cql).await?)
    }

    pub(crate) async fn execute(
        &self,
        statement: &PreparedStatement,
        values: &Value,
    ) -> Result<()> {
        let values = bind(statement, values)?;
        self.session.execute_unpaged(statement, values).await?;
        Ok(())
    }

    /// The rows of an answer, each a list of its columns' names and values.
    pub(crate) async fn read(
        &self,
        statement: &PreparedStatement,
        values: &Value,
    ) -> Result<Vec<Vec<(String, Value)>>> {
        let values = bind(statement, values)?;
        let answer = self.session.execute_unpaged(statement, values).await?;
        let answer = answer.into_rows_result()?;
        let names = answer
            .column_specs()
            .iter()
            .map(|spec| spec.name().to_owned());
        let names: Vec<_> = names.collect();
        let mut rows = Vec::new();
        for row in answer.rows::<Row>()? {
            let cells = row?.columns;
            let cells = cells.iter().map(|cell| shown(cell.as_ref()));
            rows.push(names.iter().cloned().zip(cells).collect());
        }
        Ok(rows)
    }

    /// The same without the names.
    pub(crate) async fn read_cells(
        &self,
        statement: &PreparedStatement,
        values: &Value,
    ) -> Result<Vec<Value>> {
        let rows = self.read(statement, values).await?;
        let cells = |row: Vec<_>| row.into_iter().map(|(_, value)| value).collect();
        Ok(rows.into_iter().map(cells).collect())
    }

    /// The only row of an answer.
    pub(crate) async fn one(&self, statement: &PreparedStatement, values: &Value) -> Result<Value> {
        let rows = self.read_cells(statement, values).await?;
        Ok(rows.into_iter().next().unwrap_or(Value::Null))
    }
}

pub(crate) fn keyspace(kind: &str) -> String {
    format!("rust_{kind}")
}

/// What the crate says of the cluster: a node with a sharder is shard aware. What it agreed on with
/// a node it does not tell, nor how many connections each pool has.
fn awareness(session: &Session) -> Value {
    let state = session.get_cluster_state();
    let nodes = state.get_nodes_info();
    let pool = |node: &Arc<scylla::cluster::Node>| {
        let sharder = node.sharder()?;
        let shards = json!({ "shards_count": sharder.nr_shards.get() });
        Some((node.address.to_string(), shards))
    };
    let pools: Map<_, _> = nodes.iter().filter_map(pool).collect();
    json!({
        "hosts": nodes.len(),
        "protocol": 4,
        "shard_aware": !pools.is_empty(),
        "pools": pools,
        "extensions": null,
    })
}
