//! Writes with all values known: what a planned modification does to each partition it names.

use core::ops::Bound as Edge;

use bytes::Bytes;

use super::super::codec::Bound;
use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::plan::{Action, ModifyPlan, Operand, Test, Update};
use super::super::schema::Role;
use super::super::store::{CellChange, Change, PartitionKey, RowKey, RowRange, Stamp};
use super::super::value::fields;
use super::collections::parts_change;
use super::key::{partition_keys, prefix_range, products, put_clustering, row_key};
use super::{Result, key_value, resolve};

/// How far ahead USING TIMESTAMP may be.
const FUTURE_MAX_MICROS: i64 = 3 * 24 * 3600 * 1_000_000;

/// The longest TTL, 20 years.
pub(super) const TTL_MAX_SECONDS: i32 = 20 * 365 * 24 * 3600;

/// All changes that a statement makes to one partition.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) key: PartitionKey,
    pub(super) components: Vec<Bytes>,
    pub(super) stamp: Stamp,
    pub(super) changes: Vec<Change>,
}

impl Write {
    /// Roughly the bytes it carries.
    pub(super) fn size(&self) -> usize {
        let cells = |cells: &[(u16, CellChange)]| -> usize {
            cells
                .iter()
                .map(|(_, change)| match change {
                    CellChange::Set(value) => value.as_ref().map_or(0, Bytes::len) + 8,
                    CellChange::Count(_) => 16,
                    CellChange::Parts(change) => change.size(),
                })
                .sum()
        };
        let changes = self.changes.iter().map(|change| match change {
            Change::Row { key, cells: of, .. } => key.len() + cells(of),
            Change::Statics(of) => cells(of),
            Change::DeleteRow { key, .. } => key.len(),
            Change::DeleteRange(_) | Change::DeletePartition => 16,
        });
        self.key.1.len() + changes.sum::<usize>()
    }
}

/// The writes of a statement, one per partition, in ring order.
///
/// `default` is the timestamp of statements that give none.
pub(super) fn writes(
    plan: &ModifyPlan,
    values: &[Bound],
    default: i64,
    now: i64,
) -> Result<Vec<Write>> {
    let table = &plan.table;
    let stamp = Stamp {
        timestamp: timestamp_of(plan.timestamp.as_ref(), values, now)?.unwrap_or(default),
        expires: expiry(plan, values, now)?,
    };
    let keys = partition_keys(&plan.key, table.partition_columns(), values)?;
    let changes = changes(plan, values)?;
    Ok(keys
        .into_iter()
        .map(|(key, components)| Write {
            key,
            components,
            stamp,
            changes: changes.clone(),
        })
        .collect())
}

fn changes(plan: &ModifyPlan, values: &[Bound]) -> Result<Vec<Change>> {
    let table = &plan.table;
    let prefixes = products(&plan.prefix, table.clustering_columns(), values)?;
    let is_whole = plan.prefix.len() == table.clustering_len;
    match &plan.action {
        Action::Cells { mark, updates } => {
            let (statics, cells) = cells(plan, updates, values)?;
            let mut changes = Vec::new();
            let sets_rows = *mark
                || updates
                    .iter()
                    .any(|(at, _)| table.columns[*at].role == Role::Regular);
            if is_whole && sets_rows {
                changes.extend(prefixes.into_iter().map(|clustering| Change::Row {
                    key: row_key(&clustering, table.clustering_columns()),
                    clustering,
                    mark: *mark,
                    cells: cells.clone(),
                }));
            }
            if !statics.is_empty() {
                changes.push(Change::Statics(statics));
            }
            Ok(changes)
        }
        Action::DeleteRows if plan.names_partitions() => Ok(vec![Change::DeletePartition]),
        Action::DeleteRows => prefixes
            .into_iter()
            .map(|clustering| {
                let key = row_key(&clustering, table.clustering_columns());
                if is_whole {
                    Ok(Change::DeleteRow { key, clustering })
                } else {
                    edges(plan, values, key).map(Change::DeleteRange)
                }
            })
            .collect(),
    }
}

/// Changes by column id.
type Cells = Vec<(u16, CellChange)>;

/// Changes of static cells and of cells of rows. An unset value changes nothing.
fn cells(
    plan: &ModifyPlan,
    updates: &[(usize, Update)],
    values: &[Bound],
) -> Result<(Cells, Cells)> {
    let (mut statics, mut cells) = (Vec::new(), Vec::new());
    for (at, update) in updates {
        let column = &plan.table.columns[*at];
        let change = match update {
            Update::Set(operand) => match resolve(operand, values) {
                Bound::Value(bytes) => {
                    column.ty.check(&bytes, &column.name)?;
                    CellChange::Set(Some(bytes))
                }
                Bound::Null => CellChange::Set(None),
                Bound::Unset => continue,
            },
            Update::Parts(update) => match parts_change(column, update, values)? {
                Some(change) => CellChange::Parts(change),
                None => continue,
            },
            Update::Count { delta, down } => match resolve(delta, values) {
                Bound::Value(bytes) => CellChange::Count(delta_of(&bytes, *down)?),
                Bound::Null => {
                    return Err(CqlError::invalid(
                        "Invalid null value for counter increment",
                    ));
                }
                Bound::Unset => continue,
            },
        };
        if column.role == Role::Static {
            statics.push((column.id, change));
        } else {
            cells.push((column.id, change));
        }
    }
    Ok((statics, cells))
}

fn delta_of(bytes: &[u8], down: bool) -> Result<i64> {
    let delta = <[u8; 8]>::try_from(bytes)
        .map(i64::from_be_bytes)
        .map_err(|_| CqlError::invalid("Invalid value for a counter increment"))?;
    Ok(if down { delta.wrapping_neg() } else { delta })
}

/// The encoded range of a DELETE over part of a partition.
fn edges(plan: &ModifyPlan, values: &[Bound], prefix: RowKey) -> Result<RowRange> {
    let columns = plan.table.clustering_columns();
    let mut range = prefix_range(&prefix);
    if let Some(column) = columns.get(plan.prefix.len()) {
        for (operator, operand) in &plan.range {
            let value = key_value(operand, values, column)?;
            let mut bound = prefix.clone();
            put_clustering(&mut bound, column, &value);
            range = narrow(range, *operator, &bound, column.role)?;
        }
    }
    for filter in &plan.tuples {
        let Test::Compare(operator, operand) = &filter.test else {
            return Err(CqlError::invalid("IN cannot select rows to delete"));
        };
        let tuple = key_value(operand, values, &filter.tuple)?;
        let parts: Option<Vec<Bytes>> = fields(&tuple).and_then(|parts| {
            let parts = parts.into_iter();
            parts.map(|part| part.map(Bytes::copy_from_slice)).collect()
        });
        let parts = parts.ok_or_else(|| {
            let name = &filter.tuple.name;
            CqlError::Invalid(format!(
                "Invalid null value in condition for columns {name}"
            ))
        })?;
        let bound = row_key(&parts, columns);
        range = narrow(range, *operator, &bound, filter.tuple.role)?;
    }
    Ok(range)
}

/// What a bound leaves of a range. `role` tells the direction of the columns it is about.
fn narrow(
    (low, high): RowRange,
    operator: Operator,
    bound: &RowKey,
    role: Role,
) -> Result<RowRange> {
    let descending = matches!(role, Role::Clustering { descending: true });
    let (from, to) = prefix_range(bound);
    // Everything that begins with the bound lies in [from, to).
    let beyond = |edge| match edge {
        Edge::Excluded(key) => Edge::Included(key),
        other => other,
    };
    let before = |edge| match edge {
        Edge::Included(key) => Edge::Excluded(key),
        other => other,
    };
    Ok(match (operator, descending) {
        (Operator::Equal, _) => (from, to),
        (Operator::Greater, false) | (Operator::Less, true) => (beyond(to), high),
        (Operator::GreaterOrEqual, false) | (Operator::LessOrEqual, true) => (from, high),
        (Operator::Less, false) | (Operator::Greater, true) => (low, before(from)),
        (Operator::LessOrEqual, false) | (Operator::GreaterOrEqual, true) => (low, to),
        (Operator::NotEqual, _) => {
            return Err(CqlError::invalid("!= cannot select rows to delete"));
        }
    })
}

/// The timestamp that an operand of USING TIMESTAMP means.
pub(super) fn timestamp_of(
    operand: Option<&Operand>,
    values: &[Bound],
    now: i64,
) -> Result<Option<i64>> {
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

/// When values of a statement are gone: by its TTL, else by the table's. 0 is never.
fn expiry(plan: &ModifyPlan, values: &[Bound], now: i64) -> Result<Option<i64>> {
    let given = match plan.ttl.as_ref().map(|operand| resolve(operand, values)) {
        None | Some(Bound::Unset) => None,
        Some(Bound::Null) => return Err(CqlError::invalid("Invalid null value of TTL")),
        Some(Bound::Value(bytes)) => Some(
            <[u8; 4]>::try_from(&bytes[..])
                .map(i32::from_be_bytes)
                .map_err(|_| CqlError::invalid("Invalid TTL value"))?,
        ),
    };
    let seconds = given.unwrap_or(plan.table.default_ttl);
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
