//! What a statement does, by its first word. Not a parser: it decides nothing that a server would
//! decide otherwise, only whether rows are read or written. Comments are those of CQL.

/// Whether a statement reads or writes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatementKind {
    /// SELECT.
    Read,
    /// INSERT, UPDATE, DELETE, or a batch of them in one text.
    Write,
    /// Anything else: the schema, users, USE.
    Other,
}

impl StatementKind {
    /// The kind of a statement.
    pub fn of(text: &str) -> Self {
        let word = first_word(text);
        let is = |known: &&str| word.eq_ignore_ascii_case(known);
        if is(&"select") {
            Self::Read
        } else if ["insert", "update", "delete", "begin"].iter().any(is) {
            Self::Write
        } else {
            Self::Other
        }
    }

    /// Whether it reads or writes rows.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Whether a text is a batch of writes. Servers do not mark those with conditions.
pub(crate) fn is_batch(text: &str) -> bool {
    first_word(text).eq_ignore_ascii_case("begin")
}

fn first_word(text: &str) -> &str {
    let text = without_comments(text);
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The text from its first word on.
pub(super) fn without_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let rest = match text.get(..2) {
            Some("--" | "//") => text.split_once('\n').map(|(_, rest)| rest),
            Some("/*") => text
                .get(2..)
                .and_then(|rest| rest.split_once("*/"))
                .map(|(_, rest)| rest),
            _ => return text,
        };
        let Some(rest) = rest else { return "" };
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_tells() {
        use StatementKind::{Other, Read, Write};
        for (text, expected) in [
            ("SELECT a FROM t", Read),
            ("\n select*from t", Read),
            ("insert into t (a) values (?)", Write),
            ("Update t SET a = 1", Write),
            ("DELETE FROM t WHERE a = 1", Write),
            ("BEGIN UNLOGGED BATCH", Write),
            ("-- SELECT\nDELETE FROM t WHERE a = 1", Write),
            ("// one\n// two\nSELECT a FROM t", Read),
            ("/* INSERT */ /*\n*/SELECT a FROM t", Read),
            ("/*/ INSERT */ SELECT a FROM t", Read),
            ("/* never closed SELECT", Other),
            ("-- nothing behind", Other),
            ("CREATE TABLE t (a int PRIMARY KEY)", Other),
            ("selection", Other),
            ("é SELECT", Other),
            ("", Other),
        ] {
            assert_eq!(StatementKind::of(text), expected, "{text}");
            assert_eq!(is_batch(text), text.contains("BATCH"), "{text}");
        }
    }
}
