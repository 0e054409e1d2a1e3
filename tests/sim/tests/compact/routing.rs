//! Where requests arrive: at the leader of their tablet, also when another one leads, and at nodes
//! that hold the row.

use messina_core::compact::Options;
use messina_core::wire::Consistency;

use crate::scene::{INSERT, Scene, TABLE, options, run};

const STRONG: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} \
    AND tablets = {'initial': 8} AND consistency = 'global'";

/// Of three nodes two hold each row.
const TWO: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 2} AND tablets = {'initial': 8}";

/// A node that speaks the second tablets extension wants a byte of reads and writes of such tables
/// that QUERY cannot carry, and applies what it answers by an error.
#[test]
fn texts_reach_strongly_consistent_tables() {
    run(
        options(1, 3, 2),
        |config| config.consistency = Consistency::Quorum,
        |scene| async move {
            let session = &scene.session;
            scene.create(&[STRONG, TABLE]).await;
            for key in 0..10_i64 {
                let text = std::format!("INSERT INTO ks.t (pk, v) VALUES ({key}, 1)");
                assert!(!session.query(&text, ()).await.unwrap().is_rows());
                let text = std::format!("-- by key\nSELECT v FROM ks.t WHERE pk = {key}");
                let read = Options::new().with_page_size(5);
                let reply = session.query_with(&text, (), &read).await.unwrap();
                assert_eq!(reply.single_row(), Ok((1_i64,)));
            }
            let error = session.query("SELECT v FROM ks.nothing", ()).await;
            assert!(error.unwrap_err().server().is_some());
            // What reads the system needs no second round trip.
            let before = prepares(&scene);
            let text = "SELECT key FROM system.local";
            assert!(session.query(text, ()).await.unwrap().is_rows());
            assert_eq!(prepares(&scene), before);
        },
    );
}

fn prepares(scene: &Scene) -> u64 {
    let stats = scene.world.with_cluster(|cluster| cluster.stats());
    stats.nodes.iter().map(|node| node.prepares).sum()
}

impl Scene {
    /// Writes rows of all tablets; gives how many requests came, where they belonged and to leaders.
    async fn write(&self, rounds: i64) -> (u64, u64, u64) {
        let insert = self.session.prepare(INSERT).await.unwrap();
        let before = self.arrived();
        for at in 0..rounds * 40 {
            let written = self.session.execute(&insert, (at % 40, at)).await;
            written.unwrap();
        }
        let after = self.arrived();
        (after.0 - before.0, after.1 - before.1, after.2 - before.2)
    }

    fn arrived(&self) -> (u64, u64, u64) {
        let stats = self.world.with_cluster(|cluster| cluster.stats());
        let mut sum = (0, 0, 0);
        for node in &stats.nodes {
            if let Some(counters) = node.tables.get("ks.t") {
                sum.0 += counters.requests;
                sum.1 += counters.at_owner_node;
                sum.2 += counters.at_leader;
            }
        }
        sum
    }
}

#[test]
fn requests_go_to_the_leader_and_follow_it() {
    for seed in 1..=3 {
        run(
            options(seed, 3, 2),
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                scene.create(&[STRONG, TABLE]).await;
                scene.pause(5_000_000).await;
                scene.write(16).await;
                let (requests, _, at_leader) = scene.write(2).await;
                assert_eq!((requests, at_leader), (80, 80));
                scene.world.with_cluster(|cluster| {
                    let table = ("ks", "t");
                    for tablet in 0..cluster.tablets("ks", "t").len() {
                        let leader = cluster.tablets("ks", "t")[tablet].leader.unwrap();
                        let next = Some((leader + 1) % 3);
                        cluster.set_leader(table, tablet, next).unwrap();
                    }
                });
                // A change shows within sixteen requests of each tablet.
                let (requests, _, at_leader) = scene.write(16).await;
                assert!(at_leader < requests, "they lead no more");
                let (requests, _, at_leader) = scene.write(2).await;
                assert_eq!((requests, at_leader), (80, 80));
            },
        );
    }
}

#[test]
fn requests_go_to_nodes_that_hold_the_row() {
    for seed in 1..=3 {
        run(
            options(seed, 3, 2),
            |_| {},
            |scene| async move {
                scene.create(&[TWO, TABLE]).await;
                scene.pause(5_000_000).await;
                scene.write(16).await;
                let (requests, at_owner, _) = scene.write(2).await;
                assert_eq!((requests, at_owner), (80, 80));
                // A table of the same name has other tablets; what was known of the first is gone.
                scene.create(&["DROP TABLE ks.t"]).await;
                scene.pause(5_000_000).await;
                assert_eq!(scene.session.status().counters.tablets, 0);
                scene.create(&[TABLE]).await;
                scene.write(16).await;
                let (requests, at_owner, _) = scene.write(2).await;
                assert_eq!((requests, at_owner), (80, 80));
            },
        );
    }
}
