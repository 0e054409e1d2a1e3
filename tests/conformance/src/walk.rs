//! Reads everything that a response holds, as a caller would bit by bit.

use messina_core::types::{CqlValue, DecodeRow, ResultMetadata};
use messina_core::wire::response::{Event, Extras, Prepared, Response, ResultBody, Rows};
use messina_core::wire::{Dialect, Flags, Opcode, ParseError, Reader};

/// Reads a body with its prefix, every column type, every cell, and every list to its end.
///
/// Values that do not decode are not an error here: the frame around them is in order.
pub fn walk(
    dialect: &Dialect,
    flags: Flags,
    opcode: Opcode,
    body: &[u8],
) -> Result<(), ParseError> {
    let mut reader = Reader::new(body);
    let extras = Extras::parse(flags, &mut reader)?;
    assert_eq!(
        extras.warnings.iter().count(),
        usize::from(extras.warnings.len())
    );
    assert_eq!(
        extras.custom_payload.iter().count(),
        usize::from(extras.custom_payload.len())
    );
    match Response::parse(dialect, opcode, &mut reader)? {
        Response::Supported(supported) => {
            assert_eq!(
                supported.iter().count(),
                usize::from(supported.options.len())
            );
            for (name, values) in supported.iter() {
                assert_eq!(values.iter().count(), usize::from(values.len()));
                assert!(supported.contains(name));
            }
        }
        Response::Error(error) => drop(error.detail()?),
        Response::Result(ResultBody::Rows(rows)) => walk_rows(&rows)?,
        Response::Result(ResultBody::Prepared(prepared)) => walk_prepared(&prepared)?,
        Response::Event(Event::ClientRoutesChange {
            connection_ids,
            host_ids,
            ..
        }) => {
            assert_eq!(
                connection_ids.iter().count(),
                usize::from(connection_ids.len())
            );
            assert_eq!(host_ids.iter().count(), usize::from(host_ids.len()));
        }
        _ => {}
    }
    Ok(())
}

fn walk_rows(rows: &Rows<'_>) -> Result<(), ParseError> {
    let metadata = rows
        .metadata
        .columns
        .map(ResultMetadata::parse)
        .transpose()?
        .unwrap_or_default();
    let mut row_count = 0;
    for row in rows.content.iter() {
        let row = row?;
        assert_eq!(
            row.cells().count(),
            usize::try_from(row.len()).unwrap_or(usize::MAX)
        );
        let _ = Vec::<CqlValue>::decode_row(&(), metadata.columns(), row);
        row_count += 1;
    }
    assert_eq!(row_count, rows.content.row_count());
    Ok(())
}

fn walk_prepared(prepared: &Prepared<'_>) -> Result<(), ParseError> {
    let bound = ResultMetadata::parse(prepared.bound.columns)?;
    assert_eq!(bound.columns().len(), prepared.bound.columns.iter().count());
    for index in prepared.bound.key_indexes {
        assert!(prepared.bound.marker(index).is_some());
    }
    prepared
        .result
        .columns
        .map(ResultMetadata::parse)
        .transpose()?;
    Ok(())
}
