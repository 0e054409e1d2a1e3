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
use crate::gather::Gather;
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

impl Learned {
    /// Whether it changed what is known.
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::Added | Self::Replaced { .. })
    }
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

impl TabletStats {
    pub(super) fn add(&mut self, chunk: &Chunk) {
        self.cached = self.cached.saturating_add(chunk.tablets.len());
        self.bytes = self.bytes.saturating_add(chunk.bytes());
    }
}

/// The writer of all tablet tables.
#[derive(Debug)]
pub(super) struct TabletCache {
    tables: Vec<Option<Cached>>,
    bytes_max: usize,
    stats: TabletStats,
    hand: Hand,
    /// The cell of a chunk that was replaced, for the next one.
    spare: Option<Shared<Chunk>>,
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
            spare: None,
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
        self.evict(topology, (&table, learned.last));
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
        drop(head);
        let chunks = pieces.done;

        let before = self.stats.cached;
        chunks.iter().for_each(|chunk| self.count(chunk));
        for slot in affected {
            slot.chunk.with(|chunk| self.discount(chunk));
        }
        let dropped = before.saturating_add(1).saturating_sub(self.stats.cached);
        if let ([slot], 1) = (affected, chunks.len()) {
            if let Some(chunk) = chunks.into_iter().next() {
                self.swap(&slot.chunk, chunk);
            }
        } else {
            let end = affected.last().map_or(i64::MAX, |slot| slot.last);
            table.replace_directory(spliced(&directory, low, high, chunks, end));
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
        for table in tables.gather() {
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

    /// Drops little-used tablets until the bound is kept, the one just learned not before all
    /// others. Two rounds suffice unless readers mark faster than the hand goes or the bound is
    /// very small; after that nothing is spared.
    fn evict(&mut self, topology: &Topology, learned: (&Shared<TabletTable>, i64)) {
        if self.stats.bytes <= self.bytes_max {
            return;
        }
        let chunks = self
            .tables
            .iter()
            .flatten()
            .map(|cached| cached.table.directory().slots.len());
        let mut visits = chunks.sum::<usize>().saturating_mul(2).saturating_add(1);
        while self.stats.bytes > self.bytes_max {
            let Some((table, slot)) = self.at_hand() else {
                break;
            };
            let spares = visits > 0;
            visits = visits.saturating_sub(1);
            let is_table = Shared::ptr_eq(&table, learned.0);
            let is_spared = |chunk: &Chunk, at: usize| {
                let last = chunk.tablets.get(at).map(|tablet| tablet.last);
                spares && (chunk.is_used(at) || is_table && last == Some(learned.1))
            };
            let before = self.stats.evicted;
            self.sweep(&slot.chunk, is_spared, topology);
            table.count_evicted(self.stats.evicted.saturating_sub(before));
            if slot.chunk.with(|chunk| chunk.tablets.is_empty()) {
                // The next chunk takes its place.
                self.drop_empty(&table);
            } else {
                self.hand.slot = self.hand.slot.saturating_add(1);
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

    /// One visit of the clock: tablets that are not spared go, as many as are needed; the others
    /// lose their marks.
    fn sweep(
        &mut self,
        cell: &Snapshot<Chunk>,
        is_spared: impl Fn(&Chunk, usize) -> bool,
        topology: &Topology,
    ) {
        let chunk = cell.load();
        let mut needed = self.stats.bytes.saturating_sub(self.bytes_max);
        let mut builder = ChunkBuilder::new(topology, chunk.tablets.len());
        for at in 0..chunk.tablets.len() {
            if needed > 0 && !is_spared(&chunk, at) {
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
        self.swap(cell, new);
    }

    /// Replaces a chunk in the cell that the last one left, and keeps the cell of this one. A cell
    /// that a reader still holds is not used again.
    fn swap(&mut self, cell: &Snapshot<Chunk>, new: Chunk) {
        let mut spare = self.spare.take().unwrap_or_default();
        let new = match Shared::get_mut(&mut spare) {
            Some(place) => {
                *place = new;
                spare
            }
            None => Shared::new(new),
        };
        let mut old = cell.swap(new);
        if let Some(chunk) = Shared::get_mut(&mut old) {
            *chunk = Chunk::default();
            self.spare = Some(old);
        }
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
        self.stats.add(chunk);
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
    chunks: heapless::Vec<Chunk, PIECES_MAX>,
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
    done: heapless::Vec<Chunk, PIECES_MAX>,
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
            done: heapless::Vec::new(),
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
            let done = core::mem::replace(&mut self.building, next).build();
            let fits = self.done.push(done).is_ok();
            debug_assert!(fits, "two chunks and one tablet fit into three pieces");
        }
    }
}

/// What remains of two chunks, and one tablet, never makes more.
const PIECES_MAX: usize = 3;

/// The size of the next of the fewest equal pieces that `len` tablets fit into.
fn piece_len(len: usize) -> usize {
    len.div_ceil(len.div_ceil(CHUNK_LEN_MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::spec;
    use super::super::{LearnedReplica, NodeIdx, PayloadKind, TabletVersion, Token, parse_payload};
    use super::*;
    use crate::rng::SmallRng;
    use std::vec;
    use uuid::Uuid;

    const TABLE: TableRef = TableRef::new(0, 1);
    const UNBOUND: usize = usize::MAX;

    fn topology(nodes: &[u8]) -> Topology {
        let specs: Vec<_> = nodes.iter().map(|&n| spec(n, "a", "r", &[])).collect();
        Topology::new().with_nodes(&specs, 100).0
    }

    fn learned(first: i64, last: i64, version: u64, nodes: &[u8]) -> LearnedTablet {
        let replica = |&n: &u8| LearnedReplica {
            host_id: Uuid::from_u128(u128::from(n)),
            shard: u16::from(n) + 100,
        };
        let replicas = nodes.iter().map(replica).collect();
        LearnedTablet::new(first, last, Some(TabletVersion::new(version)), replicas).unwrap()
    }

    /// Version of the tablet that owns a token.
    fn version(table: &TabletTable, token: i64) -> Option<u64> {
        table
            .find(Token::new(token))?
            .version
            .map(TabletVersion::bits)
    }

    /// Nodes of the tablet that owns a token, `None` for those not known.
    fn nodes(table: &TabletTable, token: i64) -> Option<Vec<Option<u16>>> {
        let hit = table.find(Token::new(token))?;
        Some(
            hit.replicas
                .iter()
                .map(|r| r.node().map(NodeIdx::value))
                .collect(),
        )
    }

    /// What must hold after every change.
    fn check(cache: &TabletCache) {
        let (mut cached, mut bytes) = (0, 0);
        let mut by_table = TabletStats::default();
        for table in cache.tables.iter().flatten() {
            let directory = table.table.directory();
            let stats = table.table.stats();
            by_table.cached += stats.cached;
            by_table.bytes += stats.bytes;
            by_table.evicted += stats.evicted;
            assert_eq!(
                directory.slots.last().map_or(i64::MAX, |slot| slot.last),
                i64::MAX
            );
            let mut behind = i64::MIN;
            let mut slot_behind = i64::MIN;
            for slot in &directory.slots {
                let chunk = slot.chunk.load();
                assert!((1..=CHUNK_LEN_MAX).contains(&chunk.tablets.len()));
                for tablet in &chunk.tablets {
                    assert!(behind <= tablet.first && tablet.first < tablet.last);
                    assert!(slot_behind <= tablet.first && tablet.last <= slot.last);
                    behind = tablet.last;
                }
                slot_behind = slot.last;
                cached += chunk.tablets.len();
                bytes += chunk.bytes();
            }
        }
        assert_eq!((cache.stats.cached, cache.stats.bytes), (cached, bytes));
        // Those of tables that were dropped are not found by table any more.
        assert_eq!((by_table.cached, by_table.bytes), (cached, bytes));
        assert!(by_table.evicted <= cache.stats.evicted);
        assert!(bytes <= cache.bytes_max);
    }

    fn parsed(hex: &str) -> LearnedTablet {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
        parse_payload(PayloadKind::V1, &bytes).unwrap()
    }

    /// Two halves of the ring, then one tablet that overlaps both. Replicas are named before one
    /// of them is known, then it appears, then another one leaves and one is replaced.
    #[test]
    fn borders_overlaps_and_replicas_that_come_and_go() {
        const A: u128 = 0xaaaa_aaaa_0000_0000_0000_0000_0000_0001;
        const B: u128 = 0xbbbb_bbbb_0000_0000_0000_0000_0000_0002;
        const C: u128 = 0xcccc_cccc_0000_0000_0000_0000_0000_0003;
        let t1 = parsed(
            "0000000880000000000000000000000800000000000000000000004400000002\
             0000001c00000010aaaaaaaa0000000000000000000000010000000400000000\
             0000001c00000010bbbbbbbb0000000000000000000000020000000400000001",
        );
        let t2 = parsed(
            "000000080000000000000000000000087fffffffffffffff0000004400000002\
             0000001c00000010bbbbbbbb0000000000000000000000020000000400000000\
             0000001c00000010cccccccc0000000000000000000000030000000400000003",
        );
        let t3 = parsed(
            "00000008ffffffffffffff9c0000000800000000000000640000004400000002\
             0000001c00000010cccccccc0000000000000000000000030000000400000002\
             0000001c00000010aaaaaaaa0000000000000000000000010000000400000001",
        );
        let with = |before: &Topology, ids: &[u128]| {
            let specs: Vec<_> = (1..)
                .zip(ids)
                .map(|(n, &id)| {
                    let mut node = spec(n, "a", "r", &[]);
                    node.host_id = Uuid::from_u128(id);
                    node
                })
                .collect();
            before.with_nodes(&specs, 100).0
        };
        let known = with(&Topology::new(), &[A, B]);
        let mut cache = TabletCache::new(UNBOUND);
        let table = cache.add_table(TABLE);
        assert_eq!(cache.insert(TABLE, &t1, &known), Learned::Added);
        assert_eq!(cache.insert(TABLE, &t2, &known), Learned::Added);
        let rows = [(0, 0), (1, 1), (i64::MAX, 1), (i64::MIN + 1, 0)];
        for (token, expected) in rows {
            let described = table.describe(Token::new(token), &known).unwrap();
            assert_eq!(described, [&t1, &t2][expected].clone(), "{token}");
        }
        assert_eq!(
            cache.insert(TABLE, &t3, &known),
            Learned::Replaced { dropped: 2 }
        );
        check(&cache);
        for token in [-99, 0, 100] {
            assert_eq!(nodes(&table, token), Some(vec![None, Some(0)]));
        }
        for token in [-100, 101, i64::MIN + 1, i64::MAX] {
            assert_eq!(nodes(&table, token), None);
        }
        assert_eq!(table.describe(Token::new(5), &known), Some(t3.clone()));

        let all = with(&known, &[A, B, C]);
        cache.refresh(&all);
        assert_eq!(nodes(&table, 0), Some(vec![Some(2), Some(0)]));
        assert_eq!(table.describe(Token::new(5), &all), Some(t3.clone()));
        assert_eq!(cache.insert(TABLE, &t3, &all), Learned::Unchanged);

        // B is not named by the tablet; A is, and is replaced by a node with its address.
        let without_b = with(&all, &[A, C]);
        cache.refresh(&without_b);
        assert_eq!(nodes(&table, 0), Some(vec![Some(2), Some(0)]));
        let replaced = with(&without_b, &[0xdd, C]);
        cache.refresh(&replaced);
        assert_eq!(nodes(&table, 0), None);
        check(&cache);
        assert_eq!((cache.stats.cached, cache.stats.bytes), (0, 0));
    }

    #[test]
    fn many_replicas_known_or_not_survive_neighbours() {
        let few = topology(&[1, 2, 4]);
        let mut cache = TabletCache::new(UNBOUND);
        let table = cache.add_table(TABLE);
        let long = learned(1000, 2000, 1, &[5, 1, 6, 2, 3, 4, 7]);
        cache.insert(TABLE, &long, &few);
        let short = learned(4000, 5000, 2, &[3]);
        cache.insert(TABLE, &short, &few);
        for first in (0..1000).step_by(10).chain((2000..4000).step_by(10)) {
            cache.insert(TABLE, &learned(first, first + 10, 9, &[1, 2, 4, 2]), &few);
            check(&cache);
        }
        let found = [None, Some(0), None, Some(1), None, Some(2), None];
        assert_eq!(nodes(&table, 1500), Some(found.to_vec()));
        assert_eq!(table.describe(Token::new(1500), &few), Some(long.clone()));
        assert_eq!(table.describe(Token::new(4001), &few), Some(short.clone()));
        // Three of the unknown hosts appear.
        let specs: Vec<_> = [1, 2, 4, 3, 5, 7].map(|n| spec(n, "a", "r", &[])).into();
        let more = few.with_nodes(&specs, 100).0;
        cache.refresh(&more);
        check(&cache);
        let found = [Some(4), Some(0), None, Some(1), Some(3), Some(2), Some(5)];
        assert_eq!(nodes(&table, 1500), Some(found.to_vec()));
        assert_eq!(table.describe(Token::new(1500), &more), Some(long));
        assert_eq!(nodes(&table, 4001), Some(vec![Some(3)]));
    }

    /// The cache against a plain list of ranges.
    #[test]
    fn agrees_with_a_plain_list() {
        let known = topology(&[1, 2, 3]);
        for seed in 0..12 {
            let mut rng = SmallRng::from_seed(seed);
            let mut cache = TabletCache::new(UNBOUND);
            let table = cache.add_table(TABLE);
            let mut model: Vec<(i64, i64, u64)> = Vec::new();
            // Narrow ranges fill chunks, wide ones swallow several.
            let width_max = [4, 12, 40, 1500][seed as usize % 4];
            for step in 1..1200_u64 {
                let mut first = rng.below(3000) as i64;
                let mut last = first + 1 + rng.below(width_max) as i64;
                if rng.below(50) == 0 {
                    first = if rng.below(2) == 0 { i64::MIN } else { first };
                    last = if first == i64::MIN {
                        last.min(40)
                    } else {
                        i64::MAX
                    };
                }
                let before = model.len();
                model.retain(|&(f, l, _)| l <= first || last <= f);
                let dropped = before - model.len();
                model.push((first, last, step));
                let outcome = cache.insert(TABLE, &learned(first, last, step, &[1, 2, 3]), &known);
                let expected = match dropped {
                    0 => Learned::Added,
                    dropped => Learned::Replaced { dropped },
                };
                assert_eq!(outcome, expected, "seed {seed} step {step}");
                if step % 60 == 0 {
                    check(&cache);
                    let edges = model.iter().flat_map(|&(f, l, _)| [f, l]);
                    for edge in edges.chain([0, i64::MAX]) {
                        for token in [edge.saturating_sub(1), edge, edge.saturating_add(1)] {
                            if token == i64::MIN {
                                continue;
                            }
                            let owner = model.iter().find(|&&(f, l, _)| f < token && token <= l);
                            let expected = owner.map(|&(.., version)| version);
                            assert_eq!(version(&table, token), expected, "{seed}: {token}");
                        }
                    }
                }
            }
            assert_eq!(cache.stats.cached, model.len());
        }
    }

    #[test]
    fn learning_touches_one_chunk() {
        let known = topology(&[1, 2, 3]);
        let mut cache = TabletCache::new(UNBOUND);
        let table = cache.add_table(TABLE);
        for at in 0..1000 {
            cache.insert(
                TABLE,
                &learned(at * 10, at * 10 + 10, 1, &[1, 2, 3]),
                &known,
            );
        }
        let chunks = |table: &TabletTable| -> Vec<_> {
            table
                .directory()
                .slots
                .iter()
                .map(|slot| slot.chunk.load())
                .collect()
        };
        let (directory, before) = (table.directory(), chunks(&table));
        assert_eq!(
            cache.insert(TABLE, &learned(5000, 5010, 2, &[1, 2, 3]), &known),
            Learned::Replaced { dropped: 1 }
        );
        assert!(Shared::ptr_eq(&directory, &table.directory()));
        let changed = before
            .iter()
            .zip(chunks(&table))
            .filter(|(a, b)| !Shared::ptr_eq(a, b));
        assert_eq!(changed.count(), 1);
    }

    /// Two cells take turns; one that a reader holds is left to it, with what it holds.
    #[test]
    fn a_replaced_chunk_leaves_its_cell_to_the_next() {
        let known = topology(&[1, 2, 3]);
        let mut cache = TabletCache::new(UNBOUND);
        let table = cache.add_table(TABLE);
        let mut learn = |version| {
            cache.insert(TABLE, &learned(0, 10, version, &[1]), &known);
            let slot = table.directory().slots[0].chunk.load();
            (Shared::as_ptr(&slot), slot)
        };
        let cells: Vec<_> = (0..6).map(|version| learn(version).0).collect();
        assert_eq!(cells[1..3], cells[3..5]);
        assert_ne!(cells[1], cells[2]);

        let (held_cell, held) = learn(6);
        let later: Vec<_> = (7..12).map(|version| learn(version).0).collect();
        assert!(!later.contains(&held_cell));
        assert_eq!(held.tablets[0].version(), Some(TabletVersion::new(6)));
    }

    #[test]
    fn the_bound_holds_and_used_tablets_stay() {
        let known = topology(&[1, 2, 3]);
        let bytes_max = 8 * 1024;
        let mut cache = TabletCache::new(bytes_max);
        let tables: Vec<_> = (0..3)
            .map(|place| cache.add_table(TableRef::new(place, 1)))
            .collect();
        for round in 0..40_i64 {
            for at in 0..100_i64 {
                let place = (at % 3) as u32;
                let first = round * 1000 + at * 10;
                let tablet = learned(first, first + 10, 1, &[1, 2, 3]);
                cache.insert(TableRef::new(place, 1), &tablet, &known);
                // Does not mark it.
                assert!(tables[at as usize % 3].holds(&tablet, &known));
                // Ten tablets of the first round are looked up all the time.
                if round > 0 || at >= 30 {
                    for hot in (0..30).step_by(3) {
                        let table = &tables[hot as usize % 3];
                        assert_eq!(version(table, hot * 10 + 5), Some(1), "{round}: {hot}");
                    }
                }
            }
            check(&cache);
        }
        let stats = cache.stats();
        assert_eq!(stats.evicted as usize + stats.cached, 40 * 100);
        let by_table = tables.iter().map(|table| table.stats().evicted);
        assert_eq!(by_table.sum::<u64>(), stats.evicted);
        assert!(stats.bytes > bytes_max * 3 / 4, "{stats:?}");
        // Where all are in use, the one just learned is not the one to go.
        for first in (100_000..101_500).step_by(10) {
            for table in &tables {
                let ends = table
                    .directory()
                    .slots
                    .iter()
                    .flat_map(|slot| {
                        let chunk = slot.chunk.load();
                        chunk
                            .tablets
                            .iter()
                            .map(|tablet| tablet.last)
                            .collect::<Vec<_>>()
                    })
                    .collect::<Vec<_>>();
                ends.iter()
                    .for_each(|&last| assert_eq!(version(table, last), Some(1)));
            }
            let tablet = learned(first, first + 10, 1, &[1, 2, 3]);
            cache.insert(TABLE, &tablet, &known);
            assert!(tables[0].holds(&tablet, &known));
            check(&cache);
        }
        // A bound too small for one tablet keeps none, and does not hang.
        let mut cache = TabletCache::new(10);
        let table = cache.add_table(TABLE);
        cache.insert(TABLE, &learned(0, 10, 1, &[1]), &known);
        assert_eq!((version(&table, 5), cache.stats().evicted), (None, 1));
        check(&cache);
    }

    /// Chunks whose tablets all go leave no hole behind.
    #[test]
    fn emptied_chunks_leave_the_whole_ring_open() {
        let known = topology(&[1, 2, 3]);
        let specs = [1, 3].map(|n| spec(n, "a", "r", &[]));
        let without_2 = known.with_nodes(&specs, 100).0;
        // Which of ten runs of 100 tablets stand on the node that leaves.
        for gone in 0..10 {
            let mut cache = TabletCache::new(UNBOUND);
            let table = cache.add_table(TABLE);
            for at in 0..1000 {
                let node = if at / 100 == gone { 2 } else { 1 };
                cache.insert(
                    TABLE,
                    &learned(at * 10, at * 10 + 10, 1, &[node, 3]),
                    &known,
                );
            }
            cache.refresh(&without_2);
            check(&cache);
            assert_eq!(cache.stats.cached, 900);
            for at in 0..1000 {
                let expected = (at / 100 != gone).then_some(1);
                assert_eq!(version(&table, at * 10 + 5), expected, "{at}");
            }
            for at in gone * 100..gone * 100 + 100 {
                cache.insert(TABLE, &learned(at * 10, at * 10 + 10, 2, &[1]), &without_2);
                assert_eq!(version(&table, at * 10 + 5), Some(2));
            }
            check(&cache);
        }
    }

    #[test]
    fn old_handles_and_cleared_tables_find_nothing() {
        let known = topology(&[1]);
        let tablet = learned(0, 10, 1, &[1]);
        let mut cache = TabletCache::new(UNBOUND);
        let old = cache.add_table(TABLE);
        assert_eq!(cache.insert(TABLE, &tablet, &known), Learned::Added);
        let new = TableRef::new(0, 2);
        let table = cache.add_table(new);
        assert_eq!(cache.stats.bytes, 0);
        assert_eq!(cache.insert(TABLE, &tablet, &known), Learned::UnknownTable);
        assert_eq!(
            cache.insert(TableRef::new(9, 1), &tablet, &known),
            Learned::UnknownTable
        );
        // Who still reads the old table sees what it had.
        assert_eq!((version(&old, 5), version(&table, 5)), (Some(1), None));
        assert_eq!(cache.insert(new, &tablet, &known), Learned::Added);
        cache.clear_table(0);
        assert_eq!((version(&table, 5), cache.stats.cached), (None, 0));
        assert_eq!(cache.insert(new, &tablet, &known), Learned::Added);
        cache.remove_table(0);
        assert_eq!((cache.stats.cached, cache.stats.bytes), (0, 0));
        assert_eq!(cache.insert(new, &tablet, &known), Learned::UnknownTable);
    }

    /// Learning by the first extension forgets the version; the same tablet twice is no change.
    #[test]
    fn the_last_word_counts() {
        let known = topology(&[1, 2]);
        let mut cache = TabletCache::new(UNBOUND);
        let table = cache.add_table(TABLE);
        let with_version = learned(0, 10, 7, &[1, 2]);
        let mut without = with_version.clone();
        without.version = None;
        let swapped = learned(0, 10, 7, &[2, 1]);
        let rows = [
            (&with_version, Learned::Added, Some(7)),
            (&with_version, Learned::Unchanged, Some(7)),
            (&without, Learned::Replaced { dropped: 1 }, None),
            (&without, Learned::Unchanged, None),
            (&swapped, Learned::Replaced { dropped: 1 }, Some(7)),
        ];
        for (tablet, outcome, expected) in rows {
            assert_eq!(cache.insert(TABLE, tablet, &known), outcome);
            assert_eq!(version(&table, 3), expected);
        }
    }

    #[test]
    fn pieces_are_the_fewest_and_of_one_size() {
        for len in 1..=4 * CHUNK_LEN_MAX {
            let size = piece_len(len);
            assert!(size <= CHUNK_LEN_MAX, "{len}");
            assert_eq!(len.div_ceil(size), len.div_ceil(CHUNK_LEN_MAX), "{len}");
            let missing = len.div_ceil(size) * size - len;
            assert!(missing < len.div_ceil(size), "{len}: {size}");
        }
    }

    /// A table that learns makes room by what is not looked up, itself first, and no more of it
    /// than the new tablet takes.
    #[test]
    fn a_table_in_use_outlives_what_another_one_learns() {
        let known = topology(&[1, 2, 3]);
        let mut cache = TabletCache::new(8 * 1024);
        let other = TableRef::new(1, 1);
        let (learning, used) = (cache.add_table(TABLE), cache.add_table(other));
        cache.insert(other, &learned(0, 10, 7, &[1, 2, 3]), &known);
        for at in 0..1000 {
            assert_eq!(version(&used, 5), Some(7), "{at}");
            let before = cache.stats().evicted;
            let tablet = learned(at * 10, at * 10 + 10, 1, &[1, 2, 3]);
            cache.insert(TABLE, &tablet, &known);
            assert!(learning.holds(&tablet, &known));
            assert!(cache.stats().evicted - before <= 4, "{at}");
            check(&cache);
        }
        assert!(cache.stats().evicted > 0);
    }
}
