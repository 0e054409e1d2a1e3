//! Where a first connection is looked for: in an order drawn anew for each walk over all known
//! places, each with the field to itself for a moment, and after a walk that failed with a pause
//! that doubles.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

#[cfg(doc)]
use super::machine::Machine;
use super::random::Random;
use crate::config::Timeouts;
use crate::error::{
    Error, ErrorKind, LinkErrorKind, PeerIncompatible, PeerMisbehaved, TimeoutKind,
};
use crate::target::Endpoint;
use crate::time::Instant;
use crate::wire::response::ErrorCode;
use crate::words::{HAS_TEXTS, explain, put};

/// The walks.
#[derive(Debug)]
pub(super) struct Contact {
    /// What is left of the walk, as [`Machine::place`] knows it; none after the end of one.
    left: Vec<u16>,
    /// Why places could not be had, and a list of these.
    causes: Vec<Error>,
    places: String,
    /// Not all of the causes are of one kind.
    is_mixed: bool,
    pub(super) is_walking: bool,
    /// No place could be reached when they were walked last.
    pub(super) has_failed: bool,
    deadline: Instant,
    /// When the next attempt may start beside those under way.
    next_at: Instant,
    /// When a walk may begin.
    retry_at: Instant,
    failures: u8,
}

impl Contact {
    pub(super) const fn new() -> Self {
        Self {
            left: Vec::new(),
            causes: Vec::new(),
            places: String::new(),
            is_mixed: false,
            is_walking: false,
            has_failed: false,
            deadline: Instant::FAR_FUTURE,
            next_at: Instant::ZERO,
            retry_at: Instant::ZERO,
            failures: 0,
        }
    }

    /// Whether it is time for a walk.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        !self.is_walking && now >= self.retry_at
    }

    /// Begins a walk over these places.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        timeout: Duration,
        places: Vec<u16>,
        random: &mut Random,
    ) {
        self.is_walking = true;
        self.deadline = now.saturating_add(timeout);
        self.next_at = now;
        self.left = places;
        random.shuffle(&mut self.left);
    }

    /// The place to be dialed now, and until when, while others are `under_way`.
    pub(super) fn next_place(&mut self, now: Instant, under_way: usize) -> Option<(u16, Instant)> {
        if now >= self.deadline {
            self.left.clear();
        }
        if !self.is_walking || (under_way > 0 && now < self.next_at) {
            return None;
        }
        let place = self.left.pop()?;
        self.next_at = now.saturating_add(STAGGER);
        Some((place, self.deadline))
    }

    /// An attempt ended without having told anything of the node: it is made anew at once.
    pub(super) fn try_again(&mut self, place: u16, now: Instant) {
        self.left.push(place);
        self.next_at = now;
    }

    /// An attempt failed. A login that was refused is refused everywhere.
    pub(super) fn handle_failed(&mut self, place: &Endpoint, error: Error) {
        if is_about_credentials(&error) {
            self.forget();
        }
        if HAS_TEXTS {
            if !self.places.is_empty() {
                put(&mut self.places, ", ");
            }
            place.put_text(&mut self.places);
        }
        let first = self.causes.first();
        self.is_mixed = match first {
            Some(first) => self.is_mixed || first.kind() != error.kind(),
            None => false,
        };
        let place = explain(|text| place.put_text(text));
        self.causes.push(with_place(error, place));
    }

    /// The same after it had been adopted: the others get fresh time.
    pub(super) fn handle_adopted_failed(&mut self, place: &Endpoint, error: Error, until: Instant) {
        self.handle_failed(place, error);
        self.deadline = until;
        self.next_at = Instant::ZERO;
    }

    /// Whether the walk is over without success.
    pub(super) const fn is_exhausted(&self, under_way: usize) -> bool {
        self.is_walking && self.left.is_empty() && under_way == 0
    }

    /// The walk has failed; why.
    pub(super) fn end(&mut self, timeouts: &Timeouts, now: Instant, random: &mut Random) -> Error {
        (self.is_walking, self.has_failed) = (false, true);
        self.rest(timeouts, now, random);
        let (causes, places) = (
            core::mem::take(&mut self.causes),
            core::mem::take(&mut self.places),
        );
        match causes.first() {
            Some(first) if !self.is_mixed => with_place(first.clone(), places),
            _ => Error::unreachable(causes),
        }
    }

    /// A connection takes requests.
    pub(super) fn succeeded(&mut self) {
        (self.is_walking, self.has_failed) = (false, false);
        self.forget();
    }

    fn forget(&mut self) {
        self.left.clear();
        self.causes.clear();
        self.places.clear();
    }

    /// The last connection is lost, which served since then.
    pub(super) fn lost(
        &mut self,
        served_since: Instant,
        timeouts: &Timeouts,
        now: Instant,
        random: &mut Random,
    ) {
        if now >= served_since.saturating_add(PROVEN_AFTER) {
            self.failures = 0;
        }
        self.rest(timeouts, now, random);
    }

    fn rest(&mut self, timeouts: &Timeouts, now: Instant, random: &mut Random) {
        self.retry_at = after_pause(now, timeouts, self.failures, random);
        self.failures = self.failures.saturating_add(1);
    }

    /// When something is to be begun, at the latest.
    pub(super) const fn next_at(&self) -> Instant {
        match (self.is_walking, self.left.is_empty()) {
            (false, _) => self.retry_at,
            (true, false) => self.next_at,
            (true, true) => Instant::FAR_FUTURE,
        }
    }
}

/// The end of the pause after so many failures before: from half of the base, doubled each time, to
/// the maximum.
pub(super) fn after_pause(
    now: Instant,
    timeouts: &Timeouts,
    failures: u8,
    random: &mut Random,
) -> Instant {
    // By way of an instant: the library's own way multiplies 128 bits.
    let micros = |duration| Instant::ZERO.saturating_add(duration).as_micros();
    let mut whole = micros(timeouts.reconnect_base);
    let max = micros(timeouts.reconnect_max);
    for _ in 0..failures {
        if whole < max {
            whole = whole.saturating_mul(2);
        }
    }
    let whole = whole.min(max);
    let half = whole / 2;
    let jitter = random.below(whole.saturating_sub(half).saturating_add(1));
    let pause = half.saturating_add(jitter);
    Instant::from_micros(now.as_micros().saturating_add(pause))
}

/// Whether a user or a password was refused.
pub(super) fn is_about_credentials(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ErrorCode::BadCredentials)
            | ErrorKind::PeerIncompatible(
                PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication
            )
    )
}

/// Whether a handshake may have failed because it took something of the node for granted.
pub(super) fn may_be_for_assumption(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Server(_)
        | ErrorKind::PeerMisbehaved(_)
        | ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged)
        | ErrorKind::Timeout(TimeoutKind::Handshake) => !is_about_credentials(error),
        ErrorKind::Link(error) => {
            use LinkErrorKind::{ClosedByPeer, Reset};
            matches!(error.kind(), ClosedByPeer | Reset)
        }
        _ => false,
    }
}

/// Names the place where the error does not have a text of its own.
fn with_place(error: Error, place: String) -> Error {
    if !HAS_TEXTS {
        return error;
    }
    match error.kind() {
        ErrorKind::Link(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader) => {
            Error::with_text(error.kind(), place)
        }
        _ => error,
    }
}

/// How long one attempt has the field to itself.
const STAGGER: Duration = Duration::from_millis(250);

/// How long a connection must last to count as a success.
pub(super) const PROVEN_AFTER: Duration = Duration::from_secs(10);
