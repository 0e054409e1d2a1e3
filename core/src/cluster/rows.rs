//! Reading answers of system tables: columns by name, cells as plain values.
//!
//! A column that the server does not have, or has under another type, is a missing value and never
//! an error: tables differ between versions and products. Cells are decoded as protocol section
//! 6 (v4) and system table documents say.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use crate::conn::Answer;
use crate::error::{Error, PeerMisbehaved};
use crate::wire::response::{Extras, Response, ResultBody};
use crate::wire::{Dialect, Reader};

/// Reads an answer; the server's error is the error.
pub(super) fn parse_answer<'a>(
    answer: &'a Answer,
    dialect: &Dialect,
) -> Result<Response<'a>, Error> {
    let mut reader = Reader::new(answer.body.as_slice());
    Extras::parse(answer.flags, &mut reader)?;
    match Response::parse(dialect, answer.opcode, &mut reader)? {
        Response::Error(error) => Err(Error::from_server(error)),
        response => Ok(response),
    }
}

/// Calls `take` for each row with the cells of the named columns, in the order of the names; gives
/// the place of the next page.
///
/// One function for all tables: the control plane may call through a pointer, and must be small.
pub(super) fn read_rows<'a>(
    answer: &'a Answer,
    dialect: &Dialect,
    names: &[&str],
    take: &mut TakeRow<'_, 'a>,
) -> Result<Option<Box<[u8]>>, Error> {
    let Response::Result(ResultBody::Rows(rows)) = parse_answer(answer, dialect)? else {
        return Err(PeerMisbehaved::UnexpectedFrame.into());
    };
    let columns = rows.metadata.columns.unwrap_or_default();
    // For each column of the answer, which of the wanted it is.
    let mut wanted: Vec<Option<usize>> = Vec::new();
    for column in columns {
        wanted.push(names.iter().position(|name| *name == column.name));
    }
    let mut cells = alloc::vec![None; names.len()];
    for row in rows.content {
        cells.fill(None);
        for (place, cell) in wanted.iter().zip(row?.cells()) {
            if let Some(slot) = place.and_then(|place| cells.get_mut(place)) {
                *slot = cell;
            }
        }
        take(&cells);
    }
    Ok(rows.metadata.paging_state.map(Box::from))
}

/// Takes the cells of one row.
type TakeRow<'t, 'a> = dyn FnMut(&[Option<&'a [u8]>]) + 't;

pub(super) fn text(cell: Option<&[u8]>) -> Option<&str> {
    core::str::from_utf8(cell?).ok()
}

pub(super) fn uuid(cell: Option<&[u8]>) -> Option<Uuid> {
    Uuid::from_slice(cell?).ok()
}

pub(super) fn address(cell: Option<&[u8]>) -> Option<IpAddr> {
    let cell = cell?;
    let four = || <[u8; 4]>::try_from(cell).map(IpAddr::from);
    four()
        .or_else(|_| <[u8; 16]>::try_from(cell).map(IpAddr::from))
        .ok()
}

/// The elements of a list or set of text; what cannot be read ends it.
pub(super) fn texts(cell: Option<&[u8]>) -> impl Iterator<Item = &str> {
    let mut reader = Reader::new(cell.unwrap_or_default());
    let mut left = reader.count("elements").unwrap_or(0);
    core::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        text(reader.bytes("element").ok()?)
    })
}

/// The pairs of a map of text to text.
pub(super) fn text_pairs(cell: Option<&[u8]>) -> impl Iterator<Item = (&str, &str)> {
    let mut reader = Reader::new(cell.unwrap_or_default());
    let mut left = reader.count("pairs").unwrap_or(0);
    core::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let name = text(reader.bytes("key").ok()?)?;
        Some((name, text(reader.bytes("value").ok()?)?))
    })
}
