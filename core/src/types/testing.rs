//! What the tests of this module share: types by class text, bytes by hexadecimal text.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::sync::Shared;

use super::{ColumnSpec, ColumnType, EncodeValue, EncodeValueError, ValueWriter, class};

/// A type by its class text, the shortest way to write nested ones.
pub(super) fn ty(class: &str) -> ColumnType {
    class::parse(class, 32).unwrap()
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|digit| digit.to_digit(16).unwrap() as u8)
        .collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "half a byte in {hex}");
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}

/// Columns of one table, by name and type.
pub(super) fn columns(types: &[(&str, ColumnType)]) -> Vec<ColumnSpec> {
    let shared = |name: &str| Shared::<str>::from(Box::from(name));
    types
        .iter()
        .map(|(name, ty)| ColumnSpec {
            keyspace: shared("k"),
            table: shared("t"),
            name: Box::from(*name),
            ty: ty.clone(),
        })
        .collect()
}

/// A value as it is bound, its length in front. What fails must leave nothing behind.
pub(super) fn encode(
    ty: &ColumnType,
    value: &dyn EncodeValue,
) -> Result<Vec<u8>, EncodeValueError> {
    let mut sink = Vec::new();
    let written = value.encode(ty, ValueWriter::marker(&mut sink));
    if written.is_err() {
        assert!(sink.is_empty(), "{sink:x?} left behind");
    }
    written.map(|_| sink)
}
