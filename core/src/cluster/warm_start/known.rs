//! What a blob says, read and checked as a whole: whatever is wrong with it, all of it is refused.
//!
//! Memory is in proportion to the blob, since nothing is counted in advance. Every reference from
//! one part to another is checked here, so that taking it over cannot go half way.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU16;

use uuid::Uuid;

use super::codec::{flag, items, parse_address, unseal};
use super::{Features, point_hash};
use crate::cluster::found::{ClusterFacts, NodeRow};
use crate::cluster::prepared::PreparedStatement;
use crate::config::{Config, HAS_TOPOLOGY};
use crate::conn::extensions::ShardAwarePorts;
use crate::routing::{
    KeyspaceConsistency, KeyspaceSpec, LearnedReplica, LearnedTablet, Partitioner,
    ReplicationStrategy, ShardMap, TableSpec, TabletVersion,
};
use crate::target::{Endpoint, name};
use crate::wire::{ParseError, ParseErrorKind, Reader};

/// What an earlier session knew.
#[derive(Debug)]
pub(super) struct Known {
    protocol: u8,
    /// Its contact points, as hashes.
    points: Vec<u64>,
    keyspace: Option<Box<str>>,
    pub(super) facts: ClusterFacts,
    pub(super) port: u16,
    pub(super) nodes: Vec<KnownNode>,
    pub(super) keyspaces: Vec<(KeyspaceSpec, Vec<TableSpec>)>,
    pub(super) statements: Vec<PreparedStatement>,
    /// By place of keyspace and table.
    pub(super) tablets: Vec<((usize, usize), Vec<LearnedTablet>)>,
}

#[derive(Debug)]
pub(super) struct KnownNode {
    pub(super) row: NodeRow,
    pub(super) endpoint: Endpoint,
    pub(super) shard_map: Option<ShardMap>,
    pub(super) ports: ShardAwarePorts,
    pub(super) features: Option<Features>,
}

impl Known {
    /// Reads a blob that fits a session with this configuration.
    ///
    /// It has to have been made by a session that shares a contact point with this one, or one of
    /// whose nodes is one: a blob left over from another cluster would otherwise silently lead
    /// there. Prepared statements mean something only in the keyspace they were prepared in.
    pub(super) fn read(blob: &[u8], config: &Config) -> Option<Self> {
        let mut reader = Reader::new(unseal(blob)?);
        let mut known = Self::parse(&mut reader).ok()?;
        let is_usable = reader.is_empty() && !known.nodes.is_empty() && known.fits(config);
        if known.keyspace.as_deref() != config.keyspace.as_deref() {
            known.statements.clear();
        }
        is_usable.then_some(known)
    }

    fn fits(&self, config: &Config) -> bool {
        let is_known = |point: &Endpoint| {
            self.points.contains(&point_hash(point))
                || self.nodes.iter().any(|node| node.endpoint == *point)
        };
        self.protocol == config.protocol.first().number()
            && self.nodes.len() <= usize::from(config.limits.nodes)
            && config.contact_points.iter().any(is_known)
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let protocol = reader.byte("protocol version")?;
        let points = items(reader, |reader| {
            Ok(u64::from_be_bytes(reader.array("contact point")?))
        })?;
        let keyspace = match flag(reader, "keyspace")? {
            true => Some(reader.string("keyspace")?.into()),
            false => None,
        };
        let facts = ClusterFacts {
            cluster_name: String::from(reader.string("cluster name")?),
            partitioner: String::from(reader.string("partitioner")?),
            release_version: String::from(reader.string("release version")?),
        };
        let port = reader.short("port")?;
        let nodes = items(reader, parse_node)?;
        let keyspaces = if HAS_TOPOLOGY {
            items(reader, parse_keyspace)?
        } else {
            items(reader, no_item)?
        };
        let statements = items(reader, PreparedStatement::parse_saved)?;
        let hosts: Vec<Uuid> = nodes.iter().map(|node| node.row.host_id).collect();
        let tablets = if HAS_TOPOLOGY {
            items(reader, |reader| parse_tablets(reader, &keyspaces, &hosts))?
        } else {
            items(reader, no_item)?
        };
        Ok(Self {
            protocol,
            points,
            keyspace,
            facts,
            port,
            nodes,
            keyspaces,
            statements,
            tablets,
        })
    }
}

/// Stands for what a build without topology cannot use: such a blob is refused.
fn no_item<T>(reader: &mut Reader<'_>) -> Result<T, ParseError> {
    Err(reader.error("topology", ParseErrorKind::OutOfRange))
}

fn parse_node(reader: &mut Reader<'_>) -> Result<KnownNode, ParseError> {
    let host_id = reader.uuid("host id")?;
    let endpoint = parse_endpoint(reader)?;
    let rpc_address = parse_address(reader)?;
    let broadcast = parse_address(reader)?;
    let (dc, rack) = (reader.string("data centre")?, reader.string("rack")?);
    let start = reader.clone();
    let shard_map = match (reader.short("shards")?, reader.byte("ignored bits")?) {
        (0, 0) => None,
        (count, ignore_msb) => match ShardMap::new(count, ignore_msb) {
            Ok(map) => Some(map),
            Err(_) => return Err(start.error("shards", ParseErrorKind::OutOfRange)),
        },
    };
    let ports = ShardAwarePorts {
        plain: NonZeroU16::new(reader.short("port")?),
        tls: NonZeroU16::new(reader.short("port")?),
    };
    let features = match flag(reader, "features")? {
        true => Some(Features(reader.byte("features")?)),
        false => None,
    };
    let tokens = reader.bytes("tokens")?.unwrap_or_default();
    let (tokens, rest) = tokens.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(start.error("tokens", ParseErrorKind::OutOfRange));
    }
    Ok(KnownNode {
        row: NodeRow {
            host_id,
            dc: dc.into(),
            rack: rack.into(),
            rpc_address,
            broadcast,
            tokens: tokens
                .iter()
                .map(|token| i64::from_be_bytes(*token))
                .collect(),
        },
        endpoint,
        shard_map,
        ports,
        features,
    })
}

fn parse_endpoint(reader: &mut Reader<'_>) -> Result<Endpoint, ParseError> {
    let start = reader.clone();
    Ok(match reader.byte("kind of endpoint")? {
        ENDPOINT_ADDRESS => {
            let address: IpAddr = reader.inet_address("address")?;
            Endpoint::Addr((address, reader.short("port")?).into())
        }
        code @ ENDPOINT_NAME => {
            let host = name(reader.string("host")?).ok_or_else(|| unknown(&start, code))?;
            let port = reader.short("port")?;
            Endpoint::Name { host, port }
        }
        code @ ENDPOINT_LOCAL => {
            let place = name(reader.string("place")?);
            Endpoint::Local(place.ok_or_else(|| unknown(&start, code))?)
        }
        code => return Err(unknown(&start, code)),
    })
}

fn parse_keyspace(reader: &mut Reader<'_>) -> Result<(KeyspaceSpec, Vec<TableSpec>), ParseError> {
    let name = reader.string("keyspace")?.into();
    let start = reader.clone();
    let strategy = match reader.byte("strategy")? {
        STRATEGY_SIMPLE => ReplicationStrategy::Simple {
            factor: reader.short("factor")?,
        },
        STRATEGY_NETWORK => {
            let factors = items(reader, |reader| {
                let dc: Box<str> = reader.string("data centre")?.into();
                Ok((dc, reader.short("factor")?))
            })?;
            if !factors.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(start.error("factors", ParseErrorKind::OutOfRange));
            }
            ReplicationStrategy::NetworkTopology {
                factors: factors.into_boxed_slice(),
            }
        }
        STRATEGY_EVERYWHERE => ReplicationStrategy::Everywhere,
        STRATEGY_UNKNOWN => ReplicationStrategy::Unknown,
        code => return Err(unknown(&start, code)),
    };
    let has_tablets = flag(reader, "tablets")?;
    let consistency = match flag(reader, "consistency")? {
        true => KeyspaceConsistency::Strong,
        false => KeyspaceConsistency::Eventual,
    };
    let spec = KeyspaceSpec {
        name,
        strategy,
        has_tablets,
        consistency,
    };
    Ok((spec, items(reader, parse_table)?))
}

fn parse_table(reader: &mut Reader<'_>) -> Result<TableSpec, ParseError> {
    let name = reader.string("table")?.into();
    let id = reader.uuid("table id")?;
    let start = reader.clone();
    let partitioner = match reader.byte("partitioner")? {
        PARTITIONER_UNKNOWN => None,
        PARTITIONER_MURMUR3 => Some(Partitioner::Murmur3),
        PARTITIONER_CDC => Some(Partitioner::Cdc),
        code => return Err(unknown(&start, code)),
    };
    Ok(TableSpec {
        name,
        id,
        partitioner,
    })
}

type TabletsOfTable = ((usize, usize), Vec<LearnedTablet>);

fn parse_tablets(
    reader: &mut Reader<'_>,
    keyspaces: &[(KeyspaceSpec, Vec<TableSpec>)],
    hosts: &[Uuid],
) -> Result<TabletsOfTable, ParseError> {
    let start = reader.clone();
    let keyspace = usize::from(reader.short("keyspace of tablets")?);
    let table = usize::from(reader.short("table of tablets")?);
    let found = keyspaces.get(keyspace);
    if found.is_none_or(|(spec, tables)| !spec.has_tablets || table >= tables.len()) {
        return Err(start.error("table of tablets", ParseErrorKind::OutOfRange));
    }
    let mut end = i64::MIN;
    let tablets = items(reader, |reader| {
        let start = reader.clone();
        let tablet = parse_tablet(reader, hosts)?;
        let first = tablet.as_ref().map(LearnedTablet::first_exclusive);
        match tablet.filter(|_| first.is_some_and(|first| first >= end)) {
            Some(tablet) => {
                end = tablet.last_inclusive();
                Ok(tablet)
            }
            None => Err(start.error("tablet", ParseErrorKind::OutOfRange)),
        }
    })?;
    Ok(((keyspace, table), tablets))
}

fn parse_tablet(
    reader: &mut Reader<'_>,
    hosts: &[Uuid],
) -> Result<Option<LearnedTablet>, ParseError> {
    let (first, last) = (reader.long("first token")?, reader.long("last token")?);
    let version = match flag(reader, "version")? {
        true => Some(TabletVersion::new(u64::from_be_bytes(
            reader.array("version")?,
        ))),
        false => None,
    };
    let count = usize::from(reader.byte("number of replicas")?);
    let mut replicas = Vec::new();
    for _ in 0..count {
        let start = reader.clone();
        let host = usize::from(reader.short("host of replica")?);
        let Some(&host_id) = hosts.get(host) else {
            return Err(start.error("host of replica", ParseErrorKind::OutOfRange));
        };
        let shard = reader.short("shard of replica")?;
        replicas.push(LearnedReplica { host_id, shard });
    }
    Ok(LearnedTablet::new(first, last, version, replicas.into()))
}

fn unknown(start: &Reader<'_>, code: u8) -> ParseError {
    let code = u32::from(code);
    start.error("kind", ParseErrorKind::UnknownCode { code })
}

pub(super) const ENDPOINT_ADDRESS: u8 = 0;
pub(super) const ENDPOINT_NAME: u8 = 1;
pub(super) const ENDPOINT_LOCAL: u8 = 2;

pub(super) const STRATEGY_SIMPLE: u8 = 0;
pub(super) const STRATEGY_NETWORK: u8 = 1;
pub(super) const STRATEGY_EVERYWHERE: u8 = 2;
pub(super) const STRATEGY_UNKNOWN: u8 = 3;

pub(super) const PARTITIONER_UNKNOWN: u8 = 0;
pub(super) const PARTITIONER_MURMUR3: u8 = 1;
pub(super) const PARTITIONER_CDC: u8 = 2;
