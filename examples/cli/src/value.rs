//! CQL values as JSON, both ways.
//!
//! The column's type decides what a JSON value means, so that nothing is guessed: a string for an
//! `int` is an error, a number for a `varint` may be one too large for JSON and is a string.

mod from_json;
mod number;
mod temporal;
mod to_json;

pub(crate) use from_json::from_json;
pub(crate) use to_json::{to_json, to_text};

/// Bytes as `0x…`.
fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    core::iter::once("0x".to_owned()).chain(digits).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(high)? << 4 | digit(low)?).ok())
        .collect()
}
