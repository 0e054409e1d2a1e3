//! Text on UART0 (CMSDK), which is QEMU's standard output and input. Polled: the firmware prints a
//! few lines, so waiting for room is simpler than a queue and loses nothing at exit.

use core::fmt;

use super::mmio::Mmio;

// SAFETY: the CMSDK UART's registers on both machines (AN386 application note, memory map).
const UART0: Mmio = unsafe { Mmio::new(0x4000_4000, 0x1000) };
const DATA: usize = 0x00;
const STATE: usize = 0x04;
const CTRL: usize = 0x08;
const BAUDDIV: usize = 0x10;
const STATE_TX_FULL: u32 = 1;
const STATE_RX_FULL: u32 = 1 << 1;
const CTRL_TX_ENABLE: u32 = 1;
const CTRL_RX_ENABLE: u32 = 1 << 1;

/// Makes both directions ready. To be called once before anything is printed.
pub fn init() {
    UART0.write(BAUDDIV, 16);
    UART0.write(CTRL, CTRL_TX_ENABLE | CTRL_RX_ENABLE);
}

/// The next byte that was typed, if one came.
pub fn read() -> Option<u8> {
    (UART0.read(STATE) & STATE_RX_FULL != 0).then(|| UART0.read(DATA) as u8)
}

/// The writer behind `println!`.
pub struct Uart;

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while UART0.read(STATE) & STATE_TX_FULL != 0 {}
            UART0.write(DATA, u32::from(byte));
        }
        Ok(())
    }
}

/// Prints a line on UART0.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => {{
        use core::fmt::Write as _;
        // Writing to the UART cannot fail.
        let _ = writeln!($crate::board::uart::Uart, $($argument)*);
    }};
}
