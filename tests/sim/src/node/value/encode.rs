//! Serialized values of what the node itself has to say, and readings of what it was given.

use core::net::IpAddr;

use bytes::Bytes;

use super::super::codec::Writer;

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
    let mut reader = super::super::codec::Reader::new(bytes);
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
