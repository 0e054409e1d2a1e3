//! The heap: embedded-alloc's linked list in a static arena, with counters around it.
//!
//! The counters are what the size card prints: bytes live now, the highest that ever was, and how
//! often memory was asked for, which shows whether a path is free of allocations.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use embedded_alloc::LlffHeap;
use portable_atomic::AtomicUsize;

/// Memory for the heap; each image places one of its size in a static.
pub type Arena = [MaybeUninit<u8>];

#[global_allocator]
static HEAP: CountingHeap = CountingHeap {
    heap: LlffHeap::empty(),
    live: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
    calls: AtomicUsize::new(0),
    arena: AtomicUsize::new(0),
};

struct CountingHeap {
    heap: LlffHeap,
    live: AtomicUsize,
    peak: AtomicUsize,
    calls: AtomicUsize,
    arena: AtomicUsize,
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
    /// What there is to give.
    pub arena_bytes: usize,
}

/// Gives the arena to the allocator. To be called once, before the first allocation.
pub fn init(arena: &'static mut Arena) {
    HEAP.arena.store(arena.len(), Ordering::Relaxed);
    // SAFETY: borrowed for ever, so the allocator is its only user; `init` of the heap panics when
    // called twice.
    unsafe { HEAP.heap.init(arena.as_mut_ptr().addr(), arena.len()) };
}

/// Forgets the highest mark: it is what is live now.
pub fn restart_peak() {
    HEAP.peak
        .store(HEAP.live.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Reads the counters.
pub fn usage() -> Usage {
    Usage {
        live_bytes: HEAP.live.load(Ordering::Relaxed),
        peak_bytes: HEAP.peak.load(Ordering::Relaxed),
        calls: HEAP.calls.load(Ordering::Relaxed),
        arena_bytes: HEAP.arena.load(Ordering::Relaxed),
    }
}

// SAFETY: memory comes from and goes back to `HEAP.heap` alone; the counters only watch.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        unsafe { take(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { give_back(block, layout) };
    }
}

/// Whoever asks for memory calls this, without the heap's address: there is one heap, and both would
/// else stand at hundreds of places.
///
/// # Safety
///
/// As for [`GlobalAlloc::alloc`].
#[inline(never)]
unsafe fn take(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise is passed on.
    let block = unsafe { HEAP.heap.alloc(layout) };
    if !block.is_null() {
        let live = HEAP.live.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        HEAP.peak.fetch_max(live, Ordering::Relaxed);
        HEAP.calls.fetch_add(1, Ordering::Relaxed);
    }
    block
}

/// See [`take`].
///
/// # Safety
///
/// As for [`GlobalAlloc::dealloc`].
#[inline(never)]
unsafe fn give_back(block: *mut u8, layout: Layout) {
    HEAP.live.fetch_sub(layout.size(), Ordering::Relaxed);
    // SAFETY: the caller's promise is passed on.
    unsafe { HEAP.heap.dealloc(block, layout) };
}
