//! What a reading or an event means for the nodes and their pools.
//!
//! Pools follow the nodes that the last reading found, by host id. Events only hint: their
//! addresses are those among nodes, not those of clients, and a live connection knows better.

use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::ConnectionId;
use super::discovery::Scope;
use super::duty::may_contact;
use super::engine::{Engine, Owner, Phase};
use super::found::Found;
use super::pool::Pool;
use super::schema::Place;
use super::warnings::warning;
use crate::error::{Error, ErrorKind, LimitField, PeerMisbehaved, Quoted};
use crate::gather::Gather;
use crate::routing::{Host, NodeIdx, NodesChange};
use crate::time::Instant;
use crate::wire::Reader;
use crate::wire::response::{Event, StatusChangeKind};

impl Engine {
    pub(super) fn reading_ended(
        &mut self,
        id: ConnectionId,
        scope: Scope,
        mut found: Found,
        now: Instant,
    ) {
        for text in core::mem::take(&mut found.warnings) {
            self.warn(text);
        }
        if scope.topology {
            let Some(local) = found.local.take() else {
                let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody);
                let error = Error::with_text(kind, "system.local has no usable row");
                self.control.demand(scope, now);
                return self.control_failed(id, &error, now);
            };
            self.catalog.facts = core::mem::take(&mut found.facts);
            let host_id = local.host_id;
            if let Some((adopted, endpoint)) = self.contact.as_ref().and_then(|c| c.adopted())
                && *adopted == id
            {
                self.catalog.note_contact(endpoint, &local);
            }
            let is_up = |node| self.pools.get(&node).is_none_or(Pool::is_up);
            let config = &self.config;
            let may_contact = |host: &Host<'_>| may_contact(config, host);
            let peers = found.peers.split_off(0);
            let (change, places) = self.catalog.set_nodes(local, peers, is_up, may_contact);
            self.nodes_changed(&change, places, now);
            self.follow_routes(found.routes.take(), now);
            self.join_adopted(id, host_id, now);
            if self.phase == Phase::Over {
                return;
            }
        }
        if found.routes.is_some() {
            self.follow_routes(found.routes.take(), now);
        }
        if scope.schema {
            self.catalog.set_schema(&mut found);
            if self.catalog.writer.refused_tables() > 0 {
                self.warn(warning!(
                    "more tables than the limit: some are used without token routing"
                ));
            }
        }
        self.is_view_dirty = true;
        if self.phase == Phase::FirstContact {
            self.phase = Phase::Known;
        }
        if scope == Scope::ALL {
            self.warm = None;
        }
        self.control.avoid = None;
        self.control.read_ended(scope, now);
        if scope.schema {
            for (id, agreed) in self.settle.refresh_ended() {
                self.settled.push((id, agreed));
            }
        }
    }

    /// Pools follow the nodes: new ones get one, gone ones lose theirs, and a node under a new
    /// address begins anew there.
    pub(super) fn nodes_changed(&mut self, change: &NodesChange, places: Vec<Place>, now: Instant) {
        if change.refused > 0 {
            self.warn(warning!(
                "the cluster has more nodes than the limit: some are not used"
            ));
        }
        for node in &change.removed {
            self.drop_pool(*node, now);
            let timeouts = &self.config.timeouts;
            let until = now
                .saturating_add(timeouts.request)
                .saturating_add(timeouts.close);
            self.retired.push((*node, until));
        }
        for place in places {
            let topology = self.catalog.writer.topology();
            let Some(node) = topology.node_by_host_id(place.host_id) else {
                continue;
            };
            self.retired.retain(|(retired, _)| *retired != node);
            let known = self.pools.get(&node);
            // Where routes lead, the node's own address is nothing to go by.
            let is_direct = !self.routes.are_followed();
            if is_direct && known.is_some_and(|pool| pool.endpoint != place.endpoint) {
                self.drop_pool(node, now);
            }
            let settings = self.settings;
            let pool = self.pools.get_or_insert_with(node, || Pool {
                route: self.routes.to(place.host_id),
                ..Pool::new(place.host_id, place.endpoint, settings)
            });
            pool.broadcast = place.broadcast;
            self.note_liveness(node);
        }
        self.assign_duties();
    }

    fn drop_pool(&mut self, node: NodeIdx, now: Instant) {
        let Some(pool) = self.pools.remove(&node) else {
            return;
        };
        for id in pool.all().gather() {
            let is_open = self
                .links
                .get(&id)
                .is_some_and(|link| link.agreed.is_some());
            self.close(id, is_open, now);
        }
    }

    /// The connection that the contact points led to becomes one of its node's pool.
    fn join_adopted(&mut self, id: ConnectionId, host_id: Uuid, now: Instant) {
        let adopted = self.contact.as_ref().and_then(|contact| contact.adopted());
        if adopted.is_none_or(|(adopted, _)| *adopted != id) {
            return;
        }
        self.contact = None;
        let node = self.catalog.writer.topology().node_by_host_id(host_id);
        let (Some(node), Some(link)) = (node, self.links.get_mut(&id)) else {
            if self.is_unproven() {
                return self.fail(Error::new(ErrorKind::Limit(LimitField::Nodes)));
            }
            return self.close(id, false, now);
        };
        let Some(agreed) = link.agreed else { return };
        link.owner = Owner::Pool(node);
        if let Some(pool) = self.pools.get_mut(&node) {
            let mut landing = pool.adopt(id, &agreed, now);
            // It is in the keyspace already.
            if core::mem::take(&mut landing.is_wanted) {
                pool.handle_prepared(id);
            }
            self.landed(id, node, landing, now);
        }
    }

    pub(super) fn handle_event(&mut self, id: ConnectionId, body: &[u8], now: Instant) {
        if !self.links.contains_key(&id) {
            return;
        }
        match Event::parse(&mut Reader::new(body)) {
            Ok(Event::TopologyChange { .. }) => {
                self.control
                    .note_change(Scope::TOPOLOGY, now, &mut self.rng);
            }
            Ok(Event::StatusChange { change, address }) => {
                self.control
                    .note_change(Scope::TOPOLOGY, now, &mut self.rng);
                self.status_changed(change, address.ip(), now);
            }
            Ok(Event::SchemaChange(_)) => {
                self.control.note_change(Scope::SCHEMA, now, &mut self.rng);
            }
            Ok(Event::ClientRoutesChange {
                connection_ids,
                host_ids,
                ..
            }) => {
                if self.routes.are_concerned(connection_ids, host_ids) {
                    self.control.note_change(Scope::ROUTES, now, &mut self.rng);
                }
            }
            Ok(Event::Other { name, .. }) => self.warn(warning!("unknown event {}", Quoted(name))),
            Err(error) => self.warn(warning!("an event cannot be read: {error}")),
        }
    }

    fn status_changed(&mut self, change: StatusChangeKind<'_>, address: IpAddr, now: Instant) {
        let topology = self.catalog.writer.topology();
        let is_meant = |(&node, pool): (&NodeIdx, &Pool)| {
            let own = topology.node(node).map(|node| node.address().ip());
            let is_it = own == Some(address) || pool.broadcast == Some(address);
            is_it.then_some(node)
        };
        let meant: Vec<NodeIdx> = self.pools.iter().filter_map(is_meant).gather();
        for node in meant {
            if let Some(pool) = self.pools.get_mut(&node) {
                match change {
                    StatusChangeKind::Up => pool.hint_up(now, &mut self.rng),
                    StatusChangeKind::Down => pool.hint_down(),
                    _ => {}
                }
            }
            self.note_liveness(node);
        }
    }
}
