//! What becomes of a request after each attempt. The rules of what is tried again are those of
//! [`exec::retry`](crate::exec::retry).

use super::exchange::timed_out;
use super::request::Request;
use crate::conn::extensions::Agreed;
use crate::conn::negotiate::HAS_EARLY_REQUESTS;
use crate::conn::{Answer, is_too_early};
use crate::error::{Applied, Error, ErrorKind};
use crate::exec::retry::{Decision, Failure, decide};

impl Request {
    /// What follows from an attempt that has not brought its answer: the request is to be submitted
    /// again, or fails with this error.
    #[inline(never)]
    pub(super) fn judge(
        &mut self,
        outcome: Result<Answer, Error>,
        agreed: &Agreed,
        (link, member): (u32, Option<u16>),
        has_time: bool,
        has_more: &mut dyn FnMut(&Self) -> bool,
    ) -> Option<Error> {
        let preparing = self.preparing.take();
        let outcome = outcome.and_then(|answer| {
            let place = preparing.map_or(0, |(_, place)| place);
            self.handle_prepared(place, &answer, agreed)
        });
        let mut error = match outcome {
            Ok(()) if has_time => return None,
            Ok(()) => timed_out(Applied::No),
            Err(error) => error,
        };
        if HAS_EARLY_REQUESTS
            && core::mem::take(&mut self.is_early)
            && is_too_early(&error)
            && has_time
        {
            // Once more, behind the end of the handshake.
            self.preparing = preparing;
            return None;
        }
        if preparing.is_some() {
            // The request itself was refused, whatever became of the PREPARE.
            error = error.with_applied(Applied::No);
        } else if was_sent(&error) {
            self.attempts = self.attempts.saturating_add(1);
            if let Some(lost) = self.lost(&error)
                && has_time
            {
                self.prepared_again = self.prepared_again.saturating_add(1);
                self.preparing = Some((link, lost));
                return None;
            }
            self.failed = self.failed.saturating_add(1);
        }
        self.may_be_applied |= error.may_have_been_applied();
        let failure = Failure {
            error: &error,
            is_idempotent: self.is_idempotent,
            same_target_retries: self.retries,
        };
        match decide(&failure) {
            // Its first rows are with the caller.
            _ if self.has_begun => {}
            Decision::SameTarget if has_time => {
                self.retries = self.retries.saturating_add(1);
                return None;
            }
            Decision::NextTarget if has_time && self.failed < ATTEMPTS_MAX => {
                // More may be lost before anything was sent than are remembered.
                let _first_ones = member.map(|member| self.tried.push(member));
                self.target = None;
                if has_more(self) {
                    return None;
                }
                // Where there is no other node there is perhaps another connection.
                self.tried.clear();
                if is_lost(&error) {
                    return None;
                }
            }
            _ => {}
        }
        Some(error)
    }

    /// The place among its statements of the one that the node does not know.
    fn lost(&self, error: &Error) -> Option<usize> {
        let id = error.server()?.unprepared_id()?;
        let (mut count, mut place) = (0_usize, None);
        while let Some(statement) = self.statement(count) {
            if place.is_none() && statement.has_id(id) {
                place = Some(count);
            }
            count = count.saturating_add(1);
        }
        // Each of its statements may be missed by each of the nodes that are tried.
        let max = count.saturating_mul(self.tried.len().saturating_add(1));
        place.filter(|_| usize::from(self.prepared_again) < max)
    }
}

/// Whether a connection was lost with the request on it.
fn is_lost(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_)
    )
}

/// Whether a failed attempt left us at all.
pub(super) fn was_sent(error: &Error) -> bool {
    !is_lost(error) || error.may_have_been_applied()
}

/// Attempts of one request that may fail.
const ATTEMPTS_MAX: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::extensions::Offer;
    use crate::error::LinkError;
    use crate::time::Instant;
    use crate::wire::ProtocolVersion;

    /// Links that are lost before anything was sent cost no attempt, so there may be any number of them.
    #[test]
    fn a_request_may_lose_more_links_than_it_remembers() {
        let agreed = Agreed {
            version: ProtocolVersion::V4,
            tablets: crate::conn::extensions::TabletsRouting::Off,
            metadata_id: false,
            compression: None,
            is_authenticated: false,
            offer: Offer::default(),
        };
        let mut request = Request::new();
        request.deadline = Instant::FAR_FUTURE;
        let lost = Error::from(LinkError::CLOSED_BY_PEER).with_applied(Applied::No);
        for member in 0..40 {
            let from = (u32::from(member), Some(member));
            let verdict = request.judge(Err(lost.clone()), &agreed, from, true, &mut |_| true);
            assert_eq!(verdict, None);
        }
        assert_eq!(request.tried.first(), Some(&0));
    }
}
