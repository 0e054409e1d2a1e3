//! A scene: one session, the script that plays its nodes, and the clock of both.

use core::cell::RefCell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::rc::Rc;

use messina_core::config::Config;
use messina_core::drive::{
    Batch, Endpoint, Prepared, QueryResult, Session, Statement, Timer, Transport,
};
use messina_core::error::Error;
use messina_core::time::Instant;
use messina_core::types::EncodeRow;
use messina_sim::link::{Executor, Faults, SimTransport, Spawner, World};
use messina_sim::node::Options;
use messina_websocket::mux::Mux;
use messina_websocket::tunnel::Limits;

use crate::frame::{Frame, PREPARE, hex};
use crate::link::{Exchange, ScriptTransport};
use crate::node::{Peer, address};
use crate::relay::RelayTransport;
use crate::system::Facts;

/// Orders of tasks that every scene is played in.
const SEEDS: u64 = 8;

/// The same for a scene that is played through a tunnel.
const TUNNEL_SEEDS: u64 = 3;

/// No scene lasts longer, in virtual microseconds.
const TIME_MAX: u64 = 1_000_000_000_000;

/// Plays a scene several times, with tasks in another order each time.
pub fn play<F: Future<Output = ()> + 'static>(script: impl Fn(Scene) -> F) {
    (0..SEEDS).for_each(|seed| play_once(seed, &script));
}

/// The same, and then through a tunnel and its relay, in a few orders of their tasks.
pub fn play_everywhere<F: Future<Output = ()> + 'static>(script: impl Fn(Scene) -> F) {
    play(&script);
    (0..TUNNEL_SEEDS).for_each(|seed| play_once(seed, |scene| script(scene.through_tunnel())));
}

/// Plays a scene with the task order of one seed.
pub fn play_once<F: Future<Output = ()> + 'static>(seed: u64, script: impl Fn(Scene) -> F) {
    let world = World::new(Options::uniform(1, 1), Faults::NONE);
    let mut executor = Executor::new(&world, seed);
    let mut facts = Facts {
        tokens: Vec::new(),
        members: RefCell::default(),
        has_tablets: false,
        supported: hex("0000"),
        supported_by: Vec::new(),
        asked: RefCell::default(),
    };
    facts.set_tokens(&[0]);
    let scene = Scene {
        spawner: executor.spawner(),
        exchange: Rc::default(),
        facts: Rc::new(facts),
        world,
        seed,
        is_tunnelled: false,
    };
    let outcome = executor.run(TIME_MAX, script(scene));
    assert_eq!(outcome, Ok(()), "seed {seed}");
}

/// Everything around one session.
#[derive(Clone, Debug)]
pub struct Scene {
    world: World,
    spawner: Spawner,
    exchange: Rc<RefCell<Exchange>>,
    facts: Rc<Facts>,
    seed: u64,
    is_tunnelled: bool,
}

impl Scene {
    /// The same with a tunnel between the driver and the script's links.
    #[must_use]
    pub const fn through_tunnel(mut self) -> Self {
        self.is_tunnelled = true;
        self
    }

    /// The same with one node for each of these tokens.
    #[must_use]
    pub fn with_tokens(self, tokens: &[i64]) -> Self {
        self.with_facts(|facts| facts.set_tokens(tokens))
    }

    /// The same with tablets in the keyspace.
    #[must_use]
    pub fn with_tablets(self) -> Self {
        self.with_facts(|facts| facts.has_tablets = true)
    }

    /// From now on these are the nodes, each with its host id. There must be a token for each.
    pub fn set_members(&self, members: &[(u8, u128)]) {
        *self.facts.members.borrow_mut() = members.to_vec();
    }

    /// The same with another body of SUPPORTED.
    #[must_use]
    pub fn with_supported(self, body: Vec<u8>) -> Self {
        self.with_facts(|facts| facts.supported = body)
    }

    /// The same with another body of SUPPORTED for one node only.
    #[must_use]
    pub fn with_supported_by(self, node: u8, body: Vec<u8>) -> Self {
        self.with_facts(|facts| facts.supported_by.push((node, body)))
    }

    fn with_facts(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(Rc::get_mut(&mut self.facts).expect("nothing has begun"));
        self
    }

    /// Settings that leave requests plain: no paging, no timestamps, one connection.
    pub fn config(&self) -> Config {
        let mut config = Config::server();
        config.page_size = None;
        config.client_timestamps = false;
        config.add_contact_points("10.0.0.1").expect("an address");
        config
    }

    /// Starts a session and its driver; nothing is connected yet.
    pub fn start(&self, config: Config) -> Session {
        let transport = ScriptTransport::new(&self.world, Rc::clone(&self.exchange));
        if !self.is_tunnelled {
            return self.start_over(config, transport);
        }
        let relay = RelayTransport::new(transport, self.spawner.clone());
        let (mux, pump) = Mux::new(relay, Endpoint::Local("relay".into()), Limits::client());
        self.spawner.spawn(pump);
        self.start_over(config, mux)
    }

    fn start_over<T: Transport + 'static>(&self, config: Config, transport: T) -> Session {
        let started = messina_core::drive::start(config, transport, &mut Seed(self.seed));
        let (session, mut driver) = started.expect("a sound configuration");
        let spawner = self.spawner.clone();
        self.spawner.spawn(async move {
            while let Some(connection) = driver.next_connection().await {
                spawner.spawn(connection);
            }
        });
        session
    }

    /// A session that is ready, and one link to each of the nodes.
    pub async fn connect_all(&self, config: Config) -> (Session, Vec<Peer>) {
        let session = self.start(config);
        let mut first = self.accept(1).await;
        first.handshake().await;
        first.serving(session.ready()).await.expect("ready");
        let mut peers = vec![first];
        let members = self.facts.members.borrow().clone();
        for (node, _) in members.into_iter().filter(|(node, _)| *node != 1) {
            peers.push(self.ready(node).await);
        }
        (session, peers)
    }

    /// A session that is ready, and its one link to the first node.
    pub async fn connect(&self, config: Config) -> (Session, Peer) {
        let (session, mut peers) = self.connect_all(config).await;
        (session, peers.remove(0))
    }

    /// The next link that the driver opens to a node.
    pub async fn accept(&self, node: u8) -> Peer {
        let at = address(node);
        let accepted = poll_fn(|cx| self.exchange.borrow_mut().poll_accept(at, cx)).await;
        Peer::new(accepted, node, Rc::clone(&self.facts))
    }

    /// The next link to a node, open and in use.
    pub async fn ready(&self, node: u8) -> Peer {
        let mut peer = self.accept(node).await;
        peer.handshake().await;
        peer.serving(self.pause(Duration::from_millis(1))).await;
        peer
    }

    /// The driver has opened a link to a node that nobody has accepted yet.
    pub fn is_dialled(&self, node: u8) -> bool {
        self.exchange.borrow().is_waiting(address(node))
    }

    /// From now on a node refuses connects, or takes them again.
    pub fn refuse(&self, node: u8, refuses: bool) {
        self.exchange.borrow_mut().refuse(address(node), refuses);
    }

    /// When connects were refused, in microseconds.
    pub fn refused_at(&self) -> Vec<u64> {
        self.exchange.borrow().refused_at.clone()
    }

    /// Statements about system tables that the nodes were asked.
    pub fn asked(&self) -> Vec<String> {
        self.facts.asked.borrow().clone()
    }

    /// Lets virtual time pass.
    pub async fn pause(&self, time: Duration) {
        let mut timer = SimTransport::new(&self.world).timer();
        let at = Instant::from_micros(self.now()).saturating_add(time);
        timer.arm(Some(at));
        poll_fn(|cx| timer.poll_fired(cx)).await;
    }

    /// Lets everything happen that can happen without time passing.
    pub async fn turn(&self) {
        self.pause(Duration::from_micros(1)).await;
    }

    /// Microseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.world.now()
    }

    /// Runs a caller's future beside the script.
    pub fn call<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Call<T> {
        let state = Rc::new(RefCell::new(CallState {
            future: Some(Box::pin(future)),
            output: None,
            waiter: None,
            worker: None,
        }));
        let worked = Rc::clone(&state);
        self.spawner
            .spawn(poll_fn(move |cx| CallState::poll(&worked, cx)));
        Call { state }
    }

    /// Calls [`Session::query_unprepared`].
    pub fn query(&self, session: &Session, statement: impl Into<Statement<'static>>) -> Asked {
        let (session, statement) = (session.clone(), statement.into());
        self.call(async move { session.query_unprepared(statement).await })
    }

    /// Calls [`Session::execute`].
    pub fn execute(
        &self,
        session: &Session,
        prepared: &Prepared,
        values: impl EncodeRow + 'static,
    ) -> Asked {
        let (session, prepared) = (session.clone(), prepared.clone());
        self.call(async move { session.execute(&prepared, values).await })
    }

    /// Calls [`Session::batch`].
    pub fn batch(&self, session: &Session, batch: &Batch) -> Asked {
        let (session, batch) = (session.clone(), batch.clone());
        self.call(async move { session.batch(&batch).await })
    }

    /// Prepares a statement, to which the node answers with this PREPARED frame.
    pub async fn prepare(
        &self,
        session: &Session,
        peer: &mut Peer,
        statement: impl Into<Statement<'static>>,
        prepared: &str,
    ) -> Prepared {
        let (session, statement) = (session.clone(), statement.into());
        let call = self.call(async move { session.prepare(statement).await });
        let request: Frame = peer.request().await;
        assert_eq!(request.opcode, PREPARE);
        peer.answer(&request, prepared);
        call.await.expect("prepared")
    }
}

/// A caller's request.
pub type Asked = Call<Result<QueryResult, Error>>;

/// A caller's future that runs beside the script. Dropping this lets it run on.
pub struct Call<T> {
    state: Rc<RefCell<CallState<T>>>,
}

struct CallState<T> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    output: Option<T>,
    waiter: Option<Waker>,
    worker: Option<Waker>,
}

impl<T> CallState<T> {
    fn poll(state: &RefCell<Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Out of the cell while it runs: it may look at its own call.
        let Some(mut future) = state.borrow_mut().future.take() else {
            return Poll::Ready(());
        };
        let polled = future.as_mut().poll(cx);
        let mut state = state.borrow_mut();
        match polled {
            Poll::Pending => {
                state.future = Some(future);
                state.worker = Some(cx.waker().clone());
                Poll::Pending
            }
            Poll::Ready(output) => {
                state.output = Some(output);
                if let Some(waiter) = state.waiter.take() {
                    waiter.wake();
                }
                Poll::Ready(())
            }
        }
    }
}

impl<T> Call<T> {
    /// Drops the caller's future where it stands.
    pub fn cancel(self) {
        let (future, worker) = {
            let mut state = self.state.borrow_mut();
            (state.future.take(), state.worker.take())
        };
        assert!(future.is_some(), "it is done already");
        drop(future);
        if let Some(worker) = worker {
            worker.wake();
        }
    }

    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        self.state.borrow().output.is_some()
    }
}

impl<T> Future for Call<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state.borrow_mut();
        match state.output.take() {
            Some(output) => Poll::Ready(output),
            None => {
                state.waiter = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("is_done", &self.is_done())
            .finish()
    }
}

/// The one word that a session draws.
struct Seed(u64);

impl rand_core::TryRng for Seed {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(7)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> {
        to.fill(7);
        Ok(())
    }
}
