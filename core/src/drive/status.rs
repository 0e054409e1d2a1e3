//! What a session knows of its cluster, for people and tools.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU16;

use uuid::Uuid;

use super::hub::Hub;
use super::pools::Pools;
use super::tally::ShardTally;
use crate::cluster::{NodeRoute, Status as ClusterStatus};
use crate::conn::extensions::{Agreed, TabletsRouting, key};
use crate::gather::Gather;
use crate::routing::{NodeIdx, Table, TabletStats, View};
use crate::sorted::sort_by;
use crate::sync::Shared;
use crate::wire::Compression;

/// A moment's picture of the cluster and the connections to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// What the control plane knew last.
    pub cluster: Shared<ClusterStatus>,
    /// The nodes. Not by index: look for [`NodeStatus::node`].
    pub nodes: Vec<NodeStatus>,
    /// The tables that are divided into tablets, sorted by keyspace and name.
    pub tablets: Vec<TableTablets>,
    /// Prepared statements kept.
    pub prepared: usize,
    /// Requests that were meant for a shard, since the start.
    pub shard_tally: ShardTally,
}

/// How well a session reaches the shards of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardAwareStats {
    /// The nodes that shard. Not by index: look for [`NodeShards::node`].
    pub nodes: Vec<NodeShards>,
    /// Requests that were meant for a shard, since the start.
    pub tally: ShardTally,
}

/// The shards of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeShards {
    /// Its index in this session.
    pub node: NodeIdx,
    /// Its identity.
    pub host_id: Uuid,
    /// How many it has.
    pub shards: u16,
    /// Those with at least one connection.
    pub connected: u16,
    /// The others, be it that no connection to them can be had or that none was wanted yet.
    pub missing: u16,
}

/// What is learned of one table's tablets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableTablets {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Its learned tablets; those evicted are counted in 32 bits.
    pub stats: TabletStats,
}

/// One node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its index in this session.
    pub node: NodeIdx,
    /// Its identity.
    pub host_id: Uuid,
    /// Where clients reach it.
    pub address: SocketAddr,
    /// Its data centre.
    pub dc: String,
    /// Its rack.
    pub rack: String,
    /// Whether it is believed to be up.
    pub is_up: bool,
    /// Its number of shards, if it shards.
    pub shards: Option<u16>,
    /// Token bits its sharding ignores.
    pub ignore_msb: Option<u8>,
    /// Its shard-aware port for this session's kind of links, if it names one.
    pub shard_aware_port: Option<NonZeroU16>,
    /// By which way it is connected to: with client routes the error of one node may stand here.
    pub route: NodeRoute,
    /// The open connections.
    pub connections: Vec<ConnectionStatus>,
}

/// One open connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// The shard it is on.
    pub shard: Option<u16>,
    /// The local port, where the transport knows it.
    pub local_port: Option<NonZeroU16>,
    /// The protocol version.
    pub protocol: u8,
    /// How frames are compressed.
    pub compression: Option<Compression>,
    /// The extensions that are on.
    pub extensions: Vec<&'static str>,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests given up that wait for their late answer.
    pub orphans: u16,
}

impl NodeStatus {
    /// Shards with at least one connection.
    pub fn connected_shards(&self) -> usize {
        let mut shards: Vec<_> = self.connections.iter().filter_map(|c| c.shard).gather();
        sort_by(&mut shards, Ord::cmp);
        shards.dedup();
        shards.len()
    }

    /// Whether every shard has a connection; for a node that does not shard, whether there is one.
    pub fn is_complete(&self) -> bool {
        match self.shards {
            Some(shards) => self.connected_shards() >= usize::from(shards),
            None => !self.connections.is_empty(),
        }
    }
}

impl Status {
    pub(super) fn of(hub: &Hub) -> Self {
        let cluster = hub.summary();
        let (nodes, tablets) = hub.view().with(|view| {
            let nodes = view.topology().nodes();
            let nodes = nodes.filter_map(|node| node_status(hub, &cluster, view, node.idx()));
            let tablets = view.tables().filter_map(table_tablets);
            (nodes.gather(), tablets.gather())
        });
        Self {
            cluster,
            nodes,
            tablets,
            shard_tally: hub.pools().with(Pools::tally),
            prepared: hub.prepared().with(|cache| cache.len()).unwrap_or(0),
        }
    }

    /// Open connections to all nodes.
    pub fn connections(&self) -> usize {
        self.nodes.iter().map(|node| node.connections.len()).sum()
    }

    /// Whether every shard of every node that is up has a connection.
    pub fn is_complete(&self) -> bool {
        let mut up = self.nodes.iter().filter(|node| node.is_up).peekable();
        up.peek().is_some() && up.all(NodeStatus::is_complete)
    }
}

impl ShardAwareStats {
    pub(super) fn of(hub: &Hub) -> Self {
        let nodes = hub.view().with(|view| {
            let nodes = view.topology().nodes();
            let sharded = nodes.filter_map(|node| Some((node, node.shard_map()?.count().get())));
            let shards = sharded.map(|(node, shards)| {
                let connected = hub.pools().with(|pools| pools.shards_of(node.idx()));
                let connected = connected.min(shards);
                NodeShards {
                    node: node.idx(),
                    host_id: node.host_id(),
                    shards,
                    connected,
                    missing: shards.saturating_sub(connected),
                }
            });
            shards.gather()
        });
        Self {
            nodes,
            tally: hub.pools().with(Pools::tally),
        }
    }
}

fn table_tablets(table: &Table) -> Option<TableTablets> {
    Some(TableTablets {
        keyspace: table.keyspace().to_string(),
        table: table.name().to_string(),
        stats: table.tablet_stats()?,
    })
}

fn node_status(
    hub: &Hub,
    cluster: &ClusterStatus,
    view: &View,
    idx: NodeIdx,
) -> Option<NodeStatus> {
    let (topology, node) = (view.topology(), view.topology().node(idx)?);
    let (connections, offers): (Vec<_>, Vec<_>) = hub.pools().with(|pools| {
        pools
            .of_node(idx)
            .map(|(_, cell)| {
                let agreed = cell.agreed();
                let status = ConnectionStatus {
                    shard: agreed.shard().map(crate::routing::ShardIdx::value),
                    local_port: cell.source_port(),
                    protocol: agreed.version.number(),
                    compression: agreed.compression,
                    extensions: extensions(agreed),
                    in_flight: cell.in_flight(),
                    orphans: cell.orphans(),
                };
                (status, agreed.offer)
            })
            .unzip()
    });
    let shard_map = node.shard_map().or_else(|| {
        offers
            .iter()
            .find_map(|offer| offer.sharding)
            .map(|sharding| sharding.map)
    });
    let in_cluster = cluster.nodes.iter().find(|known| known.node == idx);
    Some(NodeStatus {
        node: idx,
        host_id: node.host_id(),
        address: node.address(),
        dc: topology.dc_name(node.dc()).to_string(),
        rack: topology.rack_name(node.rack()).to_string(),
        is_up: node.is_up(),
        shards: shard_map.map(|map| map.count().get()),
        ignore_msb: shard_map.map(crate::routing::ShardMap::ignore_msb),
        shard_aware_port: in_cluster.and_then(|known| known.shard_aware_port),
        route: in_cluster.map_or_else(NodeRoute::default, |known| known.route.clone()),
        connections,
    })
}

fn extensions(agreed: &Agreed) -> Vec<&'static str> {
    let offer = &agreed.offer;
    [
        (key::LWT_MARK, offer.lwt_mask.is_some()),
        (key::RATE_LIMIT_ERROR, offer.rate_limit_error.is_some()),
        (key::METADATA_ID, offer.metadata_id),
        (key::TABLETS_V1, agreed.tablets == TabletsRouting::V1),
        (key::TABLETS_V2, agreed.tablets == TabletsRouting::V2),
    ]
    .into_iter()
    .filter_map(|(name, on)| on.then_some(name))
    .gather()
}
