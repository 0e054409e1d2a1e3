//! Puts response primitives into a growing buffer.
//!
//! Lengths are cut at what their field can say; the callers only write what the node made itself.

use bytes::Bytes;

use super::{HEADER_LEN, opcode};

/// A body, or a value, under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.out
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn short(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn int(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    /// A bit mask or a length, as the unsigned reading of an int.
    pub(crate) fn uint(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn long(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A count that cannot leave the range of a short in a well-formed schema.
    pub(crate) fn short_count(&mut self, count: usize) {
        self.short(u16::try_from(count).unwrap_or(u16::MAX));
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.int(i32::try_from(count).unwrap_or(i32::MAX));
    }

    pub(crate) fn string(&mut self, text: &str) {
        let mut len = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.short_count(len);
        self.raw(&text.as_bytes()[..len]);
    }

    pub(crate) fn short_bytes(&mut self, bytes: &[u8]) {
        self.short_count(bytes.len());
        self.raw(bytes);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    pub(crate) fn value(&mut self, value: Option<&Bytes>) {
        match value {
            Some(bytes) => self.bytes(bytes),
            None => self.int(-1),
        }
    }

    pub(crate) fn string_list<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) {
        self.short_count(texts.len());
        texts.for_each(|text| self.string(text));
    }

    /// Appends a whole response frame to `out`.
    pub(crate) fn frame(
        out: &mut Vec<u8>,
        version: u8,
        flags: u8,
        stream: i16,
        code: u8,
        body: &[u8],
    ) {
        debug_assert!(code <= opcode::AUTH_SUCCESS);
        out.reserve(HEADER_LEN + body.len());
        out.extend_from_slice(&[version | 0x80, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.push(code);
        out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(body);
    }
}
