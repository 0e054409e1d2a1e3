//! What SELECT shows: columns, functions of them, parts of them.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

/// Most steps into a value, as `a.b.c` has two.
const PARTS_MAX: usize = 32;

impl Parser<'_> {
    /// A selector with its alias.
    pub(super) fn selector(&mut self) -> Result<(Selector, Option<String>)> {
        let selector = self.unaliased()?;
        let alias = if self.word("as") {
            Some(self.identifier()?)
        } else {
            None
        };
        Ok((selector, alias))
    }

    fn unaliased(&mut self) -> Result<Selector> {
        self.nested(|parser| {
            let mut selector = parser.simple()?;
            for _ in 0..=PARTS_MAX {
                if parser.symbol("[") {
                    selector = Selector::Element(Box::new(selector), parser.term()?);
                    parser.expect("]")?;
                } else if parser.symbol(".") {
                    selector = Selector::Field(Box::new(selector), parser.identifier()?);
                } else {
                    return Ok(selector);
                }
            }
            Err(CqlError::invalid("the selection is nested too deeply"))
        })
    }

    fn simple(&mut self) -> Result<Selector> {
        let name = match self.peek() {
            Token::Word(name) | Token::Quoted(name) => name.clone(),
            _ => return self.term().map(Selector::Term),
        };
        if name == "system"
            && matches!(self.peek_second(), Token::Symbol("."))
            && let Some(call) = self.system_call()?
        {
            return Ok(call);
        }
        if !matches!(self.peek_second(), Token::Symbol("(")) {
            if let Token::Word(word) = self.peek()
                && matches!(word.as_str(), "null" | "true" | "false")
            {
                return self.term().map(Selector::Term);
            }
            return self.identifier().map(Selector::Column);
        }
        self.at += 2;
        match name.as_str() {
            "count" if self.counts_rows()? => Ok(Selector::CountRows),
            "cast" => {
                let inner = self.unaliased()?;
                self.expect_word("as")?;
                let ty = self.type_name()?;
                self.expect(")")?;
                Ok(Selector::Cast(Box::new(inner), ty))
            }
            _ => self.call(name),
        }
    }

    /// `*)` or `1)`.
    fn counts_rows(&mut self) -> Result<bool> {
        let is_one = matches!(self.peek(), Token::Literal(Literal::Integer(text)) if text == "1");
        if is_one && matches!(self.peek_second(), Token::Symbol(")")) {
            self.at += 1;
        } else if !self.symbol("*") {
            return Ok(false);
        }
        self.expect(")")?;
        Ok(true)
    }

    /// `system.function(…)`; a column may be named `system` too.
    fn system_call(&mut self) -> Result<Option<Selector>> {
        let start = self.at;
        self.at += 2;
        let name = self.identifier()?;
        if self.symbol("(") {
            return self.call(name).map(Some);
        }
        self.at = start;
        Ok(None)
    }

    fn call(&mut self, name: String) -> Result<Selector> {
        if self.symbol(")") {
            return Ok(Selector::Call(name, Vec::new()));
        }
        let arguments = self.list(Self::unaliased)?;
        self.expect(")")?;
        Ok(Selector::Call(name, arguments))
    }
}
