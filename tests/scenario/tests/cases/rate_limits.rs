//! Limits on the requests for one partition: an error whose number each node chooses for itself.

use messina_core::drive::{Batch, Statement};
use messina_core::error::{DecodeFailure, Error, ErrorKind};
use messina_core::wire::response::{ErrorCode, ErrorDetail, RateLimitedOperation, ServerError};
use messina_scenario::frame::{response, string};
use messina_scenario::{Scene, any_request, hex, on_stream, play_everywhere, serving};

use super::support::{SELECT, check_works, millis};

/// SUPPORTED with ERROR_CODE=61440.
const OFFER_61440: &str = "84000000060000002f000100175343594c4c415f524154455f4c494d49545f4552524f52\
                           000100104552524f525f434f44453d3631343430";
/// SUPPORTED with ERROR_CODE=4660.
const OFFER_4660: &str = "84000000060000002e000100175343594c4c415f524154455f4c494d49545f4552524f52\
                          0001000f4552524f525f434f44453d34363630";
const WRITE: &str = "8400000100000000090000f0000001780100";
const READ: &str = "8400000100000000090000f0000001780001";
const OPERATION_9: &str = "8400000100000000090000f0000001780901";
const CUT: &str = "8400000100000000080000f00000017801";
const WRITE_4660: &str = "840000010000000009000012340001780100";
const CONFIG_ERROR: &str = "84000001000000000700002300000178";

/// The body of SUPPORTED in a frame.
fn body(frame: &str) -> Vec<u8> {
    hex(frame)[9..].to_vec()
}

/// Number, operation and whether the coordinator refused.
fn limit(error: &Error) -> Option<(i32, RateLimitedOperation, bool)> {
    match error.server().map(ServerError::detail) {
        Some(Ok(ErrorDetail::RateLimit {
            number,
            operation,
            rejected_by_coordinator,
        })) => Some((number, operation, rejected_by_coordinator)),
        _ => None,
    }
}

/// Case E1.
#[test]
fn the_error_is_read_by_the_code_that_was_offered() {
    use RateLimitedOperation::{Other, Read, Write};
    let limited = ErrorKind::Server(ErrorCode::RateLimit);
    let other = |number| ErrorKind::Server(ErrorCode::Other(number));
    let config = ErrorKind::Server(ErrorCode::Config);
    let cut = ErrorKind::Decode(DecodeFailure::Response);
    for (offer, answer, kind, detail) in [
        (OFFER_61440, WRITE, limited, Some((0xf000, Write, false))),
        (OFFER_61440, READ, limited, Some((0xf000, Read, true))),
        (
            OFFER_61440,
            OPERATION_9,
            limited,
            Some((0xf000, Other(9), true)),
        ),
        (OFFER_61440, CUT, cut, None),
        (OFFER_61440, WRITE_4660, other(0x1234), None),
        (OFFER_61440, CONFIG_ERROR, config, None),
        (
            OFFER_4660,
            WRITE_4660,
            limited,
            Some((0x1234, Write, false)),
        ),
        (OFFER_4660, WRITE, other(0xf000), None),
        ("8400000006000000020000", WRITE, other(0xf000), None),
        ("8400000006000000020000", CONFIG_ERROR, config, None),
    ] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_supported(body(offer));
            let (session, mut peer) = scene.connect(scene.config()).await;
            let call = scene.query(&session, SELECT);
            let request = peer.request().await;
            peer.answer(&request, answer);
            let error = call.await.expect_err("limited");
            assert_eq!((error.kind(), limit(&error)), (kind, detail), "{answer}");
            // Refused before anything was done; of an error that cannot be read nobody knows.
            let is_refused = detail.is_some() || answer == CONFIG_ERROR;
            assert_eq!(error.may_have_been_applied(), !is_refused, "{answer}");
            check_works(&scene, &session, &mut peer).await;
        });
    }
}

/// Case E1: two nodes with different codes. Each one's number means nothing from the other.
#[test]
fn each_connection_has_a_code_of_its_own() {
    let two_nodes = |scene: Scene| {
        let scene = scene.with_tokens(&[0, 1 << 60]);
        let scene = scene.with_supported_by(1, body(OFFER_61440));
        scene.with_supported_by(2, body(OFFER_4660))
    };
    play_everywhere(move |scene| async move {
        let scene = two_nodes(scene);
        let (session, mut peers) = scene.connect_all(scene.config()).await;
        let mut asked = [0; 2];
        while asked.iter().any(|&count| count < 2) {
            let call = scene.query(&session, SELECT);
            let (node, request) = any_request(&mut peers).await;
            let (own, foreign) = [(WRITE, WRITE_4660), (WRITE_4660, WRITE)][node];
            let is_own = asked[node] % 2 == 0;
            asked[node] += 1;
            peers[node].send(&on_stream(
                request.stream,
                if is_own { own } else { foreign },
            ));
            let error = call.await.expect_err("limited");
            assert_eq!(limit(&error).is_some(), is_own, "{error}");
            let is_limited = error.kind() == ErrorKind::Server(ErrorCode::RateLimit);
            assert_eq!(is_limited, is_own, "{error}");
        }
    });
}

/// Case E1: a second request would only add to the load, idempotent or not, in whatever form.
#[test]
fn a_limited_request_is_sent_once() {
    const PREPARED: &str =
        "84000001080000001b000000040001aa0000000000000000000000000000000400000000";
    for answer in [WRITE, READ, OPERATION_9, CONFIG_ERROR] {
        for (form, is_idempotent) in [0, 1, 2]
            .into_iter()
            .flat_map(|form| [(form, false), (form, true)])
        {
            play_everywhere(move |scene| async move {
                let scene = scene.with_tokens(&[0, 1 << 60]);
                let scene = scene.with_supported(body(OFFER_61440));
                let (session, mut peers) = scene.connect_all(scene.config()).await;
                let statement = Statement::new(SELECT).with_timeout(millis(100));
                let statement = match is_idempotent {
                    true => statement.idempotent(),
                    false => statement,
                };
                let call = match form {
                    0 => scene.query(&session, statement),
                    1 => {
                        let preparing = session.clone();
                        let call = scene.call(async move { preparing.prepare(statement).await });
                        for _ in 0..peers.len() {
                            let (node, request) = any_request(&mut peers).await;
                            peers[node].answer(&request, PREPARED);
                        }
                        let prepared = call.await.expect("prepared");
                        scene.execute(&session, &prepared, ())
                    }
                    _ => {
                        let mut batch = Batch::unlogged();
                        batch.push_text(statement).expect("fits");
                        scene.batch(&session, &batch)
                    }
                };
                let (node, request) = any_request(&mut peers).await;
                peers[node].answer(&request, answer);
                let error = serving(&mut peers, call).await.expect_err("limited");
                assert!(matches!(error.kind(), ErrorKind::Server(_)), "{error}");
                serving(&mut peers, scene.pause(millis(1000))).await;
                assert!(peers.iter().all(|peer| !peer.has_request()));
            });
        }
    }
}

/// Case E1: the key stands in STARTUP if it stood in SUPPORTED.
#[test]
fn the_extension_is_asked_for_where_it_is_offered() {
    let key = string("SCYLLA_RATE_LIMIT_ERROR");
    for (offer, is_offered) in [
        (body(OFFER_61440), true),
        (body(OFFER_4660), true),
        (hex("0000"), false),
        // A code that is no number is none.
        ([hex("0001"), key.clone(), hex("0001 0000")].concat(), false),
    ] {
        let key = key.clone();
        play_everywhere(move |scene| {
            let (offer, key) = (offer.clone(), key.clone());
            async move {
                let _session = scene.start(scene.config());
                let mut peer = scene.accept(1).await;
                let startup = peer.startup(&offer).await;
                let is_asked_for = startup.body.windows(key.len()).any(|part| part == key);
                assert_eq!(is_asked_for, is_offered);
                peer.send(&response(startup.stream, 2, &[]));
                scene.turn().await;
            }
        });
    }
}
