//! Reaching the cluster for the first time.

use std::vec;
use std::vec::Vec;

use super::answers;
use super::world::{Behaviour, World, config, node, peer_row};
use crate::cluster::Input;
use crate::config::Config;
use crate::error::{ConfigProblem, ErrorKind, LinkErrorKind};
use crate::routing::KeyspaceConsistency;
use crate::target::{Steering, SteeringKind};
use crate::wire::response::ErrorCode;

#[test]
fn one_contact_point_leads_to_all_nodes() {
    let mut world = World::new(vec![node(1), node(2), node(3)], config("10.0.0.1"));
    world.run_secs(1);
    assert_eq!((world.ready, &world.failed), (1, &None));
    for host_id in 1..=3 {
        assert_eq!(world.shards(host_id), [0, 1, 2, 3], "{:?}", world.warnings);
        assert!(world.is_up(host_id));
    }
    // The first connection serves its node: no other one was opened to learn the topology.
    assert_eq!(world.connects.len(), 12);
    let view = world.view.clone().unwrap();
    let table = view.table_by_name("ks", "t").unwrap();
    assert!(table.has_tablets());
    assert_eq!(table.consistency(), KeyspaceConsistency::Strong);
    let status = world.engine.status();
    assert_eq!(status.cluster_name, "Test Cluster");
    assert_eq!(status.nodes.len(), 3);
    assert_eq!((status.nodes[0].wanted, status.nodes[0].connected), (4, 4));
    assert_eq!(status.nodes[0].shards_connected, [0, 1, 2, 3]);
    assert_eq!(status.keyspaces[0].tables, 1);
}

#[test]
fn a_small_device_has_one_connection_for_each_node() {
    let mut config = Config::mcu();
    config.add_contact_points("10.0.0.1").unwrap();
    let nodes = vec![node(1), node(2)];
    let mut world = World::steered(nodes, config, SteeringKind::None, 1).with_pages_of(1);
    world.run_secs(1);
    assert_eq!(world.connects.len(), 2);
    assert_eq!((world.shards(1).len(), world.shards(2).len()), (1, 1));
    assert!(
        world
            .connects
            .iter()
            .all(|(_, _, steering)| *steering == Steering::None)
    );
}

#[test]
fn a_cluster_without_the_tables_of_scylla_is_fine() {
    let mut one = node(1);
    (one.shards, one.shard_aware_port) = (None, None);
    let mut world = World::new(vec![one], config("10.0.0.1"));
    (world.scylla, world.tablets) = (false, false);
    world.run_secs(1);
    assert_eq!(world.ready, 1);
    assert_eq!(world.shards(1), [u16::MAX]);
    assert_eq!(world.count_statements("scylla_"), 0);
    let view = world.view.clone().unwrap();
    assert!(!view.table_by_name("ks", "t").unwrap().has_tablets());
}

#[test]
fn scylla_tables_may_be_missing_by_invalid() {
    let mut world = World::new(vec![node(1)], config("10.0.0.1"));
    world.scylla_tables = false;
    world.run_secs(1);
    assert_eq!(world.count_statements("scylla_"), 2);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    let view = world.view.clone().unwrap();
    assert!(!view.table_by_name("ks", "t").unwrap().has_tablets());
}

#[test]
fn names_are_resolved_and_all_addresses_tried() {
    let mut dead = node(9);
    dead.behaviour = Behaviour::Refuses;
    let mut world = World::new(vec![dead, node(1)], config("db.example:9042"));
    let addresses = vec!["10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap()];
    world.names.insert("db.example".into(), addresses);
    world.run_secs(1);
    assert_eq!(world.ready, 1);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
}

#[test]
fn a_silent_contact_point_delays_by_one_stagger_only() {
    for seed in 0..4 {
        let mut silent = node(2);
        silent.behaviour = Behaviour::Silent;
        let config = config("10.0.0.1,10.0.0.2");
        let nodes = vec![node(1), silent];
        let mut world = World::steered(nodes, config, SteeringKind::ExactPort, seed);
        world.run_for(core::time::Duration::from_millis(400));
        assert_eq!(world.ready, 1, "{seed}");
        assert!(world.failed.is_none());
    }
}

#[test]
fn wrong_credentials_end_it_after_one_attempt() {
    let mut nodes = vec![node(1), node(2), node(3)];
    for node in &mut nodes {
        node.behaviour = Behaviour::BadPassword;
    }
    let mut world = World::new(nodes, config("10.0.0.1,10.0.0.2,10.0.0.3"));
    world.run_secs(60);
    let error = world.failed.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::BadCredentials));
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn what_all_contact_points_say_is_the_error() {
    let mut nodes = vec![node(1), node(2)];
    for node in &mut nodes {
        node.behaviour = Behaviour::Refuses;
    }
    let mut world = World::new(nodes, config("10.0.0.1,10.0.0.2"));
    world.run_secs(6);
    let error = world.failed.clone().unwrap();
    let ErrorKind::Link(link) = error.kind() else {
        panic!("{error}")
    };
    assert_eq!(link.kind(), LinkErrorKind::Refused);
    let text = std::format!("{error}");
    assert!(
        text.contains("10.0.0.1:9042") && text.contains("10.0.0.2:9042"),
        "{text}"
    );
}

#[test]
fn different_causes_are_all_told() {
    let mut nodes = vec![node(1), node(2)];
    nodes[0].behaviour = Behaviour::Refuses;
    nodes[1].behaviour = Behaviour::Silent;
    let mut world = World::new(nodes, config("10.0.0.1,10.0.0.2,nowhere.example"));
    let start = world.now;
    world.run_secs(60);
    let error = world.failed.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.causes().len(), 3);
    let text = std::format!("{error}");
    for place in ["10.0.0.1:9042", "10.0.0.2:9042", "nowhere.example:9042"] {
        assert!(text.contains(place), "{text}");
    }
    let last = world.connects.last().unwrap().0;
    assert!(last.saturating_since(start).as_secs() < 5);
    assert_eq!(world.engine.poll_timeout(), None);
}

#[test]
fn a_keyspace_that_does_not_exist_is_the_error_of_the_session() {
    let mut config = config("10.0.0.1");
    config.keyspace = Some("nope".into());
    let mut world = World::new(vec![node(1)], config);
    world.run_secs(1);
    let error = world.failed.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Invalid));
    assert!(std::format!("{error}").contains("nope"));
    assert_eq!(world.open_to(0), 0);
}

#[test]
fn a_name_that_cannot_be_a_keyspace_is_not_sent() {
    for name in ["", "a b", "a\"; DROP", "é"] {
        let mut config = config("10.0.0.1");
        config.keyspace = Some(name.into());
        let mut world = World::new(vec![node(1)], config);
        world.run_secs(1);
        let kind = ErrorKind::Config(ConfigProblem::Keyspace);
        assert_eq!(world.failed.clone().unwrap().kind(), kind);
        assert!(world.connects.is_empty());
    }
}

#[test]
fn every_connection_is_put_into_the_keyspace_before_it_serves() {
    let mut config = config("10.0.0.1");
    config.keyspace = Some("Mixed".into());
    let mut world = World::new(vec![node(1), node(2)], config);
    world.keyspaces = vec!["Mixed"];
    world.run_secs(1);
    assert_eq!(world.count_statements("USE \"Mixed\""), 8);
    assert_eq!((world.shards(1).len(), world.shards(2).len()), (4, 4));
}

/// The node answers no question: the next contact point is tried.
#[test]
fn a_mute_contact_point_is_given_up() {
    for seed in 0..4 {
        let mut mute = node(2);
        mute.behaviour = Behaviour::Mute;
        let config = config("10.0.0.1,10.0.0.2");
        let nodes = vec![node(1), mute];
        let mut world = World::steered(nodes, config, SteeringKind::ExactPort, seed);
        world.run_secs(7);
        assert_eq!(world.ready, 1, "{seed}: {:?}", world.failed);
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
    }
}

/// Case O1: partial, duplicate and own rows.
#[test]
fn rows_of_peers_may_be_incomplete() {
    let b = node(2);
    let full = peer_row(&b);
    let with = |place: usize, cell| {
        let mut row = peer_row(&node(7));
        row[place] = cell;
        row
    };
    let mut duplicate = peer_row(&b);
    duplicate[0] = answers::inet("10.0.0.77");
    duplicate[4] = answers::inet("10.0.0.77");
    let mut own = peer_row(&node(1));
    own[0] = answers::inet("10.0.0.66");
    let mut any = peer_row(&node(5));
    any[4] = answers::inet("0.0.0.0");
    let mut no_rpc = peer_row(&node(6));
    no_rpc[4] = None;
    let mut zero_token = peer_row(&node(4));
    zero_token[5] = None;
    let joining = vec![
        answers::inet("10.0.0.8"),
        answers::uuid(8),
        None,
        None,
        None,
        None,
        None,
    ];
    let rows = vec![
        duplicate,
        full,
        joining,
        with(1, None),
        with(2, None),
        own,
        any,
        no_rpc,
        zero_token,
    ];
    let mut seen: Option<Vec<(u128, std::string::String)>> = None;
    for turn in 0..2 {
        let mut a = node(1);
        let mut rows = rows.clone();
        if turn == 1 {
            rows.reverse();
        }
        a.peers = Some(rows);
        let nodes = vec![a, b.clone(), node(4), node(5), node(6)];
        let mut world = World::new(nodes, config("10.0.0.1"));
        world.run_secs(70);
        let view = world.view.clone().unwrap();
        let mut found: Vec<(u128, std::string::String)> = view
            .topology()
            .nodes()
            .map(|node| (node.host_id().as_u128(), std::format!("{}", node.address())))
            .collect();
        found.sort();
        let expected = [1, 2, 4, 5, 6].map(|n| (n, std::format!("10.0.0.{n}:9042")));
        assert_eq!(found, expected);
        assert_eq!(seen.get_or_insert_with(|| found.clone()), &found);
        let zero = world.idx(4);
        assert!(view.topology().node(zero).unwrap().tokens().is_empty());
        for part in [
            "10.0.0.8 is skipped: it has no data_center",
            "10.0.0.7 is skipped: it has no host_id",
            "10.0.0.7 is skipped: it has no data_center",
        ] {
            let said = world
                .warnings
                .iter()
                .filter(|text| text.contains(part))
                .count();
            assert_eq!(said, 1, "{part}: {:?}", world.warnings);
        }
        // When its row is complete the node joins.
        let mut rows = world.nodes[0].peers.take().unwrap();
        rows.push(peer_row(&node(8)));
        world.nodes.push(node(8));
        world.nodes[0].peers = Some(rows);
        world.run_secs(70);
        assert_eq!(world.shards(8), [0, 1, 2, 3]);
    }
}

#[test]
fn shutdown_closes_everything_and_stays_quiet() {
    let mut world = World::new(vec![node(1), node(2)], config("10.0.0.1"));
    world.run_secs(1);
    world.assigned.clear();
    world.input(Input::Shutdown);
    assert!(world.conns.is_empty());
    let connects = world.connects.len();
    world.run_secs(100);
    assert_eq!(world.connects.len(), connects);
    assert_eq!(world.engine.poll_timeout(), None);
}

/// Case N7: READY although credentials are set. Connected, with one warning for all connections.
#[test]
fn credentials_that_nobody_asks_for_are_said_once() {
    let mut with_credentials = config("10.0.0.1");
    let plain = crate::conn::auth::PlainAuthenticator::new("u", "p");
    with_credentials.authenticator = Some(crate::sync::Shared::new(plain));
    for (config, warnings) in [(config("10.0.0.1"), 0), (with_credentials, 1)] {
        let mut world = World::new(vec![node(1)], config);
        world.run_secs(5);
        assert_eq!(world.shards(1).len(), 4);
        assert_eq!(world.warnings.len(), warnings, "{:?}", world.warnings);
    }
}
