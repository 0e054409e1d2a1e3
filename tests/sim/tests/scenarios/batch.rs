//! Batches, by opcode and as text.

use messina_sim::node::{ConnectionId, CqlError, Options, TabletsMode};

use crate::support::{
    BATCH, ERROR, EXECUTE, Frame, PREPARE, QUERY, Sim, V2, long_string, parameters, query, unhex,
};

const LOGGED: u8 = 0;
const UNLOGGED: u8 = 1;
const COUNTER: u8 = 2;

/// A statement of a batch: text or id, and its values.
enum Entry<'a> {
    Text(&'a str, &'a [&'a [u8]]),
    Id(&'a [u8], &'a [&'a [u8]]),
}

/// A BATCH body whose end (consistency, flags and what they announce) is given as bytes.
fn batch(kind: u8, entries: &[Entry<'_>], end: &str) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(u16::try_from(entries.len()).unwrap().to_be_bytes());
    for entry in entries {
        let values = match entry {
            Entry::Text(text, values) => {
                out.push(0);
                out.extend(long_string(text));
                values
            }
            Entry::Id(id, values) => {
                out.extend([1, 0, 16]);
                out.extend(*id);
                values
            }
        };
        out.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in *values {
            out.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
            out.extend(*value);
        }
    }
    out.extend(unhex(end));
    out
}

fn texts<'a>(texts: &[&'a str]) -> Vec<Entry<'a>> {
    texts.iter().map(|text| Entry::Text(text, &[])).collect()
}

/// `ks.t` of [`Sim::with_tables`], a counter table `ks.n` and a clustered `ks.c`.
fn tables() -> (Sim, ConnectionId) {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(id, "CREATE TABLE ks.n (pk int PRIMARY KEY, c counter)");
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int, ck int, s int STATIC, v int, PRIMARY KEY (pk, ck))",
    );
    (sim, id)
}

fn values(sim: &mut Sim, id: ConnectionId) -> Vec<(i32, String)> {
    let rows = sim.ok(id, "SELECT pk, v FROM ks.t").rows();
    let mut found: Vec<(i32, String)> = rows.ints(0).into_iter().zip(rows.texts(1)).collect();
    found.sort_unstable();
    found
}

#[test]
fn prepared_and_text_statements_stand_together() {
    let (mut sim, id) = tables();
    let insert = sim.prepare(id, "INSERT INTO ks.t (pk, v) VALUES (?, ?)");
    let entries = [
        Entry::Id(&insert, &[&[0, 0, 0, 1], b"a"]),
        Entry::Text("INSERT INTO ks.t (pk, v) VALUES (2, ?)", &[b"b"]),
        Entry::Text("INSERT INTO ks.t (pk, v) VALUES (3, 'c')", &[]),
        Entry::Id(&insert, &[&[0, 0, 0, 3], b"d"]),
    ];
    for kind in [LOGGED, UNLOGGED, 77] {
        sim.ok(id, "TRUNCATE ks.t");
        let reply = sim.ask(id, BATCH, &batch(kind, &entries, "0006 00"));
        assert_eq!(reply.body, unhex("00000001"), "VOID of kind {kind}");
        // All have one timestamp, so the greater value wins.
        let expected = [
            (1, "a".to_owned()),
            (2, "b".to_owned()),
            (3, "d".to_owned()),
        ];
        assert_eq!(values(&mut sim, id), expected);
    }
    let nothing = sim.ask(id, BATCH, &batch(LOGGED, &[], "0006 00"));
    assert_eq!(nothing.body, unhex("00000001"));
}

#[test]
fn the_first_unknown_id_is_told_and_nothing_written() {
    let (mut sim, id) = tables();
    let known = sim.prepare(id, "INSERT INTO ks.t (pk, v) VALUES (?, ?)");
    let entries = [
        Entry::Id(&known, &[&[0, 0, 0, 1], b"a"]),
        Entry::Id(&[0xaa; 16], &[]),
        Entry::Id(&[0xbb; 16], &[]),
    ];
    let reply = sim.ask(id, BATCH, &batch(LOGGED, &entries, "0006 00"));
    assert_eq!(reply.error().0, 0x2500);
    assert!(reply.body.ends_with(&[&[0, 16][..], &[0xaa; 16]].concat()));
    assert_eq!(values(&mut sim, id), []);
}

#[test]
fn timestamps_come_from_statement_frame_or_node() {
    let (mut sim, id) = tables();
    let steps = [
        // 0x20: a timestamp of 2000 for all that have none of their own.
        (
            batch(
                LOGGED,
                &texts(&[
                    "INSERT INTO ks.t (pk, v) VALUES (1, 'x')",
                    "INSERT INTO ks.t (pk, v) VALUES (2, 'x') USING TIMESTAMP 5000",
                ]),
                "0006 20 00000000000007d0",
            ),
            ["x", "x"],
        ),
        (
            batch(
                UNLOGGED,
                &texts(&[
                    "INSERT INTO ks.t (pk, v) VALUES (1, 'y')",
                    "INSERT INTO ks.t (pk, v) VALUES (2, 'y')",
                ]),
                "0006 20 0000000000000fa0",
            ),
            ["y", "x"],
        ),
        (
            batch(
                LOGGED,
                &texts(&[
                    "INSERT INTO ks.t (pk, v) VALUES (1, 'z')",
                    "INSERT INTO ks.t (pk, v) VALUES (2, 'z')",
                ]),
                "0006 00",
            ),
            ["z", "z"],
        ),
    ];
    for (body, expected) in steps {
        assert_eq!(sim.ask(id, BATCH, &body).body, unhex("00000001"));
        let found: Vec<String> = values(&mut sim, id).into_iter().map(|(_, v)| v).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn text_batches_have_their_timestamp_and_markers() {
    let (mut sim, id) = tables();
    let text = "BEGIN UNLOGGED BATCH USING TIMESTAMP ? \
                INSERT INTO ks.t (pk, v) VALUES (?, ?); \
                UPDATE ks.t SET v = 'u' WHERE pk = 8 \
                APPLY BATCH";
    let later = 5_i64.to_be_bytes();
    let sooner = 4_i64.to_be_bytes();
    for (timestamp, value, expected) in [(later, b"m", "m"), (sooner, b"n", "m")] {
        let values_of = parameters(6, &[&timestamp, &[0, 0, 0, 7], value]);
        let reply = sim.ask(id, 7, &query(text, &values_of));
        assert_eq!(reply.body, unhex("00000001"));
        let both = [(7, expected.to_owned()), (8, "u".to_owned())];
        assert_eq!(values(&mut sim, id), both);
    }
    // PREPARED: markers of one table, the key of the first statement bound by the second marker.
    let prepared = sim.ask(id, PREPARE, &long_string(text)).body;
    let variables = "00000001 00000003 00000001 0001 0002 6b73 0001 74
                     000b 5b74696d657374616d705d 0002 0002 706b 0009 0001 76 000d
                     00000004 00000000";
    assert_eq!(prepared[22..], unhex(variables));
}

#[test]
fn batches_that_cannot_be() {
    let (mut sim, id) = tables();
    let insert = "INSERT INTO ks.t (pk, v) VALUES (1, 'a')";
    let count = "UPDATE ks.n SET c = c + 1 WHERE pk = 1";
    let conditional = "INSERT INTO ks.t (pk, v) VALUES (1, 'a') IF NOT EXISTS";
    let elsewhere = "INSERT INTO ks.c (pk, ck) VALUES (1, 1)";
    let strong = "INSERT INTO sc.t (pk, v) VALUES (1, 'a')";
    let other = "INSERT INTO sc.t (pk, v) VALUES (2, 'a')";
    let cases: &[(u8, &[&str], &str)] = &[
        (
            COUNTER,
            &[insert],
            "Cannot include non-counter statement in a counter batch",
        ),
        (
            COUNTER,
            &[count, insert],
            "Cannot include non-counter statement in a counter batch",
        ),
        (
            LOGGED,
            &[count],
            "Cannot include a counter statement in a logged batch",
        ),
        (
            UNLOGGED,
            &[insert, count],
            "Counter and non-counter mutations cannot exist in the same batch",
        ),
        (
            LOGGED,
            &[conditional, elsewhere],
            "BATCH with conditions cannot span multiple tables",
        ),
        (
            LOGGED,
            &[conditional, "DELETE FROM ks.t WHERE pk = 2"],
            "BATCH with conditions cannot span multiple partitions",
        ),
        (
            LOGGED,
            &[insert, strong],
            "Cannot mix strongly consistent and eventually consistent statements in a batch",
        ),
        (
            LOGGED,
            &[strong, other],
            "Strongly consistent batches must target a single partition of one table",
        ),
        (
            LOGGED,
            &["SELECT * FROM ks.t"],
            "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
        ),
        (
            LOGGED,
            &["BEGIN BATCH APPLY BATCH"],
            "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
        ),
        (
            LOGGED,
            &["DELETE FROM ks.t WHERE pk = ?"],
            "There were 1 markers(?) in CQL but 0 bound variables",
        ),
    ];
    for (kind, statements, text) in cases {
        let reply = sim.ask(id, BATCH, &batch(*kind, &texts(statements), "0006 00"));
        assert_eq!(
            reply.error(),
            (0x2200, (*text).to_owned()),
            "{statements:?}"
        );
    }
    let as_text = [
        (
            "BEGIN BATCH USING TTL 5 INSERT INTO ks.t (pk) VALUES (1) APPLY BATCH",
            "Global TTL on the BATCH statement is not supported.",
        ),
        (
            "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO ks.t (pk) VALUES (1) IF NOT EXISTS APPLY BATCH",
            "Cannot provide custom timestamp for conditional BATCH",
        ),
        (
            "BEGIN COUNTER BATCH USING TIMESTAMP 5 UPDATE ks.n SET c = c + 1 WHERE pk = 1 APPLY BATCH",
            "Cannot provide custom timestamp for counter BATCH",
        ),
        (
            "BEGIN UNLOGGED BATCH USING TIMESTAMP 5 UPDATE ks.n SET c = c + 1 WHERE pk = 1 APPLY BATCH",
            "Cannot provide custom timestamp for a BATCH containing counters",
        ),
        (
            "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO ks.t (pk) VALUES (1) USING TIMESTAMP 6 APPLY BATCH",
            "Timestamp must be set either on BATCH or individual statements",
        ),
    ];
    for (statement, text) in as_text {
        assert_eq!(sim.query(id, statement).error(), (0x2200, text.to_owned()));
    }
    assert_eq!(values(&mut sim, id), []);
    // Serial levels: of the frame, and 0x10 for the agreement.
    for (statement, end, text) in [
        (
            insert,
            "0008 00",
            "You must use conditional updates for serializable writes",
        ),
        (
            conditional,
            "0006 10 0006",
            "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
        ),
    ] {
        let reply = sim.ask(id, BATCH, &batch(LOGGED, &texts(&[statement]), end));
        assert_eq!(reply.error(), (0x2200, text.to_owned()));
    }
}

/// Rows of a conditional batch as (applied, pk, ck, v).
fn answered(reply: &Frame) -> Vec<[Option<i32>; 4]> {
    let int = |value: &Option<Vec<u8>>| match value.as_deref() {
        Some([flag]) => Some(i32::from(*flag)),
        Some(bytes) => Some(i32::from_be_bytes(bytes.try_into().unwrap())),
        None => None,
    };
    let rows = reply.rows().rows;
    rows.iter()
        .map(|row| {
            [
                int(&row[0]),
                int(&row[1]),
                int(&row[2]),
                int(row.last().unwrap()),
            ]
        })
        .collect()
}

#[test]
fn conditional_batches_answer_with_a_row_per_statement() {
    let (mut sim, id) = tables();
    sim.ok(id, "INSERT INTO ks.c (pk, ck, v) VALUES (1, 1, 10)");
    let statements = texts(&[
        "UPDATE ks.c SET v = 11 WHERE pk = 1 AND ck = 1 IF v = 10",
        "UPDATE ks.c SET v = 20 WHERE pk = 1 AND ck = 2 IF v = null",
        "INSERT INTO ks.c (pk, ck, v) VALUES (1, 3, 30)",
    ]);
    let body = batch(LOGGED, &statements, "0006 10 0009");
    let reply = sim.ask(id, BATCH, &body);
    let t = Some(1);
    assert_eq!(
        answered(&reply),
        [
            [t, Some(1), Some(1), Some(10)],
            [t, None, None, None],
            [t, None, None, None],
        ]
    );
    let metadata = "00000002 00000001 00000004 0002 6b73 0001 63 0009 5b6170706c6965645d 0004
                    0002 706b 0009 0002 636b 0009 0001 76 0009 00000003";
    assert!(reply.body.starts_with(&unhex(metadata)));
    let rows = sim.ok(id, "SELECT v FROM ks.c WHERE pk = 1").rows();
    assert_eq!(rows.ints(0), [11, 20, 30]);
    // Once more: no condition holds now, nothing changes, and all rows say so.
    let reply = sim.ask(id, BATCH, &body);
    assert_eq!(
        answered(&reply),
        [
            [Some(0), Some(1), Some(1), Some(11)],
            [Some(0), Some(1), Some(2), Some(20)],
            [Some(0), None, None, None],
        ]
    );
    // The same row twice: the one without condition shows it too.
    let text = "BEGIN BATCH \
                UPDATE ks.c SET v = 12 WHERE pk = 1 AND ck = 1 IF v = 11 \
                UPDATE ks.c SET v = 12 WHERE pk = 1 AND ck = 1 \
                APPLY BATCH";
    let row = [t, Some(1), Some(1), Some(11)];
    assert_eq!(answered(&sim.ok(id, text)), [row, row]);
}

#[test]
fn conditional_batches_of_plain_nodes_show_only_what_they_must() {
    let mut sim = Sim::new(Options::uniform(1, 1).with_plain());
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    sim.ok(
        id,
        "CREATE TABLE ks.c (pk int, ck int, v int, PRIMARY KEY (pk, ck))",
    );
    let text = "BEGIN BATCH \
                INSERT INTO ks.c (pk, ck, v) VALUES (1, 1, 5) IF NOT EXISTS \
                INSERT INTO ks.c (pk, ck, v) VALUES (1, 2, 6) \
                APPLY BATCH";
    assert_eq!(sim.ok(id, text).rows().rows, [vec![Some(vec![1])]]);
    let int = |value: u8| Some(vec![0, 0, 0, value]);
    assert_eq!(
        sim.ok(id, text).rows().rows,
        [vec![Some(vec![0]), int(1), int(1), int(5)]]
    );
}

#[test]
fn a_conditional_batch_always_answers_with_its_columns() {
    let (mut sim, _) = tables();
    let id = sim.connect(0, 0, &["SCYLLA_USE_METADATA_ID"]);
    let text = "BEGIN BATCH INSERT INTO ks.t (pk) VALUES (1) IF NOT EXISTS APPLY BATCH";
    // Flag 0x02 asks for no metadata; an empty metadata id would ask for a new one.
    let by_query = sim.ask(id, QUERY, &query(text, &unhex("0006 02")));
    let prepared = sim.prepare(id, text);
    let body = [&[0, 16][..], &prepared, &unhex("0000 0006 02")].concat();
    let by_execute = sim.ask(id, EXECUTE, &body);
    for (reply, applied) in [(by_query, 1), (by_execute, 0)] {
        let rows = reply.rows();
        assert_eq!((rows.flags, &rows.rows[0][0]), (1, &Some(vec![applied])));
    }
}

#[test]
fn a_batch_counts_at_the_owner_of_its_first_statement() {
    let (mut sim, id) = tables();
    sim.cluster.reset_stats();
    let statements = texts(&[
        "INSERT INTO ks.t (pk, v) VALUES (1, 'a')",
        "INSERT INTO ks.c (pk, ck) VALUES (2, 2)",
    ]);
    let body = batch(LOGGED, &statements, "0006 00");
    for (node, shard) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let other = sim.connect(node, shard, &[]);
        assert_eq!(sim.ask(other, BATCH, &body).body, unhex("00000001"));
    }
    assert_eq!(sim.ask(id, BATCH, &body).body, unhex("00000001"));
    let stats = sim.cluster.stats();
    let counted = stats.table("ks.t");
    // Two of three nodes own a row, each on one of its two shards.
    assert_eq!(counted.requests, 7);
    assert!((4..=5).contains(&counted.at_owner_node), "{counted:?}");
    assert!((2..=3).contains(&counted.at_owner_shard), "{counted:?}");
    assert_eq!(stats.table("ks.c").requests, 0);
    let batches: u64 = stats.nodes.iter().map(|node| node.batches).sum();
    assert_eq!(batches, 7);
}

#[test]
fn a_batch_has_no_version_byte_and_no_payload() {
    let (mut sim, _) = tables();
    for statement in [
        "INSERT INTO ks.t (pk, v) VALUES (1, 'a')",
        "INSERT INTO sc.t (pk, v) VALUES (1, 'a')",
    ] {
        for (node, shard) in [(0, 0), (1, 1), (2, 0)] {
            let id = sim.connect(node, shard, &[V2]);
            let prepared = sim.prepare(id, statement);
            let entries = [Entry::Id(&prepared, &[]), Entry::Text(statement, &[])];
            let reply = sim.ask(id, BATCH, &batch(LOGGED, &entries, "0006 00"));
            assert_eq!((reply.flags, reply.body), (0, unhex("00000001")));
        }
    }
}

#[test]
fn injected_failures_reach_batches() {
    let (mut sim, id) = tables();
    let error = CqlError::named("write_timeout", "late").unwrap();
    sim.cluster.fail_next(0, &error, 2).unwrap();
    let statements = texts(&["INSERT INTO ks.t (pk, v) VALUES (1, 'a')"]);
    let by_opcode = sim.ask(id, BATCH, &batch(LOGGED, &statements, "0006 00"));
    assert_eq!((by_opcode.opcode, by_opcode.error().0), (ERROR, 0x1100));
    let text = "BEGIN BATCH INSERT INTO ks.t (pk, v) VALUES (1, 'a') APPLY BATCH";
    assert_eq!(sim.query(id, text).error().0, 0x1100);
    assert_eq!(values(&mut sim, id), [], "not executed");
    sim.ok(id, text);
    assert_eq!(values(&mut sim, id), [(1, "a".to_owned())]);
}

#[test]
fn large_batches_warn_and_larger_ones_fail() {
    let (mut sim, id) = tables();
    let insert = sim.prepare(id, "INSERT INTO ks.t (pk, v) VALUES (?, ?)");
    let mut send = |keys: [&[u8]; 2], len: usize| {
        let value = vec![b'a'; len];
        let entries = keys.map(|key| [key, &value[..]]);
        let entries = [
            Entry::Id(&insert, &entries[0]),
            Entry::Id(&insert, &entries[1]),
        ];
        sim.ask(id, BATCH, &batch(UNLOGGED, &entries, "0006 00"))
    };
    let (one, two): (&[u8], &[u8]) = (&[0, 0, 0, 1], &[0, 0, 0, 2]);
    assert_eq!(send([one, two], 10).flags, 0);
    let warned = send([one, two], 100_000);
    assert_eq!(warned.flags, 0x08);
    let text = String::from_utf8_lossy(&warned.body).into_owned();
    assert!(
        text.contains("Batch modifying 2 partitions in ks.t is of size"),
        "{text}"
    );
    assert_eq!(
        send([one, one], 100_000).flags,
        0,
        "one partition is no burden"
    );
    assert_eq!(
        send([one, two], 600_000).error(),
        (0x2200, "Batch too large".into())
    );
}
