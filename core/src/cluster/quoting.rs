//! Text between quotes in a statement: names of tables and columns, and literals. Within either a
//! quote is written twice, and nothing else has a meaning.

use core::fmt::{self, Write};

/// A text in quotes of one kind.
pub(crate) struct InQuotes<'a> {
    quote: char,
    text: &'a str,
}

impl<'a> InQuotes<'a> {
    /// A name, as it is and not in lower case.
    #[cfg(any(test, feature = "lwt-learning"))]
    pub(crate) const fn name(text: &'a str) -> Self {
        Self { quote: '"', text }
    }

    /// A literal.
    #[cfg(any(test, feature = "client-routes"))]
    pub(crate) const fn literal(text: &'a str) -> Self {
        Self { quote: '\'', text }
    }
}

impl fmt::Display for InQuotes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(self.quote)?;
        for c in self.text.chars() {
            if c == self.quote {
                f.write_char(c)?;
            }
            f.write_char(c)?;
        }
        f.write_char(self.quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_quoted() {
        for (name, quoted) in [
            ("t", "\"t\""),
            ("Mixed Case", "\"Mixed Case\""),
            ("a\"b", "\"a\"\"b\""),
            ("\"", "\"\"\"\""),
            ("it's", "\"it's\""),
            ("", "\"\""),
        ] {
            assert_eq!(InQuotes::name(name).to_string(), quoted);
        }
        assert_eq!(InQuotes::literal("o'n\"e").to_string(), "'o''n\"e'");
    }
}
