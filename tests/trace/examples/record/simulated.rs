//! Scenarios against the simulated cluster.

use messina_sim::node::{CqlError, Credentials, Options, Replica, TabletsMode};

use crate::recorder::{INSERT, KEYSPACE, Pieces, Recorder, SELECT, TABLE, bytes_of};

pub(crate) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("login", login()),
        ("tablets-v2", tablets(TabletsMode::V2)),
        ("tablets-v1", tablets(TabletsMode::V1)),
        ("leaders", leaders()),
        ("unprepared", unprepared()),
        ("errors", errors()),
        ("events", events()),
        ("paging", paging()),
        ("timeouts", timeouts()),
        ("queueing", queueing()),
        ("malformed", malformed()),
        ("ring", ring()),
    ]
}

/// An open connection, and the table with two statements: 3 inserts, 4 selects.
fn with_table(about: &str, options: Options) -> Recorder {
    let mut recorder = Recorder::new(about, options);
    recorder.tell_nodes();
    recorder.step("keyspace ks tablets weak dc1=3");
    recorder.step("table ks t");
    recorder.step("prefer dc1 rack1");
    recorder.open(0, 0);
    make_table(&mut recorder, KEYSPACE);
    recorder
}

fn make_table(recorder: &mut Recorder, keyspace: &str) {
    recorder.ask(&format!("query 1 : {keyspace}"));
    recorder.ask(&format!("query 2 : {TABLE}"));
    recorder.ask(&format!("prepare 3 : {INSERT}"));
    recorder.ask(&format!("prepare 4 : {SELECT}"));
    let log = recorder.log();
    assert!(log.contains("\n4: prepared "), "no table:\n{log}");
}

fn login() -> String {
    let mut options = Options::uniform(3, 3);
    options.auth = Some(Credentials::new("messina", "m\u{e9}ssina"));
    let mut recorder = Recorder::new(
        "A login, then a conditional statement; byte by byte.",
        options,
    );
    recorder.pieces = Pieces::Bytes;
    recorder.step("login messina m\u{e9}ssina");
    recorder.step("events");
    recorder.open(0, 0);
    recorder.ask("query 1 : SELECT key, release_version FROM system.local WHERE key = 'local'");
    make_table(&mut recorder, KEYSPACE);
    recorder.ask("prepare 5 : INSERT INTO ks.t (k, v) VALUES (?, ?) IF NOT EXISTS");
    for number in [6, 7] {
        recorder.ask(&format!("execute {number} 5 serial=9 : 00000001 61"));
    }
    recorder.step("end 0 closed");
    recorder.pieces = Pieces::Whole;
    recorder.step("login messina wrong");
    recorder.open(1, 0);
    recorder.text()
}

/// Tablets learned by payload, told again where they have changed.
fn tablets(mode: TabletsMode) -> String {
    let about = "Tablets learned from answers; they move, split and change their version.";
    let mut recorder = with_table(about, Options::uniform(3, 4).with_tablets(mode));
    let mut number = 10;
    for round in 0..4 {
        for key in [0_i32, 1, 2, 7, -1, i32::MIN, i32::MAX] {
            number += 2;
            let cells = format!("{key:08x} 7661 00000000{key:08x}");
            recorder.ask(&format!("execute {number} 3 idempotent : {cells}"));
            recorder.step(&format!("route 3 : {cells}"));
            recorder.step(&format!("route 3 consistency=1 : {cells}"));
        }
        let table = ("ks", "t");
        let tablets = recorder.cluster.tablets("ks", "t");
        match round {
            0 => {
                let from = tablets[0].replicas[0];
                let to = Replica {
                    shard: (from.shard + 1) % 4,
                    ..from
                };
                recorder.cluster.move_tablet(table, 0, from, to).unwrap();
            }
            1 => recorder.cluster.split(table, 2).unwrap(),
            _ => recorder.cluster.flip_version(table, 3, 0xf0f0).unwrap(),
        }
    }
    recorder.ask("execute 100 4 : 00000007");
    recorder.text()
}

/// A strongly consistent table: requests go to the leader, which changes.
fn leaders() -> String {
    let mut recorder = Recorder::new(
        "A strongly consistent table whose leaders change.",
        Options::uniform(3, 2),
    );
    recorder.tell_nodes();
    recorder.step("keyspace ks tablets strong dc1=3");
    recorder.step("table ks t");
    recorder.open(0, 0);
    make_table(
        &mut recorder,
        &format!("{KEYSPACE} AND consistency = 'global'"),
    );
    let mut number = 10;
    for leader in [None, Some(0), Some(1), Some(2), None] {
        for tablet in 0..recorder.cluster.tablets("ks", "t").len() {
            let place = ("ks", "t");
            recorder.cluster.set_leader(place, tablet, leader).unwrap();
        }
        for key in [3_i32, 4, 5] {
            number += 2;
            let cells = format!("{key:08x} 78 0000000000000001");
            recorder.ask(&format!("execute {number} 3 consistency=4 : {cells}"));
            recorder.step(&format!("route 3 consistency=4 : {cells}"));
            recorder.ask(&format!(
                "execute {} 4 consistency=1 : {key:08x}",
                number + 1
            ));
            recorder.step(&format!("route 4 consistency=1 : {key:08x}"));
        }
    }
    recorder.text()
}

fn unprepared() -> String {
    let about = "A node forgets its statements, and is given them again.";
    let mut recorder = with_table(about, Options::uniform(3, 2));
    recorder.ask("execute 5 3 : 00000001 61 0000000000000005");
    recorder.cluster.forget_prepared(0).unwrap();
    recorder.ask("execute 6 3 : 00000001 61 0000000000000005");
    recorder.ask(&format!("prepare 7 : {INSERT}"));
    recorder.ask("execute 8 7 : 00000001 null unset");
    recorder.ask("query 9 : ALTER TABLE ks.t ADD extra double");
    recorder.ask("execute 10 4 : 00000001");
    recorder.ask("prepare 11 : SELECT * FROM ks.t");
    recorder.ask("query 12 : ALTER TABLE ks.t DROP n");
    recorder.ask("execute 13 11");
    recorder.text()
}

/// Every error that a node knows, to a statement that may be repeated and one that may not.
fn errors() -> String {
    let mut recorder = with_table(
        "Errors of each kind, and a warning.",
        Options::uniform(3, 2),
    );
    let names = [
        "server_error",
        "protocol_error",
        "bad_credentials",
        "unavailable",
        "overloaded",
        "write_timeout",
        "read_timeout",
        "read_failure",
        "write_failure",
        "syntax_error",
        "unauthorized",
        "invalid",
        "config_error",
        "already_exists",
        "rate_limit",
    ];
    let mut number = 10;
    for name in names {
        let error = CqlError::named(name, "it was said so").expect("a known name");
        for option in ["", "idempotent "] {
            number += 1;
            recorder.cluster.fail_next(0, &error, 1).unwrap();
            recorder.ask(&format!("execute {number} 4 {option}: 00000001"));
        }
    }
    recorder
        .cluster
        .warn_next(0, "so many tombstones", 1)
        .unwrap();
    recorder.ask("execute 90 4 : 00000001");
    recorder.ask("query 91 : SELEC nothing");
    recorder.ask("query 92 : SELECT nothing FROM ks.t");
    recorder.text()
}

fn events() -> String {
    let mut recorder = Recorder::new(
        "Events: nodes that go and come, schema changes, among answers.",
        Options::uniform(3, 2),
    );
    recorder.step("events");
    recorder.open(0, 0);
    make_table(&mut recorder, KEYSPACE);
    recorder.cluster.kill(1).unwrap();
    recorder.settle();
    recorder.pass(1_000_000);
    recorder.cluster.start(1).unwrap();
    recorder.settle();
    recorder.ask("query 5 : CREATE TYPE ks.place (street text, zip int)");
    recorder.ask("query 6 : ALTER TABLE ks.t ADD p frozen<place>");
    recorder.ask("query 7 : DROP TABLE ks.t");
    recorder.ask("query 8 : DROP KEYSPACE ks");
    recorder.text()
}

fn paging() -> String {
    let mut recorder = with_table("A partition in pages.", Options::uniform(3, 2));
    recorder.ask("query 5 : CREATE TABLE ks.r (p int, c int, v blob, PRIMARY KEY (p, c))");
    recorder.ask("prepare 6 : INSERT INTO ks.r (p, c, v) VALUES (?, ?, ?)");
    for row in 0..25_u32 {
        let value = "5a".repeat(usize::try_from(row).unwrap() * 7 + 1);
        recorder.ask(&format!(
            "execute {} 6 : 00000001 {row:08x} {value}",
            10 + row
        ));
    }
    recorder.ask("prepare 7 : SELECT p, c, v FROM ks.r WHERE p = ?");
    let mut state = String::new();
    for number in 50..60 {
        recorder.ask(&format!("execute {number} 7 page=7 {state}: 00000001"));
        let log = recorder.log();
        let answer = log
            .lines()
            .rev()
            .find(|line| line.starts_with(&format!("{number}: ")));
        let found = answer.and_then(|line| line.split_once(" state "));
        match found.and_then(|(_, rest)| rest.split_whitespace().next()) {
            Some(next) => state = format!("state={next} "),
            None => break,
        }
    }
    recorder.text()
}

/// Requests that are given up, answers that come late, heartbeats.
fn timeouts() -> String {
    let about = "Deadlines, late answers, requests given up, heartbeats, a silent node; microseconds pass 32 bits.";
    let mut recorder = with_table(about, Options::uniform(3, 1));
    recorder.pass(4_294_967_000);
    recorder.cluster.drop_next(0, 1).unwrap();
    recorder.ask("execute 9 4 timeout=7200000000 : 00000001");
    recorder.pass(4_294_970_000);
    recorder.pass(2_905_029_999);
    recorder.pass(1);
    recorder.cluster.set_delay(0, 300_000).unwrap();
    recorder.ask("execute 10 4 timeout=100000 : 00000001");
    recorder.ask("execute 11 4 timeout=1000000 : 00000001");
    recorder.ask("execute 12 4 timeout=1000000 : 00000001");
    recorder.step("cancel 12");
    for _ in 0..5 {
        recorder.pass(100_000);
    }
    recorder.cluster.set_delay(0, 0).unwrap();
    recorder.cluster.drop_next(0, 2).unwrap();
    recorder.ask("execute 13 4 timeout=2000000 idempotent : 00000001");
    recorder.ask("execute 14 3 timeout=2000000 : 00000001 61 0000000000000005");
    recorder.pass(1_999_999);
    recorder.pass(1);
    // Nothing is said for so long that a heartbeat is due; then there is no answer to one.
    recorder.pass(29_000_000);
    recorder.pass(1_000_000);
    recorder.pass(30_000_000);
    recorder.cluster.set_delay(0, 60_000_000).unwrap();
    recorder.pass(30_000_000);
    recorder.ask("execute 15 4 timeout=60000000 : 00000001");
    recorder.pass(10_000_001);
    recorder.text()
}

/// More requests than stream ids, and a connection that closes.
fn queueing() -> String {
    let mut recorder = Recorder::new(
        "More requests than may be under way, then the end of the link.",
        Options::uniform(3, 1),
    );
    recorder.step("in-flight 3");
    recorder.step("waiting 2");
    recorder.step("tablets off");
    recorder.open(0, 0);
    make_table(&mut recorder, KEYSPACE);
    recorder.cluster.set_delay(0, 50_000).unwrap();
    for number in 10..18 {
        recorder.step(&format!("execute {number} 4 : {number:08x}"));
    }
    recorder.settle();
    recorder.pass(50_000);
    recorder.pass(50_000);
    recorder.step("close 0");
    recorder.step("execute 20 4 : 00000001");
    recorder.step("end 0 reset");
    recorder.text()
}

/// What no node sends.
fn malformed() -> String {
    let mut recorder = with_table(
        "Frames that are wrong: streams, lengths, versions, opcodes, bodies that end too soon.",
        Options::uniform(3, 1),
    );
    recorder.pieces = Pieces::Drawn;
    let bodies: [(&str, &str); 12] = [
        (
            "rows without their cells",
            "84 00 SSSS 08 00000010 00000002 00000004 00000001 00000003",
        ),
        (
            "rows that count below zero",
            "84 00 SSSS 08 00000010 00000002 00000004 00000001 ffffffff",
        ),
        (
            "two thousand million rows",
            "84 00 SSSS 08 00000010 00000002 00000004 00000000 7fffffff",
        ),
        (
            "columns that are not there",
            "84 00 SSSS 08 00000010 00000002 00000000 7fffffff 00000000",
        ),
        (
            "a kind of result that is none",
            "84 00 SSSS 08 00000004 00000009",
        ),
        ("a body with nothing in it", "84 00 SSSS 08 00000000"),
        (
            "an error of no known code",
            "84 00 SSSS 00 00000009 00abcdef 0003 6f6464",
        ),
        ("an error cut short", "84 00 SSSS 00 00000006 00001000 00ff"),
        (
            "a payload longer than its frame",
            "84 04 SSSS 08 00000009 0001 0001 61 7fffffff",
        ),
        (
            "warnings that are not UTF-8",
            "84 08 SSSS 08 00000009 0001 0003 ff fe fd 0000",
        ),
        ("an answer to OPTIONS", "84 00 SSSS 06 00000002 0000"),
        (
            "a list in a list in a list",
            "84 00 SSSS 08 0000002b 00000002 00000001 00000001 0001 61 0001 62 0001 63 \
          0020 0020 0020 0020 0020 0020 0020 0020 0020 00000000",
        ),
    ];
    for (number, (about, frame)) in (100..).zip(bodies) {
        recorder.step(&format!("# {about}"));
        recorder.step(&format!("execute {number} 4 idempotent : 00000001"));
        let stream = recorder.last_stream();
        let stream = format!("{:02x}{:02x}", stream[0], stream[1]);
        let frame = bytes_of(&frame.replace("SSSS", &stream));
        recorder.arrive(0, &frame);
    }
    recorder.step("# answers to nobody");
    recorder.arrive(0, &bytes_of("84 00 0abc 08 00000004 00000001"));
    recorder.step("# an event that ends too soon, one of no known kind, one on the wrong stream");
    recorder.arrive(0, &bytes_of("84 00 ffff 0c 00000004 000d5354"));
    recorder.arrive(0, &bytes_of("84 00 ffff 0c 00000005 0003 4f4444"));
    recorder.step("execute 200 4 idempotent : 00000001");
    recorder.arrive(0, &bytes_of("84 00 0001 0c 00000005 0003 4f4444"));
    let openings = [
        "# a version that was not asked for",
        "85 00 0000 06 00000002 0000",
        "# a request",
        "04 00 0000 05 00000000",
        "# a body of four thousand million bytes",
        "84 00 0000 06 ffffffff",
        "# an opcode that is none",
        "84 00 0000 77 00000000",
        "# READY without STARTUP",
        "84 00 0000 02 00000000",
        "# SUPPORTED that ends too soon",
        "84 00 0000 06 00000003 000100",
        "# a refusal of the version",
        "84 00 0000 00 00000038 0000000a 0032 496e76616c6964206f7220756e737570706f727465642070726f\
         746f636f6c2076657273696f6e2028342920697420697321 21",
    ];
    for (link, pair) in (1..).zip(openings.chunks(2)) {
        recorder.step(pair[0]);
        recorder.step(&format!("open {link}"));
        recorder.arrive(link, &bytes_of(pair[1]));
    }
    recorder.step("# a handshake that never ends");
    recorder.step("open 9");
    recorder.pass(4_999_999);
    recorder.pass(1);
    recorder.text()
}

/// Vnodes, two data centres, nodes that are down.
fn ring() -> String {
    let mut options = Options::uniform(6, 5);
    for (at, node) in options.nodes.iter_mut().enumerate() {
        node.datacenter = format!("dc{}", at % 2 + 1);
        node.ignore_msb = [0, 12, 63][at % 3];
    }
    let mut recorder = Recorder::new("Routes over vnodes of two data centres.", options);
    recorder.tell_nodes();
    recorder.step("keyspace ks vnodes weak dc1=2 dc2=1");
    recorder.step("table ks t");
    recorder.open(0, 0);
    let keyspace = "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', \
        'dc1': 2, 'dc2': 1} AND tablets = {'enabled': false}";
    make_table(&mut recorder, keyspace);
    let lines = [
        "prefer - -",
        "prefer dc1 -",
        "prefer dc2 rack2",
        "prefer dc9 -",
        "prefer dc1 rack3",
    ];
    for line in lines {
        recorder.step(line);
        for key in [0_u32, 1, 99, 0x8000_0000, u32::MAX] {
            for level in [1, 4, 6, 10] {
                recorder.step(&format!("route 4 consistency={level} : {key:08x}"));
            }
        }
    }
    recorder.text()
}
