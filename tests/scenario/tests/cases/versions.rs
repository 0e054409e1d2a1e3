//! Which version of the protocol is spoken.

use messina_core::config::ProtocolVersions;
use messina_core::error::{ErrorKind, PeerIncompatible};
use messina_core::wire::ProtocolVersion;
use messina_scenario::frame::OPTIONS;
use messina_scenario::{Peer, Scene, hex, play_everywhere};

use super::support::{check_works, millis, only_connection};

/// PROTOCOL_ERROR in the version that was asked for, and always in version 4.
const REFUSED_IN_5: &str = "8500000000000000070000000a000178";
const REFUSED_IN_4: &str = "8400000000000000070000000a000178";
/// What Apache Cassandra says of version 4, on stream 0.
const CASSANDRA: &str = "8400000000000000250000000a001f496e76616c6964206f7220756e737570706f72746564\
                         2070726f746f636f6c";

async fn refuse(peer: &mut Peer, version: u8, with: &str) {
    let options = peer.frame().await;
    assert_eq!((options.opcode, options.version), (OPTIONS, version));
    peer.answer(&options, with);
    peer.expect_close().await;
}

const fn from_5_down_to(oldest: ProtocolVersion) -> ProtocolVersions {
    ProtocolVersions::between(oldest, ProtocolVersion::V5)
}

/// Case N1.
#[test]
fn each_version_is_asked_in_once_in_falling_order() {
    for refusal in [REFUSED_IN_5, REFUSED_IN_4] {
        play_everywhere(move |scene| async move {
            let mut config = scene.config();
            config.protocol = from_5_down_to(ProtocolVersion::V3);
            let session = scene.start(config);
            refuse(&mut scene.accept(1).await, 5, refusal).await;
            let mut peer = scene.accept(1).await;
            peer.handshake().await;
            peer.serving(session.ready()).await.expect("ready");
            assert_eq!(only_connection(&session).protocol, 4);
            check_works(&scene, &session, &mut peer).await;
            // What was found counts at once for the next connection.
            peer.reset();
            let mut peer = scene.accept(1).await;
            let startup = peer.startup(&hex("0000")).await;
            assert_eq!(startup.version, 4);
        });
    }
}

/// Case N1.
#[test]
fn a_node_that_refuses_all_versions_is_told_with_those_tried() {
    play_everywhere(|scene| async move {
        let mut config = scene.config();
        config.protocol = from_5_down_to(ProtocolVersion::V4);
        let session = scene.start(config);
        refuse(&mut scene.accept(1).await, 5, REFUSED_IN_5).await;
        refuse(&mut scene.accept(1).await, 4, CASSANDRA).await;
        let error = session.ready().await.expect_err("no version in common");
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
        assert_eq!(error.kind(), kind);
        let text = error.to_string();
        assert!(text.contains("tried 5, 4"), "{text}");
        assert!(text.contains("10.0.0.1:9042"), "{text}");
        assert!(!scene.is_dialled(1), "each version once");
    });
}

/// Case N1.
#[test]
fn a_node_that_says_nothing_is_no_reason_to_step_down() {
    play_everywhere(|scene| async move {
        let mut config = scene.config();
        config.protocol = from_5_down_to(ProtocolVersion::V3);
        let session = scene.start(config);
        let mut peer = scene.accept(1).await;
        assert_eq!(peer.frame().await.version, 5);
        drop(peer);
        let error = session.ready().await.expect_err("nobody answers");
        assert!(matches!(error.kind(), ErrorKind::Link(_)), "{error:?}");
        assert!(!scene.is_dialled(1));
    });
}

/// Case N1.
#[test]
fn a_version_that_was_set_is_not_left() {
    for (version, refusal) in [(5, REFUSED_IN_5), (5, REFUSED_IN_4), (4, CASSANDRA)] {
        play_everywhere(move |scene| async move {
            let mut config = scene.config();
            let set = ProtocolVersion::try_from(version).expect("known");
            config.protocol = set.into();
            let session = scene.start(config);
            refuse(&mut scene.accept(1).await, version, refusal).await;
            let error = session.ready().await.expect_err("refused");
            let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
            assert_eq!(error.kind(), kind);
            assert!(!scene.is_dialled(1));
        });
    }
}

/// A relay that logs in for its clients speaks version 4 only, whatever its nodes offer.
#[test]
fn an_offered_version_that_is_refused_is_not_taken_up_again() {
    const REFUSED: &str = "84000000000000002d0000000a0027496e76616c6964206f7220756e737570706f727465642070\
                           726f746f636f6c2076657273696f6e";
    play_everywhere(|scene| {
        let body = offer(&["4/v4", "5/v5"], false);
        let scene = scene.with_supported(body.clone());
        async move {
            let session = scene.start(scene.config());
            let mut peer = scene.accept(1).await;
            let startup = peer.startup(&body).await;
            assert_eq!(startup.version, 5);
            peer.send(&hex(REFUSED));
            peer.expect_close().await;
            for _ in 0..2 {
                let mut peer = scene.accept(1).await;
                let startup = peer.startup(&body).await;
                assert_eq!(startup.version, 4);
                peer.answer(&startup, "840000000200000000");
                peer.serving(session.ready()).await.expect("ready");
                peer.serving(scene.pause(millis(1))).await;
                check_works(&scene, &session, &mut peer).await;
                peer.reset();
            }
        }
    });
}

/// The body of SUPPORTED with these versions, and perhaps a key that ScyllaDB has.
fn offer(versions: &[&str], is_scylla: bool) -> Vec<u8> {
    let text = |text: &str| {
        [
            &[0, u8::try_from(text.len()).expect("short")],
            text.as_bytes(),
        ]
        .concat()
    };
    let count = |len: usize| [0, u8::try_from(len).expect("few")];
    let mut body = count(1 + usize::from(is_scylla)).to_vec();
    body.extend(text("PROTOCOL_VERSIONS"));
    body.extend(count(versions.len()));
    body.extend(versions.iter().flat_map(|version| text(version)));
    if is_scylla {
        body.extend(text("SCYLLA_LWT_ADD_METADATA_MARK"));
        body.extend(count(1));
        body.extend(text("LWT_OPTIMIZATION_META_BIT_MASK=2147483648"));
    }
    body
}

#[test]
fn version_5_is_spoken_where_it_is_offered_and_not_left_to_chance() {
    for (versions, is_scylla, expected) in [
        (&["3/v3", "4/v4", "5/v5", "6/v6-beta"][..], false, 5),
        (&["3/v3", "4/v4", "5/v5-beta"], false, 4),
        (&["3/v3", "4/v4"], false, 4),
        (&["4/v4", "5/v5"], true, 4),
        (&[], false, 4),
    ] {
        let body = offer(versions, is_scylla);
        play_everywhere(move |scene: Scene| {
            let scene = scene.with_supported(body.clone());
            async move {
                let (session, mut peer) = scene.connect(scene.config()).await;
                assert_eq!(only_connection(&session).protocol, expected);
                check_works(&scene, &session, &mut peer).await;
            }
        });
    }
}
