//! CQL types as a node sees them: names and wire options.
//!
//! Values stay serialized: `check` judges the bytes, `order` makes keys that compare as they do,
//! `literal` reads CQL text, `encode` serializes what the node itself has to say.

mod check;
mod encode;
mod literal;
mod order;

use core::fmt;

use super::codec::Writer;

pub(crate) use encode::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CqlType {
    Native(Native),
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Frozen(Box<Self>),
}

/// A type without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    Ascii,
    BigInt,
    Blob,
    Boolean,
    Counter,
    Decimal,
    Double,
    Float,
    Int,
    Timestamp,
    Uuid,
    Text,
    Varint,
    TimeUuid,
    Inet,
    Date,
    Time,
    SmallInt,
    TinyInt,
    Duration,
}

struct NativeNames {
    native: Native,
    cql: &'static str,
    java: &'static str,
    option: u16,
}

const fn names(native: Native, cql: &'static str, java: &'static str, option: u16) -> NativeNames {
    NativeNames {
        native,
        cql,
        java,
        option,
    }
}

const NATIVES: [NativeNames; 20] = [
    names(Native::Ascii, "ascii", "AsciiType", 0x01),
    names(Native::BigInt, "bigint", "LongType", 0x02),
    names(Native::Blob, "blob", "BytesType", 0x03),
    names(Native::Boolean, "boolean", "BooleanType", 0x04),
    names(Native::Counter, "counter", "CounterColumnType", 0x05),
    names(Native::Decimal, "decimal", "DecimalType", 0x06),
    names(Native::Double, "double", "DoubleType", 0x07),
    names(Native::Float, "float", "FloatType", 0x08),
    names(Native::Int, "int", "Int32Type", 0x09),
    names(Native::Timestamp, "timestamp", "TimestampType", 0x0B),
    names(Native::Uuid, "uuid", "UUIDType", 0x0C),
    names(Native::Text, "text", "UTF8Type", 0x0D),
    names(Native::Varint, "varint", "IntegerType", 0x0E),
    names(Native::TimeUuid, "timeuuid", "TimeUUIDType", 0x0F),
    names(Native::Inet, "inet", "InetAddressType", 0x10),
    names(Native::Date, "date", "SimpleDateType", 0x11),
    names(Native::Time, "time", "TimeType", 0x12),
    names(Native::SmallInt, "smallint", "ShortType", 0x13),
    names(Native::TinyInt, "tinyint", "ByteType", 0x14),
    names(Native::Duration, "duration", "DurationType", 0x15),
];

impl Native {
    /// By its CQL name; `varchar` is another name of `text`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if name == "varchar" {
            return Some(Self::Text);
        }
        NATIVES
            .iter()
            .find(|entry| entry.cql == name)
            .map(|entry| entry.native)
    }

    fn names(self) -> &'static NativeNames {
        &NATIVES[self as usize]
    }
}

impl CqlType {
    pub(crate) const INT: Self = Self::Native(Native::Int);
    pub(crate) const BIGINT: Self = Self::Native(Native::BigInt);
    pub(crate) const BOOLEAN: Self = Self::Native(Native::Boolean);

    pub(crate) fn list(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    /// The type without `frozen`, which never shows on the wire.
    fn thawed(&self) -> &Self {
        match self {
            Self::Frozen(inner) => inner.thawed(),
            other => other,
        }
    }

    /// Whether ordinary tables may have a column of it.
    pub(crate) fn is_storable(&self) -> bool {
        matches!(self, Self::Native(native) if *native != Native::Counter)
    }

    /// Whether it can order rows.
    pub(crate) fn is_clusterable(&self) -> bool {
        matches!(self, Self::Native(native) if !matches!(native,
            Native::Counter | Native::Duration | Native::Decimal | Native::Varint))
    }

    /// Puts the type option of metadata.
    pub(crate) fn put_option(&self, out: &mut Writer) {
        match self.thawed() {
            Self::Native(native) => out.short(native.names().option),
            Self::List(element) => {
                out.short(0x20);
                element.put_option(out);
            }
            Self::Map(key, value) => {
                out.short(0x21);
                key.put_option(out);
                value.put_option(out);
            }
            Self::Set(element) => {
                out.short(0x22);
                element.put_option(out);
            }
            Self::Frozen(_) => debug_assert!(false, "thawed types are not frozen"),
        }
    }

    /// The name of the Java marshal class, which metadata ids are made from.
    pub(crate) fn java_name(&self) -> String {
        const PREFIX: &str = "org.apache.cassandra.db.marshal.";
        match self {
            Self::Native(native) => format!("{PREFIX}{}", native.names().java),
            Self::List(element) => format!("{PREFIX}ListType({})", element.java_name()),
            Self::Set(element) => format!("{PREFIX}SetType({})", element.java_name()),
            Self::Map(key, value) => {
                format!("{PREFIX}MapType({},{})", key.java_name(), value.java_name())
            }
            Self::Frozen(inner) => format!("{PREFIX}FrozenType({})", inner.java_name()),
        }
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(native) => out.write_str(native.names().cql),
            Self::List(element) => write!(out, "list<{element}>"),
            Self::Set(element) => write!(out, "set<{element}>"),
            Self::Map(key, value) => write!(out, "map<{key}, {value}>"),
            Self::Frozen(inner) => write!(out, "frozen<{inner}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_natives_is_in_enum_order() {
        for (at, entry) in NATIVES.iter().enumerate() {
            assert_eq!(entry.native as usize, at, "{}", entry.cql);
        }
    }
}
