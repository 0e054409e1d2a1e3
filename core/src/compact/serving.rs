//! Links dialed, adopted, and lost.

use alloc::boxed::Box;

use super::answer::check_keyspace;
use super::contact::{is_about_credentials, may_be_for_assumption};
use super::host::Host;
use super::link::{Keyspace, Link};
use super::machine::{HAS_KEYSPACES, Machine, Phase};
use super::platform::Streams;
use crate::conn::Answer;
use crate::conn::negotiate::HAS_EARLY_REQUESTS;
use crate::error::{Error, ErrorKind};
use crate::target::{Endpoint, Steering, Target};
use crate::time::Instant;
use crate::wire::response::ErrorCode;

impl Machine {
    /// Opens links that are wanted.
    pub(super) fn dial(&mut self, host: &mut impl Host) {
        if !self.is_open() {
            return;
        }
        if self.is_connected() {
            if self.is_full() {
                self.fill_pools(host);
            }
            return;
        }
        let timeout = self.config.timeouts.connect;
        if self.contact.may_begin(self.now) {
            let places = self.places();
            self.contact
                .begin(self.now, timeout, places, &mut self.random);
        }
        while let Some((place, deadline)) = self.contact.next_place(self.now, self.links.len()) {
            if let Some(endpoint) = self.place(place) {
                self.open(endpoint, Steering::None, deadline, host);
                if let Some(link) = self.links.last_mut() {
                    link.walk = Some(place);
                }
            }
        }
    }

    /// Opens a link, behind all others: to find a first connection, or for a member's pool.
    pub(super) fn open(
        &mut self,
        place: Endpoint,
        steering: Steering,
        deadline: Instant,
        host: &mut impl Host,
    ) {
        let number = self.next_link;
        self.next_link = self.next_link.wrapping_add(1);
        let connects = &mut self.counters.connects;
        *connects = connects.wrapping_add(1);
        let mut target = Target::new(place.clone(), deadline);
        target.steering = steering;
        target.server_name.clone_from(&self.config.server_name);
        host.connect(number, target);
        let link = Link::new(number, place, &self.config.limits, deadline);
        self.links.push(Box::new(link));
    }

    /// Whether that makes another pass worth it.
    pub(super) fn advance_links(&mut self, host: &mut impl Host) -> bool {
        let (mut at, mut has_changed) = (0_usize, false);
        let mut told = core::mem::take(&mut self.told);
        while let Some(link) = self.links.get_mut(at) {
            let number = link.number;
            let was_adopted = link.connection.is_some();
            let mut pieces = Streams {
                requests: &mut self.requests,
                host,
            };
            let limits = &self.config.limits;
            let mut ended = link.advance(self.now, limits, &mut pieces, &mut told).err();
            if !was_adopted && link.connection.is_some() {
                has_changed = true;
                at = self.adopt(number, host);
            }
            loop {
                if let (Some(error), Some(link)) = (&ended, self.links.get_mut(at)) {
                    link.fail(error, &mut told);
                }
                let mut next = 0_usize;
                while let Some(&caller) = told.get(next) {
                    next = next.wrapping_add(1);
                    self.handle_told(caller, at, host);
                }
                told.clear();
                let Some(link) = self.links.get_mut(at) else {
                    break;
                };
                // What was told may have ended it too.
                match (&ended, link.failed.take()) {
                    (None, Some(error)) => ended = Some(error),
                    _ => break,
                }
            }
            while let Some(number) = self.again.pop() {
                self.queue.push_front(number);
            }
            match ended {
                None => at = at.saturating_add(1),
                Some(error) => {
                    has_changed = true;
                    if let Some(link) = self.take_link(at) {
                        host.abort(link.number);
                        self.lost(&link, error, host);
                    }
                }
            }
        }
        self.told = told;
        let walks = self.links.iter().filter(|link| link.walk.is_some()).count();
        if self.contact.is_exhausted(walks) && !self.is_connected() && self.is_open() {
            let timeouts = &self.config.timeouts;
            let error = self.contact.end(timeouts, self.now, &mut self.random);
            has_changed = true;
            if matches!(self.phase, Phase::Starting) {
                self.end(error, host);
            }
        }
        has_changed
    }

    /// The last link takes its place.
    #[inline(never)]
    fn take_link(&mut self, at: usize) -> Option<Box<Link>> {
        let last = self.links.pop()?;
        Some(match self.links.get_mut(at) {
            Some(place) => core::mem::replace(place, last),
            None => last,
        })
    }

    /// A link takes requests of its own; the other attempts to have a first one are given up.
    /// Tells where it stands now.
    fn adopt(&mut self, number: u32, host: &mut impl Host) -> usize {
        let mut at = 0_usize;
        while let Some(other) = self.links.get(at) {
            let is_in_vain =
                other.walk.is_some() && other.number != number && other.connection.is_none();
            if is_in_vain {
                host.abort(other.number);
                self.take_link(at);
            } else {
                at = at.saturating_add(1);
            }
        }
        let at = self.links.iter().position(|link| link.number == number);
        let at = at.unwrap_or(0);
        let is_ready = !HAS_KEYSPACES || self.config.keyspace.is_none();
        if let Some(link) = self.links.get_mut(at) {
            if !is_ready {
                link.keyspace = Keyspace::ToAsk;
            }
            link.since = self.now;
            if self.is_full() {
                self.place_link(at);
            }
        }
        if is_ready {
            self.serve(host);
        }
        at
    }

    /// A link takes requests from now on.
    pub(super) fn serve(&mut self, host: &mut impl Host) {
        self.served = self.served.saturating_add(1);
        self.contact.succeeded();
        if matches!(self.phase, Phase::Starting) {
            self.phase = Phase::Ready;
        }
        self.finish_start(host);
    }

    /// Whoever waits for the beginning has waited long enough, if that is so.
    pub(super) fn finish_start(&mut self, host: &mut impl Host) {
        let is_known = !self.is_full() || self.has_read;
        if is_known && matches!(self.phase, Phase::Ready) {
            let ready = self.ready.take();
            self.finish(ready, host);
        }
    }

    /// The node has answered the question for the keyspace.
    pub(super) fn handle_keyspace(
        &mut self,
        at: usize,
        outcome: Result<Answer, Error>,
        host: &mut impl Host,
    ) {
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        match outcome.and_then(|answer| check_keyspace(&answer)) {
            Ok(()) => {
                link.keyspace = Keyspace::Set;
                self.serve(host);
            }
            // It came before the login was over; the next one waits for that.
            Err(error)
                if HAS_EARLY_REQUESTS
                    && crate::conn::is_too_early(&error)
                    && !link.is_asked_again =>
            {
                (link.keyspace, link.is_asked_again) = (Keyspace::ToAsk, true);
            }
            Err(error) => link.failed = Some(error),
        }
    }

    /// A link is of no use any more, and gone.
    #[inline(never)]
    fn lost(&mut self, link: &Link, error: Error, host: &mut impl Host) {
        self.control.handle_lost(link.number);
        let is_adopted = link.connection.is_some();
        if HAS_EARLY_REQUESTS
            && !is_adopted
            && self.assumed.is_some()
            && may_be_for_assumption(&error)
        {
            // Perhaps no failure: the node is of another kind.
            self.assume(None);
            if let Some(place) = link.walk {
                self.contact.try_again(place, self.now);
            }
            return;
        }
        let has_served = is_adopted && link.has_keyspace();
        let is_final = is_adopted
            && match self.phase {
                // Requests may be sent before the login is over, so it may fail as late as here.
                _ if HAS_EARLY_REQUESTS && is_about_credentials(&error) => self.served <= 1,
                Phase::Starting => error.kind() == ErrorKind::Server(ErrorCode::Invalid),
                _ => false,
            };
        if is_final {
            self.end(error, host);
        } else if has_served {
            self.rest_pool(link, &error);
            if !self.is_connected() {
                // Without any, one is looked for like the first.
                let timeouts = &self.config.timeouts;
                self.contact
                    .lost(link.since, timeouts, self.now, &mut self.random);
            }
        } else if link.walk.is_none() {
            self.rest_pool(link, &error);
        } else if is_adopted {
            let until = self.now.saturating_add(self.config.timeouts.connect);
            self.contact
                .handle_adopted_failed(&link.place, error, until);
        } else {
            self.contact.handle_failed(&link.place, error);
        }
    }
}
