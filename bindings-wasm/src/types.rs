//! Types as the shell parses them, written from the bytes that came without a picture of them in
//! between.

use alloc::string::String;
use alloc::vec::Vec;

use messina_core::wire::response::{TypeOption, TypeOptionKind};

/// Appends the text of a type. Its depth was bounded where core walked it.
pub(crate) fn put_type(text: &mut String, ty: TypeOption<'_>) {
    let (name, first, second) = match ty.kind() {
        TypeOptionKind::List(element) => ("list<", element, None),
        TypeOptionKind::Set(element) => ("set<", element, None),
        TypeOptionKind::Map(key, value) => ("map<", key, Some(value)),
        TypeOptionKind::Tuple(fields) => {
            text.push_str("tuple");
            let mut separator = '<';
            for field in fields.iter() {
                text.push(core::mem::replace(&mut separator, ','));
                put_type(text, field);
            }
            return text.push('>');
        }
        TypeOptionKind::Udt {
            keyspace,
            name,
            fields,
        } => {
            text.push('{');
            put_name(text, keyspace.as_bytes());
            text.push('.');
            put_name(text, name.as_bytes());
            for (name, field) in fields.iter() {
                text.push(' ');
                put_name(text, name.as_bytes());
                text.push(' ');
                put_type(text, field);
            }
            return text.push('}');
        }
        TypeOptionKind::Custom(class) => return put_class(text, class),
        TypeOptionKind::Native(number) => return put_native(text, number),
        _ => return,
    };
    text.push_str(name);
    put_type(text, first);
    if let Some(second) = second {
        text.push(',');
        put_type(text, second);
    }
    text.push('>');
}

fn put_native(text: &mut String, number: u16) {
    let known = NATIVE.iter().find(|(known, ..)| *known == number);
    match known {
        Some((_, name, _)) => text.push_str(name),
        None => {
            text.push_str("type 0x");
            for shift in [12, 8, 4, 0] {
                let digit = u32::from(number >> shift & 15);
                text.push(char::from_digit(digit, 16).unwrap_or_default());
            }
        }
    }
}

/// A name in quotation marks; one within is doubled. What is no text is left out.
fn put_name(text: &mut String, name: &[u8]) {
    text.push('"');
    for part in core::str::from_utf8(name).unwrap_or_default().chars() {
        if part == '"' {
            text.push('"');
        }
        text.push(part);
    }
    text.push('"');
}

/// A class of the server's: one that is known is an ordinary type, any other stays as it is.
fn put_class(text: &mut String, class: &str) {
    let (len, mut rest) = (text.len(), class);
    let known = put_known(text, &mut rest, CLASS_DEPTH_MAX);
    if known.is_none() || !rest.trim_ascii().is_empty() {
        text.truncate(len);
        text.push('\'');
        text.push_str(class);
        text.push('\'');
    }
}

/// `None` if it is not known; the text may hold a part of it then.
fn put_known(text: &mut String, rest: &mut &str, depth_left: usize) -> Option<()> {
    let depth_left = depth_left.checked_sub(1)?;
    let name = word(rest);
    let name = name.strip_prefix(PACKAGE).unwrap_or(name);
    let is_native = |(_, _, class): &&(u16, &str, &str)| *class == name;
    if let Some((_, name, _)) = NATIVE.iter().find(is_native) {
        text.push_str(name);
        return Some(());
    }
    expect(rest, b'(')?;
    match name {
        "FrozenType" | "ReversedType" => put_known(text, rest, depth_left)?,
        "UserType" => {
            text.push('{');
            put_name(text, word(rest).as_bytes());
            expect(rest, b',')?;
            text.push('.');
            put_hex_name(text, word(rest))?;
            while expect(rest, b',').is_some() {
                text.push(' ');
                put_hex_name(text, word(rest))?;
                expect(rest, b':')?;
                text.push(' ');
                put_known(text, rest, depth_left)?;
            }
            text.push('}');
        }
        _ => {
            let (opening, parts) = match name {
                "ListType" => ("list<", 1),
                "SetType" => ("set<", 1),
                "MapType" => ("map<", 2),
                "TupleType" => ("tuple<", usize::MAX),
                "VectorType" => ("vector<", 0),
                _ => return None,
            };
            text.push_str(opening);
            put_known(text, rest, depth_left)?;
            for _ in 1..parts {
                if expect(rest, b',').is_none() {
                    if parts == usize::MAX {
                        break;
                    }
                    return None;
                }
                text.push(',');
                put_known(text, rest, depth_left)?;
            }
            if parts == 0 {
                expect(rest, b',')?;
                let digits = word(rest);
                let dimension = digits.parse::<u32>().ok()?;
                if dimension == 0 || digits.starts_with('+') {
                    return None;
                }
                text.push(',');
                text.push_str(digits);
            }
            text.push('>');
        }
    }
    expect(rest, b')')
}

/// A name in hexadecimal.
fn put_hex_name(text: &mut String, digits: &str) -> Option<()> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut name = Vec::new();
    for [high, low] in pairs {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        name.push(u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?);
    }
    core::str::from_utf8(&name).ok()?;
    put_name(text, &name);
    Some(())
}

/// Everything up to the next delimiter, without spaces around.
fn word<'a>(rest: &mut &'a str) -> &'a str {
    let is_delimiter = |byte: &u8| matches!(byte, b'(' | b')' | b',' | b':');
    let end = rest.bytes().position(|byte| is_delimiter(&byte));
    let (word, after) = rest
        .split_at_checked(end.unwrap_or(rest.len()))
        .unwrap_or_default();
    *rest = after;
    word.trim_ascii()
}

fn expect(rest: &mut &str, delimiter: u8) -> Option<()> {
    let trimmed = rest.trim_ascii();
    if trimmed.as_bytes().first() != Some(&delimiter) {
        return None;
    }
    *rest = trimmed.get(1..)?;
    Some(())
}

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Classes within classes, far more than anybody nests.
const CLASS_DEPTH_MAX: usize = 32;

/// Types without parameters: number, name, class.
const NATIVE: [(u16, &str, &str); 22] = [
    (0x01, "ascii", "AsciiType"),
    (0x02, "bigint", "LongType"),
    (0x03, "blob", "BytesType"),
    (0x04, "boolean", "BooleanType"),
    (0x05, "counter", "CounterColumnType"),
    (0x06, "decimal", "DecimalType"),
    (0x07, "double", "DoubleType"),
    (0x08, "float", "FloatType"),
    (0x09, "int", "Int32Type"),
    (0x0a, "text", "UTF8Type"),
    (0x0b, "timestamp", "TimestampType"),
    (0x0b, "timestamp", "DateType"),
    (0x0c, "uuid", "UUIDType"),
    (0x0d, "text", "UTF8Type"),
    (0x0e, "varint", "IntegerType"),
    (0x0f, "timeuuid", "TimeUUIDType"),
    (0x10, "inet", "InetAddressType"),
    (0x11, "date", "SimpleDateType"),
    (0x12, "time", "TimeType"),
    (0x13, "smallint", "ShortType"),
    (0x14, "tinyint", "ByteType"),
    (0x15, "duration", "DurationType"),
];
