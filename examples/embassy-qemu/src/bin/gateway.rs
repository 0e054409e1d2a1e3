//! The image that stores and forwards.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_qemu::boot::{self, Board};
use embassy_qemu::forward;
use messina_embassy::{SocketBuffers, SocketPool};
use static_cell::{ConstStaticCell, StaticCell};

const CONNECTIONS: usize = 3;
const HEAP_BYTES: usize = 40 * 1024;

static HEAP: ConstStaticCell<[MaybeUninit<u8>; HEAP_BYTES]> =
    ConstStaticCell::new([MaybeUninit::uninit(); HEAP_BYTES]);
static BUFFERS: ConstStaticCell<SocketBuffers<CONNECTIONS, 2048, 2048>> =
    ConstStaticCell::new(SocketBuffers::new());
static POOL: StaticCell<SocketPool<'static, CONNECTIONS>> = StaticCell::new();

#[cortex_m_rt::entry]
fn main() -> ! {
    boot::start(HEAP.take(), application)
}

#[embassy_executor::task]
async fn application(board: Board) {
    let work = pin!(async {
        let pool = POOL.init_with(|| SocketPool::new(board.stack, BUFFERS.take()));
        forward::run(board, pool).await
    });
    boot::finish(board, work).await
}
