//! A bounds-checked cursor over bytes that came from the network.
//!
//! Every read says what it reads, so that a failure names it, and either takes the whole thing or
//! leaves an error; a length is compared with what is left before it is used for anything. The
//! cursor borrows: strings and byte strings are slices of the body.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::Deref;

use uuid::Uuid;

use crate::digits::{put_hex, put_number, put_signed};
use crate::words::put;

/// Why bytes could not be read. It dereferences to the [`ParseFacts`], which stands on the heap: one
/// word goes through the many results that never fail, in place of five.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(Box<ParseFacts>);

/// What was being read, where, and what was wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseFacts {
    /// What was being read; without feature `field-names` always the same words.
    pub what: &'static str,
    /// Offset in the bytes given to the reader.
    pub at: u32,
    /// What was wrong.
    pub kind: ParseErrorKind,
}

/// What can be wrong with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The bytes end too early.
    Truncated {
        /// Bytes needed.
        needed: u32,
        /// Bytes left.
        left: u32,
    },
    /// Bytes follow where the thing should have ended.
    Trailing {
        /// Bytes too many.
        extra: u32,
    },
    /// A length that cannot be: negative, or not one of those allowed.
    BadLength {
        /// The length seen.
        len: i32,
    },
    /// A count that cannot be: negative, or more than the bytes can hold.
    BadCount {
        /// The count seen.
        count: i32,
    },
    /// Null where something must be.
    Null,
    /// Text that is not UTF-8.
    NotUtf8,
    /// A number that the protocol does not define here.
    UnknownCode {
        /// The number seen.
        code: u32,
    },
    /// A number outside its range.
    OutOfRange,
    /// Types nested deeper than this crate follows.
    TooDeep,
}

impl ParseError {
    pub(crate) fn put_text(&self, text: &mut String) {
        put(text, self.what);
        put(text, " at byte ");
        put_number(text, u64::from(self.at));
        put(text, ": ");
        match self.kind {
            ParseErrorKind::Truncated { needed, left } => {
                put(text, "needs ");
                put_number(text, u64::from(needed));
                put(text, " bytes, ");
                put_number(text, u64::from(left));
                put(text, " left");
            }
            ParseErrorKind::Trailing { extra } => {
                put_number(text, u64::from(extra));
                put(text, " bytes too many");
            }
            ParseErrorKind::BadLength { len } => {
                put(text, "bad length ");
                put_signed(text, len);
            }
            ParseErrorKind::BadCount { count } => {
                put(text, "bad count ");
                put_signed(text, count);
            }
            ParseErrorKind::UnknownCode { code } => {
                put(text, "unknown code 0x");
                put_hex(text, code, 1);
            }
            ParseErrorKind::Null => put(text, "null"),
            ParseErrorKind::NotUtf8 => put(text, "not UTF-8"),
            ParseErrorKind::OutOfRange => put(text, "out of range"),
            ParseErrorKind::TooDeep => put(text, "nested too deeply"),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put_text(&mut text);
        formatter.write_str(&text)
    }
}

impl core::error::Error for ParseError {}

impl ParseError {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(what: &'static str, at: u32, kind: ParseErrorKind) -> Self {
        // Without names nothing keeps the text, so that neither it nor its way here is in the image.
        let what = if cfg!(any(feature = "field-names", test)) {
            what
        } else {
            "a field"
        };
        Self(Box::new(ParseFacts { what, at, kind }))
    }
}

impl Deref for ParseError {
    type Target = ParseFacts;

    fn deref(&self) -> &ParseFacts {
        &self.0
    }
}

/// A position in a slice. Cloning it remembers a place.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            total: bytes.len(),
        }
    }

    /// Takes `len` bytes.
    pub fn take(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], ParseError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.truncated(what, len));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes `N` bytes by value.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ParseError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.truncated(what, N));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// A `[byte]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn byte(&mut self, what: &'static str) -> Result<u8, ParseError> {
        Ok(u8::from_be_bytes(self.array(what)?))
    }

    /// A `[short]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn short(&mut self, what: &'static str) -> Result<u16, ParseError> {
        Ok(u16::from_be_bytes(self.array(what)?))
    }

    /// An `[int]`.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn int(&mut self, what: &'static str) -> Result<i32, ParseError> {
        Ok(i32::from_be_bytes(self.array(what)?))
    }

    /// An `[int]` that is a set of bits, so that the highest one is no sign.
    pub fn bits(&mut self, what: &'static str) -> Result<u32, ParseError> {
        self.int(what).map(i32::cast_unsigned)
    }

    /// An `[int]` that counts things and so cannot be negative.
    pub fn count(&mut self, what: &'static str) -> Result<u32, ParseError> {
        let start = self.clone();
        let count = self.int(what)?;
        u32::try_from(count).map_err(|_| start.error(what, ParseErrorKind::BadCount { count }))
    }

    /// A `[long]`.
    pub fn long(&mut self, what: &'static str) -> Result<i64, ParseError> {
        Ok(i64::from_be_bytes(self.array(what)?))
    }

    /// A `[uuid]`.
    pub fn uuid(&mut self, what: &'static str) -> Result<Uuid, ParseError> {
        Ok(Uuid::from_bytes(self.array(what)?))
    }

    /// A `[string]`: two bytes of length, then UTF-8.
    pub fn string(&mut self, what: &'static str) -> Result<&'a str, ParseError> {
        let start = self.clone();
        let bytes = self.short_bytes(what)?;
        core::str::from_utf8(bytes).map_err(|_| start.error(what, ParseErrorKind::NotUtf8))
    }

    /// `[short bytes]`: two bytes of length, then bytes.
    pub fn short_bytes(&mut self, what: &'static str) -> Result<&'a [u8], ParseError> {
        let len = self.short(what)?;
        self.take(what, usize::from(len))
    }

    /// `[bytes]`: four bytes of length, then bytes; any negative length is null.
    pub fn bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, ParseError> {
        match usize::try_from(self.int(what)?) {
            Ok(len) => self.take(what, len).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// An `[inetaddr]`: one byte of length, 4 or 16, and the address.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn inet_address(&mut self, what: &'static str) -> Result<IpAddr, ParseError> {
        let start = self.clone();
        match self.byte(what)? {
            4 => Ok(IpAddr::from(self.array::<4>(what)?)),
            16 => Ok(IpAddr::from(self.array::<16>(what)?)),
            len => Err(start.error(
                what,
                ParseErrorKind::BadLength {
                    len: i32::from(len),
                },
            )),
        }
    }

    /// An `[inet]`: address and port.
    pub fn inet(&mut self, what: &'static str) -> Result<SocketAddr, ParseError> {
        let address = self.inet_address(what)?;
        let start = self.clone();
        let port = u16::try_from(self.int(what)?)
            .map_err(|_| start.error(what, ParseErrorKind::OutOfRange))?;
        Ok(SocketAddr::new(address, port))
    }

    /// Fails if anything is left.
    pub fn finish(&self, what: &'static str) -> Result<(), ParseError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.error(
            what,
            ParseErrorKind::Trailing {
                extra: clamp(self.rest.len()),
            },
        ))
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.total.saturating_sub(self.rest.len())
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes between an earlier place of the same reader and this one.
    #[must_use]
    pub(crate) fn since(&self, start: &Self) -> &'a [u8] {
        let len = start.rest.len().saturating_sub(self.rest.len());
        start.rest.get(..len).unwrap_or_default()
    }

    /// An error at the current place.
    #[must_use]
    #[cold]
    #[inline(never)]
    pub fn error(&self, what: &'static str, kind: ParseErrorKind) -> ParseError {
        ParseError::new(what, clamp(self.position()), kind)
    }

    pub(crate) fn unknown_code(&self, what: &'static str, code: u32) -> ParseError {
        self.error(what, ParseErrorKind::UnknownCode { code })
    }

    #[cold]
    #[inline(never)]
    fn truncated(&self, what: &'static str, needed: usize) -> ParseError {
        let kind = ParseErrorKind::Truncated {
            needed: clamp(needed),
            left: clamp(self.rest.len()),
        };
        self.error(what, kind)
    }
}

/// A size for an error message; bodies are below `u32::MAX`, other slices may not be.
#[expect(
    clippy::cast_possible_truncation,
    reason = "compared with the bound first"
)]
const fn clamp(size: usize) -> u32 {
    if size > u32::MAX as usize {
        u32::MAX
    } else {
        size as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_says_what_and_where() {
        let mut reader = Reader::new(&[0, 1, 0x61, 0, 5, 0x62]);
        assert_eq!(reader.string("name"), Ok("a"));
        assert_eq!(reader.position(), 3);
        assert_eq!(
            reader.string("keyspace"),
            Err(ParseError::new(
                "keyspace",
                5,
                ParseErrorKind::Truncated { needed: 5, left: 1 }
            ))
        );
        assert_eq!(
            Reader::new(&[0, 1, 0xff]).string("name").unwrap_err().kind,
            ParseErrorKind::NotUtf8
        );
        assert_eq!(
            Reader::new(&[1]).finish("body").unwrap_err().kind,
            ParseErrorKind::Trailing { extra: 1 }
        );
    }

    #[test]
    fn lengths_are_compared_before_they_are_used() {
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff]).bytes("x"), Ok(None));
        assert_eq!(Reader::new(&[0x80, 0, 0, 0]).bytes("x"), Ok(None));
        assert_eq!(Reader::new(&[0, 0, 0, 0]).bytes("x"), Ok(Some(&[][..])));
        assert_eq!(
            Reader::new(&[0x7f, 0xff, 0xff, 0xff, 1])
                .bytes("x")
                .unwrap_err()
                .kind,
            ParseErrorKind::Truncated {
                needed: 0x7fff_ffff,
                left: 1
            }
        );
        assert_eq!(
            Reader::new(&[0x80, 0, 0, 0]).count("x").unwrap_err(),
            ParseError::new("x", 0, ParseErrorKind::BadCount { count: i32::MIN })
        );
    }

    #[test]
    fn addresses_have_four_or_sixteen_bytes() {
        for len in 0..=u8::MAX {
            let mut bytes = [0_u8; 21];
            bytes[0] = len;
            let parsed = Reader::new(&bytes).inet("address");
            assert_eq!(parsed.is_ok(), len == 4 || len == 16, "{len}");
        }
        let bytes = [4, 127, 0, 0, 2, 0, 0, 0x23, 0x52];
        assert_eq!(
            Reader::new(&bytes).inet("a").unwrap().to_string(),
            "127.0.0.2:9042"
        );
        let bytes = [4, 127, 0, 0, 2, 0, 1, 0, 0];
        assert_eq!(
            Reader::new(&bytes).inet("a").unwrap_err().kind,
            ParseErrorKind::OutOfRange
        );
    }

    #[test]
    fn numbers_are_big_endian() {
        let bytes = [0x80, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 9];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.long("long"), Ok(-0x7ffe_fdfc_fbfa_f9f9));
        assert_eq!(reader.byte("byte"), Ok(9));
        assert!(reader.long("long").is_err());
    }

    #[test]
    fn errors_say_what_was_wrong_and_where() {
        use ParseErrorKind::*;
        let kinds = [
            (Truncated { needed: 4, left: 1 }, "needs 4 bytes, 1 left"),
            (Trailing { extra: 2 }, "2 bytes too many"),
            (BadLength { len: -7 }, "bad length -7"),
            (BadCount { count: -8 }, "bad count -8"),
            (Null, "null"),
            (NotUtf8, "not UTF-8"),
            (UnknownCode { code: 0x1f }, "unknown code 0x1f"),
            (OutOfRange, "out of range"),
            (TooDeep, "nested too deeply"),
        ];
        for (kind, told) in kinds {
            let error = ParseError::new("type", 6, kind);
            assert_eq!(error.to_string(), format!("type at byte 6: {told}"));
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn sizes_beyond_an_error_are_told_as_the_largest() {
        for (size, told) in [
            (usize::MAX, u32::MAX),
            (1 << 32, u32::MAX),
            (0xffff_ffff, u32::MAX),
            (0xffff_fffe, u32::MAX - 1),
        ] {
            assert_eq!(clamp(size), told);
        }
    }

    use std::format;
    use std::string::ToString;
}
