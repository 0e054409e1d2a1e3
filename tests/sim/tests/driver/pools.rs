//! Connections to shards and nodes: which are opened, where they land, what requests come to.

use core::num::NonZeroUsize;
use std::sync::Arc;

use messina_core::config::Config;
use messina_core::drive::Prepared;
use messina_core::routing::Host;
use messina_sim::node::{NodeOptions, Options, TabletsMode};

use crate::scene::{Scene, run_on};

const SECOND: u64 = 1_000_000;

/// Sharded nodes and no tablets, so that a request has one right node and shard at once.
fn cluster(nodes: usize, shards: u32, change: impl Fn(&mut NodeOptions)) -> Options {
    let mut options = Options::uniform(nodes, shards).with_tablets(TabletsMode::Off);
    options.nodes.iter_mut().for_each(change);
    options
}

async fn prepared_insert(scene: &Scene) -> Prepared {
    let keyspace = "CREATE KEYSPACE ks WITH replication = \
        {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
    scene.create(&[keyspace, table]).await;
    let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
    scene.session.prepare(insert).await.unwrap()
}

/// Connections that a node has accepted so far.
fn accepted(scene: &Scene, node: usize) -> u64 {
    scene
        .world
        .with_cluster(|cluster| cluster.stats().nodes[node].connections)
}

fn open(scene: &Scene, node: usize) -> usize {
    scene
        .world
        .with_cluster(|cluster| cluster.connection_count(node))
}

/// Case S5, both nodes: ten minutes of requests, and none fails.
#[test]
fn rewritten_source_ports_cost_no_request() {
    for (regular, reaches_all, most) in [(None, true, 20), (Some(0), false, 45)] {
        let options = cluster(1, 4, |node| {
            (node.shard_aware_gives, node.regular_gives) = (Some(0), regular);
        });
        let none = |_: &mut Config| {};
        run_on(options, none, move |scene| async move {
            let insert = prepared_insert(&scene).await;
            let session = &scene.session;
            scene.pause(5 * SECOND).await;
            let before = session.shard_aware_stats().tally;
            for pk in 0..2900_i64 {
                session.execute(&insert, (pk, pk)).await.unwrap();
                scene.pause(SECOND / 5).await;
            }
            let stats = session.shard_aware_stats();
            let node = stats.nodes[0];
            let connected = if reaches_all { 4 } else { 1 };
            assert_eq!(
                (node.shards, node.connected, node.missing),
                (4, connected, 4 - connected)
            );
            assert_eq!(open(&scene, 0), usize::from(connected));
            assert!(accepted(&scene, 0) <= most, "{}", accepted(&scene, 0));
            let reached = stats.tally.reached - before.reached;
            let missed = stats.tally.missed - before.missed;
            assert_eq!(reached + missed, 2900);
            if reaches_all {
                assert_eq!(missed, 0);
            } else {
                assert!((1900..=2450).contains(&missed), "{missed} of 2900");
            }
            let cluster = &session.status().cluster;
            assert!(cluster.counters.shard_mismatches > 0);
        });
    }
}

/// The first request for a shard goes elsewhere and opens its connection; the next goes there.
#[test]
fn lazy_shards_are_opened_by_the_requests_that_want_them() {
    let lazy = |config: &mut Config| config.pool.lazy_shards = true;
    run_on(cluster(1, 8, |_| ()), lazy, |scene| async move {
        let insert = prepared_insert(&scene).await;
        let session = &scene.session;
        scene.pause(60 * SECOND).await;
        assert!(session.is_shard_aware());
        assert_eq!(open(&scene, 0), 1);
        let before = session.status().shard_tally;
        for round in 0..2_i64 {
            session.execute(&insert, (7_i64, round)).await.unwrap();
            scene.pause(SECOND).await;
        }
        let tally = session.status().shard_tally;
        let (reached, missed) = (tally.reached - before.reached, tally.missed - before.missed);
        // Unless the one connection is on its shard by chance.
        assert!(matches!(
            ((reached, missed), open(&scene, 0)),
            ((1, 1), 2) | ((2, 0), 1)
        ));
        for pk in 0..400_i64 {
            session.execute(&insert, (pk, pk)).await.unwrap();
            scene.pause(SECOND / 100).await;
        }
        let stats = session.shard_aware_stats();
        assert_eq!((stats.nodes[0].connected, open(&scene, 0)), (8, 8));
        let missed = stats.tally.missed - before.missed;
        assert!(missed <= 7 * 2, "{missed}");
        // What was counted on connections stays when they are gone.
        let before = session.shard_aware_stats().tally;
        scene.world.with_cluster(|cluster| cluster.kill(0)).unwrap();
        scene.pause(SECOND).await;
        assert_eq!(open(&scene, 0), 0);
        assert_eq!(session.shard_aware_stats().tally, before);
        session.close().await;
        assert_eq!(session.shard_aware_stats().tally, before);
    });
}

#[test]
fn without_shards_nothing_is_counted() {
    for (plain, aware) in [(true, true), (false, false)] {
        let mut options = cluster(2, 4, |_| ());
        if plain {
            options = options.with_plain();
        }
        let adjust = move |config: &mut Config| config.pool.shard_aware = aware;
        run_on(options, adjust, |scene| async move {
            let insert = prepared_insert(&scene).await;
            for pk in 0..50_i64 {
                scene.session.execute(&insert, (pk, pk)).await.unwrap();
            }
            assert!(!scene.session.is_shard_aware());
            let stats = scene.session.shard_aware_stats();
            assert_eq!((stats.tally.reached, stats.tally.missed), (0, 0));
            assert!(stats.nodes.is_empty());
        });
    }
}

/// Requests never come to a node that is filtered out, though it is the contact point and owns
/// data.
#[test]
fn a_filtered_node_gets_no_request() {
    let adjust = |config: &mut Config| {
        config.contact_points.truncate(1);
        let filter = |host: &Host<'_>| host.address.ip().to_string() != "127.0.0.1";
        config.host_filter = Some(Arc::new(filter));
        config.pool.connections_max = NonZeroUsize::new(5);
    };
    run_on(cluster(3, 4, |_| ()), adjust, |scene| async move {
        let insert = prepared_insert(&scene).await;
        scene.pause(5 * SECOND).await;
        for pk in 0..200_i64 {
            scene.session.execute(&insert, (pk, pk)).await.unwrap();
        }
        let executes = |node: usize| {
            scene
                .world
                .with_cluster(|cluster| cluster.stats().nodes[node].executes)
        };
        assert_eq!(executes(0), 0);
        assert_eq!(executes(1) + executes(2), 200);
        // One for the control role, and the others share what is left.
        let counts = [0, 1, 2].map(|node| open(&scene, node));
        assert_eq!(counts, [1, 2, 2]);
    });
}
