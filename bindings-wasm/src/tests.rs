//! The instances on the host, against a simulated cluster.

mod lite;

use std::string::String;
use std::vec::Vec;

use messina_sim::node::{CqlError, Credentials, Options};

use crate::instance::Instance;
use crate::message::ResultBits;
use crate::options::RunOptions;
use crate::outbox::NONE;
use crate::testing::{Ended, Module, Reader, Shell, begun, encoded, part};

#[test]
fn columns_are_told_once_and_cells_stand_where_the_table_says() {
    check_columns::<Instance>();
}

fn check_columns<M: Module>() {
    let mut shell = begun::<M>("single");
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
    check_pages::<Instance>();
}

fn check_pages<M: Module>() {
    let mut shell = begun::<M>("single");
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
    check_failures::<Instance>();
}

fn check_failures<M: Module>() {
    let mut shell = begun::<M>("single");
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
    check_batches::<Instance>();
}

fn check_batches<M: Module>() {
    let mut shell = begun::<M>("single");
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
    let mut shell = begun::<Instance>("full");
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
    let mut shell = begun::<Instance>("single");
    shell.prepare("SELECT v FROM ks.t WHERE k = ?");
    let blob = shell.instance.warm_start(4096).to_vec();
    assert!(!blob.is_empty() && shell.instance.warm_start(8).is_empty());
    let mut next = Shell::<Instance>::new(Options::uniform(3, 2));
    core::mem::swap(&mut next.cluster, &mut shell.cluster);
    next.cluster.reset_stats();
    let contact = next.cluster.options().address(0).to_string();
    let settings = [("contactPoints", contact.as_bytes()), ("warmStart", &blob)];
    assert_eq!(next.start(&settings), Ended::Done);
    next.prepare("SELECT v FROM ks.t WHERE k = ?");
    assert_eq!(next.cluster.stats().nodes[0].prepares, 0);
    // It has learned nothing new, so it saves no more.
    assert_eq!(next.instance.warm_start(4096).len(), blob.len());
}

#[test]
fn a_wrong_password_is_told_by_the_first_request_or_the_start() {
    check_passwords::<Instance>();
}

fn check_passwords<M: Module>() {
    let mut options = Options::uniform(1, 1);
    options.auth = Some(Credentials::new("alice", "secret"));
    for (password, early, is_told_at_start) in [
        ("secret", "true", false),
        ("wrong", "true", false),
        ("wrong", "false", true),
    ] {
        let mut shell = Shell::<M>::new(options.clone());
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
        // What has ended by itself can be closed like any other.
        let closing = shell.instance.close();
        assert_eq!(shell.end_of(closing), Ended::Done);
    }
}

#[test]
fn closing_ends_the_session_and_cancelling_a_request() {
    let mut shell = begun::<Instance>("full");
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
