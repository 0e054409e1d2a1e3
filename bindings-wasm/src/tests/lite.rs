//! A session on one connection against a simulated cluster, and against peers that break the
//! protocol.

mod handshakes;

use std::string::{String, ToString};
use std::vec::Vec;

use messina_core::target::Endpoint;
use messina_core::wire::Reader;
use messina_core::wire::response::TypeOption;
use messina_sim::node::{Credentials, Options};

use crate::instance::Instance;
use crate::message::ResultBits;
use crate::options::RunOptions;
use crate::points::parse_points;
use crate::testing::{Ended, Shell, Told, begun};
use crate::types::put_type;

const IDEMPOTENT: RunOptions = RunOptions {
    timeout: 0,
    page_size: 0,
    flags: 1,
    paging_len: 0,
};

/// A session on one node with these settings.
fn started(options: Options, settings: &[(&str, &[u8])]) -> Shell<Instance> {
    let mut shell = Shell::new(options);
    let contact = shell.cluster.options().address(0).to_string();
    let mut all = Vec::from([
        ("contactPoints", contact.as_bytes()),
        ("consistency", b"ONE"),
    ]);
    all.extend_from_slice(settings);
    assert_eq!(shell.start(&all), Ended::Done);
    shell
}

fn with_table(settings: &[(&str, &[u8])]) -> Shell<Instance> {
    let mut shell = started(Options::uniform(1, 1), settings);
    shell.rows("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}");
    shell.rows("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    shell
}

fn told(ended: Ended) -> Told {
    match ended {
        Ended::Result(told) => told,
        other => panic!("{other:?}"),
    }
}

/// Kind, code and bits.
fn failed(ended: Ended) -> (String, u32, u32) {
    match ended {
        Ended::Failed {
            kind, code, bits, ..
        } => (kind, code, bits),
        other => panic!("{other:?}"),
    }
}

fn transport(bits: u32) -> (String, u32, u32) {
    (String::from("transport"), 0, bits)
}

impl Shell<Instance> {
    fn only_link(&self) -> u32 {
        let mut links = self.links.keys();
        match (links.next(), links.next()) {
            (Some(link), None) => *link,
            _ => panic!("{:?}", self.links),
        }
    }

    /// The network breaks under all links.
    fn cut(&mut self) {
        for (link, id) in core::mem::take(&mut self.links) {
            self.cluster.disconnect(id);
            self.instance.handle_failed(link, 3);
        }
    }

    fn wait(&mut self, millis: f64) {
        self.now += millis;
        self.instance.tick(self.now, 1e12);
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut options = Options::uniform(1, 1);
    options.auth = Some(Credentials::new("alice", "secret"));
    let mut shell = Shell::<Instance>::new(options);
    shell.piece = 1;
    let contact = shell.cluster.options().address(0).to_string();
    let settings = [
        ("contactPoints", contact.as_bytes()),
        ("user", b"alice"),
        ("password", b"secret"),
        ("consistency", b"ONE"),
    ];
    assert_eq!(shell.start(&settings), Ended::Done);
    for piece in 1..=64 {
        shell.piece = piece;
        assert_eq!(shell.rows("SELECT key FROM system.local").rows, 1);
        shell.prepare("SELECT key FROM system.local");
    }
}

#[test]
fn the_keyspace_is_set_before_the_first_request() {
    let mut options = Options::uniform(1, 1);
    options.auth = Some(Credentials::new("alice", "secret"));
    let login: [(&str, &[u8]); 2] = [("user", b"alice"), ("password", b"secret")];
    for early in ["true", "false"] {
        let mut shell = started(
            options.clone(),
            &[login[0], login[1], ("earlyRequests", early.as_bytes())],
        );
        shell.rows("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}");
        shell.rows("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
        let mut next = Shell::<Instance>::new(Options::uniform(1, 1));
        core::mem::swap(&mut next.cluster, &mut shell.cluster);
        let contact = next.cluster.options().address(0).to_string();
        let mut settings = Vec::from([
            ("contactPoints", contact.as_bytes()),
            ("keyspace", b"ks"),
            ("earlyRequests", early.as_bytes()),
            ("consistency", b"ONE"),
        ]);
        settings.extend(login);
        let start = next.begin(&settings);
        let first = next.ask("SELECT v FROM t", RunOptions::default());
        assert_eq!(next.end_of(start), Ended::Done);
        assert_eq!(told(next.end_of(first)).rows, 0);
        for (name, kind) in [("other", "server"), ("no name", "config")] {
            let mut wrong = Shell::<Instance>::new(Options::uniform(1, 1));
            core::mem::swap(&mut wrong.cluster, &mut next.cluster);
            settings[1].1 = name.as_bytes();
            assert_eq!(failed(wrong.start(&settings)).0, kind, "{name}");
            core::mem::swap(&mut wrong.cluster, &mut next.cluster);
        }
    }
}

#[test]
fn contact_points_are_tried_in_turn_and_time_ends_it() {
    let mut shell = Shell::<Instance>::new(Options::uniform(2, 1));
    shell.cluster.kill(0).unwrap();
    let [dead, live] = [0, 1].map(|node| shell.cluster.options().address(node).to_string());
    let contact = std::format!("{dead}, {live},{dead}");
    assert_eq!(
        shell.start(&[("contactPoints", contact.as_bytes())]),
        Ended::Done
    );
    assert_eq!(shell.asked.last().unwrap().0, live);

    let mut shell = Shell::<Instance>::new(Options::uniform(1, 1));
    shell.cluster.kill(0).unwrap();
    assert_eq!(
        failed(shell.start(&[("contactPoints", dead.as_bytes())])),
        transport(2)
    );
    assert_eq!(failed(shell.query("SELECT 1")), transport(2), "it is over");

    // Nobody answers the shell's wish for a link.
    let mut instance = Shell::<Instance>::new(Options::uniform(1, 1));
    let start = instance.begin(&[("contactPoints", dead.as_bytes())]);
    assert!(instance.instance.outputs_len() < instance.instance.outputs().len());
    instance.wait(4_999.0);
    assert!(
        instance.step() && instance.due == 5_001.0,
        "{}",
        instance.due
    );
    instance.wait(2.0);
    assert_eq!(failed(instance.end_of(start)).0, "timeout");
}

#[test]
fn requests_on_a_link_that_breaks_are_tried_again_if_that_is_safe() {
    let mut shell = with_table(&[]);
    let write = "INSERT INTO ks.t (k, v) VALUES (1, 'x')";
    let mut asked = Vec::new();
    for at in 0..100 {
        let options = match at % 2 {
            0 => IDEMPOTENT,
            _ => RunOptions::default(),
        };
        asked.push((at, shell.ask(write, options)));
    }
    // They are on their way.
    shell.step();
    shell.cut();
    let unsent = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    for (at, request) in asked {
        let ended = shell.end_of(request);
        match at % 2 {
            0 => assert_eq!(told(ended).bits & 0xff, 2, "two attempts"),
            _ => assert_eq!(failed(ended), transport(3), "perhaps applied"),
        }
    }
    assert_eq!(told(shell.end_of(unsent)).bits & 0xff, 1);
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 1);
    assert_eq!(shell.asked.len(), 2, "one connection more");
}

#[test]
fn a_cluster_that_is_down_is_met_with_growing_pauses() {
    let mut shell = with_table(&[("reconnectBase", b"100"), ("reconnectMax", b"1000")]);
    shell.cluster.kill(0).unwrap();
    shell.cut();
    let before = shell.asked.len();
    for _ in 0..1_000 {
        shell.turn();
        shell.wait(10.0);
    }
    // Ten seconds: one at once, then after at most 0.1, 0.2, 0.4, 0.8, 1, 1, .. and at least half.
    let walks = shell.asked.len() - before;
    assert!((10..=24).contains(&walks), "{walks}");
    assert_eq!(failed(shell.query("SELECT k FROM ks.t")), transport(2));
    shell.cluster.start(0).unwrap();
    shell.wait(1_000.0);
    shell.turn();
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0);
}

#[test]
fn a_statement_that_the_node_has_lost_is_given_back() {
    let mut shell = with_table(&[]);
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, 'x')");
    let other = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, 'y')");
    let key = 1_i32.to_be_bytes();
    shell.cluster.forget_prepared(0).unwrap();
    let ended = shell.execute(insert, &[Some(&key)], RunOptions::default());
    assert_eq!(told(ended).bits & 0xff, 2, "the refused one counts");
    shell.cluster.forget_prepared(0).unwrap();
    let values = crate::testing::encoded(&[Some(&key)]);
    let input = [
        crate::testing::part(insert, 1, &values),
        crate::testing::part(other, 1, &values),
    ]
    .concat();
    let len = shell.input(&input);
    let request = shell.instance.batch(len, 0, RunOptions::default());
    assert_eq!(told(shell.end_of(request)).bits & 0xff, 3);
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 1);
}

#[test]
fn a_late_answer_never_meets_another_request() {
    for in_flight in ["1", "2"] {
        let mut shell = with_table(&[("inFlight", in_flight.as_bytes())]);
        shell.rows("INSERT INTO ks.t (k, v) VALUES (1, 'x')");
        let given_up = shell.ask("SELECT v FROM ks.t WHERE k = 1", RunOptions::default());
        shell.step();
        shell.instance.cancel(given_up);
        let request = shell.ask("SELECT k FROM ks.t WHERE k = 1", RunOptions::default());
        // With one id it waits for that of the first.
        let is_quiet = shell.step();
        assert_eq!(is_quiet, in_flight == "1");
        let told = told(shell.end_of(request));
        assert_eq!(told.columns.unwrap()[0].0, "k");
        assert_eq!(told.cells, [Some(1_i32.to_be_bytes().to_vec())]);
    }
}

#[test]
fn a_number_that_is_used_again_is_sent_once() {
    let mut shell = with_table(&[]);
    let given_up = shell.ask("SELECT v FROM ks.t", RunOptions::default());
    shell.instance.cancel(given_up);
    let request = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    assert_eq!(request, given_up);
    shell.cluster.reset_stats();
    assert_eq!(told(shell.end_of(request)).columns.unwrap()[0].0, "k");
    shell.turn();
    assert_eq!(shell.cluster.stats().nodes[0].queries, 1);
}

#[test]
fn what_an_earlier_attempt_may_have_done_is_told_in_the_end() {
    let mut shell = with_table(&[]);
    let write = shell.ask("INSERT INTO ks.t (k, v) VALUES (1, 'x')", IDEMPOTENT);
    shell.step();
    shell.cut();
    shell.cluster.kill(0).unwrap();
    assert_eq!(failed(shell.end_of(write)), transport(3));
}

#[test]
fn an_answer_that_does_not_come_ends_the_request_in_time() {
    let mut shell = with_table(&[]);
    shell.cluster.drop_next(0, 1).unwrap();
    let lost = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    shell.turn();
    assert!(shell.due <= shell.now + 10_000.0, "{}", shell.due);
    let begun_at = shell.now;
    assert_eq!(
        failed(shell.end_of(lost)),
        (String::from("timeout"), 0, 3),
        "it may have been applied"
    );
    assert!((9_900.0..10_100.0).contains(&(shell.now - begun_at)));
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0);
}

#[test]
fn a_full_queue_is_busy_and_the_rest_goes_through() {
    let mut shell = with_table(&[("inFlight", b"4"), ("waiting", b"10")]);
    let asked: Vec<u32> = (0..20)
        .map(|_| shell.ask("SELECT k FROM ks.t", RunOptions::default()))
        .collect();
    for (at, request) in asked.into_iter().enumerate() {
        let ended = shell.end_of(request);
        match at {
            0..14 => assert_eq!(told(ended).rows, 0, "{at}"),
            _ => assert_eq!(failed(ended).0, "limit", "{at}"),
        }
    }
}

#[test]
fn frames_that_cannot_be_end_the_link_and_cost_no_memory() {
    let length = [0x84, 0, 0, 1, 8, 0x7f, 0xff, 0xff, 0xff];
    let request = [4, 0, 0, 1, 8, 0, 0, 0, 0];
    let negative = [0x84, 0, 0, 1, 8, 0xff, 0xff, 0xff, 0xff];
    for (bytes, kind, bits) in [
        (&length[..], "limit", 1),
        (&request, "transport", 3),
        (&negative, "transport", 3),
        (b"HTTP/1.1 400 Bad Request", "transport", 3),
    ] {
        let mut shell = with_table(&[]);
        let asked = shell.ask("SELECT k FROM ks.t", RunOptions::default());
        shell.step();
        let link = shell.only_link();
        shell.feed(link, bytes);
        shell.step();
        let (told_kind, _, told_bits) = failed(shell.end_of(asked));
        let kind = match told_kind.as_str() {
            "protocol" => "transport",
            _ => kind,
        };
        assert!(kind == told_kind || told_kind == "protocol", "{told_kind}");
        assert_eq!(told_bits, bits, "{bytes:?}");
        assert!(!shell.links.contains_key(&link));
        assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0, "anew");
    }
}

#[test]
fn answers_to_nobody_are_dropped_until_there_are_too_many() {
    let mut shell = with_table(&[]);
    let stray = [0x84, 0, 0x7f, 0xff, 8, 0, 0, 0, 4, 0, 0, 0, 1];
    let link = shell.only_link();
    for _ in 0..64 {
        shell.feed(link, &stray);
        shell.step();
    }
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0);
    assert!(shell.links.contains_key(&link));
    shell.feed(link, &stray);
    shell.step();
    assert!(!shell.links.contains_key(&link));
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0);
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_request_alone() {
    let mut shell = with_table(&[]);
    let asked = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    shell.step();
    let link = shell.only_link();
    // RESULT of an unknown kind on the first free stream, and rows that the body cannot hold.
    let rows = [
        0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0,
    ];
    let frame = [&[0x84, 0, 0, 1, 8, 0, 0, 0, 20][..], &rows].concat();
    shell.feed(link, &frame);
    assert_eq!(
        failed(shell.end_of(asked)),
        (String::from("protocol"), 0, 1)
    );
    assert_eq!(shell.only_link(), link);
    assert_eq!(shell.rows("SELECT k FROM ks.t").rows, 0);
}

#[test]
fn closing_waits_for_requests_under_way_and_takes_no_more() {
    let mut shell = begun::<Instance>("single");
    let asked: Vec<u32> = (0..3)
        .map(|_| shell.ask("SELECT k FROM ks.t", RunOptions::default()))
        .collect();
    let closing = shell.instance.close();
    let late = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    assert_eq!(shell.end_of(closing), Ended::Done);
    for request in asked {
        assert_eq!(told(shell.ended.remove(&request).unwrap()).rows, 0);
    }
    assert_eq!(failed(shell.end_of(late)).0, "usage");
    let again = shell.instance.close();
    assert_eq!(failed(shell.end_of(again)).0, "usage");
    assert!(shell.links.is_empty() && shell.due == f64::INFINITY);

    // While it connects nothing is waited for.
    let mut shell = Shell::<Instance>::new(Options::uniform(1, 1));
    let start = shell.begin(&[("contactPoints", b"nowhere")]);
    let asked = shell.ask("SELECT k FROM ks.t", RunOptions::default());
    let closing = shell.instance.close();
    assert_eq!(failed(shell.end_of(start)).0, "usage");
    assert_eq!(failed(shell.end_of(asked)).0, "usage");
    assert_eq!(shell.end_of(closing), Ended::Done);
}

#[test]
fn texts_of_half_written_values_and_columns_are_refused() {
    let mut shell = with_table(&[]);
    let insert = shell.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let key = 1_i32.to_be_bytes();
    for values in [&[Some(&key[..])][..], &[Some(&key), None, None]] {
        let ended = shell.execute(insert, values, RunOptions::default());
        assert_eq!(failed(ended), (String::from("encode"), 0, 0));
    }
    let len = shell.input(&[0, 0, 0, 9, 1]);
    let request = shell
        .instance
        .execute(len, insert, 2, RunOptions::default());
    assert_eq!(failed(shell.end_of(request)).0, "encode");
    let len = shell.input(&[0xff]);
    let request = shell.instance.query(len, RunOptions::default());
    assert_eq!(failed(shell.end_of(request)).0, "bug");
}

#[test]
fn columns_that_change_are_told_again() {
    let mut shell = with_table(&[]);
    let select = shell.prepare("SELECT * FROM ks.t");
    let has_columns = |shell: &mut Shell<Instance>| {
        told(shell.execute(select, &[], RunOptions::default())).has(ResultBits::COLUMNS)
    };
    assert!(has_columns(&mut shell));
    assert!(!has_columns(&mut shell));
    // As many as before.
    shell.rows("ALTER TABLE ks.t DROP v");
    shell.rows("ALTER TABLE ks.t ADD w int");
    assert!(has_columns(&mut shell));
}

#[test]
fn contact_points_are_texts() {
    for (text, host, port) in [
        ("127.0.0.1", "127.0.0.1", 9042),
        ("node-1.example:7", "node-1.example", 7),
        ("::1", "::1", 9042),
        ("[2001:db8::1]", "2001:db8::1", 9042),
        ("[::ffff:10.0.0.1]:65535", "::ffff:10.0.0.1", 65535),
    ] {
        let points = parse_points(text).unwrap();
        let name = Endpoint::Name {
            host: host.into(),
            port,
        };
        assert_eq!(points, [name], "{text}");
        let shown = points[0].text();
        assert!(
            shown.contains(host) && shown.ends_with(&port.to_string()),
            "{shown}"
        );
    }
    for text in [
        "", ",", "a:", "a:0", "a:65536", "a b", ":1", "[::1", "::1]:9", "[::1]:", "a,b:x",
    ] {
        assert!(parse_points(text).is_err(), "{text}");
    }
}

/// Bytes of a type, and its text.
#[test]
fn types_have_the_texts_that_the_shell_parses() {
    let class = |name: &str| {
        let name = name.replace('@', "org.apache.cassandra.db.marshal.");
        let mut bytes = Vec::from([0, 0]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.bytes());
        bytes
    };
    let udt = [
        &[0, 0x30, 0, 2][..],
        b"ks\0\x03a\"b\0\x02\0\x01x\0\x09\0\x01y\0\x20\0\x0d",
    ]
    .concat();
    for (bytes, expected) in [
        (Vec::from([0, 0x0a]), "text"),
        (Vec::from([0, 0xff]), "type 0x00ff"),
        (
            Vec::from([0, 0x21, 0, 0x0c, 0, 0x22, 0, 9]),
            "map<uuid,set<int>>",
        ),
        (Vec::from([0, 0x31, 0, 2, 0, 9, 0, 0x0d]), "tuple<int,text>"),
        (udt, r#"{"ks"."a""b" "x" int "y" list<text>}"#),
        (
            class("@VectorType(@VectorType(@FloatType , 2),3)"),
            "vector<vector<float,2>,3>",
        ),
        (class("@DurationType"), "duration"),
        (
            class("@MapType(@UTF8Type,@FrozenType(@ListType(@Int32Type)))"),
            "map<text,list<int>>",
        ),
        (
            class("@TupleType(@ByteType,@ShortType)"),
            "tuple<tinyint,smallint>",
        ),
        (class("@ReversedType(@TimeUUIDType)"), "timeuuid"),
        (
            class("@UserType(ks,61646472,7a6970:@Int32Type)"),
            r#"{"ks"."addr" "zip" int}"#,
        ),
        (class("com.example.Own"), "'com.example.Own'"),
    ] {
        let mut text = String::new();
        let ty = TypeOption::parse(&mut Reader::new(&bytes)).unwrap();
        put_type(&mut text, ty);
        assert_eq!(text, expected);
    }
    for text in [
        "@ListType(@Int32Type",
        "@MapType(@Int32Type)",
        "@VectorType(@FloatType,x)",
        "@VectorType(@FloatType,0)",
        "@UserType(ks,6,7a:@Int32Type)",
        "@ListType(Own)",
        "@Int32Type)",
    ] {
        let (bytes, mut shown) = (class(text), String::new());
        put_type(
            &mut shown,
            TypeOption::parse(&mut Reader::new(&bytes)).unwrap(),
        );
        assert_eq!(shown.as_bytes(), [b"'", &bytes[4..], b"'"].concat());
    }
    let deep = class(&["@ListType("; 40].concat());
    let mut shown = String::new();
    put_type(
        &mut shown,
        TypeOption::parse(&mut Reader::new(&deep)).unwrap(),
    );
    assert!(shown.starts_with('\''));
}
