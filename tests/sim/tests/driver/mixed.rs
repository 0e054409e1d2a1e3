//! A cluster in the middle of an upgrade: its nodes offer different things, and a statement prepared
//! on one of them is executed on all.

use std::collections::BTreeSet;

use messina_core::wire::Consistency;
use messina_sim::node::{Options, TabletsMode};

use crate::scene::run_on;

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";

/// Where result metadata ids were agreed every EXECUTE has one, also for a statement whose id no
/// node has told yet; and a block only where the second tablets extension was.
#[test]
fn every_node_is_spoken_to_as_it_agreed() {
    for seed in 1..=6 {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        options.nodes[0].tablets = TabletsMode::Off;
        options.nodes[0].supported_missing = vec!["SCYLLA_USE_METADATA_ID".to_owned()];
        options.nodes[1].tablets = TabletsMode::V1;
        options.nodes[2].tablets = TabletsMode::Both;
        run_on(
            options,
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE]).await;
                let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
                let insert = session.prepare(insert).await.unwrap();
                let select = "SELECT * FROM ks.t WHERE pk = ?";
                let select = session.prepare(select).await.unwrap();
                scene.pause(5_000_000).await;
                let mut asked = BTreeSet::new();
                for pk in 0..60_i64 {
                    let info = session.execute(&insert, (pk, pk + 1)).await.unwrap().info();
                    asked.insert(info.node.value());
                    let found = session.execute(&select, (pk,)).await.unwrap();
                    assert_eq!(found.single_row::<(i64, i64)>().unwrap(), (pk, pk + 1));
                }
                assert_eq!(asked, BTreeSet::from([0, 1, 2]));
                // A block where none was agreed would be passed over.
                let nodes = scene.world.with_cluster(|cluster| cluster.stats().nodes);
                for node in &nodes {
                    assert!(node.executes > 0 && node.overlong == 0, "{node:?}");
                }
                // Both extensions teach, each in its way.
                assert!(nodes[1].payloads + nodes[2].payloads > 0);
                let route = session.route(&insert, (1_i64, 1_i64)).unwrap();
                assert!(route.tablet().is_some());
                // The columns change under the statement.
                let add = "ALTER TABLE ks.t ADD w bigint";
                session.query(add, ()).await.unwrap();
                for pk in 0..60_i64 {
                    let found = session.execute(&select, (pk,)).await.unwrap();
                    let row = found.single_row::<(i64, i64, Option<i64>)>().unwrap();
                    assert_eq!(row, (pk, pk + 1, None));
                }
            },
        );
    }
}
