//! SELECT, INSERT, UPDATE, DELETE and textual batches.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Select> {
        // Both words are names of columns where they end a selector.
        let is_name = matches!(
            self.peek_second(),
            Token::Symbol("," | "." | "[") | Token::End
        ) || matches!(self.peek_second(), Token::Word(word) if word == "from" || word == "as");
        let distinct = !is_name && self.word("distinct");
        if !is_name && !distinct && self.word("json") {
            return Err(CqlError::invalid("SELECT JSON is not supported"));
        }
        let selectors = if self.symbol("*") {
            Vec::new()
        } else {
            self.list(Self::selector)?
        };
        self.expect_word("from")?;
        let table = self.table_name()?;
        let relations = if self.word("where") {
            self.relations()?
        } else {
            Vec::new()
        };
        let group = if self.words(&["group", "by"]) {
            self.list(Self::identifier)?
        } else {
            Vec::new()
        };
        let order = if self.words(&["order", "by"]) {
            self.list(|parser| {
                let column = parser.identifier()?;
                let descending = parser.word("desc");
                if !descending {
                    parser.word("asc");
                }
                Ok((column, descending))
            })?
        } else {
            Vec::new()
        };
        let per_partition_limit = if self.words(&["per", "partition", "limit"]) {
            Some(self.term()?)
        } else {
            None
        };
        let limit = if self.word("limit") {
            Some(self.term()?)
        } else {
            None
        };
        let allow_filtering = self.words(&["allow", "filtering"]);
        self.words(&["bypass", "cache"]);
        let using = self.using()?;
        Ok(Select {
            table,
            distinct,
            selectors,
            relations,
            group,
            order,
            limit,
            per_partition_limit,
            allow_filtering,
            using,
        })
    }

    pub(super) fn insert(&mut self) -> Result<Modify> {
        self.expect_word("into")?;
        let table = self.table_name()?;
        if self.word("json") {
            return Err(CqlError::invalid("INSERT JSON is not supported"));
        }
        let columns = self.columns()?;
        self.expect_word("values")?;
        self.expect("(")?;
        let values = self.list(Self::term)?;
        self.expect(")")?;
        if columns.len() != values.len() {
            return Err(CqlError::invalid("Unmatched column names/values"));
        }
        let condition = if self.words(&["if", "not", "exists"]) {
            Condition::NotExists
        } else {
            Condition::None
        };
        let using = self.using()?;
        let kind = ModifyKind::Insert(columns.into_iter().zip(values).collect());
        Ok(Modify {
            table,
            kind,
            using,
            relations: Vec::new(),
            condition,
        })
    }

    pub(super) fn update(&mut self) -> Result<Modify> {
        let table = self.table_name()?;
        let using = self.using()?;
        self.expect_word("set")?;
        let sets = self.list(Self::assignment)?;
        self.expect_word("where")?;
        let relations = self.relations()?;
        let condition = self.condition()?;
        Ok(Modify {
            table,
            kind: ModifyKind::Update(sets),
            using,
            relations,
            condition,
        })
    }

    /// `c = a`, `c = c + a`, `c += a`, `c[key] = a`…
    fn assignment(&mut self) -> Result<(String, Assignment)> {
        let column = self.identifier()?;
        let part = self.part()?;
        if part != Part::Whole {
            self.expect("=")?;
            return Ok((column, Assignment::Set(part, self.term()?)));
        }
        for (symbol, assignment) in [
            ("+", Assignment::Add as fn(Term) -> Assignment),
            ("-", Assignment::Subtract),
        ] {
            if self.symbol(symbol) {
                self.expect("=")?;
                return Ok((column, assignment(self.term()?)));
            }
        }
        self.expect("=")?;
        let names_itself = |token: &Token| match token {
            Token::Word(name) | Token::Quoted(name) => *name == column,
            _ => false,
        };
        if names_itself(self.peek()) {
            let sign = self.peek_second().clone();
            if matches!(sign, Token::Symbol("+" | "-")) {
                self.at += 2;
                let term = self.term()?;
                return Ok(match sign {
                    Token::Symbol("+") => (column, Assignment::Add(term)),
                    _ => (column, Assignment::Subtract(term)),
                });
            }
        }
        let term = self.term()?;
        if self.symbol("+") {
            if !names_itself(self.peek()) {
                return Err(self.error());
            }
            self.at += 1;
            return Ok((column, Assignment::Prepend(term)));
        }
        Ok((column, Assignment::Set(Part::Whole, term)))
    }

    /// `[key]`, `.field` or nothing.
    pub(super) fn part(&mut self) -> Result<Part> {
        if self.symbol("[") {
            let key = self.term()?;
            self.expect("]")?;
            return Ok(Part::Element(key));
        }
        if self.symbol(".") {
            return self.identifier().map(Part::Field);
        }
        Ok(Part::Whole)
    }

    pub(super) fn delete(&mut self) -> Result<Modify> {
        let columns = if self.word("from") {
            Vec::new()
        } else {
            let columns = self.list(|parser| Ok((parser.identifier()?, parser.part()?)))?;
            self.expect_word("from")?;
            columns
        };
        let table = self.table_name()?;
        let using = self.using()?;
        self.expect_word("where")?;
        let relations = self.relations()?;
        let condition = self.condition()?;
        Ok(Modify {
            table,
            kind: ModifyKind::Delete(columns),
            using,
            relations,
            condition,
        })
    }

    fn condition(&mut self) -> Result<Condition> {
        if !self.word("if") {
            return Ok(Condition::None);
        }
        if self.word("exists") {
            return Ok(Condition::Exists);
        }
        self.relations().map(Condition::Columns)
    }

    pub(super) fn batch(&mut self) -> Result<TextBatch> {
        let kind = if self.word("counter") {
            BatchKind::Counter
        } else if self.word("unlogged") {
            BatchKind::Unlogged
        } else {
            BatchKind::Logged
        };
        self.expect_word("batch")?;
        let using = self.using()?;
        let mut statements = Vec::new();
        while !self.words(&["apply", "batch"]) {
            let Token::Word(verb) = self.peek().clone() else {
                return Err(self.error());
            };
            self.at += 1;
            statements.push(match verb.as_str() {
                "insert" => self.insert()?,
                "update" => self.update()?,
                "delete" => self.delete()?,
                _ => {
                    self.at -= 1;
                    return Err(self.error());
                }
            });
            while self.symbol(";") {}
        }
        Ok(TextBatch {
            kind,
            using,
            statements,
        })
    }
}
