//! messina as a WebAssembly module for JavaScript.
//!
//! The module has exports and no imports. The shell (`js/`) owns sockets, timers and promises; it
//! calls in with what happened (`feed`, `link_opened`, `tick`, `execute`, ..) and takes what has to
//! be done from `outputs`, which first goes on with everything. Nothing calls into
//! JavaScript while Rust runs, so no call ever meets a borrowed object.
//!
//! | module | what it is |
//! |---|---|
//! | `boundary` | the exports, the allocator and the panic handler; the only unsafe code, on WASM only |
//! | `instance` | what the exports do: core's [`Machine`](messina_core::compact::Machine) is told, and run |
//! | `host` | what the machine wants done |
//! | `tunnel` | many links through one, to a relay; feature `full` |
//! | `message` | how requests and outputs are laid out in memory |
//! | `settings`, `points`, `options`, `input` | what the shell gives |
//! | `outbox`, `answer`, `types`, `failure`, `cluster` | what it is told |
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

mod answer;
#[cfg(target_family = "wasm")]
mod boundary;
#[cfg(feature = "full")]
mod cluster;
mod failure;
mod host;
mod input;
mod instance;
mod message;
mod options;
mod outbox;
mod points;
mod settings;
#[cfg(test)]
mod testing;
#[cfg(all(test, feature = "full"))]
mod tests;
#[cfg(feature = "full")]
mod tunnel;
mod types;
