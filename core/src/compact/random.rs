//! Chance for choices and pauses, from one seed.

/// Marsaglia's xorshift64: a few instructions where the generator of `rng` multiplies 64 bits,
/// which small machines do in software.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        // Its only flaw is a state of 0.
        Self(if seed == 0 { 1 } else { seed })
    }

    #[inline(never)]
    pub(super) const fn next(&mut self) -> u64 {
        let mut word = self.0;
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.0 = word;
        word
    }

    /// A number below `bound`.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        match (self.next() >> 1).checked_rem(bound) {
            Some(below) => below,
            None => 0,
        }
    }

    pub(super) fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            let bound = u64::try_from(end).unwrap_or(0).saturating_add(1);
            let other = usize::try_from(self.below(bound)).unwrap_or(0);
            if let Ok([one, other]) = values.get_disjoint_mut([end, other]) {
                core::mem::swap(one, other);
            }
        }
    }
}
