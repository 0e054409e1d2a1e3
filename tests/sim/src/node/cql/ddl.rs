//! CREATE, ALTER and DROP of keyspaces and tables. Other schema objects parse as unsupported.

use super::super::error::CqlError;
use super::super::value::{CqlType, Native};
use super::lexer::Token;
use super::parser::Parser;
use super::*;

/// Deepest nesting of a type.
const TYPE_DEPTH_MAX: usize = 16;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn schema_statement(&mut self, verb: &str) -> Result<Statement> {
        let Token::Word(kind) = self.peek().clone() else {
            return Err(self.error());
        };
        let is_known = matches!(
            kind.as_str(),
            "keyspace" | "schema" | "table" | "columnfamily"
        );
        if !is_known {
            let others = [
                "type",
                "index",
                "custom",
                "materialized",
                "function",
                "aggregate",
                "role",
                "user",
                "trigger",
                "service",
                "service_level",
                "or",
            ];
            if others.contains(&kind.as_str()) {
                return Ok(self.unsupported("this kind of schema object"));
            }
            return Err(self.error());
        }
        self.next();
        let keyspace = matches!(kind.as_str(), "keyspace" | "schema");
        let statement = match (verb, keyspace) {
            ("create", true) => {
                let if_not_exists = self.words(&["if", "not", "exists"]);
                let name = self.identifier()?;
                let options = self.options()?;
                SchemaStatement::CreateKeyspace {
                    name,
                    if_not_exists,
                    options,
                }
            }
            ("alter", true) => {
                let name = self.identifier()?;
                SchemaStatement::AlterKeyspace {
                    name,
                    options: self.options()?,
                }
            }
            ("drop", true) => {
                let if_exists = self.words(&["if", "exists"]);
                SchemaStatement::DropKeyspace {
                    name: self.identifier()?,
                    if_exists,
                }
            }
            ("create", false) => self.create_table().map(SchemaStatement::CreateTable)?,
            ("alter", false) => {
                let table = self.table_name()?;
                SchemaStatement::AlterTable {
                    table,
                    alteration: self.alteration()?,
                }
            }
            _ => {
                let if_exists = self.words(&["if", "exists"]);
                SchemaStatement::DropTable {
                    table: self.table_name()?,
                    if_exists,
                }
            }
        };
        Ok(Statement::Schema(statement))
    }

    fn create_table(&mut self) -> Result<CreateTable> {
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let mut create = CreateTable {
            table: self.table_name()?,
            if_not_exists,
            columns: Vec::new(),
            partition: Vec::new(),
            clustering: Vec::new(),
            order: Vec::new(),
            options: Vec::new(),
        };
        self.expect("(")?;
        loop {
            if self.words(&["primary", "key"]) {
                self.primary_key(&mut create)?;
            } else {
                let column = self.column_definition()?;
                if self.words(&["primary", "key"]) {
                    create.partition.push(column.name.clone());
                }
                create.columns.push(column);
            }
            if !self.symbol(",") {
                break;
            }
        }
        self.expect(")")?;
        if self.word("with") {
            loop {
                if self.words(&["clustering", "order", "by"]) {
                    self.clustering_order(&mut create)?;
                } else if !self.words(&["compact", "storage"]) {
                    create.options.push(self.option()?);
                }
                if !self.word("and") {
                    break;
                }
            }
        }
        Ok(create)
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition> {
        Ok(ColumnDefinition {
            name: self.identifier()?,
            ty: self.cql_type(0)?,
            is_static: self.word("static"),
        })
    }

    fn clustering_order(&mut self, create: &mut CreateTable) -> Result<()> {
        self.expect("(")?;
        create.order = self.list(|parser| {
            let column = parser.identifier()?;
            let descending = parser.word("desc");
            if !descending {
                parser.expect_word("asc")?;
            }
            Ok((column, descending))
        })?;
        self.expect(")")
    }

    fn primary_key(&mut self, create: &mut CreateTable) -> Result<()> {
        self.expect("(")?;
        if matches!(self.peek(), Token::Symbol("(")) {
            create.partition = self.columns()?;
        } else {
            create.partition = vec![self.identifier()?];
        }
        while self.symbol(",") {
            create.clustering.push(self.identifier()?);
        }
        self.expect(")")
    }

    fn alteration(&mut self) -> Result<Alteration> {
        if self.word("add") {
            let grouped = self.symbol("(");
            let columns = self.list(Self::column_definition)?;
            if grouped {
                self.expect(")")?;
            }
            return Ok(Alteration::Add(columns));
        }
        if self.word("drop") {
            if matches!(self.peek(), Token::Symbol("(")) {
                return self.columns().map(Alteration::Drop);
            }
            return self.list(Self::identifier).map(Alteration::Drop);
        }
        if matches!(self.peek(), Token::Word(word) if word == "with") {
            return self.options().map(Alteration::With);
        }
        if matches!(self.peek(), Token::Word(word) if word == "rename" || word == "alter") {
            return Err(CqlError::invalid("this ALTER TABLE is not supported"));
        }
        Err(self.error())
    }

    /// `WITH a = b AND …`, or nothing.
    fn options(&mut self) -> Result<Options> {
        let mut options = Vec::new();
        if self.word("with") {
            loop {
                options.push(self.option()?);
                if !self.word("and") {
                    break;
                }
            }
        }
        Ok(options)
    }

    fn option(&mut self) -> Result<(String, OptionValue)> {
        let name = self.identifier()?;
        self.expect("=")?;
        if !self.symbol("{") {
            return Ok((name, OptionValue::Word(self.option_word()?)));
        }
        let mut entries = Vec::new();
        while !self.symbol("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let key = self.option_word()?;
            self.expect(":")?;
            entries.push((key, self.option_word()?));
        }
        Ok((name, OptionValue::Map(entries)))
    }

    fn option_word(&mut self) -> Result<String> {
        if let Token::Word(word) = self.peek() {
            let word = word.clone();
            self.next();
            return Ok(word);
        }
        match self.term()? {
            Term::Literal(literal) => Ok(literal.text()),
            _ => Err(self.error()),
        }
    }

    fn cql_type(&mut self, depth: usize) -> Result<CqlType> {
        if depth > TYPE_DEPTH_MAX {
            return Err(CqlError::invalid("type is nested too deeply"));
        }
        let name = self.identifier()?;
        if let Some(native) = Native::named(&name) {
            return Ok(CqlType::Native(native));
        }
        if !matches!(name.as_str(), "list" | "set" | "map" | "frozen") {
            if matches!(name.as_str(), "tuple" | "vector") {
                return Err(CqlError::invalid(format!("Type {name} is not supported")));
            }
            return Err(CqlError::Invalid(format!("Unknown type {name}")));
        }
        self.expect("<")?;
        let first = Box::new(self.cql_type(depth + 1)?);
        let ty = match name.as_str() {
            "list" => CqlType::List(first),
            "set" => CqlType::Set(first),
            "frozen" => CqlType::Frozen(first),
            _ => {
                self.expect(",")?;
                CqlType::Map(first, Box::new(self.cql_type(depth + 1)?))
            }
        };
        self.expect(">")?;
        Ok(ty)
    }
}
