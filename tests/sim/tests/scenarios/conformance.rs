//! Replies against bytes that a real node sends.

use crate::support::{
    BATCH, EXECUTE, ONE, PREPARE, QUERY, Sim, execute, frame, frames, hex, long_string, parameters,
    query, unhex,
};
use messina_sim::node::{Credentials, Options, TabletsMode};

#[test]
fn versions_other_than_three_and_four_are_refused_on_stream_zero() {
    let mut sim = Sim::new(Options::default());
    let id = sim.open(0, 0);
    let refusal = "8400000000000000300000000a002a496e76616c6964206f7220756e737570706f727465642070726f\
                   746f636f6c2076657273696f6e3a2035";
    assert_eq!(hex(&sim.feed(id, &frame(5, 0, 5, 5, &[]))), refusal);
    assert!(sim.cluster.is_closed(id));
}

#[test]
fn options_bodies_are_ignored_and_version_three_is_answered_in_kind() {
    let mut sim = Sim::new(Options::default());
    let id = sim.open(0, 0);
    let replies = frames(&sim.feed(id, &frame(3, 0, 7, 5, b"anything")));
    assert_eq!(
        (replies[0].version, replies[0].stream, replies[0].opcode),
        (0x83, 7, 6)
    );
}

#[test]
fn the_reply_to_startup_is_compressed_already() {
    let startup = "0400000101000000d2\
        0008000b434f4d5052455353494f4e00036c7a34000b43514c5f56455253494f4e0005332e332e31000b4452495645\
        525f4e414d45000464656d6f000e4452495645525f56455253494f4e0003302e31001c5343594c4c415f4c57545f41\
        44445f4d455441444154415f4d41524b000a3231343734383336343800175343594c4c415f524154455f4c494d4954\
        5f4552524f52000000165343594c4c415f5553455f4d455441444154415f49440000001f5441424c4554535f524f55\
        54494e475f56325f4558504552494d454e54414c0000";
    let mut sim = Sim::new(Options::default());
    let id = sim.open(0, 0);
    assert_eq!(
        hex(&sim.feed(id, &unhex(startup))),
        "8401000102000000050000000000"
    );

    let id = sim.open(0, 0);
    let mut body = vec![0, 1];
    body.extend(crate::support::string("COMPRESSION"));
    body.extend(crate::support::string("SNAPPY"));
    assert_eq!(
        hex(&sim.feed(id, &frame(4, 0, 1, 1, &body))),
        "84010001020000000100"
    );

    let id = sim.open(0, 0);
    body.truncate(body.len() - 8);
    body.extend(crate::support::string("zip"));
    let error = sim.ask(id, 1, &body).error();
    assert_eq!(
        error,
        (0x0A, "Unknown compression algorithm: zip".to_owned())
    );
    assert_eq!(sim.ask(id, 1, &[0, 0]).opcode, 2, "a second STARTUP works");
    let again = "Unexpected message STARTUP, the connection is already initialized";
    assert_eq!(sim.ask(id, 1, &[0, 0]).error(), (0x0A, again.to_owned()));
}

#[test]
fn requests_may_be_compressed_frame_by_frame() {
    let mut sim = Sim::new(Options::default());
    let id = sim.open(0, 0);
    let mut body = vec![0, 1];
    body.extend(crate::support::string("COMPRESSION"));
    body.extend(crate::support::string("lz4"));
    sim.feed(id, &frame(4, 0, 1, 1, &body));
    // OPTIONS with an empty body, as an lz4 block, then plain: both are answered compressed.
    let compressed = frames(&sim.feed(id, &frame(4, 1, 2, 5, &[0, 0, 0, 0, 0])));
    let plain = frames(&sim.feed(id, &frame(4, 0, 2, 5, &[])));
    assert_eq!(compressed, plain);
    assert_eq!((plain[0].flags, plain[0].opcode), (1, 6));
    let broken = frames(&sim.feed(id, &frame(4, 1, 2, 5, &[0, 0])));
    assert_eq!((broken[0].flags, broken[0].stream), (0, 0));
    assert_eq!(broken[0].error().0, 0);
    assert!(sim.cluster.is_closed(id));
}

#[test]
fn authentication_frame_by_frame() {
    let mut options = Options::default();
    options.auth = Some(Credentials::new("cassandra", "cassandra"));
    let mut sim = Sim::new(options);
    let id = sim.open(0, 0);
    let steps = [
        (
            "040000010100000002 0000",
            "84000001030000003100 2f6f72672e6170616368652e63617373616e6472612e617574682e50617373776f\
             726441757468656e74696361746f72",
        ),
        // OPTIONS is refused now.
        (
            "040000020500000000",
            "8400000200000000330000000a002d556e6578706563746564206d65737361676520352c20657870656374\
             696e67205341534c5f524553504f4e5345",
        ),
        // A wrong password leaves the connection as it is.
        (
            "040000020f0000001800000014 00 63617373616e647261 00 63617373616e647262",
            "84000002000000002c000001000026557365726e616d6520616e642f6f722070617373776f726420617265\
             20696e636f7272656374",
        ),
        (
            "040000020f0000001800000014 00 63617373616e647261 00 63617373616e647261",
            "84000002100000000400000000",
        ),
    ];
    for (request, reply) in steps {
        assert_eq!(
            hex(&sim.feed(id, &unhex(request))),
            reply.replace(' ', ""),
            "{request}"
        );
    }
    let other = sim.open(0, 0);
    sim.feed(other, &frame(4, 0, 1, 1, &[0, 0]));
    for bad in [
        &b"\0cassandrb\0cassandra"[..],
        b"\0cassandra\0",
        b"\0\0",
        b"",
    ] {
        assert_eq!(sim.ask(other, 0x0f, bad).error().0, 0x0100, "{bad:?}");
    }
    let token = b"\0cassandra\0cassandra";
    assert_eq!(
        sim.ask(other, 0x0f, token).opcode,
        0x10,
        "the length may be missing"
    );
}

/// `ks.t` and `ks.c` of the examples.
fn example_tables() -> Sim {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let admin = sim.connect(0, 0, &[]);
    sim.ok(
        admin,
        "CREATE TABLE ks.c (p1 text, p2 int, v text, PRIMARY KEY ((p1, p2)))",
    );
    sim
}

const METADATA_ID: &str = "SCYLLA_USE_METADATA_ID";
const LWT_MARK: &str = "SCYLLA_LWT_ADD_METADATA_MARK";

#[test]
fn prepared_bodies() {
    let mut sim = example_tables();
    let plain = sim.connect(0, 0, &[]);
    let full = sim.connect(0, 0, &[METADATA_ID, LWT_MARK]);
    let conditional = "INSERT INTO ks.t (pk, v) VALUES (?, ?) IF NOT EXISTS";
    let cases = [
        (
            full,
            conditional,
            "00000004 0010 eff44b5165677c4b041b81b264f63e87 0010 0bad9ccf245e8f8d31c347b63462c520
             80000001 00000002 00000001 0000 0002 6b73 0001 74 0002 706b 0009 0001 76 000d
             00000001 00000003 0002 6b73 0001 74 0009 5b6170706c6965645d 0004 0002 706b 0009 0001 76
             000d",
        ),
        (
            plain,
            conditional,
            "00000004 0010 eff44b5165677c4b041b81b264f63e87
             00000001 00000002 00000001 0000 0002 6b73 0001 74 0002 706b 0009 0001 76 000d
             00000001 00000003 0002 6b73 0001 74 0009 5b6170706c6965645d 0004 0002 706b 0009 0001 76
             000d",
        ),
        (
            full,
            "INSERT INTO ks.c (v, p2, p1) VALUES (?, ?, ?)",
            "00000004 0010 bca7fe24e29b7ae50aac71296a690710 0010 e3b0c44298fc1c149afbf4c8996fb924
             00000001 00000003 00000002 0002 0001 0002 6b73 0001 63 0001 76 000d 0002 7032 0009
             0002 7031 000d 00000004 00000000",
        ),
        (
            full,
            "SELECT pk FROM ks.t",
            "00000004 0010 941ff4a8349957e34773ddbe0acd886e 0010 08b59352eda568ee13d1319cc3418bcf
             00000000 00000000 00000000
             00000001 00000001 0002 6b73 0001 74 0002 706b 0009",
        ),
    ];
    for (id, text, expected) in cases {
        let body = sim.ask(id, PREPARE, &long_string(text)).body;
        assert_eq!(hex(&body), hex(&unhex(expected)), "{text}");
    }
    let request = "040000050900000038000000 34494e5345525420494e544f206b732e742028706b2c2076292056414c\
                   55455320283f2c203f29204946204e4f5420455849535453";
    let reply = frames(&sim.feed(full, &unhex(request))).remove(0);
    assert_eq!((reply.stream, reply.body.len()), (5, 111));
}

#[test]
fn key_markers_follow_the_key_and_vanish_with_a_literal() {
    let mut sim = example_tables();
    let id = sim.connect(0, 0, &[]);
    let cases: &[(&str, &[u16])] = &[
        ("SELECT v FROM ks.c WHERE p2 = ? AND p1 = ?", &[1, 0]),
        ("SELECT v FROM ks.c WHERE p2 = 1 AND p1 = ?", &[]),
        ("SELECT v FROM ks.c WHERE p1 IN ? AND p2 = ?", &[]),
        ("UPDATE ks.c SET v = ? WHERE p1 = ? AND p2 = ?", &[1, 2]),
        ("DELETE FROM ks.c WHERE p1 = :a AND p2 = :b", &[0, 1]),
        (
            "BEGIN BATCH INSERT INTO ks.t (v, pk) VALUES (?, ?); DELETE FROM ks.t WHERE pk = ?; \
          APPLY BATCH",
            &[1],
        ),
        (
            "BEGIN BATCH DELETE FROM ks.t WHERE pk = ?; DELETE FROM vn.t WHERE pk = ?; APPLY BATCH",
            &[],
        ),
        ("SELECT v FROM ks.t LIMIT ?", &[]),
    ];
    for (text, expected) in cases {
        let body = sim.ask(id, PREPARE, &long_string(text)).body;
        let count = u32::from_be_bytes(body[30..34].try_into().unwrap());
        let found: Vec<u16> = (0..count as usize)
            .map(|at| u16::from_be_bytes(body[34 + 2 * at..36 + 2 * at].try_into().unwrap()))
            .collect();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn version_three_has_no_key_markers() {
    let mut sim = example_tables();
    let id = sim.open(0, 0);
    sim.feed(id, &frame(3, 0, 1, 1, &[0, 0]));
    let body = long_string("SELECT pk FROM ks.t WHERE pk = ?");
    let reply = frames(&sim.feed(id, &frame(3, 0, 1, PREPARE, &body))).remove(0);
    // Flags, count, then the table at once.
    assert_eq!(hex(&reply.body[22..34]), "000000010000000100026b73");
}

const SELECT: &str = "SELECT * FROM ks.t WHERE pk = ?";
const SELECT_ID: &str = "cc1b08caacde12ecf33f1a3dacf9e218";

#[test]
fn execute_bodies_and_the_flags_of_rows() {
    let mut sim = example_tables();
    let admin = sim.connect(0, 0, &[]);
    sim.ok(admin, "INSERT INTO ks.t (pk, v) VALUES (1, 'a')");
    let known = "7fd77f07d5d660ea5a14242ae564b4d0";
    let columns = "0002 6b73 0001 74 0002 706b 0009 0001 76 000d";
    let row = "00000001 00000004 00000001 00000001 61";
    let plain = sim.connect(0, 0, &[]);
    let v2 = sim.connect(0, 0, &[crate::support::V2]);
    let both = sim.connect(0, 0, &[METADATA_ID, crate::support::V2]);
    assert_eq!(hex(&sim.prepare(plain, SELECT)), SELECT_ID);
    let cases = [
        (
            plain,
            "0006 01 0001 00000004 00000001".to_owned(),
            format!("00000001 00000002 {columns}"),
        ),
        (
            plain,
            "0006 03 0001 00000004 00000001".to_owned(),
            "00000005 00000002".to_owned(),
        ),
        (
            v2,
            "0006 01 0001 00000004 00000001 a3".to_owned(),
            format!("00000001 00000002 {columns}"),
        ),
        (
            both,
            format!("0010 {known} 0006 07 0001 00000004 00000001 00001388 a3"),
            "00000005 00000002".to_owned(),
        ),
        (
            both,
            format!("0010 {known} 0006 05 0001 00000004 00000001 00001388 a3"),
            format!("00000001 00000002 {columns}"),
        ),
        (
            both,
            "0000 0006 05 0001 00000004 00000001 00001388 3b".to_owned(),
            format!("00000009 00000002 0010 {known} {columns}"),
        ),
        (
            both,
            "0000 0006 07 0001 00000004 00000001 00001388 3b".to_owned(),
            format!("00000009 00000002 0010 {known} {columns}"),
        ),
    ];
    for (id, request, expected) in cases {
        let body = unhex(&format!("0010 {SELECT_ID} {request}"));
        let reply = sim.ask(id, EXECUTE, &body);
        let (_, message) = reply.payload();
        assert_eq!(
            hex(message),
            hex(&unhex(&format!("00000002 {expected} {row}"))),
            "{request}"
        );
    }
    let missing = unhex(&format!("0010 {SELECT_ID} 0006 01 0001 00000004 00000001"));
    let text = "truncated frame: expected 1 bytes, length is 0";
    assert_eq!(
        sim.ask(v2, EXECUTE, &missing).error(),
        (0x0A, text.to_owned())
    );
    let extra = [&missing[..], &[0xa3]].concat();
    assert_eq!(
        sim.ask(plain, EXECUTE, &extra).opcode,
        8,
        "an extra byte goes unnoticed"
    );
}

#[test]
fn an_altered_table_unprepares_and_changes_the_metadata_id() {
    let mut sim = example_tables();
    let admin = sim.connect(0, 0, &[]);
    sim.ok(admin, "INSERT INTO ks.t (pk, v) VALUES (1, 'a')");
    let id = sim.connect(0, 1, &[METADATA_ID]);
    sim.prepare(id, SELECT);
    sim.ok(admin, "ALTER TABLE ks.t ADD w bigint");
    let stale = unhex(&format!(
        "0010 {SELECT_ID} 0010 7fd77f07d5d660ea5a14242ae564b4d0 0006 03 0001 00000004 00000001"
    ));
    let unprepared = "840000070000 00005d 00002500 0045 4e6f2070726570617265642073746174656d656e742077\
        6974682049442063633162303863616163646531326563663333663161336461636639653231382066\
        6f756e642e 0010 cc1b08caacde12ecf33f1a3dacf9e218";
    let reply = sim.feed(id, &frame(4, 0, 7, EXECUTE, &stale));
    assert_eq!(hex(&reply), hex(&unhex(unprepared)));
    sim.prepare(admin, SELECT);
    assert_eq!(
        hex(&sim.ask(id, EXECUTE, &stale).body),
        hex(&unhex(
            "00000002 00000009 00000003 0010 50f36f50f1143fcde847b99928cb8f62 0002 6b73 0001 74
             0002 706b 0009 0001 76 000d 0001 77 0002 00000001 00000004 00000001 00000001 61 ffffffff"
        ))
    );
}

#[test]
fn unprepared_wins_over_everything_behind_it() {
    let mut sim = example_tables();
    let id = sim.connect(1, 0, &[METADATA_ID, crate::support::V2]);
    let cut = unhex(&format!("0010 {SELECT_ID} 00"));
    assert_eq!(sim.ask(id, EXECUTE, &cut).error().0, 0x2500);
    // Another node's cache is no help.
    let other = sim.connect(0, 0, &[]);
    sim.prepare(other, SELECT);
    assert_eq!(sim.ask(id, EXECUTE, &cut).error().0, 0x2500);
    sim.prepare(id, SELECT);
    assert_eq!(sim.ask(id, EXECUTE, &cut).error().0, 0x0A);
    sim.cluster.forget_prepared(1).unwrap();
    assert_eq!(sim.ask(id, EXECUTE, &cut).error().0, 0x2500);
}

#[test]
fn results_without_rows_and_batches() {
    let mut sim = example_tables();
    let id = sim.connect(0, 0, &[]);
    let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?) IF NOT EXISTS";
    let results = [
        (
            "CREATE TABLE ks.u (a int PRIMARY KEY)",
            "00000005 0007 43524541544544 0005 5441424c45 0002 6b73 0001 75",
        ),
        (
            "CREATE TABLE IF NOT EXISTS ks.t (pk int PRIMARY KEY)",
            "00000005 0007 43524541544544 0005 5441424c45 0002 6b73 0001 74",
        ),
        ("USE ks", "00000003 0002 6b73"),
        ("INSERT INTO t (pk) VALUES (5)", "00000001"),
    ];
    for (text, expected) in results {
        assert_eq!(hex(&sim.ok(id, text).body), hex(&unhex(expected)), "{text}");
    }
    assert_eq!(
        hex(&sim.prepare(id, insert)),
        "37a44a9c97937465ce4163731181fff0"
    );
    let fresh = sim.connect(0, 0, &[]);
    sim.prepare(fresh, "INSERT INTO ks.t (pk, v) VALUES (?, ?)");
    // The example batch names a conditional insert by its id: it answers with the row before.
    sim.prepare(fresh, insert);
    let batch =
        "01 0001 01 0010 eff44b5165677c4b041b81b264f63e87 0002 00000004 00000001 00000001 61
                 0006 20 00060a24181e4000";
    assert_eq!(
        hex(&sim.ask(fresh, BATCH, &unhex(batch)).body),
        hex(&unhex(
            "00000002 00000001 00000003 0002 6b73 0001 74 0009 5b6170706c6965645d 0004
             0002 706b 0009 0001 76 000d 00000001 00000001 01 ffffffff ffffffff"
        ))
    );
    let texts = |text: &str| {
        [
            &[1, 0, 1, 0][..],
            &long_string(text),
            &unhex("0000 0006 00"),
        ]
        .concat()
    };
    let reply = sim.ask(
        fresh,
        BATCH,
        &texts("INSERT INTO ks.t (pk, v) VALUES (9, 'b')"),
    );
    assert_eq!(hex(&reply.body), "00000001");
    assert_eq!(
        sim.ok(fresh, "SELECT v FROM ks.t WHERE pk = 9")
            .rows()
            .texts(0),
        ["b"]
    );
    let select = sim.ask(fresh, BATCH, &texts("SELECT v FROM ks.t")).error();
    assert!(
        select
            .1
            .starts_with("Invalid statement in batch: only UPDATE"),
        "{select:?}"
    );
    let markers = sim
        .ask(fresh, BATCH, &texts("DELETE FROM ks.t WHERE pk = ?"))
        .error();
    assert_eq!(
        markers.1,
        "There were 1 markers(?) in CQL but 0 bound variables"
    );
}

#[test]
fn system_rows_as_bytes() {
    let mut sim = Sim::new(Options::uniform(2, 2));
    let id = sim.connect(0, 0, &[]);
    let request = "040000030700000040000000 3953454c45435420736368656d615f76657273696f6e2046524f4d207379\
                   7374656d2e6c6f63616c205748455245206b65793d276c6f63616c27 0001 00";
    let reply = sim.feed(id, &unhex(request));
    let expected =
        "84000003080000004500000002000000010000000100 06 73797374656d 0005 6c6f63616c 000e
                    736368656d615f76657273696f6e 000c 00000001 00000010";
    assert_eq!(hex(&reply[..reply.len() - 16]), hex(&unhex(expected)));
    let second = sim.connect(1, 0, &[]);
    let other = sim.feed(second, &unhex(request));
    assert_eq!(reply, other, "all nodes agree on the schema version");
    sim.ok(
        id,
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    assert_ne!(
        sim.feed(second, &unhex(request)),
        other,
        "a change of schema changes it"
    );
}

/// Every malformed request has its answer and leaves the connection open.
#[test]
fn malformed_requests() {
    let mut sim = example_tables();
    let id = sim.connect(0, 0, &[]);
    let with = |text: &str, parameters: &str| query(text, &unhex(parameters));
    let cases: &[(u8, Vec<u8>, u32, &str)] = &[
        (
            QUERY,
            vec![],
            0x0A,
            "truncated frame: expected 4 bytes, length is 0",
        ),
        (
            QUERY,
            unhex("00000005 61"),
            0x0A,
            "truncated frame: expected 5 bytes, length is 1",
        ),
        (
            QUERY,
            unhex("00000002 61ff 0001 00"),
            0x0A,
            "Cannot decode string as UTF8, invalid character at byte offset 1",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t", "000b 00"),
            0x0A,
            "Unknown code 11 for a consistency level",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t", "0001 80"),
            0x00,
            "Bit mask contains invalid enumeration indices.",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t", "0001 01 0001 fffffffd"),
            0x0A,
            "invalid value length: -3",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t", "0001 0c 00000001 00000002 cafe"),
            0x0A,
            "Invalid value for the paging state",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t", "0001 20 8000000000000000"),
            0x0A,
            "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]",
        ),
        (
            QUERY,
            with("SELECT pk FROM ks.t WHERE pk = ?", "0001 00"),
            0x2200,
            "Invalid amount of bind variables: expected 1 received 0",
        ),
        (
            BATCH,
            unhex("00 0001 02"),
            0x0A,
            "Invalid query kind in BATCH messages. Must be 0 or 1 but got 2",
        ),
        (
            0x0B,
            unhex("0001 0001 58"),
            0x0A,
            "Invalid value 'X' for Event.Type",
        ),
        (0x04, vec![], 0x0A, "Unknown opcode 4"),
        (0x08, vec![], 0x0A, "Unknown opcode 8"),
        (0xFF, vec![], 0x0A, "Unknown opcode 255"),
        (0x0F, vec![], 0x00, "authentication is not required"),
        (
            0x01,
            vec![0, 0],
            0x0A,
            "Unexpected message STARTUP, the connection is already initialized",
        ),
    ];
    for (opcode, body, code, text) in cases {
        assert_eq!(
            sim.ask(id, *opcode, body).error(),
            (*code, (*text).to_owned())
        );
        assert!(!sim.cluster.is_closed(id));
    }
    let trailing = [
        query("SELECT pk FROM ks.t", &parameters(ONE, &[])),
        vec![1, 2, 3],
    ]
    .concat();
    assert_eq!(
        sim.ask(id, QUERY, &trailing).opcode,
        8,
        "bytes behind a body are ignored"
    );
    let early = sim.open(0, 0);
    let text = "Unexpected message 7, expecting STARTUP or OPTIONS";
    assert_eq!(sim.ask(early, QUERY, &[]).error(), (0x0A, text.to_owned()));
}

#[test]
fn frames_may_come_in_any_pieces() {
    let mut sim = example_tables();
    let id = sim.connect(0, 0, &[]);
    let request = [
        frame(
            4,
            0,
            1,
            QUERY,
            &query("SELECT pk FROM ks.t", &parameters(ONE, &[])),
        ),
        frame(4, 0, -2, 5, &[]),
    ]
    .concat();
    let whole = sim.feed(id, &request);
    for cut in 0..=request.len() {
        let mut bytes = sim.feed(id, &request[..cut]);
        bytes.extend(sim.feed(id, &request[cut..]));
        assert_eq!(bytes, whole, "cut at {cut}");
    }
}

#[test]
fn oversized_bodies_are_refused_before_they_come() {
    let mut sim = example_tables();
    let id = sim.connect(0, 0, &[]);
    let mut header = frame(4, 0, 3, QUERY, &[]);
    header[5..9].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    let reply = frames(&sim.feed(id, &header)).remove(0);
    assert_eq!(reply.stream, 3);
    let (code, text) = reply.error();
    assert_eq!(code, 0x2200);
    assert!(
        text.starts_with("request size too large (frame size 2147483647;"),
        "{text}"
    );
    assert!(sim.cluster.is_closed(id));
}

/// Damaged requests of every kind: an answer or an end, never a panic, and the same twice.
#[test]
fn damage_never_panics() {
    let run = || {
        let mut sim = example_tables();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let select = unhex(SELECT_ID);
        let seeds = [
            frame(
                4,
                0,
                1,
                QUERY,
                &query(
                    "SELECT a, b FROM ks.t WHERE pk = 1 LIMIT 2",
                    &parameters(ONE, &[]),
                ),
            ),
            frame(
                4,
                0,
                1,
                QUERY,
                &query(
                    "INSERT INTO ks.t (pk, v) VALUES (?, ?)",
                    &parameters(ONE, &[&[0, 0, 0, 1], b"x"]),
                ),
            ),
            frame(
                4,
                0,
                1,
                EXECUTE,
                &execute(&select, &parameters(ONE, &[&[0, 0, 0, 1]]), Some(3)),
            ),
            frame(4, 2, 1, PREPARE, &long_string(SELECT)),
            frame(
                4,
                0,
                1,
                BATCH,
                &unhex("01 0001 00 00000004 44524f50 0000 0006 20 00060a24181e4000"),
            ),
            frame(
                4,
                0,
                1,
                0x0B,
                &unhex("0001 000d 5354415455535f4348414e4745"),
            ),
        ];
        let mut seen = Vec::new();
        for round in 0..1500 {
            let id = sim.connect(0, 0, &[crate::support::V2]);
            sim.prepare(id, SELECT);
            let mut bytes = seeds[round % seeds.len()].clone();
            for _ in 0..1 + next() % 3 {
                let at = 5 + usize::try_from(next()).unwrap() % (bytes.len() - 5);
                bytes[at] = u8::try_from(next() & 0xff).unwrap();
            }
            // Lengths that promise more than there is would only wait.
            let len = u32::try_from(bytes.len() - 9).unwrap();
            bytes[5..9].copy_from_slice(&len.to_be_bytes());
            seen.extend(sim.feed(id, &bytes));
            sim.cluster.disconnect(id);
        }
        seen
    };
    assert_eq!(run(), run());
}
