//! The pass over everything: contact points are dialed, links advanced, requests submitted and
//! told.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use messina_core::Shared;
use messina_core::config::Config;
use messina_core::conn::SlotKey;
use messina_core::conn::extensions::{Offer, TabletsRouting, key};
use messina_core::conn::negotiate::HandshakeConfig;
use messina_core::error::{ApiMisuse, Applied, ConfigProblem, Error, ErrorKind, LinkError};
use messina_core::target::{Endpoint, Name};
use messina_core::time::Instant;
use messina_core::wire::response::ErrorCode;

use super::contact::{Contact, is_about_credentials, may_be_for_assumption, parse_points};
use super::exchange::KEYSPACE;
use super::link::Link;
use super::request::{Held, Request, Written};
use crate::message::Effect;
use crate::outbox::{NONE, Outbox};
use crate::settings::{Settings, defaults};
use crate::slab::Slab;

/// All that an instance holds.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) now: Instant,
    /// Microseconds since 1970, or 0.
    pub(super) wall: i64,
    last_timestamp: i64,
    pub(super) config: Config,
    handshake: Shared<HandshakeConfig>,
    may_assume: bool,
    phase: Phase,
    pub(super) contact: Contact,
    next_link: u32,
    /// Links in their handshakes.
    #[expect(clippy::vec_box, reason = "it is handed on as it is when it serves")]
    dials: Vec<Box<Link>>,
    pub(super) serving: Option<Serving>,
    /// Connections that have served.
    served: u32,
    /// The contact point that node 0 is, and the one that the shell believes it to be.
    pub(super) at_point: Option<usize>,
    told_point: Option<usize>,
    /// Every request that the shell waits for; none are those of `start` and `close`.
    pub(super) requests: Slab<Option<Request>>,
    /// Those to be submitted, in order, and when the first of them may be late.
    pub(super) queue: VecDeque<u32>,
    pub(super) queue_due: Instant,
    /// Requests on the connection.
    pub(super) under_way: usize,
    /// Requests that have failed before they were begun.
    pub(super) refused: Vec<(u32, Error)>,
    pub(super) statements: Slab<Held>,
    ready: Option<u32>,
    closing: Option<u32>,
    told: Vec<u32>,
    /// To be submitted before all others, as they were before.
    pub(super) again: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Phase {
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

/// The adopted link.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) link: Box<Link>,
    pub(super) keyspace: Keyspace,
    /// The question for the keyspace was refused as too early.
    is_asked_again: bool,
    since: Instant,
    /// Of no use any more, though the link is whole.
    pub(super) failed: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyspace {
    ToAsk,
    Asked(SlotKey),
    /// Or none is wanted: requests are taken.
    Set,
}

impl Session {
    pub(super) fn new() -> Self {
        let config = defaults();
        Self {
            now: Instant::ZERO,
            wall: 0,
            last_timestamp: i64::MIN,
            handshake: Shared::new(HandshakeConfig::new(config.protocol)),
            config,
            may_assume: true,
            phase: Phase::Closed,
            contact: Contact::new(Vec::new(), 0),
            next_link: 0,
            dials: Vec::new(),
            serving: None,
            served: 0,
            at_point: None,
            told_point: None,
            requests: Slab::new(),
            queue: VecDeque::new(),
            queue_due: Instant::FAR_FUTURE,
            under_way: 0,
            refused: Vec::new(),
            statements: Slab::new(),
            ready: None,
            closing: None,
            told: Vec::new(),
            again: Vec::new(),
        }
    }

    /// Begins; the request ends when the first connection takes requests.
    pub(super) fn start(&mut self, settings: Result<Settings, Error>, seed: u64) -> u32 {
        match settings.and_then(|settings| self.try_start(settings, seed)) {
            Ok(()) => {
                let number = self.requests.insert(None).unwrap_or(NONE);
                self.ready = Some(number);
                number
            }
            Err(error) => self.refuse(error),
        }
    }

    fn try_start(&mut self, settings: Settings, seed: u64) -> Result<(), Error> {
        let points = parse_points(&settings.contact_points)?;
        self.config = settings.config;
        if self.config.contact_points.is_empty() {
            // Texts are enough here; the check wants to see one.
            let nowhere = Endpoint::Local(Name::from(""));
            self.config.contact_points.push(nowhere);
        }
        self.config.check()?;
        if let Some(name) = &self.config.keyspace {
            let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || name.len() > 222 || !name.bytes().all(is_valid) {
                let kind = ErrorKind::Config(ConfigProblem::Keyspace);
                return Err(Error::with_text(kind, name.clone()));
            }
        }
        self.contact = Contact::new(points, seed);
        self.set_handshake();
        self.phase = Phase::Starting;
        Ok(())
    }

    fn set_handshake(&mut self) {
        let config = &self.config;
        let mut handshake = HandshakeConfig::new(config.protocol);
        handshake.authenticator.clone_from(&config.authenticator);
        handshake.tablets_max = TabletsRouting::Off;
        handshake.early = config.early_requests;
        // The least that any node offers.
        let may_assume = config.early_requests && self.may_assume;
        handshake.assumed = may_assume.then(Offer::default);
        let mut option = |name: &str, value: String| {
            handshake.startup_options.push((String::from(name), value));
        };
        option(key::DRIVER_NAME, String::from("messina"));
        option(key::DRIVER_VERSION, String::from(env!("CARGO_PKG_VERSION")));
        if let Some(name) = &config.application_name {
            option(key::APPLICATION_NAME, name.clone());
        }
        if let Some(version) = &config.application_version {
            option(key::APPLICATION_VERSION, version.clone());
        }
        self.handshake = Shared::new(handshake);
    }

    /// The next client timestamp: the wall clock, but always later than the one before.
    pub(super) fn timestamp(&mut self) -> Option<i64> {
        if !self.config.client_timestamps || self.wall <= 0 {
            return None;
        }
        self.last_timestamp = self.wall.max(self.last_timestamp.saturating_add(1));
        Some(self.last_timestamp)
    }

    /// Takes a request, or tells later why not.
    pub(super) fn request(&mut self, written: Result<Written, Error>) -> u32 {
        let checked = written.and_then(|written| match &self.phase {
            Phase::Starting | Phase::Ready => Ok(written),
            Phase::Closed | Phase::Closing => Err(session_closed()),
            Phase::Over(error) => Err(error.clone()),
        });
        match checked {
            Ok(written) => {
                let request = Request::new(written, &self.config, self.now);
                self.queue_due = self.queue_due.min(request.deadline);
                let number = self.requests.insert(Some(request)).unwrap_or(NONE);
                self.queue.push_back(number);
                number
            }
            Err(error) => self.refuse(error),
        }
    }

    fn refuse(&mut self, error: Error) -> u32 {
        let number = self.requests.insert(None).unwrap_or(NONE);
        self.refused.push((number, error));
        number
    }

    /// Gives a request up; its stream id stays reserved until its answer comes.
    pub(super) fn cancel(&mut self, number: u32) {
        let Some(request) = self.requests.remove(number) else {
            return;
        };
        self.refused.retain(|(refused, _)| *refused != number);
        self.ready.take_if(|ready| *ready == number);
        self.closing.take_if(|closing| *closing == number);
        match request.and_then(|request| request.key) {
            Some(key) => {
                self.under_way = self.under_way.saturating_sub(1);
                let serving = self.serving.as_mut();
                if let Some(connection) =
                    serving.and_then(|serving| serving.link.connection.as_mut())
                {
                    connection.cancel(key, self.now, |_| ());
                }
            }
            None => self.queue.retain(|queued| *queued != number),
        }
    }

    /// Takes no more requests; the request ends when those under way have.
    pub(super) fn close(&mut self) -> u32 {
        match self.phase {
            Phase::Starting | Phase::Ready => {
                self.phase = Phase::Closing;
                let number = self.requests.insert(None).unwrap_or(NONE);
                self.closing = Some(number);
                number
            }
            _ => self.refuse(session_closed()),
        }
    }

    pub(super) fn link(&mut self, number: u32) -> Option<&mut Link> {
        let serving = self.serving.as_mut().map(|serving| &mut *serving.link);
        let dials = self.dials.iter_mut().map(|link| &mut **link);
        serving
            .into_iter()
            .chain(dials)
            .find(|link| link.number == number)
    }

    pub(super) fn handle_opened(&mut self, number: u32) {
        let handshake = self.handshake.clone();
        if let Some(link) = self.link(number) {
            link.handle_opened(&handshake);
        }
    }

    pub(super) fn handle_ended(&mut self, number: u32, error: LinkError) {
        if let Some(link) = self.link(number) {
            link.handle_ended(error);
        }
    }

    /// Goes on with everything; tells when to be called again.
    pub(super) fn run(&mut self, outbox: &mut Outbox) -> Instant {
        for (number, error) in core::mem::take(&mut self.refused) {
            self.fail(number, &error, outbox);
        }
        let mut has_changed = true;
        for _ in 0..PASSES_MAX {
            self.dial(outbox);
            has_changed = self.advance_dials(outbox);
            has_changed |= self.advance_serving(outbox);
            self.submit(outbox);
            if !has_changed {
                break;
            }
        }
        let links = self.serving.iter_mut().map(|serving| &mut serving.link);
        for link in links.chain(&mut self.dials) {
            link.put_output(outbox);
        }
        if matches!(self.phase, Phase::Closing) {
            self.finish_closing(outbox);
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
        let links = match &self.serving {
            Some(serving) => serving.link.next_at(),
            None => {
                let dials = self.dials.iter().map(|link| link.next_at()).min();
                self.contact
                    .next_at()
                    .min(dials.unwrap_or(Instant::FAR_FUTURE))
            }
        };
        links.min(self.queue_due)
    }

    /// Opens links, if none serves.
    fn dial(&mut self, outbox: &mut Outbox) {
        if self.serving.is_some() || !matches!(self.phase, Phase::Starting | Phase::Ready) {
            return;
        }
        let timeout = self.config.timeouts.connect;
        self.contact.begin(self.now, timeout);
        while let Some((point, deadline)) = self.contact.next_point(self.now, self.dials.len()) {
            let number = self.next_link;
            self.next_link = self.next_link.wrapping_add(1);
            let link = Link::new(number, point, &self.config, deadline);
            self.dials.push(Box::new(link));
            if let Some(point) = self.contact.points.get(point) {
                outbox.put(Effect::Connect, number);
                outbox.put_text(&point.host);
                outbox.put_word(u32::from(point.port));
                for nothing in [NONE, 0, 0] {
                    outbox.put_word(nothing);
                }
            }
        }
    }

    /// Whether that makes another pass worth it.
    fn advance_dials(&mut self, outbox: &mut Outbox) -> bool {
        let (mut at, mut has_changed) = (0_usize, false);
        while let Some(link) = self.dials.get_mut(at) {
            let outcome = link.advance(self.now, &self.config, &mut self.told);
            let is_adopted = link.connection.is_some();
            match outcome {
                // What came with the adoption is seen to when the link serves.
                _ if is_adopted => {
                    let link = self.dials.swap_remove(at);
                    self.adopt(link, outcome.err(), outbox);
                    return true;
                }
                Ok(()) => at = at.saturating_add(1),
                Err(error) => {
                    has_changed = true;
                    let link = self.dials.swap_remove(at);
                    outbox.put(Effect::Abort, link.number);
                    if self.may_assume && may_be_for_assumption(&error) {
                        // Perhaps no failure: the node is of another kind.
                        self.may_assume = false;
                        self.set_handshake();
                        self.contact.try_again(link.point, self.now);
                    } else {
                        self.contact.handle_failed(link.point, error);
                    }
                }
            }
        }
        if self.contact.is_exhausted(self.dials.len()) && self.serving.is_none() {
            let error = self.contact.end(&self.config, self.now);
            has_changed = true;
            if matches!(self.phase, Phase::Starting) {
                self.end(error, outbox);
            }
        }
        has_changed
    }

    fn adopt(&mut self, link: Box<Link>, failed: Option<Error>, outbox: &mut Outbox) {
        for other in self.dials.drain(..) {
            outbox.put(Effect::Abort, other.number);
        }
        let keyspace = match self.config.keyspace {
            Some(_) => Keyspace::ToAsk,
            None => Keyspace::Set,
        };
        self.serving = Some(Serving {
            link,
            keyspace,
            is_asked_again: false,
            since: self.now,
            failed,
        });
        if keyspace == Keyspace::Set {
            self.serve(outbox);
        }
    }

    /// The connection takes requests from now on.
    pub(super) fn serve(&mut self, outbox: &mut Outbox) {
        self.served = self.served.saturating_add(1);
        self.contact.succeeded();
        if matches!(self.phase, Phase::Starting) {
            self.phase = Phase::Ready;
        }
        if let Some(number) = self.ready.take() {
            self.requests.remove(number);
            outbox.put(Effect::Done, number);
        }
    }

    fn advance_serving(&mut self, outbox: &mut Outbox) -> bool {
        let Some(mut serving) = self.serving.take() else {
            return false;
        };
        let mut told = core::mem::take(&mut self.told);
        let link = &mut serving.link;
        let mut ended = serving.failed.take();
        if ended.is_none() {
            ended = link.advance(self.now, &self.config, &mut told).err();
        }
        if let Some(error) = &ended {
            link.fail(error, &mut told);
        }
        for number in told.drain(..) {
            match number {
                KEYSPACE => self.handle_keyspace(&mut serving, outbox),
                _ => self.handle_told(number, &mut serving.link, outbox),
            }
        }
        self.told = told;
        while let Some(number) = self.again.pop() {
            self.queue.push_front(number);
        }
        match ended.or_else(|| serving.failed.take()) {
            None => {
                self.serving = Some(serving);
                false
            }
            Some(error) => {
                self.lost(serving, error, outbox);
                true
            }
        }
    }

    fn handle_keyspace(&mut self, serving: &mut Serving, outbox: &mut Outbox) {
        let Keyspace::Asked(key) = serving.keyspace else {
            return;
        };
        match serving.keyspace_answer(key) {
            Ok(()) => {
                serving.keyspace = Keyspace::Set;
                self.serve(outbox);
            }
            // It came before the login was over; the next one waits for that.
            Err(error) if messina_core::conn::is_too_early(&error) && !serving.is_asked_again => {
                (serving.keyspace, serving.is_asked_again) = (Keyspace::ToAsk, true);
            }
            Err(error) => serving.failed = Some(error),
        }
    }

    /// The connection is of no use any more.
    fn lost(&mut self, mut serving: Serving, error: Error, outbox: &mut Outbox) {
        outbox.put(Effect::Abort, serving.link.number);
        // Requests that were told above were looked at; those told by this are none.
        let mut told = Vec::new();
        serving.link.fail(&error, &mut told);
        for number in told {
            if number != KEYSPACE {
                self.handle_told(number, &mut serving.link, outbox);
            }
        }
        while let Some(number) = self.again.pop() {
            self.queue.push_front(number);
        }
        let (has_served, point) = (serving.keyspace == Keyspace::Set, serving.link.point);
        let is_final = match self.phase {
            // Requests may be sent before the login is over, so it may fail as late as here.
            _ if is_about_credentials(&error) => self.served <= 1,
            Phase::Starting => error.kind() == ErrorKind::Server(ErrorCode::Invalid),
            _ => false,
        };
        if is_final {
            self.end(error, outbox);
        } else if has_served {
            self.contact.lost(serving.since, &self.config, self.now);
        } else {
            let until = self.now.saturating_add(self.config.timeouts.connect);
            self.contact.handle_adopted_failed(point, error, until);
        }
    }

    /// The session has ended.
    fn end(&mut self, error: Error, outbox: &mut Outbox) {
        for link in self.dials.drain(..) {
            outbox.put(Effect::Abort, link.number);
        }
        if let Some(number) = self.ready.take() {
            self.fail(number, &error, outbox);
        }
        self.fail_queue(&error, outbox);
        self.phase = Phase::Over(error);
    }

    pub(super) fn fail_queue(&mut self, error: &Error, outbox: &mut Outbox) {
        for number in core::mem::take(&mut self.queue) {
            self.fail(number, error, outbox);
        }
        self.queue_due = Instant::FAR_FUTURE;
    }

    /// A request ends with this error; whether it may have been applied all the same is also known
    /// from earlier attempts.
    pub(super) fn fail(&mut self, number: u32, error: &Error, outbox: &mut Outbox) {
        let request = self.requests.remove(number).flatten();
        if error.node().is_some() {
            self.put_node(outbox);
        }
        let mut error = error.clone();
        if request.is_some_and(|request| request.may_be_applied) {
            error = error.with_applied(Applied::Unknown);
        }
        outbox.put_failure(number, &error);
    }

    /// Tells where node 0 is, if the shell believes something else.
    pub(super) fn put_node(&mut self, outbox: &mut Outbox) {
        let Some(point) = self.at_point else {
            return;
        };
        if self.told_point != Some(point)
            && let Some(text) = self.contact.points.get(point)
        {
            self.told_point = Some(point);
            outbox.put(Effect::Node, 0);
            outbox.put_text(&text.text());
        }
    }

    /// Closes the link once nothing is under way.
    fn finish_closing(&mut self, outbox: &mut Outbox) {
        let is_served = self.serving.as_ref();
        let is_served = is_served.is_some_and(|serving| serving.keyspace == Keyspace::Set);
        if !is_served {
            let error = session_closed();
            if let Some(number) = self.ready.take() {
                self.fail(number, &error, outbox);
            }
            self.fail_queue(&error, outbox);
        }
        if let Some(serving) = &mut self.serving {
            let is_idle = self.queue.is_empty() && self.under_way == 0;
            if is_served && !(is_idle && serving.link.is_idle()) {
                return;
            }
            let how = match is_served {
                true => Effect::Close,
                false => Effect::Abort,
            };
            outbox.put(how, serving.link.number);
            self.serving = None;
        }
        for link in self.dials.drain(..) {
            outbox.put(Effect::Abort, link.number);
        }
        self.phase = Phase::Closed;
        if let Some(number) = self.closing.take() {
            self.requests.remove(number);
            outbox.put(Effect::Done, number);
        }
    }
}

fn session_closed() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed))
}

/// Passes of one call; if there is more to do, the shell calls again at once.
const PASSES_MAX: u32 = 16;
