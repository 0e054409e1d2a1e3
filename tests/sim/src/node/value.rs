//! CQL types as a node sees them: names, wire options, checks, ordering, and literals.
//!
//! Values stay serialized; this module only judges and orders the bytes. Collections and tuples
//! exist for the system tables.

use core::fmt;
use core::net::IpAddr;

use bytes::Bytes;

use super::codec::Writer;
use super::cql::Literal;
use super::error::CqlError;

/// A CQL type.
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

    /// Serialized length where it is fixed. Zero length is legal for most types on top of this.
    fn fixed_len(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::TinyInt => Some(1),
            Self::SmallInt => Some(2),
            Self::Int | Self::Float | Self::Date => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp | Self::Time | Self::Counter => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            _ => None,
        }
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

    /// Refuses bytes that are no value of the type.
    pub(crate) fn check(&self, bytes: &[u8], column: &str) -> Result<(), CqlError> {
        let Self::Native(native) = self.thawed() else {
            return Ok(());
        };
        let ok = match native {
            Native::Ascii => bytes.is_ascii(),
            Native::Text => core::str::from_utf8(bytes).is_ok(),
            Native::Inet => matches!(bytes.len(), 0 | 4 | 16),
            _ => native
                .fixed_len()
                .is_none_or(|len| bytes.is_empty() || bytes.len() == len),
        };
        if ok {
            return Ok(());
        }
        Err(CqlError::Invalid(format!(
            "Exception while binding column {column}: marshaling error: Validation failed for \
             type {self}: got {} bytes",
            bytes.len()
        )))
    }

    /// Appends bytes to `key` that compare as the values do, for one component of many.
    pub(crate) fn put_sort_key(&self, value: &[u8], descending: bool, key: &mut Vec<u8>) {
        let start = key.len();
        let native = match self.thawed() {
            Self::Native(native) => *native,
            _ => Native::Blob,
        };
        match native {
            Native::Int
            | Native::BigInt
            | Native::SmallInt
            | Native::TinyInt
            | Native::Timestamp
            | Native::Time
            | Native::Counter => put_signed(value, key),
            Native::Float | Native::Double => put_float(value, key),
            Native::Uuid | Native::TimeUuid => put_uuid(value, key),
            Native::Boolean | Native::Date => {
                key.push(u8::from(!value.is_empty()));
                key.extend_from_slice(value);
            }
            _ => put_escaped(value, key),
        }
        if descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Serializes a literal of CQL text.
    pub(crate) fn literal(&self, literal: &Literal, column: &str) -> Result<Bytes, CqlError> {
        let refuse = || {
            CqlError::Invalid(format!(
                "Invalid {} constant ({}) for \"{column}\" of type {self}",
                literal.kind(),
                literal.text()
            ))
        };
        let Self::Native(native) = self.thawed() else {
            return Err(refuse());
        };
        native_literal(*native, literal).ok_or_else(refuse)
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

/// Zero-length values sort first, then by sign-flipped big-endian bytes.
fn put_signed(value: &[u8], key: &mut Vec<u8>) {
    let Some((first, rest)) = value.split_first() else {
        key.push(0);
        return;
    };
    key.push(1);
    key.push(first ^ 0x80);
    key.extend_from_slice(rest);
}

fn put_float(value: &[u8], key: &mut Vec<u8>) {
    let Some((first, rest)) = value.split_first() else {
        key.push(0);
        return;
    };
    key.push(1);
    if first & 0x80 == 0 {
        key.push(first | 0x80);
        key.extend_from_slice(rest);
    } else {
        key.extend(value.iter().map(|byte| !byte));
    }
}

/// Version first, then (for version 1) the timestamp, then the bytes.
fn put_uuid(value: &[u8], key: &mut Vec<u8>) {
    let Ok(bytes) = <[u8; 16]>::try_from(value) else {
        key.push(0);
        return;
    };
    let version = bytes[6] >> 4;
    key.push(1 + version);
    if version == 1 {
        key.extend_from_slice(&[bytes[6] & 0x0f, bytes[7], bytes[4], bytes[5]]);
        key.extend_from_slice(&bytes[..4]);
        // The node and sequence half compares as signed bytes.
        key.extend(bytes[8..].iter().map(|byte| byte ^ 0x80));
    } else {
        key.extend_from_slice(&bytes);
    }
}

/// 00 becomes 00 ff and 00 00 ends the component, so that prefixes sort first.
fn put_escaped(value: &[u8], key: &mut Vec<u8>) {
    for &byte in value {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

fn native_literal(native: Native, literal: &Literal) -> Option<Bytes> {
    fn integer<T: core::str::FromStr>(literal: &Literal) -> Option<T> {
        match literal {
            Literal::Integer(text) => text.parse().ok(),
            _ => None,
        }
    }
    fn floating(literal: &Literal) -> Option<f64> {
        match literal {
            Literal::Integer(text) | Literal::Float(text) => text.parse().ok(),
            _ => None,
        }
    }
    let bytes: Vec<u8> = match (native, literal) {
        (Native::Int, _) => integer::<i32>(literal)?.to_be_bytes().into(),
        (Native::BigInt, _) => integer::<i64>(literal)?.to_be_bytes().into(),
        (Native::SmallInt, _) => integer::<i16>(literal)?.to_be_bytes().into(),
        (Native::TinyInt, _) => integer::<i8>(literal)?.to_be_bytes().into(),
        (Native::Timestamp, _) => integer::<i64>(literal)?.to_be_bytes().into(),
        (Native::Double, _) => floating(literal)?.to_be_bytes().into(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding to float is the meaning"
        )]
        (Native::Float, _) => (floating(literal)? as f32).to_be_bytes().into(),
        (Native::Boolean, Literal::Boolean(value)) => vec![u8::from(*value)],
        (Native::Text, Literal::Text(text)) => text.clone().into_bytes(),
        (Native::Ascii, Literal::Text(text)) if text.is_ascii() => text.clone().into_bytes(),
        (Native::Blob, Literal::Blob(bytes)) => bytes.clone(),
        (Native::Uuid, Literal::Uuid(bytes)) => bytes.to_vec(),
        (Native::TimeUuid, Literal::Uuid(bytes)) if bytes[6] >> 4 == 1 => bytes.to_vec(),
        (Native::Inet, Literal::Text(text)) => inet(text.parse().ok()?).to_vec(),
        _ => return None,
    };
    Some(bytes.into())
}

/// Serialized text.
pub(crate) fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// Serialized int.
pub(crate) fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Serialized bigint.
pub(crate) fn bigint(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Serialized double.
pub(crate) fn double(value: f64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Serialized boolean.
pub(crate) fn boolean(value: bool) -> Bytes {
    Bytes::copy_from_slice(&[u8::from(value)])
}

/// Serialized address.
pub(crate) fn inet(value: IpAddr) -> Bytes {
    match value {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

/// A serialized list or set of texts (sets must come sorted).
pub(crate) fn texts<'a>(values: impl ExactSizeIterator<Item = &'a str>) -> Bytes {
    let mut out = Writer::default();
    out.count(values.len());
    values.for_each(|value| out.bytes(value.as_bytes()));
    out.into_bytes().into()
}

/// A serialized map of text to text.
pub(crate) fn text_map<'a>(entries: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> Bytes {
    let mut out = Writer::default();
    out.count(entries.len());
    for (key, value) in entries {
        out.bytes(key.as_bytes());
        out.bytes(value.as_bytes());
    }
    out.into_bytes().into()
}

/// The elements of a serialized list, or none if it is not one.
pub(crate) fn list_elements(bytes: &[u8]) -> Option<Vec<Option<Bytes>>> {
    let mut reader = super::codec::Reader::new(bytes);
    let count = reader.int().ok()?;
    (0..count)
        .map(|_| Some(reader.bytes().ok()?.map(Bytes::copy_from_slice)))
        .collect()
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
            }
            out
        })
}

/// Bytes of hexadecimal text, spaces ignored.
#[cfg(test)]
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).expect("hexadecimal")).expect("nibble"))
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
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

    #[test]
    fn sort_keys_order_as_values_do() {
        fn key(native: Native, value: &[u8], descending: bool) -> Vec<u8> {
            let mut out = Vec::new();
            CqlType::Native(native).put_sort_key(value, descending, &mut out);
            out
        }
        let ints = [i32::MIN, -2, -1, 0, 1, i32::MAX].map(|value| int(value).to_vec());
        let doubles = [f64::NEG_INFINITY, -1.5, -0.25, 0.0, 0.25, 1e300]
            .map(|value| value.to_be_bytes().to_vec());
        let blobs = [&[][..], &[0], &[0, 0], &[0, 1], &[1], &[1, 0], &[255]].map(<[u8]>::to_vec);
        for (native, ascending) in [
            (Native::Int, &ints[..]),
            (Native::Double, &doubles),
            (Native::Blob, &blobs),
        ] {
            for pair in ascending.windows(2) {
                assert!(
                    key(native, &pair[0], false) < key(native, &pair[1], false),
                    "{pair:?}"
                );
                assert!(
                    key(native, &pair[0], true) > key(native, &pair[1], true),
                    "{pair:?}"
                );
            }
        }
    }
}
