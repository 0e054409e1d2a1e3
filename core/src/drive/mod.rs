//! The only async code: it pumps the state machines of the layers below over a [`Transport`].
//!
//! [`start`] makes a [`Session`] and its [`Driver`]. The driver yields a [`ConnectionTask`] for
//! each connection; the platform runs them where it likes. Nothing here spawns.

mod attempts;
mod barred;
mod batch;
mod cell;
mod connection_task;
mod driver;
mod driver_config;
mod exchange;
mod hub;
mod inbox;
mod life;
#[cfg(all(test, messina_loom))]
mod loom_models;
#[cfg(feature = "lwt-learning")]
mod lwt_learning;
mod outgoing;
mod pager;
mod pools;
mod preparing;
mod route;
mod rows;
mod session;
mod statement;
mod status;
mod tally;
#[cfg(feature = "targeting")]
mod targeting;
mod tracing;
pub mod transport;
pub(crate) mod wakers;
mod warm;

pub use batch::Batch;
pub use connection_task::ConnectionTask;
pub use driver::{Driver, start};
pub use pager::Pager;
pub use route::{Route, RouteTarget};
pub use rows::{QueryResult, RequestInfo, Rows};
pub use session::Session;
pub use statement::{Prepared, Statement, StatementOptions};
pub use status::{ConnectionStatus, NodeShards, NodeStatus, ShardAwareStats, Status, TableTablets};
pub use tally::ShardTally;
#[cfg(feature = "targeting")]
pub use targeting::StatementTarget;
pub use tracing::{Trace, TraceEvent};
pub use transport::{
    Clock, Endpoint, Link, Name, Resolved, Security, Steering, SteeringKind, Target, Timer,
    Transport,
};
