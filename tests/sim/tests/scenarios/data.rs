//! What statements do to rows: ranges, orders, deletions, conditions, pages, system tables.

use messina_sim::node::{ConnectionId, Options, TabletsMode};

use crate::support::{
    EXECUTE, Frame, LOCAL_QUORUM, ONE, QUERY, RESULT, Sim, execute, parameters, query, string,
    unhex,
};

/// A table of `pk int, a int, b text, v int` clustered by `a` down, `b` up.
fn clustered() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int, a int, b text, v int, PRIMARY KEY (pk, a, b)) \
         WITH CLUSTERING ORDER BY (a DESC, b ASC) AND gc_grace_seconds = 5",
    );
    let mut v = 0;
    for pk in 0..3 {
        for a in -2..3 {
            for b in ["", "x", "xy"] {
                v += 1;
                sim.ok(
                    id,
                    &format!("INSERT INTO ks.c (pk, a, b, v) VALUES ({pk}, {a}, '{b}', {v})"),
                );
            }
        }
    }
    (sim, id)
}

#[test]
fn reads_by_key_range_order_and_limit() {
    let (mut sim, id) = clustered();
    let cases: &[(&str, &[i32])] = &[
        (
            "pk = 0",
            &[13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3],
        ),
        ("pk = 0 AND a = 1", &[10, 11, 12]),
        ("pk = 0 AND a = 1 AND b = 'x'", &[11]),
        ("pk = 0 AND a = 1 AND b > ''", &[11, 12]),
        ("pk = 0 AND a = 1 AND b >= 'x' AND b < 'xy'", &[11]),
        ("pk = 0 AND a > 0", &[13, 14, 15, 10, 11, 12]),
        ("pk = 0 AND a <= -1", &[4, 5, 6, 1, 2, 3]),
        ("pk = 0 AND a = 1 ORDER BY a ASC", &[12, 11, 10]),
        ("pk = 0 ORDER BY a DESC, b ASC LIMIT 2", &[13, 14]),
        (
            "pk = 0 AND a > 0 ORDER BY a ASC, b DESC LIMIT 4",
            &[12, 11, 10, 15],
        ),
        ("pk = 0 LIMIT 3", &[13, 14, 15]),
        ("pk IN (2, 0) AND a = 0 AND b = 'x'", &[8, 38]),
        ("pk = 0 AND v > 13 ALLOW FILTERING", &[14, 15]),
        ("pk = 9", &[]),
        ("pk = 0 AND a IN (1, -1) AND b = 'x'", &[11, 5]),
    ];
    for (condition, expected) in cases {
        let text = format!("SELECT v FROM ks.c WHERE {condition}");
        let mut found = sim.ok(id, &text).rows().ints(0);
        if condition.starts_with("pk IN") {
            found.sort_unstable();
        }
        assert_eq!(found, *expected, "{condition}");
    }
    let count = sim.ok(id, "SELECT count(*) FROM ks.c").rows().rows;
    assert_eq!(count, [vec![Some(45i64.to_be_bytes().to_vec())]]);
    let limited = sim
        .ok(id, "SELECT v FROM ks.c PER PARTITION LIMIT 1")
        .rows();
    assert_eq!(limited.rows.len(), 3);
    let all = sim
        .ok(
            id,
            "SELECT token(pk) AS t, pk FROM ks.c WHERE pk = 1 LIMIT 1",
        )
        .rows()
        .rows;
    assert_eq!(
        all[0][0],
        Some((-4069959284402364209_i64).to_be_bytes().to_vec())
    );
}

#[test]
fn token_ranges_cut_the_ring() {
    let (mut sim, id) = clustered();
    // Tokens of 0, 1, 2: the documents have 1 lowest, then 0, then 2.
    let at = |text: &str| format!("SELECT pk FROM ks.c WHERE {text} PER PARTITION LIMIT 1");
    let cases: &[(&str, &[i32])] = &[
        ("token(pk) > -9223372036854775808", &[1, 0, 2]),
        ("token(pk) > -4069959284402364209", &[0, 2]),
        (
            "token(pk) >= -4069959284402364209 AND token(pk) < -3248873570005575792",
            &[1, 0],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(sim.ok(id, &at(text)).rows().ints(0), *expected, "{text}");
    }
}

#[test]
fn deletions_of_every_reach() {
    let cases: &[(&str, usize)] = &[
        ("DELETE FROM ks.c WHERE pk = 0", 0),
        ("DELETE FROM ks.c WHERE pk = 0 AND a = 1", 12),
        ("DELETE FROM ks.c WHERE pk = 0 AND a = 1 AND b = 'x'", 14),
        ("DELETE FROM ks.c WHERE pk = 0 AND a = 1 AND b > ''", 13),
        ("DELETE FROM ks.c WHERE pk = 0 AND a > 0", 9),
        ("DELETE FROM ks.c WHERE pk = 0 AND a >= 0", 6),
        ("DELETE FROM ks.c WHERE pk = 0 AND a < 0", 9),
        ("DELETE FROM ks.c WHERE pk = 0 AND a > -2 AND a <= 1", 6),
        ("DELETE v FROM ks.c WHERE pk = 0 AND a = 1 AND b = 'x'", 15),
        ("TRUNCATE ks.c", 0),
    ];
    for (text, left) in cases {
        let (mut sim, id) = clustered();
        sim.ok(id, text);
        let rows = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 0").rows().rows;
        assert_eq!(rows.len(), *left, "{text}");
    }
}

#[test]
fn conditions_answer_with_the_row_before() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let steps: &[(&str, bool, Option<&str>)] = &[
        (
            "INSERT INTO ks.t (pk, v) VALUES (1, 'a') IF NOT EXISTS",
            true,
            None,
        ),
        (
            "INSERT INTO ks.t (pk, v) VALUES (1, 'b') IF NOT EXISTS",
            false,
            Some("a"),
        ),
        (
            "UPDATE ks.t SET v = 'c' WHERE pk = 1 IF v = 'x'",
            false,
            Some("a"),
        ),
        (
            "UPDATE ks.t SET v = 'c' WHERE pk = 1 IF v IN ('x', 'a')",
            true,
            Some("a"),
        ),
        (
            "UPDATE ks.t SET v = 'd' WHERE pk = 2 IF EXISTS",
            false,
            None,
        ),
        (
            "UPDATE ks.t SET v = 'd' WHERE pk = 2 IF v = null",
            true,
            None,
        ),
        ("DELETE FROM ks.t WHERE pk = 1 IF EXISTS", true, Some("c")),
        ("DELETE FROM ks.t WHERE pk = 1 IF EXISTS", false, None),
    ];
    for (text, applied, before) in steps {
        let row = sim.ok(id, text).rows().rows.remove(0);
        assert_eq!(row[0], Some(vec![u8::from(*applied)]), "{text}");
        let shown = row.last().unwrap().as_deref();
        assert_eq!(shown, before.map(str::as_bytes), "{text}");
    }
}

#[test]
fn values_are_judged() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
    let cases: &[(&str, &str)] = &[
        (
            "0006 01 0002 ffffffff 00000001 61",
            "Invalid null value in condition for column pk",
        ),
        (
            "0006 01 0002 fffffffe 00000001 61",
            "Invalid unset value for column pk",
        ),
        ("0006 01 0002 00000000 00000001 61", "Key may not be empty"),
        (
            "0006 01 0002 00000002 0001 00000001 61",
            "Exception while binding column pk: marshaling error: Validation failed for type int: \
             got 2 bytes",
        ),
        (
            "0006 01 0002 00000004 00000001 00000001 ff",
            "Exception while binding column v: marshaling error: Validation failed for type text: \
             got 1 bytes",
        ),
        (
            "0008 01 0002 00000004 00000001 00000001 61",
            "You must use conditional updates for serializable writes",
        ),
    ];
    for (parameters, text) in cases {
        let reply = sim.ask(id, QUERY, &query(insert, &unhex(parameters)));
        assert_eq!(reply.error(), (0x2200, (*text).to_owned()), "{parameters}");
    }
    // Unset leaves a cell as it was, null removes it.
    for (value, left) in [("00000001 61", "a"), ("fffffffe", "a"), ("ffffffff", "")] {
        let body = query(
            insert,
            &unhex(&format!("0006 01 0002 00000004 00000001 {value}")),
        );
        assert_eq!(sim.ask(id, QUERY, &body).opcode, RESULT);
        assert_eq!(
            sim.ok(id, "SELECT v FROM ks.t WHERE pk = 1")
                .rows()
                .texts(0),
            [left]
        );
    }
}

#[test]
fn refusals_have_their_codes() {
    let (mut sim, id) = clustered();
    let cases = [
        ("SELEC 1", 0x2000),
        ("SELECT nothing FROM ks.t", 0x2200),
        ("SELECT * FROM ks.nothing", 0x2200),
        ("SELECT * FROM t", 0x2200),
        ("SELECT * FROM system.peers_v2", 0x2200),
        ("SELECT * FROM system_virtual_schema.tables", 0x2200),
        ("SELECT * FROM ks.t WHERE v = 'a'", 0x2200),
        ("SELECT * FROM ks.c WHERE pk = 1 AND b = 'x'", 0x2200),
        (
            "SELECT * FROM ks.c WHERE pk = 1 AND a > 1 AND b = 'x'",
            0x2200,
        ),
        ("SELECT * FROM ks.c WHERE a = 1", 0x2200),
        ("INSERT INTO system.local (key) VALUES ('x')", 0x2100),
        (
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            0x2400,
        ),
        ("CREATE TABLE ks.t (a int PRIMARY KEY)", 0x2400),
        (
            "CREATE KEYSPACE x WITH replication = {'class': 'Nothing'}",
            0x2300,
        ),
        (
            "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'no': 1}",
            0x2300,
        ),
        (
            "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND consistency = 'local'",
            0x2300,
        ),
        ("CREATE TABLE ks.x (a list<int> PRIMARY KEY)", 0x2200),
        (
            "CREATE TABLE ks.x (a int PRIMARY KEY, b list<list<int>>)",
            0x2200,
        ),
        ("CREATE TABLE ks.x (a int)", 0x2200),
        ("CREATE TABLE nothing.x (a int PRIMARY KEY)", 0x2200),
        ("CREATE TYPE ks.x (a int, a int)", 0x2200),
        ("USE nothing", 0x2200),
        ("DROP TABLE ks.nothing", 0x2200),
        ("INSERT INTO ks.t (v) VALUES ('a')", 0x2200),
        ("INSERT INTO ks.t (pk, v) VALUES (1, 2)", 0x2200),
        ("UPDATE ks.t SET pk = 1 WHERE pk = 1", 0x2200),
        ("SELECT * FROM ks.t LIMIT 0", 0x2200),
        ("SELECT * FROM ks.t WHERE pk = 1 USING TIMEOUT 5ns", 0x2200),
        (
            "INSERT INTO ks.t (pk) VALUES (1) USING TIMESTAMP 9000000000000000",
            0x2200,
        ),
    ];
    for (text, code) in cases {
        let (found, message) = sim.query(id, text).error();
        assert_eq!(found, code, "{text}: {message}");
        assert!(!message.is_empty());
    }
}

fn paged(sim: &mut Sim, id: ConnectionId, text: &str, size: u32, state: Option<&[u8]>) -> Frame {
    let mut parameters = ONE.to_be_bytes().to_vec();
    parameters.push(if state.is_some() { 0x0c } else { 0x04 });
    parameters.extend(size.to_be_bytes());
    if let Some(state) = state {
        parameters.extend(u32::try_from(state.len()).unwrap().to_be_bytes());
        parameters.extend(state);
    }
    sim.ask(id, QUERY, &query(text, &parameters))
}

#[test]
fn pages_of_every_size_on_any_node_give_the_same_rows() {
    let (mut sim, first) = clustered();
    let nodes = [first, sim.connect(1, 0, &[]), sim.connect(2, 1, &[])];
    for text in [
        "SELECT v FROM ks.c",
        "SELECT v FROM ks.c LIMIT 31",
        "SELECT v FROM ks.c PER PARTITION LIMIT 7",
        "SELECT v FROM ks.c WHERE pk = 1 ORDER BY a ASC, b DESC",
        "SELECT v FROM ks.c WHERE pk IN (0, 2) AND a > -2",
        "SELECT position FROM system_schema.columns WHERE keyspace_name = 'ks'",
    ] {
        let whole = sim.ok(first, text).rows();
        assert_eq!(whole.flags & 2, 0, "unpaged");
        for size in 1..=50 {
            let mut found = Vec::new();
            let mut state = None;
            for turn in 0.. {
                assert!(turn < 100, "{text} by {size} never ends");
                let reply = paged(&mut sim, nodes[turn % 3], text, size, state.as_deref());
                let page = reply.rows();
                assert!(page.rows.len() <= size as usize);
                found.extend(page.rows);
                state = page.state;
                if state.is_none() {
                    break;
                }
            }
            assert_eq!(found, whole.rows, "{text} by {size}");
        }
    }
}

#[test]
fn system_tables_tell_of_all_nodes() {
    let mut sim = Sim::new(Options::uniform(3, 2));
    let id = sim.connect(1, 0, &[]);
    let ids: Vec<Vec<u8>> = (0..3)
        .map(|node| sim.cluster.host_id(node).unwrap().to_vec())
        .collect();
    let local = sim
        .ok(
            id,
            "SELECT host_id, rpc_address FROM system.local WHERE key = 'local'",
        )
        .rows();
    assert_eq!(
        local.rows,
        [vec![Some(ids[1].clone()), Some(vec![127, 0, 0, 2])]]
    );
    let peers = sim
        .ok(id, "SELECT host_id FROM system.peers USING TIMEOUT 500ms")
        .rows()
        .rows;
    assert_eq!(
        peers,
        [vec![Some(ids[0].clone())], vec![Some(ids[2].clone())]]
    );
    for text in [
        "SELECT * FROM system.local",
        "SELECT * FROM system.peers",
        "SELECT * FROM system.clients",
    ] {
        assert!(!sim.ok(id, text).rows().rows.is_empty(), "{text}");
    }
}

#[test]
fn system_schema_answers_query_and_execute() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let tables = sim.ok(
        id,
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'",
    );
    assert_eq!(tables.rows().texts(0), ["t"]);
    let text = "select keyspace_name, consistency, initial_tablets from \
                system_schema.scylla_keyspaces where keyspace_name in ?";
    let prepared = sim.prepare(id, text);
    let list = unhex("00000003 00000002 6b73 00000002 7363 00000002 766e");
    let reply = sim.ask(
        id,
        EXECUTE,
        &execute(&prepared, &parameters(LOCAL_QUORUM, &[&list]), None),
    );
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let zero = Some(vec![0, 0, 0, 0]);
    assert_eq!(
        reply.rows().rows,
        [
            vec![text("ks"), None, zero.clone()],
            vec![text("sc"), text("global"), zero]
        ]
    );
    let columns = sim.ok(
        id,
        "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = 'ks'",
    );
    assert_eq!(columns.rows().texts(1), ["partition_key", "regular"]);
    let everything = [
        "keyspaces",
        "tables",
        "columns",
        "types",
        "functions",
        "aggregates",
        "indexes",
        "views",
        "triggers",
        "scylla_keyspaces",
        "scylla_tables",
        "dropped_columns",
        "computed_columns",
        "view_virtual_columns",
        "scylla_aggregates",
    ];
    for table in everything {
        sim.ok(id, &format!("SELECT * FROM system_schema.{table}"));
    }
}

#[test]
fn plain_nodes_have_nothing_of_scylla() {
    let mut sim = Sim::new(Options::uniform(1, 2).with_plain());
    let id = sim.connect(0, 0, &["SCYLLA_USE_METADATA_ID"]);
    let supported = sim.ask(id, 5, &[]).body;
    assert!(!String::from_utf8_lossy(&supported).contains("SCYLLA"));
    for table in ["scylla_keyspaces", "scylla_tables"] {
        let error = sim
            .query(id, &format!("SELECT * FROM system_schema.{table}"))
            .error();
        assert_eq!(error.0, 0x2200);
    }
    sim.ok(id, "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}");
    sim.ok(id, "CREATE TABLE k.t (a int PRIMARY KEY)");
    assert!(sim.cluster.tablets("k", "t").is_empty());
    assert!(string("").len() == 2);
}
