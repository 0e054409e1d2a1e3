//! Bodies of fuzz targets: plain functions that take bytes and must not panic.
//!
//! Each also checks what must hold whatever the bytes are. The bytes pick what they are read as.

use messina_core::types::{ColumnType, CqlValue, DecodeValue, EncodeRow};
use messina_core::wire::response::TypeOption;
use messina_core::wire::{
    Dialect, Flags, FrameHeader, HEADER_LEN, Opcode, ProtocolVersion, Reader, Values, ValuesBuilder,
};

use crate::walk::walk;

/// A target by its name.
pub type FuzzBody = fn(&[u8]);

/// All targets.
pub const ALL: [(&str, FuzzBody); 4] = [
    ("header", header),
    ("response", response),
    ("values", values),
    ("cell", cell),
];

/// Reads a frame header.
pub fn header(bytes: &[u8]) {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return;
    };
    match FrameHeader::parse_response(*header) {
        Ok(parsed) => assert!(i32::try_from(parsed.body_len).is_ok()),
        Err(error) => assert_eq!(error.bytes, *header),
    }
}

/// Reads a response body: version, extensions, flags and opcode stand in the first four bytes.
pub fn response(bytes: &[u8]) {
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
}

/// Reads bound values: whether they are named, and their number, stand in the first two bytes.
pub fn values(bytes: &[u8]) {
    let Some(([named, count], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    if let Ok(values) = Values::parse(u16::from(*count), named & 1 != 0, bytes) {
        assert_eq!(values.iter().count(), usize::from(values.len()));
        assert_eq!(values.as_bytes(), bytes);
    }
}

/// Reads a type and a cell of it. What decodes is bound again, and must then be stable.
pub fn cell(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Ok(option) = TypeOption::parse(&mut reader) else {
        return;
    };
    let Ok(ty) = ColumnType::parse(option) else {
        return;
    };
    let Ok(value) = CqlValue::decode(&ty, Some(reader.rest())) else {
        return;
    };
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
