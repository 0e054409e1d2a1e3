//! Writes down what a player is given.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use messina_core::target::Endpoint;
use messina_sim::node::{Cluster, ConnectionId, Listener, Options};
use messina_trace::log::{Hex, Log, Operation};
use messina_trace::player::Player;
use messina_trace::step;

/// How bytes are cut into pieces on their way to the player.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pieces {
    Whole,
    Bytes,
    Drawn,
}

/// A player, its far ends, and the steps so far.
pub(crate) struct Recorder {
    pub(crate) cluster: Cluster,
    pub(crate) pieces: Pieces,
    text: String,
    player: Player,
    log: Log,
    links: BTreeMap<u32, ConnectionId>,
    now: u64,
    draws: u64,
}

/// 2026 in microseconds.
const WALL: i64 = 1_790_000_000_000_000;

impl Recorder {
    /// The name and purpose of the trace, and its cluster.
    pub(crate) fn new(about: &str, options: Options) -> Self {
        let mut recorder = Self {
            cluster: Cluster::new(options),
            pieces: Pieces::Drawn,
            text: String::new(),
            player: Player::new(),
            log: Log::new(),
            links: BTreeMap::new(),
            now: 0,
            draws: 1,
        };
        for line in about.lines() {
            let _fits = writeln!(recorder.text, "# {}", line.trim());
        }
        recorder
    }

    /// A step.
    pub(crate) fn step(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        let step = step::parse(line);
        let step = step.unwrap_or_else(|error| panic!("{line}: {error}"));
        if let Some(step) = step {
            self.player.apply(&step, &mut self.log);
        }
    }

    /// A step, and all answers to what follows from it.
    pub(crate) fn ask(&mut self, line: &str) {
        self.step(line);
        self.settle();
    }

    /// Time passes, and what is due by then comes.
    pub(crate) fn pass(&mut self, micros: u64) {
        self.now += micros;
        self.step(&format!("at {}", self.now));
        self.settle();
    }

    /// A link to a node is opened.
    pub(crate) fn open(&mut self, link: u32, node: usize) {
        self.accept(link, node, Listener::Regular, None);
        self.ask(&format!("open {link}"));
    }

    /// Whether the node takes a connection.
    fn accept(&mut self, link: u32, node: usize, listener: Listener, port: Option<u16>) -> bool {
        let port = port.unwrap_or_else(|| 50_000 + u16::try_from(link).expect("few links"));
        let peer = format!("127.0.1.1:{port}").parse().unwrap();
        let wall = self.wall();
        let connection = self.cluster.accept(node, listener, peer, wall);
        self.links
            .extend(connection.map(|connection| (link, connection)));
        connection.is_some()
    }

    /// Carries bytes both ways, and opens what is to be opened, until nothing moves.
    pub(crate) fn settle(&mut self) {
        loop {
            let operations = self.log.take_operations();
            let mut moved = !operations.is_empty();
            for operation in operations {
                self.carry_out(operation);
            }
            let wall = self.wall();
            for (link, connection) in self.links.clone() {
                let bytes = self.cluster.take_output(connection, wall);
                moved |= !bytes.is_empty();
                self.arrive(link, &bytes);
                if self.cluster.is_closed(connection) && self.links.remove(&link).is_some() {
                    self.cluster.disconnect(connection);
                    self.step(&format!("end {link} closed"));
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn carry_out(&mut self, operation: Operation) {
        match operation {
            Operation::Write { link, bytes } => {
                if let Some(&connection) = self.links.get(&link) {
                    let wall = self.wall();
                    self.cluster.feed(connection, &bytes, wall);
                }
            }
            Operation::Connect {
                link,
                place,
                port,
                shard,
            } => {
                let port = port.or_else(|| {
                    let (shard, of) = shard?;
                    Some((40_000 + link * u32::from(of)) as u16 / of * of + shard)
                });
                let line = match self.find(&place) {
                    Some((node, listener)) if self.accept(link, node, listener, port) => "open",
                    _ => "end",
                };
                let why = if line == "end" { " refused" } else { "" };
                self.step(&format!("{line} {link}{why}"));
            }
            Operation::End { link } => {
                if let Some(connection) = self.links.remove(&link) {
                    self.cluster.disconnect(connection);
                }
            }
        }
    }

    /// The node at a place, and its listener.
    fn find(&self, place: &Endpoint) -> Option<(usize, Listener)> {
        let Endpoint::Addr(address) = place else {
            return None;
        };
        let options = self.cluster.options();
        let mut nodes = 0..self.cluster.node_count();
        let node = nodes.find(|node| options.address(*node) == address.ip())?;
        match address.port() {
            port if port == options.port => Some((node, Listener::Regular)),
            port if Some(port) == options.shard_aware_port => Some((node, Listener::ShardAware)),
            _ => None,
        }
    }

    /// Bytes come from the network, in pieces.
    pub(crate) fn arrive(&mut self, link: u32, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let len = match self.pieces {
                Pieces::Whole => bytes.len(),
                Pieces::Bytes => 1,
                Pieces::Drawn => self.draw_piece(),
            };
            let (piece, rest) = bytes.split_at(len.min(bytes.len()));
            self.step(&format!("< {link} {}", Hex(piece)));
            bytes = rest;
        }
    }

    /// Mostly whole packets, often the odd places around a header.
    fn draw_piece(&mut self) -> usize {
        self.draws = self
            .draws
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match (self.draws >> 33) % 8 {
            0 => 1,
            1 => 4,
            2 => 9,
            3 => 10,
            4 => 61,
            _ => 1460,
        }
    }

    fn wall(&self) -> i64 {
        WALL + i64::try_from(self.now).expect("minutes")
    }

    /// Settings that tell the player of the nodes.
    pub(crate) fn tell_nodes(&mut self) {
        let options = self.cluster.options().clone();
        for (at, node) in options.nodes.iter().enumerate() {
            let host_id = self.cluster.host_id(at).expect("it has one");
            let host_id = u128::from_be_bytes(host_id);
            let digits = format!("{host_id:032x}");
            let (a, rest) = digits.split_at(8);
            let (b, rest) = rest.split_at(4);
            let (c, rest) = rest.split_at(4);
            let (d, e) = rest.split_at(4);
            let address = options.address(at);
            let (dc, rack, shards) = (&node.datacenter, &node.rack, node.shards);
            let mut line = format!(
                "node {a}-{b}-{c}-{d}-{e} {address} {dc} {rack} {shards} {}",
                node.ignore_msb
            );
            for token in 0..4_i64 {
                let place = i64::try_from(at).expect("few") * 4 + token;
                let token = place.wrapping_mul(0x1234_5678_9abc_def1);
                let _fits = write!(line, " {token}");
            }
            self.step(&line);
        }
    }

    /// The whole trace.
    pub(crate) fn text(self) -> String {
        self.text
    }

    /// A link breaks; what was on its way is lost.
    pub(crate) fn lose(&mut self, link: u32, why: &str) {
        self.log.take_operations();
        if let Some(connection) = self.links.remove(&link) {
            self.cluster.disconnect(connection);
        }
        self.step(&format!("end {link} {why}"));
        self.settle();
    }

    /// The link of the last request is closed by the node behind these bytes.
    pub(crate) fn lose_last_behind(&mut self, digits: &str) {
        let mut writes = self.log.take_operations().into_iter().rev();
        let last = writes.find_map(|operation| match operation {
            Operation::Write { link, .. } => Some(link),
            _ => None,
        });
        let link = last.expect("a request");
        self.arrive(link, &bytes_of(digits));
        self.lose(link, "closed");
    }

    /// In place of the node's answer to the last request this frame comes, `SSSS` being its stream.
    pub(crate) fn answer_last_with(&mut self, frame: &str) {
        let mut writes = self.log.take_operations().into_iter().rev();
        let last = writes.find_map(|operation| match operation {
            Operation::Write { link, bytes } => Some((link, bytes)),
            _ => None,
        });
        let (link, bytes) = last.expect("a request");
        let stream = format!("{:02x}{:02x}", bytes[2], bytes[3]);
        self.arrive(link, &bytes_of(&frame.replace("SSSS", &stream)));
    }

    /// The stream id of the last request that went out.
    pub(crate) fn last_stream(&self) -> [u8; 2] {
        let last = self
            .log
            .as_str()
            .lines()
            .rev()
            .find(|line| line.starts_with("> "));
        let bytes = last.and_then(|line| line.split_whitespace().nth(2));
        let stream = bytes.and_then(|bytes| bytes.get(4..8)).unwrap_or("0000");
        u16::from_str_radix(stream, 16).unwrap_or(0).to_be_bytes()
    }

    /// What the player has put out, for whoever writes a scenario.
    pub(crate) fn log(&self) -> &str {
        self.log.as_str()
    }
}

/// Bytes of hexadecimal digits with spaces.
pub(crate) fn bytes_of(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).unwrap();
    digits.chunks(2).map(byte).collect()
}

// What all scenarios keep their rows in.
pub(crate) const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'dc1': 3} AND tablets = {'enabled': true, 'initial': 8}";
pub(crate) const TABLE: &str = "CREATE TABLE ks.t (k int PRIMARY KEY, v text, n bigint)";
pub(crate) const INSERT: &str = "INSERT INTO ks.t (k, v, n) VALUES (?, ?, ?)";
pub(crate) const SELECT: &str = "SELECT k, v, n FROM ks.t WHERE k = ?";
