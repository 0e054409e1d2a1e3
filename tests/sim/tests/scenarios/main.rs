//! Scenarios on the simulated cluster, bytes in and bytes out.

mod batch;
mod collections;
mod conformance;
mod counters_and_statics;
mod data;
mod faults;
mod functions;
mod lwt;
mod pitfalls;
mod routing;
mod schema;
mod select;
mod support;
mod types;
mod watching;
