//! Tables with counters and tables with static columns.

use messina_sim::node::{ConnectionId, TabletsMode};

use crate::support::{PREPARE, QUERY, Sim, long_string, parameters, query, unhex};

#[test]
fn definitions_are_judged() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let cases = [
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, s int STATIC)",
            "Static columns are only useful (and thus allowed) if the table has at least one \
             clustering column",
        ),
        (
            "CREATE TABLE ks.x (pk int, ck int STATIC, PRIMARY KEY (pk, ck))",
            "Static column ck cannot be part of the PRIMARY KEY",
        ),
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, c counter, v int)",
            "Cannot mix counter and non counter columns in the same table",
        ),
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, c counter) WITH default_time_to_live = 5",
            "Cannot set default_time_to_live on a table with counters",
        ),
        (
            "ALTER TABLE ks.t ADD c counter",
            "Cannot mix counter and non counter columns in the same table",
        ),
        (
            "ALTER TABLE ks.t ADD s int STATIC",
            "Static columns are only useful (and thus allowed) if the table has at least one \
             clustering column",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(sim.query(id, text).error(), (0x2200, message.to_owned()));
    }
    let (code, _) = sim
        .query(
            id,
            "CREATE TABLE ks.x (pk int PRIMARY KEY) WITH default_time_to_live = -1",
        )
        .error();
    assert_eq!(code, 0x2300);
}

#[test]
fn static_columns_stand_between_key_and_regular_ones() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.s (pk int, a int, b int, z int STATIC, c int, PRIMARY KEY (pk, b)) \
         WITH default_time_to_live = 60",
    );
    sim.ok(id, "ALTER TABLE ks.s ADD y int STATIC");
    let rows = sim
        .ok(
            id,
            "SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = 'ks' AND \
             table_name = 's'",
        )
        .rows();
    assert_eq!(rows.texts(0), ["a", "b", "c", "pk", "y", "z"]);
    assert_eq!(
        rows.texts(1),
        [
            "regular",
            "clustering",
            "regular",
            "partition_key",
            "static",
            "static"
        ]
    );
    let ttl = sim.ok(
        id,
        "SELECT default_time_to_live FROM system_schema.tables WHERE keyspace_name = 'ks' AND \
         table_name = 's'",
    );
    assert_eq!(ttl.rows().ints(0), [60]);
}

fn count(sim: &mut Sim, id: ConnectionId, pk: i32) -> Vec<Option<i64>> {
    let text = format!("SELECT c FROM ks.n WHERE pk = {pk}");
    let rows = sim.ok(id, &text).rows().rows;
    let long = |value: &Vec<u8>| i64::from_be_bytes(value[..].try_into().unwrap());
    rows.iter().map(|row| row[0].as_ref().map(long)).collect()
}

#[test]
fn counters_count() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.n (pk int PRIMARY KEY, c counter, d counter)",
    );
    let steps: &[(&str, &[Option<i64>])] = &[
        ("UPDATE ks.n SET c = c + 5 WHERE pk = 1", &[Some(5)]),
        (
            "UPDATE ks.n SET c = c - 7, d = d + 1 WHERE pk = 1",
            &[Some(-2)],
        ),
        ("UPDATE ks.n SET c = c + -3 WHERE pk IN (1, 2)", &[Some(-5)]),
        ("DELETE c FROM ks.n WHERE pk = 1", &[None]),
        ("UPDATE ks.n SET c += 1 WHERE pk = 1", &[Some(1)]),
        ("DELETE FROM ks.n WHERE pk = 1", &[]),
        ("UPDATE ks.n SET c = c + 1 WHERE pk = 1", &[Some(1)]),
    ];
    for (text, expected) in steps {
        sim.ok(id, text);
        assert_eq!(count(&mut sim, id, 1), *expected, "{text}");
    }
    assert_eq!(count(&mut sim, id, 2), [Some(-3)]);
    // Bound, with a timestamp of the client that is far in the past: it is the node's that counts.
    let bound = "UPDATE ks.n SET c = c + ? WHERE pk = 1";
    let values = "0006 21 0001 00000008 0000000000000005 0000000000000001";
    let reply = sim.ask(id, QUERY, &query(bound, &unhex(values)));
    assert_eq!(reply.body, unhex("00000001"));
    assert_eq!(count(&mut sim, id, 1), [Some(6)]);
    // Type 5 in PREPARED, named by its column.
    let prepared = sim.ask(id, PREPARE, &long_string(bound)).body;
    let tail = "00000001 00000001 00000000 0002 6b73 0001 6e 0001 63 0005 00000004 00000000";
    assert_eq!(prepared[22..], unhex(tail));
}

#[test]
fn what_counters_refuse() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(id, "CREATE TABLE ks.n (pk int PRIMARY KEY, c counter)");
    let cases = [
        (
            "INSERT INTO ks.n (pk, c) VALUES (1, 1)",
            "INSERT statements are not allowed on counter tables, use UPDATE instead",
        ),
        (
            "UPDATE ks.n SET c = 1 WHERE pk = 1",
            "Cannot set the value of counter column c (counters can only be \
             incremented/decremented, not set)",
        ),
        (
            "UPDATE ks.n USING TTL 5 SET c = c + 1 WHERE pk = 1",
            "Cannot provide custom TTL for counter updates",
        ),
        (
            "UPDATE ks.n USING TIMESTAMP 5 SET c = c + 1 WHERE pk = 1",
            "Cannot provide custom timestamp for counter updates",
        ),
        (
            "UPDATE ks.n SET c = c + null WHERE pk = 1",
            "Invalid null value for counter increment",
        ),
        (
            "UPDATE ks.t SET v = v + 1 WHERE pk = 1",
            "Invalid operation for non counter column v",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(
            sim.query(id, text).error(),
            (0x2200, message.to_owned()),
            "{text}"
        );
    }
    let increment = "UPDATE ks.n SET c = c + 1 WHERE pk = 1";
    for (level, message) in [
        (
            0,
            "Consistency level ANY is not yet supported for counter tables",
        ),
        (8, "Counter operations are inherently non-serializable"),
    ] {
        let reply = sim.ask(id, QUERY, &query(increment, &parameters(level, &[])));
        assert_eq!(reply.error(), (0x2200, message.to_owned()));
    }
    assert_eq!(count(&mut sim, id, 1), []);
    let batch = "BEGIN COUNTER BATCH \
                 UPDATE ks.n SET c = c + 1 WHERE pk = 1; \
                 UPDATE ks.n SET c = c + 2 WHERE pk = 1; \
                 APPLY BATCH";
    assert_eq!(sim.ok(id, batch).body, unhex("00000001"));
    assert_eq!(count(&mut sim, id, 1), [Some(3)]);
}

/// `pk, ck, s static, v`, all ints.
fn with_statics() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.s (pk int, ck int, s int STATIC, v int, PRIMARY KEY (pk, ck))",
    );
    (sim, id)
}

fn ints(sim: &mut Sim, id: ConnectionId, text: &str) -> Vec<Vec<Option<i32>>> {
    let int = |value: &Vec<u8>| i32::from_be_bytes(value[..].try_into().unwrap());
    let rows = sim.ok(id, text).rows().rows;
    rows.iter()
        .map(|row| row.iter().map(|value| value.as_ref().map(int)).collect())
        .collect()
}

#[test]
fn static_values_belong_to_the_partition() {
    let n = None;
    let (mut sim, id) = with_statics();
    type Row = [Option<i32>; 4];
    let steps: &[(&str, &[Row])] = &[
        (
            "INSERT INTO ks.s (pk, s) VALUES (1, 5)",
            &[[Some(1), n, Some(5), n]],
        ),
        (
            "INSERT INTO ks.s (pk, ck, v) VALUES (1, 1, 10)",
            &[[Some(1), Some(1), Some(5), Some(10)]],
        ),
        (
            "INSERT INTO ks.s (pk, ck, s) VALUES (1, 2, 6)",
            &[
                [Some(1), Some(1), Some(6), Some(10)],
                [Some(1), Some(2), Some(6), n],
            ],
        ),
        (
            "UPDATE ks.s SET s = 7, v = 20 WHERE pk = 1 AND ck = 2",
            &[
                [Some(1), Some(1), Some(7), Some(10)],
                [Some(1), Some(2), Some(7), Some(20)],
            ],
        ),
        (
            "UPDATE ks.s SET s = 8 WHERE pk = 1",
            &[
                [Some(1), Some(1), Some(8), Some(10)],
                [Some(1), Some(2), Some(8), Some(20)],
            ],
        ),
        (
            "DELETE FROM ks.s WHERE pk = 1 AND ck > 0",
            &[[Some(1), n, Some(8), n]],
        ),
        ("DELETE s FROM ks.s WHERE pk = 1", &[]),
        (
            "UPDATE ks.s SET s = 9 WHERE pk = 1",
            &[[Some(1), n, Some(9), n]],
        ),
        ("DELETE FROM ks.s WHERE pk = 1", &[]),
    ];
    for (text, expected) in steps {
        sim.ok(id, text);
        let rows = ints(&mut sim, id, "SELECT * FROM ks.s WHERE pk = 1");
        assert_eq!(rows, *expected, "{text}");
    }
}

#[test]
fn a_row_of_static_values_alone_comes_only_where_all_rows_are_asked_for() {
    let (mut sim, id) = with_statics();
    sim.ok(id, "INSERT INTO ks.s (pk, s) VALUES (1, 5)");
    sim.ok(id, "INSERT INTO ks.s (pk, ck, s) VALUES (2, 1, 6)");
    let cases: &[(&str, usize)] = &[
        ("SELECT s FROM ks.s WHERE pk = 1", 1),
        ("SELECT s FROM ks.s", 2),
        ("SELECT s FROM ks.s WHERE pk IN (1, 2)", 2),
        ("SELECT s FROM ks.s WHERE pk = 1 ORDER BY ck DESC", 1),
        ("SELECT s FROM ks.s WHERE pk = 1 AND ck = 1", 0),
        ("SELECT s FROM ks.s WHERE pk = 1 AND ck > 0", 0),
        (
            "SELECT s FROM ks.s WHERE pk = 1 AND s = 5 ALLOW FILTERING",
            1,
        ),
        (
            "SELECT s FROM ks.s WHERE pk = 1 AND v = 5 ALLOW FILTERING",
            0,
        ),
        ("SELECT s FROM ks.s WHERE s > 0 ALLOW FILTERING", 2),
    ];
    for (text, expected) in cases {
        assert_eq!(sim.ok(id, text).rows().rows.len(), *expected, "{text}");
    }
}

#[test]
fn writes_of_static_columns_are_judged() {
    let (mut sim, id) = with_statics();
    let cases = [
        (
            "INSERT INTO ks.s (pk) VALUES (1)",
            "Missing mandatory PRIMARY KEY part ck",
        ),
        (
            "INSERT INTO ks.s (pk, s, v) VALUES (1, 1, 1)",
            "Missing mandatory PRIMARY KEY part ck",
        ),
        (
            "UPDATE ks.s SET s = 1, v = 1 WHERE pk = 1",
            "Missing mandatory PRIMARY KEY part ck",
        ),
        (
            "UPDATE ks.s SET s = 1 WHERE pk = 1 AND ck = 1",
            "Invalid restrictions on clustering columns since the UPDATE statement modifies only \
             static columns",
        ),
        (
            "DELETE s FROM ks.s WHERE pk = 1 AND ck = 1",
            "Invalid restrictions on clustering columns since the DELETE statement modifies only \
             static columns",
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
fn values_of_a_table_expire_by_default() {
    const SECOND: i64 = 1_000_000;
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.e (pk int PRIMARY KEY, v int) WITH default_time_to_live = 10",
    );
    sim.ok(id, "INSERT INTO ks.e (pk, v) VALUES (1, 1)");
    sim.ok(id, "INSERT INTO ks.e (pk, v) VALUES (2, 2) USING TTL 20");
    sim.ok(id, "INSERT INTO ks.e (pk, v) VALUES (3, 3) USING TTL 0");
    // Markers: key, value, TTL; unset (-2) leaves it to the table.
    let unset = query(
        "INSERT INTO ks.e (pk, v) VALUES (4, 4) USING TTL ?",
        &unhex("0006 01 0001 fffffffe"),
    );
    assert_eq!(sim.ask(id, QUERY, &unset).body, unhex("00000001"));
    let null = query(
        "INSERT INTO ks.e (pk, v) VALUES (4, 4) USING TTL ?",
        &unhex("0006 01 0001 ffffffff"),
    );
    let message = "Invalid null value of TTL".to_owned();
    assert_eq!(sim.ask(id, QUERY, &null).error(), (0x2200, message));
    let start = sim.now;
    for (after, mut left) in [
        (0, vec![1, 2, 3, 4]),
        (10 * SECOND - 1, vec![1, 2, 3, 4]),
        (10 * SECOND, vec![2, 3]),
        (20 * SECOND, vec![3]),
    ] {
        sim.now = start + after;
        let mut found = sim.ok(id, "SELECT v FROM ks.e").rows().ints(0);
        found.sort_unstable();
        left.sort_unstable();
        assert_eq!(found, left, "after {after}");
    }
}
