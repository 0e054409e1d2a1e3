//! Errors that must not be hammered, and writes that must not be repeated.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use messina_core::drive::Statement;
use messina_core::error::ErrorKind;
use messina_core::wire::response::ErrorCode;
use messina_scenario::frame::VOID;
use messina_scenario::{Peer, any_request, play_everywhere, play_once, serving};

use super::support::{SELECT, check_reconnects, millis};

const SERVER_ERROR: &str = "84000001000000000700000000000178";
const OVERLOADED: &str = "84000001000000000700001001000178";
const UNAVAILABLE: &str = "84000001000000001100001000000178000400000002 00000001";
const SIMPLE: &str = "8400000100000000190000110000017800010000000100000002000653494d504c45";
const BATCH_LOG: &str =
    "84000001000000001c0000110000017800010000000100000002000942415443485f4c4f47";

/// Tokens of two and of three nodes.
const TWO: [i64; 2] = [0, 1 << 60];
const THREE: [i64; 3] = [0, 1 << 60, 1 << 61];

fn statement(is_idempotent: bool) -> Statement<'static> {
    let statement =
        Statement::new("UPDATE k.t SET v = v + 1 WHERE p = 1").with_timeout(millis(100));
    if is_idempotent {
        statement.idempotent()
    } else {
        statement
    }
}

/// Case L4: a cluster of one.
#[test]
fn the_only_node_is_not_hammered() {
    for (answer, code) in [
        (SERVER_ERROR, ErrorCode::Server),
        (OVERLOADED, ErrorCode::Overloaded),
    ] {
        for is_idempotent in [false, true] {
            play_everywhere(move |scene| async move {
                let (session, mut peer) = scene.connect(scene.config()).await;
                let call = scene.query(&session, statement(is_idempotent));
                let mut requests = 0;
                while !call.is_done() {
                    peer.serving(scene.turn()).await;
                    while peer.has_request() {
                        let request = peer.request().await;
                        requests += 1;
                        peer.answer(&request, answer);
                    }
                    assert!(requests <= 2);
                }
                assert_eq!(
                    call.await.expect_err("refused").kind(),
                    ErrorKind::Server(code)
                );
            });
        }
    }
}

/// Case L4: three nodes, all overloaded.
#[test]
fn each_overloaded_node_is_asked_once_at_most() {
    play_everywhere(|scene| async move {
        let scene = scene.with_tokens(&THREE);
        let (session, mut peers) = scene.connect_all(scene.config()).await;
        let call = scene.query(&session, statement(true));
        let mut asked = Vec::new();
        for _ in 0..3 {
            let (node, request) = any_request(&mut peers).await;
            peers[node].answer(&request, OVERLOADED);
            asked.push(node);
        }
        let error = call.await.expect_err("overloaded");
        assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Overloaded));
        asked.sort_unstable();
        assert_eq!(asked, [0, 1, 2]);
        serving(&mut peers, scene.pause(millis(1000))).await;
        assert!(!peers.iter().any(Peer::has_request));
    });
}

/// What the node does instead of a good answer.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answers(&'static str),
    Closes,
    Resets,
    IsSilent,
}

/// Case E5: the first line of answers, for a statement that is not marked idempotent.
#[test]
fn a_write_that_may_have_happened_is_not_repeated() {
    let fates = [
        SIMPLE,
        "84000001000000001a00001100000178000100000001000000020007434f554e544552",
        "84000001000000001600001100000178000100000001000000020003434153",
        "8400000100000000210000110000017800010000000100000002000e554e4c4f474745445f4241544348",
        "84000001000000001d000015000001780001000000000000000100000001000653494d504c45",
        "8400000100000000110000170000017800080000000100000002",
    ]
    .map(Fate::Answers);
    let others = [Fate::Closes, Fate::Resets, Fate::IsSilent];
    for fate in fates.into_iter().chain(others) {
        play_everywhere(move |scene| async move {
            let scene = scene.with_tokens(&TWO);
            let (session, mut peers) = scene.connect_all(scene.config()).await;
            let call = scene.query(&session, statement(false));
            let (node, request) = any_request(&mut peers).await;
            match fate {
                Fate::Answers(answer) => peers[node].answer(&request, answer),
                Fate::Closes => drop(peers.remove(node)),
                Fate::Resets => peers[node].reset(),
                Fate::IsSilent => {}
            }
            let error = serving(&mut peers, call).await.expect_err("no second try");
            assert!(error.may_have_been_applied(), "{fate:?}: {error}");
            serving(&mut peers, scene.pause(millis(1000))).await;
            assert!(!peers.iter().any(Peer::has_request), "{fate:?}");
        });
    }
}

/// Case E5: what may be repeated, once.
#[test]
fn what_was_not_applied_or_may_be_applied_twice_is_repeated_once() {
    for (fate, is_idempotent, stays) in [
        (Fate::Answers(BATCH_LOG), false, true),
        (Fate::Answers(SIMPLE), true, true),
        (Fate::Answers(UNAVAILABLE), false, false),
        (Fate::Closes, true, false),
    ] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_tokens(&TWO);
            let (session, mut peers) = scene.connect_all(scene.config()).await;
            let call = scene.query(&session, statement(is_idempotent));
            let (first, request) = any_request(&mut peers).await;
            let mut others = Vec::new();
            match fate {
                Fate::Answers(answer) => peers[first].answer(&request, answer),
                _ => drop(peers.remove(first)),
            }
            if !stays && peers.len() == 2 {
                others.push(peers.remove(first));
            }
            let (second, again) = any_request(&mut peers).await;
            assert_eq!(again.body, request.body);
            assert_eq!(second == first && peers.len() == 2, stays, "{fate:?}");
            peers[second].answer(&again, VOID);
            let result = call.await.expect("the second try");
            assert_eq!(result.info().attempts, 2);
        });
    }
    // A second failure of the same kind is the caller's.
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let call = scene.query(&session, statement(false));
        for _ in 0..2 {
            let request = peer.request().await;
            peer.answer(&request, BATCH_LOG);
        }
        assert_eq!(
            call.await.expect_err("twice").kind(),
            ErrorKind::Server(ErrorCode::WriteTimeout)
        );
    });
}

/// A caller that is polled late finds an answer that came in time, and no time for another try.
#[test]
fn no_attempt_begins_after_the_time_limit() {
    for (polled_at, tries) in [(50, 2), (150, 1)] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_tokens(&TWO);
            let (session, mut peers) = scene.connect_all(scene.config()).await;
            let clock = scene.clone();
            let call = scene.call(async move {
                let mut asking = pin!(session.query_unprepared(statement(true)));
                let first = poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx))).await;
                assert!(first.is_pending());
                clock.pause(millis(polled_at)).await;
                asking.await
            });
            for _ in 0..tries {
                let (node, request) = any_request(&mut peers).await;
                peers[node].answer(&request, OVERLOADED);
            }
            let error = serving(&mut peers, call)
                .await
                .expect_err("no time is left");
            assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Overloaded));
            serving(&mut peers, scene.pause(millis(1000))).await;
            assert!(!peers.iter().any(Peer::has_request));
        });
    }
}

/// One stream id and one place in the queue on each node.
#[test]
fn when_all_queues_are_full_a_request_is_refused_as_busy() {
    for nodes in [&TWO[..1], &TWO[..]] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_tokens(nodes);
            let mut config = scene.config();
            config.limits.connection.in_flight = 1;
            config.limits.connection.waiting = 1;
            let (session, mut peers) = scene.connect_all(config).await;
            let mut calls = Vec::new();
            for _ in 0..2 * nodes.len() {
                let call = scene.query(&session, SELECT);
                serving(&mut peers, scene.turn()).await;
                assert!(!call.is_done());
                calls.push(call);
            }
            let error = scene.query(&session, SELECT).await.expect_err("all full");
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(!error.may_have_been_applied());
            for _ in 0..calls.len() {
                let (node, request) = any_request(&mut peers).await;
                peers[node].answer(&request, VOID);
            }
            for call in calls {
                serving(&mut peers, call).await.expect("its turn came");
            }
        });
    }
}

/// Case L1: a node that refuses ten thousand times, and then does not.
#[test]
fn a_node_that_refuses_for_long_is_tried_at_bounded_pauses() {
    play_once(1, |scene| async move {
        let config = scene.config();
        let cap = u64::try_from(config.timeouts.reconnect_max.as_micros()).expect("short");
        let (session, peer) = scene.connect(config).await;
        scene.refuse(1, true);
        drop(peer);
        while scene.refused_at().len() < 10_000 {
            scene.pause(Duration::from_secs(60)).await;
        }
        let times = scene.refused_at();
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.iter().all(|&gap| gap <= cap),
            "{:?}",
            gaps.iter().max()
        );
        // Risen, and no storm: a refusal costs half a cap on average at least.
        let late = &gaps[100..];
        let mean = late.iter().sum::<u64>() / u64::try_from(late.len()).expect("few");
        assert!(mean >= cap / 4, "{mean}");

        scene.refuse(1, false);
        let from = scene.now();
        check_reconnects(&scene, &session).await;
        assert!(scene.now() - from <= cap + 1_000_000);
    });
}

/// Case L1, variants: accepted and closed at once, or closed at the first request.
#[test]
fn a_connection_that_dies_at_once_backs_off_too() {
    for handshakes in [false, true] {
        play_once(2, move |scene| async move {
            let (session, peer) = scene.connect(scene.config()).await;
            drop(peer);
            let from = scene.now();
            let tries = 200;
            for _ in 0..tries {
                let mut peer = scene.accept(1).await;
                if handshakes {
                    peer.handshake().await;
                    peer.serving(scene.turn()).await;
                    let call = scene.query(&session, SELECT);
                    peer.serving(scene.turn()).await;
                    drop(peer);
                    call.await.expect_err("closed");
                }
            }
            // The pool and the contact points try side by side, each at the cap of ten seconds
            // less up to a half.
            let took = scene.now() - from;
            assert!(took >= tries * 3_000_000, "{took}");
        });
    }
}
