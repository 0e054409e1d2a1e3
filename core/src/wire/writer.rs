//! Where encoders write to, and the check on every length they write.
//!
//! [`Sink`] is a growing buffer that can patch what it holds and take back its end. The primitive
//! writers stand on the trait itself; those that write a length return [`EncodeError`] instead of
//! writing one that does not fit its field, so a lying length cannot leave this crate.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use bytes::BytesMut;

use crate::digits::put_number;
use crate::words::put;

use super::{Consistency, ProtocolVersion};

/// Why something could not be encoded. Nothing of it may be sent. It dereferences to the
/// [`EncodeFacts`], which stands on the heap, so that results are small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError(Box<EncodeFacts>);

/// What was being written, and what was wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeFacts {
    /// What was being written; without feature `field-names` always the same words.
    pub what: &'static str,
    /// What was wrong.
    pub kind: EncodeErrorKind,
}

/// What can be wrong with something to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// Longer than its length field can say.
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest that fits.
        max: u32,
    },
    /// More things than the count field can say.
    TooMany {
        /// Their number.
        count: usize,
        /// The most that fit.
        max: u32,
    },
    /// The protocol version has no place for it.
    NotInVersion(ProtocolVersion),
    /// The protocol version demands it, and it was not given.
    MissingInVersion(ProtocolVersion),
    /// Not allowed at this place (unset inside a collection, names in a batch).
    NotHere,
}

impl EncodeError {
    pub(crate) fn put_text(&self, text: &mut String) {
        put(text, self.what);
        let numbers = |text: &mut String, count: usize, unit: &str, max: u64| {
            put(text, ": ");
            put_number(text, u64::try_from(count).unwrap_or(u64::MAX));
            put(text, unit);
            put_number(text, max);
        };
        let (phrase, version) = match self.kind {
            EncodeErrorKind::TooLong { len, max } => {
                return numbers(text, len, " bytes, at most ", u64::from(max));
            }
            EncodeErrorKind::TooMany { count, max } => {
                return numbers(text, count, ", at most ", u64::from(max));
            }
            EncodeErrorKind::NotInVersion(version) => (": not in protocol v", Some(version)),
            EncodeErrorKind::MissingInVersion(version) => {
                (": required by protocol v", Some(version))
            }
            EncodeErrorKind::NotHere => (": not allowed here", None),
        };
        put(text, phrase);
        if let Some(version) = version {
            put_number(text, u64::from(version.number()));
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put_text(&mut text);
        formatter.write_str(&text)
    }
}

impl core::error::Error for EncodeError {}

impl EncodeError {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(what: &'static str, kind: EncodeErrorKind) -> Self {
        // As for `ParseError`: what nothing keeps is not in the image.
        let what = if cfg!(any(feature = "field-names", test)) {
            what
        } else {
            "a field"
        };
        Self(Box::new(EncodeFacts { what, kind }))
    }
}

impl Deref for EncodeError {
    type Target = EncodeFacts;

    fn deref(&self) -> &EncodeFacts {
        &self.0
    }
}

/// Checks a length that goes into an `[int]`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "compared with the bound first"
)]
pub fn int_length(what: &'static str, len: usize) -> Result<i32, EncodeError> {
    if len > i32::MAX as usize {
        let max = i32::MAX.unsigned_abs();
        return Err(EncodeError::new(
            what,
            EncodeErrorKind::TooLong { len, max },
        ));
    }
    Ok(len as i32)
}

/// Checks a length that goes into a `[short]`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "compared with the bound first"
)]
pub fn short_length(what: &'static str, len: usize) -> Result<u16, EncodeError> {
    if len > u16::MAX as usize {
        let max = u16::MAX as u32;
        return Err(EncodeError::new(
            what,
            EncodeErrorKind::TooLong { len, max },
        ));
    }
    Ok(len as u16)
}

/// Checks a count that goes into a `[short]`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "compared with the bound first"
)]
pub(crate) fn short_count(what: &'static str, count: usize) -> Result<u16, EncodeError> {
    if count > u16::MAX as usize {
        let max = u16::MAX as u32;
        return Err(EncodeError::new(
            what,
            EncodeErrorKind::TooMany { count, max },
        ));
    }
    Ok(count as u16)
}

/// A growing buffer that encoders append to.
///
/// `patch` outside of what was written does nothing, and is a bug of the caller.
pub trait Sink {
    /// Bytes held so far; the offset of the next one.
    fn len(&self) -> usize;

    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Overwrites bytes that were appended before.
    fn patch(&mut self, at: usize, bytes: &[u8]);

    /// Takes back everything from offset `len` on.
    fn truncate(&mut self, len: usize);

    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A `[byte]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn put_byte(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// A `[short]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn put_short(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    /// An `[int]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn put_int(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }

    /// An `[int]` that is a set of bits.
    fn put_bits(&mut self, value: u32) {
        self.put_int(value.cast_signed());
    }

    /// A `[long]`.
    fn put_long(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }

    /// A `[consistency]`.
    fn put_consistency(&mut self, value: Consistency) {
        self.put_short(value.code());
    }

    /// A `[string]`.
    fn put_string(&mut self, what: &'static str, value: &str) -> Result<(), EncodeError> {
        self.put_short_bytes(what, value.as_bytes())
    }

    /// A `[long string]`.
    fn put_long_string(&mut self, what: &'static str, value: &str) -> Result<(), EncodeError> {
        self.put_bytes(what, value.as_bytes())
    }

    /// `[bytes]` that are not null.
    fn put_bytes(&mut self, what: &'static str, value: &[u8]) -> Result<(), EncodeError> {
        self.put_int(int_length(what, value.len())?);
        self.put(value);
        Ok(())
    }

    /// `[short bytes]`.
    fn put_short_bytes(&mut self, what: &'static str, value: &[u8]) -> Result<(), EncodeError> {
        self.put_short(short_length(what, value.len())?);
        self.put(value);
        Ok(())
    }
}

/// Writes something whose `[int]` length in front is known only afterwards.
///
/// If the content fails or grows too long, the sink is as it was before.
pub fn length_prefixed<S: Sink + ?Sized, E: From<EncodeError>>(
    sink: &mut S,
    what: &'static str,
    content: impl FnOnce(&mut S) -> Result<(), E>,
) -> Result<(), E> {
    let start = sink.len();
    sink.put_int(0);
    let content_start = sink.len();
    let written = content(sink)
        .and_then(|()| Ok(int_length(what, sink.len().saturating_sub(content_start))?));
    match written {
        Ok(len) => {
            sink.patch(start, &len.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            sink.truncate(start);
            Err(error)
        }
    }
}

/// Overwrites a part of a slice, if it lies inside.
pub(super) fn patch_slice(target: &mut [u8], at: usize, bytes: &[u8]) {
    let place = target
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..bytes.len()));
    debug_assert!(
        place.is_some(),
        "patch at {at} of {} bytes outside the sink",
        bytes.len()
    );
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}

impl Sink for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        patch_slice(self, at, bytes);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

impl Sink for BytesMut {
    fn len(&self) -> usize {
        self.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        patch_slice(self, at, bytes);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn put(&mut self, bytes: &[u8]) {
        (**self).put(bytes);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        (**self).patch(at, bytes);
    }

    fn truncate(&mut self, len: usize) {
        (**self).truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn lengths_that_do_not_fit_their_field_are_refused() {
        assert_eq!(int_length("value", 0x7fff_ffff), Ok(i32::MAX));
        assert_eq!(
            int_length("value", 0x8000_0000).unwrap_err().kind,
            EncodeErrorKind::TooLong {
                len: 0x8000_0000,
                max: 0x7fff_ffff
            }
        );
        assert!(int_length("value", usize::MAX).is_err());
        assert_eq!(short_length("id", 65_535), Ok(65_535));
        assert_eq!(
            short_length("id", 65_536).unwrap_err().kind,
            EncodeErrorKind::TooLong {
                len: 65_536,
                max: 65_535
            }
        );
        assert_eq!(short_count("values", 65_535), Ok(65_535));
        assert_eq!(
            short_count("values", 65_536).unwrap_err().kind,
            EncodeErrorKind::TooMany {
                count: 65_536,
                max: 65_535
            }
        );
    }

    #[test]
    fn a_refused_string_leaves_nothing_behind() {
        let mut sink = Vec::new();
        let long = std::vec![0_u8; 65_536];
        sink.put_short_bytes("id", &long).unwrap_err();
        assert!(sink.is_empty());
        sink.put_short_bytes("id", &long[1..]).unwrap();
        assert_eq!(sink.len(), 65_537);
        assert_eq!(sink[..2], [0xff, 0xff]);
    }

    #[test]
    fn a_length_is_patched_or_the_whole_piece_taken_back() {
        let mut sink = std::vec![9_u8];
        length_prefixed::<_, EncodeError>(&mut sink, "piece", |sink| {
            sink.put(b"abc");
            Ok(())
        })
        .unwrap();
        assert_eq!(sink, [9, 0, 0, 0, 3, b'a', b'b', b'c']);
        let failure = || EncodeError::new("inner", EncodeErrorKind::NotHere);
        let result = length_prefixed(&mut sink, "piece", |sink| {
            sink.put(b"abc");
            Err(failure())
        });
        assert_eq!(result, Err(failure()));
        assert_eq!(sink.len(), 8);
    }

    #[test]
    fn errors_say_what_does_not_fit_and_why() {
        use EncodeErrorKind::*;
        let kinds = [
            (
                TooLong {
                    len: 70_000,
                    max: 65_535,
                },
                "70000 bytes, at most 65535",
            ),
            (
                TooMany {
                    count: 70_000,
                    max: 65_535,
                },
                "70000, at most 65535",
            ),
            (NotInVersion(ProtocolVersion::V3), "not in protocol v3"),
            (
                MissingInVersion(ProtocolVersion::V5),
                "required by protocol v5",
            ),
            (NotHere, "not allowed here"),
        ];
        for (kind, told) in kinds {
            let error = EncodeError::new("thing", kind);
            assert_eq!(error.to_string(), std::format!("thing: {told}"));
        }
    }

    /// Through every operation, so that none of an implementation's is left out.
    fn write(mut sink: impl Sink) {
        assert!(sink.is_empty());
        sink.put(b"abcde");
        sink.patch(1, b"XY");
        sink.truncate(4);
        assert_eq!((sink.len(), sink.is_empty()), (4, false));
    }

    #[test]
    fn a_borrowed_sink_is_the_sink() {
        let (mut vector, mut bytes) = (Vec::new(), BytesMut::new());
        write(&mut vector);
        write(&mut bytes);
        assert_eq!((&vector[..], &bytes[..]), (&b"aXYd"[..], &b"aXYd"[..]));
    }
}
