//! A fixed ring of bytes in memory of the caller.

/// Bytes in the order in which they came.
pub(super) struct Ring<'d> {
    bytes: &'d mut [u8],
    start: usize,
    len: usize,
}

impl<'d> Ring<'d> {
    pub(super) const fn new(bytes: &'d mut [u8]) -> Self {
        Self {
            bytes,
            start: 0,
            len: 0,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) const fn clear(&mut self) {
        self.start = 0;
        self.len = 0;
    }

    /// Takes as many of `from` as there is room for.
    pub(super) fn push(&mut self, mut from: &[u8]) -> usize {
        let mut taken = 0;
        // Once up to the end of the memory, once from its start.
        for _ in 0..2 {
            let end = (self.start + self.len) % self.bytes.len().max(1);
            let room = self.bytes.len() - self.len;
            let space = self.bytes.get_mut(end..).unwrap_or_default();
            let len = space.len().min(room).min(from.len());
            let (now, later) = from.split_at(len);
            space.iter_mut().zip(now).for_each(|(to, byte)| *to = *byte);
            (self.len, taken, from) = (self.len + len, taken + len, later);
        }
        taken
    }

    /// The oldest bytes, those that lie together.
    pub(super) fn front(&self) -> &[u8] {
        let end = (self.start + self.len).min(self.bytes.len());
        self.bytes.get(self.start..end).unwrap_or_default()
    }

    /// Forgets the oldest `len` bytes, at most all.
    pub(super) fn consume(&mut self, len: usize) {
        let len = len.min(self.len);
        self.start = (self.start + len) % self.bytes.len().max(1);
        self.len -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn what_goes_in_comes_out() {
        for capacity in [0, 1, 2, 7, 64] {
            let mut memory = vec![0; capacity];
            let mut ring = Ring::new(&mut memory);
            let (mut model, mut next, mut state) = (VecDeque::new(), 0_u8, 1_u32);
            for _ in 0..2_000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let len = (state >> 8) as usize % 9;
                if state >> 31 == 0 {
                    let offered: Vec<u8> = (0..len as u8).map(|at| next.wrapping_add(at)).collect();
                    let taken = ring.push(&offered);
                    assert_eq!(taken, len.min(capacity - model.len()));
                    model.extend(&offered[..taken]);
                    next = next.wrapping_add(taken as u8);
                } else {
                    let front = ring.front();
                    assert_eq!(front.is_empty(), model.is_empty());
                    assert!(front.iter().eq(model.iter().take(front.len())));
                    ring.consume(len);
                    model.drain(..len.min(model.len()));
                }
                assert_eq!(ring.is_empty(), model.is_empty());
            }
        }
    }
}
