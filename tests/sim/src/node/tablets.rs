//! Tablet maps: ranges, replicas with their shards, leaders, versions; and the routing payloads.
//!
//! A map always covers the whole token range without gaps: tablet i owns (last of i-1, own last].
//! Whether a reply carries a payload is decided here too, as a pure function, since the rule and
//! the bytes belong together.

use super::codec::Writer;
use super::token::token_of;

/// A copy of a tablet: a node (by index) and a shard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a pair, closed by what a replica is"
)]
pub struct Replica {
    /// Node index.
    pub node: usize,
    /// Shard of that node.
    pub shard: u32,
}

/// One tablet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tablet {
    /// Last token, inclusive.
    pub last: i64,
    /// Replicas in stored order.
    pub replicas: Vec<Replica>,
    /// The target of a running migration; it does not show in payloads.
    pub pending: Option<Replica>,
    /// Position of the leader in `replicas`, for strongly consistent tables; none during election.
    pub leader: Option<usize>,
    /// Bits of the version that are turned over: a version is opaque, and any may follow any.
    pub version_flips: u64,
}

/// The tablets of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TabletMap {
    tablets: Vec<Tablet>,
}

/// A tablet with its range, as found for a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located<'a> {
    pub(crate) first: i64,
    pub(crate) tablet: &'a Tablet,
}

impl TabletMap {
    /// `count` equal tablets, filled by `place`.
    pub(crate) fn new(count: usize, mut place: impl FnMut(usize) -> Vec<Replica>) -> Self {
        let count = count.max(1);
        let tablets = (1..=count)
            .map(|i| {
                let share = (i as u128 * u128::from(u64::MAX)) / count as u128;
                let last = u64::try_from(share).unwrap_or(u64::MAX) ^ (1 << 63);
                let replicas = place(i - 1);
                let leader = (!replicas.is_empty()).then(|| (i - 1) % replicas.len());
                Tablet {
                    last: last.cast_signed(),
                    replicas,
                    pending: None,
                    leader,
                    version_flips: 0,
                }
            })
            .collect();
        Self { tablets }
    }

    pub(crate) fn len(&self) -> usize {
        self.tablets.len()
    }

    pub(crate) fn tablets(&self) -> &[Tablet] {
        &self.tablets
    }

    pub(crate) fn tablet_mut(&mut self, at: usize) -> Option<&mut Tablet> {
        self.tablets.get_mut(at)
    }

    /// Index of the tablet that owns `token`.
    pub(crate) fn index_of(&self, token: i64) -> usize {
        self.tablets.partition_point(|tablet| tablet.last < token)
    }

    pub(crate) fn first_of(&self, at: usize) -> i64 {
        at.checked_sub(1)
            .and_then(|i| self.tablets.get(i))
            .map_or(i64::MIN, |tablet| tablet.last)
    }

    pub(crate) fn locate(&self, token: i64) -> Option<Located<'_>> {
        let at = self.index_of(token);
        Some(Located {
            first: self.first_of(at),
            tablet: self.tablets.get(at)?,
        })
    }

    /// Splits tablet `at` in two halves with the same replicas. False if it cannot be split.
    pub(crate) fn split(&mut self, at: usize) -> bool {
        let first = self.first_of(at);
        let Some(tablet) = self.tablets.get(at) else {
            return false;
        };
        let middle = i64::midpoint(first, tablet.last);
        if middle <= first || middle >= tablet.last {
            return false;
        }
        let lower = Tablet {
            last: middle,
            ..tablet.clone()
        };
        self.tablets.insert(at, lower);
        true
    }

    /// Merges tablet `at` with the next one; the upper one's replicas stay.
    pub(crate) fn merge(&mut self, at: usize) -> bool {
        if at + 1 >= self.tablets.len() {
            return false;
        }
        self.tablets.remove(at);
        true
    }
}

impl Tablet {
    /// The node and shard that leads, if known.
    pub(crate) fn leader_replica(&self) -> Option<Replica> {
        self.replicas.get(self.leader?).copied()
    }

    /// Whether `at` holds this tablet or is about to (same shard).
    pub(crate) fn is_routed_right(&self, at: Replica) -> bool {
        self.replicas.contains(&at) || self.pending == Some(at)
    }

    /// Replicas in the order of a v2 payload: sorted by host id and shard; on strongly consistent
    /// tables rotated so that the leader is first.
    fn ordered(
        &self,
        host_ids: &dyn Fn(usize) -> [u8; 16],
        leader: Option<Replica>,
    ) -> Vec<Replica> {
        let mut replicas = self.replicas.clone();
        replicas.sort_by_key(|replica| (host_ids(replica.node), replica.shard));
        if let Some(at) = leader.and_then(|l| replicas.iter().position(|r| *r == l)) {
            replicas.rotate_left(at);
        }
        replicas
    }

    /// The version of the list of replicas that a v2 payload has.
    fn version(&self, ordered: &[Replica], host_ids: &dyn Fn(usize) -> [u8; 16]) -> u64 {
        version_of(ordered, host_ids) ^ self.version_flips
    }

    /// The version that a v2 connection is told; none of a strongly consistent tablet without a
    /// leader.
    pub(crate) fn told_version(
        &self,
        strong: bool,
        host_ids: &dyn Fn(usize) -> [u8; 16],
    ) -> Option<u64> {
        let leader = if strong {
            Some(self.leader_replica()?)
        } else {
            None
        };
        let replicas = self.ordered(host_ids, leader);
        Some(self.version(&replicas, host_ids))
    }
}

/// XXH64 over the replicas in list order.
fn version_of(replicas: &[Replica], host_ids: &dyn Fn(usize) -> [u8; 16]) -> u64 {
    let mut hashed = Vec::with_capacity(replicas.len() * 20);
    for replica in replicas {
        let id = u128::from_be_bytes(host_ids(replica.node));
        for half in [id >> 64, id & u128::from(u64::MAX)] {
            hashed.extend_from_slice(&u64::try_from(half).unwrap_or(0).to_le_bytes());
        }
        hashed.extend_from_slice(&replica.shard.to_le_bytes());
    }
    twox_hash::XxHash64::oneshot(0, &hashed)
}

/// Which payload a reply carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) key: &'static str,
    pub(crate) value: Vec<u8>,
}

impl Payload {
    /// Bytes of a map with this alone: its count, a string, and bytes with their length.
    pub(crate) fn wire_len(&self) -> u64 {
        (2 + 2 + self.key.len() + 4 + self.value.len()) as u64
    }
}

/// What the payload rule looks at, besides the tablet itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// `TABLETS_ROUTING_V1` negotiated on the connection.
    pub(crate) v1: bool,
    /// `TABLETS_ROUTING_V2_EXPERIMENTAL` negotiated on the connection.
    pub(crate) v2: bool,
    /// The block of an EXECUTE on a v2 connection.
    pub(crate) block: Option<u8>,
    /// The table is strongly consistent.
    pub(crate) strong: bool,
    /// INSERT, UPDATE or DELETE with IF.
    pub(crate) conditional: bool,
    /// Every partition-key column is bound by a marker.
    pub(crate) key_bound: bool,
    /// Node and shard of the connection.
    pub(crate) at: Replica,
}

/// The payload of a successful single-partition request, if it gets one.
pub(crate) fn payload(
    asking: Asking,
    located: Located<'_>,
    host_ids: &dyn Fn(usize) -> [u8; 16],
) -> Option<Payload> {
    let Asking {
        v1,
        v2,
        block,
        strong,
        conditional,
        key_bound,
        at,
    } = asking;
    if strong {
        // No leader, no payload; v1 never speaks of strongly consistent tables.
        let leader = located.tablet.leader_replica()?;
        return if v2 {
            v2_payload(located, block?, host_ids, Some(leader))
        } else {
            None
        };
    }
    if !key_bound {
        return None;
    }
    if v2 && !conditional {
        return v2_payload(located, block?, host_ids, None);
    }
    (v1 && !located.tablet.is_routed_right(at)).then(|| Payload {
        key: "tablets-routing-v1",
        value: encode(located, &located.tablet.replicas, None, host_ids),
    })
}

fn v2_payload(
    located: Located<'_>,
    block: u8,
    host_ids: &dyn Fn(usize) -> [u8; 16],
    leader: Option<Replica>,
) -> Option<Payload> {
    let replicas = located.tablet.ordered(host_ids, leader);
    let version = located.tablet.version(&replicas, host_ids);
    (!block_matches(version, block)).then(|| Payload {
        key: "tablets-routing-v2",
        value: encode(located, &replicas, Some(version), host_ids),
    })
}

/// Whether the nibble that the block names is that of the version; index 0 is the lowest nibble.
fn block_matches(version: u64, block: u8) -> bool {
    (version >> (4 * (block >> 4))) & 15 == u64::from(block & 15)
}

fn encode(
    located: Located<'_>,
    replicas: &[Replica],
    version: Option<u64>,
    host_ids: &dyn Fn(usize) -> [u8; 16],
) -> Vec<u8> {
    let mut list = Writer::default();
    list.count(replicas.len());
    for replica in replicas {
        list.int(28);
        list.bytes(&host_ids(replica.node));
        list.bytes(&replica.shard.to_be_bytes());
    }
    let mut out = Writer::default();
    out.bytes(&located.first.to_be_bytes());
    out.bytes(&located.tablet.last.to_be_bytes());
    out.bytes(list.as_slice());
    if let Some(version) = version {
        out.bytes(&version.to_be_bytes());
    }
    out.into_bytes()
}

/// A deterministic number from the seed and two names of what it is for.
pub(crate) fn drawn(seed: u64, what: &str, at: u64) -> u64 {
    let mut bytes = seed.to_le_bytes().to_vec();
    bytes.extend_from_slice(what.as_bytes());
    bytes.extend_from_slice(&at.to_le_bytes());
    twox_hash::XxHash64::oneshot(seed, &bytes) ^ token_of(&bytes).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::super::value::{hex, unhex};
    use super::*;

    const A: Replica = Replica { node: 0, shard: 3 };
    const B: Replica = Replica { node: 1, shard: 0 };
    const C: Replica = Replica { node: 2, shard: 11 };

    fn host_id(node: usize) -> [u8; 16] {
        let id = [
            "0102030405060708090a0b0c0d0e0f10",
            "a1b2c3d4e5f647898abcdef012345678",
            "00000000000040008000000000000001",
        ][node];
        unhex(id).try_into().unwrap()
    }

    fn tablet(leader: Option<usize>) -> Tablet {
        Tablet {
            last: -1,
            replicas: vec![B, A, C],
            pending: None,
            leader,
            version_flips: 0,
        }
    }

    fn asking(v1: bool, v2: bool, strong: bool) -> Asking {
        let at = Replica { node: 0, shard: 0 };
        // 01: nibble 0 of every version below is not 1.
        let block = v2.then_some(0x01);
        Asking {
            v1,
            v2,
            block,
            strong,
            conditional: false,
            key_bound: true,
            at,
        }
    }

    fn sent(asking: Asking, tablet: &Tablet) -> Option<(&'static str, String)> {
        let located = Located {
            first: -4611686018427387905,
            tablet,
        };
        payload(asking, located, &host_id).map(|payload| (payload.key, hex(&payload.value)))
    }

    #[test]
    fn encodings_are_those_of_the_documents() {
        let range = "00000008bfffffffffffffff00000008ffffffffffffffff0000006400000003";
        let a = "0000001c000000100102030405060708090a0b0c0d0e0f100000000400000003";
        let b = "0000001c00000010a1b2c3d4e5f647898abcdef0123456780000000400000000";
        let c = "0000001c0000001000000000000040008000000000000001000000040000000b";
        assert_eq!(
            sent(asking(true, false, false), &tablet(None)),
            Some(("tablets-routing-v1", format!("{range}{b}{a}{c}")))
        );
        assert_eq!(
            sent(asking(false, true, false), &tablet(None)),
            Some((
                "tablets-routing-v2",
                format!("{range}{c}{a}{b}00000008a3a6be5f3d498142")
            ))
        );
        let by_leader = [
            (0, format!("{range}{b}{c}{a}000000083aa07a7b7e419cee")),
            (1, format!("{range}{a}{b}{c}000000089c49919eabb615d0")),
            (2, format!("{range}{c}{a}{b}00000008a3a6be5f3d498142")),
        ];
        for (leader, expected) in by_leader {
            let found = sent(asking(false, true, true), &tablet(Some(leader)));
            assert_eq!(
                found,
                Some(("tablets-routing-v2", expected)),
                "leader {leader}"
            );
        }
    }

    #[test]
    fn one_tablet_covers_everything() {
        let map = TabletMap::new(1, |_| vec![Replica { node: 0, shard: 0 }]);
        let value = encode(
            map.locate(5).unwrap(),
            &map.tablets[0].replicas,
            Some(version_of(&map.tablets[0].replicas, &host_id)),
            &host_id,
        );
        assert_eq!(
            hex(&value),
            "00000008800000000000000000000008 7fffffffffffffff 0000002400000001\
             0000001c00000010 0102030405060708090a0b0c0d0e0f10 0000000400000000\
             00000008 4066de31fce03a4f"
                .replace(' ', "")
        );
    }

    #[test]
    fn ranges_of_equal_tablets() {
        let lasts = |count| -> Vec<i64> {
            TabletMap::new(count, |_| vec![A])
                .tablets
                .iter()
                .map(|t| t.last)
                .collect()
        };
        assert_eq!(lasts(2), [-1, i64::MAX]);
        assert_eq!(
            lasts(3),
            [-3074457345618258603, 3074457345618258602, i64::MAX]
        );
        assert_eq!(
            lasts(4),
            [-4611686018427387905, -1, 4611686018427387903, i64::MAX]
        );
        let map = TabletMap::new(4, |_| vec![A]);
        assert_eq!(
            map.index_of(-4611686018427387905),
            0,
            "a range ends with its last token"
        );
        assert_eq!(map.index_of(-4611686018427387904), 1);
        assert_eq!(map.index_of(i64::MAX), 3);
    }

    #[test]
    fn split_and_merge_keep_the_cover() {
        let mut map = TabletMap::new(2, |_| vec![A]);
        assert!(map.split(0) && map.split(2));
        assert_eq!(map.len(), 4);
        assert_eq!(map.tablets.last().unwrap().last, i64::MAX);
        assert!(
            map.tablets
                .windows(2)
                .all(|pair| pair[0].last < pair[1].last)
        );
        assert!(map.merge(0) && map.merge(1) && !map.merge(1));
        assert_eq!(
            map.tablets.iter().map(|t| t.last).collect::<Vec<_>>(),
            [-1, i64::MAX]
        );
    }

    #[test]
    fn all_blocks_of_a_version() {
        let expected = [
            (
                0xabcd_1234_dead_beef_u64,
                "0f1e2e3b4d5a6e7d8493a2b1cddcebfa",
            ),
            (0xa3a6_be5f_3d49_8142, "0214213849546d738f95aebbc6dae3fa"),
        ];
        for (version, blocks) in expected {
            let matching: Vec<u8> = (0..=255).filter(|b| block_matches(version, *b)).collect();
            assert_eq!(hex(&matching), blocks);
        }
    }

    /// Every cell of the table of who gets what: operation by negotiated extensions.
    #[test]
    fn who_gets_which_payload() {
        const V1: Option<&str> = Some("tablets-routing-v1");
        const V2: Option<&str> = Some("tablets-routing-v2");
        // (strong, conditional, key bound), then misrouted on v1 / v2 / both, block differing.
        let rows = [
            ((false, false, true), [V1, V2, V2]),
            ((false, true, true), [V1, None, V1]),
            ((false, false, false), [None, None, None]),
            ((false, true, false), [None, None, None]),
            ((true, false, true), [None, V2, V2]),
            ((true, false, false), [None, V2, V2]),
        ];
        for ((strong, conditional, key_bound), expected) in rows {
            let modes = [(true, false), (false, true), (true, true), (false, false)];
            // Who knows of neither is told nothing.
            for ((v1, v2), key) in modes.into_iter().zip(expected.into_iter().chain([None])) {
                let base = asking(v1, v2, strong);
                let ask = Asking {
                    conditional,
                    key_bound,
                    ..base
                };
                let found = sent(ask, &tablet(Some(0))).map(|(key, _)| key);
                assert_eq!(found, key, "{strong} {conditional} {key_bound} {v1} {v2}");

                // Routed right: v1 falls silent, v2 does not care.
                let right = sent(Asking { at: B, ..ask }, &tablet(Some(0))).map(|(key, _)| key);
                assert_eq!(right, if key == V1 { None } else { key });

                // A matching block silences v2, v1 does not care.
                let version = if strong { 0x0e } else { 0x02 };
                let block = v2.then_some(version);
                let known = sent(Asking { block, ..ask }, &tablet(Some(0))).map(|(key, _)| key);
                assert_eq!(known, if key == V2 { None } else { key });
            }
        }
        assert_eq!(
            sent(asking(true, true, true), &tablet(None)),
            None,
            "no leader, no payload"
        );
        let pending = Tablet {
            pending: Some(Replica { node: 0, shard: 0 }),
            ..tablet(None)
        };
        assert_eq!(
            sent(asking(true, false, false), &pending),
            None,
            "pending is right"
        );
    }
}
