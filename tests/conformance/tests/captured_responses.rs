//! What real servers sent is read as what they meant.

use core::net::IpAddr;

use messina_conformance::captures::{FILES, Frame, dialect, file, response};
use messina_conformance::walk::walk;
use messina_core::types::{
    ColumnType, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint,
    DecodeRow, DecodeValue, MaybeEmpty, ResultMetadata, UdtValue,
};
use messina_core::wire::response::{
    ErrorCode, ErrorDetail, Event, Extras, Failures, Prepared, Response, ResultBody, Rows,
    SchemaChange, SchemaChangeKind, SchemaTarget, ServerError, WriteType,
};
use messina_core::wire::{Consistency, Flags, Opcode, ProtocolVersion, Reader};
use uuid::Uuid;

/// Reads a response and hands prefix and message to `check`.
fn read<T>(file: &str, name: &str, check: impl FnOnce(Extras<'_>, Response<'_>) -> T) -> T {
    let frame = response(file, name);
    let header = frame.response_header();
    let mut reader = Reader::new(frame.body());
    let extras = Extras::parse(header.flags, &mut reader).unwrap();
    let dialect = dialect(file, header.version);
    let response = Response::parse(&dialect, header.opcode, &mut reader).unwrap();
    check(extras, response)
}

fn rows<T>(file: &str, name: &str, check: impl FnOnce(Rows<'_>) -> T) -> T {
    read(file, name, |_, response| match response {
        Response::Result(ResultBody::Rows(rows)) => check(rows),
        other => panic!("{name}: {other:?}"),
    })
}

fn prepared<T>(file: &str, name: &str, check: impl FnOnce(Prepared<'_>) -> T) -> T {
    read(file, name, |_, response| match response {
        Response::Result(ResultBody::Prepared(prepared)) => check(prepared),
        other => panic!("{name}: {other:?}"),
    })
}

fn error(name: &str) -> ServerError {
    read("cassandra-errors", name, |_, response| match response {
        Response::Error(error) => error,
        other => panic!("{name}: {other:?}"),
    })
}

/// The columns of rows by name and type, and all values.
fn table(rows: &Rows<'_>) -> (Vec<(String, ColumnType)>, Vec<Vec<CqlValue>>) {
    let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
    let values = rows
        .content
        .iter()
        .map(|row| Vec::decode_row(&(), metadata.columns(), row.unwrap()).unwrap())
        .collect();
    let columns = metadata.columns().iter();
    let columns = columns.map(|column| (column.name.to_string(), column.ty.clone()));
    (columns.collect(), values)
}

fn names(columns: &[(String, ColumnType)]) -> Vec<&str> {
    columns.iter().map(|(name, _)| name.as_str()).collect()
}

fn text(value: &str) -> CqlValue {
    CqlValue::Text(value.into())
}

fn every_response(mut check: impl FnMut(&str, &Frame)) {
    for (name, _) in FILES {
        for frame in file(name).iter().filter(|frame| !frame.is_request) {
            check(name, frame);
        }
    }
}

#[test]
fn every_response_is_read_to_its_end() {
    let mut count = 0;
    every_response(|file, frame| {
        let header = frame.response_header();
        let dialect = dialect(file, header.version);
        walk(&dialect, header.flags, header.opcode, frame.body())
            .unwrap_or_else(|error| panic!("{file}: {}: {error}", frame.name));
        count += 1;
    });
    assert!(count > 50, "{count}");
}

/// A server that dies in the middle of a frame, or a length that lies.
#[test]
fn every_cut_of_every_response_is_an_error() {
    every_response(|file, frame| {
        let header = frame.response_header();
        let dialect = dialect(file, header.version);
        for cut in 0..frame.body().len() {
            let part = &frame.body()[..cut];
            assert!(
                walk(&dialect, header.flags, header.opcode, part).is_err(),
                "{file}: {} cut at {cut}",
                frame.name
            );
        }
    });
}

#[test]
fn cassandra_offers_versions_and_no_extension() {
    read("cassandra-handshake", "options", |_, response| {
        let Response::Supported(supported) = response else {
            panic!("{response:?}")
        };
        let values = |name| supported.get(name).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(supported.options.len(), 3);
        assert_eq!(values("COMPRESSION"), ["snappy", "lz4"]);
        assert_eq!(values("CQL_VERSION"), ["3.4.7"]);
        let versions = ["3/v3", "4/v4", "5/v5", "6/v6-beta"];
        assert_eq!(values("PROTOCOL_VERSIONS"), versions);
    });
}

#[test]
fn a_login_is_wanted_and_taken() {
    read("cassandra-handshake", "startup", |_, response| {
        let Response::Authenticate(wanted) = response else {
            panic!("{response:?}")
        };
        let class = "org.apache.cassandra.auth.PasswordAuthenticator";
        assert_eq!(wanted.class, class);
    });
    // No token, where ScyllaDB sends an empty one.
    read("cassandra-handshake", "login", |_, response| {
        let Response::AuthSuccess(success) = response else {
            panic!("{response:?}")
        };
        assert_eq!(success.token, None);
    });
    let ready = response("cassandra-handshake", "register").response_header();
    assert_eq!((ready.opcode, ready.body_len), (Opcode::Ready, 0));
}

#[test]
fn refusals_in_the_handshake() {
    let table = [
        (
            "wrong password",
            ProtocolVersion::V4,
            ErrorCode::BadCredentials,
        ),
        // In the header the highest version that the server speaks, on the stream of the request;
        // ScyllaDB answers in version 4 and on stream 0.
        ("version 9", ProtocolVersion::V5, ErrorCode::Protocol),
        (
            "query before startup",
            ProtocolVersion::V4,
            ErrorCode::Protocol,
        ),
    ];
    for (name, version, code) in table {
        let header = response("cassandra-handshake", name).response_header();
        assert_eq!(header.version, version, "{name}");
        read("cassandra-handshake", name, |_, response| match response {
            Response::Error(error) => assert_eq!(error.code, code, "{name}"),
            other => panic!("{name}: {other:?}"),
        });
    }
}

#[test]
fn changes_of_the_schema_are_told_twice() {
    use SchemaChangeKind::{Created, Updated};
    let table = [
        ("keyspace", Created, SchemaTarget::Keyspace),
        ("type", Created, SchemaTarget::Type("place")),
        ("table", Created, SchemaTarget::Table("rows")),
        ("column", Updated, SchemaTarget::Table("rows")),
    ];
    for (name, change, target) in table {
        let check = |told: SchemaChange<'_>| {
            assert_eq!((told.change, told.keyspace), (change, "golden"), "{name}");
            assert_eq!(told.target, target, "{name}");
        };
        read("cassandra-handshake", name, |_, response| match response {
            Response::Result(ResultBody::SchemaChange(told)) => check(told),
            other => panic!("{name}: {other:?}"),
        });
        let event = format!("{name}, event");
        let stream = response("cassandra-handshake", &event).stream();
        assert_eq!(stream, -1, "{event}");
        read(
            "cassandra-handshake",
            &event,
            |_, response| match response {
                Response::Event(Event::SchemaChange(told)) => check(told),
                other => panic!("{event}: {other:?}"),
            },
        );
    }
}

#[test]
fn a_table_without_rows_has_columns() {
    rows("cassandra-handshake", "peers, none", |rows| {
        let (columns, values) = table(&rows);
        let expected = [
            "peer",
            "host_id",
            "data_center",
            "rack",
            "rpc_address",
            "tokens",
        ];
        assert_eq!(names(&columns), expected);
        assert_eq!(columns[0].1, ColumnType::Inet);
        assert!(matches!(columns[5].1, ColumnType::Set(_)));
        assert!(values.is_empty());
    });
}

/// One value of each type by the name of its column.
fn values() -> Vec<(&'static str, CqlValue)> {
    let int = CqlValue::Int;
    let fields = vec![("street".into(), text("Market")), ("zip".into(), int(7))];
    let wide = [&[0, 0x80][..], &[0; 15]].concat();
    vec![
        ("id", int(1)),
        ("c_ascii", CqlValue::Ascii("ascii".into())),
        ("c_bigint", CqlValue::BigInt(-2)),
        ("c_blob", CqlValue::Blob(vec![0, 0xff])),
        ("c_boolean", CqlValue::Boolean(true)),
        ("c_date", CqlValue::Date(LEAP_DAY)),
        ("c_decimal", CqlValue::Decimal(decimal())),
        ("c_double", CqlValue::Double(0.1)),
        ("c_duration", CqlValue::Duration(DURATION)),
        ("c_float", CqlValue::Float(1.5)),
        ("c_inet", CqlValue::Inet([127, 0, 0, 1].into())),
        ("c_list", CqlValue::List(vec![int(1), int(-1)])),
        ("c_map", CqlValue::Map(vec![(text("a"), int(1))])),
        ("c_place", CqlValue::Udt(UdtValue { fields })),
        ("c_set", CqlValue::Set(vec![text("a"), text("b")])),
        ("c_smallint", CqlValue::SmallInt(-2)),
        ("c_text", text("grün")),
        ("c_time", CqlValue::Time(TIME)),
        ("c_timestamp", CqlValue::Timestamp(TIMESTAMP)),
        ("c_timeuuid", CqlValue::Timeuuid(TIMEUUID)),
        ("c_tinyint", CqlValue::TinyInt(-128)),
        ("c_tuple", CqlValue::Tuple(vec![int(1), text("x")])),
        ("c_uuid", CqlValue::Uuid(UUID)),
        (
            "c_varint",
            CqlValue::Varint(CqlVarint::from_signed_bytes(&wide).unwrap()),
        ),
        (
            "c_vector",
            CqlValue::Vector([1.5, -2.0, 0.0].map(CqlValue::Float).to_vec()),
        ),
    ]
}

const LEAP_DAY: CqlDate = CqlDate {
    days_since_epoch: 19_782,
};
const DURATION: CqlDuration = CqlDuration {
    months: 1,
    days: 2,
    nanoseconds: 3,
};
const TIME: CqlTime = CqlTime {
    nanoseconds: 45_296_789_012_345,
};
const TIMESTAMP: CqlTimestamp = CqlTimestamp {
    milliseconds: 1_709_210_096_789,
};
const TIMEUUID: Uuid = Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080);
const UUID: Uuid = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);

fn decimal() -> CqlDecimal {
    CqlDecimal {
        unscaled: CqlVarint::from(-150_i64),
        scale: 2,
    }
}

#[test]
fn every_type_as_dynamic_value() {
    rows("cassandra-types", "select values", |rows| {
        let (columns, found) = table(&rows);
        let (expected_names, expected): (Vec<_>, Vec<_>) = values().into_iter().unzip();
        assert_eq!(names(&columns), expected_names);
        assert_eq!(found, [expected]);
    });
    rows("cassandra-types", "select nulls", |rows| {
        let (columns, found) = table(&rows);
        let mut expected = vec![CqlValue::Null; columns.len()];
        expected[0] = CqlValue::Int(2);
        assert_eq!(found, [expected]);
    });
}

/// Reads the cell of a column as a Rust type; the row of nulls must be `None`.
fn typed<T>(column: &str, expected: T)
where
    T: for<'a> DecodeValue<'a> + PartialEq + core::fmt::Debug,
{
    for (name, expected) in [("select values", Some(expected)), ("select nulls", None)] {
        rows("cassandra-types", name, |rows| {
            let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
            let position = |known: &messina_core::types::ColumnSpec| *known.name == *column;
            let index = metadata.columns().iter().position(position).unwrap();
            let ty = &metadata.columns()[index].ty;
            Option::<T>::type_check(ty).unwrap();
            let row = rows.content.iter().next().unwrap().unwrap();
            let cell = row.cells().nth(index).unwrap();
            assert_eq!(Option::<T>::decode(ty, cell), Ok(expected), "{column}");
        });
    }
}

#[test]
fn every_type_as_rust_type() {
    typed("c_ascii", "ascii".to_owned());
    typed("c_bigint", -2_i64);
    typed("c_blob", vec![0_u8, 0xff]);
    typed("c_boolean", true);
    typed("c_date", LEAP_DAY);
    typed("c_decimal", decimal());
    typed("c_double", 0.1_f64);
    typed("c_duration", DURATION);
    typed("c_float", 1.5_f32);
    typed("c_inet", IpAddr::from([127, 0, 0, 1]));
    typed("c_list", vec![1, -1]);
    typed(
        "c_map",
        std::collections::BTreeMap::from([("a".to_owned(), 1)]),
    );
    typed(
        "c_set",
        std::collections::BTreeSet::from(["a".to_owned(), "b".to_owned()]),
    );
    typed("c_smallint", -2_i16);
    typed("c_text", "grün".to_owned());
    typed("c_time", TIME);
    typed("c_timestamp", TIMESTAMP);
    typed("c_timeuuid", TIMEUUID);
    typed("c_tinyint", -128_i8);
    typed("c_tuple", (1, "x".to_owned()));
    typed("c_uuid", UUID);
    typed("c_vector", vec![1.5_f32, -2.0, 0.0]);
    typed("c_bigint", MaybeEmpty::Value(-2_i64));
}

#[test]
fn markers_have_the_types_of_their_columns() {
    let types = rows("cassandra-types", "select values", |rows| table(&rows).0);
    prepared("cassandra-types", "prepare insert", |prepared| {
        let bound = ResultMetadata::parse(prepared.bound.columns).unwrap();
        let indexes: Vec<u16> = prepared.bound.key_indexes.iter().collect();
        assert_eq!((prepared.id.len(), &indexes[..]), (16, &[0][..]));
        assert_eq!(bound.columns().len(), types.len());
        for marker in bound.columns() {
            let column = types.iter().find(|(name, _)| **name == *marker.name);
            assert_eq!(column.unwrap().1, marker.ty, "{}", marker.name);
        }
        // A statement without rows: no columns, and flag 4 says so.
        assert!(prepared.result.columns.is_none());
        assert_eq!(
            (prepared.result.flags, prepared.result.column_count),
            (4, 0)
        );
    });
    prepared("cassandra-types", "prepare select", |prepared| {
        let result = ResultMetadata::parse(prepared.result.columns.unwrap()).unwrap();
        let columns = result.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| (column.name.to_string(), column.ty.clone()))
            .collect();
        assert_eq!(columns, types);
    });
}

/// Unnamed markers in the order of the text; the key's positions in the order of the key.
#[test]
fn a_key_may_stand_behind_other_markers() {
    for (file, name, markers, key) in [
        ("cassandra-rows", "prepare insert", "part num val", 0),
        ("cassandra-rows", "prepare select", "part", 0),
        ("cassandra-rows", "prepare update if", "val part num val", 1),
        ("scylla-driver", "prepare count", "hits id", 1),
    ] {
        prepared(file, name, |prepared| {
            let bound = ResultMetadata::parse(prepared.bound.columns).unwrap();
            let names = bound.columns().iter().map(|column| &*column.name);
            assert_eq!(names.collect::<Vec<_>>().join(" "), markers);
            let indexes: Vec<u16> = prepared.bound.key_indexes.iter().collect();
            assert_eq!(indexes, [key], "{name}");
        });
    }
}

#[test]
fn pages_end_where_no_state_comes() {
    let page = |name| {
        rows("cassandra-rows", name, |rows| {
            let state = rows.metadata.paging_state.map(<[u8]>::len);
            (state, table(&rows).1)
        })
    };
    let row = |num, val| vec![CqlValue::Int(1), CqlValue::Int(num), text(val)];
    let first = vec![row(1, "v1"), row(2, "v2")];
    assert_eq!(page("first page"), (Some(18), first));
    assert_eq!(page("last page"), (None, vec![row(3, "v3")]));
}

/// `[applied]` alone when a condition held; what stood there when not.
#[test]
fn conditional_writes_have_columns_by_their_outcome() {
    let (no, yes) = (CqlValue::Boolean(false), CqlValue::Boolean(true));
    let key = |part| [CqlValue::Int(part), CqlValue::Int(1)];
    let whole = ["[applied]", "part", "num", "more", "val"];
    let [p9, n9] = key(9);
    let [p8, n8] = key(8);
    let [p7, n7] = key(7);
    let (null, first) = (CqlValue::Null, text("first"));
    let rows_file = "cassandra-rows";
    let table_of = [
        (rows_file, "insert, applied", vec!["[applied]"], vec![yes]),
        (
            rows_file,
            "insert, not applied",
            vec!["[applied]", "part", "num", "val"],
            vec![no.clone(), p9, n9, first.clone()],
        ),
        (
            rows_file,
            "update, not applied",
            vec!["[applied]", "val"],
            vec![no.clone(), first.clone()],
        ),
        (
            "scylla-driver",
            "insert if not exists, again",
            whole.to_vec(),
            vec![no.clone(), p8, n8, null.clone(), first],
        ),
        (
            "scylla-driver",
            "batch, conditional",
            whole.to_vec(),
            vec![no, p7, n7, null, text("b")],
        ),
    ];
    for (file, name, columns, values) in table_of {
        rows(file, name, |rows| {
            let (found, row) = table(&rows);
            assert_eq!(names(&found), columns, "{name}");
            assert_eq!(row, [values], "{name}");
        });
    }
    for name in ["prepare insert if not exists", "prepare update if"] {
        prepared("cassandra-rows", name, |prepared| {
            assert!(prepared.result.columns.is_none(), "{name}");
        });
    }
}

#[test]
fn errors_carry_their_facts() {
    let one = Consistency::One;
    let local_one = Consistency::LocalOne;
    let exists = |table: &str| ErrorDetail::AlreadyExists {
        keyspace: "golden".into(),
        table: table.into(),
    };
    let table = [
        ("syntax error", ErrorCode::Syntax, ErrorDetail::None),
        ("invalid", ErrorCode::Invalid, ErrorDetail::None),
        ("unauthorized", ErrorCode::Unauthorized, ErrorDetail::None),
        ("bad configuration", ErrorCode::Config, ErrorDetail::None),
        ("keyspace exists", ErrorCode::AlreadyExists, exists("")),
        ("table exists", ErrorCode::AlreadyExists, exists("rows")),
        (
            "unavailable",
            ErrorCode::Unavailable,
            ErrorDetail::Unavailable {
                consistency: Consistency::Two.into(),
                required: 2,
                alive: 1,
            },
        ),
        (
            "write timeout",
            ErrorCode::WriteTimeout,
            ErrorDetail::WriteTimeout {
                consistency: local_one.into(),
                received: 0,
                required: 1,
                write_type: WriteType::Simple,
                contentions: None,
            },
        ),
        (
            "read timeout",
            ErrorCode::ReadTimeout,
            ErrorDetail::ReadTimeout {
                consistency: one.into(),
                received: 0,
                required: 1,
                data_present: false,
            },
        ),
        (
            "read failure with a warning",
            ErrorCode::ReadFailure,
            ErrorDetail::ReadFailure {
                consistency: local_one.into(),
                received: 0,
                required: 1,
                failures: Failures {
                    count: 1,
                    reasons: Box::from([]),
                },
                data_present: false,
            },
        ),
        (
            "function failure",
            ErrorCode::FunctionFailure,
            ErrorDetail::FunctionFailure {
                keyspace: "golden".into(),
                function: "boom".into(),
                argument_types: Box::from(["int".into(), "text".into()]),
            },
        ),
    ];
    for (name, code, detail) in table {
        let error = error(name);
        assert_eq!((error.code, error.detail()), (code, Ok(detail)), "{name}");
        assert!(!error.message.is_empty(), "{name}");
    }
}

#[test]
fn a_forgotten_statement_is_named_and_comes_back_under_its_id() {
    let Ok(ErrorDetail::Unprepared { id }) = error("forgotten").detail() else {
        panic!("no id")
    };
    prepared("cassandra-errors", "prepare again", |prepared| {
        assert_eq!(prepared.id, &*id);
    });
    prepared("cassandra-rows", "prepare select", |prepared| {
        assert_eq!(prepared.id, &*id);
    });
}

#[test]
fn warnings_and_traces_stand_before_the_message() {
    let file = "cassandra-errors";
    for (name, flags, words) in [
        ("read failure with a warning", 0x08, "61 tombstone cells"),
        ("batch with a warning", 0x08, "covering 12 partitions"),
    ] {
        assert_eq!(response(file, name).response_header().flags, Flags(flags));
        read(file, name, |extras, _| {
            let warnings: Vec<_> = extras.warnings.iter().collect();
            assert!(
                warnings.len() == 1 && warnings[0].contains(words),
                "{warnings:?}"
            );
        });
    }
    read(file, "traced", |extras, response| {
        let id = Uuid::from_u128(0x7023_5240_ec5e_11f1_bb18_d750_c232_e495);
        assert_eq!(extras.trace_id, Some(id));
        let Response::Result(ResultBody::Rows(rows)) = response else {
            panic!("{response:?}")
        };
        assert_eq!(table(&rows).1, [[CqlValue::Int(1)]]);
    });
}
