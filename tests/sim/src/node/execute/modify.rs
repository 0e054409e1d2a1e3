//! INSERT, UPDATE, DELETE and batches of them, with or without conditions.

use core::ops::Bound as Edge;
use std::sync::Arc;

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::codec::{Bound, Consistency, Writer};
use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::plan::{Action, If, ModifyPlan, Operand};
use super::super::route::{Caller, Request};
use super::super::store::{PartitionKey, RowChange, RowKey};
use super::super::value::boolean;
use super::select::{encode_key, prefix_range, put_clustering};
use super::{Check, Executed, Execution, Outcome, Result, Rows, check_key, key_value, resolve};

/// How far ahead USING TIMESTAMP may be.
const FUTURE_MAX_MICROS: i64 = 3 * 24 * 3600 * 1_000_000;

/// The longest TTL, 20 years.
pub(super) const TTL_MAX_SECONDS: i32 = 20 * 365 * 24 * 3600;

/// A write with all values known.
struct Write {
    key: PartitionKey,
    components: Vec<Bytes>,
    what: What,
}

enum What {
    Row(RowKey, RowChange),
    Partition {
        timestamp: i64,
    },
    Range {
        edges: (Edge<RowKey>, Edge<RowKey>),
        timestamp: i64,
    },
}

impl Cluster {
    pub(super) fn modify(
        &mut self,
        plan: &ModifyPlan,
        run: &Execution,
        key_bound: bool,
    ) -> Result<Executed> {
        let conditional = plan.condition.is_some();
        check_levels(run, conditional)?;
        let strong = self.is_strong(&plan.table);
        if strong
            && !matches!(
                run.consistency,
                Consistency::Quorum | Consistency::LocalQuorum
            )
        {
            return Err(CqlError::invalid(
                "Strongly consistent writes must use QUORUM/LOCAL_QUORUM consistency level",
            ));
        }
        // Strongly consistent and conditional writes are stamped by the server.
        let given = run.timestamp.filter(|_| !strong && !conditional);
        let default = match given {
            Some(given) => given,
            None => self.stamp(run.caller.now),
        };
        let write = resolve_write(plan, &run.values, default, run.caller.now)?;
        let request = Request {
            write: true,
            conditional,
            key_bound,
            consistency: run.consistency,
        };
        let route = self.route(&plan.table, write.key.0);
        self.classify(&plan.table, &run.caller, &route, request);
        self.check_available(&run.caller, &route, request)?;
        let outcome = match (&plan.condition, &plan.metadata) {
            (Some(condition), Some((metadata, shown))) => {
                let rows = Rows {
                    metadata: Arc::clone(metadata),
                    count: 1,
                    cells: self.apply_if(plan, condition, shown, write, run)?,
                    paging_state: None,
                };
                Outcome::Rows(rows)
            }
            _ => {
                self.apply(plan, write);
                Outcome::Void
            }
        };
        // As on a real node the write stands when this fails.
        self.check_hazard(&plan.table, &run.caller, &route, request)?;
        let payload = self.payload(&plan.table, &run.caller, &route, request);
        Ok(Executed {
            outcome,
            payload,
            warnings: Vec::new(),
        })
    }

    /// A batch: all values are judged before anything is written.
    pub(crate) fn batch(
        &mut self,
        items: &[(&ModifyPlan, &[Bound])],
        consistency: Consistency,
        timestamp: Option<i64>,
        caller: &Caller,
    ) -> Result<()> {
        let strong = items
            .iter()
            .filter(|(plan, _)| self.is_strong(&plan.table))
            .count();
        if strong > 0 && strong < items.len() {
            return Err(CqlError::invalid(
                "Cannot mix strongly consistent and eventually consistent statements in a batch",
            ));
        }
        if consistency.is_serial() {
            return Err(CqlError::invalid(
                "You must use conditional updates for serializable writes",
            ));
        }
        if items.iter().any(|(plan, _)| plan.condition.is_some()) {
            return Err(CqlError::invalid(
                "conditional batches are not supported by this node",
            ));
        }
        let default = match timestamp.filter(|_| strong == 0) {
            Some(given) => given,
            None => self.stamp(caller.now),
        };
        let writes: Result<Vec<Write>> = items
            .iter()
            .map(|(plan, values)| resolve_write(plan, values, default, caller.now))
            .collect();
        let writes = writes?;
        if strong > 0 {
            let one = |pair: &[(&ModifyPlan, &[Bound])]| pair[0].0.table.id == pair[1].0.table.id;
            let same = writes.windows(2).all(|pair| pair[0].key == pair[1].key);
            if !items.windows(2).all(one) || !same {
                return Err(CqlError::invalid(
                    "Strongly consistent batches must target a single partition of one table",
                ));
            }
        }
        for ((plan, _), write) in items.iter().zip(&writes) {
            let route = self.route(&plan.table, write.key.0);
            let request = Request {
                write: true,
                conditional: false,
                key_bound: false,
                consistency,
            };
            self.check_available(caller, &route, request)?;
        }
        for ((plan, _), write) in items.iter().zip(writes) {
            self.apply(plan, write);
        }
        Ok(())
    }

    fn apply(&mut self, plan: &ModifyPlan, write: Write) {
        let rows = self.store.table_mut(plan.table.id);
        let Write {
            key,
            components,
            what,
        } = write;
        match what {
            What::Row(row_key, change) => rows.apply(key, components, row_key, change),
            What::Partition { timestamp } => rows.delete_partition(key, components, timestamp),
            What::Range { edges, timestamp } => {
                rows.delete_range(key, components, edges, timestamp);
            }
        }
    }

    /// Tests the condition, writes if it holds, and encodes the one row of the answer.
    fn apply_if(
        &mut self,
        plan: &ModifyPlan,
        condition: &If,
        shown: &[usize],
        write: Write,
        run: &Execution,
    ) -> Result<Writer> {
        let row_key = match &write.what {
            What::Row(key, _) => key.clone(),
            _ => RowKey::new(),
        };
        let before = self.current_row(plan, &write, &row_key, run.caller.now);
        let applied = match condition {
            If::NotExists => before.is_none(),
            If::Exists => before.is_some(),
            If::Columns(filters) => {
                let mut applied = true;
                for filter in filters {
                    let column = &plan.table.columns[filter.column];
                    let check = Check::new(&filter.test, &run.values, column)?;
                    let value = before.as_ref().and_then(|row| row[filter.column].as_ref());
                    applied &= check.holds(value, &column.ty, true);
                }
                applied
            }
        };
        let mut cells = Writer::default();
        cells.value(Some(&boolean(applied)));
        for column in shown {
            cells.value(before.as_ref().and_then(|row| row[*column].as_ref()));
        }
        if applied {
            self.apply(plan, write);
        }
        Ok(cells)
    }

    fn current_row(
        &self,
        plan: &ModifyPlan,
        write: &Write,
        row_key: &RowKey,
        now: i64,
    ) -> Option<Vec<Option<Bytes>>> {
        let partition = self
            .store
            .table(&plan.table.id)?
            .partitions
            .get(&write.key)?;
        let only = (
            Edge::Included(row_key.clone()),
            Edge::Included(row_key.clone()),
        );
        let (_, row) = partition.rows(only, now).next()?;
        let key = partition
            .components
            .iter()
            .chain(row.clustering())
            .cloned()
            .map(Some);
        let cells = plan
            .table
            .regular_columns()
            .iter()
            .map(|column| row.cell(column.id));
        Some(key.chain(cells).collect())
    }
}

fn check_levels(run: &Execution, conditional: bool) -> Result<()> {
    if conditional {
        if run
            .serial_consistency
            .is_some_and(|level| !level.is_serial())
        {
            return Err(CqlError::invalid(
                "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
            ));
        }
        return Ok(());
    }
    if run.consistency.is_serial() {
        return Err(CqlError::invalid(
            "You must use conditional updates for serializable writes",
        ));
    }
    Ok(())
}

fn resolve_write(plan: &ModifyPlan, values: &[Bound], default: i64, now: i64) -> Result<Write> {
    let table = &plan.table;
    let timestamp = timestamp_of(plan.timestamp.as_ref(), values, now)?.unwrap_or(default);
    let expires = expiry_of(plan.ttl.as_ref(), values, now)?;
    let components: Result<Vec<Bytes>> = plan
        .key
        .iter()
        .zip(table.partition_columns())
        .map(|(operand, column)| key_value(operand, values, column))
        .collect();
    let components = components?;
    check_key(&components)?;
    let mut row_key = RowKey::new();
    let mut clustering = Vec::with_capacity(plan.prefix.len());
    for (operand, column) in plan.prefix.iter().zip(table.clustering_columns()) {
        let value = key_value(operand, values, column)?;
        put_clustering(&mut row_key, column, &value);
        clustering.push(value);
    }
    let key = encode_key(&components)?;
    let complete = plan.prefix.len() == table.clustering_len;
    let change = |mark, delete, cells| RowChange {
        clustering: clustering.clone(),
        timestamp,
        expires,
        mark,
        delete,
        cells,
    };
    let what = match &plan.action {
        Action::Insert(sets) => What::Row(row_key, change(true, false, cells(plan, sets, values)?)),
        Action::Update(sets) => {
            What::Row(row_key, change(false, false, cells(plan, sets, values)?))
        }
        Action::DeleteCells(columns) => {
            let cells = columns
                .iter()
                .map(|column| (table.columns[*column].id, None))
                .collect();
            What::Row(row_key, change(false, false, cells))
        }
        Action::DeleteRows if complete && table.clustering_len > 0 => {
            What::Row(row_key, change(false, true, Vec::new()))
        }
        Action::DeleteRows if plan.prefix.is_empty() && plan.range.is_empty() => {
            What::Partition { timestamp }
        }
        Action::DeleteRows => What::Range {
            edges: edges(plan, values, row_key)?,
            timestamp,
        },
    };
    Ok(Write {
        key,
        components,
        what,
    })
}

fn cells(
    plan: &ModifyPlan,
    sets: &[(usize, Operand)],
    values: &[Bound],
) -> Result<Vec<(u16, Option<Bytes>)>> {
    let mut cells = Vec::with_capacity(sets.len());
    for (at, operand) in sets {
        let column = &plan.table.columns[*at];
        match resolve(operand, values) {
            Bound::Value(bytes) => {
                column.ty.check(&bytes, &column.name)?;
                cells.push((column.id, Some(bytes)));
            }
            Bound::Null => cells.push((column.id, None)),
            Bound::Unset => {}
        }
    }
    Ok(cells)
}

/// The encoded range of a DELETE over part of a partition.
fn edges(
    plan: &ModifyPlan,
    values: &[Bound],
    prefix: RowKey,
) -> Result<(Edge<RowKey>, Edge<RowKey>)> {
    let (mut low, mut high) = prefix_range(&prefix);
    let Some(column) = plan.table.clustering_columns().get(plan.prefix.len()) else {
        return Ok((low, high));
    };
    let descending = matches!(
        column.role,
        super::super::schema::Role::Clustering { descending: true }
    );
    for (operator, operand) in &plan.range {
        let value = key_value(operand, values, column)?;
        let mut bound = prefix.clone();
        put_clustering(&mut bound, column, &value);
        let (from, to) = prefix_range(&bound);
        // Everything that has this component lies in [from, to).
        let beyond = |edge| match edge {
            Edge::Excluded(key) => Edge::Included(key),
            other => other,
        };
        let before = |edge| match edge {
            Edge::Included(key) => Edge::Excluded(key),
            other => other,
        };
        match (operator, descending) {
            (Operator::Greater, false) | (Operator::Less, true) => low = beyond(to),
            (Operator::GreaterOrEqual, false) | (Operator::LessOrEqual, true) => low = from,
            (Operator::Less, false) | (Operator::Greater, true) => high = before(from),
            (Operator::LessOrEqual, false) | (Operator::GreaterOrEqual, true) => high = to,
            _ => return Err(CqlError::invalid("!= cannot select rows to delete")),
        }
    }
    Ok((low, high))
}

fn timestamp_of(operand: Option<&Operand>, values: &[Bound], now: i64) -> Result<Option<i64>> {
    let Some(operand) = operand else {
        return Ok(None);
    };
    let bytes = match resolve(operand, values) {
        Bound::Value(bytes) => bytes,
        Bound::Unset => return Ok(None),
        Bound::Null => return Err(CqlError::invalid("Invalid null value of timestamp")),
    };
    let timestamp = <[u8; 8]>::try_from(&bytes[..])
        .map(i64::from_be_bytes)
        .map_err(|_| CqlError::invalid("Invalid timestamp value"))?;
    if timestamp == i64::MIN {
        return Err(CqlError::invalid("Out of bound timestamp"));
    }
    if timestamp > now.saturating_add(FUTURE_MAX_MICROS) {
        return Err(CqlError::invalid(
            "Cannot provide a timestamp more than 3 days into the future. If this was not \
             intended, make sure the timestamp is in microseconds",
        ));
    }
    Ok(Some(timestamp))
}

fn expiry_of(operand: Option<&Operand>, values: &[Bound], now: i64) -> Result<Option<i64>> {
    let Some(operand) = operand else {
        return Ok(None);
    };
    let Bound::Value(bytes) = resolve(operand, values) else {
        return Ok(None);
    };
    let seconds = <[u8; 4]>::try_from(&bytes[..])
        .map(i32::from_be_bytes)
        .map_err(|_| CqlError::invalid("Invalid TTL value"))?;
    match seconds {
        0 => Ok(None),
        1..=TTL_MAX_SECONDS => Ok(Some(
            now.saturating_add(i64::from(seconds).saturating_mul(1_000_000)),
        )),
        ..0 => Err(CqlError::invalid("A TTL must be greater or equal to 0")),
        _ => Err(CqlError::Invalid(format!(
            "ttl is too large. requested ({seconds}) maximum ({TTL_MAX_SECONDS})"
        ))),
    }
}
