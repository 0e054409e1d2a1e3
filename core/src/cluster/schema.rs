//! What discovery found, turned into what routing wants to know, and what an operator may see.
//!
//! The [`Catalog`] owns the [`ViewWriter`]; nobody else feeds it. Addresses are decided here: a
//! node that was reached through a contact point keeps that endpoint for as long as its own row
//! names the same address as it did then, so that 127.0.0.1 or a relay's name goes on to work.

use crate::sorted::{SortedMap, sort_by};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use uuid::Uuid;

use super::found::{ClusterFacts, Found, NodeRow};
use crate::config::Limits;
use crate::routing::{
    Host, KeyspaceSpec, NodeIdx, NodeSpec, NodesChange, Partitioner, RoutingLimits, TableSpec,
    ViewWriter,
};
use crate::target::Endpoint;

/// What is known of the cluster.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) writer: ViewWriter,
    pub(super) facts: ClusterFacts,
    pub(super) keyspaces: Vec<KeyspaceSummary>,
    /// The port of the contact point, which all nodes share.
    port: u16,
    aliases: SortedMap<Uuid, Alias>,
}

/// A keyspace in [`super::Status`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceSummary {
    /// Its name.
    pub name: Box<str>,
    /// Whether its tables are divided into tablets.
    pub has_tablets: bool,
    /// Who coordinates its requests.
    pub consistency: crate::routing::KeyspaceConsistency,
    /// Its tables and views.
    pub tables: usize,
}

/// An endpoint that led to a node, and the address that the node's row named at that time.
#[derive(Debug)]
struct Alias {
    endpoint: Endpoint,
    seen: Option<IpAddr>,
}

/// Where a node is reached.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) host_id: Uuid,
    pub(super) endpoint: Endpoint,
    pub(super) broadcast: Option<IpAddr>,
}

impl Catalog {
    pub(super) fn new(limits: &Limits) -> Self {
        let limits = RoutingLimits {
            nodes_max: usize::from(limits.nodes),
            tablet_bytes_max: limits.tablet_bytes,
            ..RoutingLimits::default()
        };
        Self {
            writer: ViewWriter::new(limits),
            facts: ClusterFacts::default(),
            keyspaces: Vec::new(),
            port: crate::config::DEFAULT_PORT,
            aliases: SortedMap::new(),
        }
    }

    /// Notes that this endpoint led to the node of this row.
    pub(super) fn note_contact(&mut self, endpoint: &Endpoint, row: &NodeRow) {
        match endpoint {
            Endpoint::Addr(addr) => self.port = addr.port(),
            Endpoint::Name { port, .. } => self.port = *port,
            Endpoint::Local(_) => {}
        }
        let alias = Alias {
            endpoint: endpoint.clone(),
            seen: row.address(),
        };
        self.aliases.insert(row.host_id, alias);
    }

    /// The address that the node's row named, where it was reached at this one.
    pub(super) fn seen(&self, host_id: Uuid, reached: SocketAddr) -> Option<IpAddr> {
        match self.aliases.get(&host_id) {
            Some(alias) => alias.seen,
            None => Some(reached.ip()).filter(|address| !address.is_unspecified()),
        }
    }

    /// The port that all nodes share.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// A node as an earlier session reached it: as long as its row names the same address it is
    /// reached so again.
    pub(super) fn note_earlier(&mut self, port: u16, row: &NodeRow, endpoint: Endpoint) {
        self.port = port;
        if endpoint != self.endpoint(row) {
            let seen = row.address();
            self.aliases.insert(row.host_id, Alias { endpoint, seen });
        }
    }

    /// The endpoint led to another node: from now on only the node's own row counts.
    pub(super) fn forget_alias(&mut self, host_id: Uuid) {
        self.aliases.remove(&host_id);
    }

    /// Takes the nodes that were found; the first is the one that was asked. `is_up` tells what
    /// is believed of known nodes, `may_contact` whether a node is to be used.
    pub(super) fn set_nodes(
        &mut self,
        local: NodeRow,
        peers: Vec<NodeRow>,
        is_up: impl Fn(NodeIdx) -> bool,
        may_contact: impl Fn(&Host<'_>) -> bool,
    ) -> (NodesChange, Vec<Place>) {
        let mut rows = Vec::with_capacity(peers.len() + 1);
        rows.push(local);
        for peer in peers {
            self.put_row(&mut rows, peer);
        }
        let mut specs = Vec::with_capacity(rows.len());
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let endpoint = self.endpoint(&row);
            let address = match &endpoint {
                Endpoint::Addr(address) => *address,
                _ => self.address(&row),
            };
            let known = self.writer.topology().node_by_host_id(row.host_id);
            places.push(Place {
                host_id: row.host_id,
                endpoint,
                broadcast: row.broadcast,
            });
            let is_enabled = may_contact(&Host {
                host_id: row.host_id,
                address,
                dc: &row.dc,
                rack: &row.rack,
            });
            specs.push(NodeSpec {
                host_id: row.host_id,
                address,
                dc: row.dc,
                rack: row.rack,
                tokens: row.tokens,
                is_up: known.is_none_or(&is_up),
                is_enabled,
            });
        }
        let change = self.writer.set_nodes(&specs);
        let is_listed = |id: &Uuid| places.iter().any(|place| place.host_id == *id);
        self.aliases.retain(|id, _| is_listed(id));
        (change, places)
    }

    /// One row for each host id. Of several the one with the address known so far counts, else
    /// the lowest, so that the choice does not change with the order of rows.
    fn put_row(&self, rows: &mut Vec<NodeRow>, row: NodeRow) {
        let local = rows.first().map(|local| local.host_id);
        let same = rows.iter().position(|known| known.host_id == row.host_id);
        let Some(place) = same else {
            rows.push(row);
            return;
        };
        if local == Some(row.host_id) {
            return;
        }
        let topology = self.writer.topology();
        let node = topology
            .node_by_host_id(row.host_id)
            .and_then(|idx| topology.node(idx));
        let known = node.map(|node| node.address().ip());
        let rank = |row: &NodeRow| (row.address() != known, row.address());
        if let Some(slot) = rows.get_mut(place)
            && rank(&row) < rank(slot)
        {
            *slot = row;
        }
    }

    fn endpoint(&self, row: &NodeRow) -> Endpoint {
        match self.aliases.get(&row.host_id) {
            Some(alias) if alias.seen == row.address() => alias.endpoint.clone(),
            _ => Endpoint::Addr(self.address(row)),
        }
    }

    fn address(&self, row: &NodeRow) -> SocketAddr {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        SocketAddr::new(row.address().unwrap_or(nowhere), self.port)
    }

    /// Takes the schema that was found.
    pub(super) fn set_schema(&mut self, found: &mut Found) {
        let mut tables: SortedMap<Box<str>, Vec<TableSpec>> = SortedMap::new();
        for row in core::mem::take(&mut found.tables) {
            let key = (row.keyspace, row.name);
            let default = Some(Partitioner::Murmur3);
            let partitioner = found.partitioners.get(&key).copied().unwrap_or(default);
            let (keyspace, name) = key;
            let of_keyspace = tables.get_or_insert_with(keyspace, Vec::new);
            of_keyspace.push(TableSpec {
                name,
                id: row.id,
                partitioner: partitioner.filter(|_| self.has_default_partitioner()),
            });
        }
        let mut keyspaces = Vec::with_capacity(found.keyspaces.len());
        self.keyspaces.clear();
        for (name, strategy) in core::mem::take(&mut found.keyspaces) {
            let properties = found
                .scylla_keyspaces
                .get(&name)
                .copied()
                .unwrap_or_default();
            let tables = tables.remove(&name).unwrap_or_default();
            self.keyspaces.push(KeyspaceSummary {
                name: name.clone(),
                has_tablets: properties.has_tablets,
                consistency: properties.consistency,
                tables: tables.len(),
            });
            let spec = KeyspaceSpec {
                name,
                strategy,
                has_tablets: properties.has_tablets,
                consistency: properties.consistency,
            };
            keyspaces.push((spec, tables));
        }
        sort_by(&mut self.keyspaces, |a, b| a.name.cmp(&b.name));
        self.writer.set_schema(keyspaces);
    }

    /// Whether tables without a partitioner of their own are hashed in a way that we know.
    fn has_default_partitioner(&self) -> bool {
        let class: &String = &self.facts.partitioner;
        class.is_empty() || Partitioner::from_class_name(class) == Some(Partitioner::Murmur3)
    }
}
