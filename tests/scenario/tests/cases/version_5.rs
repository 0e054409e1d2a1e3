//! What requests and answers of protocol 5 have beyond those of 4.

use messina_core::drive::{Batch, Session, Statement};
use messina_core::error::{Applied, EncodeFailure, Error, ErrorKind};
use messina_scenario::frame::{BATCH, EXECUTE, PREPARE, QUERY, VOID};
use messina_scenario::{Peer, Scene, hex, play_everywhere};

use super::support::{SELECT, check_works, only_connection};

/// PROTOCOL_VERSIONS=5/v5.
const OFFER: &str = "0001 0011 50524f544f434f4c5f56455253494f4e53 0001 0004 352f7635";
/// "SELECT v FROM k.t" behind its length.
const TEXT: &str = "00000011 53454c45435420762046524f4d206b2e74";
/// A keyspace `ks2` and 1000 seconds.
const KEYSPACE: &str = "0003 6b7332";
const NOW: &str = "000003e8";
/// PREPARED id bb, result id 05, no columns: the statement brings rows all the same.
const PREPARED: &str = "85000001080000001e000000040001bb000105\
                        0000000000000000000000000000000400000000";
/// UNPREPARED bb.
const UNPREPARED: &str = "85000001000000000a 00002500 000178 0001bb";
/// Rows with one column, v = 1, and the new result id 06.
const CHANGED: &str = "85000005080000002600000002000000090000000100010600016b000174000176\
                       0009000000010000000400000001";

async fn connect(scene: &Scene) -> (Session, Peer) {
    let (session, peer) = scene.connect(scene.config()).await;
    assert_eq!(only_connection(&session).protocol, 5);
    (session, peer)
}

fn statement() -> Statement<'static> {
    Statement::new(SELECT)
        .with_keyspace("ks2")
        .with_now_in_seconds(1000)
}

fn parts(parts: &[&str]) -> Vec<u8> {
    parts.iter().flat_map(|part| hex(part)).collect()
}

#[test]
fn keyspace_and_now_stand_behind_all_others() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, mut peer) = connect(&scene).await;
        for (statement, flags, tail) in [
            (statement(), "00000190", &["0009", KEYSPACE, NOW][..]),
            (
                Statement::new(SELECT)
                    .with_keyspace("ks2")
                    .with_timestamp(7),
                "000000b0",
                &["0009", "0000000000000007", KEYSPACE],
            ),
            (
                Statement::new(SELECT).with_now_in_seconds(1000),
                "00000110",
                &["0009", NOW],
            ),
            (Statement::new(SELECT), "00000010", &["0009"]),
        ] {
            let call = scene.query(&session, statement);
            let request = peer.request().await;
            assert_eq!(request.opcode, QUERY);
            let expected = [parts(&[TEXT, "0006", flags]), parts(tail)].concat();
            assert_eq!(request.body, expected);
            peer.answer(&request, VOID);
            call.await.expect("VOID");
        }

        let mut batch = Batch::unlogged()
            .with_keyspace("ks2")
            .with_now_in_seconds(1000);
        batch.push_text(SELECT).expect("fits");
        let call = scene.batch(&session, &batch);
        let request = peer.request().await;
        assert_eq!(request.opcode, BATCH);
        let expected = ["01 0001 00", TEXT, "0000 0006 00000190 0009", KEYSPACE, NOW];
        assert_eq!(request.body, parts(&expected));
        peer.answer(&request, VOID);
        call.await.expect("VOID");
    });
}

#[test]
fn a_statement_is_given_back_for_the_keyspace_it_was_prepared_for() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(hex(OFFER));
        let (session, mut peer) = connect(&scene).await;
        let (of_session, of_ks2) = (
            parts(&[TEXT, "00000000"]),
            parts(&[TEXT, "00000001", KEYSPACE]),
        );
        // One text for two keyspaces: two statements.
        for (statement, expected) in [
            (statement(), &of_ks2),
            (Statement::new(SELECT), &of_session),
        ] {
            let call = scene.call({
                let session = session.clone();
                async move { session.prepare(statement).await }
            });
            let request = peer.request().await;
            assert_eq!((request.opcode, &request.body), (PREPARE, expected));
            peer.answer(&request, PREPARED);
            call.await.expect("prepared");
        }
        // Both are kept.
        let prepared = session.prepare(statement()).await.expect("kept");
        session.prepare(SELECT).await.expect("kept");

        let call = scene.execute(&session, &prepared, ());
        let execute = peer.request().await;
        assert_eq!(execute.opcode, EXECUTE);
        let expected = parts(&["0001 bb 0001 05 0006 00000100", NOW]);
        assert_eq!(execute.body, expected, "no keyspace here");
        peer.answer(&execute, UNPREPARED);
        let request = peer.request().await;
        assert_eq!((request.opcode, &request.body), (PREPARE, &of_ks2));
        peer.answer(&request, PREPARED);
        let again = peer.request().await;
        assert_eq!(again.body, execute.body);

        // The node tells of other columns; they and their id are kept.
        peer.answer(&again, CHANGED);
        let (v,): (i32,) = call.await.expect("rows").single_row().expect("a row");
        assert_eq!(v, 1);
        let call = scene.execute(&session, &prepared, ());
        let request = peer.request().await;
        assert_eq!(request.body[..6], hex("0001 bb 0001 06"));
        peer.answer(&request, CHANGED);
        call.await.expect("rows");
    });
}

#[test]
fn what_version_4_does_not_have_is_refused_before_anything_is_sent() {
    fn check(outcome: Result<(), Error>) {
        let error = outcome.expect_err("not in version 4");
        assert_eq!(error.kind(), ErrorKind::Encode(EncodeFailure::Request));
        assert_eq!(error.applied(), Applied::No);
        assert!(error.to_string().contains("not in protocol v4"), "{error}");
    }
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        assert_eq!(only_connection(&session).protocol, 4);
        for statement in [
            Statement::new(SELECT).with_keyspace("ks2"),
            Statement::new(SELECT).with_now_in_seconds(1),
        ] {
            check(scene.query(&session, statement).await.map(drop));
        }
        let of_keyspace = Statement::new(SELECT).with_keyspace("ks2");
        check(session.prepare(of_keyspace).await.map(drop));
        let mut batch = Batch::logged().with_now_in_seconds(1);
        batch.push_text(SELECT).expect("fits");
        check(scene.batch(&session, &batch).await.map(drop));
        assert!(!peer.has_request());
        check_works(&scene, &session, &mut peer).await;
    });
}
