//! Compressed bodies: LZ4 as it was agreed, one flag for each frame.

use messina_core::config::Config;
use messina_core::drive::Statement;
use messina_core::error::{Applied, ErrorKind, LimitField, PeerMisbehaved};
use messina_core::wire::Compression;
use messina_scenario::frame::COMPRESSED;
use messina_scenario::{Scene, hex, play_everywhere};

use super::support::{SELECT, check_works};

/// The body of SUPPORTED with COMPRESSION=lz4.
const OFFER: &str = "0001000b434f4d5052455353494f4e000100036c7a34";
const VOID: &str = "840100010800000009000000044000000001";

fn with_lz4(scene: &Scene) -> Config {
    let mut config = scene.config();
    config.compression = Some(Compression::Lz4);
    config
}

/// Case N3.
#[test]
fn a_body_that_does_not_inflate_fails_its_request_only() {
    let corrupt = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression);
    let too_long = ErrorKind::Limit(LimitField::FrameLen);
    play_everywhere(move |scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, mut peer) = scene.connect(with_lz4(&scene)).await;
        for (answer, expected) in [
            (VOID, None),
            ("8401000108000000020000", Some(corrupt)),
            ("84010001080000000400000004", Some(corrupt)),
            // The length in the wrong byte order, then one gibibyte, one byte less and one more.
            ("840100010800000009040000004000000001", Some(corrupt)),
            ("840100010800000009400000004000000001", Some(too_long)),
            ("840100010800000009000000034000000001", Some(corrupt)),
            ("840100010800000009000000054000000001", Some(corrupt)),
            // A body of no bytes at all.
            ("840100010200000000", Some(corrupt)),
            (VOID, None),
        ] {
            let call = scene.query(&session, SELECT);
            let request = peer.request().await;
            peer.answer(&request, answer);
            let error = call.await.err();
            assert_eq!(
                error.as_ref().map(|error| error.kind()),
                expected,
                "{answer}"
            );
            assert!(error.is_none_or(|error| error.applied() == Applied::Unknown));
        }
        // All of it over one link.
        check_works(&scene, &session, &mut peer).await;
        assert_eq!(session.status().connections(), 1);
    });
}

/// Case N3.
#[test]
fn requests_are_compressed_if_that_makes_them_shorter() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let session = scene.start(with_lz4(&scene));
        let mut peer = scene.accept(1).await;
        let startup = peer.startup(&hex(OFFER)).await;
        assert_eq!(startup.flags & COMPRESSED, 0, "nothing is agreed yet");
        peer.answer(&startup, "840000000200000000");
        peer.serving(session.ready()).await.expect("ready");

        let text = format!("SELECT v FROM k.t -- {}", "a".repeat(2000));
        let call = scene.query(&session, Statement::new(text.clone()));
        let request = peer.request().await;
        assert_eq!(request.flags & COMPRESSED, COMPRESSED);
        assert!(request.body.len() < 200, "{}", request.body.len());
        // The length of what it was: the text behind its length, two levels and flags.
        let len = u32::try_from(4 + text.len() + 5).expect("short");
        assert_eq!(request.body[..4], len.to_be_bytes());
        peer.answer(&request, VOID);
        call.await.expect("an answer");

        let call = scene.query(&session, SELECT);
        let request = peer.request().await;
        assert_eq!(request.flags & COMPRESSED, 0, "it would not be shorter");
        assert_eq!(request.statement(), SELECT);
        peer.answer(&request, VOID);
        call.await.expect("an answer");
    });
}
