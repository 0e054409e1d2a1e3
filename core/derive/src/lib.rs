//! Derive macros of messina: structs as rows and as values.
//!
//! Turn on the feature `derive` of `messina-core`, or use `messina-tokio`, which has it, and import
//! each trait with its macro from there.
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
