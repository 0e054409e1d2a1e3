//! Values into markers and out of cells, by the protocol's numbers of types.
//!
//! A type that has a number of its own is checked by that number, once for a statement or a result,
//! and a cell is then read by its length: nothing is built that describes types, and no text is made.
//! All other types go by the traits of [`types`](crate::types): bound through [`Cql`], and read with
//! [`Reply::metadata`](super::Reply::metadata) and [`RawRow`].

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::BytesMut;
use uuid::Uuid;

use super::statement::Statement;
use crate::types::{
    ColumnType, Counter, CqlDate, CqlTime, CqlTimestamp, EncodeValue, MaybeUnset, Unset,
    ValueWriter,
};
use crate::wire::response::{Columns, RawRow};
use crate::wire::{Sink as _, Values};

/// A value that can be bound.
pub trait ToCell {
    /// Writes the value, if the marker is of a type that takes it.
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit>;
}

/// Values for all markers of a statement: a tuple, a slice, or a slice of `&dyn ToCell`.
pub trait ToCells {
    /// Hands each value to `each`, in order.
    fn cells(&self, each: &mut dyn FnMut(&dyn ToCell));
}

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

/// A value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to tell")]
pub struct Unfit;

/// Why a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third case")]
pub enum Stop {
    /// The bytes end before the row.
    Short,
    /// A cell is not a value of its type.
    Unfit,
}

/// What is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    statement: &'a Statement,
    index: usize,
    type_number: u16,
}

impl Marker<'_> {
    /// The number of its type.
    pub const fn type_number(&self) -> u16 {
        self.type_number
    }

    /// Its type with all that is in it; read from the statement at each call.
    pub fn column_type(&self) -> Option<ColumnType> {
        let prepared = self.statement.prepared().ok()?;
        let column = prepared.bound.columns.iter().nth(self.index)?;
        ColumnType::parse(column.ty).ok()
    }
}

/// Takes bound values.
#[derive(Debug, Default)]
pub struct Binder {
    pub(super) bytes: BytesMut,
    /// Where values begin, behind room for what a request says of them.
    start: usize,
    pub(super) count: u16,
    has_unset: bool,
}

impl Binder {
    pub(super) const fn new(bytes: BytesMut) -> Self {
        Self {
            bytes,
            start: 0,
            count: 0,
            has_unset: false,
        }
    }

    /// The same with so much room in front of the values.
    pub(super) fn behind(mut bytes: BytesMut, start: usize) -> Self {
        bytes.clear();
        bytes.resize(start, 0);
        Self {
            start,
            ..Self::new(bytes)
        }
    }

    /// Fills the room in front; where there are no values, with less than there is room for.
    pub(super) fn put_head(&mut self, head: &[u8]) {
        match self.bytes.get_mut(..self.start) {
            Some(room) if room.len() == head.len() => room.copy_from_slice(head),
            _ => {
                self.bytes.clear();
                self.bytes.extend_from_slice(head);
            }
        }
    }

    /// A value of these bytes. One that is longer than a frame may be is not sent.
    pub fn value(&mut self, bytes: &[u8]) {
        // So long a body is refused whatever its length says.
        let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// No value: what was there is deleted.
    pub fn null(&mut self) {
        self.bytes.put_int(-1);
    }

    /// What was there stays.
    pub fn unset(&mut self) {
        self.bytes.put_int(-2);
        self.has_unset = true;
    }

    pub(super) const fn has_unset(&self) -> bool {
        self.has_unset
    }

    pub(super) fn values(&self) -> Values<'_> {
        let bytes = self.bytes.get(self.start..).unwrap_or_default();
        Values::encoded(self.count, self.has_unset, bytes)
    }
}

/// Binds all values of a row. Fails with the place of the first that does not fit, or of the marker
/// that has no value, or with the number of markers where there are more values.
#[inline(never)]
pub(super) fn bind(
    statement: &Statement,
    type_numbers: &[u16],
    values: &dyn ToCells,
    binder: &mut Binder,
) -> Result<(), usize> {
    let (mut index, mut failed) = (0_usize, None);
    values.cells(&mut |value| {
        let fits = type_numbers.get(index).is_some_and(|type_number| {
            let marker = Marker {
                statement,
                index,
                type_number: *type_number,
            };
            value.put(&marker, binder).is_ok()
        });
        if !fits {
            failed.get_or_insert(index);
        }
        index = index.saturating_add(1);
    });
    match failed {
        Some(index) => Err(index),
        None if index < type_numbers.len() => Err(index),
        None => {
            binder.count = u16::try_from(index).unwrap_or(u16::MAX);
            Ok(())
        }
    }
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

/// Numbers of types, as the protocol has them.
mod number {
    pub(super) const CUSTOM: u16 = 0x00;
    pub(super) const ASCII: u16 = 0x01;
    pub(super) const BIGINT: u16 = 0x02;
    pub(super) const BLOB: u16 = 0x03;
    pub(super) const BOOLEAN: u16 = 0x04;
    pub(super) const COUNTER: u16 = 0x05;
    pub(super) const DOUBLE: u16 = 0x07;
    pub(super) const FLOAT: u16 = 0x08;
    pub(super) const INT: u16 = 0x09;
    pub(super) const TEXT: u16 = 0x0a;
    pub(super) const TIMESTAMP: u16 = 0x0b;
    pub(super) const UUID: u16 = 0x0c;
    pub(super) const VARCHAR: u16 = 0x0d;
    pub(super) const TIMEUUID: u16 = 0x0f;
    pub(super) const INET: u16 = 0x10;
    pub(super) const DATE: u16 = 0x11;
    pub(super) const TIME: u16 = 0x12;
    pub(super) const SMALLINT: u16 = 0x13;
    pub(super) const TINYINT: u16 = 0x14;
}

/// Implements binding for types that are bytes as they are.
macro_rules! to_cell {
    ($($rust:ty: $($ty:ident)|+ => |$value:ident| $bytes:expr;)+) => {$(
        impl ToCell for $rust {
            fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
                let $value = self;
                match marker.type_number {
                    $(number::$ty)|+ => into.value($bytes),
                    _ => return Err(Unfit),
                }
                Ok(())
            }
        }
    )+};
}

to_cell! {
    bool: BOOLEAN => |value| &[u8::from(*value)];
    i8: TINYINT => |value| &value.to_be_bytes();
    i16: SMALLINT => |value| &value.to_be_bytes();
    i32: INT => |value| &value.to_be_bytes();
    i64: BIGINT => |value| &value.to_be_bytes();
    f32: FLOAT => |value| &value.to_be_bytes();
    f64: DOUBLE => |value| &value.to_be_bytes();
    Counter: COUNTER => |value| &value.0.to_be_bytes();
    CqlDate: DATE => |value| &value.to_wire().to_be_bytes();
    CqlTime: TIME => |value| &value.nanoseconds.to_be_bytes();
    CqlTimestamp: TIMESTAMP => |value| &value.milliseconds.to_be_bytes();
    Uuid: UUID | TIMEUUID => |value| value.as_bytes();
    Ipv4Addr: INET => |value| &value.octets();
    Ipv6Addr: INET => |value| &value.octets();
    str: ASCII | TEXT | VARCHAR => |value| value.as_bytes();
    String: ASCII | TEXT | VARCHAR => |value| value.as_bytes();
    [u8]: BLOB | CUSTOM => |value| value;
    Vec<u8>: BLOB | CUSTOM => |value| value;
}

impl<const N: usize> ToCell for [u8; N] {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        self.as_slice().put(marker, into)
    }
}

impl ToCell for IpAddr {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        match self {
            Self::V4(address) => address.put(marker, into),
            Self::V6(address) => address.put(marker, into),
        }
    }
}

impl ToCell for Unset {
    fn put(&self, _: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        into.unset();
        Ok(())
    }
}

impl<T: ToCell> ToCell for MaybeUnset<T> {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        match self {
            Self::Unset => Unset.put(marker, into),
            Self::Set(value) => value.put(marker, into),
        }
    }
}

/// `None` is null, which fits any marker.
impl<T: ToCell> ToCell for Option<T> {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        match self {
            Some(value) => value.put(marker, into),
            None => {
                into.null();
                Ok(())
            }
        }
    }
}

impl<T: ToCell + ?Sized> ToCell for &T {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        (**self).put(marker, into)
    }
}

/// Binds what [`EncodeValue`] can write: collections, user-defined types, any
/// [`CqlValue`](crate::types::CqlValue). Brings the code that knows all types.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it only stands around a value")]
pub struct Cql<T>(pub T);

impl<T: EncodeValue> ToCell for Cql<T> {
    fn put(&self, marker: &Marker<'_>, into: &mut Binder) -> Result<(), Unfit> {
        let ty = marker.column_type().ok_or(Unfit)?;
        let written = self.0.encode(&ty, ValueWriter::marker(&mut into.bytes));
        into.has_unset |= written.map_err(|_| Unfit)?.is_unset();
        Ok(())
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

impl ToCells for () {
    fn cells(&self, _: &mut dyn FnMut(&dyn ToCell)) {}
}

impl<T: ToCell> ToCells for [T] {
    fn cells(&self, each: &mut dyn FnMut(&dyn ToCell)) {
        self.iter().for_each(|value| each(value));
    }
}

impl<T: ToCell, const N: usize> ToCells for [T; N] {
    fn cells(&self, each: &mut dyn FnMut(&dyn ToCell)) {
        self.as_slice().cells(each);
    }
}

impl<T: ToCells + ?Sized> ToCells for &T {
    fn cells(&self, each: &mut dyn FnMut(&dyn ToCell)) {
        (**self).cells(each);
    }
}

/// One function for all rows: whether there are as many types as readers, and each fits its own.
fn are_of(types: &mut dyn Iterator<Item = u16>, readers: &[fn(u16) -> bool]) -> bool {
    let all = readers.iter().all(|is_of| types.next().is_some_and(is_of));
    all && types.next().is_none()
}

/// Implements both traits for tuples.
macro_rules! tuple_cells {
    ($($field:ident)+) => {
        impl<$($field: ToCell),+> ToCells for ($($field,)+) {
            #[expect(non_snake_case, reason = "one name for the type and the field")]
            fn cells(&self, each: &mut dyn FnMut(&dyn ToCell)) {
                let ($($field,)+) = self;
                $(each($field);)+
            }
        }

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
