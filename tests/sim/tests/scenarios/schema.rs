//! What schema statements change, refuse and tell.

use messina_sim::node::{ConnectionId, Options};

use crate::support::{
    EVENT, EXECUTE, Frame, LOCAL_QUORUM, RESULT, Sim, Take, bound, compact, execute, frames, hex,
    string,
};

/// The SCHEMA_CHANGE events that a connection has got.
fn events(sim: &mut Sim, id: ConnectionId) -> Vec<String> {
    let bytes = sim.cluster.take_output(id, sim.now);
    frames(&bytes)
        .into_iter()
        .filter(|frame| frame.opcode == EVENT)
        .map(|frame| {
            let mut take = Take(&frame.body);
            let mut words = Vec::new();
            while !take.0.is_empty() {
                words.push(take.string());
            }
            words.join(" ")
        })
        .collect()
}

/// The words of a SCHEMA_CHANGE result.
fn change(frame: &Frame) -> String {
    let mut take = Take(&frame.body);
    assert_eq!(take.int(), 5);
    let mut words = Vec::new();
    while !take.0.is_empty() {
        words.push(take.string());
    }
    words.join(" ")
}

#[test]
fn schema_changes_are_told_with_their_targets() {
    let (mut sim, id) = Sim::admin();
    let listener = sim.connect(1, 0, &[]);
    let register = [&1u16.to_be_bytes()[..], &string("SCHEMA_CHANGE")].concat();
    assert_eq!(sim.ask(listener, 0x0B, &register).opcode, 2);
    let base = "SELECT * FROM ks.b WHERE pk IS NOT NULL AND v IS NOT NULL";
    let steps: &[(&str, &str)] = &[
        ("CREATE TYPE ks.u (a int)", "CREATED TYPE ks u"),
        ("ALTER TYPE ks.u ADD b text", "UPDATED TYPE ks u"),
        ("ALTER TYPE ks.u RENAME a TO c", "UPDATED TYPE ks u"),
        (
            "CREATE TABLE ks.b (pk int PRIMARY KEY, v int, w frozen<u>)",
            "CREATED TABLE ks b",
        ),
        ("ALTER TABLE ks.b ADD x int", "UPDATED TABLE ks b"),
        ("ALTER TABLE ks.b DROP x", "UPDATED TABLE ks b"),
        ("ALTER TABLE ks.b RENAME pk TO id", "UPDATED TABLE ks b"),
        ("ALTER TABLE ks.b RENAME id TO pk", "UPDATED TABLE ks b"),
        ("CREATE INDEX ON ks.b (v)", "UPDATED TABLE ks b"),
        ("DROP INDEX ks.b_v_idx", "UPDATED TABLE ks b"),
        (
            &format!("CREATE MATERIALIZED VIEW ks.mv AS {base} PRIMARY KEY (v, pk)"),
            "CREATED TABLE ks mv",
        ),
        ("DROP MATERIALIZED VIEW ks.mv", "DROPPED TABLE ks mv"),
        ("DROP TABLE ks.b", "DROPPED TABLE ks b"),
        ("DROP TYPE ks.u", "DROPPED TYPE ks u"),
        ("DROP KEYSPACE ks", "DROPPED KEYSPACE ks"),
    ];
    for (text, expected) in steps {
        let reply = sim.ok(id, text);
        assert_eq!(change(&reply), *expected, "{text}");
        assert_eq!(
            events(&mut sim, listener),
            [format!("SCHEMA_CHANGE {expected}")],
            "{text}"
        );
    }
    // What is there already is told to the requester alone, what is not there to nobody.
    sim.ok(id, "CREATE TYPE vn.u (a int)");
    events(&mut sim, listener);
    let reply = sim.ok(id, "CREATE TYPE IF NOT EXISTS vn.u (a int)");
    assert_eq!(change(&reply), "CREATED TYPE vn u");
    for text in [
        "DROP TYPE IF EXISTS vn.none",
        "DROP MATERIALIZED VIEW IF EXISTS vn.none",
        "DROP INDEX IF EXISTS vn.none",
    ] {
        assert_eq!(sim.ok(id, text).body, [0, 0, 0, 1], "{text}");
    }
    assert!(events(&mut sim, listener).is_empty());
}

#[test]
fn schema_statements_that_are_refused() {
    let (mut sim, id) = Sim::admin();
    for text in [
        "CREATE TYPE ks.u (a int, b text)",
        "CREATE TYPE ks.outer (u frozen<u>)",
        "CREATE TABLE ks.b (pk int, ck int, v int, w int, o frozen<outer>, PRIMARY KEY (pk, ck))",
        "CREATE INDEX i ON ks.b (v)",
        "CREATE MATERIALIZED VIEW ks.mv AS SELECT pk, ck, w FROM ks.b WHERE pk IS NOT NULL AND \
         ck IS NOT NULL AND w IS NOT NULL PRIMARY KEY (w, pk, ck)",
    ] {
        sim.ok(id, text);
    }
    let cases = [
        ("CREATE TYPE ks.u (a int)", 0x2200),
        ("CREATE TYPE ks.x (a int, a int)", 0x2200),
        ("CREATE TYPE ks.x (a counter)", 0x2200),
        ("CREATE TYPE ks.x (a u)", 0x2200),
        ("ALTER TYPE ks.u ADD a int", 0x2200),
        ("ALTER TYPE ks.u ADD o frozen<outer>", 0x2200),
        ("ALTER TYPE ks.u RENAME x TO y", 0x2200),
        ("ALTER TYPE ks.u RENAME a TO b", 0x2200),
        ("ALTER TYPE ks.none ADD a int", 0x2200),
        ("ALTER TYPE ks.u ALTER a TYPE text", 0x2200),
        ("DROP TYPE ks.u", 0x2200),
        ("DROP TYPE ks.outer", 0x2200),
        ("DROP TYPE ks.none", 0x2200),
        ("ALTER TABLE ks.b RENAME v TO x", 0x2200),
        ("ALTER TABLE ks.b RENAME pk TO v", 0x2200),
        ("ALTER TABLE ks.b DROP w", 0x2200),
        ("ALTER TABLE ks.b DROP v", 0x2200),
        ("ALTER TABLE ks.b DROP pk", 0x2200),
        ("ALTER TABLE ks.b ALTER v TYPE text", 0x2200),
        ("ALTER TABLE ks.b ADD v int", 0x2200),
        ("ALTER TABLE ks.b WITH nothing = 5", 0x2000),
        ("ALTER TABLE ks.b WITH cdc = {'enabled': true}", 0x2200),
        ("ALTER TABLE ks.mv ADD x int", 0x2200),
        ("DROP TABLE ks.b", 0x2200),
        ("DROP TABLE ks.mv", 0x2200),
        ("DROP INDEX ks.none", 0x2200),
        ("DROP MATERIALIZED VIEW ks.b", 0x2200),
        ("CREATE INDEX i ON ks.b (w)", 0x2200),
        ("CREATE INDEX j ON ks.b (v)", 0x2200),
        ("CREATE INDEX j ON ks.b (none)", 0x2200),
        ("CREATE INDEX j ON ks.b (keys(v))", 0x2200),
        ("CREATE INDEX j ON ks.t (pk)", 0x2200),
        ("CREATE CUSTOM INDEX j ON ks.b (w) USING 'x'", 0x2200),
        ("INSERT INTO ks.mv (w, pk, ck) VALUES (1, 1, 1)", 0x2200),
        (
            "CREATE MATERIALIZED VIEW ks.x AS SELECT * FROM ks.b WHERE pk IS NOT NULL PRIMARY KEY (pk)",
            0x2200,
        ),
        (
            "CREATE MATERIALIZED VIEW ks.x AS SELECT * FROM ks.b WHERE pk IS NOT NULL PRIMARY KEY \
             (pk, ck)",
            0x2200,
        ),
        (
            "CREATE MATERIALIZED VIEW ks.x AS SELECT * FROM ks.b WHERE pk IS NOT NULL AND ck IS NOT \
             NULL AND v IS NOT NULL AND w IS NOT NULL PRIMARY KEY (v, w, pk, ck)",
            0x2200,
        ),
        ("CREATE ROLE r", 0x2100),
        ("GRANT SELECT ON ks.b TO r", 0x2100),
        ("CREATE FUNCTION ks.f (a int) RETURNS int", 0x2200),
        ("DESCRIBE TABLES", 0x2200),
        ("CREATE TRIGGER x ON ks.b", 0x2000),
        ("DROP TABLE system.local", 0x2100),
        ("CREATE TYPE system.x (a int)", 0x2100),
    ];
    for (text, code) in cases {
        let (found, message) = sim.query(id, text).error();
        assert_eq!(found, code, "{text}: {message}");
    }
}

#[test]
fn plain_nodes_have_nothing_of_scylla() {
    let mut sim = Sim::new(Options::uniform(1, 1).with_plain());
    let id = sim.connect(0, 0, &[]);
    let create = |more: &str| {
        format!(
            "CREATE KEYSPACE k WITH replication = {{'class': 'NetworkTopologyStrategy', \
             'replication_factor': 1}}{more}"
        )
    };
    for more in [
        " AND tablets = {'enabled': false}",
        " AND consistency = 'global'",
        " AND storage = {'type': 'S3'}",
    ] {
        assert_eq!(sim.refused(id, &create(more)), 0x2000, "{more}");
    }
    sim.ok(id, &create(""));
    let alter = "ALTER KEYSPACE k WITH tablets = {'enabled': false}";
    assert_eq!(sim.refused(id, alter), 0x2000);
    assert_eq!(
        sim.refused(id, "SELECT * FROM system_schema.scylla_tables"),
        0x2200
    );
    let tables = sim.ok(id, "SELECT table_name FROM system_schema.tables");
    let names = tables.rows().texts(0);
    assert!(!names.is_empty() && names.iter().all(|name| !name.starts_with("scylla_")));
}

#[test]
fn altered_types_reach_what_uses_them() {
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TYPE ks.u (a int)");
    sim.ok(id, "CREATE TYPE ks.outer (u frozen<u>)");
    sim.ok(
        id,
        "CREATE TABLE ks.b (pk int PRIMARY KEY, v u, o frozen<outer>)",
    );
    sim.ok(
        id,
        "INSERT INTO ks.b (pk, v, o) VALUES (1, {a: 1}, {u: {a: 2}})",
    );
    sim.ok(id, "ALTER TYPE ks.u ADD b text");
    sim.ok(id, "ALTER TYPE ks.u RENAME a TO first");
    let rows = sim
        .ok(id, "SELECT v.first, v.b, o.u.first, o.u.b FROM ks.b")
        .rows()
        .rows;
    assert_eq!(
        rows,
        [vec![
            Some(vec![0, 0, 0, 1]),
            None,
            Some(vec![0, 0, 0, 2]),
            None
        ]]
    );
    sim.ok(
        id,
        "UPDATE ks.b SET v.b = 'x', o = {u: {first: 3, b: 'y'}} WHERE pk = 1",
    );
    let found = sim.value(id, "SELECT v FROM ks.b");
    assert_eq!(found, Some(compact("00000004 00000001 00000001 78")));
    let types = sim.ok(
        id,
        "SELECT field_names, field_types FROM system_schema.types WHERE keyspace_name = 'ks' AND \
         type_name = 'outer'",
    );
    let rows = types.rows().rows;
    assert_eq!(hex(rows[0][0].as_ref().unwrap()), "000000010000000175");
    assert_eq!(
        hex(rows[0][1].as_ref().unwrap()),
        compact("00000001 00000009 66726f7a656e3c753e")
    );
}

#[test]
fn prepared_statements_end_with_their_table() {
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TABLE ks.b (pk int PRIMARY KEY, v int)");
    let select = sim.prepare(id, "SELECT * FROM ks.b WHERE pk = ?");
    let body = execute(&select, &bound(LOCAL_QUORUM, &["00000001"]), None);
    assert_eq!(sim.ask(id, EXECUTE, &body).opcode, RESULT);
    for (text, forgets) in [
        ("CREATE INDEX i ON ks.b (v)", true),
        ("ALTER TABLE ks.b WITH comment = 'x'", true),
        ("ALTER TABLE ks.b ADD w int", true),
        ("ALTER TABLE ks.b RENAME pk TO id", true),
        ("CREATE TYPE ks.u (a int)", false),
        ("ALTER TYPE ks.u ADD b int", false),
        ("CREATE TABLE ks.other (id int PRIMARY KEY)", false),
    ] {
        let key = if forgets { "pk" } else { "id" };
        let prepared = sim.prepare(id, &format!("SELECT * FROM ks.b WHERE {key} = ?"));
        sim.ok(id, text);
        let body = execute(&prepared, &bound(LOCAL_QUORUM, &["00000001"]), None);
        let reply = sim.ask(id, EXECUTE, &body);
        assert_eq!(reply.opcode == RESULT, !forgets, "{text}");
        if forgets {
            assert_eq!(reply.error().0, 0x2500, "{text}");
        }
    }
}

#[test]
fn tables_that_use_a_type_change_with_it() {
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TYPE ks.u (a int)");
    sim.ok(
        id,
        "CREATE TABLE ks.b (pk int PRIMARY KEY, v list<frozen<u>>)",
    );
    let listener = sim.connect(1, 0, &[]);
    let register = [&1u16.to_be_bytes()[..], &string("SCHEMA_CHANGE")].concat();
    assert_eq!(sim.ask(listener, 0x0B, &register).opcode, 2);
    let prepared = sim.prepare(id, "SELECT v FROM ks.b WHERE pk = ?");
    let reply = sim.ok(id, "ALTER TYPE ks.u ADD b int");
    assert_eq!(change(&reply), "UPDATED TYPE ks u");
    let expected = ["UPDATED TYPE ks u", "UPDATED TABLE ks b"];
    let expected = expected.map(|words| format!("SCHEMA_CHANGE {words}"));
    assert_eq!(events(&mut sim, listener), expected);
    let body = execute(&prepared, &bound(LOCAL_QUORUM, &["00000001"]), None);
    assert_eq!(sim.ask(id, EXECUTE, &body).error().0, 0x2500);
}

#[test]
fn types_do_not_grow_without_bound() {
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TYPE ks.t0 (a int, b int)");
    let next = |at: i32| {
        let below = at - 1;
        format!("CREATE TYPE ks.t{at} (a frozen<t{below}>, b frozen<t{below}>)")
    };
    let refused = (1..64).find(|at| sim.query(id, &next(*at)).opcode != RESULT);
    assert_eq!(refused, Some(10), "2^n fields with their types");
    assert_eq!(sim.refused(id, &next(10)), 0x2200);
    // Growing from below is refused as well, and leaves all as it was.
    sim.ok(id, "ALTER TYPE ks.t0 ADD c int");
    let grown = (0..64).find(|at| {
        let text = format!("ALTER TYPE ks.t0 ADD d{at} int");
        sim.query(id, &text).opcode != RESULT
    });
    let text = "SELECT field_names FROM system_schema.types WHERE keyspace_name = 'ks' AND \
                type_name = 't0'";
    let names = sim.value(id, text).unwrap();
    let count = 3 + grown.expect("an end");
    assert!(names.starts_with(&format!("{count:08x}")), "{names}");
}

#[test]
fn views_show_their_base_and_indexes_find_rows() {
    let (mut sim, id) = Sim::admin();
    sim.ok(
        id,
        "CREATE TABLE ks.b (pk int, ck int, v int, w int, PRIMARY KEY (pk, ck))",
    );
    sim.ok(
        id,
        "CREATE MATERIALIZED VIEW ks.mv AS SELECT pk, ck, w FROM ks.b WHERE pk IS NOT NULL AND ck IS \
         NOT NULL AND v IS NOT NULL PRIMARY KEY (v, pk, ck) WITH CLUSTERING ORDER BY (pk DESC)",
    );
    sim.ok(id, "CREATE INDEX ON ks.b (w)");
    for (pk, ck, v, w) in [
        (1, 1, "5", 10),
        (2, 1, "5", 20),
        (3, 1, "6", 20),
        (4, 1, "null", 20),
    ] {
        let insert = format!("INSERT INTO ks.b (pk, ck, v, w) VALUES ({pk}, {ck}, {v}, {w})");
        sim.ok(id, &insert);
    }
    let found = sim.ok(id, "SELECT pk, w FROM ks.mv WHERE v = 5").rows();
    assert_eq!((found.ints(0), found.ints(1)), (vec![2, 1], vec![20, 10]));
    sim.ok(id, "UPDATE ks.b SET v = 6 WHERE pk = 1 AND ck = 1");
    sim.ok(id, "DELETE FROM ks.b WHERE pk = 2");
    assert!(
        sim.ok(id, "SELECT pk FROM ks.mv WHERE v = 5")
            .rows()
            .rows
            .is_empty()
    );
    assert_eq!(
        sim.ok(id, "SELECT pk FROM ks.mv WHERE v = 6")
            .rows()
            .ints(0),
        [3, 1]
    );
    let mut by_index = sim
        .ok(id, "SELECT pk FROM ks.b WHERE w = 20")
        .rows()
        .ints(0);
    by_index.sort_unstable();
    assert_eq!(by_index, [3, 4]);
    assert_eq!(sim.refused(id, "SELECT pk FROM ks.b WHERE v = 6"), 0x2200);
    // How a driver sees them.
    let view = sim.ok(
        id,
        "SELECT base_table_name, where_clause FROM system_schema.views WHERE keyspace_name = 'ks'",
    );
    assert_eq!(view.rows().texts(0), ["b"]);
    assert_eq!(
        view.rows().texts(1),
        ["pk IS NOT NULL AND ck IS NOT NULL AND v IS NOT NULL"]
    );
    let index = sim.ok(
        id,
        "SELECT index_name, kind FROM system_schema.indexes WHERE keyspace_name = 'ks'",
    );
    assert_eq!(index.rows().texts(0), ["b_w_idx"]);
    let columns = sim.ok(
        id,
        "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 'mv'",
    );
    assert_eq!(columns.rows().texts(0), ["ck", "pk", "v", "w"]);
    let tables = sim.ok(
        id,
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks'",
    );
    assert_eq!(tables.rows().texts(0), ["b", "t"]);
    sim.ok(id, "ALTER TABLE ks.b ADD x text");
    sim.ok(id, "ALTER TABLE ks.b DROP x");
    let dropped = sim.ok(
        id,
        "SELECT column_name, type FROM system_schema.dropped_columns WHERE keyspace_name = 'ks'",
    );
    assert_eq!(
        (dropped.rows().texts(0), dropped.rows().texts(1)),
        (vec!["x".to_owned()], vec!["text".to_owned()])
    );
}

#[test]
fn an_index_serves_what_it_is_of() {
    let (mut sim, id) = Sim::admin();
    sim.ok(
        id,
        "CREATE TABLE ks.x (pk int PRIMARY KEY, m map<text, int>, s set<int>, f frozen<list<int>>)",
    );
    sim.ok(
        id,
        "INSERT INTO ks.x (pk, m, s, f) VALUES (1, {'a': 5}, {7}, [1, 2])",
    );
    // The index, what it finds without filtering, what it does not.
    let cases = [
        ("keys(m)", "m CONTAINS KEY 'a'", "m CONTAINS 5"),
        ("s", "s CONTAINS 7", "s CONTAINS 7 AND m CONTAINS 5"),
        ("full(f)", "f = [1, 2]", "f CONTAINS 1"),
    ];
    for (target, found, not) in cases {
        let select = |test: &str| format!("SELECT pk FROM ks.x WHERE {test}");
        assert_eq!(sim.refused(id, &select(found)), 0x2200, "{target} before");
        sim.ok(id, &format!("CREATE INDEX i ON ks.x ({target})"));
        assert_eq!(sim.ok(id, &select(found)).rows().ints(0), [1], "{target}");
        assert_eq!(sim.refused(id, &select(not)), 0x2200, "{target}: {not}");
        sim.ok(id, "DROP INDEX ks.i");
    }
}
