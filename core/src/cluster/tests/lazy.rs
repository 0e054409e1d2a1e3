//! Connections that are opened at first use, and a total that they share.

use core::num::{NonZeroU16, NonZeroUsize};
use std::vec;
use std::vec::Vec;

use super::world::{Behaviour, World, config, node};
use crate::cluster::Input;
use crate::config::{Config, PoolSize};
use crate::routing::ShardIdx;

fn lazy() -> Config {
    let mut config = config("10.0.0.1");
    config.pool.lazy_shards = true;
    config
}

fn want(world: &mut World, host_id: u128, shard: u16) {
    let (node, shard) = (world.idx(host_id), ShardIdx::new(shard));
    world.input(Input::ShardWanted { node, shard });
}

fn capped(max: usize) -> Config {
    let mut config = config("10.0.0.1");
    config.pool.connections_max = NonZeroUsize::new(max);
    config
}

/// Connections of each node, open or under way.
fn by_node(world: &World) -> Vec<usize> {
    let of = |node| {
        world
            .conns
            .values()
            .filter(|conn| conn.node == node)
            .count()
    };
    (0..world.nodes.len()).map(of).collect()
}

#[test]
fn lazy_shards_are_opened_at_their_first_use() {
    let mut world = World::new(vec![node(1), node(2)], lazy());
    world.run_secs(60);
    assert_eq!((world.shards(1), world.shards(2)), (vec![0], vec![0]));
    assert_eq!(world.assigned[0].lazy_shards, Some(4));
    want(&mut world, 2, 3);
    want(&mut world, 2, 3);
    world.run_secs(1);
    assert_eq!((world.shards(1), world.shards(2)), (vec![0], vec![0, 3]));
    assert_eq!(world.connects.len(), 3);
    // What was wanted once is opened again.
    world.cut(1);
    world.run_secs(5);
    let shards = world.shards(2);
    assert!(shards.contains(&3) && shards.len() <= 2, "{shards:?}");
    assert_eq!(world.shards(1), [0]);
}

#[test]
fn lazy_shards_may_each_have_several_connections() {
    let mut config = lazy();
    config.pool.size = PoolSize::PerShard(NonZeroU16::new(2).unwrap());
    let mut world = World::new(vec![node(1)], config);
    world.run_secs(5);
    assert_eq!(world.shards(1), [0], "one serves the whole node");
    want(&mut world, 1, 2);
    world.run_secs(5);
    assert_eq!(world.shards(1), [0, 2, 2]);
}

/// A shard that cannot be reached costs a round of tries, and the node goes on with what it has.
#[test]
fn a_lazy_shard_out_of_reach_is_not_tried_for_ever() {
    let mut one = node(1);
    (one.shard_port_always, one.normal_port_always) = (Some(0), Some(0));
    let mut world = World::new(vec![one], lazy());
    world.run_secs(10);
    want(&mut world, 1, 2);
    world.run_secs(600);
    assert_eq!((world.shards(1), world.open_to(0)), (vec![0], 1));
    assert!(world.connects.len() <= 30, "{}", world.connects.len());
}

#[test]
fn shards_that_are_not_there_cannot_be_wanted() {
    for (shards, wanted) in [(Some(4), 4), (Some(4), u16::MAX), (None, 0), (None, 1)] {
        let mut one = node(1);
        one.shards = shards;
        let mut world = World::new(vec![one], lazy());
        world.run_secs(1);
        want(&mut world, 1, wanted);
        world.run_secs(30);
        assert_eq!(world.connects.len(), 1, "{shards:?} {wanted}");
    }
}

#[test]
fn a_node_that_restarts_with_other_shards_is_asked_for_anew() {
    let mut world = World::new(vec![node(1), node(2)], lazy());
    world.run_secs(1);
    want(&mut world, 2, 3);
    world.run_secs(1);
    world.nodes[1].shards = Some(2);
    world.cut(1);
    world.run_secs(5);
    assert_eq!(world.shards(2).len(), 1);
    assert_eq!(world.assigned[1].lazy_shards, Some(2));
    assert_eq!(world.engine.status().nodes[1].wanted, 1);
    want(&mut world, 2, 1);
    world.run_secs(5);
    assert!(world.shards(2).contains(&1));
}

/// Every node gets its first connection before any gets its second, whatever the total.
#[test]
fn a_total_is_shared_fairly() {
    for (max, expected) in [
        (1, vec![1, 0, 0]),
        (2, vec![1, 1, 0]),
        (3, vec![1, 1, 1]),
        (5, vec![2, 2, 1]),
        (7, vec![3, 2, 2]),
        (12, vec![4, 4, 4]),
        (100, vec![4, 4, 4]),
    ] {
        let nodes = vec![node(1), node(2), node(3)];
        let mut world = World::new(nodes, capped(max));
        for _ in 0..200 {
            world.run_for(core::time::Duration::from_millis(10));
            let all = world.conns.len();
            assert!(all <= max, "{all} of {max}");
        }
        let mut counts = by_node(&world);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(counts, expected, "of {max}");
        let warned = world
            .warnings
            .iter()
            .any(|text| text.contains("fewer connections"));
        assert_eq!(warned, max < 3, "{:?}", world.warnings);
        world.run_secs(120);
        assert!(world.connects.len() <= 16, "{}", world.connects.len());
    }
}

#[test]
fn a_place_is_kept_for_a_node_that_is_down() {
    let mut nodes = vec![node(1), node(2), node(3)];
    nodes[2].behaviour = Behaviour::Refuses;
    let mut world = World::new(nodes, capped(6));
    world.run_secs(60);
    assert_eq!(by_node(&world), [3, 2, 0]);
    world.nodes[2].behaviour = Behaviour::Good;
    world.run_secs(11);
    assert_eq!(by_node(&world), [3, 2, 1]);
}

#[test]
fn a_node_that_appears_late_gets_its_place_from_the_one_that_has_most() {
    let mut world = World::new(vec![node(1), node(2)], capped(5));
    world.run_secs(5);
    assert_eq!(by_node(&world).iter().sum::<usize>(), 5);
    let control = world.control();
    world.nodes.push(node(3));
    world.run_secs(70);
    let counts = by_node(&world);
    assert_eq!((counts[2], counts.iter().sum()), (1, 5), "{counts:?}");
    assert_eq!(world.control(), control);
    assert!(world.warnings.is_empty(), "{:?}", world.warnings);
}
