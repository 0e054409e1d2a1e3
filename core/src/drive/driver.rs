//! Pumps the control plane: carries out what the engine wants and tells it what happened.
//!
//! The driver spawns nothing. [`Driver::next_connection`] yields connection tasks and the platform
//! runs them where it likes; between two of them it does everything else the engine asks for.

use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};

use super::cell::Cell;
use super::connection_task::ConnectionTask;
use super::exchange::{Exchange, Exchanged};
use super::hub::{Hub, session_closed};
use super::inbox::Report;
use super::session::Session;
use super::tally::ShardTally;
use super::transport::{Clock, Timer, Transport};
use crate::cluster::{Assignment, ConnectionId, ControlPlane, Input, LookupId, Output, QuestionId};
use crate::config::{Config, Routing};
use crate::conn::RequestHead;
use crate::conn::extensions::{TabletsRouting, key};
use crate::conn::negotiate::HandshakeConfig;
use crate::digits::uuid_text;
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind};
use crate::gather::Gather;
use crate::rng::SmallRng;
use crate::sync::{Local, Shared};
use crate::time::Instant;

/// Makes a session and the driver behind it. Nothing happens until the driver is polled; then
/// [`Session::ready`] tells when the session can be used.
///
/// `random` is read once, for the seed of everything that is drawn later: the same seed on the
/// same transport means the same run.
///
/// Fails with [`ErrorKind::Config`] if a setting cannot work.
pub fn start<T: Transport>(
    mut config: Config,
    transport: T,
    random: &mut impl rand_core::Rng,
) -> Result<(Session, Driver<T>), Error> {
    config.check()?;
    let mut rng = SmallRng::from_source(random);
    let clock: Shared<dyn Clock> = shared_clock(transport.clock());
    let now = clock.now();
    // It is of no use once it was read.
    let warm_start = config.warm_start.take();
    let config = Shared::new(config);
    let mut engine = ControlPlane::new(
        Shared::clone(&config),
        transport.steering(),
        transport.security(),
        rng.next_u64(),
        now,
        warm_start,
    );
    let session_id = uuid::Builder::from_random_bytes(random_bytes(&mut rng)).into_uuid();
    let mut handshake = handshake(&config, session_id);
    let told = super::driver_config::describe(&config, transport.security(), transport.steering());
    handshake.driver_config = told.map(Local::from);
    let hub = Shared::new(Hub::new(config, clock, &engine, rng.next_u64()));
    let restored = engine.take_statements();
    let has_restored = !restored.is_empty();
    hub.keep_statements(restored);
    let session = Session::new(Shared::clone(&hub));
    let timer = transport.timer();
    let driver = Driver {
        transport,
        hub,
        engine,
        handshake,
        timer,
        armed: Instant::FAR_FUTURE,
        lookups: Vec::new(),
        questions: Vec::new(),
        connections: Vec::new(),
        assignments: Vec::new(),
        teller: None,
        has_restored,
        is_over: false,
    };
    Ok((session, driver))
}

/// The control plane of a session. Dropping it ends the session: open connections are closed and
/// whatever is under way fails.
pub struct Driver<T: Transport> {
    transport: T,
    hub: Shared<Hub>,
    engine: ControlPlane,
    handshake: HandshakeConfig,
    timer: T::Timer,
    armed: Instant,
    lookups: Vec<(LookupId, T::Resolving)>,
    questions: Vec<(QuestionId, Exchange<Vec<u8>>)>,
    /// Connections whose task lives, by id; the cell once they are open.
    connections: Vec<(ConnectionId, Stand)>,
    assignments: Vec<Assignment>,
    /// The connection that told last how the session is set, or is about to.
    teller: Option<ConnectionId>,
    /// Statements of an earlier session were not looked at yet in the light of the schema.
    has_restored: bool,
    is_over: bool,
}

/// How far a connection has come.
#[derive(Debug)]
enum Stand {
    Connecting,
    /// Given up before it was open: closed as soon as it is.
    Unwanted,
    Open(Shared<Cell>),
}

impl<T: Transport> Driver<T> {
    /// The next connection to run, or `None` when the session is over and every connection has
    /// ended. To be called in a loop; dropping the future between loses nothing.
    pub async fn next_connection(&mut self) -> Option<ConnectionTask<T>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same as a poll function.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ConnectionTask<T>>> {
        for _ in 0..STEPS_PER_POLL {
            let now = self.hub.clock().now();
            if let Some(output) = self.engine.poll() {
                if let Some(task) = self.carry_out(now, output) {
                    return Poll::Ready(Some(task));
                }
                continue;
            }
            if self.is_over && self.connections.is_empty() {
                return Poll::Ready(None);
            }
            let Poll::Ready(input) = self.poll_input(cx, now) else {
                return Poll::Pending;
            };
            if let Some(input) = input {
                self.engine.handle(now, input);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What happened next: a report, a look-up, an answer, or (`None`) nothing but time.
    fn poll_input(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<Input>> {
        if let Poll::Ready(report) = self.hub.inbox().poll(cx) {
            return Poll::Ready(self.heard(report));
        }
        let resolved = take_ready(&mut self.lookups, cx);
        if let Some((id, result)) = resolved {
            return Poll::Ready(Some(Input::Resolved { id, result }));
        }
        if let Some((id, outcome)) = take_ready(&mut self.questions, cx) {
            let answer = match outcome {
                Exchanged::Answer(answer) => Ok(answer),
                Exchanged::Full => Err(Error::new(ErrorKind::Busy)),
                Exchanged::Failed(error) => Err(error),
            };
            return Poll::Ready(Some(Input::Answered { id, answer }));
        }
        self.poll_time(cx, now)
    }

    fn poll_time(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Option<Input>> {
        let Some(due) = self.engine.poll_timeout() else {
            if self.armed < Instant::FAR_FUTURE {
                self.armed = Instant::FAR_FUTURE;
                self.timer.arm(None);
            }
            return Poll::Pending;
        };
        if due <= now {
            self.armed = Instant::FAR_FUTURE;
            self.engine.handle_timeout(now);
            return Poll::Ready(None);
        }
        if due != self.armed {
            self.armed = due;
            self.timer.arm(Some(due));
        }
        match self.timer.poll_fired(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                // Fired early: armed again by the next round.
                self.armed = Instant::FAR_FUTURE;
                Poll::Ready(None)
            }
        }
    }

    fn heard(&mut self, report: Report) -> Option<Input> {
        Some(match report {
            Report::Connected(cell) => {
                let id = cell.id();
                let place = self.place(id)?;
                let stand = &mut self.connections.get_mut(place)?.1;
                if matches!(stand, Stand::Unwanted) {
                    cell.request_close(false);
                    *stand = Stand::Open(cell);
                    return None;
                }
                let (agreed, source_port) = (*cell.agreed(), cell.source_port());
                *stand = Stand::Open(cell);
                Input::Connected {
                    id,
                    agreed,
                    source_port,
                }
            }
            Report::ConnectFailed(id, error) => {
                self.forget(id)?;
                Input::ConnectFailed { id, error }
            }
            Report::Closed(id, error) => {
                let tally = match self.forget(id)? {
                    Stand::Open(cell) => cell.tally(),
                    Stand::Connecting | Stand::Unwanted => ShardTally::default(),
                };
                self.publish_pools(tally);
                Input::Closed { id, error }
            }
            Report::Event(id, body) => Input::Event { id, body },
            Report::Tablet(news) => Input::Tablet(news),
            Report::ShardWanted(node, shard) => Input::ShardWanted { node, shard },
            Report::Settle(id) => Input::Settle { id },
            Report::Shutdown => {
                self.end(session_closed(), true);
                Input::Shutdown
            }
        })
    }

    fn carry_out(&mut self, now: Instant, output: Output) -> Option<ConnectionTask<T>> {
        match output {
            Output::Connect {
                id,
                target,
                events,
                version,
                may_rise,
                assumed,
            } => {
                // Settings are told by those that are to hear events: they are opened through the
                // contact points, and one of them becomes the control connection. When those that
                // told are gone, or none came that way, by the next one.
                let is_told = self.teller.is_some_and(|id| self.place(id).is_some());
                let tells = !events.is_empty() || !is_told;
                if tells {
                    self.teller = Some(id);
                }
                let driver_config = self.handshake.driver_config.clone();
                #[cfg(not(any(test, feature = "protocol-v5")))]
                let _ = may_rise;
                let handshake = HandshakeConfig {
                    version,
                    #[cfg(any(test, feature = "protocol-v5"))]
                    may_rise: may_rise && self.handshake.may_rise,
                    events: events.to_vec(),
                    driver_config: driver_config.filter(|_| tells),
                    assumed,
                    ..self.handshake.clone()
                };
                if let Err(place) = self.connections.binary_search_by_key(&id, |(id, _)| *id) {
                    self.connections.insert(place, (id, Stand::Connecting));
                }
                let hub = Shared::clone(&self.hub);
                let handshake = Local::new(handshake);
                return Some(ConnectionTask::new(
                    &self.transport,
                    hub,
                    id,
                    target,
                    handshake,
                ));
            }
            Output::Resolve { id, name } => {
                self.lookups.push((id, self.transport.resolve(&name)));
            }
            Output::Close { id, drain } => self.close(id, drain),
            Output::Ask {
                id,
                on,
                opcode,
                body,
            } => self.ask(now, id, on, opcode, body),
            Output::Publish(view) => {
                if self.has_restored && !self.engine.is_warm() {
                    self.has_restored = false;
                    self.hub.drop_orphaned_statements(&view);
                }
                self.hub.view().store(view);
                self.hub.set_summary(self.engine.status());
            }
            Output::Assign(assignments) => {
                self.assignments = assignments;
                self.publish_pools(ShardTally::default());
            }
            Output::Ready => self.hub.life().set_ready(),
            Output::Failed(error) => self.end(error, true),
            Output::Settled { id, agreed } => self.hub.life().set_settled(id, agreed),
            Output::Warning(text) => crate::trace::warning!("{text}"),
        }
        None
    }

    fn ask(
        &mut self,
        now: Instant,
        id: QuestionId,
        on: ConnectionId,
        opcode: crate::wire::Opcode,
        body: Vec<u8>,
    ) {
        let Some(cell) = self.cell(on) else {
            let answer = Err(LinkError::new(LinkErrorKind::ClosedByUs).into());
            self.engine.handle(now, Input::Answered { id, answer });
            return;
        };
        let give_up_at = now.saturating_add(self.hub.config().timeouts.control);
        let exchange = Exchange::new(cell, RequestHead::new(opcode), give_up_at, true, body);
        self.questions.push((id, exchange));
    }

    fn close(&mut self, id: ConnectionId, drain: bool) {
        let Some(place) = self.place(id) else { return };
        let Some((_, stand)) = self.connections.get_mut(place) else {
            return;
        };
        match stand {
            Stand::Open(cell) => cell.request_close(drain),
            Stand::Connecting => *stand = Stand::Unwanted,
            Stand::Unwanted => {}
        }
    }

    /// The session is over: callers are refused, connections end. With `drain` requests under way
    /// finish first.
    fn end(&mut self, error: Error, drain: bool) {
        self.is_over = true;
        self.hub.set_over(error);
        self.assignments.clear();
        self.lookups.clear();
        for place in 0..self.connections.len() {
            if let Some((id, _)) = self.connections.get(place) {
                self.close(*id, drain);
            }
        }
    }

    /// Tells the data plane which connections there are; `gone` is the count of one that ended.
    fn publish_pools(&self, gone: ShardTally) {
        let open = self
            .connections
            .iter()
            .filter_map(|(_, stand)| match stand {
                Stand::Open(cell) => Some(Shared::clone(cell)),
                Stand::Connecting | Stand::Unwanted => None,
            });
        let before = self.hub.pools().load();
        let pools = before
            .next(&self.assignments, open.gather())
            .with_gone(gone);
        self.hub.pools().store(Shared::new(pools));
    }

    fn cell(&self, id: ConnectionId) -> Option<Shared<Cell>> {
        match self.connections.get(self.place(id)?)? {
            (_, Stand::Open(cell)) => Some(Shared::clone(cell)),
            _ => None,
        }
    }

    fn place(&self, id: ConnectionId) -> Option<usize> {
        self.connections
            .binary_search_by_key(&id, |(id, _)| *id)
            .ok()
    }

    fn forget(&mut self, id: ConnectionId) -> Option<Stand> {
        Some(self.connections.remove(self.place(id)?).1)
    }
}

impl<T: Transport> Drop for Driver<T> {
    fn drop(&mut self) {
        self.end(session_closed(), false);
        // Connections that opened unheard of; those that open later see that it is over.
        for report in self.hub.inbox().take_all() {
            if let Report::Connected(cell) = report {
                cell.request_close(false);
            }
        }
    }
}

impl<T: Transport> fmt::Debug for Driver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("connections", &self.connections.len())
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

/// Polls all futures and takes the first that is ready.
fn take_ready<K: Copy, F: Future + Unpin>(
    futures: &mut Vec<(K, F)>,
    cx: &mut Context<'_>,
) -> Option<(K, F::Output)> {
    for (place, (key, future)) in futures.iter_mut().enumerate() {
        if let Poll::Ready(output) = Pin::new(future).poll(cx) {
            let key = *key;
            futures.swap_remove(place);
            return Some((key, output));
        }
    }
    None
}

/// What every connection says about this client.
fn handshake(config: &Config, session_id: uuid::Uuid) -> HandshakeConfig {
    let mut handshake = HandshakeConfig::new(config.protocol.first());
    handshake.early = config.early_requests && config.routing == Routing::Single;
    #[cfg(any(test, feature = "protocol-v5"))]
    {
        // Requests come early in version 4 only.
        handshake.may_rise = config.protocol.may_rise() && !handshake.early;
    }
    handshake.compression = config.compression;
    handshake.authenticator.clone_from(&config.authenticator);
    handshake.tablets_max = match config.routing {
        Routing::Full => config.tablets_max,
        // Nothing is routed by what they tell.
        Routing::Single => TabletsRouting::Off,
    };
    let mut option = |name, value: &str| handshake.add_startup_option(name, value);
    option(key::DRIVER_NAME, DRIVER_NAME);
    option(key::DRIVER_VERSION, env!("CARGO_PKG_VERSION"));
    option(key::SESSION_ID, &uuid_text(session_id));
    if let Some(name) = &config.application_name {
        option(key::APPLICATION_NAME, name);
    }
    if let Some(version) = &config.application_version {
        option(key::APPLICATION_VERSION, version);
    }
    handshake
}

fn random_bytes(rng: &mut SmallRng) -> [u8; 16] {
    let (high, low) = (rng.next_u64(), rng.next_u64());
    ((u128::from(high) << 64) | u128::from(low)).to_be_bytes()
}

fn shared_clock(clock: impl Clock) -> Shared<dyn Clock> {
    let boxed: alloc::boxed::Box<dyn Clock> = alloc::boxed::Box::new(clock);
    Shared::from(boxed)
}

const DRIVER_NAME: &str = "messina";

/// Outputs and inputs handled before others may run.
const STEPS_PER_POLL: usize = 256;
