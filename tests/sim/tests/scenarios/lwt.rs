//! Conditional writes: what their conditions test, what they answer, which levels they take.

use messina_sim::node::{ConnectionId, Options, TabletsMode};

use crate::support::{PREPARE, QUERY, Sim, hex, long_string, query, unhex};

/// `ks.c` of `pk, ck, s static, v, w`, all ints, with one row (1, 1) of s 5, v 10 and no w, and a
/// partition 2 with nothing but s 6.
fn table() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int, ck int, s int STATIC, v int, w int, PRIMARY KEY (pk, ck))",
    );
    sim.ok(id, "INSERT INTO ks.c (pk, ck, s, v) VALUES (1, 1, 5, 10)");
    sim.ok(id, "INSERT INTO ks.c (pk, s) VALUES (2, 6)");
    (sim, id)
}

/// A row of ints and `[applied]`.
fn row(sim: &mut Sim, id: ConnectionId, text: &str) -> Vec<Option<i32>> {
    let rows = sim.ok(id, text).rows().rows;
    assert_eq!(rows.len(), 1, "{text}");
    let value = |value: &Option<Vec<u8>>| match value.as_deref() {
        Some([flag]) => Some(i32::from(*flag)),
        Some(bytes) => Some(i32::from_be_bytes(bytes.try_into().unwrap())),
        None => None,
    };
    rows[0].iter().map(value).collect()
}

#[test]
fn conditions_on_one_column() {
    // The row has v 10 and no w.
    let cases = [
        ("v = 10", true),
        ("v = 11", false),
        ("v != 11", true),
        ("v != 10", false),
        ("v < 11", true),
        ("v < 10", false),
        ("v <= 10", true),
        ("v > 9", true),
        ("v > 10", false),
        ("v >= 11", false),
        ("v IN (9, 10)", true),
        ("v IN (9, 11)", false),
        ("v IN ()", false),
        ("v = null", false),
        ("v != null", true),
        ("w = null", true),
        ("w != null", false),
        ("w = 1", false),
        ("w != 1", true),
        ("w < 1", false),
        ("w IN (1, null)", true),
        ("w IN (1)", false),
        ("v = 10 AND w = null", true),
        ("v = 10 AND w = 1", false),
        ("v > 5 AND v < 15", true),
        ("s = 5", true),
        ("s = 6", false),
        ("s IN (5) AND v = 10", true),
        ("s = 5 AND v = 11", false),
    ];
    for (condition, applied) in cases {
        let (mut sim, id) = table();
        let text = format!("UPDATE ks.c SET v = 99 WHERE pk = 1 AND ck = 1 IF {condition}");
        assert_eq!(
            row(&mut sim, id, &text)[0],
            Some(i32::from(applied)),
            "{condition}"
        );
        let v = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 1").rows().ints(0);
        assert_eq!(v, [if applied { 99 } else { 10 }], "{condition}");
    }
}

#[test]
fn the_answer_has_the_columns_of_the_condition_and_the_row_before() {
    let n = None;
    let (t, f) = (Some(1), Some(0));
    let steps: &[(&str, &[Option<i32>])] = &[
        (
            "UPDATE ks.c SET v = 11, w = 1 WHERE pk = 1 AND ck = 1 IF w = null AND v = 10",
            &[t, Some(10), n],
        ),
        (
            "UPDATE ks.c SET v = 12 WHERE pk = 1 AND ck = 1 IF v = 10",
            &[f, Some(11)],
        ),
        (
            "INSERT INTO ks.c (pk, ck, v) VALUES (1, 1, 5) IF NOT EXISTS",
            &[f, Some(1), Some(1), Some(5), Some(11), Some(1)],
        ),
        (
            "INSERT INTO ks.c (pk, ck, v) VALUES (1, 2, 5) IF NOT EXISTS",
            &[t, n, n, n, n, n],
        ),
        (
            "DELETE FROM ks.c WHERE pk = 1 AND ck = 2 IF EXISTS",
            &[t, Some(1), Some(2), Some(5), Some(5), n],
        ),
        (
            "DELETE FROM ks.c WHERE pk = 1 AND ck = 2 IF EXISTS",
            &[f, n, n, n, n, n],
        ),
        (
            "DELETE v FROM ks.c WHERE pk = 1 AND ck = 1 IF v = 11",
            &[t, Some(11)],
        ),
        (
            "UPDATE ks.c SET v = 1 WHERE pk = 1 AND ck = 1 IF v = 11",
            &[f, n],
        ),
    ];
    let (mut sim, id) = table();
    for (text, expected) in steps {
        assert_eq!(row(&mut sim, id, text), *expected, "{text}");
    }
}

#[test]
fn conditions_on_static_columns_are_about_the_partition() {
    let n = None;
    let (t, f) = (Some(1), Some(0));
    let steps: &[(&str, &[Option<i32>])] = &[
        // The row of the statement is not there, but what is tested is.
        (
            "UPDATE ks.c SET v = 1 WHERE pk = 2 AND ck = 9 IF s = 6",
            &[t, Some(6)],
        ),
        (
            "UPDATE ks.c SET v = 1 WHERE pk = 2 AND ck = 8 IF s = 6 AND v = null",
            &[t, Some(6), n],
        ),
        ("UPDATE ks.c SET s = 7 WHERE pk = 2 IF s = 5", &[f, Some(6)]),
        ("UPDATE ks.c SET s = 7 WHERE pk = 2 IF s = 6", &[t, Some(6)]),
        ("UPDATE ks.c SET s = 1 WHERE pk = 3 IF s = null", &[t, n]),
        (
            "INSERT INTO ks.c (pk, s) VALUES (3, 2) IF NOT EXISTS",
            &[f, Some(3), n, Some(1), n, n],
        ),
        (
            "INSERT INTO ks.c (pk, s) VALUES (4, 2) IF NOT EXISTS",
            &[t, n, n, n, n, n],
        ),
        (
            "UPDATE ks.c SET s = 3 WHERE pk = 4 IF EXISTS",
            &[t, Some(4), n, Some(2), n, n],
        ),
        (
            "UPDATE ks.c SET s = 3 WHERE pk = 5 IF EXISTS",
            &[f, n, n, n, n, n],
        ),
        // A partition that has static values has no row yet.
        (
            "INSERT INTO ks.c (pk, ck) VALUES (4, 1) IF NOT EXISTS",
            &[t, n, n, n, n, n],
        ),
        ("DELETE FROM ks.c WHERE pk = 4 IF s = 3", &[t, Some(3)]),
        (
            "UPDATE ks.c SET s = 3 WHERE pk = 4 IF EXISTS",
            &[f, n, n, n, n, n],
        ),
    ];
    let (mut sim, id) = table();
    for (text, expected) in steps {
        assert_eq!(row(&mut sim, id, text), *expected, "{text}");
    }
    // A regular row without static values does not count for a statement about those.
    sim.ok(id, "INSERT INTO ks.c (pk, ck) VALUES (6, 1)");
    let text = "INSERT INTO ks.c (pk, s) VALUES (6, 1) IF NOT EXISTS";
    assert_eq!(row(&mut sim, id, text)[0], t);
}

#[test]
fn plain_nodes_show_the_row_only_where_they_refuse() {
    let mut sim = Sim::new(Options::uniform(1, 1).with_plain());
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    sim.ok(id, "CREATE TABLE ks.c (pk int PRIMARY KEY, v int)");
    let (t, f) = (Some(1), Some(0));
    let steps: &[(&str, &[Option<i32>])] = &[
        ("INSERT INTO ks.c (pk, v) VALUES (1, 5) IF NOT EXISTS", &[t]),
        (
            "INSERT INTO ks.c (pk, v) VALUES (1, 6) IF NOT EXISTS",
            &[f, Some(1), Some(5)],
        ),
        ("UPDATE ks.c SET v = 7 WHERE pk = 1 IF v = 6", &[f, Some(5)]),
        ("UPDATE ks.c SET v = 7 WHERE pk = 1 IF v = 5", &[t]),
        ("UPDATE ks.c SET v = 7 WHERE pk = 2 IF v = 5", &[f]),
        ("DELETE FROM ks.c WHERE pk = 2 IF EXISTS", &[f]),
    ];
    for (text, expected) in steps {
        assert_eq!(row(&mut sim, id, text), *expected, "{text}");
    }
    // PREPARED says nothing of the columns to come: no metadata, none of them.
    let insert = "INSERT INTO ks.c (pk, v) VALUES (3, 5) IF NOT EXISTS";
    let prepared = sim.ask(id, PREPARE, &long_string(insert)).body;
    assert_eq!(hex(&prepared[prepared.len() - 8..]), "0000000400000000");
    // Nor may a client go without the metadata it could not know (flag 0x02 in the request).
    let reply = sim.ask(id, QUERY, &query(insert, &unhex("0006 02")));
    let expected = "00000002 00000001 00000001 0002 6b73 0001 63 0009 5b6170706c6965645d 0004
                    00000001 00000001 01";
    assert_eq!(hex(&reply.body), hex(&unhex(expected)));
}

#[test]
fn levels_of_conditional_writes() {
    let text = "UPDATE ks.c SET v = 10 WHERE pk = 1 AND ck = 1 IF v = 10";
    let serial =
        "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL";
    // Consistency, flags, serial consistency; what the error says, if it is one.
    let cases = [
        ("0006 00", None),
        ("0006 10 0008", None),
        ("0006 10 0009", None),
        ("0000 00", None),
        ("0006 10 0006", Some(serial)),
        ("0001 10 0000", Some(serial)),
        (
            "0008 00",
            Some("SERIAL is not supported as conditional update commit"),
        ),
        (
            "0009 10 0008",
            Some("LOCAL_SERIAL is not supported as conditional update commit"),
        ),
    ];
    for (parameters, refusal) in cases {
        let (mut sim, id) = table();
        let reply = sim.ask(id, QUERY, &query(text, &unhex(parameters)));
        match refusal {
            None => assert_eq!(reply.rows().rows.len(), 1, "{parameters}"),
            Some(text) => {
                let (code, message) = reply.error();
                assert_eq!(code, 0x2200);
                assert!(message.starts_with(text), "{parameters}: {message}");
            }
        }
    }
    // An unconditional write does not look at its serial consistency.
    let (mut sim, id) = table();
    let write = "UPDATE ks.c SET v = 1 WHERE pk = 1 AND ck = 1";
    let reply = sim.ask(id, QUERY, &query(write, &unhex("0006 10 0006")));
    assert_eq!(reply.body, unhex("00000001"));
}

#[test]
fn the_agreement_needs_a_quorum_of_its_own() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let topology = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
    sim.ok(
        id,
        &format!("CREATE KEYSPACE three WITH replication = {topology}"),
    );
    sim.ok(id, "CREATE TABLE three.t (pk int PRIMARY KEY, v int)");
    sim.cluster.kill(1).unwrap();
    sim.cluster.kill(2).unwrap();
    let ask = |sim: &mut Sim, text: &str| sim.ask(id, QUERY, &query(text, &unhex("0001 00")));
    let plain = "INSERT INTO three.t (pk, v) VALUES (1, 1)";
    assert_eq!(ask(&mut sim, plain).body, unhex("00000001"));
    let refused = ask(
        &mut sim,
        "INSERT INTO three.t (pk, v) VALUES (1, 1) IF NOT EXISTS",
    );
    assert_eq!(refused.error().0, 0x1000);
    // UNAVAILABLE at SERIAL: two required, one alive.
    assert!(refused.body.ends_with(&unhex("0008 00000002 00000001")));
}

#[test]
fn statements_that_cannot_be_conditional() {
    let (mut sim, id) = table();
    sim.ok(id, "CREATE TABLE ks.n (pk int PRIMARY KEY, c counter)");
    let cases = [
        (
            "INSERT INTO ks.t (pk) VALUES (1) IF NOT EXISTS USING TIMESTAMP 5",
            "Cannot provide custom timestamp for conditional updates",
        ),
        (
            "UPDATE ks.n SET c = c + 1 WHERE pk = 1 IF EXISTS",
            "Conditional updates are not supported on counter tables",
        ),
        (
            "UPDATE ks.t SET v = 'a' WHERE pk IN (1, 2) IF EXISTS",
            "IN on the partition key is not supported with conditional updates",
        ),
        (
            "UPDATE ks.c SET v = 1 WHERE pk = 1 AND ck IN (1, 2) IF EXISTS",
            "IN on the clustering key columns is not supported with conditional updates",
        ),
        (
            "UPDATE ks.c SET v = 1 WHERE pk = 1 AND ck = 1 IF ck = 1",
            "PRIMARY KEY column 'ck' cannot have IF conditions",
        ),
        (
            "DELETE FROM ks.c WHERE pk = 1 IF v = 1",
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in \
             order to use IF conditions on non static columns",
        ),
        (
            "DELETE FROM ks.c WHERE pk = 1 IF EXISTS",
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in \
             order to use IF conditions on non static columns",
        ),
        (
            "UPDATE sc.t SET v = 'a' WHERE pk = 1 IF EXISTS",
            "Strongly consistent updates don't support data prefetch",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(
            sim.query(id, text).error(),
            (0x2200, message.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_client_timestamp_does_not_stamp_a_conditional_write() {
    let (mut sim, id) = table();
    // 0x20 with a timestamp of 1: far in the past of the row.
    let text = "UPDATE ks.c SET v = 77 WHERE pk = 1 AND ck = 1 IF v = 10";
    let body = query(text, &unhex("0006 20 0000000000000001"));
    assert_eq!(sim.ask(id, QUERY, &body).rows().rows[0][0], Some(vec![1]));
    let v = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 1").rows().ints(0);
    assert_eq!(v, [77]);
}
