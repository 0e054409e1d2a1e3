//! Sockets that take little, block, break or close in the middle of a frame.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use messina_core::drive::Statement;
use messina_core::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use messina_scenario::frame::{ROW_1, ROW_2};
use messina_scenario::{hex, play, play_everywhere};

use super::support::{SELECT, check_reconnects, check_works, kind, millis, value};

/// A statement whose request has 100 bytes.
fn hundred() -> Statement<'static> {
    Statement::new("x".repeat(82)).with_timeout(millis(100))
}

/// The request: QUERY, the text, LOCAL_QUORUM, flags: serial consistency, LOCAL_SERIAL.
fn hundred_bytes(stream: i16) -> Vec<u8> {
    let head = hex("0400 0000 07 0000005b 00000052");
    let mut out = [head, vec![b'x'; 82], hex("0006 10 0009")].concat();
    out[2..4].copy_from_slice(&stream.to_be_bytes());
    assert_eq!(out.len(), 100);
    out
}

/// Case W4: a socket that takes a few bytes at a time.
#[test]
fn short_writes_lose_and_repeat_nothing() {
    for max in [1, 3, 7] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            peer.take_per_write(max);
            let call = scene.query(&session, hundred());
            let taken = peer.bytes(100).await;
            let stream = i16::from_be_bytes([taken[2], taken[3]]);
            assert_eq!(taken, hundred_bytes(stream));
            scene.turn().await;
            assert!(!peer.has_request());
            let mut answer = hex(ROW_2);
            answer[2..4].copy_from_slice(&stream.to_be_bytes());
            peer.send(&answer);
            assert_eq!(value(call.await), 2);
            check_works(&scene, &session, &mut peer).await;
        });
    }
}

/// Case W4: the link breaks in the middle of a frame. Two requests share one write; whoever had a
/// byte on its way may have been applied.
#[test]
fn a_reset_within_a_frame_fails_its_request_at_once() {
    for (taken, expected) in [
        (0, [false, false]),
        (1, [true, false]),
        (40, [true, false]),
        (100, [true, false]),
        (101, [true, true]),
        (199, [true, true]),
    ] {
        play(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            peer.reset_after(taken);
            let asked_at = scene.now();
            let (first, second) = (session.clone(), session.clone());
            // One task, so that neither is written without the other.
            let both = scene.call(async move {
                let mut first = pin!(first.query_unprepared(hundred()));
                let mut second = pin!(second.query_unprepared(hundred()));
                let polled = poll_fn(|cx| {
                    let first = first.as_mut().poll(cx).is_pending();
                    Poll::Ready((first, second.as_mut().poll(cx).is_pending()))
                });
                assert_eq!(polled.await, (true, true));
                [first.await, second.await]
            });
            let errors = both.await.map(|result| result.expect_err("a reset"));
            let reset = ErrorKind::Link(LinkError::new(LinkErrorKind::Reset));
            assert_eq!(errors.each_ref().map(Error::kind), [reset, reset]);
            let applied = errors.each_ref().map(Error::may_have_been_applied);
            assert_eq!(applied, expected, "{taken} bytes were taken");
            assert_eq!(scene.now(), asked_at, "at once");
            peer.expect_close().await;
            // The next connection has nothing of the old one.
            check_reconnects(&scene, &session).await;
        });
    }
}

/// Case W4: the node takes nothing more until after the request was given up.
#[test]
fn a_frame_begun_is_finished_before_any_other() {
    for is_dropped in [false, true] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            peer.take_only(40);
            let call_a = scene.query(&session, hundred());
            let start = peer.bytes(40).await;
            if is_dropped {
                call_a.cancel();
            } else {
                let timeout = ErrorKind::Timeout(TimeoutKind::Request);
                assert_eq!(kind(call_a.await), timeout);
            }
            let call_b = scene.query(&session, SELECT);
            scene.pause(millis(50)).await;
            assert!(!peer.has_request());

            peer.take_all();
            let rest = peer.bytes(60).await;
            let stream = i16::from_be_bytes([start[2], start[3]]);
            assert_eq!([start, rest].concat(), hundred_bytes(stream));
            let request_b = peer.request().await;
            assert_eq!(request_b.statement(), SELECT);
            assert_ne!(request_b.stream, stream);

            let mut late = hex(ROW_1);
            late[2..4].copy_from_slice(&stream.to_be_bytes());
            peer.send(&late);
            peer.answer(&request_b, ROW_2);
            assert_eq!(value(call_b.await), 2);
        });
    }
}

/// Case W4: the node takes nothing more for ever.
#[test]
fn a_node_that_takes_nothing_ever_again_is_left() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let asked_at = scene.now();
        peer.take_only(40);
        let timeout = ErrorKind::Timeout(TimeoutKind::Request);
        assert_eq!(kind(scene.query(&session, hundred()).await), timeout);
        assert_eq!(peer.closed().await.len(), 40);
        // The heartbeat after 30 seconds gets no answer within 10.
        assert!(scene.now() - asked_at <= 41_000_000, "{}", scene.now());
        check_reconnects(&scene, &session).await;
    });
}

/// Case W4: the stream ends in the middle of a header, or between frames.
#[test]
fn the_end_of_the_stream_fails_what_is_pending_wherever_it_comes() {
    for sent in ["", "84000001", "8400000108000000040000", ROW_1] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let answered = scene.query(&session, SELECT);
            let first = peer.request().await;
            let pending = scene.query(&session, SELECT);
            peer.request().await;
            if sent == ROW_1 {
                peer.answer(&first, ROW_1);
            } else {
                peer.send(&hex(sent));
            }
            drop(peer);
            if sent == ROW_1 {
                assert_eq!(value(answered.await), 1);
            }
            let error = pending.await.expect_err("no answer");
            assert_eq!(error.kind(), ErrorKind::Link(LinkError::CLOSED_BY_PEER));
            assert!(error.may_have_been_applied());
            check_reconnects(&scene, &session).await;
        });
    }
}

/// Case W4: flush and close that never end are bounded.
#[test]
fn closing_does_not_wait_for_ever() {
    play(|scene| async move {
        let config = scene.config();
        let bound = config.timeouts.close;
        let (session, mut peer) = scene.connect(config).await;
        check_works(&scene, &session, &mut peer).await;
        peer.hang_at_close();
        let asked_at = scene.now();
        session.close().await;
        peer.expect_close().await;
        let took = scene.now() - asked_at;
        assert_eq!(u128::from(took), bound.as_micros());
    });
}
