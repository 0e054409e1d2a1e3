//! Headers, response bodies, bound values and cells.

use std::collections::BTreeMap;

use core::net::IpAddr;

use messina_core::routing::{PayloadKind, parse_payload};
use messina_core::types::{
    ColumnType, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint,
    DecodeValue, EncodeRow, MaybeEmpty,
};
use messina_core::wire::response::{Extras, TypeOption};
use messina_core::wire::{
    Dialect, Flags, FrameHeader, HEADER_LEN, Opcode, ProtocolVersion, RawValue, Reader, Values,
    ValuesBuilder,
};
use uuid::Uuid;

use super::Target;
use crate::golden::RESPONSES;
use crate::walk::walk;

pub(super) const HEADER: Target = Target {
    name: "header",
    body: header,
    corpus: || vec![vec![0x84, 0, 0, 1, 8, 0, 0, 0, 4]],
};

pub(super) const RESPONSE: Target = Target {
    name: "response",
    body: response,
    corpus: responses,
};

pub(super) const VALUES: Target = Target {
    name: "values",
    body: values,
    corpus: || {
        vec![
            vec![
                0, 3, 0, 0, 0, 4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
            ],
            vec![1, 1, 0, 1, b'p', 0, 0, 0, 1, 7],
        ]
    },
};

pub(super) const CELL: Target = Target {
    name: "cell",
    body: cell,
    corpus: || CELLS.iter().map(|cell| cell.to_vec()).collect(),
};

/// Reads a frame header.
fn header(bytes: &[u8]) {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return;
    };
    match FrameHeader::parse_response(*header) {
        Ok(parsed) => assert!(i32::try_from(parsed.body_len).is_ok()),
        Err(error) => assert_eq!(error.bytes, *header),
    }
}

/// Reads a response body: version, extensions, flags and opcode stand in the first four bytes.
fn response(bytes: &[u8]) {
    let Some(([version, extensions, flags, opcode], body)) = bytes.split_first_chunk() else {
        return;
    };
    let version = ProtocolVersion::ALL[usize::from(*version) % ProtocolVersion::ALL.len()];
    let dialect = Dialect {
        version,
        result_metadata_id: extensions & 1 != 0,
        rate_limit_error: (extensions & 2 != 0).then_some(0xf000),
    };
    let opcode = Opcode::ALL[usize::from(*opcode) % Opcode::ALL.len()];
    // An error is a fine answer; the checks are inside.
    let _ = walk(&dialect, Flags(*flags), opcode, body);
    let Ok(extras) = Extras::parse(Flags(*flags), &mut Reader::new(body)) else {
        return;
    };
    for (name, payload) in extras.custom_payload.iter() {
        let kind = [PayloadKind::V1, PayloadKind::V2]
            .into_iter()
            .find(|kind| kind.key() == name);
        if let (Some(kind), Some(payload)) = (kind, payload)
            && let Ok(tablet) = parse_payload(kind, payload)
        {
            assert!(tablet.first_exclusive() < tablet.last_inclusive());
            assert!((1..=255).contains(&tablet.replicas().len()));
        }
    }
}

/// All golden responses behind the four bytes that say what they are.
fn responses() -> Vec<Vec<u8>> {
    let place = |found: Option<usize>| found.and_then(|at| u8::try_from(at).ok()).expect("known");
    let input = |golden: &crate::golden::Golden| {
        let dialect = golden.dialect;
        let version = ProtocolVersion::ALL
            .iter()
            .position(|version| *version == dialect.version);
        let opcode = Opcode::ALL
            .iter()
            .position(|opcode| *opcode == golden.opcode);
        let extensions = u8::from(dialect.result_metadata_id)
            | u8::from(dialect.rate_limit_error.is_some()) << 1;
        let front = [place(version), extensions, golden.flags.0, place(opcode)];
        [&front[..], &golden.bytes()].concat()
    };
    RESPONSES.iter().map(input).collect()
}

/// Reads bound values: whether they are named, and their number, stand in the first two bytes.
fn values(bytes: &[u8]) {
    let Some(([named, count], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    if let Ok(values) = Values::parse(u16::from(*count), named & 1 != 0, bytes) {
        assert_eq!(values.iter().count(), usize::from(values.len()));
        assert_eq!(values.as_bytes(), bytes);
        let len = |(name, value): (Option<&str>, RawValue<'_>)| {
            name.map_or(0, |name| 2 + name.len()) + 4 + value.bytes().map_or(0, <[u8]>::len)
        };
        assert_eq!(values.iter().map(len).sum::<usize>(), bytes.len());
    }
}

/// Reads a type and a cell of it. What decodes is bound again, and must then be stable.
fn cell(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Ok(option) = TypeOption::parse(&mut reader) else {
        return;
    };
    let Ok(ty) = ColumnType::parse(option) else {
        return;
    };
    let value = CqlValue::decode(&ty, Some(reader.rest()));
    typed_cell(&ty, reader.rest(), value.is_ok());
    let Ok(value) = value else { return };
    let first = bound(&ty, &value);
    // An "empty" element of a vector cannot be said in every vector; all else can be said again.
    let Some(first) = first else { return };
    let again = CqlValue::decode(&ty, Some(&first));
    let again = again.unwrap_or_else(|error| panic!("{ty}: {error} in {first:02x?}"));
    assert_eq!(bound(&ty, &again), Some(first), "{ty}");
}

/// The bytes of a value bound to a marker of a type, without their length.
fn bound(ty: &ColumnType, value: &CqlValue) -> Option<Vec<u8>> {
    let column = messina_core::types::ColumnSpec {
        keyspace: "k".into(),
        table: "t".into(),
        name: "c".into(),
        ty: ty.clone(),
    };
    let mut builder = ValuesBuilder::new(Vec::new());
    [value].encode_row(&[column], &mut builder).ok()?;
    let encoded = builder.finish();
    encoded
        .values()
        .get(0)
        .and_then(|value| value.bytes().map(Vec::from))
}

/// Reads the cell as every Rust type that fits; none takes what the dynamic value refuses.
fn typed_cell(ty: &ColumnType, cell: &[u8], is_readable: bool) {
    macro_rules! each {
        ($($rust:ty),+ $(,)?) => {$(
            let fits = <$rust>::type_check(ty).is_ok();
            // The type is checked once for a result, not for each cell: both orders must do.
            let read = <$rust>::decode(ty, Some(cell)).is_ok();
            assert!(!(fits && read) || is_readable, "{ty} as {}", stringify!($rust));
        )+};
    }
    each! {
        bool, i8, i16, i32, i64, i128, f32, f64, String, &str, &[u8], Uuid, IpAddr, CqlVarint,
        CqlDecimal, CqlDate, CqlTime, CqlTimestamp, CqlDuration, MaybeEmpty<i64>, Vec<i32>,
        Vec<Option<f32>>, Vec<&str>, [f32; 3], BTreeMap<&str, i64>, BTreeMap<i32, Vec<String>>,
        (i32, &str, Option<bool>), (Option<i32>, Vec<u8>),
    }
}

/// A type, then a cell of it.
const CELLS: &[&[u8]] = &[
    b"\x00\x20\x00\x09\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01\xff\xff\xff\xff",
    b"\x00\x21\x00\x0d\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x08\0\0\0\0\0\0\0\x07",
    b"\x00\x31\x00\x03\x00\x09\x00\x0d\x00\x0e\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x00",
    b"\x00\x30\x00\x01k\x00\x01u\x00\x02\x00\x01a\x00\x09\x00\x01b\x00\x22\x00\x10\x00\x00\x00\x04\0\0\0\x07",
    b"\x00\x00\x00\x1aVectorType(FloatType , 3 )\x3f\xc0\0\0\xc0\0\0\0\0\0\0\0",
    b"\x00\x00\x00\x17VectorType(ShortType,2)\x02\x00\x01\x02\xff\xfe",
    b"\x00\x15\xf0\xff\xff\xff\xfe\xf0\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xfe",
    b"\x00\x06\x00\x00\x00\x02\xd8\xf0",
    b"\x00\x0e\x00\x00\x00\x7f",
    b"\x00\x10\x7f\x00\x00\x01",
    b"\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10",
];
