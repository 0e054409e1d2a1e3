//! Sessions that begin with what an earlier one knew, and what becomes of them when that is not true.

use core::net::IpAddr;
use core::time::Duration;
use std::vec;
use std::vec::Vec;

use super::world::{Behaviour, FakeNode, World, config, node};
use crate::cluster::{Engine, Input, Output, Sources, WarmStart, save};
use crate::config::Config;
use crate::conn::extensions::Offer;
use crate::error::{Error, ErrorKind, PeerIncompatible};
use crate::routing::NodeIdx;
use crate::sync::Shared;
use crate::target::{Security, SteeringKind};
use crate::time::Instant;
use crate::wire::response::ErrorCode;

fn nodes() -> Vec<FakeNode> {
    vec![node(1), node(2), node(3)]
}

/// What a session with the contact point `seed` saves that knew these nodes; `seed` leads to the
/// first.
fn learned(nodes: Vec<FakeNode>) -> Vec<u8> {
    let first = nodes[0].ip;
    let mut world = World::new(nodes, config("seed"));
    world.names.insert("seed".into(), vec![first]);
    world.run_secs(2);
    assert_eq!(world.ready, 1);
    saved(&world, &config("seed"))
}

/// What a session of this configuration saves.
pub(super) fn saved(world: &World, config: &Config) -> Vec<u8> {
    let view = world.engine.view();
    let offer = Offer {
        tablets_v2: true,
        ..Offer::default()
    };
    let offers: Vec<(NodeIdx, Offer)> = view
        .topology()
        .nodes()
        .map(|node| (node.idx(), offer))
        .collect();
    let sources = Sources {
        config,
        view: &view,
        status: &world.engine.status(),
        statements: &[],
        offers: &offers,
    };
    save(&sources, 1 << 20)
}

/// A session that begins with it among other nodes; `seed` leads to the first of these.
fn warm(blob: Vec<u8>, nodes: Vec<FakeNode>) -> World {
    let mut config = config("seed");
    config.warm_start = Some(WarmStart::new(blob));
    let first = nodes[0].ip;
    let mut world = World::new(nodes, config);
    world.names.insert("seed".into(), vec![first]);
    world
}

/// Milliseconds until it can be used; at most ten seconds are waited.
fn ready_after(world: &mut World) -> u64 {
    for ms in 0..10_000 {
        if world.ready > 0 {
            return ms;
        }
        world.run_for(Duration::from_millis(1));
    }
    panic!("not ready: {:?}", world.failed);
}

#[test]
fn all_shards_are_connected_at_once_and_nothing_is_read_for_a_second() {
    let blob = learned(nodes());
    let mut world = warm(blob, nodes());
    let took = ready_after(&mut world);
    let began = world.connects[0].0;
    let at_once = world.connects.iter().filter(|(at, ..)| *at == began);
    assert_eq!(at_once.count(), 12, "{:?}", world.connects);
    assert!(took < 100, "{took}");
    world.run_for(Duration::from_millis(900));
    assert!(world.statements.is_empty(), "{:?}", world.statements);
    for host_id in 1..=3 {
        assert_eq!(world.shards(host_id), [0, 1, 2, 3]);
    }
    world.run_for(Duration::from_millis(300));
    assert!(world.count_statements("system.peers") == 1);
    assert_eq!(world.connects.len(), 12);
}

/// Addresses that serve nobody any more: where they refuse, the contact points are turned to at
/// once, where nobody answers, when the head start is over.
#[test]
fn when_all_addresses_have_changed_the_contact_points_count() {
    for behaviour in [None, Some(Behaviour::Refuses), Some(Behaviour::Silent)] {
        let blob = learned(nodes());
        let mut moved = nodes();
        for (n, node) in moved.iter_mut().enumerate() {
            node.ip = IpAddr::from([10, 0, 9, u8::try_from(n).unwrap()]);
        }
        if let Some(behaviour) = behaviour {
            for mut gone in nodes() {
                gone.host_id += 100;
                gone.behaviour = behaviour;
                // Nobody's peer: only its address is there.
                gone.peers = Some(Vec::new());
                moved.push(gone);
            }
        }
        let rows: Vec<_> = moved[..3].to_vec();
        for (n, node) in moved.iter_mut().enumerate().take(3) {
            let peers = rows.iter().enumerate().filter(|(at, _)| *at != n);
            node.peers = Some(peers.map(|(_, row)| super::world::peer_row(row)).collect());
        }
        let mut world = warm(blob, moved);
        let took = ready_after(&mut world);
        let bound = match behaviour {
            Some(Behaviour::Silent) => 600,
            _ => 100,
        };
        assert!(took < bound, "{behaviour:?}: {took} ms");
        world.run_secs(30);
        for host_id in 1..=3 {
            assert_eq!(world.shards(host_id), [0, 1, 2, 3], "{behaviour:?}");
        }
    }
}

#[test]
fn a_node_that_was_replaced_is_not_taken_for_the_one_before() {
    let blob = learned(nodes());
    let mut replaced = nodes();
    replaced[1].host_id = 77;
    let mut world = warm(blob, replaced);
    ready_after(&mut world);
    // Without waiting for the second in which nothing is read.
    world.run_for(Duration::from_millis(700));
    assert!(world.engine.status().counters.wrong_hosts >= 1);
    world.run_secs(1);
    assert_eq!(world.shards(77), [0, 1, 2, 3]);
    let view = world.view.clone().unwrap();
    let old = uuid::Uuid::from_u128(2);
    assert!(view.topology().node_by_host_id(old).is_none());
}

#[test]
fn another_cluster_under_the_same_addresses_is_met_as_such() {
    let blob = learned(nodes());
    let mut others = nodes();
    others.iter_mut().for_each(|node| node.host_id += 10);
    let mut world = warm(blob, others);
    let took = ready_after(&mut world);
    assert!(took < 100, "{took} ms");
    world.run_secs(2);
    for host_id in 11..=13 {
        assert_eq!(world.shards(host_id), [0, 1, 2, 3]);
    }
    assert_eq!(world.engine.status().nodes.len(), 3);
}

#[test]
fn a_node_that_does_not_answer_delays_nothing_beyond_the_head_start() {
    let blob = learned(nodes());
    let mut some = nodes();
    some[2].behaviour = Behaviour::Silent;
    let mut world = warm(blob, some);
    let took = ready_after(&mut world);
    assert!((500..520).contains(&took), "{took} ms");
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
}

/// What fails is what fails without it, and no later than the time for a connect.
#[test]
fn when_nothing_can_be_reached_the_session_fails() {
    for (behaviour, secs) in [
        (Behaviour::Refuses, 1),
        (Behaviour::BadPassword, 1),
        (Behaviour::Silent, 6),
    ] {
        let blob = learned(nodes());
        let mut dead = nodes();
        dead.iter_mut().for_each(|node| node.behaviour = behaviour);
        let mut world = warm(blob, dead);
        world.run_secs(secs);
        let kind = world.failed.as_ref().map(Error::kind);
        if behaviour == Behaviour::BadPassword {
            assert_eq!(kind, Some(ErrorKind::Server(ErrorCode::BadCredentials)));
            continue;
        }
        let mut cold = warm(Vec::new(), world.nodes.clone());
        cold.run_secs(secs);
        assert_eq!(kind, cold.failed.as_ref().map(Error::kind), "{behaviour:?}");
        assert!(kind.is_some(), "{behaviour:?}");
    }
}

/// Nothing in what it takes from a blob leads to where it does not want to go.
#[test]
fn a_blob_from_elsewhere_is_not_used() {
    let blob = learned(nodes());
    for points in ["other", "10.0.0.9", "10.0.0.2:9043"] {
        let mut config = config(points);
        config.warm_start = Some(WarmStart::new(blob.clone()));
        let engine = engine(config);
        assert!(engine.view().topology().is_empty(), "{points}");
    }
    // A known node will do, and so will one of several.
    for points in ["10.0.0.2", "other,seed"] {
        let mut config = config(points);
        config.warm_start = Some(WarmStart::new(blob.clone()));
        assert_eq!(engine(config).view().topology().len(), 3, "{points}");
    }
}

fn engine(mut config: Config) -> Engine {
    let warm_start = config.warm_start.take();
    let (steering, security) = (SteeringKind::ExactPort, Security::Plain);
    let now = Instant::from_micros(1);
    Engine::with_warm_start(Shared::new(config), steering, security, 1, now, warm_start)
}

/// A node that offers something else than before is connected to again at once, without an
/// assumption and without a pause.
#[test]
fn an_assumption_is_made_once() {
    let mut config = config("seed");
    config.warm_start = Some(WarmStart::new(learned(vec![node(1)])));
    let mut engine = engine(config);
    let take = |engine: &mut Engine| {
        let mut dials = Vec::new();
        while let Some(output) = engine.poll() {
            if let Output::Connect { id, assumed, .. } = output {
                dials.push((id, assumed));
            }
        }
        dials
    };
    let dials = take(&mut engine);
    assert_eq!(dials.len(), 4);
    for (id, assumed) in dials {
        assert!(assumed.is_some_and(|offer| offer.tablets_v2 && !offer.tablets_v1));
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
        let error = Error::new(kind);
        engine.handle(Instant::from_micros(2), Input::ConnectFailed { id, error });
        let again = take(&mut engine);
        assert!(matches!(&again[..], [(_, None)]), "{again:?}");
    }
}
