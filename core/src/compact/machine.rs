//! The machine: what it holds, how a session begins, and the pass over everything.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::contact::Contact;
use super::control::Control;
use super::ending::session_closed;
use super::figures::Counters;
use super::giving::HAS_GIVING;
use super::host::{Done, Host};
use super::link::Link;
use super::plane::Plane;
use super::pools::Pools;
use super::random::Random;
use super::request::Request;
use super::slab::Slab;
use super::statement::Statement;
use crate::config::{Config, HAS_TOPOLOGY, Routing};
use crate::conn::extensions::{Offer, TabletsRouting, key};
use crate::conn::negotiate::{HAS_EARLY_REQUESTS, HandshakeConfig};
use crate::error::{ConfigProblem, Error, ErrorKind};
use crate::sync::Local;
use crate::target::Endpoint;
use crate::time::{Instant, UnixMicros};

/// A session without a task: see the [module](super).
///
/// Numbers of requests, statements and links are used again once what they stood for has ended.
#[derive(Debug)]
// In this order: what is near the start is reached by shorter instructions.
#[repr(C)]
pub struct Machine {
    /// The nodes of the cluster were read, or could not be: nobody has to wait for them.
    pub(super) has_read: bool,
    pub(super) phase: Phase,
    #[expect(clippy::vec_box, reason = "links are large, and leave from the middle")]
    pub(super) links: Vec<Box<Link>>,
    /// Every request, those of `start` and `close` too, which go nowhere.
    pub(super) requests: Slab<Box<Request>>,
    /// Those to be submitted, in order, and when the first of them may be late.
    pub(super) queue: VecDeque<u32>,
    /// Requests on links.
    pub(super) under_way: usize,
    pub(super) now: Instant,
    pub(super) queue_due: Instant,
    pub(super) ready: Option<u32>,
    pub(super) closing: Option<u32>,
    pub(super) next_link: u32,
    /// Links that have served.
    pub(super) served: u32,
    /// What tells how requests have gone.
    pub(super) counters: Counters,
    pub(super) told: Vec<u32>,
    /// To be submitted before all others, as they were before.
    pub(super) again: Vec<u32>,
    /// Requests that have failed before they were begun.
    pub(super) refused: Vec<(u32, Error)>,
    /// Requests that have ended, to be used again with the room of their bodies.
    #[expect(
        clippy::vec_box,
        reason = "they come from boxes, and go back into some"
    )]
    pub(super) spare: Vec<Box<Request>>,
    pub(super) contact: Contact,
    pub(super) control: Control,
    pub(super) pools: Pools,
    pub(super) random: Random,
    pub(super) statements: Slab<Local<Statement>>,
    /// Statements of an earlier session, and requests that these have answered.
    pub(super) saved: Vec<Local<Statement>>,
    given: Vec<(u32, u32)>,
    /// Places that no member was known at when they answered; their numbers follow from their order.
    pub(super) unplaced: Vec<Endpoint>,
    pub(super) handshake: Local<HandshakeConfig>,
    wall: Option<UnixMicros>,
    last_timestamp: i64,
    /// What any node is believed to offer, so that STARTUP goes out at once.
    pub(super) assumed: Option<Offer>,
    pub(super) plane: Plane,
    pub(super) config: Config,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Not begun, or closed.
    Closed,
    /// No connection has served yet: a failure now ends the session.
    Starting,
    Ready,
    /// Requests under way finish.
    Closing,
    /// Why it has ended.
    Over(Error),
}

impl Machine {
    /// A machine that rests until [`start`](Self::start). `seed` drives its choices and pauses.
    #[inline(never)]
    pub fn new(config: Config, seed: u64) -> Self {
        // The least that any node offers.
        let assumed =
            (HAS_EARLY_REQUESTS && config.early_requests && !is_full(&config)).then(Offer::default);
        Self {
            now: Instant::ZERO,
            wall: None,
            last_timestamp: i64::MIN,
            random: Random::new(seed),
            handshake: handshake(&config, assumed),
            assumed,
            phase: Phase::Closed,
            contact: Contact::new(),
            plane: Plane::new(&config),
            control: Control::new(),
            pools: Pools::new(),
            config,
            next_link: 0,
            links: Vec::new(),
            served: 0,
            has_read: false,
            unplaced: Vec::new(),
            requests: Slab::new(),
            queue: VecDeque::new(),
            queue_due: Instant::FAR_FUTURE,
            under_way: 0,
            refused: Vec::new(),
            statements: Slab::new(),
            saved: Vec::new(),
            given: Vec::new(),
            counters: Counters::default(),
            ready: None,
            closing: None,
            told: Vec::new(),
            again: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Whether the settings agree with each other.
    fn check(&self) -> Result<(), Error> {
        let config = &self.config;
        config.check()?;
        // That feature is of other parts of this crate.
        #[cfg(any(test, feature = "protocol-v5"))]
        if config.protocol.first() > crate::wire::ProtocolVersion::V4 {
            let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
            return Err(Error::with_text(kind, "protocol 5 is not spoken here"));
        }
        if config.compression.is_some() {
            let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
            return Err(Error::with_text(kind, "frames are not compressed here"));
        }
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match &config.keyspace {
            Some(name)
                if !HAS_KEYSPACES
                    || name.is_empty()
                    || name.len() > 222
                    || !name.bytes().all(is_valid) =>
            {
                let kind = ErrorKind::Config(ConfigProblem::Keyspace);
                Err(Error::with_text(kind, name.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// What time it is; it never goes back. For requests that are begun before the next
    /// [`run`](Self::run).
    #[inline(never)]
    pub fn set_time(&mut self, now: Instant, wall: Option<UnixMicros>) {
        self.now = self.now.max(now);
        self.wall = wall;
    }

    /// Whether the whole cluster is made use of.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        is_full(&self.config)
    }

    /// Begins, once; the request ends when the first connection takes requests and, where the whole cluster is
    /// made use of, its nodes are known (requests are taken before that too), or with
    /// [`ErrorKind::Config`] if the settings contradict each other or ask for compression, or with
    /// the reason why no connection could be had.
    pub fn start(&mut self) -> u32 {
        if !matches!(self.phase, Phase::Closed) {
            return self.refuse(session_closed());
        }
        if let Err(error) = self.check() {
            return self.refuse(error);
        }
        self.phase = Phase::Starting;
        let number = self.number();
        self.ready = Some(number);
        number
    }

    #[inline(never)]
    fn number(&mut self) -> u32 {
        let request = self.spare_request();
        self.requests.insert(request).unwrap_or(NONE)
    }

    /// What is taken for granted of nodes from now on.
    pub(super) fn assume(&mut self, offer: Option<Offer>) {
        self.assumed = offer;
        self.handshake = handshake(&self.config, offer);
    }

    /// The next client timestamp: the wall clock, but always later than the one before.
    pub(super) fn timestamp(&mut self) -> Option<i64> {
        let wall = self.wall.filter(|_| self.config.client_timestamps)?;
        let after = self.last_timestamp.saturating_add(1);
        self.last_timestamp = wall.0.max(after);
        Some(self.last_timestamp)
    }

    /// Takes a request that was written, or tells later why not.
    pub(super) fn begin(&mut self, request: Box<Request>, written: Result<(), Error>) -> u32 {
        let checked = written.and_then(|()| match &self.phase {
            Phase::Starting | Phase::Ready => Ok(()),
            Phase::Closed | Phase::Closing => Err(session_closed()),
            Phase::Over(error) => Err(error.clone()),
        });
        if let Err(error) = checked {
            self.recycle(request);
            return self.refuse(error);
        }
        self.queue_due = self.queue_due.min(request.deadline);
        match self.requests.insert(request) {
            Some(number) => {
                self.queue.push_back(number);
                number
            }
            None => NONE,
        }
    }

    /// A request for a statement that is known already; it ends at the next run.
    pub(super) fn give_statement(&mut self, statement: Local<Statement>) -> u32 {
        match self.statements.insert(statement) {
            Some(kept) if self.is_open() => {
                let number = self.number();
                self.given.push((number, kept));
                number
            }
            Some(kept) => {
                self.statements.remove(kept);
                self.refuse(session_closed())
            }
            None => self.refuse(Error::new(ErrorKind::Busy)),
        }
    }

    /// A request that fails with this error, at the next run.
    pub fn refuse(&mut self, error: Error) -> u32 {
        let number = self.number();
        self.refuse_request(number, error);
        number
    }

    /// A request that fails with this error before it goes anywhere.
    #[inline(never)]
    pub(super) fn refuse_request(&mut self, number: u32, error: Error) {
        self.refused.push((number, error));
    }

    /// One that has ended, or a new one.
    #[inline(never)]
    pub(super) fn spare_request(&mut self) -> Box<Request> {
        let spare = self.spare.pop();
        spare.unwrap_or_else(|| Box::new(Request::new()))
    }

    /// Keeps a request that has ended, with the room of its body, but nothing that it held.
    pub(super) fn recycle(&mut self, mut request: Box<Request>) {
        if self.spare.len() < SPARE_MAX && request.body.capacity() <= SPARE_BYTES_MAX {
            request.clear();
            self.spare.push(request);
        }
    }

    /// Gives a request up; nothing more is heard of it. Its stream id stays reserved until its
    /// answer comes.
    #[inline(never)]
    pub fn cancel(&mut self, number: u32) {
        let Some(request) = self.requests.remove(number) else {
            return;
        };
        let mut refused = self.refused.iter_mut();
        if let Some((refused, _)) = refused.find(|(refused, _)| *refused == number) {
            *refused = NONE;
        }
        self.ready.take_if(|ready| *ready == number);
        self.closing.take_if(|closing| *closing == number);
        match request.on {
            Some((link, key)) => {
                self.under_way = self.under_way.saturating_sub(1);
                let now = self.now;
                if let Some(connection) = self.link(link).and_then(|link| link.connection.as_mut())
                {
                    connection.forget(key, now);
                }
            }
            // Its number may stand for another one soon.
            None => {
                for at in 0..self.queue.len() {
                    if let Some(queued) = self.queue.get_mut(at)
                        && *queued == number
                    {
                        *queued = NONE;
                    }
                }
            }
        }
        self.recycle(request);
    }

    /// Takes no more requests; the number's request ends when those under way have, and all links
    /// are closed. So does that of a session which has ended by itself.
    pub fn close(&mut self) -> u32 {
        match self.phase {
            Phase::Starting | Phase::Ready | Phase::Over(_) => {
                self.phase = Phase::Closing;
                let number = self.number();
                self.closing = Some(number);
                number
            }
            _ => self.refuse(session_closed()),
        }
    }

    /// A statement that was prepared and not released.
    pub fn statement(&self, number: u32) -> Option<&Local<Statement>> {
        self.statements.get(number)
    }

    /// Forgets a statement; requests that execute it are not concerned.
    pub fn release(&mut self, number: u32) {
        self.statements.remove(number);
    }

    /// Whether the session takes requests.
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }

    /// Whether requests under way are waited for. What is left to be written holds the end up, so
    /// it is to be run again when all of that was taken.
    pub const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing)
    }

    /// What is known of the cluster.
    pub const fn plane(&self) -> &Plane {
        &self.plane
    }

    /// Goes on with everything; tells when to be called again at the latest. Bytes to be written
    /// are taken afterwards. The clock never goes back.
    pub fn run(&mut self, now: Instant, wall: Option<UnixMicros>, host: &mut impl Host) -> Instant {
        self.set_time(now, wall);
        self.fail_refused(host);
        let given = match HAS_WARM_STARTS {
            true => core::mem::take(&mut self.given),
            false => Vec::new(),
        };
        for (number, kept) in given {
            if self.requests.remove(number).is_some()
                && let Some(statement) = self.statements.get(kept)
            {
                host.done(number, Ok(Done::Prepared(kept, statement)));
            }
        }
        let mut has_changed = true;
        for _ in 0..PASSES_MAX {
            self.dial(host);
            has_changed = self.advance_links(host);
            if self.is_full() {
                has_changed |= self.advance_control();
                self.finish_start(host);
            }
            self.submit(host);
            if HAS_GIVING && self.is_full() {
                self.give_statements();
            }
            if !has_changed {
                break;
            }
        }
        if matches!(self.phase, Phase::Closing) {
            self.finish_closing(host);
        }
        match has_changed {
            true => self.now,
            false => self.next_at(),
        }
    }

    fn next_at(&self) -> Instant {
        if !matches!(self.phase, Phase::Starting | Phase::Ready | Phase::Closing) {
            return Instant::FAR_FUTURE;
        }
        let mut next = self.queue_due;
        for link in &self.links {
            next = next.min(link.next_at());
        }
        if self.is_open() {
            if !self.is_connected() {
                next = next.min(self.contact.next_at());
            } else if self.is_full() {
                next = next.min(self.control_next_at()).min(self.pools.next_at());
            }
        }
        next
    }

    /// Whether a link takes requests, or soon does.
    #[inline(never)]
    pub(super) fn is_connected(&self) -> bool {
        self.links.iter().any(|link| link.connection.is_some())
    }
}

#[inline(always)]
pub(super) fn is_full(config: &Config) -> bool {
    HAS_TOPOLOGY && config.routing == Routing::Full
}

/// What all links say first.
#[inline(never)]
fn handshake(config: &Config, assumed: Option<Offer>) -> Local<HandshakeConfig> {
    let mut handshake = HandshakeConfig::new(config.protocol.first());
    handshake.authenticator.clone_from(&config.authenticator);
    handshake.tablets_max = match is_full(config) {
        true => config.tablets_max,
        false => TabletsRouting::Off,
    };
    handshake.early = config.early_requests;
    handshake.assumed = assumed;
    handshake.add_startup_option(key::DRIVER_NAME, "messina");
    handshake.add_startup_option(key::DRIVER_VERSION, env!("CARGO_PKG_VERSION"));
    if let Some(name) = &config.application_name {
        handshake.add_startup_option(key::APPLICATION_NAME, name);
    }
    if let Some(version) = &config.application_version {
        handshake.add_startup_option(key::APPLICATION_VERSION, version);
    }
    Local::new(handshake)
}

/// Whether sessions can begin with what earlier ones knew.
pub(super) const HAS_WARM_STARTS: bool = cfg!(any(test, feature = "warm-start"));

/// Whether connections can have a keyspace of their own.
pub(super) const HAS_KEYSPACES: bool = cfg!(any(test, feature = "keyspaces"));

/// No request has this number: so many cannot be held.
pub const NONE: u32 = u32::MAX;

/// Passes of one run; if there is more to do, it is to be called again at once.
const PASSES_MAX: u32 = 16;

/// Requests that are kept to be used again, and how large their bodies may be.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 4096;
