//! The whole driver for small images against the simulated cluster.

use messina_sim::node::{CqlError, Credentials, Options, Replica, TabletsMode};

use crate::recorder::{INSERT, KEYSPACE, Pieces, Recorder, SELECT, TABLE};

pub(crate) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("driver-cluster", cluster()),
        ("driver-tablets-v2", tablets(TabletsMode::V2)),
        ("driver-tablets-v1", tablets(TabletsMode::V1)),
        ("driver-leaders", leaders()),
        ("driver-errors", errors()),
        ("driver-nodes", nodes()),
        ("driver-single", single()),
        ("driver-refused", refused()),
        ("driver-timeouts", timeouts()),
        ("driver-streamed", streamed()),
        ("driver-malformed", malformed()),
        ("driver-ring", ring()),
        ("driver-writes", writes()),
    ]
}

/// A driver that has found its cluster: 1 is its start.
fn started(about: &str, options: Options, settings: &[&str]) -> Recorder {
    let mut recorder = Recorder::new(about, options);
    for setting in settings {
        recorder.step(setting);
    }
    if !settings
        .iter()
        .any(|setting| setting.starts_with("contact"))
    {
        recorder.step("contact 127.0.0.1:9042");
    }
    recorder.step("wall 1790000000000000");
    recorder.ask("start 1");
    // Questions to the system tables rest for a second behind events.
    for _ in 0..3 {
        recorder.pass(500_000);
    }
    recorder
}

/// With the table and two statements: 4 inserts, 5 selects.
fn with_table(about: &str, options: Options, settings: &[&str], keyspace: &str) -> Recorder {
    let mut recorder = started(about, options, settings);
    make_table(&mut recorder, keyspace);
    recorder
}

fn make_table(recorder: &mut Recorder, keyspace: &str) {
    recorder.ask(&format!("query 2 : {keyspace}"));
    recorder.ask(&format!("query 3 : {TABLE}"));
    recorder.ask(&format!("prepare 4 : {INSERT}"));
    recorder.ask(&format!("prepare 5 : {SELECT}"));
    for _ in 0..3 {
        recorder.pass(1_000_000);
    }
    let log = recorder.log();
    assert!(log.contains("\n5 prepared"), "no table:\n{log}");
}

/// Contact points of which two are of no use, a login, links to all shards by their ports.
fn cluster() -> String {
    let mut options = Options::uniform(3, 2);
    options.auth = Some(Credentials::new("messina", "secret"));
    let settings = [
        "machine server full",
        "login messina secret",
        "contact 127.0.0.9:9042,127.0.0.2:9042",
        "steering port",
        "pool shard 1",
        "seed 7",
    ];
    let about = "A driver finds its cluster: a dead contact point, a login, a link for each shard.";
    let mut recorder = with_table(about, options, &settings, KEYSPACE);
    for number in 10..20_u32 {
        recorder.ask(&format!(
            "execute {number} 4 idempotent : {number:08x} 61 00000000{number:08x}"
        ));
        recorder.ask(&format!("execute {} 5 : {number:08x}", number + 20));
    }
    recorder.ask("batch 50 1 idempotent : 4 00000001 61 0000000000000001 ; 4 00000002 null unset");
    recorder
        .ask("query 51 traced : SELECT key, release_version FROM system.local WHERE key = 'local'");
    recorder.step("status");
    recorder.ask("release 4");
    recorder.ask("execute 52 4 : 00000001 61 0000000000000001");
    recorder.ask("close 60");
    recorder.pass(2_000_000);
    recorder.step("query 61 : SELECT now() FROM system.local");
    recorder.text()
}

fn tablets(mode: TabletsMode) -> String {
    let settings = [
        "machine mcu full",
        "pool shard 1",
        "steering shard",
        "prefer dc1 rack2",
    ];
    let options = Options::uniform(3, 4).with_tablets(mode);
    let about = "Tablets learned from answers by a driver; they move, split and change.";
    let mut recorder = with_table(about, options, &settings, KEYSPACE);
    let (mut number, table) = (10, ("ks", "t"));
    for round in 0..4 {
        for key in [0_i32, 1, 2, 7, -1, i32::MIN, i32::MAX] {
            number += 1;
            let cells = format!("{key:08x} 7661 00000000{key:08x}");
            recorder.ask(&format!("execute {number} 4 idempotent : {cells}"));
        }
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
        recorder.step("status");
    }
    recorder.text()
}

/// A strongly consistent table: requests go to the leader, which changes, and goes.
fn leaders() -> String {
    let settings = ["machine mcu full", "seed 3"];
    let about = "A strongly consistent table whose leaders change and go, seen by a driver.";
    let keyspace = format!("{KEYSPACE} AND consistency = 'global'");
    let mut recorder = with_table(about, Options::uniform(3, 2), &settings, &keyspace);
    let mut number = 10;
    for leader in [0, 1, 2, 0] {
        for tablet in 0..recorder.cluster.tablets("ks", "t").len() {
            recorder
                .cluster
                .set_leader(("ks", "t"), tablet, Some(leader))
                .unwrap();
        }
        for key in [3_i32, 4, 5, 3] {
            number += 2;
            let cells = format!("{key:08x} 78 0000000000000001");
            recorder.ask(&format!("execute {number} 4 consistency=4 : {cells}"));
            recorder.ask(&format!(
                "execute {} 5 consistency=1 : {key:08x}",
                number + 1
            ));
        }
    }
    recorder.cluster.kill(0).unwrap();
    recorder.settle();
    for key in [3_i32, 4, 5] {
        number += 2;
        let cells = format!("{key:08x} 79 0000000000000002");
        recorder.ask(&format!(
            "execute {number} 4 consistency=4 idempotent : {cells}"
        ));
        recorder.pass(300_000);
    }
    recorder.step("status");
    recorder.text()
}

/// Every error that a node knows, to a statement that may be repeated and one that may not.
fn errors() -> String {
    let settings = ["machine mcu full", "seed 11"];
    let about = "Errors of each kind, and what a driver does about them.";
    let mut recorder = with_table(about, Options::uniform(3, 2), &settings, KEYSPACE);
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
            for node in 0..3 {
                recorder.cluster.fail_next(node, &error, 1).unwrap();
            }
            recorder.ask(&format!("execute {number} 5 {option}: 00000001"));
            // What is left of them.
            for more in 0..6 {
                recorder.ask(&format!(
                    "execute {} 5 : 000000{more:02x}",
                    1000 + number * 10 + more
                ));
            }
        }
    }
    for node in 0..3 {
        recorder.cluster.forget_prepared(node).unwrap();
    }
    for number in 100..104 {
        recorder.ask(&format!(
            "execute {number} 4 : {number:08x} 61 00000000{number:08x}"
        ));
    }
    recorder
        .cluster
        .warn_next(0, "so many tombstones", 1)
        .unwrap();
    recorder.ask("batch 110 0 : 4 00000001 61 0000000000000001 ; 5 00000002");
    recorder.ask("query 111 : SELEC nothing");
    recorder.ask("prepare 112 : SELECT nothing FROM ks.t");
    recorder.ask("execute 113 4 : 00000001");
    recorder.ask("query 114 : ALTER TABLE ks.t DROP n");
    recorder.pass(2_000_000);
    recorder.ask("execute 115 5 : 00000001");
    recorder.ask("execute 116 4 : 00000001 61 0000000000000001");
    recorder.ask("query 117 : DROP KEYSPACE ks");
    recorder.pass(2_000_000);
    recorder.ask("execute 118 5 : 00000001");
    recorder.step("status");
    recorder.text()
}

/// Nodes that go and come, the one with the control link too.
fn nodes() -> String {
    let settings = ["machine server full", "pool shard 1", "seed 5"];
    let about = "Nodes that go and come; links opened anew, events, reading again.";
    let mut recorder = with_table(about, Options::uniform(3, 2), &settings, KEYSPACE);
    let mut number = 10;
    for node in [1, 0, 2] {
        for key in 0..4_u32 {
            number += 1;
            recorder.step(&format!(
                "execute {number} 4 idempotent : {key:08x} 61 00000000{key:08x}"
            ));
        }
        recorder.cluster.kill(node).unwrap();
        recorder.settle();
        for key in 0..3_u32 {
            number += 1;
            recorder.ask(&format!("execute {number} 5 : {key:08x}"));
            recorder.pass(100_000);
        }
        recorder.pass(3_000_000);
        recorder.cluster.start(node).unwrap();
        recorder.settle();
        for _ in 0..4 {
            recorder.pass(1_500_000);
        }
        recorder.step("status");
    }
    for node in 0..3 {
        recorder.cluster.kill(node).unwrap();
    }
    recorder.settle();
    recorder.ask("execute 80 5 : 00000001");
    for _ in 0..6 {
        recorder.pass(700_000);
    }
    for node in 0..3 {
        recorder.cluster.start(node).unwrap();
    }
    for _ in 0..8 {
        recorder.pass(2_000_000);
    }
    recorder.ask("execute 81 5 : 00000001");
    // The nodes are read again after a minute, and links without traffic show that they live.
    recorder.pass(61_000_000);
    recorder.pass(1_000_000);
    recorder.step("status");
    recorder.text()
}

/// One connection, requests beside the handshake, a keyspace, byte by byte.
fn single() -> String {
    let mut options = Options::uniform(2, 2);
    options.auth = Some(Credentials::new("messina", "secret"));
    let mut recorder = Recorder::new(
        "One connection with early requests and a keyspace, byte by byte, and met again.",
        options,
    );
    recorder.pieces = Pieces::Bytes;
    for setting in [
        "machine mcu single",
        "contact 127.0.0.1:9042,127.0.0.2:9042",
        "login messina secret",
        "early",
        "in-flight 2",
        "waiting 3",
    ] {
        recorder.step(setting);
    }
    recorder.step("start 1");
    for number in 2..9 {
        recorder.step(&format!(
            "query {number} : SELECT key, host_id FROM system.local WHERE key = 'local'"
        ));
    }
    recorder.settle();
    let keyspace = "CREATE KEYSPACE ks WITH replication = \
        {'class': 'NetworkTopologyStrategy', 'dc1': 2}";
    recorder.ask(&format!("query 10 : {keyspace}"));
    recorder.ask(&format!("query 11 : {TABLE}"));
    recorder.ask("prepare 12 : INSERT INTO ks.t (k, v) VALUES (?, ?) IF NOT EXISTS");
    for number in [13, 14] {
        recorder.ask(&format!("execute {number} 12 serial=9 : 00000001 61"));
    }
    recorder.step("execute 15 12 idempotent : 00000002 62");
    recorder.cluster.kill(0).unwrap();
    recorder.cluster.kill(1).unwrap();
    recorder.settle();
    recorder.ask("execute 16 12 : 00000003 63");
    recorder.pass(1_000_000);
    recorder.cluster.start(1).unwrap();
    for _ in 0..4 {
        recorder.pass(1_000_000);
    }
    recorder.ask("execute 17 12 : 00000004 64");
    recorder.step("execute 18 12 : 00000005 65");
    recorder.step("close 19");
    recorder.settle();
    recorder.text()
}

/// No cluster at all, a wrong password, a keyspace that is none.
fn refused() -> String {
    let mut options = Options::uniform(2, 1);
    options.auth = Some(Credentials::new("messina", "secret"));
    let mut recorder = Recorder::new(
        "Sessions that cannot begin: a wrong password, no keyspace, nobody there, no settings.",
        options,
    );
    let sessions: [&[&str]; 4] = [
        &["login messina wrong", "contact 127.0.0.1:9042"],
        &[
            "login messina secret",
            "contact 127.0.0.1:9042",
            "use nothing",
        ],
        &["contact 127.0.0.8:9042,127.0.0.9:9042"],
        &[],
    ];
    for settings in sessions {
        recorder.step("machine mcu full");
        for setting in settings {
            recorder.step(setting);
        }
        recorder.step("start 1");
        recorder.step("query 2 : SELECT now() FROM system.local");
        recorder.settle();
        for _ in 0..3 {
            recorder.pass(6_000_000);
        }
        recorder.ask("query 3 : SELECT now() FROM system.local");
    }
    recorder.text()
}

/// Deadlines beyond 32 bits of microseconds, a silent node, late answers.
fn timeouts() -> String {
    let settings = ["machine mcu full", "seed 2"];
    let about = "A driver's deadlines, late answers, requests given up, heartbeats.";
    let mut recorder = with_table(
        about,
        Options::uniform(2, 1),
        &settings,
        "CREATE KEYSPACE ks \
        WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}",
    );
    recorder.pass(4_294_967_000);
    for node in 0..2 {
        recorder.cluster.drop_next(node, 2).unwrap();
    }
    for number in 9..13 {
        recorder.ask(&format!(
            "execute {number} 5 timeout=7200000000 idempotent : {number:08x}"
        ));
    }
    recorder.pass(4_294_970_000);
    recorder.pass(2_905_029_999);
    recorder.pass(1);
    for node in 0..2 {
        recorder.cluster.set_delay(node, 300_000).unwrap();
    }
    recorder.ask("execute 20 5 timeout=100000 : 00000001");
    recorder.ask("execute 21 5 timeout=1000000 : 00000001");
    recorder.ask("execute 22 5 timeout=1000000 : 00000001");
    recorder.step("cancel 22");
    for _ in 0..5 {
        recorder.pass(100_000);
    }
    for node in 0..2 {
        recorder.cluster.set_delay(node, 600_000_000).unwrap();
    }
    recorder.ask("execute 23 5 timeout=90000000 idempotent : 00000001");
    recorder.ask("execute 24 4 timeout=90000000 : 00000001 61 0000000000000001");
    for _ in 0..12 {
        recorder.pass(10_000_000);
    }
    recorder.step("status");
    recorder.text()
}

/// Rows that come in pieces, while there is room for them.
fn streamed() -> String {
    let settings = ["machine mcu full", "seed 9"];
    let about = "Rows in pieces, with and without room for them, in pages.";
    let keyspace = KEYSPACE;
    let mut recorder = with_table(about, Options::uniform(3, 1), &settings, keyspace);
    recorder.ask("query 6 : CREATE TABLE ks.r (p int, c int, v blob, PRIMARY KEY (p, c))");
    recorder.ask("prepare 7 : INSERT INTO ks.r (p, c, v) VALUES (?, ?, ?)");
    for row in 0..16_u32 {
        let value = "5a".repeat(usize::try_from(row).unwrap() * 11 + 1);
        recorder.ask(&format!(
            "execute {} 7 : 00000001 {row:08x} {value}",
            10 + row
        ));
    }
    recorder.ask("prepare 8 : SELECT p, c, v FROM ks.r WHERE p = ?");
    recorder.ask("execute 40 8 page=5 : 00000001");
    recorder.ask("execute 41 8 page=100 streamed : 00000001");
    recorder.step("room shut");
    recorder.ask("execute 42 8 page=9 streamed idempotent : 00000001");
    recorder.ask("execute 43 5 : 00000001");
    recorder.pass(1_000);
    recorder.step("room open");
    recorder.pass(1_000);
    let error = CqlError::named("read_timeout", "late").unwrap();
    for node in 0..3 {
        recorder.cluster.fail_next(node, &error, 2).unwrap();
    }
    recorder.ask("execute 44 8 page=2 streamed idempotent : 00000001");
    recorder.text()
}

/// What no node sends, to a driver.
fn malformed() -> String {
    let settings = ["machine mcu full", "seed 4"];
    let about = "Frames that are wrong, in the middle of a driver's work.";
    let mut recorder = with_table(about, Options::uniform(3, 1), &settings, KEYSPACE);
    let frames = [
        "84 00 SSSS 08 00000010 00000002 00000004 00000001 ffffffff",
        "84 00 SSSS 08 00000010 00000002 00000004 00000000 7fffffff",
        "84 00 SSSS 08 00000010 00000002 00000000 7fffffff 00000000",
        "84 00 SSSS 08 00000004 00000009",
        "84 00 SSSS 08 00000000",
        "84 00 SSSS 00 00000009 00abcdef 0003 6f6464",
        "84 00 SSSS 00 00000006 00001000 00ff",
        "84 04 SSSS 08 00000009 0001 0001 61 7fffffff",
        "84 00 SSSS 08 ffffffff",
        "83 00 SSSS 08 00000004 00000001",
        "84 00 8000 08 00000004 00000001",
        "84 00 0000 00 0000000e 0000000a 0008 676f206177617921",
        "84 00 SSSS 77 00000000",
    ];
    for (number, frame) in (100..).zip(frames) {
        recorder.step(&format!("execute {number} 5 idempotent : {number:08x}"));
        recorder.answer_last_with(frame);
        recorder.settle();
        for _ in 0..4 {
            recorder.pass(3_000_000);
        }
    }
    recorder.step("status");
    recorder.text()
}

/// Vnodes of two data centres.
fn ring() -> String {
    let mut options = Options::uniform(4, 3);
    for (at, node) in options.nodes.iter_mut().enumerate() {
        node.datacenter = format!("dc{}", at % 2 + 1);
        node.ignore_msb = [0, 12][at % 2];
    }
    let settings = [
        "machine server full",
        "pool shard 1",
        "steering port",
        "prefer dc1 -",
        "seed 8",
    ];
    let keyspace = "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', \
        'dc1': 2, 'dc2': 1} AND tablets = {'enabled': false}";
    let mut recorder = with_table("Vnodes of two data centres.", options, &settings, keyspace);
    for number in 10..26_u32 {
        recorder.ask(&format!(
            "execute {number} 4 idempotent : {number:08x} 61 00000000{number:08x}"
        ));
        recorder.ask(&format!(
            "execute {} 5 consistency=1 : {number:08x}",
            number + 20
        ));
    }
    recorder.step("status");
    recorder.text()
}

/// A network that takes little, nothing, or breaks in the middle of a frame.
fn writes() -> String {
    let mut recorder = Recorder::new(
        "Short writes, a peer that takes nothing more, breaks within a frame on its way out and in.",
        Options::uniform(2, 1),
    );
    for setting in [
        "machine mcu single",
        "contact 127.0.0.1:9042,127.0.0.2:9042",
        "pieces 7",
        "start 1",
    ] {
        recorder.step(setting);
    }
    recorder.settle();
    let select = "SELECT key FROM system.local WHERE key = 'local'";
    for (number, pieces) in [(2, 1), (3, 3), (4, 7)] {
        recorder.step(&format!("pieces {pieces}"));
        recorder.ask(&format!("query {number} : {select}"));
    }
    recorder.step("pieces 1460");
    recorder.step("# broken behind 40 bytes: the second request has not left");
    recorder.step("takes 40");
    recorder.step(&format!("query 5 : {select}"));
    recorder.step(&format!("query 6 : {select}"));
    recorder.step(&format!("query 7 idempotent : {select}"));
    recorder.lose(0, "reset");
    recorder.step("takes all");
    recorder.pass(1_000_000);
    recorder.settle();
    recorder.step("# blocked behind 40 bytes: the rest comes before anything else");
    recorder.step("takes 40");
    recorder.ask(&format!("query 8 timeout=100000 : {select}"));
    recorder.pass(100_000);
    recorder.ask(&format!("query 9 : {select}"));
    recorder.ask("takes all");
    recorder.step("# blocked for good");
    recorder.step("takes 40");
    recorder.ask(&format!("query 10 timeout=100000 idempotent : {select}"));
    recorder.pass(31_000_000);
    recorder.pass(11_000_000);
    recorder.step("takes all");
    recorder.pass(1_000_000);
    recorder
        .step("# the end of the stream on the border of a frame, within a header, within a body");
    for (number, bytes) in [
        (11, ""),
        (12, "84 00 00"),
        (13, "84 00 0001 08 00000004 0000"),
    ] {
        recorder.step(&format!("query {number} : {select}"));
        recorder.lose_last_behind(bytes);
        recorder.pass(1_000_000);
        recorder.settle();
    }
    recorder.step("# blocked while closing");
    recorder.step("takes 40");
    recorder.ask(&format!("query 14 timeout=2000000 : {select}"));
    recorder.ask("close 15");
    recorder.pass(2_000_000);
    recorder.pass(28_000_000);
    recorder.pass(11_000_000);
    recorder.text()
}
