//! embassy-time on the board's free-running 25 MHz counter, in microseconds.
//!
//! The counter is the clock. SysTick only looks at the timer queue once a millisecond: counting its
//! interrupts instead would lose time whenever the emulator is busy and ticks merge.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;

use super::CLOCK_HZ;
use super::mmio::Mmio;

// SAFETY: the FPGAIO block of the board (AN386 application note, memory map).
const FPGAIO: Mmio = unsafe { Mmio::new(0x4002_8000, 0x1000) };
const COUNTER: usize = 0x18;
const TICKS_PER_MICRO: u32 = CLOCK_HZ / 1_000_000;
const TICKS_PER_MILLI: u32 = CLOCK_HZ / 1_000;

/// The raw 25 MHz counter, 32 bits, wraps every 171 seconds. For short measurements.
pub fn counter() -> u32 {
    FPGAIO.read(COUNTER)
}

/// Starts SysTick; before that, time stands still at every wait.
pub fn init(mut syst: SYST) {
    syst.set_clock_source(SystClkSource::Core);
    syst.set_reload(TICKS_PER_MILLI - 1);
    syst.clear_current();
    syst.enable_counter();
    syst.enable_interrupt();
}

/// Extends the counter to 64 bits of microseconds by adding up differences. That a difference is
/// never missed is owed to SysTick, which asks far more often than the counter wraps.
struct Clock {
    micros: Cell<u64>,
    counted_to: Cell<u32>,
}

impl Clock {
    #[inline(never)]
    fn now(&self) -> u64 {
        let elapsed = counter().wrapping_sub(self.counted_to.get()) / TICKS_PER_MICRO;
        let counted_to = self
            .counted_to
            .get()
            .wrapping_add(elapsed * TICKS_PER_MICRO);
        self.counted_to.set(counted_to);
        self.micros.set(self.micros.get() + u64::from(elapsed));
        self.micros.get()
    }
}

struct BoardTime {
    clock: Mutex<Clock>,
    queue: Mutex<RefCell<Queue>>,
}

impl BoardTime {
    fn wake_expired(&self, token: CriticalSection<'_>) {
        let now = self.clock.borrow(token).now();
        self.queue.borrow_ref_mut(token).next_expiration(now);
    }
}

impl Driver for BoardTime {
    // The clock is asked in many places.
    #[inline(never)]
    fn now(&self) -> u64 {
        critical_section::with(|token| self.clock.borrow(token).now())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|token| {
            if self.queue.borrow_ref_mut(token).schedule_wake(at, waker) {
                self.wake_expired(token);
            }
        });
    }
}

time_driver_impl!(static BOARD_TIME: BoardTime = BoardTime {
    clock: Mutex::new(Clock { micros: Cell::new(0), counted_to: Cell::new(0) }),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

#[cortex_m_rt::exception]
fn SysTick() {
    critical_section::with(|token| BOARD_TIME.wake_expired(token));
}
