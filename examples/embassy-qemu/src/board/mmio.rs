//! A block of 32-bit device registers. The only volatile reads and writes of the firmware.

use core::ptr;

/// A register block at a fixed address. Copying it copies the address: whoever holds one must
/// expect that interrupt handlers hold another.
#[derive(Clone, Copy, Debug)]
pub struct Mmio {
    base: usize,
    len: usize,
}

impl Mmio {
    /// # Safety
    ///
    /// Every word of `base..base + len` must be a device register of which any read and any write
    /// leaves memory that Rust knows of untouched.
    pub const unsafe fn new(base: usize, len: usize) -> Self {
        Self { base, len }
    }

    /// Reads the register at `offset`.
    #[inline]
    pub fn read(self, offset: usize) -> u32 {
        debug_assert!(offset < self.len && offset.is_multiple_of(4));
        // SAFETY: by the promise of `new` this is a register, and offsets are this crate's constants.
        unsafe { ptr::read_volatile((self.base + offset) as *const u32) }
    }

    /// Writes the register at `offset`.
    #[inline]
    pub fn write(self, offset: usize, value: u32) {
        debug_assert!(offset < self.len && offset.is_multiple_of(4));
        // SAFETY: as in `read`.
        unsafe { ptr::write_volatile((self.base + offset) as *mut u32, value) }
    }
}
