//! The custom payload values by which a server teaches tablets, read without an allocation.
//!
//! `tablets-routing-v1` is `tuple<bigint, bigint, list<tuple<uuid, int>>>`, `-v2` has a `bigint` behind
//! that, the version. They come from the network: lengths must be exactly those of the types, the
//! count must fit the list, the range must not be empty.

use uuid::Uuid;

use crate::routing::{PayloadKind, TabletVersion};

/// A range, and a version if there is one.
pub(super) type Head = ((i64, i64), Option<TabletVersion>);

/// Reads the value of a payload, and calls `take` with each replica as the server names it; nothing if
/// it is not what its kind prescribes. A shard that no node can have is `u16::MAX`.
pub(super) fn parse(
    kind: PayloadKind,
    mut value: &[u8],
    take: &mut dyn FnMut(Uuid, u16),
) -> Option<Head> {
    let first = long(&mut value)?;
    let last = long(&mut value)?;
    let (&[a, b, c, d, count @ ..], rest) = value.split_first_chunk::<8>()?;
    let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
    let len = count.checked_mul(REPLICA_LEN)?;
    let (list, mut rest) = rest.split_at_checked(len)?;
    // The count stands in the list.
    let listed = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let version = match kind {
        PayloadKind::V1 => None,
        PayloadKind::V2 => Some(TabletVersion::new(long(&mut rest)?.cast_unsigned())),
    };
    let is_whole = rest.is_empty() && listed.checked_sub(4) == Some(len);
    if first >= last || !is_whole || !(1..=255).contains(&count) {
        return None;
    }
    for item in list.as_chunks::<REPLICA_LEN>().0 {
        let (lengths, item) = item.split_first_chunk::<8>()?;
        let (host_id, item) = item.split_first_chunk::<16>()?;
        let (shard_len, shard) = item.split_first_chunk::<4>()?;
        let is_good = *lengths == [0, 0, 0, 28, 0, 0, 0, 16] && *shard_len == [0, 0, 0, 4];
        let shard = u32::from_be_bytes(*shard.first_chunk()?);
        if !is_good || i32::try_from(shard).is_err() {
            return None;
        }
        // No node has so many shards; the replica is then used without one.
        let shard = u16::try_from(shard).unwrap_or(u16::MAX);
        take(Uuid::from_bytes(*host_id), shard);
    }
    Some(((first, last), version))
}

/// A `bigint` behind its length.
#[inline(never)]
fn long(from: &mut &[u8]) -> Option<i64> {
    let (len, rest) = from.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_first_chunk::<8>()?;
    *from = rest;
    (*len == [0, 0, 0, 8]).then(|| i64::from_be_bytes(*value))
}

/// A replica in a list: its length, host id and shard with theirs.
const REPLICA_LEN: usize = 32;
