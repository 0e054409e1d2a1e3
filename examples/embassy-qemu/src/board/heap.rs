//! The heap: embedded-alloc's linked list in a static arena, with counters around it.
//!
//! The counters are what the size card prints: bytes live now, the highest that ever was, and how
//! often memory was asked for, which shows whether a path is free of allocations.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use embedded_alloc::LlffHeap;
use portable_atomic::AtomicUsize;

include!(concat!(env!("OUT_DIR"), "/heap_bytes.rs"));

/// Size of the arena.
pub const ARENA_BYTES: usize = HEAP_BYTES;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap {
    heap: LlffHeap::empty(),
    live: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
    calls: AtomicUsize::new(0),
};

struct CountingHeap {
    heap: LlffHeap,
    live: AtomicUsize,
    peak: AtomicUsize,
    calls: AtomicUsize,
}

/// What the heap was used for so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Bytes asked for and not given back.
    pub live_bytes: usize,
    /// The highest that `live_bytes` ever was.
    pub peak_bytes: usize,
    /// How often memory was asked for, including growing.
    pub calls: usize,
}

/// Gives the arena to the allocator. To be called once, before the first allocation.
pub fn init() {
    static mut ARENA: [MaybeUninit<u8>; ARENA_BYTES] = [MaybeUninit::uninit(); ARENA_BYTES];
    // SAFETY: the arena is named nowhere else, so the allocator is its only user; `init` of the
    // heap panics when called twice.
    unsafe { HEAP.heap.init((&raw mut ARENA) as usize, ARENA_BYTES) };
}

/// Reads the counters.
pub fn usage() -> Usage {
    Usage {
        live_bytes: HEAP.live.load(Ordering::Relaxed),
        peak_bytes: HEAP.peak.load(Ordering::Relaxed),
        calls: HEAP.calls.load(Ordering::Relaxed),
    }
}

// SAFETY: memory comes from and goes back to `heap` alone; the counters only watch.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let block = unsafe { self.heap.alloc(layout) };
        if !block.is_null() {
            let live = self.live.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            self.peak.fetch_max(live, Ordering::Relaxed);
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.heap.dealloc(block, layout) };
    }
}
