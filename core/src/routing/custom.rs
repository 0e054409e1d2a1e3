//! Policies of a user's own: what one sees, and how it changes a plan.
//!
//! A custom policy works on the plan that was made already, in place. Nothing is allocated for
//! it, and a session without one does not pay for it.

use super::plan::{Plan, Reason, Source, Target};
use super::planner::RouteRequest;
use super::{Load, NodeIdx, ShardIdx, View};
use core::fmt;

/// A policy of your own: reorders, filters or replaces the targets of each request.
///
/// The plan it gets is what the session's [`Policy`](super::Policy) makes of the request: leader,
/// replicas and other nodes in order of preference, with the less loaded of two in front. It is
/// called for every request, and once more for each further part of a plan that is longer than
/// [`Plan::TARGETS_MAX`]; it must be quick, and must not wait for anything. It can never reach a
/// node to which there is no connection, so filters hold whatever it says. A leader that it puts
/// behind another node still gets the request, one hop later.
///
/// ```
/// use messina_core::routing::{CustomPolicy, Plan, PlanContext};
///
/// /// Leaves a rack alone while it is being worked on, unless nothing else is left.
/// #[derive(Debug)]
/// struct Spare(&'static str);
///
/// impl CustomPolicy for Spare {
///     fn revise(&self, context: &PlanContext<'_>, plan: &mut Plan) {
///         let topology = context.view().topology();
///         let is_spared = |node| {
///             let node = topology.node(node);
///             node.is_some_and(|node| topology.rack_name(node.rack()) == self.0)
///         };
///         // A stable sort by a flag would do, but rotating needs no memory.
///         let targets = plan.targets_mut();
///         for at in (0..targets.len()).rev() {
///             if is_spared(targets[at].node) {
///                 targets[at..].rotate_left(1);
///             }
///         }
///     }
/// }
///
/// let mut config = messina_core::config::Config::server();
/// config.custom_policy = Some(std::sync::Arc::new(Spare("rack2")));
/// ```
pub trait CustomPolicy: Send + Sync {
    /// Changes the plan of a request.
    fn revise(&self, context: &PlanContext<'_>, plan: &mut Plan);
}

/// What a [`CustomPolicy`] may look at.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    pub(crate) view: &'a View,
    pub(crate) request: &'a RouteRequest,
    pub(crate) load: &'a dyn Load,
    pub(crate) entropy: u64,
    pub(crate) skip: usize,
}

impl<'a> PlanContext<'a> {
    /// Nodes, tables and learned tablets.
    pub const fn view(&self) -> &'a View {
        self.view
    }

    /// The request: its table, token and the level that is sent.
    pub const fn request(&self) -> &'a RouteRequest {
        self.request
    }

    /// Connections and requests in flight.
    pub const fn load(&self) -> &'a dyn Load {
        self.load
    }

    /// A number drawn for this request, the same for all parts of its plan.
    pub const fn entropy(&self) -> u64 {
        self.entropy
    }

    /// How many targets stood in the parts of the plan before this one; 0 for the first part.
    pub const fn skip(&self) -> usize {
        self.skip
    }
}

impl fmt::Debug for PlanContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanContext")
            .field("request", self.request)
            .field("entropy", &self.entropy)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// A target that somebody chose by name.
    pub(crate) const fn custom(node: NodeIdx, shard: Option<ShardIdx>) -> Self {
        Self {
            node,
            shard,
            reason: Reason::Custom,
        }
    }
}

impl Plan {
    /// No target.
    pub(crate) const EMPTY: Self = Self {
        targets: heapless::Vec::new(),
        source: Source::None,
        leader: None,
        listed: 0,
    };

    /// One target and no more.
    pub(crate) fn of_one(target: Target) -> Self {
        let mut plan = Self::EMPTY;
        // It is empty.
        let _fits = plan.targets.push(target);
        plan
    }
}

/// How a custom policy changes a plan.
impl Plan {
    /// The targets, to be put into another order.
    pub fn targets_mut(&mut self) -> &mut [Target] {
        &mut self.targets
    }

    /// Keeps the targets of which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&Target) -> bool) {
        self.targets.retain(keep);
    }

    /// Adds a target before all others; the last one goes if there are too many. Nodes and shards
    /// without a connection are passed over when the request is sent.
    pub fn prefer(&mut self, node: NodeIdx, shard: Option<ShardIdx>) {
        if self.targets.is_full() {
            self.targets.pop();
        }
        // There is room now.
        let _fits = self.targets.insert(0, Target::custom(node, shard));
    }

    /// Ends the plan here: no further part of it will be asked for.
    pub const fn end(&mut self) {
        self.listed = 0;
    }
}
