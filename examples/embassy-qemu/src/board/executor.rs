//! A thread-mode executor that really sleeps.
//!
//! embassy's own Cortex-M executor idles with WFE, on which QEMU does not sleep. This one uses WFI:
//! with interrupts disabled it looks whether anything was pended since the last poll, and only then
//! waits. An interrupt that comes in between is pending in hardware and ends the wait at once.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use static_cell::StaticCell;

static PENDED: AtomicBool = AtomicBool::new(false);
static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();

/// Called by embassy-executor whenever a task of the (only) executor became ready.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    PENDED.store(true, Ordering::Release);
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
        cortex_m::interrupt::disable();
        if !PENDED.load(Ordering::Acquire) {
            cortex_m::asm::wfi();
        }
        // SAFETY: not inside a critical section; this ends the one begun three lines above.
        unsafe { cortex_m::interrupt::enable() };
    }
}
