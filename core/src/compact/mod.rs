//! The whole driver as one machine with one owner: no futures, no tasks, no locks. Operations out
//! through [`Host`], completions in by the `handle_` functions, and [`Machine::run`] goes on with
//! everything in one pass that ends when nothing changes.
//!
//! It is for images that must be small: firmware, and modules for JavaScript. [`drive`](crate::drive)
//! is for servers, where many tasks share a session; it knows more and weighs more.
//!
//! | module | what it is |
//! |---|---|
//! | `machine` | the pass: links advanced, the session's beginning and end |
//! | `contact` | where a first connection is looked for, and when |
//! | `serving` | links adopted and lost |
//! | `control` | the link that the cluster is read over |
//! | `pools` | further links: one for each member, or for each of its shards |
//! | `exchange` | requests submitted, and what becomes of each |
//! | `request` | statements and requests, and how they are written |
//! | `answer` | what answers mean |
//! | `link` | one link: handshake, frames in, bytes out |
//! | [`cursor`] | rows out of a body that comes in pieces, through one window |
//! | [`plane`] | what is known of the cluster, and where requests go |
//!
//! What differs from `drive`: tables and keyspaces are read when a statement uses them, not all of
//! them; statements are prepared on further nodes when these do not know them; a request waits
//! while the only connection is opened anew, until every place has failed; nothing is compressed.
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

mod answer;
mod contact;
mod control;
pub mod cursor;
mod exchange;
mod host;
mod link;
mod machine;
pub mod plane;
mod pools;
mod random;
mod request;
mod serving;
mod slab;

pub use host::{Answered, Done, Host};
pub use machine::{LinkStatus, Machine, NONE};
pub use request::{BatchPart, RequestOptions, Statement};
