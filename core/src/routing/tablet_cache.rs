//! All learned tablets of a session: the one writer of their tables, bounded in bytes.
//!
//! Learning drops every tablet that the new one overlaps, so ranges never do. Above `bytes_max`
//! tablets are dropped by a clock: a hand goes round all chunks, takes the mark of those that
//! were looked up since its last visit, and drops those that have none. Tablets of nodes that
//! left are dropped, hosts that were not known are resolved, when the topology changes.

use super::tablet_table::{
    CHUNK_LEN_MAX, Chunk, ChunkBuilder, Directory, Slot, TabletTable, names_only_present,
};
use super::{LearnedTablet, TableRef, Topology};
use crate::sync::{Shared, Snapshot};
use alloc::vec::Vec;

/// What came of a tablet that was to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learned {
    /// It is stored; nothing was known about its range.
    Added,
    /// It is stored in place of this many tablets that overlap it.
    Replaced {
        /// How many were dropped.
        dropped: usize,
    },
    /// It was stored already: requests in flight learn the same.
    Unchanged,
    /// The table is gone, was made anew, or has no tablets.
    UnknownTable,
}

/// Figures of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TabletStats {
    /// Tablets stored.
    pub cached: usize,
    /// Memory they take, their chunks included.
    pub bytes: usize,
    /// Tablets dropped so far because of the bound.
    pub evicted: u64,
}

/// The writer of all tablet tables.
#[derive(Debug)]
pub(super) struct TabletCache {
    tables: Vec<Option<Cached>>,
    bytes_max: usize,
    stats: TabletStats,
    hand: Hand,
}

#[derive(Debug)]
struct Cached {
    generation: u32,
    table: Shared<TabletTable>,
}

/// Where the clock stands.
#[derive(Clone, Copy, Debug, Default)]
struct Hand {
    table: usize,
    slot: usize,
}

impl TabletCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        let (stats, hand) = (TabletStats::default(), Hand::default());
        Self {
            tables: Vec::new(),
            bytes_max,
            stats,
            hand,
        }
    }

    pub(super) const fn stats(&self) -> TabletStats {
        self.stats
    }

    /// An empty table under this handle; an older one in its place is dropped.
    pub(super) fn add_table(&mut self, handle: TableRef) -> Shared<TabletTable> {
        self.remove_table(handle.place());
        let table = Shared::new(TabletTable::new());
        let end = handle.place().saturating_add(1);
        if self.tables.len() < end {
            self.tables.resize_with(end, || None);
        }
        if let Some(place) = self.tables.get_mut(handle.place()) {
            let table = table.clone();
            *place = Some(Cached {
                generation: handle.generation(),
                table,
            });
        }
        table
    }

    /// Drops a table and its tablets.
    pub(super) fn remove_table(&mut self, place: usize) {
        if let Some(cached) = self.tables.get_mut(place).and_then(Option::take) {
            self.discharge(&cached.table.directory());
        }
    }

    /// Drops the tablets of a table, which stays.
    pub(super) fn clear_table(&mut self, place: usize) {
        if let Some(Some(cached)) = self.tables.get(place) {
            let directory = cached.table.directory();
            cached.table.replace_directory(Vec::new());
            self.discharge(&directory);
        }
    }

    /// Stores a tablet in place of all that it overlaps.
    pub(super) fn insert(
        &mut self,
        handle: TableRef,
        learned: &LearnedTablet,
        topology: &Topology,
    ) -> Learned {
        let table = match self.tables.get(handle.place()) {
            Some(Some(cached)) if cached.generation == handle.generation() => cached.table.clone(),
            _ => return Learned::UnknownTable,
        };
        if table.holds(learned, topology) {
            return Learned::Unchanged;
        }
        let dropped = self.replace_overlaps(&table, learned, topology);
        self.evict(topology);
        match dropped {
            0 => Learned::Added,
            dropped => Learned::Replaced { dropped },
        }
    }

    /// Rewrites the chunk, or the run of chunks, that a tablet falls into.
    fn replace_overlaps(
        &mut self,
        table: &TabletTable,
        learned: &LearnedTablet,
        topology: &Topology,
    ) -> usize {
        let directory = table.directory();
        // The range is not empty, so the token behind `first` exists.
        let low = directory.place_of(learned.first.saturating_add(1));
        let high = directory.place_of(learned.last);
        let affected = directory.slots.get(low..=high).unwrap_or_default();
        let head = affected.first().map(|slot| slot.chunk.load());
        let tail = affected.last().map(|slot| slot.chunk.load());
        let head_end = head.as_ref().map_or(0, |chunk| {
            chunk
                .tablets
                .partition_point(|tablet| tablet.last <= learned.first)
        });
        let tail = tail.map(|chunk| {
            let start = chunk
                .tablets
                .partition_point(|tablet| tablet.first < learned.last);
            (start..chunk.tablets.len(), chunk)
        });
        let tail_len = tail.as_ref().map_or(0, |(kept, _)| kept.len());
        let kept = head_end.saturating_add(tail_len);

        let mut pieces = Pieces::new(topology, kept.saturating_add(1));
        if let Some(chunk) = &head {
            (0..head_end).for_each(|at| pieces.push(|builder| builder.push_copy(chunk, at)));
        }
        pieces.push(|builder| builder.push_learned(learned));
        if let Some((kept, chunk)) = tail {
            kept.for_each(|at| pieces.push(|builder| builder.push_copy(&chunk, at)));
        }
        let chunks = pieces.done;

        let before = self.stats.cached;
        chunks.iter().for_each(|chunk| self.count(chunk));
        for slot in affected {
            slot.chunk.with(|chunk| self.discount(chunk));
        }
        let dropped = before.saturating_add(1).saturating_sub(self.stats.cached);
        match (affected, <[Chunk; 1]>::try_from(chunks)) {
            ([slot], Ok([chunk])) => slot.chunk.store(Shared::new(chunk)),
            (affected, chunks) => {
                let end = affected.last().map_or(i64::MAX, |slot| slot.last);
                let chunks = chunks.map_or_else(|many| many, Vec::from);
                table.replace_directory(spliced(&directory, low, high, chunks, end));
            }
        }
        dropped
    }

    /// Drops tablets of nodes that are gone and resolves hosts that have become known.
    pub(super) fn refresh(&mut self, topology: &Topology) {
        let tables = self
            .tables
            .iter()
            .flatten()
            .map(|cached| cached.table.clone());
        for table in tables.collect::<Vec<_>>() {
            let directory = table.directory();
            for slot in &directory.slots {
                let chunk = slot.chunk.load();
                let keep = |at: &usize| names_only_present(&chunk, *at, topology);
                let all = (0..chunk.tablets.len()).all(|at| keep(&at));
                if all && !chunk.has_unresolved() {
                    continue;
                }
                let mut builder = ChunkBuilder::new(topology, chunk.tablets.len());
                (0..chunk.tablets.len())
                    .filter(keep)
                    .for_each(|at| builder.push_copy(&chunk, at));
                self.store(&slot.chunk, &chunk, builder.build());
            }
            self.drop_empty(&table);
        }
    }

    /// Drops little-used tablets until the bound is kept. Two rounds suffice unless readers mark
    /// faster than the hand goes; after that marks no longer count.
    fn evict(&mut self, topology: &Topology) {
        let chunks = self
            .tables
            .iter()
            .flatten()
            .map(|c| c.table.directory().slots.len());
        let mut visits = chunks.sum::<usize>().saturating_mul(2).saturating_add(1);
        while self.stats.bytes > self.bytes_max {
            let Some((table, slot)) = self.at_hand() else {
                break;
            };
            let marks_count = visits > 0;
            visits = visits.saturating_sub(1);
            self.sweep(&slot.chunk, marks_count, topology);
            self.hand.slot = self.hand.slot.saturating_add(1);
            if slot.chunk.with(|chunk| chunk.tablets.is_empty()) {
                self.hand.slot = self.hand.slot.saturating_sub(1);
                self.drop_empty(&table);
            }
        }
    }

    /// The chunk at the hand, which moves on to the next one if there is none there.
    fn at_hand(&mut self) -> Option<(Shared<TabletTable>, Slot)> {
        // Once round, and back to the table it stands in.
        for _ in 0..=self.tables.len() {
            if let Some(Some(cached)) = self.tables.get(self.hand.table)
                && let Some(slot) = cached.table.directory().slots.get(self.hand.slot)
            {
                return Some((cached.table.clone(), slot.clone()));
            }
            let table = self.hand.table.saturating_add(1);
            let table = if table < self.tables.len() { table } else { 0 };
            self.hand = Hand { table, slot: 0 };
        }
        None
    }

    /// One visit of the clock: unmarked tablets go, as many as are needed; the others lose their
    /// marks.
    fn sweep(&mut self, cell: &Snapshot<Chunk>, marks_count: bool, topology: &Topology) {
        let chunk = cell.load();
        let mut needed = self.stats.bytes.saturating_sub(self.bytes_max);
        let mut builder = ChunkBuilder::new(topology, chunk.tablets.len());
        for at in 0..chunk.tablets.len() {
            if needed > 0 && !(marks_count && chunk.is_used(at)) {
                needed = needed.saturating_sub(chunk.bytes_of(at));
                self.stats.evicted = self.stats.evicted.saturating_add(1);
            } else {
                builder.push_unmarked(&chunk, at);
            }
        }
        if builder.len() == chunk.tablets.len() {
            chunk.clear_used();
        } else {
            self.store(cell, &chunk, builder.build());
        }
    }

    fn store(&mut self, cell: &Snapshot<Chunk>, old: &Chunk, new: Chunk) {
        self.discount(old);
        self.count(&new);
        cell.store(Shared::new(new));
    }

    /// Takes chunks without tablets out of the directory.
    fn drop_empty(&mut self, table: &TabletTable) {
        let directory = table.directory();
        let is_empty = |slot: &Slot| slot.chunk.with(|chunk| chunk.tablets.is_empty());
        if !directory.slots.iter().any(is_empty) {
            return;
        }
        let (empty, mut slots): (Vec<Slot>, Vec<Slot>) =
            directory.slots.iter().cloned().partition(is_empty);
        for slot in empty {
            slot.chunk.with(|chunk| self.discount(chunk));
        }
        if let Some(slot) = slots.last_mut() {
            slot.last = i64::MAX;
        }
        table.replace_directory(slots);
    }

    fn discharge(&mut self, directory: &Directory) {
        for slot in &directory.slots {
            slot.chunk.with(|chunk| self.discount(chunk));
        }
    }

    fn count(&mut self, chunk: &Chunk) {
        self.stats.cached = self.stats.cached.saturating_add(chunk.tablets.len());
        self.stats.bytes = self.stats.bytes.saturating_add(chunk.bytes());
    }

    fn discount(&mut self, chunk: &Chunk) {
        self.stats.cached = self.stats.cached.saturating_sub(chunk.tablets.len());
        self.stats.bytes = self.stats.bytes.saturating_sub(chunk.bytes());
    }
}

/// The directory with the chunks at `low..=high` replaced. Each new chunk reaches to its last
/// tablet, the last one to `end`.
fn spliced(
    directory: &Directory,
    low: usize,
    high: usize,
    chunks: Vec<Chunk>,
    end: i64,
) -> Vec<Slot> {
    let before = directory.slots.get(..low).unwrap_or_default();
    let after = directory
        .slots
        .get(high.saturating_add(1)..)
        .unwrap_or_default();
    let mut slots = Vec::with_capacity(
        before
            .len()
            .saturating_add(chunks.len())
            .saturating_add(after.len()),
    );
    slots.extend_from_slice(before);
    let count = chunks.len();
    for (at, chunk) in chunks.into_iter().enumerate() {
        let is_last = at.saturating_add(1) == count;
        let reach = chunk.tablets.last().map_or(end, |tablet| tablet.last);
        slots.push(Slot::new(if is_last { end } else { reach }, chunk));
    }
    slots.extend_from_slice(after);
    slots
}

/// Cuts a run of tablets into chunks of equal size.
struct Pieces<'a> {
    topology: &'a Topology,
    done: Vec<Chunk>,
    building: ChunkBuilder<'a>,
    /// Tablets that are still to come, the chunk being built included.
    left: usize,
    /// How many the chunk being built gets.
    size: usize,
}

impl<'a> Pieces<'a> {
    fn new(topology: &'a Topology, len: usize) -> Self {
        let size = piece_len(len);
        let building = ChunkBuilder::new(topology, size);
        Self {
            topology,
            done: Vec::new(),
            building,
            left: len,
            size,
        }
    }

    fn push(&mut self, push: impl FnOnce(&mut ChunkBuilder<'a>)) {
        push(&mut self.building);
        if self.building.len() >= self.size {
            self.left = self.left.saturating_sub(self.size);
            self.size = piece_len(self.left);
            let next = ChunkBuilder::new(self.topology, self.size);
            self.done
                .push(core::mem::replace(&mut self.building, next).build());
        }
    }
}

/// The size of the next of the fewest equal pieces that `len` tablets fit into.
fn piece_len(len: usize) -> usize {
    len.div_ceil(len.div_ceil(CHUNK_LEN_MAX).max(1))
}
