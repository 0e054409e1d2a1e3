//! CQL types and values: what the bytes of a cell mean.
//!
//! A [`ColumnType`] is parsed once for a statement and then drives everything: checking that a Rust
//! type fits, encoding bound values, decoding cells. Rust types come by [`EncodeValue`] and
//! [`DecodeValue`], whole rows by [`EncodeRow`] and [`DecodeRow`]; [`CqlValue`] holds any value when
//! the type is known only at run time. Both ways, typed and dynamic, follow the same rules, because
//! they walk cells with the same cursors. Text and JSON forms of values are not made here.
//!
//! Invariants: null, unset and empty are three different things; every encoder writes exactly one
//! value (the [`Written`] token proves it); numbers never wrap; no declared count is believed before
//! the bytes are there. Value formats follow section 6 of the native protocol specification, vectors
//! and durations those of Apache Cassandra 5.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod cell;
mod class;
mod column;
mod decode;
mod dynamic;
mod encode;
mod error;
mod number;
mod row;
mod temporal;
#[cfg(test)]
mod testing;
mod value;
mod vint;
mod writer;

pub use column::{ColumnSpec, ColumnType, ResultMetadata, UdtType, VectorType};
pub use decode::DecodeValue;
pub use encode::{EncodeValue, MaybeUnset, Unset};
pub use error::{BindError, DecodeValueError, EncodeValueError, RowError, TypeMismatch};
pub use number::{Counter, CqlDecimal, CqlVarint, NotRepresentable};
pub use row::{DecodeRow, EncodeRow};
pub use temporal::{CqlDate, CqlDuration, CqlTime, CqlTimestamp};
pub use value::{CqlValue, MaybeEmpty, UdtValue};
pub use writer::{ValueContent, ValueWriter, Written};
