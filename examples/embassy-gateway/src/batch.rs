//! What leaves a store together.

use crate::clock::Certainty;
use crate::record::Payload;

/// A reading that can be written: its time is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the store.
    pub sequence: u32,
    /// Microseconds since 1970: when it was taken, and the timestamp of its writes.
    pub micros: i64,
    /// How that is known.
    pub certainty: Certainty,
    /// What was read.
    pub payload: Payload,
}

/// How much leaves together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchLimits {
    /// Readings.
    pub count: usize,
    /// Bytes of their payloads.
    pub bytes: usize,
}

impl BatchLimits {
    /// So many readings with so many bytes of payload.
    pub const fn new(count: usize, bytes: usize) -> Self {
        Self { count, bytes }
    }
}
