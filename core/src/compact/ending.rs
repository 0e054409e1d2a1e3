//! How requests and the session end, well or not.

use super::host::{Done, Host};
use super::machine::{Machine, NONE, Phase};
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::time::Instant;

impl Machine {
    /// A request ends with this error; whether it may have been applied all the same is also known
    /// from earlier attempts.
    pub(super) fn fail(&mut self, number: u32, mut error: Error, host: &mut impl Host) {
        if let Some(request) = self.requests.remove(number) {
            if request.may_be_applied {
                error = error.with_applied(crate::error::Applied::Unknown);
            }
            self.recycle(request);
        }
        host.done(number, Err(error));
    }

    pub(super) fn fail_refused(&mut self, host: &mut impl Host) {
        for (number, error) in core::mem::take(&mut self.refused) {
            if number != NONE {
                self.fail(number, error, host);
            }
        }
    }

    pub(super) fn fail_queue(&mut self, error: &Error, host: &mut impl Host) {
        while let Some(number) = self.queue.pop_front() {
            self.fail(number, error.clone(), host);
        }
        self.queue_due = Instant::FAR_FUTURE;
    }

    /// Requests that wait for nothing but the session end well.
    pub(super) fn finish(&mut self, number: Option<u32>, host: &mut impl Host) {
        if let Some(number) = number {
            if let Some(request) = self.requests.remove(number) {
                self.recycle(request);
            }
            host.done(number, Ok(Done::Session));
        }
    }

    /// The session has ended, by itself or since it was closed.
    #[inline(never)]
    pub(super) fn end(&mut self, error: Error, host: &mut impl Host) {
        let is_closing = self.is_closing();
        for link in &self.links {
            match is_closing && link.serves() {
                true => host.close(link.number),
                false => host.abort(link.number),
            }
        }
        self.links.clear();
        if let Some(number) = self.ready.take() {
            self.fail(number, error.clone(), host);
        }
        self.fail_queue(&error, host);
        self.phase = match is_closing {
            true => Phase::Closed,
            false => Phase::Over(error),
        };
        let closing = self.closing.take();
        self.finish(closing, host);
    }

    /// Closes the links once nothing is under way.
    pub(super) fn finish_closing(&mut self, host: &mut impl Host) {
        let (mut is_served, mut is_busy) = (false, self.under_way > 0);
        for link in self.links.iter().filter(|link| link.serves()) {
            is_served = true;
            is_busy |= !link.is_idle();
        }
        is_busy |= self.queue.iter().any(|number| *number != NONE);
        if !(is_served && is_busy) {
            self.end(session_closed(), host);
        } else if let Some(number) = self.ready.take() {
            self.fail(number, session_closed(), host);
        }
    }
}

/// The session takes no requests any more, or does not yet.
#[cold]
#[inline(never)]
pub(super) fn session_closed() -> Error {
    Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed))
}
