//! The cluster: its nodes, what they share, and the operations that a test or an operator has.
//!
//! One value holds everything, so a caller puts it behind one lock. Connections are entered with
//! [`Cluster::accept`], fed and drained by id; whatever a call made others say is listed by
//! [`Cluster::take_touched`].

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::connection::{Connection, ConnectionId, EventKind, Listener};
use super::error::CqlError;
use super::options::Options;
use super::plan::Prepared;
use super::ring::{Place, Ring};
use super::schema::{Catalogue, Keyspace, Replication, Table, TableId, uuid_from};
use super::stats::{Counters, NodeStats, Stats};
use super::store::Store;
use super::system;
use super::tablets::{Replica, Tablet, TabletMap, drawn};

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
    connected: Vec<u32>,
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
    /// A schema event that the connection being served has yet to take.
    pub(crate) own_event: Option<super::execute::SchemaChange>,
    /// The request being served gets no answer.
    pub(crate) silent: bool,
    /// The connection whose statement is being executed.
    pub(crate) serving: Option<system::Client>,
    connections_made: u64,
    last_timestamp: i64,
    uuids_made: u64,
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
                connected: vec![0; options.nodes[at].shards.max(1) as usize],
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
            own_event: None,
            silent: false,
            serving: None,
            connections_made: 0,
            last_timestamp: 0,
            uuids_made: 0,
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
        };
        let settings = self.options.nodes.get(node)?;
        let state = self.nodes.get_mut(node).filter(|state| state.alive)?;
        let shards = settings.shards.max(1);
        let shard = match listener {
            Listener::ShardAware if settings.nat => {
                let port = drawn(self.options.seed, "nat", self.connections_made);
                u32::try_from(port % u64::from(shards)).unwrap_or(0)
            }
            Listener::ShardAware => u32::from(peer.port()) % shards,
            Listener::Regular => (0..shards)
                .min_by_key(|shard| state.connected[*shard as usize])
                .unwrap_or(0),
        };
        state.connected[shard as usize] += 1;
        state.stats.connections += 1;
        self.connections_made += 1;
        let id = ConnectionId(self.connections_made);
        self.connections
            .insert(id.0, Connection::new(id, node, shard, port, peer, now));
        Some(id)
    }

    /// Bytes from the client.
    pub fn feed(&mut self, id: ConnectionId, bytes: &[u8], now: i64) {
        // Taken out while it is served, so that the cluster can be changed freely.
        let Some(mut connection) = self.connections.remove(&id.0) else {
            return;
        };
        connection.take_input(bytes);
        while let Some((header, body)) = connection.next_frame(self.options.body_len_max) {
            self.serve(&mut connection, header, body, now);
        }
        connection.compact();
        self.connections.insert(id.0, connection);
    }

    /// Bytes for the client that are due at `now`.
    pub fn take_output(&mut self, id: ConnectionId, now: i64) -> Vec<u8> {
        self.connections
            .get_mut(&id.0)
            .map(|c| c.take_output(now))
            .unwrap_or_default()
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
        }
    }

    /// A timestamp in microseconds that is later than any before.
    pub(crate) fn stamp(&mut self, now: i64) -> i64 {
        self.last_timestamp = now.max(self.last_timestamp.saturating_add(1));
        self.last_timestamp
    }

    /// A uuid never given before.
    pub(crate) fn fresh_uuid(&mut self) -> [u8; 16] {
        self.uuids_made += 1;
        uuid_from(self.options.seed, "fresh", self.uuids_made, 1)
    }

    pub(crate) fn host_ids(&self) -> impl Fn(usize) -> [u8; 16] + '_ {
        |node| self.nodes.get(node).map_or([0; 16], |node| node.host_id)
    }
}

/// Tablets.
impl Cluster {
    /// Tablets of a table; empty if it has none.
    pub fn tablets(&self, keyspace: &str, table: &str) -> Vec<Tablet> {
        self.map_of(keyspace, table)
            .map(|map| map.tablets().to_vec())
            .unwrap_or_default()
    }

    /// Index of the tablet of a token.
    pub fn tablet_of(&self, keyspace: &str, table: &str, token: i64) -> Option<usize> {
        self.map_of(keyspace, table).map(|map| map.index_of(token))
    }

    fn map_of(&self, keyspace: &str, table: &str) -> Option<&TabletMap> {
        self.tablets
            .get(&self.catalogue.table(keyspace, table).ok()?.id)
    }

    fn tablet_mut(
        &mut self,
        keyspace: &str,
        table: &str,
        tablet: usize,
    ) -> Result<&mut Tablet, ControlError> {
        self.map_mut(keyspace, table)?
            .tablet_mut(tablet)
            .ok_or_else(|| ControlError(format!("no tablet {tablet}")))
    }

    fn map_mut(&mut self, keyspace: &str, table: &str) -> Result<&mut TabletMap, ControlError> {
        let id = self
            .catalogue
            .table(keyspace, table)
            .map_err(|e| ControlError(e.message()))?
            .id;
        self.tablets
            .get_mut(&id)
            .ok_or_else(|| ControlError(format!("{keyspace}.{table} has no tablets")))
    }

    fn check_replica(&self, replica: Replica) -> Result<(), ControlError> {
        let settings = self.options.nodes.get(replica.node);
        if settings.is_some_and(|node| replica.shard < node.shards.max(1)) {
            return Ok(());
        }
        let Replica { node, shard } = replica;
        Err(ControlError(format!("no shard {shard} on node {node}")))
    }

    /// Moves a replica of a tablet at once. The leader stays the same copy.
    pub fn move_tablet(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        from: Replica,
        to: Replica,
    ) -> Result<(), ControlError> {
        self.check_replica(to)?;
        let tablet = self.tablet_mut(keyspace, table, tablet)?;
        if tablet
            .replicas
            .iter()
            .any(|replica| *replica != from && replica.node == to.node)
        {
            return Err(ControlError(format!(
                "node {} holds a replica already",
                to.node
            )));
        }
        let slot = tablet.replicas.iter_mut().find(|replica| **replica == from);
        *slot.ok_or_else(|| ControlError("no such replica".to_owned()))? = to;
        tablet.pending = None;
        Ok(())
    }

    /// Begins a migration: `to` counts as rightly routed, but payloads do not show it.
    pub fn begin_migration(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        to: Replica,
    ) -> Result<(), ControlError> {
        self.check_replica(to)?;
        self.tablet_mut(keyspace, table, tablet)?.pending = Some(to);
        Ok(())
    }

    /// Sets the leader of a tablet by position among its replicas; none: election.
    pub fn set_leader(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        leader: Option<usize>,
    ) -> Result<(), ControlError> {
        let tablet = self.tablet_mut(keyspace, table, tablet)?;
        if leader.is_some_and(|at| at >= tablet.replicas.len()) {
            return Err(ControlError("no such replica".to_owned()));
        }
        tablet.leader = leader;
        Ok(())
    }

    /// Splits a tablet in two.
    pub fn split(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<(), ControlError> {
        let done = self.map_mut(keyspace, table)?.split(tablet);
        if done {
            Ok(())
        } else {
            Err(ControlError("cannot split this".to_owned()))
        }
    }

    /// Merges a tablet with the one after it.
    pub fn merge(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<(), ControlError> {
        let done = self.map_mut(keyspace, table)?.merge(tablet);
        if done {
            Ok(())
        } else {
            Err(ControlError("cannot merge this".to_owned()))
        }
    }

    /// The tablets of a new table, spread evenly over nodes and shards.
    pub(crate) fn place_tablets(&self, keyspace: &Keyspace) -> Result<TabletMap, CqlError> {
        let count = match keyspace.tablets {
            Some(initial) if initial > 0 => initial as usize,
            _ => self
                .options
                .tablet_count
                .map_or_else(|| self.default_tablets(), |n| n as usize),
        };
        let Replication::NetworkTopology { factors } = &keyspace.replication else {
            return Err(CqlError::Config(
                "tablets need NetworkTopologyStrategy".to_owned(),
            ));
        };
        for (datacenter, factor) in factors {
            let owning = self
                .places
                .iter()
                .filter(|place| place.datacenter == *datacenter && !place.zero_token)
                .count();
            if owning < *factor as usize {
                return Err(CqlError::Config(format!(
                    "Datacenter {datacenter} doesn't have enough token-owning nodes for \
                     replication_factor={factor}"
                )));
            }
        }
        let mut loads: Vec<Vec<u32>> = self
            .nodes
            .iter()
            .map(|node| vec![0; node.connected.len()])
            .collect();
        Ok(TabletMap::new(count, |tablet| {
            self.place_one(tablet, factors, &mut loads)
        }))
    }

    fn default_tablets(&self) -> usize {
        let shards: usize = self.nodes.iter().map(|node| node.connected.len()).sum();
        shards.next_power_of_two() * 2
    }

    /// The least loaded nodes of each datacenter, on different racks as far as there are any.
    fn place_one(
        &self,
        tablet: usize,
        factors: &BTreeMap<String, u32>,
        loads: &mut [Vec<u32>],
    ) -> Vec<Replica> {
        let mut replicas = Vec::new();
        for (datacenter, factor) in factors {
            let mut members: Vec<usize> = (0..self.nodes.len())
                .filter(|node| {
                    let place = &self.places[*node];
                    place.datacenter == *datacenter && !place.zero_token
                })
                .collect();
            let spread = (self.options.seed ^ tablet as u64).wrapping_mul(31);
            members.sort_by_key(|node| {
                let load: u32 = loads[*node].iter().sum();
                let per_shard = load * 1000 / u32::try_from(loads[*node].len()).unwrap_or(1);
                (per_shard, drawn(spread, "place", *node as u64))
            });
            let mut chosen: Vec<usize> = Vec::new();
            let mut racks: Vec<&str> = Vec::new();
            for fresh_rack in [true, false] {
                for node in &members {
                    let rack = self.places[*node].rack.as_str();
                    let full = chosen.len() >= *factor as usize;
                    if full || chosen.contains(node) || (fresh_rack && racks.contains(&rack)) {
                        continue;
                    }
                    chosen.push(*node);
                    racks.push(rack);
                }
            }
            for node in chosen {
                let shards = &mut loads[node];
                let shard = (0..shards.len())
                    .min_by_key(|shard| shards[*shard])
                    .unwrap_or(0);
                shards[shard] += 1;
                replicas.push(Replica {
                    node,
                    shard: u32::try_from(shard).unwrap_or(0),
                });
            }
        }
        replicas
    }
}

/// Faults.
impl Cluster {
    fn node_mut(&mut self, node: usize) -> Result<&mut Node, ControlError> {
        self.nodes
            .get_mut(node)
            .ok_or_else(|| ControlError(format!("no node {node}")))
    }

    /// Stops a node: its connections close, peers say DOWN, strong tablets elect other leaders.
    pub fn kill(&mut self, node: usize) -> Result<(), ControlError> {
        let state = self.node_mut(node)?;
        if !core::mem::replace(&mut state.alive, false) {
            return Ok(());
        }
        state.prepared.clear();
        for connection in self.connections.values_mut().filter(|c| c.node == node) {
            connection.kill();
            self.touched.push(connection.id);
        }
        let alive: Vec<bool> = self.nodes.iter().map(|node| node.alive).collect();
        for map in self.tablets.values_mut() {
            for at in 0..map.len() {
                let Some(tablet) = map.tablet_mut(at) else {
                    continue;
                };
                if tablet
                    .leader_replica()
                    .is_some_and(|leader| leader.node == node)
                {
                    tablet.leader = tablet.replicas.iter().position(|r| alive[r.node]);
                }
            }
        }
        self.announce(node, NodeEvent::Down);
        Ok(())
    }

    /// Starts a stopped node again, with an empty cache of prepared statements; peers say UP.
    /// It leads the strong tablets of its own that had no leader.
    pub fn start(&mut self, node: usize) -> Result<(), ControlError> {
        if core::mem::replace(&mut self.node_mut(node)?.alive, true) {
            return Ok(());
        }
        for map in self.tablets.values_mut() {
            for at in 0..map.len() {
                let Some(tablet) = map.tablet_mut(at) else {
                    continue;
                };
                if tablet.leader.is_none() {
                    tablet.leader = tablet.replicas.iter().position(|r| r.node == node);
                }
            }
        }
        self.announce(node, NodeEvent::Up);
        Ok(())
    }

    /// Delays every reply of a node.
    pub fn set_delay(&mut self, node: usize, micros: u64) -> Result<(), ControlError> {
        self.node_mut(node)?.delay_micros = i64::try_from(micros).unwrap_or(i64::MAX / 4);
        Ok(())
    }

    /// The node leaves its next `count` requests for user tables without answer, not executed.
    pub fn drop_next(&mut self, node: usize, count: u64) -> Result<(), ControlError> {
        self.node_mut(node)?.drop_next = count;
        Ok(())
    }

    /// The node answers its next `count` requests for user tables with `error`, not executing them.
    pub fn fail_next(
        &mut self,
        node: usize,
        error: &CqlError,
        count: usize,
    ) -> Result<(), ControlError> {
        const QUEUED_MAX: usize = 100_000;
        let queue = &mut self.node_mut(node)?.fail_next;
        let room = QUEUED_MAX.saturating_sub(queue.len());
        queue.extend(core::iter::repeat_n(error, count.min(room)).cloned());
        Ok(())
    }

    /// The node forgets all prepared statements.
    pub fn forget_prepared(&mut self, node: usize) -> Result<(), ControlError> {
        self.node_mut(node)?.prepared.clear();
        Ok(())
    }

    /// Source ports of a node's shard-aware listener are rewritten from now on, or not.
    pub fn set_nat(&mut self, node: usize, nat: bool) -> Result<(), ControlError> {
        let settings = self.options.nodes.get_mut(node);
        settings
            .ok_or_else(|| ControlError(format!("no node {node}")))?
            .nat = nat;
        Ok(())
    }

    /// Sends an event about a node to all who registered on other nodes.
    pub fn announce(&mut self, node: usize, event: NodeEvent) {
        let Some(address) = self.nodes.get(node).map(|node| node.address) else {
            return;
        };
        let kind = match event {
            NodeEvent::Up | NodeEvent::Down => EventKind::Status,
            NodeEvent::New | NodeEvent::Removed => EventKind::Topology,
        };
        for connection in self.connections.values_mut().filter(|c| c.node != node) {
            if connection.is_registered(kind) {
                connection.push_node_event(event, address);
                self.touched.push(connection.id);
            }
        }
    }
}
