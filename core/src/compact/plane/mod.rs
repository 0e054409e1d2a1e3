//! What is known of the cluster, and where requests go: a control plane for one owner.
//!
//! It does what [`cluster::Engine`](crate::cluster::Engine) and [`routing::View`](crate::routing::View)
//! do for a server, in a tenth of their code: members, tablets, leaders, and the same plans, target by
//! target (a test holds both side by side). It knows no connection, no clock and no randomness: bodies
//! of answers and events go in, questions to a node and plans come out, chance is passed in.
//!
//! | module | what it is |
//! |---|---|
//! | `members` | the nodes, and how far each is |
//! | `tables` | the tables that statements use, and their keyspaces |
//! | `tablets` | what answers taught, bounded in bytes |
//! | `payload` | the bytes that teach a tablet |
//! | `reading` | questions to the system tables |
//! | `answers` | what their answers, and events, mean |
//! | `rows` | answers of system tables as cells by name |
//! | `planning` | which member is tried for a request, and which next |
//! | `ring` | replicas of tables without tablets; feature `compact-ring` |
//! | `views` | all of it for people and tools, and for a later session |
//!
//! How the owner goes about it:
//!
//! - A control link was chosen: [`Plane::restart`]. While [`Plane::is_due`], [`Plane::put_question`]
//!   writes the body of a QUERY; several may be under way. Every answer goes to
//!   [`Plane::handle_answer`], every failure to [`Plane::handle_failure`], events to
//!   [`Plane::handle_event`]. When to ask (a pause behind events, again every minute by
//!   [`Plane::read_again`]) is the owner's choice, since there is no clock here.
//! - Members are numbered. A number means the same host until [`Changed::Members`] says that it is
//!   not present any more; from the next reading on another host may have it. So links are compared
//!   with their members after each [`Changed::Members`]. Members have no port: it is the contact
//!   point's, or the one of its shards.
//! - A statement was prepared: [`Plane::table`] with the names that it came with, and
//!   [`Plane::partitioner`] for its tokens. Then [`Plane::choose`] and [`Plane::probe`] for each
//!   request, [`Plane::learn`] for each payload. These three allocate nothing, but for a tablet that is new.
//! - To be saved: [`Plane::members`], [`Plane::tables`], [`Plane::tablets`]; and put back by
//!   [`Plane::put_member`], [`Plane::table`], [`Plane::put_kind`], [`Plane::put_tablet`].
//!
//! What differs from `routing`: of tablets the first 16 replicas are known. Table ids are not waited
//! for: a table that was made anew while no link told of it keeps its tablets until its id was read, and
//! their first use corrects them; without feature `table-ids` that alone does. Tables
//! are known by name and not by id, so a payload on its way while its table is made anew is stored
//! for the new one, and corrected likewise. Members without tokens are told from others only where the
//! ring is read. Members beyond the limit are left out as they come, not by distance. Of several rows
//! with one host id the lowest address counts, whatever was known. The partitioner of a table is told
//! by its name: only logs of changes have one of their own.

mod answers;
mod members;
mod payload;
mod planning;
mod reading;
#[cfg(any(test, feature = "compact-ring"))]
mod ring;
mod rows;
mod tables;
mod tablets;
#[cfg(test)]
mod tests;
mod views;

use alloc::vec::Vec;
use core::cell::Cell;
use uuid::Uuid;

use self::members::Cluster;
use self::reading::Reading;
use self::tables::{Keyspace, Table};
use self::tablets::Tablets;
use crate::config::{Config, Limits};
use crate::routing::Policy;

pub use self::members::{Member, MemberRow};
pub use self::planning::{Candidate, LoadOf, Route};
pub use self::reading::{Changed, Question};
pub use self::tables::{KeyspaceKind, TableKey};
pub use self::tablets::Learned;
pub use self::views::{TableView, TabletView};

/// Bounds of what is remembered. What does not fit is left out and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "filled in from the limits of a configuration"
)]
pub struct PlaneLimits {
    /// Nodes; at most 32,767 count.
    pub members: u16,
    /// Tables that statements use.
    pub tables: u16,
    /// Bytes of tablets; above it the least used are dropped.
    pub tablet_bytes: usize,
}

impl PlaneLimits {
    /// The part of a session's limits that counts here: as many tables as statements.
    pub fn new(limits: &Limits) -> Self {
        Self {
            members: limits.nodes,
            tables: u16::try_from(limits.prepared_statements).unwrap_or(u16::MAX),
            tablet_bytes: limits.tablet_bytes,
        }
    }
}

/// What is known of the cluster.
#[derive(Debug)]
pub struct Plane {
    limits: PlaneLimits,
    policy: Policy,
    cluster: Cluster,
    keyspaces: Vec<Keyspace>,
    tables: Vec<Table>,
    tablets: Tablets,
    /// Hosts that tablets name and that are no members yet; nil where there is none.
    strangers: Vec<Uuid>,
    reading: Reading,
    #[cfg(any(test, feature = "compact-ring"))]
    ring: ring::Ring,
    degraded: Cell<u32>,
}

/// Figures of a plane. All but gauges go round at their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaneCounters {
    /// Requests with a token that were planned without knowing a replica: their tablet was not
    /// learned yet, or their table does not fit or cannot be routed.
    pub degraded: u32,
    /// Members held now.
    pub members: usize,
    /// Nodes that did not fit at the last reading.
    pub members_left_out: u32,
    /// Tablets held now.
    pub tablets: usize,
    /// Bytes that are reserved for them.
    pub tablet_bytes: usize,
    /// Tablets dropped because of the bound.
    pub tablets_dropped: u32,
    /// Tables that statements wanted and that did not fit.
    pub tables_left_out: u32,
}

impl Plane {
    /// Knows nothing yet. Uses limits and policy of the configuration.
    pub fn new(config: &Config) -> Self {
        Self::with_limits(PlaneLimits::new(&config.limits), config.policy.clone())
    }

    /// The same with these.
    pub fn with_limits(limits: PlaneLimits, policy: Policy) -> Self {
        Self {
            cluster: Cluster::default(),
            keyspaces: Vec::new(),
            tables: Vec::new(),
            tablets: Tablets::new(limits.tablet_bytes),
            strangers: Vec::new(),
            reading: Reading::default(),
            #[cfg(any(test, feature = "compact-ring"))]
            ring: ring::Ring::default(),
            degraded: Cell::new(0),
            limits,
            policy,
        }
    }

    /// Figures of what is known and of what did not fit.
    pub fn counters(&self) -> PlaneCounters {
        let present = self
            .cluster
            .members
            .iter()
            .filter(|member| member.is_present());
        PlaneCounters {
            degraded: self.degraded.get(),
            members: present.count(),
            members_left_out: self.cluster.left_out,
            tablets: self.tablets.count(),
            tablet_bytes: self.tablets.bytes(),
            tablets_dropped: self.tablets.dropped(),
            tables_left_out: self.reading.tables_left_out,
        }
    }
}
