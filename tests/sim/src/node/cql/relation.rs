//! Conditions: of WHERE and of IF.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn relations(&mut self) -> Result<Vec<Relation>> {
        let mut out = vec![self.relation()?];
        while self.word("and") {
            out.push(self.relation()?);
        }
        Ok(out)
    }

    pub(super) fn relation(&mut self) -> Result<Relation> {
        let subject = self.subject()?;
        let comparison = self.comparison()?;
        Ok(Relation {
            subject,
            comparison,
        })
    }

    fn subject(&mut self) -> Result<Subject> {
        if matches!(self.peek(), Token::Symbol("(")) {
            return self.columns().map(Subject::Tuple);
        }
        let called = matches!(self.peek_second(), Token::Symbol("("));
        let name = self.identifier()?;
        if called && name == "token" {
            return self.columns().map(Subject::Token);
        }
        Ok(match self.part()? {
            Part::Whole => Subject::Column(name),
            part => Subject::Part(name, part),
        })
    }

    fn comparison(&mut self) -> Result<Comparison> {
        if self.word("in") {
            return self.in_list();
        }
        if self.words(&["contains", "key"]) {
            return self.term().map(Comparison::ContainsKey);
        }
        if self.word("contains") {
            return self.term().map(Comparison::Contains);
        }
        let operator = match self.peek() {
            Token::Symbol("=") => Operator::Equal,
            Token::Symbol("!=") => Operator::NotEqual,
            Token::Symbol("<") => Operator::Less,
            Token::Symbol("<=") => Operator::LessOrEqual,
            Token::Symbol(">") => Operator::Greater,
            Token::Symbol(">=") => Operator::GreaterOrEqual,
            Token::Word(word) if word == "like" || word == "is" => {
                return Err(CqlError::invalid("this kind of relation is not supported"));
            }
            _ => return Err(self.error()),
        };
        self.at += 1;
        self.term().map(|term| Comparison::Compare(operator, term))
    }

    fn in_list(&mut self) -> Result<Comparison> {
        if self.symbol("(") {
            if self.symbol(")") {
                return Ok(Comparison::In(Vec::new()));
            }
            let terms = self.list(Self::term)?;
            self.expect(")")?;
            return Ok(Comparison::In(terms));
        }
        match self.term()? {
            Term::Marker(marker) => Ok(Comparison::InMarker(marker)),
            _ => Err(self.error()),
        }
    }
}
