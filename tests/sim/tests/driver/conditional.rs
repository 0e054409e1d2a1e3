//! Conditional statements on tablets: who gets them, and how the driver learns where they go.
//! Where the second tablets extension was agreed their answers never tell a tablet.
#![expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]

use core::cell::Cell;
use std::rc::Rc;

use messina_core::drive::Prepared;
use messina_core::wire::{Consistency, SerialConsistency};
use messina_sim::node::{Counters, Options, TabletsMode};

use crate::scene::{Scene, run_on};

const TABLETS: usize = 100;

/// One round of conditional writes, one for each tablet: what the nodes counted.
async fn round(scene: &Scene, insert: &Prepared, keys: &[i64]) -> Vec<Counters> {
    scene.world.with_cluster(|cluster| cluster.reset_stats());
    for &key in keys {
        let ran = scene.session.execute(insert, (key, 1_i64)).await.unwrap();
        assert!(ran.applied().is_some());
    }
    scene.world.with_cluster(|cluster| {
        let nodes = cluster.stats().nodes;
        let table = |node: &messina_sim::node::NodeStats| node.tables.get("ks.t").copied();
        nodes
            .iter()
            .map(|node| table(node).unwrap_or_default())
            .collect()
    })
}

fn sum(counters: &[Counters], count: impl Fn(&Counters) -> u64) -> u64 {
    counters.iter().map(count).sum()
}

async fn prepare(scene: &Scene, factor: usize) -> (Prepared, Vec<i64>) {
    let session = &scene.session;
    let keyspace = format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'NetworkTopologyStrategy', \
         'replication_factor': {factor}}} AND tablets = {{'initial': {TABLETS}}}"
    );
    let table = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
    scene.create(&[&keyspace, table]).await;
    let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?) IF NOT EXISTS";
    let insert = session.prepare(insert).await.unwrap();
    assert!(insert.is_lwt());
    scene.pause(3_000_000).await;
    let mut keys = vec![
        None;
        scene
            .world
            .with_cluster(|cluster| cluster.tablets("ks", "t").len())
    ];
    for key in 0..20_000_i64 {
        let token = session.route(&insert, (key, 0_i64)).unwrap().token.unwrap();
        let tablet = scene
            .world
            .with_cluster(|cluster| cluster.tablet_of("ks", "t", token.value()));
        keys[tablet.unwrap()].get_or_insert(key);
    }
    let keys = keys
        .into_iter()
        .collect::<Option<_>>()
        .expect("20,000 keys");
    (insert, keys)
}

/// A hundred tablets on three nodes of four shards. Without rotation all go to the node with the
/// lowest host id, which heads each list; with it each node has its share. Either way every one
/// reaches its shard, once the driver has learned.
#[test]
fn shares_of_the_nodes_in_both_orders() {
    for rotate in [false, true] {
        run_on(
            Options::uniform(3, 4),
            |config| {
                config.consistency = Consistency::Quorum;
                config.policy.rotate_lwt = rotate;
            },
            |scene| async move {
                let (insert, keys) = prepare(&scene, 3).await;
                assert_eq!(keys.len(), TABLETS);
                let cold = round(&scene, &insert, &keys).await;
                for _ in 0..3 {
                    round(&scene, &insert, &keys).await;
                }
                let warm = round(&scene, &insert, &keys).await;
                // Reads that teach are counted among the cold ones; none is left among the warm.
                let shares: Vec<u64> = warm.iter().map(|node| node.requests).collect();
                let missed = |counters: &[Counters]| {
                    sum(counters, |node| node.requests) - sum(counters, |node| node.at_owner_shard)
                };
                println!(
                    "rotate_lwt {rotate}: of {TABLETS} conditional writes {shares:?} by node; \
                     not at their shard: {} of {} while learning, {} of {TABLETS} after",
                    missed(&cold),
                    sum(&cold, |node| node.requests),
                    missed(&warm),
                );
                assert_eq!(sum(&warm, |node| node.requests), 100);
                assert_eq!(missed(&warm), 0);
                let lowest = scene.world.with_cluster(|cluster| {
                    (0..3).min_by_key(|&node| cluster.host_id(node)).unwrap()
                });
                if rotate {
                    assert!(
                        shares.iter().all(|share| (20..=47).contains(share)),
                        "{shares:?}"
                    );
                } else {
                    assert_eq!(shares[lowest], 100);
                }
            },
        );
    }
}

/// Tablets of one replica on four nodes: how many conditional writes another node had to serve,
/// with the driver learning and without.
#[test]
fn learning_ends_forwarding() {
    let forwarded = Rc::new(Cell::new([(0, 0); 2]));
    for learn in [false, true] {
        let found = Rc::clone(&forwarded);
        run_on(
            Options::uniform(4, 2),
            |config| {
                config.consistency = Consistency::One;
                config.policy.learn_lwt = learn;
            },
            |scene| async move {
                let (insert, keys) = prepare(&scene, 1).await;
                let first = round(&scene, &insert, &keys).await;
                for _ in 0..3 {
                    round(&scene, &insert, &keys).await;
                }
                let last = round(&scene, &insert, &keys).await;
                assert_eq!(sum(&last, |node| node.requests), 100, "no further reads");
                let mut all = found.get();
                let count = |counters: &[Counters]| sum(counters, |node| node.forwarded);
                all[usize::from(learn)] = (count(&first), count(&last));
                found.set(all);
            },
        );
    }
    let [never, learning] = forwarded.get();
    println!("forwarded in the first and the fifth round: {never:?}, with learning {learning:?}");
    assert!(
        never.1 > 50,
        "three of four are guessed wrong for ever: {never:?}"
    );
    assert_eq!(learning.1, 0);
}

/// The statement, and a key whose tablet was learned by writing it.
async fn learned(scene: &Scene) -> (Prepared, [i64; 1]) {
    let (insert, keys) = prepare(scene, 1).await;
    let key = [keys[0]];
    for _ in 0..4 {
        round(scene, &insert, &key).await;
    }
    (insert, key)
}

/// A tablet that moved is found again by the read of the next minute, which is the only one.
#[test]
fn a_known_tablet_is_read_for_once_a_minute() {
    run_on(
        Options::uniform(3, 2),
        |config| config.consistency = Consistency::One,
        |scene| async move {
            let (insert, key) = learned(&scene).await;
            let mut reads = 0;
            // About nine minutes, a write each five seconds.
            while scene.world.now() < 560_000_000 {
                let counted = round(&scene, &insert, &key).await;
                reads += sum(&counted, |node| node.requests) - 1;
                assert_eq!(sum(&counted, |node| node.forwarded), 0);
                scene.pause(5_000_000).await;
            }
            assert!((6..=10).contains(&reads), "{reads}");
        },
    );
}

#[test]
fn a_tablet_that_moved_is_found_again() {
    run_on(
        Options::uniform(3, 2),
        |config| config.consistency = Consistency::One,
        |scene| async move {
            let (insert, key) = learned(&scene).await;
            scene.world.with_cluster(|cluster| {
                let from = cluster.tablets("ks", "t")[0].replicas[0];
                let mut to = from;
                to.node = (from.node + 1) % 3;
                cluster.move_tablet(("ks", "t"), 0, from, to).unwrap();
            });
            let mut minutes = 0;
            while sum(&round(&scene, &insert, &key).await, |node| node.forwarded) > 0 {
                scene.pause(61_000_000).await;
                minutes += 1;
                assert!(minutes < 5);
            }
            assert!(minutes > 0, "it was not asked in between");
        },
    );
}

/// The first extension tells by the writes themselves: nothing is read.
#[test]
fn nothing_is_read_where_the_first_extension_tells() {
    run_on(
        Options::uniform(4, 2).with_tablets(TabletsMode::V1),
        |config| config.consistency = Consistency::One,
        |scene| async move {
            let (insert, keys) = prepare(&scene, 1).await;
            let first = round(&scene, &insert, &keys).await;
            assert_eq!(sum(&first, |node| node.requests), 100);
            let second = round(&scene, &insert, &keys).await;
            assert_eq!(sum(&second, |node| node.requests), 100);
            assert_eq!(sum(&second, |node| node.forwarded), 0);
        },
    );
}

/// A read that cannot even be prepared hinders nobody: markers that the statement named do not
/// have the names of their columns. Names that need quotes do no harm, and keys of two columns.
#[test]
fn names_of_every_kind() {
    for seed in 1..=3 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        run_on(
            options,
            |config| {
                config.consistency = Consistency::Quorum;
                config.serial_consistency = SerialConsistency::Serial;
            },
            |scene| async move {
                let session = &scene.session;
                let (plain, _) = prepare(&scene, 3).await;
                let named = "INSERT INTO ks.t (pk, v) VALUES (:key, :value) IF NOT EXISTS";
                let named = session.prepare(named).await.unwrap();
                let update = "UPDATE ks.t SET v = :value WHERE pk = :key IF v = :before";
                let update = session.prepare(update).await.unwrap();
                assert!(named.is_lwt() && update.is_lwt());
                let table = "CREATE TABLE ks.\"Odd\" (\"Key One\" bigint, \"b\"\"b\" text, v int, \
                     PRIMARY KEY ((\"Key One\", \"b\"\"b\")))";
                session.query(table, ()).await.unwrap();
                let odd = "UPDATE ks.\"Odd\" SET v = ? WHERE \"b\"\"b\" = ? AND \"Key One\" = ? \
                     IF v = ?";
                let odd = session.prepare(odd).await.unwrap();
                for key in 0..4_i64 {
                    let ran = session.execute(&named, (key, key)).await.unwrap();
                    assert_eq!(ran.applied(), Some(true));
                    let route = session.route(&named, (key, key)).unwrap();
                    assert!(route.tablet().is_none());
                    let token = session.route(&plain, (key, 0_i64)).unwrap().token;
                    let values = (7_i64, key, key);
                    let updating = session.route(&update, values).unwrap();
                    assert_eq!((route.token, updating.token), (token, token));
                    let ran = session.execute(&update, values).await.unwrap();
                    assert_eq!(ran.applied(), Some(true));
                    let ran = session.execute(&update, values).await.unwrap();
                    assert_eq!(ran.applied(), Some(key == 7));
                }
                let values = (1, "text", 5_i64, None::<i32>);
                let mut tries = 0;
                while session.route(&odd, values).unwrap().tablet().is_none() {
                    session.execute(&odd, values).await.unwrap();
                    tries += 1;
                    assert!(tries < 5);
                }
            },
        );
    }
}
