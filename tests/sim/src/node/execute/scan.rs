//! Walking over stored partitions and rows, from where the last page ended.

use core::ops::{Bound as Edge, ControlFlow};

use bytes::Bytes;

use super::super::codec::Bound;
use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::plan::SelectPlan;
use super::super::schema::Table;
use super::super::store::{LiveRow, Partition, PartitionKey, RowKey, RowRange, TableRows};
use super::functions::RowView;
use super::key::{prefix_range, put_clustering};
use super::page::{Flow, Page};
use super::{Result, key_value, resolve};

/// A row of the store.
pub(super) struct StoredRow<'a> {
    pub(super) table: &'a Table,
    pub(super) row: LiveRow<'a>,
}

impl RowView for StoredRow<'_> {
    fn value(&self, column: usize) -> Option<Bytes> {
        self.row.value(self.table, column)
    }

    fn written(&self, column: usize) -> Option<(i64, Option<i64>)> {
        self.row.written(self.table, column)
    }
}

/// What a SELECT reads, with its values filled in.
pub(super) struct Scan<'a> {
    plan: &'a SelectPlan,
    /// Named partitions in ring order, none for all.
    keys: Option<Vec<PartitionKey>>,
    tokens: Vec<(Operator, i64)>,
    prefix: RowKey,
    now: i64,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        plan: &'a SelectPlan,
        keys: Option<Vec<PartitionKey>>,
        values: &[Bound],
        now: i64,
    ) -> Result<Self> {
        let mut prefix = RowKey::new();
        for (operand, column) in plan.prefix.iter().zip(plan.table.clustering_columns()) {
            let value = key_value(operand, values, column)?;
            put_clustering(&mut prefix, column, &value);
        }
        Ok(Self {
            plan,
            keys,
            tokens: token_bounds(plan, values)?,
            prefix,
            now,
        })
    }

    /// Offers the rows one partition after the other.
    pub(super) fn run(&self, rows: &TableRows, page: &mut Page<'_>) -> Result<()> {
        let resume = page.position.last.clone();
        for (key, partition) in self.partitions(rows, resume.as_ref().map(|(key, _)| key)) {
            let after = resume
                .as_ref()
                .filter(|(at, _)| at == key)
                .map(|(_, row)| row);
            let flow = if self.plan.distinct {
                self.first_row(page, (key, partition), after.is_some())?
            } else {
                self.partition(page, (key, partition), after)?
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Offers the rows of all named partitions as if they were one partition.
    pub(super) fn run_merged(&self, rows: &TableRows, page: &mut Page<'_>) -> Result<()> {
        let mut found = Vec::new();
        for (_, partition) in self.partitions(rows, None) {
            let range = row_range(&self.prefix, None, self.plan.reversed);
            let live = partition
                .entries(range, self.now)
                .filter_map(|(key, row)| Some((key, self.stored(row?))))
                .filter(|(_, row)| page.wants(row));
            let limit = page
                .per_partition
                .map_or(usize::MAX, |limit| limit as usize);
            if self.plan.reversed {
                found.extend(live.rev().take(limit));
            } else {
                found.extend(live.take(limit));
            }
        }
        found.sort_by_key(|(key, _)| *key);
        if self.plan.reversed {
            found.reverse();
        }
        for (_, row) in found {
            if page.offer(&row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn stored<'r>(&'r self, row: LiveRow<'r>) -> StoredRow<'r> {
        StoredRow {
            table: &self.plan.table,
            row,
        }
    }

    /// Named partitions, or all, from the resumed one on.
    fn partitions<'r>(
        &'r self,
        rows: &'r TableRows,
        resume: Option<&PartitionKey>,
    ) -> Box<dyn Iterator<Item = (&'r PartitionKey, &'r Partition)> + 'r> {
        let resume = resume.cloned();
        let within = |(key, _): &(&PartitionKey, &Partition)| {
            self.tokens
                .iter()
                .all(|(operator, token)| in_token_range(key.0, *operator, *token))
        };
        match &self.keys {
            Some(keys) => Box::new(
                keys.iter()
                    .filter(move |key| resume.as_ref().is_none_or(|resume| *key >= resume))
                    .filter_map(|key| rows.partitions.get_key_value(key))
                    .filter(within),
            ),
            None => match resume {
                Some(resume) => Box::new(rows.partitions.range(resume..).filter(within)),
                None => Box::new(rows.partitions.iter().filter(within)),
            },
        }
    }

    /// Offers what stands for a partition in SELECT DISTINCT.
    fn first_row(
        &self,
        page: &mut Page<'_>,
        (key, partition): (&PartitionKey, &Partition),
        is_done: bool,
    ) -> Flow {
        if is_done {
            return Ok(ControlFlow::Continue(()));
        }
        let all = (Edge::Unbounded, Edge::Unbounded);
        let first = partition.entries(all, self.now).find_map(|(_, row)| row);
        let Some(row) = first.or_else(|| partition.statics(self.now)) else {
            return Ok(ControlFlow::Continue(()));
        };
        if page.begin_row().is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let row = self.stored(row);
        if page.wants(&row) && page.offer(&row)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        page.mark(key, &RowKey::new(), 1);
        Ok(ControlFlow::Continue(()))
    }

    /// Offers the rows of a partition from beyond `after` on.
    fn partition(
        &self,
        page: &mut Page<'_>,
        (key, partition): (&PartitionKey, &Partition),
        after: Option<&RowKey>,
    ) -> Flow {
        let sent = after.map_or(0, |_| page.position.in_partition);
        let range = row_range(&self.prefix, after, self.plan.reversed);
        if let Some(statics) = self.statics_alone(partition) {
            if after.is_some() {
                return Ok(ControlFlow::Continue(()));
            }
            let only = core::iter::once((EMPTY, Some(statics)));
            return self.rows(page, key, sent, only);
        }
        let entries = partition.entries(range, self.now);
        if self.plan.reversed {
            self.rows(page, key, sent, entries.rev())
        } else {
            self.rows(page, key, sent, entries)
        }
    }

    /// Offers rows of a partition, of which `sent` went out with earlier pages.
    fn rows<'r>(
        &self,
        page: &mut Page<'_>,
        key: &PartitionKey,
        mut sent: u32,
        entries: impl Iterator<Item = (&'r RowKey, Option<LiveRow<'r>>)>,
    ) -> Flow {
        for (row_key, row) in entries {
            if page.per_partition.is_some_and(|limit| sent >= limit) {
                break;
            }
            if page.begin_row().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let Some(row) = row else {
                page.skip_dead();
                page.mark(key, row_key, sent);
                continue;
            };
            let row = self.stored(row);
            if page.wants(&row) {
                if page.offer(&row)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                sent += 1;
            }
            page.mark(key, row_key, sent);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The static values of a partition that has no rows, for a read that asks for all of them.
    fn statics_alone<'p>(&self, partition: &'p Partition) -> Option<LiveRow<'p>> {
        let table = &self.plan.table;
        let restricted = !self.plan.prefix.is_empty()
            || !self.plan.tuples.is_empty()
            || self
                .plan
                .filters
                .iter()
                .any(|filter| table.is_clustering(filter.column));
        if restricted {
            return None;
        }
        let statics = partition.statics(self.now)?;
        let all = (Edge::Unbounded, Edge::Unbounded);
        let mut rows = partition.entries(all, self.now);
        rows.all(|(_, row)| row.is_none()).then_some(statics)
    }
}

/// The place of a row without clustering key.
const EMPTY: &RowKey = &RowKey::new();

/// Keys that begin with `prefix`, from beyond `after` in the direction of reading.
fn row_range(prefix: &RowKey, after: Option<&RowKey>, reversed: bool) -> RowRange {
    let (mut low, mut high) = prefix_range(prefix);
    if let Some(after) = after {
        if reversed {
            high = Edge::Excluded(after.clone());
        } else {
            low = Edge::Excluded(after.clone());
        }
    }
    (low, high)
}

fn token_bounds(plan: &SelectPlan, values: &[Bound]) -> Result<Vec<(Operator, i64)>> {
    plan.token_range
        .iter()
        .map(|(operator, operand)| match resolve(operand, values) {
            Bound::Value(bytes) => <[u8; 8]>::try_from(&bytes[..])
                .map(|bytes| (*operator, i64::from_be_bytes(bytes)))
                .map_err(|_| CqlError::invalid("Invalid token")),
            _ => Err(CqlError::invalid("Invalid null token")),
        })
        .collect()
}

fn in_token_range(token: i64, operator: Operator, bound: i64) -> bool {
    match operator {
        Operator::Equal => token == bound,
        Operator::NotEqual => token != bound,
        Operator::Less => token < bound,
        Operator::LessOrEqual => token <= bound,
        Operator::Greater => token > bound,
        Operator::GreaterOrEqual => token >= bound,
    }
}
