//! A simulated ScyllaDB cluster.
//!
//! [`node`] is the cluster itself: sans-IO, deterministic, with its own codec and no dependency on
//! the driver. [`tcp`] serves it on loopback addresses to any CQL driver; [`control`] is the
//! line protocol by which tests and operators break it.

#![forbid(unsafe_code)]

pub mod control;
pub mod node;
pub mod tcp;
