//! The cluster as the shell may show it: nodes, connections, learned tablets, where requests went.

use alloc::vec::Vec;

use messina_core::drive::{Endpoint, NodeStatus, Session};
use messina_core::routing::{NodeIdx, Table, View};

use crate::outbox::{Outbox, word};

/// Requests that were answered, by node and shard.
#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<Count>);

#[derive(Debug)]
struct Count {
    node: u16,
    shard: Option<u16>,
    requests: f64,
}

impl Tally {
    pub(crate) fn count(&mut self, node: u16, shard: Option<u16>) {
        let place = (node, shard);
        match self
            .0
            .binary_search_by(|count| (count.node, count.shard).cmp(&place))
        {
            Ok(found) => {
                if let Some(count) = self.0.get_mut(found) {
                    count.requests += 1.0;
                }
            }
            Err(at) => {
                let requests = 1.0;
                self.0.insert(
                    at,
                    Count {
                        node,
                        shard,
                        requests,
                    },
                );
            }
        }
    }

    /// Forgets a node: its number names another one now.
    pub(crate) fn forget(&mut self, node: u16) {
        self.0.retain(|count| count.node != node);
    }

    fn of(&self, node: u16) -> impl Iterator<Item = &Count> {
        self.0.iter().filter(move |count| count.node == node)
    }
}

impl Outbox {
    /// What the session knows. Layout:
    ///
    /// - doubles: requests that reached the shard they were meant for, and that missed it;
    ///   connections attempted; words: prepared statements, number of nodes;
    /// - each node: number, host id (16 bytes), address, data centre, rack, bits (1 up), shards or
    ///   0; number of connections, each: shard or none, requests in flight, requests given up that
    ///   wait for their answer; number of places where requests were answered, each: shard or none,
    ///   requests (a double);
    /// - number of tables with tablets; each: keyspace, table, tablets learned, number of tablets
    ///   that follow (`tablets_max` at most for each table), each: the token before its first, its
    ///   last one, version (64 bits each), bits (1 it has a version), number of replicas, each: node or
    ///   none, shard. The first replica is the leader where a keyspace is strongly consistent.
    pub(crate) fn put_cluster(&mut self, session: &Session, tally: &Tally, tablets_max: usize) {
        let status = session.status();
        self.put_number(status.shard_tally.reached as f64);
        self.put_number(status.shard_tally.missed as f64);
        self.put_number(status.cluster.counters.connects as f64);
        self.put_word(word(status.prepared));
        self.put_word(word(status.nodes.len()));
        for node in &status.nodes {
            self.put_node(node, session, tally);
        }
        let view = session.view();
        let tables = view.tables().filter(|table| table.has_tablets());
        let tables: Vec<_> = tables.collect();
        self.put_word(word(tables.len()));
        for table in tables {
            self.put_table(&view, table, tablets_max);
        }
    }

    fn put_node(&mut self, node: &NodeStatus, session: &Session, tally: &Tally) {
        let number = node.node.value();
        self.put_word(u32::from(number));
        self.put_bytes(node.host_id.as_bytes());
        let endpoint = session.endpoint(node.node);
        self.put_display(&endpoint.unwrap_or(Endpoint::Addr(node.address)));
        self.put_text(&node.dc);
        self.put_text(&node.rack);
        self.put_word(u32::from(node.is_up));
        self.put_word(node.shards.map_or(0, u32::from));
        self.put_word(word(node.connections.len()));
        for connection in &node.connections {
            self.put_maybe(connection.shard);
            self.put_word(connection.in_flight);
            self.put_word(u32::from(connection.orphans));
        }
        self.put_word(word(tally.of(number).count()));
        for count in tally.of(number) {
            self.put_maybe(count.shard);
            self.put_number(count.requests);
        }
    }

    fn put_table(&mut self, view: &View, table: &Table, tablets_max: usize) {
        self.put_text(table.keyspace());
        self.put_text(table.name());
        let tablets = view.tablets(table.handle());
        self.put_word(word(tablets.len()));
        self.put_word(word(tablets.len().min(tablets_max)));
        for (tablet, _) in tablets.iter().take(tablets_max) {
            let version = tablet.version();
            self.put_long(tablet.first_exclusive());
            self.put_long(tablet.last_inclusive());
            self.put_long(version.map_or(0, |version| version.bits().cast_signed()));
            self.put_word(u32::from(version.is_some()));
            self.put_word(word(tablet.replicas().len()));
            for replica in tablet.replicas() {
                let node = view.topology().node_by_host_id(replica.host_id);
                self.put_maybe(node.map(NodeIdx::value));
                self.put_word(u32::from(replica.shard));
            }
        }
    }
}
