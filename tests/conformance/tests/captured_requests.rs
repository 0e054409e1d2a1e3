//! What other drivers sent, our encoders write byte for byte when they are told the same.
//!
//! The drivers agree on more than the specification asks for: each of their frames is met whole,
//! header and flags too. Differences lie in what they are told, and [`DRIVERS`] lists them: whose
//! clock times a write, whether a page has a size unasked, whether the level of the conditional part
//! is always named. The order of STARTUP's options is each driver's own.

use messina_conformance::captures::{Frame, dialect, file, request, response};
use messina_conformance::hex::hex;
use messina_core::types::{ColumnSpec, Counter, CqlValue, DecodeRow, EncodeRow, ResultMetadata};
use messina_core::wire::request::{
    AuthResponse, Batch, BatchKind, BatchStatement, BatchStatementKind, Execute, Options, Prepare,
    Query, QueryParameters, Register, RequestBody, Startup, put_request,
};
use messina_core::wire::response::{Response, ResultBody};
use messina_core::wire::{
    Consistency, Dialect, EncodedValues, Flags, ProtocolVersion, Reader, SerialConsistency, Values,
    ValuesBuilder,
};

const V4: ProtocolVersion = ProtocolVersion::V4;

/// Another driver with Cassandra, at LOCAL_ONE.
#[derive(Clone, Copy)]
struct Driver {
    /// Its file.
    file: &'static str,
    /// Requests carry the client's time.
    is_timed: bool,
    /// Rows a page where nothing was asked for.
    page_size: Option<i32>,
    /// The level of the conditional part where nothing was asked for.
    serial_consistency: Option<SerialConsistency>,
    /// The partition of its conditional writes.
    part: i32,
}

const SCYLLA_DRIVER: Driver = Driver {
    file: "scylla-driver",
    is_timed: true,
    page_size: Some(5000),
    serial_consistency: None,
    part: 8,
};
const CASSANDRA_DRIVER: Driver = Driver {
    file: "cassandra-driver",
    part: 6,
    ..SCYLLA_DRIVER
};
const SCYLLA_CRATE: Driver = Driver {
    file: "scylla-crate",
    is_timed: false,
    page_size: None,
    serial_consistency: Some(SerialConsistency::LocalSerial),
    part: 5,
};
const DRIVERS: [Driver; 3] = [SCYLLA_DRIVER, CASSANDRA_DRIVER, SCYLLA_CRATE];

impl Driver {
    fn request(self, name: &str) -> Frame {
        request(self.file, name)
    }

    /// What the driver says of a request without being told.
    fn parameters<'a>(self, frame: &Frame, values: Values<'a>) -> QueryParameters<'a> {
        QueryParameters {
            values,
            page_size: self.page_size,
            serial_consistency: self.serial_consistency,
            timestamp: self.timestamp(frame),
            ..QueryParameters::new(Consistency::LocalOne)
        }
    }

    fn timestamp(self, frame: &Frame) -> Option<i64> {
        timestamp(&frame.bytes).filter(|_| self.is_timed)
    }
}

/// Writes `written` on the stream of `frame` and compares all bytes.
fn meet(file: &str, frame: &Frame, written: &impl RequestBody) {
    let mut sink = Vec::new();
    let stream = u16::try_from(frame.stream()).unwrap();
    put_request(&mut sink, V4, Flags::NONE, stream.cast_signed(), written).unwrap();
    let name = frame.name;
    assert_eq!(digits(&sink), digits(&frame.bytes), "{file}: {name}");
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The client's own clock: the last eight bytes of a frame whose last field is the timestamp.
fn timestamp(bytes: &[u8]) -> Option<i64> {
    bytes.last_chunk().map(|bytes| i64::from_be_bytes(*bytes))
}

/// A statement as the server described it in the answer to a PREPARE.
struct Statement {
    id: Vec<u8>,
    metadata_id: Option<Vec<u8>>,
    markers: Vec<ColumnSpec>,
}

impl Statement {
    fn of(file: &str, name: &str, dialect: &Dialect) -> Self {
        let frame = response(file, name);
        let mut reader = Reader::new(frame.body());
        let header = frame.response_header();
        match Response::parse(dialect, header.opcode, &mut reader).unwrap() {
            Response::Result(ResultBody::Prepared(prepared)) => Self {
                id: prepared.id.to_vec(),
                metadata_id: prepared.result_metadata_id.map(<[u8]>::to_vec),
                markers: ResultMetadata::parse(prepared.bound.columns)
                    .unwrap()
                    .columns()
                    .to_vec(),
            },
            other => panic!("{name}: {other:?}"),
        }
    }

    fn plain(file: &str, name: &str) -> Self {
        Self::of(file, name, &Dialect::plain(V4))
    }

    fn bind(&self, row: impl EncodeRow) -> EncodedValues<Vec<u8>> {
        let mut values = ValuesBuilder::new(Vec::new());
        row.encode_row(&self.markers, &mut values).unwrap();
        values.finish()
    }
}

fn execute<'a>(statement: &'a Statement, parameters: QueryParameters<'a>) -> Execute<'a> {
    Execute {
        id: &statement.id,
        result_metadata_id: None,
        parameters,
        tablet_version_block: None,
    }
}

#[test]
fn handshakes() {
    let options = request("scylla-driver-extensions", "options");
    meet("scylla-driver-extensions", &options, &Options);
    let startup = |driver: Driver, options: Vec<(&str, &str)>| {
        meet(driver.file, &driver.request("startup"), &Startup(options));
    };
    startup(
        SCYLLA_DRIVER,
        vec![
            ("DRIVER_NAME", "ScyllaDB Python Driver"),
            ("DRIVER_VERSION", "3.29.12"),
            ("SESSION_ID", "29e7a65f-6d24-41c3-9b28-9c0f7fce0fbb"),
            ("CQL_VERSION", "3.4.7"),
        ],
    );
    startup(
        CASSANDRA_DRIVER,
        vec![
            ("CQL_VERSION", "3.0.0"),
            ("DRIVER_NAME", "Apache Cassandra Node.js Driver"),
            ("DRIVER_VERSION", "4.10.0"),
            ("CLIENT_ID", "aeabfc81-fbf9-47a3-a6a7-cb9b2a9814c9"),
        ],
    );
    startup(
        SCYLLA_CRATE,
        vec![
            ("DRIVER_NAME", "ScyllaDB Rust Driver"),
            ("SESSION_ID", "e0f86b5e-a33e-4358-8fbe-a9591560ae53"),
            ("CQL_VERSION", "4.0.0"),
            ("DRIVER_VERSION", "2.0.0"),
        ],
    );
    let login = AuthResponse {
        token: Some(b"\0cassandra\0cassandra"),
    };
    let events = ["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"];
    for driver in DRIVERS {
        meet(driver.file, &driver.request("login"), &login);
        let register = Register { events: &events };
        meet(driver.file, &driver.request("register"), &register);
    }
}

const INSERT_TYPES: &str = "INSERT INTO golden.types (id, c_ascii, c_bigint, c_blob, c_boolean, \
    c_date, c_decimal, c_double, c_duration, c_float, c_inet, c_smallint, c_text, c_time, \
    c_timestamp, c_timeuuid, c_tinyint, c_uuid, c_varint, c_list, c_set, c_map, c_tuple, c_place, \
    c_vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

#[test]
fn statements_to_prepare() {
    let table = [
        ("prepare insert of types", INSERT_TYPES),
        (
            "prepare select of types",
            "SELECT * FROM golden.types WHERE id = ?",
        ),
        (
            "prepare select",
            "SELECT part, num, val FROM golden.rows WHERE part = ?",
        ),
        (
            "prepare insert if not exists",
            "INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?) IF NOT EXISTS",
        ),
    ];
    for driver in DRIVERS {
        for (name, text) in table {
            let keyspace = None;
            let prepare = Prepare { text, keyspace };
            meet(driver.file, &driver.request(name), &prepare);
        }
    }
}

/// A value of each type, in the order of the markers.
#[test]
fn a_row_of_every_type() {
    let statement = Statement::plain("cassandra-types", "prepare insert");
    let count = statement.markers.len();
    let row = |first: i32, rest: CqlValue| {
        let mut row = vec![rest; count];
        row[0] = CqlValue::Int(first);
        row
    };
    for driver in DRIVERS {
        for (name, values) in [
            ("insert values", values(driver.file == "scylla-driver")),
            ("insert nulls", row(2, CqlValue::Null)),
            ("insert unset", row(3, CqlValue::Unset)),
        ] {
            let frame = driver.request(name);
            let values = statement.bind(values);
            let parameters = driver.parameters(&frame, values.values());
            meet(driver.file, &frame, &execute(&statement, parameters));
        }
    }
}

#[test]
fn pages() {
    let all = Statement::plain("cassandra-types", "prepare select");
    let statement = Statement::plain("cassandra-rows", "prepare select");
    let state = hex("0006000400000002f07ffffffdf07ffffffd");
    for driver in DRIVERS {
        let frame = driver.request("select values");
        let values = all.bind((1,));
        let parameters = driver.parameters(&frame, values.values());
        meet(driver.file, &frame, &execute(&all, parameters));
        for (name, paging_state) in [("first page", None), ("last page", Some(&state[..]))] {
            let frame = driver.request(name);
            let values = statement.bind((1,));
            let parameters = QueryParameters {
                page_size: Some(2),
                paging_state,
                ..driver.parameters(&frame, values.values())
            };
            meet(driver.file, &frame, &execute(&statement, parameters));
        }
    }
}

#[test]
fn conditional_writes() {
    let statement = Statement::plain("cassandra-rows", "prepare insert if not exists");
    for driver in DRIVERS {
        for (name, val) in [
            ("insert if not exists", "first"),
            ("insert if not exists, again", "second"),
        ] {
            let frame = driver.request(name);
            let values = statement.bind((driver.part, 1, val));
            let parameters = QueryParameters {
                serial_consistency: Some(SerialConsistency::LocalSerial),
                ..driver.parameters(&frame, values.values())
            };
            meet(driver.file, &frame, &execute(&statement, parameters));
        }
    }
}

const INSERT_TEXT: &str = "INSERT INTO golden.rows (part, num, val) VALUES (7, 1, 'b')";

#[test]
fn batches() {
    let insert = Statement::plain("cassandra-rows", "prepare insert");
    let count = Statement::plain("scylla-driver", "prepare count");
    let (row, hits) = (insert.bind((7, 2, "c")), count.bind((Counter(5), 1)));
    let text = BatchStatement {
        kind: BatchStatementKind::Text(INSERT_TEXT),
        values: Values::EMPTY,
    };
    let row = BatchStatement {
        kind: BatchStatementKind::Prepared(&insert.id),
        values: row.values(),
    };
    let hits = BatchStatement {
        kind: BatchStatementKind::Prepared(&count.id),
        values: hits.values(),
    };
    let table = [
        (
            SCYLLA_DRIVER,
            "batch, logged",
            BatchKind::Logged,
            vec![text, row],
        ),
        (
            SCYLLA_DRIVER,
            "batch, unlogged",
            BatchKind::Unlogged,
            vec![text, row],
        ),
        (
            SCYLLA_DRIVER,
            "batch, counter",
            BatchKind::Counter,
            vec![hits],
        ),
        (
            SCYLLA_CRATE,
            "batch, logged",
            BatchKind::Logged,
            vec![text, row],
        ),
        (
            SCYLLA_CRATE,
            "batch, unlogged",
            BatchKind::Unlogged,
            vec![text, row],
        ),
        (
            SCYLLA_CRATE,
            "batch, counter",
            BatchKind::Counter,
            vec![hits],
        ),
        (
            CASSANDRA_DRIVER,
            "batch, logged",
            BatchKind::Logged,
            vec![row],
        ),
        (
            CASSANDRA_DRIVER,
            "batch, unlogged",
            BatchKind::Unlogged,
            vec![row],
        ),
        (
            CASSANDRA_DRIVER,
            "batch, text",
            BatchKind::Logged,
            vec![text],
        ),
        (
            CASSANDRA_DRIVER,
            "batch, counter",
            BatchKind::Counter,
            vec![hits],
        ),
    ];
    for (driver, name, kind, statements) in table {
        let frame = driver.request(name);
        let batch = batch(driver, &frame, kind, &statements);
        meet(driver.file, &frame, &batch);
    }
    let text = format!("{INSERT_TEXT} IF NOT EXISTS");
    let conditional = [BatchStatement {
        kind: BatchStatementKind::Text(&text),
        values: Values::EMPTY,
    }];
    let frame = SCYLLA_DRIVER.request("batch, conditional");
    let mut batch = batch(SCYLLA_DRIVER, &frame, BatchKind::Logged, &conditional);
    batch.serial_consistency = Some(SerialConsistency::Serial);
    meet("scylla-driver", &frame, &batch);
}

fn batch<'s>(
    driver: Driver,
    frame: &Frame,
    kind: BatchKind,
    statements: &'s [BatchStatement<'s>],
) -> Batch<'static, impl IntoIterator<Item = BatchStatement<'s>> + Clone + use<'s>> {
    Batch {
        kind,
        statements: statements.iter().copied(),
        consistency: Consistency::LocalOne,
        serial_consistency: driver.serial_consistency,
        timestamp: driver.timestamp(frame),
        keyspace: None,
        now_in_seconds: None,
    }
}

#[test]
fn statements_by_their_text() {
    let table = [
        ("syntax error", "SELEKT 1", Consistency::LocalOne),
        (
            "unavailable",
            "INSERT INTO golden.rows (part, num) VALUES (2, 1)",
            Consistency::Two,
        ),
    ];
    for driver in DRIVERS {
        for (name, text, consistency) in table {
            let frame = driver.request(name);
            let parameters = QueryParameters {
                consistency,
                ..driver.parameters(&frame, Values::EMPTY)
            };
            meet(driver.file, &frame, &Query { text, parameters });
        }
    }
}

/// ScyllaDB's extensions: the metadata id behind the statement's, the tablet's byte at the end. The
/// probed part of a tablet's version is the driver's choice, so that byte is taken from its frame.
#[test]
fn extensions() {
    let file = "scylla-driver-extensions";
    let dialect = dialect(file, V4);
    let insert = Statement::of(file, "prepare insert", &dialect);
    let select = Statement::of(file, "prepare select", &dialect);
    let condition = Statement::of(file, "prepare insert if not exists", &dialect);
    let state = hex(
        "6d737031 0000000000000000 00000002 c78499982ae4e0cf 00000004 00000001 00000005 0180000002",
    );
    let one = || select.bind((1,));
    let table = [
        (&insert, "insert, tablet learned", insert.bind((1, 1, "v1"))),
        (&insert, "insert", insert.bind((1, 2, "v2"))),
        (&select, "first page", one()),
        (&select, "last page", one()),
        (
            &condition,
            "insert, applied",
            condition.bind((8, 1, "first")),
        ),
        (
            &condition,
            "insert, not applied",
            condition.bind((8, 1, "second")),
        ),
    ];
    for (statement, name, values) in table {
        let frame = request(file, name);
        let (block, before) = frame.bytes.split_last().unwrap();
        let is_read = statement.id == select.id;
        let serial = statement.id == condition.id;
        let parameters = QueryParameters {
            // Rows come without columns where the driver holds them.
            skip_metadata: is_read || serial,
            paging_state: (name == "last page").then_some(&state[..]),
            serial_consistency: serial.then_some(SerialConsistency::LocalSerial),
            timestamp: timestamp(before),
            page_size: Some(if is_read { 2 } else { 5000 }),
            ..SCYLLA_DRIVER.parameters(&frame, values.values())
        };
        let written = Execute {
            result_metadata_id: statement.metadata_id.as_deref(),
            tablet_version_block: Some(*block),
            ..execute(statement, parameters)
        };
        meet(file, &frame, &written);
    }
    // A batch has neither.
    let values = insert.bind((7, 2, "c"));
    let statements = [
        BatchStatement {
            kind: BatchStatementKind::Text(INSERT_TEXT),
            values: Values::EMPTY,
        },
        BatchStatement {
            kind: BatchStatementKind::Prepared(&insert.id),
            values: values.values(),
        },
    ];
    let frame = request(file, "batch, logged");
    meet(
        file,
        &frame,
        &batch(SCYLLA_DRIVER, &frame, BatchKind::Logged, &statements),
    );
}

/// A value of each type in the order of the markers, as `captured_responses` expects them back.
/// scylla-driver binds a Python set, whose order is that of a hash: here the other way round.
fn values(is_set_turned: bool) -> Vec<CqlValue> {
    let statement = Statement::plain("cassandra-types", "prepare insert");
    let select = response("cassandra-types", "select values");
    let mut reader = Reader::new(select.body());
    let header = select.response_header();
    let Response::Result(ResultBody::Rows(rows)) =
        Response::parse(&Dialect::plain(V4), header.opcode, &mut reader).unwrap()
    else {
        panic!("no rows")
    };
    let metadata = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
    let row = rows.content.iter().next().unwrap().unwrap();
    let values: Vec<CqlValue> = Vec::decode_row(&(), metadata.columns(), row).unwrap();
    let by_name = |marker: &ColumnSpec| {
        let columns = metadata.columns().iter();
        let index = columns
            .clone()
            .position(|column| column.name == marker.name);
        match values[index.unwrap()].clone() {
            CqlValue::Set(mut set) if is_set_turned => {
                set.reverse();
                CqlValue::Set(set)
            }
            value => value,
        }
    };
    statement.markers.iter().map(by_name).collect()
}

/// Nothing is left out: what a driver sent is met in this file, and the names say where.
#[test]
fn every_request_of_the_other_drivers_is_met() {
    let source = include_str!("captured_requests.rs");
    for driver in DRIVERS {
        for frame in file(driver.file).iter().filter(|frame| frame.is_request) {
            let quoted = format!("\"{}\"", frame.name);
            let own = ["prepare count"].contains(&frame.name);
            assert!(
                own || source.contains(&quoted),
                "{}: {}",
                driver.file,
                frame.name
            );
        }
    }
}
