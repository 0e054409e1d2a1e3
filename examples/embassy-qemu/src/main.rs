//! messina on a small machine: a Cortex-M4F with embassy-executor and embassy-net, run in QEMU.
//!
//! Boots, gets an address, does what the command line says, prints what it took and ends with exit
//! code 0 (line `done ok`) or 1 (line `failed ..`). README.md has the command lines. It is not a
//! template for a board's drivers, which come from the chip's HAL crate, but for everything above.
#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod echo;
mod parameters;
#[cfg(feature = "driver")]
mod query;

use core::panic::PanicInfo;

use embassy_executor::Spawner;
use embassy_net::{Ipv4Address, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4};
use embassy_time::{Duration, Instant, with_timeout};
use static_cell::ConstStaticCell;

use board::lan9118::{self, FrameBuffer, Lan9118};
use board::{executor, heap, memory, semihosting, time_driver, uart};
use parameters::{Machine, Mode, Parameters};

/// DHCP, DNS, and what the driver may hold open at once.
const SOCKETS: usize = 4;

static RX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new([0; size_of::<FrameBuffer>()]);
static TX_FRAME: ConstStaticCell<FrameBuffer> = ConstStaticCell::new([0; size_of::<FrameBuffer>()]);
static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
    ConstStaticCell::new(StackResources::new());

#[cortex_m_rt::entry]
fn main() -> ! {
    uart::init();
    heap::init();
    let Some(peripherals) = cortex_m::Peripherals::take() else {
        fail("the core's peripherals were taken before main");
    };
    time_driver::init(peripherals.SYST);

    let mut line = [0; 256];
    let parameters = match Parameters::parse(semihosting::command_line(&mut line)) {
        Ok(parameters) => parameters,
        Err(word) => fail(word),
    };
    // A constant seed would give the same source port after every reboot.
    let Some(seed) = parameters.seed.or_else(semihosting::entropy) else {
        fail("no entropy from the host; give seed=NUMBER");
    };
    executor::run(|spawner| {
        let (stack, runner) = start_network(&parameters, seed);
        spawn(spawner, network(runner));
        spawn(spawner, application(stack, parameters, seed));
    })
}

fn start_network(parameters: &Parameters, seed: u64) -> (Stack<'static>, Runner<'static, Lan9118>) {
    let base = match parameters.machine {
        Machine::An386 => lan9118::BASE_AN386,
        Machine::An500 => lan9118::BASE_AN500,
    };
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
    embassy_net::new(device, config, RESOURCES.take(), seed)
}

fn spawn<S>(
    spawner: Spawner,
    token: Result<embassy_executor::SpawnToken<S>, embassy_executor::SpawnError>,
) {
    match token {
        Ok(token) => spawner.spawn(token),
        Err(_) => fail("a task was started twice"),
    }
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn application(stack: Stack<'static>, parameters: Parameters, seed: u64) {
    let limit = Duration::from_secs(u64::from(parameters.limit_s));
    match with_timeout(limit, run(stack, &parameters, seed)).await {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => fail(reason),
        Err(_) => fail("the time limit of the run"),
    }
    print_size_card();
    println!("done ok");
    semihosting::exit(true);
}

#[cfg_attr(
    not(feature = "driver"),
    expect(
        unused_variables,
        reason = "the baseline draws no random numbers of its own"
    )
)]
async fn run(
    stack: Stack<'static>,
    parameters: &Parameters,
    seed: u64,
) -> Result<(), &'static str> {
    stack.wait_config_up().await;
    let config = stack.config_v4().ok_or("the address was lost at once")?;
    println!("address {}", config.address);
    println!("address_us {}", Instant::now().as_micros());
    match parameters.mode {
        Mode::Boot => Ok(()),
        Mode::Echo => echo::run(stack, parameters).await,
        #[cfg(feature = "driver")]
        Mode::Query => query::run(stack, parameters, seed).await.map_err(|error| {
            println!("error {error}");
            "the query"
        }),
    }
}

/// What the image and the run took, as `key value` lines.
fn print_size_card() {
    let heap = heap::usage();
    println!("flash_bytes {}", memory::flash_bytes());
    println!(
        "static_bytes {}",
        memory::static_bytes() - heap::ARENA_BYTES
    );
    println!("heap_arena_bytes {}", heap::ARENA_BYTES);
    println!("heap_peak_bytes {}", heap.peak_bytes);
    println!("heap_live_bytes {}", heap.live_bytes);
    println!("heap_calls {}", heap.calls);
    println!("stack_bytes {}", memory::stack_bytes());
    println!("stack_peak_bytes {}", memory::stack_peak_bytes());
}

fn fail(reason: &str) -> ! {
    println!("failed {reason}");
    semihosting::exit(false)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("failed {info}");
    semihosting::exit(false)
}
