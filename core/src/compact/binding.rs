//! Values into markers, by the protocol's numbers of types.
//!
//! A type that has a number of its own is checked by that number: nothing is built that describes types.
//! All other types go by the traits of [`types`](crate::types), through [`Cql`].

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::BytesMut;
use uuid::Uuid;

use super::number;
use super::statement::Statement;
use crate::types::{
    ColumnType, Counter, CqlDate, CqlTime, CqlTimestamp, EncodeValue, MaybeUnset, Unset,
    ValueWriter,
};
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

/// A value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to tell")]
pub struct Unfit;

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

/// Implements binding for tuples.
macro_rules! tuple_cells {
    ($($field:ident)+) => {
        impl<$($field: ToCell),+> ToCells for ($($field,)+) {
            #[expect(non_snake_case, reason = "one name for the type and the field")]
            fn cells(&self, each: &mut dyn FnMut(&dyn ToCell)) {
                let ($($field,)+) = self;
                $(each($field);)+
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
