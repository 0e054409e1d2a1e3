//! Questions to the system tables.
//!
//! Two kinds of things are read: the nodes, first the one that is asked, then its peers page by
//! page; and what is to be known of each keyspace and table that a statement uses, by a question made
//! for exactly that one. Tables that only ScyllaDB has are asked for where it is one, and may be
//! missing all the same (INVALID). Facts: system tables of ScyllaDB and Apache
//! Cassandra.

use super::Plane;
use super::tables::Table;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::BytesMut;

use crate::conn::extensions::Agreed;
use crate::wire::Consistency;
use crate::wire::request::{Query, QueryParameters, RequestBody};

/// What was asked, to be given back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub(super) subject: Subject,
    pub(super) number: u16,
    /// Answers of an earlier control link do not count.
    pub(super) round: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
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
    /// A member is said to be up, or down, and marked so. That counts while there is no link to it.
    Status(u16, bool),
}

/// How far the reading is.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) nodes: Nodes,
    /// Something happened since it began.
    pub(super) again: bool,
    pub(super) paging: Option<Box<[u8]>>,
    pub(super) page_size: i32,
    pub(super) pages_left: u16,
    pub(super) round: u8,
    pub(super) local: Option<u16>,
    /// The cluster hashes keys in a way that we do not know.
    pub(super) is_foreign: bool,
    /// Whether the control link leads to a ScyllaDB node, once there was one.
    pub(super) is_scylla: Option<bool>,
    pub(super) tables_left_out: u32,
    #[cfg(any(test, feature = "compact-ring"))]
    pub(super) without_tokens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
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
    #[inline(never)]
    pub fn read_again(&mut self) {
        match self.reading.nodes {
            Nodes::Read => self.reading.nodes = Nodes::LocalDue,
            _ => self.reading.again = true,
        }
    }

    /// Whether there is a question to ask.
    pub fn is_due(&self) -> bool {
        matches!(self.reading.nodes, Nodes::LocalDue | Nodes::PeersDue)
            || self.tables.iter().any(Table::is_due)
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
            if table.is_due() {
                table.is_due = false;
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
    pub(super) const fn reads_tokens(&self) -> bool {
        !self.reading.without_tokens
    }

    #[cfg(not(any(test, feature = "compact-ring")))]
    #[expect(clippy::unused_self, reason = "the same as where tokens are read")]
    pub(super) const fn reads_tokens(&self) -> bool {
        false
    }
}

/// Writes a statement from its parts: every second one stands between quotes, of which the part
/// before it has the first.
fn write(statement: &mut Vec<u8>, parts: &[&str]) {
    let mut is_quoted = false;
    for part in parts {
        for byte in part.bytes() {
            // Within quotes a quote is written twice, and nothing else has a meaning.
            let is_twice = is_quoted && byte == b'\'';
            let bytes = [byte; 2];
            statement.extend_from_slice(if is_twice { &bytes } else { &bytes[..1] });
        }
        if is_quoted {
            statement.extend_from_slice(b"'");
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
