//! Every kind of answer that brings a tablet teaches it: rows, later pages, answers without rows, and
//! answers to statements that were not executed by their id.

use messina_core::drive::Statement;
use messina_sim::node::{Cluster, Options, TabletsMode};

use crate::scene::{Scene, run_on};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} AND tablets = {'initial': 1}";
const TABLE: &str = "CREATE TABLE ks.t (pk int, ck int, v int, PRIMARY KEY (pk, ck))";
const INSERT: &str = "INSERT INTO ks.t (pk, ck, v) VALUES (?, ?, ?)";
const SELECT: &str = "SELECT ck FROM ks.t WHERE pk = ?";

/// The table has one tablet, and nothing was asked yet.
fn with_table<Fut: Future<Output = ()> + 'static>(
    mode: TabletsMode,
    act: impl Fn(Scene) -> Fut + Copy + 'static,
) {
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 2).with_tablets(mode);
        options.seed = seed;
        run_on(
            options,
            |_| {},
            move |scene| async move {
                scene.create(&[KEYSPACE, TABLE]).await;
                act(scene).await;
            },
        );
    }
}

fn payloads(scene: &Scene) -> u64 {
    let nodes = scene.world.with_cluster(|cluster| cluster.stats().nodes);
    nodes.iter().map(|node| node.payloads).sum()
}

/// A version that chance matched hides the tablet; the next request tells it.
#[test]
fn an_answer_without_rows_teaches() {
    with_table(TabletsMode::V2, |scene| async move {
        let insert = scene.session.prepare(INSERT).await.unwrap();
        assert_eq!(
            scene.session.route(&insert, (1, 1, 1)).unwrap().tablet(),
            None
        );
        while payloads(&scene) == 0 {
            scene.session.execute(&insert, (1, 1, 1)).await.unwrap();
        }
        assert!(
            scene
                .session
                .route(&insert, (1, 1, 1))
                .unwrap()
                .tablet()
                .is_some()
        );
    });
}

/// The tablet moves between the first page and the second, which tells so.
#[test]
fn a_later_page_teaches() {
    with_table(TabletsMode::V2, |scene| async move {
        let insert = scene.session.prepare(INSERT).await.unwrap();
        for ck in 0..40 {
            scene.session.execute(&insert, (1, ck, ck)).await.unwrap();
        }
        let statement = Statement::from(SELECT).with_page_size(2);
        let select = scene.session.prepare(statement).await.unwrap();
        let before = scene.session.route(&select, (1,)).unwrap().tablet();
        let mut pages = scene.session.pages(&select, (1,)).unwrap();
        pages.next_page().await.unwrap().unwrap();
        let told = payloads(&scene);
        let flip = |cluster: &mut Cluster| cluster.flip_version(("ks", "t"), 0, u64::MAX);
        scene.world.with_cluster(flip).unwrap();
        while payloads(&scene) == told {
            pages.next_page().await.unwrap().unwrap();
        }
        let after = scene.session.route(&select, (1,)).unwrap().tablet();
        assert!(before.is_some() && after.is_some());
        assert_ne!(before, after, "the version is another one");
    });
}

/// A QUERY whose key is bound brings a payload of the first extension if it went astray.
#[test]
fn a_statement_run_by_its_text_teaches() {
    with_table(TabletsMode::V1, |scene| async move {
        let select = scene.session.prepare(SELECT).await.unwrap();
        while payloads(&scene) == 0 {
            assert_eq!(scene.session.route(&select, (1,)).unwrap().tablet(), None);
            let run = scene.session.execute_unprepared(&select, (1,));
            run.await.unwrap();
        }
        assert!(
            scene
                .session
                .route(&select, (1,))
                .unwrap()
                .tablet()
                .is_some()
        );
    });
}
