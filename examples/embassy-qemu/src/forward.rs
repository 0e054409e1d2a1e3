//! Store and forward on the board: it measures, keeps readings in memory that outlives a reset, as in
//! flash, and writes them when the cable is in. The emulator resets it at moments of chance, seven
//! times. The last boot writes what is left, reads the table, and compares it with a ledger that the
//! resets have spared too.

use core::net::{Ipv4Addr, SocketAddr};
use core::num::NonZeroUsize;

use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_gateway::{
    BatchLimits, DropPolicy, FlashStore, Gateway, GatewayOptions, Inbox, PlatformTime, RamFlash,
    Reading, SessionSink, StoreLimits, TABLES, TokenBucket,
};
use embassy_time::{Duration, Instant, Timer};
use messina_core::compact::{Options, Session, start};
use messina_core::config::Config;
use messina_core::drive::Endpoint;
use messina_core::error::Error;
use messina_embassy::{EmbassyTransport, Options as TransportOptions, Seed, SocketPool};
use sequential_storage::cache::{Cache, Uncached};

use crate::board::kept;
use crate::boot::Board;
use crate::console::ask;
use crate::println;

/// Boots that end by a reset.
const RESETS: u32 = 7;
/// Readings of the last boot.
const LAST: u32 = 100;
const EVERY: Duration = Duration::from_millis(5);
const FLASH_BYTES: usize = 48 * 1024;
const SENSORS: u32 = 5;

const CLOSE_MAX: core::time::Duration = core::time::Duration::from_secs(5);
const WAITING: usize = 32;

static INBOX: Inbox<WAITING> = Inbox::new(DropPolicy::Newest);

type BoardGateway = Gateway<
    'static,
    RamFlash<'static, 4096>,
    Cache<Uncached, Uncached, Uncached>,
    PlatformTime<EmbassyTransport<'static>>,
    WAITING,
>;

/// Runs one boot.
pub async fn run<const N: usize>(
    board: Board,
    pool: &'static SocketPool<'static, N>,
) -> Result<(), &'static str> {
    let (memory, is_fresh) = kept::take().ok_or("the kept memory was taken before")?;
    let (flash, ledger) = memory.split_at_mut(FLASH_BYTES);
    let mut ledger = Ledger::new(ledger, is_fresh);
    let boot = ledger.begin();
    let mut seed = seed(board)?;
    let transport = EmbassyTransport::new(pool, &mut seed, TransportOptions::default());

    let (flash, range) = (RamFlash::<4096>::new(flash), 0..FLASH_BYTES as u32);
    let cache = Cache::new_uncached();
    let opened = FlashStore::open(flash, range, cache, StoreLimits::default()).await;
    let store = opened.map_err(|_| "the store does not open")?;
    println!("boot {boot} left {} taken {}", store.len(), ledger.taken());
    let time = PlatformTime::new(&transport);
    let mut options = GatewayOptions::new(seed.next_u64() as u32);
    // Two statements a reading; longer requests take memory that the board does not have.
    options.batch = BatchLimits::new(8, 512);
    options.rate = TokenBucket::new(400, 64);
    options.retry_min = core::time::Duration::from_millis(200);
    let mut gateway = Gateway::new(&INBOX, store, time, options);

    let until = match boot > RESETS {
        true => ledger.taken() + LAST,
        false => u32::MAX,
    };
    let mut reset = (boot <= RESETS).then(|| 200 + seed.next_u64() % 600);
    loop {
        let (session, runner) = start(config(board, N), transport, seed.next_u64());
        let work = async {
            let outcome = serve(&session, &mut gateway, &mut ledger, until, &mut reset).await;
            // Whatever it is that ends a session, the next begins anew.
            let _ = session.close(CLOSE_MAX).await;
            outcome
        };
        let ((), is_done) = join(runner, work).await;
        if is_done? {
            return Ok(());
        }
        Timer::after_millis(100).await;
    }
}

/// Measures and writes as long as this session lasts. `true` if all is written and is as it was
/// measured.
async fn serve(
    session: &Session,
    gateway: &mut BoardGateway,
    ledger: &mut Ledger,
    until: u32,
    reset: &mut Option<u64>,
) -> Result<bool, &'static str> {
    if !ledger.has_tables() {
        if make_tables(session).await.is_err() {
            return Ok(false);
        }
        ledger.set_tables();
    }
    if let Some(after) = reset.take() {
        // The cable goes in every other boot; it is put back with the reset.
        if ledger.boots().is_multiple_of(2) {
            ask("cable_off").await;
        }
        println!("event reset_after {after}");
    }
    let mut sink = SessionSink::new(session.clone(), 1);
    match select(gateway.run(&mut sink), measure(ledger, until)).await {
        Either::First(Ok(())) => return Ok(false),
        Either::First(Err(_)) => return Err("the flash failed"),
        Either::Second(()) => {}
    }
    let drained = gateway.drain(&mut sink).await;
    drained.map_err(|_| "the flash failed")?;
    if !gateway.is_empty() {
        return Ok(false);
    }
    ledger.mark_kept();
    compare(session, ledger).await?;
    Ok(true)
}

/// Takes readings one after the other, and notes which of them are in flash.
async fn measure(ledger: &mut Ledger, until: u32) {
    while ledger.taken() < until {
        ledger.mark_kept();
        let Some(number) = ledger.take() else {
            // The ledger is full.
            break;
        };
        let now = messina_core::time::Instant::from_micros(Instant::now().as_micros());
        let reading = Reading {
            sensor: (number % SENSORS) as i32,
            celsius: f64::from(number) / 8.0,
        };
        // One that is refused is lost, and the ledger says so.
        let _ = INBOX.try_enqueue(now, &reading.to_payload());
        Timer::after(EVERY).await;
    }
}

async fn make_tables(session: &Session) -> Result<(), Error> {
    session.ready().await?;
    for text in TABLES {
        session.query(text, ()).await?;
    }
    Ok(())
}

/// Reads the table and compares it with the ledger.
async fn compare(session: &Session, ledger: &mut Ledger) -> Result<(), &'static str> {
    let text = "SELECT sensor, celsius, at, writetime(celsius) FROM plant.history";
    let select = session.prepare(text).await.map_err(report)?;
    let select = select.with(Options::new().with_page_size(100));
    let (mut rows, mut state) = (0_u32, None);
    loop {
        let mut page = session.stream_paged(&select, (), state.as_ref());
        while let Some(row) = page.next::<(i32, f64, i64, i64)>().await {
            let (sensor, celsius, at, written_at) = row.map_err(report)?;
            let number = (celsius * 8.0) as u32;
            rows += 1;
            if at != written_at || sensor != (number % SENSORS) as i32 || !ledger.see(number) {
                println!("row {sensor} {celsius} {at} {written_at}");
                return Err("a row that nobody measured, or the same twice");
            }
        }
        state = page.paging_state().cloned();
        if state.is_none() {
            break;
        }
    }
    println!("boots {}", ledger.boots());
    println!("taken {}", ledger.taken());
    println!("kept {}", ledger.count(KEPT));
    println!("rows {rows}");
    println!("missing {}", ledger.missing());
    println!("refused {}", INBOX.counters().refused);
    match ledger.missing() {
        0 => Ok(()),
        _ => Err("readings that were in flash are not in the table"),
    }
}

/// What is known of each reading, in memory that outlives resets: the boots, the readings taken,
/// whether there are tables, and a byte for each reading.
struct Ledger {
    memory: &'static mut [u8],
    first: u32,
}

const KEPT: u8 = 1;
const SEEN: u8 = 2;

impl Ledger {
    fn new(memory: &'static mut [u8], is_fresh: bool) -> Self {
        if is_fresh {
            memory.fill(0);
        }
        Self { memory, first: 0 }
    }

    /// Begins the next boot, and returns its number.
    fn begin(&mut self) -> u32 {
        let boot = self.boots() + 1;
        self.memory[..4].copy_from_slice(&boot.to_le_bytes());
        self.first = self.taken();
        boot
    }

    fn has_tables(&self) -> bool {
        self.word(8) != 0
    }

    fn set_tables(&mut self) {
        self.memory[8..12].copy_from_slice(&1_u32.to_le_bytes());
    }

    fn word(&self, at: usize) -> u32 {
        let word = self.memory[at..].first_chunk();
        word.map_or(0, |word| u32::from_le_bytes(*word))
    }

    fn boots(&self) -> u32 {
        self.word(0)
    }

    fn taken(&self) -> u32 {
        self.word(4)
    }

    /// The number of the next reading.
    fn take(&mut self) -> Option<u32> {
        let number = self.taken();
        self.readings().get(number as usize)?;
        self.memory[4..8].copy_from_slice(&(number + 1).to_le_bytes());
        Some(number)
    }

    /// What the inbox has handed on is in flash.
    fn mark_kept(&mut self) {
        let first = self.first as usize;
        let handed = INBOX.counters().handed as usize;
        for reading in self.readings().iter_mut().skip(first).take(handed) {
            *reading |= KEPT;
        }
    }

    /// Whether a reading was taken and is seen for the first time.
    fn see(&mut self, number: u32) -> bool {
        let is_taken = number < self.taken();
        match self.readings().get_mut(number as usize) {
            Some(reading) if is_taken && *reading & SEEN == 0 => {
                *reading |= SEEN;
                true
            }
            _ => false,
        }
    }

    fn readings(&mut self) -> &mut [u8] {
        &mut self.memory[12..]
    }

    fn count(&mut self, what: u8) -> usize {
        let readings = self.readings().iter();
        readings.filter(|reading| **reading & what != 0).count()
    }

    fn missing(&mut self) -> usize {
        let readings = self.readings().iter();
        readings.filter(|reading| **reading == KEPT).count()
    }
}

fn config(board: Board, connections: usize) -> Config {
    let parameters = board.parameters;
    let mut config = Config::mcu();
    for node in 0..u32::from(parameters.nodes) {
        let host = Ipv4Addr::from_bits(parameters.host.to_bits().wrapping_add(node));
        let point = SocketAddr::from((host, parameters.port));
        config.contact_points.push(Endpoint::Addr(point));
    }
    config.pool.connections_max = NonZeroUsize::new(connections);
    config
}

/// The board's own number is from the host's entropy, or given for runs that repeat.
fn seed(board: Board) -> Result<Seed, &'static str> {
    let mut numbers = board.seed;
    let mut source = |into: &mut [u8]| {
        for byte in into {
            numbers = numbers.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            *byte = (numbers >> 56) as u8;
        }
        Ok(())
    };
    Seed::from_entropy(&mut source).map_err(|_| "no entropy")
}

fn report(error: Error) -> &'static str {
    println!("error {error}");
    "the driver"
}
