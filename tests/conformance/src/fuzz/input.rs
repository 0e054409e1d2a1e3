//! Choices drawn from the bytes of an input.

/// Reads choices from the front of bytes. Behind the end every choice is 0.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no byte is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// The next two bytes as a big-endian number.
    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// The next byte, true in one of `rarity` cases; false behind the end.
    pub fn one_in(&mut self, rarity: u8) -> bool {
        self.byte() % rarity == rarity - 1
    }

    /// A number below `bound`, which is at least 1 and at most 256; 0 if it is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// As many bytes, or those that are left.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes behind a length of one byte.
    pub fn short(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// Bytes behind a length of two bytes.
    pub fn long(&mut self) -> &'a [u8] {
        let len = usize::from(self.word());
        self.take(len)
    }

    /// All that is left.
    pub const fn rest(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_end_in_zeros() {
        let mut input = Input::new(&[7, 1, 2, 3, 0, 2, 9, 8]);
        assert_eq!((input.below(4), input.word()), (3, 0x0102));
        assert!(input.one_in(4));
        assert_eq!(input.long(), [9, 8]);
        assert!(input.is_empty());
        assert_eq!((input.byte(), input.word(), input.one_in(2)), (0, 0, false));
        assert_eq!((input.short(), input.rest()), (&[][..], &[][..]));
    }
}
