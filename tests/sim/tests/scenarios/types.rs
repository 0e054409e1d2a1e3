//! Values of every type, in and out: as constants, bound, in keys, in parts. The bytes are written
//! from the data formats of the native protocol, version 4, section 6.

use crate::support::{
    EXECUTE, LOCAL_QUORUM, QUERY, RESULT, Sim, Take, bound, compact, execute, hex, query, unhex,
};

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
    let (mut sim, id) = Sim::admin();
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
            let found = sim.value(id, &select);
            assert_eq!(found, Some(compact(bytes)), "{ty} {text}");
            sim.ok(id, &format!("UPDATE ks.v{at} SET v = null WHERE pk = 1"));
            assert_eq!(sim.value(id, &select), None, "{ty} null");
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
    let (mut sim, id) = Sim::admin();
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
            assert_eq!(sim.value(id, &select), expected, "{ty} {given}");
        }
        let body = execute(&insert, &bound(LOCAL_QUORUM, &["null"]), None);
        sim.ask(id, EXECUTE, &body);
        assert_eq!(sim.value(id, &select), None, "{ty}");
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
    let (mut sim, id) = Sim::admin();
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
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TYPE ks.u (a int, l list<int>)");
    let columns = [
        "v list<list<int>>",
        "v set<u>",
        "v map<u, int>",
        "v u",
        "v frozen<int>",
        "v list<counter>",
        "v tuple<int, counter>",
        "v vector<counter, 2>",
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
        let code = sim.refused(id, &create);
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
            assert_eq!(sim.refused(id, &create), 0x2200, "{create}");
        }
    }
    let deep = format!("{}int{}", "frozen<list<".repeat(40), ">>".repeat(40));
    let create = format!("CREATE TABLE ks.x (pk int PRIMARY KEY, v {deep})");
    assert_eq!(sim.refused(id, &create), 0x2200);
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    let insert = format!("INSERT INTO ks.t (pk, v) VALUES (1, {deep})");
    assert_eq!(sim.refused(id, &insert), 0x2200);
}
