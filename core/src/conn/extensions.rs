//! What a node offers in SUPPORTED and what a connection agreed on.
//!
//! The names of all keys stand in this file and nowhere else: the tablets extension of version 2
//! is experimental and may be renamed. Everything is decided for each connection by itself, since
//! the nodes of one cluster may differ during an upgrade. Facts: ScyllaDB's protocol extensions
//! document, and the keys that nodes really send.

use core::num::NonZeroU16;

use uuid::Uuid;

use crate::digits::{nonzero, number, signed, uuid};
use crate::routing::{ShardIdx, ShardMap};
use crate::wire::response::Supported;
use crate::wire::{Compression, Dialect, ProtocolVersion};

/// Keys of SUPPORTED and STARTUP.
pub mod key {
    /// Names of compression algorithms.
    pub const COMPRESSION: &str = "COMPRESSION";
    /// Versions of CQL, the language.
    pub const CQL_VERSION: &str = "CQL_VERSION";
    /// The node stores what clients tell about themselves.
    pub const CLIENT_OPTIONS: &str = "CLIENT_OPTIONS";
    /// Versions of the protocol, Cassandra only.
    pub const PROTOCOL_VERSIONS: &str = "PROTOCOL_VERSIONS";
    /// The node's host id.
    pub const HOST_ID: &str = "SCYLLA_HOST_ID";
    /// The LWT mark in prepared metadata.
    pub const LWT_MARK: &str = "SCYLLA_LWT_ADD_METADATA_MARK";
    /// The rate limit error.
    pub const RATE_LIMIT_ERROR: &str = "SCYLLA_RATE_LIMIT_ERROR";
    /// Result metadata ids on protocol 4.
    pub const METADATA_ID: &str = "SCYLLA_USE_METADATA_ID";
    /// Tablets, version 1.
    pub const TABLETS_V1: &str = "TABLETS_ROUTING_V1";
    /// Tablets, version 2.
    pub const TABLETS_V2: &str = "TABLETS_ROUTING_V2_EXPERIMENTAL";
    /// The shard of this connection.
    pub const SHARD: &str = "SCYLLA_SHARD";
    /// The node's number of shards.
    pub const NR_SHARDS: &str = "SCYLLA_NR_SHARDS";
    /// The partitioner that goes with the sharding.
    pub const PARTITIONER: &str = "SCYLLA_PARTITIONER";
    /// How tokens map to shards.
    pub const SHARDING_ALGORITHM: &str = "SCYLLA_SHARDING_ALGORITHM";
    /// A parameter of it.
    pub const SHARDING_IGNORE_MSB: &str = "SCYLLA_SHARDING_IGNORE_MSB";
    /// Where source ports choose the shard, plain.
    pub const SHARD_AWARE_PORT: &str = "SCYLLA_SHARD_AWARE_PORT";
    /// The same under TLS.
    pub const SHARD_AWARE_PORT_TLS: &str = "SCYLLA_SHARD_AWARE_PORT_SSL";
    /// The client's name.
    pub const DRIVER_NAME: &str = "DRIVER_NAME";
    /// The client's version.
    pub const DRIVER_VERSION: &str = "DRIVER_VERSION";
    /// The application's name.
    pub const APPLICATION_NAME: &str = "APPLICATION_NAME";
    /// The application's version.
    pub const APPLICATION_VERSION: &str = "APPLICATION_VERSION";
    /// How the client is set, in JSON.
    pub const DRIVER_CONFIG: &str = "DRIVER_CONFIG";
    /// One value for all connections of a session.
    pub const SESSION_ID: &str = "SESSION_ID";
}

#[cfg(any(test, feature = "protocol-v5"))]
const PROTOCOL_V5: &str = "5/v5";
const LWT_MASK_NAME: &str = "LWT_OPTIMIZATION_META_BIT_MASK=";
const RATE_LIMIT_CODE_NAME: &str = "ERROR_CODE=";
const ALGORITHM: &str = "biased-token-round-robin";
const PARTITIONER_SUFFIX: &str = "Murmur3Partitioner";

/// Which tablets extension a connection uses; never both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TabletsRouting {
    /// None.
    #[default]
    Off,
    /// Payloads come when a request was misrouted.
    V1,
    /// Every EXECUTE carries a version block; payloads come when it does not match.
    V2,
}

/// Where a connection landed and how its node shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The shard of this very connection.
    pub shard: ShardIdx,
    /// The node's way from tokens to shards.
    pub map: ShardMap,
}

/// The ports where the source port chooses the shard. Either may be missing though it is open,
/// and the plain one may be a TLS port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardAwarePorts {
    /// Named as plain.
    pub plain: Option<NonZeroU16>,
    /// Named as TLS.
    pub tls: Option<NonZeroU16>,
}

/// What one node offered to one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Sharding, if all of its values are there and valid.
    pub sharding: Option<Sharding>,
    /// Sharding values were there but not usable; they are ignored as a whole.
    pub sharding_invalid: bool,
    /// Shard-aware ports.
    pub ports: ShardAwarePorts,
    /// The node's host id.
    pub host_id: Option<Uuid>,
    /// The mask of the LWT mark.
    pub lwt_mask: Option<u32>,
    /// The error code of rate limits.
    pub rate_limit_error: Option<i32>,
    /// Result metadata ids.
    pub metadata_id: bool,
    /// Tablets, version 1.
    pub tablets_v1: bool,
    /// Tablets, version 2.
    pub tablets_v2: bool,
    /// The node stores client options.
    pub client_options: bool,
    /// Protocol 5, not as a beta version.
    #[cfg(any(test, feature = "protocol-v5"))]
    pub protocol_v5: bool,
    /// The node is a ScyllaDB node: it offered at least one key that only those know.
    pub is_scylla: bool,
}

impl Offer {
    /// Reads a SUPPORTED body. Unknown keys, missing keys and empty lists are all normal.
    pub fn parse(supported: &Supported<'_>) -> Self {
        let first = |name: &str| supported.first(name);
        let has = |name: &str| supported.contains(name);
        let (sharding, sharding_invalid) = parse_sharding(supported);
        let port = |name: &str| first(name).and_then(nonzero);
        let (tablets_v1, tablets_v2) = (has(key::TABLETS_V1), has(key::TABLETS_V2));
        let mut names = supported.iter();
        Self {
            sharding,
            sharding_invalid,
            ports: ShardAwarePorts {
                plain: port(key::SHARD_AWARE_PORT),
                tls: port(key::SHARD_AWARE_PORT_TLS),
            },
            host_id: first(key::HOST_ID).and_then(uuid),
            lwt_mask: named(supported, key::LWT_MARK, LWT_MASK_NAME).and_then(number),
            rate_limit_error: named(supported, key::RATE_LIMIT_ERROR, RATE_LIMIT_CODE_NAME)
                .and_then(signed),
            metadata_id: has(key::METADATA_ID),
            tablets_v1,
            tablets_v2,
            client_options: has(key::CLIENT_OPTIONS),
            #[cfg(any(test, feature = "protocol-v5"))]
            protocol_v5: supported
                .get(key::PROTOCOL_VERSIONS)
                .is_some_and(|versions| versions.iter().any(|version| version == PROTOCOL_V5)),
            is_scylla: tablets_v1
                || tablets_v2
                || names.any(|(name, _)| name.starts_with("SCYLLA_")),
        }
    }

    /// The tablets extension to use: version 2 where it is offered.
    pub const fn tablets(&self) -> TabletsRouting {
        if self.tablets_v2 {
            TabletsRouting::V2
        } else if self.tablets_v1 {
            TabletsRouting::V1
        } else {
            TabletsRouting::Off
        }
    }
}

/// What stands behind a name among the values of a key.
#[inline(never)]
fn named<'a>(supported: &Supported<'a>, key: &str, name: &str) -> Option<&'a str> {
    let mut values = supported.get(key)?.iter();
    values.find_map(|value| value.strip_prefix(name))
}

/// All values valid: sharding. None there: none. Anything else: invalid as a whole.
fn parse_sharding(supported: &Supported<'_>) -> (Option<Sharding>, bool) {
    static KEYS: [&str; 5] = [
        key::SHARD,
        key::NR_SHARDS,
        key::PARTITIONER,
        key::SHARDING_ALGORITHM,
        key::SHARDING_IGNORE_MSB,
    ];
    let mut is_there = false;
    // None of them is valid when empty.
    let mut values = [""; 5];
    for (value, name) in values.iter_mut().zip(KEYS) {
        if let Some(first) = supported.first(name) {
            (*value, is_there) = (first, true);
        }
    }
    let sharding = sharding(values);
    (sharding, is_there && sharding.is_none())
}

fn sharding([shard, count, partitioner, algorithm, ignore_msb]: [&str; 5]) -> Option<Sharding> {
    if algorithm != ALGORITHM || !partitioner.ends_with(PARTITIONER_SUFFIX) {
        return None;
    }
    let map = ShardMap::new(number(count)?, number(ignore_msb)?).ok()?;
    let shard = map.check(number(shard)?)?;
    Some(Sharding { shard, map })
}

/// What an open connection agreed with its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreed {
    /// The protocol version.
    pub version: ProtocolVersion,
    /// Which tablets extension is on.
    pub tablets: TabletsRouting,
    /// Whether result metadata ids travel.
    pub metadata_id: bool,
    /// How frames are compressed.
    pub compression: Option<Compression>,
    /// Whether the node asked who this is, and was satisfied.
    pub is_authenticated: bool,
    /// What the node said about itself.
    pub offer: Offer,
}

impl Agreed {
    /// How bytes are laid out on this connection.
    pub const fn dialect(&self) -> Dialect {
        Dialect {
            version: self.version,
            result_metadata_id: self.metadata_id,
            rate_limit_error: self.offer.rate_limit_error,
        }
    }

    /// The shard this connection landed on.
    pub fn shard(&self) -> Option<ShardIdx> {
        self.offer.sharding.map(|sharding| sharding.shard)
    }

    /// Whether prepared metadata with these flags belongs to a conditional statement.
    pub fn is_lwt(&self, flags: u32) -> bool {
        self.offer.lwt_mask.is_some_and(|mask| flags & mask != 0)
    }
}
