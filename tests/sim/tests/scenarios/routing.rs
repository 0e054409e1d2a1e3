//! Payloads and counters: every connection of a cluster asks, the maps of the cluster judge.

use messina_sim::node::{ConnectionId, Counters, Replica, TabletsMode};

use crate::support::{
    ALL, BATCH, EXECUTE, Frame, LOCAL_QUORUM, ONE, QUERY, RESULT, Sim, V1, V2, execute,
    long_string, parameters, query, unhex,
};

const NODES: usize = 3;
const SHARDS: u16 = 2;

/// Token of the key int 1, from the documents.
const TOKEN_OF_ONE: i64 = -4069959284402364209;

const ONE_KEY: [u8; 4] = [0, 0, 0, 1];

fn places() -> impl Iterator<Item = (usize, u16)> {
    (0..NODES).flat_map(|node| (0..SHARDS).map(move |shard| (node, shard)))
}

fn select(sim: &mut Sim, id: ConnectionId, keyspace: &str, level: u16, block: Option<u8>) -> Frame {
    let prepared = sim.prepare(id, &format!("SELECT v FROM {keyspace}.t WHERE pk = ?"));
    let reply = sim.ask(
        id,
        EXECUTE,
        &execute(&prepared, &parameters(level, &[&ONE_KEY]), block),
    );
    assert_eq!(reply.opcode, RESULT, "{:?}", reply.error());
    reply
}

fn tablet_of_one(sim: &Sim, keyspace: &str) -> (usize, messina_sim::node::Tablet) {
    let at = sim.cluster.tablet_of(keyspace, "t", TOKEN_OF_ONE).unwrap();
    (at, sim.cluster.tablets(keyspace, "t")[at].clone())
}

#[test]
fn v1_speaks_on_every_misrouted_request_and_only_then() {
    let mut sim = Sim::with_tables(TabletsMode::V1);
    let (_, tablet) = tablet_of_one(&sim, "ks");
    assert_eq!(tablet.replicas.len(), 2);
    for (node, shard) in places() {
        let right = tablet.replicas.contains(&Replica {
            node,
            shard: shard.into(),
        });
        let id = sim.connect(node, shard, &[V1]);
        for _ in 0..2 {
            let reply = select(&mut sim, id, "ks", LOCAL_QUORUM, None);
            assert_eq!(reply.payload().0.is_none(), right, "{node} {shard}");
        }
        let Some((key, value)) = select(&mut sim, id, "ks", ONE, None).payload().0 else {
            continue;
        };
        assert_eq!(
            (key.as_str(), value.len()),
            ("tablets-routing-v1", 32 + 32 * 2)
        );
        // Stored order, each with its host id and shard.
        for (replica, bytes) in tablet.replicas.iter().zip(value[32..].chunks(32)) {
            assert_eq!(bytes[..8], unhex("0000001c00000010")[..]);
            assert_eq!(bytes[8..24], sim.cluster.host_id(replica.node).unwrap());
            assert_eq!(bytes[28..], replica.shard.to_be_bytes());
        }
    }
}

#[test]
fn v1_is_silent_about_literals_scans_batches_strong_and_vnode_tables() {
    let mut sim = Sim::with_tables(TabletsMode::V1);
    for (node, shard) in places() {
        let id = sim.connect(node, shard, &[V1]);
        for text in [
            "SELECT v FROM ks.t WHERE pk = 1",
            "SELECT v FROM ks.t",
            "SELECT v FROM ks.t WHERE pk IN (1, 2)",
            "INSERT INTO ks.t (pk) VALUES (1)",
        ] {
            assert!(sim.ok(id, text).payload().0.is_none(), "{text}");
        }
        let statement = long_string("DELETE FROM ks.t WHERE pk = ?");
        let batch = [
            &[1, 0, 1, 0][..],
            &statement,
            &unhex("0001 00000004 00000001 0006 00"),
        ]
        .concat();
        assert!(sim.ask(id, BATCH, &batch).payload().0.is_none());
        for keyspace in ["sc", "vn"] {
            let reply = select(&mut sim, id, keyspace, LOCAL_QUORUM, None);
            assert!(reply.payload().0.is_none(), "{keyspace}");
        }
        // QUERY with bound values counts as EXECUTE does.
        let bound = query(
            "SELECT v FROM ks.t WHERE pk = ?",
            &parameters(ONE, &[&ONE_KEY]),
        );
        let by_query = sim.ask(id, QUERY, &bound).payload().0;
        assert_eq!(by_query, select(&mut sim, id, "ks", ONE, None).payload().0);
    }
}

#[test]
fn v2_compares_one_nibble_of_the_version_and_nothing_else() {
    let mut sim = Sim::with_tables(TabletsMode::Both);
    for keyspace in ["ks", "sc"] {
        let (_, tablet) = tablet_of_one(&sim, keyspace);
        // The first extension beside it changes nothing: it would tell of a wrong place.
        let keys = [&[V2][..], &[V1, V2]];
        let each = keys
            .into_iter()
            .flat_map(|keys| places().map(move |place| (keys, place)));
        for (keys, (node, shard)) in each {
            let id = sim.connect(node, shard, keys);
            let mut version = None;
            let mut silent = Vec::new();
            for block in 0..=255u8 {
                match select(&mut sim, id, keyspace, LOCAL_QUORUM, Some(block))
                    .payload()
                    .0
                {
                    Some((key, value)) => {
                        assert_eq!((key.as_str(), value.len()), ("tablets-routing-v2", 44 + 64));
                        let found = u64::from_be_bytes(value[100..].try_into().unwrap());
                        assert_eq!(*version.get_or_insert(found), found);
                        let first = &value[40..56];
                        if keyspace == "sc" {
                            let leader = tablet.replicas[tablet.leader.unwrap()];
                            assert_eq!(first, sim.cluster.host_id(leader.node).unwrap());
                        } else {
                            assert!(first < &value[72..88], "sorted by host id");
                        }
                    }
                    None => silent.push(block),
                }
            }
            let version = version.unwrap();
            let matching: Vec<u8> = (0..16u8)
                .map(|i| i << 4 | u8::try_from(version >> (4 * i) & 15).unwrap())
                .collect();
            assert_eq!(silent, matching, "{keyspace} {node} {shard}");
        }
        let id = sim.connect(0, 0, &[V2]);
        assert!(
            select(&mut sim, id, "vn", ONE, Some(0))
                .payload()
                .0
                .is_none()
        );
    }
}

#[test]
fn conditional_writes_have_their_own_rule() {
    let mut sim = Sim::with_tables(TabletsMode::Both);
    let (_, tablet) = tablet_of_one(&sim, "ks");
    let text = "UPDATE ks.t SET v = 'x' WHERE pk = ? IF v = 'y'";
    for (node, shard) in places() {
        let right = tablet.replicas.contains(&Replica {
            node,
            shard: shard.into(),
        });
        let v1 = if right {
            None
        } else {
            Some("tablets-routing-v1")
        };
        for (keys, expected) in [(&[V1][..], v1), (&[V2], None), (&[V1, V2], v1)] {
            let id = sim.connect(node, shard, keys);
            let prepared = sim.prepare(id, text);
            let mut seen = Vec::new();
            for block in [0x00, 0x01] {
                let block = keys.contains(&V2).then_some(block);
                let body = execute(&prepared, &parameters(LOCAL_QUORUM, &[&ONE_KEY]), block);
                seen.push(sim.ask(id, EXECUTE, &body).payload().0.map(|(key, _)| key));
            }
            assert_eq!(seen[0].as_deref(), expected, "{keys:?} {node} {shard}");
            assert_eq!(seen[0], seen[1]);
        }
    }
}

#[test]
fn maps_change_and_versions_tell() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[V2]);
    let version = |sim: &mut Sim, keyspace: &str| {
        let found = (0..2).find_map(|block| {
            select(sim, id, keyspace, LOCAL_QUORUM, Some(block))
                .payload()
                .0
        });
        let value = found
            .expect("at most one of two values of a nibble matches")
            .1;
        let range = i64::from_be_bytes(value[4..12].try_into().unwrap());
        (range, u64::from_be_bytes(value[100..].try_into().unwrap()))
    };
    let (at, tablet) = tablet_of_one(&sim, "ks");
    let before = version(&mut sim, "ks");
    sim.cluster.split(("ks", "t"), at).unwrap();
    let after_split = version(&mut sim, "ks");
    assert_eq!(before.1, after_split.1, "ranges do not enter the version");
    let (at, _) = tablet_of_one(&sim, "ks");
    let from = tablet.replicas[0];
    let to = Replica {
        node: from.node,
        shard: 1 - from.shard,
    };
    sim.cluster.move_tablet(("ks", "t"), at, from, to).unwrap();
    assert_ne!(
        version(&mut sim, "ks").1,
        before.1,
        "another shard of the node is a change"
    );

    let (at, tablet) = tablet_of_one(&sim, "sc");
    let first = version(&mut sim, "sc").1;
    sim.cluster
        .set_leader(("sc", "t"), at, Some(1 - tablet.leader.unwrap()))
        .unwrap();
    assert_ne!(version(&mut sim, "sc").1, first);
}

#[test]
fn query_on_a_v2_connection_fails_where_a_block_is_demanded() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[V2]);
    let bound = parameters(LOCAL_QUORUM, &[&ONE_KEY]);
    let free = parameters(LOCAL_QUORUM, &[]);
    // Text, parameters, and whether it fails.
    let cases = [
        ("SELECT v FROM ks.t WHERE pk = ?", &bound, true),
        ("SELECT v FROM ks.t WHERE pk = 1", &free, false),
        ("SELECT v FROM ks.t", &free, false),
        ("SELECT v FROM vn.t WHERE pk = ?", &bound, false),
        ("SELECT v FROM sc.t WHERE pk = ?", &bound, true),
        ("SELECT v FROM sc.t WHERE pk = 1", &free, true),
        ("INSERT INTO ks.t (pk, v) VALUES (?, 'a')", &bound, true),
        ("INSERT INTO sc.t (pk, v) VALUES (1, 'a')", &free, true),
        (
            "UPDATE ks.t SET v = 'b' WHERE pk = ? IF v = 'a'",
            &bound,
            false,
        ),
        ("SELECT key FROM system.local", &free, false),
    ];
    for (text, parameters, fails) in cases {
        let reply = sim.ask(id, QUERY, &query(text, parameters));
        assert_eq!(reply.opcode != RESULT, fails, "{text}");
        if fails {
            assert_eq!(reply.error().0, 0);
        }
    }
    // The failed writes stand: 'b' came over 'a'.
    let plain = sim.connect(0, 0, &[]);
    assert_eq!(
        sim.ok(plain, "SELECT v FROM ks.t WHERE pk = 1")
            .rows()
            .texts(0),
        ["b"]
    );
    assert_eq!(
        sim.ok(plain, "SELECT v FROM sc.t WHERE pk = 1")
            .rows()
            .texts(0),
        ["a"]
    );
}

#[test]
fn levels_of_strongly_consistent_tables() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    for level in 0..=10u16 {
        let ask =
            |sim: &mut Sim, text: &str| sim.ask(id, QUERY, &query(text, &parameters(level, &[])));
        let read = ask(&mut sim, "SELECT v FROM sc.t WHERE pk = 1").opcode == RESULT;
        assert_eq!(read, [1, 4, 6, 10].contains(&level), "read at {level}");
        let write = ask(&mut sim, "INSERT INTO sc.t (pk) VALUES (1)").opcode == RESULT;
        assert_eq!(write, [4, 6].contains(&level), "write at {level}");
    }
    for (text, message) in [
        (
            "SELECT v FROM sc.t",
            "Strongly consistent queries can only target a single partition",
        ),
        (
            "INSERT INTO sc.t (pk) VALUES (1) USING TIMESTAMP 5",
            "Strongly consistent queries don't support user-provided timestamps",
        ),
        (
            "INSERT INTO sc.t (pk) VALUES (1) IF NOT EXISTS",
            "Strongly consistent updates don't support data prefetch",
        ),
    ] {
        assert_eq!(
            sim.query(id, text).error(),
            (0x2200, message.to_owned()),
            "{text}"
        );
    }
    let mixed: Vec<u8> = [
        &[1, 0, 2, 0][..],
        &long_string("INSERT INTO sc.t (pk) VALUES (1)"),
        &[0, 0, 0],
        &long_string("INSERT INTO ks.t (pk) VALUES (1)"),
        &unhex("0000 0006 00"),
    ]
    .concat();
    let text = "Cannot mix strongly consistent and eventually consistent statements in a batch";
    assert_eq!(sim.ask(id, BATCH, &mixed).error().1, text);
}

/// Counters of each table against a count by hand over all connections.
#[test]
fn counters_say_where_requests_came_and_belonged() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    for (keyspace, level, leads) in [
        ("ks", LOCAL_QUORUM, false),
        ("ks", ALL, false),
        ("sc", ONE, false),
        ("sc", LOCAL_QUORUM, true),
    ] {
        let (_, tablet) = tablet_of_one(&sim, keyspace);
        let owners = if leads {
            vec![tablet.replicas[tablet.leader.unwrap()]]
        } else {
            tablet.replicas.clone()
        };
        sim.cluster.reset_stats();
        for (node, shard) in places() {
            let id = sim.connect(node, shard, &[]);
            select(&mut sim, id, keyspace, level, None);
            sim.ok(id, "SELECT key FROM system.local");
            sim.ok(id, "SELECT v FROM ks.t");
        }
        let count = u64::try_from(owners.len()).unwrap();
        let stats = sim.cluster.stats();
        let found = stats.table(&format!("{keyspace}.t"));
        let mut expected = Counters::default();
        expected.requests = 6;
        expected.at_owner_node = 2 * count;
        expected.at_owner_shard = count;
        expected.needing_leader = if leads { 6 } else { 0 };
        expected.at_leader = if leads { 2 } else { 0 };
        expected.forwarded = 6 - 2 * count;
        assert_eq!(found, expected, "{keyspace} {level}");
        assert_eq!(
            stats.total(),
            expected,
            "scans and system tables are not classified"
        );
        assert_eq!(stats.nodes.iter().map(|node| node.executes).sum::<u64>(), 6);
    }
}

#[test]
fn tablets_spread_over_nodes_racks_and_shards() {
    let sim = Sim::with_tables(TabletsMode::V2);
    let tablets = sim.cluster.tablets("ks", "t");
    assert_eq!(tablets.len(), 16, "twice the shards, as a power of two");
    let mut loads = [[0u32; SHARDS as usize]; NODES];
    for tablet in &tablets {
        assert_ne!(tablet.replicas[0].node, tablet.replicas[1].node);
        tablet
            .replicas
            .iter()
            .for_each(|r| loads[r.node][r.shard as usize] += 1);
    }
    let all: Vec<u32> = loads.concat();
    assert!(
        all.iter().max().unwrap() - all.iter().min().unwrap() <= 1,
        "{loads:?}"
    );
}
