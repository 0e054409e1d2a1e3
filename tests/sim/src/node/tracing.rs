//! Traces of requests that asked for it: what `system_traces` shows of them.
//!
//! A node writes a trace after the answer is out, so its duration is null for a while and a client
//! has to ask again. Only the newest traces are kept, and of long statements only the beginning.

use core::net::IpAddr;
use std::collections::VecDeque;

use super::cluster::Cluster;
use super::codec::{Header, Parameters, Reader, flags, opcode};
use super::connection::Connection;

/// Traces that are kept.
const KEPT_MAX: usize = 1000;

/// Characters of a statement that are kept.
const TEXT_MAX: usize = 4096;

/// From the answer until the trace is complete, in microseconds.
const WRITTEN_AFTER: i64 = 2_000;

/// From one event to the next, in microseconds.
const EVENT_EVERY: i64 = 15;

/// Ticks of 100 ns from the beginning of the Gregorian calendar to that of Unix.
const GREGORIAN_TICKS: u64 = 0x01B2_1DD2_1381_4000;

/// The newest traces of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    kept: VecDeque<Trace>,
}

/// One traced request.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) id: [u8; 16],
    pub(crate) client: IpAddr,
    pub(crate) coordinator: IpAddr,
    pub(crate) shard: u32,
    pub(crate) request: &'static str,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) request_size: usize,
    pub(crate) response_size: usize,
    /// Microseconds since 1970.
    pub(crate) started_at: i64,
    pub(crate) duration: i64,
    pub(crate) username: String,
    pub(crate) events: Vec<&'static str>,
}

impl Trace {
    /// Its duration, once it is written.
    pub(crate) fn duration_at(&self, now: i64) -> Option<i64> {
        let written_at = self.started_at + self.duration + WRITTEN_AFTER;
        (now >= written_at).then_some(self.duration)
    }

    /// Event `at`: its id and the microseconds since the start.
    pub(crate) fn event(&self, at: usize) -> ([u8; 16], i64) {
        let at = i64::try_from(at).unwrap_or(i64::MAX / EVENT_EVERY);
        let elapsed = (at + 1) * EVENT_EVERY;
        let low = u64::from_be_bytes(*self.id.last_chunk().unwrap_or(&[0; 8]));
        (timeuuid(self.started_at + elapsed, low), elapsed)
    }
}

impl Traces {
    /// Oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Trace> {
        self.kept.iter()
    }

    fn keep(&mut self, trace: Trace) {
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(trace);
    }
}

impl Cluster {
    /// The id of a trace that begins now.
    pub(super) fn trace_id(&mut self, now: i64) -> [u8; 16] {
        let unique = u64::from_be_bytes(*self.fresh_uuid().last_chunk().unwrap_or(&[0; 8]));
        timeuuid(now, unique)
    }

    /// Keeps the trace of a request that has been answered.
    pub(super) fn keep_trace(
        &mut self,
        id: [u8; 16],
        connection: &Connection,
        (header, body): (Header, &[u8]),
        response_size: usize,
        now: i64,
    ) {
        let Some(node) = self.nodes.get(connection.node) else {
            return;
        };
        let (request, events) = words(header.opcode);
        let trace = Trace {
            id,
            client: connection.peer.ip(),
            coordinator: node.address,
            shard: connection.shard,
            request,
            parameters: self.parameters(connection, header, body),
            request_size: body.len(),
            response_size,
            started_at: now,
            duration: EVENT_EVERY * 5 + node.delay_micros,
            username: connection
                .username
                .clone()
                .unwrap_or_else(|| "anonymous".to_owned()),
            events,
        };
        self.traces.keep(trace);
    }

    /// What the request asked for, as far as it can be read.
    fn parameters(
        &self,
        connection: &Connection,
        header: Header,
        body: &[u8],
    ) -> Vec<(String, String)> {
        let version = connection.version_or_newest();
        let mut reader = Reader::new(body);
        let mut found = Vec::new();
        if header.flags & flags::CUSTOM_PAYLOAD != 0
            && version >= 4
            && reader.skip_bytes_map().is_err()
        {
            return found;
        }
        let text = match header.opcode {
            opcode::QUERY | opcode::PREPARE => reader.long_string().ok().map(str::to_owned),
            opcode::EXECUTE => reader.short_bytes().ok().and_then(|id| {
                let prepared = self.nodes.get(connection.node)?.prepared.get(id)?;
                Some(prepared.text.clone())
            }),
            _ => None,
        };
        if let Some(mut text) = text {
            let end = text.char_indices().nth(TEXT_MAX).map(|(at, _)| at);
            text.truncate(end.unwrap_or(text.len()));
            found.push(("query".to_owned(), text));
        }
        if header.opcode == opcode::EXECUTE && connection.features.metadata_id {
            // Only to get behind it.
            let _ = reader.short_bytes();
        }
        if matches!(header.opcode, opcode::QUERY | opcode::EXECUTE)
            && let Ok(given) = Parameters::parse(&mut reader, version)
        {
            let level = given.consistency.to_string();
            found.push(("consistency_level".to_owned(), level));
            if let Some(size) = given.page_size {
                found.push(("page_size".to_owned(), size.to_string()));
            }
            if let Some(level) = given.serial_consistency {
                found.push(("serial_consistency_level".to_owned(), level.to_string()));
            }
            if let Some(timestamp) = given.timestamp {
                found.push(("user_timestamp".to_owned(), timestamp.to_string()));
            }
        }
        found.sort_unstable();
        found
    }
}

/// What the session is called, and what happens in it.
fn words(code: u8) -> (&'static str, Vec<&'static str>) {
    const DONE: &str = "Done processing - preparing a result";
    match code {
        opcode::PREPARE => (
            "Preparing CQL3 query",
            vec!["Parsing a statement", "Done preparing on all shards"],
        ),
        opcode::EXECUTE => (
            "Execute CQL3 prepared query",
            vec!["Processing a statement", "Sending to replicas", DONE],
        ),
        opcode::BATCH => (
            "Execute batch of CQL3 queries",
            vec!["Processing a batch", "Sending to replicas", DONE],
        ),
        _ => (
            "Execute CQL3 query",
            vec![
                "Parsing a statement",
                "Processing a statement",
                "Sending to replicas",
                DONE,
            ],
        ),
    }
}

/// A uuid of version 1: the time, and what makes it the only one of that time.
fn timeuuid(micros: i64, unique: u64) -> [u8; 16] {
    let ticks = u64::try_from(micros).unwrap_or(0).saturating_mul(10);
    let ticks = ticks.saturating_add(GREGORIAN_TICKS);
    let [_, _, h0, h1, m0, m1, m2, m3] = (ticks >> 32).to_be_bytes();
    let [_, _, _, _, l0, l1, l2, l3] = ticks.to_be_bytes();
    let [u0, rest @ ..] = unique.to_be_bytes();
    let mut id = [0; 16];
    id[..4].copy_from_slice(&[l0, l1, l2, l3]);
    id[4..6].copy_from_slice(&[m2, m3]);
    id[6..8].copy_from_slice(&[0x10 | (m0 & 0x0f), m1]);
    id[8] = 0x80 | (u0 & 0x3f);
    id[9..].copy_from_slice(&rest);
    debug_assert_eq!((h0, h1), (0, 0), "the time fits 60 bits");
    id
}

#[cfg(test)]
mod tests {
    use super::super::value::hex;
    use super::*;

    #[test]
    fn timeuuids_are_of_their_time() {
        // 2026-11-29T12:00:00Z, in Python: uuid1 fields of that time.
        let id = hex(&timeuuid(0, 0x0102_0304_0506_0708));
        assert_eq!(id, "138140001dd211b28102030405060708");
    }
}
