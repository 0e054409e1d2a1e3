//! Bytes on their way to the shell: words, byte strings, numbers.

use alloc::vec::Vec;

use crate::message::Effect;

/// Outputs on their way to the shell.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn set_deadline(&mut self, deadline: f64) {
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = deadline.to_le_bytes();
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins an output that concerns a link, a request or a node.
    pub(crate) fn put(&mut self, effect: Effect, number: u32) {
        self.put_word(effect as u32);
        self.put_word(number);
    }

    pub(crate) fn put_word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// A number that may be absent.
    pub(crate) fn put_maybe(&mut self, number: Option<u16>) {
        self.put_word(number.map_or(NONE, u32::from));
    }

    /// Length, bytes, and zeros up to the next word.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_word(word(bytes.len()));
        self.bytes.extend_from_slice(bytes);
        self.fill_word();
    }

    pub(crate) fn put_text(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }

    pub(crate) fn put_number(&mut self, number: f64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// A 64-bit number that must keep all of its bits.
    #[cfg(feature = "full")]
    pub(crate) fn put_long(&mut self, number: i64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Room for `count` words, filled with zeros; where it begins.
    pub(crate) fn reserve_words(&mut self, count: usize) -> usize {
        let at = self.bytes.len();
        self.bytes
            .resize(at.saturating_add(count.saturating_mul(WORD)), 0);
        at
    }

    /// Words that were reserved.
    pub(crate) fn reserved(&mut self, at: usize) -> impl Iterator<Item = &mut [u8; WORD]> {
        let (words, _) = self.bytes.get_mut(at..).unwrap_or_default().as_chunks_mut();
        words.iter_mut()
    }

    /// Takes back what was written since the outbox was this long.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes bytes in place of those held.
    #[cfg(feature = "full")]
    pub(crate) fn set(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// Forgets everything; keeps the memory if it is little.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_MAX);
    }

    fn fill_word(&mut self) {
        let len = self.bytes.len().next_multiple_of(WORD);
        self.bytes.resize(len, 0);
    }
}

pub(crate) fn word(len: usize) -> u32 {
    // Lengths fit where addresses are 32 bits.
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Stands for a number that is absent.
pub(crate) const NONE: u32 = u32::MAX;

const WORD: usize = 4;

/// Memory that an empty outbox may keep.
const KEPT_MAX: usize = 64 << 10;
