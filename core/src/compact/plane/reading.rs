//! Questions to the system tables, and what their answers and events mean.
//!
//! Two kinds of things are read: the nodes, first the one that is asked, then its peers page by
//! page; and what is to be known of each keyspace and table that a statement uses, by a question made
//! for exactly that one. Tables that only ScyllaDB has are asked for where it is one, and may be
//! missing all the same (INVALID). Events only make things due, and hint at who is up; their addresses
//! are those among nodes. Facts: system tables and events of ScyllaDB and Apache Cassandra.

use super::members::{Address, Row};
#[cfg(any(test, feature = "compact-ring"))]
use super::ring::Strategy;
use super::rows::{self, Cells};
use super::{KeyspaceKind, Plane};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::BytesMut;

use crate::conn::extensions::Agreed;
use crate::error::{Error, ErrorKind, LimitField, PeerMisbehaved};
use crate::wire::request::{Query, QueryParameters, RequestBody};
use crate::wire::response::ErrorCode;
use crate::wire::{Consistency, Reader};

/// What was asked, to be given back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    subject: Subject,
    number: u16,
    /// Answers of an earlier control link do not count.
    round: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Local,
    Peers,
    Keyspace,
    #[cfg(any(test, feature = "compact-ring"))]
    Strategy,
    Table,
}

/// What an answer or an event changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed {
    /// Nothing that the owner must act on.
    Nothing,
    /// The node that was asked told who it is: a member, unless it does not fit.
    Local(Option<u16>),
    /// All nodes were read: members may have come, gone, or changed their address.
    Members,
    /// A member is said to be up, or down, and marked so. A live link knows better.
    Status(u16, bool),
}

/// How far the reading is.
#[derive(Debug)]
pub(super) struct Reading {
    nodes: Nodes,
    /// Something happened since it began.
    again: bool,
    paging: Option<Box<[u8]>>,
    page_size: i32,
    pages_left: u16,
    round: u8,
    local: Option<u16>,
    /// The cluster hashes keys in a way that we do not know.
    pub(super) is_foreign: bool,
    /// Whether the control link leads to a ScyllaDB node, once there was one.
    pub(super) is_scylla: Option<bool>,
    pub(super) tables_left_out: u32,
    #[cfg(any(test, feature = "compact-ring"))]
    pub(super) without_tokens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    Read,
    LocalDue,
    PeersDue,
    Asked,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            nodes: Nodes::Read,
            again: false,
            paging: None,
            page_size: PAGE_SIZE,
            pages_left: 0,
            round: 0,
            local: None,
            is_foreign: false,
            is_scylla: None,
            tables_left_out: 0,
            #[cfg(any(test, feature = "compact-ring"))]
            without_tokens: false,
        }
    }
}

impl Plane {
    /// A control link was chosen, which has agreed on this: everything is read over it, since
    /// nobody told what happened before. Answers of the one before do not count, and all members are
    /// taken to be up until links or events tell otherwise.
    pub fn restart(&mut self, agreed: &Agreed) {
        self.reading.is_scylla = Some(agreed.offer.is_scylla);
        self.reading.round = self.reading.round.wrapping_add(1);
        self.reading.nodes = Nodes::LocalDue;
        for member in &mut self.cluster.members {
            member.is_up = true;
        }
        for keyspace in &mut self.keyspaces {
            keyspace.demand(self.reading.is_scylla);
        }
        for table in &mut self.tables {
            table.demand(self.reading.is_scylla);
        }
    }

    /// The nodes are to be read again.
    pub fn read_again(&mut self) {
        match self.reading.nodes {
            Nodes::Read => self.reading.nodes = Nodes::LocalDue,
            _ => self.reading.again = true,
        }
    }

    /// Whether there is a question to ask.
    pub fn is_due(&self) -> bool {
        matches!(self.reading.nodes, Nodes::LocalDue | Nodes::PeersDue)
            || self.tables.iter().any(|table| table.is_due)
            || self.keyspaces.iter().any(super::Keyspace::is_anything_due)
    }

    /// Writes the body of a QUERY that asks the next question, if there is one, for the link that
    /// has agreed on this.
    pub fn put_question(&mut self, agreed: &Agreed, body: &mut BytesMut) -> Option<Question> {
        let mut text = Vec::new();
        let (subject, number) = self.next_subject(&mut text)?;
        let is_paged = subject == Subject::Peers;
        let parameters = QueryParameters {
            page_size: is_paged.then_some(self.reading.page_size),
            paging_state: self.reading.paging.as_deref().filter(|_| is_paged),
            ..QueryParameters::new(Consistency::One)
        };
        let text = core::str::from_utf8(&text).ok()?;
        let query = Query { text, parameters };
        query.put(agreed.version, body).ok()?;
        Some(Question {
            subject,
            number,
            round: self.reading.round,
        })
    }

    /// What is to be asked next, no longer due then, and its statement.
    fn next_subject(&mut self, text: &mut Vec<u8>) -> Option<(Subject, u16)> {
        match self.reading.nodes {
            Nodes::LocalDue => {
                self.begin_nodes();
                write(
                    text,
                    &[if self.reads_tokens() {
                        LOCAL_AND_TOKENS
                    } else {
                        LOCAL
                    }],
                );
                return Some((Subject::Local, 0));
            }
            Nodes::PeersDue => {
                self.reading.nodes = Nodes::Asked;
                write(
                    text,
                    &[if self.reads_tokens() {
                        PEERS_AND_TOKENS
                    } else {
                        PEERS
                    }],
                );
                return Some((Subject::Peers, 0));
            }
            Nodes::Read | Nodes::Asked => {}
        }
        for (number, keyspace) in (0..).zip(&mut self.keyspaces) {
            if core::mem::take(&mut keyspace.is_due) {
                write(text, &[KEYSPACE, &keyspace.name]);
                return Some((Subject::Keyspace, number));
            }
            #[cfg(any(test, feature = "compact-ring"))]
            if core::mem::take(&mut keyspace.is_strategy_due) {
                write(text, &[STRATEGY, &keyspace.name]);
                return Some((Subject::Strategy, number));
            }
        }
        for (number, table) in (0..).zip(&mut self.tables) {
            if core::mem::take(&mut table.is_due) {
                let keyspace = self.keyspaces.get(usize::from(table.keyspace))?;
                write(text, &[TABLE, &keyspace.name, OF_TABLE, &table.name]);
                return Some((Subject::Table, number));
            }
        }
        None
    }

    fn begin_nodes(&mut self) {
        self.reading.nodes = Nodes::Asked;
        self.reading.again = false;
        self.reading.paging = None;
        self.reading.pages_left = PAGES_MAX;
        self.reading.local = None;
        self.cluster.begin();
        #[cfg(any(test, feature = "compact-ring"))]
        self.ring.begin();
    }

    #[cfg(any(test, feature = "compact-ring"))]
    const fn reads_tokens(&self) -> bool {
        !self.reading.without_tokens
    }

    #[cfg(not(any(test, feature = "compact-ring")))]
    #[expect(clippy::unused_self, reason = "the same as where tokens are read")]
    const fn reads_tokens(&self) -> bool {
        false
    }

    /// Takes the body of the RESULT that answers a question, without what may stand before its
    /// kind: trace id, warnings, payload.
    ///
    /// # Errors
    /// If it is no answer to that. The link is of no use for control then.
    pub fn handle_answer(&mut self, question: Question, body: &[u8]) -> Result<Changed, Error> {
        if question.round != self.reading.round {
            return Ok(Changed::Nothing);
        }
        match question.subject {
            Subject::Local => self.take_local(body),
            Subject::Peers => self.take_peers(body),
            Subject::Keyspace => {
                let mut kind = KeyspaceKind::Vnodes;
                let names = ["initial_tablets", "consistency"];
                rows::read(body, &names, &mut |cells| {
                    let &[tablets, consistency, ..] = cells;
                    kind = match (tablets, rows::text(consistency)) {
                        (None, _) => KeyspaceKind::Vnodes,
                        (_, Some("global")) => KeyspaceKind::StrongTablets,
                        _ => KeyspaceKind::Tablets,
                    };
                })?;
                self.set_kind(question.number, kind);
                Ok(Changed::Nothing)
            }
            #[cfg(any(test, feature = "compact-ring"))]
            Subject::Strategy => {
                let mut strategy = Strategy::None;
                rows::read(body, &["replication"], &mut |cells| {
                    strategy = self.read_strategy(cells[0].unwrap_or_default());
                })?;
                if let Some(keyspace) = self.keyspaces.get_mut(usize::from(question.number)) {
                    keyspace.strategy = strategy;
                }
                Ok(Changed::Nothing)
            }
            Subject::Table => {
                let mut id = None;
                rows::read(body, &["id"], &mut |cells| id = rows::uuid(cells[0]))?;
                if let Some(table) = self.tables.get_mut(usize::from(question.number)) {
                    // A view has no row there, so it may be another one each time.
                    if id.is_none() || table.id.is_some() && table.id != id {
                        self.tablets.doom_table(question.number);
                        self.tablets.sweep();
                    }
                    table.id = id;
                }
                Ok(Changed::Nothing)
            }
        }
    }

    /// The node did not answer a question, or refused it, or its answer is too long. Whether the
    /// plane gets along; if not, the question is due again, and the link is of no use for control
    /// unless the failure passes.
    pub fn handle_failure(&mut self, question: Question, error: &Error) -> bool {
        if question.round != self.reading.round {
            return true;
        }
        let kind = error.kind();
        let is_too_long = matches!(kind, ErrorKind::Limit(LimitField::FrameLen));
        let is_fine = is_too_long || matches!(kind, ErrorKind::Server(ErrorCode::Invalid));
        match question.subject {
            Subject::Peers if is_too_long && self.reading.page_size > 1 => {
                self.reading.page_size /= 2;
                self.reading.nodes = Nodes::PeersDue;
                true
            }
            Subject::Local | Subject::Peers => {
                self.reading.nodes = Nodes::LocalDue;
                #[cfg(any(test, feature = "compact-ring"))]
                if is_too_long && !self.reading.without_tokens {
                    self.reading.without_tokens = true;
                    return true;
                }
                false
            }
            Subject::Keyspace if is_fine => {
                self.set_kind(question.number, KeyspaceKind::Vnodes);
                true
            }
            _ => {
                if !is_fine {
                    self.demand(question);
                }
                is_fine
            }
        }
    }

    /// It is to be asked again.
    fn demand(&mut self, question: Question) {
        let number = usize::from(question.number);
        if question.subject == Subject::Table {
            if let Some(table) = self.tables.get_mut(number) {
                table.demand(self.reading.is_scylla);
            }
        } else if let Some(keyspace) = self.keyspaces.get_mut(number) {
            keyspace.demand(self.reading.is_scylla);
        }
    }

    fn take_local(&mut self, body: &[u8]) -> Result<Changed, Error> {
        let names = [
            "host_id",
            "data_center",
            "rack",
            "rpc_address",
            "broadcast_address",
            "tokens",
            "partitioner",
        ];
        let mut is_there = false;
        rows::read(body, &names, &mut |cells| {
            let class = rows::text(cells[6]).unwrap_or_default();
            self.reading.is_foreign = !class.is_empty() && !class.ends_with("Murmur3Partitioner");
            if let Some(row) = self.member_row(cells) {
                is_there = true;
                self.reading.local = self.take_row(&row, cells);
            }
        })?;
        if !is_there {
            return Err(PeerMisbehaved::MalformedBody.into());
        }
        self.reading.nodes = Nodes::PeersDue;
        Ok(Changed::Local(self.reading.local))
    }

    fn take_peers(&mut self, body: &[u8]) -> Result<Changed, Error> {
        let names = [
            "host_id",
            "data_center",
            "rack",
            "rpc_address",
            "peer",
            "tokens",
        ];
        let paging = rows::read(body, &names, &mut |cells| {
            // Nodes that are joining have no more than a host id, and take no requests.
            let Some(row) = self.member_row(cells) else {
                return;
            };
            let local = self.reading.local.and_then(|local| self.cluster.get(local));
            let is_local = local.is_some_and(|local| local.host_id() == row.host_id);
            if row.address != Address::NONE && !is_local {
                self.take_row(&row, cells);
            }
        })?;
        self.reading.pages_left = self.reading.pages_left.saturating_sub(1);
        if let Some(paging) = paging
            && self.reading.pages_left > 0
        {
            self.reading.paging = Some(paging.into());
            self.reading.nodes = Nodes::PeersDue;
            return Ok(Changed::Nothing);
        }
        self.reading.paging = None;
        self.reading.nodes = Nodes::Read;
        let is_wanted = self.cluster.end();
        if is_wanted || self.reading.again {
            self.reading.nodes = Nodes::LocalDue;
        }
        self.tablets.settle(&mut self.strangers, &self.cluster);
        #[cfg(any(test, feature = "compact-ring"))]
        self.ring.end(&self.cluster);
        Ok(Changed::Members)
    }

    fn member_row<'a>(&self, cells: &Cells<'a>) -> Option<Row<'a>> {
        let &[host_id, dc, rack, rpc, broadcast, tokens, _] = cells;
        let broadcast = rows::address(broadcast);
        Some(Row {
            host_id: rows::uuid(host_id)?,
            address: match rows::address(rpc) {
                Address::NONE => broadcast,
                address => address,
            },
            broadcast,
            dc: rows::text(dc)?,
            rack: rows::text(rack)?,
            has_tokens: tokens.is_some() || !self.reads_tokens(),
        })
    }

    fn take_row(&mut self, row: &Row<'_>, cells: &Cells<'_>) -> Option<u16> {
        let member = self.put_row(row);
        #[cfg(any(test, feature = "compact-ring"))]
        if let Some(member) = member {
            self.ring.put(member, cells[5]);
        }
        let _ = cells;
        member
    }

    fn set_kind(&mut self, number: u16, kind: KeyspaceKind) {
        let Some(keyspace) = self.keyspaces.get_mut(usize::from(number)) else {
            return;
        };
        let before = core::mem::replace(&mut keyspace.kind, kind);
        let is_sure = before != KeyspaceKind::Unknown || kind == KeyspaceKind::Vnodes;
        if before != kind && is_sure {
            for (table, known) in (0..).zip(&self.tables) {
                if known.keyspace == number {
                    self.tablets.doom_table(table);
                }
            }
            self.tablets.sweep();
        }
    }

    /// Takes the body of an EVENT. One that is not known, or cannot be read, means nothing.
    pub fn handle_event(&mut self, body: &[u8]) -> Changed {
        self.take_event(&mut Reader::new(body))
            .unwrap_or(Changed::Nothing)
    }

    fn take_event(&mut self, reader: &mut Reader<'_>) -> Option<Changed> {
        let mut text = || reader.string("event").ok();
        match text()? {
            "TOPOLOGY_CHANGE" => self.read_again(),
            "STATUS_CHANGE" => {
                self.read_again();
                let is_up = text()? == "UP";
                let len = usize::from(reader.byte("address of node").ok()?);
                let address = Address::new(reader.take("address of node", len).ok()?);
                return Some(self.note_status(address, is_up));
            }
            "SCHEMA_CHANGE" => {
                let is_dropped = text()? == "DROPPED";
                let (target, keyspace) = (text()?, text()?);
                let table = match target {
                    "KEYSPACE" => None,
                    "TABLE" => Some(text()?),
                    _ => return None,
                };
                self.note_schema_change(keyspace, table, is_dropped);
            }
            _ => {}
        }
        None
    }

    fn note_status(&mut self, address: Address, is_up: bool) -> Changed {
        for (number, member) in (0..).zip(&mut self.cluster.members) {
            if member.is_present() && address != Address::NONE && member.has_address(address) {
                member.is_up = is_up;
                return Changed::Status(number, is_up);
            }
        }
        Changed::Nothing
    }
}

/// Writes a statement from its parts: every second one stands between quotes, of which the part
/// before it has the first.
fn write(statement: &mut Vec<u8>, parts: &[&str]) {
    let mut is_quoted = false;
    for part in parts {
        for byte in part.bytes() {
            statement.push(byte);
            // Within quotes a quote is written twice, and nothing else has a meaning.
            if is_quoted && byte == b'\'' {
                statement.push(byte);
            }
        }
        if is_quoted {
            statement.push(b'\'');
        }
        is_quoted = !is_quoted;
    }
}

const LOCAL: &str = "SELECT host_id,data_center,rack,rpc_address,broadcast_address,partitioner \
                     FROM system.local WHERE key='local'";
const LOCAL_AND_TOKENS: &str = "SELECT host_id,data_center,rack,rpc_address,broadcast_address,\
                                partitioner,tokens FROM system.local WHERE key='local'";
const PEERS: &str = "SELECT host_id,data_center,rack,rpc_address,peer FROM system.peers";
const PEERS_AND_TOKENS: &str =
    "SELECT host_id,data_center,rack,rpc_address,peer,tokens FROM system.peers";
const KEYSPACE: &str = "SELECT * FROM system_schema.scylla_keyspaces WHERE keyspace_name='";
#[cfg(any(test, feature = "compact-ring"))]
const STRATEGY: &str = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name='";
const TABLE: &str = "SELECT id FROM system_schema.tables WHERE keyspace_name='";
const OF_TABLE: &str = " AND table_name='";

/// Rows asked for at once.
const PAGE_SIZE: i32 = 32;

/// A server that sends more is not believed.
const PAGES_MAX: u16 = 4096;
