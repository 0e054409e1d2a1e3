//! Structs and enumerations that derive the traits, through bytes and back. Through a session they go
//! in the tests of `messina-tokio`.

mod properties;
mod rows;
mod support;
mod values;
