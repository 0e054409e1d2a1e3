//! Which bytes are a value of a type, and the one form that sets and maps have among equal ones.

use bytes::Bytes;

use super::super::codec::{Reader, Writer};
use super::super::error::CqlError;
use super::{CqlType, Native, duration};

impl Native {
    /// Serialized length where it is fixed. Zero length is legal on top of this.
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

    fn admits(self, bytes: &[u8]) -> bool {
        match self {
            Self::Ascii => bytes.is_ascii(),
            Self::Text => core::str::from_utf8(bytes).is_ok(),
            Self::Inet => matches!(bytes.len(), 0 | 4 | 16),
            Self::Decimal => bytes.is_empty() || bytes.len() > 4,
            Self::Duration => duration::parse(bytes).is_some(),
            Self::TimeUuid => bytes.is_empty() || (bytes.len() == 16 && bytes[6] >> 4 == 1),
            _ => self
                .fixed_len()
                .is_none_or(|len| bytes.is_empty() || bytes.len() == len),
        }
    }
}

impl CqlType {
    /// Refuses bytes that are no value of the type.
    pub(crate) fn check(&self, bytes: &[u8], column: &str) -> Result<(), CqlError> {
        match self.native() {
            Some(native) if native.admits(bytes) => Ok(()),
            Some(_) => Err(self.invalid(bytes, column)),
            None => self.canonical(bytes, column).map(drop),
        }
    }

    /// The value with its sets and maps in order and without repetitions.
    pub(crate) fn canonical(&self, bytes: &[u8], column: &str) -> Result<Bytes, CqlError> {
        let mut out = Writer::default();
        match self.put_canonical(bytes, &mut out) {
            Some(()) => Ok(out.into_bytes().into()),
            None => Err(self.invalid(bytes, column)),
        }
    }

    fn invalid(&self, bytes: &[u8], column: &str) -> CqlError {
        CqlError::Invalid(format!(
            "Exception while binding column {column}: marshaling error: Validation failed for \
             type {self}: got {} bytes",
            bytes.len()
        ))
    }

    /// Length of the elements of a vector that need not say theirs.
    pub(crate) fn vector_element_len(&self) -> Option<usize> {
        match self {
            Self::Native(Native::Boolean) => Some(1),
            Self::Native(Native::Int | Native::Float) => Some(4),
            Self::Native(Native::BigInt | Native::Double | Native::Timestamp) => Some(8),
            Self::Native(Native::Uuid | Native::TimeUuid) => Some(16),
            Self::Vector(element, len) => {
                element.vector_element_len()?.checked_mul(usize::from(*len))
            }
            _ => None,
        }
    }

    fn put_canonical(&self, bytes: &[u8], out: &mut Writer) -> Option<()> {
        match self {
            Self::Native(native) => {
                native.admits(bytes).then_some(())?;
                out.raw(bytes);
            }
            Self::Frozen(inner) => inner.put_canonical(bytes, out)?,
            Self::List(element) => {
                let elements = elements(bytes)?;
                out.count(elements.len());
                for bytes in elements {
                    put_element(element, bytes, out)?;
                }
            }
            Self::Set(element) => {
                let mut sorted = Vec::new();
                for bytes in elements(bytes)? {
                    sorted.push((element.sort_key(bytes), bytes));
                }
                sorted.sort();
                sorted.dedup_by(|a, b| a.0 == b.0);
                out.count(sorted.len());
                for (_, bytes) in sorted {
                    put_element(element, bytes, out)?;
                }
            }
            Self::Map(key, value) => {
                let mut sorted = Vec::new();
                for [k, v] in entries(bytes)? {
                    sorted.push((key.sort_key(k), k, v));
                }
                // Of a repeated key the last entry counts.
                sorted.reverse();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                sorted.dedup_by(|a, b| a.0 == b.0);
                out.count(sorted.len());
                for (_, k, v) in sorted {
                    put_element(key, k, out)?;
                    put_element(value, v, out)?;
                }
            }
            Self::Tuple(types) => put_fields(types.iter(), bytes, out)?,
            Self::User(user) => put_fields(user.fields.iter().map(|(_, ty)| ty), bytes, out)?,
            Self::Vector(element, len) => {
                for bytes in vector_elements(element, *len, bytes)? {
                    element.put_canonical(bytes, &mut Writer::default())?;
                }
                out.raw(bytes);
            }
        }
        Some(())
    }

    /// Bytes that compare as values do.
    pub(crate) fn sort_key(&self, bytes: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(bytes.len() + 2);
        self.put_sort_key(bytes, false, &mut key);
        key
    }
}

fn put_element(ty: &CqlType, bytes: &[u8], out: &mut Writer) -> Option<()> {
    let mut element = Writer::default();
    ty.put_canonical(bytes, &mut element)?;
    out.bytes(element.as_slice());
    Some(())
}

/// Fields may be null, and the last ones may be missing.
fn put_fields<'a>(
    mut types: impl Iterator<Item = &'a CqlType>,
    bytes: &[u8],
    out: &mut Writer,
) -> Option<()> {
    let mut reader = Reader::new(bytes);
    while !reader.rest().is_empty() {
        let ty = types.next()?;
        match reader.bytes().ok()? {
            Some(bytes) => put_element(ty, bytes, out)?,
            None => out.int(-1),
        }
    }
    Some(())
}

/// The elements of a serialized list or set: none of them null, nothing after them.
pub(crate) fn elements(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader::new(bytes);
    let count = reader.int().ok()?;
    let mut out = Vec::new();
    for _ in 0..u32::try_from(count).ok()? {
        out.push(reader.bytes().ok()??);
    }
    reader.rest().is_empty().then_some(out)
}

/// The entries of a serialized map.
pub(crate) fn entries(bytes: &[u8]) -> Option<Vec<[&[u8]; 2]>> {
    let mut reader = Reader::new(bytes);
    let count = reader.int().ok()?;
    let mut out = Vec::new();
    for _ in 0..u32::try_from(count).ok()? {
        out.push([reader.bytes().ok()??, reader.bytes().ok()??]);
    }
    reader.rest().is_empty().then_some(out)
}

/// The fields of a serialized tuple or user type, as many as it has.
pub(crate) fn fields(bytes: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::new();
    while !reader.rest().is_empty() {
        out.push(reader.bytes().ok()?);
    }
    Some(out)
}

/// The elements of a serialized vector.
pub(crate) fn vector_elements<'a>(
    element: &CqlType,
    len: u16,
    bytes: &'a [u8],
) -> Option<Vec<&'a [u8]>> {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::new();
    for _ in 0..len {
        let len = match element.vector_element_len() {
            Some(len) => len,
            None => usize::try_from(duration::unsigned(&mut reader)?).ok()?,
        };
        out.push(reader.take(len).ok()?);
    }
    reader.rest().is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::super::{hex, unhex};
    use super::*;

    fn ty(native: Native) -> CqlType {
        CqlType::Native(native)
    }

    #[test]
    fn natives_admit_what_a_node_admits() {
        // Type, values it admits, values it refuses.
        let cases: &[(Native, &[&str], &[&str])] = &[
            (Native::Ascii, &["", "617f"], &["80"]),
            (
                Native::BigInt,
                &["", "0000000000000001"],
                &["00", "000000000000000001"],
            ),
            (Native::Boolean, &["", "00", "01"], &["0001"]),
            (
                Native::Decimal,
                &["", "0000000001", "0000000201f4"],
                &["00", "00000000"],
            ),
            (Native::Double, &["", "3ff0000000000000"], &["3ff00000"]),
            (
                Native::Inet,
                &["", "7f000001", "00000000000000000000000000000001"],
                &["7f"],
            ),
            (Native::Date, &["", "80000000"], &["8000"]),
            (Native::SmallInt, &["", "0001"], &["01", "00000001"]),
            (Native::Text, &["", "c3a9"], &["c3", "ff"]),
            (
                Native::TimeUuid,
                &["", "8e2f9f0072f511e6a1bb000000000000"],
                &["8e2f9f0072f541e6a1bb000000000000", "00"],
            ),
            (Native::Varint, &["", "00", "ff7f"], &[]),
            // 1 month, 2 days, 3 ns; signs must agree.
            (
                Native::Duration,
                &["020406"],
                &["", "0204", "02030c", "02040600"],
            ),
        ];
        for (native, good, bad) in cases {
            for text in *good {
                assert!(native.admits(&unhex(text)), "{native:?} {text}");
            }
            for text in *bad {
                assert!(!native.admits(&unhex(text)), "{native:?} {text}");
            }
        }
    }

    #[test]
    fn sets_and_maps_are_put_in_order() {
        let int = ty(Native::Int);
        let cases = [
            (
                CqlType::Set(Box::new(int.clone())),
                "00000003 00000004 00000002 00000004 ffffffff 00000004 00000002",
                Some("00000002 00000004 ffffffff 00000004 00000002"),
            ),
            (
                CqlType::Map(Box::new(int.clone()), Box::new(ty(Native::Text))),
                "00000002 00000004 00000001 00000001 61 00000004 00000001 00000001 62",
                Some("00000001 00000004 00000001 00000001 62"),
            ),
            // Null elements, counts that lie, bytes left over.
            (CqlType::list(int.clone()), "00000001 ffffffff", None),
            (
                CqlType::list(int.clone()),
                "00000002 00000004 00000001",
                None,
            ),
            (CqlType::list(int.clone()), "00000000 00", None),
            (CqlType::list(int.clone()), "7fffffff", None),
            (CqlType::list(int.clone()), "", None),
            // Tuples may be short, have nulls, but no more than their fields.
            (
                CqlType::Tuple(vec![int.clone(), int.clone()]),
                "ffffffff",
                Some("ffffffff"),
            ),
            (CqlType::Tuple(vec![int.clone()]), "ffffffff ffffffff", None),
            (
                CqlType::Vector(Box::new(int.clone()), 2),
                "00000001 00000002",
                Some("00000001 00000002"),
            ),
            (CqlType::Vector(Box::new(int), 2), "00000001", None),
            // Elements of other lengths have a vint before them.
            (
                CqlType::Vector(Box::new(ty(Native::Text)), 2),
                "01 61 02 6263",
                Some("01 61 02 6263"),
            ),
            (
                CqlType::Vector(Box::new(ty(Native::Text)), 2),
                "01 61 02 62",
                None,
            ),
        ];
        for (ty, given, expected) in cases {
            let found = ty
                .canonical(&unhex(given), "c")
                .ok()
                .map(|bytes| hex(&bytes));
            assert_eq!(
                found,
                expected.map(|text| text.replace(' ', "")),
                "{ty} {given}"
            );
        }
    }
}
