//! Functions of terms, of columns and over all rows.

use crate::support::{Sim, Take, compact, hex};

#[test]
fn functions_of_terms_and_columns() {
    let (mut sim, id) = Sim::admin();
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
    let token = sim.value(id, "SELECT token(pk) FROM ks.f");
    assert_eq!(
        token,
        Some(format!("{:016x}", -4_069_959_284_402_364_209_i64))
    );
    assert_eq!(sim.value(id, "SELECT ttl(i) FROM ks.f"), None);
    sim.ok(id, "UPDATE ks.f USING TTL 100 SET i = 1 WHERE pk = 1");
    assert_eq!(
        sim.value(id, "SELECT ttl(i) FROM ks.f"),
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
    let calls = |depth: usize| {
        let open = "toTimestamp(toDate(".repeat(depth);
        format!("SELECT {open}ts{} FROM ks.f", "))".repeat(depth))
    };
    assert_eq!(
        sim.value(id, &calls(1)),
        Some(format!("{:016x}", days * 86_400_000))
    );
    assert_eq!(sim.refused(id, &calls(400)), 0x2200, "nested too deeply");
    let terms = format!(
        "UPDATE ks.f SET ts = {}now(){} WHERE pk = 1",
        "toTimestamp(toDate(".repeat(14),
        "))".repeat(14)
    );
    sim.ok(id, &terms);
    let steps = format!("SELECT i{} FROM ks.f", ".x".repeat(100_000));
    assert_eq!(sim.refused(id, &steps), 0x2200, "too many steps");
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
        assert_eq!(sim.refused(id, &text), 0x2200, "{wrong}");
    }
}

#[test]
fn aggregates_over_all_rows() {
    let (mut sim, id) = Sim::admin();
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
        ("sum(pk)", "00000003"),
    ];
    for (selector, expected) in cases {
        let found = sim.value(id, &format!("SELECT {selector} FROM ks.a WHERE pk = 1"));
        assert_eq!(found, Some(compact(expected)), "{selector}");
    }
    for wrong in ["sum(x)", "avg(x)", "count(nothing)", "min(i, d)"] {
        let text = format!("SELECT {wrong} FROM ks.a");
        assert_eq!(sim.refused(id, &text), 0x2200, "{wrong}");
    }
}
