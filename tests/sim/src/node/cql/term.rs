//! Values and types as written.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn term(&mut self) -> Result<Term> {
        self.nested(Self::term_inside)
    }

    fn term_inside(&mut self) -> Result<Term> {
        let start = self.at;
        let found = match self.next() {
            Token::Literal(literal) => Some(Term::Literal(literal)),
            Token::Symbol("?") => Some(self.marker(None)),
            Token::Symbol(":") => {
                let name = self.identifier()?;
                Some(self.marker(Some(name)))
            }
            Token::Symbol("-") => self.negative().map(Term::Literal),
            Token::Symbol("[") => Some(Term::List(self.terms("]")?)),
            Token::Symbol("{") => Some(self.braces()?),
            Token::Symbol("(") => Some(self.parenthesis()?),
            Token::Word(word) => self.word_term(word)?,
            _ => None,
        };
        found.ok_or_else(|| {
            self.at = start;
            self.error()
        })
    }

    /// What a minus may stand before.
    fn negative(&mut self) -> Option<Literal> {
        match self.next() {
            Token::Literal(Literal::Integer(text)) => Some(Literal::Integer(format!("-{text}"))),
            Token::Literal(Literal::Float(text)) => Some(Literal::Float(format!("-{text}"))),
            Token::Literal(Literal::Duration(text)) => Some(Literal::Duration(format!("-{text}"))),
            Token::Word(word) if word == "infinity" => Some(Literal::Float("-inf".to_owned())),
            Token::Word(word) if word == "nan" => Some(Literal::Float("NaN".to_owned())),
            _ => None,
        }
    }

    fn word_term(&mut self, word: String) -> Result<Option<Term>> {
        if self.symbol("(") {
            return Ok(Some(Term::Call(word, self.terms(")")?)));
        }
        if word == "system" && self.symbol(".") {
            let name = self.identifier()?;
            self.expect("(")?;
            return Ok(Some(Term::Call(name, self.terms(")")?)));
        }
        let literal = match word.as_str() {
            "null" => Literal::Null,
            "true" => Literal::Boolean(true),
            "false" => Literal::Boolean(false),
            "nan" => Literal::Float("NaN".to_owned()),
            "infinity" => Literal::Float("inf".to_owned()),
            // `P1Y2M`, which the lexer cannot tell from a name.
            _ if is_iso_duration(&word) => Literal::Duration(word),
            _ => return Ok(None),
        };
        Ok(Some(Term::Literal(literal)))
    }

    /// Terms up to the closing symbol, none allowed.
    fn terms(&mut self, close: &str) -> Result<Vec<Term>> {
        if self.symbol(close) {
            return Ok(Vec::new());
        }
        let terms = self.list(Self::term)?;
        self.expect(close)?;
        Ok(terms)
    }

    fn braces(&mut self) -> Result<Term> {
        if self.symbol("}") {
            return Ok(Term::Set(Vec::new()));
        }
        if self.names_a_field() {
            let fields = self.list(|parser| {
                let name = parser.identifier()?;
                parser.expect(":")?;
                Ok((name, parser.term()?))
            })?;
            self.expect("}")?;
            return Ok(Term::Fields(fields));
        }
        let first = self.term()?;
        if !self.symbol(":") {
            let mut elements = vec![first];
            while self.symbol(",") {
                elements.push(self.term()?);
            }
            self.expect("}")?;
            return Ok(Term::Set(elements));
        }
        let mut entries = vec![(first, self.term()?)];
        while self.symbol(",") {
            let key = self.term()?;
            self.expect(":")?;
            entries.push((key, self.term()?));
        }
        self.expect("}")?;
        Ok(Term::Map(entries))
    }

    fn names_a_field(&self) -> bool {
        let is_name = match self.peek() {
            Token::Quoted(_) => true,
            Token::Word(word) => !matches!(
                word.as_str(),
                "null" | "true" | "false" | "nan" | "infinity"
            ),
            _ => false,
        };
        is_name && matches!(self.peek_second(), Token::Symbol(":"))
    }

    /// After an opening one: `(a, b)` or `(type) a`.
    fn parenthesis(&mut self) -> Result<Term> {
        let start = self.at;
        if matches!(self.peek(), Token::Word(_) | Token::Quoted(_))
            && let Ok(ty) = self.type_name()
            && self.symbol(")")
            && let Ok(term) = self.term()
        {
            return Ok(Term::Hint(ty, Box::new(term)));
        }
        self.at = start;
        let elements = self.list(Self::term)?;
        self.expect(")")?;
        Ok(Term::Tuple(elements))
    }

    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        self.nested(|parser| {
            let mut name = parser.identifier()?;
            let mut ty = TypeName {
                keyspace: None,
                name: String::new(),
                arguments: Vec::new(),
                len: None,
            };
            if parser.symbol(".") {
                ty.keyspace = Some(core::mem::replace(&mut name, parser.identifier()?));
            }
            ty.name = name;
            if !parser.symbol("<") {
                return Ok(ty);
            }
            ty.arguments.push(parser.type_name()?);
            while parser.symbol(",") {
                let Token::Literal(Literal::Integer(text)) = parser.peek() else {
                    ty.arguments.push(parser.type_name()?);
                    continue;
                };
                ty.len =
                    Some(text.parse().map_err(|_| {
                        CqlError::Invalid(format!("Invalid vector dimension: {text}"))
                    })?);
                parser.next();
                break;
            }
            parser.expect(">")?;
            Ok(ty)
        })
    }
}

/// `p1y2m3dt4h5m6s`, `p3w` or `p0001-02-03t04:05:06` as far as it is one word.
fn is_iso_duration(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('p') else {
        return false;
    };
    rest.starts_with(|c: char| c.is_ascii_digit() || c == 't')
        && rest.ends_with(|c: char| "ymdwhs".contains(c))
        && rest
            .chars()
            .all(|c| c.is_ascii_digit() || "ymdwths".contains(c))
}
