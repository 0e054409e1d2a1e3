//! The custom payload values by which a server teaches tablets, and nothing else.
//!
//! ```text
//! tablets-routing-v1 : tuple<bigint, bigint, list<tuple<uuid, int>>>
//! tablets-routing-v2 : tuple<bigint, bigint, list<tuple<uuid, int>>, bigint>
//! ```
//!
//! Every field has a four-byte length. The bytes come from the network: lengths must be exactly
//! those of the types, the count must fit the list, the range must not be empty.

use super::{LearnedReplica, LearnedTablet, TabletVersion};
use crate::wire::{ParseError, Reader};
use alloc::vec::Vec;
use core::fmt;

/// Which of the two extensions a payload belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadKind {
    /// `tablets-routing-v1`: sent for a misrouted request, replicas in stored order.
    V1,
    /// `tablets-routing-v2`: sent when the version block differs, with the version.
    V2,
}

impl PayloadKind {
    /// Its key in the custom payload.
    pub const fn key(self) -> &'static str {
        match self {
            Self::V1 => "tablets-routing-v1",
            Self::V2 => "tablets-routing-v2",
        }
    }
}

/// Reads the value of a payload.
///
/// # Errors
/// If the bytes are not what the kind prescribes. Routing is then simply not learned; the
/// response itself is good.
pub fn parse_payload(kind: PayloadKind, value: &[u8]) -> Result<LearnedTablet, PayloadError> {
    let mut reader = Reader::new(value);
    let first = field(&mut reader, "first token", i64::from_be_bytes)?;
    let last = field(&mut reader, "last token", i64::from_be_bytes)?;
    let list = reader
        .bytes("replicas")?
        .ok_or(PayloadError::Field { what: "replicas" })?;
    let replicas = parse_replicas(list)?;
    let version = match kind {
        PayloadKind::V1 => None,
        PayloadKind::V2 => Some(TabletVersion::new(field(
            &mut reader,
            "version",
            u64::from_be_bytes,
        )?)),
    };
    reader.finish("tablet")?;
    if first >= last {
        return Err(PayloadError::EmptyRange { first, last });
    }
    let replica_count = replicas.len();
    LearnedTablet::new(first, last, version, replicas.into_boxed_slice())
        .ok_or(PayloadError::ReplicaCount { replica_count })
}

fn parse_replicas(list: &[u8]) -> Result<Vec<LearnedReplica>, PayloadError> {
    let mut reader = Reader::new(list);
    let replica_count = reader.count("replica count")? as usize;
    // Each takes 32 bytes, so a lying count reserves nothing.
    if replica_count.checked_mul(REPLICA_LEN) != Some(reader.rest().len()) {
        return Err(PayloadError::ReplicaCount { replica_count });
    }
    let mut replicas = Vec::with_capacity(replica_count);
    for _ in 0..replica_count {
        let tuple = reader
            .bytes("replica")?
            .ok_or(PayloadError::Field { what: "replica" })?;
        let mut reader = Reader::new(tuple);
        let host_id = field(&mut reader, "host id", uuid::Uuid::from_bytes)?;
        let shard = field(&mut reader, "shard", i32::from_be_bytes)?;
        reader.finish("replica")?;
        let number = u32::try_from(shard).map_err(|_| PayloadError::NegativeShard { shard })?;
        // No node has so many shards; the replica is then used without one.
        let shard = u16::try_from(number).unwrap_or(u16::MAX);
        replicas.push(LearnedReplica { host_id, shard });
    }
    reader.finish("replicas")?;
    Ok(replicas)
}

/// A field of a fixed size behind its length.
fn field<T, const N: usize>(
    reader: &mut Reader<'_>,
    what: &'static str,
    from_bytes: impl FnOnce([u8; N]) -> T,
) -> Result<T, PayloadError> {
    let value = reader.bytes(what)?.ok_or(PayloadError::Field { what })?;
    let bytes = <[u8; N]>::try_from(value).map_err(|_| PayloadError::Field { what })?;
    Ok(from_bytes(bytes))
}

/// A replica in a list: its length, host id and shard with theirs.
const REPLICA_LEN: usize = 32;

/// Why a payload was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadError {
    /// The bytes end too early or too late, or a length cannot be.
    Parse(ParseError),
    /// A field is null or has not the length of its type.
    Field {
        /// Which one.
        what: &'static str,
    },
    /// The range owns no token.
    EmptyRange {
        /// First token, exclusive.
        first: i64,
        /// Last token, inclusive.
        last: i64,
    },
    /// No replica, more than 255, or a count that the list does not hold.
    ReplicaCount {
        /// How many were announced.
        replica_count: usize,
    },
    /// A shard below zero.
    NegativeShard {
        /// Its number.
        shard: i32,
    },
}

impl From<ParseError> for PayloadError {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(error) => write!(f, "tablet payload: {error}"),
            Self::Field { what } => write!(f, "tablet payload: {what} is null or of wrong length"),
            Self::EmptyRange { first, last } => {
                write!(f, "tablet payload: empty range ({first}, {last}]")
            }
            Self::ReplicaCount { replica_count } => {
                write!(
                    f,
                    "tablet payload: impossible replica count {replica_count}"
                )
            }
            Self::NegativeShard { shard } => write!(f, "tablet payload: shard {shard}"),
        }
    }
}

impl core::error::Error for PayloadError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{format, string::String};
    use uuid::Uuid;

    const A: u128 = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
    const B: u128 = 0xa1b2_c3d4_e5f6_4789_8abc_def0_1234_5678;
    const C: u128 = 0x0000_0000_0000_4000_8000_0000_0000_0001;

    const RANGE: &str = "00000008bfffffffffffffff00000008ffffffffffffffff";
    const ITEM_A: &str = "0000001c000000100102030405060708090a0b0c0d0e0f100000000400000003";
    const ITEM_B: &str = "0000001c00000010a1b2c3d4e5f647898abcdef0123456780000000400000000";
    const ITEM_C: &str = "0000001c0000001000000000000040008000000000000001000000040000000b";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    fn replicas(tablet: &LearnedTablet) -> Vec<(u128, u16)> {
        tablet
            .replicas()
            .iter()
            .map(|r| (r.host_id.as_u128(), r.shard))
            .collect()
    }

    #[test]
    fn published_payloads() {
        let quarter = (-4_611_686_018_427_387_905, -1);
        let all = (i64::MIN, i64::MAX);
        let one = "000000088000000000000000000000087fffffffffffffff0000002400000001\
                   0000001c000000100102030405060708090a0b0c0d0e0f100000000400000000";
        let three = [(B, 0), (A, 3), (C, 11)];
        let sorted = [(C, 11), (A, 3), (B, 0)];
        let led = [(B, 0), (C, 11), (A, 3)];
        type Row<'a> = (
            PayloadKind,
            String,
            (i64, i64),
            &'a [(u128, u16)],
            Option<u64>,
        );
        let table: [Row<'_>; 5] = [
            (
                PayloadKind::V1,
                format!("{RANGE}0000006400000003{ITEM_B}{ITEM_A}{ITEM_C}"),
                quarter,
                &three,
                None,
            ),
            (
                PayloadKind::V2,
                format!("{RANGE}0000006400000003{ITEM_C}{ITEM_A}{ITEM_B}00000008a3a6be5f3d498142"),
                quarter,
                &sorted,
                Some(0xa3a6_be5f_3d49_8142),
            ),
            (
                PayloadKind::V2,
                format!("{RANGE}0000006400000003{ITEM_B}{ITEM_C}{ITEM_A}000000083aa07a7b7e419cee"),
                quarter,
                &led,
                Some(0x3aa0_7a7b_7e41_9cee),
            ),
            (PayloadKind::V1, one.into(), all, &[(A, 0)], None),
            (
                PayloadKind::V2,
                format!("{one}000000084066de31fce03a4f"),
                all,
                &[(A, 0)],
                Some(0x4066_de31_fce0_3a4f),
            ),
        ];
        for (kind, hex, range, expected, version) in table {
            let tablet = parse_payload(kind, &bytes(&hex)).unwrap();
            assert_eq!((tablet.first_exclusive(), tablet.last_inclusive()), range);
            assert_eq!(replicas(&tablet), expected);
            assert_eq!(tablet.version().map(TabletVersion::bits), version);
        }
    }

    #[test]
    fn every_prefix_is_refused() {
        let hex = format!("{RANGE}0000004400000002{ITEM_B}{ITEM_A}00000008a3a6be5f3d498142");
        let whole = bytes(&hex);
        for len in 0..whole.len() {
            assert!(
                parse_payload(PayloadKind::V2, &whole[..len]).is_err(),
                "{len}"
            );
        }
        assert!(parse_payload(PayloadKind::V2, &whole).is_ok());
        // A value of one kind is not one of the other.
        assert!(parse_payload(PayloadKind::V1, &whole).is_err());
        assert!(parse_payload(PayloadKind::V2, &whole[..whole.len() - 12]).is_err());
    }

    #[test]
    fn impossible_values_are_refused() {
        let list = format!("0000002400000001{ITEM_A}");
        let shard = |hex: &str| format!("{RANGE}0000002400000001{}{hex}", &ITEM_A[..56]);
        let table: [(&str, String, PayloadError); 10] = [
            (
                "last equals first",
                format!("00000008000000000000000100000008{:016x}{list}", 1),
                PayloadError::EmptyRange { first: 1, last: 1 },
            ),
            (
                "last before first",
                format!("00000008000000000000000100000008{:016x}{list}", 0),
                PayloadError::EmptyRange { first: 1, last: 0 },
            ),
            (
                "shard -1",
                shard("ffffffff"),
                PayloadError::NegativeShard { shard: -1 },
            ),
            (
                "least shard",
                shard("80000000"),
                PayloadError::NegativeShard { shard: i32::MIN },
            ),
            (
                "count above the list",
                format!("{RANGE}0000002400000002{ITEM_A}"),
                PayloadError::ReplicaCount { replica_count: 2 },
            ),
            (
                "count far above the list",
                format!("{RANGE}000000247fffffff{ITEM_A}"),
                PayloadError::ReplicaCount {
                    replica_count: 0x7fff_ffff,
                },
            ),
            (
                "count below the list",
                format!("{RANGE}0000004400000001{ITEM_A}{ITEM_B}"),
                PayloadError::ReplicaCount { replica_count: 1 },
            ),
            (
                "no replica",
                format!("{RANGE}0000000400000000"),
                PayloadError::ReplicaCount { replica_count: 0 },
            ),
            (
                "null list",
                format!("{RANGE}ffffffff"),
                PayloadError::Field { what: "replicas" },
            ),
            (
                "token of four bytes",
                format!("0000000400000001{list}"),
                PayloadError::Field {
                    what: "first token",
                },
            ),
        ];
        for (name, hex, expected) in table {
            assert_eq!(
                parse_payload(PayloadKind::V1, &bytes(&hex)),
                Err(expected),
                "{name}"
            );
        }
    }

    #[test]
    fn shards_beyond_all_nodes_are_kept_as_such() {
        for (hex, expected) in [
            ("0000ffff", 65535),
            ("00010000", 65535),
            ("7fffffff", 65535),
        ] {
            let hex = format!("{RANGE}0000002400000001{}{hex}", &ITEM_A[..56]);
            let tablet = parse_payload(PayloadKind::V1, &bytes(&hex)).unwrap();
            let host_id = Uuid::from_u128(A);
            assert_eq!(
                tablet.replicas(),
                [LearnedReplica {
                    host_id,
                    shard: expected
                }]
            );
        }
    }

    #[test]
    fn keys_name_the_kind() {
        assert_eq!(PayloadKind::V1.key(), "tablets-routing-v1");
        assert_eq!(PayloadKind::V2.key(), "tablets-routing-v2");
    }

    #[test]
    fn each_extension_has_its_key() {
        let keys = [PayloadKind::V1, PayloadKind::V2].map(PayloadKind::key);
        assert_eq!(keys, ["tablets-routing-v1", "tablets-routing-v2"]);
    }

    #[test]
    fn errors_say_what_is_wrong_with_a_payload() {
        let table = [
            (
                PayloadError::Field { what: "shard" },
                "shard is null or of wrong length",
            ),
            (
                PayloadError::EmptyRange { first: 7, last: 7 },
                "empty range (7, 7]",
            ),
            (
                PayloadError::ReplicaCount { replica_count: 300 },
                "impossible replica count 300",
            ),
        ];
        for (error, told) in table {
            assert_eq!(format!("{error}"), format!("tablet payload: {told}"));
        }
    }
}
