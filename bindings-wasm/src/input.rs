//! What the shell writes before its calls, and how words and byte strings are read from it.

use alloc::vec::Vec;

use bytes::BytesMut;
use messina_core::error::Error;
use messina_core::wire::request::BatchKind;

use crate::message::INPUT_KEPT_MAX;
use crate::settings::broken_input;

/// The memory that the shell writes to.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    incoming: BytesMut,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            incoming: BytesMut::new(),
        }
    }

    /// Room for what later calls read, for at least `len` bytes; keeps what was written.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        &mut self.bytes
    }

    /// The first `len` bytes; the memory is kept if it is little.
    pub(crate) fn take(&mut self, len: usize) -> BytesMut {
        let taken = BytesMut::from(self.bytes.get(..len).unwrap_or_default());
        if len > INPUT_KEPT_MAX {
            self.bytes = Vec::new();
        }
        taken
    }

    /// Room for bytes that came from a link.
    pub(crate) fn room_for_incoming(&mut self, len: usize) -> &mut [u8] {
        self.incoming = BytesMut::zeroed(len);
        &mut self.incoming
    }

    pub(crate) fn take_incoming(&mut self) -> BytesMut {
        core::mem::take(&mut self.incoming)
    }
}

/// The kind of a batch by the protocol's number.
pub(crate) const fn batch_kind(number: u32) -> BatchKind {
    match number {
        0 => BatchKind::Logged,
        1 => BatchKind::Unlogged,
        _ => BatchKind::Counter,
    }
}

pub(crate) fn take_word(input: &mut &[u8]) -> Result<u32, Error> {
    let (word, rest) = input.split_first_chunk().ok_or_else(broken_input)?;
    *input = rest;
    Ok(u32::from_le_bytes(*word))
}

/// A byte string, without the zeros behind it, which the last one need not have.
pub(crate) fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let len = usize::try_from(take_word(input)?).unwrap_or(usize::MAX);
    let (bytes, rest) = input.split_at_checked(len).ok_or_else(broken_input)?;
    let padding = len.wrapping_neg() & 3;
    *input = rest.get(padding..).unwrap_or_default();
    Ok(bytes)
}
