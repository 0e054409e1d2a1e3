//! A client in a few lines: frames by hand, bytes in and bytes out of a simulated cluster.

use core::net::SocketAddr;

use messina_sim::node::{Cluster, ConnectionId, Listener, Options, TabletsMode};

pub(crate) const QUERY: u8 = 0x07;
pub(crate) const PREPARE: u8 = 0x09;
pub(crate) const EXECUTE: u8 = 0x0A;
pub(crate) const BATCH: u8 = 0x0D;
pub(crate) const RESULT: u8 = 0x08;
pub(crate) const ERROR: u8 = 0x00;
pub(crate) const EVENT: u8 = 0x0C;

/// A moment far enough from zero for any timestamp: 2026 in microseconds.
pub(crate) const NOW: i64 = 1_790_000_000_000_000;

pub(crate) const V1: &str = "TABLETS_ROUTING_V1";
pub(crate) const V2: &str = "TABLETS_ROUTING_V2_EXPERIMENTAL";

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) version: u8,
    pub(crate) flags: u8,
    pub(crate) stream: i16,
    pub(crate) opcode: u8,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    /// Error code and message of an ERROR.
    pub(crate) fn error(&self) -> (u32, String) {
        assert_eq!(self.opcode, ERROR, "{self:?}");
        let code = u32::from_be_bytes(self.body[..4].try_into().unwrap());
        let len = usize::from(u16::from_be_bytes(self.body[4..6].try_into().unwrap()));
        (
            code,
            String::from_utf8(self.body[6..6 + len].to_vec()).unwrap(),
        )
    }

    /// Key and value of the custom payload, and the message after it.
    pub(crate) fn payload(&self) -> (Option<(String, Vec<u8>)>, &[u8]) {
        if self.flags & 4 == 0 {
            return (None, &self.body);
        }
        let mut take = Take(&self.body);
        assert_eq!(take.short(), 1);
        let key = take.string();
        let len = take.int();
        let value = take.bytes(usize::try_from(len).unwrap()).to_vec();
        (Some((key, value)), take.0)
    }

    /// Values of a ROWS result.
    pub(crate) fn rows(&self) -> Rows {
        assert_eq!(self.opcode, RESULT, "{:?}", self.error());
        let (_, body) = self.payload();
        let mut take = Take(body);
        assert_eq!(take.int(), 2, "ROWS");
        let flags = take.int();
        let columns = usize::try_from(take.int()).unwrap();
        let state = (flags & 2 != 0).then(|| take.value().unwrap());
        if flags & 8 != 0 {
            let len = usize::from(take.short());
            take.bytes(len);
        }
        if flags & 4 == 0 {
            take.string();
            take.string();
            for _ in 0..columns {
                take.string();
                take.option();
            }
        }
        let count = take.int();
        let rows = (0..count)
            .map(|_| (0..columns).map(|_| take.value()).collect())
            .collect();
        assert!(take.0.is_empty());
        Rows { flags, state, rows }
    }
}

/// A decoded ROWS result.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) flags: i32,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Rows {
    /// One column of ints.
    pub(crate) fn ints(&self, column: usize) -> Vec<i32> {
        let int = |row: &Vec<Option<Vec<u8>>>| {
            i32::from_be_bytes(row[column].clone().expect("not null").try_into().unwrap())
        };
        self.rows.iter().map(int).collect()
    }

    /// One column of texts.
    pub(crate) fn texts(&self, column: usize) -> Vec<String> {
        let text = |row: &Vec<Option<Vec<u8>>>| {
            String::from_utf8(row[column].clone().unwrap_or_default()).unwrap()
        };
        self.rows.iter().map(text).collect()
    }
}

/// A cursor that panics on nonsense, for tests.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        head
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().unwrap())
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    pub(crate) fn string(&mut self) -> String {
        let len = usize::from(self.short());
        String::from_utf8(self.bytes(len).to_vec()).unwrap()
    }

    pub(crate) fn value(&mut self) -> Option<Vec<u8>> {
        let len = self.int();
        usize::try_from(len)
            .ok()
            .map(|len| self.bytes(len).to_vec())
    }

    fn option(&mut self) {
        match self.short() {
            0x20 | 0x22 => self.option(),
            0x21 => {
                self.option();
                self.option();
            }
            0x00 => drop(self.string()),
            0x30 => {
                self.string();
                self.string();
                for _ in 0..self.short() {
                    self.string();
                    self.option();
                }
            }
            0x31 => (0..self.short()).for_each(|_| self.option()),
            _ => {}
        }
    }
}

/// A cluster and its clients.
pub(crate) struct Sim {
    pub(crate) cluster: Cluster,
    pub(crate) now: i64,
}

impl Sim {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            cluster: Cluster::new(options),
            now: NOW,
        }
    }

    /// Three nodes of two shards, on which keyspaces `ks` (tablets, eventual), `sc` (strong) and
    /// `vn` (vnodes) each have a table `t (pk int PRIMARY KEY, v text)`.
    pub(crate) fn with_tables(mode: TabletsMode) -> Self {
        let mut sim = Self::new(Options::uniform(3, 2).with_tablets(mode));
        let admin = sim.connect(0, 0, &[]);
        let topology = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 2}";
        for (keyspace, more) in [
            ("ks", ""),
            ("sc", " AND consistency = 'global'"),
            ("vn", " AND tablets = {'enabled': false}"),
        ] {
            let create = format!("CREATE KEYSPACE {keyspace} WITH replication = {topology}{more}");
            sim.ok(admin, &create);
            sim.ok(
                admin,
                &format!("CREATE TABLE {keyspace}.t (pk int PRIMARY KEY, v text)"),
            );
        }
        sim
    }

    /// A raw connection on a shard.
    pub(crate) fn open(&mut self, node: usize, shard: u16) -> ConnectionId {
        let shards = u16::try_from(self.cluster.options().nodes[node].shards).unwrap();
        let port = 49152 - 49152 % shards + shards + shard;
        let peer = SocketAddr::new([10, 0, 0, 1].into(), port);
        self.cluster
            .accept(node, Listener::ShardAware, peer, self.now)
            .expect("accepted")
    }

    /// A ready connection that negotiated `keys`.
    pub(crate) fn connect(&mut self, node: usize, shard: u16, keys: &[&str]) -> ConnectionId {
        let id = self.open(node, shard);
        let mut body = u16::try_from(keys.len()).unwrap().to_be_bytes().to_vec();
        for key in keys {
            body.extend(string(key));
            body.extend(string(""));
        }
        let reply = self.ask(id, 1, &body);
        assert_eq!(reply.opcode, 2, "READY");
        id
    }

    pub(crate) fn feed(&mut self, id: ConnectionId, bytes: &[u8]) -> Vec<u8> {
        self.cluster.feed(id, bytes, self.now);
        self.cluster.take_output(id, self.now)
    }

    /// Sends one request frame on stream 1 and takes the one reply (events set aside).
    pub(crate) fn ask(&mut self, id: ConnectionId, opcode: u8, body: &[u8]) -> Frame {
        let bytes = self.feed(id, &frame(4, 0, 1, opcode, body));
        let mut replies: Vec<Frame> = frames(&bytes)
            .into_iter()
            .filter(|frame| frame.opcode != EVENT)
            .collect();
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies.remove(0)
    }

    pub(crate) fn query(&mut self, id: ConnectionId, text: &str) -> Frame {
        self.ask(id, QUERY, &query(text, &parameters(LOCAL_QUORUM, &[])))
    }

    /// A statement that must succeed.
    pub(crate) fn ok(&mut self, id: ConnectionId, text: &str) -> Frame {
        let reply = self.query(id, text);
        assert_eq!(reply.opcode, RESULT, "{text}: {:?}", reply.error());
        reply
    }

    /// A cluster with tables, and a connection to it.
    pub(crate) fn admin() -> (Self, ConnectionId) {
        let mut sim = Self::with_tables(TabletsMode::V2);
        let id = sim.connect(0, 0, &[]);
        (sim, id)
    }

    /// The first value of the one row that a SELECT finds, in hexadecimal.
    pub(crate) fn value(&mut self, id: ConnectionId, text: &str) -> Option<String> {
        let rows = self.ok(id, text).rows().rows;
        assert_eq!(rows.len(), 1, "{text}");
        rows[0][0].as_deref().map(hex)
    }

    /// The code of the error that a statement must give.
    pub(crate) fn refused(&mut self, id: ConnectionId, text: &str) -> u32 {
        let reply = self.query(id, text);
        assert_eq!(reply.opcode, ERROR, "{text}");
        reply.error().0
    }

    /// The id of a prepared statement.
    pub(crate) fn prepare(&mut self, id: ConnectionId, text: &str) -> Vec<u8> {
        let reply = self.ask(id, PREPARE, &long_string(text));
        assert_eq!(reply.opcode, RESULT, "{text}: {:?}", reply.error());
        reply.body[6..22].to_vec()
    }
}

pub(crate) const ONE: u16 = 1;
pub(crate) const ALL: u16 = 5;
pub(crate) const LOCAL_QUORUM: u16 = 6;

/// `<query_parameters>` with values only.
pub(crate) fn parameters(consistency: u16, values: &[&[u8]]) -> Vec<u8> {
    let mut out = consistency.to_be_bytes().to_vec();
    if values.is_empty() {
        out.push(0);
        return out;
    }
    out.push(1);
    out.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
    for value in values {
        out.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        out.extend(*value);
    }
    out
}

/// `<query_parameters>` with a value per text: hexadecimal, `null` or `unset`.
pub(crate) fn bound(consistency: u16, values: &[&str]) -> Vec<u8> {
    let mut out = consistency.to_be_bytes().to_vec();
    out.push(1);
    out.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
    for value in values {
        match *value {
            "null" => out.extend((-1i32).to_be_bytes()),
            "unset" => out.extend((-2i32).to_be_bytes()),
            text => {
                let bytes = unhex(text);
                out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                out.extend(bytes);
            }
        }
    }
    out
}

pub(crate) fn query(text: &str, parameters: &[u8]) -> Vec<u8> {
    [long_string(text), parameters.to_vec()].concat()
}

/// An EXECUTE body without metadata id.
pub(crate) fn execute(id: &[u8], parameters: &[u8], block: Option<u8>) -> Vec<u8> {
    let mut out = vec![0, 16];
    out.extend(id);
    out.extend(parameters);
    out.extend(block);
    out
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    let mut out = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}

pub(crate) fn long_string(text: &str) -> Vec<u8> {
    let mut out = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}

pub(crate) fn frame(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version, flags];
    out.extend(stream.to_be_bytes());
    out.push(opcode);
    out.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    out.extend(body);
    out
}

/// Cuts whole frames; anything left over is a failure.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let len = usize::try_from(u32::from_be_bytes(bytes[5..9].try_into().unwrap())).unwrap();
        out.push(Frame {
            version: bytes[0],
            flags: bytes[1],
            stream: i16::from_be_bytes([bytes[2], bytes[3]]),
            opcode: bytes[4],
            body: bytes[9..9 + len].to_vec(),
        });
        bytes = &bytes[9 + len..];
    }
    out
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).expect("hexadecimal")).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Hexadecimal without the spaces that make it readable.
pub(crate) fn compact(text: &str) -> String {
    text.replace(' ', "")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
