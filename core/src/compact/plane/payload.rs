//! The custom payload values by which a server teaches tablets, read without an allocation.
//!
//! `tablets-routing-v1` is `tuple<bigint, bigint, list<tuple<uuid, int>>>`, `-v2` has a `bigint` behind
//! that, the version. They come from the network: lengths must be exactly those of the types, the
//! count must fit the list, the range must not be empty.

use uuid::Uuid;

use super::tablets::REPLICAS_MAX;
use crate::routing::{PayloadKind, TabletVersion};
use crate::wire::Reader;

/// Hosts and shards as the server names them. Shards that no node can have stand as `u16::MAX`.
pub(super) type NamedReplicas = heapless::Vec<(Uuid, u16), REPLICAS_MAX>;

/// A tablet as a payload describes it.
pub(super) struct Parsed {
    pub(super) range: (i64, i64),
    pub(super) version: Option<TabletVersion>,
    pub(super) replicas: NamedReplicas,
}

/// Reads the value of a payload; nothing if it is not what its kind prescribes.
pub(super) fn parse(kind: PayloadKind, payload: &[u8]) -> Option<Parsed> {
    let mut reader = Reader::new(payload);
    let first = long(&mut reader)?;
    let last = long(&mut reader)?;
    let mut list = Reader::new(reader.bytes("replicas").ok()??);
    let version = match kind {
        PayloadKind::V1 => None,
        PayloadKind::V2 => Some(TabletVersion::new(long(&mut reader)?.cast_unsigned())),
    };
    let count = usize::try_from(list.int("replica count").ok()?).ok()?;
    let (items, rest) = list.rest().as_chunks::<REPLICA_LEN>();
    let is_whole = rest.is_empty() && reader.rest().is_empty() && items.len() == count;
    if first >= last || !is_whole || !(1..=255).contains(&count) {
        return None;
    }
    let mut replicas = NamedReplicas::new();
    for item in items {
        let mut item = Reader::new(item);
        let lengths = (item.int("").ok()?, item.int("").ok()?);
        let host_id = item.uuid("").ok()?;
        let shard_len = item.int("").ok()?;
        let shard = u32::try_from(item.int("").ok()?).ok()?;
        if (lengths, shard_len) != ((28, 16), 4) {
            return None;
        }
        // No node has so many shards; the replica is then used without one.
        let shard = u16::try_from(shard).unwrap_or(u16::MAX);
        let _first_ones = replicas.push((host_id, shard));
    }
    Some(Parsed {
        range: (first, last),
        version,
        replicas,
    })
}

/// A `bigint` behind its length.
fn long(reader: &mut Reader<'_>) -> Option<i64> {
    let value = reader.bytes("token").ok()??;
    Some(i64::from_be_bytes(value.try_into().ok()?))
}

/// A replica in a list: its length, host id and shard with theirs.
const REPLICA_LEN: usize = 32;
