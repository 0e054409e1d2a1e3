//! What the system tables say, as plain rows.
//!
//! A row that lacks what a node cannot do without is skipped with a warning that names the peer and
//! the column; a node without tokens is a node. Facts: system.local, system.peers and system_schema
//! of ScyllaDB and Apache Cassandra.

use crate::gather::Gather;
use crate::sorted::SortedMap;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::client_routes::RouteTable;
use super::discovery::SystemTable;
use super::rows::{address, read_rows, text, text_pairs, texts, uuid};
use super::warnings::{ARE_HEARD, warning};
use crate::conn::Answer;
use crate::error::{Error, Quoted};
use crate::routing::{KeyspaceConsistency, Partitioner, ReplicationStrategy};
use crate::wire::Dialect;

/// A row of `system.local`, or a usable one of `system.peers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeRow {
    pub(super) host_id: Uuid,
    pub(super) dc: Box<str>,
    pub(super) rack: Box<str>,
    /// Where clients reach it, if the row says so.
    pub(super) rpc_address: Option<IpAddr>,
    /// The address that events name.
    pub(super) broadcast: Option<IpAddr>,
    /// Empty for a node that owns no data.
    pub(super) tokens: Box<[i64]>,
}

impl NodeRow {
    /// The address for clients; "any" addresses stand for the broadcast address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let usable = |address: &IpAddr| !address.is_unspecified();
        self.rpc_address
            .filter(usable)
            .or_else(|| self.broadcast.filter(usable))
    }
}

/// What `system.local` says about the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClusterFacts {
    pub(super) cluster_name: String,
    pub(super) partitioner: String,
    pub(super) release_version: String,
}

/// What a keyspace adds in ScyllaDB's own table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScyllaKeyspace {
    pub(super) has_tablets: bool,
    pub(super) consistency: KeyspaceConsistency,
}

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableRow {
    pub(super) keyspace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) id: Uuid,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) local: Option<NodeRow>,
    pub(super) facts: ClusterFacts,
    pub(super) peers: Vec<NodeRow>,
    pub(super) keyspaces: Vec<(Box<str>, ReplicationStrategy)>,
    pub(super) scylla_keyspaces: SortedMap<Box<str>, ScyllaKeyspace>,
    pub(super) tables: Vec<TableRow>,
    /// Partitioners other than the default, by keyspace and table; `None` if we do not know it.
    pub(super) partitioners: SortedMap<(Box<str>, Box<str>), Option<Partitioner>>,
    /// To be filled if client routes are followed.
    pub(super) routes: Option<RouteTable>,
    pub(super) warnings: Vec<String>,
}

impl Found {
    pub(super) fn row_count(&self) -> usize {
        let schema = self.keyspaces.len() + self.scylla_keyspaces.len() + self.tables.len();
        let routes = self.routes.as_ref().map_or(0, RouteTable::rows);
        self.peers.len() + schema + self.partitioners.len() + routes
    }

    /// Something to warn of when the reading has ended.
    pub(super) fn note(&mut self, text: String) {
        if ARE_HEARD {
            self.warnings.push(text);
        }
    }

    /// Takes one page; gives the place of the next.
    pub(super) fn take(
        &mut self,
        table: SystemTable,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        match table {
            SystemTable::Local => self.take_local(answer, dialect),
            SystemTable::Peers => self.take_peers(answer, dialect),
            SystemTable::ClientRoutes => match &mut self.routes {
                Some(routes) => routes.take(answer, dialect),
                None => Ok(None),
            },
            SystemTable::Keyspaces => self.take_keyspaces(answer, dialect),
            SystemTable::ScyllaKeyspaces => self.take_scylla_keyspaces(answer, dialect),
            SystemTable::Tables => self.take_tables(answer, dialect, "table_name"),
            SystemTable::Views => self.take_tables(answer, dialect, "view_name"),
            SystemTable::ScyllaTables => self.take_partitioners(answer, dialect),
        }
    }

    fn take_local(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = [
            "host_id",
            "data_center",
            "rack",
            "rpc_address",
            "broadcast_address",
            "tokens",
            "cluster_name",
            "partitioner",
            "release_version",
        ];
        let owned = |cell| text(cell).map(String::from).unwrap_or_default();
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[
                host_id,
                dc,
                rack,
                rpc,
                broadcast,
                tokens,
                cluster_name,
                partitioner,
                release_version,
            ] = cells
            else {
                return;
            };
            let broadcast = address(broadcast);
            match node_row(host_id, dc, rack, rpc, broadcast, tokens) {
                Ok(row) => self.local = Some(row),
                Err(missing) => self.note(warning!("system.local has no {missing}")),
            }
            self.facts = ClusterFacts {
                cluster_name: owned(cluster_name),
                partitioner: owned(partitioner),
                release_version: owned(release_version),
            };
        })
    }

    fn take_peers(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = [
            "peer",
            "host_id",
            "data_center",
            "rack",
            "rpc_address",
            "tokens",
        ];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[peer, host_id, dc, rack, rpc, tokens] = cells else {
                return;
            };
            let peer = address(peer);
            let row = node_row(host_id, dc, rack, rpc, peer, tokens);
            let row = row.and_then(|row| match row.address() {
                Some(_) => Ok(row),
                None => Err("usable address"),
            });
            match (row, peer) {
                (Ok(row), _) => self.peers.push(row),
                (Err(missing), Some(peer)) => {
                    self.note(warning!("peer {peer} is skipped: it has no {missing}"));
                }
                (Err(missing), None) => self.note(warning!(
                    "a peer without address is skipped: it has no {missing}"
                )),
            }
        })
    }

    fn take_keyspaces(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = ["keyspace_name", "replication"];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[name, replication] = cells else { return };
            if let Some(name) = text(name) {
                let strategy = ReplicationStrategy::from_options(text_pairs(replication));
                self.keyspaces.push((name.into(), strategy));
            }
        })
    }

    fn take_scylla_keyspaces(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = ["keyspace_name", "consistency", "initial_tablets"];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[name, consistency, tablets] = cells else {
                return;
            };
            let Some(name) = text(name) else { return };
            let consistency = match text(consistency) {
                None | Some("eventual") => KeyspaceConsistency::Eventual,
                Some("global") => KeyspaceConsistency::Strong,
                Some(other) => {
                    let text = warning!(
                        "keyspace {name} has consistency {}: not known",
                        Quoted(other)
                    );
                    self.note(text);
                    KeyspaceConsistency::Eventual
                }
            };
            let properties = ScyllaKeyspace {
                has_tablets: tablets.is_some(),
                consistency,
            };
            self.scylla_keyspaces.insert(name.into(), properties);
        })
    }

    fn take_tables(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
        name_column: &str,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = ["keyspace_name", name_column, "id"];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[keyspace, name, id] = cells else { return };
            if let (Some(keyspace), Some(name)) = (text(keyspace), text(name)) {
                self.tables.push(TableRow {
                    keyspace: keyspace.into(),
                    name: name.into(),
                    id: uuid(id).unwrap_or_default(),
                });
            }
        })
    }

    fn take_partitioners(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let names = ["keyspace_name", "table_name", "partitioner"];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[keyspace, name, class] = cells else {
                return;
            };
            if let (Some(keyspace), Some(name), Some(class)) =
                (text(keyspace), text(name), text(class))
            {
                let partitioner = Partitioner::from_class_name(class);
                self.partitioners
                    .insert((keyspace.into(), name.into()), partitioner);
            }
        })
    }
}

/// A node's row, or the name of the first column that it cannot do without.
fn node_row(
    host_id: Option<&[u8]>,
    dc: Option<&[u8]>,
    rack: Option<&[u8]>,
    rpc: Option<&[u8]>,
    broadcast: Option<IpAddr>,
    tokens: Option<&[u8]>,
) -> Result<NodeRow, &'static str> {
    Ok(NodeRow {
        host_id: uuid(host_id).ok_or("host_id")?,
        dc: text(dc).ok_or("data_center")?.into(),
        rack: text(rack).ok_or("rack")?.into(),
        rpc_address: address(rpc),
        broadcast,
        // Other partitioners have tokens that are no 64-bit numbers; such rings are not routed by.
        tokens: texts(tokens)
            .filter_map(|token| token.parse().ok())
            .gather()
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::answers::bytes;
    use crate::conn::Body;
    use crate::wire::{Flags, Opcode, ProtocolVersion};

    fn take(table: SystemTable, hex: &str) -> Found {
        let answer = Answer {
            opcode: Opcode::Result,
            flags: Flags::NONE,
            body: Body::from_slice(&bytes(hex)),
        };
        let mut found = Found::default();
        let dialect = Dialect::plain(ProtocolVersion::V4);
        assert_eq!(found.take(table, &answer, &dialect), Ok(None));
        found
    }

    /// Captured ROWS of system.peers with a normal node and one that is still joining; here the
    /// columns data_center and rack are missing, so that both rows are told of.
    #[test]
    fn a_capture_of_peers_is_read_by_column_names() {
        let found = take(
            SystemTable::Peers,
            "00000002 00000001 00000004 0006 73797374656d 0005 7065657273 0004 70656572 0010
             0007 686f73745f6964 000c 000b 7270635f61646472657373 0010 0006 746f6b656e73 0022 000d
             00000002
             00000004 7f000002 00000010 0102030405060708090a0b0c0d0e0f10 00000004 7f000002
             00000010 00000002 00000002 2d31 00000002 3737
             00000004 7f000003 00000010 a1b2c3d4e5f647898abcdef012345678 ffffffff ffffffff",
        );
        assert!(found.peers.is_empty());
        assert_eq!(
            found.warnings,
            [
                "peer 127.0.0.2 is skipped: it has no data_center",
                "peer 127.0.0.3 is skipped: it has no data_center",
            ]
        );
        // The cells of the first row, as they stand above.
        let tokens = bytes("00000002 00000002 2d31 00000002 3737");
        let row = node_row(
            Some(&bytes("0102030405060708090a0b0c0d0e0f10")),
            Some(b"dc"),
            Some(b"r"),
            Some(&bytes("7f000002")),
            None,
            Some(&tokens),
        )
        .unwrap();
        assert_eq!(*row.tokens, [-1, 77]);
        assert_eq!(row.address(), Some(IpAddr::from([127, 0, 0, 2])));
    }

    /// Captured ROWS of scylla_keyspaces: one eventually and one strongly consistent keyspace.
    #[test]
    fn a_capture_of_scylla_keyspaces_tells_tablets_and_consistency() {
        let found = take(
            SystemTable::ScyllaKeyspaces,
            "00000002 00000001 00000003 000d 73797374656d5f736368656d61
             0010 7363796c6c615f6b6579737061636573 000d 6b657973706163655f6e616d65 000d
             000b 636f6e73697374656e6379 000d 000f 696e697469616c5f7461626c657473 0009 00000002
             00000002 6563 ffffffff 00000004 00000000
             00000002 7363 00000006 676c6f62616c 00000004 00000000",
        );
        let expected = [
            ("ec", KeyspaceConsistency::Eventual),
            ("sc", KeyspaceConsistency::Strong),
        ];
        for (name, consistency) in expected {
            let keyspace = ScyllaKeyspace {
                has_tablets: true,
                consistency,
            };
            assert_eq!(found.scylla_keyspaces.get(name), Some(&keyspace));
        }
    }

    #[test]
    fn addresses_for_any_interface_stand_for_the_broadcast_address() {
        let broadcast = IpAddr::from([10, 0, 0, 5]);
        for (rpc, expected) in [
            (None, Some(broadcast)),
            (Some(IpAddr::from([0, 0, 0, 0])), Some(broadcast)),
            (Some(IpAddr::from([0_u8; 16])), Some(broadcast)),
            (
                Some(IpAddr::from([1, 2, 3, 4])),
                Some(IpAddr::from([1, 2, 3, 4])),
            ),
        ] {
            let row = NodeRow {
                host_id: Uuid::nil(),
                dc: "".into(),
                rack: "".into(),
                rpc_address: rpc,
                broadcast: Some(broadcast),
                tokens: Box::default(),
            };
            assert_eq!(row.address(), expected);
        }
    }
}
