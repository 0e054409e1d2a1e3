//! One execution: bind, send, read all pages.

use core::time::Duration;
use std::time::Instant;

use messina_core::drive::{Batch, Prepared, QueryResult, Statement};
use messina_core::error::Error;
use messina_core::types::{ColumnSpec, CqlValue};
use messina_core::wire::request::BatchKind;

use super::job::{self, Job};
use crate::bind;
use crate::connect::Connected;
use crate::failure::Failure;

/// What an execution brought.
#[derive(Clone, Debug, Default)]
pub(super) struct Executed {
    /// Name and type.
    pub(super) columns: Vec<(String, String)>,
    /// Empty if nobody wants to see them.
    pub(super) rows: Vec<Vec<CqlValue>>,
    pub(super) is_rows: bool,
    pub(super) row_count: u64,
    pub(super) pages: u32,
    pub(super) lwt_applied: Option<bool>,
    pub(super) warnings: Vec<String>,
    /// Index of the node that answered last.
    pub(super) node: u16,
    pub(super) shard: Option<u16>,
    pub(super) attempts: u32,
    pub(super) tablet_learned: bool,
    pub(super) schema_changed: bool,
    pub(super) latency: Duration,
    pub(super) tracing_ids: Vec<uuid::Uuid>,
}

impl Executed {
    /// Adds a page; `true` if no more are wanted.
    fn add(&mut self, page: &QueryResult, wants_rows: bool, max_rows: u64) -> Result<bool, Error> {
        let info = page.info();
        if self.pages == 0 {
            let spec = |column: &ColumnSpec| (column.name.to_string(), column.ty.to_string());
            self.columns = page.columns().iter().map(spec).collect();
            self.lwt_applied = page.applied();
            self.is_rows = page.is_rows();
            self.warnings.extend(page.keyspace_set().map(|keyspace| {
                format!("keyspace {keyspace} is set on one connection of many; use --keyspace")
            }));
        }
        let room = max_rows.saturating_sub(self.row_count);
        if wants_rows && page.is_rows() {
            let rows = page.rows::<Vec<CqlValue>>()?;
            for row in rows.take(usize::try_from(room).unwrap_or(usize::MAX)) {
                self.rows.push(row?);
            }
        }
        let count = u64::try_from(page.row_count()).unwrap_or(u64::MAX);
        self.row_count += count.min(room);
        self.pages += 1;
        for warning in page.warnings() {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        self.node = info.node.value();
        self.shard = info.shard.map(|shard| shard.value());
        // One for the execution, and one for each time a page had to be asked for again.
        self.attempts = self.attempts.max(1) + u32::from(info.attempts).saturating_sub(1);
        self.tablet_learned |= info.tablet_learned;
        self.schema_changed |= info.schema_changed;
        self.tracing_ids.extend(page.tracing_id());
        Ok(self.row_count >= max_rows)
    }
}

/// Runs executions of a job.
#[derive(Debug)]
pub(super) struct Runner {
    job: Job,
    connected: Connected,
    wants_rows: bool,
}

impl Runner {
    pub(super) fn new(job: Job, connected: Connected, wants_rows: bool) -> Self {
        Self {
            job,
            connected,
            wants_rows,
        }
    }

    pub(super) fn executions(&self) -> u64 {
        self.job.executions()
    }

    /// Runs one execution of the list.
    pub(super) async fn execute(&self, index: u64) -> Result<Executed, Failure> {
        let (statement, bind) = self.job.at(index);
        let started = Instant::now();
        let mut executed = match (self.job.batch, bind) {
            (Some(kind), _) => self.execute_batch(kind).await?,
            (None, Some(bind)) => self.execute_bound(statement, bind).await?,
            (None, None) => self.execute_text(&statement.text).await?,
        };
        executed.latency = started.elapsed();
        Ok(executed)
    }

    async fn execute_text(&self, text: &str) -> Result<Executed, Failure> {
        let session = &self.connected.session;
        let mut executed = Executed::default();
        let mut state = None;
        loop {
            let statement = self.options(Statement::new(text)).with_paging_state(state);
            let page = if self.job.is_unprepared {
                session.query_unprepared(statement).await
            } else {
                session.query(statement, ()).await
            };
            let page = page.map_err(|error| self.connected.failure(&error))?;
            let is_enough = self.add(&mut executed, &page)?;
            state = page.paging_state().cloned();
            if state.is_none() || is_enough {
                return Ok(executed);
            }
        }
    }

    /// All statements of the list as one request.
    async fn execute_batch(&self, kind: BatchKind) -> Result<Executed, Failure> {
        let fail = |error: Error| self.connected.failure(&error);
        let mut batch = Batch::new(kind);
        if self.job.is_traced {
            batch = batch.traced();
        }
        for (statement, bind) in self.job.list() {
            if self.job.is_unprepared {
                batch.push_text(statement.text.as_str()).map_err(fail)?;
            } else {
                let (prepared, values) = self.bound(statement, bind.unwrap_or("[]")).await?;
                batch.push(prepared, &values).map_err(fail)?;
            }
        }
        let page = self.connected.session.batch(&batch).await.map_err(fail)?;
        let mut executed = Executed::default();
        self.add(&mut executed, &page)?;
        Ok(executed)
    }

    /// The prepared statement, and the values for its markers.
    async fn bound<'a>(
        &self,
        statement: &'a job::Statement,
        bind: &str,
    ) -> Result<(&'a Prepared, Vec<CqlValue>), Failure> {
        let prepare = || async {
            let statement = self.options(Statement::new(statement.text.as_str()));
            let prepared = self.connected.session.prepare(statement).await;
            prepared.map_err(|error| self.connected.failure(&error))
        };
        let prepared = statement.prepared.get_or_try_init(prepare).await?;
        let is_named = self.job.is_named && bind != "[]";
        let values = bind::values(prepared.markers(), bind, is_named)?;
        Ok((prepared, values))
    }

    async fn execute_bound(
        &self,
        statement: &job::Statement,
        bind: &str,
    ) -> Result<Executed, Failure> {
        let (prepared, values) = self.bound(statement, bind).await?;
        if self.job.is_unprepared {
            return self.execute_unprepared(prepared, &values).await;
        }
        let pages = self.connected.session.pages(prepared, &values);
        let mut pages = pages.map_err(|error| self.connected.failure(&error))?;
        let mut executed = Executed::default();
        loop {
            let page = pages.next_page().await;
            let Some(page) = page.map_err(|error| self.connected.failure(&error))? else {
                return Ok(executed);
            };
            if self.add(&mut executed, &page)? {
                return Ok(executed);
            }
        }
    }

    /// By QUERY, with values.
    async fn execute_unprepared(
        &self,
        prepared: &Prepared,
        values: &[CqlValue],
    ) -> Result<Executed, Failure> {
        let session = &self.connected.session;
        let mut executed = Executed::default();
        let mut state = None;
        loop {
            let prepared = prepared.clone().with_paging_state(state);
            let page = session.execute_unprepared(&prepared, values).await;
            let page = page.map_err(|error| self.connected.failure(&error))?;
            let is_enough = self.add(&mut executed, &page)?;
            state = page.paging_state().cloned();
            if state.is_none() || is_enough {
                return Ok(executed);
            }
        }
    }

    fn options<'a>(&self, statement: Statement<'a>) -> Statement<'a> {
        if self.job.is_traced {
            statement.traced()
        } else {
            statement
        }
    }

    fn add(&self, executed: &mut Executed, page: &QueryResult) -> Result<bool, Failure> {
        let max_rows = self.job.max_rows.unwrap_or(u64::MAX);
        executed
            .add(page, self.wants_rows, max_rows)
            .map_err(|error| self.connected.failure(&error))
    }
}
