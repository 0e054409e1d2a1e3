//! Scenarios on the simulated cluster, bytes in and bytes out.

mod conformance;
mod data;
mod faults;
mod routing;
mod support;
