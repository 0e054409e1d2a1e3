//! One page of a result: takes rows in until the page, the limit or the work for it is at its end.

use core::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::codec::{Bound, Writer};
use super::super::plan::{Output, SelectPlan};
use super::super::store::{PartitionKey, RowKey};
use super::aggregates::Aggregation;
use super::check::RowChecks;
use super::functions::{RowView, Scope};
use super::position::Position;
use super::{Execution, Result, Rows, positive};

/// A page ends at this many bytes of cells even if rows are missing.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A page ends after so many dead rows, found or not what it looks for.
const DEAD_ROWS_MAX: usize = 10_000;

/// Whether the page goes on.
pub(super) type Flow = Result<ControlFlow<()>>;

/// Collects rows until the page or the limit is full.
pub(super) struct Page<'a> {
    pub(super) plan: &'a SelectPlan,
    checks: RowChecks,
    rows: Taken<'a>,
    page_size: Option<usize>,
    pub(super) per_partition: Option<u32>,
    pub(super) position: Position,
    /// Rows looked at that a filter may have dropped.
    filtered: usize,
    dead: usize,
    /// There is something beyond the page.
    more: bool,
}

impl<'a> Page<'a> {
    /// `paged`: whether the result may come in pages at all.
    pub(super) fn new(
        cluster: &'a Cluster,
        plan: &'a SelectPlan,
        run: &'a Execution,
        paged: bool,
    ) -> Result<Self> {
        let checks = RowChecks::new(&plan.table, &plan.filters, &plan.tuples, &run.values)?;
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
        Ok(Self {
            plan,
            checks,
            rows: Taken {
                plan,
                evaluation: Evaluation {
                    cluster,
                    values: &run.values,
                    now: run.caller.now,
                },
                open: None,
                cells: Writer::default(),
                count: 0,
            },
            page_size: page_size.filter(|size| *size > 0 && paged && !plan.aggregates()),
            per_partition,
            position,
            filtered: 0,
            dead: 0,
            more: false,
        })
    }

    /// Whether a row passes all tests.
    pub(super) fn wants(&self, row: &dyn RowView) -> bool {
        self.checks.pass(&self.plan.table, row)
    }

    /// Whether the next row, wanted or not, still belongs to this page.
    pub(super) fn begin_row(&mut self) -> ControlFlow<()> {
        let Some(size) = self.page_size else {
            return ControlFlow::Continue(());
        };
        if self.filtered >= size || self.dead >= DEAD_ROWS_MAX {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.filtered += usize::from(self.plan.filtering);
        ControlFlow::Continue(())
    }

    /// Notes where the page would end if it ended here.
    pub(super) fn mark(&mut self, key: &PartitionKey, row: &RowKey, in_partition: u32) {
        if self.page_size.is_some() {
            self.position.in_partition = in_partition;
            self.position.last = Some((key.clone(), row.clone()));
        }
    }

    /// A row that is no more.
    pub(super) fn skip_dead(&mut self) {
        self.dead += 1;
    }

    fn is_full(&self) -> bool {
        self.page_size.is_some_and(|size| {
            self.rows.count >= size || self.rows.cells.as_slice().len() >= PAGE_BYTES_MAX
        })
    }

    /// Takes a row that is wanted, or ends the page before it.
    pub(super) fn offer(&mut self, row: &dyn RowView) -> Flow {
        if self.plan.aggregates() {
            return self.rows.aggregate(row, &mut self.position.remaining);
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
        self.rows.put(row)?;
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn finish(mut self) -> Result<Rows> {
        if self.plan.aggregates() {
            let whole = self.plan.group.is_empty().then(|| Group {
                key: Vec::new(),
                aggregation: Aggregation::new(&self.plan.outputs),
            });
            if let Some(group) = self.rows.open.take().or(whole)
                && self.position.remaining != Some(0)
            {
                self.rows.close(group)?;
            }
        }
        Ok(Rows {
            metadata: Arc::clone(&self.plan.metadata),
            count: self.rows.count,
            cells: self.rows.cells,
            paging_state: self.more.then(|| self.position.encode()),
        })
    }
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

/// Rows that become one.
struct Group {
    key: Vec<Option<Bytes>>,
    aggregation: Aggregation,
}

/// The rows of the page so far.
struct Taken<'a> {
    plan: &'a SelectPlan,
    evaluation: Evaluation<'a>,
    /// The group being aggregated.
    open: Option<Group>,
    cells: Writer,
    count: usize,
}

impl Taken<'_> {
    fn put(&mut self, row: &dyn RowView) -> Result<()> {
        self.count += 1;
        let scope = self.evaluation.scope(row);
        for output in &self.plan.outputs {
            if let Output::Value(expression) = output {
                self.cells.value(scope.evaluate(expression)?.as_ref());
            }
        }
        Ok(())
    }

    fn aggregate(&mut self, row: &dyn RowView, remaining: &mut Option<u32>) -> Flow {
        let key: Vec<Option<Bytes>> = self
            .plan
            .group
            .iter()
            .map(|column| row.value(*column))
            .collect();
        if let Some(done) = self.open.take_if(|open| open.key != key) {
            if let Some(remaining) = remaining {
                *remaining = remaining.saturating_sub(1);
            }
            self.close(done)?;
        }
        if *remaining == Some(0) {
            return Ok(ControlFlow::Break(()));
        }
        let open = self.open.get_or_insert_with(|| Group {
            key,
            aggregation: Aggregation::new(&self.plan.outputs),
        });
        let scope = self.evaluation.scope(row);
        open.aggregation.add(&self.plan.outputs, &scope)?;
        Ok(ControlFlow::Continue(()))
    }

    fn close(&mut self, group: Group) -> Result<()> {
        self.count += 1;
        for value in group.aggregation.finish(&self.plan.outputs)? {
            self.cells.value(value.as_ref());
        }
        Ok(())
    }
}
