//! What the derive macros write code in terms of: structs as rows, as values of user-defined types and
//! of tuples, and enumerations as values.
//!
//! Nothing here is meant to be called by hand, and it may change with any version: the macros and this
//! module come in pairs. Each step that needs no Rust type is a function that all structs share; names
//! are compared once for a result or a prepared statement, and in a user-defined type, whose value
//! brings no such moment, first with the name that is expected next.

mod bound;
mod enumeration;
mod row_fields;
mod user_type;

pub use crate::wire::response::RawRow;
pub use crate::wire::{Sink, ValuesBuilder};
pub use bound::{EncodeFields, encode_by_name, encode_by_position, encode_ordered, no_field};
pub use enumeration::{
    check_number, check_variant, decode_number, decode_variant, encode_number, encode_variant,
    no_variant,
};
pub use row_fields::{
    DecodeFields, DenseCells, FieldCells, FieldLayout, RowField, all_columns_found,
    no_more_columns, no_other_columns,
};
pub use user_type::{Fields, Matching, ValueField, check_fields, encode_fields};
