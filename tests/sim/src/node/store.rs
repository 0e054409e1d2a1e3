//! Rows of the whole cluster, once: where copies live is a fact of routing, not of storage.
//!
//! Last write wins by timestamp, cell by cell; deletions are remembered so that an older write
//! that comes later stays dead. Partitions are ordered by token, rows by encoded clustering key.
//! A store per replica would take the place of [`Store`] behind the same operations.

mod parts;

use core::ops::Bound;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

pub(crate) use self::parts::{Clear, ListChange, Part, PartsChange};

use self::parts::Parts;
use super::schema::{Role, Table, TableId};

/// Encoded clustering key: compares as the rows are ordered.
pub(crate) type RowKey = Vec<u8>;

/// Bounds of encoded clustering keys.
pub(crate) type RowRange = (Bound<RowKey>, Bound<RowKey>);

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

/// Cells by column id.
#[derive(Clone, Debug, Default)]
struct Cells {
    whole: BTreeMap<u16, Cell>,
    /// Of columns that are stored in parts.
    parts: BTreeMap<u16, Parts>,
}

impl Cells {
    fn live(&self, column: u16, dead_at: i64, now: i64) -> Option<&Cell> {
        let cell = self.whole.get(&column)?;
        (cell.value.is_some() && cell.live(dead_at, now)).then_some(cell)
    }

    fn any_live(&self, dead_at: i64, now: i64) -> bool {
        let is_live = |cell: &Cell| cell.value.is_some() && cell.live(dead_at, now);
        self.whole.values().any(is_live)
            || self
                .parts
                .values()
                .any(|parts| parts.live(dead_at, now).next().is_some())
    }

    /// `dead_at` is the latest deletion of what the cells belong to.
    fn apply(&mut self, changes: Vec<(u16, CellChange)>, (stamp, dead_at): (Stamp, i64)) {
        for (column, change) in changes {
            let old = self.whole.get(&column);
            let cell = match change {
                CellChange::Set(value) => Cell {
                    timestamp: stamp.timestamp,
                    expires: stamp.expires.filter(|_| value.is_some()),
                    value,
                },
                CellChange::Count(delta) => counted(old, delta, (stamp, dead_at)),
                CellChange::Parts(change) => {
                    self.parts.entry(column).or_default().apply(change, stamp);
                    continue;
                }
            };
            if old.is_none_or(|old| cell.beats(old)) {
                self.whole.insert(column, cell);
            }
        }
    }
}

/// A counter after an increment; it never loses to what it counted on.
fn counted(old: Option<&Cell>, delta: i64, (stamp, dead_at): (Stamp, i64)) -> Cell {
    let before = old
        .filter(|old| old.timestamp > dead_at)
        .and_then(|old| <[u8; 8]>::try_from(&old.value.as_ref()?[..]).ok())
        .map_or(0, i64::from_be_bytes);
    let after = before.wrapping_add(delta).to_be_bytes();
    let floor = old.map_or(i64::MIN, |old| old.timestamp.saturating_add(1));
    Cell {
        timestamp: stamp.timestamp.max(floor),
        value: Some(Bytes::copy_from_slice(&after)),
        expires: None,
    }
}

/// A row: its clustering values, whether an INSERT made it, and its cells.
#[derive(Clone, Debug, Default)]
struct Row {
    clustering: Vec<Bytes>,
    marker: Option<Cell>,
    cells: Cells,
    dead_at: Option<i64>,
}

/// A row as it reads now, with what it shares with its partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveRow<'a> {
    partition: &'a Partition,
    /// None where a partition has nothing but static values.
    row: Option<(&'a Row, i64)>,
    now: i64,
}

impl LiveRow<'_> {
    /// The value of the column at a position of its table.
    pub(crate) fn value(&self, table: &Table, column: usize) -> Option<Bytes> {
        let definition = table.columns.get(column)?;
        match definition.role {
            Role::PartitionKey => self.partition.components.get(column).cloned(),
            Role::Clustering { .. } => {
                let (row, _) = self.row?;
                row.clustering.get(column - table.partition_len).cloned()
            }
            Role::Static | Role::Regular if definition.ty.is_multi_cell() => {
                let (cells, dead_at) = self.cells(definition.role)?;
                let parts = cells.parts.get(&definition.id)?;
                parts.value(&definition.ty, dead_at, self.now)
            }
            Role::Static | Role::Regular => self.cell(table, column)?.value.clone(),
        }
    }

    /// Timestamp of the cell of a column and when it is gone.
    pub(crate) fn written(&self, table: &Table, column: usize) -> Option<(i64, Option<i64>)> {
        let cell = self.cell(table, column)?;
        Some((cell.timestamp, cell.expires))
    }

    /// The live parts of a column, by its id.
    pub(crate) fn parts(&self, table: &Table, id: u16) -> Option<Vec<Part>> {
        let definition = table.columns.iter().find(|column| column.id == id)?;
        let (cells, dead_at) = self.cells(definition.role)?;
        let live = cells.parts.get(&id)?.live(dead_at, self.now);
        let part = |(order, path, value): (&Vec<u8>, &Bytes, &Bytes)| Part {
            order: order.clone(),
            path: path.clone(),
            value: Some(value.clone()),
        };
        Some(live.map(part).collect())
    }

    fn cell(&self, table: &Table, column: usize) -> Option<&Cell> {
        let definition = table.columns.get(column)?;
        let (cells, dead_at) = self.cells(definition.role)?;
        cells.live(definition.id, dead_at, self.now)
    }

    /// The cells of columns of a role, with the latest deletion of what they belong to.
    fn cells(&self, role: Role) -> Option<(&Cells, i64)> {
        if role == Role::Static {
            let dead_at = self.partition.dead_at.unwrap_or(i64::MIN);
            return Some((&self.partition.statics, dead_at));
        }
        let (row, dead_at) = self.row?;
        Some((&row.cells, dead_at))
    }
}

/// A partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    components: Vec<Bytes>,
    statics: Cells,
    rows: BTreeMap<RowKey, Row>,
    dead_at: Option<i64>,
    dead_ranges: Vec<(Bound<RowKey>, Bound<RowKey>, i64)>,
}

impl Partition {
    /// Rows between two bounds in order, none where what is stored is dead.
    pub(crate) fn entries(
        &self,
        range: RowRange,
        now: i64,
    ) -> Box<dyn DoubleEndedIterator<Item = (&RowKey, Option<LiveRow<'_>>)> + '_> {
        if is_empty(&range) {
            return Box::new(core::iter::empty());
        }
        let rows = self.rows.range(range);
        Box::new(rows.map(move |(key, row)| (key, self.live(key, row, now))))
    }

    /// The row of a key, if it is alive.
    pub(crate) fn row(&self, key: &RowKey, now: i64) -> Option<LiveRow<'_>> {
        let row = self.rows.get(key)?;
        self.live(key, row, now)
    }

    /// What all rows share, as a row without clustering key, if there is anything.
    pub(crate) fn statics(&self, now: i64) -> Option<LiveRow<'_>> {
        let dead_at = self.dead_at.unwrap_or(i64::MIN);
        self.statics.any_live(dead_at, now).then_some(LiveRow {
            partition: self,
            row: None,
            now,
        })
    }

    fn live<'a>(&'a self, key: &RowKey, row: &'a Row, now: i64) -> Option<LiveRow<'a>> {
        let dead_at = self.dead_at(key).max(row.dead_at.unwrap_or(i64::MIN));
        let marked = row
            .marker
            .as_ref()
            .is_some_and(|marker| marker.live(dead_at, now));
        (marked || row.cells.any_live(dead_at, now)).then_some(LiveRow {
            partition: self,
            row: Some((row, dead_at)),
            now,
        })
    }

    /// The latest deletion of a range or all that covers a row.
    fn dead_at(&self, key: &RowKey) -> i64 {
        let ranges = self
            .dead_ranges
            .iter()
            .filter(|(low, high, _)| within(key, low, high))
            .map(|(_, _, at)| *at);
        ranges.chain(self.dead_at).max().unwrap_or(i64::MIN)
    }

    fn apply(&mut self, stamp: Stamp, change: Change) {
        let Stamp { timestamp, expires } = stamp;
        match change {
            Change::Row {
                key,
                clustering,
                mark,
                cells,
            } => {
                let dead_at = self.dead_at(&key);
                let row = self.rows.entry(key).or_insert_with(|| Row {
                    clustering,
                    ..Row::default()
                });
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
                let dead_at = dead_at.max(row.dead_at.unwrap_or(i64::MIN));
                row.cells.apply(cells, (stamp, dead_at));
            }
            Change::Statics(cells) => {
                let dead_at = self.dead_at.unwrap_or(i64::MIN);
                self.statics.apply(cells, (stamp, dead_at));
            }
            Change::DeleteRow { key, clustering } => {
                let row = self.rows.entry(key).or_insert_with(|| Row {
                    clustering,
                    ..Row::default()
                });
                row.dead_at = row.dead_at.max(Some(timestamp));
            }
            Change::DeleteRange((low, high)) => self.dead_ranges.push((low, high, timestamp)),
            Change::DeletePartition => self.dead_at = self.dead_at.max(Some(timestamp)),
        }
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
fn is_empty((low, high): &RowRange) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
        _ => false,
    }
}

/// When the values of a write begin to hold and when they end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) timestamp: i64,
    /// Microseconds at which values are gone.
    pub(crate) expires: Option<i64>,
}

/// What a write does to a cell.
#[derive(Clone, Debug)]
pub(crate) enum CellChange {
    /// None deletes it.
    Set(Option<Bytes>),
    Parts(PartsChange),
    /// Adds to a counter.
    Count(i64),
}

/// What a write does to a partition.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Row {
        key: RowKey,
        clustering: Vec<Bytes>,
        /// An INSERT: the row exists even without cells.
        mark: bool,
        cells: Vec<(u16, CellChange)>,
    },
    Statics(Vec<(u16, CellChange)>),
    DeleteRow {
        key: RowKey,
        clustering: Vec<Bytes>,
    },
    DeleteRange(RowRange),
    DeletePartition,
}

/// All rows of one table.
#[derive(Debug, Default)]
pub(crate) struct TableRows {
    pub(crate) partitions: BTreeMap<PartitionKey, Partition>,
}

impl TableRows {
    /// Makes one change to the partition of a key, whose component values are given.
    pub(crate) fn apply(
        &mut self,
        key: PartitionKey,
        components: &[Bytes],
        stamp: Stamp,
        change: Change,
    ) {
        self.partitions
            .entry(key)
            .or_insert_with(|| Partition {
                components: components.to_vec(),
                ..Partition::default()
            })
            .apply(stamp, change);
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
    use super::super::cql::ColumnDefinition;
    use super::super::value::{CqlType, Native};
    use super::*;

    /// `pk blob, ck blob, s text static, v text`.
    fn table() -> Table {
        let column = |name: &str, native, is_static| ColumnDefinition {
            name: name.to_owned(),
            ty: CqlType::Native(native),
            is_static,
        };
        let columns = vec![
            column("pk", Native::Blob, false),
            column("ck", Native::Blob, false),
            column("s", Native::Text, true),
            column("v", Native::Text, false),
        ];
        let partition = ["pk".to_owned()];
        let clustering = [("ck".to_owned(), false)];
        Table::new([0; 16], ("ks", "t"), columns, &partition, &clustering).unwrap()
    }

    const KEY: PartitionKey = (0, Bytes::new());
    const STATIC: usize = 2;
    const REGULAR: usize = 3;

    fn apply(rows: &mut TableRows, timestamp: i64, expires: Option<i64>, change: Change) {
        rows.apply(KEY, &[], Stamp { timestamp, expires }, change);
    }

    fn row(mark: bool, cells: Vec<(u16, CellChange)>) -> Change {
        Change::Row {
            key: RowKey::new(),
            clustering: Vec::new(),
            mark,
            cells,
        }
    }

    fn set(value: Option<&'static str>) -> CellChange {
        CellChange::Set(value.map(|text| Bytes::from_static(text.as_bytes())))
    }

    fn read(rows: &TableRows, now: i64) -> Option<Bytes> {
        let partition = rows.partitions.get(&KEY)?;
        partition.row(&RowKey::new(), now)?.value(&table(), REGULAR)
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
                apply(
                    &mut rows,
                    *timestamp,
                    None,
                    row(false, vec![(3, set(*value))]),
                );
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
        let deletions = [
            Change::DeletePartition,
            Change::DeleteRange((Bound::Unbounded, Bound::Unbounded)),
            Change::DeleteRow {
                key: RowKey::new(),
                clustering: Vec::new(),
            },
        ];
        for deletion in deletions {
            let mut rows = TableRows::default();
            let text = format!("{deletion:?}");
            apply(&mut rows, 5, None, deletion);
            apply(&mut rows, 5, None, row(false, vec![(3, set(Some("old")))]));
            assert_eq!(read(&rows, 0), None, "{text}");
            apply(&mut rows, 6, None, row(false, vec![(3, set(Some("new")))]));
            assert_eq!(read(&rows, 0).as_deref(), Some(&b"new"[..]), "{text}");
        }
    }

    #[test]
    fn values_expire_and_markers_keep_rows() {
        let mut rows = TableRows::default();
        apply(
            &mut rows,
            1,
            Some(100),
            row(false, vec![(3, set(Some("a")))]),
        );
        assert!(read(&rows, 99).is_some() && read(&rows, 100).is_none());
        let is_live = |rows: &TableRows| rows.partitions[&KEY].row(&RowKey::new(), 200).is_some();
        assert!(!is_live(&rows), "a row is its live cells");
        apply(&mut rows, 2, None, row(true, vec![]));
        assert!(is_live(&rows), "or its marker");
    }

    #[test]
    fn statics_live_without_rows_and_die_with_the_partition() {
        let mut rows = TableRows::default();
        let statics = |rows: &TableRows| {
            let statics = rows.partitions[&KEY].statics(0)?;
            statics.value(&table(), STATIC)
        };
        apply(
            &mut rows,
            1,
            None,
            Change::Statics(vec![(2, set(Some("s")))]),
        );
        assert_eq!(statics(&rows).as_deref(), Some(&b"s"[..]));
        let all = (Bound::Unbounded, Bound::Unbounded);
        apply(&mut rows, 2, None, Change::DeleteRange(all));
        assert!(statics(&rows).is_some(), "ranges are of rows");
        apply(&mut rows, 2, None, Change::DeletePartition);
        assert_eq!(statics(&rows), None);
    }

    #[test]
    fn counters_add_up_and_begin_anew_after_a_deletion() {
        let mut rows = TableRows::default();
        let count = |rows: &mut TableRows, timestamp, delta| {
            apply(
                rows,
                timestamp,
                None,
                row(false, vec![(3, CellChange::Count(delta))]),
            );
            let value = read(rows, 0).expect("a count");
            i64::from_be_bytes(value[..].try_into().unwrap())
        };
        assert_eq!(count(&mut rows, 1, 5), 5);
        assert_eq!(count(&mut rows, 1, -7), -2, "a tie counts as well");
        assert_eq!(count(&mut rows, 2, i64::MAX), i64::MAX - 2);
        apply(&mut rows, 3, None, row(false, vec![(3, set(None))]));
        assert_eq!(read(&rows, 0), None);
        assert_eq!(count(&mut rows, 4, 1), 1);
        apply(&mut rows, 5, None, Change::DeletePartition);
        assert_eq!(count(&mut rows, 6, 1), 1);
    }
}
