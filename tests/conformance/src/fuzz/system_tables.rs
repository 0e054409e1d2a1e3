//! An imagined cluster: what its nodes say in SUPPORTED and in their system tables.
//!
//! Bytes are put together by hand. Every answer has all columns of its table, of type blob where
//! readers go by name only; some answers miss a cell or have one that cannot be.

use messina_core::conn::{Answer, Body};
use messina_core::wire::{Flags, Opcode};

use super::offer;

/// A cell: null or bytes.
type Cell = Option<Vec<u8>>;

/// The cluster at one moment.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// Which of the nodes 0 to 7 are there, by bit.
    pub(super) nodes: u8,
    /// The network they are in: 10.0.`network`.`node`.
    pub(super) network: u8,
    /// Shards of each node; 0 does not shard.
    pub(super) shards: u16,
    pub(super) has_tablets: bool,
    pub(super) table_id: u8,
    pub(super) schema_version: u8,
    /// The cell of each row that is null, and the one that is too long; beyond the last for none.
    pub(super) null_cell: usize,
    pub(super) long_cell: usize,
}

impl Cluster {
    pub(super) const fn new() -> Self {
        Self {
            nodes: 0b111,
            network: 0,
            shards: 3,
            has_tablets: true,
            table_id: 1,
            schema_version: 1,
            null_cell: usize::MAX,
            long_cell: usize::MAX,
        }
    }

    pub(super) const fn address(&self, node: u8) -> [u8; 4] {
        [10, 0, self.network, node]
    }

    /// The body of SUPPORTED on a connection that landed on this shard.
    pub(super) fn supported(&self, node: u8, shard: u16) -> Vec<u8> {
        let (shard, shards) = (shard.to_string(), self.shards.to_string());
        let host_id = uuid::Uuid::from_u128(u128::from(node) + 1).to_string();
        let mut options = vec![("SCYLLA_HOST_ID", &host_id[..])];
        if self.shards > 0 {
            options.extend([
                ("SCYLLA_SHARD", &shard[..]),
                ("SCYLLA_NR_SHARDS", &shards),
                ("SCYLLA_PARTITIONER", "Murmur3Partitioner"),
                ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
                ("SCYLLA_SHARDING_IGNORE_MSB", "12"),
                ("SCYLLA_SHARD_AWARE_PORT", "19042"),
                ("TABLETS_ROUTING_V2_EXPERIMENTAL", ""),
            ]);
        }
        offer::supported(&options)
    }

    /// The answer of a node to a statement of the control plane.
    pub(super) fn answer(&self, node: u8, statement: &str) -> Answer {
        if let Some(name) = statement.strip_prefix("USE ") {
            let name = name.trim_matches('"');
            return result(&[&[0, 0, 0, 3][..], &string(name)].concat());
        }
        let table = statement.split("FROM ").nth(1).unwrap_or_default();
        let table = table.split(' ').next().unwrap_or_default();
        match self.table(node, table) {
            Some((columns, rows)) => self.rows(&columns, rows),
            None => error(0x2200, "unconfigured table"),
        }
    }

    fn table(&self, node: u8, table: &str) -> Option<(Vec<&'static str>, Vec<Vec<Cell>>)> {
        let all = 0..8;
        let here = |other: &u8| self.nodes >> other & 1 != 0;
        let keyspace = |cells: Vec<Cell>| [vec![text("ks")], cells].concat();
        Some(match table {
            "system.local" => {
                let mut columns = vec!["broadcast_address"];
                columns.extend(NODE_COLUMNS);
                columns.extend(["cluster_name", "partitioner", "release_version"]);
                let mut row = self.node_row(node);
                row.extend([text("c"), text("Murmur3Partitioner"), text("3")]);
                (columns, vec![row])
            }
            "system.peers" => {
                let others = all.filter(|other| *other != node && here(other));
                let rows = others.map(|other| self.node_row(other)).collect();
                ([&["peer"], &NODE_COLUMNS[..]].concat(), rows)
            }
            "system_schema.keyspaces" => {
                let class = "org.apache.cassandra.locator.NetworkTopologyStrategy";
                let replication = strings(&["class", class, "dc", "3"], 2);
                (
                    vec!["keyspace_name", "replication"],
                    vec![keyspace(vec![replication])],
                )
            }
            "system_schema.scylla_keyspaces" if self.shards > 0 => (
                vec!["keyspace_name", "consistency", "initial_tablets"],
                match self.has_tablets {
                    true => vec![keyspace(vec![text("global"), Some(vec![0; 4])])],
                    false => vec![],
                },
            ),
            "system_schema.tables" => (
                vec!["keyspace_name", "table_name", "id"],
                vec![keyspace(vec![text("t"), Some(vec![self.table_id; 16])])],
            ),
            "system_schema.views" => (vec!["keyspace_name", "view_name", "id"], vec![]),
            "system_schema.scylla_tables" if self.shards > 0 => (
                vec!["keyspace_name", "table_name", "partitioner"],
                vec![keyspace(vec![text("t"), text("CDCPartitioner")])],
            ),
            _ => return None,
        })
    }

    /// The address among nodes, then the cells of [`NODE_COLUMNS`].
    fn node_row(&self, node: u8) -> Vec<Cell> {
        let address = Some(self.address(node).to_vec());
        let token = (i64::from(node) * 1000).to_string();
        vec![
            address.clone(),
            Some((u128::from(node) + 1).to_be_bytes().to_vec()),
            text("dc"),
            text("r"),
            address,
            strings(&[&token], 1),
            Some(vec![self.schema_version; 16]),
        ]
    }

    fn rows(&self, columns: &[&str], rows: Vec<Vec<Cell>>) -> Answer {
        let mut body = vec![0, 0, 0, 2, 0, 0, 0, 1];
        body.extend(int(columns.len()));
        body.extend([string("system"), string("any")].concat());
        for column in columns {
            body.extend(string(column));
            body.extend([0, 3]);
        }
        body.extend(int(rows.len()));
        for row in rows {
            for (at, cell) in row.into_iter().enumerate() {
                match cell {
                    Some(_) if at == self.null_cell => body.extend([0xff; 4]),
                    None => body.extend([0xff; 4]),
                    Some(mut bytes) => {
                        if at == self.long_cell {
                            bytes.extend([0xff; 3]);
                        }
                        body.extend(int(bytes.len()));
                        body.extend(bytes);
                    }
                }
            }
        }
        result(&body)
    }
}

const NODE_COLUMNS: [&str; 6] = [
    "host_id",
    "data_center",
    "rack",
    "rpc_address",
    "tokens",
    "schema_version",
];

/// An ERROR without details.
pub(super) fn error(code: u32, message: &str) -> Answer {
    let body = [&code.to_be_bytes()[..], &string(message)].concat();
    answer(Opcode::Error, &body)
}

/// Any answer.
pub(super) fn answer(opcode: Opcode, body: &[u8]) -> Answer {
    Answer {
        opcode,
        flags: Flags::NONE,
        body: Body::from_slice(body),
    }
}

fn result(body: &[u8]) -> Answer {
    answer(Opcode::Result, body)
}

fn text(value: &str) -> Cell {
    Some(value.as_bytes().to_vec())
}

/// A set of texts, or a map: the count, then each behind its length.
fn strings(values: &[&str], count: usize) -> Cell {
    let mut bytes = int(count).to_vec();
    for value in values {
        bytes.extend(int(value.len()));
        bytes.extend(value.as_bytes());
    }
    Some(bytes)
}

fn string(value: &str) -> Vec<u8> {
    let len = u16::try_from(value.len()).expect("short");
    [&len.to_be_bytes(), value.as_bytes()].concat()
}

fn int(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("small").to_be_bytes()
}
