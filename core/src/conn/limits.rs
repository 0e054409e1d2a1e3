//! What one connection may take.

use core::time::Duration;

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Requests under way at once, orphans included.
    pub in_flight: u16,
    /// Callers that may wait for a free stream id; a request that finds all queues full fails as
    /// [`Busy`](crate::error::ErrorKind::Busy).
    pub waiting: usize,
    /// Bytes that may wait for the link. A single request larger than this is still taken when
    /// nothing else waits.
    pub pending_bytes: usize,
    /// Longest body of a request; a longer one is refused before its first byte. Servers take no
    /// more than 256 MiB.
    pub request_len_max: u32,
    /// Requests given up whose answer has not come for longer than `orphan_age`. With more of
    /// them, or when they hold more than three quarters of all ids, the connection is given up.
    pub orphans: u16,
    /// See `orphans`.
    pub orphan_age: Duration,
    /// An OPTIONS request is sent when nothing was heard for this long.
    pub heartbeat_interval: Duration,
    /// How long its answer may take.
    pub heartbeat_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            in_flight: 2048,
            waiting: 4096,
            pending_bytes: 16 << 20,
            request_len_max: 256 << 20,
            orphans: 1024,
            orphan_age: Duration::from_secs(1),
            heartbeat_interval: Duration::from_secs(30),
            heartbeat_timeout: Duration::from_secs(10),
        }
    }
}
