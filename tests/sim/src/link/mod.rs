//! The whole driver over in-memory links, under virtual time.
//!
//! A [`World`] holds a simulated [`Cluster`](crate::node::Cluster), the links to it, and one queue
//! of things that will happen; [`SimTransport`] joins it to the driver's `Transport`;
//! [`Executor`] runs tasks in an order drawn from the seed and lets the clock jump to the next
//! event when nobody has anything to do. Everything above the transport is the shipped code.
//!
//! A run depends on its seed alone. [`World::trace`] is a running hash of (time, event): two runs
//! of one seed must agree on it.

mod executor;
mod faults;
mod transport;
mod world;

pub use executor::{Executor, RunError, Spawner};
pub use faults::Faults;
pub use transport::{SimClock, SimConnecting, SimLink, SimTimer, SimTransport};
pub use world::{Counts, World};
