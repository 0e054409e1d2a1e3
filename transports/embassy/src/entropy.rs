//! Randomness that the firmware must bring: the stack's source ports and sequence numbers, the
//! driver's jitter and choices, the keys of TLS. A stack with the same seed after each boot takes
//! the same source ports again, which the peer may still hold to be open.

use core::convert::Infallible;
use core::fmt;

use rand_core::TryRng;

/// A source of true randomness: the chip's generator, noise of a converter, a seed kept in flash
/// and changed at each boot.
pub trait Entropy {
    /// Fills `into` with random bytes.
    fn fill(&mut self, into: &mut [u8]) -> Result<(), EntropyError>;
}

/// A generator's reading function is a source.
impl<F: FnMut(&mut [u8]) -> Result<(), EntropyError>> Entropy for F {
    fn fill(&mut self, into: &mut [u8]) -> Result<(), EntropyError> {
        self(into)
    }
}

/// Why there is no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntropyError {
    /// The source could not give any.
    Unavailable,
    /// The source repeats itself.
    Stuck,
    /// A constant was given instead of a source, in a release build.
    Constant,
}

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "the source of entropy gives none",
            Self::Stuck => "the source of entropy repeats itself",
            Self::Constant => "a constant is no source of entropy",
        })
    }
}

impl core::error::Error for EntropyError {}

/// Numbers that differ from boot to boot: for `embassy_net::new`, for the transport, and for the
/// session, as a generator of `rand_core`. They are unpredictable only as far as nobody has seen
/// any of them: they are not for keys.
#[derive(Debug)]
pub struct Seed {
    state: u64,
}

impl Seed {
    /// Draws a seed. A source that gives the same word again and again is refused.
    pub fn from_entropy(source: &mut impl Entropy) -> Result<Self, EntropyError> {
        let mut words = [0; 3];
        for word in &mut words {
            let mut bytes = [0; 8];
            source.fill(&mut bytes)?;
            *word = u64::from_le_bytes(bytes);
        }
        let [first, second, third] = words;
        // Once in 2^63 boots this is a mistake.
        if first == second || second == third {
            return Err(EntropyError::Stuck);
        }
        Ok(Self {
            state: first ^ second.rotate_left(21) ^ third.rotate_left(42),
        })
    }

    /// The same numbers at each boot, for tests and simulations.
    ///
    /// # Errors
    ///
    /// [`EntropyError::Constant`] in builds without debug assertions.
    pub const fn constant(seed: u64) -> Result<Self, EntropyError> {
        if cfg!(debug_assertions) {
            Ok(Self { state: seed })
        } else {
            Err(EntropyError::Constant)
        }
    }

    /// The next number, by SplitMix64.
    #[inline(never)]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl TryRng for Seed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        for chunk in into.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of true randomness, for a test.
    fn generator(mut state: u8) -> impl FnMut(&mut [u8]) -> Result<(), EntropyError> {
        move |into| {
            for byte in into {
                state = state.wrapping_mul(167).wrapping_add(13);
                *byte = state;
            }
            Ok(())
        }
    }

    #[test]
    fn boots_differ() {
        let mut seeds: Vec<u64> = (0..=255)
            .map(|boot| Seed::from_entropy(&mut generator(boot)).unwrap().next_u64())
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 256);
    }

    #[test]
    fn a_source_that_repeats_itself_or_is_silent_is_refused() {
        for byte in [0, 0xAA, 0xFF] {
            let mut stuck = |into: &mut [u8]| {
                into.fill(byte);
                Ok(())
            };
            let refused = Seed::from_entropy(&mut stuck).map(|_| ());
            assert_eq!(refused, Err(EntropyError::Stuck));
        }
        let mut silent = |_: &mut [u8]| Err(EntropyError::Unavailable);
        let refused = Seed::from_entropy(&mut silent).map(|_| ());
        assert_eq!(refused, Err(EntropyError::Unavailable));
    }

    #[test]
    fn a_constant_is_for_debug_builds_only() {
        let constant = Seed::constant(7).map(|mut seed| seed.next_u64());
        if cfg!(debug_assertions) {
            assert_eq!(constant, Seed::constant(7).map(|mut seed| seed.next_u64()));
        } else {
            assert_eq!(constant, Err(EntropyError::Constant));
        }
    }

    #[test]
    fn bytes_are_those_of_the_words() {
        let Ok(mut seed) = Seed::constant(1) else {
            return;
        };
        let mut bytes = [0; 12];
        seed.try_fill_bytes(&mut bytes).unwrap();
        let mut again = Seed::constant(1).unwrap();
        assert_eq!(bytes[..8], again.next_u64().to_le_bytes());
        assert_eq!(bytes[8..], again.next_u64().to_le_bytes()[..4]);
    }
}
