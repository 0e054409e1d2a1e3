//! Numbers written in decimal digits, read by one function for all their types.

use core::num::NonZeroU16;

/// The number of a text, if it is one of that type.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    T::try_from(any_number(text)?).ok()
}

/// The same for a number that is not 0.
pub(crate) fn nonzero(text: &str) -> Option<NonZeroU16> {
    number(text).and_then(NonZeroU16::new)
}

#[inline(never)]
fn any_number(text: &str) -> Option<u64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_as_the_library_reads_it() {
        for text in [
            "",
            "0",
            "7",
            "65535",
            "65536",
            "-1",
            "+5",
            "1 ",
            "99999999999999999999",
        ] {
            assert_eq!(number::<u16>(text), text.parse().ok(), "{text}");
            assert_eq!(number::<u32>(text), text.parse().ok(), "{text}");
            assert_eq!(
                number::<i32>(text).filter(|n| *n >= 0),
                text.parse().ok().filter(|n: &i32| *n >= 0)
            );
            assert_eq!(nonzero(text), text.parse().ok(), "{text}");
        }
    }
}
