//! CQL types as a node sees them: names and wire options.
//!
//! Values stay serialized: `check` judges the bytes, `order` makes keys that compare as they do,
//! `literal` reads CQL text, `encode` serializes what the node itself has to say, `resolve` finds
//! the type that a text names.

pub(crate) mod bignum;
pub(crate) mod calendar;
mod check;
pub(crate) mod decimal;
pub(crate) mod duration;
mod encode;
mod literal;
mod order;
mod resolve;

use core::fmt;
use std::sync::Arc;

use super::codec::Writer;

pub(crate) use check::{elements, entries, fields, vector_elements};
pub(crate) use encode::*;
pub(crate) use literal::date_bytes;

/// A CQL type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CqlType {
    Native(Native),
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Frozen(Box<Self>),
    Tuple(Vec<Self>),
    Vector(Box<Self>, u16),
    User(Arc<UserType>),
}

/// A type that a keyspace defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserType {
    pub(crate) keyspace: String,
    pub(crate) name: String,
    pub(crate) fields: Vec<(String, CqlType)>,
}

impl UserType {
    /// Position of a field.
    pub(crate) fn position(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|(name, _)| name == field)
    }
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
    pub(crate) fn thawed(&self) -> &Self {
        match self {
            Self::Frozen(inner) => inner.thawed(),
            other => other,
        }
    }

    /// The native type, if it is one.
    pub(crate) fn native(&self) -> Option<Native> {
        match self.thawed() {
            Self::Native(native) => Some(*native),
            _ => None,
        }
    }

    /// The user type, if it is one.
    pub(crate) fn user(&self) -> Option<&Arc<UserType>> {
        match self.thawed() {
            Self::User(user) => Some(user),
            _ => None,
        }
    }

    /// Whether a column of it is stored in parts that are written one by one.
    pub(crate) fn is_multi_cell(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Set(_) | Self::Map(..) | Self::User(_)
        )
    }

    /// Whether it can be part of a primary key.
    pub(crate) fn is_clusterable(&self) -> bool {
        !self.is_multi_cell() && !self.contains(Native::Counter) && !self.contains(Native::Duration)
    }

    /// The types it is made of, one level down.
    pub(crate) fn inner(&self) -> Vec<&Self> {
        match self {
            Self::Native(_) => Vec::new(),
            Self::List(inner) | Self::Set(inner) | Self::Frozen(inner) | Self::Vector(inner, _) => {
                vec![&**inner]
            }
            Self::Map(key, value) => vec![&**key, &**value],
            Self::Tuple(elements) => elements.iter().collect(),
            Self::User(user) => user.fields.iter().map(|(_, ty)| ty).collect(),
        }
    }

    /// Whether a native type is it or anywhere in it.
    pub(crate) fn contains(&self, native: Native) -> bool {
        *self == Self::Native(native) || self.inner().iter().any(|inner| inner.contains(native))
    }

    /// Whether a user type of that name is it or anywhere in it.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let is_it = matches!(self, Self::User(user) if user.name == name);
        is_it || self.inner().iter().any(|inner| inner.uses(name))
    }

    /// The type with a new form of a user type in it.
    pub(crate) fn with_user(&self, changed: &Arc<UserType>) -> Self {
        let inner = |ty: &Self| Box::new(ty.with_user(changed));
        match self {
            Self::Native(_) => self.clone(),
            Self::List(element) => Self::List(inner(element)),
            Self::Set(element) => Self::Set(inner(element)),
            Self::Frozen(ty) => Self::Frozen(inner(ty)),
            Self::Vector(element, len) => Self::Vector(inner(element), *len),
            Self::Map(key, value) => Self::Map(inner(key), inner(value)),
            Self::Tuple(elements) => {
                Self::Tuple(elements.iter().map(|ty| ty.with_user(changed)).collect())
            }
            Self::User(user) if user.name == changed.name => Self::User(Arc::clone(changed)),
            Self::User(user) => {
                let fields = user.fields.iter();
                Self::User(Arc::new(UserType {
                    fields: fields
                        .map(|(name, ty)| (name.clone(), ty.with_user(changed)))
                        .collect(),
                    ..UserType::clone(user)
                }))
            }
        }
    }

    /// Puts the type option of metadata.
    pub(crate) fn put_option(&self, out: &mut Writer) {
        match self {
            Self::Native(native) => out.short(native.names().option),
            Self::Frozen(inner) => inner.put_option(out),
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
            Self::User(user) => {
                out.short(0x30);
                out.string(&user.keyspace);
                out.string(&user.name);
                out.short_count(user.fields.len());
                for (name, ty) in &user.fields {
                    out.string(name);
                    ty.put_option(out);
                }
            }
            Self::Tuple(elements) => {
                out.short(0x31);
                out.short_count(elements.len());
                elements.iter().for_each(|element| element.put_option(out));
            }
            Self::Vector(..) => {
                out.short(0x00);
                out.string(&self.java_name());
            }
        }
    }

    /// The name of the Java marshal class, which metadata ids are made from.
    pub(crate) fn java_name(&self) -> String {
        let (class, arguments) = match self {
            Self::Native(native) => return format!("{MARSHAL}{}", native.names().java),
            Self::List(element) => ("ListType", element.java_name()),
            Self::Set(element) => ("SetType", element.java_name()),
            Self::Map(key, value) => (
                "MapType",
                format!("{},{}", key.java_name(), value.java_name()),
            ),
            Self::Frozen(inner) => ("FrozenType", inner.java_name()),
            Self::Tuple(elements) => {
                let names: Vec<String> = elements.iter().map(Self::java_name).collect();
                ("TupleType", names.join(","))
            }
            Self::Vector(element, len) => ("VectorType", format!("{}, {len}", element.java_name())),
            Self::User(user) => {
                let mut arguments = format!("{},{}", user.keyspace, hex(user.name.as_bytes()));
                for (name, ty) in &user.fields {
                    arguments += &format!(",{}:{}", hex(name.as_bytes()), ty.java_name());
                }
                ("UserType", arguments)
            }
        };
        format!("{MARSHAL}{class}({arguments})")
    }
}

/// The package of all marshal classes.
const MARSHAL: &str = "org.apache.cassandra.db.marshal.";

impl fmt::Display for CqlType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(native) => out.write_str(native.names().cql),
            Self::List(element) => write!(out, "list<{element}>"),
            Self::Set(element) => write!(out, "set<{element}>"),
            Self::Map(key, value) => write!(out, "map<{key}, {value}>"),
            Self::Frozen(inner) => write!(out, "frozen<{inner}>"),
            Self::Vector(element, len) => write!(out, "vector<{element}, {len}>"),
            Self::User(user) => out.write_str(&quoted(&user.name)),
            Self::Tuple(elements) => {
                out.write_str("tuple<")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(out, "{}{element}", if at == 0 { "" } else { ", " })?;
                }
                out.write_str(">")
            }
        }
    }
}

/// A name as CQL text has it: in quotes where it must be.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
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
