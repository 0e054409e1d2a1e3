//! The control plane of [`Routing::Single`](crate::config::Routing::Single): one connection, to
//! whichever contact point answers first.
//!
//! It reads no system table and hears no event, so the session can be used as soon as a connection
//! is open; the node that it leads to passes requests on to those that hold the data. When the
//! connection ends the contact points are walked again, in an order drawn anew, with the pauses of
//! any reconnect. Nothing is known of the node but what it says in its handshake: it stands in the
//! view without data centre, rack and tokens, under the host id it tells, or one made of its
//! endpoint if it tells none.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use uuid::Uuid;

use super::client_routes::NodeRoute;
use super::contact::{Contact, ContactStep, is_about_credentials, shuffle};
use super::discovery::is_invalid;
use super::engine::is_keyspace_name;
use super::links::use_keyspace_body;
use super::prepared::PreparedStatement;
use super::reconnect::Backoff;
use super::rows::parse_answer;
use super::status::{Counters, NodeStatus, Reach, Status};
use super::version::AskedVersion;
use super::warm_start::{Features, Recalled, WarmStart, point_hash};
use super::warnings::warning;
use super::{Assignment, ConnectionId, Input, LookupId, Output, QuestionId};
use crate::config::{Config, DEFAULT_PORT};
use crate::conn::extensions::{Agreed, Offer, ShardAwarePorts};
use crate::conn::{Answer, is_too_early};
use crate::error::{
    ConfigProblem, Error, ErrorKind, LinkErrorKind, PeerIncompatible, PeerMisbehaved, Quoted,
    TimeoutKind,
};
use crate::rng::SmallRng;
use crate::routing::{NodeIdx, TabletStats, TabletStore, Topology, View};
use crate::sync::Shared;
use crate::target::{Endpoint, Target};
use crate::time::Instant;
use crate::wire::Opcode;
use crate::wire::response::{Response, ResultBody};

/// The control plane of a session with one connection.
#[derive(Debug)]
pub struct Single {
    config: Shared<Config>,
    rng: SmallRng,
    contact: Option<Contact>,
    /// Of the walks over the contact points.
    backoff: Backoff,
    serving: Option<Serving>,
    phase: Phase,
    /// Connections that have served.
    served: u32,
    /// Whether handshakes may assume what nodes offer.
    may_assume: bool,
    /// What an earlier session knew.
    recalled: Recalled,
    view: Shared<View>,
    outputs: VecDeque<Output>,
    version: AskedVersion,
    counters: Counters,
    next_connection: u32,
    next_question: u32,
    next_lookup: u32,
}

/// The connection that was adopted.
#[derive(Debug)]
struct Serving {
    id: ConnectionId,
    endpoint: Endpoint,
    agreed: Agreed,
    since: Instant,
    /// The question for the keyspace, until it is answered.
    asked: Option<QuestionId>,
    /// It was asked for once more.
    is_asked_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No connection has served yet: a failure now ends the session.
    Starting,
    Ready,
    Over,
}

impl Single {
    /// A control plane that begins to reach the contact points at once.
    ///
    /// The same seed and inputs give the same outputs.
    pub fn new(
        config: Shared<Config>,
        seed: u64,
        now: Instant,
        warm_start: Option<&WarmStart>,
    ) -> Self {
        let recalled = warm_start.and_then(|warm_start| warm_start.recall(&config));
        let timeouts = &config.timeouts;
        let mut single = Self {
            rng: SmallRng::from_seed(seed),
            contact: None,
            backoff: Backoff::new(timeouts.reconnect_base, timeouts.reconnect_max),
            serving: None,
            phase: Phase::Starting,
            served: 0,
            may_assume: true,
            recalled: recalled.unwrap_or_default(),
            view: Shared::new(View::of_nodes(Topology::new())),
            outputs: VecDeque::new(),
            version: AskedVersion::new(config.protocol),
            counters: Counters::default(),
            next_connection: 0,
            next_question: 0,
            next_lookup: 0,
            config,
        };
        match single.config.keyspace.as_deref() {
            Some(name) if !is_keyspace_name(name) => {
                let kind = ErrorKind::Config(ConfigProblem::Keyspace);
                single.fail(Error::with_text(kind, alloc::format!("{}", Quoted(name))));
            }
            _ => single.step(now),
        }
        single
    }

    /// Takes what happened outside.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            // The only node that answers knows what it has done itself.
            Input::Settle { id } => {
                let agreed = self.phase != Phase::Over;
                self.outputs.push_back(Output::Settled { id, agreed });
            }
            _ if self.phase == Phase::Over => return,
            Input::Resolved { id, result } => {
                if let Some(contact) = &mut self.contact {
                    contact.handle_resolved(id, result);
                }
            }
            Input::Connected { id, agreed, .. } => self.handle_connected(id, agreed, now),
            Input::ConnectFailed { id, error } => self.handle_connect_failed(id, error, now),
            Input::Closed { id, error } => self.handle_closed(id, error, now),
            Input::Answered { id, answer } => self.handle_answer(id, answer, now),
            Input::Shutdown => return self.shut_down(),
            // Nothing was registered for, nothing is routed.
            Input::Event { .. } | Input::Tablet(_) | Input::ShardWanted { .. } => {}
        }
        self.step(now);
    }

    /// Takes the time: call it when [`Single::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.step(now);
    }

    /// The view as it was published last; one without nodes before that.
    pub fn view(&self) -> Shared<View> {
        self.view.clone()
    }

    /// Where tablets would go: none are learned.
    pub fn tablets(&self) -> TabletStore {
        TabletStore::new(0, Shared::new(Topology::new()))
    }

    /// What is to be done outside, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Single::handle_timeout`] is due; `None` is never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.contact {
            _ if self.phase == Phase::Over => None,
            Some(contact) => contact.next_at(),
            None if self.serving.is_none() => self.backoff.retry_at(),
            None => None,
        }
    }

    /// Statements that need not be prepared again, to be asked for once.
    pub fn take_statements(&mut self) -> Vec<Shared<PreparedStatement>> {
        core::mem::take(&mut self.recalled.statements)
    }

    /// What is known and connected.
    pub fn status(&self) -> Status {
        let serving = self.serving.as_ref();
        Status {
            cluster_name: String::new(),
            partitioner: String::new(),
            release_version: String::new(),
            port: match serving.map(|serving| &serving.endpoint) {
                Some(Endpoint::Addr(address)) => address.port(),
                Some(Endpoint::Name { port, .. }) => *port,
                _ => DEFAULT_PORT,
            },
            control: None,
            nodes: serving.map(node_status).into_iter().collect(),
            keyspaces: Vec::new(),
            tablets: TabletStats::default(),
            counters: self.counters,
        }
    }

    /// Begins what can be begun now.
    fn step(&mut self, now: Instant) {
        if self.phase == Phase::Over {
            return;
        }
        if self.contact.is_none() && self.serving.is_none() && self.backoff.may_try(now) {
            let mut points = self.config.contact_points.clone();
            shuffle(&mut points, &mut self.rng);
            let parallel = self.config.limits.connecting;
            let timeout = self.config.timeouts.connect;
            self.contact = Some(Contact::new(points, parallel, timeout, now));
        }
        while let Some(contact) = &mut self.contact {
            match contact.next_step(now, true) {
                None => return,
                Some(ContactStep::Resolve(name, port)) => {
                    let id = LookupId(self.next_lookup);
                    self.next_lookup = self.next_lookup.wrapping_add(1);
                    contact.looking_up(id, name.clone(), port);
                    self.outputs.push_back(Output::Resolve { id, name });
                }
                Some(ContactStep::Connect(endpoint, deadline)) => {
                    let id = ConnectionId(self.next_connection);
                    self.next_connection = self.next_connection.wrapping_add(1);
                    self.counters.connects = self.counters.connects.saturating_add(1);
                    let version = self.version.current();
                    contact.dialing(id, endpoint.clone(), version);
                    let assumed = match self.recalled.offer(&endpoint) {
                        _ if !self.may_assume => None,
                        // The least that any node offers: what it offers beyond that is left off.
                        None if self.config.early_requests => Some(Offer::default()),
                        recalled => recalled,
                    };
                    let mut target = Target::new(endpoint, deadline);
                    target.server_name.clone_from(&self.config.server_name);
                    self.outputs.push_back(Output::Connect {
                        id,
                        target,
                        events: &[],
                        version,
                        may_rise: self.version.may_rise(),
                        assumed,
                    });
                }
                Some(ContactStep::Exhausted) => self.end_contact(now),
            }
        }
    }

    /// Nothing is left to try.
    fn end_contact(&mut self, now: Instant) {
        let Some(contact) = self.contact.take() else {
            return;
        };
        for id in contact.attempts() {
            self.outputs.push_back(Output::Close { id, drain: false });
        }
        let error = contact.into_error();
        if self.phase == Phase::Starting {
            return self.fail(error);
        }
        self.backoff.failed(now, now, &mut self.rng);
        let text = warning!("contact points: {error}");
        self.outputs.push_back(Output::Warning(text));
    }

    fn handle_connected(&mut self, id: ConnectionId, agreed: Agreed, now: Instant) {
        let Some(contact) = &mut self.contact else {
            return;
        };
        let Some(given_up) = contact.handle_connected(id) else {
            return;
        };
        let Some((_, endpoint)) = contact.adopted() else {
            return;
        };
        self.serving = Some(Serving {
            id,
            endpoint: endpoint.clone(),
            agreed,
            since: now,
            asked: None,
            is_asked_again: false,
        });
        for id in given_up {
            self.outputs.push_back(Output::Close { id, drain: false });
        }
        match self.config.keyspace {
            Some(_) => self.ask_for_keyspace(),
            None => self.serve(now),
        }
    }

    fn ask_for_keyspace(&mut self) {
        let (Some(serving), Some(keyspace)) = (&mut self.serving, &self.config.keyspace) else {
            return;
        };
        // Cannot fail: the text is short.
        let Ok(body) = use_keyspace_body(keyspace, serving.agreed.version) else {
            return;
        };
        let id = QuestionId(self.next_question);
        self.next_question = self.next_question.wrapping_add(1);
        serving.asked = Some(id);
        self.outputs.push_back(Output::Ask {
            id,
            on: serving.id,
            opcode: Opcode::Query,
            body,
        });
    }

    fn handle_answer(&mut self, id: QuestionId, answer: Result<Answer, Error>, now: Instant) {
        let Some(serving) = self.serving.as_mut() else {
            return;
        };
        if serving.asked != Some(id) {
            return;
        }
        serving.asked = None;
        let dialect = serving.agreed.dialect();
        let result = answer.and_then(|answer| match parse_answer(&answer, &dialect)? {
            Response::Result(ResultBody::SetKeyspace(_)) => Ok(()),
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        });
        match result {
            Ok(()) => self.serve(now),
            // It came before the login was over; the next one waits for that.
            Err(error) if is_too_early(&error) && !serving.is_asked_again => {
                serving.is_asked_again = true;
                self.ask_for_keyspace();
            }
            Err(error) if is_invalid(&error) && self.phase == Phase::Starting => self.fail(error),
            Err(error) => {
                let id = serving.id;
                self.serving = None;
                self.outputs.push_back(Output::Close { id, drain: false });
                if let Some(contact) = &mut self.contact {
                    contact.handle_adopted_failed(error, now);
                }
            }
        }
    }

    /// The connection takes requests from now on.
    fn serve(&mut self, now: Instant) {
        let Some(serving) = &self.serving else {
            return;
        };
        self.contact = None;
        self.served = self.served.saturating_add(1);
        self.backoff.opened(now);
        let topology = Topology::of_one(host_id(serving), address(&serving.endpoint));
        self.view = Shared::new(View::of_nodes(topology));
        self.outputs.push_back(Output::Publish(self.view.clone()));
        self.outputs
            .push_back(Output::Assign(Vec::from([Assignment {
                node: NodeIdx::FIRST,
                connections: Vec::from([(serving.id, serving.agreed.shard())]),
                lazy_shards: None,
            }])));
        if self.phase == Phase::Starting {
            self.phase = Phase::Ready;
            self.outputs.push_back(Output::Ready);
        }
    }

    fn handle_connect_failed(&mut self, id: ConnectionId, error: Error, now: Instant) {
        let Some(contact) = &mut self.contact else {
            return;
        };
        if self.may_assume && may_be_for_assumption(&error) {
            // Perhaps no failure: the node has changed since, or is of another kind.
            self.may_assume = false;
            contact.try_again(id, now);
        } else if contact.handle_failed(id, error, &mut self.version, now) {
            self.end_contact(now);
        }
    }

    fn handle_closed(&mut self, id: ConnectionId, error: Error, now: Instant) {
        let Some(serving) = self.serving.take_if(|serving| serving.id == id) else {
            return;
        };
        // Requests may be sent before the login is over, so it may fail as late as here.
        if is_about_credentials(&error) && self.served <= 1 {
            return self.fail(error);
        }
        match &mut self.contact {
            Some(contact) => contact.handle_adopted_failed(error, now),
            None => {
                self.backoff.failed(serving.since, now, &mut self.rng);
                self.outputs.push_back(Output::Assign(Vec::new()));
            }
        }
    }

    fn shut_down(&mut self) {
        self.phase = Phase::Over;
        let attempts = self.contact.take().map(|contact| contact.attempts());
        for id in attempts.unwrap_or_default() {
            self.outputs.push_back(Output::Close { id, drain: false });
        }
        if let Some(Serving { id, .. }) = self.serving.take() {
            self.outputs.push_back(Output::Close { id, drain: true });
        }
    }

    /// The session cannot start.
    fn fail(&mut self, error: Error) {
        self.shut_down();
        self.outputs.push_back(Output::Failed(error));
    }
}

impl Recalled {
    /// What a node is likely to offer: what it did offer, else what any other one did.
    fn offer(&self, endpoint: &Endpoint) -> Option<Offer> {
        let hash = point_hash(endpoint);
        let same = self.features.iter().find(|(point, _)| *point == hash);
        let (_, features) = same.or_else(|| self.features.first())?;
        Some(Features::offer(*features))
    }
}

/// Whether a handshake may have failed because it took something of the node for granted.
fn may_be_for_assumption(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Server(_)
        | ErrorKind::PeerMisbehaved(_)
        | ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged)
        | ErrorKind::Timeout(TimeoutKind::Handshake) => !is_about_credentials(error),
        ErrorKind::Link(error) => matches!(
            error.kind(),
            LinkErrorKind::ClosedByPeer | LinkErrorKind::Reset
        ),
        _ => false,
    }
}

fn host_id(serving: &Serving) -> Uuid {
    let made = u128::from(point_hash(&serving.endpoint));
    serving
        .agreed
        .offer
        .host_id
        .unwrap_or_else(|| Uuid::from_u128(made))
}

/// The address, if it is known here: what resolves names may be elsewhere.
fn address(endpoint: &Endpoint) -> SocketAddr {
    match endpoint {
        Endpoint::Addr(address) => *address,
        Endpoint::Name { port, .. } => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), *port),
        Endpoint::Local(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    }
}

fn node_status(serving: &Serving) -> NodeStatus {
    let agreed = &serving.agreed;
    let sharding = agreed.offer.sharding;
    let is_open = serving.asked.is_none();
    NodeStatus {
        node: NodeIdx::FIRST,
        host_id: host_id(serving),
        address: address(&serving.endpoint),
        dc: String::new(),
        rack: String::new(),
        is_up: true,
        shards: sharding.map(|sharding| sharding.map.count()),
        wanted: 1,
        connected: usize::from(is_open),
        shards_connected: agreed
            .shard()
            .map(|shard| shard.value())
            .into_iter()
            .collect(),
        shard_aware_port: None,
        route: NodeRoute::Direct,
        is_nat_resting: false,
        reach: Reach {
            endpoint: serving.endpoint.clone(),
            seen: None,
            broadcast: None,
            ports: ShardAwarePorts::default(),
        },
    }
}
