//! Sessions of one connection: what they ask, and what becomes of them when it ends.

use messina_core::cluster::WarmStart;
use messina_core::config::{Config, Routing};
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::error::{ApiMisuse, ErrorKind};
use messina_core::target::Endpoint;
use messina_sim::node::{Credentials, NodeStats, Options};

use crate::scene::{Scene, run_on};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'initial': 8}";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
const INSERT: &str = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
const SELECT: &str = "SELECT v FROM ks.t WHERE pk = ?";

fn single(config: &mut Config) {
    config.routing = Routing::Single;
    // Of another kind of session.
    config.policy.preferred_dc = Some("nowhere".into());
}

fn options(seed: u64) -> Options {
    let mut options = Options::uniform(3, 2);
    options.seed = seed;
    options
}

impl Scene {
    /// Of all nodes: connections accepted, frames taken, QUERY and PREPARE requests.
    fn seen(&self) -> [u64; 4] {
        let of = |node: &NodeStats| [node.connections, node.frames, node.queries, node.prepares];
        self.world.with_cluster(|cluster| {
            let nodes = cluster.stats().nodes;
            nodes.iter().map(of).fold([0; 4], |sum, next| {
                core::array::from_fn(|place| sum[place] + next[place])
            })
        })
    }

    /// The node that has a connection.
    fn serving(&self) -> Option<usize> {
        self.world.with_cluster(|cluster| {
            (0..cluster.node_count()).find(|node| cluster.connection_count(*node) > 0)
        })
    }
}

/// OPTIONS and STARTUP are all that comes before the first request, and no other connection is
/// opened however long the session lives.
#[test]
fn one_connection_can_ask_at_once() {
    for seed in 1..=8 {
        run_on(options(seed), single, |scene| async move {
            let session = &scene.session;
            session.ready().await.unwrap();
            assert_eq!(scene.seen(), [1, 2, 0, 0]);
            session.query(KEYSPACE, ()).await.unwrap();
            session.query(TABLE, ()).await.unwrap();
            assert_eq!(session.settle().await, Ok(true));
            let insert = session.prepare(INSERT).await.unwrap();
            let select = session.prepare(SELECT).await.unwrap();
            for key in 0..20_i64 {
                session.execute(&insert, (key, key * 2)).await.unwrap();
                let result = session.execute(&select, (key,)).await.unwrap();
                assert_eq!(result.single_row(), Ok((key * 2,)));
                let info = result.info();
                assert_eq!((info.attempts, info.tablet_learned), (1, false));
                assert!(info.shard.is_some());
                assert_eq!(
                    session.endpoint(info.node),
                    scene.serving().map(|node| {
                        let options = options(1);
                        Endpoint::Addr((options.address(node), options.port).into())
                    })
                );
            }
            scene.pause(300_000_000).await;
            // Heartbeats are frames too.
            let [connections, _, queries, prepares] = scene.seen();
            assert_eq!([connections, queries, prepares], [1, 2, 2]);
            let status = session.status();
            assert_eq!((status.nodes.len(), status.connections()), (1, 1));
            assert_eq!(status.nodes[0].shards, Some(2));
            session.close().await;
        });
    }
}

#[test]
fn the_keyspace_is_set_before_the_first_request() {
    run_on(options(1), single, |scene| async move {
        scene.create(&[KEYSPACE, TABLE]).await;
        let within = scene.another(|config| {
            single(config);
            config.keyspace = Some("ks".into());
        });
        within.session.ready().await.unwrap();
        let rows = within.session.query("SELECT v FROM t", ()).await.unwrap();
        assert_eq!(rows.row_count(), 0);
        let nowhere = scene.another(|config| {
            single(config);
            config.keyspace = Some("nowhere".into());
        });
        let error = nowhere.session.ready().await.unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
        let quoted = scene.another(|config| {
            single(config);
            config.keyspace = Some("a\"b".into());
        });
        let error = quoted.session.ready().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Config(_)), "{error}");
    });
}

/// When its node dies the session goes on at another contact point, with the statements it has.
#[test]
fn it_goes_on_at_another_contact_point() {
    for seed in 1..=8 {
        run_on(options(seed), single, |scene| async move {
            scene.create(&[KEYSPACE, TABLE]).await;
            let session = &scene.session;
            let insert = session.prepare(INSERT).await.unwrap().idempotent();
            session.execute(&insert, (1_i64, 1_i64)).await.unwrap();
            for round in 0..4_i64 {
                let before = scene.serving().unwrap();
                scene
                    .world
                    .with_cluster(|cluster| cluster.kill(before).unwrap());
                scene.pause(2_000_000).await;
                let ran = session.execute(&insert, (round, round)).await;
                assert!(ran.is_ok(), "{ran:?}");
                assert_ne!(scene.serving(), Some(before));
                assert_eq!(scene.open_connections(), 1);
                scene
                    .world
                    .with_cluster(|cluster| cluster.start(before).unwrap());
                scene.pause(1_000_000).await;
            }
            for node in 0..3 {
                scene
                    .world
                    .with_cluster(|cluster| cluster.kill(node).unwrap());
            }
            scene.pause(30_000_000).await;
            let error = session.execute(&insert, (1_i64, 1_i64)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unreachable);
            assert!(error.is_transient() && !error.may_have_been_applied());
            scene
                .world
                .with_cluster(|cluster| cluster.start(1).unwrap());
            scene.pause(15_000_000).await;
            session.execute(&insert, (1_i64, 1_i64)).await.unwrap();
            assert_eq!(scene.serving(), Some(1));
            session.close().await;
            let error = session.execute(&insert, (1_i64, 1_i64)).await.unwrap_err();
            let closed = ErrorKind::ApiMisuse(ApiMisuse::SessionClosed);
            assert_eq!(error.kind(), closed);
            scene.pause(2_000_000).await;
            assert_eq!(scene.open_connections(), 0);
        });
    }
}

#[test]
fn a_first_contact_that_fails_says_so() {
    run_on(options(3), single, |scene| async move {
        scene.session.ready().await.unwrap();
        let lost = scene.another(|config| {
            single(config);
            config.contact_points = Vec::from([Endpoint::Addr("127.9.9.9:9042".parse().unwrap())]);
        });
        let error = lost.session.ready().await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(lost.session.query(KEYSPACE, ()).await.is_err());
    });
}

/// What an earlier session has prepared need not be prepared again, whichever kind it was.
#[test]
fn it_begins_with_what_an_earlier_session_knew() {
    for earlier in [Routing::Single, Routing::Full] {
        let adjust = move |config: &mut Config| config.routing = earlier;
        run_on(options(5), adjust, |scene| async move {
            scene.create(&[KEYSPACE, TABLE]).await;
            let insert = scene.session.prepare(INSERT).await.unwrap();
            scene
                .session
                .execute(&insert, (1_i64, 1_i64))
                .await
                .unwrap();
            let blob = scene.session.warm_start(1 << 16);
            assert!(!blob.is_empty());
            scene.session.close().await;
            scene.pause(2_000_000).await;
            scene.world.with_cluster(|cluster| cluster.reset_stats());
            let warm = scene.another(|config| {
                single(config);
                config.warm_start = Some(WarmStart::new(blob));
            });
            let insert = warm.session.prepare(INSERT).await.unwrap();
            warm.session.ready().await.unwrap();
            warm.session.execute(&insert, (1_i64, 2_i64)).await.unwrap();
            let [connections, frames, queries, prepares] = scene.seen();
            assert_eq!([connections, queries], [1, 0]);
            // A node that did not know the statement yet was told once.
            assert!(prepares <= 1 && frames <= 5, "{prepares} {frames}");
        });
    }
}

/// Round trips from the open link to the first row, each of 200 microseconds and a little.
async fn round_trips_to_first_row(scene: &Scene, adjust: impl FnOnce(&mut Config)) -> u64 {
    let links = scene.world.counts().links;
    let one = scene.another(adjust);
    while scene.world.counts().links == links {
        scene.pause(1).await;
    }
    // Known to the node; its word is still on the way to the session.
    let opened = scene.world.now() + LATENCY;
    // All that a caller does who knows nothing of round trips.
    one.session.ready().await.unwrap();
    let select = one.session.prepare(SELECT).await.unwrap();
    let row = one.session.execute(&select, (1_i64,)).await.unwrap();
    assert_eq!(row.row_count(), 1);
    let took = scene.world.now() - opened;
    one.session.close().await;
    (took + LATENCY) / (2 * LATENCY)
}

/// Of a chunk on its way, in the simulated world.
const LATENCY: u64 = 100;

/// The table of what each kind of start costs; the session that fills the blob is one of them.
#[test]
fn round_trips_to_the_first_row_are_few() {
    for login in [false, true] {
        let mut options = options(2);
        options.auth = login.then(|| Credentials::new("alice", "secret"));
        let set = move |config: &mut Config, early: bool, blob: Option<Vec<u8>>| {
            single(config);
            config.write_deferral = false;
            config.early_requests = early;
            config.warm_start = blob.map(WarmStart::new);
            config.contact_points.truncate(1);
            if login {
                let plain: Box<dyn Authenticator> =
                    Box::new(PlainAuthenticator::new("alice", "secret"));
                config.authenticator = Some(plain.into());
            }
        };
        let adjust = move |config: &mut Config| set(config, false, None);
        run_on(options, adjust, move |scene| async move {
            scene.create(&[KEYSPACE, TABLE]).await;
            let insert = scene.session.prepare(INSERT).await.unwrap();
            scene
                .session
                .execute(&insert, (1_i64, 1_i64))
                .await
                .unwrap();
            scene.session.prepare(SELECT).await.unwrap();
            let blob = scene.session.warm_start(1 << 16);
            let mut counted = Vec::new();
            for early in [false, true] {
                for blob in [None, Some(blob.clone())] {
                    let adjust = |config: &mut Config| set(config, early, blob);
                    counted.push(round_trips_to_first_row(&scene, adjust).await);
                }
            }
            // Late and cold, late and warm, early and cold, early and warm.
            let expected = if login { [5, 3, 3, 2] } else { [4, 2, 3, 2] };
            assert_eq!(counted, expected, "login {login}");
        });
    }
}
