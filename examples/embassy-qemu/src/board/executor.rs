//! A thread-mode executor that really sleeps.
//!
//! embassy's own Cortex-M executor idles with WFE, on which QEMU does not sleep. This one uses WFI:
//! with interrupts disabled it looks whether anything was pended since the last poll, and only then
//! waits. An interrupt that comes in between is pending in hardware and ends the wait at once.
//!
//! Time without work is added up, so that what is left of a measurement is what the processor did.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use portable_atomic::AtomicU32;
use static_cell::StaticCell;

use super::time_driver::counter;

static PENDED: AtomicBool = AtomicBool::new(false);
/// Ticks of the free-running counter, wrapping like it.
static IDLE_TICKS: AtomicU32 = AtomicU32::new(0);
static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();

/// Called by embassy-executor whenever a task of the (only) executor became ready.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    PENDED.store(true, Ordering::Release);
}

/// Ticks of the counter that went by in work since the start, wrapping. Differences count, below 171
/// seconds.
pub fn busy_ticks() -> u32 {
    counter().wrapping_sub(IDLE_TICKS.load(Ordering::Relaxed))
}

/// Starts the executor, lets `start` spawn the first tasks, and runs for ever.
pub fn run(start: impl FnOnce(Spawner)) -> ! {
    let executor: &'static raw::Executor =
        EXECUTOR.init_with(|| raw::Executor::new(ptr::null_mut()));
    start(executor.spawner());
    loop {
        PENDED.store(false, Ordering::Relaxed);
        // SAFETY: only this loop polls the executor, and the pender does not poll.
        unsafe { executor.poll() };
        let idle_since = counter();
        cortex_m::interrupt::disable();
        while !PENDED.load(Ordering::Acquire) {
            cortex_m::asm::wfi();
            // SAFETY: not inside a critical section; this lets the handlers run that ended the wait.
            unsafe { cortex_m::interrupt::enable() };
            // Else the processor may disable them again before it has looked.
            cortex_m::asm::isb();
            cortex_m::interrupt::disable();
        }
        // SAFETY: as above.
        unsafe { cortex_m::interrupt::enable() };
        let idle = counter().wrapping_sub(idle_since);
        let before = IDLE_TICKS.load(Ordering::Relaxed);
        IDLE_TICKS.store(before.wrapping_add(idle), Ordering::Relaxed);
    }
}
