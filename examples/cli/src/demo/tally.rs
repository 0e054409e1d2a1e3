//! Counting where requests went, by those who received them and by the one who sent them.

use core::ops::{AddAssign, Sub};

use hdrhistogram::Histogram;
use messina_core::drive::{RequestInfo, Route};
use messina_core::routing::{Reason, Source};
use messina_sim::node::Counters;

use crate::failure::Failure;
use crate::latency;

/// Requests, and how many of them arrived where they belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    pub(super) requests: u64,
    pub(super) owner_node: u64,
    pub(super) owner_shard: u64,
    pub(super) needing_leader: u64,
    pub(super) leader: u64,
    pub(super) forwarded: u64,
}

impl Arrivals {
    /// What nodes have counted.
    pub(super) const fn of_nodes(counters: Counters) -> Self {
        Self {
            requests: counters.requests,
            owner_node: counters.at_owner_node,
            owner_shard: counters.at_owner_shard,
            needing_leader: counters.needing_leader,
            leader: counters.at_leader,
            forwarded: counters.forwarded,
        }
    }

    /// One request as the driver sees it: what it believed when it sent it, and where it was
    /// answered.
    pub(super) fn of_driver(route: &Route, info: RequestInfo) -> Self {
        let plan = &route.plan;
        let is_at = |node, shard| {
            let at_shard = shard == info.shard || info.shard.is_none();
            (node == info.node, node == info.node && at_shard)
        };
        let (owner_node, owner_shard) = match plan.leader() {
            Some((node, shard)) => is_at(node, shard),
            None => plan
                .targets()
                .iter()
                .filter(|target| target.reason != Reason::Any && plan.source() != Source::None)
                .map(|target| is_at(target.node, target.shard))
                .fold((false, false), |seen, at| (seen.0 | at.0, seen.1 | at.1)),
        };
        let leader = plan.leader();
        Self {
            requests: 1,
            owner_node: owner_node.into(),
            owner_shard: owner_shard.into(),
            needing_leader: leader.is_some().into(),
            leader: leader.is_some_and(|(node, _)| node == info.node).into(),
            forwarded: 0,
        }
    }

    pub(super) fn owner_node_share(&self) -> f64 {
        share(self.owner_node, self.requests)
    }

    pub(super) fn owner_shard_share(&self) -> f64 {
        share(self.owner_shard, self.requests)
    }

    /// `None` if no request needed a leader.
    pub(super) fn leader_share(&self) -> Option<f64> {
        (self.needing_leader > 0).then(|| share(self.leader, self.needing_leader))
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

impl AddAssign for Arrivals {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.owner_node += other.owner_node;
        self.owner_shard += other.owner_shard;
        self.needing_leader += other.needing_leader;
        self.leader += other.leader;
        self.forwarded += other.forwarded;
    }
}

impl Sub for Arrivals {
    type Output = Self;

    /// What came since an earlier count.
    fn sub(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            owner_node: self.owner_node.saturating_sub(before.owner_node),
            owner_shard: self.owner_shard.saturating_sub(before.owner_shard),
            needing_leader: self.needing_leader.saturating_sub(before.needing_leader),
            leader: self.leader.saturating_sub(before.leader),
            forwarded: self.forwarded.saturating_sub(before.forwarded),
        }
    }
}

/// What a stretch of work came to.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// By the nodes, where they can be asked.
    pub(super) nodes: Option<Arrivals>,
    /// By the driver.
    pub(super) driver: Arrivals,
    pub(super) latency_us: Histogram<u64>,
    pub(super) failed: u64,
    pub(super) first_failure: Option<Failure>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            nodes: None,
            driver: Arrivals::default(),
            latency_us: latency::histogram(),
            failed: 0,
            first_failure: None,
        }
    }

    /// The nodes' figures or, where there are none, the driver's.
    pub(super) fn seen(&self) -> Arrivals {
        self.nodes.unwrap_or(self.driver)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.driver += other.driver;
        if let Some(arrivals) = other.nodes {
            *self.nodes.get_or_insert_default() += arrivals;
        }
        // Both have the same bounds, so that adding cannot fail.
        let _ = self.latency_us.add(&other.latency_us);
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        self.first_failure.get_or_insert(failure);
    }
}
