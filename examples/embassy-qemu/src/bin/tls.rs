//! The image whose connections are encrypted: readings, and nodes that are not to be trusted.
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::pin::pin;

use embassy_futures::join::join;
use embassy_qemu::board::semihosting;
use embassy_qemu::boot::{self, Board};
use embassy_qemu::parameters::Mode;
use embassy_qemu::{Failure, Plant, RX_BYTES, TX_BYTES, println, readings};
use messina_embassy::tls::{Authority, TlsMemory, TlsPool, TlsTransport};
use messina_embassy::{EmbassyTransport, EntropyError, SocketBuffers, SocketPool};
use static_cell::{ConstStaticCell, StaticCell};

const CONNECTIONS: usize = 2;
const HEAP_BYTES: usize = 32 * 1024;
const AUTHORITY_BYTES: usize = 2048;

static HEAP: ConstStaticCell<[MaybeUninit<u8>; HEAP_BYTES]> =
    ConstStaticCell::new([MaybeUninit::uninit(); HEAP_BYTES]);
static BUFFERS: ConstStaticCell<SocketBuffers<CONNECTIONS, RX_BYTES, TX_BYTES>> =
    ConstStaticCell::new(SocketBuffers::new());
static POOL: StaticCell<SocketPool<'static, CONNECTIONS>> = StaticCell::new();
static RECORDS: ConstStaticCell<TlsMemory<CONNECTIONS>> = ConstStaticCell::new(TlsMemory::new());
static TLS: StaticCell<TlsPool<'static, CONNECTIONS>> = StaticCell::new();
static AUTHORITY: ConstStaticCell<[u8; AUTHORITY_BYTES]> =
    ConstStaticCell::new([0; AUTHORITY_BYTES]);

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
    let der = AUTHORITY.take();
    let len =
        semihosting::read_file(board.parameters.ca, der).ok_or("no file with an authority")?;
    let authority = Authority::from_der(&der[..len]).map_err(|_| "no certificate in the file")?;
    let tls = TLS.init_with(|| TlsPool::new(RECORDS.take(), authority));
    let pool = POOL.init_with(|| SocketPool::new(board.stack, BUFFERS.take()));
    let plant = Plant::new(board, pool)?;
    let plant = plant.over(|plain: EmbassyTransport<'static>| TlsTransport::new(plain, tls));
    let mut keys = |into: &mut [u8]| {
        for chunk in into.chunks_mut(8) {
            let word = semihosting::entropy().ok_or(EntropyError::Unavailable)?;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    };
    let work = async {
        match board.parameters.mode {
            Mode::Readings => readings::run(plant, Failure::end).await,
            Mode::Refused => refused(plant).await,
            _ => boot::fail("this image has no such mode"),
        }
    };
    let encryption = async {
        tls.run(&mut keys).await;
        boot::fail("TLS has ended")
    };
    match join(encryption, work).await {}
}

/// No session comes about, and the error says why.
async fn refused(plant: Plant<TlsTransport<'static>>) -> ! {
    plant
        .run_on(Failure::end, async |session| match session {
            Ok(_) => Err("a node that is not to be trusted was trusted".into()),
            Err(error) => {
                println!("refused {error}");
                Ok(())
            }
        })
        .await
}
