//! Derive macros of messina: structs as rows and as values of user-defined types, enumerations as text
//! or number.
//!
//! `messina-tokio` hands each macro on together with its trait, and so does `messina-core` with the
//! feature `derive`: import them from there. Without `std` they are the same.
//!
//! # Rows
//!
//! [`EncodeRow`] makes a struct the values of a statement, [`DecodeRow`] makes rows of a result a
//! struct. Fields go by name: a column of `SELECT` or a marker belongs to the field of its name, in
//! whatever order they stand. That is looked up once for a result, and once for a prepared statement.
//!
//! ```
//! use messina_core::types::{ColumnSpec, ColumnType, DecodeRow, EncodeRow};
//! # use messina_core::wire::ValuesBuilder;
//! # use messina_core::wire::response::RowsContent;
//!
//! #[derive(Debug, PartialEq, EncodeRow, DecodeRow)]
//! struct Harbour<'a> {
//!     name: &'a str,
//!     depth: Option<f64>,
//!     #[messina(rename = "berths")]
//!     places: i32,
//! }
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let column = |name: &str, ty| ColumnSpec {
//! #     keyspace: "ks".into(),
//! #     table: "t".into(),
//! #     name: name.into(),
//! #     ty,
//! # };
//! // What a session does with `execute`, and with `rows` of its result:
//! let columns = [
//!     column("berths", ColumnType::Int),
//!     column("name", ColumnType::Text),
//!     column("depth", ColumnType::Double),
//! ];
//! let messina = Harbour { name: "Messina", depth: Some(65.0), places: 12 };
//! let mut values = ValuesBuilder::new(Vec::new());
//! messina.encode_row(&columns, &mut values)?;
//! # let encoded = values.finish();
//! let layout = Harbour::check_columns(&columns)?;
//! # for row in RowsContent::new(3, 1, encoded.values().as_bytes())? {
//! #    let row = row?;
//! assert_eq!(Harbour::decode_row(&layout, &columns, row)?, messina);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! A column without a field and a field without a column are errors, and so are a marker without a
//! field and a field without a marker: attributes say where they are not. A marker that stands in a
//! statement several times takes the value of its field each time. Errors name the column and, as
//! `Struct.field`, the field. Fields of a tuple struct go by position. A field that is
//! `MaybeUnset` may be left unset, and keys are found for routing as in a tuple.
//!
//! An empty list, set or map that is not frozen comes back as null: such a field is an `Option`, or
//! `default_when_null`.
//!
//! # Values
//!
//! [`EncodeValue`] and [`DecodeValue`] make a type the value of one column, wherever values stand: in
//! lists, in maps, in one another.
//!
//! ```
//! use messina_core::types::{DecodeValue, EncodeValue};
//!
//! /// A user-defined type with these fields, in any order.
//! #[derive(EncodeValue, DecodeValue)]
//! struct Berth {
//!     pier: String,
//!     place: i32,
//! }
//!
//! /// A `bigint`: a struct with one field and without names stands for that field.
//! #[derive(EncodeValue, DecodeValue)]
//! struct Metres(i64);
//!
//! /// A `tuple<double, double>`, or a user-defined type by position.
//! #[derive(EncodeValue, DecodeValue)]
//! struct Point(f64, f64);
//!
//! /// A `text`: `under_way` or `moored`.
//! #[derive(EncodeValue, DecodeValue)]
//! #[messina(rename_all = "snake_case")]
//! enum State {
//!     UnderWay,
//!     Moored,
//! }
//! ```
//!
//! A user-defined type may gain fields: in reading those that the struct has none for are passed over,
//! in writing they are null. **A value that is read, changed and written whole loses what the struct
//! does not know**; `deny_unknown` makes that an error. A field of the struct that the type does not
//! have is an error. A value that ends before its type has null fields at its end.
//!
//! # Attributes
//!
//! All are written as `#[messina(..)]`. What is of no meaning to one of the macros is passed over by
//! it, so that a struct may derive several.
//!
//! | of a struct | |
//! |---|---|
//! | `by_position` | fields go by their order, not by names |
//! | `rename_all = "camelCase"` | names in another case: `lowercase`, `UPPERCASE`, `PascalCase`, `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, `kebab-case`, `SCREAMING-KEBAB-CASE` |
//! | `allow_unknown` | `DecodeRow`: columns without a field are passed over |
//! | `allow_unused` | `EncodeRow`: fields without a marker are left out |
//! | `deny_unknown` | values: fields of the user-defined type without a field of the struct are an error |
//! | `transparent` | values: the struct stands for its only field |
//! | `crate = "path"` | the crate whose `types` to use, where neither `messina-core` nor `messina-tokio` is a dependency |
//!
//! | of a field | |
//! |---|---|
//! | `rename = "name"` | the name of its column, marker or field |
//! | `skip` | not written; read as its `Default` |
//! | `default_when_null` | reading: null is its `Default` |
//! | `default_when_missing` | reading: without a column, or a field of the type, it is its `Default` |
//! | `flatten` | rows: its own fields are columns of this row, it derives the same trait and is as visible as the struct |
//!
//! | of an enumeration | |
//! |---|---|
//! | `rename_all = ".."`, and `rename = ".."` of a variant | its texts |
//! | `by_number` | a `tinyint`, `smallint`, `int` or `bigint`: the variant's discriminant |
//!
//! # Lifetimes and generics
//!
//! A struct with a lifetime borrows text and bytes from the row. One with several can only be read with
//! all of them the same. Type parameters are bounded where a field needs it.
#![forbid(unsafe_code)]

mod attributes;
mod crate_path;
mod decode_row;
mod decode_value;
mod encode_row;
mod encode_value;
mod generics;
mod input;
mod names;

use proc_macro::TokenStream;
use syn::{DeriveInput, Result, parse_macro_input};

use crate::input::Input;

/// A struct as the values of a statement.
#[proc_macro_derive(EncodeRow, attributes(messina))]
pub fn encode_row(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), encode_row::derive)
}

/// Rows of a result as a struct.
#[proc_macro_derive(DecodeRow, attributes(messina))]
pub fn decode_row(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), decode_row::derive)
}

/// A struct as a value of a user-defined type or a tuple, an enumeration as text or number.
#[proc_macro_derive(EncodeValue, attributes(messina))]
pub fn encode_value(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), encode_value::derive)
}

/// Values of a user-defined type or a tuple as a struct, texts or numbers as an enumeration.
#[proc_macro_derive(DecodeValue, attributes(messina))]
pub fn decode_value(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), decode_value::derive)
}

fn expand(
    input: DeriveInput,
    derive: fn(&Input) -> Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let derived = Input::parse(input).and_then(|input| derive(&input));
    derived
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
