//! Collections, a UDT, LWTs, batches, and what must be refused.

use anyhow::{Context as _, Result};
use scylla::errors::{ExecutionError, PrepareError, RequestAttemptError};
use scylla::frame::protocol_features::ProtocolFeatures;
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::Row;
use serde_json::{Map, Value, json};

use crate::values::{bind, shown};
use crate::visit::{Visit, keyspace};

impl Visit<'_> {
    pub(crate) async fn collections(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("collections");
        self.unprepared(&part["create"], kind).await?;
        let rows = self.written_and_read("collections", kind).await?;
        let append = self.prepare("collections", "append", kind).await?;
        self.execute(&append, &part["appended"]).await?;
        let select = self.prepare("collections", "select", kind).await?;
        let appended = self.one(&select, &json!([part["appended"][3]])).await?;
        Ok((json!({ "rows": rows, "appended": appended }), ()))
    }

    pub(crate) async fn udt(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("udt");
        self.unprepared(&part["type"], kind).await?;
        self.unprepared(&part["create"], kind).await?;
        let state = self.session.get_cluster_state();
        let known = state
            .get_keyspace(keyspace(kind))
            .context("it knows not the keyspace")?;
        let known = known
            .user_defined_types
            .get("address")
            .context("it knows not the type")?;
        let fields: Vec<_> = known.field_types.iter().map(|(name, _)| &**name).collect();
        let rows = self.written_and_read("udt", kind).await?;
        Ok((json!({ "fields": fields, "rows": rows }), ()))
    }

    /// Inserts the part's rows and reads each by its id.
    async fn written_and_read(&self, part: &str, kind: &str) -> Result<Vec<Value>> {
        let insert = self.prepare(part, "insert", kind).await?;
        let select = self.prepare(part, "select", kind).await?;
        let rows = self.part(part)["rows"].as_array().context("no rows")?;
        for row in rows {
            self.execute(&insert, row).await?;
        }
        let mut read = Vec::new();
        for row in rows {
            read.push(self.one(&select, &json!([row[0]])).await?);
        }
        Ok(read)
    }

    pub(crate) async fn lwt(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("lwt");
        self.unprepared(&part["create"], kind).await?;
        let mut steps = Vec::new();
        for step in part["steps"].as_array().context("no steps")? {
            let name = step[0].as_str().context("a step without a name")?;
            let statement = self.prepare("lwt", name, kind).await?;
            let answer = self.read(&statement, &step[1]).await?;
            let previous = answer.into_iter().next().context("no row")?;
            let mut previous: Map<_, _> = previous.into_iter().collect();
            let applied = previous.remove("[applied]");
            steps.push(json!({ "applied": applied, "previous": previous }));
        }
        let select = self.prepare("lwt", "select", kind).await?;
        let row = self.one(&select, &json!([1])).await?;
        Ok((json!({ "steps": steps, "row": row }), ()))
    }

    pub(crate) async fn batch(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("batch");
        self.unprepared(&part["create"], kind).await?;
        let insert = self.prepare("batch", "insert", kind).await?;
        self.execute(&insert, &part["before"]).await?;
        for (name, batch_type) in [
            ("logged", BatchType::Logged),
            ("unlogged", BatchType::Unlogged),
        ] {
            let mut batch = Batch::new(batch_type);
            let mut values = Vec::new();
            for line in part[name].as_array().context("no batch")? {
                let statement = line[0].as_str().context("a line without a name")?;
                let statement = self.prepare("batch", statement, kind).await?;
                values.push(bind(&statement, &line[1])?);
                batch.append_statement(statement);
            }
            self.session.batch(&batch, values).await?;
        }
        Ok((
            json!({ "rows": self.rows_of("batch", 1..=3, kind).await? }),
            (),
        ))
    }

    async fn rows_of(
        &self,
        part: &str,
        keys: impl Iterator<Item = u32>,
        kind: &str,
    ) -> Result<Vec<Vec<Value>>> {
        let select = self.prepare(part, "select", kind).await?;
        let mut all = Vec::new();
        for key in keys {
            all.push(self.read_cells(&select, &json!([key])).await?);
        }
        Ok(all)
    }

    pub(crate) async fn counter(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("counter");
        self.unprepared(&part["create"], kind).await?;
        let update = self.prepare("counter", "update", kind).await?;
        for _ in 0..part["times"].as_u64().context("no times")? {
            let mut batch = Batch::new(BatchType::Counter);
            let mut values = Vec::new();
            for line in part["batch"].as_array().context("no batch")? {
                values.push(bind(&update, line)?);
                batch.append_statement(update.clone());
            }
            self.session.batch(&batch, values).await?;
        }
        let rows = self.rows_of("counter", 1..=2, kind).await?;
        let rows: Vec<_> = rows.iter().map(|rows| rows.first()).collect();
        Ok((json!({ "rows": rows }), ()))
    }

    pub(crate) async fn queries(&self, kind: &str) -> Result<(Value, ())> {
        let part = self.part("queries");
        for text in part["setup"].as_array().context("no setup")? {
            self.unprepared(text, kind).await?;
        }
        let mut saw = Map::new();
        for (name, text) in part["selects"].as_object().context("no selects")? {
            let answer = self.query(&self.cql(text, kind)?).await;
            let answer = answer.unwrap_or_else(|error| json!(format!("{error:#}")));
            saw.insert(name.clone(), answer);
        }
        Ok((Value::Object(saw), ()))
    }

    /// The columns and rows of a statement without values.
    async fn query(&self, cql: &str) -> Result<Value> {
        let answer = self
            .session
            .query_unpaged(cql, ())
            .await?
            .into_rows_result()?;
        let columns: Vec<_> = answer
            .column_specs()
            .iter()
            .map(|spec| spec.name())
            .collect();
        let mut rows = Vec::new();
        for row in answer.rows::<Row>()? {
            let cells = row?.columns;
            rows.push(
                cells
                    .iter()
                    .map(|cell| shown(cell.as_ref()))
                    .collect::<Vec<_>>(),
            );
        }
        Ok(json!({ "columns": columns, "rows": rows }))
    }

    pub(crate) async fn errors(&self, kind: &str) -> Result<(Value, ())> {
        let before = self.stats()?;
        let part = self.part("errors");
        let mut saw = Map::new();
        for (name, text) in part["statements"].as_object().context("no statements")? {
            let result = self.session.query_unpaged(self.cql(text, kind)?, ()).await;
            saw.insert(
                name.clone(),
                result.map_or_else(execution_code, |_| json!("no error")),
            );
        }
        for name in part["prepared"].as_array().context("no names")? {
            let name = name.as_str().context("no name")?;
            let text = self.cql(&part["statements"][name], kind)?;
            let result = self.session.prepare(text).await;
            let code = result.map_or_else(prepare_code, |_| json!("no error"));
            saw.insert(format!("prepare {name}"), code);
        }
        saw.insert("before".to_owned(), before);
        Ok((Value::Object(saw), ()))
    }
}

/// The CQL error code, or what came instead.
fn execution_code(error: ExecutionError) -> Value {
    match error {
        ExecutionError::LastAttemptError(attempt) => attempt_code(&attempt),
        ExecutionError::PrepareError(error) => prepare_code(error),
        other => json!(other.to_string()),
    }
}

fn prepare_code(error: PrepareError) -> Value {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt, .. } => attempt_code(&first_attempt),
        other => json!(other.to_string()),
    }
}

fn attempt_code(error: &RequestAttemptError) -> Value {
    match error {
        RequestAttemptError::DbError(error, _) => json!(error.code(&ProtocolFeatures::default())),
        other => json!(other.to_string()),
    }
}
