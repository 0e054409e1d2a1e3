//! Events, killed nodes, injected faults, odd nodes; and that a seed is a seed.

use core::net::SocketAddr;

use messina_sim::node::{CqlError, Listener, NodeEvent, Options, Replica, TabletsMode};

use crate::support::{
    EVENT, EXECUTE, LOCAL_QUORUM, QUERY, RESULT, Sim, execute, frames, hex, parameters, query,
    string, unhex,
};

const ALL_EVENTS: &str = "0003 000f 544f504f4c4f47595f4348414e4745 000d 5354415455535f4348414e4745
                          000d 534348454d415f4348414e4745";

#[test]
fn schema_events_reach_all_nodes_and_the_author() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let author = sim.connect(0, 0, &[]);
    let other = sim.connect(1, 0, &[]);
    let deaf = sim.connect(2, 0, &[]);
    for id in [author, other] {
        assert_eq!(sim.ask(id, 0x0B, &unhex(ALL_EVENTS)).opcode, 2);
    }
    sim.cluster.take_touched();
    let text = "CREATE TABLE ks.n (a int PRIMARY KEY)";
    let bytes = support_query(text);
    let own = frames(&sim.feed(author, &bytes));
    assert_eq!(
        own.iter().map(|frame| frame.opcode).collect::<Vec<_>>(),
        [EVENT, RESULT]
    );
    assert_eq!(sim.cluster.take_touched(), [other]);
    let heard = sim.cluster.take_output(other, sim.now);
    assert_eq!(
        hex(&heard),
        hex(&unhex(
            "84 00 ffff 0c 00000026 000d 534348454d415f4348414e4745 0007 43524541544544
             0005 5441424c45 0002 6b73 0001 6e"
        ))
    );
    assert!(sim.cluster.take_output(deaf, sim.now).is_empty());
    // What exists already is answered but not announced.
    sim.ok(
        author,
        "CREATE TABLE IF NOT EXISTS ks.n (a int PRIMARY KEY)",
    );
    assert!(sim.cluster.take_output(other, sim.now).is_empty());
}

fn support_query(text: &str) -> Vec<u8> {
    crate::support::frame(4, 0, 1, QUERY, &query(text, &parameters(LOCAL_QUORUM, &[])))
}

#[test]
fn a_killed_node_closes_refuses_and_is_announced() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let watcher = sim.connect(0, 0, &[]);
    sim.ask(watcher, 0x0B, &unhex(ALL_EVENTS));
    let victim = sim.connect(1, 0, &[]);
    sim.cluster.take_touched();
    sim.cluster.kill(1).unwrap();
    assert_eq!(sim.cluster.take_touched(), [victim, watcher]);
    assert!(sim.cluster.is_closed(victim));
    // The listener that the watcher came by names the port.
    let down =
        "84 00 ffff 0c 0000001e 000d 5354415455535f4348414e4745 0004 444f574e 04 7f000002 00004a62";
    assert_eq!(
        hex(&sim.cluster.take_output(watcher, sim.now)),
        hex(&unhex(down))
    );
    let peer = SocketAddr::new([10, 0, 0, 1].into(), 50000);
    assert!(
        sim.cluster
            .accept(1, Listener::Regular, peer, sim.now)
            .is_none()
    );
    // Two copies per partition: all-copies levels fail where node 1 holds one.
    let tablets = sim.cluster.tablets("ks", "t");
    let hit = tablets
        .iter()
        .any(|t| t.replicas.iter().any(|r| r.node == 1));
    assert!(hit);
    let unavailable = (0..50).any(|key| {
        let text = format!("SELECT v FROM ks.t WHERE pk = {key}");
        sim.query(watcher, &text).opcode != RESULT
    });
    assert!(unavailable, "a quorum of two is two");
    for tablet in sim.cluster.tablets("sc", "t") {
        assert_ne!(
            tablet.replicas[tablet.leader.unwrap()].node,
            1,
            "another one leads"
        );
    }
    sim.cluster.start(1).unwrap();
    let up = sim.cluster.take_output(watcher, sim.now);
    assert!(hex(&up).contains("0002555004"), "UP");
    sim.cluster.announce(1, NodeEvent::Removed);
    assert!(!sim.cluster.take_output(watcher, sim.now).is_empty());
    sim.connect(1, 0, &[]);
}

#[test]
fn a_group_without_leader_times_out_without_payload() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let at = sim
        .cluster
        .tablet_of("sc", "t", -4069959284402364209)
        .unwrap();
    sim.cluster.set_leader(("sc", "t"), at, None).unwrap();
    let id = sim.connect(0, 0, &[]);
    let write = sim.query(id, "INSERT INTO sc.t (pk) VALUES (1)");
    assert_eq!(write.error().0, 0x1100);
    assert!(hex(&write.body).ends_with("00010000000000000001000653494d504c45"));
    assert_eq!(
        sim.query(id, "SELECT v FROM sc.t WHERE pk = 1").error().0,
        0x1200
    );
    let level = parameters(1, &[]);
    let any = sim.ask(id, QUERY, &query("SELECT v FROM sc.t WHERE pk = 1", &level));
    assert_eq!(any.opcode, RESULT, "any replica can serve ONE");
}

#[test]
fn injected_faults_spare_system_tables() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let user = "SELECT v FROM ks.t WHERE pk = 1";
    let error = CqlError::named("overloaded", "busy").unwrap();
    sim.cluster.fail_next(0, &error, 2).unwrap();
    sim.ok(id, "SELECT key FROM system.local");
    for _ in 0..2 {
        assert_eq!(sim.query(id, user).error(), (0x1001, "busy".to_owned()));
    }
    sim.ok(id, user);
    sim.cluster.drop_next(0, 1).unwrap();
    sim.ok(id, "SELECT key FROM system.local");
    assert!(sim.feed(id, &support_query(user)).is_empty(), "no answer");
    sim.ok(id, user);
}

#[test]
fn delayed_replies_come_when_they_are_due() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.cluster.set_delay(0, 5_000).unwrap();
    let request = support_query("SELECT key FROM system.local");
    assert!(sim.feed(id, &request).is_empty());
    assert_eq!(sim.cluster.next_output_at(id), Some(sim.now + 5_000));
    assert!(sim.cluster.take_output(id, sim.now + 4_999).is_empty());
    assert!(!sim.cluster.take_output(id, sim.now + 5_000).is_empty());
    assert_eq!(sim.cluster.next_output_at(id), None);
}

#[test]
fn gathered_answers_go_together_or_when_they_are_due() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let (first, second) = (sim.connect(0, 0, &[]), sim.connect(1, 1, &[]));
    let request = support_query("SELECT v FROM ks.t WHERE pk = 1");
    sim.cluster.gather(2, 5_000);
    sim.ok(first, "SELECT key FROM system.local");
    assert!(sim.feed(first, &request).is_empty());
    sim.cluster.take_touched();
    assert!(!sim.feed(second, &request).is_empty());
    assert!(sim.cluster.take_touched().contains(&first));
    assert!(!sim.cluster.take_output(first, sim.now).is_empty());
    // The next one has nobody to wait with.
    assert!(sim.feed(first, &request).is_empty());
    assert_eq!(sim.cluster.next_output_at(first), Some(sim.now + 5_000));
    assert!(!sim.cluster.take_output(first, sim.now + 5_000).is_empty());
    sim.cluster.gather(0, 5_000);
    sim.ok(first, "SELECT v FROM ks.t WHERE pk = 1");
}

#[test]
fn bytes_are_counted_with_those_of_routing() {
    let mut sim = Sim::with_tables(TabletsMode::V1);
    let id = sim.connect(0, 0, &[]);
    sim.cluster.reset_stats();
    let request = support_query("SELECT key FROM system.local");
    let answer = sim.feed(id, &request);
    let stats = &sim.cluster.stats().nodes[0];
    assert_eq!(stats.bytes_received, request.len() as u64);
    assert_eq!(stats.bytes_sent, answer.len() as u64);
    assert_eq!((stats.payloads, stats.payload_bytes), (0, 0));
}

#[test]
fn odd_nodes_show_in_peers_and_own_nothing() {
    let mut options = Options::uniform(4, 2);
    options.nodes[1].joining = true;
    options.nodes[2].zero_token = true;
    options.nodes[3].peer_nulls = vec!["rack".to_owned(), "rpc_address".to_owned()];
    let mut sim = Sim::new(options);
    let id = sim.connect(0, 0, &[]);
    let rows = sim
        .ok(
            id,
            "SELECT host_id, rack, rpc_address, tokens FROM system.peers",
        )
        .rows()
        .rows;
    let nulls: Vec<Vec<bool>> = rows
        .iter()
        .map(|row| row.iter().map(Option::is_none).collect())
        .collect();
    assert_eq!(
        nulls,
        [
            [false, true, true, true],
            [false, false, false, true],
            [false, true, true, false],
        ]
    );
    sim.ok(id, "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 2}");
    sim.ok(id, "CREATE TABLE k.t (a int PRIMARY KEY)");
    let owns = |node| {
        sim.cluster
            .tablets("k", "t")
            .iter()
            .any(|t| t.replicas.iter().any(|r| r.node == node))
    };
    assert_eq!(
        [owns(0), owns(1), owns(2), owns(3)],
        [true, false, false, true]
    );
}

#[test]
fn the_shard_follows_the_port_unless_it_is_rewritten() {
    let mut options = Options::uniform(1, 5);
    options.port = 9042;
    let mut sim = Sim::new(options);
    let open = |sim: &mut Sim, port, listener| {
        let peer = SocketAddr::new([10, 0, 0, 1].into(), port);
        let id = sim.cluster.accept(0, listener, peer, sim.now).unwrap();
        sim.cluster.shard_of_connection(id).unwrap()
    };
    for port in 49152..49172 {
        assert_eq!(
            open(&mut sim, port, Listener::ShardAware),
            u32::from(port) % 5
        );
    }
    let regular: Vec<u32> = (0..5)
        .map(|_| open(&mut sim, 49152, Listener::Regular))
        .collect();
    assert_eq!(
        regular,
        [0, 1, 2, 3, 4],
        "the emptiest shard takes the next"
    );
    sim.cluster.set_nat(0, true).unwrap();
    let rewritten: Vec<u32> = (0..20)
        .map(|_| open(&mut sim, 49152, Listener::ShardAware))
        .collect();
    assert!(rewritten.iter().any(|shard| *shard != 49152 % 5));
}

#[test]
fn node_modes_are_negotiated_per_connection() {
    let mut options = Options::uniform(3, 1);
    options.nodes[0].tablets = TabletsMode::Off;
    options.nodes[1].tablets = TabletsMode::V1;
    options.nodes[2].tablets = TabletsMode::Both;
    let mut sim = Sim::new(options);
    for (node, keys) in [(0, [false, false]), (1, [true, false]), (2, [true, true])] {
        let id = sim.open(node, 0);
        let body = String::from_utf8_lossy(&sim.ask(id, 5, &[]).body).into_owned();
        assert_eq!(
            [
                body.contains("TABLETS_ROUTING_V1"),
                body.contains("TABLETS_ROUTING_V2_EXPERIMENTAL")
            ],
            keys
        );
    }
    // A key that the node did not offer is not taken: no byte is read.
    let id = sim.connect(0, 0, &[crate::support::V2]);
    let prepared = sim.prepare(id, "SELECT key FROM system.local");
    let reply = sim.ask(id, EXECUTE, &execute(&prepared, &parameters(1, &[]), None));
    assert_eq!(reply.opcode, RESULT);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        let mut options = Options::uniform(3, 3);
        options.seed = seed;
        let mut sim = Sim::new(options);
        let id = sim.connect(0, 0, &[crate::support::V1, crate::support::V2]);
        let mut bytes = Vec::new();
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
            "CREATE TABLE k.t (a int PRIMARY KEY, b text)",
            "SELECT * FROM system.peers",
            "SELECT * FROM system.local",
            "SELECT * FROM system_schema.tables",
            "INSERT INTO k.t (a, b) VALUES (1, 'x')",
            "SELECT * FROM k.t",
        ] {
            bytes.extend(sim.feed(id, &support_query(text)));
        }
        let tablets: Vec<Vec<Replica>> = sim
            .cluster
            .tablets("k", "t")
            .into_iter()
            .map(|t| t.replicas)
            .collect();
        (bytes, tablets)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    assert_eq!(string("x"), [0, 1, b'x']);
}
