//! A cluster on links under virtual time, with one session of the one-owner driver.

use core::future::poll_fn;
use core::time::Duration;

use messina_core::compact::{Runner, Session, start};
use messina_core::config::Config;
use messina_core::drive::{Clock, Timer, Transport};
use messina_core::target::Endpoint;
use messina_core::time::Instant;
use messina_core::wire::Consistency;
use messina_sim::link::{Executor, Faults, SimTransport, World};
use messina_sim::node::Options;

/// A cluster, and a session whose runner runs.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) session: Session,
}

pub(crate) fn options(seed: u64, nodes: usize, shards: u32) -> Options {
    let mut options = Options::uniform(nodes, shards);
    options.seed = seed;
    options
}

/// Runs `scenario` on a cluster, at most for ten virtual minutes.
pub(crate) fn run<F: Future<Output = ()> + 'static>(
    options: Options,
    adjust: impl FnOnce(&mut Config),
    scenario: impl FnOnce(Scene) -> F,
) {
    let seed = options.seed;
    let world = World::new(options.clone(), Faults::NONE);
    let (session, runner) = session(&world, &options, adjust);
    let mut executor = Executor::new(&world, seed);
    executor.spawner().spawn(runner);
    let scene = Scene { world, session };
    executor.run(600_000_000, scenario(scene)).unwrap();
}

pub(crate) fn session(
    world: &World,
    options: &Options,
    adjust: impl FnOnce(&mut Config),
) -> (Session, Runner<SimTransport>) {
    let mut config = Config::mcu();
    config.contact_points = (0..options.nodes.len())
        .map(|node| Endpoint::Addr((options.address(node), options.port).into()))
        .collect();
    config.consistency = Consistency::One;
    adjust(&mut config);
    start(config, SimTransport::new(world), options.seed)
}

impl Scene {
    /// Waits until the session can be used, and runs statements that make what a test needs.
    pub(crate) async fn create(&self, statements: &[&str]) {
        self.session.ready().await.unwrap();
        for &statement in statements {
            self.session.query(statement, ()).await.unwrap();
        }
    }

    /// Virtual time passes.
    pub(crate) async fn pause(&self, micros: u64) {
        pause(&self.world, micros).await;
    }

    pub(crate) fn now(&self) -> Instant {
        SimTransport::new(&self.world).clock().now()
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.world.with_cluster(|cluster| {
            (0..cluster.node_count())
                .map(|node| cluster.connection_count(node))
                .sum()
        })
    }
}

/// Virtual time passes.
pub(crate) async fn pause(world: &World, micros: u64) {
    let transport = SimTransport::new(world);
    let mut timer = transport.timer();
    let pause = Duration::from_micros(micros);
    timer.arm(Some(transport.clock().now().saturating_add(pause)));
    poll_fn(|cx| timer.poll_fired(cx)).await;
}

pub(crate) const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND tablets = {'initial': 8}";
pub(crate) const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
pub(crate) const INSERT: &str = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
pub(crate) const SELECT: &str = "SELECT v FROM ks.t WHERE pk = ?";
