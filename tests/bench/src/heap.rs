//! Counts heap calls: the system's allocator with two numbers beside it.
//!
//! The only unsafe file of this crate. The binary makes [`Counting`] its global allocator; elsewhere
//! the numbers stay zero.
#![expect(unsafe_code, reason = "an allocator is unsafe by its trait")]

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicU64, Ordering};
use std::alloc::System;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Allocations and reallocations since the start of the process, and the bytes they asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heap {
    /// Allocations and reallocations; frees are not counted.
    pub calls: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

impl Heap {
    /// The numbers now.
    pub fn now() -> Self {
        Self {
            calls: CALLS.load(Ordering::Relaxed),
            bytes: BYTES.load(Ordering::Relaxed),
        }
    }
}

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Counting;

impl Counting {
    /// For a `#[global_allocator]`.
    pub const fn new() -> Self {
        Self
    }
}

// SAFETY: every call is passed on unchanged to `System`, whose contract is that of the trait; the
// counting touches nothing but two atomics, neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System.alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller got `block` from this allocator, hence from `System`, with `layout`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: as for `dealloc`; the caller keeps `new_size` within the bounds of the trait.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}
