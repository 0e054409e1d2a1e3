//! Variable-length integers: lengths of vector elements and the parts of a duration.
//!
//! The number of leading one bits of the first byte is the number of bytes that follow; the other
//! bits hold the number, high first. Signed numbers are folded (0, -1, 1, -2, …) first.

use crate::wire::{ParseError, Reader, Sink};

/// Reads an unsigned number.
pub(super) fn parse_unsigned(
    reader: &mut Reader<'_>,
    what: &'static str,
) -> Result<u64, ParseError> {
    let first = reader.byte(what)?;
    let extra = first.leading_ones();
    let mut value = u64::from(first) & (0xff_u64 >> extra);
    for byte in reader.take(what, usize::try_from(extra).unwrap_or(usize::MAX))? {
        value = value << 8 | u64::from(*byte);
    }
    Ok(value)
}

/// Reads a signed number.
pub(super) fn parse_signed(reader: &mut Reader<'_>, what: &'static str) -> Result<i64, ParseError> {
    let folded = parse_unsigned(reader, what)?;
    let half = (folded >> 1).cast_signed();
    Ok(if folded & 1 == 0 { half } else { !half })
}

/// Writes an unsigned number in as few bytes as possible.
pub(super) fn put_unsigned(sink: &mut dyn Sink, value: u64) {
    // Seven bits of each byte hold the number, except that a ninth byte makes room for all 64.
    let bits = u64::BITS.saturating_sub(value.leading_zeros()).max(1);
    let extra = bits.saturating_sub(1).div_euclid(7).min(8);
    let bytes = value.to_be_bytes();
    let extra_len = usize::try_from(extra).unwrap_or(usize::MAX);
    let (front, tail) = bytes
        .split_at_checked(bytes.len().saturating_sub(extra_len))
        .unwrap_or((&[], &bytes));
    let ones = !(0xff_u8.checked_shr(extra).unwrap_or(0));
    sink.put_byte(ones | front.last().copied().unwrap_or(0));
    sink.put(tail);
}

/// Writes a signed number in as few bytes as possible.
pub(super) fn put_signed(sink: &mut dyn Sink, value: i64) {
    put_unsigned(sink, (value << 1 ^ value >> 63).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const UNSIGNED: [(u64, &[u8]); 9] = [
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0x80, 0x80]),
        (0x3fff, &[0xbf, 0xff]),
        (0x4000, &[0xc0, 0x40, 0x00]),
        (0x0000_0002_0000_0000, &[0xf2, 0, 0, 0, 0]),
        (
            0x00ff_ffff_ffff_ffff,
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ),
        (0x0100_0000_0000_0000, &[0xff, 1, 0, 0, 0, 0, 0, 0, 0]),
        (u64::MAX, &[0xff; 9]),
    ];

    #[test]
    fn unsigned_numbers_both_ways_in_the_fewest_bytes() {
        for (value, bytes) in UNSIGNED {
            let mut sink = Vec::new();
            put_unsigned(&mut sink, value);
            assert_eq!(sink, bytes, "{value:x}");
            assert_eq!(parse_unsigned(&mut Reader::new(bytes), "number"), Ok(value));
            for cut in 0..bytes.len() {
                assert!(parse_unsigned(&mut Reader::new(&bytes[..cut]), "number").is_err());
            }
        }
    }

    #[test]
    fn every_power_of_two_and_its_neighbours_come_back() {
        for shift in 0..64 {
            for near in [-1_i64, 0, 1] {
                let value = (1_i64 << shift).wrapping_add(near);
                for value in [value, value.wrapping_neg()] {
                    let mut sink = Vec::new();
                    put_signed(&mut sink, value);
                    let mut reader = Reader::new(&sink);
                    assert_eq!(parse_signed(&mut reader, "number"), Ok(value));
                    assert!(reader.is_empty() && sink.len() <= 9);
                }
            }
        }
    }

    #[test]
    fn signs_are_folded() {
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (-64, 127)] {
            let mut sink = Vec::new();
            put_signed(&mut sink, value);
            assert_eq!(sink, [byte]);
        }
    }
}
