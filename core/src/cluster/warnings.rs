//! Warnings, each said once for the same cause.
//!
//! Texts come partly from peers, so both their number and their length are bounded; beyond that
//! new causes are not said.

use alloc::string::String;

use crate::sorted::SortedMap;

/// Whether anybody can hear them: `std` builds keep them for whoever runs the engine, others need
/// a log. Small builds are spared the texts and what writes them.
pub(super) const ARE_HEARD: bool = cfg!(any(test, feature = "std", feature = "tracing"));

/// The text of a warning, written as by `format!`; empty where it is not heard.
macro_rules! warning {
    ($($part:tt)*) => {
        if crate::cluster::warnings::ARE_HEARD {
            alloc::format!($($part)*)
        } else {
            alloc::string::String::new()
        }
    };
}

pub(super) use warning;

/// The causes that were said.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    said: SortedMap<String, ()>,
}

impl Warnings {
    /// The text, cut to its bound, if it was not said before.
    pub(super) fn once(&mut self, mut text: String) -> Option<String> {
        if !ARE_HEARD {
            return None;
        }
        if let Some((end, _)) = text.char_indices().nth(TEXT_LEN_MAX) {
            text.truncate(end);
        }
        if self.said.len() >= CAUSES_MAX || self.said.insert(text.clone(), ()).is_some() {
            return None;
        }
        Some(text)
    }
}

const CAUSES_MAX: usize = 256;
const TEXT_LEN_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn causes_are_said_once_and_bounded() {
        let mut warnings = Warnings::default();
        assert!(warnings.once("a".into()).is_some());
        assert!(warnings.once("a".into()).is_none());
        let said = (0..10_000)
            .filter(|n| warnings.once(format!("cause {n}")).is_some())
            .count();
        assert_eq!(said, CAUSES_MAX - 1);
        let long = Warnings::default().once("é".repeat(10_000)).unwrap();
        assert_eq!(long.chars().count(), TEXT_LEN_MAX);
    }
}
