//! What a request costs: heap calls, instructions, requests per second; beside crate `scylla` on
//! the same simulated server.
//!
//! The library holds what the binary and the tests share. It is no part of the driver.

pub mod counts;
pub mod heap;
pub mod load;
pub mod ours;
pub mod row_types;
pub mod server;
pub mod tablets;
pub mod theirs;
pub mod throughput;
pub mod workload;
