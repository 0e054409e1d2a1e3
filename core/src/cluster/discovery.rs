//! Reading the system tables, page by page, into plain rows.
//!
//! A [`Discovery`] gives questions and takes answers; it decides nothing about the cluster, and
//! which connection asks is not its concern. Columns are found by name. Tables that only ScyllaDB
//! has may be missing (INVALID) and are then empty. A page that does not fit a frame is asked for
//! again with fewer rows; if one row alone does not fit, peers are read without their tokens.
//! Facts: the system tables of ScyllaDB and Apache Cassandra.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::client_routes::RouteTable;
use super::found::Found;
use super::warnings::warning;
use crate::conn::Answer;
use crate::error::{Error, ErrorKind, LimitField};
use crate::wire::request::{Query, QueryParameters, RequestBody};
use crate::wire::response::ErrorCode;
use crate::wire::{Consistency, Dialect, EncodeError, ProtocolVersion};

/// What is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) topology: bool,
    pub(super) schema: bool,
    /// Client routes, if the session follows them. Read with the topology, too.
    pub(super) routes: bool,
}

impl Scope {
    pub(super) const ALL: Self = Self {
        topology: true,
        schema: true,
        routes: true,
    };
    pub(super) const TOPOLOGY: Self = Self {
        topology: true,
        schema: false,
        routes: true,
    };
    pub(super) const SCHEMA: Self = Self {
        topology: false,
        schema: true,
        routes: false,
    };
    pub(super) const ROUTES: Self = Self {
        topology: false,
        schema: false,
        routes: true,
    };
}

/// A table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SystemTable {
    Local,
    Peers,
    ClientRoutes,
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
            Self::ScyllaKeyspaces | Self::ScyllaTables | Self::Views | Self::ClientRoutes
        )
    }

    const fn is_of_scylla(self) -> bool {
        matches!(self, Self::ScyllaKeyspaces | Self::ScyllaTables)
    }

    /// The statement; `SELECT *` where columns depend on the version. That of client routes is
    /// made for each session.
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
            (Self::ClientRoutes, _) => "",
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
    pub(super) fn new(
        scope: Scope,
        is_scylla: bool,
        page_size: i32,
        window: usize,
        routes: Option<RouteTable>,
    ) -> Self {
        let topology = scope.topology.then_some(SystemTable::TOPOLOGY);
        let schema = scope.schema.then_some(SystemTable::SCHEMA);
        let tables = topology
            .into_iter()
            .flatten()
            .chain(routes.as_ref().map(|_| SystemTable::ClientRoutes))
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
            found: Found {
                routes,
                ..Found::default()
            },
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
        let body = match &self.found.routes {
            Some(routes) if read.table == SystemTable::ClientRoutes => {
                query_body(&routes.statement(), parameters, version)?
            }
            _ => query_body(read.table.statement(with_tokens), parameters, version)?,
        };
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
                        let text = warning!("{table:?}: only the first {ROWS_MAX} rows are used");
                        self.found.note(text);
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
                self.found.note(warning!(
                    "tokens of nodes do not fit a frame: no routing by ring"
                ));
                Ok(())
            }
            Err(error) if table.is_optional() && is_invalid(&error) => {
                if table == SystemTable::ClientRoutes && self.found.routes.take().is_some() {
                    self.found.note(warning!(
                        "a node has no client routes: those known are kept ({error})"
                    ));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let done = |read: &Read| matches!(read.state, ReadState::Done);
        self.reads.iter().all(done)
    }

    pub(super) fn into_found(mut self) -> Found {
        if !self.with_tokens {
            // Those that were read before would make the others look like nodes without data.
            for row in self.found.local.iter_mut().chain(&mut self.found.peers) {
                row.tokens = Box::default();
            }
        }
        self.found
    }
}

/// The body of a QUERY.
pub(super) fn query_body(
    text: &str,
    parameters: QueryParameters<'_>,
    version: ProtocolVersion,
) -> Result<Vec<u8>, EncodeError> {
    // Through the kind of buffer that the data plane writes into: its code is there already.
    let mut body = BytesMut::new();
    Query { text, parameters }.put(version, &mut body)?;
    Ok(body.to_vec())
}

fn is_too_long(error: &Error) -> bool {
    error.kind() == ErrorKind::Limit(LimitField::FrameLen)
}

pub(super) fn is_invalid(error: &Error) -> bool {
    error.kind() == ErrorKind::Server(ErrorCode::Invalid)
}

/// Rows of one table; a server that sends more is not believed.
const ROWS_MAX: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::answers;

    const DIALECT: Dialect = Dialect::plain(ProtocolVersion::V4);

    fn too_long() -> Result<Answer, Error> {
        Err(Error::new(ErrorKind::Limit(LimitField::FrameLen)))
    }

    /// Page size of a QUERY body: behind the statement, consistency (2 bytes) and flags (1).
    fn page_size(body: &[u8]) -> i32 {
        let at = 4 + answers::statement(body).len() + 3;
        i32::from_be_bytes(body[at..at + 4].try_into().unwrap())
    }

    fn question(discovery: &mut Discovery) -> Option<(SystemTable, Vec<u8>)> {
        discovery.next_question(ProtocolVersion::V4).unwrap()
    }

    /// CL ONE, flags: page size; then page size and paging state.
    #[test]
    fn pages_follow_one_another() {
        let mut discovery = Discovery::new(Scope::SCHEMA, false, 1000, 1, None);
        let (table, body) = question(&mut discovery).unwrap();
        assert_eq!(table, SystemTable::Keyspaces);
        let tail = body[4 + answers::statement(&body).len()..].to_vec();
        assert_eq!(tail, answers::bytes("0001 04 000003e8"));
        assert!(question(&mut discovery).is_none(), "the window is one");
        let page = answers::rows(
            &["keyspace_name"],
            &[[answers::text("a")].to_vec()],
            Some(b"s"),
        );
        discovery.handle_answer(table, Ok(page), &DIALECT).unwrap();
        let (table, body) = question(&mut discovery).unwrap();
        assert_eq!(table, SystemTable::Keyspaces);
        let tail = body[4 + answers::statement(&body).len()..].to_vec();
        assert_eq!(tail, answers::bytes("0001 0c 000003e8 00000001 73"));
        let last = answers::rows(&["keyspace_name"], &[[answers::text("b")].to_vec()], None);
        discovery.handle_answer(table, Ok(last), &DIALECT).unwrap();
        for expected in [SystemTable::Tables, SystemTable::Views] {
            assert!(!discovery.is_done());
            let (table, _) = question(&mut discovery).unwrap();
            assert_eq!(table, expected);
            let none = answers::rows(&["keyspace_name"], &[], None);
            discovery.handle_answer(table, Ok(none), &DIALECT).unwrap();
        }
        assert!(discovery.is_done());
        let names: Vec<_> = discovery.into_found().keyspaces;
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn pages_that_do_not_fit_become_smaller_and_tokens_are_left_out_last() {
        let mut discovery = Discovery::new(Scope::TOPOLOGY, true, 16, 2, None);
        let (local, _) = question(&mut discovery).unwrap();
        let mut sizes = Vec::new();
        for _ in 0..5 {
            let (table, body) = question(&mut discovery).unwrap();
            assert_eq!(table, SystemTable::Peers);
            sizes.push(page_size(&body));
            assert!(answers::statement(&body).contains("tokens"));
            discovery
                .handle_answer(table, too_long(), &DIALECT)
                .unwrap();
        }
        assert_eq!(sizes, [16, 8, 4, 2, 1]);
        let (table, body) = question(&mut discovery).unwrap();
        assert!(!answers::statement(&body).contains("tokens"));
        assert!(
            discovery
                .handle_answer(table, too_long(), &DIALECT)
                .is_err()
        );
        // Nobody has tokens then: to have some would mean that the others own no data.
        let names = ["host_id", "data_center", "rack", "rpc_address", "tokens"];
        let own = [
            answers::uuid(1),
            answers::text("dc"),
            answers::text("rack"),
            answers::inet("10.0.0.1"),
            answers::texts(1, &["7"]),
        ];
        let answer = Ok(answers::rows(&names, &[own.to_vec()], None));
        discovery.handle_answer(local, answer, &DIALECT).unwrap();
        let own = discovery.into_found().local.unwrap();
        assert_eq!(*own.tokens, []);
    }

    #[test]
    fn only_optional_tables_may_be_missing_and_only_by_invalid() {
        let all = [
            (SystemTable::Keyspaces, false),
            (SystemTable::ScyllaKeyspaces, true),
            (SystemTable::Tables, false),
            (SystemTable::Views, true),
            (SystemTable::ScyllaTables, true),
        ];
        for (table, is_optional) in all {
            for (code, is_fine) in [(0x2200, is_optional), (0x0000, false), (0x1001, false)] {
                let mut discovery = Discovery::new(Scope::SCHEMA, true, 10, 8, None);
                while question(&mut discovery).is_some() {}
                let answer = Ok(answers::error(code, "no"));
                let result = discovery.handle_answer(table, answer, &DIALECT);
                assert_eq!(result.is_ok(), is_fine, "{table:?} {code:x}");
            }
        }
    }

    #[test]
    fn a_table_without_end_is_cut() {
        let mut discovery = Discovery::new(Scope::SCHEMA, false, 1000, 1, None);
        let page: Vec<_> = (0..1000)
            .map(|n| [answers::text(&alloc::format!("k{n}"))].to_vec())
            .collect();
        let page = answers::rows(&["keyspace_name"], &page, Some(b"more"));
        let mut pages = 0;
        while let Some((SystemTable::Keyspaces, _)) = question(&mut discovery) {
            pages += 1;
            assert!(pages <= 200);
            let answer = Ok(page.clone());
            discovery
                .handle_answer(SystemTable::Keyspaces, answer, &DIALECT)
                .unwrap();
        }
        assert_eq!(pages, 200);
        assert_eq!(discovery.into_found().warnings.len(), 1);
    }
}
