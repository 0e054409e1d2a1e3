//! The core of messina: a CQL driver for ScyllaDB and Apache Cassandra that runs anywhere.
//!
//! `no_std` + `alloc`, no unsafe code, no sockets, no clock, no spawning. Three layers, one
//! direction; a lower layer never imports a higher one (checked by `tests/tidy`):
//!
//! | layer | modules | what it may do |
//! |---|---|---|
//! | 1 pure state | [`wire`] → [`types`] → [`routing`] → [`conn`] → [`cluster`] → [`exec`] | `&mut self`, time passed in; no wakers, no async, no lock but that of the learned tablets |
//! | 2 drive | [`drive`] | the only place with `Context`, `Waker` and the lock; generic over [`drive::Transport`] |
//! | 2 compact | [`compact`] | the same for images that must be small: one owner, no tasks, no locks, its state machine free of `async` |
//! | 3 transports | other crates | sockets, timers, clock |
//!
//! Beside them stand the small modules that every layer may use: [`config`], [`error`], [`target`],
//! [`time`], `rng`, `seeded`, `sync`, `trace`, `words`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "std"),
    allow(
        clippy::arc_with_non_send_sync,
        reason = "the same source shares between threads with `std`"
    )
)]

extern crate alloc;
// The derive macros name this crate as its users do.
#[cfg(feature = "derive")]
extern crate self as messina_core;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod address;
pub mod cluster;
pub mod compact;
pub mod config;
pub mod conn;
mod digits;
pub mod drive;
pub mod error;
pub mod exec;
mod gather;
mod rng;
pub mod routing;
mod seeded;
mod sorted;
mod sync;
pub mod target;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod time;
mod trace;
pub mod types;
pub mod wire;
mod words;

pub use sync::{Local, Shared};

/// The features that this build of the crate has. A build together with other packages may have more
/// than one asked for: what is measured should be built alone.
pub const FEATURES: &[&str] = &[
    #[cfg(feature = "std")]
    "std",
    #[cfg(feature = "compact-ring")]
    "compact-ring",
    #[cfg(feature = "data-texts")]
    "data-texts",
    #[cfg(feature = "early-requests")]
    "early-requests",
    #[cfg(feature = "error-texts")]
    "error-texts",
    #[cfg(feature = "keyspaces")]
    "keyspaces",
    #[cfg(feature = "lazy-shards")]
    "lazy-shards",
    #[cfg(feature = "login")]
    "login",
    #[cfg(feature = "names")]
    "names",
    #[cfg(feature = "prepare-ahead")]
    "prepare-ahead",
    #[cfg(feature = "shard-pools")]
    "shard-pools",
    #[cfg(feature = "streams")]
    "streams",
    #[cfg(feature = "table-ids")]
    "table-ids",
    #[cfg(feature = "topology")]
    "topology",
    #[cfg(feature = "warm-start")]
    "warm-start",
    #[cfg(feature = "tracing")]
    "tracing",
    #[cfg(feature = "test-util")]
    "test-util",
    #[cfg(feature = "lz4")]
    "lz4",
    #[cfg(feature = "snappy")]
    "snappy",
    #[cfg(feature = "protocol-v5")]
    "protocol-v5",
    #[cfg(feature = "client-routes")]
    "client-routes",
    #[cfg(feature = "driver-config")]
    "driver-config",
    #[cfg(feature = "targeting")]
    "targeting",
    #[cfg(feature = "lwt-learning")]
    "lwt-learning",
];
