//! Connections that open, fail and end: whom that concerns.

use alloc::format;
use alloc::vec::Vec;

use super::ConnectionId;
use super::contact::is_about_credentials;
use super::control::Role;
use super::discovery::{is_invalid, query_body};
use super::engine::{Engine, Owner, Purpose};
use super::landing::Landing;
use super::rows::parse_answer;
use super::warnings::warning;
use crate::conn::Answer;
use crate::conn::extensions::Agreed;
use crate::error::{Error, PeerMisbehaved};
use crate::routing::NodeIdx;
use crate::time::Instant;
use crate::wire::request::QueryParameters;
use crate::wire::response::{Response, ResultBody};
use crate::wire::{Consistency, EncodeError, Opcode, ProtocolVersion};

impl Engine {
    pub(super) fn handle_connected(&mut self, id: ConnectionId, agreed: Agreed, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.agreed = Some(agreed);
        let owner = link.owner;
        if agreed.offer.sharding_invalid {
            self.warn(warning!(
                "sharding values of a node are not usable: it is used without shards"
            ));
        }
        if self.config.authenticator.is_some() && !agreed.is_authenticated {
            self.warn(warning!(
                "credentials are configured, and a node did not ask for them"
            ));
        }
        match owner {
            Owner::Contact => self.contact_connected(id, now),
            Owner::Pool(node) => self.pool_connected(id, node, &agreed, now),
        }
    }

    fn contact_connected(&mut self, id: ConnectionId, now: Instant) {
        let Some(contact) = &mut self.contact else {
            return self.close(id, false, now);
        };
        let given_up = contact.handle_connected(id).unwrap_or_default();
        for other in given_up {
            self.close(other, false, now);
        }
        if !self.use_keyspace(id) {
            self.control_taken(id, now);
        }
    }

    fn pool_connected(&mut self, id: ConnectionId, node: NodeIdx, agreed: &Agreed, now: Instant) {
        let Some(pool) = self.pools.get_mut(&node) else {
            return self.close(id, false, now);
        };
        let wanted = pool.host_id;
        if agreed
            .offer
            .host_id
            .is_some_and(|host_id| host_id != wanted)
        {
            return self.wrong_host(id, node, now);
        }
        let landing = pool.handle_connected(id, agreed, now);
        self.landed(id, node, landing, now);
    }

    /// A connection of this node is open: take it in, or see off what became surplus by it.
    pub(super) fn landed(
        &mut self,
        id: ConnectionId,
        node: NodeIdx,
        landing: Landing,
        now: Instant,
    ) {
        if landing.is_mismatch {
            self.counters.shard_mismatches = self.counters.shard_mismatches.saturating_add(1);
        }
        if landing.is_nat_found
            && let Some(pool) = self.pools.get(&node)
        {
            let text = warning!(
                "{}: the shard-aware port leads to other shards than asked for (address \
                 translation?); it is left alone for a while",
                pool.endpoint
            );
            self.warn(text);
        }
        if landing.is_layout_new {
            let shard_map = self.pools.get(&node).and_then(super::pool::Pool::shard_map);
            self.catalog.writer.set_shard_map(node, shard_map);
            self.is_view_dirty = true;
        }
        if landing.is_wanted && !self.use_keyspace(id) {
            self.prepared(id, node);
        }
        for surplus in landing.close {
            self.close(surplus, true, now);
        }
        self.note_liveness(node);
    }

    /// The connection may serve.
    fn prepared(&mut self, id: ConnectionId, node: NodeIdx) {
        if let Some(pool) = self.pools.get_mut(&node) {
            pool.handle_prepared(id);
        }
    }

    fn wrong_host(&mut self, id: ConnectionId, node: NodeIdx, now: Instant) {
        self.counters.wrong_hosts = self.counters.wrong_hosts.saturating_add(1);
        if let Some(pool) = self.pools.get_mut(&node) {
            let error = PeerMisbehaved::WrongHost.into();
            pool.handle_failed(id, &error, now, &mut self.rng);
            let host_id = pool.host_id;
            let text = warning!("{} is not the node {host_id} any more", pool.endpoint);
            self.catalog.forget_alias(host_id);
            self.warn(text);
        }
        self.close(id, false, now);
        let scope = super::discovery::Scope::TOPOLOGY;
        self.control.note_change(scope, now, &mut self.rng);
        self.note_liveness(node);
    }

    pub(super) fn handle_connect_failed(&mut self, id: ConnectionId, error: Error, now: Instant) {
        let Some(link) = self.remove_link(id) else {
            return;
        };
        if self.assumption_failed(id, link.owner, &error) {
            return;
        }
        self.version.note_offered(&error);
        match link.owner {
            Owner::Contact => {
                let Some(contact) = &mut self.contact else {
                    return;
                };
                if contact.handle_failed(id, error, &mut self.version, now) {
                    self.end_contact(now);
                }
            }
            // Asked of every node the question would only lock the account.
            Owner::Pool(_) if is_about_credentials(&error) && self.is_unproven() => {
                self.fail(error);
            }
            Owner::Pool(node) => {
                let Some(pool) = self.pools.get_mut(&node) else {
                    return;
                };
                let is_of_node = pool.handle_failed(id, &error, now, &mut self.rng);
                if is_of_node && is_about_credentials(&error) {
                    let text = warning!("{}: {error}", pool.endpoint);
                    self.warn(text);
                }
                self.note_liveness(node);
            }
        }
    }

    pub(super) fn handle_closed(&mut self, id: ConnectionId, error: &Error, now: Instant) {
        let Some(link) = self.remove_link(id) else {
            return;
        };
        if let Owner::Pool(node) = link.owner {
            if let Some(pool) = self.pools.get_mut(&node) {
                pool.handle_closed(id, now, &mut self.rng);
            }
            self.note_liveness(node);
        }
        self.adopted_failed(id, error, now);
        self.control_left(id, now);
    }

    /// If `id` is the connection that the contact points led to, and its node is not known yet.
    pub(super) fn adopted_failed(&mut self, id: ConnectionId, error: &Error, now: Instant) {
        let Some(contact) = &mut self.contact else {
            return;
        };
        if contact.adopted().is_some_and(|(adopted, _)| *adopted == id) {
            contact.handle_adopted_failed(error.clone(), now);
        }
    }

    /// Asks for the session's keyspace; false if there is none.
    fn use_keyspace(&mut self, id: ConnectionId) -> bool {
        let version = self.links.get(&id).and_then(|link| link.agreed);
        let (Some(keyspace), Some(agreed)) = (&self.config.keyspace, version) else {
            return false;
        };
        match use_keyspace_body(keyspace, agreed.version) {
            Ok(body) => self.ask(id, Purpose::UseKeyspace, Opcode::Query, body),
            // Cannot be: the text is short.
            Err(_) => return false,
        }
        true
    }

    pub(super) fn keyspace_answered(
        &mut self,
        id: ConnectionId,
        answer: Result<Answer, Error>,
        now: Instant,
    ) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (owner, Some(agreed)) = (link.owner, link.agreed) else {
            return;
        };
        let result = answer.and_then(|answer| match parse_answer(&answer, &agreed.dialect())? {
            Response::Result(ResultBody::SetKeyspace(_)) => Ok(()),
            _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
        });
        match (owner, result) {
            (Owner::Contact, Ok(())) => self.control_taken(id, now),
            (Owner::Pool(node), Ok(())) => self.prepared(id, node),
            (Owner::Contact, Err(error)) => {
                if is_invalid(&error) && self.is_unproven() {
                    return self.fail(error);
                }
                self.adopted_failed(id, &error, now);
                self.close(id, false, now);
            }
            (Owner::Pool(node), Err(error)) => {
                if let Some(pool) = self.pools.get_mut(&node) {
                    pool.handle_closed(id, now, &mut self.rng);
                    let text = warning!("{}: cannot use the keyspace: {error}", pool.endpoint);
                    self.warn(text);
                }
                self.close(id, false, now);
                self.note_liveness(node);
            }
        }
    }

    /// Tells routing whether the node is believed to be up, if that changed.
    pub(super) fn note_liveness(&mut self, node: NodeIdx) {
        let Some(pool) = self.pools.get(&node) else {
            return;
        };
        let is_up = pool.is_up();
        let known = self.catalog.writer.topology().node(node);
        if known.is_some_and(|known| known.is_up() != is_up) {
            self.catalog.writer.set_up(node, is_up);
            self.is_view_dirty = true;
        }
    }

    /// If `id` had the control role, the role is vacant.
    pub(super) fn control_left(&mut self, id: ConnectionId, now: Instant) {
        if self.control.connection() == Some(id) {
            self.control.role = Role::Vacant(now);
            self.abandon_readings(now);
        }
    }
}

/// The question for a keyspace. The name was checked: no quote is in it. Quotes keep its capitals.
pub(super) fn use_keyspace_body(
    keyspace: &str,
    version: ProtocolVersion,
) -> Result<Vec<u8>, EncodeError> {
    let text = format!("USE \"{keyspace}\"");
    query_body(&text, QueryParameters::new(Consistency::One), version)
}
