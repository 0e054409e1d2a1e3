//! Strongly consistent tables, whose statements must come prepared: where the second tablets extension
//! was agreed a node answers their texts with an error, and writes have been applied by then.

use messina_core::config::Config;
use messina_core::error::ErrorKind;
use messina_core::wire::Consistency;
use messina_core::wire::response::ErrorCode;
use messina_sim::node::Options;

use crate::scene::run_on;

const KEYSPACE: &str = "CREATE KEYSPACE strong WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND consistency = 'global'";
const TABLE: &str = "CREATE TABLE strong.t (pk bigint PRIMARY KEY, v bigint)";

#[test]
fn texts_for_strong_tables_come_prepared() {
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        run_on(
            options,
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE]).await;
                let executes = || {
                    scene.world.with_cluster(|cluster| {
                        let nodes = cluster.stats().nodes;
                        nodes.iter().map(|node| node.executes).sum::<u64>()
                    })
                };
                let before = executes();
                let insert = "INSERT INTO strong.t (pk, v) VALUES (1, 2)";
                session.query(insert, ()).await.unwrap();
                let select = "SELECT v FROM strong.t WHERE pk = 1";
                let rows = session.query(select, ()).await.unwrap();
                assert_eq!(rows.single_row::<(i64,)>().unwrap(), (2,));
                assert_eq!(executes() - before, 2);
                // What would have come of the text: an error, and the write stands.
                let insert = "INSERT INTO strong.t (pk, v) VALUES (1, 3)";
                let error = session.query_unprepared(insert).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Server));
                let rows = session.query(select, ()).await.unwrap();
                assert_eq!(rows.single_row::<(i64,)>().unwrap(), (3,));
            },
        );
    }
}

/// The keyspace becomes known to a session that has begun before, by an event; one that begins in
/// it uses names without keyspace.
#[test]
fn keyspaces_of_other_sessions_and_short_names_count_too() {
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        let quorum = |config: &mut Config| config.consistency = Consistency::Quorum;
        run_on(options, quorum, move |scene| async move {
            let early = &scene.session;
            early.ready().await.unwrap();
            let other = scene.another(quorum);
            other.session.ready().await.unwrap();
            other.session.query(KEYSPACE, ()).await.unwrap();
            other.session.query(TABLE, ()).await.unwrap();
            scene.pause(5_000_000).await;
            let within = scene.another(|config| {
                quorum(config);
                config.keyspace = Some("strong".into());
            });
            within.session.ready().await.unwrap();
            for (session, table, v) in [(early, "strong.t", 2_i64), (&within.session, "t", 3)] {
                let insert = format!("INSERT INTO {table} (pk, v) VALUES (1, {v})");
                session.query(&*insert, ()).await.unwrap();
                let select = format!("SELECT v FROM {table} WHERE pk = 1");
                let rows = session.query(&*select, ()).await.unwrap();
                assert_eq!(rows.single_row::<(i64,)>().unwrap(), (v,));
            }
        });
    }
}
