//! Which nodes are connected to at all, and what they may do.
//!
//! A node that the user's filter refuses, or that stands in a data centre which the policy never
//! contacts, is known but not connected to. A node without tokens owns no data: it is called in
//! when nothing else lives, and let go as soon as another node serves again. A cluster in which no
//! node has tokens of its own is used as it is.
//!
//! The contact point may be any of these. The connection that it gave keeps the control role for
//! as long as it works, and takes no request.

use alloc::vec::Vec;

use uuid::Uuid;

use super::ConnectionId;
use super::engine::{Engine, Phase};
use super::pool::Pool;
use super::warnings::warning;
use crate::config::Config;
use crate::routing::{Host, NodeIdx};
use crate::sync::assert_unlocked;
use crate::time::Instant;

/// What a node is to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// It takes requests.
    Serves,
    /// It takes requests when no other node can.
    StandsIn,
    /// It is never contacted.
    Barred,
}

/// Whether a node may ever be contacted by this session.
pub(super) fn may_contact(config: &Config, host: &Host<'_>) -> bool {
    let policy = &config.policy;
    let preferred = policy.preferred_dc.as_deref();
    let is_near = policy.dc_failover || preferred.is_none_or(|dc| dc == host.dc);
    let accepts = |filter: &crate::sync::Shared<dyn crate::routing::HostFilter>| {
        assert_unlocked();
        filter.accepts(host)
    };
    is_near && config.host_filter.as_ref().is_none_or(accepts)
}

impl Engine {
    /// Gives each known node its duty.
    pub(super) fn assign_duties(&mut self) {
        let topology = self.catalog.writer.topology();
        let owns_data = |host_id: Uuid| {
            let node = topology.node_by_host_id(host_id);
            let node = node.and_then(|node| topology.node(node))?;
            Some((node.is_enabled(), !node.tokens().is_empty()))
        };
        let known = |pool: &Pool| owns_data(pool.host_id).unwrap_or((false, false));
        let any_tokens = self.pools.values().any(|pool| known(pool).1);
        let duty = |pool: &Pool| match known(pool) {
            (false, _) => Duty::Barred,
            (true, false) if any_tokens => Duty::StandsIn,
            (true, _) => Duty::Serves,
        };
        for pool in self.pools.values_mut() {
            let duty = duty(pool);
            pool.set_duty(duty);
        }
        if self.is_all_barred() {
            self.warn(warning!(
                "no node of the cluster may be contacted: look at the policy's data centre and \
                 the host filter"
            ));
        }
    }

    /// Whether waiting for a node that serves is in vain.
    pub(super) fn is_all_barred(&self) -> bool {
        let barred = |pool: &Pool| pool.duty == Duty::Barred;
        self.pools.values().all(barred)
    }

    /// Whether requests have somewhere to go. With failover a node far away would do for some
    /// levels and not for others, so it counts only when no node near by may yet come.
    pub(super) fn may_serve(&self) -> bool {
        if self.is_all_barred() {
            return true;
        }
        let topology = self.catalog.writer.topology();
        let preferred = self.config.policy.preferred_dc.as_deref();
        let is_near = |node: NodeIdx| {
            let dc = topology.node(node).map(|node| topology.dc_name(node.dc()));
            preferred.is_none() || dc == preferred
        };
        let mut called = self.pools.iter().filter(|(_, pool)| pool.is_called);
        let (mut serves, mut waits) = (false, false);
        let is_served = called.any(|(&node, pool)| {
            let (is_open, is_near) = (pool.open().next().is_some(), is_near(node));
            serves |= is_open;
            waits |= is_near && pool.is_up() && !pool.is_cut_off();
            is_open && is_near
        });
        is_served || (serves && !waits)
    }

    /// Calls those that stand in when they are needed, and lets go of what is not.
    pub(super) fn call_pools(&mut self, now: Instant) {
        if self.phase == Phase::FirstContact {
            return;
        }
        let serving = self.pools.values().filter(|pool| pool.duty == Duty::Serves);
        // Events say that a node is up before it is; only a connection lets the others go.
        let (is_served, may_serve) = serving.fold((false, false), |(open, up), pool| {
            let is_open = pool.open().next().is_some();
            (open || is_open, up || pool.is_up())
        });
        let control = self.control.connection();
        let mut dismissed: Vec<ConnectionId> = Vec::new();
        for pool in self.pools.values_mut() {
            pool.is_called = match pool.duty {
                Duty::Serves => true,
                Duty::StandsIn if pool.is_called => !is_served,
                Duty::StandsIn => !may_serve,
                Duty::Barred => false,
            };
            if !pool.is_called {
                dismissed.extend(pool.dismiss(control));
            }
        }
        for id in dismissed {
            let is_open = self
                .links
                .get(&id)
                .is_some_and(|link| link.agreed.is_some());
            self.close(id, is_open, now);
        }
    }

    /// How many more connections there may be before the total is reached.
    pub(super) fn total_left(&self) -> usize {
        let max = self.config.pool.connections_max;
        max.map_or(usize::MAX, |max| max.get().saturating_sub(self.links.len()))
    }

    /// Whether the total allows a connection to this node. Nodes without any come first: for each
    /// of them a place is kept, and one that appears late gets it from the node that has most. Of
    /// the others those with few come first, as long as they get more.
    pub(super) fn has_room(&mut self, node: NodeIdx, now: Instant) -> bool {
        if self.config.pool.connections_max.is_none() {
            return true;
        }
        let without = |pool: &Pool| pool.is_called && pool.all().next().is_none();
        let is_first = self.pools.get(&node).is_some_and(without);
        if !is_first {
            let count = |pool: &Pool| pool.all().count();
            let own = self.pools.get(&node).map_or(0, count);
            let comes_first = |pool: &Pool| count(pool) < own && pool.connecting().next().is_some();
            let kept = self.pools.values().filter(|pool| without(pool)).count();
            return self.total_left() > kept && !self.pools.values().any(comes_first);
        }
        self.total_left() > 0 || self.make_room(now)
    }

    /// Takes a connection away from the node that has most.
    fn make_room(&mut self, now: Instant) -> bool {
        let control = self.control.connection();
        let richest = self
            .pools
            .values_mut()
            .max_by_key(|pool| pool.all().count());
        let spared = richest.and_then(|pool| pool.spare_one(control));
        let Some(id) = spared else {
            self.warn(warning!(
                "fewer connections are allowed than there are nodes: some are not used"
            ));
            return false;
        };
        let is_open = self
            .links
            .get(&id)
            .is_some_and(|link| link.agreed.is_some());
        self.close(id, is_open, now);
        true
    }
}
