//! A machine without an operating system: the logs go to the emulator's output, which ends with the program.

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;

#[cfg(target_arch = "arm")]
use cortex_m as _;
use embedded_alloc::LlffHeap;
#[cfg(target_arch = "riscv32")]
use riscv as _;
use semihosting::{print, println, process};

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

/// Logs are built in memory before they go out.
const HEAP_BYTES: usize = 2 << 20;

static mut ARENA: MaybeUninit<[u8; HEAP_BYTES]> = MaybeUninit::uninit();

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    // SAFETY: called once, before anything is allocated; nothing else names the arena.
    unsafe { HEAP.init(addr_of_mut!(ARENA) as usize, HEAP_BYTES) }
    match messina_trace::replay_all(&mut Output, true) {
        Ok(()) => process::exit(0),
        Err(fmt::Error) => process::exit(1),
    }
}

/// The emulator's standard output.
struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print!("{text}");
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(1)
}
