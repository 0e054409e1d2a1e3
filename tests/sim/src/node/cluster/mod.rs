//! The cluster: its nodes, what they share, and the operations that a test or an operator has.
//!
//! One value holds everything, so a caller puts it behind one lock. Connections are entered with
//! [`Cluster::accept`], fed and drained by id; whatever a call made others say is listed by
//! [`Cluster::take_touched`].

mod faults;
mod gather;
mod placement;

use core::cell::Cell;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::client_routes::ClientRoutes;
use super::connection::{ClientTls, Connection, ConnectionId, Listener};
use super::error::CqlError;
use super::lean::LeanRows;
use super::options::Options;
use super::plan::Prepared;
use super::rate_limit::RateCounters;
use super::ring::{Place, Ring};
use super::schema::{Catalogue, Table, TableId, uuid_from};
use super::stats::{Counters, NodeStats, ShardStats, Stats};
use super::store::Store;
use super::system;
use super::tablets::{TabletMap, drawn};
use super::tracing::Traces;

/// A node's own state.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) host_id: [u8; 16],
    pub(crate) address: IpAddr,
    pub(crate) alive: bool,
    pub(crate) prepared: HashMap<[u8; 16], Arc<Prepared>>,
    pub(crate) stats: NodeStats,
    pub(crate) counters: HashMap<TableId, (Arc<Table>, Counters)>,
    pub(crate) delay_micros: i64,
    pub(crate) drop_next: u64,
    pub(crate) fail_next: VecDeque<CqlError>,
    pub(crate) warn_next: VecDeque<String>,
    connected: Vec<u32>,
    /// By shard.
    pub(crate) shard_counters: Vec<Counters>,
}

/// Why a control operation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlError(pub String);

impl fmt::Display for ControlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl core::error::Error for ControlError {}

/// A happening that registered connections hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// STATUS_CHANGE UP.
    Up,
    /// STATUS_CHANGE DOWN.
    Down,
    /// TOPOLOGY_CHANGE NEW_NODE.
    New,
    /// TOPOLOGY_CHANGE REMOVED_NODE.
    Removed,
}

/// The simulated cluster.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) options: Options,
    pub(crate) nodes: Vec<Node>,
    pub(crate) places: Vec<Place>,
    pub(crate) ring: Ring,
    pub(crate) catalogue: Catalogue,
    pub(crate) store: Store,
    pub(crate) tablets: HashMap<TableId, TabletMap>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) touched: Vec<ConnectionId>,
    /// Schema events that the connection being served has yet to take.
    pub(crate) own_events: Vec<super::execute::SchemaChange>,
    /// The request being served gets no answer.
    pub(crate) silent: bool,
    pub(crate) gather: gather::Gather,
    /// The connection whose statement is being executed.
    pub(crate) serving: Option<system::Client>,
    pub(crate) traces: Traces,
    pub(crate) rates: RateCounters,
    pub(crate) client_routes: ClientRoutes,
    pub(crate) lean_rows: LeanRows,
    connections_made: u64,
    last_timestamp: i64,
    /// In a cell, for reads that make uuids as well.
    pub(crate) uuids_made: Cell<u64>,
}

impl Cluster {
    /// A cluster at rest: no user keyspaces, all nodes up.
    pub fn new(options: Options) -> Self {
        let seed = options.seed;
        let places: Vec<Place> = options
            .nodes
            .iter()
            .map(|node| Place {
                datacenter: node.datacenter.clone(),
                rack: node.rack.clone(),
                zero_token: node.zero_token || node.joining,
            })
            .collect();
        let nodes = (0..options.nodes.len())
            .map(|at| Node {
                host_id: uuid_from(seed, "host", at as u64, 4),
                address: options.address(at),
                alive: true,
                prepared: HashMap::new(),
                stats: NodeStats::default(),
                counters: HashMap::new(),
                delay_micros: 0,
                drop_next: 0,
                fail_next: VecDeque::new(),
                warn_next: VecDeque::new(),
                connected: vec![0; options.nodes[at].shards.max(1) as usize],
                shard_counters: vec![Counters::default(); options.nodes[at].shards.max(1) as usize],
            })
            .collect();
        Self {
            nodes,
            ring: Ring::new(seed, &places, options.vnodes_per_node.max(1)),
            places,
            catalogue: system::catalogue(seed),
            store: Store::default(),
            tablets: HashMap::new(),
            connections: BTreeMap::new(),
            touched: Vec::new(),
            own_events: Vec::new(),
            silent: false,
            gather: gather::Gather::default(),
            serving: None,
            traces: Traces::default(),
            rates: RateCounters::default(),
            client_routes: ClientRoutes::new(),
            lean_rows: LeanRows::new(),
            connections_made: 0,
            last_timestamp: 0,
            uuids_made: Cell::new(0),
            options,
        }
    }

    /// What it was made from.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Host id of a node.
    pub fn host_id(&self, node: usize) -> Option<[u8; 16]> {
        self.nodes.get(node).map(|node| node.host_id)
    }

    /// Whether a node is up.
    pub fn is_alive(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.alive)
    }

    /// Opens a connection to a node, from `peer`. None if the node is down or does not exist, or
    /// has no such listener: the shell refuses the connection then.
    pub fn accept(
        &mut self,
        node: usize,
        listener: Listener,
        peer: SocketAddr,
        now: i64,
    ) -> Option<ConnectionId> {
        let port = match listener {
            Listener::Regular => self.options.port,
            Listener::ShardAware => self.options.shard_aware_port?,
            Listener::RegularTls => self.options.tls_port?,
            Listener::ShardAwareTls => self.options.shard_aware_tls_port?,
        };
        let settings = self.options.nodes.get(node)?;
        let state = self.nodes.get_mut(node).filter(|state| state.alive)?;
        let shards = settings.shards.max(1);
        let always = match listener.is_shard_aware() {
            true => settings.shard_aware_gives,
            false => settings.regular_gives,
        };
        let shard = if let Some(always) = always {
            always.min(shards - 1)
        } else if !listener.is_shard_aware() {
            (0..shards)
                .min_by_key(|shard| state.connected[*shard as usize])
                .unwrap_or(0)
        } else if settings.nat {
            let port = drawn(self.options.seed, "nat", self.connections_made);
            u32::try_from(port % u64::from(shards)).unwrap_or(0)
        } else {
            u32::from(peer.port()) % shards
        };
        state.connected[shard as usize] += 1;
        state.stats.connections += 1;
        self.connections_made += 1;
        let id = ConnectionId(self.connections_made);
        self.connections
            .insert(id.0, Connection::new(id, node, shard, port, peer, now));
        Some(id)
    }

    /// Tells what TLS agreed on for a connection, so that `system.clients` shows it.
    pub fn set_tls(&mut self, id: ConnectionId, tls: ClientTls) {
        if let Some(connection) = self.connections.get_mut(&id.0) {
            connection.tls = Some(tls);
        }
    }

    /// Bytes from the client.
    pub fn feed(&mut self, id: ConnectionId, bytes: &[u8], now: i64) {
        // Taken out while it is served, so that the cluster can be changed freely.
        let Some(mut connection) = self.connections.remove(&id.0) else {
            return;
        };
        self.count_bytes(connection.node, bytes, &[]);
        connection.take_input(bytes);
        while let Some((header, body)) = connection.next_frame(self.options.body_len_max) {
            self.serve(&mut connection, header, body, now);
        }
        connection.compact();
        self.connections.insert(id.0, connection);
        self.let_go_gathered(now);
    }

    /// Bytes for the client that are due at `now`.
    pub fn take_output(&mut self, id: ConnectionId, now: i64) -> Vec<u8> {
        let Some(connection) = self.connections.get_mut(&id.0) else {
            return Vec::new();
        };
        let output = connection.take_output(now);
        let node = connection.node;
        self.count_bytes(node, &[], &output);
        output
    }

    fn count_bytes(&mut self, node: usize, received: &[u8], sent: &[u8]) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.stats.bytes_received += received.len() as u64;
            node.stats.bytes_sent += sent.len() as u64;
        }
    }

    /// When more output will be due that is not yet.
    pub fn next_output_at(&self, id: ConnectionId) -> Option<i64> {
        self.connections.get(&id.0)?.next_output_at()
    }

    /// Whether the node has closed the connection; output that is left should be sent first.
    pub fn is_closed(&self, id: ConnectionId) -> bool {
        self.connections
            .get(&id.0)
            .is_none_or(|connection| connection.closing)
    }

    /// The client is gone, or the shell has finished with a closed connection.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id.0) else {
            return;
        };
        if let Some(count) = self
            .nodes
            .get_mut(connection.node)
            .and_then(|node| node.connected.get_mut(connection.shard as usize))
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Connections other than the fed one that got output or were closed since the last call.
    pub fn take_touched(&mut self) -> Vec<ConnectionId> {
        core::mem::take(&mut self.touched)
    }

    /// The shard a connection is on.
    pub fn shard_of_connection(&self, id: ConnectionId) -> Option<u32> {
        self.connections
            .get(&id.0)
            .map(|connection| connection.shard)
    }

    /// The node a connection leads to.
    pub fn node_of_connection(&self, id: ConnectionId) -> Option<usize> {
        self.connections
            .get(&id.0)
            .map(|connection| connection.node)
    }

    /// Number of open connections to a node.
    pub fn connection_count(&self, node: usize) -> usize {
        self.connections
            .values()
            .filter(|connection| connection.node == node)
            .count()
    }

    /// The counters of all nodes.
    pub fn stats(&self) -> Stats {
        let nodes = self.nodes.iter().map(|node| {
            let mut stats = node.stats.clone();
            for (table, counters) in node.counters.values() {
                let name = format!("{}.{}", table.keyspace, table.name);
                *stats.tables.entry(name).or_default() += *counters;
            }
            stats.alive = node.alive;
            stats.shards = node
                .connected
                .iter()
                .zip(&node.shard_counters)
                .map(|(connections, counters)| ShardStats {
                    connections: *connections as usize,
                    counters: *counters,
                })
                .collect();
            stats
        });
        Stats {
            nodes: nodes.collect(),
        }
    }

    /// Sets all counters to zero.
    pub fn reset_stats(&mut self) {
        for node in &mut self.nodes {
            node.stats = NodeStats::default();
            node.counters.clear();
            node.shard_counters.fill(Counters::default());
        }
    }

    /// A timestamp in microseconds that is later than any before.
    pub(crate) fn stamp(&mut self, now: i64) -> i64 {
        self.last_timestamp = now.max(self.last_timestamp.saturating_add(1));
        self.last_timestamp
    }

    /// A uuid never given before.
    pub(crate) fn fresh_uuid(&mut self) -> [u8; 16] {
        uuid_from(self.options.seed, "fresh", self.next_number(), 1)
    }

    /// A number that was not given before.
    pub(crate) fn next_number(&self) -> u64 {
        let number = self.uuids_made.get().wrapping_add(1);
        self.uuids_made.set(number);
        number
    }

    /// Whether a node shows nothing of ScyllaDB.
    pub(crate) fn is_plain(&self, node: usize) -> bool {
        self.options.nodes.get(node).is_some_and(|node| node.plain)
    }

    pub(crate) fn host_ids(&self) -> impl Fn(usize) -> [u8; 16] + '_ {
        |node| self.nodes.get(node).map_or([0; 16], |node| node.host_id)
    }
}
