//! The instance of `messina-cql/lite`: one connection, written on core's state machines without
//! futures, wakers and tasks. What the exports are given is kept; [`Instance::outputs`] alone goes on
//! with everything, in one pass that ends when nothing changes.
//!
//! | module | what it is |
//! |---|---|
//! | `instance` | what the exports do |
//! | `session` | the pass: contact points dialed, links advanced, the session's end |
//! | `exchange` | requests submitted, and what becomes of each |
//! | `contact` | which contact point is tried next, and when |
//! | `link` | one link: handshake, frames in, bytes out |
//! | `request` | a request on its way, and how it is written |
//! | `answer` | what answers mean, and how the shell is told |
//! | `types` | the texts of types |
//!
//! The session follows the rules of core's `Routing::Single`. Different is only: no extension of the
//! protocol is asked for, statements are not kept beyond what the shell holds, and a request waits
//! while the connection is opened anew, until all contact points have failed.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

mod answer;
mod contact;
mod exchange;
mod instance;
mod link;
mod request;
mod session;
#[cfg(test)]
mod tests;
mod types;

#[cfg(any(test, target_family = "wasm"))]
pub(crate) use instance::Instance;
