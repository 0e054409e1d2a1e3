//! The control connection at work: taking the role, reading system tables, comparing versions.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::ConnectionId;
use super::client_routes::CAN_FOLLOW;
use super::control::{EVENTS, ROUTE_EVENTS, Role};
use super::discovery::{Discovery, Scope, SystemTable, query_body};
use super::engine::{Engine, Owner, Phase, Purpose};
use super::pool::Pool;
use super::rows::{parse_answer, read_rows, uuid};
use super::settle::PollAnswer;
use super::warnings::warning;
use crate::conn::Answer;
use crate::error::{Error, ErrorKind, PeerMisbehaved};
use crate::gather::Gather;
use crate::routing::NodeIdx;
use crate::time::Instant;
use crate::wire::request::{QueryParameters, Register, RequestBody};
use crate::wire::response::Response;
use crate::wire::{Consistency, Dialect, Opcode, ProtocolVersion};

impl Engine {
    pub(super) fn step_control(&mut self, now: Instant) {
        if matches!(self.control.role, Role::Vacant(_)) {
            self.choose_control(now);
        }
        self.begin_reading(now);
        self.pump_reading(now);
    }

    /// Gives the vacant role to one of the open connections, rather not to the node that failed
    /// last.
    fn choose_control(&mut self, now: Instant) {
        let is_free = self.phase != Phase::FirstContact && self.contact.is_none();
        let is_resting = self.rests_until().is_some_and(|until| now < until);
        if !is_free || is_resting || !self.control.backoff.may_try(now) {
            return;
        }
        let first = |(node, pool): (&NodeIdx, &Pool)| Some((*node, pool.open().next()?.0));
        let called = self.pools.iter().filter(|(_, pool)| pool.is_called);
        let mut choice: Vec<(NodeIdx, ConnectionId)> = called.filter_map(first).gather();
        if choice.len() > 1 {
            let avoid = self.control.avoid;
            choice.retain(|(node, _)| Some(*node) != avoid);
        }
        let bound = u64::try_from(choice.len()).unwrap_or(u64::MAX);
        let drawn = usize::try_from(self.rng.below(bound)).unwrap_or(0);
        let Some(&(_, id)) = choice.get(drawn) else {
            return;
        };
        if self.links.get(&id).is_some_and(|link| link.is_registered) {
            return self.control_taken(id, now);
        }
        self.register(id, Purpose::Register, EVENTS, now);
    }

    /// Asks to hear of these events, on the connection that is to have the role.
    fn register(
        &mut self,
        id: ConnectionId,
        purpose: Purpose,
        events: &'static [&'static str],
        now: Instant,
    ) {
        self.control.role = Role::Registering(id);
        self.control.since = now;
        let mut body = BytesMut::new();
        let register = Register { events };
        let written = self
            .version_of(id)
            .map(|version| register.put(version, &mut body));
        match written {
            Some(Ok(())) => self.ask(id, purpose, Opcode::Register, body.to_vec()),
            _ => self.control.role = Role::Vacant(now),
        }
    }

    /// The connection has the role, once it hears of client routes if those are followed. That is
    /// asked apart, since older nodes refuse the whole of a request with a word they do not know.
    pub(super) fn control_taken(&mut self, id: ConnectionId, now: Instant) {
        if self.routes.are_followed() {
            return self.register(id, Purpose::RegisterRoutes, ROUTE_EVENTS, now);
        }
        self.control_begins(id, now);
    }

    /// The connection has the role and hears events. What happened before is read.
    fn control_begins(&mut self, id: ConnectionId, now: Instant) {
        self.control.role = Role::Held(id);
        self.control.since = now;
        self.control.backoff.opened(now);
        self.control.demand(Scope::ALL, now);
    }

    /// The connection that has the role does not do its work.
    pub(super) fn control_failed(&mut self, id: ConnectionId, error: &Error, now: Instant) {
        let since = self.control.since;
        self.control.backoff.failed(since, now, &mut self.rng);
        self.control.role = Role::Vacant(now);
        self.abandon_readings(now);
        match self.links.get(&id).map(|link| link.owner) {
            Some(Owner::Pool(node)) => {
                self.control.avoid = Some(node);
                if let Some(pool) = self.pools.get(&node) {
                    let text = warning!("control role leaves {}: {error}", pool.endpoint);
                    self.warn(text);
                }
            }
            Some(Owner::Contact) => {
                self.adopted_failed(id, error, now);
                self.close(id, false, now);
            }
            None => {}
        }
    }

    /// What was being read will be read by the next that takes the role.
    pub(super) fn abandon_readings(&mut self, now: Instant) {
        if let Some(discovery) = self.control.discovery.take() {
            self.control.demand(discovery.scope(), now);
            self.settle.refresh_failed();
        }
        self.settle.abort_poll();
        self.drop_control_questions();
    }

    fn begin_reading(&mut self, now: Instant) {
        let Some(id) = self.control.held() else {
            return;
        };
        if self.control.discovery.is_some() {
            return;
        }
        let Some(scope) = self.control.begin_due(now) else {
            return;
        };
        if scope.schema {
            self.settle.refresh_started();
        }
        let agreed = self.links.get(&id).and_then(|link| link.agreed);
        let is_scylla = agreed.is_some_and(|agreed| agreed.offer.is_scylla);
        let page_size = self.config.page_size.unwrap_or(PAGE_SIZE_MAX);
        let page_size = page_size.clamp(1, PAGE_SIZE_MAX);
        let in_flight = usize::from(self.config.limits.connection.in_flight);
        let window = (in_flight / 4).clamp(1, WINDOW_MAX);
        let routes = self.routes.begin_reading(scope);
        let discovery = Discovery::new(scope, is_scylla, page_size, window, routes);
        self.control.discovery = Some(discovery);
    }

    fn pump_reading(&mut self, now: Instant) {
        let Some(id) = self.control.held() else {
            return;
        };
        let Some(version) = self.version_of(id) else {
            return;
        };
        while let Some(discovery) = &mut self.control.discovery {
            match discovery.next_question(version) {
                Ok(Some((table, body))) => self.ask(id, Purpose::Read(table), Opcode::Query, body),
                Ok(None) => return,
                Err(error) => return self.control_failed(id, &error.into(), now),
            }
        }
    }

    pub(super) fn handle_answer(
        &mut self,
        on: ConnectionId,
        purpose: Purpose,
        answer: Result<Answer, Error>,
        now: Instant,
    ) {
        match purpose {
            Purpose::UseKeyspace => self.keyspace_answered(on, answer, now),
            Purpose::Register | Purpose::RegisterRoutes => {
                self.registered(on, purpose, answer, now);
            }
            Purpose::Read(table) => self.table_answered(on, table, answer, now),
            Purpose::LocalVersion | Purpose::PeerVersions => {
                self.version_answered(on, purpose, answer, now);
            }
        }
    }

    fn registered(
        &mut self,
        id: ConnectionId,
        purpose: Purpose,
        answer: Result<Answer, Error>,
        now: Instant,
    ) {
        if self.control.role != Role::Registering(id) {
            return;
        }
        let Some(dialect) = self.dialect_of(id) else {
            return;
        };
        let result = answer.and_then(|answer| match parse_answer(&answer, &dialect)? {
            Response::Ready => Ok(()),
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        });
        let is_of_routes = CAN_FOLLOW && purpose == Purpose::RegisterRoutes;
        match result {
            Ok(()) if is_of_routes => self.control_begins(id, now),
            Ok(()) => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.is_registered = true;
                }
                self.control_taken(id, now);
            }
            Err(error) if is_of_routes && self.routes_refused(&error) => {
                self.control_begins(id, now);
            }
            Err(error) => self.control_failed(id, &error, now),
        }
    }

    fn table_answered(
        &mut self,
        id: ConnectionId,
        table: SystemTable,
        answer: Result<Answer, Error>,
        now: Instant,
    ) {
        let Some(dialect) = self.dialect_of(id) else {
            return;
        };
        let Some(discovery) = &mut self.control.discovery else {
            return;
        };
        let scope = discovery.scope();
        if let Err(error) = discovery.handle_answer(table, answer, &dialect) {
            if error.kind() != ErrorKind::Busy || self.phase == Phase::FirstContact {
                return self.control_failed(id, &error, now);
            }
            // The session's own requests fill the connection. It works: later, then.
            self.control.discovery = None;
            self.settle.refresh_failed();
            self.drop_control_questions();
            self.settle.abort_poll();
            self.control.read_ended(scope, now);
            return self.control.note_change(scope, now, &mut self.rng);
        }
        if !discovery.is_done() {
            return;
        }
        if let Some(discovery) = self.control.discovery.take() {
            self.reading_ended(id, scope, discovery.into_found(), now);
        }
    }

    pub(super) fn step_settle(&mut self, now: Instant) {
        let grace = self.config.timeouts.control;
        let (lost, wants_refresh) = self.settle.handle_timeout(now, grace);
        for id in lost {
            self.settled.push((id, false));
        }
        if wants_refresh {
            self.control.demand(Scope::SCHEMA, now);
        }
        let Some(id) = self.control.held() else {
            return;
        };
        let Some(version) = self.version_of(id) else {
            return;
        };
        if self.phase == Phase::FirstContact || !self.settle.start_poll(now) {
            return;
        }
        for (purpose, text) in [
            (Purpose::LocalVersion, LOCAL_VERSION),
            (Purpose::PeerVersions, PEER_VERSIONS),
        ] {
            let parameters = QueryParameters::new(Consistency::One);
            match query_body(text, parameters, version) {
                Ok(body) => self.ask(id, purpose, Opcode::Query, body),
                Err(error) => return self.control_failed(id, &error.into(), now),
            }
        }
    }

    fn version_answered(
        &mut self,
        on: ConnectionId,
        purpose: Purpose,
        answer: Result<Answer, Error>,
        now: Instant,
    ) {
        let Some(dialect) = self.dialect_of(on) else {
            return;
        };
        let is_local = purpose == Purpose::LocalVersion;
        let answer = match answer.and_then(|answer| read_versions(&answer, &dialect, is_local)) {
            Ok(answer) => answer,
            Err(error) => {
                self.settle.handle_answer(PollAnswer::Failed, |_| true);
                self.drop_questions(on, |purpose| {
                    matches!(purpose, Purpose::LocalVersion | Purpose::PeerVersions)
                });
                // One that does not answer cannot be the one to ask.
                if !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Busy) {
                    self.control_failed(on, &error, now);
                }
                return;
            }
        };
        let topology = self.catalog.writer.topology();
        // Nodes that are not connected to do not show whether they live, and take no statement.
        let is_up = |host_id| {
            let node = topology.node_by_host_id(host_id);
            node.and_then(|node| self.pools.get(&node))
                .is_some_and(|pool| pool.is_called && pool.is_up())
        };
        if self.settle.handle_answer(answer, is_up) {
            self.control.demand(Scope::SCHEMA, now);
        }
    }

    fn version_of(&self, id: ConnectionId) -> Option<ProtocolVersion> {
        Some(self.links.get(&id)?.agreed?.version)
    }

    fn dialect_of(&self, id: ConnectionId) -> Option<Dialect> {
        Some(self.links.get(&id)?.agreed?.dialect())
    }
}

fn read_versions(answer: &Answer, dialect: &Dialect, is_local: bool) -> Result<PollAnswer, Error> {
    let mut versions = Vec::new();
    let names = ["host_id", "schema_version"];
    read_rows(answer, dialect, &names, &mut |cells| {
        if let &[host_id, version] = cells {
            versions.push((uuid(host_id), uuid(version)));
        }
    })?;
    if is_local {
        return Ok(PollAnswer::Local(
            versions.first().and_then(|(_, version)| *version),
        ));
    }
    let known = |(host_id, version): (Option<uuid::Uuid>, _)| Some((host_id?, version));
    let peers = versions.into_iter().filter_map(known).gather();
    Ok(PollAnswer::Peers(peers))
}

const LOCAL_VERSION: &str = "SELECT schema_version FROM system.local WHERE key='local'";
const PEER_VERSIONS: &str = "SELECT peer, host_id, schema_version FROM system.peers";

/// Rows asked for at once.
const PAGE_SIZE_MAX: i32 = 1000;
/// Questions of a reading that are under way at once.
const WINDOW_MAX: usize = 8;
