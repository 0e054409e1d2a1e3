//! What a trace tells of the cluster, and where its requests would go.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::net::{IpAddr, SocketAddr};

use messina_core::conn::extensions::{Agreed, TabletsRouting};
use messina_core::routing::{
    KeyspaceConsistency, KeyspaceSpec, Load, NodeIdx, NodeSpec, Partitioner, PayloadKind, Policy,
    ReplicationStrategy, RouteRequest, RoutingLimits, ShardIdx, ShardMap, TableRef, TableSpec,
    Token, ViewWriter, parse_payload, plan, probe,
};
use messina_core::wire::BytesMap;
use uuid::Uuid;

use crate::step::Options;

/// The cluster as the trace tells it, and the tablets that answers have brought.
#[derive(Debug)]
pub(crate) struct Routes {
    writer: ViewWriter,
    nodes: Vec<NodeSpec>,
    policy: Policy,
    tables: u64,
    /// Drawn for each plan.
    entropy: u64,
}

/// A token, and the table that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) table: Option<TableRef>,
    pub(crate) token: Option<Token>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self {
            writer: ViewWriter::new(RoutingLimits::default()),
            nodes: Vec::new(),
            policy: Policy::default(),
            tables: 0,
            entropy: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Takes a setting about the cluster; `None` if it is none or cannot be read.
    pub(crate) fn set(&mut self, name: &str, words: &[&str]) -> Option<()> {
        match (name, words) {
            ("node", [host_id, address, dc, rack, shards, ignore_msb, tokens @ ..]) => {
                let tokens: Option<Vec<i64>> =
                    tokens.iter().map(|token| token.parse().ok()).collect();
                let address: IpAddr = address.parse().ok()?;
                self.nodes.push(NodeSpec {
                    host_id: host_id.parse().ok()?,
                    address: SocketAddr::new(address, 9042),
                    dc: Box::from(*dc),
                    rack: Box::from(*rack),
                    tokens: tokens?.into(),
                    is_up: true,
                    is_enabled: true,
                });
                self.writer.set_nodes(&self.nodes);
                let map = ShardMap::new(shards.parse().ok()?, ignore_msb.parse().ok()?);
                let idx = self.node(host_id)?;
                self.writer.set_shard_map(idx, map.ok());
            }
            ("keyspace", [keyspace, placement, consistency, factors @ ..]) => {
                let class = "NetworkTopologyStrategy";
                let factors = factors.iter().filter_map(|factor| factor.split_once('='));
                self.writer.put_keyspace(
                    KeyspaceSpec {
                        name: Box::from(*keyspace),
                        strategy: ReplicationStrategy::from_options(
                            [("class", class)].into_iter().chain(factors),
                        ),
                        has_tablets: *placement == "tablets",
                        consistency: match *consistency {
                            "strong" => KeyspaceConsistency::Strong,
                            _ => KeyspaceConsistency::Eventual,
                        },
                    },
                    Vec::new(),
                );
            }
            ("table", [keyspace, table]) => {
                self.tables = self.tables.wrapping_add(1);
                let spec = TableSpec {
                    name: Box::from(*table),
                    id: Uuid::from_u64_pair(0, self.tables),
                    partitioner: Some(Partitioner::Murmur3),
                };
                self.writer.put_table(keyspace, spec);
            }
            ("prefer", [dc, rack]) => {
                let place = |name: &str| (name != "-").then(|| Box::from(name));
                self.policy.preferred_dc = place(dc);
                self.policy.preferred_rack = place(rack);
            }
            ("up" | "down", [host_id]) => {
                let idx = self.node(host_id)?;
                self.writer.set_up(idx, name == "up");
            }
            _ => return None,
        }
        Some(())
    }

    fn node(&self, host_id: &str) -> Option<NodeIdx> {
        let host_id = host_id.parse().ok()?;
        self.writer.topology().node_by_host_id(host_id)
    }

    pub(crate) fn table(&mut self, keyspace: &str, table: &str) -> Option<TableRef> {
        let view = self.writer.view();
        let table = view.table_by_name(keyspace, table)?;
        Some(table.handle())
    }

    /// The version block of a request, if the connection shows one.
    pub(crate) fn block(&mut self, agreed: &Agreed, place: Place) -> Option<u8> {
        if agreed.tablets != TabletsRouting::V2 {
            return None;
        }
        let entropy = self.draw();
        let view = self.writer.view();
        Some(probe(&view, place.table, place.token, entropy).byte())
    }

    /// Learns the tablet that an answer brought; tells what became of it.
    pub(crate) fn learn(&mut self, agreed: &Agreed, place: Place, payload: BytesMap<'_>) -> String {
        let mut out = String::new();
        let kind = match agreed.tablets {
            TabletsRouting::V1 => PayloadKind::V1,
            TabletsRouting::V2 => PayloadKind::V2,
            _ => return out,
        };
        let (Some(value), Some(table)) = (payload.get(kind.key()), place.table) else {
            return out;
        };
        let _fits = match parse_payload(kind, value) {
            Err(error) => write!(out, "bad tablet: {error:?}"),
            Ok(tablet) => {
                let learned = self.writer.learn(table, &tablet);
                let version = tablet.version().map(|version| version.bits());
                let (first, last) = (tablet.first_exclusive(), tablet.last_inclusive());
                let _fits = write!(out, "tablet ({first}, {last}] {version:x?} {learned:?}");
                for replica in tablet.replicas() {
                    let _fits = write!(out, " {}:{}", replica.host_id, replica.shard);
                }
                Ok(())
            }
        };
        out
    }

    /// The plan of a request, and where its targets would be dialed.
    pub(crate) fn plan(&mut self, place: Place, is_lwt: bool, options: &Options) -> String {
        let entropy = self.draw();
        let request = RouteRequest {
            table: place.table,
            token: place.token,
            consistency: options.consistency,
            is_lwt,
            serial_consistency: options.serial.and_then(|level| level.as_serial()),
        };
        let view = self.writer.view();
        let (mut out, mut skip) = (String::new(), 0);
        if let Some(token) = place.token {
            let _fits = write!(out, "token {token}:");
        }
        loop {
            let plan = plan(&view, &request, &self.policy, &Evenly, entropy, skip);
            if skip == 0 {
                let _fits = write!(out, " {:?}", plan.source());
            }
            for target in plan.targets() {
                let node = view.topology().node(target.node);
                let address = node.map(|node| node.address().ip());
                let shard = target.shard.map(ShardIdx::value);
                let (node, reason) = (target.node.value(), target.reason);
                let _fits = write!(out, ", {node} {address:?} shard {shard:?} {reason:?}");
            }
            skip = skip.saturating_add(plan.listed());
            if plan.listed() == 0 || !plan.may_go_on() {
                return out;
            }
        }
    }

    /// The next number of a linear congruential generator.
    fn draw(&mut self) -> u64 {
        self.entropy = self
            .entropy
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.entropy ^ (self.entropy >> 29)
    }
}

/// All are connected, and busy in an order of their own.
#[derive(Debug)]
struct Evenly;

impl Load for Evenly {
    fn in_flight(&self, node: NodeIdx, shard: Option<ShardIdx>) -> u32 {
        let shard = shard.map_or(0, ShardIdx::value);
        u32::from(node.value() % 3) * 40 + u32::from(shard % 2) * 25
    }

    fn is_connected(&self, node: NodeIdx) -> bool {
        node.value() % 5 != 4
    }
}
