//! Prepared statements: metadata that comes, goes and changes; keys that are bound out of order.

use messina_core::drive::{Prepared, Session};
use messina_core::error::{EncodeFailure, ErrorKind};
use messina_core::routing::Token;
use messina_core::types::Unset;
use messina_scenario::frame::{EXECUTE, PREPARE, VOID, response, string};
use messina_scenario::{Execute, Frame, Peer, Scene, Value, any_request, hex, play_everywhere};

use super::support::check_works;

/// PREPARED id bb, result id 05, no columns: the statement brings rows all the same.
const NO_METADATA: &str = "84000001080000001e000000040001bb000105\
                           0000000000000000000000000000000400000000";
/// Rows with metadata: role = "r".
const ROLE: &str = "84000002080000002300000002000000010000000100016b0001740004726f6c65\
                    000d000000010000000172";
/// The same without: flag 4, one column, one row.
const BARE_ROLE: &str = "84000002080000001500000002000000040000000100000001\
                         0000000172";
/// UNPREPARED bb.
const UNPREPARED: &str = "84000001000000000a 00002500 000178 0001bb";

/// PREPARED id bb with this result id and the column role.
fn with_metadata(result_id: u8) -> Vec<u8> {
    let head = hex("00000004 0001bb 0001");
    let tail = "00000000 00000000 00000000 00000001 00000001 00016b 000174 0004726f6c65 000d";
    [head, vec![result_id], hex(tail)].concat()
}

fn metadata_id_scene(scene: Scene) -> Scene {
    let key = string("SCYLLA_USE_METADATA_ID");
    scene.with_supported([hex("0001"), key, hex("0000")].concat())
}

/// The node's rule: rows without metadata only for the right id and the skip flag.
fn answer_by_rule(peer: &mut Peer, request: &Frame) -> Execute {
    let execute = request.execute(true);
    let right_id = execute.metadata_id.as_deref() == Some(&[5]);
    let is_bare = right_id && execute.skips_metadata;
    peer.answer(request, if is_bare { BARE_ROLE } else { ROLE });
    execute
}

async fn check_role(call: messina_scenario::Asked) {
    let result = call.await.expect("rows");
    let (role,): (&str,) = result.single_row().expect("one row");
    assert_eq!(role, "r");
}

/// Executes; the node has lost the statement and prepares it again with this body.
async fn execute_unprepared(
    scene: &Scene,
    session: &Session,
    peer: &mut Peer,
    prepared: &Prepared,
    body: &[u8],
) -> Execute {
    let call = scene.execute(session, prepared, ());
    let request = peer.request().await;
    assert_eq!(request.opcode, EXECUTE);
    peer.answer(&request, UNPREPARED);
    let request = peer.request().await;
    assert_eq!(
        (request.opcode, request.statement()),
        (PREPARE, "LIST ROLES")
    );
    peer.send(&response(request.stream, 8, body));
    let request = peer.request().await;
    let execute = answer_by_rule(peer, &request);
    check_role(call).await;
    execute
}

/// Case P3.
#[test]
fn rows_of_a_statement_prepared_without_metadata_are_read() {
    play_everywhere(|scene| async move {
        let scene = metadata_id_scene(scene);
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene
            .prepare(&session, &mut peer, "LIST ROLES", NO_METADATA)
            .await;

        // The metadata that comes with the first rows is kept, though its id is the same.
        for skips_metadata in [false, true, true] {
            let call = scene.execute(&session, &prepared, ());
            let request = peer.request().await;
            let execute = answer_by_rule(&mut peer, &request);
            assert_eq!(execute.id, [0xbb]);
            assert_eq!(execute.metadata_id.as_deref(), Some(&[5][..]));
            assert_eq!(execute.skips_metadata, skips_metadata);
            check_role(call).await;
        }

        // Prepared again without metadata: what is held stays.
        let none = &hex(NO_METADATA)[9..];
        let execute = execute_unprepared(&scene, &session, &mut peer, &prepared, none).await;
        assert!(execute.skips_metadata);
        assert_eq!(execute.metadata_id.as_deref(), Some(&[5][..]));
    });
}

/// Case P3: prepared again, the repeated EXECUTE asks by what is held then.
#[test]
fn the_skip_flag_is_worked_out_afresh_after_preparing_again() {
    for result_id in [5, 6] {
        play_everywhere(move |scene| async move {
            let scene = metadata_id_scene(scene);
            let (session, mut peer) = scene.connect(scene.config()).await;
            let prepared = scene
                .prepare(&session, &mut peer, "LIST ROLES", NO_METADATA)
                .await;
            let body = with_metadata(result_id);
            let execute = execute_unprepared(&scene, &session, &mut peer, &prepared, &body).await;
            assert!(execute.skips_metadata);
            assert_eq!(execute.metadata_id, Some(vec![result_id]));
        });
    }
    // Nothing before, nothing after: still no skipping.
    play_everywhere(|scene| async move {
        let scene = metadata_id_scene(scene);
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene
            .prepare(&session, &mut peer, "LIST ROLES", NO_METADATA)
            .await;
        let none = &hex(NO_METADATA)[9..];
        let execute = execute_unprepared(&scene, &session, &mut peer, &prepared, none).await;
        assert!(!execute.skips_metadata);
    });
}

/// METADATA_CHANGED: the new columns decode this very answer, and the next request is by their id.
#[test]
fn changed_columns_come_although_they_were_to_be_left_out() {
    // Rows of pk int = 1, v text = "a", w bigint = null; the id is 06. Then without columns.
    let changed =
        "84000002080000003a 00000002 00000009 00000003 0001 06 00016b 000174 0002706b 0009
                   000176 000d 000177 0002 00000001 00000004 00000001 00000001 61 ffffffff";
    let bare = "840000020800000021 00000002 00000005 00000003 00000001
                00000004 00000001 00000001 61 ffffffff";
    play_everywhere(move |scene| async move {
        let scene = metadata_id_scene(scene);
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = response(1, 8, &with_metadata(5));
        let prepared: String = prepared.iter().map(|byte| format!("{byte:02x}")).collect();
        let prepared = scene
            .prepare(&session, &mut peer, "SELECT * FROM k.t", &prepared)
            .await;
        for (id, answer) in [(5, changed), (6, bare), (6, bare)] {
            let call = scene.execute(&session, &prepared, ());
            let request = peer.request().await;
            let execute = request.execute(true);
            assert!(execute.skips_metadata);
            assert_eq!(execute.metadata_id, Some(vec![id]));
            peer.answer(&request, answer);
            let result = call.await.expect("rows");
            let row: (i32, &str, Option<i64>) = result.single_row().expect("one row");
            assert_eq!(row, (1, "a", None));
        }
    });
}

/// Without the extension no result id travels and nothing is skipped.
#[test]
fn without_metadata_ids_nothing_is_skipped() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = "84000001080000001b000000040001bb0000000000000000000000000000000400000000";
        let prepared = scene
            .prepare(&session, &mut peer, "LIST ROLES", prepared)
            .await;
        for _ in 0..2 {
            let call = scene.execute(&session, &prepared, ());
            let request = peer.request().await;
            assert!(!request.execute(false).skips_metadata);
            peer.answer(&request, ROLE);
            check_role(call).await;
        }
    });
}

const UPDATE: &str = "UPDATE k.t SET v=? WHERE p3=? AND p1=? AND p2=?";
/// Key (p1 int, p2 text, p3 bigint); markers v, p3, p1, p2.
const KEY: &str = "00000003000200030001";
const KEY_TOKEN: i64 = -1967853151028610859;
const BIND_ORDER_TOKEN: i64 = -1362158079883839136;

/// PREPARED for the markers v, p3, p1, p2 with this count and list of key indexes.
fn update_prepared(key: &str) -> String {
    let markers = "00016b 000174 000176 000d 00027033 0002 00027031 0009 00027032 000d";
    let body = hex(&format!(
        "00000004 0001aa 00000001 00000004 {key} {markers} 00000004 00000000"
    ));
    response(1, 8, &body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn bytes_value(text: &str) -> Value {
    Value::Bytes(hex(text))
}

/// Case P7: two nodes; the second would be asked if the key were built in bind order.
#[test]
fn the_key_is_built_in_key_order_and_values_travel_in_bind_order() {
    play_everywhere(|scene| async move {
        let scene = scene.with_tokens(&[KEY_TOKEN, BIND_ORDER_TOKEN]);
        let (session, mut peers) = scene.connect_all(scene.config()).await;
        let prepared =
            prepare_everywhere(&scene, &session, &mut peers, &update_prepared(KEY)).await;
        assert!(prepared.is_token_aware());
        let route = session.route(&prepared, ("v", -3_i64, 1_i32, "two"));
        assert_eq!(route.expect("a route").token, Some(Token::new(KEY_TOKEN)));
        for _ in 0..8 {
            let call = scene.execute(&session, &prepared, ("v", -3_i64, 1_i32, "two"));
            let (node, request) = any_request(&mut peers).await;
            assert_eq!(node, 0);
            let expected = ["76", "fffffffffffffffd", "00000001", "74776f"].map(bytes_value);
            assert_eq!(request.execute(false).values, expected);
            peers[node].answer(&request, VOID);
            call.await.expect("VOID");
        }
    });
}

/// Prepares on the first of all nodes, then on the others.
async fn prepare_everywhere(
    scene: &Scene,
    session: &Session,
    peers: &mut [Peer],
    frame: &str,
) -> Prepared {
    let session = session.clone();
    let call = scene.call(async move { session.prepare(UPDATE).await });
    for _ in 0..peers.len() {
        let (node, request) = any_request(peers).await;
        assert_eq!(request.opcode, PREPARE);
        peers[node].answer(&request, frame);
    }
    call.await.expect("prepared")
}

/// Case P7: keys that cannot be built.
#[test]
fn without_a_whole_key_requests_are_not_routed() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let unrouted = scene
            .prepare(&session, &mut peer, "count 0", &update_prepared("00000000"))
            .await;
        assert!(!unrouted.is_token_aware());
        let routed = scene
            .prepare(&session, &mut peer, UPDATE, &update_prepared(KEY))
            .await;
        let token = |route: Result<messina_core::drive::Route, _>| route.expect("a route").token;

        let whole = ("v", -3_i64, 1_i32, "two");
        let null = ("v", -3_i64, None::<i32>, "two");
        let unset = ("v", Unset, 1_i32, "two");
        assert_eq!(token(session.route(&unrouted, whole)), None);
        assert_eq!(token(session.route(&routed, null)), None);
        assert_eq!(token(session.route(&routed, unset)), None);
        let one = bytes_value("00000001");
        for (call, expected) in [(0, one.clone()), (1, Value::Null), (2, one)] {
            // One after the other: callers have no order among themselves.
            let call = match call {
                0 => scene.execute(&session, &unrouted, whole),
                1 => scene.execute(&session, &routed, null),
                _ => scene.execute(&session, &routed, unset),
            };
            let request = peer.request().await;
            assert_eq!(request.execute(false).values[2], expected);
            peer.answer(&request, VOID);
            call.await.expect("VOID");
        }
    });
}

/// Case P7: a component of a composite key has a two-byte length.
#[test]
fn a_key_component_too_long_is_refused_before_sending() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene
            .prepare(&session, &mut peer, UPDATE, &update_prepared(KEY))
            .await;
        let values = |len| ("v", -3_i64, 1_i32, "x".repeat(len));

        let error = scene.execute(&session, &prepared, values(65_536)).await;
        let error = error.expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Encode(EncodeFailure::Value));
        assert!(!error.may_have_been_applied());
        scene.turn().await;

        let call = scene.execute(&session, &prepared, values(65_535));
        let request = peer.request().await;
        let longest = Value::Bytes(vec![b'x'; 65_535]);
        assert_eq!(request.execute(false).values[3], longest);
        peer.answer(&request, VOID);
        call.await.expect("VOID");
        check_works(&scene, &session, &mut peer).await;
    });
}

/// Case P7: the key of one int is nothing but its bytes.
#[test]
fn a_single_component_stands_by_itself() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = update_prepared("00000001 0002");
        let prepared = scene.prepare(&session, &mut peer, UPDATE, &prepared).await;
        let route = session.route(&prepared, ("v", -3_i64, 1_i32, "two"));
        let token = route.expect("a route").token;
        assert_eq!(token, Some(Token::new(-4069959284402364209)));
    });
}
