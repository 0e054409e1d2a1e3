//! A buffer that lies on the stack until it outgrows it.
//!
//! Values of most requests are some tens of bytes; encoding them costs no heap call. Once above
//! `N` the content moves to the heap and stays there.

use alloc::vec::Vec;
use core::fmt;

use super::writer::{Sink, patch_slice};

/// Up to `N` bytes inline, more on the heap.
#[derive(Clone)]
pub struct SmallBuffer<const N: usize> {
    inline: [u8; N],
    inline_len: usize,
    /// Holds everything once the content was longer than `N`; `inline` is stale then.
    heap: Option<Vec<u8>>,
}

impl<const N: usize> SmallBuffer<N> {
    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            inline: [0; N],
            inline_len: 0,
            heap: None,
        }
    }

    /// Forgets the content and keeps what was allocated.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// The content.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.heap {
            Some(heap) => heap,
            None => self.inline.get(..self.inline_len).unwrap_or_default(),
        }
    }

    /// Whether the content moved to the heap.
    #[must_use]
    pub const fn is_spilled(&self) -> bool {
        self.heap.is_some()
    }
}

impl<const N: usize> Sink for SmallBuffer<N> {
    fn len(&self) -> usize {
        self.heap.as_ref().map_or(self.inline_len, Vec::len)
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(heap) = &mut self.heap {
            heap.extend_from_slice(bytes);
            return;
        }
        let end = self.inline_len.saturating_add(bytes.len());
        if let Some(place) = self.inline.get_mut(self.inline_len..end) {
            place.copy_from_slice(bytes);
            self.inline_len = end;
            return;
        }
        let mut heap = Vec::with_capacity(end.max(N.saturating_mul(2)));
        heap.extend_from_slice(self.as_slice());
        heap.extend_from_slice(bytes);
        self.heap = Some(heap);
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        match &mut self.heap {
            Some(heap) => patch_slice(heap, at, bytes),
            None => {
                let written = self.inline.get_mut(..self.inline_len).unwrap_or_default();
                patch_slice(written, at, bytes);
            }
        }
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.heap {
            Some(heap) => heap.truncate(len),
            None => self.inline_len = self.inline_len.min(len),
        }
    }
}

impl<const N: usize> AsRef<[u8]> for SmallBuffer<N> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<const N: usize> Default for SmallBuffer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the length only: the content may be a user's data or a secret.
impl<const N: usize> fmt::Debug for SmallBuffer<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SmallBuffer")
            .field("len", &self.len())
            .field("is_spilled", &self.is_spilled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn behaves_like_a_vector_at_every_split() {
        let content: Vec<u8> = (0..40).collect();
        for split in 0..=content.len() {
            for cut in 0..=content.len() {
                let mut buffer = SmallBuffer::<16>::new();
                let mut model = Vec::new();
                for part in [&content[..split], &content[split..]] {
                    buffer.put(part);
                    model.extend_from_slice(part);
                    assert_eq!(buffer.as_slice(), model);
                    assert_eq!(buffer.is_spilled(), model.len() > 16);
                }
                buffer.patch(split.min(39), &[0xff]);
                model[split.min(39)] = 0xff;
                buffer.truncate(cut);
                model.truncate(cut);
                assert_eq!(buffer.as_slice(), model);
                buffer.put(b"x");
                model.push(b'x');
                assert_eq!((buffer.as_slice(), buffer.len()), (&model[..], model.len()));
            }
        }
    }

    #[test]
    fn cleared_it_is_empty_and_stays_where_it_is() {
        for (content, is_spilled) in [(&b"short"[..], false), (b"longer than eight", true)] {
            let mut buffer = SmallBuffer::<8>::new();
            buffer.put(content);
            buffer.clear();
            assert_eq!(
                (buffer.as_slice(), buffer.is_spilled()),
                (&[][..], is_spilled)
            );
        }
    }

    #[test]
    fn the_content_does_not_show_when_printed() {
        let mut buffer = SmallBuffer::<8>::new();
        buffer.put(b"secret");
        let shown = format!("{buffer:?}");
        assert_eq!(shown, "SmallBuffer { len: 6, is_spilled: false }");
    }
}
