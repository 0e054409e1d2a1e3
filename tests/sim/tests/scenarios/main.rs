//! Scenarios on the simulated cluster, bytes in and bytes out.

mod batch;
mod conformance;
mod counters_and_statics;
mod data;
mod faults;
mod lwt;
mod routing;
mod select;
mod support;
mod types;
mod watching;
