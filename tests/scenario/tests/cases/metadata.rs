//! Ids of result columns: rows without columns are read by those of the id that was sent, whatever
//! other requests, other nodes and ALTER do meanwhile.

use messina_core::drive::{Prepared, QueryResult, Session, Statement};
use messina_core::error::{ApiMisuse, DecodeFailure, Error, ErrorKind, PeerMisbehaved};
use messina_core::types::CqlValue;
use messina_core::wire::Consistency;
use messina_scenario::frame::{EXECUTE, PREPARE, VOID, response, string};
use messina_scenario::{
    Asked, Execute, Frame, Peer, Scene, any_request, hex, on_stream, play_everywhere,
};

/// PREPARED id aa, result id 01, result (a int).
const PREPARED: &str = "84000001080000002f000000040001aa00010100000001000000000000000000016b000174\
                        000000010000000100016b0001740001610009";
/// METADATA_CHANGED, id 02, (a int, b text): {a: 7, b: "x"}.
const CHANGED: &str = "84000002080000003000000002000000090000000200010200016b0001740001610009000162\
                       000d0000000100000004000000070000000178";
/// Rows without columns: {8, "y"}.
const BARE: &str = "84000003080000001d0000000200000004000000020000000100000004000000080000000179";
/// UNPREPARED aa.
const UNPREPARED: &str = "84000001000000000a 00002500 000178 0001aa";

const TEXT: &str = "SELECT * FROM k.t";

fn metadata_id() -> Vec<u8> {
    [
        hex("0001"),
        string("SCYLLA_USE_METADATA_ID"),
        hex("0001 0000"),
    ]
    .concat()
}

fn select() -> Statement<'static> {
    Statement::new(TEXT).with_consistency(Consistency::One)
}

/// One node that knows ids, and the statement prepared there.
async fn prepared(scene: Scene) -> (Scene, Session, Peer, Prepared) {
    let scene = scene.with_supported(metadata_id());
    let (session, mut peer) = scene.connect(scene.config()).await;
    let prepared = scene.prepare(&session, &mut peer, select(), PREPARED).await;
    (scene, session, peer, prepared)
}

fn frame(body: &str) -> String {
    let frame = response(0, 8, &hex(body)).into_iter();
    frame.map(|byte| format!("{byte:02x}")).collect()
}

/// PREPARED aa with this id, or none, and the columns behind flags and count.
fn prepared_frame(id: &str, columns: &str) -> String {
    frame(&format!(
        "00000004 0001aa {id} 00000000 00000000 00000000 {columns}"
    ))
}

const A: &str = "00000001 00000001 00016b 000174 000161 0009";
const A_B: &str = "00000001 00000002 00016b 000174 000161 0009 000162 000d";

/// All cells of the only row.
fn cells(result: Result<QueryResult, Error>) -> Vec<CqlValue> {
    result.expect("rows").single_row().expect("one row")
}

fn int_and_text(int: i32, text: &str) -> Vec<CqlValue> {
    vec![CqlValue::Int(int), CqlValue::Text(text.into())]
}

async fn executed(peer: &mut Peer) -> (Frame, Execute) {
    let request = peer.request().await;
    let execute = request.execute(true);
    (request, execute)
}

/// Case P1.
#[test]
fn a_changed_id_and_its_columns_are_kept_as_one() {
    play_everywhere(|scene| async move {
        let (scene, session, mut peer, prepared) = prepared(scene).await;
        let clone = prepared.clone();
        for (statement, request, answer, row) in [
            (
                &prepared,
                "040000020a000000090001aa000101000102",
                CHANGED,
                int_and_text(7, "x"),
            ),
            (
                &clone,
                "040000030a000000090001aa000102000102",
                BARE,
                int_and_text(8, "y"),
            ),
            (
                &prepared,
                "040000030a000000090001aa000102000102",
                BARE,
                int_and_text(8, "y"),
            ),
        ] {
            let call = scene.execute(&session, statement, ());
            let sent = peer.request().await;
            assert_eq!(sent.to_bytes(), on_stream(sent.stream, request));
            peer.answer(&sent, answer);
            assert_eq!(cells(call.await), row);
        }
    });
}

/// Case P1: what was written by an id is read by the columns of that id, or by its own.
#[test]
fn answers_out_of_order_are_read_by_what_they_were_asked_by() {
    // (a int, b text, c int), id 03: {1, "z", 2}.
    let third = frame(
        "00000002 00000009 00000003 0001 03 00016b 000174 000161 0009 000162 000d 000163 0009
         00000001 00000004 00000001 00000001 7a 00000004 00000002",
    );
    let one_bare = frame("00000002 00000005 00000001 00000001 00000004 00000009");
    play_everywhere(move |scene| {
        let (third, one_bare) = (third.clone(), one_bare.clone());
        async move {
            let (scene, session, mut peer, prepared) = prepared(scene).await;
            let mut under_way = Vec::new();
            for _ in 0..4 {
                let call = scene.execute(&session, &prepared, ());
                let (request, execute) = executed(&mut peer).await;
                assert_eq!(execute.metadata_id, Some(vec![1]));
                under_way.push((call, request));
            }
            let three = vec![
                CqlValue::Int(1),
                CqlValue::Text("z".into()),
                CqlValue::Int(2),
            ];
            // The newest first, then answers of nodes that have not heard of it yet.
            let order: [(usize, &str, Vec<CqlValue>); 4] = [
                (3, &third, three),
                (0, &one_bare, vec![CqlValue::Int(9)]),
                (2, CHANGED, int_and_text(7, "x")),
                (1, &one_bare, vec![CqlValue::Int(9)]),
            ];
            let mut calls: Vec<Option<(Asked, Frame)>> = under_way.into_iter().map(Some).collect();
            for (place, answer, row) in order {
                let (call, request) = calls[place].take().expect("answered once");
                peer.answer(&request, answer);
                assert_eq!(cells(call.await), row);
            }
            // Whichever id is held now, its own columns are held with it.
            let call = scene.execute(&session, &prepared, ());
            let (request, execute) = executed(&mut peer).await;
            assert_eq!(
                (execute.metadata_id, execute.skips_metadata),
                (Some(vec![2]), true)
            );
            peer.answer(&request, BARE);
            assert_eq!(cells(call.await), int_and_text(8, "y"));
        }
    });
}

/// Case P1: a row type that fits no more is an error of its own, not another value.
#[test]
fn a_row_type_that_fits_no_more_is_told() {
    play_everywhere(|scene| async move {
        let (scene, session, mut peer, prepared) = prepared(scene).await;
        let call = scene.execute(&session, &prepared, ());
        let request = peer.request().await;
        peer.answer(&request, CHANGED);
        let result = call.await.expect("rows");
        for error in [
            result.single_row::<(i32,)>().expect_err("two columns"),
            result.single_row::<(i32, i32)>().expect_err("b is text"),
        ] {
            assert_eq!(error.kind(), ErrorKind::Decode(DecodeFailure::Value));
        }
        assert_eq!(result.single_row::<(i32, &str)>().expect("fits"), (7, "x"));
    });
}

/// A new id has its columns with it; rows without any would be read by columns of another id.
#[test]
fn a_change_without_columns_is_no_answer() {
    let broken = frame("00000002 0000000c 00000001 0001 02 00000001 00000004 00000007");
    play_everywhere(move |scene| {
        let broken = broken.clone();
        async move {
            let (scene, session, mut peer, prepared) = prepared(scene).await;
            for _ in 0..2 {
                let call = scene.execute(&session, &prepared, ());
                let (request, execute) = executed(&mut peer).await;
                assert_eq!(execute.metadata_id, Some(vec![1]));
                peer.answer(&request, &broken);
                let error = call.await.expect_err("no columns");
                let malformed = ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody);
                assert_eq!(error.kind(), malformed);
                assert!(error.may_have_been_applied());
            }
        }
    });
}

/// Between the two the statement was prepared again under another id, still without columns.
#[test]
fn columns_of_late_rows_are_kept_with_the_id_they_were_asked_by() {
    let rows =
        frame("00000002 00000001 00000001 00016b 000174 000161 0009 00000001 00000004 00000007");
    play_everywhere(move |scene| {
        let rows = rows.clone();
        async move {
            let scene = scene.with_supported(metadata_id());
            let (session, mut peer) = scene.connect(scene.config()).await;
            let none = |id| prepared_frame(id, "00000004 00000000");
            let prepared = scene
                .prepare(&session, &mut peer, select(), &none("0001 05"))
                .await;
            let slow = scene.execute(&session, &prepared, ());
            let (slow_request, execute) = executed(&mut peer).await;
            assert_eq!(
                (execute.metadata_id, execute.skips_metadata),
                (Some(vec![5]), false)
            );

            let other = scene.execute(&session, &prepared, ());
            let (request, _) = executed(&mut peer).await;
            peer.answer(&request, UNPREPARED);
            let request = peer.request().await;
            assert_eq!(request.opcode, PREPARE);
            peer.answer(&request, &none("0001 06"));
            let (other_request, execute) = executed(&mut peer).await;
            assert_eq!(
                (execute.metadata_id, execute.skips_metadata),
                (Some(vec![6]), false)
            );

            peer.answer(&slow_request, &rows);
            assert_eq!(cells(slow.await), [CqlValue::Int(7)]);
            let next = scene.execute(&session, &prepared, ());
            let (request, execute) = executed(&mut peer).await;
            assert_eq!(
                (execute.metadata_id, execute.skips_metadata),
                (Some(vec![5]), true)
            );
            for (call, request) in [(other, other_request), (next, request)] {
                peer.answer(&request, CHANGED);
                assert_eq!(cells(call.await), int_and_text(7, "x"));
            }
        }
    });
}

const BY_KEY: &str = "SELECT a FROM k.t WHERE pk = ?";
/// Tokens of the ints 1 and 2.
const TOKENS: [i64; 2] = [-4_069_959_284_402_364_209, -3_248_873_570_005_575_792];

/// PREPARED for pk int, with this id or none, and these columns.
fn by_key_frame(id: &str, columns: &str) -> String {
    let marker = "00000001 00000001 00000001 0000 00016b 000174 0002706b 0009";
    frame(&format!("00000004 0001aa {id} {marker} {columns}"))
}

/// Two nodes, of which the second knows no ids; `columns` were prepared on the first.
async fn prepared_on_both(scene: Scene, columns: &str) -> (Scene, Session, Vec<Peer>, Prepared) {
    let scene = scene.with_tokens(&TOKENS).with_supported(hex("0000"));
    let scene = scene.with_supported_by(1, metadata_id());
    let (session, mut peers) = scene.connect_all(scene.config()).await;
    let preparing = session.clone();
    let call = scene.call(async move { preparing.prepare(BY_KEY).await });
    for _ in 0..peers.len() {
        let (node, request) = any_request(&mut peers).await;
        let id = if node == 0 { "0001 01" } else { "" };
        peers[node].answer(&request, &by_key_frame(id, columns));
    }
    let prepared = call.await.expect("prepared");
    (scene, session, peers, prepared)
}

/// Executes on one of the two nodes: id and skip flag as sent, and what came of the answer.
async fn execute_on(
    node: usize,
    (scene, session, peers, prepared): &mut (Scene, Session, Vec<Peer>, Prepared),
    answer: &str,
) -> (Execute, Result<QueryResult, Error>) {
    let key = i32::try_from(node).expect("small") + 1;
    let call = scene.execute(session, prepared, (key,));
    let (asked, request) = any_request(peers).await;
    assert_eq!((asked, request.opcode), (node, EXECUTE));
    let execute = request.execute(node == 0);
    peers[node].answer(&request, answer);
    (execute, call.await)
}

/// The node gives up the statement first, and prepares it again with this frame.
async fn execute_after_losing(
    node: usize,
    (scene, session, peers, prepared): &mut (Scene, Session, Vec<Peer>, Prepared),
    prepared_again: &str,
    answer: &str,
) -> (Execute, Result<QueryResult, Error>) {
    let key = i32::try_from(node).expect("small") + 1;
    let call = scene.execute(session, prepared, (key,));
    let (asked, request) = any_request(peers).await;
    assert_eq!((asked, request.opcode), (node, EXECUTE));
    peers[node].answer(&request, UNPREPARED);
    let (asked, request) = any_request(peers).await;
    assert_eq!((asked, request.opcode), (node, PREPARE));
    peers[node].answer(&request, prepared_again);
    let (asked, request) = any_request(peers).await;
    assert_eq!(asked, node);
    let execute = request.execute(node == 0);
    peers[node].answer(&request, answer);
    (execute, call.await)
}

/// Case P1, and a node without the extension: whether columns may be left out is decided for each
/// connection, and what such a node tells is no news of the id that the others know.
#[test]
fn a_node_without_ids_changes_nothing_for_those_that_have_them() {
    let full = frame(&format!(
        "00000002 {A_B} 00000001 00000004 00000005 00000001 6d"
    ));
    let one_bare = frame("00000002 00000005 00000001 00000001 00000004 00000009");
    play_everywhere(move |scene| {
        let (full, one_bare) = (full.clone(), one_bare.clone());
        async move {
            let mut both = prepared_on_both(scene, A).await;
            // The second node was prepared last or first: ids may have to be asked for once.
            let (_, result) = execute_on(0, &mut both, CHANGED).await;
            assert_eq!(cells(result), int_and_text(7, "x"));

            let (execute, result) = execute_on(1, &mut both, &full).await;
            assert!(!execute.skips_metadata);
            assert_eq!(cells(result), int_and_text(5, "m"));
            // It leaves out columns that it was asked for: they are not guessed.
            for bare in [&one_bare[..], BARE] {
                let (_, result) = execute_on(1, &mut both, bare).await;
                let error = result.expect_err("no columns").kind();
                assert_eq!(
                    error,
                    ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody)
                );
            }

            // Prepared there again, with the columns of the id: it stays.
            let again = by_key_frame("", A_B);
            let (_, result) = execute_after_losing(1, &mut both, &again, &full).await;
            assert_eq!(cells(result), int_and_text(5, "m"));
            let (execute, result) = execute_on(0, &mut both, BARE).await;
            assert_eq!(
                (execute.metadata_id, execute.skips_metadata),
                (Some(vec![2]), true)
            );
            assert_eq!(cells(result), int_and_text(8, "y"));

            // With other columns: the next that knows ids is asked for both.
            let again = by_key_frame("", A);
            let (execute, result) = execute_after_losing(1, &mut both, &again, &full).await;
            assert!(!execute.skips_metadata);
            assert_eq!(cells(result), int_and_text(5, "m"));
            for (id, skips, answer, row) in [
                (vec![], false, CHANGED, int_and_text(7, "x")),
                (vec![2], true, BARE, int_and_text(8, "y")),
            ] {
                let (execute, result) = execute_on(0, &mut both, answer).await;
                assert_eq!(
                    (execute.metadata_id, execute.skips_metadata),
                    (Some(id), skips)
                );
                assert_eq!(cells(result), row);
            }
        }
    });
}

/// A statement whose columns are known only when rows come: those of a node without ids do not
/// become the columns of the id that another node told.
#[test]
fn columns_of_a_node_without_ids_are_not_paired_with_an_id() {
    let full = frame(&format!(
        "00000002 {A_B} 00000001 00000004 00000005 00000001 6d"
    ));
    play_everywhere(move |scene| {
        let full = full.clone();
        async move {
            let mut both = prepared_on_both(scene, "00000004 00000000").await;
            for _ in 0..2 {
                let (_, result) = execute_on(1, &mut both, &full).await;
                assert_eq!(cells(result), int_and_text(5, "m"));
            }
            let (execute, result) = execute_on(0, &mut both, CHANGED).await;
            assert!(!execute.skips_metadata);
            assert_eq!(cells(result), int_and_text(7, "x"));
        }
    });
}

/// Case G3 and the id: the table is altered between two pages, so the node has lost the statement.
#[test]
fn the_page_after_alter_has_the_new_columns() {
    let page = "00000002 00000007 00000001 00000002 cafe 00000001 00000004 00000001";
    let page = frame(page);
    play_everywhere(move |scene| {
        let page = page.clone();
        async move {
            let (scene, session, mut peer, prepared) = prepared(scene).await;
            let call = scene.call(async move {
                let mut pager = session.pages(&prepared, ()).expect("no values");
                let mut found = Vec::new();
                while let Some(page) = pager.next_page().await.expect("a page") {
                    found.push(cells(Ok(page)));
                }
                found
            });
            let (request, execute) = executed(&mut peer).await;
            assert_eq!(
                (execute.metadata_id, execute.paging_state),
                (Some(vec![1]), None)
            );
            peer.answer(&request, &page);
            let (request, execute) = executed(&mut peer).await;
            assert_eq!(execute.paging_state, Some(hex("cafe")));
            peer.answer(&request, UNPREPARED);
            let request = peer.request().await;
            assert_eq!((request.opcode, request.statement()), (PREPARE, TEXT));
            peer.answer(&request, &prepared_frame("0001 02", A_B));
            let (request, execute) = executed(&mut peer).await;
            assert_eq!(execute.metadata_id, Some(vec![2]));
            assert_eq!(
                (execute.paging_state, execute.skips_metadata),
                (Some(hex("cafe")), true)
            );
            peer.answer(&request, BARE);
            assert_eq!(call.await, [vec![CqlValue::Int(1)], int_and_text(8, "y")]);
        }
    });
}

/// The table was made anew: values encoded for the markers held would be values of other types.
#[test]
fn a_statement_with_other_markers_is_refused_and_prepared_anew() {
    let with_marker = |option: &str| {
        let marker = "00000001 00000001 00000001 0000 00016b 000174 0002706b";
        frame(&format!(
            "00000004 0001aa {marker} {option} 00000004 00000000"
        ))
    };
    let udt = |fields: &str| format!("0030 00016b 000175 {fields}");
    let one = udt("0001 000161 0009");
    let two = udt("0002 000161 0009 000162 0009");
    for (before, after, fits) in [
        ("0009", "0009", true),
        // Four bytes are an int as well as a float.
        ("0009", "0008", false),
        ("0020 0009", "0020 0008", false),
        // A type of users that has grown takes values without the new field.
        (&one, &two, true),
    ] {
        let (before, after) = (with_marker(before), with_marker(after));
        play_everywhere(move |scene| {
            let (before, after) = (before.clone(), after.clone());
            async move {
                let (session, mut peer) = scene.connect(scene.config()).await;
                let insert = "INSERT INTO k.t (pk) VALUES (?)";
                let prepared = scene.prepare(&session, &mut peer, insert, &before).await;
                let call = scene.execute(&session, &prepared, (CqlValue::Null,));
                let request = peer.request().await;
                peer.answer(&request, UNPREPARED);
                let request = peer.request().await;
                assert_eq!(request.statement(), insert);
                peer.answer(&request, &after);
                if fits {
                    let request = peer.request().await;
                    assert_eq!(request.opcode, EXECUTE);
                    peer.answer(&request, VOID);
                    call.await.expect("VOID");
                    return;
                }
                let error = call.await.expect_err("other types");
                assert_eq!(
                    error.kind(),
                    ErrorKind::ApiMisuse(ApiMisuse::StaleStatement)
                );
                assert!(!error.may_have_been_applied());
                // Not from the statements kept: a node is asked.
                let anew = scene.prepare(&session, &mut peer, insert, &after).await;
                assert_ne!(anew.markers()[0].ty, prepared.markers()[0].ty);
            }
        });
    }
}
