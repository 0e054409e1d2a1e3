//! Why a value or a row does not fit its columns. Errors name the column and carry both types.

use alloc::boxed::Box;
use core::fmt;

use super::ColumnType;
use crate::wire::{EncodeError, ParseError};

/// A Rust type that does not fit a CQL type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The Rust type, or the case of a dynamic value.
    pub rust: &'static str,
    /// The CQL type.
    pub cql: ColumnType,
}

impl TypeMismatch {
    #[cold]
    #[inline(never)]
    pub(super) fn new(rust: &'static str, cql: &ColumnType) -> Self {
        let cql = cql.clone();
        Self { rust, cql }
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} does not fit {}", self.rust, self.cql)
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
        /// What does not fit.
        error: EncodeValueError,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, got } => {
                write!(formatter, "{got} values for {expected} markers")
            }
            Self::Value { index, name, error } => {
                write!(formatter, "value {index} ({name}): {error}")
            }
        }
    }
}

impl core::error::Error for BindError {}

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
        /// What does not fit.
        error: DecodeValueError,
    },
}

impl fmt::Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, got } => {
                write!(formatter, "{got} columns for a row type of {expected}")
            }
            Self::Column { index, name, error } => {
                write!(formatter, "column {index} ({name}): {error}")
            }
        }
    }
}

impl core::error::Error for RowError {}
