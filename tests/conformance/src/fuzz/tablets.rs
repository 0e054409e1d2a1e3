//! Learned tablets beside a model: a list that drops what a new tablet overlaps.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use messina_core::routing::{
    KeyspaceConsistency, KeyspaceSpec, Learned, LearnedTablet, NodeSpec, Partitioner, PayloadKind,
    ReplicationStrategy, RoutingLimits, TableRef, TableSpec, Token, VersionBlock, View, ViewWriter,
    parse_payload, probe,
};
use uuid::Uuid;

use super::{Input, Target};
use crate::hex::hex;

pub(super) const TABLETS: Target = Target {
    name: "tablets",
    body,
    corpus,
};

/// A bound of tablet bytes, then operations.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let limits = RoutingLimits {
        nodes_max: 6,
        tables_max: 3,
        tablet_bytes_max: input.pick(&[usize::MAX, 0, 400, 6000]),
        ..RoutingLimits::default()
    };
    let mut play = Play {
        writer: ViewWriter::new(limits),
        is_bounded: limits.tablet_bytes_max != usize::MAX,
        bytes_max: limits.tablet_bytes_max,
        tables: Vec::new(),
        nodes: 0,
        last_id: 0,
    };
    play.make_tables();
    play.set_nodes(0b111);
    while !input.is_empty() {
        play.step(&mut input);
        play.check_stats();
    }
    for token in [i64::MIN + 1, -1, 0, 1, i64::MAX] {
        play.look_up(token);
    }
}

struct Play {
    writer: ViewWriter,
    is_bounded: bool,
    bytes_max: usize,
    tables: Vec<Table>,
    /// The hosts that are nodes, by bit.
    nodes: u8,
    last_id: u128,
}

struct Table {
    handle: TableRef,
    tablets: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    tablet: LearnedTablet,
    /// By replica: whether its host was a node since it was learned.
    is_resolved: Vec<bool>,
}

impl Play {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 12 {
            0..=3 => self.learn_made(input),
            4 | 5 => self.learn_payload(input),
            6 => self.learn_run(input),
            7 | 8 => self.look_up(token(input)),
            9 => self.set_nodes(input.byte()),
            10 => self.probe(token(input), input.byte()),
            _ if input.one_in(8) => self.make_tables(),
            _ => self.old_handle(input),
        }
    }

    /// Tables with new ids: the old ones and their tablets are gone.
    fn make_tables(&mut self) {
        let keyspace = KeyspaceSpec {
            name: "k".into(),
            strategy: ReplicationStrategy::Simple { factor: 3 },
            has_tablets: true,
            consistency: KeyspaceConsistency::Eventual,
        };
        let old: Vec<TableRef> = self.tables.iter().map(|table| table.handle).collect();
        let tables = ["a", "b"].map(|name| {
            self.last_id += 1;
            TableSpec {
                name: name.into(),
                id: Uuid::from_u128(self.last_id),
                partitioner: Some(Partitioner::Murmur3),
            }
        });
        self.writer.set_schema(vec![(keyspace, tables.to_vec())]);
        let view = self.writer.view();
        let table = |table: &messina_core::routing::Table| Table {
            handle: table.handle(),
            tablets: Vec::new(),
        };
        self.tables = view.tables().map(table).collect();
        assert_eq!(self.tables.len(), 2);
        for handle in old {
            assert!(view.table(handle).is_none(), "a handle outlived its table");
        }
    }

    /// Exactly these hosts are nodes.
    fn set_nodes(&mut self, hosts: u8) {
        let hosts = hosts & 0b11_1111;
        let spec = |host: u8| NodeSpec {
            host_id: host_id(host),
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 9042),
            dc: "dc".into(),
            rack: "r".into(),
            tokens: Box::new([i64::from(host)]),
            is_up: true,
            is_enabled: true,
        };
        let specs: Vec<NodeSpec> = (0..6)
            .filter(|host| hosts >> host & 1 != 0)
            .map(spec)
            .collect();
        let change = self.writer.set_nodes(&specs);
        assert_eq!(change.refused, 0, "each host has its place");
        self.nodes = hosts;
        let is_node = |id: Uuid| specs.iter().any(|spec| spec.host_id == id);
        for table in &mut self.tables {
            table.tablets.retain_mut(|known| {
                let replicas = known.tablet.replicas().iter();
                let mut stays = true;
                for (replica, is_resolved) in replicas.zip(&mut known.is_resolved) {
                    let is_node = is_node(replica.host_id);
                    stays &= is_node || !*is_resolved;
                    *is_resolved |= is_node;
                }
                stays
            });
        }
        let view = self.writer.view();
        assert_eq!(view.topology().len(), specs.len());
    }

    /// Ends on a coarse grid, so that tablets touch, overlap and repeat.
    fn learn_made(&mut self, input: &mut Input<'_>) {
        let table = input.below(2);
        let (first, last) = (token(input), token(input));
        let mut replicas = Vec::new();
        for _ in 0..=input.below(4) {
            replicas.push((input.byte() % 8, input.byte() % 4));
        }
        let version = input.one_in(2).then(|| u64::from(input.byte()));
        self.learn(
            table,
            &payload(first, last, &replicas, version),
            version.is_some(),
        );
    }

    /// Many neighbours at once: more than one chunk.
    fn learn_run(&mut self, input: &mut Input<'_>) {
        let table = input.below(2);
        let width = i64::from(input.byte()) + 1;
        let start = token(input);
        for n in 0..i64::from(input.byte()) {
            let first = start.saturating_add(n * width);
            let payload = payload(first, first.saturating_add(width), &[(0, 0)], None);
            self.learn(table, &payload, false);
        }
    }

    fn learn_payload(&mut self, input: &mut Input<'_>) {
        let (table, is_v2) = (input.below(2), input.one_in(2));
        self.learn(table, input.short(), is_v2);
    }

    fn learn(&mut self, table: usize, payload: &[u8], is_v2: bool) {
        let kind = if is_v2 {
            PayloadKind::V2
        } else {
            PayloadKind::V1
        };
        let Ok(tablet) = parse_payload(kind, payload) else {
            return;
        };
        assert!(tablet.first_exclusive() < tablet.last_inclusive());
        assert_eq!(tablet.version().is_some(), is_v2);
        let nodes = self.nodes;
        let table = &mut self.tables[table];
        let outcome = self.writer.learn(table.handle, &tablet);
        let before = table.tablets.len();
        let is_known = table.tablets.iter().any(|known| known.tablet == tablet);
        table
            .tablets
            .retain(|known| !overlap(&known.tablet, &tablet));
        let dropped = before - table.tablets.len();
        let is_node = |id: Uuid| (0..6).any(|n| nodes >> n & 1 != 0 && host_id(n) == id);
        let replicas = tablet.replicas().iter();
        let is_resolved = replicas.map(|replica| is_node(replica.host_id)).collect();
        let known = Known {
            tablet,
            is_resolved,
        };
        table.tablets.push(known);
        match outcome {
            Learned::UnknownTable => panic!("the table is there"),
            Learned::Unchanged => assert!(is_known),
            _ if self.is_bounded => {}
            Learned::Added => assert_eq!((dropped, is_known), (0, false)),
            Learned::Replaced { dropped: told } => assert_eq!((told, is_known), (dropped, false)),
            other => panic!("{other:?}"),
        }
    }

    /// What the view says of a token in each table.
    fn look_up(&mut self, token: i64) {
        let view = self.writer.view();
        // The least number is no token and stands for the greatest.
        let token = Token::new(token);
        for table in &self.tables {
            let expected = table.owner(token.value());
            let found = view.tablet(table.handle, token);
            match (&found, self.is_bounded) {
                (None, true) => {}
                _ => assert_eq!(found.as_ref(), expected, "{token:?}"),
            }
        }
    }

    /// Sixteen requests show the whole version. Without one, each differs from the one before.
    fn probe(&mut self, token: i64, entropy: u8) {
        let view = self.writer.view();
        let (token, entropy) = (Token::new(token), u64::from(entropy));
        for table in &self.tables {
            let next = || probe(&view, Some(table.handle), Some(token), entropy);
            let blocks: [VersionBlock; 16] = core::array::from_fn(|_| next());
            match view.tablet(table.handle, token) {
                None => assert_eq!(blocks, [VersionBlock::unknown(entropy); 16]),
                Some(tablet) => match tablet.version() {
                    None => assert!(blocks.windows(2).all(|pair| pair[0] != pair[1])),
                    Some(version) => {
                        let nibble = |block: &VersionBlock| {
                            u64::from(block.value()) << (4 * u32::from(block.position()))
                        };
                        let shown = blocks.iter().map(nibble).fold(0, |all, bits| all | bits);
                        assert_eq!(shown, version.bits());
                    }
                },
            }
        }
    }

    /// A handle of a table that never was.
    fn old_handle(&mut self, input: &mut Input<'_>) {
        let mut other = ViewWriter::new(RoutingLimits::default());
        let view: View = other.view();
        let token = Token::new(token(input));
        for table in &self.tables {
            assert!(view.table(table.handle).is_none());
            assert!(view.tablet(table.handle, token).is_none());
            let tablet = parse_payload(PayloadKind::V1, &payload(0, 9, &[(0, 0)], None));
            let outcome = other.learn(table.handle, &tablet.expect("a good payload"));
            assert_eq!(outcome, Learned::UnknownTable);
        }
    }

    fn check_stats(&self) {
        let stats = self.writer.tablet_stats();
        assert!(stats.bytes <= self.bytes_max, "{stats:?}");
        let known: usize = self.tables.iter().map(|table| table.tablets.len()).sum();
        assert!(stats.cached <= known);
        if !self.is_bounded {
            assert_eq!((stats.cached, stats.evicted), (known, 0));
        }
        assert_eq!(stats.cached == 0, stats.bytes == 0, "{stats:?}");
    }
}

impl Table {
    fn owner(&self, token: i64) -> Option<&LearnedTablet> {
        let owns = |tablet: &LearnedTablet| {
            tablet.first_exclusive() < token && token <= tablet.last_inclusive()
        };
        let mut owners = self.tablets.iter().map(|known| &known.tablet);
        owners.find(|tablet| owns(tablet))
    }
}

fn overlap(a: &LearnedTablet, b: &LearnedTablet) -> bool {
    a.first_exclusive() < b.last_inclusive() && b.first_exclusive() < a.last_inclusive()
}

/// A few far apart, and many close together.
fn token(input: &mut Input<'_>) -> i64 {
    match input.byte() {
        254 => i64::MIN,
        255 => i64::MAX,
        byte @ 200.. => (i64::from(byte) - 227) << 58,
        byte => i64::from(byte),
    }
}

/// The hosts that payloads name; the last two are never nodes.
fn host_id(host: u8) -> Uuid {
    Uuid::from_u128(0x4000_8000_0000_0000_0000 + u128::from(host))
}

/// `tuple<bigint, bigint, list<tuple<uuid, int>>>`, and a bigint behind it in version 2.
fn payload(first: i64, last: i64, replicas: &[(u8, u8)], version: Option<u64>) -> Vec<u8> {
    let int = |number: usize| u32::try_from(number).expect("small").to_be_bytes();
    let mut bytes = int(8).to_vec();
    bytes.extend(first.to_be_bytes());
    bytes.extend(int(8));
    bytes.extend(last.to_be_bytes());
    bytes.extend(int(4 + 32 * replicas.len()));
    bytes.extend(int(replicas.len()));
    for (host, shard) in replicas {
        bytes.extend(int(28));
        bytes.extend(int(16));
        bytes.extend(host_id(*host).as_bytes());
        bytes.extend(int(4));
        bytes.extend(int(usize::from(*shard)));
    }
    if let Some(version) = version {
        bytes.extend(int(8));
        bytes.extend(version.to_be_bytes());
    }
    bytes
}

fn corpus() -> Vec<Vec<u8>> {
    // The value of the golden payload of version 2.
    let golden = hex(
        "00000008 bfffffffffffffff 00000008 ffffffffffffffff 00000064 00000003
         0000001c 00000010 00000000000040008000000000000001 00000004 0000000b
         0000001c 00000010 0102030405060708090a0b0c0d0e0f10 00000004 00000003
         0000001c 00000010 a1b2c3d4e5f647898abcdef012345678 00000004 00000000
         00000008 a3a6be5f3d498142",
    );
    let of_payload = |payload: &[u8]| {
        let len = u8::try_from(payload.len()).expect("short");
        [&[4, 0, 1, len], payload].concat()
    };
    let learn = [0, 0, 10, 20, 1, 0, 0, 1, 3, 1, 7];
    let inside = [0, 0, 12, 18, 0, 6, 0, 0];
    let far = [0, 1, 254, 255, 2, 0, 0, 1, 1, 2, 2, 0];
    let row = [6, 0, 1, 0, 70];
    let (look, nodes, back) = ([7, 15], [9, 0b101], [9, 0b11_1111]);
    let probes = [10, 15, 1, 10, 25, 3];
    let all = [
        &learn[..],
        &look,
        &inside,
        &look,
        &probes,
        &far,
        &row,
        &learn,
        &nodes,
        &look,
        &row,
        &back,
        &far,
        &inside,
        &of_payload(&golden),
        &[11, 7],
        &learn,
        &[11, 0, 3],
    ]
    .concat();
    let rows = [
        &row[..],
        &row,
        &learn,
        &[6, 0, 3, 90, 130],
        &row,
        &nodes,
        &[6, 1, 9, 3, 100],
    ];
    let mut corpus = Vec::new();
    for bound in 0..4 {
        corpus.push([&[bound], &all[..]].concat());
        corpus.push([&[bound], &rows.concat()[..]].concat());
    }
    corpus.push(
        [
            &[0],
            &of_payload(&payload(5, 9, &[(0, 1), (7, 2)], Some(3)))[..],
        ]
        .concat(),
    );
    corpus
}
