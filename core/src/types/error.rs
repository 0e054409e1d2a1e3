//! Why a value or a row does not fit its columns. Errors name the column and carry both types.

use alloc::boxed::Box;
use core::fmt;

use super::ColumnType;
use crate::wire::{EncodeError, ParseError};

/// A Rust type that does not fit a CQL type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeMismatch {
    /// The Rust type, or the case of a dynamic value.
    pub rust: &'static str,
    /// The CQL type.
    pub cql: ColumnType,
    /// Which field of a struct does not fit the user-defined type, and why; `None` where there is more
    /// to it than a field, or no struct.
    pub field: Option<Box<FieldMismatch>>,
}

/// How a field of a struct does not fit a user-defined type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldMismatch {
    /// The type of this field, as `Struct.field`. Both types are then those of the field.
    Type(&'static str),
    /// The user-defined type has no such field.
    Missing {
        /// The field of the struct, as `Struct.field`.
        field: &'static str,
        /// The name that it goes by.
        name: &'static str,
    },
    /// The struct has no field for this one of the user-defined type.
    Unknown(Box<str>),
}

impl TypeMismatch {
    /// A value of the type `rust` where there is one of the type `cql`.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn new(rust: &'static str, cql: &ColumnType) -> Self {
        let (cql, field) = (cql.clone(), None);
        Self { rust, cql, field }
    }

    /// The same about one field. The innermost is kept.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_field(mut self, field: FieldMismatch) -> Self {
        self.field.get_or_insert_with(|| Box::new(field));
        self
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rust, cql, .. } = self;
        match self.field.as_deref() {
            None => write!(formatter, "{rust} does not fit {cql}"),
            Some(FieldMismatch::Type(field)) => {
                write!(formatter, "field {field}: {rust} does not fit {cql}")
            }
            Some(FieldMismatch::Missing { field, name }) => {
                write!(formatter, "field {field}: {cql} has no field {name}")
            }
            Some(FieldMismatch::Unknown(name)) => {
                write!(formatter, "{rust} has no field for {name} of {cql}")
            }
        }
    }
}

impl core::error::Error for TypeMismatch {}

/// Why a value cannot be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeValueError {
    /// Its type does not fit.
    Mismatch(TypeMismatch),
    /// It is too large, or of a kind that is not allowed at its place.
    Encode(EncodeError),
    /// A vector of another dimension.
    Dimension {
        /// The dimension of the type.
        expected: u32,
        /// The number of elements given.
        got: usize,
    },
    /// More fields than the tuple has.
    TupleLength {
        /// Fields of the type.
        expected: usize,
        /// Fields given.
        got: usize,
    },
    /// A field that the user-defined type does not have.
    UnknownField(Box<str>),
    /// A field that was given more than once.
    FieldTwice(Box<str>),
    /// A field of a struct does not fit.
    Field {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// What does not fit.
        error: Box<Self>,
    },
    /// The number of an enumeration's variant, which the type is too narrow for.
    OutOfRange,
}

impl fmt::Display for EncodeValueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(mismatch) => mismatch.fmt(formatter),
            Self::Encode(error) => error.fmt(formatter),
            Self::Dimension { expected, got } => {
                write!(formatter, "{got} elements for a vector of {expected}")
            }
            Self::TupleLength { expected, got } => {
                write!(formatter, "{got} fields for a tuple of {expected}")
            }
            Self::UnknownField(name) => write!(formatter, "no field named {name}"),
            Self::FieldTwice(name) => write!(formatter, "field {name} is given twice"),
            Self::Field { field, error } => write!(formatter, "field {field}: {error}"),
            Self::OutOfRange => formatter.write_str("out of range"),
        }
    }
}

impl core::error::Error for EncodeValueError {}

impl From<EncodeError> for EncodeValueError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<TypeMismatch> for EncodeValueError {
    fn from(mismatch: TypeMismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

/// Why values cannot be bound to a statement. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BindError {
    /// Another number of values than the statement has markers.
    Count {
        /// Markers.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// One of the values does not fit.
    Value {
        /// Position of the marker.
        index: usize,
        /// Name of the marker.
        name: Box<str>,
        /// The field of a struct that the value is of, as `Struct.field`.
        field: Option<&'static str>,
        /// What does not fit.
        error: EncodeValueError,
    },
    /// A marker that no field of the struct has the name of.
    NoValue {
        /// Position of the marker.
        index: usize,
        /// Name of the marker.
        name: Box<str>,
    },
    /// A field of the struct that no marker has the name of.
    NoMarker {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The name that it goes by.
        name: &'static str,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, got } => {
                write!(formatter, "{got} values for {expected} markers")
            }
            Self::Value {
                index,
                name,
                field,
                error,
            } => {
                write!(formatter, "value {index} ({name}){}: {error}", Of(*field))
            }
            Self::NoValue { index, name } => {
                write!(formatter, "no field is named as marker {index} ({name})")
            }
            Self::NoMarker { field, name } => {
                write!(formatter, "field {field}: no marker is named {name}")
            }
        }
    }
}

impl core::error::Error for BindError {}

/// Names the field of a struct behind the name of its column.
struct Of(Option<&'static str>);

impl fmt::Display for Of {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |field| write!(formatter, ", field {field}"))
    }
}

/// Why a cell cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeValueError {
    /// The wanted type does not fit.
    Mismatch(TypeMismatch),
    /// Null, and the wanted type has no place for it.
    Null,
    /// No bytes, and the wanted type has no place for it.
    Empty,
    /// Another number of bytes than the type has.
    Length {
        /// Bytes of the type.
        expected: usize,
        /// Bytes in the cell.
        got: usize,
    },
    /// The bytes are not those of the type.
    Parse(ParseError),
    /// The number does not fit the wanted type.
    OutOfRange,
    /// A field of a struct does not fit.
    Field {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// What does not fit.
        error: Box<Self>,
    },
    /// A text or number that stands for no variant of this enumeration.
    NoVariant(&'static str),
}

impl fmt::Display for DecodeValueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(mismatch) => mismatch.fmt(formatter),
            Self::Null => formatter.write_str("null"),
            Self::Empty => formatter.write_str("a value of no bytes"),
            Self::Length { expected, got } => {
                write!(formatter, "{got} bytes for a value of {expected}")
            }
            Self::Parse(error) => error.fmt(formatter),
            Self::OutOfRange => formatter.write_str("out of range"),
            Self::Field { field, error } => write!(formatter, "field {field}: {error}"),
            Self::NoVariant(rust) => write!(formatter, "no variant of {rust}"),
        }
    }
}

impl core::error::Error for DecodeValueError {}

impl From<ParseError> for DecodeValueError {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl From<TypeMismatch> for DecodeValueError {
    fn from(mismatch: TypeMismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

/// Why a row cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowError {
    /// Another number of columns than the row type has.
    Count {
        /// Columns of the row type.
        expected: usize,
        /// Columns of the result.
        got: usize,
    },
    /// One of the columns does not fit.
    Column {
        /// Position of the column.
        index: usize,
        /// Name of the column.
        name: Box<str>,
        /// The field of a struct that it was to become, as `Struct.field`.
        field: Option<&'static str>,
        /// What does not fit.
        error: DecodeValueError,
    },
    /// A field of the struct that no column has the name of.
    NoColumn {
        /// The field, as `Struct.field`.
        field: &'static str,
        /// The name that it goes by.
        name: &'static str,
    },
    /// A column that no field of the struct has the name of, or that has the name of one before it.
    NoField {
        /// Position of the column.
        index: usize,
        /// Name of the column.
        name: Box<str>,
    },
}

impl fmt::Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, got } => {
                write!(formatter, "{got} columns for a row type of {expected}")
            }
            Self::Column {
                index,
                name,
                field,
                error,
            } => {
                write!(formatter, "column {index} ({name}){}: {error}", Of(*field))
            }
            Self::NoColumn { field, name } => {
                write!(formatter, "field {field}: no column is named {name}")
            }
            Self::NoField { index, name } => {
                write!(formatter, "no field is left for column {index} ({name})")
            }
        }
    }
}

impl core::error::Error for RowError {}
