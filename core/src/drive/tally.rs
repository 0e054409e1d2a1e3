//! Counts of requests by whether they reached the shard they were meant for.
//!
//! Each connection counts its own, as plain numbers under the lock that a request takes anyway; so
//! there is no shared counter, and none that could wrap. Sums are made when somebody asks.

/// Requests that were meant for a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardTally {
    /// Sent on a connection to that shard.
    pub reached: u64,
    /// Sent on another connection of the node.
    pub missed: u64,
}

impl ShardTally {
    pub(super) const fn count(&mut self, aim: Aim) {
        match aim {
            Aim::None => {}
            Aim::Reached => self.reached = self.reached.saturating_add(1),
            Aim::Missed => self.missed = self.missed.saturating_add(1),
        }
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.reached = self.reached.saturating_add(other.reached);
        self.missed = self.missed.saturating_add(other.missed);
    }
}

/// Whether the connection chosen for a request is the one it was meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// It was meant for no shard.
    None,
    Reached,
    Missed,
}
