//! Reading the system tables, page by page, into plain rows.
//!
//! A [`Discovery`] gives questions and takes answers; it decides nothing about the cluster, and
//! which connection asks is not its concern. Columns are found by name. Tables that only ScyllaDB
//! has may be missing (INVALID) and are then empty. A page that does not fit a frame is asked for
//! again with fewer rows; if one row alone does not fit, peers are read without their tokens.
//! Facts: the system tables of ScyllaDB and Apache Cassandra.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::rows::{address, read_rows, text, text_pairs, texts, uuid};
use crate::conn::Answer;
use crate::error::{Error, ErrorKind, LimitField};
use crate::routing::{KeyspaceConsistency, Partitioner, ReplicationStrategy};
use crate::wire::request::{Query, QueryParameters, RequestBody};
use crate::wire::response::ErrorCode;
use crate::wire::{Consistency, Dialect, EncodeError, ProtocolVersion};

/// What is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) topology: bool,
    pub(super) schema: bool,
}

impl Scope {
    pub(super) const ALL: Self = Self {
        topology: true,
        schema: true,
    };
    pub(super) const TOPOLOGY: Self = Self {
        topology: true,
        schema: false,
    };
    pub(super) const SCHEMA: Self = Self {
        topology: false,
        schema: true,
    };
}

/// A table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SystemTable {
    Local,
    Peers,
    Keyspaces,
    ScyllaKeyspaces,
    Tables,
    Views,
    ScyllaTables,
}

impl SystemTable {
    const TOPOLOGY: [Self; 2] = [Self::Local, Self::Peers];
    const SCHEMA: [Self; 5] = [
        Self::Keyspaces,
        Self::ScyllaKeyspaces,
        Self::Tables,
        Self::Views,
        Self::ScyllaTables,
    ];

    const fn is_optional(self) -> bool {
        matches!(
            self,
            Self::ScyllaKeyspaces | Self::ScyllaTables | Self::Views
        )
    }

    const fn is_of_scylla(self) -> bool {
        matches!(self, Self::ScyllaKeyspaces | Self::ScyllaTables)
    }

    /// The statement; `SELECT *` where columns depend on the version.
    const fn statement(self, with_tokens: bool) -> &'static str {
        match (self, with_tokens) {
            (Self::Local, true) => {
                "SELECT host_id, data_center, rack, rpc_address, broadcast_address, cluster_name, \
                 partitioner, release_version, tokens FROM system.local WHERE key='local'"
            }
            (Self::Local, false) => {
                "SELECT host_id, data_center, rack, rpc_address, broadcast_address, cluster_name, \
                 partitioner, release_version FROM system.local WHERE key='local'"
            }
            (Self::Peers, true) => {
                "SELECT peer, host_id, data_center, rack, rpc_address, tokens FROM system.peers"
            }
            (Self::Peers, false) => {
                "SELECT peer, host_id, data_center, rack, rpc_address FROM system.peers"
            }
            (Self::Keyspaces, _) => {
                "SELECT keyspace_name, replication FROM system_schema.keyspaces"
            }
            (Self::ScyllaKeyspaces, _) => "SELECT * FROM system_schema.scylla_keyspaces",
            (Self::Tables, _) => "SELECT keyspace_name, table_name, id FROM system_schema.tables",
            (Self::Views, _) => "SELECT keyspace_name, view_name, id FROM system_schema.views",
            (Self::ScyllaTables, _) => {
                "SELECT keyspace_name, table_name, partitioner FROM system_schema.scylla_tables"
            }
        }
    }
}

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
    pub(super) scylla_keyspaces: BTreeMap<Box<str>, ScyllaKeyspace>,
    pub(super) tables: Vec<TableRow>,
    /// Partitioners other than the default, by keyspace and table; `None` if we do not know it.
    pub(super) partitioners: BTreeMap<(Box<str>, Box<str>), Option<Partitioner>>,
    pub(super) warnings: Vec<String>,
}

/// Reads tables, a few at once.
#[derive(Debug)]
pub(super) struct Discovery {
    scope: Scope,
    reads: Vec<Read>,
    /// How many questions may be under way at once.
    window: usize,
    with_tokens: bool,
    found: Found,
}

#[derive(Debug)]
struct Read {
    table: SystemTable,
    state: ReadState,
    page_size: i32,
    rows: usize,
}

#[derive(Debug)]
enum ReadState {
    /// The next page is to be asked for.
    Idle(Option<Box<[u8]>>),
    /// The page behind this place was asked for.
    Asked(Option<Box<[u8]>>),
    Done,
}

impl Discovery {
    pub(super) fn new(scope: Scope, is_scylla: bool, page_size: i32, window: usize) -> Self {
        let topology = scope.topology.then_some(SystemTable::TOPOLOGY);
        let schema = scope.schema.then_some(SystemTable::SCHEMA);
        let tables = topology
            .into_iter()
            .flatten()
            .chain(schema.into_iter().flatten());
        let reads = tables
            .filter(|table| is_scylla || !table.is_of_scylla())
            .map(|table| Read {
                table,
                state: ReadState::Idle(None),
                page_size,
                rows: 0,
            });
        Self {
            scope,
            reads: reads.collect(),
            window,
            with_tokens: true,
            found: Found::default(),
        }
    }

    pub(super) const fn scope(&self) -> Scope {
        self.scope
    }

    /// The next question, if one more may be asked now.
    pub(super) fn next_question(
        &mut self,
        version: ProtocolVersion,
    ) -> Result<Option<(SystemTable, Vec<u8>)>, EncodeError> {
        let asked = |read: &&Read| matches!(read.state, ReadState::Asked(_));
        if self.reads.iter().filter(asked).count() >= self.window {
            return Ok(None);
        }
        let with_tokens = self.with_tokens;
        let idle = |read: &&mut Read| matches!(read.state, ReadState::Idle(_));
        let Some(read) = self.reads.iter_mut().find(idle) else {
            return Ok(None);
        };
        let ReadState::Idle(place) = core::mem::replace(&mut read.state, ReadState::Done) else {
            return Ok(None);
        };
        let parameters = QueryParameters {
            page_size: Some(read.page_size),
            paging_state: place.as_deref(),
            ..QueryParameters::new(Consistency::One)
        };
        let text = read.table.statement(with_tokens);
        let body = query_body(text, parameters, version)?;
        read.state = ReadState::Asked(place);
        Ok(Some((read.table, body)))
    }

    /// Takes an answer. An error means that the whole reading failed.
    pub(super) fn handle_answer(
        &mut self,
        table: SystemTable,
        answer: Result<Answer, Error>,
        dialect: &Dialect,
    ) -> Result<(), Error> {
        let Some(read) = self.reads.iter_mut().find(|read| read.table == table) else {
            return Ok(());
        };
        let ReadState::Asked(place) = core::mem::replace(&mut read.state, ReadState::Done) else {
            return Ok(());
        };
        let before = self.found.row_count();
        let result = answer.and_then(|answer| self.found.take(table, &answer, dialect));
        match result {
            Ok(next) => {
                let after = self.found.row_count();
                read.rows = read.rows.saturating_add(after.saturating_sub(before));
                match next {
                    Some(_) if read.rows >= ROWS_MAX => {
                        let text = format!("{table:?}: only the first {ROWS_MAX} rows are used");
                        self.found.warnings.push(text);
                    }
                    Some(next) => read.state = ReadState::Idle(Some(next)),
                    None => {}
                }
                Ok(())
            }
            Err(error) if is_too_long(&error) && read.page_size > 1 => {
                read.page_size /= 2;
                read.state = ReadState::Idle(place);
                Ok(())
            }
            Err(error)
                if is_too_long(&error) && self.with_tokens && table <= SystemTable::Peers =>
            {
                self.with_tokens = false;
                read.state = ReadState::Idle(place);
                let text = "tokens of nodes do not fit a frame: no routing by ring";
                self.found.warnings.push(text.into());
                Ok(())
            }
            Err(error) if table.is_optional() && is_invalid(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let done = |read: &Read| matches!(read.state, ReadState::Done);
        self.reads.iter().all(done)
    }

    pub(super) fn into_found(self) -> Found {
        self.found
    }
}

impl Found {
    fn row_count(&self) -> usize {
        let schema = self.keyspaces.len() + self.scylla_keyspaces.len() + self.tables.len();
        self.peers.len() + schema + self.partitioners.len()
    }

    fn take(
        &mut self,
        table: SystemTable,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        match table {
            SystemTable::Local => self.take_local(answer, dialect),
            SystemTable::Peers => self.take_peers(answer, dialect),
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
        read_rows(answer, dialect, names, |cells| {
            let [host_id, dc, rack, rpc, broadcast, tokens, facts @ ..] = cells;
            let broadcast = address(broadcast);
            match node_row(host_id, dc, rack, rpc, broadcast, tokens) {
                Ok(row) => self.local = Some(row),
                Err(missing) => self.warnings.push(format!("system.local has no {missing}")),
            }
            let [cluster_name, partitioner, release_version] = facts.map(owned);
            self.facts = ClusterFacts {
                cluster_name,
                partitioner,
                release_version,
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
        read_rows(answer, dialect, names, |cells| {
            let [peer, host_id, dc, rack, rpc, tokens] = cells;
            let peer = address(peer);
            let row = node_row(host_id, dc, rack, rpc, peer, tokens);
            let row = row.and_then(|row| match row.address() {
                Some(_) => Ok(row),
                None => Err("usable address"),
            });
            match (row, peer) {
                (Ok(row), _) => self.peers.push(row),
                (Err(missing), Some(peer)) => self
                    .warnings
                    .push(format!("peer {peer} is skipped: it has no {missing}")),
                (Err(missing), None) => self.warnings.push(format!(
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
        read_rows(answer, dialect, ["keyspace_name", "replication"], |cells| {
            let [name, replication] = cells;
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
        read_rows(answer, dialect, names, |[name, consistency, tablets]| {
            let Some(name) = text(name) else { return };
            let consistency = match text(consistency) {
                None | Some("eventual") => KeyspaceConsistency::Eventual,
                Some("global") => KeyspaceConsistency::Strong,
                Some(other) => {
                    let text = format!("keyspace {name} has consistency {other:?}: not known");
                    self.warnings.push(text);
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
        read_rows(answer, dialect, names, |[keyspace, name, id]| {
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
        read_rows(answer, dialect, names, |cells| {
            if let [Some(keyspace), Some(name), Some(class)] = cells.map(text) {
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
            .collect(),
    })
}

/// The body of a QUERY.
pub(super) fn query_body(
    text: &str,
    parameters: QueryParameters<'_>,
    version: ProtocolVersion,
) -> Result<Vec<u8>, EncodeError> {
    let mut body = Vec::new();
    Query { text, parameters }.put(version, &mut body)?;
    Ok(body)
}

fn is_too_long(error: &Error) -> bool {
    error.kind() == ErrorKind::Limit(LimitField::FrameLen)
}

pub(super) fn is_invalid(error: &Error) -> bool {
    error.kind() == ErrorKind::Server(ErrorCode::Invalid)
}

/// Rows of one table; a server that sends more is not believed.
const ROWS_MAX: usize = 200_000;
