//! One client connection as a node sees it: framing, stage, what was negotiated, pending output.
//!
//! Frames are cut here and nothing in them is understood. Errors found while cutting are fatal and
//! go out on stream 0; the rest of the protocol lives in `serve`.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use super::cluster::NodeEvent;
use super::codec::{Compression, HEADER_LEN, Header, Writer, opcode};
use super::error::CqlError;
use super::execute::SchemaChange;

/// Names a connection of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);

/// The kinds of port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Listener {
    /// The node chooses the shard.
    Regular,
    /// The source port chooses the shard.
    ShardAware,
    /// [`Regular`](Self::Regular), under TLS.
    RegularTls,
    /// [`ShardAware`](Self::ShardAware), under TLS.
    ShardAwareTls,
}

impl Listener {
    /// The same under TLS.
    #[must_use]
    pub const fn with_tls(self) -> Self {
        match self {
            Self::Regular | Self::RegularTls => Self::RegularTls,
            Self::ShardAware | Self::ShardAwareTls => Self::ShardAwareTls,
        }
    }

    pub(crate) const fn is_shard_aware(self) -> bool {
        matches!(self, Self::ShardAware | Self::ShardAwareTls)
    }
}

/// What the handshake of TLS agreed on, in the words of `system.clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTls {
    /// Such as `TLS1.3`.
    pub protocol: String,
    /// Such as `TLS_AES_256_GCM_SHA384`.
    pub cipher_suite: String,
}

impl ClientTls {
    /// A protocol and a cipher suite.
    pub fn new(protocol: impl Into<String>, cipher_suite: impl Into<String>) -> Self {
        Self {
            protocol: protocol.into(),
            cipher_suite: cipher_suite.into(),
        }
    }
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Initial,
    Authenticating,
    Ready,
}

/// What STARTUP switched on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) lwt_mark: bool,
    pub(crate) rate_limit: bool,
    pub(crate) metadata_id: bool,
    pub(crate) tablets_v1: bool,
    pub(crate) tablets_v2: bool,
}

/// Kinds of events to register for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Topology,
    Status,
    Schema,
    ClientRoutes,
}

impl EventKind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "TOPOLOGY_CHANGE" => Self::Topology,
            "STATUS_CHANGE" => Self::Status,
            "SCHEMA_CHANGE" => Self::Schema,
            "CLIENT_ROUTES_CHANGE" => Self::ClientRoutes,
            _ => return None,
        })
    }
}

/// The largest body of the very first frame.
const FIRST_BODY_MAX: u32 = 100_000;

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) node: usize,
    pub(crate) shard: u32,
    /// Port of the listener it came by.
    pub(crate) port: u16,
    pub(crate) peer: SocketAddr,
    pub(crate) stage: Stage,
    pub(crate) version: Option<u8>,
    pub(crate) compression: Option<Compression>,
    pub(crate) features: Features,
    pub(crate) keyspace: Option<String>,
    pub(crate) client_options: Vec<(String, String)>,
    pub(crate) username: Option<String>,
    pub(crate) tls: Option<ClientTls>,
    /// No more input is taken; the shell closes once the output is out.
    pub(crate) closing: bool,
    registered: Vec<EventKind>,
    input: Vec<u8>,
    /// Bytes at the front of `input` that were taken already.
    consumed: usize,
    frames_taken: u64,
    output: Vec<u8>,
    delayed: VecDeque<(i64, Vec<u8>)>,
    delay_micros: i64,
    now: i64,
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        node: usize,
        shard: u32,
        port: u16,
        peer: SocketAddr,
        now: i64,
    ) -> Self {
        Self {
            id,
            node,
            shard,
            port,
            peer,
            stage: Stage::Initial,
            version: None,
            compression: None,
            features: Features::default(),
            keyspace: None,
            client_options: Vec::new(),
            username: None,
            tls: None,
            closing: false,
            registered: Vec::new(),
            input: Vec::new(),
            consumed: 0,
            frames_taken: 0,
            output: Vec::new(),
            delayed: VecDeque::new(),
            delay_micros: 0,
            now,
        }
    }

    pub(crate) fn take_input(&mut self, bytes: &[u8]) {
        if !self.closing {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The next whole frame. Refuses what makes framing impossible and closes then.
    pub(crate) fn next_frame(&mut self, body_len_max: u32) -> Option<(Header, Vec<u8>)> {
        if self.closing {
            return None;
        }
        if let Some(first) = self.input.get(self.consumed) {
            self.check_version(*first)?;
        }
        let rest = self.input.get(self.consumed..)?;
        let header = Header::parse(rest.first_chunk::<HEADER_LEN>()?);
        if self.frames_taken == 0 && header.length > FIRST_BODY_MAX {
            let length = header.length;
            let text = format!("Initial message size too large ({length}), rejecting as invalid");
            self.close_with(&CqlError::Protocol(text));
            return None;
        }
        if header.length > body_len_max {
            self.refuse_size(header, body_len_max);
            return None;
        }
        let end = HEADER_LEN + header.length as usize;
        let body = rest.get(HEADER_LEN..end)?.to_vec();
        self.consumed += end;
        self.frames_taken += 1;
        Some((header, body))
    }

    /// Lets go of the bytes that were taken.
    pub(crate) fn compact(&mut self) {
        self.input.drain(..self.consumed.min(self.input.len()));
        self.consumed = 0;
    }

    /// The first byte decides for the whole life of the connection.
    fn check_version(&mut self, byte: u8) -> Option<()> {
        match self.version {
            Some(version) if version != byte => {
                self.close_with(&CqlError::Protocol(format!(
                    "Invalid message version. Got {byte} but previous messages on this connection \
                     had version {version}"
                )));
                None
            }
            Some(_) => Some(()),
            None if matches!(byte, 3 | 4) => {
                self.version = Some(byte);
                Some(())
            }
            None => {
                self.close_with(&CqlError::Protocol(format!(
                    "Invalid or unsupported protocol version: {byte}"
                )));
                None
            }
        }
    }

    fn refuse_size(&mut self, header: Header, body_len_max: u32) {
        let estimate = |length: u32| u64::from(length) * 2 + 8000;
        let error = CqlError::Invalid(format!(
            "request size too large (frame size {}; estimate {}; allowed {})",
            header.length,
            estimate(header.length),
            estimate(body_len_max)
        ));
        let mut body = Writer::default();
        error.put(
            &mut body,
            self.version_or_newest(),
            self.features.rate_limit,
        );
        self.push_frame(0, header.stream, opcode::ERROR, body.as_slice());
        self.end_input();
    }

    /// A fatal error: stream 0, never compressed, then the end.
    pub(crate) fn close_with(&mut self, error: &CqlError) {
        let mut body = Writer::default();
        error.put(
            &mut body,
            self.version_or_newest(),
            self.features.rate_limit,
        );
        self.push_frame(0, 0, opcode::ERROR, body.as_slice());
        self.end_input();
    }

    fn end_input(&mut self) {
        self.closing = true;
        self.input = Vec::new();
        self.consumed = 0;
    }

    /// The node died: nothing more goes out.
    pub(crate) fn kill(&mut self) {
        self.end_input();
        self.output.clear();
        self.delayed.clear();
    }

    pub(crate) fn version_or_newest(&self) -> u8 {
        self.version.unwrap_or(4)
    }

    /// Sets the time and the delay that output pushed from now on has.
    pub(crate) fn set_clock(&mut self, now: i64, delay_micros: i64) {
        self.now = now;
        self.delay_micros = delay_micros;
    }

    pub(crate) fn push_frame(&mut self, flags: u8, stream: i16, code: u8, body: &[u8]) {
        let version = self.version_or_newest();
        if self.delay_micros > 0 {
            let mut frame = Vec::new();
            Writer::frame(&mut frame, version, flags, stream, code, body);
            self.delayed
                .push_back((self.now.saturating_add(self.delay_micros), frame));
        } else {
            Writer::frame(&mut self.output, version, flags, stream, code, body);
        }
    }

    pub(crate) fn take_output(&mut self, now: i64) -> Vec<u8> {
        let mut out = core::mem::take(&mut self.output);
        self.delayed.retain(|(due, frame)| {
            let wait = *due > now;
            if !wait {
                out.extend_from_slice(frame);
            }
            wait
        });
        out
    }

    /// Whether anything was held back that now is not.
    pub(crate) fn let_go(&mut self, now: i64) -> bool {
        for (due, _) in &mut self.delayed {
            *due = now;
        }
        !self.delayed.is_empty()
    }

    pub(crate) fn next_output_at(&self) -> Option<i64> {
        self.delayed.iter().map(|(due, _)| *due).min()
    }

    pub(crate) fn register(&mut self, kind: EventKind) {
        if !self.registered.contains(&kind) {
            self.registered.push(kind);
        }
    }

    pub(crate) fn is_registered(&self, kind: EventKind) -> bool {
        !self.closing && self.registered.contains(&kind)
    }

    pub(crate) fn push_event(&mut self, body: &Writer) {
        let delay = core::mem::take(&mut self.delay_micros);
        self.push_frame(0, -1, opcode::EVENT, body.as_slice());
        self.delay_micros = delay;
    }

    /// An event about the node at `address`, with the port of the subscriber's listener.
    pub(crate) fn push_node_event(&mut self, event: NodeEvent, address: IpAddr) {
        let (name, change) = match event {
            NodeEvent::Up => ("STATUS_CHANGE", "UP"),
            NodeEvent::Down => ("STATUS_CHANGE", "DOWN"),
            NodeEvent::New => ("TOPOLOGY_CHANGE", "NEW_NODE"),
            NodeEvent::Removed => ("TOPOLOGY_CHANGE", "REMOVED_NODE"),
        };
        let mut body = Writer::default();
        body.string(name);
        body.string(change);
        match address {
            IpAddr::V4(address) => {
                body.byte(4);
                body.raw(&address.octets());
            }
            IpAddr::V6(address) => {
                body.byte(16);
                body.raw(&address.octets());
            }
        }
        body.int(i32::from(self.port));
        self.push_event(&body);
    }

    pub(crate) fn push_schema_event(&mut self, change: &SchemaChange) {
        let mut body = Writer::default();
        body.string("SCHEMA_CHANGE");
        super::reply::put_schema_change(&mut body, change);
        self.push_event(&body);
    }
}

#[cfg(test)]
mod tests {
    use super::super::execute::{Target, Verb};
    use super::super::value::hex;
    use super::*;

    fn connection(port: u16) -> Connection {
        let peer = "127.0.0.1:5000".parse().unwrap();
        Connection::new(ConnectionId(1), 0, 0, port, peer, 0)
    }

    #[test]
    fn unsupported_versions_are_refused_on_stream_zero() {
        for byte in (0..=255).filter(|byte| !matches!(byte, 3 | 4)) {
            let mut connection = connection(9042);
            connection.take_input(&[byte]);
            assert!(connection.next_frame(1000).is_none());
            assert!(connection.closing);
            let text = format!("Invalid or unsupported protocol version: {byte}");
            let mut expected = vec![0x84, 0, 0, 0, 0, 0, 0, 0];
            expected.push(u8::try_from(text.len() + 6).unwrap());
            expected.extend_from_slice(&[0, 0, 0, 0x0a, 0]);
            expected.push(u8::try_from(text.len()).unwrap());
            expected.extend_from_slice(text.as_bytes());
            assert_eq!(connection.take_output(0), expected);
        }
    }

    #[test]
    fn a_version_change_and_a_large_first_frame_close() {
        let mut changed = connection(9042);
        changed.take_input(&[4, 0, 0, 1, 5, 0, 0, 0, 0, 3]);
        assert!(changed.next_frame(1000).is_some());
        assert!(changed.next_frame(1000).is_none() && changed.closing);

        let mut large = connection(9042);
        large.take_input(&[4, 0, 0, 1, 5, 0, 1, 0x86, 0xa1]);
        assert!(large.next_frame(u32::MAX).is_none() && large.closing);
        assert!(large.take_output(0).starts_with(&[0x84, 0, 0, 0, 0]));
    }

    #[test]
    fn event_frames_are_those_of_the_documents() {
        let mut first = connection(9042);
        first.push_node_event(NodeEvent::New, "127.0.0.2".parse().unwrap());
        assert_eq!(
            hex(&first.take_output(0)),
            "8400ffff0c00000024000f544f504f4c4f47595f4348414e474500084e45575f4e4f4445047f0000020000\
             2352"
        );
        let mut second = connection(19042);
        second.push_node_event(NodeEvent::Down, "2001:db8::1".parse().unwrap());
        assert_eq!(
            hex(&second.take_output(0)),
            "8400ffff0c0000002a000d5354415455535f4348414e47450004444f574e1020010db80000000000000000\
             0000000100004a62"
        );
        let change = |verb, target| SchemaChange {
            verb,
            keyspace: "ks".into(),
            target,
        };
        first.push_schema_event(&change(Verb::Updated, Target::Table("t".into())));
        assert_eq!(
            hex(&first.take_output(0)),
            "8400ffff0c00000026000d534348454d415f4348414e47450007555044415445440005\
             5441424c4500026b73000174"
        );
        first.push_schema_event(&change(Verb::Created, Target::Keyspace));
        assert_eq!(
            hex(&first.take_output(0)),
            "8400ffff0c00000026000d534348454d415f4348414e4745000743524541544544\
             00084b4559535041434500026b73"
        );
    }
}
