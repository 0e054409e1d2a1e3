//! Prefixes of bodies, and lengths that lie.

use messina_core::conn::framer::FrameLimits;
use messina_core::error::{ErrorKind, LimitField, PeerMisbehaved};
use messina_core::wire::EncodeErrorKind;
use messina_scenario::frame::{ROW_1, bytes, response, rows};
use messina_scenario::{Scene, hex, play_everywhere};
use uuid::uuid;

use super::support::{SELECT, check_reconnects, check_works, kind, value};

/// Case F4.
#[test]
fn prefixes_are_read_in_order_and_shown_to_the_caller() {
    let trace_id = uuid!("11111111-2222-3333-4444-555555555555");
    for (frame, expected) in [
        (
            "840e0001080000002511111111222233334444555555555555\
             000100027731000100016b00000002010200000001",
            Some(trace_id),
        ),
        (
            "840c00010800000015000100027731000100016b00000002010200000001",
            None,
        ),
    ] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let call = scene.query(&session, SELECT);
            let request = peer.request().await;
            peer.answer(&request, frame);
            let mut result = call.await.expect("VOID");
            assert_eq!(result.tracing_id(), expected);
            assert_eq!(result.warnings(), ["w1"]);
            assert_eq!(result.custom_payload("k"), Some(&[1, 2][..]));
            assert_eq!(result.custom_payload("other"), None);
            assert!(!result.is_rows());
            result.compact();
            assert_eq!(result.custom_payload("k"), Some(&[1, 2][..]));
        });
    }
}

/// Case F6: nothing but a header comes.
#[test]
fn an_absurd_length_fails_its_request_at_once_and_the_pool_reconnects() {
    let too_long = ErrorKind::Limit(LimitField::FrameLen);
    let negative = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader);
    for (header, expected) in [
        ("840000010810000001", too_long),
        ("8400000108ffffffff", negative),
        ("84000001087fffffff", too_long),
    ] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let call = scene.query(&session, SELECT);
            let request = peer.request().await;
            let asked_at = scene.now();
            peer.answer(&request, header);
            assert_eq!(kind(call.await), expected);
            peer.expect_close().await;
            assert_eq!(scene.now(), asked_at, "at once");
            check_reconnects(&scene, &session).await;
        });
    }
}

/// Rows of one blob whose frame has a body of `len` bytes.
fn rows_of(len: usize) -> Vec<u8> {
    let blob: &[u8] = &[0, 3];
    let overhead = rows(&[("v", blob)], &[vec![Some(Vec::new())]]).len();
    let body = rows(&[("v", blob)], &[vec![Some(vec![0x5a; len - overhead])]]);
    assert_eq!(body.len(), len);
    body
}

/// Asks for rows whose body has `len` bytes under limits of 64 KiB to read and `skip` to skip.
async fn ask_for(scene: &Scene, len: usize, skip: u32) -> (Asked, messina_core::drive::Session) {
    let mut config = scene.config();
    config.limits.frame = FrameLimits::new(64 << 10, skip);
    let (session, mut peer) = scene.connect(config).await;
    let call = scene.query(&session, SELECT);
    let request = peer.request().await;
    peer.send(&response(request.stream, 8, &rows_of(len)));
    let outcome = call
        .await
        .map(|result| result.single_row::<(Vec<u8>,)>().expect("a row").0.len());
    let outcome = outcome.map_err(|error| error.kind());
    (Asked { outcome, peer }, session)
}

struct Asked {
    outcome: Result<usize, ErrorKind>,
    peer: messina_scenario::Peer,
}

/// Case F6: a small device sets 64 KiB.
#[test]
fn the_limit_of_frames_can_be_set_lower() {
    let too_long = Err(ErrorKind::Limit(LimitField::FrameLen));
    play_everywhere(move |scene| async move {
        let (mut asked, session) = ask_for(&scene, 64 << 10, 0).await;
        assert!(asked.outcome.is_ok());
        check_works(&scene, &session, &mut asked.peer).await;
    });
    play_everywhere(move |scene| async move {
        let (mut asked, session) = ask_for(&scene, (64 << 10) + 1, 0).await;
        assert_eq!(asked.outcome, too_long);
        asked.peer.closed().await;
        check_reconnects(&scene, &session).await;
    });
    // Where more may be skipped than read the connection goes on behind the frame.
    play_everywhere(move |scene| async move {
        let (mut asked, session) = ask_for(&scene, (64 << 10) + 1, 1 << 20).await;
        assert_eq!(asked.outcome, too_long);
        check_works(&scene, &session, &mut asked.peer).await;
    });
}

/// Case F6, other direction: requests beyond the bound are refused before their first byte.
#[test]
fn a_request_too_long_is_refused_before_its_first_byte() {
    // One bind marker: k.t.v blob.
    let prepared = "8400000108 0000002f 00000004 0001aa 00000001 00000001 00000000 \
                    00016b 000174 000176 0003 00000004 00000000";
    let default = messina_core::conn::ConnectionLimits::default();
    assert_eq!(default.request_len_max, 256 << 20);
    play_everywhere(move |scene| async move {
        let mut config = scene.config();
        config.limits.connection.request_len_max = 64 << 10;
        let (session, mut peer) = scene.connect(config).await;
        let prepared = scene
            .prepare(&session, &mut peer, "INSERT", &exact(prepared))
            .await;
        let value_len = |peer_body: usize| peer_body - EXECUTE_OVERHEAD;

        let longest = vec![0x5a_u8; value_len(64 << 10)];
        let call = scene.execute(&session, &prepared, (longest.clone(),));
        let request = peer.request().await;
        assert_eq!(request.body.len(), 64 << 10);
        peer.answer(&request, ROW_1);
        assert_eq!(value(call.await), 1);

        let longer = [&longest[..], &[0]].concat();
        let text = "x".repeat(64 << 10);
        for call in [
            scene.execute(&session, &prepared, (longer,)),
            scene.query(&session, text.clone()),
        ] {
            let error = call.await.expect_err("too long");
            let encode_error = error.encode_error().expect("an error of encoding");
            let max = 64 << 10;
            assert!(
                matches!(encode_error.kind, EncodeErrorKind::TooLong { max: told, .. } if told == max),
                "{error}"
            );
            assert!(!error.may_have_been_applied());
        }
        scene.turn().await;
        // The next bytes are those of the next request.
        check_works(&scene, &session, &mut peer).await;
    });
}

/// Id, consistency, flags, count of values, length of the value, serial consistency.
const EXECUTE_OVERHEAD: usize = 3 + 2 + 1 + 2 + 4 + 2;

/// A frame written with spaces, its length put right.
fn exact(frame: &str) -> String {
    let mut frame = hex(frame);
    let len = u32::try_from(frame.len() - 9).expect("short");
    frame[5..9].copy_from_slice(&len.to_be_bytes());
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_body_made_here_is_the_one_meant() {
    assert_eq!(
        hex(ROW_1)[9..],
        rows(&[("v", &[0, 9])], &[vec![Some(vec![0, 0, 0, 1])]])
    );
    assert_eq!(bytes(None), [0xff; 4]);
}
