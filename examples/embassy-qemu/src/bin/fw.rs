//! The image with every mode.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_qemu::boot::{self, Board};
use embassy_qemu::parameters::Mode;
use embassy_qemu::{Failure, Plant, RX_BYTES, TX_BYTES};
use embassy_qemu::{absurd, cable, cost, echo, page, pipeline, readings, sensors, soak};
use messina_embassy::{SocketBuffers, SocketPool};
use static_cell::{ConstStaticCell, StaticCell};

/// One for each node of the scenarios.
const CONNECTIONS: usize = 3;
const HEAP_BYTES: usize = 32 * 1024;

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
    match board.parameters.mode {
        Mode::Boot => return Ok(()),
        Mode::Echo => return echo::run(board).await,
        _ => {}
    }
    let pool = POOL.init_with(|| SocketPool::new(board.stack, BUFFERS.take()));
    let plant = Plant::new(board, pool)?;
    let outcome = match board.parameters.mode {
        Mode::Boot | Mode::Echo => Ok(()),
        Mode::Hello => Err(Failure::Found("the image `base` has this mode")),
        Mode::Refused => Err(Failure::Found("the image `tls` has this mode")),
        Mode::Readings => readings::run(plant, Failure::end).await,
        Mode::Sensors => sensors::run(plant).await,
        Mode::Soak => soak::run(plant).await,
        Mode::Page => page::run(plant).await,
        Mode::Pipeline => pipeline::run(plant).await,
        Mode::Cost => cost::run(plant).await,
        Mode::Cable => cable::run(plant).await,
        Mode::Absurd => absurd::run(plant).await,
    };
    outcome.map_err(|failure| failure.end())
}
