//! Shapes that are no rows or values.

use messina_core::types::{DecodeRow, DecodeValue, EncodeRow, EncodeValue};

#[derive(DecodeRow, EncodeRow)]
enum Row {
    A,
}

#[derive(EncodeRow)]
union Union {
    a: i32,
}

#[derive(EncodeValue)]
enum Fields {
    A,
    B(i32),
    C { c: i32 },
}

#[derive(DecodeValue)]
enum Empty {}

#[derive(DecodeValue)]
enum Same {
    A,
    #[messina(rename = "A")]
    B,
}

#[derive(DecodeValue)]
#[messina(by_number)]
enum Number {
    #[messina(rename = "a")]
    A,
}

#[derive(EncodeValue)]
#[messina(transparent)]
enum Transparent {
    A,
}

#[derive(EncodeValue)]
enum Skipped {
    #[messina(skip)]
    A,
}

fn main() {}
