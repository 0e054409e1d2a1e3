//! Requests beside the last step of a handshake, against each way in which that may go.

use super::*;
use crate::config::Routing;
use crate::conn::auth::{Authenticator, PlainAuthenticator};
use crate::drive::driver::{Driver, start};
use crate::drive::session::Session;
use crate::drive::statement::Statement;
use crate::error::{PeerIncompatible, TimeoutKind};
use crate::wire::response::ErrorCode;
use alloc::boxed::Box;
use alloc::string::ToString;

/// A frame of the node.
fn frame(stream: u8, opcode: Opcode, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(body.len()).unwrap();
    [&[0x84, 0, 0, stream, opcode as u8, 0, 0, 0, len], body].concat()
}

fn error(stream: u8, code: [u8; 4]) -> Vec<u8> {
    frame(stream, Opcode::Error, &[&code[..], &[0, 1, b'x']].concat())
}

fn authenticate(stream: u8) -> Vec<u8> {
    frame(stream, Opcode::Authenticate, &[0, 1, b'A'])
}

fn void(stream: u8) -> Vec<u8> {
    frame(stream, Opcode::Result, &[0, 0, 0, 1])
}

/// AUTH_SUCCESS with an empty token.
fn success() -> Vec<u8> {
    frame(0, Opcode::AuthSuccess, &[0xff; 4])
}

const PROTOCOL: [u8; 4] = [0, 0, 0, 0x0a];
const BAD_CREDENTIALS: [u8; 4] = [0, 0, 1, 0];
const SYNTAX: [u8; 4] = [0, 0, 0x20, 0];

/// Answers every challenge with its text.
#[derive(Debug)]
struct Parrot;

impl Authenticator for Parrot {
    fn initial_response(&self, _class: &str) -> Result<Vec<u8>, Error> {
        Ok(b"first".to_vec())
    }

    fn evaluate(&self, challenge: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        Ok(challenge.unwrap_or_default().to_vec())
    }
}

fn shared(authenticator: impl Authenticator + 'static) -> Shared<dyn Authenticator> {
    let boxed: Box<dyn Authenticator> = Box::new(authenticator);
    Shared::from(boxed)
}

impl Script {
    /// Streams and opcodes of the frames written since the last look.
    fn sent(&mut self) -> Vec<(i16, u8)> {
        let (mut sent, written) = (Vec::new(), core::mem::take(&mut self.written));
        let mut rest = &written[..];
        while let [_, _, high, low, opcode, _, _, _, len, body @ ..] = rest {
            sent.push((i16::from_be_bytes([*high, *low]), *opcode));
            rest = &body[usize::from(*len)..];
        }
        assert!(rest.is_empty(), "half a frame");
        sent
    }
}

const OPTIONS: (i16, u8) = (0, 5);

impl Bench {
    /// A handshake that may be early, up to where the node asks for a login.
    fn at_login() -> Self {
        let mut bench = Self::with(|_, handshake| {
            handshake.early = true;
            handshake.authenticator = Some(shared(Parrot));
        });
        assert!(bench.run().is_pending());
        bench.receive(SUPPORTED);
        assert!(bench.run().is_pending());
        assert_eq!(bench.script().sent(), [OPTIONS, (1, 1)]);
        bench.receive(&authenticate(1));
        assert!(bench.run().is_pending());
        assert_eq!(bench.script().sent(), [(0, 15)], "the token, on stream 0");
        assert!(bench.cell().is_early());
        bench
    }

    fn ask(&mut self) -> SlotKey {
        let key = self.submit(&self.cell(), Duration::from_secs(60), 4);
        assert!(self.run().is_pending());
        key
    }

    fn standing(cell: &Cell, key: SlotKey) -> Result<Opcode, Error> {
        match cell.poll_answer(key, Waker::noop()).unwrap() {
            Standing::Done(outcome) => outcome.map(|answer| answer.opcode),
            Standing::Pending => panic!("pending"),
            Standing::Expired => panic!("expired"),
        }
    }

    /// Whether the connection takes a request just now.
    fn takes(&self) -> bool {
        let head = RequestHead::new(Opcode::Options);
        let due = Instant::from_micros(60_000_000);
        let submitted = self.cell().submit(
            Waker::noop().clone(),
            due,
            head,
            Aim::None,
            None,
            &mut |_| Ok(()),
        );
        matches!(submitted, Ok(Submitted::Sent(_)))
    }
}

#[test]
fn a_request_goes_beside_the_token() {
    let mut bench = Bench::at_login();
    let key = bench.ask();
    assert_eq!(bench.script().sent(), [(1, 7)]);
    bench.receive(&[success(), void(1)].concat());
    assert!(bench.run().is_pending());
    assert_eq!(Bench::standing(&bench.cell(), key), Ok(Opcode::Result));
    // The handshake's time is over, and nobody minds.
    assert!(bench.pass(Duration::from_secs(6)).is_pending());
    assert!(bench.takes());
}

#[test]
fn answers_may_come_before_the_login_is_confirmed() {
    let mut bench = Bench::at_login();
    let key = bench.ask();
    bench.receive(&void(1));
    assert!(bench.run().is_pending());
    assert_eq!(Bench::standing(&bench.cell(), key), Ok(Opcode::Result));
    bench.receive(&success());
    assert!(bench.run().is_pending() && bench.takes());
}

#[test]
fn a_refused_login_is_the_error_of_all_requests_and_none_was_applied() {
    let mut bench = Bench::at_login();
    let (key, cell) = (bench.ask(), bench.cell());
    bench.receive(&error(0, BAD_CREDENTIALS));
    assert!(bench.run().is_ready());
    let failed = Bench::standing(&cell, key).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Server(ErrorCode::BadCredentials));
    assert_eq!(failed.applied(), Applied::No);
}

#[test]
fn a_link_that_breaks_leaves_open_what_was_applied() {
    let mut bench = Bench::at_login();
    let (key, cell) = (bench.ask(), bench.cell());
    bench.receive(&error(0, SYNTAX)[..4]);
    bench
        .script()
        .writes
        .push_back(Err(LinkError::CLOSED_BY_PEER));
    let _ = bench.submit(&cell, Duration::from_secs(60), 4);
    assert!(bench.run().is_ready());
    let failed = Bench::standing(&cell, key).unwrap_err();
    assert_eq!(failed.applied(), Applied::Unknown);
}

#[test]
fn after_a_refused_request_the_others_wait_for_the_login() {
    let mut bench = Bench::at_login();
    let key = bench.ask();
    bench.receive(&error(1, PROTOCOL));
    assert!(bench.run().is_pending());
    assert_eq!(Bench::standing(&bench.cell(), key), Ok(Opcode::Error));
    assert!(!bench.takes());
    bench.receive(&success());
    assert!(bench.run().is_pending());
    assert!(bench.takes());
}

#[test]
fn a_challenge_is_answered_and_nothing_goes_beside_it() {
    let mut bench = Bench::at_login();
    bench.receive(&frame(0, Opcode::AuthChallenge, &[0, 0, 0, 1, b'?']));
    assert!(bench.run().is_pending());
    assert_eq!(bench.script().sent(), [(0, 15)]);
    assert!(!bench.takes());
    bench.receive(&success());
    assert!(bench.run().is_pending());
    assert!(bench.takes());
}

#[test]
fn a_login_without_answer_ends_with_the_handshakes_time() {
    let mut bench = Bench::at_login();
    let (key, cell) = (bench.ask(), bench.cell());
    assert!(bench.pass(Duration::from_millis(4_999)).is_pending());
    assert!(bench.pass(Duration::from_millis(5_001)).is_ready());
    let failed = Bench::standing(&cell, key).unwrap_err();
    assert!(
        failed.to_string().contains("handshake"),
        "{failed}, {:?}",
        ErrorKind::Timeout(TimeoutKind::Handshake)
    );
}

#[test]
fn without_authenticator_a_request_goes_beside_startup() {
    for login in [false, true] {
        let mut bench = Bench::with(|_, handshake| handshake.early = true);
        assert!(bench.run().is_pending());
        bench.receive(SUPPORTED);
        assert!(bench.run().is_pending());
        assert_eq!(bench.script().sent(), [OPTIONS, (0, 1)]);
        let (key, cell) = (bench.ask(), bench.cell());
        assert_eq!(bench.script().sent(), [(1, 7)]);
        if login {
            bench.receive(&[authenticate(0), error(1, PROTOCOL)].concat());
            assert!(bench.run().is_ready());
            let failed = Bench::standing(&cell, key).unwrap_err();
            let missing = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
            assert_eq!((failed.kind(), failed.applied()), (missing, Applied::No));
        } else {
            bench.receive(&[frame(0, Opcode::Ready, &[]), void(1)].concat());
            assert!(bench.run().is_pending());
            assert_eq!(Bench::standing(&cell, key), Ok(Opcode::Result));
        }
    }
}

#[test]
fn a_node_that_wants_no_login_is_as_good() {
    let mut bench = Bench::with(|_, handshake| {
        handshake.early = true;
        handshake.authenticator = Some(shared(Parrot));
    });
    bench.receive(&[SUPPORTED, READY].concat());
    assert!(bench.run().is_pending());
    assert!(!bench.cell().is_early() && bench.takes());
}

/// A session over one scripted link, driven by hand.
struct Whole {
    transport: Scripted,
    session: Session,
    driver: Driver<Scripted>,
    task: ConnectionTask<Scripted>,
    /// The connection has ended.
    is_over: bool,
}

impl Whole {
    fn start(keyspace: Option<&str>) -> Self {
        let transport = Scripted::default();
        let mut config = Config::server();
        config.add_contact_points("127.0.0.1").unwrap();
        (config.routing, config.early_requests) = (Routing::Single, true);
        config.write_deferral = false;
        config.keyspace = keyspace.map(Into::into);
        config.authenticator = Some(shared(PlainAuthenticator::new("a", "b")));
        let (session, mut driver) = start(config, transport.clone(), &mut Zero).unwrap();
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(Some(task)) = driver.poll_next(cx) else {
            panic!("nothing is connected");
        };
        let mut whole = Self {
            transport,
            session,
            driver,
            task,
            is_over: false,
        };
        // A node that does not take everything at once is met again, step by step.
        whole
            .transport
            .link
            .0
            .borrow_mut()
            .incoming
            .extend(error(0, PROTOCOL));
        assert!(Pin::new(&mut whole.task).poll(cx).is_ready());
        assert_eq!(whole.sent(), [OPTIONS, (1, 1)]);
        let Poll::Ready(Some(task)) = whole.driver.poll_next(cx) else {
            panic!("it is not met again");
        };
        whole.task = task;
        whole.receive(&[SUPPORTED, &authenticate(1)].concat());
        whole
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.transport.link.0.borrow_mut().incoming.extend(bytes);
        self.turn();
    }

    fn turn(&mut self) {
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..4 {
            if !self.is_over {
                self.is_over = Pin::new(&mut self.task).poll(cx).is_ready();
            }
            assert!(!matches!(self.driver.poll_next(cx), Poll::Ready(Some(_))));
        }
    }

    fn sent(&self) -> Vec<(i16, u8)> {
        self.transport.link.0.borrow_mut().sent()
    }
}

/// No chance at all.
struct Zero;

impl rand_core::TryRng for Zero {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> {
        to.fill(0);
        Ok(())
    }
}

/// The node refuses what came too early: it is sent once more behind the login, once.
#[test]
fn what_was_refused_as_too_early_is_sent_again() {
    for again in [void(1), error(1, PROTOCOL)] {
        let mut whole = Whole::start(None);
        whole.sent();
        let session = whole.session.clone();
        let mut query = Box::pin(async move {
            let text = Statement::new("INSERT");
            session.query_unprepared(text).await
        });
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(query.as_mut().poll(cx).is_pending());
        whole.turn();
        assert_eq!(whole.sent(), [(1, 7)]);
        whole.receive(&error(1, PROTOCOL));
        assert!(query.as_mut().poll(cx).is_pending());
        whole.turn();
        assert_eq!(whole.sent(), [], "not before the login is over");
        whole.receive(&success());
        assert!(query.as_mut().poll(cx).is_pending());
        whole.turn();
        assert_eq!(whole.sent(), [(1, 7)]);
        whole.receive(&again);
        let Poll::Ready(outcome) = query.as_mut().poll(cx) else {
            panic!("answered twice");
        };
        assert_eq!(outcome.is_ok(), again == void(1));
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Server(ErrorCode::Protocol));
        }
    }
}

/// A session that is closed has accepted what it was asked before: that is sent again too, and the
/// connection ends behind its answer.
#[test]
fn what_was_refused_as_too_early_is_sent_again_by_a_session_that_closes() {
    // The answers in one go, one by one, and with the caller looking in between.
    for (at_once, looks) in [(true, false), (false, false), (false, true)] {
        let mut whole = Whole::start(None);
        whole.sent();
        let session = whole.session.clone();
        let mut query = Box::pin(async move { session.query_unprepared("INSERT").await });
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(query.as_mut().poll(cx).is_pending());
        whole.turn();
        assert_eq!(whole.sent(), [(1, 7)]);
        let session = whole.session.clone();
        let mut close = Box::pin(async move { session.close().await });
        assert!(close.as_mut().poll(cx).is_pending());
        whole.turn();
        if at_once {
            whole.receive(&[error(1, PROTOCOL), success()].concat());
        } else {
            whole.receive(&error(1, PROTOCOL));
            if looks {
                assert!(query.as_mut().poll(cx).is_pending());
                whole.turn();
            }
            whole.receive(&success());
        }
        assert!(!whole.is_over, "before the request came again");
        assert!(query.as_mut().poll(cx).is_pending());
        // Granted at once where the login is over already.
        let _ = query.as_mut().poll(cx);
        whole.turn();
        assert_eq!(whole.sent(), [(1, 7)]);
        assert!(!whole.is_over, "before it is answered");
        whole.receive(&void(1));
        let answered = query.as_mut().poll(cx);
        assert!(matches!(answered, Poll::Ready(Ok(_))), "{answered:?}");
        whole.turn();
        assert!(whole.is_over);
        assert!(close.as_mut().poll(cx).is_ready());
    }
}

/// A caller that is not polled any more keeps a closing session no longer than its time limit.
#[test]
fn a_closing_session_waits_for_repeats_no_longer_than_their_time() {
    let mut bench = Bench::at_login();
    let cell = bench.cell();
    let _key = bench.submit(&cell, Duration::from_secs(20), 4);
    assert!(bench.run().is_pending());
    cell.request_close(true);
    bench.receive(&[error(1, PROTOCOL), success()].concat());
    assert!(bench.run().is_pending());
    assert!(bench.pass(Duration::from_secs(19)).is_pending());
    assert!(bench.pass(Duration::from_secs(21)).is_ready());
}

/// The same for the keyspace, before which no request is sent.
#[test]
fn a_keyspace_refused_as_too_early_is_set_behind_the_login() {
    let mut whole = Whole::start(Some("ks"));
    assert_eq!(whole.sent(), [OPTIONS, (1, 1), (0, 15), (1, 7)]);
    whole.receive(&error(1, PROTOCOL));
    assert_eq!(whole.sent(), []);
    whole.receive(&success());
    assert_eq!(whole.sent(), [(1, 7)]);
    let cx = &mut Context::from_waker(Waker::noop());
    let session = whole.session.clone();
    let mut ready = Box::pin(async move { session.ready().await });
    assert!(ready.as_mut().poll(cx).is_pending());
    whole.receive(&frame(1, Opcode::Result, &[0, 0, 0, 3, 0, 2, b'k', b's']));
    assert_eq!(ready.as_mut().poll(cx), Poll::Ready(Ok(())));
}

/// The first login that is refused ends the session, and that is what everybody hears.
#[test]
fn a_wrong_password_ends_the_session() {
    let mut whole = Whole::start(None);
    let cx = &mut Context::from_waker(Waker::noop());
    let session = whole.session.clone();
    let mut query = Box::pin(async move { session.query_unprepared("SELECT").await });
    assert!(query.as_mut().poll(cx).is_pending());
    whole.receive(&error(0, BAD_CREDENTIALS));
    let refused = ErrorKind::Server(ErrorCode::BadCredentials);
    let Poll::Ready(Err(error)) = query.as_mut().poll(cx) else {
        panic!("no error");
    };
    assert_eq!((error.kind(), error.applied()), (refused, Applied::No));
    let session = whole.session.clone();
    let mut query = Box::pin(async move { session.query_unprepared("SELECT").await });
    let Poll::Ready(Err(error)) = query.as_mut().poll(cx) else {
        panic!("no error");
    };
    assert_eq!(error.kind(), refused);
}
