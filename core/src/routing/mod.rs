//! Where a request should go: tokens, shards, tablets, the vnode ring and the planner.
//!
//! Two sides. The control plane owns a [`ViewWriter`], tells it what it discovered (nodes and
//! keyspaces) and publishes [`View`]s. The data plane reads the current view: a bound key becomes
//! a [`Token`], [`plan`] turns it into targets and [`probe`] into the version block of the request;
//! tablets that answers bring go into the [`TabletStore`], the one thing with a lock here. Readers
//! never lock, and nothing here knows of connections, time or I/O.
//!
//! Facts of the protocol: ScyllaDB's documents on sharding and on the tablet routing extensions;
//! the placement rules of the replication strategies are Cassandra's.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

#[cfg(feature = "targeting")]
mod custom;
mod draw;
mod host_filter;
mod leadership;
mod located;
mod murmur3;
mod plan;
mod planner;
mod policy;
mod ring;
mod shard;
mod tablet;
mod tablet_cache;
mod tablet_payload;
mod tablet_store;
mod tablet_table;
mod token;
mod topology;
mod view;
mod view_writer;

#[cfg(feature = "targeting")]
pub use custom::{CustomPolicy, PlanContext};
pub use host_filter::{Host, HostFilter};
pub use leadership::{Leadership, leadership};
pub use plan::{Plan, Reason, Source, Target};
pub use planner::{RouteRequest, plan};
pub(crate) use planner::{is_dc_local, needs_leader};
pub use policy::{Load, Policy};
pub use ring::ReplicationStrategy;
pub use shard::{PortRange, ShardIdx, ShardMap, ShardMapError, SourcePorts};
pub use tablet::{LearnedReplica, LearnedTablet, TabletVersion, VersionBlock};
pub use tablet_cache::{Learned, TabletStats};
pub use tablet_payload::{PayloadError, PayloadKind, parse_payload};
pub use tablet_store::TabletStore;
pub use token::{KeyError, KeyHasher, KeyShape, Partitioner, Token};
pub use topology::{DcIdx, Node, NodeIdx, NodeSpec, NodesChange, RackIdx, Topology};
pub use view::{KeyspaceConsistency, Table, TableRef, View, probe};
pub use view_writer::{KeyspaceSpec, RoutingLimits, TableSpec, ViewWriter};
