//! Cuts a text into CQL statements at `;`.
//!
//! A semicolon inside quotes, comments, `$$…$$` or a `BEGIN BATCH … APPLY BATCH` does not end a
//! statement. What is not closed runs to the end of the text and is left for the server to judge.
//! Parts that hold nothing but spaces and comments are no statements.

/// The statements of `text`, without their semicolons.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (statement, is_empty, len) = first(rest);
        if !is_empty {
            statements.push(statement.trim().to_owned());
        }
        rest = &rest[len..];
    }
    statements
}

/// The first statement, whether there is nothing in it, and where the next one begins.
fn first(text: &str) -> (&str, bool, usize) {
    let mut words = Words::default();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(len) = comment_len(rest) {
            words.end();
            at += len;
        } else if let Some(len) = quoted_len(rest) {
            words.quoted();
            at += len;
        } else if c == ';' && !words.in_batch() {
            return (&text[..at], words.count == 0, at + 1);
        } else {
            words.push(c);
            at += c.len_utf8();
        }
    }
    words.end();
    (text, words.count == 0, text.len())
}

fn comment_len(rest: &str) -> Option<usize> {
    let until = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    if rest.starts_with("--") || rest.starts_with("//") {
        Some(until("\n"))
    } else {
        let body = rest.strip_prefix("/*")?;
        Some(body.find("*/").map_or(rest.len(), |at| at + 4))
    }
}

/// A doubled quote inside quotes reads as two quoted texts side by side, which ends at the same
/// place.
fn quoted_len(rest: &str) -> Option<usize> {
    ["'", "\"", "$$"].into_iter().find_map(|quote| {
        let body = rest.strip_prefix(quote)?;
        Some(
            body.find(quote)
                .map_or(rest.len(), |at| at + 2 * quote.len()),
        )
    })
}

/// The words seen so far, as far as batches need them.
#[derive(Default)]
struct Words {
    count: usize,
    is_begin: bool,
    is_batch: bool,
    last: [String; 2],
    current: String,
}

impl Words {
    fn push(&mut self, c: char) {
        if c.is_alphanumeric() || c == '_' {
            self.current.push(c.to_ascii_uppercase());
            return;
        }
        self.end();
        if !c.is_whitespace() && c != ';' {
            self.quoted();
        }
    }

    /// Something that is no word.
    fn quoted(&mut self) {
        self.end();
        self.count += 1;
        self.last = Default::default();
    }

    fn end(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let word = core::mem::take(&mut self.current);
        match self.count {
            0 => self.is_begin = word == "BEGIN",
            1 | 2 if self.is_begin && word == "BATCH" => self.is_batch = true,
            _ => {}
        }
        self.count += 1;
        self.last.rotate_left(1);
        self.last[1] = word;
    }

    fn in_batch(&mut self) -> bool {
        self.end();
        self.is_batch && self.last != ["APPLY", "BATCH"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_their_own_semicolon_only() {
        for (text, expected) in [
            ("", &[][..]),
            ("  \n;; ; -- nothing\n /* nothing; */ ;", &[]),
            ("SELECT 1", &["SELECT 1"]),
            ("SELECT 1;", &["SELECT 1"]),
            (" SELECT 1 ; SELECT 2 ;\n", &["SELECT 1", "SELECT 2"]),
            ("a 'x;y'; b", &["a 'x;y'", "b"]),
            ("a 'it''s;'; b", &["a 'it''s;'", "b"]),
            ("a '';b", &["a ''", "b"]),
            ("a \"q;\"\";\"; b", &["a \"q;\"\";\"", "b"]),
            ("a $$ ;' $$; b", &["a $$ ;' $$", "b"]),
            ("a -- c;\n b; d", &["a -- c;\n b", "d"]),
            ("a // c;\n b; d", &["a // c;\n b", "d"]),
            ("a /* ; ' */ b; d", &["a /* ; ' */ b", "d"]),
            ("a /*/ ; */; b", &["a /*/ ; */", "b"]),
            ("a 'open; b", &["a 'open; b"]),
            ("a /* open; b", &["a /* open; b"]),
            ("a - b; c", &["a - b", "c"]),
            ("'é;'; ü", &["'é;'", "ü"]),
            (
                "BEGIN BATCH a; b; APPLY BATCH; c",
                &["BEGIN BATCH a; b; APPLY BATCH", "c"],
            ),
            (
                "begin unlogged batch using timestamp 1 a 'apply batch'; apply\nbatch ; c",
                &[
                    "begin unlogged batch using timestamp 1 a 'apply batch'; apply\nbatch",
                    "c",
                ],
            ),
            ("BEGIN x y BATCH; c", &["BEGIN x y BATCH", "c"]),
            (
                "SELECT begin, batch FROM t; c",
                &["SELECT begin, batch FROM t", "c"],
            ),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
