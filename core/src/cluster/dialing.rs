//! Who is connected to next: contact points, then what pools lack.
//!
//! At most `Limits::connecting` connects are under way at once, whoever wants them. A node without
//! any connection comes before one that only lacks shards, and each node gets its turn, so that
//! one that does not answer holds up nobody.

use alloc::vec::Vec;

use super::contact::{Contact, ContactStep, shuffle};
use super::control::{EVENTS, Role};
use super::engine::{Engine, Link, Owner, Phase};
use super::pool::Pool;
use super::warnings::warning;
use super::{ConnectionId, LookupId, Output};
use crate::gather::Gather;
use crate::routing::NodeIdx;
use crate::target::{Endpoint, Steering, Target};
use crate::time::Instant;

impl Engine {
    pub(super) fn start_contact(&mut self, now: Instant) {
        let mut points = self.config.contact_points.clone();
        shuffle(&mut points, &mut self.rng);
        let parallel = self.config.limits.connecting;
        let timeout = self.config.timeouts.connect;
        self.contact = Some(Contact::new(points, parallel, timeout, now));
    }

    pub(super) fn step_contact(&mut self, now: Instant) {
        if self.contact.is_none() && self.recontact_at().is_some_and(|at| at <= now) {
            self.start_contact(now);
        }
        loop {
            let has_place = self.places_left().min(self.total_left()) > 0;
            let Some(contact) = &mut self.contact else {
                return;
            };
            match contact.next_step(now, has_place) {
                None => return,
                Some(ContactStep::Resolve(name, port)) => {
                    let id = LookupId(self.next_lookup);
                    self.next_lookup = self.next_lookup.wrapping_add(1);
                    contact.looking_up(id, name.clone(), port);
                    self.outputs.push_back(Output::Resolve { id, name });
                }
                Some(ContactStep::Connect(endpoint, deadline)) => {
                    let dialed = endpoint.clone();
                    let id = self.connect(Owner::Contact, endpoint, Steering::None, deadline);
                    if let Some(contact) = &mut self.contact {
                        contact.dialing(id, dialed, self.version.current());
                    }
                }
                Some(ContactStep::Exhausted) => return self.end_contact(now),
            }
        }
    }

    /// Nothing is left to try.
    pub(super) fn end_contact(&mut self, now: Instant) {
        let Some(contact) = self.contact.take() else {
            return;
        };
        let error = contact.into_error();
        let is_contact =
            |(id, link): (&ConnectionId, &Link)| (link.owner == Owner::Contact).then_some(*id);
        let left: Vec<ConnectionId> = self.links.iter().filter_map(is_contact).gather();
        for id in left {
            self.close(id, false, now);
        }
        if self.is_unproven() {
            return self.warm_contact_failed(error);
        }
        self.control.backoff.failed(now, now, &mut self.rng);
        self.warn(warning!("contact points: {error}"));
    }

    /// When the contact points are to be tried again, because every known address has failed for
    /// a while.
    pub(super) fn recontact_at(&self) -> Option<Instant> {
        let Role::Vacant(since) = self.control.role else {
            return None;
        };
        let is_lost = self.phase != Phase::FirstContact
            && self.contact.is_none()
            && !self.pools.values().any(Pool::has_open);
        if let Some(at) = self.warm_contact_at() {
            return is_lost.then_some(at);
        }
        let at = since.saturating_add(self.config.timeouts.reconnect_max);
        let retry = self.control.backoff.retry_at().unwrap_or(at);
        is_lost.then_some(at.max(retry))
    }

    /// Connects what is missing, as many at once as the limit allows: nodes without any
    /// connection first, each node in its turn.
    pub(super) fn fill_pools(&mut self, now: Instant) {
        if self.phase == Phase::FirstContact {
            return;
        }
        // The walk over the contact points needs one: without it nobody may be reached at all.
        let reserved = self.contact.as_ref().is_some_and(Contact::needs_place);
        let mut left = self.places_left().saturating_sub(usize::from(reserved));
        for only_unreached in [true, false] {
            let mut order = self.turns();
            while left > 0 && !order.is_empty() {
                let mut still = Vec::with_capacity(order.len());
                for node in order {
                    if left == 0 {
                        break;
                    }
                    if self.fill_one(node, only_unreached, now) {
                        left -= 1;
                        still.push(node);
                    }
                }
                order = still;
            }
        }
    }

    /// How many more connects may be under way.
    fn places_left(&self) -> usize {
        let connecting = |link: &&Link| link.agreed.is_none();
        let under_way = self.links.values().filter(connecting).count();
        let max = self.config.limits.connecting.max(1);
        max.saturating_sub(under_way)
    }

    /// All nodes, beginning after the one that connected last.
    fn turns(&self) -> Vec<NodeIdx> {
        let mut order: Vec<NodeIdx> = self.pools.keys().copied().gather();
        let after = |node: &NodeIdx| Some(*node) <= self.turn;
        let start = order.partition_point(after);
        order.rotate_left(start);
        order
    }

    fn fill_one(&mut self, node: NodeIdx, only_unreached: bool, now: Instant) -> bool {
        let Some(pool) = self.pools.get_mut(&node) else {
            return false;
        };
        if only_unreached && pool.has_open() {
            return false;
        }
        if !pool.may_lack(now) || !self.has_room(node, now) {
            return false;
        }
        let pool = self.pools.get_mut(&node);
        let Some(dial) = pool.and_then(|pool| pool.next_connect(now, &mut self.rng)) else {
            return false;
        };
        self.turn = Some(node);
        let deadline = now.saturating_add(self.config.timeouts.connect);
        let id = self.connect(Owner::Pool(node), dial.endpoint, dial.steering, deadline);
        if let Some(pool) = self.pools.get_mut(&node) {
            pool.started(id, dial.wish, now);
        }
        true
    }

    /// Opens a connection.
    fn connect(
        &mut self,
        owner: Owner,
        endpoint: Endpoint,
        steering: Steering,
        deadline: Instant,
    ) -> ConnectionId {
        let id = ConnectionId(self.next_connection);
        self.next_connection = self.next_connection.wrapping_add(1);
        self.counters.connects = self.counters.connects.saturating_add(1);
        let is_contact = owner == Owner::Contact;
        let link = Link {
            owner,
            agreed: None,
            is_registered: is_contact,
        };
        self.links.insert(id, link);
        let mut target = Target::new(endpoint, deadline);
        target.steering = steering;
        target.server_name.clone_from(&self.config.server_name);
        self.outputs.push_back(Output::Connect {
            id,
            target,
            events: if is_contact { EVENTS } else { &[] },
            version: self.version.current(),
            may_rise: self.version.may_rise(),
            assumed: self.assumed_offer(owner),
        });
        id
    }
}
