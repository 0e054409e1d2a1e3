//! What answers and events mean. Answers of system tables are believed as far as they go; a row that
//! lacks what a node cannot do without is passed over, since nodes that join have such rows.

use super::members::{Address, Row};
use super::reading::{Changed, Nodes, Question, Subject};
#[cfg(any(test, feature = "compact-ring"))]
use super::ring::Strategy;
use super::rows::{self, Cells};
use super::tables::HAS_TABLE_IDS;
use super::{KeyspaceKind, Plane};

use crate::error::{Error, ErrorKind, LimitField, PeerMisbehaved};
use crate::wire::Reader;
use crate::wire::response::ErrorCode;
use crate::words::{boxed_bytes, place};

impl Plane {
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
                rows::read(body, "initial_tablets consistency", &mut |cells| {
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
                rows::read(body, "", &mut |cells| {
                    strategy = self.read_strategy(cells[0].unwrap_or_default());
                })?;
                if let Some(keyspace) = self.keyspaces.get_mut(usize::from(question.number)) {
                    keyspace.strategy = strategy;
                }
                Ok(Changed::Nothing)
            }
            Subject::Table if !HAS_TABLE_IDS => Ok(Changed::Nothing),
            Subject::Table => {
                let mut id = None;
                rows::read(body, "", &mut |cells| id = rows::uuid(cells[0]))?;
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
        if HAS_TABLE_IDS && question.subject == Subject::Table {
            if let Some(table) = self.tables.get_mut(number) {
                table.demand(self.reading.is_scylla);
            }
        } else if let Some(keyspace) = self.keyspaces.get_mut(number) {
            keyspace.demand(self.reading.is_scylla);
        }
    }

    fn take_local(&mut self, body: &[u8]) -> Result<Changed, Error> {
        let mut is_there = false;
        rows::read(body, "", &mut |cells| {
            let &[.., partitioner, tokens] = cells;
            let class = rows::text(partitioner).unwrap_or_default();
            self.reading.is_foreign = !class.is_empty() && !class.ends_with("Murmur3Partitioner");
            if let Some(row) = self.member_row(cells, tokens) {
                is_there = true;
                self.reading.local = self.take_row(&row, tokens);
            }
        })?;
        if !is_there {
            return Err(PeerMisbehaved::MalformedBody.into());
        }
        self.reading.nodes = Nodes::PeersDue;
        Ok(Changed::Local(self.reading.local))
    }

    fn take_peers(&mut self, body: &[u8]) -> Result<Changed, Error> {
        let paging = rows::read(body, "", &mut |cells| {
            let tokens = cells[5];
            // Nodes that are joining have no more than a host id, and take no requests.
            let Some(row) = self.member_row(cells, tokens) else {
                return;
            };
            let local = self.reading.local.and_then(|local| self.cluster.get(local));
            let is_local = local.is_some_and(|local| local.host_id() == row.host_id);
            if row.address != Address::NONE && !is_local {
                self.take_row(&row, tokens);
            }
        })?;
        self.reading.pages_left = self.reading.pages_left.saturating_sub(1);
        if let Some(paging) = paging
            && self.reading.pages_left > 0
        {
            self.reading.paging = Some(boxed_bytes(paging));
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

    /// The columns that both tables have in front of the others.
    fn member_row<'a>(&self, cells: &Cells<'a>, tokens: Option<&[u8]>) -> Option<Row<'a>> {
        let &[host_id, dc, rack, rpc, broadcast, ..] = cells;
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

    fn take_row(&mut self, row: &Row<'_>, tokens: Option<&[u8]>) -> Option<u16> {
        let member = self.put_row(row);
        #[cfg(any(test, feature = "compact-ring"))]
        if let Some(member) = member {
            self.ring.put(member, tokens);
        }
        let _ = tokens;
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
        match place("TOPOLOGY_CHANGE STATUS_CHANGE SCHEMA_CHANGE", text(reader)?) {
            Some(0) => self.read_again(),
            Some(1) => {
                self.read_again();
                let is_up = text(reader)? == "UP";
                let len = usize::from(reader.byte("address of node").ok()?);
                let address = Address::new(reader.take("address of node", len).ok()?);
                return Some(self.note_status(address, is_up));
            }
            Some(2) => {
                let is_dropped = text(reader)? == "DROPPED";
                let (target, keyspace) = (text(reader)?, text(reader)?);
                let table = match place("KEYSPACE TABLE", target)? {
                    0 => None,
                    _ => Some(text(reader)?),
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

#[inline(never)]
fn text<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    reader.string("event").ok()
}
