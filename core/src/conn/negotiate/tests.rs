//! Handshakes frame by frame.

mod assumed;
#[cfg(all(feature = "lz4", feature = "snappy"))]
mod compressed;
mod refusals;
