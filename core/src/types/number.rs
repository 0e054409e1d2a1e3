//! Counters, and numbers of any size: varint and decimal.
//!
//! A varint is kept as its shortest two's complement, so equal numbers are equal bytes. Arithmetic
//! is left to libraries made for it.

use alloc::boxed::Box;
use core::fmt;

/// The value of a counter column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(pub i64);

/// A whole number of any size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CqlVarint {
    /// Big-endian two's complement, at least one byte, none superfluous.
    bytes: Box<[u8]>,
}

impl CqlVarint {
    /// Takes a big-endian two's complement number, which need not be the shortest form. `None` if
    /// there is no byte.
    #[must_use]
    pub fn from_signed_bytes(mut bytes: &[u8]) -> Option<Self> {
        while let [first, rest @ ..] = bytes {
            let Some(second) = rest.first() else { break };
            let superfluous = match *first {
                0x00 => *second < 0x80,
                0xff => *second >= 0x80,
                _ => false,
            };
            if !superfluous {
                break;
            }
            bytes = rest;
        }
        (!bytes.is_empty()).then(|| Self {
            bytes: bytes.into(),
        })
    }

    /// The shortest big-endian two's complement form, which is also the form on the wire.
    #[must_use]
    pub const fn as_signed_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the number is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.bytes.first().is_some_and(|first| *first >= 0x80)
    }
}

impl From<i128> for CqlVarint {
    fn from(value: i128) -> Self {
        let zero = || Self {
            bytes: Box::from([0]),
        };
        Self::from_signed_bytes(&value.to_be_bytes()).unwrap_or_else(zero)
    }
}

impl From<i64> for CqlVarint {
    fn from(value: i64) -> Self {
        Self::from(i128::from(value))
    }
}

impl TryFrom<&CqlVarint> for i128 {
    type Error = NotRepresentable;

    fn try_from(value: &CqlVarint) -> Result<Self, NotRepresentable> {
        let mut wide = [if value.is_negative() { 0xff } else { 0 }; 16];
        let start = wide
            .len()
            .checked_sub(value.bytes.len())
            .ok_or(NotRepresentable)?;
        wide.get_mut(start..)
            .ok_or(NotRepresentable)?
            .copy_from_slice(&value.bytes);
        Ok(Self::from_be_bytes(wide))
    }
}

impl TryFrom<&CqlVarint> for i64 {
    type Error = NotRepresentable;

    fn try_from(value: &CqlVarint) -> Result<Self, NotRepresentable> {
        Self::try_from(i128::try_from(value)?).map_err(|_| NotRepresentable)
    }
}

/// The number does not fit the wanted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRepresentable;

impl fmt::Display for NotRepresentable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the number does not fit")
    }
}

impl core::error::Error for NotRepresentable {}

/// A decimal number: `unscaled` divided by ten to the power of `scale`.
///
/// Compared as written: 1.0 and 1.00 are two values, as they are for the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CqlDecimal {
    /// All digits.
    pub unscaled: CqlVarint,
    /// How many of them stand behind the point; may be negative.
    pub scale: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    pub(super) const EXACT: [(i128, &[u8]); 16] = [
        (0, &[0x00]),
        (-1, &[0xff]),
        (127, &[0x7f]),
        (128, &[0x00, 0x80]),
        (255, &[0x00, 0xff]),
        (256, &[0x01, 0x00]),
        (-128, &[0x80]),
        (-129, &[0xff, 0x7f]),
        (-256, &[0xff, 0x00]),
        (-10000, &[0xd8, 0xf0]),
        (1042342234234, &[0x00, 0xf2, 0xb0, 0x70, 0x48, 0x7a]),
        (
            0x7fff_ffff_ffff_ffff,
            &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ),
        (0x8000_0000_0000_0000, &[0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        (
            -0x8000_0000_0000_0001,
            &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ),
        (0x1_0000_0000_0000_0000, &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        (
            i128::MIN,
            &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
    ];

    #[test]
    fn exact_both_ways_in_the_shortest_form() {
        for (number, bytes) in EXACT {
            let varint = CqlVarint::from(number);
            assert_eq!(varint.as_signed_bytes(), bytes, "{number}");
            assert_eq!(CqlVarint::from_signed_bytes(bytes), Some(varint.clone()));
            assert_eq!(i128::try_from(&varint), Ok(number));
            assert_eq!(i64::try_from(&varint).ok(), i64::try_from(number).ok());
            assert_eq!(varint.is_negative(), number < 0);
        }
    }

    #[test]
    fn longer_forms_are_shortened_and_larger_numbers_kept() {
        let long = CqlVarint::from_signed_bytes(&[0, 0, 0, 0x7f]).unwrap();
        assert_eq!(long, CqlVarint::from(127_i64));
        let long = CqlVarint::from_signed_bytes(&[0xff, 0xff, 0xff, 0x80]).unwrap();
        assert_eq!(long, CqlVarint::from(-128_i64));
        assert_eq!(CqlVarint::from_signed_bytes(&[]), None);
        let mut bytes = Vec::from(0xb70c_efb9_c19c_9c51_1297_2fd0_1a4e_676d_u128.to_be_bytes());
        bytes.insert(0, 0);
        let large = CqlVarint::from_signed_bytes(&bytes).unwrap();
        assert_eq!(large.as_signed_bytes(), bytes);
        assert_eq!(i128::try_from(&large), Err(NotRepresentable));
    }
}
