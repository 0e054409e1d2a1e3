//! The image for `mode=absurd`: a machine with 64 KiB of memory, which the linker holds it to.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_qemu::boot::{self, Board};
use embassy_qemu::{Plant, RX_BYTES, TX_BYTES, absurd};
use messina_embassy::{SocketBuffers, SocketPool};
use static_cell::{ConstStaticCell, StaticCell};

const CONNECTIONS: usize = 2;
const HEAP_BYTES: usize = 24 * 1024;

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
    let work = pin!(run(board));
    boot::finish(board, work).await
}

async fn run(board: Board) -> Result<(), &'static str> {
    let pool = POOL.init_with(|| SocketPool::new(board.stack, BUFFERS.take()));
    let plant = Plant::new(board, pool)?;
    absurd::run(plant).await.map_err(|failure| failure.end())
}
