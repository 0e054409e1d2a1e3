//! messina as a WebAssembly module for JavaScript.
//!
//! The module has exports and no imports. The shell (`js/`) owns sockets, timers and promises; it
//! calls in with what happened (`feed`, `link_opened`, `tick`, `execute`, ..) and takes what has to
//! be done from `outputs`, which first runs every task that can go on. Nothing calls into
//! JavaScript while Rust runs, so no call ever meets a borrowed object.
//!
//! | module | what it is |
//! |---|---|
//! | `boundary` | the exports, the allocator and the panic handler; the only unsafe code, on WASM only |
//! | `instance` | what the exports do |
//! | `executor` | the ready queue |
//! | `lite` | in place of these and what follows: the instance of `messina-cql/lite`, with one connection |
//! | `transport`, `link`, `time` | core's `Transport`: byte queues and deadlines that the shell serves |
//! | `message` | how requests and outputs are laid out in memory |
//! | `settings`, `options`, `input`, `batch`, `values` | what the shell gives |
//! | `outbox`, `finished`, `result`, `type_text`, `failure`, `cluster` | what it is told |
//!
//! A panic traps. The shell then rejects every pending promise and drops the module, so nothing
//! needs to unwind. The module that ships keeps no texts of panics, which would be 4 % of it;
//! one made by `cargo xtask wasm --messages` tells them through `panic_message`.
#![cfg_attr(target_family = "wasm", no_std)]
#![deny(unsafe_code)]
#![cfg_attr(
    not(target_family = "wasm"),
    allow(dead_code, reason = "the exports that use it exist on WASM only")
)]

extern crate alloc;

#[cfg(feature = "full")]
mod batch;
#[cfg(target_family = "wasm")]
mod boundary;
#[cfg(feature = "full")]
mod cluster;
#[cfg(feature = "full")]
mod executor;
mod failure;
#[cfg(feature = "full")]
mod finished;
mod input;
#[cfg(feature = "full")]
mod instance;
#[cfg(feature = "full")]
mod link;
#[cfg(any(test, not(feature = "full")))]
mod lite;
mod message;
mod options;
mod outbox;
#[cfg(feature = "full")]
mod result;
#[cfg(feature = "full")]
mod route;
mod settings;
mod slab;
#[cfg(test)]
mod testing;
#[cfg(all(test, feature = "full"))]
mod tests;
#[cfg(feature = "full")]
mod time;
#[cfg(feature = "full")]
mod transport;
#[cfg(feature = "full")]
mod type_text;
#[cfg(feature = "full")]
mod values;
