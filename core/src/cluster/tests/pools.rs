//! Filling pools, and keeping them filled.

use core::num::NonZeroU16;
use core::time::Duration;
use std::format;
use std::vec;
use std::vec::Vec;

use super::answers::inet;
use super::world::{Behaviour, World, config, node, peer_row};
use crate::config::PoolSize;
use crate::routing::PortRange;
use crate::target::{Endpoint, Steering, SteeringKind};
use crate::time::Instant;

fn steered_connects(world: &World) -> Vec<u16> {
    let port = |(_, _, steering): &(Instant, Endpoint, Steering)| match steering {
        Steering::Port(port) => Some(port.get()),
        _ => None,
    };
    world.connects.iter().filter_map(port).collect()
}

fn to_port(world: &World, port: u16) -> usize {
    let is_it =
        |endpoint: &Endpoint| matches!(endpoint, Endpoint::Addr(addr) if addr.port() == port);
    world
        .connects
        .iter()
        .filter(|(_, endpoint, _)| is_it(endpoint))
        .count()
}

#[test]
fn shards_are_reached_by_source_ports() {
    let mut world = World::new(vec![node(1)], config("10.0.0.1"));
    world.run_secs(1);
    let ports = steered_connects(&world);
    assert_eq!(ports.len(), 3);
    assert!(ports.iter().all(|port| *port >= 49152));
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    assert_eq!((to_port(&world, 9042), to_port(&world, 19042)), (1, 3));
}

#[test]
fn a_taken_port_is_followed_by_the_next() {
    let mut world = World::new(vec![node(1)], config("10.0.0.1"));
    // The one free port leads to shard 3.
    world.busy_ports = Some(50_003);
    world.run_secs(30);
    let ports = steered_connects(&world);
    for shard in 1..4 {
        let mut tried: Vec<u16> = ports.iter().copied().filter(|p| p % 4 == shard).collect();
        let count = tried.len();
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(
            tried.len(),
            count,
            "a port was tried twice for shard {shard}"
        );
    }
    assert!(ports.len() <= 3 * 4096, "{}", ports.len());
    // The shards without a port were filled through the normal port.
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
}

#[test]
fn without_a_shard_aware_port_the_normal_one_fills_the_pool() {
    for (steering, port, refuses) in [
        (SteeringKind::None, Some(19042), false),
        (SteeringKind::ExactPort, None, false),
        (SteeringKind::ExactPort, Some(19042), true),
        (SteeringKind::BestEffortShard, Some(19042), true),
    ] {
        let mut one = node(1);
        (one.shard_aware_port, one.shard_port_refuses) = (port, refuses);
        let mut world = World::steered(vec![one], config("10.0.0.1"), steering, 1);
        world.run_secs(30);
        assert_eq!(world.shards(1), [0, 1, 2, 3], "{steering:?} {port:?}");
        assert!(world.connects.len() <= 4 + 3, "{}", world.connects.len());
        assert_eq!(world.open_to(0), 4);
    }
}

#[test]
fn best_effort_asks_for_the_shard() {
    let nodes = vec![node(1)];
    let mut world = World::steered(nodes, config("10.0.0.1"), SteeringKind::BestEffortShard, 1);
    world.run_secs(1);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    let asked = |(_, _, steering): &&(Instant, Endpoint, Steering)| matches!(steering, Steering::Shard { of, .. } if of.get() == 4);
    assert_eq!(world.connects.iter().filter(asked).count(), 3);
}

/// Case S5: the shard-aware port leads to shard 0 whatever the source port.
#[test]
fn rewritten_source_ports_are_noticed() {
    for steering in [SteeringKind::ExactPort, SteeringKind::BestEffortShard] {
        let mut one = node(1);
        one.shard_port_always = Some(0);
        let mut world = World::steered(vec![one], config("10.0.0.1"), steering, 1);
        world.run_secs(600);
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
        assert_eq!(world.open_to(0), 4);
        assert!(world.connects.len() <= 20, "{}", world.connects.len());
        assert!(world.engine.status().counters.shard_mismatches > 0);
        let said = world
            .warnings
            .iter()
            .filter(|text| text.contains("shard-aware"))
            .count();
        assert_eq!(said, 1);
    }
}

/// Case S5, second node: the normal port leads to shard 0 too.
#[test]
fn a_pool_that_cannot_be_filled_is_left_in_peace() {
    let mut one = node(1);
    (one.shard_port_always, one.normal_port_always) = (Some(0), Some(0));
    let mut world = World::new(vec![one], config("10.0.0.1"));
    world.run_secs(60);
    let first_minute = world.connects.len();
    world.run_secs(540);
    assert_eq!(world.shards(1), [0]);
    assert_eq!(world.open_to(0), 1);
    assert!(world.engine.status().nodes[0].is_up);
    let all = world.connects.len();
    assert!(first_minute <= 30 && all <= 45, "{first_minute}, {all}");
    // The pauses grow, but it is tried again for ever.
    world.run_secs(3600);
    let more = world.connects.len() - all;
    assert!((3..=60).contains(&more), "{more}");
}

/// Steering rests, and comes back: by then the address may be translated no more.
#[test]
fn steering_comes_back_after_its_rest() {
    let mut one = node(1);
    (one.shard_port_always, one.normal_port_always) = (Some(0), Some(0));
    let mut world = World::new(vec![one], config("10.0.0.1"));
    world.run_secs(60);
    let steered = to_port(&world, 19042);
    // Those that were under way together when the first one told.
    assert!((1..=3).contains(&steered), "{steered}");
    assert!(world.engine.status().nodes[0].is_nat_resting);
    world.run_secs(500);
    assert_eq!(to_port(&world, 19042), steered);
    world.nodes[0].shard_port_always = None;
    world.run_secs(60);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    assert_eq!(to_port(&world, 19042), steered + 3);
    assert!(!world.engine.status().nodes[0].is_nat_resting);
}

#[test]
fn a_node_that_restarts_with_other_shards_is_laid_out_anew() {
    let mut world = World::new(vec![node(1), node(2)], config("10.0.0.1"));
    world.run_secs(1);
    world.nodes[1].shards = Some(2);
    world.cut(1);
    world.run_secs(5);
    assert_eq!(world.shards(2), [0, 1]);
    let idx = world.idx(2);
    let view = world.view.clone().unwrap();
    let map = view.topology().node(idx).unwrap().shard_map().unwrap();
    assert_eq!(map.count().get(), 2);
    // One connection of the old layout lingers: it goes when a new one tells.
    world.nodes[1].shards = Some(3);
    let old = world.assigned[1].connections.clone();
    world.cut_one(old[0].0);
    world.run_secs(5);
    assert_eq!(world.shards(2), [0, 1, 2]);
    assert!(!world.conns.contains_key(&old[1].0));
}

#[test]
fn shard_awareness_can_be_switched_off() {
    let mut config = config("10.0.0.1");
    config.pool.shard_aware = false;
    let mut world = World::new(vec![node(1)], config);
    world.run_secs(1);
    assert_eq!(world.shards(1), [u16::MAX]);
    assert_eq!(world.connects.len(), 1);
}

#[test]
fn the_shard_aware_port_alone_can_be_switched_off() {
    let mut config = config("10.0.0.1");
    config.pool.shard_aware_port = false;
    let mut world = World::new(vec![node(1)], config);
    world.run_secs(30);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
    assert_eq!(
        (to_port(&world, 19042), steered_connects(&world).len()),
        (0, 0)
    );
}

/// Case L1: attempts come at the pace of the back-off, and end at most one cap after it is back.
#[test]
fn a_node_that_refuses_is_tried_at_growing_intervals() {
    // A node that accepts first costs a whole pool's connects each time.
    for (behaviour, most) in [(Behaviour::Refuses, 800), (Behaviour::Drops, 4 * 800)] {
        let mut world = World::new(vec![node(1), node(2)], config("10.0.0.1"));
        world.run_secs(20);
        world.nodes[1].behaviour = behaviour;
        world.cut(1);
        let before = world.nodes[1].connects;
        world.run_secs(3600);
        let tries = world.nodes[1].connects - before;
        assert!((350..=most).contains(&tries), "{behaviour:?}: {tries}");
        assert_eq!(world.is_up(2), behaviour == Behaviour::Drops);
        world.nodes[1].behaviour = Behaviour::Good;
        world.run_secs(11);
        assert_eq!(world.shards(2), [0, 1, 2, 3], "{behaviour:?}");
        assert!(world.is_up(2));
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
    }
}

#[test]
fn every_node_is_reached_before_any_pool_is_filled() {
    let mut config = config("10.0.0.1");
    config.limits.connecting = 1;
    let mut world = World::new(vec![node(1), node(2), node(3)], config);
    world.run_secs(5);
    let mut first: Vec<Endpoint> = world.connects.iter().take(3).map(|c| c.1.clone()).collect();
    first.sort_by_key(|endpoint| std::format!("{endpoint}"));
    let expected = [1, 2, 3].map(|n| Endpoint::Addr(([10, 0, 0, n], 9042).into()));
    assert_eq!(first, expected);
}

#[test]
fn one_silent_node_does_not_hold_up_the_others() {
    let mut config = config("10.0.0.1");
    config.limits.connecting = 2;
    let mut nodes: Vec<_> = (1..=6).map(node).collect();
    nodes[1].behaviour = Behaviour::Silent;
    let mut world = World::new(nodes, config);
    let mut most = 0;
    for _ in 0..300 {
        world.run_for(Duration::from_millis(10));
        let opening = world.conns.values().filter(|conn| !conn.opened).count();
        most = most.max(opening);
    }
    assert!(most <= 2);
    for host_id in [1, 3, 4, 5, 6] {
        assert_eq!(world.shards(host_id), [0, 1, 2, 3], "{host_id}");
    }
    world.run_secs(10);
    assert!(!world.is_up(2));
}

#[test]
fn down_events_do_not_touch_live_connections_and_up_events_hurry() {
    let mut world = World::new(vec![node(1), node(2)], config("10.0.0.1"));
    world.run_secs(20);
    let control = world.control();
    // STATUS_CHANGE DOWN / UP 10.0.0.2.
    let down =
        super::answers::bytes("000d5354415455535f4348414e47450004444f574e040a00000200002352");
    let up = super::answers::bytes("000d5354415455535f4348414e474500025550040a00000200002352");
    world.event(control, &down);
    world.run_secs(5);
    assert_eq!(world.open_to(1), 4);
    assert!(world.is_up(2));
    world.nodes[1].behaviour = Behaviour::Refuses;
    world.cut(1);
    assert!(
        world.is_up(2),
        "the event was from before, nothing failed yet"
    );
    world.run_secs(300);
    assert!(!world.is_up(2));
    // With no connection to know better, the event counts.
    world.event(control, &up);
    assert!(world.is_up(2));
    world.event(control, &down);
    assert!(!world.is_up(2));
    world.nodes[1].behaviour = Behaviour::Good;
    world.event(control, &up);
    world.run_for(Duration::from_millis(150));
    assert_eq!(world.open_to(1), 4);
    assert!(world.is_up(2));
}

/// Clients reach the node at 10.0.0.2, the others know it as 10.9.9.2, and the port of an event is
/// that of whoever hears it.
#[test]
fn events_name_nodes_by_their_broadcast_address() {
    let mut nodes = vec![node(1), node(2)];
    let mut row = peer_row(&nodes[1]);
    row[0] = inet("10.9.9.2");
    nodes[0].peers = Some(vec![row]);
    let mut world = World::new(nodes, config("10.0.0.1"));
    world.run_secs(20);
    assert_eq!(world.open_to(1), 4);
    world.nodes[1].behaviour = Behaviour::Refuses;
    world.cut(1);
    world.run_secs(300);
    assert!(!world.is_up(2));
    let control = world.control();
    let up_of = |address: &str| {
        let head = "000d5354415455535f4348414e474500025550";
        super::answers::bytes(&format!("{head}04{address}00004a62"))
    };
    world.event(control, &up_of("0a090903"));
    assert!(!world.is_up(2), "another node is up");
    world.event(control, &up_of("0a090902"));
    assert!(world.is_up(2));
}

/// Case S3: the range has no port, or one, for a shard.
#[test]
fn narrow_port_ranges_leave_shards_to_the_normal_port() {
    for (first, last) in [(49152, 49152), (49153, 49155), (65535, 65535)] {
        let mut config = config("10.0.0.1");
        config.pool.source_ports = PortRange::new(first, last).unwrap();
        let mut world = World::new(vec![node(1)], config);
        world.run_secs(30);
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
        let ports = steered_connects(&world);
        assert!(ports.iter().all(|port| (first..=last).contains(port)));
        assert!(world.connects.len() <= 4 + 3, "{}", world.connects.len());
    }
}

#[test]
fn tls_uses_the_tls_port_and_never_one_named_as_plain() {
    for (tls_port, expected) in [(None, 9042), (Some(19142), 19142)] {
        let mut one = node(1);
        one.tls_port = tls_port;
        let mut world = World::secured(vec![one], config("10.0.0.1"));
        world.run_secs(5);
        assert_eq!(world.shards(1), [0, 1, 2, 3]);
        assert_eq!(to_port(&world, 19042), 0);
        assert!(to_port(&world, expected) >= 3);
    }
}

/// Case S7: the sharding values of a node are not usable.
#[test]
fn a_node_with_impossible_sharding_is_used_without_shards() {
    let mut one = node(1);
    one.is_sharding_invalid = true;
    let mut world = World::new(vec![one], config("10.0.0.1"));
    world.run_secs(5);
    assert_eq!(world.shards(1), [u16::MAX]);
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert_eq!(world.engine.status().nodes[0].shards, None);
}

#[test]
fn the_number_of_shards_is_not_believed_without_bound() {
    let mut one = node(1);
    one.shards = Some(u16::MAX);
    let mut world = World::new(vec![one], config("10.0.0.1"));
    world.run_secs(20);
    assert_eq!(world.shards(1).len(), 1024);
    assert_eq!(world.connects.len(), 1024);
}

#[test]
fn several_connections_for_each_shard_or_node() {
    let three = NonZeroU16::new(3).unwrap();
    for (size, expected) in [
        (
            PoolSize::PerShard(three),
            vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
        ),
        (PoolSize::PerHost(three), vec![0, 1, 2]),
    ] {
        let mut config = config("10.0.0.1");
        config.pool.size = size;
        let mut world = World::new(vec![node(1)], config);
        world.run_secs(5);
        assert_eq!(world.shards(1), expected);
        assert_eq!(world.connects.len(), expected.len());
    }
}

#[test]
fn a_node_without_the_keyspace_is_tried_with_back_off_and_one_warning() {
    let mut config = config("10.0.0.1");
    config.keyspace = Some("ks".into());
    let mut nodes = vec![node(1), node(2)];
    nodes[1].has_keyspaces = false;
    let mut world = World::new(nodes, config);
    world.run_secs(600);
    assert_eq!((world.ready, world.shards(1)), (1, vec![0, 1, 2, 3]));
    assert!(world.shards(2).is_empty());
    assert!(
        world.nodes[1].connects < 150 * 4,
        "{}",
        world.nodes[1].connects
    );
    let said = world
        .warnings
        .iter()
        .filter(|text| text.contains("keyspace"))
        .count();
    assert_eq!(said, 1, "{:?}", world.warnings);
    world.nodes[1].has_keyspaces = true;
    world.run_secs(15);
    assert_eq!(world.shards(2), [0, 1, 2, 3]);
}

/// A password that changed is not tried in a tight loop against any node.
#[test]
fn refused_credentials_of_a_running_session_back_off() {
    let mut world = World::new(vec![node(1), node(2)], config("10.0.0.1"));
    world.run_secs(20);
    let before = world.connects.len();
    for node in 0..2 {
        world.nodes[node].behaviour = Behaviour::BadPassword;
        world.cut(node);
    }
    world.run_secs(600);
    let tries = world.connects.len() - before;
    assert!(tries < 3 * 150, "{tries}");
    assert!(world.failed.is_none());
}
