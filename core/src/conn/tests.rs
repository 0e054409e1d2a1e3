//! A whole connection: what its parts must agree on.

use core::time::Duration;
use std::vec::Vec;

use bytes::BytesMut;

use super::ending::closed_by_us;
use super::*;
use crate::error::{LinkError, TimeoutKind};
use crate::wire::EncodeError;

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
    let body = Body::from_slice(&[0, 0, 0, 1]);
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

type Named = Connection<Option<char>>;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn named(limits: ConnectionLimits) -> Named {
    Connection::new(ProtocolVersion::V4, limits, at(0))
}

fn one_id() -> Named {
    named(ConnectionLimits {
        in_flight: 1,
        ..ConnectionLimits::default()
    })
}

fn put(connection: &mut Named, name: char) -> SlotKey {
    connection
        .submit(Some(name), NEVER, RequestHead::new(Opcode::Query), |sink| {
            sink.extend_from_slice(&[0]);
            Ok::<_, EncodeError>(())
        })
        .unwrap()
}

/// The answer to stream 1; whoever was told.
fn answer_first(connection: &mut Named) -> Vec<char> {
    let header = FrameHeader {
        version: ProtocolVersion::V4,
        flags: Flags::NONE,
        stream: 1,
        opcode: Opcode::Result,
        body_len: 4,
    };
    let (body, mut told) = (Body::from_slice(&[0, 0, 0, 1]), Vec::new());
    connection
        .handle_frame(at(1), &header, body, |name| told.extend(name))
        .unwrap();
    told
}

fn take(connection: &mut Named, key: SlotKey) -> Vec<char> {
    let mut told = Vec::new();
    let outcome = connection.poll_answer(key, |name| told.extend(name));
    assert!(matches!(outcome, Outcome::Done(Ok(_))));
    told
}

#[test]
fn a_drain_waits_for_answers_and_not_for_callers_to_look() {
    let mut connection = one_id();
    let key = put(&mut connection, 'a');
    connection.swap_output(&mut BytesMut::new(), |_| {});
    connection.drain();
    assert!(!connection.is_drained());
    answer_first(&mut connection);
    assert!(connection.is_drained());
    take(&mut connection, key);
    assert!(connection.is_drained());
}

#[test]
fn a_draining_connection_lets_nobody_join_the_queue() {
    let mut connection = one_id();
    put(&mut connection, 'a');
    connection.drain();
    let (name, error) = connection.wait(Some('b'), NEVER, |_| {}).unwrap_err();
    assert_eq!((name, error), (Some('b'), closed_by_us()));
}

#[test]
fn a_grant_that_nobody_looks_at_passes_on_at_its_deadline() {
    let mut connection = one_id();
    let key = put(&mut connection, 'a');
    let late = connection.wait(Some('b'), at(5), |_| {}).unwrap();
    let next = connection.wait(Some('c'), NEVER, |_| {}).unwrap();
    answer_first(&mut connection);
    assert_eq!(take(&mut connection, key), ['b']);
    assert_eq!(connection.poll_timeout(), at(5));
    let mut told = Vec::new();
    connection
        .handle_timeout(at(5), |name| told.extend(name))
        .unwrap();
    assert_eq!(told, ['c']);
    assert_eq!(connection.poll_turn(next), Ok(Turn::Granted));
    assert_eq!(connection.poll_turn(late), Ok(Turn::Expired));
}

/// Whatever ended the connection was not about these requests: each fails with an error of the
/// kinds that go on to the next target, if it may not have been applied or may be repeated.
#[test]
fn requests_of_a_lost_connection_go_elsewhere_if_they_may() {
    let overloaded = [0, 0, 0x10, 1, 0, 1, b'x'];
    for cause in [
        Error::new(ErrorKind::Timeout(TimeoutKind::Heartbeat)),
        Error::new(ErrorKind::Limit(LimitField::Orphans)),
        Error::new(ErrorKind::Limit(LimitField::FrameLen)),
        PeerMisbehaved::BadHeader.into(),
        LinkError::CLOSED_BY_PEER.into(),
        connection_error(ProtocolVersion::V4, &[0, 0, 0, 0, 0, 1, b'x']),
        connection_error(ProtocolVersion::V4, &[0, 0, 0, 10, 0, 1, b'x']),
        connection_error(ProtocolVersion::V4, &overloaded),
    ] {
        let mut connection = named(ConnectionLimits::default());
        let sent = put(&mut connection, 'a');
        let unsent = put(&mut connection, 'b');
        connection.handle_written(1);
        connection.close(&cause, |_| {});
        let refused = connection.wait(None, NEVER, |_| {}).unwrap_err().1;
        let mut outcome = |key| match connection.poll_answer(key, |_| {}) {
            Outcome::Done(Err(error)) => error,
            other => panic!("{other:?}"),
        };
        let (sent, unsent) = (outcome(sent), outcome(unsent));
        for (error, applied) in [
            (&sent, Applied::Unknown),
            (&unsent, Applied::No),
            (&refused, Applied::No),
        ] {
            assert_eq!(error.applied(), applied, "{cause:?}");
            let goes_on = matches!(
                error.kind(),
                ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_) | ErrorKind::Busy
            );
            assert!(goes_on, "{cause:?} {error:?}");
        }
    }
}

#[test]
fn a_closed_connection_says_why() {
    let mut connection = named(ConnectionLimits::default());
    assert_eq!(connection.over(), None);
    let cause = Error::from(LinkError::CLOSED_BY_PEER);
    connection.close(&cause, |_| {});
    assert_eq!(connection.over().map(Error::kind), Some(cause.kind()));
}

/// Limit 2, age 1 second: the third orphan starts the watch, and a fourth does not put it off.
#[test]
fn orphans_beyond_their_number_and_age_end_the_connection() {
    let limits = ConnectionLimits {
        orphans: 2,
        ..ConnectionLimits::default()
    };
    let due = at(1_000_000 + 30 + 1);
    for (given_up, watched) in [(2, false), (3, true), (4, true)] {
        let mut connection = named(limits);
        for number in 1..=given_up {
            let key = put(&mut connection, 'a');
            connection.cancel(key, at(10 * number), |_| {});
        }
        assert_eq!(connection.poll_timeout() == due, watched, "{given_up}");
        let before = at(1_000_000 + 30);
        assert_eq!(connection.handle_timeout(before, |_| {}), Ok(()));
        let outcome = connection.handle_timeout(due, |_| {});
        let over = Err(Error::new(ErrorKind::Limit(LimitField::Orphans)));
        assert_eq!(outcome, if watched { over } else { Ok(()) }, "{given_up}");
    }
}

/// The same three orphans, one of which is answered in time: nothing is wrong, and a later one
/// starts a new watch.
#[test]
fn orphans_that_are_answered_in_time_are_forgiven() {
    let mut connection = named(ConnectionLimits {
        orphans: 2,
        ..ConnectionLimits::default()
    });
    for _ in 0..3 {
        let key = put(&mut connection, 'a');
        connection.cancel(key, at(0), |_| {});
    }
    answer_first(&mut connection);
    let due = at(1_000_001);
    assert_eq!(connection.handle_timeout(due, |_| {}), Ok(()));
    assert!(
        connection.poll_timeout() > at(2_000_000),
        "no watch is left"
    );
    let key = put(&mut connection, 'a');
    connection.cancel(key, due, |_| {});
    assert_eq!(connection.poll_timeout(), at(2_000_002));
}

#[cfg(feature = "lz4")]
#[test]
fn long_requests_are_compressed_once_that_is_agreed() {
    for (compression, flags) in [(None, 0), (Some(Compression::Lz4), 1)] {
        let mut connection = named(ConnectionLimits::default());
        connection.set_compression(compression);
        let head = RequestHead::new(Opcode::Query);
        let sent = connection.submit(None, NEVER, head, |sink| {
            sink.extend_from_slice(&[7; 1000]);
            Ok::<_, EncodeError>(())
        });
        assert!(sent.is_ok());
        let mut output = BytesMut::new();
        connection.swap_output(&mut output, |_| {});
        assert_eq!(output[..5], [4, flags, 0, 1, 7]);
        assert_eq!(output.len() < 1009, compression.is_some());
    }
}
