//! A session over the pool of sockets, and the tables that the scenarios use.
//!
//! The session and its runner share one task: nothing is spawned, and the runner is polled for as
//! long as the work takes.

use core::cell::RefCell;
use core::net::{Ipv4Addr, SocketAddr};
use core::num::NonZeroUsize;
use core::pin::pin;
use core::time::Duration;

#[cfg(feature = "full")]
use messina_core::compact::Options as StatementOptions;
use messina_core::compact::{Prepared, Runner, Session, start};
use messina_core::config::Config;
use messina_core::drive::{Endpoint, Transport};
use messina_core::error::Error;
use messina_embassy::{EmbassyTransport, Options, Seed, SocketPool};

use super::Failure;
use crate::boot::{self, Board};

const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The windows of a connection.
pub const RX_BYTES: usize = 2048;
/// See [`RX_BYTES`].
pub const TX_BYTES: usize = 1024;

/// Where sessions come from.
pub struct Plant<T> {
    /// The board they run on.
    pub board: Board,
    transport: T,
    connections: usize,
    seed: RefCell<Seed>,
}

impl Plant<EmbassyTransport<'static>> {
    /// A plant on sockets that were placed by the caller.
    pub fn new<const N: usize>(
        board: Board,
        pool: &'static SocketPool<'static, N>,
    ) -> Result<Self, &'static str> {
        // The board's own number is from the host's entropy, or given for runs that repeat.
        let mut numbers = board.seed;
        let mut source = |into: &mut [u8]| {
            for byte in into {
                numbers = numbers.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                *byte = (numbers >> 56) as u8;
            }
            Ok(())
        };
        let mut seed = Seed::from_entropy(&mut source).map_err(|_| "no entropy")?;
        Ok(Self {
            board,
            transport: EmbassyTransport::new(pool, &mut seed, Options::default()),
            connections: N,
            seed: RefCell::new(seed),
        })
    }
}

impl<T: Transport + Copy> Plant<T> {
    /// The same over another transport that is made of this one's.
    pub fn over<U>(self, make: impl FnOnce(T) -> U) -> Plant<U> {
        Plant {
            board: self.board,
            transport: make(self.transport),
            connections: self.connections,
            seed: self.seed,
        }
    }

    fn config(&self) -> Config {
        let parameters = self.board.parameters;
        let mut config = Config::mcu();
        let first = parameters.host.to_bits();
        for node in 0..u32::from(parameters.nodes) {
            let host = Ipv4Addr::from_bits(first.wrapping_add(node));
            let point = SocketAddr::from((host, parameters.port));
            config.contact_points.push(Endpoint::Addr(point));
        }
        config.pool.connections_max = NonZeroUsize::new(self.connections);
        config
    }

    /// Runs `work` with a session that is ready, then closes it. `adjust` may change how it is set up.
    ///
    /// Futures are pinned where they are made: each move of a large one would be paid by the stack.
    pub async fn run(
        &self,
        adjust: fn(&mut Config),
        work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (session, mut runner) = self.begin(adjust);
        let work = pin!(async {
            let outcome = match session.ready().await {
                Ok(()) => work(&session).await,
                Err(error) => Err(error.into()),
            };
            outcome.and(session.close(CLOSE_MAX).await.map_err(Failure::from))
        });
        runner.beside(work).await
    }

    /// The same with a session that ends with the run, as that of a product ends when its power goes:
    /// what an end takes is not in the image.
    pub async fn run_on(
        &self,
        fail: fn(Failure) -> !,
        work: impl AsyncFnOnce(Result<&Session, Error>) -> Result<(), Failure>,
    ) -> ! {
        let (session, mut runner) = self.begin(|_| ());
        let work = pin!(async {
            let ready = session.ready().await;
            match work(ready.map(|()| &session)).await {
                Ok(()) => boot::succeed(),
                Err(failure) => fail(failure),
            }
        });
        runner.beside(work).await
    }

    /// Apart from what is polled, whose stack would else have room for all of this.
    #[inline(never)]
    fn begin(&self, adjust: fn(&mut Config)) -> (Session, Runner<T>) {
        let mut config = self.config();
        adjust(&mut config);
        start(config, self.transport, self.seed.borrow_mut().next_u64())
    }
}

#[cfg(feature = "full")]
/// Makes the table of readings: strongly consistent, with a replica on each of three nodes, or as it can
/// be on one node.
pub(super) async fn make_table(session: &Session, nodes: u8) -> Result<(), Error> {
    let keyspace = if nodes < 3 {
        "CREATE KEYSPACE IF NOT EXISTS plant WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    } else {
        "CREATE KEYSPACE IF NOT EXISTS plant WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
         AND tablets = {'initial': 64} AND consistency = 'global'"
    };
    let table = "CREATE TABLE IF NOT EXISTS plant.readings (sensor int, at bigint, \
                 celsius double, PRIMARY KEY (sensor, at))";
    for text in [keyspace, table] {
        let options = StatementOptions::new();
        session.query_unprepared(text, &options).await?;
    }
    Ok(())
}

/// The statements of a table of readings.
pub(super) struct Readings {
    pub(super) insert: Prepared,
    pub(super) select: Prepared,
}

/// What is done with a reading.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Write,
    /// Reads what was written and compares.
    Check,
}

impl Readings {
    #[cfg(feature = "full")]
    pub(super) async fn prepare(session: &Session) -> Result<Self, Error> {
        let Self { insert, select } = Self::prepare_beside(session, 0).await?;
        // Each may be repeated after an error: the same values are written, and reads change nothing.
        let idempotent = StatementOptions::new().idempotent();
        Ok(Self {
            insert: insert.with(idempotent),
            select: select.with(idempotent),
        })
    }

    /// The same beside so many others, at most nine, that the session holds. In one loop, so that the wait
    /// for an answer stands once in the image.
    pub(super) async fn prepare_beside(session: &Session, others: u8) -> Result<Self, Error> {
        let mut other = *OTHER;
        let mut insert = None;
        for number in 0.. {
            if let Some(digit) = other.last_mut() {
                *digit = b'1'.wrapping_add(number);
            }
            let text = match number {
                number if number < others => str::from_utf8(&other).unwrap_or_default(),
                number if number == others => INSERT,
                _ => SELECT,
            };
            let statement = session.prepare(text).await?;
            match insert {
                Some(insert) => {
                    let select = statement;
                    return Ok(Self { insert, select });
                }
                None if number == others => insert = Some(statement),
                None => {}
            }
        }
        Err(Error::bug("there are not so many numbers"))
    }

    #[cfg(feature = "full")]
    pub(super) async fn write(&self, session: &Session, number: u32) -> Result<(), Error> {
        let Reading {
            sensor,
            at,
            celsius,
        } = Reading::new(number);
        session.execute(&self.insert, (sensor, at, celsius)).await?;
        Ok(())
    }

    #[cfg(feature = "full")]
    /// Reads what `write` wrote and compares.
    pub(super) async fn check(&self, session: &Session, number: u32) -> Result<(), Failure> {
        self.take(session, number, Step::Check).await
    }

    /// Either of them, by one wait for both.
    pub(super) async fn take(
        &self,
        session: &Session,
        number: u32,
        step: Step,
    ) -> Result<(), Failure> {
        let expected = Reading::new(number);
        let (sensor, at) = (expected.sensor, expected.at);
        let executing = match step {
            Step::Write => session.execute(&self.insert, (sensor, at, expected.celsius)),
            Step::Check => session.execute(&self.select, (sensor, at)),
        };
        let result = executing.await?;
        if step == Step::Write {
            return Ok(());
        }
        let (sensor, at, celsius) = result.single_row()?;
        let found = Reading {
            sensor,
            at,
            celsius,
        };
        if found.is(&expected) {
            Ok(())
        } else {
            Err(Failure::Found("a reading came back changed"))
        }
    }
}

const INSERT: &str = "INSERT INTO plant.readings (sensor, at, celsius) VALUES (?, ?, ?)";

const SELECT: &str = "SELECT sensor, at, celsius FROM plant.readings WHERE sensor = ? AND at = ?";

/// Statements that differ in their last digit.
const OTHER: &[u8; 71] = b"SELECT sensor, at, celsius FROM plant.readings WHERE sensor = ? LIMIT 0";

/// Sensors of the plant: the partitions.
const SENSORS: u32 = 200;

/// A reading that its number gives.
pub(super) struct Reading {
    pub(super) sensor: i32,
    pub(super) at: i64,
    pub(super) celsius: f64,
}

impl Reading {
    /// The same bits, told without arithmetic that the processor lacks.
    fn is(&self, other: &Self) -> bool {
        let bits = |reading: &Self| (reading.sensor, reading.at, reading.celsius.to_bits());
        bits(self) == bits(other)
    }

    pub(super) fn new(number: u32) -> Self {
        Self {
            sensor: (number % SENSORS) as i32,
            at: i64::from(number / SENSORS) * 1_000,
            // 16 degrees and a little more each time, without arithmetic that the processor lacks.
            celsius: f64::from_bits(0x4030_0000_0000_0000 | u64::from(number) << 32),
        }
    }
}
