//! Batches and conditions, from the session down to the nodes' stores.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use messina_core::drive::Batch;
use messina_core::error::{Error, ErrorKind};
use messina_core::routing::ShardIdx;
use messina_core::types::Counter;
use messina_core::wire::Consistency;
use messina_core::wire::response::ErrorCode;
use messina_sim::node::Options;

use crate::scene::{Scene, run, run_on};

const UPDATE: &str = "UPDATE ks.t SET v = ? WHERE pk = ?";
const SELECT: &str = "SELECT v FROM ks.t WHERE pk = ?";

async fn value(scene: &Scene, pk: i64) -> Option<i64> {
    let select = scene.session.prepare(SELECT).await.unwrap();
    let found = scene.session.execute(&select, (pk,)).await.unwrap();
    found.maybe_row::<(i64,)>().unwrap().map(|(v,)| v)
}

#[test]
fn a_batch_is_stored_and_goes_to_a_replica_of_its_first_statement() {
    for seed in 1..=4 {
        run(
            seed,
            |_| {},
            |scene| async move {
                let insert = scene.prepare_insert().await;
                let update = scene.session.prepare(UPDATE).await.unwrap();
                for pk in 0..8_i64 {
                    // Batches teach nothing, so the tablet is learned by reading. One guess in
                    // sixteen at its version is right by chance and brings no answer.
                    let route = || scene.session.route(&insert, (pk, 1_i64)).unwrap();
                    while route().tablet().is_none() {
                        value(&scene, pk).await;
                        scene.pause(100_000).await;
                    }
                    let mut batch = Batch::unlogged();
                    batch.push(&insert, (pk, 1_i64)).unwrap();
                    batch.push(&update, (2_i64, pk + 100)).unwrap();
                    let text = format!("UPDATE ks.t SET v = 3 WHERE pk = {}", pk + 200);
                    batch.push_text(text).unwrap();
                    let result = scene.session.batch(&batch).await.unwrap();
                    let tablet = route().tablet().expect("it was learned");
                    let status = scene.session.status();
                    let mut nodes = status.nodes.iter();
                    let node = nodes.find(|node| node.node == result.info().node).unwrap();
                    let mut replicas = tablet.replicas().iter();
                    let replica = replicas.find(|replica| replica.host_id == node.host_id);
                    let shard = replica.expect("a replica").shard;
                    assert_eq!(result.info().shard.map(|shard| shard.value()), Some(shard));
                }
                for pk in 0..8_i64 {
                    let stored = [pk, pk + 100, pk + 200].map(|pk| value(&scene, pk));
                    for (place, stored) in (1..).zip(stored) {
                        assert_eq!(stored.await, Some(place));
                    }
                }
            },
        );
    }
}

/// A batch of a strongly consistent table goes to the leader of its tablet, by the level and the
/// table of its statements.
#[test]
fn a_batch_of_a_strongly_consistent_table_goes_to_its_leader() {
    const KEYSPACE: &str = "CREATE KEYSPACE strong WITH replication = \
        {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND consistency = 'global'";
    const TABLE: &str = "CREATE TABLE strong.t (pk bigint PRIMARY KEY, v bigint)";
    for seed in 1..=4 {
        let mut options = Options::uniform(3, 4);
        options.seed = seed;
        run_on(
            options,
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE]).await;
                let insert = "INSERT INTO strong.t (pk, v) VALUES (?, ?)";
                let insert = session.prepare(insert).await.unwrap();
                scene.pause(5_000_000).await;
                let leader = |pk: i64| session.route(&insert, (pk, 1_i64)).unwrap().leader();
                for pk in 0..16_i64 {
                    while leader(pk).is_none() {
                        session.execute(&insert, (pk, 1_i64)).await.unwrap();
                        scene.pause(100_000).await;
                    }
                }
                let place = |node: u16, shard: Option<u16>| {
                    let status = session.status();
                    let mut nodes = status.nodes.iter();
                    let node = nodes.find(|known| known.node.value() == node);
                    Some((node.unwrap().host_id, shard.map(ShardIdx::new)))
                };
                for pk in 0..4_i64 {
                    let mut batch = Batch::unlogged();
                    batch.push(&insert, (pk, 2_i64)).unwrap();
                    batch.push(&insert, (pk, 3_i64)).unwrap();
                    for _ in 0..4 {
                        let info = session.batch(&batch).await.unwrap().info();
                        let shard = info.shard.map(ShardIdx::value);
                        assert_eq!(place(info.node.value(), shard), leader(pk));
                    }
                    // Where the second statement belongs to another one nodes refuse the batch, and
                    // still it was the leader of the first that did.
                    let other = (0..16).find(|other| leader(*other) != leader(pk));
                    batch.clear();
                    batch.push(&insert, (pk, 4_i64)).unwrap();
                    batch.push(&insert, (other.unwrap(), 4_i64)).unwrap();
                    for _ in 0..4 {
                        let error = session.batch(&batch).await.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Invalid));
                        assert_eq!(place(error.node().unwrap(), error.shard()), leader(pk));
                    }
                }
            },
        );
    }
}

#[test]
fn statements_that_nodes_have_lost_are_given_back_within_a_batch() {
    for seed in 1..=8 {
        run(
            seed,
            |_| {},
            |scene| async move {
                let insert = scene.prepare_insert().await;
                let update = scene.session.prepare(UPDATE).await.unwrap();
                let mut batch = Batch::logged();
                for pk in 0..10_i64 {
                    batch.push(&insert, (pk, 1_i64)).unwrap();
                    batch.push(&update, (2_i64, pk + 100)).unwrap();
                }
                for _ in 0..4 {
                    scene.world.with_cluster(|cluster| {
                        (0..2).for_each(|node| cluster.forget_prepared(node).unwrap());
                    });
                    let result = scene.session.batch(&batch).await.unwrap();
                    assert_eq!(result.info().attempts, 3, "each statement once");
                    let again = scene.session.batch(&batch).await.unwrap();
                    if again.info().node == result.info().node {
                        assert_eq!(again.info().attempts, 1);
                    }
                }
                assert_eq!(value(&scene, 9).await, Some(1));
                assert_eq!(value(&scene, 109).await, Some(2));
            },
        );
    }
}

#[test]
fn a_conditional_batch_is_applied_as_a_whole_or_tells_what_it_found() {
    const TABLE: &str = "CREATE TABLE ks.c (pk bigint, ck int, v text, PRIMARY KEY (pk, ck))";
    const INSERT: &str = "INSERT INTO ks.c (pk, ck, v) VALUES (?, ?, ?) IF NOT EXISTS";
    for seed in 1..=4 {
        run(
            seed,
            |_| {},
            |scene| async move {
                scene.prepare_insert().await;
                scene.session.query(TABLE, ()).await.unwrap();
                let insert = scene.session.prepare(INSERT).await.unwrap();
                let single = scene.session.execute(&insert, (1_i64, 1, "first"));
                assert_eq!(single.await.unwrap().applied(), Some(true));
                let again = scene.session.execute(&insert, (1_i64, 1, "second"));
                let again = again.await.unwrap();
                assert_eq!(again.applied(), Some(false));
                let (_, _, _, held) = again.single_row::<(bool, i64, i32, &str)>().unwrap();
                assert_eq!(held, "first");

                for (cks, applied) in [([2, 3], true), ([4, 3], false), ([4, 5], true)] {
                    let mut batch = Batch::logged();
                    for ck in cks {
                        batch.push(&insert, (1_i64, ck, "batch")).unwrap();
                    }
                    assert!(batch.is_lwt());
                    let result = scene.session.batch(&batch).await.unwrap();
                    assert_eq!(result.applied(), Some(applied), "{cks:?}");
                    assert_eq!(result.row_count(), 2);
                }
                let select = "SELECT ck FROM ks.c WHERE pk = ?";
                let found = scene.session.query(select, (1_i64,)).await.unwrap();
                let cks: Result<Vec<_>, Error> = found.rows::<(i32,)>().unwrap().collect();
                assert_eq!(cks.unwrap(), [(1,), (2,), (3,), (4,), (5,)]);
                // Nothing to compare for a write without conditions.
                let update = scene
                    .session
                    .query("UPDATE ks.t SET v = 1 WHERE pk = 1", ());
                assert_eq!(update.await.unwrap().applied(), None);
            },
        );
    }
}

#[test]
fn counters_count_each_batch_once() {
    const TABLE: &str = "CREATE TABLE ks.n (pk bigint PRIMARY KEY, n counter)";
    run(
        1,
        |_| {},
        |scene| async move {
            scene.prepare_insert().await;
            scene.session.query(TABLE, ()).await.unwrap();
            let add = "UPDATE ks.n SET n = n + ? WHERE pk = ?";
            let add = scene.session.prepare(add).await.unwrap().idempotent();
            let mut batch = Batch::counter();
            for pk in 0..4_i64 {
                batch.push(&add, (Counter(pk), pk)).unwrap();
            }
            assert!(!batch.is_idempotent(), "whatever its statements say");
            for _ in 0..3 {
                scene.session.batch(&batch).await.unwrap();
            }
            let select = scene.session.prepare("SELECT n FROM ks.n WHERE pk = ?");
            let select = select.await.unwrap();
            for pk in 0..4_i64 {
                let found = scene.session.execute(&select, (pk,)).await.unwrap();
                let (n,) = found.single_row::<(Counter,)>().unwrap();
                assert_eq!(n.0, 3 * pk);
            }
        },
    );
}

/// The node dies at any moment: a batch that was answered is there, one that says it cannot have
/// been applied is not.
#[test]
fn a_batch_whose_node_dies_tells_the_truth() {
    let outcomes = Rc::new(Cell::new((0, 0)));
    for after in (0..3_000).step_by(150) {
        let outcomes = Rc::clone(&outcomes);
        run(
            after + 1,
            |_| {},
            |scene| async move {
                let insert = scene.prepare_insert().await;
                let mut batch = Batch::unlogged();
                for pk in 0..4_i64 {
                    batch.push(&insert, (pk, 7_i64)).unwrap();
                }
                let ran = spawn_batch(&scene, batch);
                scene.pause(after).await;
                scene.world.with_cluster(|cluster| cluster.kill(1).unwrap());
                scene.pause(20_000_000).await;
                let ran = ran.take().expect("it has ended");
                let stored = value(&scene, 0).await;
                let (mut good, mut bad) = outcomes.get();
                match ran {
                    Ok(()) => {
                        assert_eq!(stored, Some(7), "{after} us");
                        good += 1;
                    }
                    Err(error) => {
                        let truth = error.may_have_been_applied() || stored.is_none();
                        assert!(truth, "{after} us: {error:?}");
                        bad += 1;
                    }
                }
                outcomes.set((good, bad));
            },
        );
    }
    let (good, bad) = outcomes.get();
    assert!(good > 0 && bad > 0, "{good} {bad}");
}

fn spawn_batch(scene: &Scene, batch: Batch) -> Rc<RefCell<Option<Result<(), Error>>>> {
    let outcome = Rc::new(RefCell::new(None));
    let (session, slot) = (scene.session.clone(), Rc::clone(&outcome));
    scene.spawner.spawn(async move {
        let ran = session.batch(&batch).await;
        *slot.borrow_mut() = Some(ran.map(drop));
    });
    outcome
}
