//! Several statements as one request: their bytes, lost statements, conditions, routes, repeats.

use core::time::Duration;

use messina_core::drive::{Batch, Prepared, Session, Statement};
use messina_core::error::{EncodeFailure, Error, ErrorKind};
use messina_core::types::Unset;
use messina_core::wire::request::BatchKind;
use messina_core::wire::response::ErrorCode;
use messina_core::wire::{Consistency, EncodeErrorKind, SerialConsistency};
use messina_scenario::frame::{BATCH, PREPARE, VOID, bytes, response, rows, string};
use messina_scenario::{Peer, Scene, Value, any_request, hex, play_everywhere, play_once, serving};

use super::support::{check_works, millis};

const INSERT: &str = "INSERT INTO k.t (pk, v) VALUES (?, ?)";
const UPDATE: &str = "UPDATE k.t SET v = ? WHERE pk = ?";

/// PREPARED for pk int, v text of `k.t`; the key is the first marker.
fn insert_prepared(id: u8) -> Vec<u8> {
    let head = [hex("00000004 0001"), vec![id]].concat();
    let markers = "00000001 00000002 00000001 0000 00016b 000174 0002706b 0009 000176 000d";
    [head, hex(markers), hex("00000004 00000000")].concat()
}

fn frame(body: &[u8]) -> String {
    let digits = response(0, 8, body).into_iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// UNPREPARED for the id.
fn unprepared(id: u8) -> String {
    format!("84000001000000000a 00002500 000178 0001{id:02x}")
}

async fn prepare_insert(scene: &Scene, session: &Session, peer: &mut Peer) -> Prepared {
    let prepared = frame(&insert_prepared(0xaa));
    scene.prepare(session, peer, INSERT, &prepared).await
}

/// Prepares on all nodes.
async fn prepare_everywhere(
    scene: &Scene,
    session: &Session,
    peers: &mut [Peer],
    statement: Statement<'static>,
) -> Prepared {
    let session = session.clone();
    let call = scene.call(async move { session.prepare(statement).await });
    for _ in 0..peers.len() {
        let (node, request) = any_request(peers).await;
        assert_eq!(request.opcode, PREPARE);
        peers[node].answer(&request, &frame(&insert_prepared(0xaa)));
    }
    call.await.expect("prepared")
}

fn value(text: &str) -> Value {
    Value::Bytes(hex(text))
}

/// Nothing that a connection agreed shows in a batch.
#[test]
fn a_batch_is_laid_out_as_the_protocol_says() {
    let agreed: &[&str] = &["SCYLLA_USE_METADATA_ID", "TABLETS_ROUTING_V2_EXPERIMENTAL"];
    for extensions in [&[][..], agreed] {
        play_everywhere(move |scene| async move {
            let count = u16::try_from(extensions.len()).expect("few").to_be_bytes();
            let options = extensions
                .iter()
                .flat_map(|key| [string(key), hex("0001 0000")].concat());
            let supported = count.into_iter().chain(options).collect();
            let scene = scene.with_supported(supported);
            let (session, mut peer) = scene.connect(scene.config()).await;
            let mut prepared = insert_prepared(0xaa);
            if !extensions.is_empty() {
                // The id of a result without columns.
                prepared.splice(7..7, hex("0001 05"));
            }
            let prepared = frame(&prepared);
            let insert = scene.prepare(&session, &mut peer, INSERT, &prepared).await;

            let mut batch = Batch::unlogged()
                .with_consistency(Consistency::Quorum)
                .with_serial_consistency(SerialConsistency::Serial)
                .with_timestamp(1_700_000_000_000_000);
            batch.push(&insert, (1, "a")).expect("fits");
            batch.push_text("DELETE FROM k.t").expect("fits");
            batch.push(&insert, (2, Unset)).expect("fits");
            let call = scene.batch(&session, &batch);
            let request = peer.request().await;
            assert_eq!(request.opcode, BATCH);
            let expected = "01 0003 \
                01 0001 aa 0002 00000004 00000001 00000001 61 \
                00 0000000f 44454c4554452046524f4d206b2e74 0000 \
                01 0001 aa 0002 00000004 00000002 fffffffe \
                0004 30 0008 00060a24181e4000";
            assert_eq!(request.body, hex(expected));
            peer.answer(&request, VOID);
            let result = call.await.expect("VOID");
            assert_eq!((result.is_rows(), result.applied()), (false, None));
        });
    }
}

#[test]
fn a_batch_can_be_filled_again() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let insert = prepare_insert(&scene, &session, &mut peer).await;
        let mut batch = Batch::new(BatchKind::Logged);
        for round in 0..3_i32 {
            // Values that do not fit leave nothing behind.
            let error = batch.push(&insert, (round, round)).expect_err("v is text");
            assert_eq!(error.kind(), ErrorKind::Encode(EncodeFailure::Value));
            assert!(batch.push(&insert, (round,)).is_err());
            batch.push(&insert, (round, "v")).expect("fits");
            assert_eq!((batch.len(), batch.wire_len()), (1, 1 + 3 + 2 + 8 + 5));
            let call = scene.batch(&session, &batch);
            let request = peer.request().await;
            let key = Value::Bytes(round.to_be_bytes().to_vec());
            let statements = vec![(vec![0xaa], vec![key, value("76")])];
            let sent = request.batch();
            assert_eq!((sent.kind, sent.statements), (0, statements));
            peer.answer(&request, VOID);
            call.await.expect("VOID");
            batch.clear();
            assert!(batch.is_empty());
        }
        // No statements at all are a batch too.
        let call = scene.batch(&session, &batch);
        let request = peer.request().await;
        assert_eq!(request.batch().statements, []);
        peer.answer(&request, VOID);
        call.await.expect("VOID");
    });
}

/// Case P5: only the statement that is named is prepared, and the batch is the same again.
#[test]
fn a_batch_whose_statement_was_lost_is_sent_again_as_it_was() {
    let named = "INSERT INTO k.t (p) VALUES (?)";
    let prepared = "00000004 0001aa 00000001 00000001 00000001 0000 00016b 000174 000170 0009 \
                    00000004 00000000";
    // Two statements and the consistency; flags, serial consistency and timestamp behind.
    let expected = "00 0002 01 0001aa 0001 00000004 00000001 00 0000001e \
                    494e5345525420494e544f206b2e74202870292056414c554553202832290000 0001 \
                    30 0009 00060a24181e4000";
    play_everywhere(move |scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = frame(&hex(prepared));
        let insert = scene.prepare(&session, &mut peer, named, &prepared).await;
        let mut batch = Batch::logged()
            .with_consistency(Consistency::One)
            .with_timestamp(1_700_000_000_000_000);
        batch.push(&insert, (1,)).expect("fits");
        batch
            .push_text("INSERT INTO k.t (p) VALUES (2)")
            .expect("fits");
        let call = scene.batch(&session, &batch);
        let first = peer.request().await;
        assert_eq!((first.opcode, &first.body), (BATCH, &hex(expected)));
        peer.answer(&first, &unprepared(0xaa));
        let request = peer.request().await;
        assert_eq!((request.opcode, request.statement()), (PREPARE, named));
        peer.answer(&request, &prepared);
        let again = peer.request().await;
        assert_eq!((again.opcode, &again.body), (BATCH, &first.body));
        peer.answer(&again, VOID);
        assert!(!call.await.expect("VOID").is_rows());
        scene.turn().await;
        assert!(!peer.has_request());
    });
}

#[test]
fn lost_statements_are_given_back_one_after_the_other() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let insert = prepare_insert(&scene, &session, &mut peer).await;
        let update = frame(&insert_prepared(0xbb));
        let update = scene.prepare(&session, &mut peer, UPDATE, &update).await;
        let mut batch = Batch::logged();
        for pk in 0..4 {
            batch.push(&insert, (pk, "v")).expect("fits");
            batch.push(&update, (pk, "v")).expect("fits");
        }
        let call = scene.batch(&session, &batch);
        let first = peer.request().await;
        peer.answer(&first, &unprepared(0xaa));
        for (statement, id) in [(INSERT, 0xaa), (UPDATE, 0xbb)] {
            let request = peer.request().await;
            assert_eq!(request.opcode, PREPARE);
            assert_eq!(request.statement(), statement);
            peer.answer(&request, &frame(&insert_prepared(id)));
            let again = peer.request().await;
            assert_eq!((again.opcode, &again.body), (BATCH, &first.body));
            let lost = unprepared(0xbb);
            peer.answer(&again, if id == 0xaa { &lost } else { VOID });
        }
        assert_eq!(call.await.expect("VOID").info().attempts, 3);
    });
}

#[test]
fn a_node_that_forgets_for_ever_is_asked_once_for_each_statement() {
    for (id, prepares) in [(0xaa, 2), (0xcc, 0)] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let insert = prepare_insert(&scene, &session, &mut peer).await;
            let update = frame(&insert_prepared(0xbb));
            let update = scene.prepare(&session, &mut peer, UPDATE, &update).await;
            let mut batch = Batch::logged();
            for _ in 0..10 {
                batch.push(&insert, (1, "v")).expect("fits");
                batch.push(&update, (1, "v")).expect("fits");
            }
            let call = scene.batch(&session, &batch);
            for _ in 0..prepares {
                let request = peer.request().await;
                peer.answer(&request, &unprepared(id));
                let request = peer.request().await;
                assert_eq!(request.statement(), INSERT);
                peer.answer(&request, &frame(&insert_prepared(id)));
            }
            let request = peer.request().await;
            peer.answer(&request, &unprepared(id));
            let error = call.await.expect_err("it is lost still");
            assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Unprepared));
            assert!(!error.may_have_been_applied());
            check_works(&scene, &session, &mut peer).await;
        });
    }
}

/// One row for each statement, with what was there.
#[test]
fn a_conditional_batch_tells_whether_it_was_applied_and_what_it_found() {
    for applied in [true, false] {
        play_everywhere(move |scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let mut batch = Batch::unlogged();
            for text in ["INSERT one IF NOT EXISTS", "INSERT two IF NOT EXISTS"] {
                batch.push_text(text).expect("fits");
            }
            let call = scene.batch(&session, &batch);
            let request = peer.request().await;
            let columns: &[(&str, &[u8])] = &[
                ("[applied]", &[0, 0x04]),
                ("pk", &[0, 0x09]),
                ("v", &[0, 0x0d]),
            ];
            let row = |pk: i32, v: Option<&str>| {
                let v = v.map(|v| v.as_bytes().to_vec());
                vec![
                    Some(vec![u8::from(applied)]),
                    Some(pk.to_be_bytes().to_vec()),
                    v,
                ]
            };
            let body = rows(columns, &[row(1, Some("old")), row(2, None)]);
            peer.send(&response(request.stream, 8, &body));
            let result = call.await.expect("rows");
            assert_eq!(result.applied(), Some(applied));
            let rows = result.rows::<(bool, i32, Option<&str>)>().expect("rows");
            let found: Result<Vec<_>, Error> = rows.collect();
            let expected = [(applied, 1, Some("old")), (applied, 2, None)];
            assert_eq!(found.expect("they fit"), expected);
        });
    }
}

/// Columns of that name and type only; a node may send what it likes.
#[test]
fn other_rows_tell_nothing_of_conditions() {
    const BOOLEAN: &[u8] = &[0, 0x04];
    const TEXT: &[u8] = &[0, 0x0d];
    type Case = (
        &'static [(&'static str, &'static [u8])],
        Vec<Option<Vec<u8>>>,
        Option<bool>,
    );
    let cases: [Case; 6] = [
        (&[("[applied]", BOOLEAN)], vec![Some(vec![1])], Some(true)),
        (&[("applied", BOOLEAN)], vec![Some(vec![1])], None),
        (&[("[applied]", TEXT)], vec![Some(vec![1])], None),
        (&[("[applied]", BOOLEAN)], vec![None], None),
        (&[("[applied]", BOOLEAN)], vec![Some(vec![])], None),
        (
            &[("v", TEXT), ("[applied]", BOOLEAN)],
            vec![None, Some(vec![1])],
            None,
        ),
    ];
    for (columns, row, expected) in cases {
        for row_count in [0, 1] {
            let body = rows(columns, &vec![row.clone(); row_count]);
            let expected = expected.filter(|_| row_count > 0);
            play_once(3, move |scene| {
                let body = body.clone();
                async move {
                    let (session, mut peer) = scene.connect(scene.config()).await;
                    let call = scene.query(&session, "UPDATE k.t");
                    let request = peer.request().await;
                    peer.send(&response(request.stream, 8, &body));
                    assert_eq!(call.await.expect("rows").applied(), expected);
                }
            });
        }
    }
}

/// Two nodes; the token of pk = 1 is the second one's.
#[test]
fn a_batch_goes_where_its_first_statement_with_a_token_goes() {
    play_everywhere(|scene| async move {
        let scene = scene.with_tokens(&[0, -4_069_959_284_402_364_209]);
        let (session, mut peers) = scene.connect_all(scene.config()).await;
        let insert = prepare_everywhere(&scene, &session, &mut peers, INSERT.into()).await;
        let mut batch = Batch::unlogged();
        batch.push_text("DELETE FROM k.t").expect("fits");
        // No key, no token.
        batch.push(&insert, (None::<i32>, "v")).expect("fits");
        batch.push(&insert, (1, "v")).expect("fits");
        for _ in 0..8 {
            let call = scene.batch(&session, &batch);
            let (node, request) = any_request(&mut peers).await;
            assert_eq!(node, 1);
            peers[node].answer(&request, VOID);
            call.await.expect("VOID");
        }
    });
}

#[test]
fn bounds_are_errors_before_anything_is_sent() {
    play_once(1, |scene| async move {
        let mut config = scene.config();
        config.limits.connection.request_len_max = 400_000;
        let (session, mut peer) = scene.connect(config).await;
        let mut batch = Batch::unlogged();
        for _ in 0..u16::MAX {
            batch.push_text("").expect("fits");
        }
        let insert = prepare_insert(&scene, &session, &mut peer).await;
        let full = [batch.push_text(""), batch.push(&insert, (1, "v"))];
        for error in full.map(|full| full.expect_err("one too many")) {
            let kind = error.encode_error().map(|error| error.kind);
            let (count, max) = (65_536, 65_535);
            assert_eq!(kind, Some(EncodeErrorKind::TooMany { count, max }));
        }
        assert_eq!((batch.len(), batch.wire_len()), (65_535, 65_535 * 7));

        let error = scene.batch(&session, &batch).await.expect_err("too long");
        let kind = error.encode_error().map(|error| error.kind);
        let (len, max) = (65_535 * 7, 400_000);
        assert_eq!(kind, Some(EncodeErrorKind::TooLong { len, max }));
        assert!(!error.may_have_been_applied());
        check_works(&scene, &session, &mut peer).await;
    });
}

const OVERLOADED: &str = "84000001000000000700001001000178";
const BATCH_LOG: &str =
    "84000001000000001c0000110000017800010000000100000002000942415443485f4c4f47";

/// By kind, idempotence of all statements, and of the batch as a whole.
#[test]
fn only_what_may_be_applied_twice_is_repeated() {
    for (kind, statements, whole, repeats) in [
        (BatchKind::Logged, false, false, false),
        (BatchKind::Logged, true, false, true),
        (BatchKind::Unlogged, false, true, true),
        (BatchKind::Unlogged, true, false, true),
        (BatchKind::Counter, true, true, false),
    ] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_tokens(&[0, 1 << 60]);
            let (session, mut peers) = scene.connect_all(scene.config()).await;
            let statement = Statement::new(INSERT);
            let statement = if statements {
                statement.idempotent()
            } else {
                statement
            };
            let insert = prepare_everywhere(&scene, &session, &mut peers, statement.clone()).await;
            let batch = Batch::new(kind);
            let mut batch = if whole { batch.idempotent() } else { batch };
            batch.push(&insert, (1, "v")).expect("fits");
            batch.push_text(statement).expect("fits");
            assert_eq!(batch.is_idempotent(), repeats);
            let call = scene.batch(&session, &batch);
            let (first, request) = any_request(&mut peers).await;
            peers[first].answer(&request, OVERLOADED);
            if repeats {
                let (second, again) = any_request(&mut peers).await;
                assert_eq!((second != first, &again.body), (true, &request.body));
                peers[second].answer(&again, VOID);
            }
            let outcome = serving(&mut peers, call).await;
            assert_eq!(outcome.is_ok(), repeats, "{kind:?} {outcome:?}");
        });
    }
}

/// A batch whose log was not written is sent to the same node once more, whatever it holds.
#[test]
fn a_batch_whose_log_timed_out_is_repeated_once() {
    play_everywhere(|scene| async move {
        let scene = scene.with_tokens(&[0, 1 << 60]);
        let (session, mut peers) = scene.connect_all(scene.config()).await;
        let mut batch = Batch::logged();
        batch.push_text("INSERT one").expect("fits");
        let call = scene.batch(&session, &batch);
        let (first, request) = any_request(&mut peers).await;
        peers[first].answer(&request, BATCH_LOG);
        let (second, again) = any_request(&mut peers).await;
        assert_eq!((second, &again.body), (first, &request.body));
        peers[second].answer(&again, BATCH_LOG);
        let error = call.await.expect_err("twice");
        assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::WriteTimeout));
        serving(&mut peers, scene.pause(Duration::from_secs(1))).await;
        assert!(!peers.iter().any(Peer::has_request));
    });
}

/// Trace id, warnings and custom payload stand in front of the result, in this order.
#[test]
fn what_comes_beside_the_result_is_kept() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let mut batch = Batch::unlogged().traced().with_timeout(millis(100));
        batch.push_text("INSERT one").expect("fits");
        let call = scene.batch(&session, &batch);
        let request = peer.request().await;
        assert_eq!(request.flags, 0x02);
        let mut body = hex("000102030405060708090a0b0c0d0e0f");
        body.extend([hex("0001"), string("Batch is large")].concat());
        body.extend([hex("0001"), string("key"), bytes(Some(b"value"))].concat());
        body.extend(hex("00000001"));
        let mut answer = response(request.stream, 8, &body);
        answer[1] = 0x02 | 0x04 | 0x08;
        peer.send(&answer);
        let result = call.await.expect("VOID");
        let id = result.tracing_id().expect("a trace");
        assert_eq!(id.as_u128(), 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        assert_eq!(result.warnings(), ["Batch is large"]);
        assert_eq!(result.custom_payload("key"), Some(&b"value"[..]));
    });
}
