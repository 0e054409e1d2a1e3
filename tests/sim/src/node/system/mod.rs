//! The tables a node serves from what it knows: `system`, `system_schema`, `system_traces`.
//!
//! They are defined by CQL text that the node's own parser reads at start, so `system_schema`
//! describes them as it does any other table. Columns are those of a ScyllaDB node.

mod clients;
mod definitions;
mod schema_rows;
mod traced;

use std::sync::Arc;

use bytes::Bytes;

use super::cluster::Cluster;
use super::cql::{ColumnDefinition, SchemaStatement, Statement, parse};
use super::error::CqlError;
use super::route::Caller;
use super::schema::{Catalogue, Keyspace, Replication, Table, uuid_from};
use super::value::{CqlType, boolean, inet, int, text, texts};
pub(crate) use clients::Client;

/// The only partitioner.
pub(crate) const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// What drivers take for a version of Cassandra.
const RELEASE_VERSION: &str = "3.0.8";

/// What ScyllaDB calls itself.
const SCYLLA_VERSION: &str = "2026.4.0-dev";

type Row = Vec<Option<Bytes>>;

/// A catalogue with the system keyspaces alone.
pub(crate) fn catalogue(seed: u64) -> Catalogue {
    let mut catalogue = Catalogue::new(seed);
    for (at, definition) in (0u64..).zip(definitions::TABLES) {
        let table = defined(definition, at);
        let keyspace = table.keyspace.clone();
        catalogue
            .keyspaces
            .entry(keyspace.clone())
            .or_insert_with(|| Keyspace {
                replication: if keyspace == "system_traces" {
                    Replication::Simple { factor: 2 }
                } else {
                    Replication::Local
                },
                name: keyspace,
                durable_writes: true,
                tablets: None,
                consistency: None,
                types: std::collections::BTreeMap::new(),
                tables: std::collections::BTreeMap::new(),
                is_system: true,
            })
            .tables
            .insert(table.name.clone(), Arc::new(table));
    }
    catalogue
}

/// Definitions are constants of this crate; a test reads them all.
#[expect(
    clippy::expect_used,
    reason = "the texts are constants and a test parses each"
)]
fn defined(definition: &str, at: u64) -> Table {
    let parsed = parse(definition).expect("definition parses");
    let Statement::Schema(SchemaStatement::CreateTable(create)) = parsed.statement else {
        unreachable!("definitions create tables")
    };
    let clustering: Vec<(String, bool)> = create
        .clustering
        .iter()
        .map(|column| (column.clone(), false))
        .collect();
    let keyspace = create.table.keyspace.as_deref().unwrap_or("system");
    let names = (keyspace, create.table.name.as_str());
    let id = uuid_from(0, "system table", at, 3);
    let columns: Result<Vec<_>, CqlError> = create
        .columns
        .into_iter()
        .map(|column| {
            Ok(ColumnDefinition {
                ty: CqlType::resolve(&column.ty, keyspace, &|_| None)?,
                name: column.name,
                is_static: column.is_static,
            })
        })
        .collect();
    let columns = columns.expect("definition has known types");
    let mut table = Table::new(id, names, columns, &create.partition, &clustering)
        .expect("definition is sound");
    table.is_virtual = true;
    table
}

/// A row of a table, filled by column name.
struct Fill<'a> {
    table: &'a Table,
    row: Row,
}

impl<'a> Fill<'a> {
    fn new(table: &'a Table) -> Self {
        Self {
            table,
            row: vec![None; table.columns.len()],
        }
    }

    fn set(mut self, column: &str, value: impl Into<Option<Bytes>>) -> Self {
        debug_assert!(
            self.table.position(column).is_some(),
            "{} {column}",
            self.table.name
        );
        if let Some(at) = self.table.position(column) {
            self.row[at] = value.into();
        }
        self
    }

    fn done(self) -> Row {
        self.row
    }
}

/// All rows of a virtual table as `caller`'s node shows them.
pub(crate) fn rows(cluster: &Cluster, caller: &Caller, table: &Table) -> Vec<Row> {
    match (table.keyspace.as_str(), table.name.as_str()) {
        ("system", "local") => vec![local(cluster, caller.node, table)],
        ("system", "peers") => peers(cluster, caller.node, table),
        ("system", "versions") => vec![
            Fill::new(table)
                .set("key", text("local"))
                .set("version", text(SCYLLA_VERSION))
                .set("build_mode", text("release"))
                .set("build_id", text("simulated"))
                .done(),
        ],
        ("system", "clients") => clients::clients(cluster, caller.node, table),
        ("system", "client_routes") => clients::routes(cluster, table),
        ("system", "cluster_status") => cluster_status(cluster, table),
        ("system_schema", _) => {
            let node = cluster.options.nodes.get(caller.node);
            schema_rows::rows(cluster, node.is_some_and(|node| node.plain), table)
        }
        ("system_traces", "sessions") => traced::sessions(cluster, caller, table),
        ("system_traces", "events") => traced::events(cluster, table),
        _ => Vec::new(),
    }
}

fn tokens(cluster: &Cluster, node: usize) -> Option<Bytes> {
    let mut tokens: Vec<String> = cluster
        .ring
        .tokens_of(node)
        .iter()
        .map(ToString::to_string)
        .collect();
    tokens.sort_unstable();
    (!tokens.is_empty()).then(|| texts(tokens.iter().map(String::as_str)))
}

fn uuid(id: &[u8; 16]) -> Bytes {
    Bytes::copy_from_slice(id)
}

fn local(cluster: &Cluster, node: usize, table: &Table) -> Row {
    let fill = Fill::new(table).set("key", text("local"));
    let (Some(state), Some(place)) = (cluster.nodes.get(node), cluster.places.get(node)) else {
        return fill.done();
    };
    fill.set("bootstrapped", text("COMPLETED"))
        .set("broadcast_address", inet(state.address))
        .set("cluster_name", text(&cluster.options.cluster_name))
        .set("cql_version", text("3.3.1"))
        .set("data_center", text(&place.datacenter))
        .set("gossip_generation", int(1))
        .set("host_id", uuid(&state.host_id))
        .set("listen_address", inet(state.address))
        .set("native_protocol_version", text("4"))
        .set("partitioner", text(PARTITIONER))
        .set("rack", text(&place.rack))
        .set("release_version", text(RELEASE_VERSION))
        .set("rpc_address", inet(state.address))
        .set("schema_version", uuid(&cluster.catalogue.version()))
        .set("supported_features", text("TABLETS"))
        .set("tokens", tokens(cluster, node))
        .done()
}

fn peers(cluster: &Cluster, own: usize, table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    for (node, state) in cluster
        .nodes
        .iter()
        .enumerate()
        .filter(|(node, _)| *node != own)
    {
        let fill = Fill::new(table)
            .set("peer", inet(state.address))
            .set("host_id", uuid(&state.host_id));
        let settings = &cluster.options.nodes[node];
        if settings.joining {
            rows.push(fill.done());
            continue;
        }
        let place = &cluster.places[node];
        let mut row = fill
            .set("data_center", text(&place.datacenter))
            .set("preferred_ip", inet(state.address))
            .set("rack", text(&place.rack))
            .set("release_version", text(RELEASE_VERSION))
            .set("rpc_address", inet(state.address))
            .set("schema_version", uuid(&cluster.catalogue.version()))
            .set("supported_features", text("TABLETS"))
            .set("tokens", tokens(cluster, node))
            .done();
        for column in &settings.peer_nulls {
            if let Some(at) = table.position(column) {
                row[at] = None;
            }
        }
        rows.push(row);
    }
    rows
}

fn cluster_status(cluster: &Cluster, table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    for (node, state) in cluster.nodes.iter().enumerate() {
        let place = &cluster.places[node];
        let tokens = i32::try_from(cluster.ring.tokens_of(node).len()).unwrap_or(i32::MAX);
        rows.push(
            Fill::new(table)
                .set("peer", inet(state.address))
                .set("dc", text(&place.datacenter))
                .set("host_id", uuid(&state.host_id))
                .set("rack", text(&place.rack))
                .set(
                    "status",
                    text(if place.zero_token {
                        "JOINING"
                    } else {
                        "NORMAL"
                    }),
                )
                .set("tokens", int(tokens))
                .set("up", boolean(state.alive))
                .set("draining", boolean(false))
                .set("excluded", boolean(false))
                .done(),
        );
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_a_sound_table() {
        let catalogue = catalogue(1);
        let count: usize = catalogue.keyspaces.values().map(|k| k.tables.len()).sum();
        assert_eq!(count, definitions::TABLES.len());
    }
}
