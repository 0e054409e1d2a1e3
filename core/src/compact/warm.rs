//! What a session knows, as bytes that a later one begins with: what nodes offer, so that STARTUP goes
//! out at once; statements, so that they need not be prepared; members and tablets, so that the
//! first requests find their nodes.
//!
//! Nothing of it is trusted longer than until the nodes say otherwise: an offer that does not hold
//! begins the handshake anew, a statement that a node has lost is given to it, members are read again,
//! and a wrong tablet is corrected by its first use. Bytes that were cut or changed are no blob at all.
//!
//! Layout: the token of what follows (64 bits), the number of the form (a byte), entries. An entry is
//! its kind (a byte), its length (32 bits), and its fields.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::machine::Machine;
use super::plane::{MemberRow, TableKey};
use super::statement::Statement;
use crate::conn::extensions::Offer;
use crate::error::Error;
use crate::routing::{Partitioner, TabletVersion};
use crate::sync::Local;
use crate::wire::{Dialect, ParseError, ProtocolVersion, Reader, Sink as _};

impl Machine {
    /// What is known now, in at most `len_max` bytes: the most useful first. Empty if nothing is.
    pub fn save(&self, len_max: usize) -> Vec<u8> {
        let mut blob = Blob {
            bytes: Vec::from([0; HEAD_LEN]),
            len_max,
            is_full: false,
        };
        if let Some(form) = blob.bytes.last_mut() {
            *form = FORM;
        }
        let agreed = self.links.iter().find_map(|link| link.agreed.as_ref());
        if let Some(agreed) = agreed {
            blob.put(OFFER, &mut |sink| put_offer(&agreed.offer, sink));
        }
        let mut texts: Vec<&str> = Vec::new();
        for statement in self.statements.iter().chain(&self.saved) {
            // One that was saved before, or prepared twice, is held more than once.
            if texts.contains(&&*statement.text) {
                continue;
            }
            texts.push(&statement.text);
            blob.put(STATEMENT, &mut |sink| put_statement(statement, sink));
        }
        for member in self
            .plane
            .members()
            .iter()
            .filter(|member| member.is_present())
        {
            let (dc, rack) = member.place();
            blob.put(MEMBER, &mut |sink| {
                sink.extend_from_slice(member.host_id().as_bytes());
                put_address(member.address(), sink);
                put_address(member.broadcast(), sink);
                for name in [dc, rack] {
                    put_text(self.plane.name(name), sink);
                }
            });
        }
        for table in self.plane.tables() {
            let mut tablets = self.plane.tablets(table.key).peekable();
            if tablets.peek().is_none() {
                continue;
            }
            blob.put(TABLE, &mut |sink| {
                put_text(table.keyspace, sink);
                put_text(table.name, sink);
            });
            for tablet in tablets {
                blob.put(TABLET, &mut |sink| {
                    let (first, last) = tablet.range();
                    sink.put_long(first);
                    sink.put_long(last);
                    let version = tablet.version();
                    sink.put_byte(u8::from(version.is_some()));
                    let bits = version.map_or(0, TabletVersion::bits);
                    sink.put_long(bits.cast_signed());
                    for (host, shard) in tablet.replicas() {
                        sink.extend_from_slice(host.as_bytes());
                        sink.put_short(shard);
                    }
                });
            }
        }
        blob.finish()
    }

    /// Begins with what was saved, before [`start`](Self::start); whether it is a blob that is
    /// understood. What is not counts for nothing.
    pub fn restore(&mut self, blob: &[u8]) -> bool {
        let Some((token, rest)) = blob.split_first_chunk() else {
            return false;
        };
        let [FORM, entries @ ..] = rest else {
            return false;
        };
        if *token != check(rest) {
            return false;
        }
        let mut reader = Reader::new(entries);
        let mut table = None;
        while !reader.is_empty() {
            let read = self.restore_entry(&mut reader, &mut table);
            if read.is_err() {
                return false;
            }
        }
        self.assume(self.assumed);
        true
    }

    fn restore_entry(
        &mut self,
        reader: &mut Reader<'_>,
        table: &mut Option<TableKey>,
    ) -> Result<(), Error> {
        let kind = reader.byte("kind of entry")?;
        let entry = reader.bytes("entry")?.unwrap_or_default();
        let entry = &mut Reader::new(entry);
        match kind {
            OFFER => {
                let offer = read_offer(entry)?;
                if self.config.early_requests {
                    self.assumed = Some(offer);
                }
            }
            STATEMENT => {
                let plane = &mut self.plane;
                let is_full = crate::config::HAS_TOPOLOGY;
                let statement = read_statement(entry, &mut |keyspace, name| {
                    is_full.then(|| plane.table(keyspace, name)).flatten()
                })?;
                if self.saved.len() < self.config.limits.prepared_statements {
                    self.saved.push(Local::new(statement));
                }
            }
            MEMBER => {
                let host_id = entry.uuid("host id")?;
                let (address, broadcast) = (read_address(entry)?, read_address(entry)?);
                let row = MemberRow {
                    host_id,
                    address,
                    broadcast,
                    dc: entry.string("data centre")?,
                    rack: entry.string("rack")?,
                    has_tokens: true,
                };
                self.plane.put_member(&row);
            }
            TABLE => {
                let (keyspace, name) = (entry.string("keyspace")?, entry.string("table")?);
                *table = self.plane.table(keyspace, name);
            }
            TABLET => {
                let range = (entry.long("first token")?, entry.long("last token")?);
                let has_version = entry.byte("has a version")? == 1;
                let version = entry.long("version")?.cast_unsigned();
                let version = has_version.then(|| TabletVersion::new(version));
                let mut replicas = Vec::new();
                while !entry.is_empty() {
                    replicas.push((entry.uuid("host id")?, entry.short("shard")?));
                }
                if let Some(table) = *table {
                    self.plane.put_tablet(table, range, version, &replicas);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Entries on their way.
struct Blob {
    bytes: Vec<u8>,
    len_max: usize,
    is_full: bool,
}

impl Blob {
    /// Appends an entry, if it fits; none that comes later is put in its place.
    fn put(&mut self, kind: u8, fields: &mut dyn FnMut(&mut Vec<u8>)) {
        if self.is_full {
            return;
        }
        let before = self.bytes.len();
        let mut entry = Vec::new();
        fields(&mut entry);
        self.bytes.put_byte(kind);
        let written = self.bytes.put_bytes("entry", &entry);
        if written.is_err() || self.bytes.len() > self.len_max {
            self.bytes.truncate(before);
            self.is_full = true;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.bytes.len() <= HEAD_LEN {
            return Vec::new();
        }
        if let Some((token, rest)) = self.bytes.split_first_chunk_mut() {
            *token = check(rest);
        }
        self.bytes
    }
}

fn check(bytes: &[u8]) -> [u8; 8] {
    let token = Partitioner::Murmur3.token([bytes]);
    token.map_or(0, |token| token.value()).to_be_bytes()
}

fn put_text(text: &str, sink: &mut Vec<u8>) {
    // Names are short; one that is not is cut by its reader's checks.
    let _ = sink.put_string("text", text);
}

fn put_address(address: Option<IpAddr>, sink: &mut Vec<u8>) {
    let octets: &[u8] = match &address {
        Some(IpAddr::V4(v4)) => &v4.octets(),
        Some(IpAddr::V6(v6)) => &v6.octets(),
        None => &[],
    };
    let _ = sink.put_short_bytes("address", octets);
}

fn read_address(entry: &mut Reader<'_>) -> Result<Option<IpAddr>, ParseError> {
    let octets = entry.short_bytes("address")?;
    let v4 = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    Ok(v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)))
}

/// A number that may be absent.
fn put_maybe(number: Option<i32>, sink: &mut Vec<u8>) {
    sink.put_byte(u8::from(number.is_some()));
    sink.put_int(number.unwrap_or(0));
}

fn read_maybe(entry: &mut Reader<'_>) -> Result<Option<i32>, ParseError> {
    let is_there = entry.byte("is there")? == 1;
    let number = entry.int("number")?;
    Ok(is_there.then_some(number))
}

fn put_offer(offer: &Offer, sink: &mut Vec<u8>) {
    put_maybe(offer.lwt_mask.map(u32::cast_signed), sink);
    put_maybe(offer.rate_limit_error, sink);
    for is_offered in [
        offer.metadata_id,
        offer.tablets_v1,
        offer.tablets_v2,
        offer.client_options,
        offer.is_scylla,
    ] {
        sink.put_byte(u8::from(is_offered));
    }
}

fn read_offer(entry: &mut Reader<'_>) -> Result<Offer, ParseError> {
    let (lwt_mask, rate_limit_error) = (read_maybe(entry)?, read_maybe(entry)?);
    let mut is_offered = || Ok::<_, ParseError>(entry.byte("is offered")? == 1);
    Ok(Offer {
        lwt_mask: lwt_mask.map(i32::cast_unsigned),
        rate_limit_error,
        metadata_id: is_offered()?,
        tablets_v1: is_offered()?,
        tablets_v2: is_offered()?,
        client_options: is_offered()?,
        is_scylla: is_offered()?,
        ..Offer::default()
    })
}

fn put_statement(statement: &Statement, sink: &mut Vec<u8>) {
    let (body, dialect, is_lwt) = statement.parts();
    let _ = sink.put_long_string("text", &statement.text);
    let _ = sink.put_bytes("prepared", body);
    sink.put_byte(dialect.version.number());
    sink.put_byte(u8::from(dialect.result_metadata_id));
    sink.put_byte(u8::from(is_lwt));
}

fn read_statement(
    entry: &mut Reader<'_>,
    table: &mut dyn FnMut(&str, &str) -> Option<TableKey>,
) -> Result<Statement, Error> {
    let text = entry.bytes("text")?.unwrap_or_default();
    let text = core::str::from_utf8(text).unwrap_or_default();
    let body = entry.bytes("prepared")?.unwrap_or_default();
    let version = entry.byte("version")?;
    let version = ProtocolVersion::try_from(version).unwrap_or(ProtocolVersion::V4);
    let dialect = Dialect {
        result_metadata_id: entry.byte("has a metadata id")? == 1,
        ..Dialect::plain(version)
    };
    let is_lwt = entry.byte("is conditional")? == 1;
    Statement::parse(Box::from(text), body, dialect, &|_| is_lwt, table)
}

/// The token and the form.
const HEAD_LEN: usize = 9;

/// The number of the form.
const FORM: u8 = 1;

const OFFER: u8 = 1;
const STATEMENT: u8 = 2;
const MEMBER: u8 = 3;
const TABLE: u8 = 4;
const TABLET: u8 = 5;
