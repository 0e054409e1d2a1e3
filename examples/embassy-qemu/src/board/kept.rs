//! Memory that outlives a reset, as RAM with a battery does. It lies behind what the linker hands out,
//! so nobody else writes to it: the board has 4 MiB there, images are given less than a quarter.

use portable_atomic::{AtomicBool, Ordering};

/// How much there is.
pub const KEPT_BYTES: usize = 64 * 1024;

/// Of the third of the four megabytes.
const ADDRESS: usize = 0x2020_0000;
/// What stands in front once the memory was filled.
const MARK: [u8; 16] = *b"messina kept 1\r\n";

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the memory out, once. It is filled with `0xff` when the power comes on, and then the second
/// value is `true`.
pub fn take() -> Option<(&'static mut [u8], bool)> {
    if IS_TAKEN.swap(true, Ordering::AcqRel) {
        return None;
    }
    let memory = core::ptr::with_exposed_provenance_mut::<u8>(ADDRESS);
    // SAFETY: RAM of the board that no linker script names, so no object lies there; `IS_TAKEN` lets
    // one caller have it. Any bytes are a valid `[u8]`.
    let memory = unsafe { core::slice::from_raw_parts_mut(memory, MARK.len() + KEPT_BYTES) };
    let (mark, memory) = memory.split_at_mut(MARK.len());
    let is_fresh = *mark != MARK;
    if is_fresh {
        memory.fill(0xff);
        mark.copy_from_slice(&MARK);
    }
    Some((memory, is_fresh))
}
