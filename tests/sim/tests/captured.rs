//! Frames that went between real drivers and a real server, given to the simulated node.
//!
//! Its codec was written by another hand than the driver's, and by the same hand as its CQL. Here
//! both answer to outsiders: every captured request is read, and where ScyllaDB and Cassandra say
//! the same, the node's answer is the captured one, byte for byte. Where they do not, it is listed
//! why.

use messina_conformance::captures::{FILES, Frame, file, response};
use messina_sim::node::{Cluster, ConnectionId, Credentials, Listener, Options};

/// 2026 in microseconds.
const NOW: i64 = 1_790_000_000_000_000;

const HEADER_LEN: usize = 9;

const SCHEMA: [&str; 5] = [
    "CREATE KEYSPACE golden WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
    "CREATE TYPE golden.place (street text, zip int)",
    "CREATE TABLE golden.types (id int PRIMARY KEY, c_ascii ascii, c_bigint bigint, c_blob blob, \
    c_boolean boolean, c_date date, c_decimal decimal, c_double double, c_duration duration, \
    c_float float, c_inet inet, c_smallint smallint, c_text text, c_time time, \
    c_timestamp timestamp, c_timeuuid timeuuid, c_tinyint tinyint, c_uuid uuid, c_varint varint, \
    c_list list<int>, c_set set<text>, c_map map<text, int>, c_tuple tuple<int, text>, \
    c_place frozen<place>, c_vector vector<float, 3>)",
    "CREATE TABLE golden.rows (part int, num int, val text, PRIMARY KEY (part, num))",
    "CREATE TABLE golden.counts (id int PRIMARY KEY, hits counter)",
];

/// A node and one connection to it.
struct Node {
    cluster: Cluster,
    connection: ConnectionId,
}

impl Node {
    /// One node of one shard; without ScyllaDB's extensions and with a login, unless `extensions`.
    fn new(extensions: bool) -> Self {
        let mut options = Options::uniform(1, 1);
        if !extensions {
            options = options.with_plain();
            options.auth = Some(Credentials::new("cassandra", "cassandra"));
        }
        let mut cluster = Cluster::new(options);
        let peer = "127.0.0.1:50000".parse().unwrap();
        let connection = cluster.accept(0, Listener::Regular, peer, NOW).unwrap();
        Self {
            cluster,
            connection,
        }
    }

    /// The same, opened and with tables.
    fn with_tables() -> Self {
        let mut node = Self::new(false);
        node.say(0x01, b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0");
        node.say(0x0f, b"\x00\x00\x00\x14\x00cassandra\x00cassandra");
        node.make_tables();
        node
    }

    fn make_tables(&mut self) {
        for cql in SCHEMA {
            let len = u32::try_from(cql.len()).unwrap().to_be_bytes();
            let body = [&len[..], cql.as_bytes(), &[0, 1, 0]].concat();
            let frames = self.say(0x07, &body);
            let made = frames.iter().any(|frame| frame[4] == 0x08);
            assert!(made, "{cql}: {}", text(&frames[0]));
        }
    }

    /// A request of version 4 on stream 0.
    fn say(&mut self, opcode: u8, body: &[u8]) -> Vec<Vec<u8>> {
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        let header = [4, 0, 0, 0, opcode];
        self.feed(&[&header[..], &len, body].concat())
    }

    /// Gives bytes and takes the frames that come.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.cluster.feed(self.connection, bytes, NOW);
        let mut output = &self.cluster.take_output(self.connection, NOW)[..];
        let mut frames = Vec::new();
        while let Some(header) = output.first_chunk::<HEADER_LEN>() {
            let [_, _, _, _, _, len @ ..] = *header;
            let len = HEADER_LEN + usize::try_from(u32::from_be_bytes(len)).unwrap();
            let (frame, rest) = output.split_at(len);
            frames.push(frame.to_vec());
            output = rest;
        }
        frames
    }

    /// Gives a captured request and takes its answer and the events that came with it.
    fn answer(&mut self, request: &Frame) -> (Vec<u8>, Vec<Vec<u8>>) {
        let frames = self.feed(&request.bytes);
        let (events, answers): (Vec<_>, Vec<_>) =
            frames.into_iter().partition(|frame| frame[4] == 0x0c);
        let [answer] = <[_; 1]>::try_from(answers)
            .unwrap_or_else(|answers| panic!("{}: {answers:?}", request.name));
        assert_eq!(
            answer[2..4],
            request.bytes[2..4],
            "the stream of {}",
            request.name
        );
        (answer, events)
    }
}

/// Requests of a file that a connection opens with.
const HANDSHAKE: [&str; 4] = ["options", "startup", "login", "register"];

fn requests(name: &str) -> Vec<Frame> {
    let frames = file(name).into_iter();
    frames.filter(|frame| frame.is_request).collect()
}

fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[HEADER_LEN..]).into_owned()
}

/// Nothing that a driver sent is too long, too short or misunderstood: no PROTOCOL_ERROR (000a), no
/// SERVER_ERROR (0000), and no statement that is unknown but the one that the server had forgotten.
#[test]
fn every_request_is_read() {
    // Not version 4, out of turn, of a connection of its own; and a paging state that is another server's.
    let odd = [
        "version 9",
        "query before startup",
        "wrong password",
        "last page",
    ];
    for (name, _) in FILES {
        let extensions = name == "scylla-driver-extensions";
        let all = requests(name);
        let opens = all.iter().any(|request| request.name == "startup");
        let mut node = if opens {
            Node::new(extensions)
        } else {
            Node::with_tables()
        };
        let (mut opened, mut read) = (!opens, 0);
        for request in all.iter().filter(|request| !odd.contains(&request.name)) {
            if !opened && !HANDSHAKE.contains(&request.name) {
                opened = true;
                node.make_tables();
            }
            let (answer, _) = node.answer(request);
            let code = answer.get(HEADER_LEN..HEADER_LEN + 4);
            let is_bad = answer[4] == 0 && matches!(code, Some([0, 0, 0, 0 | 10]));
            assert!(!is_bad, "{name}: {}: {}", request.name, text(&answer));
            read += 1;
        }
        assert!(read > 2, "{name}: {read} requests");
    }
}

/// Answers of a file's requests in their order, against the captured ones by name.
fn compare(name: &str, mut node: Node, comparable: &[&str]) {
    let mut compared = 0;
    for request in requests(name) {
        let (answer, _) = node.answer(&request);
        if !comparable.contains(&request.name) {
            continue;
        }
        let captured = response(name, request.name);
        assert_eq!(answer[..5], captured.bytes[..5], "{name}: {}", request.name);
        let said = text(&answer);
        assert_eq!(
            digits(&answer[HEADER_LEN..]),
            by_scylla(captured.body()),
            "{name}: {}: {said}",
            request.name
        );
        compared += 1;
    }
    assert_eq!(compared, comparable.len(), "{name}");
}

/// What Cassandra says as ScyllaDB says it: without the space behind the element's class of a
/// vector, and a duration by its number, which Cassandra keeps for version 5.
fn by_scylla(body: &[u8]) -> String {
    let class = |text: &str| {
        let text = format!("org.apache.cassandra.db.marshal.{text}");
        let len = u16::try_from(text.len()).unwrap();
        let custom = [0, 0];
        [&custom[..], &len.to_be_bytes(), text.as_bytes()].concat()
    };
    let element = "VectorType(org.apache.cassandra.db.marshal.FloatType";
    let [theirs, ours] = ["{element} , 3)", "{element}, 3)"]
        .map(|text| digits(&class(&text.replace("{element}", element))));
    digits(body)
        .replace(&theirs, &ours)
        .replace(&digits(&class("DurationType")), "0015")
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A column of every type: its number or class in the metadata, its bytes in the rows.
#[test]
fn the_same_columns_and_rows_of_every_type() {
    let comparable = [
        "prepare insert",
        "insert values",
        "insert nulls",
        "prepare select",
        "select values",
        "select nulls",
    ];
    compare("cassandra-types", Node::with_tables(), &comparable);
}

/// Not compared: pages, whose state is each server's own, and conditional writes, whose columns
/// Cassandra chooses by the outcome and ScyllaDB once for all.
#[test]
fn the_same_statements_and_writes() {
    let comparable = ["prepare insert", "insert", "prepare select"];
    compare("cassandra-rows", Node::with_tables(), &comparable);
}

/// By text and prepared in one batch, and a counter's.
#[test]
fn the_same_batches() {
    let mut node = Node::with_tables();
    for name in ["prepare insert", "insert"] {
        let all = requests("cassandra-rows");
        let request = all.iter().find(|request| request.name == name);
        node.answer(request.unwrap());
    }
    for request in requests("scylla-driver") {
        if [
            "batch, logged",
            "batch, unlogged",
            "prepare count",
            "batch, counter",
        ]
        .contains(&request.name)
        {
            let (answer, _) = node.answer(&request);
            let expected = match request.name {
                "prepare count" => {
                    response("scylla-driver", request.name).bytes[HEADER_LEN..].to_vec()
                }
                _ => vec![0, 0, 0, 1],
            };
            assert_eq!(
                digits(&answer[HEADER_LEN..]),
                digits(&expected),
                "{}",
                request.name
            );
        }
    }
}

/// The refusal of a password by its code, since its words differ; AUTH_SUCCESS has a token of no
/// bytes from ScyllaDB and none from Cassandra.
#[test]
fn the_same_handshake() {
    let mut node = Node::new(false);
    for request in requests("cassandra-handshake") {
        if !HANDSHAKE.contains(&request.name) {
            continue;
        }
        let (answer, _) = node.answer(&request);
        let captured = response("cassandra-handshake", request.name).bytes;
        match request.name {
            "startup" | "register" => assert_eq!(digits(&answer), digits(&captured)),
            "login" => {
                assert_eq!(digits(&answer[..5]), digits(&captured[..5]));
                assert_eq!(digits(&answer[HEADER_LEN..]), "00000000");
            }
            _ => assert_eq!(answer[4], captured[4], "{}", request.name),
        }
    }
}

/// The change as a result and as an event, the keyspace by Cassandra's own statement.
#[test]
fn the_same_changes_of_the_schema() {
    let mut node = Node::with_tables();
    node.say(0x0b, b"\x00\x01\x00\x0dSCHEMA_CHANGE");
    node.say(0x07, b"\x00\x00\x00\x14DROP KEYSPACE golden\x00\x01\x00");
    for (name, cql) in [
        ("keyspace", SCHEMA[0]),
        ("type", SCHEMA[1]),
        ("table", SCHEMA[3]),
        ("column", "ALTER TABLE golden.rows ADD more int"),
    ] {
        let len = u32::try_from(cql.len()).unwrap().to_be_bytes();
        let frames = node.say(0x07, &[&len[..], cql.as_bytes(), &[0, 1, 0]].concat());
        for (opcode, name) in [(0x08, name.to_owned()), (0x0c, format!("{name}, event"))] {
            let frame = frames.iter().find(|frame| frame[4] == opcode);
            let captured = response("cassandra-handshake", &name).bytes;
            let body = &frame.unwrap_or_else(|| panic!("{name}"))[HEADER_LEN..];
            assert_eq!(digits(body), digits(&captured[HEADER_LEN..]), "{name}");
        }
    }
}
