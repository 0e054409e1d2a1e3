//! The learned tablets of one table, as readers see them.
//!
//! A directory of chunks of at most 64 tablets. Each chunk is a snapshot of its own, so learning a
//! tablet replaces one chunk and copies neither the table nor other tables; the directory is
//! replaced only when a chunk is split, emptied or merged. Invariants: ranges do not overlap, no
//! range crosses the border of a chunk, and the last chunk reaches to the end of the ring.
//!
//! Cost of a lookup: two binary searches, no lock, no allocation, no reference count. Cost of
//! learning: one allocation, the chunk's array of tablets; the shared cell around it is that of the
//! chunk replaced last, unless a reader still holds that one. `messina-bench tablets` counts both.

use super::tablet::{INLINE_REPLICAS, Replica, Tablet};
use super::{LearnedTablet, NodeIdx, TabletStats, TabletVersion, Token, Topology, VersionBlock};
use crate::gather::Gather;
use crate::sync::{Gauge, Shared, Snapshot};
use alloc::boxed::Box;
use alloc::vec::Vec;
use uuid::Uuid;

/// The learned tablets of one table. Written by the cache alone.
#[derive(Debug)]
pub(super) struct TabletTable {
    directory: Snapshot<Directory>,
    /// Tablets dropped because of the cache's bound, wrapping.
    evicted: Gauge,
}

/// What planning needs to know of one tablet, copied out.
#[derive(Clone, Debug)]
pub(super) struct TabletHit {
    pub(super) last: i64,
    pub(super) version: Option<TabletVersion>,
    /// In the server's order; those beyond the capacity are left out.
    pub(super) replicas: heapless::Vec<Replica, PLANNED_REPLICAS>,
}

/// Replicas that planning looks at; further ones count as ordinary nodes.
pub(super) const PLANNED_REPLICAS: usize = 32;

impl TabletTable {
    pub(super) fn new() -> Self {
        Self {
            directory: Snapshot::new(Shared::new(Directory::default())),
            evicted: Gauge::default(),
        }
    }

    /// Figures of this table alone.
    pub(super) fn stats(&self) -> TabletStats {
        let mut stats = TabletStats {
            evicted: u64::from(self.evicted.load()),
            ..TabletStats::default()
        };
        self.directory.with(|directory| {
            for slot in &directory.slots {
                slot.chunk.with(|chunk| stats.add(chunk));
            }
        });
        stats
    }

    pub(super) fn count_evicted(&self, count: u64) {
        self.evicted.add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// The tablet that owns a token, marked as used.
    pub(super) fn find(&self, token: Token) -> Option<TabletHit> {
        self.with_tablet(token, |chunk, at, tablet| {
            chunk.mark_used(at);
            let replicas = chunk.replicas(at).take(PLANNED_REPLICAS).collect();
            TabletHit {
                last: tablet.last,
                version: tablet.version(),
                replicas,
            }
        })
    }

    /// The version block for a request to the tablet that owns a token.
    pub(super) fn probe(&self, token: Token) -> Option<VersionBlock> {
        self.with_tablet(token, |_, _, tablet| tablet.probe())
    }

    /// The tablet that owns a token, with the host ids it was learned with.
    pub(super) fn describe(&self, token: Token, topology: &Topology) -> Option<LearnedTablet> {
        self.with_tablet(token, |chunk, at, _| chunk.describe(at, topology))
            .flatten()
    }

    /// All tablets in the order of their tokens, and whether each was looked up of late.
    pub(super) fn all(&self, topology: &Topology) -> Vec<(LearnedTablet, bool)> {
        let mut all = Vec::new();
        for slot in &self.directory().slots {
            let chunk = slot.chunk.load();
            for at in 0..chunk.tablets.len() {
                if let Some(tablet) = chunk.describe(at, topology) {
                    all.push((tablet, chunk.is_used(at)));
                }
            }
        }
        all
    }

    /// Whether exactly this tablet is stored.
    pub(super) fn holds(&self, learned: &LearnedTablet, topology: &Topology) -> bool {
        let last = Token::new(learned.last);
        self.with_tablet(last, |chunk, at, _| chunk.is_same(at, learned, topology))
            .unwrap_or(false)
    }

    pub(super) fn directory(&self) -> Shared<Directory> {
        self.directory.load()
    }

    pub(super) fn replace_directory(&self, slots: Vec<Slot>) {
        let slots = slots.into_boxed_slice();
        self.directory.store(Shared::new(Directory { slots }));
    }

    fn with_tablet<R>(
        &self,
        token: Token,
        action: impl FnOnce(&Chunk, usize, &Tablet) -> R,
    ) -> Option<R> {
        self.directory.with(|directory| {
            let slot = directory.slots.get(directory.place_of(token.value()))?;
            slot.chunk.with(|chunk| {
                let at = chunk
                    .tablets
                    .partition_point(|tablet| tablet.last < token.value());
                let tablet = chunk
                    .tablets
                    .get(at)
                    .filter(|tablet| tablet.contains(token))?;
                Some(action(chunk, at, tablet))
            })
        })
    }
}

/// Chunks in the order of their tokens.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) slots: Box<[Slot]>,
}

/// A chunk, reaching from behind the chunk before it to `last`.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) last: i64,
    pub(super) chunk: Shared<Snapshot<Chunk>>,
}

impl Slot {
    pub(super) fn new(last: i64, chunk: Chunk) -> Self {
        Self {
            last,
            chunk: Shared::new(Snapshot::new(Shared::new(chunk))),
        }
    }
}

impl Directory {
    /// The place of the chunk that reaches over a token.
    pub(super) fn place_of(&self, token: i64) -> usize {
        self.slots.partition_point(|slot| slot.last < token)
    }
}

/// At most 64 tablets, sorted.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) tablets: Box<[Tablet]>,
    /// Replicas beyond those in the tablets, sorted by tablet.
    extra: Box<[Extra]>,
    /// Hosts that were not known when their tablets were learned.
    unresolved: Box<[Unresolved]>,
    /// A bit for each tablet that was looked up since the last sweep. Two readers may lose each
    /// other's mark; the next lookup sets it again.
    used: [Gauge; 2],
}

/// The most tablets of a chunk: one for each bit of `used`.
pub(super) const CHUNK_LEN_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Extra {
    tablet: u8,
    replica: Replica,
}

#[derive(Clone, Copy, Debug)]
struct Unresolved {
    tablet: u8,
    position: u8,
    host_id: Uuid,
}

impl Chunk {
    pub(super) fn replicas(&self, at: usize) -> impl Iterator<Item = Replica> {
        let tablet = self.tablets.get(at);
        let inline = tablet.map_or(&[][..], |tablet| {
            let count = usize::from(tablet.replica_count).min(INLINE_REPLICAS);
            tablet.replicas.get(..count).unwrap_or_default()
        });
        let extra = self
            .extra
            .partition_point(|extra| usize::from(extra.tablet) < at);
        let extra = self.extra.get(extra..).unwrap_or_default().iter();
        let extra = extra.take_while(move |extra| usize::from(extra.tablet) == at);
        inline
            .iter()
            .copied()
            .chain(extra.map(|extra| extra.replica))
    }

    pub(super) fn has_unresolved(&self) -> bool {
        !self.unresolved.is_empty()
    }

    pub(super) fn mark_used(&self, at: usize) {
        if let Some((gauge, bit)) = self.mark_of(at) {
            let marks = gauge.load();
            if marks & bit == 0 {
                gauge.store(marks | bit);
            }
        }
    }

    pub(super) fn is_used(&self, at: usize) -> bool {
        self.mark_of(at)
            .is_some_and(|(gauge, bit)| gauge.load() & bit != 0)
    }

    pub(super) fn clear_used(&self) {
        for gauge in &self.used {
            gauge.store(0);
        }
    }

    fn mark_of(&self, at: usize) -> Option<(&Gauge, u32)> {
        let at = u32::try_from(at).ok()?;
        let gauge = self.used.get(usize::from(at >= 32))?;
        Some((gauge, 1_u32.wrapping_shl(at)))
    }

    /// What the chunk takes of memory, its place in the directory included.
    pub(super) fn bytes(&self) -> usize {
        let tablets = size_of_val(&*self.tablets);
        let beside = size_of_val(&*self.extra).saturating_add(size_of_val(&*self.unresolved));
        tablets
            .saturating_add(beside)
            .saturating_add(CHUNK_OVERHEAD)
    }

    /// What would be gained by dropping one tablet.
    pub(super) fn bytes_of(&self, at: usize) -> usize {
        let extra = self.replicas(at).count().saturating_sub(INLINE_REPLICAS);
        size_of::<Tablet>().saturating_add(extra.saturating_mul(size_of::<Extra>()))
    }

    fn host_ids<'a>(
        &'a self,
        at: usize,
        topology: &'a Topology,
    ) -> impl Iterator<Item = Option<(Uuid, u16)>> + 'a {
        self.replicas(at)
            .enumerate()
            .map(move |(position, replica)| {
                let host_id = match replica.node() {
                    Some(idx) => topology.node(idx)?.host_id(),
                    None => self.unresolved_host(at, position)?,
                };
                Some((host_id, replica.shard))
            })
    }

    fn unresolved_host(&self, at: usize, position: usize) -> Option<Uuid> {
        let is_it = |entry: &&Unresolved| {
            usize::from(entry.tablet) == at && usize::from(entry.position) == position
        };
        self.unresolved
            .iter()
            .find(is_it)
            .map(|entry| entry.host_id)
    }

    fn describe(&self, at: usize, topology: &Topology) -> Option<LearnedTablet> {
        let tablet = self.tablets.get(at)?;
        let learned = |(host_id, shard)| super::LearnedReplica { host_id, shard };
        let replicas = self
            .host_ids(at, topology)
            .flatten()
            .map(learned)
            .gather()
            .into();
        LearnedTablet::new(tablet.first, tablet.last, tablet.version(), replicas)
    }

    fn is_same(&self, at: usize, learned: &LearnedTablet, topology: &Topology) -> bool {
        let same_range = |tablet: &Tablet| {
            (tablet.first, tablet.last) == (learned.first, learned.last)
                && tablet.version() == learned.version
                && usize::from(tablet.replica_count) == learned.replicas.len()
        };
        let stored = self.host_ids(at, topology);
        let new = learned
            .replicas
            .iter()
            .map(|replica| Some((replica.host_id, replica.shard)));
        self.tablets.get(at).is_some_and(same_range) && stored.eq(new)
    }
}

/// Memory of a chunk besides its tablets: the chunk, the cell that holds it, two pairs of
/// reference counts and the place in the directory.
const CHUNK_OVERHEAD: usize =
    size_of::<Chunk>() + size_of::<Snapshot<Chunk>>() + 4 * size_of::<usize>() + size_of::<Slot>();

/// Collects the tablets of a new chunk in order. Hosts that have become known are resolved.
#[derive(Debug)]
pub(super) struct ChunkBuilder<'a> {
    topology: &'a Topology,
    tablets: Vec<Tablet>,
    extra: Vec<Extra>,
    unresolved: Vec<Unresolved>,
    used: u64,
}

impl<'a> ChunkBuilder<'a> {
    pub(super) fn new(topology: &'a Topology, len: usize) -> Self {
        Self {
            topology,
            tablets: Vec::with_capacity(len),
            extra: Vec::new(),
            unresolved: Vec::new(),
            used: 0,
        }
    }

    /// Adds a tablet that was just learned. It has no mark: what is asked for once only must
    /// not push out what is asked for all the time.
    pub(super) fn push_learned(&mut self, learned: &LearnedTablet) {
        let replicas = learned
            .replicas
            .iter()
            .map(|replica| (replica.host_id, replica.shard));
        let mut inline = [Replica::new(None, 0); INLINE_REPLICAS];
        let mut count = 0_u8;
        for (host_id, shard) in replicas {
            let node = self.topology.node_by_host_id(host_id);
            if node.is_none() {
                self.put_unresolved(count, host_id);
            }
            self.put_replica(&mut inline, count, Replica::new(node, shard));
            count = count.saturating_add(1);
        }
        self.put_tablet(Tablet::new(learned, inline, count), false);
    }

    /// Adds a tablet of another chunk.
    pub(super) fn push_copy(&mut self, chunk: &Chunk, at: usize) {
        let Some(tablet) = chunk.tablets.get(at) else {
            return;
        };
        let mut copy = tablet.copy();
        let mut count = 0_u8;
        for replica in chunk.replicas(at) {
            let mut replica = replica;
            if replica.node().is_none()
                && let Some(host_id) = chunk.unresolved_host(at, usize::from(count))
            {
                let node = self.topology.node_by_host_id(host_id);
                if node.is_none() {
                    self.put_unresolved(count, host_id);
                }
                replica = Replica::new(node, replica.shard);
            }
            self.put_replica(&mut copy.replicas, count, replica);
            count = count.saturating_add(1);
        }
        self.put_tablet(copy, chunk.is_used(at));
    }

    /// The same with its mark cleared.
    pub(super) fn push_unmarked(&mut self, chunk: &Chunk, at: usize) {
        let used = self.used;
        self.push_copy(chunk, at);
        self.used = used;
    }

    pub(super) fn len(&self) -> usize {
        self.tablets.len()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves are what is wanted"
    )]
    pub(super) fn build(self) -> Chunk {
        debug_assert!(self.tablets.len() <= CHUNK_LEN_MAX);
        debug_assert!(self.tablets.is_sorted_by(|a, b| a.last <= b.first));
        Chunk {
            tablets: self.tablets.into_boxed_slice(),
            extra: self.extra.into_boxed_slice(),
            unresolved: self.unresolved.into_boxed_slice(),
            used: [
                Gauge::new(self.used as u32),
                Gauge::new((self.used >> 32) as u32),
            ],
        }
    }

    /// The number of the tablet that is being added.
    fn tablet(&self) -> u8 {
        u8::try_from(self.tablets.len()).unwrap_or(u8::MAX)
    }

    fn put_unresolved(&mut self, position: u8, host_id: Uuid) {
        let tablet = self.tablet();
        self.unresolved.push(Unresolved {
            tablet,
            position,
            host_id,
        });
    }

    fn put_replica(
        &mut self,
        inline: &mut [Replica; INLINE_REPLICAS],
        position: u8,
        replica: Replica,
    ) {
        let tablet = self.tablet();
        match inline.get_mut(usize::from(position)) {
            Some(slot) => *slot = replica,
            None => self.extra.push(Extra { tablet, replica }),
        }
    }

    fn put_tablet(&mut self, tablet: Tablet, is_used: bool) {
        let bit = 1_u64.wrapping_shl(u32::from(self.tablet()));
        self.tablets.push(tablet);
        if is_used {
            self.used |= bit;
        }
    }
}

/// Whether every known replica of a tablet is on a node that is still there.
pub(super) fn names_only_present(chunk: &Chunk, at: usize, topology: &Topology) -> bool {
    let present = |idx: NodeIdx| topology.node(idx).is_some();
    chunk
        .replicas(at)
        .all(|replica| replica.node().is_none_or(present))
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::spec;
    use super::super::{LearnedReplica, TabletVersion};
    use super::*;

    /// A whole chunk whose tablets have five replicas each, all of them told apart by shard.
    fn chunk(topology: &Topology) -> Chunk {
        let mut builder = ChunkBuilder::new(topology, CHUNK_LEN_MAX);
        for at in 0..64_u16 {
            let replica = |n: u16| LearnedReplica {
                host_id: Uuid::from_u128(u128::from(n)),
                shard: 10 * at + n,
            };
            let replicas = (1..=5).map(replica).collect();
            let first = i64::from(at) * 10;
            let version = Some(TabletVersion::new(1));
            builder
                .push_learned(&LearnedTablet::new(first, first + 10, version, replicas).unwrap());
        }
        builder.build()
    }

    fn shards(chunk: &Chunk, at: usize) -> Vec<u16> {
        chunk.replicas(at).map(|replica| replica.shard).collect()
    }

    #[test]
    fn each_tablet_has_its_own_replicas_beyond_the_inline_ones() {
        let specs: Vec<_> = (1..=5).map(|n| spec(n, "a", "r", &[])).collect();
        let topology = Topology::new().with_nodes(&specs, 100).0;
        let chunk = chunk(&topology);
        for at in 0..64_u16 {
            let expected: Vec<u16> = (1..=5).map(|n| 10 * at + n).collect();
            assert_eq!(shards(&chunk, usize::from(at)), expected);
            assert_eq!(
                chunk.bytes_of(usize::from(at)),
                size_of::<Tablet>() + 2 * size_of::<Extra>()
            );
        }
        assert_eq!(shards(&chunk, 64), []);
    }

    /// Marks of both halves, one by one; a copy keeps them, an unmarked copy and a sweep do not.
    #[test]
    fn marks_belong_to_their_tablets() {
        let topology = Topology::new();
        for marked in 0..64 {
            let chunk = chunk(&topology);
            let is_marked =
                |chunk: &Chunk| -> Vec<usize> { (0..64).filter(|&at| chunk.is_used(at)).collect() };
            assert_eq!(is_marked(&chunk), []);
            chunk.mark_used(marked);
            chunk.mark_used(5);
            let mut expected = Vec::from([marked.min(5), marked.max(5)]);
            expected.dedup();
            assert_eq!(is_marked(&chunk), expected);
            let (mut kept, mut cleared) = (
                ChunkBuilder::new(&topology, 64),
                ChunkBuilder::new(&topology, 64),
            );
            for at in 0..64 {
                kept.push_copy(&chunk, at);
                cleared.push_unmarked(&chunk, at);
            }
            assert_eq!(is_marked(&kept.build()), expected);
            assert_eq!(is_marked(&cleared.build()), []);
            chunk.clear_used();
            assert_eq!(is_marked(&chunk), []);
        }
    }
}
