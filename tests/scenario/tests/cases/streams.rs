//! Answers that come late, twice, or for nobody.

use core::num::NonZeroU16;

use messina_core::config::PoolSize;
use messina_core::conn::{Body, Connection, ConnectionLimits, Received, RequestHead};
use messina_core::error::{ErrorKind, PeerMisbehaved, TimeoutKind};
use messina_core::time::Instant;
use messina_core::wire::{EncodeError, FrameHeader, Opcode, ProtocolVersion};
use messina_scenario::frame::{ROW_1, ROW_2, VOID};
use messina_scenario::{Asked, Peer, Scene, any_request, hex, on_stream, play_everywhere, serving};

use super::support::{
    SELECT, check_reconnects, check_works, hasty, kind, millis, only_connection, value,
};

/// How a caller gives its request up.
#[derive(Clone, Copy, Debug)]
enum GivingUp {
    TimesOut,
    IsDropped,
}

const WAYS: [GivingUp; 2] = [GivingUp::TimesOut, GivingUp::IsDropped];

async fn give_up(call: Asked, way: GivingUp) {
    match way {
        GivingUp::TimesOut => {
            let timeout = ErrorKind::Timeout(TimeoutKind::Request);
            assert_eq!(kind(call.await), timeout);
        }
        GivingUp::IsDropped => call.cancel(),
    }
}

/// Case F1.
#[test]
fn a_late_answer_never_reaches_another_request() {
    for (way, late_first) in WAYS.into_iter().flat_map(|way| [(way, true), (way, false)]) {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let call_a = scene.query(&session, hasty());
            let request_a = peer.request().await;
            give_up(call_a, way).await;

            let call_b = scene.query(&session, SELECT);
            let request_b = peer.request().await;
            assert_ne!(request_a.stream, request_b.stream);
            assert_eq!(only_connection(&session).orphans, 1);

            if late_first {
                peer.answer(&request_a, ROW_1);
                scene.turn().await;
                assert!(!call_b.is_done());
                assert_eq!(only_connection(&session).orphans, 0);
                peer.answer(&request_b, ROW_2);
                assert_eq!(value(call_b.await), 2);
            } else {
                peer.answer(&request_b, ROW_2);
                assert_eq!(value(call_b.await), 2);
                assert_eq!(only_connection(&session).orphans, 1);
                peer.answer(&request_a, ROW_1);
                scene.turn().await;
                assert_eq!(only_connection(&session).orphans, 0);
            }

            // Both ids are free again, and only now.
            assert_eq!(only_connection(&session).in_flight, 0);
            let _calls = [scene.query(&session, SELECT), scene.query(&session, SELECT)];
            let mut reused = [peer.request().await.stream, peer.request().await.stream];
            let mut both = [request_a.stream, request_b.stream];
            reused.sort_unstable();
            both.sort_unstable();
            assert_eq!(reused, both);
        });
    }
}

/// Case F1 with one usable stream: the next request waits until the late answer has come.
#[test]
fn the_stream_of_a_request_given_up_stays_reserved_until_its_answer() {
    for way in WAYS {
        play_everywhere(move |scene| async move {
            let mut config = scene.config();
            config.limits.connection.in_flight = 1;
            let (session, mut peer) = scene.connect(config).await;
            let call_a = scene.query(&session, hasty());
            let request_a = peer.request().await;
            give_up(call_a, way).await;

            let call_b = scene.query(&session, SELECT);
            peer.serving(scene.pause(millis(500))).await;
            assert!(!peer.has_request(), "the only stream is reserved");

            peer.answer(&request_a, ROW_1);
            let request_b = peer.request().await;
            assert_eq!(request_b.stream, request_a.stream);
            assert!(!call_b.is_done());
            peer.answer(&request_b, ROW_2);
            assert_eq!(value(call_b.await), 2);
        });
    }
}

/// Case F1: the end of the connection frees what was reserved; the new one owes nothing.
#[test]
fn a_new_connection_has_no_orphans() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let call = scene.query(&session, hasty());
        peer.request().await;
        give_up(call, GivingUp::TimesOut).await;
        drop(peer);
        let _peer = check_reconnects(&scene, &session).await;
        assert_eq!(only_connection(&session).orphans, 0);
    });
}

/// Case F3: every value of the stream field, with one request under way on stream 1.
#[test]
fn every_stream_id_is_an_answer_a_stray_or_a_broken_protocol() {
    let now = Instant::from_micros(0);
    for stream in i16::MIN..=i16::MAX {
        let mut connection =
            Connection::<u8, true>::new(ProtocolVersion::V4, ConnectionLimits::default(), now);
        let head = RequestHead::new(Opcode::Query);
        let body = |_: &mut bytes::BytesMut| Ok::<(), EncodeError>(());
        let key = connection.submit(7, Instant::FAR_FUTURE, head, body);
        assert_eq!(key.expect("taken").stream_id(), 1);

        let frame = on_stream(stream, VOID);
        let header = FrameHeader::parse_response(frame[..9].try_into().expect("nine bytes"));
        let header = header.expect("a header");
        let (body, mut told) = (Body::from_slice(&frame[9..]), Vec::new());
        let outcome = connection.handle_frame(now, &header, body, |caller| told.push(caller));
        match stream {
            1 => assert_eq!((outcome, &told[..]), (Ok(Received::Answer), &[7][..])),
            0.. => assert_eq!((outcome, &told[..]), (Ok(Received::Stray), &[][..])),
            _ => {
                let error = outcome.expect_err("a broken protocol").kind();
                let expected = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadStreamId);
                assert_eq!((error, &told[..]), (expected, &[][..]));
            }
        }
    }
}

/// Case F3, first frame: an answer for nobody is dropped, a flood of them is not borne.
#[test]
fn answers_for_nobody_are_dropped_up_to_a_bound() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        for _ in 0..64 {
            peer.send(&hex("84007fff080000000400000001"));
        }
        check_works(&scene, &session, &mut peer).await;
        peer.send(&hex("84007fff080000000400000001"));
        peer.expect_close().await;
        check_reconnects(&scene, &session).await;
    });
}

/// Case F3, the other frames: each breaks its connection and nothing else.
#[test]
fn a_strange_frame_fails_its_connection_at_most() {
    let misbehaved = ErrorKind::PeerMisbehaved;
    for (frame, expected) in [
        (
            "8400fffe080000000400000001",
            misbehaved(PeerMisbehaved::BadStreamId),
        ),
        (
            "84000001550000000400000001",
            misbehaved(PeerMisbehaved::BadHeader),
        ),
        (
            "04000001080000000400000001",
            misbehaved(PeerMisbehaved::BadHeader),
        ),
    ] {
        for victim in [0, 1] {
            play_everywhere(move |scene| async move {
                let mut config = scene.config();
                config.pool.size = PoolSize::PerHost(NonZeroU16::new(2).expect("not 0"));
                let (session, mut peers) = scene.connect_all(config).await;
                let second = serving(&mut peers, scene.ready(1)).await;
                peers.push(second);

                let mut calls = request_on_both(&scene, &session, &mut peers).await;
                peers[victim].send(&hex(frame));
                peers[victim].expect_close().await;
                let (_, failed) = calls.remove(victim);
                assert_eq!(kind(failed.await), expected);

                // The other connection does not notice; the pool is filled again.
                peers.remove(victim);
                let (request, call) = calls.remove(0);
                assert!(!call.is_done());
                peers[0].answer(&request, ROW_2);
                assert_eq!(value(call.await), 2);
                let refilled = serving(&mut peers, scene.ready(1)).await;
                peers.push(refilled);
                assert_eq!(session.status().connections(), 2);
                request_on_both(&scene, &session, &mut peers).await;
            });
        }
    }
}

/// Makes requests until both links have one; gives one of each.
async fn request_on_both(
    scene: &Scene,
    session: &messina_core::drive::Session,
    peers: &mut [Peer],
) -> Vec<(messina_scenario::Frame, Asked)> {
    let mut found = [None, None];
    for _ in 0..64 {
        let call = scene.query(session, SELECT);
        let (place, request) = any_request(peers).await;
        if found[place].is_none() {
            found[place] = Some((request, call));
        }
        if found.iter().all(Option::is_some) {
            return found.into_iter().flatten().collect();
        }
    }
    panic!("one connection is never used");
}
