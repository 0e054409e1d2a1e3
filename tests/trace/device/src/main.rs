//! Replays all traces and gives the logs out: by semihosting on a machine that QEMU emulates, by two exports
//! from a WASM module.

#![no_std]
#![no_main]

extern crate alloc;

#[cfg(target_os = "none")]
mod bare;
#[cfg(target_family = "wasm")]
mod module;

#[cfg(not(any(target_os = "none", target_family = "wasm")))]
compile_error!(
    "for machines without an operating system, and WASM; `cargo run -p messina-trace` is for others"
);
