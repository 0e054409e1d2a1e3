//! Rows of the whole cluster, once: where copies live is a fact of routing, not of storage.
//!
//! Last write wins by timestamp, cell by cell; deletions are remembered so that an older write
//! that comes later stays dead. Partitions are ordered by token, rows by encoded clustering key.
//! A store per replica would take the place of [`Store`] behind the same operations.

use core::ops::Bound;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::schema::TableId;

/// Encoded clustering key: compares as the rows are ordered.
pub(crate) type RowKey = Vec<u8>;

/// Token, then serialized partition key.
pub(crate) type PartitionKey = (i64, Bytes);

/// A cell: none as value is a deletion.
#[derive(Clone, Debug)]
struct Cell {
    timestamp: i64,
    value: Option<Bytes>,
    /// Microseconds at which it is gone.
    expires: Option<i64>,
}

impl Cell {
    /// Later wins; at a tie a deletion wins, then the greater value.
    fn beats(&self, other: &Self) -> bool {
        (self.timestamp, self.value.is_none(), &self.value)
            > (other.timestamp, other.value.is_none(), &other.value)
    }

    fn live(&self, dead_at: i64, now: i64) -> bool {
        self.timestamp > dead_at && self.expires.is_none_or(|at| at > now)
    }
}

/// A row: its clustering values, whether an INSERT made it, and its cells by column id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) clustering: Vec<Bytes>,
    marker: Option<Cell>,
    cells: BTreeMap<u16, Cell>,
    dead_at: Option<i64>,
}

/// A row as it reads now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveRow<'a> {
    row: &'a Row,
    dead_at: i64,
    now: i64,
}

impl<'a> LiveRow<'a> {
    pub(crate) fn clustering(&self) -> &'a [Bytes] {
        &self.row.clustering
    }

    pub(crate) fn cell(&self, column: u16) -> Option<Bytes> {
        let cell = self.row.cells.get(&column)?;
        if cell.live(self.dead_at, self.now) {
            cell.value.clone()
        } else {
            None
        }
    }
}

/// A partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub(crate) components: Vec<Bytes>,
    rows: BTreeMap<RowKey, Row>,
    dead_at: Option<i64>,
    dead_ranges: Vec<(Bound<RowKey>, Bound<RowKey>, i64)>,
}

impl Partition {
    /// Live rows between two bounds, in order.
    pub(crate) fn rows(
        &self,
        range: (Bound<RowKey>, Bound<RowKey>),
        now: i64,
    ) -> Box<dyn DoubleEndedIterator<Item = (&RowKey, LiveRow<'_>)> + '_> {
        if is_empty(&range) {
            return Box::new(core::iter::empty());
        }
        let rows = self.rows.range(range);
        Box::new(rows.filter_map(move |(key, row)| Some((key, self.live(key, row, now)?))))
    }

    fn live<'a>(&'a self, key: &RowKey, row: &'a Row, now: i64) -> Option<LiveRow<'a>> {
        let dead_at = self.dead_at(key, row);
        let marked = row
            .marker
            .as_ref()
            .is_some_and(|marker| marker.live(dead_at, now));
        let celled = || {
            row.cells
                .values()
                .any(|c| c.value.is_some() && c.live(dead_at, now))
        };
        (marked || celled()).then_some(LiveRow { row, dead_at, now })
    }

    /// The latest deletion that covers a row.
    fn dead_at(&self, key: &RowKey, row: &Row) -> i64 {
        let ranges = self
            .dead_ranges
            .iter()
            .filter(|(low, high, _)| within(key, low, high))
            .map(|(_, _, at)| *at);
        ranges
            .chain(self.dead_at)
            .chain(row.dead_at)
            .max()
            .unwrap_or(i64::MIN)
    }
}

fn within(key: &RowKey, low: &Bound<RowKey>, high: &Bound<RowKey>) -> bool {
    let above = match low {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    };
    above
        && match high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        }
}

/// Ranges that `BTreeMap::range` would refuse hold nothing.
fn is_empty((low, high): &(Bound<RowKey>, Bound<RowKey>)) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
        _ => false,
    }
}

/// What a write does to one row.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    pub(crate) clustering: Vec<Bytes>,
    pub(crate) timestamp: i64,
    /// Microseconds at which values of this write are gone.
    pub(crate) expires: Option<i64>,
    /// An INSERT: the row exists even without cells.
    pub(crate) mark: bool,
    /// Deletes the row.
    pub(crate) delete: bool,
    /// New values by column id; none deletes the cell.
    pub(crate) cells: Vec<(u16, Option<Bytes>)>,
}

/// All rows of one table.
#[derive(Debug, Default)]
pub(crate) struct TableRows {
    pub(crate) partitions: BTreeMap<PartitionKey, Partition>,
}

impl TableRows {
    fn partition(&mut self, key: PartitionKey, components: Vec<Bytes>) -> &mut Partition {
        self.partitions.entry(key).or_insert_with(|| Partition {
            components,
            ..Partition::default()
        })
    }

    pub(crate) fn apply(
        &mut self,
        key: PartitionKey,
        components: Vec<Bytes>,
        row_key: RowKey,
        change: RowChange,
    ) {
        let RowChange {
            clustering,
            timestamp,
            expires,
            mark,
            delete,
            cells,
        } = change;
        let partition = self.partition(key, components);
        let row = partition.rows.entry(row_key).or_insert_with(|| Row {
            clustering,
            ..Row::default()
        });
        if delete {
            row.dead_at = row.dead_at.max(Some(timestamp));
        }
        if mark {
            let marker = Cell {
                timestamp,
                value: Some(Bytes::new()),
                expires,
            };
            if row.marker.as_ref().is_none_or(|old| marker.beats(old)) {
                row.marker = Some(marker);
            }
        }
        for (column, value) in cells {
            let cell = Cell {
                timestamp,
                expires: expires.filter(|_| value.is_some()),
                value,
            };
            match row.cells.get_mut(&column) {
                Some(old) if !cell.beats(old) => {}
                Some(old) => *old = cell,
                None => {
                    row.cells.insert(column, cell);
                }
            }
        }
    }

    pub(crate) fn delete_partition(
        &mut self,
        key: PartitionKey,
        components: Vec<Bytes>,
        timestamp: i64,
    ) {
        let partition = self.partition(key, components);
        partition.dead_at = partition.dead_at.max(Some(timestamp));
    }

    pub(crate) fn delete_range(
        &mut self,
        key: PartitionKey,
        components: Vec<Bytes>,
        (low, high): (Bound<RowKey>, Bound<RowKey>),
        timestamp: i64,
    ) {
        self.partition(key, components)
            .dead_ranges
            .push((low, high, timestamp));
    }
}

/// The rows of every table.
#[derive(Debug, Default)]
pub(crate) struct Store {
    tables: HashMap<TableId, TableRows>,
}

impl Store {
    pub(crate) fn table(&self, id: &TableId) -> Option<&TableRows> {
        self.tables.get(id)
    }

    pub(crate) fn table_mut(&mut self, id: TableId) -> &mut TableRows {
        self.tables.entry(id).or_default()
    }

    /// Forgets all rows of a table (TRUNCATE, DROP).
    pub(crate) fn clear(&mut self, id: &TableId) {
        self.tables.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(timestamp: i64, value: Option<&'static str>) -> RowChange {
        RowChange {
            clustering: Vec::new(),
            timestamp,
            expires: None,
            mark: false,
            delete: false,
            cells: vec![(1, value.map(|text| Bytes::from_static(text.as_bytes())))],
        }
    }

    fn read(rows: &TableRows, now: i64) -> Option<Bytes> {
        let partition = rows.partitions.get(&(0, Bytes::new()))?;
        let (_, row) = partition
            .rows((Bound::Unbounded, Bound::Unbounded), now)
            .next()?;
        row.cell(1)
    }

    fn apply(rows: &mut TableRows, change: RowChange) {
        rows.apply((0, Bytes::new()), Vec::new(), RowKey::new(), change);
    }

    #[test]
    fn the_latest_write_wins_in_any_order() {
        // (timestamp, value) pairs in arrival order, then what reads.
        type Writes = &'static [(i64, Option<&'static str>)];
        let cases: &[(Writes, Option<&str>)] = &[
            (&[(1, Some("a")), (2, Some("b"))], Some("b")),
            (&[(2, Some("b")), (1, Some("a"))], Some("b")),
            (&[(1, Some("a")), (1, Some("b"))], Some("b")),
            (&[(1, Some("b")), (1, Some("a"))], Some("b")),
            (&[(1, Some("a")), (1, None)], None),
            (&[(1, None), (1, Some("a"))], None),
            (&[(2, None), (1, Some("a"))], None),
            (&[(1, None), (2, Some("a"))], Some("a")),
        ];
        for (writes, expected) in cases {
            let mut rows = TableRows::default();
            for (timestamp, value) in *writes {
                apply(&mut rows, change(*timestamp, *value));
            }
            assert_eq!(
                read(&rows, 0).as_deref(),
                expected.map(str::as_bytes),
                "{writes:?}"
            );
        }
    }

    #[test]
    fn deletions_cover_older_writes_that_come_later() {
        let deletions: [fn(&mut TableRows); 3] = [
            |rows| rows.delete_partition((0, Bytes::new()), Vec::new(), 5),
            |rows| {
                let all = (Bound::Unbounded, Bound::Unbounded);
                rows.delete_range((0, Bytes::new()), Vec::new(), all, 5);
            },
            |rows| {
                apply(
                    rows,
                    RowChange {
                        delete: true,
                        cells: vec![],
                        ..change(5, None)
                    },
                )
            },
        ];
        for delete in deletions {
            let mut rows = TableRows::default();
            delete(&mut rows);
            apply(&mut rows, change(5, Some("old")));
            assert_eq!(read(&rows, 0), None);
            apply(&mut rows, change(6, Some("new")));
            assert_eq!(read(&rows, 0).as_deref(), Some(&b"new"[..]));
        }
    }

    #[test]
    fn values_expire_and_markers_keep_rows() {
        let mut rows = TableRows::default();
        apply(
            &mut rows,
            RowChange {
                expires: Some(100),
                ..change(1, Some("a"))
            },
        );
        assert!(read(&rows, 99).is_some() && read(&rows, 100).is_none());
        let all = || (Bound::Unbounded, Bound::Unbounded);
        let count = |rows: &TableRows| rows.partitions[&(0, Bytes::new())].rows(all(), 200).count();
        assert_eq!(count(&rows), 0, "a row is its live cells");
        apply(
            &mut rows,
            RowChange {
                mark: true,
                cells: vec![],
                ..change(2, None)
            },
        );
        assert_eq!(count(&rows), 1, "or its marker");
    }
}
