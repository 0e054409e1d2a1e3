//! CQL types and values: what the bytes of a cell mean.
//!
//! A [`ColumnType`] is parsed once for a statement and then drives everything: checking that a Rust
//! type fits, encoding bound values, decoding cells. Rust types come by [`EncodeValue`] and
//! [`DecodeValue`], whole rows by [`EncodeRow`] and [`DecodeRow`]; [`CqlValue`] holds any value when
//! the type is known only at run time. Both ways, typed and dynamic, follow the same rules, because
//! they walk cells with the same cursors. Text and JSON forms of values are not made here.
//!
//! With the feature `derive`, structs derive all four traits; `messina-derive` lists the attributes.
//!
//! Invariants: null, unset and empty are three different things; every encoder writes exactly one
//! value (the [`Written`] token proves it); numbers never wrap; no declared count is believed before
//! the bytes are there. Value formats follow section 6 of the native protocol specification, vectors
//! and durations those of Apache Cassandra 5.
//!
//! ```
//! use messina_core::types::{ColumnSpec, ColumnType, DecodeRow, EncodeRow};
//! use messina_core::wire::response::RowsContent;
//! use messina_core::wire::{SmallBuffer, ValuesBuilder};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let column = |name: &str, ty| ColumnSpec {
//!     keyspace: "ks".into(),
//!     table: "t".into(),
//!     name: name.into(),
//!     ty,
//! };
//! let columns = [column("id", ColumnType::Int), column("name", ColumnType::Text)];
//!
//! let mut values = ValuesBuilder::new(SmallBuffer::<256>::new());
//! (7, Some("ann")).encode_row(&columns, &mut values)?;
//! let encoded = values.finish();
//!
//! // Cells have the layout of bound values.
//! <(i32, &str)>::check_columns(&columns)?;
//! let page = RowsContent::new(2, 1, encoded.values().as_bytes())?;
//! for row in page {
//!     assert_eq!(<(i32, &str)>::decode_row(&(), &columns, row?)?, (7, "ann"));
//! }
//! # Ok(())
//! # }
//! ```
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
mod order;
mod row;
#[cfg(feature = "std")]
mod std_collections;
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod structs;
mod temporal;
#[cfg(test)]
mod testing;
mod value;
mod vint;
mod writer;

#[cfg(feature = "derive")]
pub use messina_derive::{DecodeRow, DecodeValue, EncodeRow, EncodeValue};

pub use column::{ColumnSpec, ColumnType, ResultMetadata, UdtType, VectorType};
pub use decode::DecodeValue;
pub use encode::{EncodeValue, MaybeUnset, Unset};
pub use error::{
    BindError, DecodeValueError, EncodeValueError, FieldMismatch, RowError, TypeMismatch,
};
pub use number::{Counter, CqlDecimal, CqlVarint, NotRepresentable};
pub(crate) use order::MarkerOrders;
pub use order::{FieldName, MarkerOrder, ValueNames};
pub use row::{DecodeRow, EncodeRow};
pub use temporal::{CqlDate, CqlDuration, CqlTime, CqlTimestamp};
pub use value::{CqlValue, MaybeEmpty, UdtValue};
pub use writer::{ValueContent, ValueWriter, Written};
