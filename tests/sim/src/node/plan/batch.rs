//! Batches, textual and of opcode BATCH: which statements may stand together.

use std::sync::Arc;

use super::super::cql::{BatchKind, TextBatch};
use super::super::error::CqlError;
use super::super::schema::Table;
use super::super::value::CqlType;
use super::planner::Planner;
use super::{ModifyPlan, Operand, Plan, Result, Shown};

/// A textual batch.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    pub(crate) kind: BatchKind,
    pub(crate) statements: Vec<ModifyPlan>,
    pub(crate) timestamp: Option<Operand>,
    /// Of a conditional batch.
    pub(crate) shown: Option<Shown>,
}

impl BatchPlan {
    /// The table of all statements, if it is one.
    pub(crate) fn only_table(&self) -> Option<&Arc<Table>> {
        let (first, rest) = self.statements.split_first()?;
        rest.iter()
            .all(|plan| plan.table.id == first.table.id)
            .then_some(&first.table)
    }

    /// Judges the statements of a batch together; gives what a conditional one answers with.
    pub(crate) fn check(
        kind: BatchKind,
        statements: &[&ModifyPlan],
        timestamp_given: bool,
    ) -> Result<Option<Shown>> {
        let refuse = |text: &str| Err(CqlError::invalid(text));
        let counters = statements
            .iter()
            .filter(|plan| plan.table.is_counter())
            .count();
        let conditional = statements.iter().any(|plan| plan.condition.is_some());
        if timestamp_given {
            if conditional {
                return refuse("Cannot provide custom timestamp for conditional BATCH");
            }
            if kind == BatchKind::Counter {
                return refuse("Cannot provide custom timestamp for counter BATCH");
            }
            if counters > 0 {
                return refuse("Cannot provide custom timestamp for a BATCH containing counters");
            }
            if statements.iter().any(|plan| plan.timestamp.is_some()) {
                return refuse("Timestamp must be set either on BATCH or individual statements");
            }
        }
        if kind == BatchKind::Counter && counters < statements.len() {
            return refuse("Cannot include non-counter statement in a counter batch");
        }
        if kind == BatchKind::Logged && counters > 0 {
            return refuse("Cannot include a counter statement in a logged batch");
        }
        if counters > 0 && counters < statements.len() {
            return refuse("Counter and non-counter mutations cannot exist in the same batch");
        }
        if !conditional {
            return Ok(None);
        }
        let Some((first, rest)) = statements.split_first() else {
            return Ok(None);
        };
        if rest.iter().any(|plan| plan.table.id != first.table.id) {
            return refuse("BATCH with conditions cannot span multiple tables");
        }
        Ok(Some(Shown::of_batch(statements)))
    }
}

impl Planner<'_> {
    pub(super) fn batch(&mut self, batch: TextBatch) -> Result<Plan> {
        if batch.using.ttl.is_some() {
            return Err(CqlError::invalid(
                "Global TTL on the BATCH statement is not supported.",
            ));
        }
        let (mut timestamp, mut timeout) = (batch.using.timestamp, batch.using.timeout);
        let mut statements = Vec::with_capacity(batch.statements.len());
        let mut given = None;
        for statement in batch.statements {
            // The batch's own markers belong to the table of its first statement.
            if timestamp.is_some() || timeout.is_some() {
                let table = self.writable(&statement.table)?;
                given =
                    self.attribute(&table, timestamp.take(), "[timestamp]", &CqlType::BIGINT)?;
                self.timeout(&table, timeout.take())?;
            }
            statements.push(self.modify(statement)?);
        }
        let kind = batch.kind;
        let plans: Vec<&ModifyPlan> = statements.iter().collect();
        let shown = BatchPlan::check(kind, &plans, given.is_some())?;
        Ok(Plan::Batch(Box::new(BatchPlan {
            kind,
            statements,
            timestamp: given,
            shown,
        })))
    }
}
