//! `mode=query`: the driver at work. Connects to a cluster, makes a table, writes readings and reads
//! them back with prepared statements, prints a row, closes.
//!
//! The session and its runner share this task: nothing is spawned, and the runner is polled for as
//! long as the work takes.

use core::convert::Infallible;
use core::net::SocketAddr;

use embassy_futures::join::join;
use embassy_net::Stack;
use embassy_time::Instant;
use messina_core::config::Config;
use messina_core::drive::{Endpoint, Session, start};
use messina_core::error::Error;
use messina_embassy::{EmbassyTransport, Options, Runner, SocketBuffers, SocketPool};
use rand_core::TryRng;
use static_cell::{ConstStaticCell, StaticCell};

use crate::board::heap;
use crate::parameters::Parameters;
use crate::println;

/// Connections that can be open or opening at once.
const CONNECTIONS: usize = 2;

static BUFFERS: ConstStaticCell<SocketBuffers<CONNECTIONS, 2048, 1024>> =
    ConstStaticCell::new(SocketBuffers::new());
static POOL: StaticCell<SocketPool<'static, CONNECTIONS>> = StaticCell::new();

/// How many readings are written and read back.
const READINGS: i32 = 10;

/// Runs the session from start to close.
pub async fn run(stack: Stack<'static>, parameters: &Parameters, seed: u64) -> Result<(), Error> {
    let pool = POOL.init_with(|| SocketPool::new(stack, BUFFERS.take()));
    let mut host = Seed(seed);
    let mut source = |into: &mut [u8]| host.try_fill_bytes(into).map_err(|never| match never {});
    let mut seed = messina_embassy::Seed::from_entropy(&mut source)
        .map_err(|_| Error::bug("the host's entropy"))?;
    let transport = EmbassyTransport::new(pool, &mut seed, Options::default());
    let mut config = Config::mcu();
    let contact_point = SocketAddr::from((parameters.host, parameters.port));
    config.contact_points.push(Endpoint::Addr(contact_point));
    let begin = Instant::now();
    let (session, driver) = start(config, transport, &mut seed)?;
    let runner = Runner::new(driver, CONNECTIONS);
    let work = async {
        let outcome = work(&session, begin).await;
        session.close().await;
        outcome
    };
    let ((), outcome) = join(runner, work).await;
    outcome
}

async fn work(session: &Session, begin: Instant) -> Result<(), Error> {
    session.ready().await?;
    println!("ready_us {}", begin.elapsed().as_micros());
    for text in [
        "CREATE KEYSPACE IF NOT EXISTS plant WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        "CREATE TABLE IF NOT EXISTS plant.readings (sensor int, at bigint, celsius double, \
         PRIMARY KEY (sensor, at))",
    ] {
        session.query(text, ()).await?;
    }
    let insert = session
        .prepare("INSERT INTO plant.readings (sensor, at, celsius) VALUES (?, ?, ?)")
        .await?;
    let select = session
        .prepare("SELECT sensor, at, celsius FROM plant.readings WHERE sensor = ? AND at = ?")
        .await?;
    println!("prepared_us {}", begin.elapsed().as_micros());

    let (calls, warm) = (heap::usage().calls, Instant::now());
    for reading in 0..READINGS {
        let at = i64::from(reading) * 1_000;
        session
            .execute(&insert, (7_i32, at, 20.5_f64 + f64::from(reading)))
            .await?;
    }
    println!("write_us {}", warm.elapsed().as_micros() / READINGS as u64);
    println!(
        "write_heap_calls {}",
        (heap::usage().calls - calls) / READINGS as usize
    );

    let (calls, warm) = (heap::usage().calls, Instant::now());
    for reading in 0..READINGS {
        let at = i64::from(reading) * 1_000;
        let result = session.execute(&select, (7_i32, at)).await?;
        let (sensor, at, celsius): (i32, i64, f64) = result.single_row()?;
        if reading == READINGS - 1 {
            println!("row {sensor} {at} {celsius}");
        }
    }
    println!("read_us {}", warm.elapsed().as_micros() / READINGS as u64);
    println!(
        "read_heap_calls {}",
        (heap::usage().calls - calls) / READINGS as usize
    );
    Ok(())
}

/// Hands the host's entropy to the driver, which draws its own seed from it once.
struct Seed(u64);

impl TryRng for Seed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        for chunk in into.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

impl Seed {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
