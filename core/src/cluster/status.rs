//! What an operator may see of the control plane.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;

use uuid::Uuid;

use super::client_routes::NodeRoute;
use super::engine::Engine;
pub use super::schema::KeyspaceSummary;
use crate::conn::extensions::ShardAwarePorts;
use crate::gather::Gather;
use crate::routing::{NodeIdx, TabletStats};
use crate::sorted::sort_by;
use crate::target::Endpoint;

/// Figures since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections attempted.
    pub connects: u64,
    /// Connections that reached another node than the one meant.
    pub wrong_hosts: u64,
    /// Connections that landed on another shard than the one asked for.
    pub shard_mismatches: u64,
}

/// The state of the control plane at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The cluster's name.
    pub cluster_name: String,
    /// The class of its partitioner.
    pub partitioner: String,
    /// The version that the control connection's node reports.
    pub release_version: String,
    /// The port that nodes share.
    pub(crate) port: u16,
    /// The node of the control connection.
    pub control: Option<NodeIdx>,
    /// All nodes, by index.
    pub nodes: Vec<NodeStatus>,
    /// All keyspaces, by name.
    pub keyspaces: Vec<KeyspaceSummary>,
    /// Figures of the tablet cache.
    pub tablets: TabletStats,
    /// Figures since the start.
    pub counters: Counters,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its index.
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
    /// Its number of shards, once a connection has told.
    pub shards: Option<NonZeroU16>,
    /// Connections wanted.
    pub wanted: usize,
    /// Connections that serve.
    pub connected: usize,
    /// The shards they serve, sorted, each once.
    pub shards_connected: Vec<u16>,
    /// The shard-aware port that fits the transport.
    pub shard_aware_port: Option<NonZeroU16>,
    /// By which way it is connected to.
    pub route: NodeRoute,
    /// Steering rests because connections landed elsewhere.
    pub is_nat_resting: bool,
    /// What a later session needs to reach it as this one does.
    pub(crate) reach: Reach,
}

/// How a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) endpoint: Endpoint,
    /// The address in the node's own row, if it has a usable one.
    pub(crate) seen: Option<IpAddr>,
    /// The address that events name.
    pub(crate) broadcast: Option<IpAddr>,
    /// Where source ports choose the shard; none while that does not work.
    pub(crate) ports: ShardAwarePorts,
}

impl Engine {
    /// What is known and connected.
    pub fn status(&self) -> Status {
        let control = self.control.connection();
        let has_control = |(&node, pool): (&NodeIdx, &super::pool::Pool)| {
            pool.all().any(|id| Some(id) == control).then_some(node)
        };
        Status {
            cluster_name: self.catalog.facts.cluster_name.clone(),
            partitioner: self.catalog.facts.partitioner.clone(),
            release_version: self.catalog.facts.release_version.clone(),
            port: self.catalog.port(),
            control: self.pools.iter().find_map(has_control),
            nodes: self
                .pools
                .keys()
                .filter_map(|node| self.node_status(*node))
                .gather(),
            keyspaces: self.catalog.keyspaces.clone(),
            tablets: self.catalog.writer.tablet_stats(),
            counters: self.counters,
        }
    }

    fn node_status(&self, node: NodeIdx) -> Option<NodeStatus> {
        let pool = self.pools.get(&node)?;
        let topology = self.catalog.writer.topology();
        let known = topology.node(node)?;
        let shard = |(_, shard): (_, Option<crate::routing::ShardIdx>)| Some(shard?.value());
        let mut shards_connected: Vec<u16> = pool.open().filter_map(shard).gather();
        sort_by(&mut shards_connected, Ord::cmp);
        shards_connected.dedup();
        Some(NodeStatus {
            node,
            host_id: known.host_id(),
            address: known.address(),
            dc: topology.dc_name(known.dc()).into(),
            rack: topology.rack_name(known.rack()).into(),
            is_up: known.is_up(),
            shards: known.shard_map().map(crate::routing::ShardMap::count),
            wanted: pool.wanted(),
            connected: pool.open().count(),
            shards_connected,
            shard_aware_port: pool.shard_aware_port(),
            route: pool.route.clone(),
            is_nat_resting: pool.is_nat_resting(self.walked_at),
            reach: Reach {
                endpoint: pool.endpoint.clone(),
                seen: self.catalog.seen(known.host_id(), known.address()),
                broadcast: pool.broadcast,
                ports: pool.working_ports(self.walked_at),
            },
        })
    }
}
