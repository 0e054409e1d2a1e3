//! What nodes say before the first request: sharding that cannot be, and authentication.

use std::sync::Mutex;

use messina_core::Shared;
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::drive::Session;
use messina_core::error::{Error, ErrorKind, PeerIncompatible};
use messina_core::wire::response::ErrorCode;
use messina_scenario::frame::{AUTH_RESPONSE, string};
use messina_scenario::{Peer, Scene, hex, on_stream, play_everywhere};

use super::support::{check_works, millis, only_connection};

/// SUPPORTED with shard 4 of 4.
const SHARD_4_OF_4: &str = "8400000006000000c8\
    0005000c5343594c4c415f5348415244000100013400105343594c4c415f4e525f5348415244530001000134\
    00125343594c4c415f504152544954494f4e45520001002b6f72672e6170616368652e63617373616e647261\
    2e6468742e4d75726d757233506172746974696f6e657200195343594c4c415f5348415244494e475f414c47\
    4f524954484d000100186269617365642d746f6b656e2d726f756e642d726f62696e001a5343594c4c415f53\
    48415244494e475f49474e4f52455f4d5342000100023132";

/// The body of SUPPORTED with one value for each key.
fn supported(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = u16::try_from(pairs.len())
        .expect("few")
        .to_be_bytes()
        .to_vec();
    for (key, value) in pairs {
        out.extend([string(key), hex("0001"), string(value)].concat());
    }
    out
}

fn sharding<'a>(shard: &'a str, shards: &'a str, msb: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("SCYLLA_SHARD", shard),
        ("SCYLLA_NR_SHARDS", shards),
        (
            "SCYLLA_PARTITIONER",
            "org.apache.cassandra.dht.Murmur3Partitioner",
        ),
        ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
        ("SCYLLA_SHARDING_IGNORE_MSB", msb),
    ]
}

/// Connects with this body of SUPPORTED; gives the shard, the node's number of shards, and
/// whether it was asked what only ScyllaDB knows.
fn check_supported(body: &[u8], expected: (Option<u16>, Option<u16>, bool)) {
    let body = body.to_vec();
    play_everywhere(move |scene| {
        let scene = scene.with_supported(body.clone());
        async move {
            let mut config = scene.config();
            // One connection, whatever the node says.
            config.pool.size = messina_core::config::PoolSize::PerHost(core::num::NonZeroU16::MIN);
            let (session, mut peer) = scene.connect(config).await;
            check_works(&scene, &session, &mut peer).await;
            let asks_scylla = scene.asked().iter().any(|text| text.contains("scylla_"));
            let shard = only_connection(&session).shard;
            assert_eq!(
                (shard, session.status().nodes[0].shards, asks_scylla),
                expected
            );
        }
    });
}

/// Case S7.
#[test]
fn impossible_sharding_is_ignored_as_a_whole_and_the_node_is_still_scylla() {
    let given = &hex(SHARD_4_OF_4)[9..];
    assert_eq!(given, supported(&sharding("4", "4", "12")));
    let unsharded = (None, None, true);
    check_supported(given, unsharded);
    for (shard, shards, msb) in [
        ("0", "0", "12"),
        ("0", "65536", "12"),
        ("-1", "4", "12"),
        ("0", "4", "64"),
        ("100", "4", "12"),
        ("4294967295", "4", "12"),
        ("", "4", "12"),
    ] {
        check_supported(&supported(&sharding(shard, shards, msb)), unsharded);
    }
    for missing in 0..5 {
        let mut pairs = sharding("0", "4", "12").to_vec();
        pairs.remove(missing);
        check_supported(&supported(&pairs), unsharded);
    }
}

/// Case S7: what is possible keeps working, and who is ScyllaDB does not depend on sharding.
#[test]
fn possible_sharding_is_used_and_scylla_is_known_without_it() {
    check_supported(
        &supported(&sharding("3", "4", "12")),
        (Some(3), Some(4), true),
    );
    check_supported(
        &supported(&[("SCYLLA_RATE_LIMIT_ERROR", "ERROR_CODE=61440")]),
        (None, None, true),
    );
    check_supported(&supported(&[("CQL_VERSION", "3.4.5")]), (None, None, false));
}

const AUTHENTICATE: &str = "840000000300000031002f6f72672e6170616368652e63617373616e6472612e\
                            617574682e50617373776f726441757468656e74696361746f72";

/// Starts a session with these credentials, and its first link up to the answer to STARTUP.
async fn start_with(
    scene: &Scene,
    credentials: Option<(&str, &str)>,
    answer: &str,
) -> (Session, Peer) {
    let mut config = scene.config();
    if let Some((user, password)) = credentials {
        let plain: Box<dyn Authenticator> = Box::new(PlainAuthenticator::new(user, password));
        config.authenticator = Some(Shared::from(plain));
    }
    assert!(!format!("{config:?}").contains("s3cret"));
    let session = scene.start(config);
    let mut peer = scene.accept(1).await;
    let startup = peer.startup(&hex("0000")).await;
    peer.answer(&startup, answer);
    (session, peer)
}

/// Case N7: the first token, byte by byte; null and empty success tokens.
#[test]
fn the_plain_token_has_the_form_both_databases_read() {
    for (user, password, expected) in [
        ("u", "p", "040000000f000000080000000400750070"),
        ("ü", "pä", "040000000f0000000b0000000700c3bc0070c3a4"),
    ] {
        for success in ["840000001000000004ffffffff", "84000000100000000400000000"] {
            play_everywhere(move |scene| async move {
                let credentials = Some((user, password));
                let (session, mut peer) = start_with(&scene, credentials, AUTHENTICATE).await;
                let token = peer.frame().await;
                assert_eq!(token.opcode, AUTH_RESPONSE);
                assert_eq!(token.to_bytes(), on_stream(token.stream, expected));
                peer.answer(&token, success);
                peer.serving(session.ready()).await.expect("ready");
                check_works(&scene, &session, &mut peer).await;
            });
        }
    }
}

/// Case N7: a node that asks for nothing.
#[test]
fn ready_without_being_asked_is_connected() {
    play_everywhere(|scene| async move {
        let credentials = Some(("u", "p"));
        let (session, mut peer) = start_with(&scene, credentials, "840000000200000000").await;
        peer.serving(session.ready()).await.expect("ready");
        check_works(&scene, &session, &mut peer).await;
    });
}

/// The session fails with this kind, says so once, and the node is left in peace.
async fn check_refused(
    scene: &Scene,
    session: &Session,
    peer: &mut Peer,
    expected: ErrorKind,
) -> Error {
    let error = session.ready().await.expect_err("refused");
    assert_eq!(error.kind(), expected);
    peer.expect_close().await;
    scene.pause(millis(60_000)).await;
    assert!(!scene.is_dialled(1), "not tried again");
    for shown in [
        format!("{error:?}"),
        format!("{error}"),
        format!("{session:?}"),
    ] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    error
}

/// Case N7: challenges and errors in answer to the token.
#[test]
fn unexpected_challenges_and_bad_credentials_are_typed_errors() {
    let authentication = ErrorKind::PeerIncompatible(PeerIncompatible::Authentication);
    for (answer, expected) in [
        ("840000000e00000004ffffffff", authentication),
        ("840000000e0000000700000003616263", authentication),
        (
            "84000000000000000700000100000178",
            ErrorKind::Server(ErrorCode::BadCredentials),
        ),
    ] {
        play_everywhere(move |scene| async move {
            let credentials = Some(("user", "s3cret"));
            let (session, mut peer) = start_with(&scene, credentials, AUTHENTICATE).await;
            let token = peer.frame().await;
            peer.answer(&token, answer);
            check_refused(&scene, &session, &mut peer, expected).await;
        });
    }
}

/// An authenticator that expects these challenges, the last one first.
struct Expecting(Mutex<Vec<Option<&'static [u8]>>>);

impl Authenticator for Expecting {
    fn initial_response(&self, class: &str) -> Result<Vec<u8>, Error> {
        assert_eq!(class, "org.apache.cassandra.auth.PasswordAuthenticator");
        Ok(b"first".to_vec())
    }

    fn evaluate(&self, challenge: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        let expected = self.0.lock().expect("whole").pop();
        assert_eq!(Some(challenge), expected);
        Ok(b"next".to_vec())
    }
}

/// Case N7: challenges go to the authenticator, null as none.
#[test]
fn challenges_go_to_the_authenticator() {
    play_everywhere(|scene| async move {
        let challenges = vec![Some(&b"abc"[..]), None];
        let expecting: Box<dyn Authenticator> = Box::new(Expecting(Mutex::new(challenges)));
        let mut config = scene.config();
        config.authenticator = Some(Shared::from(expecting));
        let session = scene.start(config);
        let mut peer = scene.accept(1).await;
        let startup = peer.startup(&hex("0000")).await;
        peer.answer(&startup, AUTHENTICATE);
        for (token, challenge) in [
            ("0000000566697273 74", "840000000e00000004ffffffff"),
            ("000000046e657874", "840000000e0000000700000003616263"),
            ("000000046e657874", "840000001000000004ffffffff"),
        ] {
            let response = peer.frame().await;
            assert_eq!(
                (response.opcode, response.body.clone()),
                (AUTH_RESPONSE, hex(token))
            );
            peer.answer(&response, challenge);
        }
        peer.serving(session.ready()).await.expect("ready");
    });
}

/// Case N7: no credentials are configured.
#[test]
fn missing_credentials_name_the_authenticator() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = start_with(&scene, None, AUTHENTICATE).await;
        let missing = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
        let error = check_refused(&scene, &session, &mut peer, missing).await;
        let class = "org.apache.cassandra.auth.PasswordAuthenticator";
        assert!(error.to_string().contains(class), "{error}");
    });
}
