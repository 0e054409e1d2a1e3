//! Scenarios on the simulated cluster, bytes in and bytes out.

mod conformance;
mod counters_and_statics;
mod data;
mod faults;
mod routing;
mod support;
