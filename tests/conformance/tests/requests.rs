//! Every request is written as the specification writes it, and what cannot be said is refused.

use messina_conformance::hex::hex;
use messina_core::wire::request::{
    AuthResponse, Batch, BatchKind, BatchStatement, BatchStatementKind, Execute, Options, Prepare,
    Query, QueryParameters, Register, RequestBody, Startup, put_request,
};
use messina_core::wire::{
    Consistency, EncodeError, EncodeErrorKind, Flags, ProtocolVersion, SerialConsistency, Values,
};

use ProtocolVersion::{V3, V4, V5};

fn body(version: ProtocolVersion, request: &impl RequestBody) -> Result<Vec<u8>, EncodeError> {
    let mut sink = b"before".to_vec();
    let written = put_request(&mut sink, version, Flags::NONE, 0x1234, request);
    if written.is_err() {
        assert_eq!(sink, b"before", "a refused request left bytes behind");
    }
    written?;
    let frame = &sink[6..];
    assert_eq!(frame[..4], [version.number(), 0, 0x12, 0x34]);
    let len = u32::from_be_bytes(frame[5..9].try_into().unwrap());
    assert_eq!(usize::try_from(len).unwrap(), frame.len() - 9);
    Ok(frame[9..].to_vec())
}

fn check(version: ProtocolVersion, request: &impl RequestBody, expected: &str) {
    let written = body(version, request).unwrap();
    assert_eq!(written, hex(expected), "{version} {written:02x?}");
}

fn refuse(version: ProtocolVersion, request: &impl RequestBody) -> EncodeErrorKind {
    body(version, request).unwrap_err().kind
}

const ID: [u8; 16] = 0xcc1b_08ca_acde_12ec_f33f_1a3d_acf9_e218_u128.to_be_bytes();
const METADATA_ID: [u8; 16] = 0x7fd7_7f07_d5d6_60ea_5a14_242a_e564_b4d0_u128.to_be_bytes();
const ONE_INT: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 1];

fn parameters(values: Values<'_>) -> QueryParameters<'_> {
    QueryParameters {
        values,
        ..QueryParameters::new(Consistency::LocalQuorum)
    }
}

#[test]
fn whole_frames() {
    let mut sink = Vec::new();
    put_request(&mut sink, V4, Flags::NONE, 0, &Options).unwrap();
    assert_eq!(sink, hex("04 00 0000 05 00000000"));
    sink.clear();
    let token = AuthResponse {
        token: Some(b"\0cassandra\0cassandra"),
    };
    put_request(&mut sink, V4, Flags::NONE, 2, &token).unwrap();
    let expected = "04 00 0002 0f 00000018 00000014 00 63617373616e647261 00 63617373616e647261";
    assert_eq!(sink, hex(expected));
    sink.clear();
    let text = "INSERT INTO ks.t (pk, v) VALUES (?, ?) IF NOT EXISTS";
    put_request(
        &mut sink,
        V4,
        Flags::NONE,
        5,
        &Prepare {
            text,
            keyspace: None,
        },
    )
    .unwrap();
    let expected =
        "04 00 0005 09 00000038 00000034 494e5345525420494e544f206b732e742028706b2c2076292056
        414c55455320283f2c203f29204946204e4f5420455849535453";
    assert_eq!(sink, hex(expected));
}

#[test]
fn authentication_tokens() {
    check(
        V4,
        &AuthResponse {
            token: Some(b"\0u\0p"),
        },
        "000000040075 0070",
    );
    let umlauts = "\0ü\0pä".as_bytes();
    check(
        V4,
        &AuthResponse {
            token: Some(umlauts),
        },
        "0000000700c3bc0070c3a4",
    );
    check(V4, &AuthResponse { token: Some(b"") }, "00000000");
    check(V4, &AuthResponse { token: None }, "ffffffff");
    assert_eq!(
        format!(
            "{:?}",
            AuthResponse {
                token: Some(b"secret")
            }
        ),
        "AuthResponse(..)"
    );
}

#[test]
fn startup_is_a_map_of_options() {
    let options = [
        ("COMPRESSION", "lz4"),
        ("CQL_VERSION", "3.3.1"),
        ("DRIVER_NAME", "demo"),
        ("DRIVER_VERSION", "0.1"),
        ("SCYLLA_LWT_ADD_METADATA_MARK", "2147483648"),
        ("SCYLLA_RATE_LIMIT_ERROR", ""),
        ("SCYLLA_USE_METADATA_ID", ""),
        ("TABLETS_ROUTING_V2_EXPERIMENTAL", ""),
    ];
    let expected = "
        0008000b434f4d5052455353494f4e00036c7a34000b43514c5f56455253494f4e0005332e332e31000b4452495645525f4e41
        4d45000464656d6f000e4452495645525f56455253494f4e0003302e31001c5343594c4c415f4c57545f4144445f4d45544144
        4154415f4d41524b000a3231343734383336343800175343594c4c415f524154455f4c494d49545f4552524f52000000165343
        594c4c415f5553455f4d455441444154415f49440000001f5441424c4554535f524f5554494e475f56325f4558504552494d45
        4e54414c0000";
    check(V4, &Startup(options), expected);
    assert_eq!(hex(expected).len(), 210);
    assert_eq!(
        refuse(V4, &Startup(vec![("", ""); 65_536])),
        too_many(65_536)
    );
}

#[test]
fn register_is_a_list_of_events() {
    let events = [
        "TOPOLOGY_CHANGE",
        "STATUS_CHANGE",
        "SCHEMA_CHANGE",
        "CLIENT_ROUTES_CHANGE",
    ];
    check(
        V4,
        &Register { events: &events },
        "0004 000f 544f504f4c4f47595f4348414e4745 000d 5354415455535f4348414e4745
         000d 534348454d415f4348414e4745 0014 434c49454e545f524f555445535f4348414e4745",
    );
}

#[test]
fn prepare_names_a_keyspace_only_on_version_5() {
    let prepare = Prepare {
        text: "SELECT 1",
        keyspace: Some("ks"),
    };
    check(V5, &prepare, "00000008 53454c4543542031 00000001 0002 6b73");
    for version in [V3, V4] {
        assert_eq!(
            refuse(version, &prepare),
            EncodeErrorKind::NotInVersion(version)
        );
    }
    let prepare = Prepare {
        keyspace: None,
        ..prepare
    };
    check(V5, &prepare, "00000008 53454c4543542031 00000000");
    check(V4, &prepare, "00000008 53454c4543542031");
}

#[test]
fn query_with_every_parameter() {
    let named = hex("000170 00000004 00000007");
    let parameters = QueryParameters {
        page_size: Some(5000),
        paging_state: Some(&[0xca, 0xfe]),
        serial_consistency: Some(SerialConsistency::Serial),
        timestamp: Some(1000),
        ..parameters(Values::parse(1, true, &named).unwrap())
    };
    let mut query = Query {
        text: "SELECT a FROM t WHERE p = :p",
        parameters,
    };
    let text = "0000001c 53454c45435420612046524f4d20742057484552452070203d203a70 0006";
    let rest = "0001 000170 00000004 00000007 00001388 00000002 cafe 0008 00000000000003e8";
    check(V4, &query, &format!("{text} 7d {rest}"));
    check(V3, &query, &format!("{text} 7d {rest}"));
    check(V5, &query, &format!("{text} 0000007d {rest}"));
    query.parameters.keyspace = Some("ks");
    query.parameters.now_in_seconds = Some(-1);
    check(
        V5,
        &query,
        &format!("{text} 000001fd {rest} 0002 6b73 ffffffff"),
    );
    assert_eq!(refuse(V4, &query), EncodeErrorKind::NotInVersion(V4));
    query.parameters.now_in_seconds = None;
    assert_eq!(refuse(V4, &query), EncodeErrorKind::NotInVersion(V4));
    query.parameters = QueryParameters::new(Consistency::One);
    query.text = "";
    check(V4, &query, "00000000 0001 00");
}

#[test]
fn each_parameter_has_its_flag() {
    let plain = QueryParameters::new(Consistency::One);
    let table = [
        (
            QueryParameters {
                values: Values::parse(1, false, ONE_INT).unwrap(),
                ..plain
            },
            0x01,
        ),
        (
            QueryParameters {
                skip_metadata: true,
                ..plain
            },
            0x02,
        ),
        (
            QueryParameters {
                page_size: Some(1),
                ..plain
            },
            0x04,
        ),
        (
            QueryParameters {
                paging_state: Some(b""),
                ..plain
            },
            0x08,
        ),
        (
            QueryParameters {
                serial_consistency: Some(SerialConsistency::LocalSerial),
                ..plain
            },
            0x10,
        ),
        (
            QueryParameters {
                timestamp: Some(-1),
                ..plain
            },
            0x20,
        ),
        (plain, 0),
    ];
    for (parameters, flag) in table {
        let written = body(
            V4,
            &Query {
                text: "",
                parameters,
            },
        )
        .unwrap();
        assert_eq!(written[..7], [0, 0, 0, 0, 0, 1, flag]);
        let written = body(
            V5,
            &Query {
                text: "",
                parameters,
            },
        )
        .unwrap();
        assert_eq!(written[..10], [0, 0, 0, 0, 0, 1, 0, 0, 0, flag]);
    }
}

#[test]
fn execute_as_the_connection_agreed() {
    let plain = Execute {
        id: &ID,
        result_metadata_id: None,
        parameters: parameters(Values::parse(1, false, ONE_INT).unwrap()),
        tablet_version_block: None,
    };
    let id = "0010 cc1b08caacde12ecf33f1a3dacf9e218";
    let metadata_id = "0010 7fd77f07d5d660ea5a14242ae564b4d0";
    let values = "0001 00000004 00000001";
    check(V4, &plain, &format!("{id} 0006 01 {values}"));
    let block = Execute {
        tablet_version_block: Some(0xa3),
        ..plain
    };
    check(V4, &block, &format!("{id} 0006 01 {values} a3"));
    let mut both = Execute {
        result_metadata_id: Some(&METADATA_ID),
        ..block
    };
    both.parameters.skip_metadata = true;
    both.parameters.page_size = Some(5000);
    check(
        V4,
        &both,
        &format!("{id} {metadata_id} 0006 07 {values} 00001388 a3"),
    );
    both.parameters.skip_metadata = false;
    let empty = Execute {
        result_metadata_id: Some(&[]),
        tablet_version_block: Some(0x3b),
        ..both
    };
    check(
        V4,
        &empty,
        &format!("{id} 0000 0006 05 {values} 00001388 3b"),
    );
    let v5 = Execute {
        tablet_version_block: None,
        ..both
    };
    check(
        V5,
        &v5,
        &format!("{id} {metadata_id} 0006 00000005 {values} 00001388"),
    );
    assert_eq!(refuse(V5, &plain), EncodeErrorKind::MissingInVersion(V5));
}

#[test]
fn execute_after_the_columns_changed() {
    let mut parameters = QueryParameters::new(Consistency::One);
    parameters.skip_metadata = true;
    for (metadata_id, expected) in [(1, "0001aa000101000102"), (2, "0001aa000102000102")] {
        let execute = Execute {
            id: &[0xaa],
            result_metadata_id: Some(&[metadata_id]),
            parameters,
            tablet_version_block: None,
        };
        check(V4, &execute, expected);
    }
}

#[test]
fn null_unset_and_empty_stay_apart() {
    let encoded = hex("00000004 00000007 ffffffff fffffffe 00000000");
    let mut parameters = QueryParameters::new(Consistency::One);
    parameters.values = Values::parse(4, false, &encoded).unwrap();
    let execute = Execute {
        id: &[0xaa],
        result_metadata_id: None,
        parameters,
        tablet_version_block: None,
    };
    check(
        V4,
        &execute,
        "0001aa 0001 01 0004 00000004 00000007 ffffffff fffffffe 00000000",
    );
    assert_eq!(refuse(V3, &execute), EncodeErrorKind::NotInVersion(V3));
}

fn batch<'s>(
    kind: BatchKind,
    statements: &'s [BatchStatement<'s>],
) -> Batch<'static, impl IntoIterator<Item = BatchStatement<'s>> + Clone + use<'s>> {
    Batch {
        kind,
        statements: statements.iter().copied(),
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp: None,
        keyspace: None,
        now_in_seconds: None,
    }
}

#[test]
fn batches() {
    let id = 0xeff4_4b51_6567_7c4b_041b_81b2_64f6_3e87_u128.to_be_bytes();
    let row = hex("00000004 00000001 00000001 61");
    let values = Values::parse(2, false, &row).unwrap();
    let prepared = [BatchStatement {
        kind: BatchStatementKind::Prepared(&id),
        values,
    }];
    let mut insert = batch(BatchKind::Unlogged, &prepared);
    insert.consistency = Consistency::LocalQuorum;
    insert.timestamp = Some(0x0006_0a24_181e_4000);
    let statement =
        "01 0001 01 0010 eff44b5165677c4b041b81b264f63e87 0002 00000004 00000001 00000001 61";
    check(
        V4,
        &insert,
        &format!("{statement} 0006 20 00060a24181e4000"),
    );
    insert.serial_consistency = Some(SerialConsistency::LocalSerial);
    insert.keyspace = Some("ks");
    insert.now_in_seconds = Some(7);
    let fields = "0009 00060a24181e4000 0002 6b73 00000007";
    check(V5, &insert, &format!("{statement} 0006 000001b0 {fields}"));
    assert_eq!(refuse(V4, &insert), EncodeErrorKind::NotInVersion(V4));

    let one = Values::parse(1, false, ONE_INT).unwrap();
    let mixed = [
        BatchStatement {
            kind: BatchStatementKind::Prepared(&[0xaa]),
            values: one,
        },
        BatchStatement {
            kind: BatchStatementKind::Text("INSERT INTO k.t (p) VALUES (2)"),
            values: Values::EMPTY,
        },
    ];
    check(
        V4,
        &batch(BatchKind::Logged, &mixed),
        "000002010001aa00010000000400000001000000001e494e5345525420494e544f206b2e74202870292056414c
         554553202832290000000100",
    );
}

#[test]
fn batches_that_cannot_be_said_are_refused() {
    let named = hex("000170 00000004 00000007");
    let values = Values::parse(1, true, &named).unwrap();
    let statements = [BatchStatement {
        kind: BatchStatementKind::Text(""),
        values,
    }];
    assert_eq!(
        refuse(V4, &batch(BatchKind::Logged, &statements)),
        EncodeErrorKind::NotHere
    );
    let values = Values::EMPTY;
    let many = vec![
        BatchStatement {
            kind: BatchStatementKind::Text(""),
            values
        };
        65_536
    ];
    assert_eq!(
        refuse(V4, &batch(BatchKind::Logged, &many)),
        too_many(65_536)
    );
    assert!(body(V4, &batch(BatchKind::Logged, &many[1..])).is_ok());
}

#[test]
fn ids_that_do_not_fit_their_length_are_refused() {
    let long = vec![0; 65_536];
    let too_long = EncodeErrorKind::TooLong {
        len: 65_536,
        max: 65_535,
    };
    let parameters = QueryParameters::new(Consistency::One);
    let execute = Execute {
        id: &long,
        result_metadata_id: None,
        parameters,
        tablet_version_block: None,
    };
    assert_eq!(refuse(V4, &execute), too_long);
    let execute = Execute {
        id: &[],
        result_metadata_id: Some(&long),
        ..execute
    };
    assert_eq!(refuse(V4, &execute), too_long);
    let execute = Execute {
        result_metadata_id: Some(&long[1..]),
        ..execute
    };
    assert!(body(V4, &execute).is_ok());
    let statements = [BatchStatement {
        kind: BatchStatementKind::Prepared(&long),
        values: Values::EMPTY,
    }];
    assert_eq!(refuse(V4, &batch(BatchKind::Logged, &statements)), too_long);
}

fn too_many(count: usize) -> EncodeErrorKind {
    EncodeErrorKind::TooMany { count, max: 65_535 }
}
