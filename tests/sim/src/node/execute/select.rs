//! SELECT: levels, partitions and routing first, then the rows.

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::codec::{Bound, Consistency};
use super::super::error::CqlError;
use super::super::plan::SelectPlan;
use super::super::route::{Request, Route};
use super::super::store::PartitionKey;
use super::super::system;
use super::functions::RowView;
use super::key::partition_keys;
use super::page::Page;
use super::scan::Scan;
use super::{Executed, Execution, Outcome, Result, Rows};

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

    fn read_virtual(&self, plan: &SelectPlan, run: &Execution) -> Result<Rows> {
        let mut page = Page::new(self, plan, run, true)?;
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
        let merged = plan.ordered && keys.as_ref().is_some_and(|keys| keys.len() > 1);
        if merged && run.page_size.is_some_and(|size| size > 0) {
            return Err(CqlError::invalid(
                "Cannot page queries with both ORDER BY and a IN restriction on the partition \
                 key; you must either remove the ORDER BY or the IN and sort client side, or \
                 disable paging for this query",
            ));
        }
        let mut page = Page::new(self, plan, run, !strong && !plan.is_single_row())?;
        let now = run.caller.now;
        let scan = Scan::new(plan, keys, &run.values, now)?;
        let derived = match &plan.table.view {
            Some(view) => Some(self.view_rows(&plan.table, view, now)?),
            None => None,
        };
        let stored = || self.store.table(&plan.table.id);
        if let Some(rows) = derived.as_ref().or_else(stored) {
            if merged {
                scan.run_merged(rows, &mut page)?;
            } else {
                scan.run(rows, &mut page)?;
            }
        }
        page.finish()
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
