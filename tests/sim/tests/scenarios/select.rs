//! SELECT: which rows, in which order, in which pages, and what is refused.

use messina_sim::node::{ConnectionId, Options, TabletsMode};

use crate::support::{
    EXECUTE, Frame, LOCAL_QUORUM, ONE, PREPARE, QUERY, Sim, execute, long_string, parameters,
    query, string, unhex,
};

/// `ks.c` of `pk, a, b, s static, v`, all ints, clustered by `a` down and `b` up: partitions 0, 1
/// and 2, each with a and b of 1 to 3, and v counting from 1 in the order of writing.
fn clustered() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int, a int, b int, s int STATIC, v int, PRIMARY KEY (pk, a, b)) \
         WITH CLUSTERING ORDER BY (a DESC, b ASC)",
    );
    let mut v = 0;
    for pk in 0..3 {
        for a in 1..4 {
            for b in 1..4 {
                v += 1;
                let values = format!("({pk}, {a}, {b}, {v}, {pk})");
                sim.ok(
                    id,
                    &format!("INSERT INTO ks.c (pk, a, b, v, s) VALUES {values}"),
                );
            }
        }
    }
    (sim, id)
}

#[test]
fn several_columns_compare_as_one() {
    let (mut sim, id) = clustered();
    // Stored order is (3,1) (3,2) (3,3) (2,1) … (1,3), that is v 7 8 9 4 5 6 1 2 3.
    let cases: &[(&str, &[i32])] = &[
        ("(a, b) > (2, 2)", &[7, 8, 9, 6]),
        ("(a, b) >= (2, 2)", &[7, 8, 9, 5, 6]),
        ("(a, b) < (2, 2)", &[4, 1, 2, 3]),
        ("(a, b) <= (2, 2)", &[4, 5, 1, 2, 3]),
        ("(a, b) = (2, 2)", &[5]),
        ("(a, b) > (1, 2) AND (a, b) < (3, 2)", &[7, 4, 5, 6, 3]),
        ("(a, b) IN ((1, 1), (3, 3), (9, 9))", &[9, 1]),
        ("(a) > (2)", &[7, 8, 9]),
        ("(a, b) > (2, 2) ORDER BY a ASC, b DESC", &[6, 9, 8, 7]),
        ("(a, b) > (2, 2) LIMIT 2", &[7, 8]),
        ("a IN (1, 3) AND b > 1", &[8, 9, 2, 3]),
        ("a = 2 AND b IN (3, 1)", &[4, 6]),
        ("a IN (3, 3)", &[7, 8, 9]),
    ];
    for (condition, expected) in cases {
        let text = format!("SELECT v FROM ks.c WHERE pk = 0 AND {condition}");
        assert_eq!(sim.ok(id, &text).rows().ints(0), *expected, "{condition}");
    }
}

#[test]
fn markers_inside_and_around_tuples() {
    let (mut sim, id) = clustered();
    let inside = "SELECT v FROM ks.c WHERE pk = 0 AND (a, b) > (?, ?)";
    let prepared = sim.ask(id, PREPARE, &long_string(inside)).body;
    let variables = "00000001 00000002 00000000 0002 6b73 0001 63 0001 61 0009 0001 62 0009";
    assert!(prepared[22..].starts_with(&unhex(variables)));
    let around = "SELECT v FROM ks.c WHERE pk = 0 AND (a, b) IN ?";
    let two = [&[0, 0, 0, 2][..], &[0, 0, 0, 2]];
    // A list of one tuple (2, 2): count, length, then two ints with their lengths.
    let list = unhex("00000001 00000010 00000004 00000002 00000004 00000002");
    for (text, values, expected) in [
        (inside, two.to_vec(), vec![7, 8, 9, 6]),
        (around, vec![&list[..]], vec![5]),
    ] {
        let prepared = sim.prepare(id, text);
        let body = execute(&prepared, &parameters(LOCAL_QUORUM, &values), None);
        assert_eq!(
            sim.ask(id, EXECUTE, &body).rows().ints(0),
            expected,
            "{text}"
        );
    }
}

#[test]
fn filters_that_must_be_allowed() {
    const FILTERING: &str = "Cannot execute this query as it might involve data filtering and \
                             thus may have unpredictable performance. If you want to execute this \
                             query despite the performance unpredictability, use ALLOW FILTERING";
    let (mut sim, id) = clustered();
    let cases: &[(&str, &str, usize)] = &[
        ("v = 5", FILTERING, 1),
        ("s = 1", FILTERING, 9),
        ("a = 2", FILTERING, 9),
        ("pk = 0 AND v > 7", FILTERING, 2),
        ("pk = 0 AND a = 1 AND v = 2", FILTERING, 1),
        (
            "pk > 0",
            "Only EQ and IN relation are supported on the partition key (unless you use the \
             token() function or allow filtering)",
            18,
        ),
        (
            "pk = 0 AND b = 1",
            "\"b\" cannot be restricted as preceding column \"a\" is not restricted",
            3,
        ),
        (
            "pk = 0 AND a > 1 AND b = 1",
            "\"b\" cannot be restricted (preceding column \"a\" is restricted by a non-EQ \
             relation)",
            2,
        ),
    ];
    for (condition, message, found) in cases {
        let text = format!("SELECT v FROM ks.c WHERE {condition}");
        assert_eq!(
            sim.query(id, &text).error(),
            (0x2200, (*message).to_owned()),
            "{condition}"
        );
        let allowed = format!("{text} ALLOW FILTERING");
        assert_eq!(
            sim.ok(id, &allowed).rows().rows.len(),
            *found,
            "{condition}"
        );
    }
}

#[test]
fn collections_are_searched() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.m (pk int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, \
         f frozen<list<int>>)",
    );
    sim.ok(
        id,
        "INSERT INTO ks.m (pk, l, s, m, f) VALUES (1, [1, 2], {'a', 'b'}, {'x': 5}, [7])",
    );
    sim.ok(
        id,
        "INSERT INTO ks.m (pk, l, s, m) VALUES (2, [2, 3], {'b'}, {'x': 6, 'y': 5})",
    );
    let cases: &[(&str, &[i32])] = &[
        ("l CONTAINS 1", &[1]),
        ("l CONTAINS 2", &[1, 2]),
        ("l CONTAINS 9", &[]),
        ("s CONTAINS 'a'", &[1]),
        ("m CONTAINS 5", &[1, 2]),
        ("m CONTAINS KEY 'y'", &[2]),
        ("m CONTAINS KEY 'x' AND m CONTAINS 6", &[2]),
        ("f CONTAINS 7", &[1]),
        ("f = [7]", &[1]),
    ];
    for (condition, expected) in cases {
        let text = format!("SELECT pk FROM ks.m WHERE {condition}");
        assert_eq!(sim.query(id, &text).error().0, 0x2200, "{condition}");
        let mut found = sim
            .ok(id, &format!("{text} ALLOW FILTERING"))
            .rows()
            .ints(0);
        found.sort_unstable();
        assert_eq!(found, *expected, "{condition}");
    }
    for (text, message) in [
        (
            "SELECT pk FROM ks.m WHERE pk CONTAINS 1 ALLOW FILTERING",
            "Cannot use CONTAINS on non-collection column pk",
        ),
        (
            "SELECT pk FROM ks.m WHERE l CONTAINS KEY 1 ALLOW FILTERING",
            "Cannot use CONTAINS KEY on non-collection column l",
        ),
    ] {
        assert_eq!(sim.query(id, text).error(), (0x2200, message.to_owned()));
    }
    // Conditions look at parts of values.
    for (condition, applied) in [
        ("m['x'] = 5", true),
        ("m['y'] = null", true),
        ("m['x'] = 6", false),
        ("m['x'] IN (5, 6)", true),
        ("l[1] = 2", true),
        ("l[0] > 1", false),
        ("f = [7]", true),
    ] {
        let text = format!("UPDATE ks.m SET f = [7] WHERE pk = 1 IF {condition}");
        let rows = sim.ok(id, &text).rows().rows;
        assert_eq!(rows[0][0], Some(vec![u8::from(applied)]), "{condition}");
    }
}

#[test]
fn distinct_is_about_partitions() {
    let (mut sim, id) = clustered();
    sim.ok(id, "INSERT INTO ks.c (pk, s) VALUES (7, 70)");
    sim.ok(id, "DELETE FROM ks.c WHERE pk = 1");
    let mut found = sim.ok(id, "SELECT DISTINCT pk, s FROM ks.c").rows().ints(1);
    found.sort_unstable();
    assert_eq!(found, [0, 2, 70]);
    for (text, expected) in [
        ("SELECT DISTINCT pk FROM ks.c WHERE pk IN (0, 1, 7)", 2),
        ("SELECT DISTINCT pk FROM ks.c WHERE pk = 0", 1),
        ("SELECT DISTINCT pk FROM ks.c LIMIT 2", 2),
        (
            "SELECT DISTINCT pk FROM ks.c WHERE s > 1 ALLOW FILTERING",
            2,
        ),
    ] {
        assert_eq!(sim.ok(id, text).rows().rows.len(), expected, "{text}");
    }
    for (text, message) in [
        (
            "SELECT DISTINCT pk, v FROM ks.c",
            "SELECT DISTINCT queries must only request partition key columns and/or static \
             columns (not v)",
        ),
        (
            "SELECT DISTINCT pk FROM ks.c WHERE pk = 1 AND a = 1",
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or \
             static columns.",
        ),
        (
            "SELECT DISTINCT pk FROM ks.c PER PARTITION LIMIT 1",
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ),
        (
            "SELECT count(*) FROM ks.c PER PARTITION LIMIT 1",
            "PER PARTITION LIMIT is not allowed with aggregate queries.",
        ),
    ] {
        assert_eq!(sim.query(id, text).error(), (0x2200, message.to_owned()));
    }
}

fn longs(sim: &mut Sim, id: ConnectionId, text: &str) -> Vec<Vec<i64>> {
    let number = |value: &Option<Vec<u8>>| match value.as_deref() {
        Some(bytes) if bytes.len() == 4 => i64::from(i32::from_be_bytes(bytes.try_into().unwrap())),
        Some(bytes) => i64::from_be_bytes(bytes.try_into().unwrap()),
        None => -1,
    };
    let rows = sim.ok(id, text).rows().rows;
    rows.iter()
        .map(|row| row.iter().map(number).collect())
        .collect()
}

#[test]
fn groups_become_rows() {
    let (mut sim, id) = clustered();
    let cases: &[(&str, &[&[i64]])] = &[
        (
            "SELECT a, count(*), max(v) FROM ks.c WHERE pk = 0 GROUP BY a",
            &[&[3, 3, 9], &[2, 3, 6], &[1, 3, 3]],
        ),
        (
            "SELECT a, v FROM ks.c WHERE pk = 0 GROUP BY pk, a",
            &[&[3, 7], &[2, 4], &[1, 1]],
        ),
        (
            "SELECT a, count(*) FROM ks.c WHERE pk = 0 GROUP BY a LIMIT 2",
            &[&[3, 3], &[2, 3]],
        ),
        (
            "SELECT a, count(*) FROM ks.c WHERE pk = 0 GROUP BY a ORDER BY a ASC LIMIT 1",
            &[&[1, 3]],
        ),
        (
            "SELECT b, v FROM ks.c WHERE pk = 0 AND a = 2 GROUP BY b",
            &[&[1, 4], &[2, 5], &[3, 6]],
        ),
        (
            "SELECT count(*) FROM ks.c WHERE pk = 0 AND a = 9 GROUP BY b",
            &[],
        ),
        ("SELECT count(*) FROM ks.c WHERE pk = 9", &[&[0]]),
        ("SELECT count(*) FROM ks.c LIMIT 1", &[&[27]]),
    ];
    for (text, expected) in cases {
        assert_eq!(longs(&mut sim, id, text), *expected, "{text}");
    }
    let mut by_partition = longs(&mut sim, id, "SELECT pk, count(*) FROM ks.c GROUP BY pk");
    by_partition.sort_unstable();
    assert_eq!(by_partition, [[0, 9], [1, 9], [2, 9]]);
    for text in [
        "SELECT v FROM ks.c WHERE pk = 0 GROUP BY v",
        "SELECT v FROM ks.c WHERE pk = 0 GROUP BY b",
        "SELECT v FROM ks.c GROUP BY a",
    ] {
        assert_eq!(sim.query(id, text).error().0, 0x2200, "{text}");
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

type Row = Vec<Option<Vec<u8>>>;

/// All rows, and the lengths of the pages.
fn pages(
    sim: &mut Sim,
    id: ConnectionId,
    text: &str,
    mut size: impl FnMut(usize) -> u32,
) -> (Vec<Row>, Vec<usize>) {
    let (mut rows, mut lens, mut state) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    loop {
        assert!(lens.len() < 200, "{text} never ends");
        let page = paged(sim, id, text, size(lens.len()), state.as_deref()).rows();
        assert_eq!(page.flags & 2 != 0, page.state.is_some());
        lens.push(page.rows.len());
        rows.extend(page.rows);
        state = page.state;
        if state.is_none() {
            return (rows, lens);
        }
    }
}

#[test]
fn pages_go_through_everything_and_may_change_their_size() {
    let (mut sim, id) = clustered();
    sim.ok(id, "INSERT INTO ks.c (pk, s) VALUES (7, 70)");
    for text in [
        "SELECT pk, v FROM ks.c",
        "SELECT v FROM ks.c WHERE pk = 1",
        "SELECT v FROM ks.c WHERE pk = 1 ORDER BY a ASC",
        "SELECT v FROM ks.c WHERE pk IN (2, 0, 7)",
        "SELECT v FROM ks.c WHERE pk = 1 AND (a, b) > (1, 2)",
        "SELECT v FROM ks.c WHERE pk = 1 AND a IN (1, 3)",
        "SELECT v FROM ks.c WHERE token(pk) > -4069959284402364209",
        "SELECT v FROM ks.c WHERE v > 10 ALLOW FILTERING",
        "SELECT v FROM ks.c WHERE b = 2 LIMIT 4 ALLOW FILTERING",
        "SELECT v FROM ks.c LIMIT 11",
        "SELECT v FROM ks.c PER PARTITION LIMIT 4",
        "SELECT v FROM ks.c WHERE b = 2 PER PARTITION LIMIT 2 ALLOW FILTERING",
        "SELECT DISTINCT pk FROM ks.c",
        "SELECT count(*) FROM ks.c",
        "SELECT a, count(*) FROM ks.c WHERE pk = 1 GROUP BY a",
    ] {
        let whole = sim.ok(id, text).rows().rows;
        for size in 1..12 {
            let (rows, _) = pages(&mut sim, id, text, |_| size);
            assert_eq!(rows, whole, "{text} by {size}");
        }
        let (rows, _) = pages(&mut sim, id, text, |page| [3, 1, 7][page % 3]);
        assert_eq!(rows, whole, "{text} by turns");
    }
}

#[test]
fn aggregates_and_single_rows_come_in_one_reply() {
    let (mut sim, id) = clustered();
    for (text, len) in [
        ("SELECT count(*) FROM ks.c", 1),
        ("SELECT a, max(v) FROM ks.c WHERE pk = 1 GROUP BY a", 3),
        ("SELECT v FROM ks.c WHERE pk = 1 AND a = 1 AND b = 1", 1),
        ("SELECT DISTINCT pk FROM ks.c WHERE pk = 1", 1),
    ] {
        let (_, lens) = pages(&mut sim, id, text, |_| 1);
        assert_eq!(lens, [len], "{text}");
    }
}

#[test]
fn a_filter_may_leave_a_page_empty() {
    let (mut sim, id) = clustered();
    // The last of the nine rows of the partition: each page looks at three.
    let text = "SELECT v FROM ks.c WHERE pk = 0 AND v = 3 ALLOW FILTERING";
    assert_eq!(pages(&mut sim, id, text, |_| 3).1, [0, 0, 1]);
    let first = paged(&mut sim, id, text, 3, None).rows();
    assert_eq!((first.flags & 2, first.rows.len()), (2, 0));
}

#[test]
fn dead_rows_end_a_page() {
    let (mut sim, id) = clustered();
    sim.ok(
        id,
        "CREATE TABLE ks.d (pk int, ck int, PRIMARY KEY (pk, ck))",
    );
    let insert = sim.prepare(id, "INSERT INTO ks.d (pk, ck) VALUES (1, ?)");
    for ck in 0..10_001_i32 {
        let values = parameters(ONE, &[&ck.to_be_bytes()]);
        sim.ask(id, EXECUTE, &execute(&insert, &values, None));
    }
    sim.ok(id, "DELETE FROM ks.d WHERE pk = 1 AND ck < 10000");
    let text = "SELECT ck FROM ks.d WHERE pk = 1";
    assert_eq!(pages(&mut sim, id, text, |_| 100).1, [0, 1]);
    assert_eq!(sim.ok(id, text).rows().ints(0), [10_000], "unpaged");
}

#[test]
fn a_page_ends_at_a_mebibyte() {
    let (mut sim, id) = clustered();
    sim.ok(
        id,
        "CREATE TABLE ks.b (pk int, ck int, v blob, PRIMARY KEY (pk, ck))",
    );
    let insert = sim.prepare(id, "INSERT INTO ks.b (pk, ck, v) VALUES (1, ?, ?)");
    let value = vec![7; 100_000];
    for ck in 0..25_i32 {
        let values = parameters(ONE, &[&ck.to_be_bytes(), &value]);
        sim.ask(id, EXECUTE, &execute(&insert, &values, None));
    }
    let text = "SELECT v FROM ks.b WHERE pk = 1";
    // Ten rows are 1,000,040 bytes, eleven are beyond 1,048,576.
    assert_eq!(pages(&mut sim, id, text, |_| 5000).1, [11, 11, 3]);
    assert_eq!(pages(&mut sim, id, text, |_| 10).1, [10, 10, 5]);
    assert_eq!(sim.ok(id, text).rows().rows.len(), 25, "unpaged");
}

#[test]
fn order_over_several_partitions_is_not_paged() {
    let (mut sim, id) = clustered();
    let text = "SELECT v FROM ks.c WHERE pk IN (0, 2) AND a > 1 ORDER BY a DESC, b ASC";
    let expected = [7, 25, 8, 26, 9, 27, 4, 22, 5, 23, 6, 24];
    let mut found = sim.ok(id, text).rows().ints(0);
    // Rows of equal clustering keys come in the order of the ring.
    for pair in found.chunks_mut(2) {
        pair.sort_unstable();
    }
    assert_eq!(found, expected);
    let limited = sim.ok(id, &format!("{text} LIMIT 3")).rows().ints(0);
    assert_eq!(limited.len(), 3);
    let reverse = "SELECT a FROM ks.c WHERE pk IN (0, 2) ORDER BY a ASC PER PARTITION LIMIT 2";
    assert_eq!(sim.ok(id, reverse).rows().ints(0), [1, 1, 1, 1]);
    let (code, message) = paged(&mut sim, id, text, 100, None).error();
    assert_eq!(code, 0x2200);
    assert!(
        message.starts_with("Cannot page queries with both ORDER BY and a IN"),
        "{message}"
    );
    // One partition is no problem, nor is an IN without order.
    paged(
        &mut sim,
        id,
        "SELECT v FROM ks.c WHERE pk IN (0) ORDER BY a ASC",
        5,
        None,
    )
    .rows();
    paged(
        &mut sim,
        id,
        "SELECT v FROM ks.c WHERE pk IN (0, 2)",
        5,
        None,
    )
    .rows();
}

#[test]
fn states_of_no_page_are_protocol_errors() {
    let (mut sim, id) = clustered();
    let text = "SELECT v FROM ks.c";
    let state = paged(&mut sim, id, text, 2, None).rows().state.unwrap();
    let mut longer = state.clone();
    longer.push(0);
    let mut other = state.clone();
    other[0] ^= 1;
    for bad in [
        &[][..],
        b"garbage",
        &state[..state.len() - 1],
        &longer,
        &other,
    ] {
        let (code, message) = paged(&mut sim, id, text, 2, Some(bad)).error();
        assert_eq!(code, 0x000A, "{bad:?}: {message}");
    }
    assert_eq!(
        paged(&mut sim, id, text, 2, Some(&state)).rows().rows.len(),
        2
    );
}

#[test]
fn levels_of_reads() {
    let (mut sim, id) = clustered();
    let one = "SELECT v FROM ks.c WHERE pk = 1";
    let all = "SELECT v FROM ks.c";
    let serial =
        "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time";
    let cases = [
        (
            one,
            0,
            Some("ANY ConsistencyLevel is only supported for writes"),
        ),
        (
            one,
            7,
            Some("EACH_QUORUM ConsistencyLevel is only supported for writes"),
        ),
        (one, 8, None),
        (one, 9, None),
        (all, 8, Some(serial)),
        ("SELECT v FROM ks.c WHERE pk IN (1, 2)", 9, Some(serial)),
        ("SELECT v FROM ks.c WHERE pk IN (1)", 9, None),
        (all, 10, None),
    ];
    for (text, level, refusal) in cases {
        let reply = sim.ask(id, QUERY, &query(text, &parameters(level, &[])));
        match refusal {
            Some(message) => assert_eq!(reply.error(), (0x2200, message.to_owned()), "{text}"),
            None => assert!(!reply.rows().rows.is_empty(), "{text} at {level}"),
        }
    }
}

#[test]
fn strongly_consistent_tables_do_not_page() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE sc.c (pk int, ck int, PRIMARY KEY (pk, ck))",
    );
    for ck in 0..5 {
        sim.ok(id, &format!("INSERT INTO sc.c (pk, ck) VALUES (1, {ck})"));
    }
    let whole = paged(&mut sim, id, "SELECT ck FROM sc.c WHERE pk = 1", 2, None).rows();
    assert_eq!((whole.flags & 2, whole.ints(0)), (0, vec![0, 1, 2, 3, 4]));
    for text in [
        "SELECT ck FROM sc.c",
        "SELECT ck FROM sc.c WHERE pk IN (1, 2)",
    ] {
        let message = "Strongly consistent queries can only target a single partition";
        assert_eq!(sim.query(id, text).error(), (0x2200, message.to_owned()));
    }
    let many = "DELETE FROM sc.c WHERE pk IN (1, 2)";
    let message = "Strongly consistent queries can only target a single partition";
    assert_eq!(sim.query(id, many).error(), (0x2200, message.to_owned()));
}

#[test]
fn timeouts_are_judged() {
    let (mut sim, id) = clustered();
    let cases = [
        ("500ms", None),
        ("2s", None),
        ("1m30s", None),
        ("1h", None),
        ("0ms", None),
        (
            "5ns",
            Some("Timeout values cannot have granularity finer than milliseconds"),
        ),
        (
            "1500us",
            Some("Timeout values cannot have granularity finer than milliseconds"),
        ),
        (
            "1d",
            Some("Timeout values cannot be expressed in days/months"),
        ),
        (
            "2mo",
            Some("Timeout values cannot be expressed in days/months"),
        ),
        ("-5ms", Some("Timeout values must be non-negative")),
    ];
    for (timeout, refusal) in cases {
        for text in [
            format!("SELECT v FROM ks.c WHERE pk = 1 USING TIMEOUT {timeout}"),
            format!("INSERT INTO ks.t (pk) VALUES (1) USING TIMEOUT {timeout}"),
            format!("UPDATE ks.t USING TTL 5 AND TIMEOUT {timeout} SET v = 'a' WHERE pk = 1"),
            format!("DELETE FROM ks.t USING TIMEOUT {timeout} WHERE pk = 1"),
            format!("TRUNCATE ks.t USING TIMEOUT {timeout}"),
            format!(
                "BEGIN BATCH USING TIMEOUT {timeout} DELETE FROM ks.t WHERE pk = 1 APPLY BATCH"
            ),
        ] {
            match refusal {
                None => drop(sim.ok(id, &text)),
                Some(message) => {
                    let expected = (0x2200, message.to_owned());
                    assert_eq!(sim.query(id, &text).error(), expected, "{text}");
                }
            }
        }
    }
    // Bound: a duration of no months, no days and 1,000,000 or 1 nanoseconds, zigzag.
    let bound = "SELECT v FROM ks.c WHERE pk = 1 USING TIMEOUT ?";
    for (value, is_good) in [
        (&unhex("00 00 de8480")[..], true),
        (&unhex("00 00 02"), false),
    ] {
        let reply = sim.ask(id, QUERY, &query(bound, &parameters(ONE, &[value])));
        assert_eq!(reply.opcode == 8, is_good);
    }
}

#[test]
fn updates_make_rows_that_their_cells_keep() {
    let (mut sim, id) = clustered();
    sim.ok(id, "CREATE TABLE ks.u (pk int PRIMARY KEY, v int, w int)");
    let steps: &[(&str, usize)] = &[
        ("UPDATE ks.u SET v = 1 WHERE pk = 1", 1),
        ("UPDATE ks.u SET v = null WHERE pk = 1", 0),
        ("INSERT INTO ks.u (pk, v) VALUES (1, 1)", 1),
        ("UPDATE ks.u SET v = null WHERE pk = 1", 1),
        ("DELETE v FROM ks.u WHERE pk = 1", 1),
        ("DELETE FROM ks.u WHERE pk = 1", 0),
        ("UPDATE ks.u SET v = 1, w = 2 WHERE pk IN (1, 2)", 2),
        ("DELETE v FROM ks.u WHERE pk = 1", 2),
        ("DELETE FROM ks.u WHERE pk IN (1, 2)", 0),
        ("INSERT INTO ks.u (pk) VALUES (3)", 1),
        ("TRUNCATE TABLE ks.u", 0),
    ];
    for (text, rows) in steps {
        sim.ok(id, text);
        assert_eq!(
            sim.ok(id, "SELECT * FROM ks.u").rows().rows.len(),
            *rows,
            "{text}"
        );
    }
    let json = "INSERT INTO ks.u JSON '{\"pk\": 1}'";
    assert_eq!(sim.query(id, json).error().0, 0x2200);
    // Many rows of one partition by IN, in one UPDATE and one DELETE.
    sim.ok(
        id,
        "UPDATE ks.c SET v = 0 WHERE pk = 0 AND a IN (1, 2) AND b = 1",
    );
    let zeros = "SELECT a FROM ks.c WHERE pk = 0 AND v = 0 ALLOW FILTERING";
    assert_eq!(sim.ok(id, zeros).rows().ints(0), [2, 1]);
    sim.ok(
        id,
        "DELETE FROM ks.c WHERE pk = 0 AND a IN (1, 2) AND b > 1",
    );
    let left = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 0").rows().rows;
    assert_eq!(left.len(), 5);
}

#[test]
fn deletions_by_several_columns() {
    // Of v 7 8 9 4 5 6 1 2 3 where a goes down; `ks.u` has both columns going up.
    let cases: &[(&str, &[i32])] = &[
        ("(a, b) = (2, 2)", &[1, 2, 3, 4, 6, 7, 8, 9]),
        ("(a, b) > (2, 2)", &[1, 2, 3, 4, 5]),
        ("(a, b) >= (2, 2) AND (a, b) < (3, 2)", &[1, 2, 3, 4, 8, 9]),
        ("(a) <= (2)", &[7, 8, 9]),
        ("a = 2 AND b >= 2", &[1, 2, 3, 4, 7, 8, 9]),
    ];
    for (condition, left) in cases {
        let (mut sim, id) = clustered();
        sim.ok(
            id,
            "CREATE TABLE ks.u (pk int, a int, b int, v int, PRIMARY KEY (pk, a, b))",
        );
        for a in 1..4 {
            for b in 1..4 {
                let v = 3 * (a - 1) + b;
                sim.ok(
                    id,
                    &format!("INSERT INTO ks.u (pk, a, b, v) VALUES (0, {a}, {b}, {v})"),
                );
            }
        }
        sim.ok(
            id,
            &format!("DELETE FROM ks.u WHERE pk = 0 AND {condition}"),
        );
        let found = sim.ok(id, "SELECT v FROM ks.u WHERE pk = 0").rows().ints(0);
        assert_eq!(found, *left, "{condition}");
    }
    let (mut sim, id) = clustered();
    sim.ok(id, "DELETE FROM ks.c WHERE pk = 0 AND (a, b) = (2, 2)");
    let found = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 0").rows().ints(0);
    assert_eq!(found, [7, 8, 9, 4, 6, 1, 2, 3]);
    for (text, message) in [
        (
            "DELETE FROM ks.c WHERE pk = 0 AND (a, b) > (2, 2)",
            "Unsupported relation on (a,b) in UPDATE or DELETE",
        ),
        (
            "DELETE FROM ks.c WHERE pk = 0 AND (b) > (2)",
            "Clustering columns may not be skipped in multi-column relations. They should appear \
             in the PRIMARY KEY order. Got (b)",
        ),
        (
            "DELETE FROM ks.c WHERE pk = 0 AND (a) > (2) AND a = 1",
            "Mixing single column relations and multi column relations on clustering columns is \
             not allowed",
        ),
        (
            "SELECT v FROM ks.c WHERE pk = 0 AND (a) > (2) AND b = 1",
            "Mixing single column relations and multi column relations on clustering columns is \
             not allowed",
        ),
        (
            "SELECT v FROM ks.c WHERE pk = 0 AND (a, v) > (2, 1)",
            "Multi-column relations can only be applied to clustering columns but was applied to: \
             v",
        ),
        (
            "DELETE FROM ks.c WHERE pk = 0 AND a > 1 AND a >= 2",
            "More than one restriction was found for the start bound on a",
        ),
    ] {
        assert_eq!(
            sim.query(id, text).error(),
            (0x2200, message.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn variables_of_lists_are_named_as_the_kind_of_node_does() {
    for (options, name) in [
        (Options::uniform(1, 1), "IN(pk)"),
        (Options::uniform(1, 1).with_plain(), "in(pk)"),
    ] {
        let mut sim = Sim::new(options);
        let id = sim.connect(0, 0, &[]);
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        sim.ok(
            id,
            &format!("CREATE KEYSPACE ks WITH replication = {simple}"),
        );
        sim.ok(id, "CREATE TABLE ks.t (pk int PRIMARY KEY)");
        let text = "SELECT pk FROM ks.t WHERE pk IN ?";
        let prepared = sim.ask(id, PREPARE, &long_string(text)).body;
        let expected = [
            unhex("00000001 00000001 00000000 0002 6b73 0001 74"),
            string(name),
            unhex("0020 0009"),
        ];
        assert!(prepared[22..].starts_with(&expected.concat()), "{name}");
    }
}
