//! Requests on links: aimed, and submitted in order.

use alloc::boxed::Box;

use bytes::BytesMut;

use super::host::Host;
use super::link::{Keyspace, Link};
use super::machine::{HAS_KEYSPACES, Machine, NONE};
use super::plane::Candidate;
use crate::conn::extensions::Agreed;
use crate::conn::{Answer, Connection, Outcome, Refused, RequestHead, SlotKey};
use crate::error::{Applied, Error, ErrorKind, TimeoutKind};
use crate::routing::{ShardIdx, VersionBlock};
use crate::time::Instant;
use crate::wire::request::{Query, QueryParameters, RequestBody as _};
use crate::wire::{Consistency, Opcode};
use crate::words::joined;

impl Machine {
    /// Hands requests to links while these take some.
    #[inline(never)]
    pub(super) fn submit(&mut self, host: &mut impl Host) {
        self.expire_queue(host);
        if !self.is_connected() {
            if self.contact.has_failed && !self.queue.is_empty() {
                let text = "no connection is open; they are being opened again";
                let error = Error::with_text(ErrorKind::Unreachable, text);
                self.fail_queue(&error, host);
            }
            return;
        }
        if HAS_KEYSPACES {
            self.ask_for_keyspaces();
        }
        let mut at = 0_usize;
        // Once none has room the others in the queue need not be looked at.
        let mut may_go_on = self.links.iter().any(|link| link.serves());
        while may_go_on && let Some(&number) = self.queue.get(at) {
            let submitted = self.try_submit(number);
            if let Submitted::Never(error) = &submitted {
                self.refuse_request(number, error.clone());
            }
            if matches!(submitted, Submitted::Full) {
                may_go_on = self.links.len() > 1 && at < LOOKED_AHEAD_MAX;
            } else if let Some(place) = self.queue.get_mut(at) {
                *place = NONE;
            }
            if self.queue.front() == Some(&NONE) {
                self.queue.pop_front();
            } else {
                at = at.saturating_add(1);
            }
        }
        while self.queue.len() > self.config.limits.connection.waiting
            && let Some(number) = self.queue.pop_back()
        {
            if number != NONE {
                self.refuse_request(number, Error::new(ErrorKind::Busy));
            }
        }
        self.fail_refused(host);
    }

    fn ask_for_keyspaces(&mut self) {
        for link in &mut self.links {
            if link.keyspace == Keyspace::ToAsk && link.connection.is_some() {
                let give_up_at = self.now.saturating_add(self.config.timeouts.control);
                let name = self.config.keyspace.as_deref().unwrap_or_default();
                let text = joined(&["USE \"", name, "\""]);
                if let Some(key) = link.ask(KEYSPACE, &text, give_up_at) {
                    link.keyspace = Keyspace::Asked(key);
                }
            }
        }
    }

    /// Gives up requests whose time is over before they were sent.
    fn expire_queue(&mut self, host: &mut impl Host) {
        if self.now < self.queue_due {
            return;
        }
        self.queue_due = Instant::FAR_FUTURE;
        for _ in 0..self.queue.len() {
            let Some(number) = self.queue.pop_front() else {
                return;
            };
            let deadline = match self.requests.get(number) {
                Some(request) => request.deadline,
                _ => continue,
            };
            if deadline <= self.now {
                self.fail(number, timed_out(Applied::No), host);
            } else {
                self.queue_due = self.queue_due.min(deadline);
                self.queue.push_back(number);
            }
        }
    }

    /// Submits a request that has just begun, if none waits before it, so that nothing is to be run
    /// for it; tells its deadline then.
    pub(super) fn submit_at_once(&mut self, number: u32) -> Option<Instant> {
        if self.queue.len() != 1 || self.queue.front() != Some(&number) {
            return None;
        }
        let submitted = self.try_submit(number);
        if !matches!(submitted, Submitted::Full) {
            self.queue.clear();
        }
        match submitted {
            Submitted::Yes => self.requests.get(number).map(|request| request.deadline),
            Submitted::Never(error) => {
                self.refuse_request(number, error);
                None
            }
            Submitted::Gone | Submitted::Full => None,
        }
    }

    #[inline(never)]
    fn try_submit(&mut self, number: u32) -> Submitted {
        let Some(request) = self.requests.get(number) else {
            return Submitted::Gone;
        };
        if let Some((link, _)) = request.preparing {
            // It is given the statement where that was missed; a link that is gone took the need with it.
            if let Some(at) = self.position(link) {
                return self.submit_on(at, number, VersionBlock::unknown(0));
            }
            if let Some(request) = self.requests.get_mut(number) {
                request.preparing = None;
            }
        }
        let (mut at, mut block) = (None, VersionBlock::unknown(0));
        if self.is_full() {
            (at, block) = self.aim_at(number);
        }
        match at.or_else(|| self.best_of(None)) {
            Some(at) => self.submit_on(at, number, block),
            None => Submitted::Full,
        }
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.links
            .iter()
            .position(|link| link.number == number && link.serves())
    }

    /// The link to the target of a request, which is chosen anew where none leads to it any more; and
    /// its version block.
    fn aim_at(&mut self, number: u32) -> (Option<usize>, VersionBlock) {
        let entropy = self.random.next();
        let Some(request) = self.requests.get(number) else {
            return (None, VersionBlock::unknown(entropy));
        };
        let known = request.target;
        if let Some(target) = known
            && let Some(at) = self.best_of(Some(&target))
        {
            let block = self.plane.probe(request.table, request.token, entropy);
            return (Some(at), block);
        }
        let load = |member, shard| load_of(&self.links, member, shard);
        let (target, block) = self
            .plane
            .choose(&request.route(), &request.tried, entropy, &load);
        let at = target
            .as_ref()
            .and_then(|target| self.best_of(Some(target)));
        if let Some(at) = at
            && let Some(target) = target
        {
            if let Some(shard) = target.shard {
                self.note_shard(at, target.member, shard.value());
            }
            if let Some(request) = self.requests.get_mut(number) {
                request.target = Some(target);
            }
        }
        (at, block)
    }

    /// Counts whether a request for a shard has found a link of it.
    fn note_shard(&mut self, at: usize, member: u16, shard: u16) {
        let reached = self.links.get(at).and_then(|link| link.shard()) == Some(shard);
        let count = match reached {
            true => &mut self.counters.shard_reached,
            false => &mut self.counters.shard_missed,
        };
        *count = count.wrapping_add(1);
        if !reached {
            self.want_shard(member, shard);
        }
    }

    /// The link to that member, of that shard if there is one, with the fewest requests on it.
    fn best_of(&self, candidate: Option<&Candidate>) -> Option<usize> {
        let (mut best, mut least) = (None, u32::MAX);
        for (at, link) in self.links.iter().enumerate() {
            let Some(connection) = link.connection.as_ref().filter(|_| link.serves()) else {
                continue;
            };
            let mut load = u32::from(connection.in_use());
            if let Some(candidate) = candidate {
                if link.member != Some(candidate.member) {
                    continue;
                }
                let wanted = candidate.shard.map(ShardIdx::value);
                if wanted.is_some() && link.shard() != wanted {
                    // Behind all links of the shard.
                    load |= 1 << 16;
                }
            }
            if load < least {
                (best, least) = (Some(at), load);
            }
        }
        best
    }

    fn submit_on(&mut self, at: usize, number: u32, block: VersionBlock) -> Submitted {
        let (Some(link), Some(request)) = (self.links.get_mut(at), self.requests.get_mut(number))
        else {
            return Submitted::Gone;
        };
        let is_early = link.is_in_handshake();
        if request.preparing.is_none()
            && let Some(agreed) = &link.agreed
            && request.needs_preparing(agreed)
        {
            request.preparing = Some((link.number, 0));
        }
        let (head, give_up_at) = (request.head(), request.deadline);
        let Some(agreed) = &link.agreed else {
            return Submitted::Full;
        };
        let (block, mut prepare) = ([block.byte()], BytesMut::new());
        let parts = match request.parts(agreed, &block, &mut prepare) {
            Ok(parts) => parts,
            Err(error) => return Submitted::Never(error.into()),
        };
        let submitted = link.submit(number, give_up_at, head, &parts);
        match submitted {
            Ok(key) => {
                (request.on, request.is_early) = (Some((link.number, key)), is_early);
                self.under_way = self.under_way.saturating_add(1);
                Submitted::Yes
            }
            Err(Some(error)) => Submitted::Never(error),
            Err(None) => Submitted::Full,
        }
    }
}

/// Requests on the links to a member, or to one of its shards; nothing if there is no link to it.
pub(super) fn load_of(links: &[Box<Link>], member: u16, shard: Option<ShardIdx>) -> Option<u32> {
    let mut load = None;
    for link in links.iter().filter(|link| link.serves()) {
        let is_there = shard.is_none_or(|shard| link.shard() == Some(shard.value()));
        if link.member == Some(member) {
            let connection = link.connection.as_ref().filter(|_| is_there);
            let in_use = connection.map_or(0, Connection::in_use);
            load = Some(load.unwrap_or(0_u32).saturating_add(u32::from(in_use)));
        }
    }
    load
}

enum Submitted {
    Yes,
    /// Nobody waits for it any more.
    Gone,
    /// It cannot be written.
    Never(Error),
    /// Not now.
    Full,
}

impl Link {
    /// Asks a question of our own, without values.
    pub(super) fn ask(&mut self, caller: u32, text: &str, give_up_at: Instant) -> Option<SlotKey> {
        let query = Query {
            text,
            parameters: QueryParameters::new(Consistency::One),
        };
        let (version, mut body) = (self.agreed.as_ref()?.version, BytesMut::new());
        query.put(version, &mut body).ok()?;
        let head = RequestHead::new(Opcode::Query);
        self.submit(caller, give_up_at, head, &[&body]).ok()
    }

    /// Writes a request. Fails without an error where there is no room.
    #[inline(never)]
    pub(super) fn submit(
        &mut self,
        caller: u32,
        give_up_at: Instant,
        head: RequestHead,
        parts: &[&[u8]],
    ) -> Result<SlotKey, Option<Error>> {
        let Some(connection) = &mut self.connection else {
            return Err(None);
        };
        let submitted = connection.submit_parts(caller, give_up_at, head, parts);
        submitted.map_err(|refused| match refused {
            Refused::Encode(_, error) => Some(error.into()),
            Refused::Full(_) | Refused::Closed(..) => None,
        })
    }

    /// What was agreed, while a request would be taken.
    pub(super) fn agreed_with_room(&self) -> Option<Agreed> {
        let connection = self.connection.as_ref()?;
        self.agreed.filter(|_| connection.has_room())
    }

    /// What the connection has for this request: an answer that is no error, or why there is none.
    #[inline(always)]
    pub(super) fn take_outcome(&mut self, key: SlotKey) -> Option<Result<Answer, Error>> {
        let mut outcome = match self.connection.as_mut()?.poll_answer(key, |_| ()) {
            Outcome::Pending(_) => return None,
            Outcome::Done(outcome) => outcome,
            // The bytes may be on their way still.
            Outcome::Expired => Err(timed_out(Applied::Unknown)),
        };
        if let (Ok(answer), Some(agreed)) = (&outcome, &self.agreed)
            && answer.opcode == Opcode::Error
        {
            outcome = Err(answer.server_error(agreed));
        }
        Some(outcome)
    }
}

pub(super) fn timed_out(applied: Applied) -> Error {
    Error::new(ErrorKind::Timeout(TimeoutKind::Request)).with_applied(applied)
}

/// The caller of the question for the keyspace; no request has that number.
pub(super) const KEYSPACE: u32 = u32::MAX;

/// Waiting requests that are looked at behind one whose links are full.
const LOOKED_AHEAD_MAX: usize = 64;
