//! Writing a blob: nodes and schema whole, then as many statements and tablets as there is room for.
//!
//! The same knowledge gives the same bytes: everything is written in the order of names, ids or
//! tokens, whatever the order in which it was learned.

use alloc::boxed::Box;
use alloc::vec::Vec;

use uuid::Uuid;

use super::codec::{FRAME_LEN, put_address, seal};
use super::known::{
    ENDPOINT_ADDRESS, ENDPOINT_LOCAL, ENDPOINT_NAME, PARTITIONER_CDC, PARTITIONER_MURMUR3,
    PARTITIONER_UNKNOWN, STRATEGY_EVERYWHERE, STRATEGY_NETWORK, STRATEGY_SIMPLE, STRATEGY_UNKNOWN,
};
use super::{Features, point_hash};
use crate::cluster::prepared::PreparedStatement;
use crate::cluster::status::{NodeStatus, Status};
use crate::config::{Config, HAS_TOPOLOGY};
use crate::conn::extensions::Offer;
use crate::gather::Gather;
use crate::routing::{
    KeyspaceConsistency, KeyspaceSpec, LearnedTablet, NodeIdx, Partitioner, ReplicationStrategy,
    Table, View,
};
use crate::sorted::sort_by;
use crate::sync::Shared;
use crate::target::Endpoint;
use crate::wire::{EncodeError, Sink};

/// What there is to save.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "filled in by `drive` alone")]
pub struct Sources<'a> {
    /// How the session is set.
    pub config: &'a Config,
    /// Nodes, tables and tablets.
    pub view: &'a View,
    /// How nodes are reached.
    pub status: &'a Status,
    /// The statement used last comes first.
    pub statements: &'a [Shared<PreparedStatement>],
    /// What connected nodes offer.
    pub offers: &'a [(NodeIdx, Offer)],
}

/// Writes a blob of at most `bytes_max` bytes. Of statements and tablets those used least are left
/// out; a blob without room for nodes and schema is empty, and an empty one is a cold start.
pub fn save(sources: &Sources<'_>, bytes_max: usize) -> Vec<u8> {
    save_body(sources, bytes_max.saturating_sub(FRAME_LEN))
        .and_then(|body| seal(&body))
        .unwrap_or_default()
}

fn save_body(sources: &Sources<'_>, len_max: usize) -> Option<Vec<u8>> {
    let mut nodes: Vec<&NodeStatus> = sources.status.nodes.iter().gather();
    sort_by(&mut nodes, |a, b| a.host_id.cmp(&b.host_id));
    let hosts: Vec<Uuid> = nodes.iter().map(|node| node.host_id).gather();
    if hosts.is_empty() {
        return None;
    }
    let tables: Vec<&Table> = sources.view.tables().gather();
    let keyspaces: Vec<(&KeyspaceSpec, &[&Table])> = sources
        .view
        .keyspaces()
        // What every node holds for itself is not routed by anything that is known here.
        .filter(|spec| HAS_TOPOLOGY && spec.strategy != ReplicationStrategy::Local)
        .map(|spec| (spec, of_keyspace(&tables, &spec.name)))
        .gather();
    let mut body = Vec::new();
    put_head(&mut body, sources).ok()?;
    for node in &nodes {
        body.put_byte(1);
        put_node(&mut body, node, sources).ok()?;
    }
    body.put_byte(0);
    for (spec, tables) in &keyspaces {
        body.put_byte(1);
        put_keyspace(&mut body, spec, tables).ok()?;
    }
    body.put_byte(0);
    // Two lists may stay empty.
    let room = len_max.checked_sub(body.len().saturating_add(2))?;
    let tablets = encoded_tablets(sources.view, &keyspaces, &hosts);
    let mut bill = Bill::default();
    let wanted: usize = tablets.iter().map(|tablet| bill.add(tablet)).sum();
    let room_of_tablets = wanted.min(room / 2);
    let statements = encoded_statements(sources, room.saturating_sub(room_of_tablets));
    for (_, statement) in &statements {
        body.put(statement);
    }
    body.put_byte(0);
    let room = len_max.saturating_sub(body.len().saturating_add(1));
    put_tablets(&mut body, tablets, room);
    body.put_byte(0);
    Some(body)
}

/// The tables of a keyspace; all are sorted by keyspace and name.
fn of_keyspace<'a, 'b>(tables: &'a [&'b Table], name: &str) -> &'a [&'b Table] {
    let start = tables.partition_point(|table| table.keyspace() < name);
    let end = tables.partition_point(|table| table.keyspace() <= name);
    tables.get(start..end).unwrap_or_default()
}

fn put_head(body: &mut Vec<u8>, sources: &Sources<'_>) -> Result<(), EncodeError> {
    let (config, status) = (sources.config, sources.status);
    body.put_byte(config.protocol.first().number());
    for point in &config.contact_points {
        body.put_byte(1);
        body.put(&point_hash(point).to_be_bytes());
    }
    body.put_byte(0);
    match &config.keyspace {
        Some(keyspace) => {
            body.put_byte(1);
            body.put_string("keyspace", keyspace)?;
        }
        None => body.put_byte(0),
    }
    body.put_string("cluster name", &status.cluster_name)?;
    body.put_string("partitioner", &status.partitioner)?;
    body.put_string("release version", &status.release_version)?;
    body.put_short(status.port);
    Ok(())
}

fn put_node(
    body: &mut Vec<u8>,
    node: &NodeStatus,
    sources: &Sources<'_>,
) -> Result<(), EncodeError> {
    let known = sources.view.topology().node(node.node);
    body.put(node.host_id.as_bytes());
    put_endpoint(body, &node.reach.endpoint)?;
    put_address(body, node.reach.seen);
    put_address(body, node.reach.broadcast);
    body.put_string("data centre", &node.dc)?;
    body.put_string("rack", &node.rack)?;
    let map = known.and_then(|known| known.shard_map());
    body.put_short(map.map_or(0, |map| map.count().get()));
    body.put_byte(map.map_or(0, |map| map.ignore_msb()));
    let ports = node.reach.ports;
    body.put_short(ports.plain.map_or(0, |port| port.get()));
    body.put_short(ports.tls.map_or(0, |port| port.get()));
    let offer = sources.offers.iter().find(|(idx, _)| *idx == node.node);
    match offer {
        Some((_, offer)) => body.put(&[1, Features::of(offer).0]),
        None => body.put_byte(0),
    }
    let tokens = known.map_or(&[][..], |known| known.tokens());
    let tokens: Vec<u8> = tokens.iter().flat_map(|token| token.to_be_bytes()).gather();
    body.put_bytes("tokens", &tokens)
}

fn put_endpoint(body: &mut Vec<u8>, endpoint: &Endpoint) -> Result<(), EncodeError> {
    match endpoint {
        Endpoint::Addr(address) => {
            body.put_byte(ENDPOINT_ADDRESS);
            put_address(body, Some(address.ip()));
            body.put_short(address.port());
        }
        Endpoint::Name { host, port } => {
            body.put_byte(ENDPOINT_NAME);
            body.put_string("host", host)?;
            body.put_short(*port);
        }
        Endpoint::Local(name) => {
            body.put_byte(ENDPOINT_LOCAL);
            body.put_string("place", name)?;
        }
    }
    Ok(())
}

fn put_keyspace(
    body: &mut Vec<u8>,
    spec: &KeyspaceSpec,
    tables: &[&Table],
) -> Result<(), EncodeError> {
    body.put_string("keyspace", &spec.name)?;
    match &spec.strategy {
        ReplicationStrategy::Simple { factor } => {
            body.put_byte(STRATEGY_SIMPLE);
            body.put_short(*factor);
        }
        ReplicationStrategy::NetworkTopology { factors } => {
            body.put_byte(STRATEGY_NETWORK);
            for (dc, factor) in factors {
                body.put_byte(1);
                body.put_string("data centre", dc)?;
                body.put_short(*factor);
            }
            body.put_byte(0);
        }
        ReplicationStrategy::Everywhere => body.put_byte(STRATEGY_EVERYWHERE),
        ReplicationStrategy::Local | ReplicationStrategy::Unknown => {
            body.put_byte(STRATEGY_UNKNOWN);
        }
    }
    body.put_byte(u8::from(spec.has_tablets));
    body.put_byte(u8::from(spec.consistency == KeyspaceConsistency::Strong));
    for table in tables {
        body.put_byte(1);
        body.put_string("table", table.name())?;
        body.put(table.id().as_bytes());
        body.put_byte(match table.partitioner() {
            None => PARTITIONER_UNKNOWN,
            Some(Partitioner::Murmur3) => PARTITIONER_MURMUR3,
            Some(Partitioner::Cdc) => PARTITIONER_CDC,
        });
    }
    body.put_byte(0);
    Ok(())
}

/// The statements that fit, the least used left out, sorted by text; each with the 1 before it.
fn encoded_statements(sources: &Sources<'_>, mut room: usize) -> Vec<(Box<str>, Vec<u8>)> {
    let mut kept = Vec::<(Box<str>, Vec<u8>)>::new();
    // Those for a keyspace of their own are few, and prepared anew.
    let all = sources.statements.iter();
    for statement in all.filter(|statement| statement.keyspace().is_none()) {
        let mut encoded = Vec::from([1]);
        if statement.put(&mut encoded).is_err() {
            continue;
        }
        let Some(left) = room.checked_sub(encoded.len()) else {
            break;
        };
        room = left;
        kept.push((Box::from(statement.text()), encoded));
    }
    sort_by(&mut kept, |a, b| a.0.cmp(&b.0));
    kept
}

/// A tablet ready to be written.
struct Tablet {
    /// By place of keyspace and table.
    table: (u16, u16),
    is_used: bool,
    last: i64,
    encoded: Vec<u8>,
}

/// The tables that have tablets in a blob, which cost bytes of their own.
#[derive(Default)]
struct Bill {
    tables: Vec<(u16, u16)>,
}

impl Bill {
    /// Bytes that one more tablet costs.
    fn cost(&self, tablet: &Tablet) -> usize {
        let is_there = self.tables.binary_search(&tablet.table).is_ok();
        let table = if is_there { 0 } else { TABLE_LEN };
        tablet.encoded.len().saturating_add(table)
    }

    fn add(&mut self, tablet: &Tablet) -> usize {
        let cost = self.cost(tablet);
        if let Err(place) = self.tables.binary_search(&tablet.table) {
            self.tables.insert(place, tablet.table);
        }
        cost
    }
}

/// All tablets whose replicas are on known nodes.
fn encoded_tablets(
    view: &View,
    keyspaces: &[(&KeyspaceSpec, &[&Table])],
    hosts: &[Uuid],
) -> Vec<Tablet> {
    let mut all = Vec::new();
    for (keyspace, (_, tables)) in (0_u16..).zip(keyspaces) {
        for (place, table) in (0_u16..).zip(*tables) {
            for (learned, is_used) in view.tablets(table.handle()) {
                if let Some(encoded) = encoded_tablet(&learned, hosts) {
                    all.push(Tablet {
                        table: (keyspace, place),
                        is_used,
                        last: learned.last_inclusive(),
                        encoded,
                    });
                }
            }
        }
    }
    all
}

fn encoded_tablet(learned: &LearnedTablet, hosts: &[Uuid]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(40);
    out.put_byte(1);
    out.put_long(learned.first_exclusive());
    out.put_long(learned.last_inclusive());
    match learned.version() {
        Some(version) => {
            out.put_byte(1);
            out.put(&version.bits().to_be_bytes());
        }
        None => out.put_byte(0),
    }
    out.put_byte(u8::try_from(learned.replicas().len()).ok()?);
    for replica in learned.replicas() {
        let host = hosts.binary_search(&replica.host_id).ok()?;
        out.put_short(u16::try_from(host).ok()?);
        out.put_short(replica.shard);
    }
    Some(out)
}

/// The tablets that fit: those used of late before the others, then in the order of tables.
fn put_tablets(body: &mut Vec<u8>, mut tablets: Vec<Tablet>, mut room: usize) {
    sort_by(&mut tablets, |a, b| {
        (!a.is_used, a.table, a.last).cmp(&(!b.is_used, b.table, b.last))
    });
    let mut bill = Bill::default();
    let fits = |tablet: &Tablet| match room.checked_sub(bill.cost(tablet)) {
        Some(left) => {
            room = left;
            bill.add(tablet);
            true
        }
        None => false,
    };
    tablets.retain(fits);
    sort_by(&mut tablets, |a, b| {
        (a.table, a.last).cmp(&(b.table, b.last))
    });
    for of_table in tablets.chunk_by(|a, b| a.table == b.table) {
        if let Some(first) = of_table.first() {
            body.put_byte(1);
            body.put_short(first.table.0);
            body.put_short(first.table.1);
        }
        for tablet in of_table {
            body.put(&tablet.encoded);
        }
        body.put_byte(0);
    }
}

/// What a table adds to its tablets.
const TABLE_LEN: usize = 6;
