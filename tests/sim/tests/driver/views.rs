//! Tablets of materialized views: learned as those of tables, kept over refreshes, gone with the view.

use messina_core::drive::Prepared;
use messina_sim::node::Options;

use crate::scene::{Scene, run_on};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND tablets = {'initial': 4}";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";
const VIEW: &str = "CREATE MATERIALIZED VIEW ks.mv AS SELECT * FROM ks.t \
    WHERE v IS NOT NULL AND pk IS NOT NULL PRIMARY KEY (v, pk)";
const KEYS: i64 = 24;

/// Reads each key of the view; routing payloads that came, requests, and those that went to the
/// shard of the key's tablet.
async fn read(scene: &Scene, select: &Prepared) -> (u64, u64, u64) {
    scene.world.with_cluster(|cluster| cluster.reset_stats());
    for pk in 0..KEYS {
        let found = scene.session.execute(select, (pk + 100,)).await.unwrap();
        assert_eq!(found.single_row::<(i64,)>().unwrap(), (pk,));
    }
    scene.world.with_cluster(|cluster| {
        let nodes = cluster.stats().nodes;
        let payloads = nodes.iter().map(|node| node.payloads).sum();
        let counters = nodes.iter().filter_map(|node| node.tables.get("ks.mv"));
        let (requests, at_owner) = counters.fold((0, 0), |(requests, at_owner), counters| {
            (
                requests + counters.requests,
                at_owner + counters.at_owner_shard,
            )
        });
        (payloads, requests, at_owner)
    })
}

/// Case T3: a refresh lists the view among the views, not among the tables.
#[test]
fn tablets_of_views_outlive_a_refresh_and_not_their_view() {
    let keys = u64::try_from(KEYS).unwrap();
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        run_on(
            options,
            |_| {},
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE, VIEW]).await;
                let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
                let insert = session.prepare(insert).await.unwrap();
                for pk in 0..KEYS {
                    session.execute(&insert, (pk, pk + 100)).await.unwrap();
                }
                let select = "SELECT pk FROM ks.mv WHERE v = ?";
                let select = session.prepare(select).await.unwrap();
                scene.pause(5_000_000).await;
                let (payloads, ..) = read(&scene, &select).await;
                assert!(payloads > 0);
                read(&scene, &select).await;
                assert_eq!(read(&scene, &select).await, (0, keys, keys));

                // A statement that changes the schema has it read anew.
                let other = "CREATE TABLE ks.other (pk bigint PRIMARY KEY)";
                session.query(other, ()).await.unwrap();
                assert_eq!(read(&scene, &select).await, (0, keys, keys));

                // Another view of that name has other tablets: none of them is known.
                let drop = "DROP MATERIALIZED VIEW ks.mv";
                session.query(drop, ()).await.unwrap();
                session.query(VIEW, ()).await.unwrap();
                let route = session.route(&select, (100_i64,)).unwrap();
                assert_eq!(route.tablet(), None);
                let (payloads, ..) = read(&scene, &select).await;
                assert!(payloads > 0);
            },
        );
    }
}
