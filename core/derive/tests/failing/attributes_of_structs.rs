//! Attributes of structs that are none, come twice, have a value or exclude each other.

use messina_core::types::{DecodeRow, DecodeValue, EncodeRow, EncodeValue};

#[derive(DecodeRow)]
#[messina(by_name)]
struct Unknown {
    a: i32,
}

#[derive(DecodeRow)]
#[messina(allow_unknown, allow_unknown)]
struct Twice {
    a: i32,
}

#[derive(DecodeRow)]
#[messina(by_position = true)]
struct WithValue {
    a: i32,
}

#[derive(EncodeRow)]
#[messina(rename_all = "Title Case")]
struct Case {
    a: i32,
}

#[derive(EncodeRow)]
#[messina(by_position, rename_all = "camelCase")]
struct Nameless {
    a: i32,
}

#[derive(EncodeValue)]
#[messina(by_number)]
struct Number {
    a: i32,
}

#[derive(DecodeValue)]
#[messina(transparent)]
struct Transparent {
    a: i32,
    b: i32,
}

#[derive(DecodeValue)]
#[messina(transparent, by_position)]
struct Both(i32);

#[derive(EncodeRow)]
#[messina(crate = "a b")]
struct Path {
    a: i32,
}

fn main() {}
