//! How a connection comes to its end, or takes nothing for a while.

use bytes::BytesMut;

use super::negotiate::HAS_EARLY_REQUESTS;
use super::submitting::is_refusal_of_early;
use super::{Connection, Owner};
use crate::error::{Applied, Error, ErrorKind, LinkError, LinkErrorKind};
use crate::time::Instant;

impl<S: Default, const WAITING: bool> Connection<S, WAITING> {
    /// Takes no more requests; those under way finish.
    pub const fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether a drained connection has nothing left to do. Outcomes that were not taken yet can
    /// be taken when it is over as well.
    pub fn is_drained(&self) -> bool {
        self.draining
            && self.output.is_empty()
            && self.waiters.is_empty()
            && !self.streams.any_pending()
            && !self.awaits_repeats()
    }

    /// Whether a caller whose request was refused as too early has not come again yet.
    fn awaits_repeats(&self) -> bool {
        let version = self.version;
        HAS_EARLY_REQUESTS
            && self.repeats_until > Instant::ZERO
            && self
                .streams
                .any_answered(|answer| is_refusal_of_early(version, answer))
    }

    /// Takes no new request until [`Connection::release`]; they may wait.
    pub const fn hold(&mut self) {
        self.was_held = true;
        self.is_held = true;
    }

    /// Requests are taken again.
    pub fn release(&mut self, mut tell: impl FnMut(S)) {
        self.is_held = false;
        self.grant(&mut tell);
    }

    /// The node refused the connection in its handshake, so it has done nothing of what was sent.
    /// All requests fail with the cause.
    pub fn refuse(&mut self, error: &Error, tell: impl FnMut(S)) {
        let error = error.clone().with_applied(Applied::No);
        self.end(&error, Applied::No, tell);
    }

    /// The connection is over. Requests that were partly written may have been applied, the
    /// others were not. Their error is that of a broken link, whatever the cause: a limit or an
    /// error of the server that ended the connection was not about them, and they may be tried
    /// elsewhere under the rules of lost requests.
    pub fn close(&mut self, error: &Error, tell: impl FnMut(S)) {
        self.end(&lost(error), Applied::Unknown, tell);
    }

    /// What was partly written is marked as `written`.
    fn end(&mut self, error: &Error, written: Applied, mut tell: impl FnMut(S)) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(error.clone());
        let fail = |partly: bool| {
            let applied = if partly { written } else { Applied::No };
            error.clone().with_applied(applied)
        };
        self.streams.fail_all(self.written, fail, |owner| {
            if let Owner::Caller(caller) = owner {
                tell(caller);
            }
        });
        if WAITING {
            self.waiters.fail_all(tell);
        }
        self.output = BytesMut::new();
    }

    /// Why the connection is over, if it is.
    pub const fn over(&self) -> Option<&Error> {
        self.over.as_ref()
    }
}

/// What requests learn of the end of their connection. Nothing of them was written, unless the
/// error is marked otherwise.
fn lost(cause: &Error) -> Error {
    let error = match cause.kind() {
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_) => cause.clone(),
        _ => {
            let kind = ErrorKind::Link(LinkError::new(LinkErrorKind::ClosedByUs));
            Error::caused_by(kind, cause.clone())
        }
    };
    error.with_applied(Applied::No)
}

pub(super) fn closed_by_us() -> Error {
    Error::new(ErrorKind::Link(LinkError::new(LinkErrorKind::ClosedByUs)))
}
