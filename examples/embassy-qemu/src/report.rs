//! What the image and the run took, as `key value` lines.

use crate::board::{heap, memory};
use crate::println;

/// Prints flash, static memory, heap and stack, in bytes.
pub fn size_card() {
    let heap = heap::usage();
    println!("flash_bytes {}", memory::flash_bytes());
    println!("static_bytes {}", memory::static_bytes() - heap.arena_bytes);
    println!("heap_arena_bytes {}", heap.arena_bytes);
    println!("heap_peak_bytes {}", heap.peak_bytes);
    println!("heap_live_bytes {}", heap.live_bytes);
    println!("heap_calls {}", heap.calls);
    println!("stack_bytes {}", memory::stack_bytes());
    println!("stack_peak_bytes {}", memory::stack_peak_bytes());
}
