//! Shards of a node: which one owns a token, which one a source port leads to.
//!
//! `shard_of` holds for vnode tables only; for tablets the shard is stored with the replica.
//! Ports are a wish: address translation may rewrite them, and the shard that the node reports on
//! the connection is the truth. Follows ScyllaDB's protocol extension "intranode sharding".

use super::Token;
use core::fmt;
use core::iter::FusedIterator;
use core::num::NonZeroU16;

/// A shard of one node. Whether the node has it is for [`ShardMap::check`] to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardIdx(u16);

impl ShardIdx {
    /// The shard of this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ShardIdx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a node divides its tokens over shards: at least one shard, fewer than 64 ignored bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardMap {
    count: NonZeroU16,
    ignore_msb: u8,
}

impl ShardMap {
    /// A node with `count` shards that ignores the `ignore_msb` most significant bits of a token.
    ///
    /// # Errors
    /// If `count` is 0 or `ignore_msb` is 64 or more; then the node is used without shards.
    pub const fn new(count: u16, ignore_msb: u8) -> Result<Self, ShardMapError> {
        let Some(count) = NonZeroU16::new(count) else {
            return Err(ShardMapError::NoShards);
        };
        if ignore_msb >= 64 {
            return Err(ShardMapError::IgnoredBits { ignore_msb });
        }
        Ok(Self { count, ignore_msb })
    }

    /// The number of shards.
    pub const fn count(self) -> NonZeroU16 {
        self.count
    }

    /// The number of most significant token bits that do not count.
    pub const fn ignore_msb(self) -> u8 {
        self.ignore_msb
    }

    /// The shard that owns a token of a vnode table.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product of a u64 and a u16 has at most 80 bits, so 16 remain"
    )]
    pub const fn shard_of(self, token: Token) -> ShardIdx {
        let biased = token.value().cast_unsigned() ^ (1 << 63);
        let shifted = biased.wrapping_shl(self.ignore_msb as u32);
        let product = (shifted as u128).wrapping_mul(self.count.get() as u128);
        ShardIdx((product >> 64) as u16)
    }

    /// The shard that the shard-aware listener gives to a client's source port.
    pub const fn shard_of_port(self, port: u16) -> ShardIdx {
        // Not zero, so the remainder exists.
        match port.checked_rem(self.count.get()) {
            Some(shard) => ShardIdx(shard),
            None => ShardIdx(0),
        }
    }

    /// The shard of this number if the node has it.
    pub const fn check(self, number: u16) -> Option<ShardIdx> {
        if number < self.count.get() {
            Some(ShardIdx(number))
        } else {
            None
        }
    }

    /// Every port of `range` that leads to `shard`, each once, from a place that `entropy`
    /// chooses. Empty if the node has no such shard or the range no such port.
    pub fn source_ports(self, shard: ShardIdx, range: PortRange, entropy: u64) -> SourcePorts {
        let step = u32::from(self.count.get());
        let (first, last) = (u32::from(range.first), u32::from(range.last));
        let in_first = u32::from(self.shard_of_port(range.first).0);
        // Both are below `step`, so the distance to the first fitting port is too.
        let ahead = u32::from(shard.0).wrapping_add(step).wrapping_sub(in_first);
        let base = first.saturating_add(ahead.checked_rem(step).unwrap_or(0));
        let fitting = match last
            .checked_sub(base)
            .and_then(|span| span.checked_div(step))
        {
            Some(steps) if self.check(shard.0).is_some() => steps.saturating_add(1),
            _ => 0,
        };
        let start = entropy.checked_rem(u64::from(fitting)).unwrap_or(0);
        SourcePorts {
            base,
            step,
            fitting,
            next: u32::try_from(start).unwrap_or(0),
            left: fitting,
        }
    }
}

/// Why sharding values cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardMapError {
    /// The count is 0.
    NoShards,
    /// A token has only 64 bits.
    IgnoredBits {
        /// How many were to be ignored.
        ignore_msb: u8,
    },
}

impl fmt::Display for ShardMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShards => f.write_str("node with 0 shards"),
            Self::IgnoredBits { ignore_msb } => {
                write!(f, "{ignore_msb} ignored token bits, at most 63")
            }
        }
    }
}

impl core::error::Error for ShardMapError {}

/// Local ports that may be bound, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// The range that is registered for ephemeral use.
    pub const EPHEMERAL: Self = Self {
        first: 49152,
        last: u16::MAX,
    };

    /// The range from `first` to `last`. `None` if it is empty or holds port 0, which systems
    /// take for "any".
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first == 0 || first > last {
            return None;
        }
        Some(Self { first, last })
    }

    /// The lowest port.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The highest port.
    pub const fn last(self) -> u16 {
        self.last
    }
}

impl Default for PortRange {
    fn default() -> Self {
        Self::EPHEMERAL
    }
}

/// The ports of [`ShardMap::source_ports`]: finite, without repetition.
#[derive(Clone, Debug)]
pub struct SourcePorts {
    /// The lowest fitting port; the others follow at distance `step`.
    base: u32,
    step: u32,
    fitting: u32,
    next: u32,
    left: u32,
}

impl Iterator for SourcePorts {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let port = self
            .base
            .saturating_add(self.next.saturating_mul(self.step));
        self.next = self.next.saturating_add(1);
        if self.next >= self.fitting {
            self.next = 0;
        }
        // Never above the range's last port by construction.
        u16::try_from(port).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for SourcePorts {}
impl FusedIterator for SourcePorts {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn map(count: u16, ignore_msb: u8) -> ShardMap {
        ShardMap::new(count, ignore_msb).unwrap()
    }

    #[test]
    fn impossible_maps_are_refused() {
        assert_eq!(ShardMap::new(0, 12), Err(ShardMapError::NoShards));
        for ignore_msb in 0..=u8::MAX {
            let expected = ignore_msb < 64;
            assert_eq!(
                ShardMap::new(1, ignore_msb).is_ok(),
                expected,
                "{ignore_msb}"
            );
        }
    }

    #[test]
    fn tokens_have_the_published_shards() {
        let columns = [(2, 12), (3, 12), (8, 12), (12, 12), (8, 0), (12, 0)];
        let rows: [(i64, [u16; 6]); 8] = [
            (-9223372036854775807, [0, 0, 0, 0, 0, 0]),
            (-6017608668500074083, [1, 2, 6, 9, 1, 2]),
            (-4503599627370496, [0, 0, 0, 0, 3, 5]),
            (-1, [1, 2, 7, 11, 3, 5]),
            (0, [0, 0, 0, 0, 4, 6]),
            (2251799813685248, [1, 1, 4, 6, 4, 6]),
            (4507812186440344727, [1, 2, 7, 11, 5, 8]),
            (9223372036854775807, [1, 2, 7, 11, 7, 11]),
        ];
        for (token, shards) in rows {
            for ((count, ignore_msb), expected) in columns.into_iter().zip(shards) {
                let shard = map(count, ignore_msb).shard_of(Token::new(token));
                assert_eq!(
                    shard.value(),
                    expected,
                    "{token} on {count} shards, {ignore_msb}"
                );
            }
        }
        let single = [
            (-4069959284402364209, 3, 0, 0),
            (-4069959284402364209, 4, 12, 1),
            (-4069959284402364209, 7, 12, 2),
            (-4069959284402364209, 8, 12, 2),
            (-4069959284402364209, 12, 12, 3),
            (-4069959284402364209, 48, 12, 13),
            (4624031697328622471, 3, 0, 2),
            (4624031697328622471, 4, 12, 2),
            (4624031697328622471, 7, 12, 5),
            (4624031697328622471, 48, 12, 35),
            (-1, 3, 0, 1),
            (-1, 4, 12, 3),
            (-1, 7, 12, 6),
            (-1, 48, 12, 47),
            (1, 3, 0, 1),
            (1, 4, 12, 0),
        ];
        for (token, count, ignore_msb, expected) in single {
            let shard = map(count, ignore_msb).shard_of(Token::new(token));
            assert_eq!(
                shard.value(),
                expected,
                "{token} on {count} shards, {ignore_msb}"
            );
        }
    }

    #[test]
    fn ends_of_the_ring_lie_on_the_ends_of_the_shards() {
        for count in 1..=u16::MAX {
            for ignore_msb in [0, 1, 12, 40] {
                let map = map(count, ignore_msb);
                assert_eq!(map.shard_of(Token::new(i64::MIN + 1)).value(), 0);
                assert_eq!(map.shard_of(Token::new(i64::MAX)).value(), count - 1);
            }
        }
        for ignore_msb in 0..64 {
            let shard = map(u16::MAX, ignore_msb).shard_of(Token::new(i64::MAX));
            assert!(shard.value() < u16::MAX);
            assert_eq!(map(1, ignore_msb).shard_of(Token::new(-1)).value(), 0);
        }
    }

    fn ports(count: u16, shard: u16, first: u16, last: u16, entropy: u64) -> Vec<u16> {
        let range = PortRange::new(first, last).unwrap();
        let ports = map(count, 12).source_ports(ShardIdx::new(shard), range, entropy);
        assert_eq!(ports.len(), ports.clone().count());
        ports.collect()
    }

    #[test]
    fn narrow_ranges_have_the_ports_they_have() {
        let table: &[(u16, u16, u16, u16, &[u16])] = &[
            (4, 1, 49152, 49152, &[]),
            (4, 0, 49152, 49152, &[49152]),
            (4, 0, 49153, 49155, &[]),
            (3, 0, 65533, 65535, &[65535]),
            (3, 2, 65533, 65535, &[65534]),
            (16384, 5, 49152, 65535, &[49157]),
            (20000, 9152, 49152, 65535, &[49152]),
            (20000, 1, 49152, 65535, &[60001]),
            (65535, 65534, 1, 65535, &[65534]),
            (65535, 0, 1, 65535, &[65535]),
            (4, 4, 1, 65535, &[]),
            (4, 65535, 1, 65535, &[]),
        ];
        for &(count, shard, first, last, expected) in table {
            for entropy in [0, 1, 2, u64::MAX] {
                let found = ports(count, shard, first, last, entropy);
                assert_eq!(
                    found, expected,
                    "shard {shard} of {count} in {first}-{last}"
                );
            }
        }
    }

    /// Every start covers exactly the fitting ports of the range, each once.
    #[test]
    fn each_fitting_port_comes_once() {
        for (first, last) in [(65500, 65535), (1, 40), (49152, 49200), (32760, 32790)] {
            for count in 1..=45 {
                for shard in 0..count {
                    let fits = |port: &u16| port % count == shard;
                    let expected: Vec<u16> = (first..=last).filter(fits).collect();
                    for entropy in 0..=expected.len() as u64 {
                        let mut found = ports(count, shard, first, last, entropy);
                        if let Some(&start) = found.first() {
                            assert_eq!(start, expected[entropy as usize % expected.len()]);
                        }
                        found.sort_unstable();
                        assert_eq!(found, expected, "shard {shard} of {count}, {first}-{last}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_port_of_the_ephemeral_range_leads_to_its_shard() {
        let map = map(12, 12);
        for shard in 0..12 {
            let shard = ShardIdx::new(shard);
            for port in map.source_ports(shard, PortRange::EPHEMERAL, 99) {
                assert!(port >= 49152);
                assert_eq!(map.shard_of_port(port), shard);
            }
        }
    }

    #[test]
    fn shards_out_of_range_are_none() {
        let map = map(4, 12);
        let known: Vec<u16> = (0..=u16::MAX).filter(|&n| map.check(n).is_some()).collect();
        assert_eq!(known, [0, 1, 2, 3]);
    }

    #[test]
    fn ranges_without_ports_are_refused() {
        for (first, last, expected) in [(0, 5, false), (5, 4, false), (5, 5, true)] {
            assert_eq!(PortRange::new(first, last).is_some(), expected);
        }
    }

    #[test]
    fn a_map_knows_its_parameters() {
        for ignore_msb in [0, 1, 12, 63] {
            let map = map(8, ignore_msb);
            assert_eq!(map.ignore_msb(), ignore_msb);
        }
    }

    #[test]
    fn port_ranges_have_both_ends_and_no_port_0() {
        let range = PortRange::new(2, 1000).unwrap();
        assert_eq!((range.first(), range.last()), (2, 1000));
        assert_eq!(PortRange::default(), PortRange::EPHEMERAL);
        for (first, last, is_good) in [(1, 1, true), (0, 9, false), (9, 8, false), (8, 9, true)] {
            assert_eq!(
                PortRange::new(first, last).is_some(),
                is_good,
                "{first} {last}"
            );
        }
    }

    #[test]
    fn errors_say_what_a_node_may_not_have() {
        let ignored = ShardMapError::IgnoredBits { ignore_msb: 64 };
        assert_eq!(
            std::format!("{ignored}"),
            "64 ignored token bits, at most 63"
        );
        assert_eq!(
            std::format!("{}", ShardMapError::NoShards),
            "node with 0 shards"
        );
    }
}
