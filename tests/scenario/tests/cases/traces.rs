//! The server's trace of a request, read while it is written.

use core::net::IpAddr;
use core::time::Duration;

use messina_core::drive::{Session, Trace};
use messina_core::error::Error;
use messina_scenario::frame::{EXECUTE, PREPARE, response, rows};
use messina_scenario::{Call, Peer, Scene, Value, hex, play_everywhere};
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);

/// PREPARED for one marker session_id uuid, without columns: they come with the rows.
const PREPARED: &str = "00000004 0001aa 00000001 00000001 00000001 0000 00016b 000174 \
    000a73657373696f6e5f6964 000c 00000004 00000000";

const INT: &[u8] = &[0, 0x09];
const TEXT: &[u8] = &[0, 0x0d];
const INET: &[u8] = &[0, 0x10];
const TIMESTAMP: &[u8] = &[0, 0x0b];

/// The node's answer to the two statements.
fn session_rows(duration: Option<i32>) -> Vec<u8> {
    let columns = [
        ("duration", INT),
        ("request", TEXT),
        ("coordinator", INET),
        ("started_at", TIMESTAMP),
    ];
    let row = vec![
        duration.map(|micros| micros.to_be_bytes().to_vec()),
        Some(b"Execute CQL3 query".to_vec()),
        Some(vec![10, 0, 0, 1]),
        Some(7_i64.to_be_bytes().to_vec()),
    ];
    rows(&columns, &[row])
}

fn event_rows() -> Vec<u8> {
    let columns = [
        ("activity", TEXT),
        ("source", INET),
        ("source_elapsed", INT),
        ("thread", TEXT),
    ];
    let event = |activity: &str, elapsed: i32| {
        vec![
            Some(activity.as_bytes().to_vec()),
            Some(vec![10, 0, 0, 1]),
            Some(elapsed.to_be_bytes().to_vec()),
            Some(b"shard 0".to_vec()),
        ]
    };
    rows(
        &columns,
        &[event("Parsing a statement", 1), event("Done", 250)],
    )
}

fn ask(scene: &Scene, session: &Session) -> Call<Result<Trace, Error>> {
    let session = session.clone();
    scene.call(async move { session.trace(ID).await })
}

/// Prepares if that is asked for, then answers the EXECUTE.
async fn answer(peer: &mut Peer, body: &[u8]) {
    let mut request = peer.request().await;
    if request.opcode == PREPARE {
        peer.send(&response(request.stream, 8, &hex(PREPARED)));
        request = peer.request().await;
    }
    assert_eq!(request.opcode, EXECUTE);
    let execute = request.execute(false);
    assert_eq!(execute.consistency, 0x0001, "ONE");
    assert_eq!(execute.values, [Value::Bytes(ID.as_bytes().to_vec())]);
    peer.send(&response(request.stream, 8, body));
}

#[test]
fn a_trace_is_complete_once_it_has_a_duration() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        // Nothing is written yet.
        let call = ask(&scene, &session);
        answer(
            &mut peer,
            &rows(
                &[
                    ("duration", INT),
                    ("request", TEXT),
                    ("coordinator", INET),
                    ("started_at", TIMESTAMP),
                ],
                &[],
            ),
        )
        .await;
        assert_eq!(call.await.expect("no trace"), Trace::default());

        for duration in [None, Some(250)] {
            let call = ask(&scene, &session);
            answer(&mut peer, &session_rows(duration)).await;
            answer(&mut peer, &event_rows()).await;
            let trace = call.await.expect("a trace");
            let micros = |micros| Duration::from_micros(micros);
            assert_eq!(trace.duration, duration.map(|_| micros(250)));
            assert_eq!(trace.request.as_deref(), Some("Execute CQL3 query"));
            assert_eq!(trace.coordinator, Some(IpAddr::from([10, 0, 0, 1])));
            assert_eq!(trace.started_at.map(|at| at.milliseconds), Some(7));
            let events = trace.events.iter();
            let events: Vec<_> = events
                .map(|event| (event.activity.as_deref(), event.source_elapsed))
                .collect();
            let expected = [
                (Some("Parsing a statement"), Some(micros(1))),
                (Some("Done"), Some(micros(250))),
            ];
            assert_eq!(events, expected);
        }
    });
}
