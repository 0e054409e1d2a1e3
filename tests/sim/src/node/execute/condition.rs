//! Conditional writes: the rows they are about, whether their conditions hold, what they answer.

use std::sync::Arc;

use super::super::cluster::Cluster;
use super::super::codec::{Bound, Consistency, Writer};
use super::super::error::CqlError;
use super::super::plan::{Conditional, If, ModifyPlan, Shown};
use super::super::route::{Caller, Request, Route};
use super::super::schema::Role;
use super::super::store::{LiveRow, Partition, PartitionKey, RowKey};
use super::super::value::boolean;
use super::check::Check;
use super::functions::RowView;
use super::key::{products, row_key};
use super::scan::StoredRow;
use super::write::Write;
use super::{Result, Rows};

/// A statement with its values.
pub(super) type Item<'a> = (&'a ModifyPlan, &'a [Bound]);

/// A row before the write, as the answer shows it.
type Before = Option<Vec<Option<bytes::Bytes>>>;

impl Cluster {
    /// The agreement needs a quorum of its own, whatever the level of the commit is.
    pub(super) fn check_serial(
        &self,
        caller: &Caller,
        route: &Route,
        serial: Option<Consistency>,
    ) -> Result<()> {
        let request = Request {
            write: true,
            conditional: true,
            key_bound: false,
            consistency: serial.unwrap_or(Consistency::Serial),
        };
        self.check_available(caller, route, request)
    }

    /// Tests the conditions of statements on one partition, writes if all hold, and encodes the
    /// answer. `writes` are those of the statements, in the same order.
    pub(super) fn apply_if(
        &mut self,
        items: &[Item<'_>],
        writes: Vec<Write>,
        shown: &Shown,
        now: i64,
    ) -> Result<Rows> {
        let Some(((first, _), key)) = items.first().zip(writes.first().map(|write| &write.key))
        else {
            return Err(CqlError::Server("conditions without statements".to_owned()));
        };
        let table = Arc::clone(&first.table);
        let rows = self.store.table(&table.id);
        let reading = Reading {
            cluster: self,
            partition: rows.and_then(|rows| rows.partitions.get(key)),
            now,
        };
        let (applied, before) = reading.judge(items, shown)?;
        let rows = encode(applied, items, before, shown);
        if applied {
            for mut write in writes {
                self.settle(&table, &mut write, now)?;
                self.apply(table.id, write);
            }
        }
        Ok(rows)
    }

    /// Whether all writes are for one partition.
    pub(super) fn same_partition<'a>(mut keys: impl Iterator<Item = &'a PartitionKey>) -> bool {
        keys.next()
            .is_none_or(|first| keys.all(|other| other == first))
    }
}

/// The partition as it is before the write.
struct Reading<'a> {
    cluster: &'a Cluster,
    partition: Option<&'a Partition>,
    now: i64,
}

impl<'a> Reading<'a> {
    /// Whether all conditions hold, and for each statement the row it is about.
    fn judge(&self, items: &[Item<'_>], shown: &Shown) -> Result<(bool, Vec<Before>)> {
        let mut applied = true;
        let mut read = Vec::new();
        let mut rows = Vec::with_capacity(items.len());
        for (plan, values) in items {
            let key = named_row(plan, values)?;
            let row = match &plan.condition {
                Some(condition) => {
                    let row = self.row_of(plan, condition, key.as_ref());
                    applied &= self.holds(plan, condition, row, values)?;
                    read.push(key.clone());
                    row
                }
                None => None,
            };
            rows.push((key, row));
        }
        let before = items.iter().zip(rows).map(|((plan, _), (key, row))| {
            // A statement without condition shows its row only if another one had it read.
            let row = row.or_else(|| {
                let key = key.as_ref().filter(|_| read.contains(&key))?;
                self.partition?.row(key, self.now)
            })?;
            let value = |column: &usize| row.value(&plan.table, *column);
            Some(shown.columns.iter().map(value).collect())
        });
        let before = before.collect();
        Ok((applied, before))
    }

    /// Tests of static columns alone are about the partition, all others about one row of it.
    fn row_of(
        &self,
        plan: &ModifyPlan,
        condition: &Conditional,
        key: Option<&RowKey>,
    ) -> Option<LiveRow<'a>> {
        let partition = self.partition?;
        let row = || partition.row(key?, self.now);
        let statics = || partition.statics(self.now);
        match &condition.test {
            If::NotExists | If::Exists if key.is_none() => statics(),
            If::NotExists | If::Exists => row(),
            If::Columns(_) if !condition.tests(&plan.table, Role::Static) => row(),
            If::Columns(_) if condition.tests(&plan.table, Role::Regular) => row().or_else(statics),
            If::Columns(_) => statics(),
        }
    }

    fn holds(
        &self,
        plan: &ModifyPlan,
        condition: &Conditional,
        row: Option<LiveRow<'_>>,
        values: &[Bound],
    ) -> Result<bool> {
        let tests = match &condition.test {
            If::NotExists => return Ok(row.is_none()),
            If::Exists => return Ok(row.is_some()),
            If::Columns(tests) => tests,
        };
        let table = &plan.table;
        let row = row.map(|row| StoredRow { table, row });
        let view = row.as_ref().map(|row| row as &dyn RowView);
        let mut holds = true;
        for tested in tests {
            let (column, value) = match &tested.part {
                Some((expression, column)) => {
                    let scope = self.cluster.scope(values, view, self.now);
                    (column, scope.evaluate(expression)?)
                }
                None => (
                    &table.columns[tested.column],
                    view.and_then(|row| row.value(tested.column)),
                ),
            };
            let check = Check::of_condition(&tested.test, values, column)?;
            holds &= check.holds(value.as_ref(), &column.ty, true);
        }
        Ok(holds)
    }
}

/// The row that a statement names, if it names a whole clustering key.
fn named_row(plan: &ModifyPlan, values: &[Bound]) -> Result<Option<RowKey>> {
    let columns = plan.table.clustering_columns();
    if plan.prefix.len() < columns.len() {
        return Ok(None);
    }
    let products = products(&plan.prefix, columns, values)?;
    Ok(match products.as_slice() {
        [only] => Some(row_key(only, columns)),
        _ => None,
    })
}

/// One row per statement; of a plain node only what it would show.
fn encode(applied: bool, items: &[Item<'_>], before: Vec<Before>, shown: &Shown) -> Rows {
    let mut cells = Writer::default();
    let mut count = 0;
    let flag = boolean(applied);
    let conditional = |(plan, _): &Item<'_>| plan.condition.is_some();
    for (item, before) in items.iter().zip(before) {
        if shown.plain.is_some() && (applied || before.is_none() || !conditional(item)) {
            continue;
        }
        count += 1;
        cells.value(Some(&flag));
        match before {
            Some(values) => values.iter().for_each(|value| cells.value(value.as_ref())),
            None => shown.columns.iter().for_each(|_| cells.value(None)),
        }
    }
    let mut metadata = &shown.metadata;
    if let Some(plain) = &shown.plain
        && count == 0
    {
        metadata = plain;
        count = 1;
        cells.value(Some(&flag));
    }
    Rows {
        metadata: Arc::clone(metadata),
        count,
        cells,
        paging_state: None,
    }
}
