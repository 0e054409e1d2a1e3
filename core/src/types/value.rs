//! A value whose type is known only at run time.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::{Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlVarint};

/// Any CQL value, with null, unset and empty as cases of their own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CqlValue {
    /// No value.
    Null,
    /// Leave the column as it is; for binding only.
    Unset,
    /// A value of no bytes, of a type that has no such value in the CQL language.
    Empty,
    /// `ascii`
    Ascii(String),
    /// `bigint`
    BigInt(i64),
    /// `blob`
    Blob(Vec<u8>),
    /// `boolean`
    Boolean(bool),
    /// `counter`
    Counter(Counter),
    /// `decimal`
    Decimal(CqlDecimal),
    /// `double`
    Double(f64),
    /// `float`
    Float(f32),
    /// `int`
    Int(i32),
    /// `timestamp`
    Timestamp(CqlTimestamp),
    /// `uuid`
    Uuid(Uuid),
    /// `text`
    Text(String),
    /// `varint`
    Varint(CqlVarint),
    /// `timeuuid`
    Timeuuid(Uuid),
    /// `inet`
    Inet(IpAddr),
    /// `date`
    Date(CqlDate),
    /// `time`
    Time(CqlTime),
    /// `smallint`
    SmallInt(i16),
    /// `tinyint`
    TinyInt(i8),
    /// `duration`
    Duration(CqlDuration),
    /// `list`
    List(Vec<Self>),
    /// `set`, in the order sent
    Set(Vec<Self>),
    /// `map`, in the order sent
    Map(Vec<(Self, Self)>),
    /// `tuple`; fields that were not sent are null
    Tuple(Vec<Self>),
    /// A value of a user-defined type.
    Udt(UdtValue),
    /// `vector`
    Vector(Vec<Self>),
    /// The bytes of a value whose type this crate does not know.
    Custom(Vec<u8>),
}

/// A value of a user-defined type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UdtValue {
    /// Fields by name. Decoding gives all fields of the type in its order, null where nothing was
    /// sent; for binding, any order will do and missing fields are null.
    pub fields: Vec<(Box<str>, CqlValue)>,
}

impl UdtValue {
    /// The field of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CqlValue> {
        self.fields
            .iter()
            .find_map(|(field, value)| (**field == *name).then_some(value))
    }
}

impl CqlValue {
    /// Whether it is null.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// A value that may be "empty": of no bytes where the type needs some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there is no third case")]
pub enum MaybeEmpty<T> {
    /// A value of no bytes.
    #[default]
    Empty,
    /// A value.
    Value(T),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A null element of a list is four bytes on the wire: what it grows to must stay a small multiple.
    #[test]
    fn a_value_is_small() {
        assert!(size_of::<CqlValue>() <= 32, "{}", size_of::<CqlValue>());
        assert!(size_of::<super::super::ColumnType>() <= 24);
    }
}
