//! SELECT, INSERT, UPDATE, DELETE and textual batches.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Select> {
        if matches!(self.peek(), Token::Word(word) if word == "distinct" || word == "json")
            && !matches!(self.peek_second(), Token::Symbol("," | ".") | Token::End)
            && !matches!(self.peek_second(), Token::Word(word) if word == "from")
        {
            return Err(CqlError::invalid(
                "SELECT DISTINCT and SELECT JSON are not supported",
            ));
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
        if self.words(&["group", "by"]) {
            return Err(CqlError::invalid("GROUP BY is not supported"));
        }
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
            selectors,
            relations,
            order,
            limit,
            per_partition_limit,
            allow_filtering,
            using,
        })
    }

    fn selector(&mut self) -> Result<(Selector, Option<String>)> {
        let called = matches!(self.peek_second(), Token::Symbol("("));
        let name = self.identifier()?;
        let selector = match name.as_str() {
            "count" if called => {
                self.expect("(")?;
                if !self.symbol("*")
                    && self.next() != Token::Literal(Literal::Integer("1".to_owned()))
                {
                    return Err(CqlError::invalid("only count(*) is supported"));
                }
                self.expect(")")?;
                Selector::CountRows
            }
            "token" if called => Selector::Token(self.columns()?),
            _ if called => return Err(CqlError::Invalid(format!("Unknown function '{name}'"))),
            _ => Selector::Column(name),
        };
        let alias = if self.word("as") {
            Some(self.identifier()?)
        } else {
            None
        };
        Ok((selector, alias))
    }

    fn relations(&mut self) -> Result<Vec<Relation>> {
        let mut out = vec![self.relation()?];
        while self.word("and") {
            out.push(self.relation()?);
        }
        Ok(out)
    }

    fn relation(&mut self) -> Result<Relation> {
        if self.symbol("(") {
            return Err(CqlError::invalid(
                "multi-column relations are not supported",
            ));
        }
        let called = matches!(self.peek_second(), Token::Symbol("("));
        let name = self.identifier()?;
        let subject = if called && name == "token" {
            Subject::Token(self.columns()?)
        } else {
            Subject::Column(name)
        };
        if self.word("in") {
            return Ok(Relation {
                subject,
                comparison: self.in_list()?,
            });
        }
        let operator = match self.peek() {
            Token::Symbol("=") => Operator::Equal,
            Token::Symbol("!=") => Operator::NotEqual,
            Token::Symbol("<") => Operator::Less,
            Token::Symbol("<=") => Operator::LessOrEqual,
            Token::Symbol(">") => Operator::Greater,
            Token::Symbol(">=") => Operator::GreaterOrEqual,
            Token::Word(word) if word == "contains" || word == "like" || word == "is" => {
                return Err(CqlError::invalid("this kind of relation is not supported"));
            }
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(Relation {
            subject,
            comparison: Comparison::Compare(operator, self.term()?),
        })
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
        let sets = self.list(|parser| {
            let column = parser.identifier()?;
            if parser.symbol("[") || parser.symbol(".") {
                return Err(CqlError::invalid(
                    "updates inside a value are not supported",
                ));
            }
            parser.expect("=")?;
            if matches!(parser.peek(), Token::Word(_) | Token::Quoted(_))
                && matches!(parser.peek_second(), Token::Symbol("+" | "-"))
            {
                return Err(CqlError::Invalid(format!(
                    "Invalid operation for non counter column {column}"
                )));
            }
            Ok((column, parser.term()?))
        })?;
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

    pub(super) fn delete(&mut self) -> Result<Modify> {
        let columns = if self.word("from") {
            Vec::new()
        } else {
            let columns = self.list(Self::identifier)?;
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
        let counter = self.word("counter");
        if !counter {
            self.word("unlogged");
        }
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
            counter,
            using,
            statements,
        })
    }
}
