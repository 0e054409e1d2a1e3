//! Attributes of fields that are none or exclude each other, and names that come twice.

use messina_core::types::{DecodeRow, DecodeValue, EncodeRow};

#[derive(DecodeRow)]
struct Several {
    #[messina(column = "x")]
    unknown: i32,
    #[messina(rename)]
    no_value: i32,
    #[messina(rename = "")]
    empty: i32,
    #[messina(rename = 5)]
    number: i32,
    #[messina(rename = "a", rename = "b")]
    twice: i32,
    #[messina(skip = "yes")]
    value: i32,
}

#[derive(EncodeRow)]
struct Excluded {
    #[messina(skip, rename = "x")]
    a: i32,
    #[messina(skip, flatten)]
    b: i32,
    #[messina(flatten, default_when_null)]
    c: i32,
}

#[derive(EncodeRow)]
struct Same {
    a: i32,
    #[messina(rename = "a")]
    b: i32,
}

#[derive(DecodeRow)]
struct Placed(#[messina(rename = "x")] i32, #[messina(flatten)] i32);

#[derive(DecodeValue)]
struct Value {
    a: i32,
    #[messina(flatten)]
    b: Other,
}

struct Other;

#[derive(DecodeValue)]
struct Newtype(#[messina(default_when_missing)] i32);

fn main() {}
