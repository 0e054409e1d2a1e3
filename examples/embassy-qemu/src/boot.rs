//! From reset to a running network, the same in every image.

use core::panic::PanicInfo;
use core::pin::{Pin, pin};

use embassy_executor::{SpawnError, SpawnToken, Spawner};
use embassy_net::{Ipv4Address, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4};
use embassy_time::{Duration, Instant, with_timeout};
use static_cell::{ConstStaticCell, StaticCell};

use crate::board::lan9118::{FrameBuffer, Lan9118};
use crate::board::{executor, heap, semihosting, time_driver, uart};
use crate::parameters::Parameters;
use crate::{println, report};

/// DHCP, DNS, and three connections.
const SOCKETS: usize = 5;

static RX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new([0; size_of::<FrameBuffer>()]);
static TX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new([0; size_of::<FrameBuffer>()]);
static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
    ConstStaticCell::new(StackResources::new());
static PARAMETERS: StaticCell<Parameters> = StaticCell::new();
static LINE: ConstStaticCell<[u8; 256]> = ConstStaticCell::new([0; 256]);

/// What an application finds.
#[derive(Clone, Copy)]
pub struct Board {
    /// The network, perhaps without an address yet.
    pub stack: Stack<'static>,
    /// What to do.
    pub parameters: &'static Parameters,
    /// From the host's entropy, or given for a run that repeats.
    pub seed: u64,
}

/// Starts the board and the network, then `application` with what it shall spawn.
pub fn start<S>(
    arena: &'static mut heap::Arena,
    application: impl FnOnce(Board) -> Result<SpawnToken<S>, SpawnError>,
) -> ! {
    uart::init();
    heap::init(arena);
    let Some(peripherals) = cortex_m::Peripherals::take() else {
        fail("the core's peripherals were taken before main");
    };
    time_driver::init(peripherals.SYST);
    let parameters = PARAMETERS.init_with(Parameters::default);
    read_parameters(parameters);
    // A constant seed would give the same source port after every reboot.
    let Some(seed) = parameters.seed.or_else(semihosting::entropy) else {
        fail("no entropy from the host; give seed=NUMBER");
    };
    executor::run(|spawner| {
        let stack = start_network(spawner, parameters, seed);
        let board = Board {
            stack,
            parameters,
            seed,
        };
        spawn(spawner, application(board));
    })
}

#[inline(never)]
fn read_parameters(parameters: &mut Parameters) {
    if let Err(word) = parameters.read(semihosting::command_line(LINE.take())) {
        fail(word);
    }
}

#[inline(never)]
fn start_network(spawner: Spawner, parameters: &Parameters, seed: u64) -> Stack<'static> {
    let base = parameters.machine.chip();
    // SAFETY: the address of the chip on that machine, and nothing else drives it.
    let device = match unsafe { Lan9118::new(base, RX_FRAME.take(), TX_FRAME.take()) } {
        Ok(device) => device,
        Err(error) => {
            println!("failed to start the network chip: {error:?}");
            semihosting::exit(false)
        }
    };
    let config = if parameters.dhcp {
        embassy_net::Config::dhcpv4(Default::default())
    } else {
        embassy_net::Config::ipv4_static(StaticConfigV4 {
            address: Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 15), 24),
            gateway: Some(Ipv4Address::new(10, 0, 2, 2)),
            dns_servers: Default::default(),
        })
    };
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.take(), seed);
    spawn(spawner, network(runner));
    stack
}

fn spawn<S>(spawner: Spawner, token: Result<SpawnToken<S>, SpawnError>) {
    match token {
        Ok(token) => spawner.spawn(token),
        Err(_) => fail("a task was started twice"),
    }
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}

/// Waits for an address, runs `work` within the limit of the command line, prints what it took and
/// ends the emulator.
pub async fn finish(
    board: Board,
    work: Pin<&mut impl Future<Output = Result<(), &'static str>>>,
) -> ! {
    let limit = Duration::from_secs(u64::from(board.parameters.limit_s));
    let all = pin!(async {
        board.stack.wait_config_up().await;
        let config = board
            .stack
            .config_v4()
            .ok_or("the address was lost at once")?;
        // By its octets: the library would pad addresses too, if it were asked.
        let [a, b, c, d] = config.address.address().octets();
        println!("address {a}.{b}.{c}.{d}/{}", config.address.prefix_len());
        println!("address_us {}", Instant::now().as_micros() as u32);
        work.await
    });
    match with_timeout(limit, all).await {
        Ok(Ok(())) => succeed(),
        Ok(Err(reason)) => fail(reason),
        Err(_) => fail("the time limit of the run"),
    }
}

/// Ends the run, and prints what it took.
pub fn succeed() -> ! {
    report::size_card();
    println!("done ok");
    semihosting::exit(true)
}

/// Ends the run as failed.
pub fn fail(reason: &str) -> ! {
    println!("failed {reason}");
    semihosting::exit(false)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("failed {info}");
    semihosting::exit(false)
}
