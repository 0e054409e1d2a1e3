//! Tablets that answers taught: sorted, never overlapping, bounded in bytes.
//!
//! All tables share one vector, sorted by table and token, of records of 40 bytes with three replicas
//! each. A tablet with more replicas goes on in the records behind its own, under the same range, so
//! that a search finds its first record and a range of the vector is a range of tokens. A new
//! tablet takes the place of all that it overlaps. Above the bound a clock hand goes round: it takes the
//! mark of tablets that were looked up since its last visit, and drops those that have none.

use super::members::Cluster;
use super::payload;
use super::{Plane, TableKey, Vec};
use core::cell::Cell;
use uuid::Uuid;

use crate::routing::{PayloadKind, TabletVersion, Token, VersionBlock};
use crate::words::append;

/// Replicas of a tablet that are known; further ones count as ordinary nodes.
pub(super) const REPLICAS_MAX: usize = 16;

/// Replicas in a record.
const INLINE_REPLICAS: usize = 3;

/// A stored replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replica {
    /// A member, or from [`STRANGERS`] on a stranger, or [`NOBODY`].
    pub(super) node: u16,
    pub(super) shard: u16,
}

/// Those of a tablet, as they are stored.
#[derive(Default)]
struct Replicas {
    known: heapless::Vec<Replica, REPLICAS_MAX>,
    /// One of them was not heard of before.
    is_strange: bool,
}

pub(super) const STRANGERS: u16 = 0x8000;
const NOBODY: u16 = u16::MAX;

/// A tablet, or three more replicas of the tablet before it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) first: i64,
    pub(super) last: i64,
    version: u64,
    replicas: [Replica; INLINE_REPLICAS],
    pub(super) table: u16,
    /// The number of replicas here, and the bits below.
    shape: Cell<u8>,
    /// Requests that were given a block, going round.
    probes: Cell<u8>,
}

const _: () = assert!(size_of::<Record>() == 40);

const COUNT: u8 = 0x03;
const IS_DOOMED: u8 = 0x10;
const IS_CONTINUED: u8 = 0x20;
const HAS_VERSION: u8 = 0x40;
pub(super) const IS_USED: u8 = 0x80;

impl Record {
    pub(super) fn has(&self, bit: u8) -> bool {
        self.shape.get() & bit != 0
    }

    fn set(&self, bit: u8, is_set: bool) {
        let shape = self.shape.get();
        self.shape
            .set(if is_set { shape | bit } else { shape & !bit });
    }

    pub(super) fn replicas(&self) -> &[Replica] {
        let count = usize::from(self.shape.get() & COUNT);
        self.replicas.get(..count).unwrap_or_default()
    }

    /// The version block of the next request.
    pub(super) fn next_block(&self) -> VersionBlock {
        let count = self.probes.get();
        self.probes.set(count.wrapping_add(1));
        match self.version() {
            Some(version) => version.block(count),
            None => VersionBlock::new(0, count),
        }
    }

    pub(super) fn version(&self) -> Option<TabletVersion> {
        self.has(HAS_VERSION)
            .then(|| TabletVersion::new(self.version))
    }
}

/// What came of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learned {
    /// Exactly this was known: requests in flight learn the same.
    Unchanged,
    /// It is stored, in place of all that it overlaps.
    Stored,
    /// The same; it names a host that was not heard of before, so members are read again.
    StoredWithStranger,
    /// It cannot be read, or does not fit the bound at all. The answer that brought it is good.
    Refused,
}

/// The tablets of all tables.
#[derive(Debug)]
pub(super) struct Tablets {
    pub(super) records: Vec<Record>,
    records_max: usize,
    /// Where the clock stands.
    hand: usize,
    dropped: u32,
}

impl Tablets {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            records: Vec::new(),
            records_max: match bytes_max.checked_div(size_of::<Record>()) {
                Some(records_max) => records_max,
                None => 0,
            },
            hand: 0,
            dropped: 0,
        }
    }

    pub(super) fn count(&self) -> usize {
        // The records that go on belong to the one behind them, which does not.
        let is_end = |record: &&Record| !record.has(IS_CONTINUED);
        self.records.iter().filter(is_end).count()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.records.capacity().saturating_mul(size_of::<Record>())
    }

    pub(super) const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// The first place whose tablet ends behind a token, or at it with `at_end`.
    pub(super) fn seek(&self, table: u16, token: i64, at_end: bool) -> usize {
        let before = |record: &Record| {
            record.table < table
                || record.table == table && (record.last < token || !at_end && record.last == token)
        };
        self.records.partition_point(before)
    }

    /// The tablet that owns a token.
    fn find(&self, table: u16, token: Token) -> Option<&[Record]> {
        let from = self.records.get(self.seek(table, token.value(), true)..)?;
        let record = from.first()?;
        (record.table == table && record.first < token.value()).then(|| tablet(from))
    }

    /// Puts a tablet in place of all that it overlaps. There is room for it alone.
    fn insert(&mut self, tablet: &Record, replicas: &[Replica]) {
        let is_hit = |record: &&Record| {
            record.table == tablet.table && record.first < tablet.last && tablet.first < record.last
        };
        let overlapped = self.records.iter().filter(is_hit);
        overlapped.for_each(|record| record.set(IS_DOOMED, true));
        self.sweep();
        let chunks = replicas.chunks(INLINE_REPLICAS);
        let more = chunks.len();
        self.make_room(more);
        let at = self.seek(tablet.table, tablet.last, true);
        if at <= self.hand {
            self.hand = self.hand.saturating_add(more);
        }
        // From the last record on, each at the same place.
        let mut is_continued = false;
        for chunk in chunks.rev() {
            let mut record = tablet.clone();
            for (place, replica) in record.replicas.iter_mut().zip(chunk) {
                *place = *replica;
                record.shape.set(record.shape.get().wrapping_add(1));
            }
            record.set(IS_CONTINUED, is_continued);
            is_continued = true;
            // Those behind it make way one by one: room was made, so that nothing else can happen.
            for place in self.records.iter_mut().skip(at) {
                core::mem::swap(place, &mut record);
            }
            append(&mut self.records, record);
        }
    }

    /// Drops the least used tablets until `more` records fit, and reserves the place.
    fn make_room(&mut self, more: usize) {
        while self.records.len().saturating_add(more) > self.records_max {
            let visited = tablet(self.records.get(self.hand..).unwrap_or_default());
            match visited.first() {
                None if self.hand == 0 => return,
                None => self.hand = 0,
                Some(first) if first.has(IS_USED) => {
                    first.set(IS_USED, false);
                    self.hand = self.hand.saturating_add(visited.len());
                }
                Some(_) => {
                    doom(visited);
                    self.dropped = self.dropped.wrapping_add(1);
                    self.sweep();
                }
            }
        }
        let len = self.records.len().saturating_add(more);
        if len > self.records.capacity() {
            // A few at once, but not beyond the bound.
            let wanted = len.saturating_add(len / 8).saturating_add(3);
            let wanted = wanted.min(self.records_max);
            let more = wanted.saturating_sub(self.records.len());
            self.records.reserve_exact(more);
        }
    }

    /// All tablets of a table go with the next sweep.
    pub(super) fn doom_table(&self, table: u16) {
        let records = self.records.iter().filter(|record| record.table == table);
        records.for_each(|record| record.set(IS_DOOMED, true));
    }

    /// Takes away what is doomed. The hand stays before the tablet that it came to.
    pub(super) fn sweep(&mut self) {
        let passed = self.records.get(..self.hand).unwrap_or(&self.records);
        self.hand = passed
            .iter()
            .filter(|record| !record.has(IS_DOOMED))
            .count();
        self.records.retain(|record| !record.has(IS_DOOMED));
    }

    /// The cluster was read anew. Tablets of members that are gone go, and strangers that have
    /// become members are known as such; those that no tablet names any more are forgotten.
    pub(super) fn settle(&mut self, strangers: &mut [Uuid], cluster: &Cluster) {
        for (number, host_id) in (STRANGERS..).zip(strangers) {
            let member = cluster.by_host_id(*host_id);
            let mut is_named = false;
            for record in &mut self.records {
                for replica in &mut record.replicas {
                    if replica.node == number {
                        is_named = true;
                        replica.node = member.unwrap_or(number);
                    }
                }
            }
            if member.is_some() || !is_named {
                *host_id = Uuid::nil();
            }
        }
        let mut from = &*self.records;
        while !from.is_empty() {
            let visited = tablet(from);
            let is_gone =
                |replica: &Replica| replica.node < STRANGERS && cluster.get(replica.node).is_none();
            if visited
                .iter()
                .any(|record| record.replicas().iter().any(is_gone))
            {
                doom(visited);
            }
            from = from.get(visited.len()..).unwrap_or_default();
        }
        self.sweep();
    }
}

/// They go with the next sweep.
fn doom(records: &[Record]) {
    records
        .iter()
        .for_each(|record| record.set(IS_DOOMED, true));
}

/// The records of the tablet that begins here.
pub(super) fn tablet(from: &[Record]) -> &[Record] {
    let more = from
        .iter()
        .take_while(|record| record.has(IS_CONTINUED))
        .count();
    from.get(..=more).unwrap_or(from)
}

/// What planning needs to know of a tablet.
pub(super) struct Hit<'a> {
    records: &'a [Record],
    pub(super) last: i64,
    pub(super) has_version: bool,
}

impl<'a> Hit<'a> {
    pub(super) fn first(&self) -> Option<&'a Record> {
        self.records.first()
    }

    /// Its replicas in the server's order.
    pub(super) fn replicas(&self) -> impl Iterator<Item = Replica> {
        self.records.iter().flat_map(Record::replicas).copied()
    }
}

impl Plane {
    pub(super) fn tablet_at(&self, table: TableKey, token: Token) -> Option<Hit<'_>> {
        let records = self.tablets.find(table.0, token)?;
        let first = records.first()?;
        first.set(IS_USED, true);
        Some(Hit {
            records,
            last: first.last,
            has_version: first.has(HAS_VERSION),
        })
    }

    /// The version block of a request, where the second extension was agreed. With a tablet it shows
    /// four bits of its version, from request to request the next ones; without a version it counts at
    /// one place, so that of two requests one differs for certain; without a tablet it shows what
    /// `entropy` says.
    pub fn probe(
        &self,
        table: Option<TableKey>,
        token: Option<Token>,
        entropy: u64,
    ) -> VersionBlock {
        let tablet = || self.tablets.find(table?.0, token?)?.first();
        tablet().map_or_else(|| VersionBlock::unknown(entropy), Record::next_block)
    }

    /// Takes the payload of an answer to a statement on this table.
    pub fn learn(&mut self, table: TableKey, kind: PayloadKind, value: &[u8]) -> Learned {
        let mut replicas = Replicas::default();
        let parsed = payload::parse(kind, value, &mut |host_id, shard| {
            self.take_replica(&mut replicas, host_id, shard);
        });
        match parsed {
            Some((range, version)) => self.store(table, range, version, &replicas),
            None => Learned::Refused,
        }
    }

    /// Stores a tablet that owns `(first, last]`, also one that an earlier session saved. Replicas
    /// are hosts and shards in the server's order; at most 16 are kept.
    pub fn put_tablet(
        &mut self,
        table: TableKey,
        range: (i64, i64),
        version: Option<TabletVersion>,
        named: &[(Uuid, u16)],
    ) -> Learned {
        let mut replicas = Replicas::default();
        for &(host_id, shard) in named {
            self.take_replica(&mut replicas, host_id, shard);
        }
        self.store(table, range, version, &replicas)
    }

    fn store(
        &mut self,
        table: TableKey,
        (first, last): (i64, i64),
        version: Option<TabletVersion>,
        replicas: &Replicas,
    ) -> Learned {
        let known = &replicas.known;
        let len = known.len().div_ceil(INLINE_REPLICAS);
        if first >= last || len == 0 || len > self.tablets.records_max {
            return Learned::Refused;
        }
        let new = Record {
            first,
            last,
            version: version.map_or(0, TabletVersion::bits),
            replicas: [Replica {
                node: NOBODY,
                shard: 0,
            }; INLINE_REPLICAS],
            table: table.0,
            shape: Cell::new(if version.is_some() { HAS_VERSION } else { 0 }),
            probes: Cell::new(0),
        };
        if let Some(old) = self.tablets.find(table.0, Token::new(last))
            && let Some(head) = old.first()
            && (head.first == first && head.last == last && head.version() == version)
            && old.iter().flat_map(Record::replicas).eq(known)
        {
            return Learned::Unchanged;
        }
        self.tablets.insert(&new, known);
        if replicas.is_strange {
            self.read_again();
            return Learned::StoredWithStranger;
        }
        Learned::Stored
    }

    /// Adds a replica; more than can be known are not.
    fn take_replica(&mut self, replicas: &mut Replicas, host_id: Uuid, shard: u16) {
        if !replicas.known.is_full() {
            let node = self.node_of(host_id, &mut replicas.is_strange);
            let _fits = replicas.known.push(Replica { node, shard });
        }
    }

    /// The number under which a host is stored; notes if it was not heard of before.
    fn node_of(&mut self, host_id: Uuid, is_new: &mut bool) -> u16 {
        if let Some(member) = self.cluster.by_host_id(host_id) {
            return member;
        }
        if host_id.is_nil() {
            return NOBODY;
        }
        let strangers = &mut self.strangers;
        let find = |host_id: Uuid| strangers.iter().position(|stranger| *stranger == host_id);
        let known = find(host_id);
        let place = known
            .or_else(|| find(Uuid::nil()))
            .unwrap_or(strangers.len());
        let strangers_max = self.limits.members.min(NOBODY - STRANGERS);
        let Some(number) = u16::try_from(place).ok().filter(|at| *at < strangers_max) else {
            return NOBODY;
        };
        *is_new |= known.is_none();
        match strangers.get_mut(place) {
            Some(stranger) => *stranger = host_id,
            None => strangers.push(host_id),
        }
        STRANGERS.saturating_add(number)
    }
}
