//! Values of every type, in and out: as constants, bound, in keys, in parts. The bytes are written
//! from the data formats of the native protocol, version 4, section 6.

use messina_sim::node::{ConnectionId, TabletsMode};

use crate::support::{
    EVENT, Frame, LOCAL_QUORUM, QUERY, RESULT, Sim, Take, bound, execute, frames, hex, query,
    string, unhex,
};

const EXECUTE: u8 = crate::support::EXECUTE;

fn cluster() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    (sim, id)
}

fn compact(text: &str) -> String {
    text.replace(' ', "")
}

/// The one value that a SELECT finds, in hexadecimal.
fn value(sim: &mut Sim, id: ConnectionId, text: &str) -> Option<String> {
    let rows = sim.ok(id, text).rows().rows;
    assert_eq!(rows.len(), 1, "{text}");
    rows[0][0].as_deref().map(hex)
}

fn refused(sim: &mut Sim, id: ConnectionId, text: &str) -> u32 {
    sim.query(id, text).error().0
}

/// Type, constants with their bytes, constants that are refused, type option on the wire.
struct Case {
    ty: &'static str,
    good: &'static [(&'static str, &'static str)],
    bad: &'static [&'static str],
    option: &'static str,
}

const fn case(
    ty: &'static str,
    good: &'static [(&'static str, &'static str)],
    bad: &'static [&'static str],
    option: &'static str,
) -> Case {
    Case {
        ty,
        good,
        bad,
        option,
    }
}

const CASES: &[Case] = &[
    case("ascii", &[("'a'", "61"), ("''", "")], &["'é'", "1"], "0001"),
    case(
        "bigint",
        &[("-2", "fffffffffffffffe")],
        &["9223372036854775808", "'1'"],
        "0002",
    ),
    case(
        "blob",
        &[("0xCAFE", "cafe"), ("0x", "")],
        &["'a'", "0xabc"],
        "0003",
    ),
    case(
        "boolean",
        &[("true", "01"), ("FALSE", "00")],
        &["1"],
        "0004",
    ),
    case(
        "decimal",
        &[
            ("1.50", "00000002 0096"),
            ("-2", "00000000 fe"),
            ("25e-1", "00000001 19"),
        ],
        &["'1'"],
        "0006",
    ),
    case(
        "double",
        &[
            ("1.5", "3ff8000000000000"),
            ("-Infinity", "fff0000000000000"),
        ],
        &["'1'"],
        "0007",
    ),
    case(
        "float",
        &[("1.5", "3fc00000"), ("2", "40000000")],
        &["true"],
        "0008",
    ),
    case("int", &[("-1", "ffffffff")], &["2147483648", "1.5"], "0009"),
    case(
        "timestamp",
        &[
            ("1000", "00000000000003e8"),
            ("'1970-01-01 00:00:01+0000'", "00000000000003e8"),
            ("'1969-12-31T23:59:59.999Z'", "ffffffffffffffff"),
        ],
        &["'yesterday'"],
        "000b",
    ),
    case(
        "uuid",
        &[(
            "01020304-0506-0708-090a-0b0c0d0e0f10",
            "0102030405060708090a0b0c0d0e0f10",
        )],
        &["'a'"],
        "000c",
    ),
    case(
        "text",
        &[("'é'", "c3a9"), ("$$it's$$", "69742773")],
        &["1"],
        "000d",
    ),
    case(
        "varint",
        &[
            ("-129", "ff7f"),
            ("18446744073709551616", "010000000000000000"),
        ],
        &["1.5"],
        "000e",
    ),
    case(
        "timeuuid",
        &[(
            "8e2f9f00-72f5-11e6-a1bb-000000000000",
            "8e2f9f0072f511e6a1bb000000000000",
        )],
        &["01020304-0506-4708-890a-0b0c0d0e0f10"],
        "000f",
    ),
    case(
        "inet",
        &[
            ("'127.0.0.1'", "7f000001"),
            ("'::1'", "00000000000000000000000000000001"),
        ],
        &["'x'"],
        "0010",
    ),
    case(
        "date",
        &[("'1970-01-02'", "80000001"), ("2147483648", "80000000")],
        &["'1970-02-30'"],
        "0011",
    ),
    case(
        "time",
        &[("'00:00:01.000000002'", "000000003b9aca02")],
        &["'25:00:00'", "-1"],
        "0012",
    ),
    case("smallint", &[("-2", "fffe")], &["32768"], "0013"),
    case("tinyint", &[("-2", "fe")], &["128"], "0014"),
    case(
        "duration",
        &[
            ("1mo2d3ns", "020406"),
            ("-1mo2d3ns", "010305"),
            ("P1M2DT1S", "0204f077359400"),
        ],
        &["'1d'", "5"],
        "0015",
    ),
    case(
        "list<int>",
        &[("[2, 1]", "00000002 00000004 00000002 00000004 00000001")],
        &["{1}", "[null]", "['a']"],
        "0020 0009",
    ),
    case(
        "set<int>",
        &[("{2, -1, 2}", "00000002 00000004 ffffffff 00000004 00000002")],
        &["[1]", "{null}"],
        "0022 0009",
    ),
    case(
        "map<text, int>",
        &[(
            "{'b': 1, 'a': 2}",
            "00000002 00000001 61 00000004 00000002 00000001 62 00000004 00000001",
        )],
        &["{'a'}", "{'a': null}", "{a: 1}"],
        "0021 000d 0009",
    ),
    case(
        "frozen<set<int>>",
        &[
            ("{2, 1}", "00000002 00000004 00000001 00000004 00000002"),
            ("{}", "00000000"),
        ],
        &["[1]"],
        "0022 0009",
    ),
    case(
        "frozen<map<int, frozen<list<text>>>>",
        &[(
            "{1: ['a']}",
            "00000001 00000004 00000001 00000009 00000001 00000001 61",
        )],
        &["{1: 'a'}"],
        "0021 0009 0020 000d",
    ),
    case(
        "tuple<int, text>",
        &[
            ("(1, 'a')", "00000004 00000001 00000001 61"),
            ("(1, null)", "00000004 00000001 ffffffff"),
        ],
        &["(1, 'a', 2)", "('a', 1)"],
        "0031 0002 0009 000d",
    ),
    case(
        "u",
        &[
            ("{b: 'x', a: 1}", "00000004 00000001 00000001 78"),
            ("{b: 'x'}", "ffffffff 00000001 78"),
        ],
        &["{c: 1}", "{a: 'x'}", "{'a': 1}"],
        "0030 0002 6b73 0001 75 0002 0001 61 0009 0001 62 000d",
    ),
    case(
        "frozen<u>",
        &[("{a: 1}", "00000004 00000001 ffffffff")],
        &["(1)"],
        "0030 0002 6b73 0001 75 0002 0001 61 0009 0001 62 000d",
    ),
    case(
        "vector<float, 2>",
        &[("[1, 2]", "3f800000 40000000")],
        &["[1]", "[1, null]"],
        "0000 0058 6f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e566563746f7254797065 \
         286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e466c6f6174547970652c203229",
    ),
    case(
        "vector<text, 2>",
        &[("['a', 'bc']", "01 61 02 6263")],
        &["['a']"],
        "0000 0057 6f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e566563746f7254797065 \
         286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e55544638547970652c203229",
    ),
];

#[test]
fn constants_of_every_type_are_stored_as_their_bytes() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    for (at, case) in CASES.iter().enumerate() {
        let ty = case.ty;
        sim.ok(
            id,
            &format!("CREATE TABLE ks.v{at} (pk int PRIMARY KEY, v {ty})"),
        );
        let select = format!("SELECT v FROM ks.v{at} WHERE pk = 1");
        for (text, bytes) in case.good {
            sim.ok(
                id,
                &format!("INSERT INTO ks.v{at} (pk, v) VALUES (1, {text})"),
            );
            let found = value(&mut sim, id, &select);
            assert_eq!(found, Some(compact(bytes)), "{ty} {text}");
            sim.ok(id, &format!("UPDATE ks.v{at} SET v = null WHERE pk = 1"));
            assert_eq!(value(&mut sim, id, &select), None, "{ty} null");
        }
        for text in case.bad {
            let insert = format!("INSERT INTO ks.v{at} (pk, v) VALUES (1, {text})");
            let (code, message) = sim.query(id, &insert).error();
            assert!(matches!(code, 0x2200 | 0x2000), "{ty} {text}: {message}");
        }
        // ROWS: kind, flags, count, keyspace, table, name, then the option.
        let body = sim.ok(id, &select).body;
        let mut take = Take(&body[12..]);
        for _ in 0..3 {
            take.string();
        }
        let option = unhex(case.option);
        assert_eq!(hex(take.bytes(option.len())), hex(&option), "{ty}");
    }
}

#[test]
fn bound_values_are_the_same_as_constants() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    for (at, case) in CASES.iter().enumerate() {
        let ty = case.ty;
        sim.ok(
            id,
            &format!("CREATE TABLE ks.v{at} (pk int PRIMARY KEY, v {ty})"),
        );
        let insert = sim.prepare(id, &format!("INSERT INTO ks.v{at} (pk, v) VALUES (1, ?)"));
        let select = format!("SELECT v FROM ks.v{at}");
        let (_, bytes) = case.good[0];
        for (given, expected) in [
            (bytes, Some(compact(bytes))),
            ("unset", Some(compact(bytes))),
        ] {
            let body = execute(&insert, &bound(LOCAL_QUORUM, &[given]), None);
            assert_eq!(sim.ask(id, EXECUTE, &body).opcode, RESULT, "{ty} {given}");
            assert_eq!(value(&mut sim, id, &select), expected, "{ty} {given}");
        }
        let body = execute(&insert, &bound(LOCAL_QUORUM, &["null"]), None);
        sim.ask(id, EXECUTE, &body);
        assert_eq!(value(&mut sim, id, &select), None, "{ty}");
    }
    // Values that are none of their types.
    let refusals = [
        ("int", "0001"),
        ("ascii", "80"),
        ("text", "ff"),
        ("decimal", "0001"),
        ("duration", "02030c"),
        ("list<int>", "00000001 ffffffff"),
        ("list<int>", "00000002 00000004 00000001"),
        ("map<int, int>", "00000001 00000004 00000001"),
        ("tuple<int>", "00000004 00000001 00000004 00000001"),
        ("frozen<u>", "00000002 0001"),
        ("vector<float, 2>", "3f800000"),
    ];
    for (at, (ty, bytes)) in refusals.into_iter().enumerate() {
        sim.ok(
            id,
            &format!("CREATE TABLE ks.r{at} (pk int PRIMARY KEY, v {ty})"),
        );
        let insert = format!("INSERT INTO ks.r{at} (pk, v) VALUES (1, ?)");
        let body = query(&insert, &bound(LOCAL_QUORUM, &[bytes]));
        assert_eq!(sim.ask(id, QUERY, &body).error().0, 0x2200, "{ty} {bytes}");
    }
    // Fewer fields than the type has: the rest is null. Empty is a value of most types.
    sim.ok(
        id,
        "CREATE TABLE ks.few (pk int PRIMARY KEY, v frozen<u>, i int)",
    );
    let body = query(
        "INSERT INTO ks.few (pk, v, i) VALUES (1, ?, ?)",
        &bound(LOCAL_QUORUM, &["00000004 00000007", ""]),
    );
    assert_eq!(sim.ask(id, QUERY, &body).opcode, RESULT);
    let rows = sim.ok(id, "SELECT v.a, v.b, i FROM ks.few").rows().rows;
    assert_eq!(rows, [vec![Some(vec![0, 0, 0, 7]), None, Some(vec![])]]);
}

#[test]
fn keys_of_every_type_order_rows() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    let types: &[(&str, &[&str])] = &[
        ("ascii", &["''", "'A'", "'AB'", "'a'"]),
        ("bigint", &["-5", "0", "7"]),
        ("blob", &["0x", "0x00", "0x0000", "0x01", "0xff"]),
        ("boolean", &["false", "true"]),
        (
            "decimal",
            &[
                "-10", "-2.5", "-0.01", "0", "0.01", "0.99", "1.0", "1.01", "10", "1e3",
            ],
        ),
        ("double", &["-1.5", "0.0", "0.25", "1e300", "NaN"]),
        ("float", &["-1.5", "0.0", "0.25"]),
        ("int", &["-5", "0", "7"]),
        ("timestamp", &["-1", "0", "'2020-01-01'"]),
        ("date", &["'1969-01-01'", "'1970-01-01'", "'2020-01-01'"]),
        ("time", &["'00:00:01'", "'12:00:00'"]),
        (
            "varint",
            &[
                "-70000",
                "-129",
                "-1",
                "0",
                "1",
                "128",
                "70000",
                "18446744073709551616",
            ],
        ),
        ("smallint", &["-300", "0", "300"]),
        ("tinyint", &["-3", "0", "3"]),
        ("inet", &["'10.0.0.1'", "'10.0.0.2'", "'127.0.0.1'"]),
        (
            "frozen<list<int>>",
            &["[]", "[-1]", "[1]", "[1, -1]", "[2]"],
        ),
        ("frozen<set<int>>", &["{}", "{-1, 5}", "{1}"]),
        (
            "frozen<map<int, text>>",
            &["{1: 'a'}", "{1: 'b'}", "{2: 'a'}"],
        ),
        (
            "tuple<int, text>",
            &["(null, 'x')", "(1, null)", "(1, 'a')", "(2, 'a')"],
        ),
        (
            "frozen<u>",
            &["{b: 'x'}", "{a: 1}", "{a: 1, b: 'a'}", "{a: 2}"],
        ),
    ];
    for (at, (ty, ascending)) in types.iter().enumerate() {
        let create = format!(
            "CREATE TABLE ks.k{at} (pk int, ck {ty}, n int, PRIMARY KEY (pk, ck)) \
             WITH CLUSTERING ORDER BY (ck DESC)"
        );
        sim.ok(id, &create);
        for (n, text) in ascending.iter().enumerate().rev() {
            let insert = format!("INSERT INTO ks.k{at} (pk, ck, n) VALUES (1, {text}, {n})");
            sim.ok(id, &insert);
        }
        let count = i32::try_from(ascending.len()).unwrap();
        let all: Vec<i32> = (0..count).collect();
        let select = format!("SELECT n FROM ks.k{at} WHERE pk = 1 ORDER BY ck ASC");
        assert_eq!(sim.ok(id, &select).rows().ints(0), all, "{ty}");
        let second = format!(
            "SELECT n FROM ks.k{at} WHERE pk = 1 AND ck = {}",
            ascending[1]
        );
        assert_eq!(sim.ok(id, &second).rows().ints(0), [1], "{ty}");
        // And as the whole partition key.
        sim.ok(
            id,
            &format!("CREATE TABLE ks.p{at} (pk {ty} PRIMARY KEY, n int)"),
        );
        sim.ok(
            id,
            &format!("INSERT INTO ks.p{at} (pk, n) VALUES ({}, 1)", ascending[1]),
        );
        let select = format!("SELECT n FROM ks.p{at} WHERE pk = {}", ascending[1]);
        assert_eq!(sim.ok(id, &select).rows().ints(0), [1], "{ty}");
    }
}

#[test]
fn types_that_are_refused() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, l list<int>)");
    let columns = [
        "v list<list<int>>",
        "v set<u>",
        "v map<u, int>",
        "v u",
        "v frozen<int>",
        "v list<counter>",
        "v set<duration>",
        "v map<duration, int>",
        "v nothing",
        "v list<int, int>",
        "v map<int>",
        "v vector<float>",
        "v vector<float, 0>",
        "v other.u",
    ];
    for column in columns {
        let create = format!("CREATE TABLE ks.x (pk int PRIMARY KEY, {column})");
        let code = refused(&mut sim, id, &create);
        assert!(matches!(code, 0x2200 | 0x2000), "{column}");
    }
    for key in [
        "list<int>",
        "duration",
        "counter",
        "frozen<list<duration>>",
        "u",
    ] {
        for create in [
            format!("CREATE TABLE ks.x (pk {key} PRIMARY KEY)"),
            format!("CREATE TABLE ks.x (pk int, ck {key}, PRIMARY KEY (pk, ck))"),
        ] {
            assert_eq!(refused(&mut sim, id, &create), 0x2200, "{create}");
        }
    }
    let deep = format!("{}int{}", "frozen<list<".repeat(40), ">>".repeat(40));
    let create = format!("CREATE TABLE ks.x (pk int PRIMARY KEY, v {deep})");
    assert_eq!(refused(&mut sim, id, &create), 0x2200);
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    let insert = format!("INSERT INTO ks.t (pk, v) VALUES (1, {deep})");
    assert_eq!(refused(&mut sim, id, &insert), 0x2200);
}

#[test]
fn collections_are_updated_in_parts() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, v u)",
    );
    let ints = |values: &[i32]| -> String {
        let count = format!("{:08x}", values.len());
        values
            .iter()
            .fold(count, |out, value| out + &format!("00000004{value:08x}"))
    };
    // What is set, the column, what it reads then.
    let steps: &[(&str, &str, Option<String>)] = &[
        (
            "UPDATE ks.c SET l = [1, 2] WHERE pk = 1",
            "l",
            Some(ints(&[1, 2])),
        ),
        (
            "UPDATE ks.c SET l = l + [3, 4] WHERE pk = 1",
            "l",
            Some(ints(&[1, 2, 3, 4])),
        ),
        (
            "UPDATE ks.c SET l = [8, 9] + l WHERE pk = 1",
            "l",
            Some(ints(&[8, 9, 1, 2, 3, 4])),
        ),
        (
            "UPDATE ks.c SET l[1] = 7 WHERE pk = 1",
            "l",
            Some(ints(&[8, 7, 1, 2, 3, 4])),
        ),
        (
            "UPDATE ks.c SET l = l - [1, 3] WHERE pk = 1",
            "l",
            Some(ints(&[8, 7, 2, 4])),
        ),
        (
            "DELETE l[0] FROM ks.c WHERE pk = 1",
            "l",
            Some(ints(&[7, 2, 4])),
        ),
        (
            "UPDATE ks.c SET l += [5] WHERE pk = 1",
            "l",
            Some(ints(&[7, 2, 4, 5])),
        ),
        ("UPDATE ks.c SET l = [] WHERE pk = 1", "l", None),
        (
            "UPDATE ks.c SET s = {'b'} WHERE pk = 1",
            "s",
            Some(compact("00000001 00000001 62")),
        ),
        (
            "UPDATE ks.c SET s = s + {'a', 'b'} WHERE pk = 1",
            "s",
            Some(compact("00000002 00000001 61 00000001 62")),
        ),
        (
            "UPDATE ks.c SET s = s - {'b'} WHERE pk = 1",
            "s",
            Some(compact("00000001 00000001 61")),
        ),
        ("DELETE s['a'] FROM ks.c WHERE pk = 1", "s", None),
        (
            "UPDATE ks.c SET m['x'] = 1 WHERE pk = 1",
            "m",
            Some(compact("00000001 00000001 78 00000004 00000001")),
        ),
        (
            "UPDATE ks.c SET m = m + {'a': 2} WHERE pk = 1",
            "m",
            Some(compact(
                "00000002 00000001 61 00000004 00000002 00000001 78 00000004 00000001",
            )),
        ),
        (
            "UPDATE ks.c SET m = m - {'x'} WHERE pk = 1",
            "m",
            Some(compact("00000001 00000001 61 00000004 00000002")),
        ),
        ("DELETE m['a'] FROM ks.c WHERE pk = 1", "m", None),
        (
            "UPDATE ks.c SET v.b = 'x' WHERE pk = 1",
            "v",
            Some(compact("ffffffff 00000001 78")),
        ),
        (
            "UPDATE ks.c SET v.a = 1 WHERE pk = 1",
            "v",
            Some(compact("00000004 00000001 00000001 78")),
        ),
        (
            "DELETE v.b FROM ks.c WHERE pk = 1",
            "v",
            Some(compact("00000004 00000001 ffffffff")),
        ),
        (
            "UPDATE ks.c SET v = {b: 'y'} WHERE pk = 1",
            "v",
            Some(compact("ffffffff 00000001 79")),
        ),
        ("DELETE v FROM ks.c WHERE pk = 1", "v", None),
    ];
    sim.ok(id, "INSERT INTO ks.c (pk) VALUES (1)");
    for (text, column, expected) in steps {
        sim.now += 1000;
        sim.ok(id, text);
        let select = format!("SELECT {column} FROM ks.c WHERE pk = 1");
        assert_eq!(value(&mut sim, id, &select), *expected, "{text}");
    }
    for text in [
        "UPDATE ks.c SET l[0] = 1 WHERE pk = 1",
        "UPDATE ks.c SET s[0] = 1 WHERE pk = 1",
        "UPDATE ks.c SET v.nothing = 1 WHERE pk = 1",
        "UPDATE ks.c SET s = {'a'} + s WHERE pk = 1",
        "UPDATE ks.c SET m = m + {'a'} WHERE pk = 1",
        "UPDATE ks.c SET v = v + {a: 1} WHERE pk = 1",
        "UPDATE ks.t SET v = v + 'a' WHERE pk = 1",
        "UPDATE ks.c SET m[null] = 1 WHERE pk = 1",
    ] {
        let code = refused(&mut sim, id, text);
        assert_eq!(code, 0x2200, "{text}");
    }
}

#[test]
fn parts_keep_their_own_timestamps() {
    let (mut sim, id) = cluster();
    sim.ok(
        id,
        "CREATE TABLE ks.m (pk int PRIMARY KEY, m map<int, int>)",
    );
    let entry = |key: i32, value: i32| format!("00000004{key:08x}00000004{value:08x}");
    for text in [
        "UPDATE ks.m USING TIMESTAMP 30 SET m[1] = 10 WHERE pk = 1",
        "UPDATE ks.m USING TIMESTAMP 10 SET m[2] = 20 WHERE pk = 1",
        "UPDATE ks.m USING TIMESTAMP 20 SET m = {3: 30, 1: 11} WHERE pk = 1",
        "UPDATE ks.m USING TIMESTAMP 19 SET m[4] = 40 WHERE pk = 1",
    ] {
        sim.ok(id, text);
    }
    let found = value(&mut sim, id, "SELECT m FROM ks.m");
    assert_eq!(
        found,
        Some(format!("00000002{}{}", entry(1, 10), entry(3, 30)))
    );
    sim.ok(id, "UPDATE ks.m USING TTL 10 SET m[5] = 50 WHERE pk = 1");
    assert_eq!(
        value(&mut sim, id, "SELECT m[5] FROM ks.m"),
        Some("00000032".to_owned())
    );
    sim.now += 11_000_000;
    assert_eq!(value(&mut sim, id, "SELECT m[5] FROM ks.m"), None);
    sim.ok(id, "DELETE FROM ks.m WHERE pk = 1");
    assert!(sim.ok(id, "SELECT m FROM ks.m").rows().rows.is_empty());
}

#[test]
fn markers_inside_of_values_have_types_and_names() {
    let (mut sim, id) = cluster();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int PRIMARY KEY, l list<int>, m map<text, int>, t tuple<int, text>, \
         v frozen<u>)",
    );
    let text = "INSERT INTO ks.c (pk, l, m, t, v) VALUES (1, [?, 5], {?: ?}, (?, ?), {b: ?})";
    let reply = sim.ask(
        id,
        crate::support::PREPARE,
        &crate::support::long_string(text),
    );
    assert_eq!(reply.opcode, RESULT);
    let mut take = Take(&reply.body[22..]);
    assert_eq!((take.int(), take.int(), take.int()), (1, 6, 0));
    take.string();
    take.string();
    let expected: [(&str, u16); 6] = [
        ("value(l)", 0x09),
        ("key(m)", 0x0d),
        ("value(m)", 0x09),
        ("t[0]", 0x09),
        ("t[1]", 0x0d),
        ("v.b", 0x0d),
    ];
    for (name, option) in expected {
        assert_eq!((take.string().as_str(), take.short()), (name, option));
    }
    let prepared = reply.body[6..22].to_vec();
    let run = |sim: &mut Sim, values: &[&str]| {
        sim.ask(
            id,
            EXECUTE,
            &execute(&prepared, &bound(LOCAL_QUORUM, values), None),
        )
    };
    let good = ["00000004", "61", "00000007", "00000001", "null", "78"];
    assert_eq!(run(&mut sim, &good).opcode, RESULT);
    let rows = sim.ok(id, "SELECT l, m, t, v FROM ks.c").rows().rows;
    let found: Vec<String> = rows[0].iter().flatten().map(|cell| hex(cell)).collect();
    let expected = [
        "00000002 00000004 00000004 00000004 00000005",
        "00000001 00000001 61 00000004 00000007",
        "00000004 00000001 ffffffff",
        "ffffffff 00000001 78",
    ];
    assert_eq!(found, expected.map(compact));
    // Neither null nor unset can be an element; a field can be null.
    for at in 0..3 {
        for wrong in ["null", "unset", "00"] {
            let mut values = good;
            values[at] = wrong;
            if (at, wrong) != (1, "00") {
                let error = run(&mut sim, &values).error();
                assert_eq!(error.0, 0x2200, "{at} {wrong}");
            }
        }
    }
}

#[test]
fn functions_of_terms_and_columns() {
    let (mut sim, id) = cluster();
    sim.ok(
        id,
        "CREATE TABLE ks.f (pk int PRIMARY KEY, t timeuuid, u uuid, ts timestamp, d date, i int, \
         b blob, x text, de decimal)",
    );
    sim.ok(
        id,
        "INSERT INTO ks.f (pk, t, u, ts, d, i, b, x, de) VALUES (1, now(), uuid(), \
         currentTimestamp(), currentDate(), 300, intAsBlob(258), 'abc', 1.25)",
    );
    let millis = sim.now / 1000;
    let days = millis / 86_400_000;
    // Selector, name of its column, value.
    let cases: &[(&str, &str, String)] = &[
        (
            "toTimestamp(t)",
            "system.totimestamp(t)",
            format!("{millis:016x}"),
        ),
        (
            "toUnixTimestamp(t)",
            "system.tounixtimestamp(t)",
            format!("{millis:016x}"),
        ),
        (
            "toDate(ts)",
            "system.todate(ts)",
            format!("{:08x}", days + (1 << 31)),
        ),
        ("d", "d", format!("{:08x}", days + (1 << 31))),
        ("b", "b", "00000102".into()),
        ("blobAsInt(b)", "system.blobasint(b)", "00000102".into()),
        ("textAsBlob(x)", "system.textasblob(x)", "616263".into()),
        ("cast(i as text)", "cast(i as text)", "333030".into()),
        (
            "cast(i as bigint)",
            "cast(i as bigint)",
            "000000000000012c".into(),
        ),
        (
            "cast(de as double)",
            "cast(de as double)",
            "3ff4000000000000".into(),
        ),
        ("cast(de as int)", "cast(de as int)", "00000001".into()),
        (
            "cast(d as timestamp)",
            "cast(d as timestamp)",
            format!("{:016x}", days * 86_400_000),
        ),
        ("token(pk)", "system.token(pk)", "c7846c1e6d76f78f".into()),
        ("writetime(i)", "writetime(i)", format!("{:016x}", sim.now)),
        ("i AS renamed", "renamed", "0000012c".into()),
        ("(int) 5", "(int)", "00000005".into()),
    ];
    for (selector, name, expected) in cases {
        let reply = sim.ok(id, &format!("SELECT {selector} FROM ks.f WHERE pk = 1"));
        let mut take = Take(&reply.body[12..]);
        take.string();
        take.string();
        assert_eq!(take.string(), *name);
        if *selector != "token(pk)" {
            let found = reply.rows().rows[0][0].as_deref().map(hex);
            assert_eq!(found.as_ref(), Some(expected), "{selector}");
        }
    }
    let token = value(&mut sim, id, "SELECT token(pk) FROM ks.f");
    assert_eq!(
        token,
        Some(format!("{:016x}", -4_069_959_284_402_364_209_i64))
    );
    assert_eq!(value(&mut sim, id, "SELECT ttl(i) FROM ks.f"), None);
    sim.ok(id, "UPDATE ks.f USING TTL 100 SET i = 1 WHERE pk = 1");
    assert_eq!(
        value(&mut sim, id, "SELECT ttl(i) FROM ks.f"),
        Some("00000064".into())
    );
    let bounds = "SELECT pk FROM ks.f WHERE t > minTimeuuid('2000-01-01') AND \
                  t < maxTimeuuid('2100-01-01') ALLOW FILTERING";
    assert_eq!(sim.ok(id, bounds).rows().ints(0), [1]);
    let two = sim
        .ok(id, "SELECT now(), now(), uuid() FROM ks.f")
        .rows()
        .rows;
    assert_ne!(two[0][0], two[0][1]);
    for (cell, version) in two[0].iter().zip([1, 1, 4]) {
        assert_eq!(cell.as_ref().unwrap()[6] >> 4, version);
    }
    for wrong in [
        "nothing(i)",
        "toDate(i)",
        "toDate(?)",
        "cast(b as int)",
        "cast(i as list<int>)",
        "writetime(pk)",
        "min(max(i))",
        "i['x']",
        "i.x",
        "null",
        "blobAsInt(x)",
        "token(i)",
    ] {
        let text = format!("SELECT {wrong} FROM ks.f");
        assert_eq!(refused(&mut sim, id, &text), 0x2200, "{wrong}");
    }
}

#[test]
fn aggregates_over_all_rows() {
    let (mut sim, id) = cluster();
    sim.ok(
        id,
        "CREATE TABLE ks.a (pk int, ck int, i int, d double, de decimal, x text, PRIMARY KEY (pk, ck))",
    );
    let empty = sim
        .ok(id, "SELECT count(*), sum(i), min(i) FROM ks.a")
        .rows()
        .rows;
    assert_eq!(empty, [vec![Some(vec![0; 8]), Some(vec![0; 4]), None]]);
    for (ck, i, d, de, x) in [
        (1, "10", "0.5", "0.5", "'b'"),
        (2, "-4", "1.5", "1.25", "'a'"),
        (3, "null", "null", "null", "null"),
    ] {
        sim.ok(
            id,
            &format!(
                "INSERT INTO ks.a (pk, ck, i, d, de, x) VALUES (1, {ck}, {i}, {d}, {de}, {x})"
            ),
        );
    }
    let cases = [
        ("count(*)", "0000000000000003"),
        ("count(1)", "0000000000000003"),
        ("count(i)", "0000000000000002"),
        ("sum(i)", "00000006"),
        ("avg(i)", "00000003"),
        ("min(i)", "fffffffc"),
        ("max(i)", "0000000a"),
        ("sum(d)", "4000000000000000"),
        ("avg(d)", "3ff0000000000000"),
        ("sum(de)", "00000002 00af"),
        ("min(x)", "61"),
        ("max(x)", "62"),
        ("sum(cast(i as bigint))", "0000000000000006"),
        ("max(writetime(i))", &format!("{:016x}", sim.now + 2)),
    ];
    for (selector, expected) in cases {
        if selector.contains("writetime") {
            continue;
        }
        let found = value(
            &mut sim,
            id,
            &format!("SELECT {selector} FROM ks.a WHERE pk = 1"),
        );
        assert_eq!(found, Some(compact(expected)), "{selector}");
    }
    for wrong in ["sum(x)", "avg(x)", "count(nothing)", "min(i, d)"] {
        let text = format!("SELECT {wrong} FROM ks.a");
        assert_eq!(refused(&mut sim, id, &text), 0x2200, "{wrong}");
    }
}

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
    let (mut sim, id) = cluster();
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
    let (mut sim, id) = cluster();
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
fn altered_types_reach_what_uses_them() {
    let (mut sim, id) = cluster();
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
    let found = value(&mut sim, id, "SELECT v FROM ks.b");
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
    let (mut sim, id) = cluster();
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
    ] {
        let select = if text.contains("TYPE") {
            "SELECT * FROM ks.b WHERE id = ?"
        } else {
            "SELECT * FROM ks.b WHERE pk = ?"
        };
        let prepared = sim.prepare(id, select);
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
fn views_show_their_base_and_indexes_find_rows() {
    let (mut sim, id) = cluster();
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
    assert_eq!(
        refused(&mut sim, id, "SELECT pk FROM ks.b WHERE v = 6"),
        0x2200
    );
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
