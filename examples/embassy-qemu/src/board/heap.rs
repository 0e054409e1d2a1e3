//! The heap: a list of holes in a static arena, with counters around it.
//!
//! Small rather than quick, since a warm session asks for nothing. Holes are kept from the highest
//! address to the lowest; the first that is large enough gives its upper end, so that what was given
//! back is used before what never was. Neighbours that are both free are one hole again at once.
//! Blocks carry nothing in front: whoever gives one back knows its size.
//!
//! The counters are what the size card prints: bytes live now, the highest that ever was, and how
//! often memory was asked for, which shows whether a path is free of allocations.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;

/// Memory for the heap; each image places one of its size in a static.
pub type Arena = [MaybeUninit<u8>];

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(Holes {
    first: ptr::null_mut(),
    usage: Usage {
        live_bytes: 0,
        peak_bytes: 0,
        calls: 0,
        arena_bytes: 0,
    },
}));

struct Heap(UnsafeCell<Holes>);

// SAFETY: `with` is the only way to what is inside.
unsafe impl Sync for Heap {}

/// What is free, and what was used.
struct Holes {
    first: *mut Hole,
    usage: Usage,
}

/// Free memory, which holds its own description.
#[repr(C)]
struct Hole {
    next: *mut Self,
    len: usize,
}

/// All blocks begin at a multiple of this and are as long as one: a hole fits into each.
const UNIT: usize = 8;

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
    let len = arena.len();
    let begin = arena.as_mut_ptr();
    let skipped = begin.align_offset(UNIT).min(len);
    let left = (len - skipped) / UNIT * UNIT;
    with(|holes| {
        holes.usage.arena_bytes = len;
        if left > 0 {
            // SAFETY: within the arena, which was borrowed for ever, so that the heap is its only user.
            unsafe { holes.put(begin.add(skipped).cast(), left) };
        }
    });
}

/// Forgets the highest mark: it is what is live now.
pub fn restart_peak() {
    with(|holes| holes.usage.peak_bytes = holes.usage.live_bytes);
}

/// Reads the counters.
pub fn usage() -> Usage {
    with(|holes| holes.usage)
}

/// Runs `action` with interrupts off. It does not call this again.
fn with<R>(action: impl FnOnce(&mut Holes) -> R) -> R {
    // SAFETY: nothing interrupts it on the only core, and it is not entered twice.
    critical_section::with(|_| action(unsafe { &mut *HEAP.0.get() }))
}

// SAFETY: each block is cut from a hole, which is nobody's, and is long and aligned enough.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size(), layout.align())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { give_back(block, layout.size()) };
    }
}

/// Whoever asks for memory calls this, without the heap's address: there is one heap, and both would
/// else stand at hundreds of places.
#[inline(never)]
fn take(len: usize, align: usize) -> *mut u8 {
    if align > UNIT {
        return ptr::null_mut();
    }
    with(|holes| {
        let block = holes.take(units(len));
        if !block.is_null() {
            let usage = &mut holes.usage;
            usage.live_bytes += len;
            usage.peak_bytes = usage.peak_bytes.max(usage.live_bytes);
            usage.calls += 1;
        }
        block
    })
}

/// See [`take`].
///
/// # Safety
///
/// The block was taken with this length and is used no more.
#[inline(never)]
unsafe fn give_back(block: *mut u8, len: usize) {
    with(|holes| {
        holes.usage.live_bytes -= len;
        // SAFETY: the caller's promise is passed on.
        unsafe { holes.put(block.cast(), units(len)) };
    });
}

/// The length in the arena. A layout's size is far below what would wrap.
const fn units(len: usize) -> usize {
    len.wrapping_add(UNIT - 1) & !(UNIT - 1)
}

impl Holes {
    /// A block of that many bytes, a multiple of the unit; null if no hole has so many.
    fn take(&mut self, len: usize) -> *mut u8 {
        let mut link: *mut *mut Hole = &mut self.first;
        // SAFETY: links lead to holes, which nobody else uses, or are null.
        unsafe {
            while !(*link).is_null() {
                let hole = *link;
                if let Some(rest) = (*hole).len.checked_sub(len) {
                    if rest == 0 {
                        *link = (*hole).next;
                    }
                    (*hole).len = rest;
                    return hole.byte_add(rest).cast();
                }
                link = &mut (*hole).next;
            }
        }
        ptr::null_mut()
    }

    /// Makes a hole.
    ///
    /// # Safety
    ///
    /// So many bytes there are nobody's, begin at a multiple of the unit and are as long as one.
    unsafe fn put(&mut self, mut hole: *mut Hole, mut len: usize) {
        // The links to the lowest hole above and to the highest below.
        let mut above: *mut *mut Hole = ptr::null_mut();
        let mut below: *mut *mut Hole = &mut self.first;
        // SAFETY: as for `take`; what is written is the hole itself.
        unsafe {
            while *below > hole {
                above = below;
                below = &mut (**below).next;
            }
            let mut next = *below;
            if let Some(lower) = next.as_ref()
                && next.byte_add(lower.len) == hole
            {
                (hole, len, next) = (next, lower.len + len, lower.next);
            }
            let mut link = below;
            if let Some(above) = above.as_mut()
                && hole.byte_add(len) == *above
            {
                len += (**above).len;
                link = above;
            }
            hole.write(Hole { next, len });
            *link = hole;
        }
    }
}
