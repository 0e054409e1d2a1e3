//! MurmurHash3 x64 128 with seed 0, first half only, as Cassandra and ScyllaDB compute it.
//!
//! It differs from the published function in one point: the bytes of the tail (length mod 16) are
//! sign-extended before they are shifted and mixed in. The hash is streaming and does not
//! allocate, so a key can be hashed while it is written; any split of the input gives the same.

/// Hash state over the bytes written so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Murmur3 {
    state: State,
    /// Bytes of an unfinished block: the first `tail_len` are valid.
    tail: [u8; BLOCK],
    tail_len: usize,
    len: u64,
}

/// What whole blocks are mixed into.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    h1: u64,
    h2: u64,
}

impl Murmur3 {
    /// The hash of bytes that are there at once.
    pub(super) fn of(bytes: &[u8]) -> i64 {
        let mut state = State::default();
        let (blocks, tail) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            state.mix_block(block);
        }
        state.end(tail, bytes.len() as u64)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.len = self.len.wrapping_add(bytes.len() as u64);
        let rest = if self.tail_len == 0 {
            bytes
        } else {
            self.fill_tail(bytes)
        };
        if rest.is_empty() {
            return;
        }
        let (blocks, remainder) = rest.as_chunks::<BLOCK>();
        for block in blocks {
            self.state.mix_block(block);
        }
        self.fill_tail(remainder);
    }

    /// Appends to the unfinished block and returns what did not fit; mixes the block when full.
    fn fill_tail<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let free = self.tail.get_mut(self.tail_len..).unwrap_or_default();
        let taken = free.len().min(bytes.len());
        let (now, later) = bytes.split_at_checked(taken).unwrap_or((bytes, &[]));
        for (slot, &byte) in free.iter_mut().zip(now) {
            *slot = byte;
        }
        self.tail_len = self.tail_len.saturating_add(taken);
        if self.tail_len == BLOCK {
            let block = self.tail;
            self.state.mix_block(&block);
            self.tail_len = 0;
        }
        later
    }

    /// The first half of the hash, read as signed.
    pub(super) fn finish(&self) -> i64 {
        let tail = self.tail.get(..self.tail_len).unwrap_or_default();
        self.state.end(tail, self.len)
    }
}

impl State {
    fn mix_block(&mut self, block: &[u8; BLOCK]) {
        let both = u128::from_le_bytes(*block);
        let (k1, k2) = halves(both);
        self.h1 ^= mix_k1(k1);
        self.h1 = self.h1.rotate_left(27).wrapping_add(self.h2);
        self.h1 = self.h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.h2 ^= mix_k2(k2);
        self.h2 = self.h2.rotate_left(31).wrapping_add(self.h1);
        self.h2 = self.h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    fn end(self, tail: &[u8], len: u64) -> i64 {
        let Self { mut h1, mut h2 } = self;
        let (low, high) = tail.split_at_checked(8).unwrap_or((tail, &[]));
        if !high.is_empty() {
            h2 ^= mix_k2(signed_tail(high));
        }
        h1 ^= mix_k1(signed_tail(low));
        h1 ^= len;
        h2 ^= len;
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        final_mix(h1).wrapping_add(final_mix(h2)).cast_signed()
    }
}

/// Each byte sign-extended to 64 bits, shifted to its place and mixed in by exclusive or: from the last
/// one on, so that every shift is the same.
fn signed_tail(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word: u64, byte| {
        (word << 8) ^ i64::from(byte.cast_signed()).cast_unsigned()
    })
}

/// Low and high 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
fn halves(both: u128) -> (u64, u64) {
    (both as u64, (both >> 64) as u64)
}

#[cfg_attr(target_pointer_width = "32", inline(never))]
fn mix_k1(k1: u64) -> u64 {
    k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[cfg_attr(target_pointer_width = "32", inline(never))]
fn mix_k2(k2: u64) -> u64 {
    k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[cfg_attr(target_pointer_width = "32", inline(never))]
fn final_mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

const BLOCK: usize = 16;
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

#[cfg(test)]
mod tests {
    use super::*;

    /// Published tokens: keys as hexadecimal digits, hashes before any normalisation.
    const VECTORS: &[(&str, i64)] = &[
        ("", 0),
        ("00000000", -3485513579396041028),
        ("00000001", -4069959284402364209),
        ("00000002", -3248873570005575792),
        ("ffffffff", 7297452126230313552),
        ("0000000000000000", 2945182322382062539),
        ("0000000000000001", 6292367497774912474),
        ("ffffffffffffffff", 7071048584287372947),
        ("61", -8839064797231613815),
        ("74657374", -6017608668500074083),
        ("7864", 4507812186440344727),
        ("7072696d6172795f6b6579", -1632642444691073360),
        ("6b72656dc3b3776b69", 4354931215268080151),
        ("80", -5284281814142962636),
        ("ff", -4442228696663692417),
        ("7f", 5072634478945617755),
        ("000000000000000080", -4068329539335837472),
        ("ffffffffffffffffffffffffffffff", -2195530867418009455),
        ("30313233343536373839616263646566", 5467490433528156583),
        ("3031323334353637383961626364656680", -8908152328711491375),
        ("00112233445566778899aabbccddeeff", 5713842290320563023),
        ("ee961629b0b5ad1d319e18e83892dbed", i64::MIN),
        ("825e338005a83d5ce7ec3afc6a63448b", i64::MAX),
        (
            "00104327529fb645dd00b883ec39ae448bb800000400066a6b00",
            -9223371632693506265,
        ),
        ("e282ace282ace282ac", -237928824752068304),
        ("c5bcc3b3c582c48765696365", -7307028612644817931),
    ];

    fn bytes(hex: &str) -> std::vec::Vec<u8> {
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn hashes_published_keys_in_any_split() {
        for &(hex, expected) in VECTORS {
            let key = bytes(hex);
            assert_eq!(Murmur3::of(&key), expected, "{hex} at once");
            for first in 0..=key.len() {
                for second in first..=key.len() {
                    let mut hash = Murmur3::default();
                    hash.write(&key[..first]);
                    hash.write(&key[first..second]);
                    hash.write(&key[second..]);
                    assert_eq!(hash.finish(), expected, "{hex} cut at {first} and {second}");
                }
            }
        }
    }

    /// Longer inputs: byte by byte, in one piece and in pieces of every size agree.
    #[test]
    fn long_inputs_do_not_depend_on_chunks() {
        let key: std::vec::Vec<u8> = (0..97_u8).map(|at| at.wrapping_mul(91) ^ 0xa5).collect();
        for len in 0..key.len() {
            let mut whole = Murmur3::default();
            whole.write(&key[..len]);
            assert_eq!(
                Murmur3::of(&key[..len]),
                whole.finish(),
                "{len} bytes at once"
            );
            for size in 1..=len {
                let mut pieces = Murmur3::default();
                for piece in key[..len].chunks(size) {
                    pieces.write(piece);
                }
                assert_eq!(
                    pieces.finish(),
                    whole.finish(),
                    "{len} bytes in pieces of {size}"
                );
            }
        }
    }

    /// Several blocks, and bytes below 80, where the signed tail changes nothing: the values are
    /// those of the plain MurmurHash3_x64_128, from its reference implementation.
    #[test]
    fn blocks_are_mixed_as_the_reference_does() {
        let key: std::vec::Vec<u8> = (0..97_u16).map(|at| (33 + at * 7 % 90) as u8).collect();
        for (len, expected) in [
            (31, -871512257297667645_i64),
            (32, -3133914024497862335_i64),
            (33, -406622163060908086_i64),
            (48, 528012829072806675_i64),
            (97, -7429962978374192466_i64),
        ] {
            let mut hash = Murmur3::default();
            hash.write(&key[..len]);
            assert_eq!(hash.finish(), expected, "{len}");
        }
    }
}
