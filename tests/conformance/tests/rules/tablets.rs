//! What a tablet that a node has described does to the requests for it.

use core::net::SocketAddr;

use messina_conformance::hex::hex;
use messina_core::routing::{
    KeyspaceConsistency, KeyspaceSpec, Load, NodeIdx, NodeSpec, Partitioner, PayloadKind, Policy,
    ReplicationStrategy, RouteRequest, RoutingLimits, ShardIdx, ShardMap, Source, TableRef,
    TableSpec, Token, View, ViewWriter, parse_payload, plan, probe,
};
use messina_core::wire::Consistency;
use uuid::Uuid;

const A: u128 = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;
const B: u128 = 0xa1b2_c3d4_e5f6_4789_8abc_def0_1234_5678;
const C: u128 = 0x0000_0000_0000_4000_8000_0000_0000_0001;

/// The second of four tablets: `(-2^62 - 1, -1]`.
const RANGE: &str = "00000008 bfffffffffffffff 00000008 ffffffffffffffff 00000064 00000003";
const ON_A: &str = "0000001c 00000010 0102030405060708090a0b0c0d0e0f10 00000004 00000003";
const ON_B: &str = "0000001c 00000010 a1b2c3d4e5f647898abcdef012345678 00000004 00000000";
const ON_C: &str = "0000001c 00000010 00000000000040008000000000000001 00000004 0000000b";
/// The version of the list sorted by host id: C, A, B. As a signed number it is negative.
const SORTED: &str = "00000008 a3a6be5f3d498142";
/// That of the list turned so that B leads.
const LED_BY_B: &str = "00000008 3aa07a7b7e419cee";

/// A token in that tablet: of the int key 1.
const TOKEN: i64 = -4_069_959_284_402_364_209;

fn first(order: [&str; 3]) -> (PayloadKind, Vec<u8>) {
    (PayloadKind::V1, hex(&format!("{RANGE} {}", order.concat())))
}

fn second(order: [&str; 3], version: &str) -> (PayloadKind, Vec<u8>) {
    let value = hex(&format!("{RANGE} {} {version}", order.concat()));
    (PayloadKind::V2, value)
}

/// One replica, A on shard 0, of `(first, last]`.
fn alone(first: &str, last: &str) -> (PayloadKind, Vec<u8>) {
    let value = hex(&format!(
        "00000008 {first} 00000008 {last} 00000024 00000001
         0000001c 00000010 0102030405060708090a0b0c0d0e0f10 00000004 00000000"
    ));
    (PayloadKind::V1, value)
}

/// Three nodes of twelve shards; an eventually and a strongly consistent keyspace, and one without
/// tablets.
struct Scene {
    writer: ViewWriter,
    view: View,
}

struct Idle;

impl Load for Idle {
    fn in_flight(&self, _: NodeIdx, _: Option<ShardIdx>) -> u32 {
        0
    }

    fn is_connected(&self, _: NodeIdx) -> bool {
        true
    }
}

impl Scene {
    fn new() -> Self {
        let mut writer = ViewWriter::new(RoutingLimits::default());
        let specs: Vec<NodeSpec> = [A, B, C]
            .into_iter()
            .zip(1..)
            .map(|(id, number)| NodeSpec {
                host_id: Uuid::from_u128(id),
                address: SocketAddr::from(([127, 0, 0, number], 9042)),
                dc: "dc".into(),
                rack: "rack".into(),
                tokens: Box::from([i64::from(number) << 60]),
                is_up: true,
                is_enabled: true,
            })
            .collect();
        for idx in writer.set_nodes(&specs).added {
            writer.set_shard_map(idx, ShardMap::new(12, 12).ok());
        }
        for (name, has_tablets, consistency) in [
            ("eventual", true, KeyspaceConsistency::Eventual),
            ("strong", true, KeyspaceConsistency::Strong),
            ("vnodes", false, KeyspaceConsistency::Eventual),
        ] {
            let keyspace = KeyspaceSpec {
                name: name.into(),
                strategy: ReplicationStrategy::Simple { factor: 3 },
                has_tablets,
                consistency,
            };
            let table = TableSpec {
                name: "t".into(),
                id: Uuid::from_u128(1),
                partitioner: Some(Partitioner::Murmur3),
            };
            writer.put_keyspace(keyspace, vec![table]);
        }
        let view = writer.view();
        Self { writer, view }
    }

    fn table(&self, keyspace: &str) -> TableRef {
        self.view.table_by_name(keyspace, "t").unwrap().handle()
    }

    fn learn(&self, keyspace: &str, (kind, value): &(PayloadKind, Vec<u8>)) {
        let learned = parse_payload(*kind, value).unwrap();
        self.writer.learn(self.table(keyspace), &learned);
    }

    /// The replicas that a request would be sent to, in order, with their shards; and the leader.
    fn route(&self, keyspace: &str, token: i64, consistency: Consistency) -> Route {
        let request = RouteRequest {
            table: Some(self.table(keyspace)),
            token: Some(Token::new(token)),
            consistency,
            is_lwt: false,
            serial_consistency: None,
        };
        let mut policy = Policy::default();
        policy.shuffle = false;
        let plan = plan(&self.view, &request, &policy, &Idle, 0, 0);
        let host = |idx| self.view.topology().node(idx).unwrap().host_id().as_u128();
        let place =
            |(idx, shard): (NodeIdx, Option<ShardIdx>)| (host(idx), shard.map(ShardIdx::value));
        let targets = plan.targets().iter();
        Route {
            source: plan.source(),
            targets: targets.map(|it| place((it.node, it.shard))).collect(),
            leader: plan.leader().map(place),
        }
    }

    /// The blocks of sixteen requests, sorted.
    fn blocks(&self, keyspace: &str) -> Vec<u8> {
        let (table, token) = (Some(self.table(keyspace)), Some(Token::new(TOKEN)));
        let next = |entropy| probe(&self.view, table, token, entropy).byte();
        let mut blocks: Vec<u8> = (0..16).map(next).collect();
        blocks.sort_unstable();
        blocks
    }
}

type Place = (u128, Option<u16>);

struct Route {
    source: Source,
    targets: Vec<Place>,
    leader: Option<Place>,
}

/// The formula gives the same shard on each node; the payload need not.
#[test]
fn the_shard_of_a_tablet_is_the_one_that_was_told() {
    let scene = Scene::new();
    let by_formula = ShardMap::new(12, 12).unwrap().shard_of(Token::new(TOKEN));
    assert_eq!(by_formula.value(), 3);
    scene.learn("eventual", &first([ON_B, ON_A, ON_C]));
    let route = scene.route("eventual", TOKEN, Consistency::One);
    assert_eq!(route.source, Source::Tablet);
    assert_eq!(route.targets, [(B, Some(0)), (A, Some(3)), (C, Some(11))]);
    let route = scene.route("vnodes", TOKEN, Consistency::One);
    assert_eq!(route.source, Source::Ring);
    assert!(route.targets.iter().all(|(_, shard)| *shard == Some(3)));
}

/// A list that begins with its leader looks like any other: the keyspace and the kind of the
/// payload tell. A leader that sorts first gives the version of the list without a leader.
#[test]
fn the_first_replica_leads_only_where_it_was_told_so() {
    let (b, c) = (Some((B, Some(0))), Some((C, Some(11))));
    let sorted = second([ON_C, ON_A, ON_B], SORTED);
    let turned = second([ON_B, ON_C, ON_A], LED_BY_B);
    for (payload, leader) in [
        (first([ON_B, ON_A, ON_C]), None),
        (turned.clone(), b),
        (sorted.clone(), c),
    ] {
        for (keyspace, is_strong) in [("eventual", false), ("strong", true)] {
            for consistency in Consistency::ALL {
                let scene = Scene::new();
                scene.learn(keyspace, &payload);
                let needs = !matches!(consistency, Consistency::One | Consistency::LocalOne);
                let expected = leader.filter(|_| is_strong && needs);
                let route = scene.route(keyspace, TOKEN, consistency);
                assert_eq!(route.leader, expected, "{keyspace} {consistency:?}");
                if let Some(leader) = expected {
                    assert_eq!(route.targets[0], leader);
                }
            }
        }
    }
    // The leader moves to the one that sorts first.
    let scene = Scene::new();
    scene.learn("strong", &turned);
    scene.learn("strong", &sorted);
    let route = scene.route("strong", TOKEN, Consistency::LocalQuorum);
    assert_eq!(route.leader, c);
}

#[test]
fn what_the_first_extension_tells_has_no_version_and_no_leader() {
    let scene = Scene::new();
    scene.learn("strong", &second([ON_B, ON_C, ON_A], LED_BY_B));
    let learned = || scene.view.tablet(scene.table("strong"), Token::new(TOKEN));
    assert!(learned().unwrap().version().is_some());
    scene.learn("strong", &first([ON_A, ON_B, ON_C]));
    assert_eq!(learned().unwrap().version(), None);
    let route = scene.route("strong", TOKEN, Consistency::Quorum);
    assert_eq!((route.leader, route.targets[0]), (None, (A, Some(3))));
}

/// Block 0 is the least significant, and the sign of the number does not spread.
#[test]
fn sixteen_requests_show_the_version_from_its_least_block_on() {
    for (payload, expected) in [
        (
            second([ON_C, ON_A, ON_B], SORTED),
            "02 14 21 38 49 54 6d 73 8f 95 ae bb c6 da e3 fa",
        ),
        (
            second([ON_B, ON_C, ON_A], LED_BY_B),
            "0e 1e 2c 39 41 54 6e 77 8b 97 aa b7 c0 da ea f3",
        ),
    ] {
        let scene = Scene::new();
        scene.learn("eventual", &payload);
        assert_eq!(scene.blocks("eventual"), hex(expected));
    }
}

/// Also where no tablet is known, or none can be, a request shows a block: of two one differs.
#[test]
fn requests_without_a_version_show_blocks_that_differ() {
    let scene = Scene::new();
    for keyspace in ["eventual", "strong", "vnodes"] {
        let mut blocks = scene.blocks(keyspace);
        blocks.dedup();
        assert_eq!(blocks.len(), 16, "{keyspace}");
        assert!(blocks.iter().all(|block| block >> 4 == blocks[0] >> 4));
    }
    let nothing = probe(&scene.view, None, None, 0x5a).byte();
    assert_eq!(nothing & 0x0f, 0x0a);
}

/// The first token belongs to the tablet before, the last to this one; no key has the least.
#[test]
fn a_tablet_begins_behind_its_first_token() {
    let table = [
        ("bfffffffffffffff", "ffffffffffffffff", -(1 << 62) - 1, -1),
        ("8000000000000000", "7fffffffffffffff", i64::MIN, i64::MAX),
        ("0000000000000000", "0000000000000001", 0, 1),
    ];
    for (from, to, exclusive, inclusive) in table {
        let scene = Scene::new();
        scene.learn("eventual", &alone(from, to));
        let mut inside = vec![exclusive + 1, inclusive];
        let mut outside = vec![];
        if exclusive != i64::MIN {
            outside.extend([exclusive, i64::MIN + 1, inclusive + 1, i64::MAX]);
        } else {
            // A hash of this value becomes the greatest token.
            inside.push(i64::MIN);
        }
        for (tokens, source) in [(inside, Source::Tablet), (outside, Source::None)] {
            for token in tokens {
                let route = scene.route("eventual", token, Consistency::One);
                assert_eq!(route.source, source, "{token} in ({from}, {to}]");
            }
        }
    }
}

/// A tablet drives out all that it overlaps, and leaves those that only touch it.
#[test]
fn a_new_tablet_replaces_all_that_it_overlaps() {
    let scene = Scene::new();
    let known = |token| scene.route("eventual", token, Consistency::One).source == Source::Tablet;
    let (least, zero, ten, most) = (
        "8000000000000000",
        "0000000000000000",
        "000000000000000a",
        "7fffffffffffffff",
    );
    scene.learn("eventual", &alone(least, most));
    assert!(known(-5) && known(5) && known(50));
    scene.learn("eventual", &alone(zero, ten));
    assert_eq!([known(-5), known(5), known(50)], [false, true, false]);
    scene.learn("eventual", &alone(least, zero));
    scene.learn("eventual", &alone(ten, most));
    assert!(known(-5) && known(0) && known(5) && known(10) && known(50));
    scene.learn("eventual", &alone("ffffffffffffffff", "000000000000000b"));
    assert_eq!(
        [known(-5), known(0), known(11), known(50)],
        [false, true, true, false]
    );
}
