//! A board with its flash and sensors, a cluster, and the link between them.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use embassy_futures::select::{Either, Either3, select, select3};
use messina_core::compact;
use messina_core::config::Config;
use messina_core::drive::{Driver, Session, Timer, Transport, start};
use messina_core::error::Error;
use messina_core::target::Endpoint;
use messina_core::time::Instant;
use messina_sim::link::{Executor, Faults, RunError, SimTransport, Spawner, World};
use messina_sim::node::Options;
use sequential_storage::cache::page_pointers::ArrayPagePointers;
use sequential_storage::cache::page_states::ArrayPageStates;
use sequential_storage::cache::{Cache, Uncached};

use super::chip::{Chip, Cut};
use super::model::{Fate, Model, Taken};
use super::time::{Seed, SimTime};
use crate::flash::{FlashCounters, FlashStore, StoreLimits};
use crate::gateway::{Gateway, GatewayCounters, GatewayOptions};
use crate::inbox::{DropPolicy, Inbox};
use crate::{Reading, SessionSink, TABLES, Time};

/// A cluster of three nodes, and whatever is connected to it.
#[derive(Clone, Debug)]
pub struct Scene {
    world: World,
    spawner: Spawner,
    seed: u64,
    model: Rc<RefCell<Model>>,
    /// Reads the tables; made when it is first needed.
    reader: Rc<RefCell<Option<Session>>>,
}

/// How the link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// Nothing goes wrong.
    Up,
    /// Connections break at once, or are not made.
    Down,
    /// Connections break often, before or after the cluster has done what it was asked.
    Flaky,
    /// Nobody answers, neither to requests nor to connects.
    Silent,
}

/// One board between power-on and power-off.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// When its power goes; else at the end.
    pub cut: Option<Cut>,
    /// When it learns the time of day by itself; else it must ask the cluster.
    pub clock_after: Option<Duration>,
    /// Readings that are taken, beginning at once.
    pub readings: u32,
    /// The time between two of them; every fourth comes with the one before.
    pub every: Duration,
    /// Whether it stays on until all is written. Else it goes off after the last reading.
    pub drains: bool,
}

/// What a board has done.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// Its power went as the cut said.
    pub was_cut: bool,
    /// Writes and erasures of the flash.
    pub operations: u64,
    /// What was written to the cluster.
    pub gateway: GatewayCounters,
    /// What was put into flash.
    pub store: FlashCounters,
    /// Readings in flash at the end.
    pub left: u32,
}

impl Scene {
    /// Plays a scene on a new cluster, its tables made, on 1 December 2026.
    pub fn play<F: Future<Output = R> + 'static, R: 'static>(
        seed: u64,
        scene: impl FnOnce(Self) -> F + 'static,
    ) -> Result<R, RunError> {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        let world = World::new(options, Faults::NONE);
        let mut executor = Executor::new(&world, seed);
        let here = Self {
            world,
            spawner: executor.spawner(),
            seed,
            model: Rc::default(),
            reader: Rc::default(),
        };
        executor.run(BEGIN_MICROS + LIMIT_MICROS, async move {
            here.sleep_until(BEGIN_MICROS).await;
            let made = here.make_tables().await;
            assert!(made.is_ok(), "the tables are made: {made:?}");
            scene(here).await
        })
    }

    /// Changes the link, now.
    pub fn set_link(&self, link: Link) {
        let mut faults = Faults::NONE;
        match link {
            Link::Up => {}
            Link::Down => (faults.reset, faults.refuse) = (1000, 1000),
            Link::Flaky => faults.reset = 250,
            Link::Silent => (faults.no_answer, faults.blackhole) = (1000, 1000),
        }
        self.world.set_faults(faults);
    }

    /// Changes the link later.
    pub fn set_link_after(&self, after: Duration, link: Link) {
        let scene = self.clone();
        self.spawner.spawn(async move {
            scene.pause(after).await;
            scene.set_link(link);
        });
    }

    /// The link goes and comes a number of times, ends up as it is now, and stays so.
    pub fn flap(&self, period: Duration, times: u32) {
        for time in 0..times {
            self.set_link_after(period * (2 * time + 1), Link::Down);
            self.set_link_after(period * (2 * time + 2), Link::Up);
        }
    }

    /// Time passes.
    pub async fn pause(&self, pause: Duration) {
        let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.sleep_until(self.world.now().saturating_add(pause))
            .await;
    }

    /// The cluster and its network.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// What the table must hold by now.
    pub fn model(&self) -> Model {
        self.model.borrow().clone()
    }

    /// Compares the tables with the model. Returns the number of rows, or what differs. The link
    /// must be up.
    pub async fn compare(&self) -> Result<usize, String> {
        let session = self.reader().await;
        let session = session.map_err(|error| format!("the tables cannot be read: {error}"))?;
        self.model().compare(&session).await
    }

    /// Begins anew, with empty tables and an empty model. The link must be up.
    pub async fn clear(&self) -> Result<(), Error> {
        let session = self.reader().await?;
        for text in ["TRUNCATE plant.history", "TRUNCATE plant.latest"] {
            session.query(text, ()).await?;
        }
        self.model.borrow_mut().taken.clear();
        Ok(())
    }

    /// A session that works; its connections may have been lost with the link.
    async fn reader(&self) -> Result<Session, Error> {
        let kept = self.reader.borrow().clone();
        let session = kept.unwrap_or_else(|| self.connect());
        *self.reader.borrow_mut() = Some(session.clone());
        session.ready().await?;
        for _ in 0..60 {
            if session
                .query("SELECT key FROM system.local", ())
                .await
                .is_ok()
            {
                break;
            }
            self.pause(Duration::from_secs(1)).await;
        }
        Ok(session)
    }

    /// Runs a board on this flash from power-on to power-off.
    pub async fn power_cycle(&self, chip: &Chip, board: Board) -> Cycle {
        let flash = chip.power_on(board.cut);
        let time = SimTime::new(&self.world, board.clock_after);
        let inbox = Inbox::<INBOX>::new(DropPolicy::Newest);
        let cache = Cache::new(
            ArrayPageStates::<PAGES_MAX>::new(),
            ArrayPagePointers::<PAGES_MAX>::new(),
            Uncached,
        );
        let opened = {
            let open = FlashStore::open(flash, chip.range(), cache, StoreLimits::default());
            select(chip.off(), open).await
        };
        let store = match opened {
            Either::First(()) => return Cycle::cut_while_opening(chip),
            Either::Second(store) => store,
        };
        let store = match store {
            Ok(store) => store,
            Err(error) => panic!("the store opens after any cut: {error}"),
        };
        let seed = u32::try_from(self.world.now() % 0xffff).unwrap_or(1);
        let mut options = GatewayOptions::new(seed);
        options.batch.count = 4;
        options.retry_min = Duration::from_millis(100);
        let mut gateway = Gateway::new(&inbox, store, time.clone(), options);
        let taken = self.model.borrow().taken.len();
        let is_done = Cell::new(false);
        let ended = {
            let work = pin!(self.work(&mut gateway, chip, &is_done));
            let measure = async {
                self.measure(&inbox, &time, board).await;
                is_done.set(true);
                // The last of them find their way to flash.
                self.pause(Duration::from_millis(5)).await;
                if board.drains {
                    core::future::pending::<()>().await;
                }
            };
            select3(chip.off(), work, pin!(measure)).await
        };
        let was_cut = matches!(ended, Either3::First(()));
        assert_eq!(inbox.counters().refused, 0, "the inbox is large enough");
        assert_eq!(
            gateway.store_counters().dropped,
            0,
            "the flash is large enough"
        );
        let stored = usize::try_from(gateway.store_counters().stored).unwrap_or(usize::MAX);
        for (at, taken) in self.model.borrow_mut().taken[taken..]
            .iter_mut()
            .enumerate()
        {
            taken.fate = match at {
                at if at < stored => Fate::Kept,
                at if at == stored && was_cut => Fate::Open,
                _ => Fate::Lost,
            };
        }
        chip.power_off();
        Cycle {
            was_cut,
            operations: chip.operations(),
            gateway: gateway.counters(),
            store: gateway.store_counters(),
            left: gateway.store().len(),
        }
    }

    /// Writes until all readings are taken and written, through as many sessions as it takes.
    async fn work<C: sequential_storage::cache::CacheImpl<()>>(
        &self,
        gateway: &mut Gateway<'_, super::Flash, C, SimTime, INBOX>,
        chip: &Chip,
        is_done: &Cell<bool>,
    ) {
        while !is_done.get() || !gateway.is_empty() {
            let mut sink = SessionSink::new(self.connect_board(chip.off()), 1);
            loop {
                if let Err(error) = gateway.drain(&mut sink).await {
                    panic!("the flash works: {error}");
                }
                if !gateway.is_empty() || is_done.get() {
                    break;
                }
                self.pause(Duration::from_millis(1)).await;
            }
        }
    }

    /// Takes readings as an interrupt would.
    async fn measure(&self, inbox: &Inbox<INBOX>, time: &SimTime, board: Board) {
        for count in 0..board.readings {
            let number = self.model.borrow().taken.len();
            let taken = Taken {
                at: i64::try_from(self.world.now()).unwrap_or(i64::MAX),
                sensor: i32::try_from(number % 3).unwrap_or(0),
                celsius: 20.0 + f64::from(u32::try_from(number).unwrap_or(u32::MAX)) / 64.0,
                fate: Fate::Lost,
            };
            self.model.borrow_mut().taken.push(taken);
            let reading = Reading {
                sensor: taken.sensor,
                celsius: taken.celsius,
            };
            let _ = inbox.try_enqueue(time.now(), &reading.to_payload());
            if count % 4 != 3 {
                self.pause(board.every).await;
            }
        }
    }

    /// Starts the session of a board, which runs until `off` or its own end.
    fn connect_board(&self, off: impl Future<Output = ()> + 'static) -> compact::Session {
        let config = self.config(Config::mcu());
        let seed = self.seed ^ self.world.now();
        let (session, runner) = compact::start(config, SimTransport::new(&self.world), seed);
        self.spawner.spawn(async move {
            select(off, runner).await;
        });
        session
    }

    /// Starts a session as servers have it.
    fn connect(&self) -> Session {
        let config = self.config(Config::server());
        let mut seed = Seed(self.seed ^ self.world.now());
        let (session, driver) = match start(config, SimTransport::new(&self.world), &mut seed) {
            Ok(started) => started,
            Err(error) => panic!("the configuration is right: {error}"),
        };
        self.spawner.spawn(drive(driver, self.spawner.clone()));
        session
    }

    fn config(&self, mut config: Config) -> Config {
        let options = self.world.with_cluster(|cluster| cluster.options().clone());
        config.contact_points = (0..options.nodes.len())
            .map(|node| Endpoint::Addr((options.address(node), options.port).into()))
            .collect();
        config
    }

    async fn make_tables(&self) -> Result<(), Error> {
        let session = self.connect();
        session.ready().await?;
        for text in TABLES {
            session.query(text, ()).await?;
        }
        session.close().await;
        Ok(())
    }

    async fn sleep_until(&self, micros: u64) {
        let mut timer = SimTransport::new(&self.world).timer();
        timer.arm(Some(Instant::from_micros(micros)));
        poll_fn(|cx| timer.poll_fired(cx)).await;
    }
}

impl Board {
    /// One that knows the time and measures every 7 ms until its readings are written.
    pub const fn new(readings: u32) -> Self {
        Self {
            cut: None,
            clock_after: Some(Duration::ZERO),
            readings,
            every: Duration::from_millis(7),
            drains: true,
        }
    }
}

impl Cycle {
    fn cut_while_opening(chip: &Chip) -> Self {
        Self {
            was_cut: true,
            operations: chip.operations(),
            gateway: GatewayCounters::default(),
            store: FlashCounters::default(),
            left: 0,
        }
    }
}

async fn drive(mut driver: Driver<SimTransport>, spawner: Spawner) {
    poll_fn(|cx| {
        loop {
            match driver.poll_next(cx) {
                Poll::Ready(Some(connection)) => spawner.spawn(connection),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

/// Readings that wait in RAM at most.
const INBOX: usize = 64;

/// Pages of the largest chip.
const PAGES_MAX: usize = 64;

/// 2026-12-01T00:00:00Z.
const BEGIN_MICROS: u64 = 1_796_083_200_000_000;

/// No scene lasts longer.
const LIMIT_MICROS: u64 = 100 * 3_600_000_000;
