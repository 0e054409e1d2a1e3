//! Nodes die, tablets move, statements are forgotten, callers lose interest: requests end as they
//! should all the same.

use core::cell::Cell;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::rc::Rc;

use messina_core::compact::{Batch, Options};
use messina_core::error::{
    ApiMisuse, ErrorKind, LimitField, LinkError, LinkErrorKind, TimeoutKind,
};
use messina_core::wire::request::BatchKind;

use crate::scene::{INSERT, KEYSPACE, SELECT, Scene, TABLE, options, run};

/// Three copies of each row, so that one node is not missed.
const THREE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3} AND tablets = {'initial': 8}";

impl Scene {
    /// Writes rows and reads them back.
    async fn check_rows(&self, keys: core::ops::Range<i64>) {
        let insert = self.session.prepare(INSERT).await.unwrap();
        let select = self.session.prepare(SELECT).await.unwrap();
        let insert = insert.with(Options::new().idempotent());
        for key in keys {
            let written = self.session.execute(&insert, (key, key + 1)).await;
            written.unwrap();
            let reply = self.session.execute(&select, (key,)).await.unwrap();
            assert_eq!(reply.single_row(), Ok((key + 1,)));
        }
    }
}

#[test]
fn a_killed_node_is_not_missed_and_comes_back() {
    for seed in 1..=6 {
        run(
            options(seed, 3, 2),
            |_| {},
            |scene| async move {
                scene.create(&[THREE, TABLE]).await;
                scene.check_rows(0..10).await;
                assert_eq!(scene.session.status().members.len(), 3);
                for node in 0..3 {
                    let killed = scene.world.with_cluster(|cluster| cluster.kill(node));
                    killed.unwrap();
                    scene.check_rows(10..30).await;
                    let started = scene.world.with_cluster(|cluster| cluster.start(node));
                    started.unwrap();
                    scene.pause(20_000_000).await;
                }
                let connections = scene.session.status().connections;
                let serving = connections.iter().filter(|link| link.serves).count();
                assert_eq!(serving, 3, "{connections:?}");
                scene.check_rows(30..40).await;
            },
        );
    }
}

#[test]
fn requests_follow_a_tablet_that_moves() {
    run(
        options(3, 3, 1),
        |_| {},
        |scene| async move {
            scene.create(&[KEYSPACE, TABLE]).await;
            let select = scene.session.prepare(SELECT).await.unwrap();
            let read = async || scene.session.execute(&select, (7_i64,)).await.unwrap();
            for _ in 0..4 {
                read().await;
            }
            let place_of = |node: u16| {
                let nodes = scene.session.status().nodes;
                nodes
                    .into_iter()
                    .find(|(number, _)| *number == node)
                    .unwrap()
                    .1
            };
            let before = place_of(read().await.node());
            let held = scene.session.status().counters.tablets;
            assert!(held > 0);
            // Every tablet goes to another node.
            scene.world.with_cluster(|cluster| {
                for tablet in 0..cluster.tablets("ks", "t").len() {
                    let from = cluster.tablets("ks", "t")[tablet].replicas[0];
                    let mut to = from;
                    to.node = (from.node + 1) % 3;
                    let moved = cluster.move_tablet(("ks", "t"), tablet, from, to);
                    moved.unwrap();
                }
            });
            for _ in 0..4 {
                read().await;
            }
            let after = place_of(read().await.node());
            assert_ne!(before, after);
        },
    );
}

#[test]
fn a_forgotten_statement_is_prepared_again() {
    run(
        options(1, 3, 1),
        |_| {},
        |scene| async move {
            scene.create(&[THREE, TABLE]).await;
            scene.check_rows(0..10).await;
            scene.world.with_cluster(|cluster| {
                cluster.forget_prepared(0).unwrap();
                cluster.forget_prepared(1).unwrap();
            });
            scene.check_rows(10..20).await;
        },
    );
}

#[test]
fn every_request_ends_within_its_time() {
    run(
        options(1, 1, 1),
        |_| {},
        |scene| async move {
            scene.create(&[KEYSPACE, TABLE]).await;
            let select = scene.session.prepare(SELECT).await.unwrap();
            let slow = select.with(Options::new().with_timeout(Duration::from_millis(300)));
            for is_streamed in [false, true] {
                let dropped = scene.world.with_cluster(|cluster| cluster.drop_next(0, 1));
                dropped.unwrap();
                let start = scene.now();
                let error = match is_streamed {
                    false => scene.session.execute(&slow, (1_i64,)).await.unwrap_err(),
                    true => {
                        let mut stream = scene.session.stream(&slow, (1_i64,));
                        stream.next::<(i64,)>().await.unwrap().unwrap_err()
                    }
                };
                assert_eq!(error.kind(), ErrorKind::Timeout(TimeoutKind::Request));
                let took = scene.now().saturating_since(start);
                assert_eq!(took.as_millis(), 300);
            }
            // However long nobody asks, the time counts from the request.
            scene.pause(100_000_000).await;
            let fast = select.with(Options::new().with_timeout(Duration::from_millis(100)));
            scene.session.execute(&fast, (1_i64,)).await.unwrap();
        },
    );
}

/// Each request is given up after so many polls of its future, so at each place where it can wait.
#[test]
fn any_future_can_be_dropped_at_any_poll() {
    let finished = Rc::new(Cell::new(0));
    for polls in 0..6 {
        let finished = Rc::clone(&finished);
        run(
            options(u64::from(polls) + 1, 3, 1),
            |_| {},
            |scene| async move {
                let session = &scene.session;
                scene.create(&[THREE, TABLE]).await;
                let insert = session.prepare(INSERT).await.unwrap();
                let select = session.prepare(SELECT).await.unwrap();
                for key in 0..10_i64 {
                    let ended = [
                        polled(polls, session.ready()).await,
                        polled(polls, session.execute(&insert, (key, key))).await,
                        polled(polls, session.execute(&select, (key,))).await,
                        polled(polls, session.query("SELECT * FROM ks.t", ())).await,
                        polled(polls, session.query(SELECT, (key,))).await,
                        polled(polls, session.prepare("SELECT pk FROM ks.t")).await,
                        polled(polls, async {
                            let mut stream = session.stream(&select, (key,));
                            while let Some(row) = stream.next::<(i64,)>().await {
                                row.unwrap();
                            }
                        })
                        .await,
                    ];
                    finished.set(finished.get() + ended.iter().filter(|ended| **ended).count());
                    // Those that go on are not disturbed, nor mistaken for others.
                    let written = session.execute(&insert, (key + 100, key)).await;
                    written.unwrap();
                    let reply = session.execute(&select, (key + 100,)).await.unwrap();
                    assert_eq!(reply.single_row(), Ok((key,)));
                }
                scene.pause(5_000_000).await;
                let status = session.status();
                let connections = &status.connections;
                assert!(
                    connections.iter().all(|link| link.in_use == 0),
                    "{status:?}"
                );
                polled(polls, session.close(Duration::from_secs(1))).await;
                session.close(Duration::from_secs(1)).await.unwrap();
                assert_eq!(scene.open_connections(), 0);
            },
        );
    }
    assert!(finished.get() > 0, "nothing was done before it was dropped");
}

/// Whether the future was done within so many polls.
async fn polled(polls: u32, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        future.as_mut().poll(cx).map(|_| true)
    })
    .await
}

#[test]
fn a_stream_that_is_dropped_lets_others_go_on() {
    run(
        options(1, 1, 1),
        |config| {
            config.limits.read_chunk = 128;
            config.limits.frame.frame_len_max = 2000;
        },
        |scene| async move {
            let session = &scene.session;
            let table = "CREATE TABLE ks.rows (pk int, ck int, v text, PRIMARY KEY (pk, ck))";
            scene.create(&[KEYSPACE, TABLE, table]).await;
            let insert = "INSERT INTO ks.rows (pk, ck, v) VALUES (1, ?, ?)";
            let insert = session.prepare(insert).await.unwrap();
            for ck in 0..200 {
                session.execute(&insert, (ck, "some text")).await.unwrap();
            }
            let select = session.prepare("SELECT ck, v FROM ks.rows").await.unwrap();
            let all = select.with(Options::new().with_page_size(0));
            for rows in [0, 1, 5, 100, 199, 200] {
                let mut stream = session.stream(&all, ());
                for ck in 0..rows {
                    let row = stream.next::<(i32, String)>().await.unwrap().unwrap();
                    assert_eq!(row.0, ck);
                    if ck == 50 {
                        // A reader that takes its time.
                        scene.pause(1_000_000).await;
                    }
                }
                drop(stream);
                scene.check_rows(0..2).await;
            }
            // As a whole it is too long, of other types it cannot be read.
            let error = session.execute(&all, ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit(LimitField::FrameLen));
            let mut stream = session.stream(&all, ());
            let error = stream.next::<(i64, String)>().await.unwrap().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Decode(_)), "{error}");
            assert!(stream.next::<(i64, String)>().await.is_none());
            drop(stream);
            scene.check_rows(0..2).await;
            let connections = session.status().connections;
            assert!(connections.iter().all(|link| link.in_use <= 1));
        },
    );
}

#[test]
fn batches_are_written_and_statements_released() {
    run(
        options(1, 2, 1),
        |_| {},
        |scene| async move {
            let session = &scene.session;
            scene.create(&[KEYSPACE, TABLE]).await;
            let insert = session.prepare(INSERT).await.unwrap();
            let mut batch = Batch::new(BatchKind::Unlogged);
            for key in 0..10_i64 {
                batch.push(session, &insert, (key, key * 3)).unwrap();
            }
            batch.push_text("INSERT INTO ks.t (pk, v) VALUES (10, 30)");
            assert!(batch.push(session, &insert, (1_i64, "text")).is_err());
            assert_eq!(batch.len(), 11);
            session.batch(&batch).await.unwrap();
            let select = session.prepare(SELECT).await.unwrap();
            for key in 0..=10_i64 {
                let reply = session.execute(&select, (key,)).await.unwrap();
                assert_eq!(reply.single_row(), Ok((key * 3,)));
            }
            session.release(&insert);
            let stale = ErrorKind::ApiMisuse(ApiMisuse::StaleStatement);
            for _ in 0..2 {
                let error = session.execute(&insert, (1_i64, 1_i64)).await.unwrap_err();
                assert_eq!(error.kind(), stale);
                let error = session.batch(&batch).await.unwrap_err();
                assert_eq!(error.kind(), stale);
                // Its number is of another statement then.
                session
                    .prepare("DELETE FROM ks.t WHERE pk = ?")
                    .await
                    .unwrap();
            }
            let again = session.prepare(INSERT).await.unwrap();
            session.execute(&again, (1_i64, 1_i64)).await.unwrap();
            for wrong in [
                session.execute(&again, (1_i64,)),
                session.execute(&again, (1_i64, 1_i32)),
                session.execute(&again, (1_i64, 1_i64, 1_i64)),
            ] {
                let error = wrong.await.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Encode(_)), "{error}");
            }
        },
    );
}

#[test]
fn a_session_that_cannot_begin_says_why() {
    run(
        options(1, 1, 1),
        |config| config.timeouts.connect = Duration::from_millis(500),
        |scene| async move {
            scene.world.with_cluster(|cluster| cluster.kill(0)).unwrap();
            let error = scene.session.ready().await.unwrap_err();
            let refused = ErrorKind::Link(LinkError::new(LinkErrorKind::Refused));
            assert_eq!(error.kind(), refused);
            let later = scene.session.query("SELECT 1", ()).await.unwrap_err();
            assert_eq!(later.kind(), refused);
            let closed = scene.session.close(Duration::from_secs(1)).await;
            assert_eq!(closed.unwrap_err().kind(), refused);
        },
    );
}
