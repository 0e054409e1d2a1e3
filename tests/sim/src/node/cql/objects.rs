//! CREATE, ALTER and DROP of user types, materialized views and indexes.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn create_type(&mut self) -> Result<SchemaStatement> {
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let name = self.table_name()?;
        self.expect("(")?;
        let fields = self.list(|parser| Ok((parser.identifier()?, parser.type_name()?)))?;
        self.expect(")")?;
        Ok(SchemaStatement::CreateType {
            name,
            if_not_exists,
            fields,
        })
    }

    pub(super) fn alter_type(&mut self) -> Result<SchemaStatement> {
        let name = self.table_name()?;
        let alteration = if self.word("add") {
            TypeAlteration::Add(self.identifier()?, self.type_name()?)
        } else if self.word("rename") {
            TypeAlteration::Rename(self.renames()?)
        } else if self.word("alter") {
            return Err(CqlError::invalid(
                "Altering field types is no longer supported",
            ));
        } else {
            return Err(self.error());
        };
        Ok(SchemaStatement::AlterType { name, alteration })
    }

    /// After MATERIALIZED VIEW.
    pub(super) fn view_statement(&mut self, verb: &str) -> Result<SchemaStatement> {
        match verb {
            "create" => self.create_view().map(SchemaStatement::CreateView),
            "alter" => Ok(SchemaStatement::AlterView {
                view: self.table_name()?,
                options: self.options()?,
            }),
            _ => {
                let if_exists = self.words(&["if", "exists"]);
                Ok(SchemaStatement::Drop {
                    kind: Dropped::View,
                    name: self.table_name()?,
                    if_exists,
                })
            }
        }
    }

    fn create_view(&mut self) -> Result<CreateView> {
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let view = self.table_name()?;
        self.expect_word("as")?;
        self.expect_word("select")?;
        let columns = if self.symbol("*") {
            Vec::new()
        } else {
            self.list(Self::identifier)?
        };
        self.expect_word("from")?;
        let base = self.table_name()?;
        let start = self.at + 1;
        let (mut not_null, mut relations) = (Vec::new(), Vec::new());
        let mut where_clause = String::new();
        if self.word("where") {
            loop {
                if matches!(self.peek_second(), Token::Word(word) if word == "is") {
                    not_null.push(self.identifier()?);
                    if !self.words(&["is", "not", "null"]) {
                        return Err(self.error());
                    }
                } else {
                    relations.push(self.relation()?);
                }
                if !self.word("and") {
                    break;
                }
            }
            self.text_from(start).clone_into(&mut where_clause);
        }
        if !self.words(&["primary", "key"]) {
            return Err(self.error());
        }
        let (partition, clustering) = self.primary_key()?;
        let (order, options) = self.table_options()?;
        Ok(CreateView {
            view,
            if_not_exists,
            base,
            columns,
            not_null,
            relations,
            where_clause,
            partition,
            clustering,
            order,
            options,
        })
    }

    /// After INDEX.
    pub(super) fn create_index(&mut self, custom: bool) -> Result<SchemaStatement> {
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let name = if matches!(self.peek(), Token::Word(word) if word == "on") {
            None
        } else {
            Some(self.identifier()?)
        };
        self.expect_word("on")?;
        let table = self.table_name()?;
        self.expect("(")?;
        if matches!(self.peek(), Token::Symbol("(")) {
            return Err(CqlError::invalid(
                "local indexes are not supported by this node",
            ));
        }
        let column = self.identifier()?;
        let target = if self.symbol("(") {
            if !matches!(column.as_str(), "keys" | "values" | "entries" | "full") {
                return Err(self.error());
            }
            let target = (self.identifier()?, Some(column));
            self.expect(")")?;
            target
        } else {
            (column, None)
        };
        if self.symbol(",") {
            return Err(CqlError::invalid(
                "Only CUSTOM indexes support multiple columns",
            ));
        }
        self.expect(")")?;
        let mut class = None;
        if custom {
            self.expect_word("using")?;
            let Token::Literal(Literal::Text(name)) = self.next() else {
                self.at -= 1;
                return Err(self.error());
            };
            class = Some(name);
        }
        if !self.options()?.is_empty() {
            return Err(CqlError::invalid(
                "options of indexes are not supported by this node",
            ));
        }
        Ok(SchemaStatement::CreateIndex(CreateIndex {
            name,
            if_not_exists,
            table,
            target,
            class,
        }))
    }
}
