//! Scripted scenarios of the driver under virtual time, each tried over several seeds or moments:
//! what seeds or reviews have found once.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use messina_core::cluster::kind::StatementKind;
use messina_core::config::Config;
use messina_core::drive::{NodeStatus, Prepared};
use messina_core::error::{Applied, Error};
use messina_core::routing::{Reason, Source};
use messina_sim::node::CqlError;

use crate::scene::{Scene, run};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 2}";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, v bigint)";

impl Scene {
    /// Makes the table and an insert of it.
    pub(crate) async fn prepare_insert(&self) -> Prepared {
        self.session.ready().await.unwrap();
        self.session.query(KEYSPACE, ()).await.unwrap();
        self.session.query(TABLE, ()).await.unwrap();
        let insert = "INSERT INTO ks.t (pk, v) VALUES (?, ?)";
        let insert = self.session.prepare(insert).await.unwrap();
        self.pause(1_000_000).await;
        insert
    }

    /// Executes it beside the scenario.
    fn spawn_insert(&self, insert: &Prepared) -> Rc<RefCell<Option<Result<(), Error>>>> {
        let outcome = Rc::new(RefCell::new(None));
        let (session, insert, slot) = (self.session.clone(), insert.clone(), Rc::clone(&outcome));
        self.spawner.spawn(async move {
            let ran = session.execute(&insert, (1_i64, 1_i64)).await;
            *slot.borrow_mut() = Some(ran.map(drop));
        });
        outcome
    }
}

#[test]
fn a_failed_preparation_tells_what_earlier_attempts_may_have_done() {
    let failed = Rc::new(Cell::new(0));
    for seed in 1..=16 {
        let failed = Rc::clone(&failed);
        run(
            seed,
            |_| {},
            |scene| async move {
                let insert = scene.prepare_insert().await.idempotent();
                // Node 0 fails after whatever it did. Until it says so the table is gone, and the
                // statement, which the other one then does not know, cannot be prepared any more.
                let server_error = CqlError::named("server_error", "").unwrap();
                scene.world.with_cluster(|cluster| {
                    cluster.fail_next(0, &server_error, 1).unwrap();
                    cluster.set_delay(0, 100_000).unwrap();
                });
                let outcome = scene.spawn_insert(&insert);
                scene.pause(10_000).await;
                scene.session.query("DROP TABLE ks.t", ()).await.unwrap();
                scene.pause(1_000_000).await;
                if let Err(error) = outcome.take().expect("it has ended") {
                    assert_eq!(error.attempt(), 1, "{error:?}");
                    assert!(error.node().is_some(), "{error:?}");
                    assert_eq!(error.applied(), Applied::Unknown, "{error:?}");
                    failed.set(failed.get() + 1);
                }
            },
        );
    }
    assert!(failed.get() > 0);
}

#[test]
fn a_write_whose_preparation_got_lost_goes_elsewhere() {
    for seed in 1..=16 {
        run(
            seed,
            |_| {},
            |scene| async move {
                let insert = scene.prepare_insert().await;
                scene.world.with_cluster(|cluster| {
                    cluster.forget_prepared(1).unwrap();
                    cluster.set_delay(1, 100_000).unwrap();
                });
                let outcome = scene.spawn_insert(&insert);
                // Node 1 has said that it does not know the statement, and nothing since.
                scene.pause(150_000).await;
                scene.world.with_cluster(|cluster| cluster.kill(1).unwrap());
                scene.pause(1_000_000).await;
                assert_eq!(outcome.take(), Some(Ok(())));
            },
        );
    }
}

#[test]
fn callers_that_wait_for_a_lost_connection_go_elsewhere() {
    for seed in 1..=8 {
        let adjust = |config: &mut Config| config.limits.connection.in_flight = 1;
        run(seed, adjust, |scene| async move {
            let session = &scene.session;
            session.ready().await.unwrap();
            session.query(KEYSPACE, ()).await.unwrap();
            session.query(TABLE, ()).await.unwrap();
            let select = session
                .prepare("SELECT v FROM ks.t WHERE pk = ?")
                .await
                .unwrap()
                .idempotent();
            scene.pause(5_000_000).await;
            scene.world.with_cluster(|cluster| {
                for node in 0..2 {
                    cluster.set_delay(node, 300_000).unwrap();
                }
            });
            let outcomes = Rc::new(RefCell::new(Vec::<Option<Error>>::new()));
            for pk in 0..8_i64 {
                let (session, select) = (session.clone(), select.clone());
                let outcomes = Rc::clone(&outcomes);
                scene.spawner.spawn(async move {
                    let outcome = session.execute(&select, (pk,)).await;
                    outcomes.borrow_mut().push(outcome.err());
                });
            }
            scene.pause(100_000).await;
            scene.world.with_cluster(|cluster| cluster.kill(0).unwrap());
            scene.pause(9_000_000).await;
            assert_eq!(*outcomes.borrow(), [const { None }; 8]);
        });
    }
}

#[test]
fn no_connection_outlives_a_dropped_driver() {
    // From the first connect to the last of the pools.
    for at in (0..12_000).step_by(250) {
        run(
            3,
            |_| {},
            |scene| async move {
                scene.drops_driver_at.set(Some(at));
                let _ = scene.session.ready().await;
                scene.pause(20_000_000).await;
                assert_eq!(scene.open_connections(), 0, "dropped at {at} us");
            },
        );
    }
}

#[test]
fn a_change_of_the_schema_that_was_made_is_no_failure() {
    let mut made = 0;
    for after in (0..8_000).step_by(250) {
        let seen = Rc::new(Cell::new(0));
        let count = Rc::clone(&seen);
        run(
            5,
            |_| {},
            |scene| async move {
                let session = scene.session.clone();
                session.ready().await.unwrap();
                session.query(KEYSPACE, ()).await.unwrap();
                let outcome = Rc::new(RefCell::new(None));
                let slot = Rc::clone(&outcome);
                let caller = session.clone();
                scene.spawner.spawn(async move {
                    *slot.borrow_mut() = Some(caller.query(TABLE, ()).await.map(drop));
                });
                scene.pause(after).await;
                session.close().await;
                scene.pause(5_000_000).await;
                match outcome.take().expect("it has ended") {
                    Ok(()) => {
                        assert!(scene.table_exists());
                        count.set(1);
                    }
                    Err(error) => assert!(
                        error.may_have_been_applied() || !scene.table_exists(),
                        "{after} us: {error:?}"
                    ),
                }
                assert_eq!(scene.open_connections(), 0, "closed after {after} us");
            },
        );
        made += seen.get();
    }
    assert!(made > 0);
}

#[test]
fn a_prepared_change_of_the_schema_settles_too() {
    run(
        7,
        |_| {},
        |scene| async move {
            let session = &scene.session;
            session.ready().await.unwrap();
            let create = session.prepare(KEYSPACE).await.unwrap();
            session.execute(&create, ()).await.unwrap();
            let status = session.status();
            assert!(status.cluster.keyspaces.iter().any(|ks| *ks.name == *"ks"));
        },
    );
}

#[test]
fn a_closed_session_ends_its_connections_with_the_last_answer() {
    run(
        9,
        |_| {},
        |scene| async move {
            let session = &scene.session;
            session.ready().await.unwrap();
            session.query(KEYSPACE, ()).await.unwrap();
            session.query(TABLE, ()).await.unwrap();
            let select = session
                .prepare("SELECT v FROM ks.t WHERE pk = ?")
                .await
                .unwrap();
            scene.world.with_cluster(|cluster| {
                for node in 0..2 {
                    cluster.set_delay(node, 300_000).unwrap();
                }
            });
            let caller = session.clone();
            scene.spawner.spawn(async move {
                caller.execute(&select, (1_i64,)).await.unwrap();
            });
            scene.pause(100_000).await;
            session.close().await;
            assert!(scene.open_connections() > 0, "a request is under way");
            scene.pause(400_000).await;
            assert_eq!(scene.open_connections(), 0);
        },
    );
}

#[test]
fn a_route_tells_what_the_plan_was_made_of() {
    run(
        11,
        |_| {},
        |scene| async move {
            let insert = scene.prepare_insert().await;
            let route = scene.session.route(&insert, (1_i64, 1_i64)).unwrap();
            assert_eq!(
                (route.kind(), route.is_lwt()),
                (StatementKind::Write, false)
            );
            assert_eq!((route.keyspace(), route.table()), (Some("ks"), Some("t")));
            assert_eq!((route.source(), route.tablet()), (Source::None, None));
            let reasons: Vec<_> = route.targets().map(|target| target.reason).collect();
            assert_eq!(reasons, [Reason::Any; 2]);

            let insert_one = scene.session.execute(&insert, (1_i64, 1_i64));
            assert!(insert_one.await.unwrap().info().tablet_learned);
            scene.pause(1_000_000).await;
            let route = scene.session.route(&insert, (1_i64, 1_i64)).unwrap();
            assert_eq!(route.source(), Source::Tablet);
            let (tablet, token) = (route.tablet().unwrap(), route.token.unwrap().value());
            assert!(tablet.first_exclusive() < token && token <= tablet.last_inclusive());
            assert!(tablet.version().is_some());
            assert_eq!(
                route.leader(),
                None,
                "the keyspace is eventually consistent"
            );
            let mut replicas: Vec<_> = tablet.replicas().iter().map(|r| r.host_id).collect();
            let mut targets: Vec<_> = route.targets().map(|target| target.host_id).collect();
            replicas.sort_unstable();
            targets.sort_unstable();
            assert_eq!(targets, replicas);
            let status = scene.session.status();
            for target in route.targets() {
                let of_target = |node: &&NodeStatus| node.host_id == target.host_id;
                let node = status.nodes.iter().find(of_target).unwrap();
                assert_eq!((target.dc, target.rack), (&*node.dc, &*node.rack));
                assert_eq!(target.address, node.address);
                assert_eq!(target.reason, Reason::Dc, "a replica");
            }
        },
    );
}
