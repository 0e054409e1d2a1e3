//! Which table a statement names: the one behind FROM, INTO or UPDATE. Not a parser: a text of which
//! this is not told at once names none, and whoever asks must do with that.

use alloc::string::String;

use super::kind::without_comments;

/// A table as a text names it, with a keyspace or without.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableName {
    pub(crate) keyspace: Option<String>,
    pub(crate) table: String,
}

impl TableName {
    /// The only table that a SELECT, INSERT, UPDATE or DELETE names.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut tokens = Tokens { rest: text };
        let first = tokens.next()?;
        let before = match first {
            _ if first.is("select") || first.is("delete") => Some("from"),
            _ if first.is("insert") => Some("into"),
            _ if first.is("update") => None,
            _ => return None,
        };
        if let Some(before) = before {
            // A name that is this word too would stand in quotes.
            tokens.find(|token| token.is(before))?;
        }
        let name = tokens.next()?.into_name()?;
        let (keyspace, table) = match tokens.next() {
            Some(Token::Other('.')) => (Some(name), tokens.next()?.into_name()?),
            _ => (None, name),
        };
        Some(Self { keyspace, table })
    }
}

#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    /// A run of letters, digits and underscores.
    Word(&'a str),
    /// What stands between double quotes.
    Quoted(&'a str),
    /// What stands between single ones or dollars.
    Literal,
    /// Any other character.
    Other(char),
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }

    fn into_name(self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word.to_ascii_lowercase()),
            Self::Quoted(name) => Some(name.replace("\"\"", "\"")),
            Self::Literal | Self::Other(_) => None,
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// Takes so many bytes, which end with a character.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes what stands up to the next such quote that is not doubled, and the quote.
    fn take_quoted(&mut self, quote: char) -> &'a str {
        let whole = self.rest;
        let mut len = 0_usize;
        while let Some((before, behind)) = self.rest.split_once(quote) {
            len = len.saturating_add(before.len());
            self.rest = behind;
            let Some(next) = behind.strip_prefix(quote) else {
                return whole.get(..len).unwrap_or_default();
            };
            self.rest = next;
            len = len.saturating_add(2);
        }
        self.rest = "";
        whole
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.rest = without_comments(self.rest);
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = self.rest.find(|c| !is_of_word(c));
        match len.unwrap_or(self.rest.len()) {
            0 => {}
            len => return Some(Token::Word(self.take(len))),
        }
        let first = self.rest.chars().next()?;
        let dollars = "$$";
        if let Some(behind) = self.rest.strip_prefix(dollars) {
            self.rest = behind.split_once(dollars).map_or("", |(_, rest)| rest);
            return Some(Token::Literal);
        }
        self.take(first.len_utf8());
        Some(match first {
            '"' => Token::Quoted(self.take_quoted('"')),
            '\'' => {
                self.take_quoted('\'');
                Token::Literal
            }
            other => Token::Other(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found() {
        for (text, keyspace, table) in [
            ("SELECT * FROM ks.t", Some("ks"), "t"),
            ("select*from t", None, "t"),
            ("SELECT a FROM t;", None, "t"),
            ("SELECT a FROM t WHERE b = 1.5", None, "t"),
            ("SELECT a FROM Ks . T_1 WHERE k=1", Some("ks"), "t_1"),
            (
                "SELECT \"from\", b FROM \"K.s\".\"a\"\"b\"",
                Some("K.s"),
                "a\"b",
            ),
            (
                "SELECT (text)'from x', '''from y' FROM /* from z */ t",
                None,
                "t",
            ),
            ("SELECT (text)$$ it's from x $$ FROM ks.t", Some("ks"), "t"),
            (
                "-- from a\nINSERT INTO ks.t (k) VALUES ('é')",
                Some("ks"),
                "t",
            ),
            ("insert into t json '{}'", None, "t"),
            (
                "UPDATE ks./* its */t USING TTL 1 SET v = 1",
                Some("ks"),
                "t",
            ),
            ("DELETE FROM t WHERE k = 1", None, "t"),
            ("DELETE a, b['from t'] FROM ks.u", Some("ks"), "u"),
        ] {
            let name = TableName {
                keyspace: keyspace.map(String::from),
                table: table.into(),
            };
            assert_eq!(TableName::of(text), Some(name), "{text}");
        }
    }

    #[test]
    fn what_is_not_told_at_once_is_not_told() {
        for text in [
            "",
            "SELECT",
            "SELECT a FROM",
            "SELECT a FROM 'ks'.t",
            "SELECT a FROM ks.",
            "SELECT a FROM ks.'t'",
            "SELECT a -- FROM t",
            "SELECT 'a FROM t",
            "SELECT $$ a FROM t",
            "SELECT é FROM ?",
            "UPDATE",
            "BEGIN BATCH INSERT INTO t (k) VALUES (1) APPLY BATCH",
            "CREATE TABLE t (k int PRIMARY KEY)",
        ] {
            assert_eq!(TableName::of(text), None, "{text}");
        }
    }
}
