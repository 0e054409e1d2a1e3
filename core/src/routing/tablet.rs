//! Tablets: what is learned about them, and how little of it is kept.
//!
//! A tablet owns the tokens in `(first, last]`. Its version is opaque and changes with its
//! replicas or leader; a [`VersionBlock`] shows the server four bits of it with each request, and
//! the server answers with the current tablet when they differ. A counter in each stored tablet
//! walks through the sixteen positions, so any change is seen within sixteen requests for that
//! tablet, whichever connections they use. The format is ScyllaDB's `tablets-routing-v2`.

use super::Token;
use super::topology::NodeIdx;
use crate::sync::ByteCounter;
use alloc::boxed::Box;
use core::fmt;
use uuid::Uuid;

/// The opaque version of a tablet, as the server sent it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TabletVersion(u64);

impl TabletVersion {
    /// The version of these bits. It travels as a signed number; only the bits matter.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The block that shows the four bits at `position` mod 16; position 0 is the least
    /// significant.
    pub const fn block(self, position: u8) -> VersionBlock {
        let position = position & 15;
        let shift = (position as u32).wrapping_mul(4);
        VersionBlock::new(position, (self.0.wrapping_shr(shift) & 15) as u8)
    }
}

impl fmt::Debug for TabletVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::LowerHex for TabletVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// The byte that ends an EXECUTE where the second routing extension was agreed: the position of
/// four version bits in the high half, their value in the low half. Every byte is a valid block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionBlock(u8);

impl VersionBlock {
    /// The block that says `value` mod 16 at `position` mod 16.
    pub const fn new(position: u8, value: u8) -> Self {
        Self((position & 15) << 4 | (value & 15))
    }

    /// The block for a tablet of which nothing is known: one position, any value. A chance match
    /// (1 in 16) only delays learning by a request.
    pub const fn unknown(entropy: u64) -> Self {
        Self::new(0, (entropy & 15) as u8)
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Which four bits are shown.
    pub const fn position(self) -> u8 {
        self.0 >> 4
    }

    /// What they are said to be.
    pub const fn value(self) -> u8 {
        self.0 & 15
    }
}

impl fmt::Debug for VersionBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VersionBlock({:02x})", self.0)
    }
}

/// A replica as the server named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "closed by the protocol")]
pub struct LearnedReplica {
    /// The host, which need not be known yet.
    pub host_id: Uuid,
    /// The shard. Numbers that no node can have stand as `u16::MAX`.
    pub shard: u16,
}

/// A tablet as the server described it: the range is not empty, the replicas are in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedTablet {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) version: Option<TabletVersion>,
    pub(super) replicas: Box<[LearnedReplica]>,
}

impl LearnedTablet {
    /// A tablet owning `(first, last]`. `None` if that is empty, or there is no replica, or more
    /// than 255.
    pub fn new(
        first: i64,
        last: i64,
        version: Option<TabletVersion>,
        replicas: Box<[LearnedReplica]>,
    ) -> Option<Self> {
        let replica_count = u8::try_from(replicas.len()).ok()?;
        if first >= last || replica_count == 0 {
            return None;
        }
        Some(Self {
            first,
            last,
            version,
            replicas,
        })
    }

    /// The token before its first, or `i64::MIN`.
    pub const fn first_exclusive(&self) -> i64 {
        self.first
    }

    /// Its last token.
    pub const fn last_inclusive(&self) -> i64 {
        self.last
    }

    /// Its version, if it came by the second extension.
    pub const fn version(&self) -> Option<TabletVersion> {
        self.version
    }

    /// Its replicas in the server's order. By the second extension, for strongly consistent
    /// keyspaces only, the first is the leader.
    pub fn replicas(&self) -> &[LearnedReplica] {
        &self.replicas
    }
}

/// A stored replica: four bytes instead of twenty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Replica {
    node: u16,
    pub(super) shard: u16,
}

impl Replica {
    /// A replica on `node`, or one whose host is not known yet.
    pub(super) fn new(node: Option<NodeIdx>, shard: u16) -> Self {
        let node = node.map_or(NodeIdx::NONE, NodeIdx::value);
        Self { node, shard }
    }

    pub(super) fn node(self) -> Option<NodeIdx> {
        NodeIdx::from_value(self.node)
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node() {
            Some(node) => write!(f, "{}/{}", node.value(), self.shard),
            None => write!(f, "?/{}", self.shard),
        }
    }
}

/// A stored tablet: forty bytes with up to three replicas; more of them stand in its chunk.
#[derive(Debug)]
pub(super) struct Tablet {
    pub(super) first: i64,
    pub(super) last: i64,
    version: u64,
    pub(super) replicas: [Replica; INLINE_REPLICAS],
    /// All replicas, also those that stand in the chunk.
    pub(super) replica_count: u8,
    has_version: bool,
    /// Where the probe went on when this copy was made.
    probe_start: u8,
    /// Requests that were given a block since then.
    probes: ByteCounter,
}

impl Tablet {
    pub(super) fn new(
        learned: &LearnedTablet,
        replicas: [Replica; INLINE_REPLICAS],
        replica_count: u8,
    ) -> Self {
        Self {
            first: learned.first,
            last: learned.last,
            version: learned.version.map_or(0, TabletVersion::bits),
            replicas,
            replica_count,
            has_version: learned.version.is_some(),
            probe_start: 0,
            probes: ByteCounter::default(),
        }
    }

    /// A copy for a chunk that replaces this one; the probe goes on where it was.
    pub(super) fn copy(&self) -> Self {
        Self {
            first: self.first,
            last: self.last,
            version: self.version,
            replicas: self.replicas,
            replica_count: self.replica_count,
            has_version: self.has_version,
            probe_start: self.next_probe(),
            probes: ByteCounter::default(),
        }
    }

    pub(super) fn contains(&self, token: Token) -> bool {
        self.first < token.value() && token.value() <= self.last
    }

    pub(super) fn version(&self) -> Option<TabletVersion> {
        self.has_version.then_some(TabletVersion(self.version))
    }

    /// The block for the next request. With a version: its bits at the next position. Without:
    /// the counter as value of one position, so that of two requests one differs for certain.
    pub(super) fn probe(&self) -> VersionBlock {
        let count = self.next_probe();
        match self.version() {
            Some(version) => version.block(count),
            None => VersionBlock::new(0, count),
        }
    }

    fn next_probe(&self) -> u8 {
        self.probe_start.wrapping_add(self.probes.next())
    }
}

/// Replicas that stand in the tablet itself.
pub(super) const INLINE_REPLICAS: usize = 3;

const _: () = assert!(size_of::<Replica>() == 4);
// loom's counters are larger.
#[cfg(not(messina_loom))]
const _: () = assert!(size_of::<Tablet>() <= 40);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn versioned(version: Option<u64>) -> Tablet {
        let host_id = Uuid::from_u128(1);
        let replicas = vec![LearnedReplica { host_id, shard: 0 }].into_boxed_slice();
        let version = version.map(TabletVersion::new);
        let learned = LearnedTablet::new(0, 1, version, replicas).unwrap();
        Tablet::new(&learned, [Replica::new(None, 0); 3], 1)
    }

    /// The published matching blocks, and that no other of the 256 bytes matches.
    #[test]
    fn blocks_match_the_worked_examples() {
        let table: [(u64, [u8; 16]); 2] = [
            (
                0xabcd_1234_dead_beef,
                [
                    0x0f, 0x1e, 0x2e, 0x3b, 0x4d, 0x5a, 0x6e, 0x7d, 0x84, 0x93, 0xa2, 0xb1, 0xcd,
                    0xdc, 0xeb, 0xfa,
                ],
            ),
            (
                0xa3a6_be5f_3d49_8142,
                [
                    0x02, 0x14, 0x21, 0x38, 0x49, 0x54, 0x6d, 0x73, 0x8f, 0x95, 0xae, 0xbb, 0xc6,
                    0xda, 0xe3, 0xfa,
                ],
            ),
        ];
        for (version, expected) in table {
            let version = TabletVersion::new(version);
            for byte in 0..=u8::MAX {
                let block = VersionBlock::new(byte >> 4, byte & 15);
                assert_eq!(block.byte(), byte);
                assert_eq!((block.position(), block.value()), (byte >> 4, byte & 15));
                let matches = version.block(block.position()) == block;
                assert_eq!(matches, expected.contains(&byte), "{version:?} {byte:02x}");
            }
            for position in 0..=u8::MAX {
                assert_eq!(version.block(position), version.block(position % 16));
            }
        }
    }

    #[test]
    fn sixteen_probes_show_the_whole_version() {
        let version = 0x9c49_919e_abb6_15d0;
        let mut tablet = versioned(Some(version));
        // Copies made in between, as learning a neighbour does, lose no position.
        for round in 0..40_u32 {
            let mut shown = 0_u64;
            for _ in 0..16 {
                let block = tablet.probe();
                shown |= u64::from(block.value()) << (4 * block.position());
                if round % 3 == 1 {
                    tablet = tablet.copy();
                }
            }
            assert_eq!(shown, version);
        }
    }

    #[test]
    fn without_version_two_requests_differ() {
        let tablet = versioned(None);
        let blocks: Vec<u8> = (0..300).map(|_| tablet.probe().byte()).collect();
        assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(blocks.iter().all(|block| block >> 4 == 0));
    }

    #[test]
    fn unknown_tablets_are_probed_at_one_position() {
        let blocks: Vec<u8> = (0..16)
            .map(|e| VersionBlock::unknown(e << 60 | e).byte())
            .collect();
        assert_eq!(blocks, (0..16).collect::<Vec<u8>>());
    }

    #[test]
    fn empty_ranges_and_lists_are_refused() {
        let one = || {
            vec![LearnedReplica {
                host_id: Uuid::nil(),
                shard: 0,
            }]
            .into_boxed_slice()
        };
        assert!(LearnedTablet::new(0, 0, None, one()).is_none());
        assert!(LearnedTablet::new(1, 0, None, one()).is_none());
        assert!(LearnedTablet::new(i64::MIN, i64::MAX, None, one()).is_some());
        assert!(LearnedTablet::new(0, 1, None, Box::default()).is_none());
        let too_many = vec![one()[0]; 256].into_boxed_slice();
        assert!(LearnedTablet::new(0, 1, None, too_many).is_none());
    }

    #[test]
    fn versions_and_blocks_are_printed_in_hexadecimal_digits() {
        let version = TabletVersion::new(0xab);
        assert_eq!(
            std::format!("{version:?} {version:x}"),
            "00000000000000ab ab"
        );
        let block = VersionBlock::new(1, 15);
        assert_eq!(std::format!("{block:?}"), "VersionBlock(1f)");
    }

    #[test]
    fn replicas_are_printed_with_their_node_if_it_is_known() {
        let known = Replica::new(NodeIdx::from_value(7), 3);
        let unknown = Replica::new(None, 4);
        assert_eq!(std::format!("{known:?} {unknown:?}"), "7/3 ?/4");
    }
}
