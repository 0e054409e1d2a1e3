//! SELECT: from the plan to a page of encoded rows, and the state that continues it.

use core::ops::{Bound as Edge, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::codec::{Bound, Consistency, Reader, Writer};
use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::plan::{Output, SelectPlan};
use super::super::route::{Request, Route};
use super::super::schema::Table;
use super::super::store::{LiveRow, Partition, PartitionKey, RowKey, RowRange, TableRows};
use super::super::system;
use super::aggregates::Aggregation;
use super::functions::{RowView, Scope};
use super::key::{partition_keys, prefix_range, put_clustering};
use super::{Check, Executed, Execution, Outcome, Result, Rows, key_value, positive};

/// A page ends at this many bytes of cells even if rows are missing.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Where a page ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    /// The last row sent: its partition and encoded clustering key.
    last: Option<(PartitionKey, RowKey)>,
    /// Rows of a virtual table already sent.
    offset: u32,
    /// Rows the LIMIT still allows.
    remaining: Option<u32>,
    /// Rows of this partition already sent.
    in_partition: u32,
}

impl Position {
    const MAGIC: &'static [u8] = b"msp1";

    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(Self::MAGIC);
        out.uint(self.offset);
        out.uint(
            self.remaining
                .map_or(0, |remaining| remaining.saturating_add(1)),
        );
        out.uint(self.in_partition);
        if let Some(((token, key), row)) = &self.last {
            out.long(*token);
            out.bytes(key);
            out.bytes(row);
        }
        out.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let refuse = || CqlError::protocol("Invalid value for the paging state");
        let mut reader = Reader::new(bytes);
        let parse = |reader: &mut Reader<'_>| -> Result<Self> {
            if reader.take(Self::MAGIC.len())? != Self::MAGIC {
                return Err(refuse());
            }
            let uint = |reader: &mut Reader<'_>| Ok(reader.int()?.cast_unsigned());
            let mut position = Self {
                offset: uint(reader)?,
                ..Self::default()
            };
            position.remaining = uint(reader)?.checked_sub(1);
            position.in_partition = uint(reader)?;
            if !reader.rest().is_empty() {
                let token = reader.long()?;
                let key = reader.bytes()?.ok_or_else(refuse)?;
                let row = reader.bytes()?.ok_or_else(refuse)?;
                position.last = Some(((token, Bytes::copy_from_slice(key)), row.to_vec()));
            }
            Ok(position)
        };
        parse(&mut reader)
            .ok()
            .filter(|_| reader.rest().is_empty())
            .ok_or_else(refuse)
    }
}

/// Collects rows until the page or the limit is full.
struct Page<'a> {
    plan: &'a SelectPlan,
    checks: Vec<(usize, Check)>,
    /// What is taken in so far, where all rows become one.
    aggregation: Option<Aggregation>,
    evaluation: Evaluation<'a>,
    cells: Writer,
    count: usize,
    page_size: Option<usize>,
    per_partition: Option<u32>,
    position: Position,
    /// There is a row beyond the page.
    more: bool,
}

/// What expressions may look at beside the row.
struct Evaluation<'a> {
    cluster: &'a Cluster,
    values: &'a [Bound],
    now: i64,
}

impl<'a> Evaluation<'a> {
    fn scope(&self, row: &'a dyn RowView) -> Scope<'a> {
        self.cluster.scope(self.values, Some(row), self.now)
    }
}

/// Where a page ends.
type Flow = Result<ControlFlow<()>>;

impl Page<'_> {
    /// Whether a row passes all tests.
    fn wants(&self, row: &dyn RowView) -> bool {
        self.checks.iter().all(|(column, check)| {
            check.holds(
                row.value(*column).as_ref(),
                &self.plan.table.columns[*column].ty,
                false,
            )
        })
    }

    fn is_full(&self) -> bool {
        self.page_size
            .is_some_and(|size| self.count >= size || self.cells.as_slice().len() >= PAGE_BYTES_MAX)
    }

    /// Takes a row, or ends the page before it.
    fn offer(&mut self, row: &dyn RowView) -> Flow {
        if let Some(aggregation) = &mut self.aggregation {
            let scope = self.evaluation.scope(row);
            aggregation.add(&self.plan.outputs, &scope)?;
            return Ok(ControlFlow::Continue(()));
        }
        if self.position.remaining == Some(0) {
            return Ok(ControlFlow::Break(()));
        }
        if self.is_full() {
            self.more = true;
            return Ok(ControlFlow::Break(()));
        }
        if let Some(remaining) = &mut self.position.remaining {
            *remaining -= 1;
        }
        self.count += 1;
        let scope = self.evaluation.scope(row);
        for output in &self.plan.outputs {
            if let Output::Value(expression) = output {
                self.cells.value(scope.evaluate(expression)?.as_ref());
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn finish(mut self) -> Result<Rows> {
        if let Some(aggregation) = self.aggregation {
            self.count = 1;
            for value in aggregation.finish(&self.plan.outputs)? {
                self.cells.value(value.as_ref());
            }
        }
        Ok(Rows {
            metadata: Arc::clone(&self.plan.metadata),
            count: self.count,
            cells: self.cells,
            paging_state: self.more.then(|| self.position.encode()),
        })
    }
}

/// A row of the store.
struct StoredRow<'a> {
    table: &'a Table,
    row: LiveRow<'a>,
}

impl RowView for StoredRow<'_> {
    fn value(&self, column: usize) -> Option<Bytes> {
        self.row.value(self.table, column)
    }

    fn written(&self, column: usize) -> Option<(i64, Option<i64>)> {
        self.row.written(self.table, column)
    }
}

/// A row of a table that the node serves from what it knows.
struct VirtualRow(Vec<Option<Bytes>>);

impl RowView for VirtualRow {
    fn value(&self, column: usize) -> Option<Bytes> {
        self.0.get(column).cloned().flatten()
    }

    fn written(&self, _column: usize) -> Option<(i64, Option<i64>)> {
        None
    }
}

impl Cluster {
    pub(super) fn select(
        &mut self,
        plan: &SelectPlan,
        run: &Execution,
        key_bound: bool,
    ) -> Result<Executed> {
        if matches!(run.consistency, Consistency::Any | Consistency::EachQuorum) {
            let text = format!(
                "{} ConsistencyLevel is only supported for writes",
                run.consistency
            );
            return Err(CqlError::Invalid(text));
        }
        if plan.table.is_virtual {
            return Ok(Outcome::Rows(self.read_virtual(plan, run)?).into());
        }
        let keys = self.keys(plan, &run.values)?;
        let single = match keys.as_deref() {
            Some([key]) => Some(key.clone()),
            _ => None,
        };
        let strong = self.is_strong(&plan.table);
        if strong {
            check_strong_read(run.consistency, single.is_some())?;
        }
        if run.consistency.is_serial() && single.is_none() {
            return Err(CqlError::invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            ));
        }
        let request = Request {
            write: false,
            conditional: false,
            key_bound,
            consistency: run.consistency,
        };
        let route: Option<Route> = single.map(|(token, _)| self.route(&plan.table, token));
        if let Some(route) = &route {
            self.classify(&plan.table, &run.caller, route, request);
            self.limit_rate(&plan.table, &run.caller, route, request)?;
            self.check_hazard(&plan.table, &run.caller, route, request)?;
            self.check_available(&run.caller, route, request)?;
        }
        let rows = self.read(plan, run, keys, strong)?;
        let payload =
            route.and_then(|route| self.payload(&plan.table, &run.caller, &route, request));
        Ok(Executed {
            outcome: Outcome::Rows(rows),
            payload,
            warnings: Vec::new(),
        })
    }

    /// Partitions that the statement names, in ring order; none for a scan.
    fn keys(&self, plan: &SelectPlan, values: &[Bound]) -> Result<Option<Vec<PartitionKey>>> {
        let Some(tests) = &plan.key else {
            return Ok(None);
        };
        let keys = partition_keys(tests, plan.table.partition_columns(), values)?;
        Ok(Some(keys.into_iter().map(|(key, _)| key).collect()))
    }

    fn page<'a>(
        &'a self,
        plan: &'a SelectPlan,
        run: &'a Execution,
        paged: bool,
    ) -> Result<Page<'a>> {
        let checks: Result<Vec<(usize, Check)>> = plan
            .filters
            .iter()
            .map(|filter| {
                let column = &plan.table.columns[filter.column];
                Ok((
                    filter.column,
                    Check::new(&filter.test, &run.values, column)?,
                ))
            })
            .collect();
        let limit = positive(plan.limit.as_ref(), &run.values, "LIMIT")?;
        let per_partition = positive(
            plan.per_partition_limit.as_ref(),
            &run.values,
            "PER PARTITION LIMIT",
        )?;
        let position = match &run.paging_state {
            Some(bytes) => Position::decode(bytes)?,
            None => Position {
                remaining: limit,
                ..Position::default()
            },
        };
        let page_size = run.page_size.and_then(|size| usize::try_from(size).ok());
        Ok(Page {
            plan,
            checks: checks?,
            aggregation: plan.aggregates().then(|| Aggregation::new(&plan.outputs)),
            evaluation: Evaluation {
                cluster: self,
                values: &run.values,
                now: run.caller.now,
            },
            cells: Writer::default(),
            count: 0,
            page_size: page_size.filter(|size| *size > 0 && paged && !plan.aggregates()),
            per_partition,
            position,
            more: false,
        })
    }

    fn read_virtual(&self, plan: &SelectPlan, run: &Execution) -> Result<Rows> {
        let mut page = self.page(plan, run, true)?;
        let rows = system::rows(self, &run.caller, &plan.table);
        let skipped = page.position.offset as usize;
        let mut passed = 0usize;
        for row in rows.into_iter().map(VirtualRow) {
            if !page.wants(&row) {
                continue;
            }
            passed += 1;
            if passed <= skipped {
                continue;
            }
            if page.offer(&row)?.is_break() {
                break;
            }
            page.position.offset += 1;
        }
        page.finish()
    }

    fn read(
        &self,
        plan: &SelectPlan,
        run: &Execution,
        keys: Option<Vec<PartitionKey>>,
        strong: bool,
    ) -> Result<Rows> {
        let mut page = self.page(plan, run, !strong && !plan.is_single_row())?;
        let mut prefix = RowKey::new();
        for (operand, column) in plan.prefix.iter().zip(plan.table.clustering_columns()) {
            let value = key_value(operand, &run.values, column)?;
            put_clustering(&mut prefix, column, &value);
        }
        let tokens = token_bounds(plan, run)?;
        let now = run.caller.now;
        let derived = match &plan.table.view {
            Some(view) => Some(self.view_rows(&plan.table, view, now)?),
            None => None,
        };
        let Some(rows) = derived
            .as_ref()
            .or_else(|| self.store.table(&plan.table.id))
        else {
            return page.finish();
        };
        let resume = page.position.last.clone();
        for (key, partition) in partitions(rows, keys, resume.as_ref().map(|(key, _)| key)) {
            if !tokens
                .iter()
                .all(|(operator, token)| in_token_range(key.0, *operator, *token))
            {
                continue;
            }
            let after = resume
                .as_ref()
                .filter(|(at, _)| at == key)
                .map(|(_, row)| row);
            let sent = if after.is_some() {
                page.position.in_partition
            } else {
                0
            };
            let range = row_range(&prefix, after, plan.reversed);
            if let Some(statics) = statics_alone(plan, (&range, partition), now) {
                let row = StoredRow {
                    table: &plan.table,
                    row: statics,
                };
                if after.is_none() && page.wants(&row) {
                    if page.offer(&row)?.is_break() {
                        break;
                    }
                    page.position.in_partition = 1;
                    page.position.last = Some((key.clone(), RowKey::new()));
                }
                continue;
            }
            let rows = partition
                .entries(range, now)
                .filter_map(|(key, row)| Some((key, row?)));
            let flow = if plan.reversed {
                read_partition(&mut page, key, sent, rows.rev())?
            } else {
                read_partition(&mut page, key, sent, rows)?
            };
            if flow.is_break() {
                break;
            }
        }
        page.finish()
    }
}

/// The static values of a partition that has no rows, for a read that asks for all of them.
fn statics_alone<'p>(
    plan: &SelectPlan,
    (range, partition): (&RowRange, &'p Partition),
    now: i64,
) -> Option<LiveRow<'p>> {
    let restricted = !plan.prefix.is_empty()
        || plan
            .filters
            .iter()
            .any(|filter| plan.table.is_clustering(filter.column));
    if restricted {
        return None;
    }
    let statics = partition.statics(now)?;
    let mut rows = partition.entries(range.clone(), now);
    rows.all(|(_, row)| row.is_none()).then_some(statics)
}

/// Offers the rows of a partition, of which `sent` went out with earlier pages.
fn read_partition<'p>(
    page: &mut Page<'_>,
    key: &PartitionKey,
    mut sent: u32,
    rows: impl Iterator<Item = (&'p RowKey, LiveRow<'p>)>,
) -> Flow {
    let table = Arc::clone(&page.plan.table);
    for (row_key, row) in rows {
        if page.per_partition.is_some_and(|limit| sent >= limit) {
            break;
        }
        let row = StoredRow { table: &table, row };
        if !page.wants(&row) {
            continue;
        }
        if page.offer(&row)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        sent += 1;
        if page.page_size.is_some() {
            page.position.in_partition = sent;
            page.position.last = Some((key.clone(), row_key.clone()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Named partitions, or all, from the resumed one on.
fn partitions<'a>(
    rows: &'a TableRows,
    keys: Option<Vec<PartitionKey>>,
    resume: Option<&PartitionKey>,
) -> Box<dyn Iterator<Item = (&'a PartitionKey, &'a Partition)> + 'a> {
    let resume = resume.cloned();
    match keys {
        Some(keys) => Box::new(
            keys.into_iter()
                .filter(move |key| resume.as_ref().is_none_or(|resume| key >= resume))
                .filter_map(|key| rows.partitions.get_key_value(&key)),
        ),
        None => match resume {
            Some(resume) => Box::new(rows.partitions.range(resume..)),
            None => Box::new(rows.partitions.iter()),
        },
    }
}

/// Keys that begin with `prefix`, from beyond `after` in the direction of reading.
fn row_range(
    prefix: &RowKey,
    after: Option<&RowKey>,
    reversed: bool,
) -> (Edge<RowKey>, Edge<RowKey>) {
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

fn token_bounds(plan: &SelectPlan, run: &Execution) -> Result<Vec<(Operator, i64)>> {
    plan.token_range
        .iter()
        .map(
            |(operator, operand)| match super::resolve(operand, &run.values) {
                Bound::Value(bytes) => <[u8; 8]>::try_from(&bytes[..])
                    .map(|bytes| (*operator, i64::from_be_bytes(bytes)))
                    .map_err(|_| CqlError::invalid("Invalid token")),
                _ => Err(CqlError::invalid("Invalid null token")),
            },
        )
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

fn check_strong_read(consistency: Consistency, single: bool) -> Result<()> {
    if !single {
        return Err(CqlError::invalid(
            "Strongly consistent queries can only target a single partition",
        ));
    }
    if matches!(
        consistency,
        Consistency::One | Consistency::LocalOne | Consistency::Quorum | Consistency::LocalQuorum
    ) {
        return Ok(());
    }
    Err(CqlError::invalid(
        "Strongly consistent reads must use QUORUM/LOCAL_QUORUM or ONE/LOCAL_ONE consistency level",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_trip_and_garbage_does_not() {
        let positions = [
            Position::default(),
            Position {
                offset: 7,
                remaining: Some(0),
                ..Position::default()
            },
            Position {
                last: Some(((-5, Bytes::from_static(b"key")), vec![1, 2])),
                remaining: Some(3),
                in_partition: 9,
                offset: 0,
            },
        ];
        for position in positions {
            let bytes = position.encode();
            assert_eq!(Position::decode(&bytes), Ok(position));
            for len in 0..bytes.len() {
                // A state without a row is a prefix of one with a row.
                if len != 16 {
                    assert!(Position::decode(&bytes[..len]).is_err(), "{len}");
                }
            }
        }
        assert!(Position::decode(b"garbage garbage garbage").is_err());
    }
}
