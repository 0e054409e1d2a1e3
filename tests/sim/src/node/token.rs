//! Tokens of partition keys and the shard a token falls on.
//!
//! The hash is Murmur3 x64 128 with Cassandra's quirk: tail bytes are sign-extended. The shard
//! function is `biased-token-round-robin`; it holds for vnode tables only.

/// The token of a serialized partition key.
pub(crate) fn token_of(key: &[u8]) -> i64 {
    match murmur3(key) {
        i64::MIN => i64::MAX,
        token => token,
    }
}

/// The bytes that are hashed: a single component bare, several each framed.
pub(crate) fn partition_key<'a>(
    components: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Option<Vec<u8>> {
    let single = components.len() == 1;
    let mut out = Vec::new();
    for component in components {
        if single {
            out.extend_from_slice(component);
        } else {
            out.extend_from_slice(&u16::try_from(component.len()).ok()?.to_be_bytes());
            out.extend_from_slice(component);
            out.push(0);
        }
    }
    Some(out)
}

/// The shard of a token on a node of `shards` shards that ignores `msb` bits.
pub(crate) fn shard_of(token: i64, shards: u32, msb: u32) -> u32 {
    let biased = token.cast_unsigned() ^ (1 << 63);
    let shifted = biased.checked_shl(msb).unwrap_or(0);
    let shard = (u128::from(shifted) * u128::from(shards)) >> 64;
    u32::try_from(shard).unwrap_or(0)
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn murmur3(key: &[u8]) -> i64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let [mut k1, mut k2] = halves(block);
        k1 = k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 = (h1 ^ k1)
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        k2 = k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h2 = (h2 ^ k2)
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    let (mut k1, mut k2) = (0u64, 0u64);
    for (at, byte) in tail.iter().enumerate() {
        let extended = i64::from(byte.cast_signed()).cast_unsigned() << (8 * (at % 8));
        if at < 8 {
            k1 ^= extended;
        } else {
            k2 ^= extended;
        }
    }
    h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finish(h1).wrapping_add(finish(h2)).cast_signed()
}

fn halves(block: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*block);
    let low = u64::try_from(whole & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(whole >> 64).unwrap_or(0);
    [low, high]
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::super::value::unhex;
    use super::*;

    #[test]
    fn tokens_of_real_keys() {
        let cases: &[(&str, i64)] = &[
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
            ("000000000000000080", -4068329539335837472),
            ("ffffffffffffffffffffffffffffff", -2195530867418009455),
            ("30313233343536373839616263646566", 5467490433528156583),
            ("3031323334353637383961626364656680", -8908152328711491375),
            ("00112233445566778899aabbccddeeff", 5713842290320563023),
            ("", 0),
            ("ee961629b0b5ad1d319e18e83892dbed", i64::MAX),
            ("825e338005a83d5ce7ec3afc6a63448b", i64::MAX),
        ];
        for (key, token) in cases {
            assert_eq!(token_of(&unhex(key)), *token, "{key}");
        }
    }

    #[test]
    fn composite_keys_frame_every_component() {
        let cases: &[(&[&[u8]], i64)] = &[
            (&[&[0, 0, 0, 1], b"a"], 6516349416904725244),
            (&[b"a", &[0, 0, 0, 1]], 8247712171917364652),
            (
                &[&[0, 0, 0, 1], &[0, 0, 0, 2], &[0, 0, 0, 3]],
                8040417039359760683,
            ),
            (&[b"", b"x"], -3884662248573342722),
        ];
        for (components, token) in cases {
            let key = partition_key(components.iter().copied()).unwrap();
            assert_eq!(token_of(&key), *token);
        }
        assert_eq!(partition_key([&b"abc"[..]].into_iter()).unwrap(), b"abc");
    }

    #[test]
    fn shards_of_tokens() {
        // token, then shards for (2,12) (3,12) (8,12) (12,12) (8,0) (12,0)
        let cases: &[(i64, [u32; 6])] = &[
            (-9223372036854775807, [0, 0, 0, 0, 0, 0]),
            (-6017608668500074083, [1, 2, 6, 9, 1, 2]),
            (-4503599627370496, [0, 0, 0, 0, 3, 5]),
            (-1, [1, 2, 7, 11, 3, 5]),
            (0, [0, 0, 0, 0, 4, 6]),
            (2251799813685248, [1, 1, 4, 6, 4, 6]),
            (4507812186440344727, [1, 2, 7, 11, 5, 8]),
            (9223372036854775807, [1, 2, 7, 11, 7, 11]),
        ];
        let settings = [(2, 12), (3, 12), (8, 12), (12, 12), (8, 0), (12, 0)];
        for (token, expected) in cases {
            for ((shards, msb), shard) in settings.iter().zip(expected) {
                assert_eq!(
                    shard_of(*token, *shards, *msb),
                    *shard,
                    "{token} {shards} {msb}"
                );
            }
        }
        assert_eq!(shard_of(-1, 1, 12), 0);
        assert_eq!(shard_of(-1, 8, 64), 0);
    }
}
