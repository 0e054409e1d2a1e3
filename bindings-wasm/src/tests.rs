//! The whole module on the host, against a simulated cluster: what the shell says and is told.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use messina_sim::node::{Cluster, ConnectionId, CqlError, Credentials, Listener, Options};

use crate::instance::Instance;
use crate::options::RunOptions;
use crate::outbox::NONE;
use crate::result::ResultBits;

/// Reads what the module tells, as `js/module.ts` does.
struct Reader(Vec<u8>, usize);

impl Reader {
    fn take(&mut self, len: usize) -> &[u8] {
        let at = self.1;
        self.1 += len.next_multiple_of(4);
        &self.0[at..at + len]
    }

    fn word(&mut self) -> u32 {
        assert_eq!(self.1 % 4, 0, "words are aligned");
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn maybe(&mut self) -> Option<u32> {
        Some(self.word()).filter(|word| *word != NONE)
    }

    fn number(&mut self) -> f64 {
        f64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn long(&mut self) -> i64 {
        i64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.word() as usize;
        self.take(len).to_vec()
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.word()).map(|_| read(self)).collect()
    }

    fn columns(&mut self) -> Vec<(String, String)> {
        self.list(|reader| (reader.text(), reader.text()))
    }

    fn is_empty(&self) -> bool {
        self.1 == self.0.len()
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
enum Ended {
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
struct Told {
    bits: u32,
    host: String,
    shard: Option<u32>,
    columns: Option<Vec<(String, String)>>,
    paging_state: Vec<u8>,
    warnings: Vec<String>,
    rows: u32,
    /// Of all rows, in order.
    cells: Vec<Option<Vec<u8>>>,
}

impl Told {
    fn has(&self, bit: u32) -> bool {
        self.bits & bit != 0
    }
}

/// A shell whose sockets lead into a simulated cluster.
struct Shell {
    instance: Instance,
    cluster: Cluster,
    links: BTreeMap<u32, ConnectionId>,
    nodes: BTreeMap<u32, String>,
    ended: BTreeMap<u32, Ended>,
    /// Host, wished shard and number of shards of each link.
    asked: Vec<(String, Option<u32>, u32)>,
    now: f64,
}

impl Shell {
    fn new(options: Options) -> Self {
        Self {
            instance: Instance::new(),
            cluster: Cluster::new(options),
            links: BTreeMap::new(),
            nodes: BTreeMap::new(),
            ended: BTreeMap::new(),
            asked: Vec::new(),
            now: 1.0,
        }
    }

    /// A session with these settings; how the start ended.
    fn start(&mut self, settings: &[(&str, &[u8])]) -> Ended {
        let input: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value])
            .flat_map(|part| {
                let len = u32::try_from(part.len()).unwrap().to_le_bytes();
                [&len[..], part].concat()
            })
            .collect();
        let len = self.input(&input);
        let request = self.instance.start(len, 7);
        self.end_of(request)
    }

    fn input(&mut self, bytes: &[u8]) -> usize {
        self.instance.tick(self.now, 1e12);
        let room = self.instance.input(bytes.len());
        room[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    /// Runs until a request has ended, for a minute at most.
    fn end_of(&mut self, request: u32) -> Ended {
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

    fn turn(&mut self) {
        for _ in 0..100 {
            let told = self.instance.outputs().to_vec();
            assert_eq!(told.len(), self.instance.outputs_len());
            let mut reader = Reader(told, 0);
            reader.number();
            let is_quiet = reader.is_empty();
            while !reader.is_empty() {
                self.carry_out(&mut reader);
            }
            let micros = (self.now * 1000.0) as i64;
            let open: Vec<_> = self.links.iter().map(|(&link, &id)| (link, id)).collect();
            let mut has_fed = false;
            for (link, id) in open {
                let bytes = self.cluster.take_output(id, micros);
                if !bytes.is_empty() {
                    self.instance.tick(self.now, 1e12);
                    let room = self.instance.incoming(bytes.len());
                    room.copy_from_slice(&bytes);
                    self.instance.feed(link);
                    has_fed = true;
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

    fn carry_out(&mut self, reader: &mut Reader) {
        let (what, number) = (reader.word(), reader.word());
        let micros = (self.now * 1000.0) as i64;
        let ended = match what {
            1 => {
                let (host, port) = (reader.text(), reader.word());
                let (shard, of, source) = (reader.maybe(), reader.word(), reader.word());
                self.asked.push((host.clone(), shard, of));
                assert_eq!(source, 0, "no port was to be bound");
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

    fn result(&self, reader: &mut Reader) -> Told {
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

    fn failure(&self, reader: &mut Reader) -> Ended {
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

    fn query(&mut self, text: &str) -> Ended {
        let len = self.input(text.as_bytes());
        let request = self.instance.query(len, RunOptions::default());
        self.end_of(request)
    }

    fn rows(&mut self, text: &str) -> Told {
        match self.query(text) {
            Ended::Result(told) => told,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn prepare(&mut self, text: &str) -> u32 {
        let len = self.input(text.as_bytes());
        let request = self.instance.prepare(len);
        match self.end_of(request) {
            Ended::Prepared { number, .. } => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn execute(&mut self, statement: u32, values: &[Option<&[u8]>], options: RunOptions) -> Ended {
        let len = self.input(&encoded(values));
        let count = u16::try_from(values.len()).unwrap();
        let request = self.instance.execute(len, statement, count, options);
        self.end_of(request)
    }
}

fn encoded(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let len = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
        bytes.extend(len.to_be_bytes());
        bytes.extend(value.unwrap_or_default());
    }
    bytes
}

/// One statement of a batch.
fn part(statement: u32, count: u32, bytes: &[u8]) -> Vec<u8> {
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
fn begun(routing: &str) -> Shell {
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

#[test]
fn columns_are_told_once_and_cells_stand_where_the_table_says() {
    let mut shell = begun("single");
    assert_eq!(shell.asked.len(), 1, "one connection");
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let select = shell.prepare("SELECT v, k FROM ks.t WHERE k = ?");
    for (key, value) in [(1_i32, Some(&b"odd"[..])), (2, None)] {
        let key = key.to_be_bytes();
        let ended = shell.execute(insert, &[Some(&key), value], RunOptions::default());
        let Ended::Result(told) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (told.bits, told.rows),
            (1, 0),
            "one attempt and nothing else"
        );
        let ended = shell.execute(select, &[Some(&key)], RunOptions::default());
        let Ended::Result(told) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!((told.rows, told.shard), (1, Some(0)));
        assert_eq!(told.cells, [value.map(<[u8]>::to_vec), Some(key.to_vec())]);
        let columns = [("v", "text"), ("k", "int")].map(|(a, b)| (a.into(), b.into()));
        assert_eq!(told.columns, (key[3] == 1).then(|| columns.into()));
    }
    // By text they are told each time.
    for _ in 0..2 {
        let told = shell.rows("SELECT k FROM ks.t");
        assert_eq!((told.columns.unwrap().len(), told.rows), (1, 2));
    }
    // A number that is used again stands for nothing that was told before.
    shell.instance.release(select);
    let again = shell.prepare("SELECT k FROM ks.t WHERE k = ?");
    assert_eq!(again, select);
    let key = 1_i32.to_be_bytes();
    let ended = shell.execute(again, &[Some(&key)], RunOptions::default());
    let Ended::Result(told) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(told.columns.unwrap().len(), 1);
    shell.instance.release(again);
    let ended = shell.execute(again, &[Some(&key)], RunOptions::default());
    assert!(
        matches!(&ended, Ended::Failed { kind, .. } if kind == "bug"),
        "{ended:?}"
    );
}

#[test]
fn pages_conditions_warnings_and_traces_are_told() {
    let mut shell = begun("single");
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, 'x') IF NOT EXISTS");
    for applied in [ResultBits::APPLIED, 0] {
        let key = 1_i32.to_be_bytes();
        let ended = shell.execute(insert, &[Some(&key)], RunOptions::default());
        let Ended::Result(told) = ended else {
            panic!("{ended:?}");
        };
        assert!(told.has(ResultBits::CONDITIONAL));
        assert_eq!(told.bits & ResultBits::APPLIED, applied);
    }
    for key in 2..6 {
        shell.rows(&format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"));
    }
    let (mut state, mut seen) = (Vec::new(), 0);
    for page in 0..9 {
        assert!(page < 8, "no end");
        let len = shell.input(&[&state[..], b"SELECT k FROM ks.t"].concat());
        let options = RunOptions {
            page_size: 2,
            paging_len: state.len(),
            ..RunOptions::default()
        };
        let request = shell.instance.query(len, options);
        let Ended::Result(told) = shell.end_of(request) else {
            panic!("no page");
        };
        seen += told.rows;
        state = told.paging_state;
        if state.is_empty() {
            break;
        }
    }
    assert_eq!(seen, 5);
    shell.cluster.warn_next(0, "beware", 1).unwrap();
    let len = shell.input(b"SELECT k FROM ks.t");
    let options = RunOptions {
        flags: 4,
        ..RunOptions::default()
    };
    let request = shell.instance.query(len, options);
    let Ended::Result(told) = shell.end_of(request) else {
        panic!("no result");
    };
    assert_eq!(told.warnings, ["beware"]);
    assert!(told.has(ResultBits::TRACED));
}

#[test]
fn failures_tell_what_the_server_said() {
    let mut shell = begun("single");
    let Ended::Failed {
        kind, code, host, ..
    } = shell.query("SELEC")
    else {
        panic!("no failure");
    };
    assert_eq!((&*kind, code), ("syntax", 0x2000));
    assert_eq!(host.as_ref(), shell.nodes.values().next());
    for (name, expected_kind, bits, expected) in [
        (
            "unavailable",
            "unavailable",
            2,
            "consistency QUORUM required 2 alive 1",
        ),
        (
            "read_timeout",
            "server",
            2,
            "consistency QUORUM received 1 required 2 dataPresent false",
        ),
        (
            "write_timeout",
            "server",
            3,
            "consistency QUORUM received 1 required 2 writeType SIMPLE",
        ),
        (
            "read_failure",
            "server",
            2,
            "consistency QUORUM received 1 required 2 failures 1 dataPresent false",
        ),
        (
            "write_failure",
            "server",
            3,
            "consistency QUORUM received 1 required 2 failures 1 writeType SIMPLE",
        ),
        ("overloaded", "server", 2, ""),
        ("invalid", "server", 0, ""),
        ("unauthorized", "auth", 0, ""),
    ] {
        let error = CqlError::named(name, "because").unwrap();
        shell.cluster.fail_next(0, &error, 1).unwrap();
        let ended = shell.query("INSERT INTO ks.t (k, v) VALUES (1, 'x')");
        let Ended::Failed {
            kind,
            bits: told,
            attempts,
            facts,
            ..
        } = ended
        else {
            panic!("{name}: {ended:?}");
        };
        assert_eq!((&*kind, told, attempts), (expected_kind, bits, 1), "{name}");
        let facts: Vec<String> = facts
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        assert_eq!(facts.join(" "), expected, "{name}");
    }
}

#[test]
fn batches_hold_texts_and_statements() {
    let mut shell = begun("single");
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let key = 1_i32.to_be_bytes();
    let values = encoded(&[Some(&key), Some(b"a")]);
    let text = b"INSERT INTO ks.t (k, v) VALUES (2, 'b')";
    let input = [part(insert, 2, &values), part(NONE, 0, text)].concat();
    let mut run = |kind: u32, input: &[u8]| {
        let len = shell.input(input);
        let request = shell.instance.batch(len, kind, RunOptions::default());
        shell.end_of(request)
    };
    assert!(matches!(run(1, &input), Ended::Result(_)));
    for (what, broken) in [
        ("half a word", &input[..2]),
        ("cut", &input[..20]),
        ("no such statement", &part(99, 0, &[])),
        ("too many", &part(insert, 1 << 16, &values)),
        ("not text", &part(NONE, 0, &[0xff])),
    ] {
        let ended = run(0, broken);
        assert!(
            matches!(&ended, Ended::Failed { kind, .. } if kind == "bug"),
            "{what}: {ended:?}"
        );
    }
    let few = run(0, &part(insert, 1, &encoded(&[Some(&key)])));
    assert!(
        matches!(&few, Ended::Failed { kind, .. } if kind == "encode"),
        "{few:?}"
    );
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 2);
}

#[test]
fn the_picture_shows_nodes_tablets_and_where_requests_went() {
    let mut shell = begun("full");
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, 'x')");
    for _ in 0..2 {
        for key in 0..32_i32 {
            let key = key.to_be_bytes();
            let ended = shell.execute(insert, &[Some(&key)], RunOptions::default());
            assert!(matches!(ended, Ended::Result(_)), "{ended:?}");
        }
    }
    assert!(
        shell
            .asked
            .iter()
            .any(|(_, shard, of)| (*shard, *of) == (Some(1), 2)),
        "{:?}",
        shell.asked
    );
    let mut reader = Reader(shell.instance.cluster(3).to_vec(), 0);
    let (reached, missed, connects) = (reader.number(), reader.number(), reader.number());
    assert!(
        reached >= 32.0 && missed == 0.0 && connects >= 6.0,
        "{reached} {missed} {connects}"
    );
    assert_eq!(reader.word(), 1, "one statement");
    let nodes = reader.list(|reader| {
        let number = reader.word();
        assert_eq!(reader.bytes().len(), 16);
        let (address, dc, rack) = (reader.text(), reader.text(), reader.text());
        assert!(!dc.is_empty() && !rack.is_empty());
        assert_eq!((reader.word(), reader.word()), (1, 2), "up, two shards");
        let shards =
            reader.list(|reader| (reader.maybe().unwrap(), reader.word(), reader.word()).0);
        let requests = reader.list(|reader| (reader.maybe(), reader.number()));
        (number, address, shards, requests)
    });
    assert_eq!(nodes.len(), 3);
    assert!(
        nodes.iter().all(|(_, _, shards, _)| *shards == [0, 1]),
        "{nodes:?}"
    );
    let answered: f64 = nodes
        .iter()
        .flat_map(|(.., requests)| requests)
        .map(|(_, count)| count)
        .sum();
    assert_eq!(answered, 66.0, "64 and the two that made the table");
    for (number, address, ..) in &nodes {
        assert_eq!(shell.nodes.get(number), Some(address));
    }
    let tables = reader.list(|reader| {
        let (keyspace, table, learned) = (reader.text(), reader.text(), reader.word());
        let tablets = reader.list(|reader| {
            let (first, last) = (reader.long(), reader.long());
            reader.long();
            assert!(first < last);
            assert_eq!(reader.word(), 1, "it has a version");
            reader
                .list(|reader| (reader.maybe().unwrap(), reader.word()))
                .len()
        });
        (format!("{keyspace}.{table}"), learned, tablets)
    });
    assert!(reader.is_empty());
    assert_eq!(tables, [(String::from("ks.t"), 8, Vec::from([3, 3, 3]))]);
}

#[test]
fn what_is_saved_begins_the_next_session() {
    let mut shell = begun("single");
    shell.prepare("SELECT v FROM ks.t WHERE k = ?");
    let blob = shell.instance.warm_start(4096).to_vec();
    assert!(!blob.is_empty() && shell.instance.warm_start(8).is_empty());
    let mut next = Shell::new(Options::uniform(3, 2));
    core::mem::swap(&mut next.cluster, &mut shell.cluster);
    next.cluster.reset_stats();
    let contact = next.cluster.options().address(0).to_string();
    let settings = [("contactPoints", contact.as_bytes()), ("warmStart", &blob)];
    assert_eq!(next.start(&settings), Ended::Done);
    next.prepare("SELECT v FROM ks.t WHERE k = ?");
    assert_eq!(next.cluster.stats().nodes[0].prepares, 0);
}

#[test]
fn a_wrong_password_is_told_by_the_first_request_or_the_start() {
    let mut options = Options::uniform(1, 1);
    options.auth = Some(Credentials::new("alice", "secret"));
    for (password, early, is_told_at_start) in [
        ("secret", "true", false),
        ("wrong", "true", false),
        ("wrong", "false", true),
    ] {
        let mut shell = Shell::new(options.clone());
        let contact = shell.cluster.options().address(0).to_string();
        let settings = [
            ("contactPoints", contact.as_bytes()),
            ("user", b"alice"),
            ("password", password.as_bytes()),
            ("earlyRequests", early.as_bytes()),
        ];
        let mut ended = shell.start(&settings);
        assert_eq!(ended != Ended::Done, is_told_at_start, "{ended:?}");
        if !is_told_at_start {
            ended = shell.query("SELECT key FROM system.local");
        }
        match ended {
            Ended::Result(told) => assert_eq!((told.rows, password), (1, "secret")),
            Ended::Failed {
                kind, code, bits, ..
            } => assert_eq!((&*kind, code, bits), ("auth", 0x100, 0)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn closing_ends_the_session_and_cancelling_a_request() {
    let mut shell = begun("full");
    let len = shell.input(b"SELECT k FROM ks.t");
    let given_up = shell.instance.query(len, RunOptions::default());
    shell.instance.cancel(given_up);
    shell.turn();
    assert!(!shell.ended.contains_key(&given_up));
    let closing = shell.instance.close();
    assert_eq!(shell.end_of(closing), Ended::Done);
    assert!(shell.links.is_empty());
    let Ended::Failed { kind, .. } = shell.query("SELECT k FROM ks.t") else {
        panic!("no failure");
    };
    assert_eq!(kind, "usage");
    assert!(shell.instance.cluster(1).is_empty() && shell.instance.warm_start(9999).is_empty());
}
