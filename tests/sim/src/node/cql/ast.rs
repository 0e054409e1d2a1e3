//! Syntax trees of the statements a node understands.

use super::super::value::{CqlType, hex};

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Integer(String),
    Float(String),
    Text(String),
    Boolean(bool),
    Blob(Vec<u8>),
    Uuid([u8; 16]),
    Duration(String),
}

impl Literal {
    /// What error texts call it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "INTEGER",
            Self::Float(_) => "FLOAT",
            Self::Text(_) => "STRING",
            Self::Boolean(_) => "BOOLEAN",
            Self::Blob(_) => "HEX",
            Self::Uuid(_) => "UUID",
            Self::Duration(_) => "DURATION",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Integer(text) | Self::Float(text) | Self::Text(text) | Self::Duration(text) => {
                text.clone()
            }
            Self::Boolean(value) => value.to_string(),
            Self::Blob(bytes) => format!("0x{}", hex(bytes)),
            Self::Uuid(bytes) => hex(bytes),
        }
    }
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    Literal(Literal),
    /// A bind variable by its number; named ones used twice share a number.
    Marker(usize),
    Call(String),
}

/// A table as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableName {
    pub(crate) keyspace: Option<String>,
    pub(crate) name: String,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The right side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Comparison {
    Compare(Operator, Term),
    /// `IN (a, b)`.
    In(Vec<Term>),
    /// `IN ?`.
    InMarker(usize),
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    Column(String),
    Token(Vec<String>),
}

/// One condition of WHERE or IF.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Relation {
    pub(crate) subject: Subject,
    pub(crate) comparison: Comparison,
}

/// What a SELECT shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selector {
    Column(String),
    CountRows,
    Token(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    pub(crate) table: TableName,
    /// Empty for `*`.
    pub(crate) selectors: Vec<(Selector, Option<String>)>,
    pub(crate) relations: Vec<Relation>,
    /// Columns with "descending".
    pub(crate) order: Vec<(String, bool)>,
    pub(crate) limit: Option<Term>,
    pub(crate) per_partition_limit: Option<Term>,
    pub(crate) allow_filtering: bool,
    pub(crate) using: Using,
}

/// `USING …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Using {
    pub(crate) timestamp: Option<Term>,
    pub(crate) ttl: Option<Term>,
    pub(crate) timeout: Option<Term>,
}

/// `IF …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Condition {
    #[default]
    None,
    NotExists,
    Exists,
    Columns(Vec<Relation>),
}

/// INSERT, UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Modify {
    pub(crate) table: TableName,
    pub(crate) kind: ModifyKind,
    pub(crate) using: Using,
    pub(crate) relations: Vec<Relation>,
    pub(crate) condition: Condition,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModifyKind {
    Insert(Vec<(String, Term)>),
    Update(Vec<(String, Term)>),
    /// Columns to delete, none for rows.
    Delete(Vec<String>),
}

/// A textual BEGIN BATCH … APPLY BATCH.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextBatch {
    pub(crate) counter: bool,
    pub(crate) using: Using,
    pub(crate) statements: Vec<Modify>,
}

/// The value of an option: a word, or a map of words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OptionValue {
    Word(String),
    Map(Vec<(String, String)>),
}

pub(crate) type Options = Vec<(String, OptionValue)>;

/// A column as CREATE TABLE or ALTER TABLE declares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnDefinition {
    pub(crate) name: String,
    pub(crate) ty: CqlType,
    /// One value for the whole partition.
    pub(crate) is_static: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateTable {
    pub(crate) table: TableName,
    pub(crate) if_not_exists: bool,
    pub(crate) columns: Vec<ColumnDefinition>,
    pub(crate) partition: Vec<String>,
    pub(crate) clustering: Vec<String>,
    pub(crate) order: Vec<(String, bool)>,
    pub(crate) options: Options,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Alteration {
    Add(Vec<ColumnDefinition>),
    Drop(Vec<String>),
    With(Options),
}

/// A statement that changes the schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SchemaStatement {
    CreateKeyspace {
        name: String,
        if_not_exists: bool,
        options: Options,
    },
    AlterKeyspace {
        name: String,
        options: Options,
    },
    DropKeyspace {
        name: String,
        if_exists: bool,
    },
    CreateTable(CreateTable),
    AlterTable {
        table: TableName,
        alteration: Alteration,
    },
    DropTable {
        table: TableName,
        if_exists: bool,
    },
}

/// Any statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Select(Select),
    Modify(Modify),
    Batch(TextBatch),
    Use(String),
    Truncate(TableName),
    Schema(SchemaStatement),
    /// Good CQL that this node does not carry out.
    Unsupported(&'static str),
}
