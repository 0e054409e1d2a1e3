//! The two drivers behind the same few calls, so that both are held by the same checks.

use core::time::Duration;
use std::rc::Rc;

use messina_core::config::{Config, Routing};
use messina_core::error::Error;
use messina_core::{compact, drive};
use messina_sim::link::{SimTransport, Spawner, World};

/// A session, as far as a run needs it.
pub(crate) trait Client: Clone + 'static {
    type Statement: Clone;

    fn start(config: Config, world: &World, spawner: &Spawner, seed: u64) -> Self;

    async fn ready(&self) -> Result<(), Error>;
    async fn create(&self, text: &str) -> Result<(), Error>;
    async fn prepare(&self, text: &str) -> Result<Self::Statement, Error>;
    async fn write(&self, insert: &Self::Statement, row: (i64, i64)) -> Result<(), Error>;

    /// The row of this key. Panics if there are more, or other columns.
    async fn read(&self, select: &Self::Statement, pk: i64) -> Result<Option<(i64, i64)>, Error>;

    /// The same by another way, if there is one.
    async fn read_otherwise(
        &self,
        select: &Self::Statement,
        pk: i64,
    ) -> Result<Option<(i64, i64)>, Error> {
        self.read(select, pk).await
    }

    /// Gives a write up before it has ended; nothing is known of it then.
    async fn write_halfway(&self, insert: &Self::Statement, row: (i64, i64), polls: u32);

    async fn close(&self);

    /// Whether all connections that are wanted are there, and what to say if not.
    fn completeness(&self) -> Result<(), String>;

    /// Stream ids in use without a request that anybody waits for.
    fn leaked(&self) -> u32;
}

impl Client for drive::Session {
    type Statement = drive::Prepared;

    fn start(config: Config, world: &World, spawner: &Spawner, seed: u64) -> Self {
        let transport = SimTransport::new(world);
        let (session, mut driver) = drive::start(config, transport, &mut Seed(seed)).unwrap();
        let tasks = spawner.clone();
        spawner.spawn(async move {
            while let Some(connection) = driver.next_connection().await {
                tasks.spawn(connection);
            }
        });
        session
    }

    async fn ready(&self) -> Result<(), Error> {
        Self::ready(self).await
    }

    async fn create(&self, text: &str) -> Result<(), Error> {
        self.query(text, ()).await.map(drop)
    }

    async fn prepare(&self, text: &str) -> Result<drive::Prepared, Error> {
        Self::prepare(self, text).await
    }

    async fn write(&self, insert: &drive::Prepared, row: (i64, i64)) -> Result<(), Error> {
        self.execute(insert, row).await.map(drop)
    }

    async fn read(&self, select: &drive::Prepared, pk: i64) -> Result<Option<(i64, i64)>, Error> {
        let result = self.execute(select, (pk,)).await?;
        Ok(result.maybe_row().expect("two numbers"))
    }

    async fn write_halfway(&self, insert: &drive::Prepared, row: (i64, i64), polls: u32) {
        give_up_after(polls, self.execute(insert, row)).await;
    }

    async fn close(&self) {
        Self::close(self).await;
    }

    fn completeness(&self) -> Result<(), String> {
        let status = self.status();
        match status.is_complete() {
            true => Ok(()),
            false => Err(format!("{status:#?}")),
        }
    }

    fn leaked(&self) -> u32 {
        let nodes = self.status().nodes;
        let connections = nodes.iter().flat_map(|node| &node.connections);
        connections
            .map(|connection| connection.in_flight - u32::from(connection.orphans))
            .sum()
    }
}

/// A session of the one-owner driver.
#[derive(Clone)]
pub(crate) struct Compact {
    session: compact::Session,
    /// Links that it has when nothing is wrong.
    links: Rc<dyn Fn() -> usize>,
}

impl Client for Compact {
    type Statement = compact::Prepared;

    fn start(mut config: Config, world: &World, spawner: &Spawner, seed: u64) -> Self {
        // The smallest things that may be, in turns, so that all that is cut is cut everywhere.
        config.limits.read_chunk = [64, 512, 64 << 10][(seed % 3) as usize];
        config.limits.row_window = 256;
        // What a storm has spoilt is tried again then.
        config.timeouts.refresh_interval = Duration::from_secs(10);
        let is_single = seed.is_multiple_of(5);
        if is_single {
            config.routing = Routing::Single;
        }
        let (session, runner) = compact::start(config, SimTransport::new(world), seed);
        spawner.spawn(runner);
        let world = world.clone();
        let links = move || match is_single {
            true => 1,
            false => world.with_cluster(|cluster| {
                let shards = |node: usize| {
                    let shards = cluster.options().nodes[node].shards;
                    usize::try_from(shards).unwrap().max(1)
                };
                (0..cluster.node_count()).map(shards).sum()
            }),
        };
        Self {
            session,
            links: Rc::new(links),
        }
    }

    async fn ready(&self) -> Result<(), Error> {
        self.session.ready().await
    }

    async fn create(&self, text: &str) -> Result<(), Error> {
        self.session.query(text, ()).await.map(drop)
    }

    async fn prepare(&self, text: &str) -> Result<compact::Prepared, Error> {
        self.session.prepare(text).await
    }

    async fn write(&self, insert: &compact::Prepared, row: (i64, i64)) -> Result<(), Error> {
        self.session.execute(insert, row).await.map(drop)
    }

    async fn read(&self, select: &compact::Prepared, pk: i64) -> Result<Option<(i64, i64)>, Error> {
        let reply = self.session.execute(select, (pk,)).await?;
        assert!(reply.row_count() <= 1, "more than one row");
        Ok(reply.first_row().expect("two numbers"))
    }

    async fn read_otherwise(
        &self,
        select: &compact::Prepared,
        pk: i64,
    ) -> Result<Option<(i64, i64)>, Error> {
        let mut stream = self.session.stream(select, (pk,));
        let row = stream.next().await.transpose()?;
        if row.is_some() {
            let second = stream.next::<(i64, i64)>().await;
            assert!(!matches!(second, Some(Ok(_))), "more than one row");
        }
        Ok(row)
    }

    async fn write_halfway(&self, insert: &compact::Prepared, row: (i64, i64), polls: u32) {
        give_up_after(polls, self.session.execute(insert, row)).await;
    }

    async fn close(&self) {
        let closed = self.session.close(Duration::from_secs(5)).await;
        closed.expect("the network is quiet");
    }

    fn completeness(&self) -> Result<(), String> {
        let status = self.session.status();
        let serving = status.connections.iter().filter(|link| link.serves);
        match serving.count() >= (self.links)() {
            true => Ok(()),
            false => Err(format!("{status:#?}")),
        }
    }

    fn leaked(&self) -> u32 {
        let connections = self.session.status().connections;
        let leaked = connections
            .iter()
            .map(|link| u32::from(link.in_use - link.orphans));
        leaked.sum()
    }
}

/// Polls a future so many times, then drops it.
async fn give_up_after(polls: u32, future: impl Future) {
    let mut future = core::pin::pin!(future);
    let mut left = polls;
    core::future::poll_fn(|cx| {
        let is_over = left == 0 || future.as_mut().poll(cx).is_ready();
        left = left.saturating_sub(1);
        match is_over {
            true => core::task::Poll::Ready(()),
            false => core::task::Poll::Pending,
        }
    })
    .await;
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
