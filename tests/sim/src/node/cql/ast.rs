//! Syntax trees of the statements a node understands.

use core::fmt;

use super::super::value::hex;

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
    /// A function by its name in lower case.
    Call(String, Vec<Self>),
    /// `[a, b]`: a list or a vector.
    List(Vec<Self>),
    /// `{a, b}`; `{}` may also be a map.
    Set(Vec<Self>),
    /// `{a: b}` with keys that are values.
    Map(Vec<(Self, Self)>),
    /// `{a: b}` with keys that are names: a value of a user type.
    Fields(Vec<(String, Self)>),
    /// `(a, b)`.
    Tuple(Vec<Self>),
    /// `(type) a`.
    Hint(TypeName, Box<Self>),
}

/// A type as written; what it names is for the schema to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) keyspace: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Vec<Self>,
    /// Of `vector<T, len>`.
    pub(crate) len: Option<u16>,
}

impl fmt::Display for TypeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(out, "{keyspace}.")?;
        }
        out.write_str(&self.name)?;
        for (at, argument) in self.arguments.iter().enumerate() {
            write!(out, "{}{argument}", if at == 0 { "<" } else { ", " })?;
        }
        if let Some(len) = self.len {
            write!(out, ", {len}")?;
        }
        out.write_str(if self.arguments.is_empty() { "" } else { ">" })
    }
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
    /// `CONTAINS a`.
    Contains(Term),
    /// `CONTAINS KEY a`.
    ContainsKey(Term),
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    Column(String),
    /// `a[key]` or `a.field`.
    Part(String, Part),
    /// `(a, b)`.
    Tuple(Vec<String>),
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
    /// A function by its name in lower case; `token`, `writetime` and `ttl` are among them.
    Call(String, Vec<Self>),
    /// `cast(a as type)`.
    Cast(Box<Self>, TypeName),
    /// `a.field`.
    Field(Box<Self>, String),
    /// `a[key]`.
    Element(Box<Self>, Term),
    /// A value that no column has.
    Term(Term),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    pub(crate) table: TableName,
    pub(crate) distinct: bool,
    /// Empty for `*`.
    pub(crate) selectors: Vec<(Selector, Option<String>)>,
    pub(crate) relations: Vec<Relation>,
    /// Columns of GROUP BY.
    pub(crate) group: Vec<String>,
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
    Update(Vec<(String, Assignment)>),
    /// What to delete of a row, nothing for rows.
    Delete(Vec<(String, Part)>),
}

/// What UPDATE does to a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Assignment {
    /// `c = a`, `c[key] = a`, `c.field = a`.
    Set(Part, Term),
    /// `c = c + a`: of a counter, a list, a set or a map.
    Add(Term),
    /// `c = a + c`: of a list.
    Prepend(Term),
    /// `c = c - a`.
    Subtract(Term),
}

/// How much of a column is meant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Whole,
    /// `c[key]`.
    Element(Term),
    /// `c.field`.
    Field(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

impl BatchKind {
    /// The type byte of a BATCH; nodes do not refuse unknown ones.
    pub(crate) fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Unlogged,
            2 => Self::Counter,
            _ => Self::Logged,
        }
    }
}

/// A textual BEGIN BATCH … APPLY BATCH.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextBatch {
    pub(crate) kind: BatchKind,
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

/// A column as CREATE or ALTER defines it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnDefinition<T = TypeName> {
    pub(crate) name: String,
    pub(crate) ty: T,
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

/// A materialized view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateView {
    pub(crate) view: TableName,
    pub(crate) if_not_exists: bool,
    pub(crate) base: TableName,
    /// Empty for `*`.
    pub(crate) columns: Vec<String>,
    /// Columns that must not be null.
    pub(crate) not_null: Vec<String>,
    /// Further conditions.
    pub(crate) relations: Vec<Relation>,
    /// The conditions as written.
    pub(crate) where_clause: String,
    pub(crate) partition: Vec<String>,
    pub(crate) clustering: Vec<String>,
    pub(crate) order: Vec<(String, bool)>,
    pub(crate) options: Options,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateIndex {
    /// None for a name made from table and column.
    pub(crate) name: Option<String>,
    pub(crate) if_not_exists: bool,
    pub(crate) table: TableName,
    /// The column with what of it is indexed: `values`, `keys`, `entries`, `full`.
    pub(crate) target: (String, Option<String>),
    /// The class of a custom index.
    pub(crate) class: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Alteration {
    Add(Vec<ColumnDefinition>),
    Drop(Vec<String>),
    /// Old and new names of key columns.
    Rename(Vec<(String, String)>),
    With(Options),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypeAlteration {
    Add(String, TypeName),
    Rename(Vec<(String, String)>),
}

/// A kind of schema object that DROP removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    Table,
    Type,
    View,
    Index,
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
    CreateType {
        name: TableName,
        if_not_exists: bool,
        fields: Vec<(String, TypeName)>,
    },
    AlterType {
        name: TableName,
        alteration: TypeAlteration,
    },
    CreateView(CreateView),
    AlterView {
        view: TableName,
        options: Options,
    },
    CreateIndex(CreateIndex),
    /// Anything but a keyspace.
    Drop {
        kind: Dropped,
        name: TableName,
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
    Truncate(TableName, Using),
    Schema(SchemaStatement),
    /// Good CQL that this node does not carry out.
    Unsupported(Unsupported),
}

/// What kind of statement is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsupported {
    /// Roles, users, permissions, service levels.
    Access,
    /// User-defined functions and aggregates.
    UserFunction,
    Describe,
    Other,
}
