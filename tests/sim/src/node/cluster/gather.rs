//! Answers that wait for each other.
//!
//! What a client learns from an answer depends on how many requests it had sent before it came,
//! and so on how fast it sends. Where answers are gathered, requests that a client sends at once
//! have all arrived before the first of them is answered, however slow the client is.

use super::Cluster;

/// How many answers wait, and for how many.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    count: u64,
    micros: i64,
    waiting: u64,
    is_next: bool,
}

impl Gather {
    /// The request that is being served is one of those whose answers wait.
    pub(crate) fn mark(&mut self) {
        self.is_next = self.count > 0;
    }

    /// How long the answer to the request just served waits at most, if it does.
    pub(crate) fn take_wait(&mut self) -> Option<i64> {
        let waits = core::mem::take(&mut self.is_next);
        self.waiting += u64::from(waits);
        waits.then_some(self.micros)
    }
}

impl Cluster {
    /// Answers to requests for one partition are held back from now on until `count` of them wait,
    /// but each no longer than `micros`; a count of 0 ends it.
    pub fn gather(&mut self, count: u64, micros: u64) {
        self.gather = Gather {
            count,
            micros: i64::try_from(micros).unwrap_or(i64::MAX / 4),
            ..Gather::default()
        };
    }

    /// Lets all answers go once enough of them wait.
    pub(super) fn let_go_gathered(&mut self, now: i64) {
        if self.gather.waiting == 0 || self.gather.waiting < self.gather.count {
            return;
        }
        self.gather.waiting = 0;
        for connection in self.connections.values_mut() {
            if connection.let_go(now) {
                self.touched.push(connection.id);
            }
        }
    }
}
