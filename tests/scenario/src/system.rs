//! What the nodes say in their system tables: as little as a session needs, made by hand.

use core::cell::RefCell;

use crate::frame::{bytes, hex, rows, string};

/// What all nodes of a scene know.
#[derive(Debug)]
pub(crate) struct Facts {
    /// One token for each node that there can be.
    pub(crate) tokens: Vec<i64>,
    /// The nodes that there are, with their host ids.
    pub(crate) members: RefCell<Vec<(u8, u128)>>,
    /// Whether the keyspace has tablets.
    pub(crate) has_tablets: bool,
    /// The body of SUPPORTED.
    pub(crate) supported: Vec<u8>,
    /// That of nodes which say something else.
    pub(crate) supported_by: Vec<(u8, Vec<u8>)>,
    /// Statements about system tables that were asked.
    pub(crate) asked: RefCell<Vec<String>>,
}

impl Facts {
    /// Opcode and body of the answer to a statement about system tables; `None` for others.
    pub(crate) fn answer(&self, node: u8, statement: &str) -> Option<(u8, Vec<u8>)> {
        let (_, table) = statement.split_once(" FROM ")?;
        let table = table.split(' ').next()?;
        if !table.starts_with("system") {
            return None;
        }
        self.asked.borrow_mut().push(statement.to_owned());
        let found = |body| Some((8, body));
        match table {
            "system.local" => found(rows(LOCAL, &[self.local(node)])),
            "system.peers" => {
                let members = self.members.borrow();
                let others = members.iter().filter(|(other, _)| *other != node);
                let peers = others.map(|&(other, host_id)| self.peer(other, host_id));
                found(rows(PEERS, &peers.collect::<Vec<_>>()))
            }
            "system_schema.keyspaces" => found(rows(KEYSPACES, &[keyspace()])),
            "system_schema.scylla_keyspaces" if self.has_tablets => {
                let row = vec![Some(b"k".to_vec()), Some(hex("00000000"))];
                found(rows(SCYLLA_KEYSPACES, &[row]))
            }
            "system_schema.tables" => found(rows(TABLES, &[table_row()])),
            "system_schema.views" => found(rows(TABLES, &[])),
            _ => Some((0, [hex("00002200"), string("unconfigured table")].concat())),
        }
    }

    /// The body of a node's SUPPORTED.
    pub(crate) fn supported(&self, node: u8) -> &[u8] {
        let of_node = self.supported_by.iter().find(|(other, _)| *other == node);
        of_node.map_or(&self.supported, |(_, body)| body)
    }

    /// One node for each of these tokens.
    pub(crate) fn set_tokens(&mut self, tokens: &[i64]) {
        self.tokens = tokens.to_vec();
        let members = (1..).zip(tokens);
        let members = members.map(|(node, _)| (node, DEFAULT_ID | u128::from(node)));
        *self.members.get_mut() = members.collect();
    }

    fn local(&self, node: u8) -> Row {
        let partitioner = b"org.apache.cassandra.dht.Murmur3Partitioner";
        let members = self.members.borrow();
        let own = members.iter().find(|(other, _)| *other == node);
        vec![
            own.map(|(_, host_id)| uuid(*host_id)),
            Some(b"dc".to_vec()),
            Some(b"r".to_vec()),
            Some(vec![10, 0, 0, node]),
            Some(vec![10, 0, 0, node]),
            Some(b"scene".to_vec()),
            Some(partitioner.to_vec()),
            Some(b"3.0.8".to_vec()),
            Some(self.tokens(node)),
            Some(uuid(DEFAULT_ID)),
        ]
    }

    fn peer(&self, node: u8, host_id: u128) -> Row {
        vec![
            Some(vec![10, 0, 0, node]),
            Some(uuid(host_id)),
            Some(b"dc".to_vec()),
            Some(b"r".to_vec()),
            Some(vec![10, 0, 0, node]),
            Some(self.tokens(node)),
            Some(uuid(DEFAULT_ID)),
        ]
    }

    fn tokens(&self, node: u8) -> Vec<u8> {
        let token = self.tokens[usize::from(node) - 1].to_string();
        [hex("00000001"), bytes(Some(token.as_bytes()))].concat()
    }
}

const TEXT: &[u8] = &[0, 0x0d];
const UUID: &[u8] = &[0, 0x0c];
const INT: &[u8] = &[0, 0x09];
const INET: &[u8] = &[0, 0x10];
const TEXTS: &[u8] = &[0, 0x22, 0, 0x0d];
const TEXT_MAP: &[u8] = &[0, 0x21, 0, 0x0d, 0, 0x0d];

const LOCAL: &[(&str, &[u8])] = &[
    ("host_id", UUID),
    ("data_center", TEXT),
    ("rack", TEXT),
    ("rpc_address", INET),
    ("broadcast_address", INET),
    ("cluster_name", TEXT),
    ("partitioner", TEXT),
    ("release_version", TEXT),
    ("tokens", TEXTS),
    ("schema_version", UUID),
];

const PEERS: &[(&str, &[u8])] = &[
    ("peer", INET),
    ("host_id", UUID),
    ("data_center", TEXT),
    ("rack", TEXT),
    ("rpc_address", INET),
    ("tokens", TEXTS),
    ("schema_version", UUID),
];

const KEYSPACES: &[(&str, &[u8])] = &[("keyspace_name", TEXT), ("replication", TEXT_MAP)];

const SCYLLA_KEYSPACES: &[(&str, &[u8])] = &[("keyspace_name", TEXT), ("initial_tablets", INT)];

const TABLES: &[(&str, &[u8])] = &[("keyspace_name", TEXT), ("table_name", TEXT), ("id", UUID)];

type Row = Vec<Option<Vec<u8>>>;

/// Host ids end in the number of their node, unless a scene says otherwise.
const DEFAULT_ID: u128 = 0x1111_1111_1111_1111_1111_1111_1111_1100;

fn uuid(id: u128) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

fn keyspace() -> Row {
    let mut replication = hex("00000002");
    for text in [
        "class",
        "org.apache.cassandra.locator.SimpleStrategy",
        "replication_factor",
        "1",
    ] {
        replication.extend(bytes(Some(text.as_bytes())));
    }
    vec![Some(b"k".to_vec()), Some(replication)]
}

fn table_row() -> Row {
    vec![
        Some(b"k".to_vec()),
        Some(b"t".to_vec()),
        Some(vec![0x22; 16]),
    ]
}
