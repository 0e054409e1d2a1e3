//! A hasher seeded from the session's seed, for maps whose keys come from the network.
//!
//! Host ids are chosen by peers, so a fixed public hash would let one make all of them collide.
//! The multiply-and-fold step below is fast and mixes well under an unknown seed; it is not a
//! cryptographic function, and no map here is iterated, so its order cannot be observed.

use crate::rng::mix;
use core::hash::{BuildHasher, Hasher};

/// Makes hashers that all start from one seed.
#[derive(Clone, Debug)]
pub(crate) struct SeededState {
    start: u64,
    factor: u64,
}

impl SeededState {
    pub(crate) const fn new(seed: u64) -> Self {
        // Odd, so that multiplying by it loses nothing.
        Self {
            start: mix(seed),
            factor: mix(seed ^ 0xa5a5_a5a5_a5a5_a5a5) | 1,
        }
    }
}

impl BuildHasher for SeededState {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        SeededHasher {
            hash: self.start,
            factor: self.factor,
        }
    }
}

/// One hash in the making.
#[derive(Clone, Debug)]
pub(crate) struct SeededHasher {
    hash: u64,
    factor: u64,
}

impl SeededHasher {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "both halves are folded into one word"
    )]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word).wrapping_mul(u128::from(self.factor));
        self.hash = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (slot, &byte) in last.iter_mut().zip(rest) {
            *slot = byte;
        }
        // The length tells a short rest from one with zeros.
        self.fold(u64::from_le_bytes(last).wrapping_add(bytes.len() as u64));
    }

    fn finish(&self) -> u64 {
        mix(self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn depends_on_seed_and_key_alone() {
        let hash = |seed: u64, key: u128| SeededState::new(seed).hash_one(key.to_be_bytes());
        let mut seen = BTreeSet::new();
        for seed in 0..50 {
            for key in 0..50_u128 {
                assert_eq!(hash(seed, key), hash(seed, key));
                seen.insert(hash(seed, key));
                seen.insert(hash(seed, key << 64));
            }
        }
        // Zero is the same key in both rows.
        assert_eq!(seen.len(), 50 * 99);
    }
}
