//! Carrying out planned statements.
//!
//! Order of a single-partition request: levels are checked, the partition is located, the request
//! is counted, replicas must be up, rows are read or written, the payload rule is asked.

mod aggregates;
mod batch;
mod check;
mod collections;
mod condition;
mod conversion;
mod functions;
mod key;
mod modify;
mod page;
mod position;
mod scan;
mod schema_change;
mod select;
mod views;
mod write;

pub(crate) use batch::BatchRun;
pub(crate) use schema_change::SchemaChange;
#[cfg(test)]
pub(crate) use schema_change::{Target, Verb};

use std::sync::Arc;

use bytes::Bytes;

use self::functions::{RowView, Scope};
use super::cluster::Cluster;
use super::codec::{Bound, Consistency, Writer};
use super::error::CqlError;
use super::plan::{Metadata, Operand, Plan, Prepared, check_timeout};
use super::route::Caller;
use super::schema::Column;
use super::tablets::Payload;

type Result<T> = core::result::Result<T, CqlError>;

/// How a statement is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) caller: Caller,
    pub(crate) values: Vec<Bound>,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Option<Consistency>,
    pub(crate) page_size: Option<i32>,
    pub(crate) paging_state: Option<Vec<u8>>,
    pub(crate) timestamp: Option<i64>,
}

impl Execution {
    fn levels(&self) -> modify::Levels {
        modify::Levels {
            consistency: self.consistency,
            serial: self.serial_consistency,
        }
    }
}

/// Rows, encoded as they go into the body.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) count: usize,
    pub(crate) cells: Writer,
    pub(crate) paging_state: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Void,
    SetKeyspace(String),
    SchemaChange(SchemaChange),
    Rows(Rows),
}

/// A success.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) outcome: Outcome,
    pub(crate) payload: Option<Payload>,
    pub(crate) warnings: Vec<String>,
}

impl From<Outcome> for Executed {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            payload: None,
            warnings: Vec::new(),
        }
    }
}

impl Cluster {
    pub(crate) fn execute(&mut self, prepared: &Prepared, run: Execution) -> Result<Executed> {
        let (expected, received) = (prepared.variables.len(), run.values.len());
        if expected != received {
            return Err(CqlError::Invalid(format!(
                "Invalid amount of bind variables: expected {expected} received {received}"
            )));
        }
        let run = &Execution {
            values: self.complete(prepared, &run.values, run.caller.now)?,
            ..run
        };
        let key_bound = !prepared.key_markers.is_empty();
        match &prepared.plan {
            Plan::Select(plan) => self.select(plan, run, key_bound),
            Plan::Modify(plan) => self.modify(plan, run, key_bound),
            Plan::Batch(plan) => {
                let given =
                    write::timestamp_of(plan.timestamp.as_ref(), &run.values, run.caller.now)?;
                self.batch(&BatchRun {
                    kind: plan.kind,
                    items: plan
                        .statements
                        .iter()
                        .map(|plan| (plan, run.values.as_slice()))
                        .collect(),
                    shown: plan.shown.as_ref(),
                    caller: run.caller,
                    consistency: run.consistency,
                    serial_consistency: run.serial_consistency,
                    timestamp: given.or(run.timestamp),
                })
            }
            Plan::Use(name) => {
                if self.catalogue.keyspace(name).is_none() {
                    return Err(CqlError::Invalid(format!(
                        "Keyspace '{name}' does not exist"
                    )));
                }
                Ok(Outcome::SetKeyspace(name.clone()).into())
            }
            Plan::Truncate(table) => {
                self.store.clear(&table.id);
                Ok(Outcome::Void.into())
            }
            Plan::Schema(statement, keyspace) => {
                self.change_schema(statement, keyspace.as_deref(), run.caller.now)
            }
        }
    }
}

impl Cluster {
    /// The values as a statement uses them: sets and maps in order, computed values at the end.
    pub(crate) fn complete(
        &self,
        prepared: &Prepared,
        values: &[Bound],
        now: i64,
    ) -> Result<Vec<Bound>> {
        let mut out = Vec::with_capacity(values.len() + prepared.computed.len());
        for (value, variable) in values.iter().zip(&prepared.variables) {
            out.push(match value {
                Bound::Value(bytes) if variable.ty.native().is_none() => {
                    Bound::Value(variable.ty.canonical(bytes, &variable.name)?)
                }
                Bound::Value(bytes) => {
                    variable.ty.check(bytes, &variable.name)?;
                    value.clone()
                }
                Bound::Null | Bound::Unset => value.clone(),
            });
        }
        let scope = self.scope(values, None, now);
        let computed: Result<Vec<Bound>> = prepared
            .computed
            .iter()
            .map(|expression| {
                Ok(scope
                    .evaluate(expression)?
                    .map_or(Bound::Null, Bound::Value))
            })
            .collect();
        out.extend(computed?);
        for operand in &prepared.timeouts {
            match resolve(operand, &out) {
                Bound::Value(bytes) => check_timeout(&bytes)?,
                Bound::Null => return Err(CqlError::invalid("Timeout value cannot be null")),
                Bound::Unset => {}
            }
        }
        Ok(out)
    }

    fn scope<'a>(
        &'a self,
        values: &'a [Bound],
        row: Option<&'a dyn RowView>,
        now: i64,
    ) -> Scope<'a> {
        Scope {
            values,
            row,
            now,
            seed: self.options.seed,
            uuids_made: &self.uuids_made,
        }
    }
}

/// The value of an operand.
fn resolve(operand: &Operand, values: &[Bound]) -> Bound {
    match operand {
        Operand::Fixed(bound) => bound.clone(),
        Operand::Marker(at) | Operand::Computed(at) => {
            values.get(*at).cloned().unwrap_or(Bound::Null)
        }
    }
}

/// The value of a key component, which must be there and fit its column.
fn key_value(operand: &Operand, values: &[Bound], column: &Column) -> Result<Bytes> {
    match resolve(operand, values) {
        Bound::Value(bytes) => {
            column.ty.check(&bytes, &column.name)?;
            Ok(bytes)
        }
        Bound::Null => Err(CqlError::Invalid(format!(
            "Invalid null value in condition for column {}",
            column.name
        ))),
        Bound::Unset => Err(CqlError::Invalid(format!(
            "Invalid unset value for column {}",
            column.name
        ))),
    }
}

/// An optional int operand that must be above zero.
fn positive(operand: Option<&Operand>, values: &[Bound], what: &str) -> Result<Option<u32>> {
    let Some(operand) = operand else {
        return Ok(None);
    };
    let bytes = match resolve(operand, values) {
        Bound::Value(bytes) => bytes,
        Bound::Unset => return Ok(None),
        Bound::Null => return Err(CqlError::Invalid(format!("Invalid null value of {what}"))),
    };
    let limit = <[u8; 4]>::try_from(&bytes[..])
        .map(i32::from_be_bytes)
        .unwrap_or(0);
    match u32::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(CqlError::Invalid(format!(
            "{what} must be strictly positive"
        ))),
    }
}
