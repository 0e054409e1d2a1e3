//! Words that stand in one text with a space between them: in place of a table of texts, each of which
//! takes the space of two pointers beside its letters.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Which of the words this is, counted from 0.
pub(crate) fn place(words: &str, word: &str) -> Option<usize> {
    let mut words = words.as_bytes().split(|byte| *byte == b' ');
    words.position(|known| known == word.as_bytes())
}

/// The word at this place; empty behind the last.
pub(crate) fn at(words: &str, place: usize) -> &str {
    let word = words.as_bytes().split(|byte| *byte == b' ').nth(place);
    core::str::from_utf8(word.unwrap_or_default()).unwrap_or_default()
}

/// Whether errors have texts beside their kinds.
pub(crate) const HAS_TEXTS: bool = cfg!(any(test, feature = "error-texts"));

/// A text that is put together for an error; nothing is, where errors have none.
pub(crate) fn explain(put: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    if HAS_TEXTS {
        put(&mut text);
    }
    text
}

/// Appends a text.
#[inline(never)]
pub(crate) fn put(text: &mut String, more: &str) {
    text.push_str(more);
}

/// Appends a letter.
#[inline(never)]
pub(crate) fn put_char(text: &mut String, c: char) {
    text.push(c);
}

/// Appends a hexadecimal digit.
#[inline(never)]
pub(crate) fn put_digit(text: &mut String, digit: u32) {
    put_char(text, char::from_digit(digit & 15, 16).unwrap_or('0'));
}

/// A copy of a text.
#[inline(never)]
pub(crate) fn boxed(text: &str) -> Box<str> {
    Box::from(text)
}

/// A copy of bytes.
#[inline(never)]
pub(crate) fn boxed_bytes(bytes: &[u8]) -> Box<[u8]> {
    Box::from(bytes)
}

/// Appends a value by code that all types share, where `push` has some of its own for each.
pub(crate) fn append<T>(list: &mut Vec<T>, value: T) {
    list.extend(Some(value));
}

/// One text of several.
#[inline(never)]
pub(crate) fn joined(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts {
        put(&mut text, part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_place_and_places_by_word() {
        let words = "a bc  d";
        for (index, word) in ["a", "bc", "", "d"].into_iter().enumerate() {
            assert_eq!((at(words, index), place(words, word)), (word, Some(index)));
        }
        assert_eq!(
            (at(words, 4), place(words, "b"), place(words, "a bc")),
            ("", None, None)
        );
        assert_eq!(joined(&[words, "", "!"]), "a bc  d!");
    }
}
