//! The image that the size card counts: the driver with shards, tablets and leaders, two connections,
//! prepared writes and reads.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_qemu::boot::{self, Board};
use embassy_qemu::parameters::Mode;
use embassy_qemu::{Failure, Plant, RX_BYTES, TX_BYTES, readings};
use messina_embassy::{SocketBuffers, SocketPool};
use static_cell::{ConstStaticCell, StaticCell};

const CONNECTIONS: usize = 2;
const HEAP_BYTES: usize = 26 * 1024;

static HEAP: ConstStaticCell<[MaybeUninit<u8>; HEAP_BYTES]> =
    ConstStaticCell::new([MaybeUninit::uninit(); HEAP_BYTES]);
static BUFFERS: ConstStaticCell<SocketBuffers<CONNECTIONS, RX_BYTES, TX_BYTES>> =
    ConstStaticCell::new(SocketBuffers::new());
static POOL: StaticCell<SocketPool<'static, CONNECTIONS>> = StaticCell::new();

#[cortex_m_rt::entry]
fn main() -> ! {
    boot::start(HEAP.take(), application)
}

#[embassy_executor::task]
async fn application(board: Board) {
    let work = pin!(async {
        match board.parameters.mode {
            Mode::Boot => Ok(()),
            Mode::Readings => {
                let pool = POOL.init_with(|| SocketPool::new(board.stack, BUFFERS.take()));
                let plant = Plant::new(board, pool)?;
                readings::run(plant, Failure::end_briefly).await
            }
            _ => Err("this image has no such mode"),
        }
    });
    boot::finish(board, work).await
}
