//! From tokens to shards, by three ways of counting that must agree.

use messina_core::routing::{ShardMap, Token};

/// Exactly, step by step: bias, shift, drop what lies above, multiply, divide.
fn exactly(token: i64, count: u16, ignore_msb: u8) -> u128 {
    let biased = u128::try_from(i128::from(token) + (1 << 63)).unwrap();
    let shifted = (biased << ignore_msb) % (1 << 64);
    shifted * u128::from(count) / (1 << 64)
}

/// In halves, as where there are no wide numbers.
fn in_halves(token: i64, count: u16, ignore_msb: u8) -> u64 {
    let token = token.wrapping_add(i64::MIN) << ignore_msb;
    let low = token.cast_unsigned() & 0xffff_ffff;
    let high = token.cast_unsigned() >> 32;
    let sum = ((low * u64::from(count)) >> 32) + high * u64::from(count);
    sum >> 32
}

#[test]
fn shards_follow_both_published_formulas() {
    let tokens = (0..64).flat_map(|bit| {
        let power = 1_i64 << bit;
        let near = [power.wrapping_sub(1), power, power.wrapping_add(1)];
        near.map(|token| [token, token.wrapping_neg()])
    });
    let tokens: Vec<i64> = tokens
        .flatten()
        .chain([i64::MIN + 1, -1, 0, i64::MAX, -4_069_959_284_402_364_209])
        .filter(|token| *token != i64::MIN)
        .collect();
    for count in [1, 2, 3, 8, 12, 96, 255, 256, u16::MAX] {
        for ignore_msb in 0..64 {
            let map = ShardMap::new(count, ignore_msb).unwrap();
            for &token in &tokens {
                let shard = map.shard_of(Token::new(token)).value();
                let name = format!("{token} of {count}, {ignore_msb} ignored");
                assert_eq!(
                    u128::from(shard),
                    exactly(token, count, ignore_msb),
                    "{name}"
                );
                assert_eq!(
                    u64::from(shard),
                    in_halves(token, count, ignore_msb),
                    "{name}"
                );
                assert!(shard < count);
            }
        }
    }
}
