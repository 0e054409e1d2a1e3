//! The small fixed generator behind jitter, choices and routing entropy.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): one
//! word of state, the same stream for the same seed for ever, whatever dependency is updated.
//! Not for secrets.

use rand_core::Rng;

/// A pseudo-random generator whose stream depends on its seed alone.
#[derive(Clone, Debug)]
pub(crate) struct SmallRng(u64);

impl SmallRng {
    /// Takes one word from a source of randomness.
    pub(crate) fn from_source(source: &mut impl Rng) -> Self {
        Self(source.next_u64())
    }

    /// A generator with a known stream.
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias (at most `bound` / 2^64) is ignored.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

/// Scrambles one word: every input bit changes about half of the output bits.
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 1234567, as published with the reference implementation.
    #[test]
    fn follows_the_reference_stream() {
        let mut rng = SmallRng::from_seed(1_234_567);
        let expected = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for value in expected {
            assert_eq!(rng.next_u64(), value);
        }
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut rng = SmallRng::from_seed(7);
        let mut seen = [0_u32; 5];
        for _ in 0..1000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
