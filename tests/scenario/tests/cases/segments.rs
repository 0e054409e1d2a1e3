//! Protocol 5: frames in segments with checksums.

use messina_core::Shared;
use messina_core::config::Config;
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::drive::Session;
use messina_core::error::{Applied, ErrorKind, PeerMisbehaved};
use messina_core::wire::Compression;
use messina_scenario::frame::{AUTH_RESPONSE, COMPRESSED, QUERY, REGISTER};
use messina_scenario::{Peer, Scene, Segmented, hex, on_stream, play, play_everywhere};

use super::support::{SELECT, check_reconnects, only_connection};

/// COMPRESSION=lz4 and PROTOCOL_VERSIONS=5/v5.
const OFFER: &str = "0002000b434f4d5052455353494f4e000100036c7a34\
                     001150524f544f434f4c5f56455253494f4e5300010004352f7635";
/// VOID on stream 1.
const VOID: &str = "85000001080000000400000001";
/// The same in a segment as it is and, behind LZ4, as it is and compressed.
const PLAIN: &str = "0d0002cf07f7850000010800000004000000011e43b5fd";
const LZ4_AS_IT_IS: &str = "0d0000000420b69c850000010800000004000000011e43b5fd";
const LZ4: &str = "0e001a000426b637d0850000010800000004000000014ae753b0";

fn config(scene: &Scene, segmented: Segmented) -> Config {
    let mut config = scene.config();
    config.compression = match segmented {
        Segmented::Plain => None,
        Segmented::Lz4 => Some(Compression::Lz4),
        other => panic!("{other:?}"),
    };
    config
}

async fn connect(scene: &Scene, segmented: Segmented) -> (Session, Peer) {
    let (session, peer) = scene.connect(config(scene, segmented)).await;
    assert_eq!(only_connection(&session).protocol, 5);
    (session, peer)
}

/// Requests of which one has stream 1, as the bytes of the case do. It is answered by these bytes.
async fn check_void(scene: &Scene, session: &Session, peer: &mut Peer, answer: &[u8]) {
    let calls: Vec<_> = (0..4).map(|_| scene.query(session, SELECT)).collect();
    for _ in &calls {
        let request = peer.request().await;
        assert_eq!((request.version, request.flags), (5, 0));
        match request.stream {
            1 => peer.send_bytes(answer),
            _ => peer.answer(&request, VOID),
        }
    }
    for call in calls {
        call.await.expect("VOID");
    }
}

/// Case N5.
#[test]
fn answers_come_in_segments_of_both_kinds() {
    for (segmented, answers) in [
        (Segmented::Plain, &[PLAIN, PLAIN][..]),
        (Segmented::Lz4, &[LZ4_AS_IT_IS, LZ4]),
        (Segmented::Lz4, &[LZ4, LZ4_AS_IT_IS]),
    ] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_supported(hex(OFFER));
            let (session, mut peer) = connect(&scene, segmented).await;
            for answer in answers {
                check_void(&scene, &session, &mut peer, &hex(answer)).await;
            }
            assert_eq!(session.status().connections(), 1, "nothing was left over");
        });
    }
}

/// Case N5: two segments that directly follow each other are both read. The second VOID is the answer
/// of nobody, and dropped.
#[test]
fn two_segments_in_a_row_are_both_read() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, mut peer) = connect(&scene, Segmented::Lz4).await;
        let both = [hex(LZ4_AS_IT_IS), hex(LZ4)].concat();
        for _ in 0..20 {
            check_void(&scene, &session, &mut peer, &both).await;
            scene.turn().await;
        }
        assert_eq!(session.status().connections(), 1);
    });
}

/// Case N5.
#[test]
fn all_behind_the_answer_to_startup_is_in_segments() {
    for segmented in [Segmented::Plain, Segmented::Lz4] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_supported(hex(OFFER));
            let mut config = config(&scene, segmented);
            let plain = PlainAuthenticator::new("u", "p");
            config.authenticator = Some(Shared::new(plain));
            let session = scene.start(config);
            let mut peer = scene.accept(1).await;
            let startup = peer.startup(&hex(OFFER)).await;
            assert_eq!((startup.version, startup.flags), (5, 0));
            peer.answer(
                &startup,
                "850000000300000031002f6f72672e6170616368652e63617373616e6472612e61757468\
                 2e50617373776f726441757468656e74696361746f72",
            );
            peer.begin_segments(segmented);
            let response = peer.frame().await;
            assert_eq!((response.version, response.opcode), (5, AUTH_RESPONSE));
            assert_eq!(peer.segments(), 1);
            peer.answer(&response, "850000001000000004ffffffff");
            let register = peer.frame().await;
            assert_eq!((register.version, register.opcode), (5, REGISTER));
            peer.answer(&register, "850000000200000000");
            peer.serving(session.ready()).await.expect("ready");
            let call = scene.query(&session, SELECT);
            // A level and flags of four bytes.
            let request = peer.request().await;
            assert_eq!((request.version, request.opcode), (5, QUERY));
            assert_eq!(request.body[4 + SELECT.len()..][2..6], [0, 0, 0, 0x10]);
            // The flag says nothing here, and is not set there.
            assert_eq!(request.flags & COMPRESSED, 0);
            let mut void = on_stream(request.stream, VOID);
            void[1] = COMPRESSED;
            peer.send(&void);
            call.await.expect("VOID");
        });
    }
}

#[test]
fn requests_that_wait_together_share_a_segment() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, mut peer) = connect(&scene, Segmented::Plain).await;
        let before = peer.segments();
        let calls: Vec<_> = (0..20).map(|_| scene.query(&session, SELECT)).collect();
        let mut answers = Vec::new();
        for _ in &calls {
            let request = peer.request().await;
            answers.extend(on_stream(request.stream, VOID));
        }
        let segments = peer.segments() - before;
        assert!(segments <= 4, "{segments} segments for 20 requests");
        peer.send(&answers);
        for call in calls {
            call.await.expect("VOID");
        }
    });
}

#[test]
fn long_frames_travel_over_several_segments() {
    for segmented in [Segmented::Plain, Segmented::Lz4] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_supported(hex(OFFER));
            let (session, mut peer) = connect(&scene, segmented).await;
            let before = peer.segments();
            let text = format!("{SELECT} -- {}", "x".repeat(300_000));
            let call = scene.query(&session, text.clone());
            let request = peer.request().await;
            assert_eq!((request.flags, request.statement()), (0, &*text));
            assert_eq!(peer.segments() - before, 3);
            // Rows of one blob, 400,000 bytes.
            let len = 400_000_u32;
            let rows = hex("00000002000000010000000100016b000174000176000300000001");
            let blob = [&len.to_be_bytes()[..], &vec![7; 400_000]].concat();
            let body = [rows, blob].concat();
            let len = u32::try_from(body.len()).expect("short").to_be_bytes();
            let [high, low] = request.stream.to_be_bytes();
            let frame = [&[0x85, 0, high, low, 8][..], &len, &body].concat();
            for part in frame.chunks(131_071) {
                peer.send_bytes(&segmented.put(part, false));
                scene.turn().await;
            }
            let (blob,): (Vec<u8>,) = call.await.expect("rows").single_row().expect("a row");
            assert_eq!(blob, [7; 400_000]);
        });
    }
}

/// Whatever is wrong with a segment: the connection ends with a typed error, another one works.
#[test]
fn a_broken_segment_ends_its_connection() {
    for (segmented, whole) in [(Segmented::Plain, PLAIN), (Segmented::Lz4, LZ4)] {
        for at in 0..hex(whole).len() {
            let mut bytes = hex(whole);
            bytes[at] ^= 0x10;
            check_broken(segmented, bytes);
        }
    }
    let void = hex(VOID);
    // A part of a frame, then whole ones.
    let (first, second) = void.split_at(4);
    let amid = [
        Segmented::Plain.put(first, false),
        Segmented::Plain.put(second, true),
    ];
    check_broken(Segmented::Plain, amid.concat());
    check_broken(Segmented::Plain, Segmented::Plain.put(&[], true));
}

fn check_broken(segmented: Segmented, bytes: Vec<u8>) {
    messina_scenario::play_once(1, |scene| {
        let scene = scene.with_supported(hex(OFFER));
        let bytes = bytes.clone();
        async move {
            let (session, mut peer) = connect(&scene, segmented).await;
            let call = scene.query(&session, SELECT);
            peer.request().await;
            peer.send_bytes(&bytes);
            let error = call.await.expect_err("a broken segment");
            let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadSegment);
            assert_eq!(error.kind(), kind, "{bytes:02x?}");
            assert_eq!(error.applied(), Applied::Unknown);
            check_reconnects(&scene, &session).await;
        }
    });
}

/// A request of which the link took no byte was not applied; one in a segment that was begun may be.
#[test]
fn what_was_not_written_was_not_applied() {
    play(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, peer) = connect(&scene, Segmented::Plain).await;
        peer.take_only(0);
        let call = scene.query(&session, SELECT);
        scene.turn().await;
        peer.reset();
        let error = call.await.expect_err("reset");
        assert_eq!(error.applied(), Applied::No);

        let mut peer = scene.ready(1).await;
        peer.reset_after(1);
        let call = scene.query(&session, SELECT);
        peer.serving(scene.turn()).await;
        let error = call.await.expect_err("reset");
        assert_eq!(error.applied(), Applied::Unknown);
    });
}
