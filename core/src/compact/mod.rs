//! The whole driver as one machine with one owner, for firmware and other small programs.
//!
//! | module | what it is |
//! |---|---|
//! | [`cursor`] | rows out of a body that comes in pieces, through one window |
//! | [`plane`] | what is known of the cluster, and where requests go |
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

pub mod cursor;
pub mod plane;
