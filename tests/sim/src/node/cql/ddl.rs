//! CREATE, ALTER and DROP of keyspaces and tables; other schema objects are in `objects`.

use super::super::error::CqlError;
use super::lexer::Token;
use super::parser::Parser;
use super::*;

type Result<T> = core::result::Result<T, CqlError>;

/// The parts of a primary key.
pub(super) type PrimaryKey = (Vec<String>, Vec<String>);

impl Parser<'_> {
    pub(super) fn schema_statement(&mut self, verb: &str) -> Result<Statement> {
        let Token::Word(kind) = self.peek().clone() else {
            return Err(self.error());
        };
        self.next();
        let statement = match (kind.as_str(), verb) {
            ("keyspace" | "schema", _) => self.keyspace_statement(verb)?,
            ("table" | "columnfamily", "create") => {
                self.create_table().map(SchemaStatement::CreateTable)?
            }
            ("table" | "columnfamily", "alter") => SchemaStatement::AlterTable {
                table: self.table_name()?,
                alteration: self.alteration()?,
            },
            ("table" | "columnfamily", _) => self.drop(Dropped::Table)?,
            ("type", "create") => self.create_type()?,
            ("type", "alter") => self.alter_type()?,
            ("type", _) => self.drop(Dropped::Type)?,
            ("materialized", _) => {
                self.expect_word("view")?;
                self.view_statement(verb)?
            }
            ("index", "create") => self.create_index(false)?,
            ("index", "drop") => self.drop(Dropped::Index)?,
            ("custom", "create") => {
                self.expect_word("index")?;
                self.create_index(true)?
            }
            ("function" | "aggregate", "create" | "drop") | ("or", "create") => {
                return Ok(self.unsupported(Unsupported::UserFunction));
            }
            ("role" | "user" | "service" | "service_level", _) => {
                return Ok(self.unsupported(Unsupported::Access));
            }
            _ => {
                self.at -= 1;
                return Err(self.error());
            }
        };
        Ok(Statement::Schema(statement))
    }

    fn keyspace_statement(&mut self, verb: &str) -> Result<SchemaStatement> {
        Ok(match verb {
            "create" => {
                let if_not_exists = self.words(&["if", "not", "exists"]);
                SchemaStatement::CreateKeyspace {
                    if_not_exists,
                    name: self.identifier()?,
                    options: self.options()?,
                }
            }
            "alter" => SchemaStatement::AlterKeyspace {
                name: self.identifier()?,
                options: self.options()?,
            },
            _ => {
                let if_exists = self.words(&["if", "exists"]);
                SchemaStatement::DropKeyspace {
                    name: self.identifier()?,
                    if_exists,
                }
            }
        })
    }

    fn drop(&mut self, kind: Dropped) -> Result<SchemaStatement> {
        let if_exists = self.words(&["if", "exists"]);
        Ok(SchemaStatement::Drop {
            kind,
            name: self.table_name()?,
            if_exists,
        })
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
        let mut keys: Vec<PrimaryKey> = Vec::new();
        self.expect("(")?;
        loop {
            if self.words(&["primary", "key"]) {
                keys.push(self.primary_key()?);
            } else {
                let column = self.column_definition()?;
                if self.words(&["primary", "key"]) {
                    keys.push((vec![column.name.clone()], Vec::new()));
                }
                create.columns.push(column);
            }
            if !self.symbol(",") {
                break;
            }
        }
        self.expect(")")?;
        if keys.len() > 1 {
            return Err(CqlError::invalid(
                "Multiple PRIMARY KEYs specifed (exactly one required)",
            ));
        }
        (create.partition, create.clustering) = keys.pop().unwrap_or_default();
        (create.order, create.options) = self.table_options()?;
        Ok(create)
    }

    fn column_definition(&mut self) -> Result<ColumnDefinition> {
        Ok(ColumnDefinition {
            name: self.identifier()?,
            ty: self.type_name()?,
            is_static: self.word("static"),
        })
    }

    /// `WITH …` of a table or a view: the order of rows, and all else.
    pub(super) fn table_options(&mut self) -> Result<(Vec<(String, bool)>, Options)> {
        let (mut order, mut options) = (Vec::new(), Vec::new());
        if !self.word("with") {
            return Ok((order, options));
        }
        loop {
            if self.words(&["clustering", "order", "by"]) {
                order = self.clustering_order()?;
            } else if self.words(&["compact", "storage"]) {
                return Err(CqlError::invalid(
                    "Support for the deprecated feature of COMPACT STORAGE is disabled",
                ));
            } else {
                options.push(self.option()?);
            }
            if !self.word("and") {
                return Ok((order, options));
            }
        }
    }

    fn clustering_order(&mut self) -> Result<Vec<(String, bool)>> {
        self.expect("(")?;
        let order = self.list(|parser| {
            let column = parser.identifier()?;
            let descending = parser.word("desc");
            if !descending {
                parser.expect_word("asc")?;
            }
            Ok((column, descending))
        })?;
        self.expect(")")?;
        Ok(order)
    }

    pub(super) fn primary_key(&mut self) -> Result<PrimaryKey> {
        self.expect("(")?;
        let partition = if matches!(self.peek(), Token::Symbol("(")) {
            self.columns()?
        } else {
            vec![self.identifier()?]
        };
        let mut clustering = Vec::new();
        while self.symbol(",") {
            clustering.push(self.identifier()?);
        }
        self.expect(")")?;
        Ok((partition, clustering))
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
        if self.word("rename") {
            return self.renames().map(Alteration::Rename);
        }
        if matches!(self.peek(), Token::Word(word) if word == "with") {
            return self.options().map(Alteration::With);
        }
        if matches!(self.peek(), Token::Word(word) if word == "alter") {
            return Err(CqlError::invalid(
                "Altering column types is no longer supported",
            ));
        }
        Err(self.error())
    }

    /// `a TO b AND c TO d`.
    pub(super) fn renames(&mut self) -> Result<Vec<(String, String)>> {
        let mut renames = Vec::new();
        loop {
            let old = self.identifier()?;
            self.expect_word("to")?;
            renames.push((old, self.identifier()?));
            if !self.word("and") {
                return Ok(renames);
            }
        }
    }

    /// `WITH a = b AND …`, or nothing.
    pub(super) fn options(&mut self) -> Result<Options> {
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
}
