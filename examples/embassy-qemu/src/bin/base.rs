//! The image without the driver: what its size is counted from.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_qemu::boot::{self, Board};
use embassy_qemu::hello;
use embassy_qemu::parameters::Mode;
use static_cell::ConstStaticCell;

static HEAP: ConstStaticCell<[MaybeUninit<u8>; 1024]> =
    ConstStaticCell::new([MaybeUninit::uninit(); 1024]);

#[cortex_m_rt::entry]
fn main() -> ! {
    boot::start(HEAP.take(), application)
}

#[embassy_executor::task]
async fn application(board: Board) {
    let work = pin!(async {
        match board.parameters.mode {
            Mode::Boot => Ok(()),
            Mode::Hello => hello::run(board).await,
            _ => Err("this image has no such mode"),
        }
    });
    boot::finish(board, work).await
}
