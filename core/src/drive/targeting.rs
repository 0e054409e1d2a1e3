//! Where a request may go: by the plan of the session's policy, which a policy of the user's own
//! may change; or to one node or shard that the statement names, and nowhere else.
//!
//! The user's object is called with snapshots that are held, not read under a lock.

use uuid::Uuid;

use super::outgoing::Outgoing;
use super::pools::Pools;
use crate::error::{Error, ErrorKind, TargetProblem};
use crate::routing::{Plan, PlanContext, Target, View, plan};

/// The only place a statement may go to.
///
/// The request is never sent elsewhere: not by a retry, not because the connection is full. If it
/// cannot go there it fails with [`ErrorKind::Target`], and nothing was sent; also where shards are
/// opened at their first use, which this is then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementTarget {
    host_id: Uuid,
    shard: Option<u16>,
}

impl StatementTarget {
    /// Any connection to this node.
    pub const fn node(host_id: Uuid) -> Self {
        Self {
            host_id,
            shard: None,
        }
    }

    /// A connection to this shard of this node.
    pub const fn shard(host_id: Uuid, shard: u16) -> Self {
        Self {
            host_id,
            shard: Some(shard),
        }
    }

    /// The plan that has this target alone; none if it cannot be reached.
    fn plan(self, view: &View, pools: &Pools, skip: usize) -> Plan {
        match self.find(view, pools) {
            Ok(target) if skip == 0 => Plan::of_one(target),
            _ => Plan::EMPTY,
        }
    }

    fn find(self, view: &View, pools: &Pools) -> Result<Target, TargetProblem> {
        let topology = view.topology();
        let node = topology.node_by_host_id(self.host_id);
        let node = node.and_then(|idx| topology.node(idx));
        let node = node.ok_or(TargetProblem::UnknownNode)?;
        let mut connections = pools.of_node(node.idx());
        let Some(number) = self.shard else {
            let is_connected = connections.next().is_some();
            let target = Target::custom(node.idx(), None);
            return is_connected
                .then_some(target)
                .ok_or(TargetProblem::NotConnected);
        };
        let shard = node.shard_map().and_then(|shards| shards.check(number));
        let shard = match (shard, connections.next()) {
            (Some(shard), _) => shard,
            (None, Some(_)) => return Err(TargetProblem::UnknownShard),
            // How it shards is told by its first connection.
            (None, None) => return Err(TargetProblem::NotConnected),
        };
        let is_connected = pools
            .of_node(node.idx())
            .any(|(held, _)| held == Some(shard));
        let target = Target::custom(node.idx(), Some(shard));
        is_connected
            .then_some(target)
            .ok_or(TargetProblem::NotConnected)
    }
}

impl Outgoing<'_> {
    /// The plan of a statement that names its target, or of a session with a policy of its
    /// user's own; `None` where neither is so.
    pub(super) fn aimed_plan(&self, view: &View, skip: usize) -> Option<Plan> {
        let config = self.hub.config();
        if let Some(only) = self.only {
            return Some(self.hub.pools().with(|pools| only.plan(view, pools, skip)));
        }
        let custom = config.custom_policy.as_ref()?;
        let pools = self.hub.pools().load();
        let mut found = plan(
            view,
            &self.route,
            &config.policy,
            &*pools,
            self.entropy,
            skip,
        );
        let context = PlanContext {
            view,
            request: &self.route,
            load: &*pools,
            entropy: self.entropy,
            skip,
        };
        custom.revise(&context, &mut found);
        Some(found)
    }

    /// A shard that is opened at its first use is asked for, so that the next try finds it.
    fn wish(&self, only: StatementTarget) {
        let target = self.hub.view().with(|view| {
            let topology = view.topology();
            let node = topology.node(topology.node_by_host_id(only.host_id)?)?;
            let shard = node.shard_map()?.check(only.shard?)?;
            Some(Target::custom(node.idx(), Some(shard)))
        });
        if let Some(target) = target {
            drop(self.hub.pick(&target, self.entropy));
        }
    }

    /// Why the target that the statement names was not reached.
    pub(super) fn target_problem(&self) -> Option<Error> {
        let only = self.only?;
        let hub = self.hub;
        let found = hub
            .view()
            .with(|view| hub.pools().with(|pools| only.find(view, pools)));
        // It was connected a moment ago and is again.
        let problem = found.err().unwrap_or(TargetProblem::NotConnected);
        self.wish(only);
        let text = match only.shard {
            Some(shard) => alloc::format!("shard {shard} of node {}", only.host_id),
            None => alloc::format!("node {}", only.host_id),
        };
        Some(Error::with_text(ErrorKind::Target(problem), text))
    }
}
