//! Where a request would go and why: for people and tools, not for requests themselves.
//!
//! A route keeps the snapshot it was planned with, so all it tells fits together. Names and
//! replicas are looked up when asked for; a route that nobody looks into costs a plan.

use core::fmt;
use core::net::SocketAddr;

use uuid::Uuid;

use super::cell::Cell;
use super::outgoing::Outgoing;
use crate::cluster::kind::StatementKind;
use crate::cluster::prepared::PreparedStatement;
use crate::conn::extensions::TabletsRouting;
use crate::routing::{
    Leadership, LearnedTablet, Plan, Reason, ShardIdx, Source, TableRef, Target, Token, View,
    leadership,
};
use crate::sync::Shared;

/// Where a request would go.
#[derive(Clone)]
#[non_exhaustive]
pub struct Route {
    /// The token of its partition, if the statement's values give all of its key.
    pub token: Option<Token>,
    /// The targets, best first, and what told them.
    pub plan: Plan,
    /// Whether the plan begins with the leader of the tablet, and if not, why.
    pub leadership: Leadership,
    kind: StatementKind,
    is_lwt: bool,
    names: Option<(Shared<str>, Shared<str>)>,
    table: Option<TableRef>,
    view: Shared<View>,
}

/// A target of a route, with what is known of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteTarget<'a> {
    /// The node.
    pub host_id: Uuid,
    /// Where clients reach it.
    pub address: SocketAddr,
    /// The shard; `None` if any connection of the node will do.
    pub shard: Option<ShardIdx>,
    /// Its data centre.
    pub dc: &'a str,
    /// Its rack.
    pub rack: &'a str,
    /// Why it stands in the plan.
    pub reason: Reason,
}

impl Route {
    pub(super) fn new(request: &Outgoing<'_>, statement: &PreparedStatement) -> Self {
        let view = request.hub.view().load();
        let plan = request.plan_in(&view, 0);
        Self {
            token: request.route.token,
            leadership: judge(request, &view, &plan),
            plan,
            kind: statement.kind(),
            is_lwt: request.route.is_lwt,
            names: statement.table_name(),
            table: request.route.table,
            view,
        }
    }

    /// Whether the statement reads or writes rows, by its first word.
    pub const fn kind(&self) -> StatementKind {
        self.kind
    }

    /// Whether the server marked it as conditional.
    pub const fn is_lwt(&self) -> bool {
        self.is_lwt
    }

    /// The keyspace, if a marker or a result column names it.
    pub fn keyspace(&self) -> Option<&str> {
        self.names.as_ref().map(|(keyspace, _)| &**keyspace)
    }

    /// The table or view, if a marker or a result column names it.
    pub fn table(&self) -> Option<&str> {
        self.names.as_ref().map(|(_, table)| &**table)
    }

    /// What told the replicas.
    pub const fn source(&self) -> Source {
        self.plan.source()
    }

    /// The tablet that owns the token, if it was learned: range, version, replicas.
    pub fn tablet(&self) -> Option<LearnedTablet> {
        self.view.tablet(self.table?, self.token?)
    }

    /// The replica that coordinates the request, if it needs one and we know it.
    /// Its shard is `None` if the node is not known to have it.
    pub fn leader(&self) -> Option<(Uuid, Option<ShardIdx>)> {
        let (node, shard) = self.plan.leader()?;
        Some((self.view.topology().node(node)?.host_id(), shard))
    }

    /// The targets of the plan, best first.
    pub fn targets(&self) -> impl Iterator<Item = RouteTarget<'_>> {
        let targets = self.plan.targets().iter();
        targets.filter_map(|target| self.describe(target))
    }

    fn describe(&self, target: &Target) -> Option<RouteTarget<'_>> {
        let topology = self.view.topology();
        let node = topology.node(target.node)?;
        Some(RouteTarget {
            host_id: node.host_id(),
            address: node.address(),
            shard: target.shard,
            dc: topology.dc_name(node.dc()),
            rack: topology.rack_name(node.rack()),
            reason: target.reason,
        })
    }
}

/// What became of the leader: by the rules of planning, and by what only a session can tell.
fn judge(request: &Outgoing<'_>, view: &View, plan: &Plan) -> Leadership {
    let hub = request.hub;
    hub.pools().with(|pools| {
        let policy = &hub.config().policy;
        let leads = plan
            .targets()
            .first()
            .is_some_and(|first| first.reason == Reason::Leader);
        let tells = |cell: &Cell| cell.agreed().tablets == TabletsRouting::V2;
        let is_told = || {
            let mut nodes = view.topology().nodes();
            nodes.any(|node| pools.of_node(node.idx()).any(|(_, cell)| tells(cell)))
        };
        match leadership(view, &request.route, policy, pools) {
            Leadership::First if !leads => Leadership::Overruled,
            Leadership::UnknownTablet | Leadership::Unversioned if !is_told() => {
                Leadership::NotTold
            }
            other => other,
        }
    })
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("token", &self.token)
            .field("kind", &self.kind)
            .field("is_lwt", &self.is_lwt)
            .field("leadership", &self.leadership)
            .field("names", &self.names)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
