//! The rows of materialized views, derived from their base whenever they are read: so they are
//! never behind it.

use core::ops::Bound as Edge;

use super::super::cluster::Cluster;
use super::super::schema::{Table, View};
use super::super::store::{CellChange, Change, LiveRow, PartsChange, Stamp, TableRows};
use super::Result;
use super::key::{encode_key, row_key};

impl Cluster {
    pub(super) fn view_rows(&self, table: &Table, view: &View, now: i64) -> Result<TableRows> {
        let mut out = TableRows::default();
        let base = self.catalogue.table(&table.keyspace, &view.base_name)?;
        let Some(rows) = self.store.table(&base.id) else {
            return Ok(out);
        };
        for partition in rows.partitions.values() {
            let entries = partition.entries((Edge::Unbounded, Edge::Unbounded), now);
            for row in entries.filter_map(|(_, row)| row) {
                put_row(&mut out, table, &base, &row)?;
            }
        }
        Ok(out)
    }
}

/// Puts what the view shows of a row, unless a column of its key is null.
fn put_row(out: &mut TableRows, table: &Table, base: &Table, row: &LiveRow<'_>) -> Result<()> {
    let position = |name: &str| base.position(name);
    let key: Option<Vec<_>> = table.columns[..table.key_len()]
        .iter()
        .map(|column| row.value(base, position(&column.name)?))
        .collect();
    let Some(mut components) = key else {
        return Ok(());
    };
    let clustering = components.split_off(table.partition_len);
    if components.iter().all(|component| component.is_empty()) && components.len() == 1 {
        return Ok(());
    }
    let key = encode_key(&components)?;
    let row_key = row_key(&clustering, table.clustering_columns());
    let mut put = |mark, stamp, cells| {
        let change = Change::Row {
            key: row_key.clone(),
            clustering: clustering.clone(),
            mark,
            cells,
        };
        out.apply(key.clone(), &components, stamp, change);
    };
    let first = Stamp {
        timestamp: i64::MIN + 1,
        expires: None,
    };
    put(true, first, Vec::new());
    for column in table.regular_columns() {
        let Some(at) = position(&column.name) else {
            continue;
        };
        if let Some(parts) = row.parts(base, base.columns[at].id) {
            let parts = PartsChange {
                parts,
                ..PartsChange::default()
            };
            put(false, first, vec![(column.id, CellChange::Parts(parts))]);
        } else if let Some((timestamp, expires)) = row.written(base, at) {
            let stamp = Stamp { timestamp, expires };
            let value = row.value(base, at);
            put(false, stamp, vec![(column.id, CellChange::Set(value))]);
        }
    }
    Ok(())
}
