//! Nodes of a simulated cluster: their codec, their CQL, their schema, rows, tablets and ring.
//!
//! Sans-IO: bytes of a connection go in, bytes come out, time is an argument. Nothing here depends
//! on the driver, so that the two cannot share a mistake. Behaviour follows ScyllaDB's native
//! protocol 3 and 4 with its extensions; what is not supported is refused with a CQL error.

mod client_routes;
mod cluster;
mod codec;
mod connection;
mod cql;
mod error;
mod execute;
mod lean;
mod options;
mod plan;
mod rate_limit;
mod reply;
mod ring;
mod route;
mod schema;
mod serve;
mod stats;
mod store;
mod system;
mod tablets;
mod token;
mod tracing;
mod value;

pub use client_routes::{ClientRoute, ClientRouteChange};
pub use cluster::{Cluster, ControlError, NodeEvent};
pub use codec::Consistency;
pub use connection::{ClientTls, ConnectionId, Listener};
pub use error::CqlError;
pub use options::{Credentials, NodeOptions, Options, TabletsMode};
pub use stats::{Counters, NodeStats, ShardStats, Stats};
pub use tablets::{Replica, Tablet};
