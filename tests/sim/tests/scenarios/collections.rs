//! Collections and user types as they are written: in parts, and with markers in them.

use crate::support::{
    EXECUTE, LOCAL_QUORUM, PREPARE, RESULT, Sim, Take, bound, compact, execute, hex, long_string,
};

#[test]
fn collections_are_updated_in_parts() {
    let (mut sim, id) = Sim::admin();
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
        (
            "UPDATE ks.c SET l = l + null WHERE pk = 1",
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
        assert_eq!(sim.value(id, &select), *expected, "{text}");
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
        let code = sim.refused(id, text);
        assert_eq!(code, 0x2200, "{text}");
    }
}

#[test]
fn parts_keep_their_own_timestamps() {
    let (mut sim, id) = Sim::admin();
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
    let found = sim.value(id, "SELECT m FROM ks.m");
    assert_eq!(
        found,
        Some(format!("00000002{}{}", entry(1, 10), entry(3, 30)))
    );
    sim.ok(id, "UPDATE ks.m USING TTL 10 SET m[5] = 50 WHERE pk = 1");
    assert_eq!(
        sim.value(id, "SELECT m[5] FROM ks.m"),
        Some("00000032".to_owned())
    );
    sim.now += 11_000_000;
    assert_eq!(sim.value(id, "SELECT m[5] FROM ks.m"), None);
    sim.ok(id, "DELETE FROM ks.m WHERE pk = 1");
    assert!(sim.ok(id, "SELECT m FROM ks.m").rows().rows.is_empty());
}

#[test]
fn markers_inside_of_values_have_types_and_names() {
    let (mut sim, id) = Sim::admin();
    sim.ok(id, "CREATE TYPE ks.u (a int, b text)");
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int PRIMARY KEY, l list<int>, m map<text, int>, t tuple<int, text>, \
         v frozen<u>)",
    );
    let text = "INSERT INTO ks.c (pk, l, m, t, v) VALUES (1, [?, 5], {?: ?}, (?, ?), {b: ?})";
    let reply = sim.ask(id, PREPARE, &long_string(text));
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
