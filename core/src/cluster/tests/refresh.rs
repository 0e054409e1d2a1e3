//! Reading again: events, lost control connections, moved nodes, settling.

use core::time::Duration;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use uuid::Uuid;

use super::answers;
use super::world::{Behaviour, World, config, node, peer_row};
use crate::cluster::{Input, SettleId, learn};
use crate::routing::{LearnedReplica, PayloadKind, Token, parse_payload};
use crate::target::Endpoint;

fn three() -> World {
    let mut world = World::new(vec![node(1), node(2), node(3)], config("10.0.0.1"));
    world.run_secs(2);
    assert_eq!(world.ready, 1);
    world.statements.clear();
    world
}

/// Case O5.
#[test]
fn a_flood_of_events_causes_a_handful_of_readings() {
    let mut world = three();
    let control = world.control();
    let table = answers::event(
        "8400ffff0c00000025000d534348454d415f4348414e474500075550444154454400055441424c4500016b000174",
    );
    let function = answers::event(
        "8400ffff0c00000035000d534348454d415f4348414e4745000743524541544544000846554e4354494f4e00016b\
         00016600020003696e74000474657874",
    );
    let unknown = answers::event("8400ffff0c00000012000d4655545552455f4348414e4745000158");
    for n in 0..1000 {
        let body = if n % 2 == 0 { &table } else { &function };
        world.event(control, body);
        if n == 500 || n == 501 {
            world.event(control, &unknown);
        }
        world.run_for(Duration::from_millis(1));
    }
    world.run_secs(3);
    let readings = world.count_statements("FROM system_schema.tables");
    assert!((1..=3).contains(&readings), "{readings}");
    assert_eq!(world.count_statements("system.peers"), 0);
    let said = world
        .warnings
        .iter()
        .filter(|text| text.contains("FUTURE_CHANGE"))
        .count();
    assert_eq!(said, 1, "{:?}", world.warnings);
}

/// Events that never pause do not put the reading off for ever.
#[test]
fn a_stream_of_events_is_read_after_all_along() {
    let mut world = three();
    let control = world.control();
    let table = answers::event(
        "8400ffff0c00000025000d534348454d415f4348414e474500075550444154454400055441424c4500016b000174",
    );
    for _ in 0..100 {
        world.event(control, &table);
        world.run_for(Duration::from_millis(100));
    }
    let readings = world.count_statements("FROM system_schema.tables");
    assert!((5..=10).contains(&readings), "{readings}");
}

#[test]
fn everything_is_read_again_now_and_then() {
    let mut world = three();
    world.run_secs(200);
    assert_eq!(world.count_statements("system.peers"), 3);
    assert_eq!(world.count_statements("system_schema.keyspaces"), 3);
}

#[test]
fn a_lost_control_connection_is_replaced_and_everything_read() {
    for seed in 0..5 {
        let nodes = vec![node(1), node(2), node(3)];
        let steering = crate::target::SteeringKind::ExactPort;
        let mut world = World::steered(nodes, config("10.0.0.1"), steering, seed);
        world.run_secs(2);
        let old = world.control();
        world.statements.clear();
        world.nodes[0].behaviour = Behaviour::Refuses;
        world.cut(0);
        world.run_secs(2);
        assert_ne!(world.control(), old);
        assert_ne!(world.conns[&world.control()].node, 0);
        assert_eq!(world.count_statements("system.peers"), 1);
        assert_eq!((world.ready, &world.failed), (1, &None));
        // Events are heard there.
        world.statements.clear();
        let body = answers::event(
            "8400ffff0c00000026000d534348454d415f4348414e47450007435245415445440008\
             4b4559535041434500026b73",
        );
        world.event(world.control(), &body);
        world.run_secs(2);
        assert_eq!(world.count_statements("system_schema.tables"), 1);
    }
}

#[test]
fn a_mute_control_connection_costs_one_timeout() {
    for seed in 0..8 {
        let nodes = vec![node(1), node(2), node(3)];
        let steering = crate::target::SteeringKind::ExactPort;
        let mut world = World::steered(nodes, config("10.0.0.1"), steering, seed);
        world.run_secs(2);
        world.statements.clear();
        assert_eq!(world.conns[&world.control()].node, 0);
        world.nodes[0].behaviour = Behaviour::Mute;
        // The periodic reading finds out.
        world.run_secs(58 + 5 + 1);
        assert_ne!(world.engine.status().control, Some(world.idx(1)));
        assert_eq!(world.count_statements("system.peers"), 1, "{seed}");
        // It serves on: only questions are not answered.
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
    }
}

/// A connection that is full works: the role stays, questions wait.
#[test]
fn a_full_connection_keeps_the_control_role() {
    let mut world = three();
    let control = world.control();
    world.nodes[0].behaviour = Behaviour::Full;
    world.input(Input::Settle { id: SettleId(1) });
    world.run_secs(5);
    world.nodes[0].behaviour = Behaviour::Good;
    world.run_secs(1);
    assert!(world.settled[0].1);
    world.nodes[0].behaviour = Behaviour::Full;
    let before = world.refused;
    world.run_secs(80);
    assert_eq!(world.control(), control);
    assert!(world.refused - before < 30 * 8, "{}", world.refused);
    world.nodes[0].behaviour = Behaviour::Good;
    world.statements.clear();
    world.run_secs(2);
    assert_eq!(world.count_statements("system.peers"), 1);
    assert!(world.warnings.is_empty(), "{:?}", world.warnings);
}

/// Case O3.
#[test]
fn a_node_with_a_new_address_keeps_its_place() {
    for with_event in [true, false] {
        let mut world = three();
        let idx = world.idx(2);
        learn_tablet_of(&world, 2);
        let before = data_of(&world, 2);
        world.cut(1);
        world.nodes[1].ip = "10.0.0.9".parse().unwrap();
        let control = world.control();
        if with_event {
            let up = answers::event(
                "8400ffff0c0000001c000d5354415455535f4348414e474500025550040a00000900002352",
            );
            world.event(control, &up);
            world.run_secs(3);
        } else {
            world.run_secs(70);
        }
        assert_eq!(world.idx(2), idx);
        assert_eq!(world.shards(2), [0, 1, 2, 3], "{with_event}");
        assert_eq!(world.view.clone().unwrap().topology().len(), 3);
        assert_eq!(data_of(&world, 2), before);
        let gone = Endpoint::Addr("10.0.0.2:9042".parse().unwrap());
        let dials = |world: &World| {
            world
                .connects
                .iter()
                .filter(|(_, to, _)| *to == gone)
                .count()
        };
        let dials_before = dials(&world);
        // A late DOWN for the old address changes nothing.
        let down = answers::bytes("000d5354415455535f4348414e47450004444f574e040a00000200002352");
        world.event(control, &down);
        world.run_secs(3);
        assert_eq!(world.shards(2), [0, 1, 2, 3]);
        assert!(world.is_up(2));
        // Nobody goes to the old address again, when the new connections end neither.
        world.cut(1);
        world.run_secs(60);
        assert_eq!((world.shards(2).len(), dials(&world)), (4, dials_before));
        assert_eq!(data_of(&world, 2), before);
    }
}

/// An answer named a tablet of this node: (0, 100] of ks.t.
fn learn_tablet_of(world: &World, host_id: u128) {
    let view = world.view.clone().unwrap();
    let handle = view.table_by_name("ks", "t").unwrap().handle();
    let payload = answers::bytes(&std::format!(
        "00000008 0000000000000000 00000008 0000000000000064 00000024 00000001 0000001c 00000010 \
         {host_id:032x} 00000004 00000001 00000008 0123456789abcdef"
    ));
    let read = parse_payload(PayloadKind::V2, &payload);
    assert!(learn(&world.engine.tablets(), &view, handle, read).is_none());
}

/// What belongs to a node whatever its address: its tokens, and the tablets that name it.
fn data_of(world: &World, host_id: u128) -> (Vec<i64>, usize) {
    let (view, idx) = (world.view.clone().unwrap(), world.idx(host_id));
    let handle = view.table_by_name("ks", "t").unwrap().handle();
    let tablet = view.tablet(handle, Token::new(5)).unwrap();
    let is_named = |replica: &&LearnedReplica| replica.host_id == Uuid::from_u128(host_id);
    let tokens = view.topology().node(idx).unwrap().tokens().to_vec();
    (tokens, tablet.replicas().iter().filter(is_named).count())
}

/// Case O3: until the topology is read again, what leads to the wrong host is not used.
#[test]
fn nodes_that_swap_addresses_are_told_apart_by_host_id() {
    let mut world = three();
    for host_id in [2, 3] {
        learn_tablet_of(&world, host_id);
    }
    let before = data_of(&world, 3);
    let (b, c) = (world.nodes[1].ip, world.nodes[2].ip);
    (world.nodes[1].ip, world.nodes[2].ip) = (c, b);
    world.cut(1);
    world.cut(2);
    for _ in 0..3000 {
        world.run_for(Duration::from_millis(10));
        assert_told_apart(&world);
    }
    // A few of each node, by the pace of the back-off, until the reading that they caused has told.
    let wrong = world.engine.status().counters.wrong_hosts;
    assert!((2..=8).contains(&wrong), "{wrong}");
    assert!(world.count_statements("system.peers") <= 2);
    assert_eq!(data_of(&world, 3), before);
    for (host_id, ip) in [(2, c), (3, b)] {
        let idx = world.idx(host_id);
        assert_eq!(world.shards(host_id), [0, 1, 2, 3]);
        let view = world.view.clone().unwrap();
        assert_eq!(view.topology().node(idx).unwrap().address().ip(), ip);
    }
    // Late news of the old places: live connections know better.
    for down in [
        "000d5354415455535f4348414e47450004444f574e040a00000200002352",
        "000d5354415455535f4348414e47450004444f574e040a00000300002352",
    ] {
        world.event(world.control(), &answers::bytes(down));
    }
    world.run_secs(3);
    for host_id in [2, 3] {
        assert!(world.is_up(host_id));
        assert_eq!(world.shards(host_id), [0, 1, 2, 3]);
    }
    assert_told_apart(&world);
}

/// Each connection that takes requests for a node leads to it.
fn assert_told_apart(world: &World) {
    let view = world.view.clone().unwrap();
    for assignment in &world.assigned {
        let node = view.topology().node(assignment.node).unwrap();
        for (id, _) in &assignment.connections {
            let reached = &world.nodes[world.conns[id].node];
            assert_eq!(Uuid::from_u128(reached.host_id), node.host_id());
        }
    }
}

#[test]
fn a_removed_node_loses_its_pool_and_a_new_one_gets_one() {
    let mut world = three();
    let control = world.control();
    world.nodes.remove(2);
    world.nodes.push(node(4));
    let body = answers::event(
        "8400ffff0c00000024000f544f504f4c4f47595f4348414e474500084e45575f4e4f4445040a00000400002352",
    );
    world.event(control, &body);
    world.run_secs(3);
    assert_eq!(world.view.clone().unwrap().topology().len(), 3);
    assert_eq!(world.shards(4), [0, 1, 2, 3]);
    assert_eq!(world.assigned.len(), 3);
}

#[test]
fn when_every_address_is_dead_the_contact_points_help() {
    let mut world = World::new(vec![node(1), node(2)], config("db.example"));
    world
        .names
        .insert("db.example".into(), vec!["10.0.0.1".parse().unwrap()]);
    world.run_secs(2);
    assert_eq!(world.ready, 1);
    world.cut(0);
    world.cut(1);
    world.nodes[0].ip = "10.0.1.1".parse().unwrap();
    world.nodes[1].ip = "10.0.1.2".parse().unwrap();
    world
        .names
        .insert("db.example".into(), vec!["10.0.1.2".parse().unwrap()]);
    world.run_secs(60);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    assert_eq!(world.shards(2), [0, 1, 2, 3]);
    assert_eq!((world.ready, &world.failed), (1, &None));
}

#[test]
fn an_address_that_worked_is_kept_when_rows_name_another() {
    // The contact point is reached at 127.0.0.1, but calls itself 10.0.0.1.
    let mut one = node(1);
    one.ip = "127.0.0.1".parse().unwrap();
    one.calls_itself = Some("10.0.0.1".parse().unwrap());
    let mut world = World::new(vec![one, node(2)], config("127.0.0.1:9042"));
    let mut row = peer_row(&node(1));
    row[5] = answers::texts(1, &["1000"]);
    world.nodes[1].peers = Some(vec![row]);
    world.run_secs(2);
    let idx = world.idx(1);
    let address = |world: &World| {
        let view = world.view.clone().unwrap();
        view.topology().node(idx).unwrap().address().ip()
    };
    assert_eq!(address(&world).to_string(), "127.0.0.1");
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    // Another node tells of it by its own name.
    let before = world.connects.len();
    let control = world.control();
    world.cut_one(control);
    world.run_secs(100);
    assert_eq!(address(&world).to_string(), "127.0.0.1");
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    assert_eq!(world.connects.len(), before + 1);
    // Until it names another address: then it has moved.
    let mut row = peer_row(&node(1));
    (row[0], row[4]) = (answers::inet("10.0.0.5"), answers::inet("10.0.0.5"));
    world.nodes[1].peers = Some(vec![row]);
    world.nodes[0].calls_itself = Some("10.0.0.5".parse().unwrap());
    world.run_secs(100);
    assert_eq!(address(&world).to_string(), "10.0.0.5");
}

/// Nothing else happens on this one connection that could remind the engine of it.
#[test]
fn who_waits_from_the_very_start_is_not_forgotten() {
    let mut only = node(1);
    only.shards = None;
    let mut world = World::new([only].into(), config("10.0.0.1"));
    world.input(Input::Settle { id: SettleId(1) });
    world.run_secs(1);
    let told: Vec<_> = world.settled.iter().map(|(id, ok, _)| (*id, *ok)).collect();
    assert_eq!((world.ready, told), (1, [(SettleId(1), true)].into()));
}

#[test]
fn settling_waits_for_agreement_and_a_fresh_view() {
    let mut world = three();
    world.nodes[2].schema_version = 8;
    let (start, views) = (world.now, world.views);
    world.input(Input::Settle { id: SettleId(1) });
    world.run_for(Duration::from_millis(1500));
    assert!(world.settled.is_empty());
    let polls = world.count_statements("schema_version FROM system.local");
    assert!((7..=9).contains(&polls), "{polls}");
    world.nodes[2].schema_version = 7;
    world.keyspaces.push("later");
    world.run_secs(1);
    let (id, agreed, at) = world.settled[0];
    assert_eq!((id, agreed), (SettleId(1), true));
    assert!(at.saturating_since(start) < Duration::from_secs(2));
    assert!(world.views > views);
    assert!(
        world
            .view
            .clone()
            .unwrap()
            .table_by_name("later", "t")
            .is_some()
    );
    // Nobody waits: nobody asks.
    world.statements.clear();
    world.run_secs(5);
    assert_eq!(world.count_statements("schema_version"), 0);
}

#[test]
fn settling_ends_with_its_deadline_and_ignores_nodes_that_are_down() {
    let mut world = three();
    world.nodes[2].schema_version = 8;
    let start = world.now;
    world.input(Input::Settle { id: SettleId(1) });
    world.run_secs(20);
    let (_, agreed, at) = world.settled[0];
    assert!(!agreed);
    let waited = at.saturating_since(start).as_secs();
    assert!((10..12).contains(&waited), "{waited}");

    world.nodes[2].behaviour = Behaviour::Refuses;
    world.cut(2);
    world.run_secs(5);
    world.input(Input::Settle { id: SettleId(2) });
    world.run_secs(1);
    assert_eq!(world.settled.len(), 2);
    assert!(world.settled[1].1);
}

#[test]
fn settling_does_not_hang_without_any_node() {
    let mut world = three();
    for node in 0..3 {
        world.nodes[node].behaviour = Behaviour::Refuses;
        world.cut(node);
    }
    world.input(Input::Settle { id: SettleId(1) });
    world.run_secs(20);
    assert_eq!(world.settled.len(), 1);
    assert!(!world.settled[0].1);
}

#[test]
fn learned_tablets_are_kept_and_unknown_hosts_cause_one_reading() {
    let mut world = three();
    let view = world.view.clone().unwrap();
    let handle = view.table_by_name("ks", "t").unwrap().handle();
    // tuple<bigint, bigint, list<tuple<uuid, int>>, bigint>: (0, 100], host 2 shard 1, host 9.
    let replica =
        |host: &str, shard: &str| std::format!("0000001c 00000010 {host} 00000004 {shard}");
    let list = std::format!(
        "00000002 {} {}",
        replica("00000000000000000000000000000002", "00000001"),
        replica("00000000000000000000000000000009", "00000000"),
    );
    let payload = answers::bytes(&std::format!(
        "00000008 0000000000000000 00000008 0000000000000064 00000044 {list} 00000008 0123456789abcdef"
    ));
    let tablets = world.engine.tablets();
    let mut tell = |payload: &[u8]| {
        let read = parse_payload(PayloadKind::V2, payload);
        learn(&tablets, &view, handle, read).map(|news| world.input(Input::Tablet(news)))
    };
    for nth in 0..100 {
        assert_eq!(tell(&payload).is_some(), nth == 0);
    }
    let tablet = view.tablet(handle, Token::new(5)).unwrap();
    let hosts: Vec<u128> = tablet
        .replicas()
        .iter()
        .map(|r| r.host_id.as_u128())
        .collect();
    assert_eq!(hosts, [2, 9]);
    // Rubbish is reported once and changes nothing.
    for _ in 0..3 {
        assert!(tell(b"\0\0").is_some());
    }
    world.run_secs(5);
    assert_eq!(world.count_statements("system.peers"), 1);
    let said = world
        .warnings
        .iter()
        .filter(|text| text.contains("tablet"))
        .count();
    assert_eq!(said, 1);
}

#[test]
fn a_table_that_was_made_anew_is_another_table() {
    let mut world = three();
    let view = world.view.clone().unwrap();
    let old = view.table_by_name("ks", "t").unwrap().handle();
    let body = answers::event(
        "8400ffff0c00000026000d534348454d415f4348414e4745000755504441544544\
         00055441424c4500026b73000174",
    );
    for (table_id, same) in [(99, true), (100, false)] {
        world.table_id = table_id;
        world.event(world.control(), &body);
        world.run_secs(3);
        let view = world.view.clone().unwrap();
        assert_eq!(view.table(old).is_some(), same);
        assert!(view.table_by_name("ks", "t").is_some());
    }
    world.keyspaces.clear();
    world.event(world.control(), &body);
    world.run_secs(3);
    assert!(
        world
            .view
            .clone()
            .unwrap()
            .table_by_name("ks", "t")
            .is_none()
    );
}

/// The same seed and inputs give the same run.
#[test]
fn a_run_repeats() {
    let run = |seed| {
        let nodes = vec![node(1), node(2), node(3)];
        let steering = crate::target::SteeringKind::ExactPort;
        let mut world = World::steered(nodes, config("10.0.0.1,10.0.0.2"), steering, seed);
        world.run_secs(5);
        world.cut(1);
        world.run_secs(100);
        (std::format!("{:?}", world.connects), world.statements)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0);
}
