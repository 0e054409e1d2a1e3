//! Orders drawn from one number: all of a few, and a tour over many without a list of them.

use crate::rng::SmallRng;

/// Fisher and Yates, from the numbers that follow from `entropy`.
pub(super) fn shuffle<T>(items: &mut [T], entropy: u64) {
    let mut rng = SmallRng::from_seed(entropy);
    for at in (1..items.len()).rev() {
        let bound = at.saturating_add(1) as u64;
        items.swap(at, usize::try_from(rng.below(bound)).unwrap_or(at));
    }
}

/// Every number below `len` once, from a start and in steps that `entropy` chooses. Not every
/// order can come up, but the node that follows a dead one differs from draw to draw, which a
/// plain rotation would not give.
pub(super) struct Tour {
    len: usize,
    next: usize,
    step: usize,
    left: usize,
}

impl Tour {
    pub(super) fn new(len: usize, entropy: u64) -> Self {
        let mut rng = SmallRng::from_seed(entropy);
        let next = usize::try_from(rng.below(len as u64)).unwrap_or(0);
        let which = usize::try_from(rng.below(STEPS.len() as u64)).unwrap_or(0);
        // A prime above every length shares no factor with it, nor does its remainder.
        let step = STEPS
            .get(which)
            .and_then(|step| step.checked_rem(len))
            .unwrap_or(0);
        Self {
            len,
            next,
            step,
            left: len,
        }
    }
}

impl Iterator for Tour {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = at
            .saturating_add(self.step)
            .checked_rem(self.len)
            .unwrap_or(0);
        Some(at)
    }
}

/// Primes above the greatest number of nodes.
const STEPS: [usize; 8] = [
    65_537, 65_539, 65_543, 65_551, 65_557, 65_563, 65_579, 65_581,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn tours_visit_every_place_once() {
        for step in STEPS {
            assert!(
                step > 65_535 && (2..300).all(|divisor| step % divisor != 0),
                "{step}"
            );
        }
        for len in (0..150).chain([4096, 65_535]) {
            for entropy in 0..16 {
                let mut places: Vec<usize> = Tour::new(len, entropy).collect();
                places.sort_unstable();
                assert!(places.iter().copied().eq(0..len), "{len}");
            }
        }
    }
}
