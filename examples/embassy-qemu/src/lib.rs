//! messina on a small machine: a Cortex-M with embassy-executor and embassy-net, run in QEMU.
//!
//! Five images are made of this library. `base` gets an address, connects and says hello: the
//! network without CQL. `card` adds the driver with prepared writes and reads and is what the size card
//! counts. `fw` can do everything that README.md lists. `gateway` stores and
//! forwards over resets. `absurd` meets answers that are too long for 64 KiB. A run does what its command line says,
//! prints `key value` lines and ends with exit code 0 (line `done ok`) or 1 (line `failed ..`).
#![no_std]

extern crate alloc;

pub mod board;
pub mod boot;
pub mod console;
pub mod echo;
pub mod hello;
pub mod parameters;
pub mod report;

#[cfg(feature = "gateway")]
pub mod forward;

#[cfg(feature = "driver")]
mod driver;
#[cfg(feature = "driver")]
pub use driver::*;
