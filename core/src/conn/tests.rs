//! A whole connection: what its parts must agree on.

use core::time::Duration;
use std::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::*;

const NEVER: Instant = Instant::FAR_FUTURE;
const START: Instant = Instant::from_micros(1);

fn connection(in_flight: u16, pending_bytes: usize) -> Connection<char> {
    let limits = ConnectionLimits {
        in_flight,
        pending_bytes,
        ..ConnectionLimits::default()
    };
    Connection::new(ProtocolVersion::V4, limits, START)
}

fn submit(connection: &mut Connection<char>, caller: char) -> Option<SlotKey> {
    let head = RequestHead::new(Opcode::Query);
    connection
        .submit::<EncodeError>(caller, NEVER, head, |_| Ok(()))
        .ok()
}

/// A VOID result.
fn answer(connection: &mut Connection<char>, key: SlotKey) {
    let header = FrameHeader {
        version: ProtocolVersion::V4,
        flags: Flags::NONE,
        stream: i16::try_from(key.stream_id()).unwrap(),
        opcode: Opcode::Result,
        body_len: 4,
    };
    let body = Bytes::from_static(&[0, 0, 0, 1]);
    connection
        .handle_frame(START, &header, body, |_| {})
        .unwrap();
}

#[test]
fn a_heartbeat_does_not_take_the_id_that_was_granted() {
    let mut connection = connection(1, 1000);
    let key = submit(&mut connection, 'a').unwrap();
    let ticket = connection.wait('b', NEVER, |_| {}).unwrap();
    answer(&mut connection, key);
    let mut told = Vec::new();
    assert!(matches!(
        connection.poll_answer(key, |caller| told.push(caller)),
        Outcome::Done(Ok(_))
    ));
    assert_eq!(told, ['b']);
    let interval = connection.limits.heartbeat_interval;
    let due = START.saturating_add(interval);
    connection.handle_timeout(due, |_| {}).unwrap();
    assert_eq!(connection.in_use(), 0);
    assert!(connection.poll_timeout() > due);
    assert_eq!(connection.poll_turn(ticket), Ok(Turn::Granted));
    let head = RequestHead::new(Opcode::Query);
    let sent = connection.submit_granted::<EncodeError>(ticket, 'b', NEVER, head, |_| Ok(()));
    assert!(sent.is_ok());
}

#[test]
fn an_outcome_taken_grants_nothing_while_too_many_bytes_wait() {
    let mut connection = connection(2, 1);
    let key = submit(&mut connection, 'a').unwrap();
    connection.swap_output(&mut BytesMut::new(), |_| {});
    let second = submit(&mut connection, 'b');
    assert!(second.is_some());
    let mut told = Vec::new();
    connection
        .wait('c', NEVER, |caller| told.push(caller))
        .unwrap();
    answer(&mut connection, key);
    let outcome = connection.poll_answer(key, |caller| told.push(caller));
    assert!(matches!(outcome, Outcome::Done(Ok(_))));
    assert_eq!(told, [], "one frame waits already");
    connection.swap_output(&mut BytesMut::new(), |caller| told.push(caller));
    assert_eq!(told, ['c']);
    assert!(connection.poll_timeout() <= START.saturating_add(Duration::from_secs(30)));
}
