//! Every golden response says what the specification says it says.

use core::net::SocketAddr;

use messina_conformance::golden::{Golden, RESPONSES, by_name};
use messina_conformance::walk::walk;
use messina_core::types::{ColumnType, CqlValue, DecodeRow, ResultMetadata};
use messina_core::wire::response::{
    ErrorCode, ErrorDetail, Event, Extras, Prepared, RateLimitedOperation, Response, ResultBody,
    Rows, SchemaChangeKind, SchemaTarget, ServerError, StatusChangeKind, TopologyChangeKind,
    WriteType,
};
use messina_core::wire::{Consistency, Opcode, ProtocolVersion, Reader};

/// Reads the golden frame of a name and hands prefix and message to `check`.
fn read(name: &str, check: impl FnOnce(Extras<'_>, Response<'_>)) {
    let golden = by_name(name);
    let body = golden.bytes();
    let mut reader = Reader::new(&body);
    let extras = Extras::parse(golden.flags, &mut reader).unwrap();
    let response = Response::parse(&golden.dialect, golden.opcode, &mut reader).unwrap();
    check(extras, response);
}

fn rows(name: &str, check: impl FnOnce(Rows<'_>)) {
    read(name, |_, response| match response {
        Response::Result(ResultBody::Rows(rows)) => check(rows),
        other => panic!("{other:?}"),
    });
}

fn prepared(name: &str, check: impl FnOnce(Prepared<'_>)) {
    read(name, |_, response| match response {
        Response::Result(ResultBody::Prepared(prepared)) => check(prepared),
        other => panic!("{other:?}"),
    });
}

fn error(name: &str) -> ServerError {
    let mut found = None;
    read(name, |_, response| match response {
        Response::Error(error) => found = Some(error),
        other => panic!("{other:?}"),
    });
    found.unwrap()
}

fn event(name: &str, check: impl FnOnce(Event<'_>)) {
    read(name, |_, response| match response {
        Response::Event(event) => check(event),
        other => panic!("{other:?}"),
    });
}

fn dynamic(metadata: &ResultMetadata, rows: &Rows<'_>) -> Vec<Vec<CqlValue>> {
    let decode = |row| Vec::<CqlValue>::decode_row(&(), metadata.columns(), row).unwrap();
    rows.content
        .iter()
        .map(|row| decode(row.unwrap()))
        .collect()
}

fn text(value: &str) -> CqlValue {
    CqlValue::Text(value.into())
}

#[test]
fn every_body_has_its_length_and_is_read_to_its_end() {
    for golden in RESPONSES {
        let body = golden.bytes();
        assert_eq!(body.len(), golden.len, "{}", golden.name);
        walk(&golden.dialect, golden.flags, golden.opcode, &body).unwrap();
        let mut reader = Reader::new(&body);
        Extras::parse(golden.flags, &mut reader).unwrap();
        let response = Response::parse(&golden.dialect, golden.opcode, &mut reader).unwrap();
        if !matches!(response, Response::Result(ResultBody::Rows(_))) {
            assert!(reader.is_empty(), "{}", golden.name);
        }
    }
}

#[test]
fn every_cut_is_an_error() {
    for Golden {
        name,
        dialect,
        flags,
        opcode,
        ..
    } in RESPONSES
    {
        let body = by_name(name).bytes();
        for cut in 0..body.len() {
            assert!(
                walk(dialect, *flags, *opcode, &body[..cut]).is_err(),
                "{name} cut at {cut}"
            );
        }
    }
}

#[test]
fn opcodes_of_requests_are_no_responses() {
    for opcode in Opcode::ALL {
        let parsed = Response::parse(&RESPONSES[0].dialect, opcode, &mut Reader::new(&[0; 64]));
        assert!(opcode.is_response() || parsed.is_err(), "{opcode}");
    }
    let mut empty = Reader::new(&[]);
    let ready = Response::parse(&RESPONSES[0].dialect, Opcode::Ready, &mut empty);
    assert!(matches!(ready, Ok(Response::Ready)));
}

#[test]
fn supported_is_a_map_of_names_to_values() {
    read("supported, 12 shards, on shard 3", |_, response| {
        let Response::Supported(supported) = response else {
            panic!("{response:?}")
        };
        assert_eq!(supported.options.len(), 14);
        for (name, value) in [
            ("CLIENT_OPTIONS", ""),
            ("COMPRESSION", "lz4"),
            ("CQL_VERSION", "3.3.1"),
            ("SCYLLA_HOST_ID", "01020304-0506-0708-090a-0b0c0d0e0f10"),
            (
                "SCYLLA_LWT_ADD_METADATA_MARK",
                "LWT_OPTIMIZATION_META_BIT_MASK=2147483648",
            ),
            ("SCYLLA_NR_SHARDS", "12"),
            (
                "SCYLLA_PARTITIONER",
                "org.apache.cassandra.dht.Murmur3Partitioner",
            ),
            ("SCYLLA_RATE_LIMIT_ERROR", "ERROR_CODE=61440"),
            ("SCYLLA_SHARD", "3"),
            ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
            ("SCYLLA_SHARDING_IGNORE_MSB", "12"),
            ("SCYLLA_SHARD_AWARE_PORT", "19042"),
            ("SCYLLA_USE_METADATA_ID", ""),
            ("TABLETS_ROUTING_V1", ""),
        ] {
            assert_eq!(supported.first(name), Some(value), "{name}");
        }
        let compressions: Vec<_> = supported.get("COMPRESSION").unwrap().iter().collect();
        assert_eq!(compressions, ["lz4", "snappy"]);
        assert!(!supported.contains("PROTOCOL_VERSIONS"));
    });
}

#[test]
fn tokens_are_null_empty_or_bytes() {
    read("auth success, empty", |_, response| {
        let Response::AuthSuccess(success) = response else {
            panic!("{response:?}")
        };
        assert_eq!(success.token, Some(&[][..]));
    });
    read("auth success, null", |_, response| {
        let Response::AuthSuccess(success) = response else {
            panic!("{response:?}")
        };
        assert_eq!(success.token, None);
    });
    read("auth challenge, null", |_, response| {
        let Response::AuthChallenge(challenge) = response else {
            panic!("{response:?}")
        };
        assert_eq!(challenge.token, None);
    });
    read("auth challenge, abc", |_, response| {
        let Response::AuthChallenge(challenge) = response else {
            panic!("{response:?}")
        };
        assert_eq!(challenge.token, Some(&b"abc"[..]));
        assert!(
            !format!("{challenge:?}").contains("97"),
            "a token shows in debug output"
        );
    });
    read("authenticate", |_, response| {
        let Response::Authenticate(authenticate) = response else {
            panic!("{response:?}")
        };
        assert_eq!(
            authenticate.class,
            "org.apache.cassandra.auth.PasswordAuthenticator"
        );
    });
}

#[test]
fn prefixes_stand_before_the_message() {
    read(
        "void with trace id, warning and payload",
        |extras, response| {
            let id = extras.trace_id.map(|id| id.to_string());
            assert_eq!(id.as_deref(), Some("227aff60-4f21-11e6-8835-000000000000"));
            assert_eq!(extras.warnings.iter().collect::<Vec<_>>(), ["w1"]);
            assert_eq!(
                extras.custom_payload.get("tablets-routing-v1"),
                Some(&[1][..])
            );
            assert!(matches!(response, Response::Result(ResultBody::Void)));
        },
    );
    read("void with warning and payload", |extras, response| {
        assert_eq!(
            (extras.trace_id, extras.warnings.first()),
            (None, Some("w1"))
        );
        assert_eq!(extras.custom_payload.get("k"), Some(&[1, 2][..]));
        assert!(matches!(response, Response::Result(ResultBody::Void)));
    });
    read("void with tablet routing, version 2", |extras, response| {
        let payload = extras.custom_payload.get("tablets-routing-v2").unwrap();
        assert_eq!(payload.len(), 140);
        assert!(matches!(response, Response::Result(ResultBody::Void)));
    });
}

#[test]
fn results_without_rows() {
    read("set keyspace", |_, response| {
        let Response::Result(ResultBody::SetKeyspace(keyspace)) = response else {
            panic!()
        };
        assert_eq!(keyspace, "ks");
    });
    read("schema change, table created", |_, response| {
        let Response::Result(ResultBody::SchemaChange(change)) = response else {
            panic!()
        };
        assert_eq!(
            (change.change, change.keyspace),
            (SchemaChangeKind::Created, "ks")
        );
        assert_eq!(change.target, SchemaTarget::Table("t"));
    });
}

#[test]
fn rows_without_metadata_have_no_names() {
    rows("rows, flags 5", |rows| {
        assert_eq!((rows.metadata.flags, rows.metadata.column_count), (5, 2));
        assert_eq!(
            (rows.metadata.columns, rows.metadata.paging_state),
            (None, None)
        );
        let row = rows.content.iter().next().unwrap().unwrap();
        let cells: Vec<_> = row.cells().collect();
        assert_eq!(cells, [Some(&[0, 0, 0, 1][..]), Some(b"a")]);
    });
    rows("rows, flags 7", |rows| {
        assert_eq!(rows.metadata.paging_state, Some(&[0xca, 0xfe][..]));
        assert_eq!(
            (rows.content.row_count(), rows.content.column_count()),
            (0, 2)
        );
    });
}

#[test]
fn changed_metadata_comes_with_its_id() {
    let id = 0x50f3_6f50_f114_3fcd_e847_b999_28cb_8f62_u128.to_be_bytes();
    for (name, paging_state) in [
        ("rows, flags 9", None),
        ("rows, flags b", Some(&[0xca, 0xfe][..])),
    ] {
        rows(name, |rows| {
            assert_eq!(rows.metadata.new_metadata_id, Some(&id[..]));
            assert_eq!(rows.metadata.paging_state, paging_state);
            let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
            let columns: Vec<_> = metadata
                .columns()
                .iter()
                .map(|column| (&*column.keyspace, &*column.table, &*column.name, &column.ty))
                .collect();
            let expected = [
                ("ks", "t", "pk", &ColumnType::Int),
                ("ks", "t", "v", &ColumnType::Text),
                ("ks", "t", "w", &ColumnType::BigInt),
            ];
            assert_eq!(columns, expected);
            let row = vec![CqlValue::Int(1), text("a"), CqlValue::Null];
            let expected = if paging_state.is_some() {
                vec![]
            } else {
                vec![row]
            };
            assert_eq!(dynamic(&metadata, &rows), expected);
        });
    }
}

#[test]
fn rows_of_client_routes_decode_typed() {
    rows("rows of client routes", |rows| {
        let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
        type Route<'a> = (&'a str, uuid::Uuid, &'a str, Option<i32>, Option<i32>);
        Route::check_columns(metadata.columns()).unwrap();
        let row = rows.content.iter().next().unwrap().unwrap();
        let (connection, host, address, port, tls_port) =
            Route::decode_row(&(), metadata.columns(), row).unwrap();
        assert_eq!(
            (connection, address, port, tls_port),
            ("conn-a", "10.0.0.9", Some(9142), None)
        );
        assert_eq!(host.to_string(), "01020304-0506-0708-090a-0b0c0d0e0f10");
    });
}

#[test]
fn prepared_statements_have_markers_and_columns() {
    let id = 0xeff4_4b51_6567_7c4b_041b_81b2_64f6_3e87_u128.to_be_bytes();
    let metadata_id = 0x0bad_9ccf_245e_8f8d_31c3_47b6_3462_c520_u128.to_be_bytes();
    for (name, metadata_id, flags, key) in [
        (
            "prepared, conditional insert with metadata id",
            Some(&metadata_id[..]),
            0x8000_0001,
            &[0][..],
        ),
        (
            "prepared, conditional insert without extensions",
            None,
            1,
            &[0],
        ),
        ("prepared, conditional insert on version 3", None, 1, &[]),
    ] {
        prepared(name, |prepared| {
            assert_eq!(
                (prepared.id, prepared.result_metadata_id),
                (&id[..], metadata_id)
            );
            assert_eq!(prepared.bound.flags, flags);
            assert_eq!(prepared.bound.key_indexes.iter().collect::<Vec<_>>(), key);
            let names = |columns: ResultMetadata| {
                let types = columns.columns().iter();
                types
                    .map(|column| format!("{} {}", column.name, column.ty))
                    .collect::<Vec<_>>()
            };
            let bound = ResultMetadata::parse(prepared.bound.columns).unwrap();
            assert_eq!(names(bound), ["pk int", "v text"]);
            let result = ResultMetadata::parse(prepared.result.columns.unwrap()).unwrap();
            assert_eq!(names(result), ["[applied] boolean", "pk int", "v text"]);
        });
    }
    prepared("prepared, composite key out of order", |prepared| {
        assert_eq!(
            prepared.bound.key_indexes.iter().collect::<Vec<_>>(),
            [2, 1]
        );
        assert_eq!(
            prepared.bound.marker(2).map(|marker| marker.name),
            Some("p1")
        );
        assert_eq!((prepared.result.flags, prepared.result.columns), (4, None));
    });
    prepared("prepared, no markers", |prepared| {
        assert_eq!(prepared.bound.flags, 0);
        assert!(prepared.bound.columns.is_empty() && prepared.bound.key_indexes.is_empty());
        assert_eq!(prepared.result.columns.unwrap().len(), 1);
    });
    prepared("prepared, no result metadata", |prepared| {
        assert_eq!(
            (prepared.id, prepared.result_metadata_id),
            (&[0xbb][..], Some(&[5][..]))
        );
        assert_eq!(
            (prepared.result.flags, prepared.result.column_count),
            (4, 0)
        );
    });
}

#[test]
fn errors_have_a_code_a_message_and_facts() {
    let (consistency, received, required) = (Consistency::LocalQuorum.into(), 1, 2);
    let counted = |error: &ServerError| error.message == "m".into();
    let table = [
        ("refused version", ErrorCode::Protocol, ErrorDetail::None),
        (
            "bad credentials",
            ErrorCode::BadCredentials,
            ErrorDetail::None,
        ),
        ("overloaded", ErrorCode::Overloaded, ErrorDetail::None),
        (
            "unavailable",
            ErrorCode::Unavailable,
            ErrorDetail::Unavailable {
                consistency: Consistency::Quorum.into(),
                required: 2,
                alive: 1,
            },
        ),
        (
            "write timeout",
            ErrorCode::WriteTimeout,
            ErrorDetail::WriteTimeout {
                consistency,
                received,
                required,
                write_type: WriteType::Simple,
                contentions: None,
            },
        ),
        (
            "read timeout",
            ErrorCode::ReadTimeout,
            ErrorDetail::ReadTimeout {
                consistency,
                received,
                required,
                data_present: false,
            },
        ),
        (
            "function failure",
            ErrorCode::FunctionFailure,
            ErrorDetail::FunctionFailure {
                keyspace: "ks".into(),
                function: "f".into(),
                argument_types: Box::from(["int".into()]),
            },
        ),
        (
            "table exists",
            ErrorCode::AlreadyExists,
            ErrorDetail::AlreadyExists {
                keyspace: "ks".into(),
                table: "t".into(),
            },
        ),
        (
            "keyspace exists",
            ErrorCode::AlreadyExists,
            ErrorDetail::AlreadyExists {
                keyspace: "ks".into(),
                table: "".into(),
            },
        ),
        (
            "unprepared",
            ErrorCode::Unprepared,
            ErrorDetail::Unprepared {
                id: 0xcc1b_08ca_acde_12ec_f33f_1a3d_acf9_e218_u128
                    .to_be_bytes()
                    .into(),
            },
        ),
        (
            "rate limit",
            ErrorCode::RateLimit,
            ErrorDetail::RateLimit {
                number: 0xf000,
                operation: RateLimitedOperation::Write,
                rejected_by_coordinator: false,
            },
        ),
        (
            "rate limit, not agreed",
            ErrorCode::Config,
            ErrorDetail::None,
        ),
    ];
    for (name, code, detail) in table {
        let error = error(name);
        assert_eq!((error.code, error.detail()), (code, Ok(detail)), "{name}");
        assert!(!error.message.is_empty());
    }
    assert!(counted(&error("read timeout")));
    assert_eq!(
        &*error("refused version").message,
        "Invalid or unsupported protocol version: 5"
    );
    for (name, reasons) in [("read failure", 0), ("read failure on version 5", 1)] {
        let Ok(ErrorDetail::ReadFailure {
            failures,
            data_present,
            ..
        }) = error(name).detail()
        else {
            panic!("{name}")
        };
        assert_eq!(
            (failures.count, failures.reasons.len(), data_present),
            (1, reasons, false)
        );
    }
    let Ok(ErrorDetail::WriteFailure { write_type, .. }) = error("write failure").detail() else {
        panic!()
    };
    assert_eq!(write_type, WriteType::BatchLog);
    let version = by_name("read failure on version 5").dialect.version;
    assert_eq!(version, ProtocolVersion::V5);
}

#[test]
fn events_say_what_changed() {
    event("new node", |event| {
        let address = SocketAddr::from(([127, 0, 0, 2], 9042));
        assert_eq!(
            event,
            Event::TopologyChange {
                change: TopologyChangeKind::New,
                address
            }
        );
    });
    event("node down", |event| {
        let address = "[2001:db8::1]:19042".parse().unwrap();
        assert_eq!(
            event,
            Event::StatusChange {
                change: StatusChangeKind::Down,
                address
            }
        );
    });
    event("table updated", |event| {
        let Event::SchemaChange(change) = event else {
            panic!("{event:?}")
        };
        assert_eq!(
            (change.change, change.keyspace),
            (SchemaChangeKind::Updated, "ks")
        );
        assert_eq!(change.target, SchemaTarget::Table("t"));
    });
    event("keyspace created", |event| {
        let Event::SchemaChange(change) = event else {
            panic!("{event:?}")
        };
        assert_eq!(
            (change.change, change.keyspace),
            (SchemaChangeKind::Created, "ks")
        );
        assert_eq!(change.target, SchemaTarget::Keyspace);
    });
    event("client routes", |event| {
        let Event::ClientRoutesChange {
            change,
            connection_ids,
            host_ids,
        } = event
        else {
            panic!("{event:?}")
        };
        assert_eq!(change, "UPDATE_NODES");
        assert_eq!(
            connection_ids.iter().collect::<Vec<_>>(),
            ["conn-a", "conn-b"]
        );
        let hosts = [
            "01020304-0506-0708-090a-0b0c0d0e0f10",
            "a1b2c3d4-e5f6-4789-8abc-def012345678",
        ];
        assert_eq!(host_ids.iter().collect::<Vec<_>>(), hosts);
    });
}
