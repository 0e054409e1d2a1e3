//! Sessions that begin with what an earlier one has saved: how soon they are right, and what it costs
//! them when it is not true any more.
#![expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]

use messina_core::cluster::WarmStart;
use messina_core::config::Config;
use messina_core::wire::Consistency;
use messina_sim::node::{Options, Replica};

use crate::scene::{Scene, run_on};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
    AND tablets = {'initial': 8} AND consistency = 'global'";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
const INSERT: &str = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
const KEYS: core::ops::Range<i64> = 0..40;

fn quorum(config: &mut Config) {
    config.consistency = Consistency::Quorum;
}

impl Scene {
    /// How long a session that knows nothing takes to be usable.
    async fn start_cold(&self) -> u64 {
        let began = self.world.now();
        let cold = self.another(quorum);
        cold.session.ready().await.unwrap();
        let took = self.world.now() - began;
        cold.end().await;
        took
    }

    /// Learns all tablets of a strong table, and saves what is known.
    async fn learn(&self) -> Vec<u8> {
        self.create(&[KEYSPACE, TABLE]).await;
        let insert = self.session.prepare(INSERT).await.unwrap();
        self.pause(2_000_000).await;
        for _ in 0..3 {
            for key in KEYS {
                self.session.execute(&insert, (key, key)).await.unwrap();
            }
        }
        let blob = self.session.warm_start(1 << 20);
        assert!(!blob.is_empty());
        assert_eq!(blob, self.session.warm_start(1 << 20), "not deterministic");
        blob
    }

    /// The session ends, and what was counted until then is forgotten.
    async fn end(&self) {
        self.session.close().await;
        self.pause(2_000_000).await;
        self.world.with_cluster(|cluster| cluster.reset_stats());
    }

    fn warm(&self, blob: &[u8]) -> Self {
        self.another(|config| {
            quorum(config);
            config.warm_start = Some(WarmStart::new(blob.to_vec()));
        })
    }

    /// Queries and prepares of all nodes so far.
    fn questions(&self) -> (u64, u64) {
        self.world.with_cluster(|cluster| {
            let nodes = cluster.stats().nodes;
            let queries = nodes.iter().map(|node| node.queries).sum();
            (queries, nodes.iter().map(|node| node.prepares).sum())
        })
    }

    fn forwarded(&self) -> u64 {
        self.world
            .with_cluster(|cluster| cluster.stats().table("ks.t").forwarded)
    }
}

/// Each key written by a session that has just begun goes to the leader's very shard, and nothing
/// was asked before; when it is asked at last nothing gets worse by it.
#[test]
fn the_first_request_is_right_and_nothing_was_asked() {
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 4);
        options.seed = seed;
        run_on(options, quorum, |scene| async move {
            let blob = scene.learn().await;
            scene.end().await;
            let warm = scene.warm(&blob);
            let began = scene.world.now();
            warm.session.ready().await.unwrap();
            let insert = warm.session.prepare(INSERT).await.unwrap();
            for key in KEYS {
                warm.session.execute(&insert, (key, key)).await.unwrap();
                if key == KEYS.start {
                    println!("first answer after {} us", scene.world.now() - began);
                    assert_eq!(scene.questions(), (0, 0), "seed {seed}");
                }
            }
            let check = |requests| {
                let stats = scene.world.with_cluster(|cluster| cluster.stats());
                let counted = stats.table("ks.t");
                assert_eq!(counted.requests, requests);
                let shards = stats.nodes.iter().flat_map(|node| &node.shards);
                let by_shard: Vec<_> = shards.map(|shard| shard.counters.at_leader).collect();
                assert_eq!(by_shard.len(), 12);
                assert_eq!(by_shard.iter().sum::<u64>(), requests, "{by_shard:?}");
                assert_eq!(counted.at_leader, requests, "seed {seed}: {counted:?}");
                assert_eq!(counted.at_owner_shard, requests, "seed {seed}: {counted:?}");
            };
            check(40);
            scene.pause(3_000_000).await;
            let (queries, prepares) = scene.questions();
            assert!(queries > 0 && prepares == 0, "{queries}, {prepares}");
            for key in KEYS {
                warm.session.execute(&insert, (key, key)).await.unwrap();
            }
            check(80);
        });
    }
}

/// OPTIONS and STARTUP travel together: two frames to a node and connection before the first
/// EXECUTE, one round trip.
#[test]
fn a_known_node_is_one_round_trip_away() {
    run_on(Options::uniform(3, 4), quorum, |scene| async move {
        let blob = scene.learn().await;
        scene.end().await;
        let cold_took = scene.start_cold().await;
        let began = scene.world.now();
        let warm = scene.warm(&blob);
        warm.session.ready().await.unwrap();
        let warm_took = scene.world.now() - began;
        println!("ready after {warm_took} us instead of {cold_took} us");
        let stats = scene.world.with_cluster(|cluster| cluster.stats());
        for node in &stats.nodes {
            assert_eq!((node.connections, node.frames), (4, 8));
            let open: Vec<_> = node.shards.iter().map(|shard| shard.connections).collect();
            assert_eq!(open, [1; 4]);
        }
        assert!(warm_took < cold_took);
    });
}

#[test]
fn a_statement_that_nodes_have_lost_is_given_back() {
    run_on(Options::uniform(3, 4), quorum, |scene| async move {
        let blob = scene.learn().await;
        scene.end().await;
        for node in 0..3 {
            scene
                .world
                .with_cluster(|cluster| cluster.forget_prepared(node))
                .unwrap();
        }
        let warm = scene.warm(&blob);
        warm.session.ready().await.unwrap();
        let insert = warm.session.prepare(INSERT).await.unwrap();
        warm.session.execute(&insert, (1_i64, 1_i64)).await.unwrap();
        assert_eq!(scene.questions(), (0, 1));
    });
}

/// A tablet that moved, or whose leader changed, costs what it costs a running session.
#[test]
fn what_changed_meanwhile_is_found_by_the_first_answers() {
    for moves in [false, true] {
        run_on(Options::uniform(4, 4), quorum, |scene| async move {
            let blob = scene.learn().await;
            scene.end().await;
            scene.world.with_cluster(|cluster| {
                for tablet in 0..8 {
                    let now = cluster.tablets("ks", "t").swap_remove(tablet);
                    let free = (0..4).find(|node| now.replicas.iter().all(|r| r.node != *node));
                    let leader = now.leader.unwrap();
                    let from = now.replicas[leader];
                    let to = Replica {
                        node: free.unwrap(),
                        shard: 1,
                    };
                    if moves {
                        cluster.move_tablet(("ks", "t"), tablet, from, to).unwrap();
                    } else {
                        let leader = (leader + 1) % 3;
                        cluster
                            .set_leader(("ks", "t"), tablet, Some(leader))
                            .unwrap();
                    }
                }
            });
            let warm = scene.warm(&blob);
            warm.session.ready().await.unwrap();
            let insert = warm.session.prepare(INSERT).await.unwrap();
            for _ in 0..17 {
                for key in KEYS {
                    warm.session.execute(&insert, (key, key)).await.unwrap();
                }
            }
            let before = scene.forwarded();
            for key in KEYS {
                warm.session.execute(&insert, (key, key)).await.unwrap();
            }
            assert_eq!(scene.forwarded(), before, "moves {moves}");
        });
    }
}

/// A table made anew has other tablets, and its statements are prepared anew.
#[test]
fn a_table_made_anew_starts_cold() {
    run_on(Options::uniform(3, 4), quorum, |scene| async move {
        let blob = scene.learn().await;
        let session = &scene.session;
        session.query("DROP TABLE ks.t", ()).await.unwrap();
        let other = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v text)";
        session.query(other, ()).await.unwrap();
        scene.end().await;
        let warm = scene.warm(&blob);
        warm.session.ready().await.unwrap();
        scene.pause(3_000_000).await;
        let tablets = |scene: &Scene| {
            let tables = scene.session.status().tablets;
            tables.iter().map(|table| table.stats.cached).sum::<usize>()
        };
        assert_eq!(tablets(&warm), 0);
        let insert = warm.session.prepare(INSERT).await.unwrap();
        warm.session
            .execute(&insert, (1_i64, "text"))
            .await
            .unwrap();
    });
}

/// Whatever the blob is worth, the session can be used as soon as a cold one and a second.
#[test]
fn damaged_blobs_are_a_cold_start() {
    run_on(Options::uniform(3, 4), quorum, |scene| async move {
        let blob = scene.learn().await;
        scene.end().await;
        let mut flipped = blob.clone();
        flipped[100] ^= 1;
        for bad in [&[][..], b"MSNW", &blob[..blob.len() - 1], &flipped] {
            let cold_took = scene.start_cold().await;
            let began = scene.world.now();
            let warm = scene.warm(bad);
            warm.session.ready().await.unwrap();
            assert!(scene.world.now() - began <= cold_took + 10_000);
            assert!(scene.questions().0 > 0);
            let insert = warm.session.prepare(INSERT).await.unwrap();
            warm.session.execute(&insert, (1_i64, 1_i64)).await.unwrap();
            warm.end().await;
        }
    });
}
