//! Values out of cells, by the protocol's numbers of types.
//!
//! A type that has a number of its own is checked by that number, once for a result, and a cell is then
//! read by its length: nothing is built that describes types, and no text is made. All other types are
//! read with [`Reply::metadata`](super::Reply::metadata) and [`RawRow`].

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::number;
use crate::types::{Counter, CqlDate, CqlTime, CqlTimestamp};
use crate::wire::response::{Columns, RawRow};

/// A value that cells can be read as.
pub trait FromCell<'a>: Sized {
    /// Bytes of the shortest cell that can be read.
    const LEN_MIN: usize = 0;

    /// Whether cells of the type with this number can be read.
    fn is_of(type_number: u16) -> bool;

    /// Reads a cell, which is null where it is `None`; nothing if it is not of a length that the
    /// type can have, or null where that cannot be said.
    fn from_cell(cell: Option<&'a [u8]>) -> Option<Self>;

    /// Reads the next cell of a row. Why one cannot be read is looked up by who reads the row.
    #[inline]
    fn from_next(cells: &mut Cells<'a>) -> Result<Self, Stop> {
        Self::from_cell(cells.next_cell()?).ok_or(Stop::Unfit)
    }
}

/// A row that cells can be read as: a tuple, or [`RawRow`].
pub trait FromCells<'a>: Sized {
    /// Bytes of the shortest row that can be read, with the lengths of its cells.
    const LEN_MIN: usize = 0;

    /// Whether rows of these types can be read; asked once for a result.
    fn is_of(type_numbers: &mut dyn Iterator<Item = u16>) -> bool;

    /// Reads the next row.
    fn from_cells(cells: &mut Cells<'a>) -> Result<Self, Stop>;
}

/// Why a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third case")]
pub enum Stop {
    /// The bytes end before the row.
    Short,
    /// A cell is not a value of its type.
    Unfit,
}

/// Numbers of the types of columns.
pub(super) fn type_numbers(columns: Columns<'_>) -> impl Iterator<Item = u16> {
    columns.iter().map(|column| column.ty.number())
}

/// Cells one behind the other.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    rest: &'a [u8],
    column_count: u32,
}

impl<'a> Cells<'a> {
    pub(super) const fn new(column_count: u32, bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            column_count,
        }
    }

    /// Cells of each row.
    pub const fn column_count(&self) -> u32 {
        self.column_count
    }

    /// The bytes of what comes next.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next cell, null where it is `None`.
    #[inline]
    pub fn next_cell(&mut self) -> Result<Option<&'a [u8]>, Stop> {
        let (len, behind) = self.rest.split_first_chunk::<4>().ok_or(Stop::Short)?;
        let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
            self.rest = behind;
            return Ok(None);
        };
        let (cell, behind) = behind.split_at_checked(len).ok_or(Stop::Short)?;
        self.rest = behind;
        Ok(Some(cell))
    }

    /// The next cell if it has `N` bytes: length and bytes by one look at what is left.
    #[inline]
    fn next_of<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (cell, behind) = self.rest.split_at_checked(N.saturating_add(4))?;
        let (len, bytes) = cell.split_first_chunk::<4>()?;
        let bytes = bytes.try_into().ok()?;
        if usize::try_from(i32::from_be_bytes(*len)) != Ok(N) {
            return None;
        }
        self.rest = behind;
        Some(bytes)
    }
}

/// Why the row that these bytes begin with cannot be read. They come by value: what is pointed at is
/// kept in memory all the time.
#[cold]
#[inline(never)]
fn misfit(bytes: &[u8], column_count: u32) -> Stop {
    let mut cells = Cells::new(column_count, bytes);
    for _ in 0..column_count {
        if let Err(stop) = cells.next_cell() {
            return stop;
        }
    }
    Stop::Unfit
}

impl<'a> FromCells<'a> for RawRow<'a> {
    fn is_of(_: &mut dyn Iterator<Item = u16>) -> bool {
        true
    }

    fn from_cells(cells: &mut Cells<'a>) -> Result<Self, Stop> {
        let start = cells.rest;
        for _ in 0..cells.column_count {
            cells.next_cell()?;
        }
        let len = start.len().saturating_sub(cells.rest.len());
        let bytes = start.get(..len).unwrap_or_default();
        Ok(Self::of_checked(cells.column_count, bytes))
    }
}

/// Implements reading for types of a fixed length.
macro_rules! from_cell {
    ($($rust:ty: $($ty:ident)|+ => |$bytes:ident| $value:expr;)+) => {$(
        impl FromCell<'_> for $rust {
            // In Rust they are as long as on the wire.
            const LEN_MIN: usize = size_of::<Self>();

            fn is_of(type_number: u16) -> bool {
                matches!(type_number, $(number::$ty)|+)
            }

            #[inline]
            fn from_cell(cell: Option<&[u8]>) -> Option<Self> {
                let $bytes = cell?.try_into().ok()?;
                Some($value)
            }

            #[inline]
            fn from_next(cells: &mut Cells<'_>) -> Result<Self, Stop> {
                let $bytes = cells.next_of().ok_or(Stop::Unfit)?;
                Ok($value)
            }
        }
    )+};
}

from_cell! {
    i8: TINYINT => |bytes| Self::from_be_bytes(bytes);
    i16: SMALLINT => |bytes| Self::from_be_bytes(bytes);
    i32: INT => |bytes| Self::from_be_bytes(bytes);
    i64: BIGINT => |bytes| Self::from_be_bytes(bytes);
    f32: FLOAT => |bytes| Self::from_be_bytes(bytes);
    f64: DOUBLE => |bytes| Self::from_be_bytes(bytes);
    Counter: COUNTER => |bytes| Self(i64::from_be_bytes(bytes));
    CqlDate: DATE => |bytes| Self::from_wire(u32::from_be_bytes(bytes));
    CqlTime: TIME => |bytes| Self { nanoseconds: i64::from_be_bytes(bytes) };
    CqlTimestamp: TIMESTAMP => |bytes| Self { milliseconds: i64::from_be_bytes(bytes) };
    Uuid: UUID | TIMEUUID => |bytes| Self::from_bytes(bytes);
}

impl FromCell<'_> for bool {
    fn is_of(type_number: u16) -> bool {
        type_number == number::BOOLEAN
    }

    fn from_cell(cell: Option<&[u8]>) -> Option<Self> {
        match cell? {
            [byte] => Some(*byte != 0),
            _ => None,
        }
    }
}

impl FromCell<'_> for IpAddr {
    fn is_of(type_number: u16) -> bool {
        type_number == number::INET
    }

    fn from_cell(cell: Option<&[u8]>) -> Option<Self> {
        let cell = cell?;
        let v4 = <[u8; 4]>::try_from(cell).map(Self::from);
        v4.or_else(|_| <[u8; 16]>::try_from(cell).map(Self::from))
            .ok()
    }
}

impl<'a> FromCell<'a> for &'a str {
    fn is_of(type_number: u16) -> bool {
        matches!(type_number, number::ASCII | number::TEXT | number::VARCHAR)
    }

    fn from_cell(cell: Option<&'a [u8]>) -> Option<Self> {
        core::str::from_utf8(cell?).ok()
    }
}

impl FromCell<'_> for String {
    fn is_of(type_number: u16) -> bool {
        <&str>::is_of(type_number)
    }

    fn from_cell(cell: Option<&[u8]>) -> Option<Self> {
        <&str>::from_cell(cell).map(Self::from)
    }
}

/// The bytes of a cell as they came, of any type.
impl<'a> FromCell<'a> for &'a [u8] {
    fn is_of(_: u16) -> bool {
        true
    }

    fn from_cell(cell: Option<&'a [u8]>) -> Option<Self> {
        cell
    }
}

impl FromCell<'_> for Vec<u8> {
    fn is_of(_: u16) -> bool {
        true
    }

    fn from_cell(cell: Option<&[u8]>) -> Option<Self> {
        cell.map(Self::from)
    }
}

impl<'a, T: FromCell<'a>> FromCell<'a> for Option<T> {
    fn is_of(type_number: u16) -> bool {
        T::is_of(type_number)
    }

    #[inline]
    fn from_cell(cell: Option<&'a [u8]>) -> Option<Self> {
        match cell {
            Some(_) => T::from_cell(cell).map(Some),
            None => Some(None),
        }
    }
}

/// One function for all rows: whether there are as many types as readers, and each fits its own.
fn are_of(types: &mut dyn Iterator<Item = u16>, readers: &[fn(u16) -> bool]) -> bool {
    let all = readers.iter().all(|is_of| types.next().is_some_and(is_of));
    all && types.next().is_none()
}

/// Implements reading for tuples.
macro_rules! tuple_cells {
    ($($field:ident)+) => {
        impl<'a, $($field: FromCell<'a>),+> FromCells<'a> for ($($field,)+) {
            const LEN_MIN: usize = 0_usize$(.saturating_add($field::LEN_MIN).saturating_add(4))+;

            fn is_of(type_numbers: &mut dyn Iterator<Item = u16>) -> bool {
                are_of(type_numbers, &[$($field::is_of),+])
            }

            #[inline]
            fn from_cells(cells: &mut Cells<'a>) -> Result<Self, Stop> {
                let (bytes, column_count) = (cells.rest, cells.column_count);
                let row = (|| Ok(($($field::from_next(cells)?,)+)))();
                row.map_err(|_: Stop| misfit(bytes, column_count))
            }
        }
    };
}

tuple_cells!(A);
tuple_cells!(A B);
tuple_cells!(A B C);
tuple_cells!(A B C D);
tuple_cells!(A B C D E);
tuple_cells!(A B C D E F);
tuple_cells!(A B C D E F G);
tuple_cells!(A B C D E F G H);
tuple_cells!(A B C D E F G H I);
tuple_cells!(A B C D E F G H I J);
tuple_cells!(A B C D E F G H I J K);
tuple_cells!(A B C D E F G H I J K L);
