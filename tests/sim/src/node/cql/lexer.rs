//! CQL text to tokens. Positions are kept for the error text alone.

use super::super::error::CqlError;
use super::Literal;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// Unquoted, in lower case.
    Word(String),
    /// In double quotes, as written.
    Quoted(String),
    Literal(Literal),
    Symbol(&'static str),
    End,
}

/// A token with the byte offset it starts at.
pub(crate) type Spanned = (Token, usize);

const SYMBOLS: [&str; 20] = [
    "<=", ">=", "!=", "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "?", "=", "<", ">", "*",
    "+", "-",
];

/// Splits the whole text.
pub(crate) fn tokens(text: &str) -> Result<Vec<Spanned>, CqlError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut out = Vec::new();
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let done = token == Token::End;
        out.push((token, start));
        if done {
            return Ok(out);
        }
    }
}

/// `line L:C no viable alternative at input 'x'`.
pub(crate) fn syntax_error(text: &str, at: usize) -> CqlError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let rest = text.get(at..).unwrap_or("");
    let input = match rest.split_whitespace().next() {
        Some(word) => word.chars().take(40).collect(),
        None => "<EOF>".to_owned(),
    };
    CqlError::Syntax(format!(
        "line {line}:{column} no viable alternative at input '{input}'"
    ))
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn error(&self) -> CqlError {
        syntax_error(self.text, self.at)
    }

    fn skip_blank(&mut self) -> Result<(), CqlError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("--") || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").ok_or_else(|| self.error())? + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, CqlError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if first == '\'' {
            return self
                .quoted('\'')
                .map(|text| Token::Literal(Literal::Text(text)));
        }
        if first == '"' {
            return self.quoted('"').map(Token::Quoted);
        }
        if let Some(tail) = rest.strip_prefix("$$") {
            let len = tail.find("$$").ok_or_else(|| self.error())?;
            self.at += len + 4;
            return Ok(Token::Literal(Literal::Text(tail[..len].to_owned())));
        }
        if let Some(literal) = self.uuid() {
            return Ok(Token::Literal(Literal::Uuid(literal)));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_alphabetic() || first == '_' {
            let word = self.run(|c| c.is_alphanumeric() || c == '_');
            return Ok(Token::Word(word.to_lowercase()));
        }
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let symbol = symbol.ok_or_else(|| self.error())?;
        self.at += symbol.len();
        Ok(Token::Symbol(symbol))
    }

    fn run(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Text between quotes; a doubled quote stands for one.
    fn quoted(&mut self, quote: char) -> Result<String, CqlError> {
        let mut out = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character != quote {
                out.push(character);
            } else if characters.next_if(|(_, next)| *next == quote).is_some() {
                out.push(quote);
            } else {
                self.at += at + 1;
                return Ok(out);
            }
        }
        Err(self.error())
    }

    fn uuid(&mut self) -> Option<[u8; 16]> {
        let candidate = self.rest().get(..36)?;
        let dashes = [8, 13, 18, 23];
        let mut value = 0u128;
        for (at, character) in candidate.chars().enumerate() {
            if dashes.contains(&at) {
                if character != '-' {
                    return None;
                }
            } else {
                value = value << 4 | u128::from(character.to_digit(16)?);
            }
        }
        self.at += 36;
        Some(value.to_be_bytes())
    }

    fn number(&mut self) -> Result<Token, CqlError> {
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with("0x") || rest.starts_with("0X") {
            self.at += 2;
            let digits = self.run(|c| c.is_ascii_hexdigit());
            return blob(digits).ok_or_else(|| syntax_error(self.text, start));
        }
        self.run(|c| c.is_ascii_digit());
        let mut float = false;
        let rest = self.rest();
        if rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            float = true;
            self.at += 1;
            self.run(|c| c.is_ascii_digit());
        }
        let exponent = self.exponent_len();
        if exponent > 0 {
            float = true;
            self.at += exponent;
        }
        if self
            .rest()
            .starts_with(|c: char| c.is_alphabetic() || c == 'µ')
        {
            self.run(char::is_alphanumeric);
            let text = self.text[start..self.at].to_owned();
            return Ok(Token::Literal(Literal::Duration(text)));
        }
        let text = self.text[start..self.at].to_owned();
        Ok(Token::Literal(if float {
            Literal::Float(text)
        } else {
            Literal::Integer(text)
        }))
    }

    /// Length of `e12`, `E-3`… at this place, 0 if there is none.
    fn exponent_len(&self) -> usize {
        let rest = self.rest();
        let Some(tail) = rest.strip_prefix(['e', 'E']) else {
            return 0;
        };
        let digits = tail.strip_prefix(['+', '-']).unwrap_or(tail);
        let count = digits.len()
            - digits
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        if count == 0 {
            0
        } else {
            rest.len() - digits.len() + count
        }
    }
}

fn blob(digits: &str) -> Option<Token> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let bytes = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect::<Option<Vec<u8>>>()?;
    Some(Token::Literal(Literal::Blob(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_every_kind() {
        let cases = [
            ("SELECT", Token::Word("select".into())),
            ("\"Odd\"\"Name\"", Token::Quoted("Odd\"Name".into())),
            ("'it''s'", Token::Literal(Literal::Text("it's".into()))),
            ("$$a'b$$", Token::Literal(Literal::Text("a'b".into()))),
            ("0xCAfe", Token::Literal(Literal::Blob(vec![0xca, 0xfe]))),
            ("12", Token::Literal(Literal::Integer("12".into()))),
            ("1.5", Token::Literal(Literal::Float("1.5".into()))),
            ("1e-3", Token::Literal(Literal::Float("1e-3".into()))),
            ("500ms", Token::Literal(Literal::Duration("500ms".into()))),
            (
                "12345678-0000-4000-8000-0000000000ff",
                Token::Literal(Literal::Uuid(
                    0x1234_5678_0000_4000_8000_0000_0000_00ff_u128.to_be_bytes(),
                )),
            ),
            ("<=", Token::Symbol("<=")),
            ("-- note\n/* more */ ?", Token::Symbol("?")),
        ];
        for (text, expected) in cases {
            let found = tokens(text).unwrap();
            assert_eq!(found.len(), 2, "{text}");
            assert_eq!(found[0].0, expected, "{text}");
        }
    }

    #[test]
    fn unfinished_text_is_a_syntax_error() {
        for text in [
            "'open", "\"open", "/* open", "$$open", "0xabc", "@", "é\u{0}",
        ] {
            assert!(matches!(tokens(text), Err(CqlError::Syntax(_))), "{text}");
        }
    }
}
