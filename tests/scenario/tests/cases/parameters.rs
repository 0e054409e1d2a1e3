//! What an EXECUTE carries besides its values: each byte says something, or is not sent.

use messina_scenario::frame::{VOID, response, string};
use messina_scenario::{hex, play_everywhere};

const MARK: &str = "SCYLLA_LWT_ADD_METADATA_MARK";
const MASK: &str = "LWT_OPTIMIZATION_META_BIT_MASK=2147483648";

/// The list of SUPPORTED with the metadata id, and the mark of conditional statements if asked for.
fn supported(has_mark: bool) -> Vec<u8> {
    let metadata_id = [string("SCYLLA_USE_METADATA_ID"), hex("0001 0000")].concat();
    if !has_mark {
        return [hex("0001"), metadata_id].concat();
    }
    let mark = [string(MARK), hex("0001"), string(MASK)].concat();
    [hex("0002"), mark, metadata_id].concat()
}

/// PREPARED id bb, result id 05, without markers and columns; marked as conditional or not.
fn prepared(is_marked: bool) -> String {
    let flags = if is_marked { "80000000" } else { "00000000" };
    let body = format!("00000004 0001bb 000105 {flags} 00000000 00000000 00000004 00000000");
    let frame = response(1, 8, &hex(&body));
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads have their serial level as the consistency itself and write no time. Writes have no pages,
/// and without a condition no rows and no serial level; whether there is a condition only a server
/// tells that marks them, and of batches in one text none does.
#[test]
fn a_request_carries_what_says_something() {
    // Of the server: marks conditional statements, marked this one. Of the request: result id,
    // page size, serial consistency, timestamp.
    for (text, has_mark, is_marked, expected) in [
        ("SELECT v FROM k.t", true, false, (true, true, false, false)),
        (
            "SELECT v FROM k.t",
            false,
            false,
            (true, true, false, false),
        ),
        ("INSERT 1", true, false, (false, false, false, true)),
        ("UPDATE 1", true, false, (false, false, false, true)),
        ("DELETE 1", true, false, (false, false, false, true)),
        ("INSERT 1", true, true, (true, false, true, true)),
        ("INSERT 1", false, false, (true, false, true, true)),
        ("BEGIN BATCH", true, false, (true, false, true, true)),
        ("LIST ROLES", true, false, (true, true, true, true)),
    ] {
        play_everywhere(move |scene| async move {
            let scene = scene.with_supported(supported(has_mark));
            let mut config = scene.config();
            config.page_size = Some(100);
            config.client_timestamps = true;
            let (session, mut peer) = scene.connect(config).await;
            let answer = prepared(is_marked);
            let prepared = scene.prepare(&session, &mut peer, text, &answer).await;
            let call = scene.execute(&session, &prepared, ());
            let request = peer.request().await;
            let execute = request.execute(true);
            let saw = (
                execute.metadata_id == Some(vec![5]),
                execute.page_size == Some(100),
                execute.serial_consistency == Some(9),
                execute.has_timestamp,
            );
            assert_eq!(saw, expected, "{text}, {has_mark}, {is_marked}");
            if !expected.0 {
                assert_eq!(execute.metadata_id, Some(Vec::new()));
            }
            assert_eq!(execute.page_size.is_some(), expected.1);
            assert_eq!(execute.serial_consistency.is_some(), expected.2);
            peer.answer(&request, VOID);
            call.await.expect("VOID");
        });
    }
}

/// What the caller says of a statement is sent, where it can mean something.
#[test]
fn a_level_and_a_time_of_the_callers_are_sent() {
    play_everywhere(|scene| async move {
        let scene = scene.with_supported(supported(true));
        let (session, mut peer) = scene.connect(scene.config()).await;
        let answer = prepared(true);
        let prepared = scene
            .prepare(&session, &mut peer, "INSERT 1", &answer)
            .await;
        let level = messina_core::wire::SerialConsistency::Serial;
        let prepared = prepared.with_serial_consistency(level).with_timestamp(7);
        let call = scene.execute(&session, &prepared, ());
        let request = peer.request().await;
        let execute = request.execute(true);
        assert_eq!(execute.serial_consistency, Some(8));
        assert!(execute.has_timestamp);
        peer.answer(&request, VOID);
        call.await.expect("VOID");
    });
}
