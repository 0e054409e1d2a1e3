//! Short names for what many cases ask.

use core::time::Duration;

use messina_core::drive::{ConnectionStatus, QueryResult, Session, Statement};
use messina_core::error::{Error, ErrorKind};
use messina_scenario::{Peer, Scene};

/// A statement that the cases do not care about.
pub(crate) const SELECT: &str = "SELECT v FROM k.t";

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The statement, given up after a tenth of a second.
pub(crate) fn hasty() -> Statement<'static> {
    Statement::new(SELECT).with_timeout(millis(100))
}

/// The only value of the only row.
pub(crate) fn value(result: Result<QueryResult, Error>) -> i32 {
    let (value,) = result.expect("an answer").single_row().expect("one row");
    value
}

pub(crate) fn kind(result: Result<QueryResult, Error>) -> ErrorKind {
    result.expect_err("an error").kind()
}

/// The session's only connection.
pub(crate) fn only_connection(session: &Session) -> ConnectionStatus {
    let status = session.status();
    assert_eq!(status.connections(), 1);
    status.nodes[0].connections[0].clone()
}

/// The connection still answers requests.
pub(crate) async fn check_works(scene: &Scene, session: &Session, peer: &mut Peer) {
    let call = scene.query(session, SELECT);
    let request = peer.request().await;
    peer.answer(&request, messina_scenario::frame::ROW_2);
    assert_eq!(value(call.await), 2);
}

/// The session opens another link to the first node, and requests work over it.
pub(crate) async fn check_reconnects(scene: &Scene, session: &Session) -> Peer {
    let mut peer = scene.ready(1).await;
    check_works(scene, session, &mut peer).await;
    peer
}
