//! Just enough of Rust's lexical rules to look at code without comments and literals.
//!
//! Not a parser. Invariant: the blanked text has the same lines and the same columns as the original.

/// The text with comments and the insides of string and character literals replaced by spaces.
#[must_use]
pub fn code(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut output = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = blank_end(&characters, at);
        if end == at {
            output.push(characters[at]);
            at += 1;
        } else {
            output.extend(
                characters[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    output
}

/// The code in front of the unit tests at the foot of the file.
#[must_use]
pub fn without_unit_tests(code: &str) -> &str {
    let foot = code.match_indices("#[cfg(test)]").find(|(at, attribute)| {
        let behind = code[at + attribute.len()..].trim_start();
        behind.starts_with("mod ")
            && behind
                .split_once('\n')
                .is_some_and(|(line, _)| line.contains('{'))
    });
    foot.map_or(code, |(at, _)| &code[..at])
}

/// The number of the line, from 1, in which a byte offset lies.
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Offsets at which `word` stands as a whole word (`::` inside the word is fine).
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part)
        })
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none starts there.
fn blank_end(text: &[char], at: usize) -> usize {
    let behind_word = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    match text[at] {
        '/' if text.get(at + 1) == Some(&'/') => find(text, at, |rest| rest[0] == '\n'),
        '/' if text.get(at + 1) == Some(&'*') => block_comment_end(text, at),
        '"' => string_end(text, at + 1),
        'r' | 'b' | 'c' if !behind_word => prefixed_literal_end(text, at),
        '\'' => character_end(text, at),
        _ => at,
    }
}

fn find(text: &[char], from: usize, is_end: impl Fn(&[char]) -> bool) -> usize {
    (from..text.len())
        .find(|&at| is_end(&text[at..]))
        .unwrap_or(text.len())
}

fn block_comment_end(text: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The end of a string whose opening quote lies in front of `at`.
fn string_end(text: &[char], mut at: usize) -> usize {
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// `r"`, `r#"`, `b"`, `b'`, `br"`, `c"` and the like; anything else is an ordinary word.
fn prefixed_literal_end(text: &[char], start: usize) -> usize {
    let letters = find(text, start, |rest| !matches!(rest[0], 'r' | 'b' | 'c'));
    let quote = find(text, letters, |rest| rest[0] != '#');
    let hashes = quote - letters;
    let is_raw = text[start..letters].contains(&'r');
    match text.get(quote) {
        Some('"') if is_raw => {
            let end = find(text, quote + 1, |rest| {
                rest[0] == '"' && rest[1..].iter().take_while(|&&c| c == '#').count() >= hashes
            });
            (end + 1 + hashes).min(text.len())
        }
        Some('"') if hashes == 0 => string_end(text, quote + 1),
        Some('\'') if hashes == 0 && !is_raw => character_end(text, quote),
        _ => start,
    }
}

/// A character literal, or `at` itself for a lifetime.
fn character_end(text: &[char], at: usize) -> usize {
    match (text.get(at + 1), text.get(at + 2)) {
        (Some('\\'), Some(_)) => (find(text, at + 3, |rest| rest[0] == '\'') + 1).min(text.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" y", 'z')"#, "f(        ,    )"),
            ("r#\"a \" b\"# + c", "           + c"),
            ("br\"a\\\" + c", "       + c"),
            ("b'\\'' + 'b", "      + 'b"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("crab + r#type", "crab + r#type"),
            ("'\\u{41}' x", "         x"),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn unit_tests_are_cut_at_the_foot_only() {
        let text =
            "fn a() {}\n#[cfg(test)]\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        assert!(without_unit_tests(text).ends_with("fn b() {}\n"));
        let elsewhere = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        assert_eq!(without_unit_tests(elsewhere), elsewhere);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(
            words("todo!(); my_todo!(); todo!x", "todo!").collect::<Vec<_>>(),
            [0]
        );
        assert_eq!(
            words("std::time::Instant, nostd::time", "std::time").collect::<Vec<_>>(),
            [0]
        );
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
