//! Answers of system tables: the cells of the wanted columns.
//!
//! Where all columns were asked for, one that the server does not have is a null cell, never an error:
//! tables differ between versions and products.

use super::members::Address;
use uuid::Uuid;

use crate::error::{Error, PeerMisbehaved};
use crate::wire::Reader;
use crate::wire::response::Rows;
use crate::words;

/// The most columns that are asked for.
pub(super) const COLUMNS_MAX: usize = 7;

/// The cells of a row, as they were asked for.
pub(super) type Cells<'a> = [Option<&'a [u8]>; COLUMNS_MAX];

/// Reads the body of a RESULT, what stands before its kind taken off, and calls `take` for each
/// row; gives the place of the next page. Cells are in the order of the columns, or of these names if
/// there are any, with a space between them.
pub(super) fn read<'a>(
    body: &'a [u8],
    names: &str,
    take: &mut dyn FnMut(&Cells<'a>),
) -> Result<Option<&'a [u8]>, Error> {
    let mut reader = Reader::new(body);
    if reader.bits("result kind")? != ROWS {
        return Err(PeerMisbehaved::UnexpectedFrame.into());
    }
    let rows = Rows::parse(&mut reader)?;
    let columns = rows.metadata.columns.unwrap_or_default();
    for row in rows.content {
        let mut cells = Cells::default();
        for (place, (column, cell)) in columns.iter().zip(row?.cells()).enumerate() {
            let place = match names {
                "" => Some(place),
                names => words::place(names, column.name),
            };
            if let Some(slot) = place.and_then(|place| cells.get_mut(place)) {
                *slot = cell;
            }
        }
        take(&cells);
    }
    Ok(rows.metadata.paging_state)
}

const ROWS: u32 = 2;

pub(super) fn text(cell: Option<&[u8]>) -> Option<&str> {
    core::str::from_utf8(cell?).ok()
}

pub(super) fn uuid(cell: Option<&[u8]>) -> Option<Uuid> {
    Some(Uuid::from_bytes(cell?.try_into().ok()?))
}

/// An address that can be connected to.
pub(super) fn address(cell: Option<&[u8]>) -> Address {
    Address::new(cell.unwrap_or_default())
}
