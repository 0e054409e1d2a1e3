//! The cases, one file for each group; which test covers what stands in the crate's documentation.

mod batches;
mod compression;
mod frames;
mod handshake;
mod metadata;
mod paging;
mod parameters;
mod prepared;
mod rate_limits;
mod retries;
mod segments;
mod sockets;
mod streams;
mod support;
mod table;
mod tablets;
mod traces;
mod version_5;
mod versions;
