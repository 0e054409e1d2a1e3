//! Strongly consistent tables, whose statements must come prepared: where the second tablets extension
//! was agreed a node answers their texts with an error, and writes have been applied by then.

use messina_core::cluster::WarmStart;
use messina_core::config::Config;
use messina_core::error::ErrorKind;
use messina_core::wire::Consistency;
use messina_core::wire::response::ErrorCode;
use messina_sim::node::Options;

use crate::scene::{Scene, run_on};

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

const EVENTUAL: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'initial': 8}";
const EVENTUAL_TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";

fn quorum(config: &mut Config) {
    config.consistency = Consistency::Quorum;
}

fn options(seed: u64) -> Options {
    let mut options = Options::uniform(3, 2);
    options.seed = seed;
    options
}

impl Scene {
    /// A write and a read of the strong table by their texts.
    async fn write_and_read(&self, v: i64) {
        let insert = format!("INSERT INTO strong.t (pk, v) VALUES (1, {v})");
        self.session.query(&*insert, ()).await.unwrap();
        let select = "SELECT v FROM strong.t WHERE pk = 1";
        let rows = self.session.query(select, ()).await.unwrap();
        assert_eq!(rows.single_row(), Ok((v,)));
    }

    /// PREPARE requests of all nodes so far.
    fn prepares(&self) -> u64 {
        let nodes = self.world.with_cluster(|cluster| cluster.stats().nodes);
        nodes.iter().map(|node| node.prepares).sum()
    }
}

/// What others have just made was not read yet: neither a keyspace nor, where that is known, a table.
#[test]
fn what_was_not_read_yet_counts_as_strong() {
    for seed in 1..=4 {
        run_on(options(seed), quorum, |scene| async move {
            scene.create(&[]).await;
            let other = scene.another(quorum);
            other.create(&[KEYSPACE, TABLE]).await;
            scene.write_and_read(2).await;
            scene.pause(5_000_000).await;
            scene.create(&["DROP TABLE strong.t"]).await;
            other.create(&[TABLE]).await;
            scene.write_and_read(3).await;
        });
    }
}

/// A session that lives on what an earlier one knew has read nothing when it begins.
#[test]
fn a_warm_start_knows_nothing_of_later_keyspaces() {
    for seed in 1..=4 {
        run_on(options(seed), quorum, |scene| async move {
            scene.create(&[EVENTUAL, EVENTUAL_TABLE]).await;
            let blob = scene.session.warm_start(1 << 20);
            scene.create(&[KEYSPACE, TABLE]).await;
            scene.session.close().await;
            let warm = scene.another(|config| {
                quorum(config);
                config.warm_start = Some(WarmStart::new(blob));
            });
            warm.session.ready().await.unwrap();
            warm.write_and_read(2).await;
        });
    }
}

/// Whoever names a table that is known not to be strong, or one of the system's, pays for nothing.
#[test]
fn texts_for_other_tables_are_not_prepared() {
    run_on(options(1), quorum, |scene| async move {
        scene
            .create(&[EVENTUAL, EVENTUAL_TABLE, KEYSPACE, TABLE])
            .await;
        let before = scene.prepares();
        for text in [
            "INSERT INTO ks.t (pk, v) VALUES (1, 2)",
            "UPDATE ks.t SET v = 3 WHERE pk = 1",
            "/* by key */ SELECT v, (text)'from strong.t' FROM \"ks\" . T WHERE pk = 1",
            "DELETE v FROM ks.t WHERE pk = 1",
            "SELECT key FROM system.local",
            "SELECT table_name FROM system_schema.tables",
        ] {
            scene.session.query(text, ()).await.unwrap();
        }
        assert_eq!(scene.prepares(), before);
        scene.write_and_read(2).await;
        assert_eq!(scene.prepares(), before + 6);
    });
}

/// A node that answers late holds nobody up who only wants to have prepared, or to run a text once:
/// it gets the statement all the same, or asks for it.
#[test]
fn a_late_node_does_not_hold_up_what_is_prepared_elsewhere() {
    run_on(options(1), quorum, |scene| async move {
        scene.create(&[KEYSPACE, TABLE]).await;
        scene.pause(5_000_000).await;
        let late = |micros| {
            let world = &scene.world;
            world.with_cluster(|cluster| cluster.set_delay(2, micros).unwrap());
        };
        late(8_000_000);
        let mut soon = 0;
        for n in 0..12 {
            let began = scene.world.now();
            let text = format!("SELECT v FROM strong.t WHERE pk = {n}");
            scene.session.prepare(&*text).await.unwrap();
            let took = scene.world.now() - began;
            assert!(!(1_500_000..8_000_000).contains(&took), "{took} us");
            soon += u32::from(took < 1_500_000);
        }
        assert!(soon >= 4, "{soon} of 12 began elsewhere");
        late(0);
    });
}
