//! A cluster on links under virtual time, with one session of the driver.

use core::cell::Cell;
use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use std::rc::Rc;

use messina_core::config::Config;
use messina_core::drive::{Clock, Driver, Session, Timer, Transport, start};
use messina_core::target::Endpoint;
use messina_core::wire::Consistency;
use messina_sim::link::{Executor, Faults, SimTransport, Spawner, World};
use messina_sim::node::Options;

/// A cluster, and a session whose driver runs until it is told to be dropped.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) session: Session,
    pub(crate) spawner: Spawner,
    /// When the driver is dropped; never, unless set.
    pub(crate) drops_driver_at: Rc<Cell<Option<u64>>>,
}

/// Runs `scenario` on two nodes of one shard, at most for ten virtual minutes.
pub(crate) fn run<F: Future<Output = ()> + 'static>(
    seed: u64,
    adjust: impl FnOnce(&mut Config),
    scenario: impl FnOnce(Scene) -> F,
) {
    let mut options = Options::uniform(2, 1);
    options.seed = seed;
    run_on(options, adjust, scenario);
}

/// The same on any cluster.
pub(crate) fn run_on<F: Future<Output = ()> + 'static>(
    options: Options,
    adjust: impl FnOnce(&mut Config),
    scenario: impl FnOnce(Scene) -> F,
) {
    run_with(options, Faults::NONE, adjust, scenario);
}

/// The same over links on which things go wrong.
pub(crate) fn run_with<F: Future<Output = ()> + 'static>(
    options: Options,
    faults: Faults,
    adjust: impl FnOnce(&mut Config),
    scenario: impl FnOnce(Scene) -> F,
) {
    let seed = options.seed;
    let world = World::new(options.clone(), faults);
    let config = config(&options, adjust);
    let (session, driver) = start(config, SimTransport::new(&world), &mut Seed(seed)).unwrap();
    let mut executor = Executor::new(&world, seed);
    let scene = Scene {
        world: world.clone(),
        session,
        spawner: executor.spawner(),
        drops_driver_at: Rc::default(),
    };
    scene.spawner.spawn(drive(scene.clone(), driver));
    executor.run(600_000_000, scenario(scene)).unwrap();
}

fn config(options: &Options, adjust: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::server();
    config.contact_points = (0..options.nodes.len())
        .map(|node| Endpoint::Addr((options.address(node), options.port).into()))
        .collect();
    config.consistency = Consistency::One;
    adjust(&mut config);
    config
}

async fn drive(scene: Scene, mut driver: Driver<SimTransport>) {
    let Scene {
        world,
        session,
        spawner,
        drops_driver_at,
    } = scene;
    drop(session);
    let mut timer = SimTransport::new(&world).timer();
    poll_fn(|cx| {
        if let Some(at) = drops_driver_at.get() {
            timer.arm(Some(messina_core::time::Instant::from_micros(at)));
            if timer.poll_fired(cx).is_ready() {
                return Poll::Ready(());
            }
        }
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

impl Scene {
    /// One more session, in the same world.
    pub(crate) fn another(&self, adjust: impl FnOnce(&mut Config)) -> Self {
        let world = &self.world;
        let options = world.with_cluster(|cluster| cluster.options().clone());
        let config = config(&options, adjust);
        let seed = &mut Seed(options.seed + 1);
        let (session, driver) = start(config, SimTransport::new(world), seed).unwrap();
        let scene = Self {
            world: world.clone(),
            session,
            spawner: self.spawner.clone(),
            drops_driver_at: Rc::default(),
        };
        scene.spawner.spawn(drive(scene.clone(), driver));
        scene
    }

    /// Waits until the session can be used, and runs statements that make what a test needs.
    pub(crate) async fn create(&self, statements: &[&str]) {
        self.session.ready().await.unwrap();
        for &statement in statements {
            self.session.query(statement, ()).await.unwrap();
        }
    }

    /// Virtual time passes.
    pub(crate) async fn pause(&self, micros: u64) {
        let transport = SimTransport::new(&self.world);
        let mut timer = transport.timer();
        let pause = Duration::from_micros(micros);
        timer.arm(Some(transport.clock().now().saturating_add(pause)));
        poll_fn(|cx| timer.poll_fired(cx)).await;
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.world.with_cluster(|cluster| {
            (0..cluster.node_count())
                .map(|node| cluster.connection_count(node))
                .sum()
        })
    }

    pub(crate) fn table_exists(&self) -> bool {
        self.world
            .with_cluster(|cluster| !cluster.tablets("ks", "t").is_empty())
    }
}

/// The driver's seed.
struct Seed(u64);

impl rand_core::TryRng for Seed {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0 as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> {
        to.fill(self.0 as u8);
        Ok(())
    }
}
