//! The device part of the vector table, and what happens on faults.
//!
//! The board needs one device interrupt, number 13 (the network chip); every other entry ends the
//! run with a message, so that a wrong number is seen and not slept through.

use cortex_m::peripheral::NVIC;
use cortex_m_rt::{ExceptionFrame, exception};

use super::{lan9118, semihosting};

/// Number of the network chip's interrupt on all MPS2 machines used here.
const ETHERNET: u16 = 13;

#[derive(Clone, Copy)]
struct EthernetIrq;

// SAFETY: the number is fixed by the board and valid on each of its cores.
unsafe impl cortex_m::interrupt::InterruptNumber for EthernetIrq {
    fn number(self) -> u16 {
        ETHERNET
    }
}

/// The vector table behind the sixteen system exceptions; cortex-m-rt's linker script places it.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [unsafe extern "C" fn(); 32] = {
    let mut table = [unexpected as unsafe extern "C" fn(); 32];
    table[ETHERNET as usize] = ethernet;
    table
};

/// Lets the network chip interrupt.
pub fn enable_ethernet() {
    // SAFETY: called outside critical sections that rely on the mask; the handler is in the table.
    unsafe { NVIC::unmask(EthernetIrq) };
}

unsafe extern "C" fn ethernet() {
    lan9118::handle_interrupt();
}

unsafe extern "C" fn unexpected() {
    crate::println!("failed unexpected device interrupt");
    semihosting::exit(false);
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    crate::println!("failed hard fault at {:#010x}", frame.pc());
    semihosting::exit(false);
}
