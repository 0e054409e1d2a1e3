//! The emulated board, ARM's MPS2 with a Cortex-M4F (`mps2-an386`) or Cortex-M7 (`mps2-an500`).
//!
//! All `unsafe` code of this firmware stands in this folder: device registers, the interrupt table,
//! the heap, semihosting calls, linker symbols. Nothing here knows about CQL. On a product the
//! HAL crate of the chip takes this folder's place.

#[cfg(reads_any_address)]
mod copy;
pub mod executor;
pub mod heap;
pub mod interrupts;
pub mod kept;
pub mod lan9118;
pub mod memory;
pub mod mmio;
pub mod semihosting;
pub mod time_driver;
pub mod uart;

/// Frequency of the core clock, of SysTick and of the free-running counter.
pub const CLOCK_HZ: u32 = 25_000_000;
