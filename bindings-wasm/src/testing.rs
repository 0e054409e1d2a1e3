//! A shell for tests, whose sockets lead into a simulated cluster: what it says and is told. Both instances,
//! the whole one and the small one, serve it.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use messina_sim::node::{Cluster, ConnectionId, Listener, Options};

use crate::message::ResultBits;
use crate::options::RunOptions;
use crate::outbox::NONE;

/// What both instances do alike.
pub(crate) trait Module {
    fn new() -> Self;
    fn input(&mut self, len: usize) -> &mut [u8];
    fn incoming(&mut self, len: usize) -> &mut [u8];
    fn tick(&mut self, now: f64, wall: f64);
    fn start(&mut self, len: usize, seed: u64) -> u32;
    fn prepare(&mut self, len: usize) -> u32;
    fn query(&mut self, len: usize, options: RunOptions) -> u32;
    fn execute(&mut self, len: usize, statement: u32, count: u16, options: RunOptions) -> u32;
    fn batch(&mut self, len: usize, kind: u32, options: RunOptions) -> u32;
    fn release(&mut self, statement: u32);
    fn cancel(&mut self, request: u32);
    fn close(&mut self) -> u32;
    fn handle_opened(&mut self, link: u32);
    fn handle_failed(&mut self, link: u32, reason: usize);
    fn handle_closed(&mut self, link: u32);
    fn handle_sent(&mut self, link: u32, len: usize) -> bool;
    fn feed(&mut self, link: u32);
    fn outputs(&mut self) -> &[u8];
    fn outputs_len(&self) -> usize;
}

macro_rules! module {
    ($instance:ty) => {
        impl Module for $instance {
            fn new() -> Self {
                Self::new()
            }

            fn input(&mut self, len: usize) -> &mut [u8] {
                Self::input(self, len)
            }

            fn incoming(&mut self, len: usize) -> &mut [u8] {
                Self::incoming(self, len)
            }

            fn tick(&mut self, now: f64, wall: f64) {
                Self::tick(self, now, wall)
            }

            fn start(&mut self, len: usize, seed: u64) -> u32 {
                Self::start(self, len, seed)
            }

            fn prepare(&mut self, len: usize) -> u32 {
                Self::prepare(self, len)
            }

            fn query(&mut self, len: usize, options: RunOptions) -> u32 {
                Self::query(self, len, options)
            }

            fn execute(
                &mut self,
                len: usize,
                statement: u32,
                count: u16,
                options: RunOptions,
            ) -> u32 {
                Self::execute(self, len, statement, count, options)
            }

            fn batch(&mut self, len: usize, kind: u32, options: RunOptions) -> u32 {
                Self::batch(self, len, kind, options)
            }

            fn release(&mut self, statement: u32) {
                Self::release(self, statement)
            }

            fn cancel(&mut self, request: u32) {
                Self::cancel(self, request)
            }

            fn close(&mut self) -> u32 {
                Self::close(self)
            }

            fn handle_opened(&mut self, link: u32) {
                Self::handle_opened(self, link)
            }

            fn handle_failed(&mut self, link: u32, reason: usize) {
                Self::handle_failed(self, link, reason)
            }

            fn handle_closed(&mut self, link: u32) {
                Self::handle_closed(self, link)
            }

            fn handle_sent(&mut self, link: u32, len: usize) -> bool {
                Self::handle_sent(self, link, len)
            }

            fn feed(&mut self, link: u32) {
                Self::feed(self, link)
            }

            fn outputs(&mut self) -> &[u8] {
                Self::outputs(self)
            }

            fn outputs_len(&self) -> usize {
                Self::outputs_len(self)
            }
        }
    };
}

module!(crate::instance::Instance);

/// Reads what the module tells, as `js/module.ts` does.
pub(crate) struct Reader(pub(crate) Vec<u8>, pub(crate) usize);

impl Reader {
    pub(crate) fn take(&mut self, len: usize) -> &[u8] {
        let at = self.1;
        self.1 += len.next_multiple_of(4);
        &self.0[at..at + len]
    }

    pub(crate) fn word(&mut self) -> u32 {
        assert_eq!(self.1 % 4, 0, "words are aligned");
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    pub(crate) fn maybe(&mut self) -> Option<u32> {
        Some(self.word()).filter(|word| *word != NONE)
    }

    pub(crate) fn number(&mut self) -> f64 {
        f64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn long(&mut self) -> i64 {
        i64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let len = self.word() as usize;
        self.take(len).to_vec()
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn list<T>(&mut self, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.word()).map(|_| read(self)).collect()
    }

    pub(crate) fn columns(&mut self) -> Vec<(String, String)> {
        self.list(|reader| (reader.text(), reader.text()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.1 == self.0.len()
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Done,
    Prepared {
        number: u32,
        bits: u32,
        markers: Vec<(String, String)>,
    },
    Result(Told),
    Failed {
        kind: String,
        code: u32,
        bits: u32,
        host: Option<String>,
        attempts: u32,
        message: String,
        facts: Vec<(String, String)>,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) bits: u32,
    pub(crate) host: String,
    pub(crate) shard: Option<u32>,
    pub(crate) columns: Option<Vec<(String, String)>>,
    pub(crate) paging_state: Vec<u8>,
    pub(crate) warnings: Vec<String>,
    pub(crate) rows: u32,
    /// Of all rows, in order.
    pub(crate) cells: Vec<Option<Vec<u8>>>,
}

impl Told {
    pub(crate) fn has(&self, bit: u32) -> bool {
        self.bits & bit != 0
    }
}

/// A shell whose sockets lead into a simulated cluster.
pub(crate) struct Shell<M> {
    pub(crate) instance: M,
    pub(crate) cluster: Cluster,
    pub(crate) links: BTreeMap<u32, ConnectionId>,
    pub(crate) nodes: BTreeMap<u32, String>,
    pub(crate) ended: BTreeMap<u32, Ended>,
    /// Host, wished shard and number of shards of each link.
    pub(crate) asked: Vec<(String, Option<u32>, u32)>,
    pub(crate) now: f64,
    /// The next tick that the instance wants.
    pub(crate) due: f64,
    /// Bytes that come at once.
    pub(crate) piece: usize,
    /// What was sent, where a test plays the node.
    pub(crate) script: Option<Vec<u8>>,
}

impl<M: Module> Shell<M> {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            instance: M::new(),
            cluster: Cluster::new(options),
            links: BTreeMap::new(),
            nodes: BTreeMap::new(),
            ended: BTreeMap::new(),
            asked: Vec::new(),
            now: 1.0,
            due: 0.0,
            piece: usize::MAX,
            script: None,
        }
    }

    /// A session with these settings; how the start ended.
    pub(crate) fn start(&mut self, settings: &[(&str, &[u8])]) -> Ended {
        let request = self.begin(settings);
        self.end_of(request)
    }

    /// Asks for a session.
    pub(crate) fn begin(&mut self, settings: &[(&str, &[u8])]) -> u32 {
        let input: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value])
            .flat_map(|part| {
                let len = u32::try_from(part.len()).unwrap().to_le_bytes();
                [&len[..], part].concat()
            })
            .collect();
        let len = self.input(&input);
        self.instance.start(len, 7)
    }

    pub(crate) fn input(&mut self, bytes: &[u8]) -> usize {
        self.instance.tick(self.now, 1e12);
        let room = self.instance.input(bytes.len());
        room[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    /// Runs until a request has ended, for a minute at most.
    pub(crate) fn end_of(&mut self, request: u32) -> Ended {
        for _ in 0..6_000 {
            self.turn();
            if let Some(ended) = self.ended.remove(&request) {
                return ended;
            }
            self.now += 10.0;
            self.instance.tick(self.now, 1e12);
        }
        panic!("request {request} never ends");
    }

    /// What the shell is told now is done; whether that was nothing.
    pub(crate) fn step(&mut self) -> bool {
        let told = self.instance.outputs().to_vec();
        assert_eq!(told.len(), self.instance.outputs_len());
        let mut reader = Reader(told, 0);
        self.due = reader.number();
        let is_quiet = reader.is_empty();
        while !reader.is_empty() {
            self.carry_out(&mut reader);
        }
        is_quiet
    }

    /// These bytes came. Pieces are told one by one.
    pub(crate) fn feed(&mut self, link: u32, bytes: &[u8]) {
        self.instance.tick(self.now, 1e12);
        let room = self.instance.incoming(bytes.len());
        room.copy_from_slice(bytes);
        self.instance.feed(link);
        if self.piece < usize::MAX {
            self.step();
        }
    }

    pub(crate) fn turn(&mut self) {
        for _ in 0..100 {
            let is_quiet = self.step();
            let micros = (self.now * 1000.0) as i64;
            let open: Vec<_> = self.links.iter().map(|(&link, &id)| (link, id)).collect();
            let mut has_fed = false;
            for (link, id) in open {
                let bytes = self.cluster.take_output(id, micros);
                has_fed |= !bytes.is_empty();
                for piece in bytes.chunks(self.piece) {
                    self.feed(link, piece);
                }
                if self.cluster.is_closed(id) {
                    self.cluster.disconnect(id);
                    self.instance.handle_closed(link);
                    has_fed = true;
                }
            }
            if is_quiet && !has_fed {
                return;
            }
        }
    }

    pub(crate) fn carry_out(&mut self, reader: &mut Reader) {
        let (what, number) = (reader.word(), reader.word());
        let micros = (self.now * 1000.0) as i64;
        let ended = match what {
            1 => {
                let (host, port) = (reader.text(), reader.word());
                let (shard, of, source) = (reader.maybe(), reader.word(), reader.word());
                self.asked.push((host.clone(), shard, of));
                assert_eq!(source, 0, "no port was to be bound");
                if self.script.is_some() {
                    return self.instance.handle_opened(number);
                }
                let wished = shard.map_or(0, |shard| 40_000 / of * of + shard);
                let peer = SocketAddr::new([127, 0, 0, 9].into(), u16::try_from(wished).unwrap());
                let options = self.cluster.options();
                let node = (0..options.nodes.len())
                    .find(|node| options.address(*node).to_string() == host);
                let listener = match u32::from(options.port) == port {
                    true => Listener::Regular,
                    false => Listener::ShardAware,
                };
                match node.and_then(|node| self.cluster.accept(node, listener, peer, micros)) {
                    Some(id) => {
                        self.links.insert(number, id);
                        self.instance.handle_opened(number);
                    }
                    None => self.instance.handle_failed(number, 2),
                }
                return;
            }
            2 => {
                let bytes = reader.bytes();
                if let Some(id) = self.links.get(&number) {
                    self.cluster.feed(*id, &bytes, micros);
                }
                if let Some(script) = &mut self.script {
                    script.extend(&bytes);
                }
                self.instance.handle_sent(number, bytes.len());
                return;
            }
            3 | 4 => {
                if let Some(id) = self.links.remove(&number) {
                    self.cluster.disconnect(id);
                }
                return;
            }
            5 => Ended::Done,
            6 => Ended::Prepared {
                number: reader.word(),
                bits: reader.word(),
                markers: reader.columns(),
            },
            7 => Ended::Result(self.result(reader)),
            8 => self.failure(reader),
            9 => {
                self.nodes.insert(number, reader.text());
                return;
            }
            _ => panic!("output {what}"),
        };
        assert_eq!(self.ended.insert(number, ended), None, "ended twice");
    }

    pub(crate) fn result(&self, reader: &mut Reader) -> Told {
        let bits = reader.word();
        let mut told = Told {
            bits,
            host: self.nodes[&reader.word()].clone(),
            shard: reader.maybe(),
            ..Told::default()
        };
        reader.maybe();
        told.columns = told.has(ResultBits::COLUMNS).then(|| reader.columns());
        if told.has(ResultBits::PAGING) {
            told.paging_state = reader.bytes();
        }
        if told.has(ResultBits::WARNINGS) {
            told.warnings = reader.list(Reader::text);
        }
        if told.has(ResultBits::TRACED) {
            assert_eq!(reader.bytes().len(), 16);
        }
        if told.has(ResultBits::ROWS) {
            told.rows = reader.word();
            let cells = reader.bytes();
            let mut rest = &cells[..];
            while let Some((len, after)) = rest.split_first_chunk() {
                let len = usize::try_from(i32::from_be_bytes(*len)).ok();
                let (cell, after) = after.split_at(len.unwrap_or_default());
                told.cells.push(len.map(|_| cell.to_vec()));
                rest = after;
            }
        }
        told
    }

    pub(crate) fn failure(&self, reader: &mut Reader) -> Ended {
        let (kind, code, bits) = (reader.text(), reader.word(), reader.word());
        let host = reader.maybe().map(|node| self.nodes[&node].clone());
        reader.maybe();
        let (attempts, message) = (reader.word(), reader.text());
        let facts = reader.list(|reader| {
            let (name, tag) = (reader.text(), reader.word());
            let value = match tag {
                0 => reader.word().cast_signed().to_string(),
                1 => reader.text(),
                _ => (reader.word() == 1).to_string(),
            };
            (name, value)
        });
        Ended::Failed {
            kind,
            code,
            bits,
            host,
            attempts,
            message,
            facts,
        }
    }

    pub(crate) fn query(&mut self, text: &str) -> Ended {
        let request = self.ask(text, RunOptions::default());
        self.end_of(request)
    }

    /// A query under way.
    pub(crate) fn ask(&mut self, text: &str, options: RunOptions) -> u32 {
        let len = self.input(text.as_bytes());
        self.instance.query(len, options)
    }

    pub(crate) fn rows(&mut self, text: &str) -> Told {
        match self.query(text) {
            Ended::Result(told) => told,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn prepare(&mut self, text: &str) -> u32 {
        let len = self.input(text.as_bytes());
        let request = self.instance.prepare(len);
        match self.end_of(request) {
            Ended::Prepared { number, .. } => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn execute(
        &mut self,
        statement: u32,
        values: &[Option<&[u8]>],
        options: RunOptions,
    ) -> Ended {
        let len = self.input(&encoded(values));
        let count = u16::try_from(values.len()).unwrap();
        let request = self.instance.execute(len, statement, count, options);
        self.end_of(request)
    }
}

pub(crate) fn encoded(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let len = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
        bytes.extend(len.to_be_bytes());
        bytes.extend(value.unwrap_or_default());
    }
    bytes
}

/// One statement of a batch.
pub(crate) fn part(statement: u32, count: u32, bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    let mut part: Vec<u8> = [statement, count, len]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    part.extend(bytes);
    part.resize(part.len().next_multiple_of(4), 0);
    part
}

/// A session on three nodes of two shards, with a table.
pub(crate) fn begun<M: Module>(routing: &str) -> Shell<M> {
    let mut shell = Shell::new(Options::uniform(3, 2));
    let contact = shell.cluster.options().address(0).to_string();
    let settings = [
        ("contactPoints", contact.as_bytes()),
        ("routing", routing.as_bytes()),
        ("relay", b"cql"),
        ("consistency", b"ONE"),
    ];
    assert_eq!(shell.start(&settings), Ended::Done);
    shell.rows("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'initial': 8}");
    shell.rows("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    shell
}
