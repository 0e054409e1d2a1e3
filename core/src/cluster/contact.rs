//! Reaching the cluster through its contact points.
//!
//! Contact points are tried in the order given here (the engine shuffles them), names after a
//! look-up, all of their addresses. One attempt follows the other after a failure or a short
//! stagger; the first connection that opens is adopted, the others are given up. If the adopted
//! one turns out to be useless the rest of the list is tried. Every candidate is tried once.

use crate::gather::Gather;
use crate::sorted::SortedMap;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::version::AskedVersion;
use super::{ConnectionId, LookupId};
use crate::error::{
    Error, ErrorKind, LinkError, LinkErrorKind, PeerIncompatible, PeerMisbehaved, TimeoutKind,
};
use crate::rng::SmallRng;
use crate::target::{Endpoint, Name, Resolved};
use crate::time::Instant;
use crate::wire::ProtocolVersion;
use crate::wire::response::ErrorCode;

/// One walk over the contact points.
#[derive(Debug)]
pub(super) struct Contact {
    queue: VecDeque<Candidate>,
    lookups: SortedMap<LookupId, (Name, u16)>,
    dialing: SortedMap<ConnectionId, Attempt>,
    adopted: Option<(ConnectionId, Endpoint)>,
    causes: Vec<(Endpoint, Error)>,
    /// Attempts under way at once.
    parallel: usize,
    timeout: Duration,
    deadline: Instant,
    /// When the next attempt may start beside those under way.
    next_at: Instant,
}

/// A connect under way, and the protocol version that it asks in.
#[derive(Debug)]
struct Attempt {
    endpoint: Endpoint,
    version: ProtocolVersion,
}

#[derive(Debug)]
enum Candidate {
    Unresolved(Name, u16),
    Ready(Endpoint),
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContactStep {
    /// Look this name up, then say so by [`Contact::looking_up`].
    Resolve(Name, u16),
    /// Connect, then say so by [`Contact::dialing`].
    Connect(Endpoint, Instant),
    /// Nothing is left.
    Exhausted,
}

impl Contact {
    pub(super) fn new(
        points: Vec<Endpoint>,
        parallel: usize,
        timeout: Duration,
        now: Instant,
    ) -> Self {
        let candidate = |point| match point {
            Endpoint::Name { host, port } => Candidate::Unresolved(host, port),
            other => Candidate::Ready(other),
        };
        Self {
            queue: points.into_iter().map(candidate).collect(),
            lookups: SortedMap::new(),
            dialing: SortedMap::new(),
            adopted: None,
            causes: Vec::new(),
            parallel: parallel.max(1),
            timeout,
            deadline: now.saturating_add(timeout),
            next_at: now,
        }
    }

    /// What to do now; `None` is waiting. To be asked until it is. Without a place for one more
    /// connect nothing new is begun.
    pub(super) fn next_step(&mut self, now: Instant, has_place: bool) -> Option<ContactStep> {
        if self.adopted.is_some() {
            return None;
        }
        let under_way = self.lookups.len() + self.dialing.len();
        let is_over = now >= self.deadline;
        if is_over || (self.queue.is_empty() && under_way == 0) {
            return Some(ContactStep::Exhausted);
        }
        let may_start = under_way == 0 || (now >= self.next_at && under_way < self.parallel);
        if !may_start || !has_place {
            return None;
        }
        let candidate = self.queue.pop_front()?;
        self.next_at = now.saturating_add(STAGGER);
        Some(match candidate {
            Candidate::Unresolved(name, port) => ContactStep::Resolve(name, port),
            Candidate::Ready(endpoint) => {
                ContactStep::Connect(endpoint, self.attempt_deadline(now))
            }
        })
    }

    pub(super) fn looking_up(&mut self, id: LookupId, name: Name, port: u16) {
        self.lookups.insert(id, (name, port));
    }

    pub(super) fn dialing(
        &mut self,
        id: ConnectionId,
        endpoint: Endpoint,
        version: ProtocolVersion,
    ) {
        self.dialing.insert(id, Attempt { endpoint, version });
    }

    /// The addresses of a name come before the contact points that are still waiting.
    pub(super) fn handle_resolved(&mut self, id: LookupId, result: Result<Resolved, LinkError>) {
        let Some((host, port)) = self.lookups.remove(&id) else {
            return;
        };
        match result {
            Ok(Resolved::KeepName) => {
                let endpoint = Endpoint::Name { host, port };
                self.queue.push_front(Candidate::Ready(endpoint));
            }
            Ok(Resolved::Addrs(addresses)) if !addresses.is_empty() => {
                for &address in addresses.iter().rev() {
                    let endpoint = Endpoint::Addr(SocketAddr::new(address, port));
                    self.queue.push_front(Candidate::Ready(endpoint));
                }
            }
            Ok(Resolved::Addrs(_)) => {
                let error = LinkError::new(LinkErrorKind::Resolve);
                self.causes
                    .push((Endpoint::Name { host, port }, error.into()));
            }
            Err(error) => self
                .causes
                .push((Endpoint::Name { host, port }, error.into())),
        }
    }

    /// A connection opened. `None` if it is not one of ours; otherwise it is adopted, and the
    /// attempts beside it, which are returned, are to be given up.
    pub(super) fn handle_connected(&mut self, id: ConnectionId) -> Option<Vec<ConnectionId>> {
        let endpoint = self.dialing.remove(&id)?.endpoint;
        self.adopted = Some((id, endpoint));
        Some(self.give_up_attempts())
    }

    /// An attempt failed. Says whether that ends the whole walk. If its version was refused and
    /// there is another one, it is made anew at once.
    pub(super) fn handle_failed(
        &mut self,
        id: ConnectionId,
        error: Error,
        version: &mut AskedVersion,
        now: Instant,
    ) -> bool {
        let Some(Attempt {
            endpoint,
            version: asked,
        }) = self.dialing.remove(&id)
        else {
            return false;
        };
        let Err(error) = version.handle_failed(asked, error) else {
            self.queue.push_front(Candidate::Ready(endpoint));
            self.next_at = now;
            return false;
        };
        let is_final = is_about_credentials(&error);
        if is_final {
            self.causes.clear();
        }
        self.causes.push((endpoint, error));
        is_final
    }

    /// An attempt ended without having told anything of the node: it is made anew at once.
    pub(super) fn try_again(&mut self, id: ConnectionId, now: Instant) {
        if let Some(attempt) = self.dialing.remove(&id) {
            self.queue.push_front(Candidate::Ready(attempt.endpoint));
            self.next_at = now;
        }
    }

    /// The attempts under way.
    pub(super) fn attempts(&self) -> Vec<ConnectionId> {
        self.dialing.keys().copied().gather()
    }

    /// The adopted connection is of no use: go on with the rest, with fresh time.
    pub(super) fn handle_adopted_failed(&mut self, error: Error, now: Instant) {
        if let Some((_, endpoint)) = self.adopted.take() {
            self.causes.push((endpoint, error));
            self.deadline = now.saturating_add(self.timeout);
            self.next_at = now;
        }
    }

    /// Whether it waits for a place to make its only attempt.
    pub(super) fn needs_place(&self) -> bool {
        self.adopted.is_none() && self.dialing.is_empty()
    }

    pub(super) const fn adopted(&self) -> Option<&(ConnectionId, Endpoint)> {
        self.adopted.as_ref()
    }

    /// The attempts under way, which are not waited for any more. Their candidates go back.
    pub(super) fn give_up_attempts(&mut self) -> Vec<ConnectionId> {
        for (name, port) in core::mem::take(&mut self.lookups).into_values() {
            self.queue.push_back(Candidate::Unresolved(name, port));
        }
        let dialing = core::mem::take(&mut self.dialing);
        let ids = dialing.keys().copied().gather();
        for attempt in dialing.into_values() {
            self.queue.push_back(Candidate::Ready(attempt.endpoint));
        }
        ids
    }

    /// The one error that tells why nothing could be reached.
    pub(super) fn into_error(mut self) -> Error {
        for (name, port) in core::mem::take(&mut self.lookups).into_values() {
            let endpoint = Endpoint::Name { host: name, port };
            self.causes
                .push((endpoint, LinkError::new(LinkErrorKind::TimedOut).into()));
        }
        let timed_out = Error::new(ErrorKind::Timeout(TimeoutKind::Connect));
        for attempt in core::mem::take(&mut self.dialing).into_values() {
            self.causes.push((attempt.endpoint, timed_out.clone()));
        }
        let Some((_, first)) = self.causes.first() else {
            return Error::unreachable(Vec::new());
        };
        if self
            .causes
            .iter()
            .all(|(_, cause)| cause.kind() == first.kind())
        {
            let places: Vec<String> = self
                .causes
                .iter()
                .map(|(endpoint, _)| format!("{endpoint}"))
                .gather();
            return with_place(first.clone(), places.join(", "));
        }
        let place = |(endpoint, cause)| with_place(cause, format!("{endpoint}"));
        Error::unreachable(self.causes.into_iter().map(place).collect())
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        if self.adopted.is_some() {
            return None;
        }
        let under_way = self.lookups.len() + self.dialing.len();
        if self.queue.is_empty() || under_way >= self.parallel {
            return Some(self.deadline);
        }
        Some(self.deadline.min(self.next_at))
    }

    /// Without attempts side by side each gets its share of the time that is left.
    fn attempt_deadline(&self, now: Instant) -> Instant {
        if self.parallel > 1 {
            return self.deadline;
        }
        let left = self.deadline.saturating_since(now);
        let candidates = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        now.saturating_add(left / candidates.saturating_add(1))
    }
}

/// Fisher and Yates, from the end.
pub(super) fn shuffle(points: &mut [Endpoint], rng: &mut SmallRng) {
    for end in (1..points.len()).rev() {
        let bound = u64::try_from(end).unwrap_or(u64::MAX).saturating_add(1);
        let other = usize::try_from(rng.below(bound)).unwrap_or(0);
        points.swap(end, other);
    }
}

/// Errors that every node would answer with, and that must not be provoked again and again.
pub(super) fn is_about_credentials(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ErrorCode::BadCredentials)
            | ErrorKind::PeerIncompatible(
                PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication
            )
    )
}

/// Names the place where the error does not have a text of its own.
fn with_place(error: Error, place: String) -> Error {
    match error.kind() {
        ErrorKind::Link(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader) => {
            Error::with_text(error.kind(), place)
        }
        ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion) => {
            let text = error.own_text().unwrap_or_default();
            Error::with_text(error.kind(), format!("{place}: {text}"))
        }
        _ => error,
    }
}

/// How long one attempt has the field to itself.
const STAGGER: Duration = Duration::from_millis(250);
