//! The engine: joins contact, pools and control, and turns their wishes into outputs.
//!
//! Every input is followed by one walk over all parts ([`Engine::advance`]); what it finds to do it
//! does, and a second walk at the same time finds nothing. Costs of an input are linear in the
//! number of nodes; only news of tablets, which may be frequent, skip the walk. Iteration order comes
//! from ids alone, chance from the seed alone.

use crate::gather::Gather;
use crate::sorted::SortedMap;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::client_routes::Routes;
use super::contact::Contact;
use super::control::Control;
use super::discovery::SystemTable;
use super::pool::{Pool, PoolSettings};
use super::schema::Catalog;
use super::settle::Settle;
use super::status::Counters;
use super::version::AskedVersion;
use super::warm_start::WarmStart;
use super::warming::Warm;
use super::warnings::{Warnings, warning};
use super::{Assignment, ConnectionId, Input, Output, QuestionId, SettleId, TabletNews};
use crate::config::Config;
use crate::conn::extensions::Agreed;
use crate::error::{ConfigProblem, Error, ErrorKind, Quoted};
use crate::rng::SmallRng;
use crate::routing::{NodeIdx, TabletStore, View};
use crate::sync::Shared;
use crate::target::{Security, SteeringKind};
use crate::time::Instant;
use crate::wire::Opcode;

/// The control plane of one session.
#[derive(Debug)]
pub struct Engine {
    pub(super) config: Shared<Config>,
    pub(super) settings: PoolSettings,
    pub(super) rng: SmallRng,
    /// The time of the last walk: nothing that was due then is due still.
    pub(super) walked_at: Instant,
    pub(super) links: SortedMap<ConnectionId, Link>,
    pub(super) contact: Option<Contact>,
    pub(super) pools: SortedMap<NodeIdx, Pool>,
    pub(super) control: Control,
    pub(super) settle: Settle,
    pub(super) catalog: Catalog,
    pub(super) routes: Routes,
    /// Nodes that left, and when their index may be given to another.
    pub(super) retired: Vec<(NodeIdx, Instant)>,
    pub(super) counters: Counters,
    pub(super) phase: Phase,
    pub(super) is_view_dirty: bool,
    /// There while the session lives on what an earlier one knew.
    pub(super) warm: Option<Warm>,
    /// Callers to be told after the view that they waited for.
    pub(super) settled: Vec<(SettleId, bool)>,
    published: Shared<View>,
    questions: SortedMap<QuestionId, Question>,
    pub(super) outputs: VecDeque<Output>,
    pub(super) version: AskedVersion,
    /// Closes that are told only after the assignment that makes them harmless.
    closing: Vec<(ConnectionId, bool)>,
    assigned: Vec<Assignment>,
    warnings: Warnings,
    pub(super) next_connection: u32,
    next_question: u32,
    pub(super) next_lookup: u32,
    /// The pool that connected last, so that each gets its turn.
    pub(super) turn: Option<NodeIdx>,
}

/// One connection, from its first attempt on.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) owner: Owner,
    /// There when it is open.
    pub(super) agreed: Option<Agreed>,
    /// Whether it hears events.
    pub(super) is_registered: bool,
}

/// What a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The walk over the contact points; its node is not known yet.
    Contact,
    /// The pool of a node.
    Pool(NodeIdx),
}

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was read yet.
    FirstContact,
    /// Topology and schema are known, no connection is assigned yet.
    Known,
    /// The session was told that it can be used.
    Ready,
    /// It failed to start or was closed.
    Over,
}

#[derive(Debug)]
struct Question {
    on: ConnectionId,
    purpose: Purpose,
}

/// Why a question was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    UseKeyspace,
    Register,
    RegisterRoutes,
    Read(SystemTable),
    LocalVersion,
    PeerVersions,
}

impl Engine {
    /// A control plane that begins to reach the contact points at once.
    ///
    /// The same seed and inputs give the same outputs.
    pub fn new(
        config: Shared<Config>,
        steering: SteeringKind,
        security: Security,
        seed: u64,
        now: Instant,
    ) -> Self {
        Self::with_warm_start(config, steering, security, seed, now, None)
    }

    /// The same with what an earlier session knew: known nodes are connected to first.
    pub fn with_warm_start(
        config: Shared<Config>,
        steering: SteeringKind,
        security: Security,
        seed: u64,
        now: Instant,
        warm_start: Option<WarmStart>,
    ) -> Self {
        let rng = SmallRng::from_seed(seed);
        let timeouts = &config.timeouts;
        let (base, max) = (timeouts.reconnect_base, timeouts.reconnect_max);
        let mut catalog = Catalog::new(&config.limits);
        let routes = Routes::new(&config, security);
        let mut pool = config.pool;
        pool.shard_aware_port &= Routes::allow_shard_aware_port(&config);
        let mut engine = Self {
            published: Shared::new(catalog.writer.view()),
            catalog,
            settings: PoolSettings {
                config: pool,
                steering,
                security,
                reconnect_base: base,
                reconnect_max: max,
            },
            walked_at: now,
            links: SortedMap::new(),
            contact: None,
            pools: SortedMap::new(),
            control: Control::new(now, base, max, timeouts.refresh_interval),
            settle: Settle::default(),
            routes,
            retired: Vec::new(),
            counters: Counters::default(),
            phase: Phase::FirstContact,
            is_view_dirty: false,
            warm: None,
            settled: Vec::new(),
            questions: SortedMap::new(),
            outputs: VecDeque::new(),
            version: AskedVersion::new(config.protocol),
            closing: Vec::new(),
            assigned: Vec::new(),
            warnings: Warnings::default(),
            next_connection: 0,
            next_question: 0,
            next_lookup: 0,
            turn: None,
            rng,
            config,
        };
        match engine.config.keyspace.as_deref() {
            Some(name) if !is_keyspace_name(name) => {
                let kind = ErrorKind::Config(ConfigProblem::Keyspace);
                engine.fail(Error::with_text(kind, alloc::format!("{}", Quoted(name))));
            }
            _ => {
                if let Some(warm_start) = warm_start {
                    warm_start.restore(&mut engine, now);
                }
                if engine.phase == Phase::FirstContact {
                    engine.start_contact(now);
                }
            }
        }
        engine.advance(now);
        engine
    }

    /// Takes what happened outside.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.phase == Phase::Over {
            if let Input::Settle { id } = input {
                self.outputs
                    .push_back(Output::Settled { id, agreed: false });
            }
            return;
        }
        match input {
            Input::Tablet(news) => return self.handle_tablet(now, news),
            Input::Resolved { id, result } => {
                if let Some(contact) = &mut self.contact {
                    contact.handle_resolved(id, result);
                }
            }
            Input::Connected { id, agreed, .. } => self.handle_connected(id, agreed, now),
            Input::ConnectFailed { id, error } => self.handle_connect_failed(id, error, now),
            Input::Closed { id, error } => self.handle_closed(id, &error, now),
            Input::Answered { id, answer } => {
                if let Some(question) = self.questions.remove(&id) {
                    self.handle_answer(question.on, question.purpose, answer, now);
                }
            }
            Input::Event { id, body } => self.handle_event(id, body.as_slice(), now),
            Input::ShardWanted { node, shard } => {
                if let Some(pool) = self.pools.get_mut(&node) {
                    pool.wish(shard);
                }
            }
            Input::Settle { id } => {
                let timeout = self.config.timeouts.schema_agreement;
                self.settle.add(id, now, timeout);
            }
            Input::Shutdown => self.shut_down(),
        }
        self.advance(now);
    }

    /// Takes the time: call it when [`Engine::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// The view as it was published last; one without nodes before that.
    pub fn view(&self) -> Shared<View> {
        self.published.clone()
    }

    /// Where the tablets go that answers bring.
    pub fn tablets(&self) -> TabletStore {
        self.catalog.writer.tablets().clone()
    }

    /// What is to be done outside, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Engine::handle_timeout`] is due; `None` is never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.phase == Phase::Over {
            return None;
        }
        let mut next = None;
        let mut consider = |at: Option<Instant>| {
            if let Some(at) = at
                && at > self.walked_at
                && next.is_none_or(|next| at < next)
            {
                next = Some(at);
            }
        };
        consider(self.contact.as_ref().and_then(Contact::next_at));
        for pool in self.pools.values() {
            pool.next_at(&mut consider);
        }
        self.control.next_at(&mut consider);
        self.settle
            .next_at(self.config.timeouts.control, &mut consider);
        consider(self.recontact_at());
        self.warm_next_at(&mut consider);
        next
    }

    fn advance(&mut self, now: Instant) {
        if self.phase != Phase::Over {
            self.step_contact(now);
            self.step_warm(now);
            self.step_control(now);
            self.step_settle(now);
            self.step_control(now);
            self.call_pools(now);
            self.fill_pools(now);
            self.release_retired(now);
        }
        self.walked_at = self.walked_at.max(now);
        self.flush();
    }

    /// Tells what has changed: the view first, then who serves, then what may go.
    fn flush(&mut self) {
        let is_known = matches!(self.phase, Phase::Known | Phase::Ready);
        if is_known && self.is_view_dirty {
            let view = self.publish_now();
            self.outputs.push_back(Output::Publish(view));
        }
        if is_known {
            let assigned: Vec<Assignment> = self.assignments();
            if assigned != self.assigned {
                self.assigned.clone_from(&assigned);
                self.outputs.push_back(Output::Assign(assigned));
            }
            if self.phase == Phase::Known && self.may_serve() && self.may_be_ready() {
                self.warm_is_ready();
                self.phase = Phase::Ready;
                self.outputs.push_back(Output::Ready);
            }
        }
        for (id, agreed) in self.settled.drain(..) {
            self.outputs.push_back(Output::Settled { id, agreed });
        }
        for (id, drain) in self.closing.drain(..) {
            self.outputs.push_back(Output::Close { id, drain });
        }
    }

    /// The view of all that was told so far; the caller tells it on.
    pub(super) fn publish_now(&mut self) -> Shared<View> {
        self.is_view_dirty = false;
        self.published = Shared::new(self.catalog.writer.view());
        self.published.clone()
    }

    fn assignments(&self) -> Vec<Assignment> {
        let assignment = |(&node, pool): (&NodeIdx, &Pool)| Assignment {
            node,
            connections: pool.open().gather(),
            lazy_shards: pool.lazy_shards(),
        };
        let called = self.pools.iter().filter(|(_, pool)| pool.is_called);
        called.map(assignment).gather()
    }

    fn handle_tablet(&mut self, now: Instant, news: TabletNews) {
        match news {
            TabletNews::UnknownHost => {
                let scope = super::discovery::Scope::TOPOLOGY;
                self.control.note_change(scope, now, &mut self.rng);
            }
            TabletNews::Refused(error) => {
                self.warn(warning!("a tablet was not learned: {error}"));
            }
        }
    }

    fn shut_down(&mut self) {
        self.phase = Phase::Over;
        self.contact = None;
        self.pools.clear();
        self.questions.clear();
        for (id, link) in core::mem::take(&mut self.links) {
            self.closing.push((id, link.agreed.is_some()));
        }
        for id in self.settle.take_all() {
            self.outputs
                .push_back(Output::Settled { id, agreed: false });
        }
    }

    /// The session cannot start.
    pub(super) fn fail(&mut self, error: Error) {
        self.shut_down();
        self.outputs.push_back(Output::Failed(error));
    }

    pub(super) fn warn(&mut self, text: String) {
        if let Some(text) = self.warnings.once(text) {
            self.outputs.push_back(Output::Warning(text));
        }
    }

    pub(super) fn ask(
        &mut self,
        on: ConnectionId,
        purpose: Purpose,
        opcode: Opcode,
        body: Vec<u8>,
    ) {
        let id = QuestionId(self.next_question);
        self.next_question = self.next_question.wrapping_add(1);
        self.questions.insert(id, Question { on, purpose });
        self.outputs.push_back(Output::Ask {
            id,
            on,
            opcode,
            body,
        });
    }

    /// Answers to these questions are of no interest any more.
    pub(super) fn drop_questions(&mut self, on: ConnectionId, matching: impl Fn(Purpose) -> bool) {
        self.questions
            .retain(|_, question| question.on != on || !matching(question.purpose));
    }

    /// The same for all questions of the control role.
    pub(super) fn drop_control_questions(&mut self) {
        self.questions
            .retain(|_, question| question.purpose == Purpose::UseKeyspace);
    }

    /// Ends a connection by our own will. Its owner has been told already.
    pub(super) fn close(&mut self, id: ConnectionId, drain: bool, now: Instant) {
        if self.links.remove(&id).is_none() {
            return;
        }
        self.drop_questions(id, |_| true);
        self.closing.push((id, drain));
        self.control_left(id, now);
    }

    /// A link that is gone without our doing.
    pub(super) fn remove_link(&mut self, id: ConnectionId) -> Option<Link> {
        let link = self.links.remove(&id)?;
        self.drop_questions(id, |_| true);
        Some(link)
    }

    fn release_retired(&mut self, now: Instant) {
        let due = |(_, at): &(NodeIdx, Instant)| *at <= now;
        if !self.retired.iter().any(due) {
            return;
        }
        for (node, at) in core::mem::take(&mut self.retired) {
            if at <= now {
                self.catalog.writer.release_node(node);
            } else {
                self.retired.push((node, at));
            }
        }
    }
}

/// Letters, digits and underscores: all that servers accept, so that a name cannot be anything
/// else in the statement it is put into.
pub(super) fn is_keyspace_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.len() <= KEYSPACE_NAME_LEN_MAX && name.chars().all(valid)
}

/// Newer servers take longer names than the 48 of Cassandra; theirs is the last word.
const KEYSPACE_NAME_LEN_MAX: usize = 222;
