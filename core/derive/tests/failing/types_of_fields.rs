//! Fields of types that are no values: said at the field.

use messina_core::types::{DecodeRow, EncodeRow};

struct NoValue;

#[derive(DecodeRow)]
struct Read {
    a: i32,
    b: NoValue,
}

#[derive(EncodeRow)]
struct Bound {
    a: i32,
    b: NoValue,
}

#[derive(DecodeRow)]
struct Default {
    #[messina(default_when_null)]
    a: &'static str,
    #[messina(skip)]
    b: NoValue,
}

#[derive(DecodeRow)]
struct Flat {
    #[messina(flatten)]
    a: (i32, i32),
}

fn main() {}
