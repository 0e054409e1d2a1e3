//! What the nodes counted: where single-partition requests arrived and where they belonged.

use core::ops::AddAssign;
use std::collections::BTreeMap;

/// Counters of one table on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Single-partition requests by EXECUTE or QUERY.
    pub requests: u64,
    /// Of these, on a connection to a node that holds a replica (of strongly consistent tables,
    /// for requests that need the leader: to the leader's node).
    pub at_owner_node: u64,
    /// Of these, on the very shard too.
    pub at_owner_shard: u64,
    /// Requests that only the leader can serve.
    pub needing_leader: u64,
    /// Of these, on a connection to the leader's node.
    pub at_leader: u64,
    /// Requests that another node had to serve.
    pub forwarded: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.at_owner_node += other.at_owner_node;
        self.at_owner_shard += other.at_owner_shard;
        self.needing_leader += other.needing_leader;
        self.at_leader += other.at_leader;
        self.forwarded += other.forwarded;
    }
}

/// What one shard saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStats {
    /// Connections open now.
    pub connections: usize,
    /// Classified requests that came by connections to it, of all tables.
    pub counters: Counters,
}

/// What one node saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Whether it runs.
    pub alive: bool,
    /// Connections accepted.
    pub connections: u64,
    /// Bytes that clients sent, as CQL: under TLS what is inside.
    pub bytes_received: u64,
    /// Bytes that were handed out to clients, the same.
    pub bytes_sent: u64,
    /// Frames of any kind taken.
    pub frames: u64,
    /// PREPARE requests.
    pub prepares: u64,
    /// EXECUTE requests.
    pub executes: u64,
    /// QUERY requests.
    pub queries: u64,
    /// BATCH requests.
    pub batches: u64,
    /// ERROR replies.
    pub errors: u64,
    /// UNPREPARED among them.
    pub unprepared: u64,
    /// EXECUTE requests with bytes behind their end, which nodes pass over without a word.
    pub overlong: u64,
    /// Routing payloads sent.
    pub payloads: u64,
    /// Bytes that these added to their answers.
    pub payload_bytes: u64,
    /// Classified requests by `keyspace.table`.
    pub tables: BTreeMap<String, Counters>,
    /// By shard.
    pub shards: Vec<ShardStats>,
}

impl NodeStats {
    /// The sum over its tables.
    pub fn total(&self) -> Counters {
        sum(self.tables.values().copied())
    }
}

/// What the whole cluster saw, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// By node index.
    pub nodes: Vec<NodeStats>,
}

impl Stats {
    /// The sum over nodes and tables.
    pub fn total(&self) -> Counters {
        sum(self.nodes.iter().map(NodeStats::total))
    }

    /// The sum over nodes for one table, named `keyspace.table`.
    pub fn table(&self, name: &str) -> Counters {
        sum(self
            .nodes
            .iter()
            .filter_map(|node| node.tables.get(name).copied()))
    }
}

fn sum(counters: impl Iterator<Item = Counters>) -> Counters {
    counters.fold(Counters::default(), |mut sum, counters| {
        sum += counters;
        sum
    })
}
