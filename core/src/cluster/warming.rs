//! How a session behaves that began with what an earlier one knew, until it has read the system
//! tables itself.
//!
//! It may be used when every known node is fully connected or has failed, at the latest after
//! [`HEAD_START`] with what is there. It reads nothing for another second, so that its first
//! requests wait for no question of its own; any sign of a change ends that pause. If by the end of
//! the head start no node has answered, or all have failed, the contact points are walked as in any
//! session, and what they tell counts. Not before all of that has failed does the session fail.

use alloc::vec::Vec;
use core::time::Duration;

use uuid::Uuid;

use super::ConnectionId;
use super::engine::{Engine, Owner, Phase};
use super::pool::Pool;
use super::prepared::PreparedStatement;
use super::warm_start::Features;
use crate::conn::extensions::Offer;
use crate::error::{Error, ErrorKind, PeerIncompatible};
use crate::sorted::SortedMap;
use crate::sync::Shared;
use crate::time::Instant;

/// What is to be remembered until the first reading has ended.
#[derive(Debug)]
pub(super) struct Warm {
    began: Instant,
    /// When the session was told that it can be used.
    ready_at: Option<Instant>,
    /// What nodes offered, by host id.
    features: SortedMap<Uuid, Features>,
    /// Why the contact points led nowhere.
    failure: Option<Error>,
    /// For whoever keeps statements.
    pub(super) statements: Vec<Shared<PreparedStatement>>,
}

impl Warm {
    pub(super) const fn new(began: Instant, features: SortedMap<Uuid, Features>) -> Self {
        Self {
            began,
            ready_at: None,
            features,
            failure: None,
            statements: Vec::new(),
        }
    }

    const fn head_start_ends(&self) -> Instant {
        self.began.saturating_add(HEAD_START)
    }
}

impl Engine {
    /// Statements that need not be prepared again, to be asked for once.
    pub fn take_statements(&mut self) -> Vec<Shared<PreparedStatement>> {
        let statements = self.warm.as_mut().map(|warm| &mut warm.statements);
        statements.map(core::mem::take).unwrap_or_default()
    }

    /// Whether the session lives on what an earlier one knew.
    pub const fn is_warm(&self) -> bool {
        self.warm.is_some()
    }

    /// Whether nothing of the cluster has been reached yet: a failure now ends the session.
    pub(super) fn is_unproven(&self) -> bool {
        let is_waiting = self.phase == Phase::Known && self.warm.is_some();
        self.phase == Phase::FirstContact || is_waiting
    }

    /// Whether a session that can be used should be told so by now.
    pub(super) fn may_be_ready(&self) -> bool {
        let Some(warm) = &self.warm else {
            return true;
        };
        let is_settled = |pool: &Pool| !pool.is_up() || pool.has_what_it_gets(self.walked_at);
        let is_settled = self.pools.values().all(is_settled);
        // With no node to be contacted nothing would come of it but a late start.
        !self.is_all_barred() && (is_settled || self.walked_at >= warm.head_start_ends())
    }

    /// Whether a node may yet be reached by what is known.
    fn has_hope(&self) -> bool {
        let may_come = |pool: &Pool| pool.is_called && !pool.is_cut_off() && pool.is_up();
        self.pools.values().any(may_come)
    }

    pub(super) fn warm_is_ready(&mut self) {
        let now = self.walked_at;
        if let Some(warm) = &mut self.warm {
            warm.ready_at = Some(now);
        }
    }

    /// Until when the control role is left vacant, if that is so now.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        let warm = self.warm.as_ref()?;
        if self.control.is_noted() || !self.settle.is_idle() {
            return None;
        }
        Some(
            warm.ready_at
                .map_or(Instant::FAR_FUTURE, |at| at.saturating_add(REST)),
        )
    }

    /// When to turn to the contact points, as long as no node is reached.
    pub(super) fn warm_contact_at(&self) -> Option<Instant> {
        let warm = self.warm.as_ref().filter(|warm| warm.ready_at.is_none())?;
        if warm.failure.is_some() {
            return Some(Instant::FAR_FUTURE);
        }
        Some(match self.has_hope() {
            true => warm.head_start_ends(),
            false => warm.began,
        })
    }

    /// The contact points led nowhere: kept for as long as a known node may still answer.
    pub(super) fn warm_contact_failed(&mut self, error: Error) {
        match &mut self.warm {
            Some(warm) if self.phase == Phase::Known => warm.failure = Some(error),
            _ => self.fail(error),
        }
    }

    pub(super) fn step_warm(&mut self, now: Instant) {
        let Some(warm) = self.warm.as_ref().filter(|_| self.phase == Phase::Known) else {
            return;
        };
        let Some(failure) = &warm.failure else { return };
        if !self.has_hope() || now >= self.warm_gives_up_at(warm) {
            let failure = failure.clone();
            self.fail(failure);
        }
    }

    pub(super) fn warm_next_at(&self, consider: &mut dyn FnMut(Option<Instant>)) {
        let Some(warm) = &self.warm else { return };
        if warm.ready_at.is_none() {
            consider(Some(warm.head_start_ends()));
        }
        if warm.failure.is_some() {
            consider(Some(self.warm_gives_up_at(warm)));
        }
        consider(self.rests_until().filter(|at| *at < Instant::FAR_FUTURE));
    }

    fn warm_gives_up_at(&self, warm: &Warm) -> Instant {
        let connect = self.config.timeouts.connect;
        warm.head_start_ends().saturating_add(connect)
    }

    /// What the node of a connection is likely to offer.
    pub(super) fn assumed_offer(&self, owner: Owner) -> Option<Offer> {
        let (Owner::Pool(node), Some(warm)) = (owner, &self.warm) else {
            return None;
        };
        let host_id = self.pools.get(&node)?.host_id;
        warm.features.get(&host_id).map(|features| features.offer())
    }

    /// The node offers something else than before. That is no failure: it is connected to again,
    /// without an assumption. Says whether that was it.
    pub(super) fn assumption_failed(
        &mut self,
        id: ConnectionId,
        owner: Owner,
        error: &Error,
    ) -> bool {
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
        let Owner::Pool(node) = owner else {
            return false;
        };
        let Some(pool) = self.pools.get_mut(&node).filter(|_| error.kind() == kind) else {
            return false;
        };
        pool.forget(id);
        if let Some(warm) = &mut self.warm {
            warm.features.remove(&pool.host_id);
        }
        true
    }
}

/// How long known nodes have before what is there has to do, and before the contact points.
const HEAD_START: Duration = Duration::from_millis(500);

/// How long a session that can be used reads nothing.
const REST: Duration = Duration::from_secs(1);
