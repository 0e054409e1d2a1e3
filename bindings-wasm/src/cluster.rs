//! The cluster as the shell may show it: nodes, connections, learned tablets, where requests went.

use alloc::vec::Vec;

use messina_core::compact::plane::{KeyspaceKind, Member, TableView};
use messina_core::compact::{LinkStatus, Machine, UNPLACED};
use messina_core::target::Endpoint;

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
        let found = self
            .0
            .iter()
            .position(|count| (count.node, count.shard) == (node, shard));
        match found.and_then(|found| self.0.get_mut(found)) {
            Some(count) => count.requests += 1.0,
            None => self.0.push(Count {
                node,
                shard,
                requests: 1.0,
            }),
        }
    }

    fn of(&self, node: u16) -> impl Iterator<Item = &Count> {
        self.0.iter().filter(move |count| count.node == node)
    }
}

impl Outbox {
    /// What the machine knows. Layout:
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
    ///
    /// Nodes have the numbers that they have in answers.
    pub(crate) fn put_cluster(&mut self, machine: &Machine, tally: &Tally, tablets_max: usize) {
        let counters = machine.counters();
        for number in [
            counters.shard_reached,
            counters.shard_missed,
            counters.connects,
        ] {
            self.put_number(f64::from(number));
        }
        self.put_word(word(machine.statement_count()));
        let plane = machine.plane();
        let members = || {
            let all = (0_u16..).zip(plane.members());
            all.filter(|(_, member)| member.is_present())
        };
        self.put_word(word(members().count()));
        for (number, member) in members() {
            self.put_member(number, member, machine, tally);
        }
        let has_tablets = |table: &TableView<'_>| {
            let kind = table.kind;
            kind == KeyspaceKind::Tablets || kind == KeyspaceKind::StrongTablets
        };
        let tables: Vec<_> = plane.tables().filter(has_tablets).collect();
        self.put_word(word(tables.len()));
        for table in tables {
            self.put_table(machine, &table, tablets_max);
        }
    }

    fn put_member(&mut self, member: u16, row: &Member, machine: &Machine, tally: &Tally) {
        let plane = machine.plane();
        let links = || {
            machine
                .links()
                .filter(|link| link.member == Some(member) && link.serves)
        };
        let place = machine.member_place(member).map(|place| place.text());
        let place = place.unwrap_or_default();
        self.put_word(u32::from(member));
        self.put_bytes(row.host_id().as_bytes());
        self.put_text(&place);
        let (dc, rack) = row.place();
        self.put_text(plane.name(dc));
        self.put_text(plane.name(rack));
        self.put_word(u32::from(row.is_up()));
        let shards = row.sharding().map(|map| map.count().get());
        self.put_word(shards.map_or(0, u32::from));
        self.put_word(word(links().count()));
        let mut sorted: Vec<LinkStatus<'_>> = links().collect();
        sorted.sort_unstable_by_key(|link| link.shard);
        for link in sorted {
            self.put_maybe(link.shard);
            self.put_word(u32::from(link.in_use.saturating_sub(link.orphans)));
            self.put_word(u32::from(link.orphans));
        }
        // What it answered before it was known as a member counts too.
        let is_it = |(number, known): &(u16, Endpoint)| {
            *number == member || (*number >= UNPLACED && known.text() == place)
        };
        let numbers = || machine.nodes().filter(is_it).map(|(number, _)| number);
        let counts = || numbers().flat_map(|number| tally.of(number));
        self.put_word(word(counts().count()));
        for count in counts() {
            self.put_maybe(count.shard);
            self.put_number(count.requests);
        }
    }

    fn put_table(&mut self, machine: &Machine, table: &TableView<'_>, tablets_max: usize) {
        let plane = machine.plane();
        self.put_text(table.keyspace);
        self.put_text(table.name);
        let count = plane.tablets(table.key).count();
        self.put_word(word(count));
        self.put_word(word(count.min(tablets_max)));
        for tablet in plane.tablets(table.key).take(tablets_max) {
            let (first, last) = tablet.range();
            let version = tablet.version();
            self.put_long(first);
            self.put_long(last);
            self.put_long(version.map_or(0, |version| version.bits().cast_signed()));
            self.put_word(u32::from(version.is_some()));
            self.put_word(word(tablet.replicas().count()));
            for (host, shard) in tablet.replicas() {
                let member = plane.member_by_host_id(host);
                self.put_maybe(member);
                self.put_word(u32::from(shard));
            }
        }
    }
}
