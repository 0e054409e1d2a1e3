//! Random faults, then peace: nothing panics or spins, and everything recovers.

use core::time::Duration;
use std::vec::Vec;

use super::world::{Behaviour, World, config, node};
use crate::cluster::{ConnectionId, Input, SettleId};
use crate::rng::SmallRng;
use crate::target::SteeringKind;

/// One fault drawn by chance.
fn disturb(world: &mut World, rng: &mut SmallRng, settles: &mut u32) {
    let mut draw = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
    let node = draw(world.nodes.len());
    let ids: Vec<ConnectionId> = world
        .conns
        .iter()
        .filter_map(|(id, conn)| conn.opened.then_some(*id))
        .collect();
    match draw(9) {
        0 => world.cut(node),
        1 | 2 => {
            let all = [
                Behaviour::Good,
                Behaviour::Good,
                Behaviour::Refuses,
                Behaviour::Silent,
                Behaviour::Mute,
                Behaviour::Full,
                Behaviour::Drops,
            ];
            world.nodes[node].behaviour = all[draw(all.len())];
        }
        3 => {
            world.nodes[node].shards = [None, Some(1), Some(3), Some(5)][draw(4)];
            world.cut(node);
        }
        4 => {
            world.nodes[node].ip = [10, 0, 1, u8::try_from(node).unwrap() + 1].into();
            world.cut(node);
        }
        5 => {
            let always = [None, Some(0)][draw(2)];
            world.nodes[node].shard_port_always = always;
        }
        6 if !ids.is_empty() => {
            let id = ids[draw(ids.len())];
            let len = draw(40);
            let body: Vec<u8> = (0..len).map(|_| u8::try_from(draw(256)).unwrap()).collect();
            world.event(id, &body);
        }
        7 if !ids.is_empty() => {
            let id = ids[draw(ids.len())];
            world.cut_one(id);
        }
        _ => {
            *settles += 1;
            let id = SettleId(*settles);
            world.input(Input::Settle { id });
        }
    }
}

#[test]
fn whatever_happened_the_pools_are_full_again_in_the_end() {
    for seed in 0..18 {
        let kinds = [
            SteeringKind::None,
            SteeringKind::ExactPort,
            SteeringKind::BestEffortShard,
        ];
        let steering = kinds[usize::try_from(seed % 3).unwrap()];
        let mut config = config("db.example");
        config.limits.connecting = [1, 4, 64][usize::try_from(seed / 3 % 3).unwrap()];
        config.keyspace = (seed % 2 == 0).then(|| "ks".into());
        let nodes: Vec<_> = (1..=4).map(node).collect();
        let mut world = World::steered(nodes, config, steering, seed);
        let addresses = (1..=4).map(|n| [10, 0, 0, n].into());
        world.names.insert("db.example".into(), addresses.collect());
        world.run_secs(10);
        assert_eq!(world.ready, 1);
        let mut rng = SmallRng::from_seed(seed);
        let mut settles = 0;
        for _ in 0..150 {
            disturb(&mut world, &mut rng, &mut settles);
            let pause = rng.below(2_000_000);
            world.run_for(Duration::from_micros(pause));
        }
        let addresses = world.nodes.iter().map(|node| node.ip).collect();
        world.names.insert("db.example".into(), addresses);
        for node in &mut world.nodes {
            node.behaviour = Behaviour::Good;
            node.shard_port_always = None;
        }
        // A pause after fruitless tries may last ten minutes.
        world.run_secs(1300);
        for n in 0..4 {
            let node = &world.nodes[n];
            let expected: Vec<u16> = match node.shards {
                Some(count) => (0..count).collect(),
                None => [u16::MAX].into(),
            };
            let found = world.shards(node.host_id);
            assert_eq!(
                found,
                expected,
                "seed {seed}, node {n}: {:?}",
                world.engine.status()
            );
            assert!(world.is_up(node.host_id));
            assert_eq!(world.open_to(n), expected.len(), "seed {seed}, node {n}");
        }
        assert_eq!(world.settled.len(), usize::try_from(settles).unwrap());
        assert_eq!((world.ready, &world.failed), (1, &None));
    }
}
