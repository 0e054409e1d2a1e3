//! What a connection does when time has passed: late requests, orphans, heartbeats.

use super::negotiate::HAS_EARLY_REQUESTS;
use super::{Connection, Owner};
use crate::error::{Error, ErrorKind, LimitField, TimeoutKind};
use crate::time::Instant;
use crate::wire::{Flags, FrameHeader, Opcode};

impl<S: Default, const WAITING: bool> Connection<S, WAITING> {
    /// Does what is due at `now`: gives up late requests and waiters, sends a heartbeat. An error
    /// means that the connection cannot go on.
    pub fn handle_timeout(&mut self, now: Instant, mut tell: impl FnMut(S)) -> Result<(), Error> {
        let mut heartbeat_late = false;
        self.streams.expire(now, |owner| match owner {
            Owner::Caller(caller) => tell(caller),
            Owner::Heartbeat => heartbeat_late = true,
        });
        if WAITING {
            self.waiters
                .expire(now, |caller| tell(core::mem::take(caller)));
            self.grant(&mut tell);
        }
        if HAS_EARLY_REQUESTS && now >= self.repeats_until {
            self.repeats_until = Instant::ZERO;
        }
        if heartbeat_late {
            return Err(Error::new(ErrorKind::Timeout(TimeoutKind::Heartbeat)));
        }
        self.check_orphans(now)?;
        if self.over.is_none() && self.heartbeat.is_none() && now >= self.heartbeat_due() {
            self.put_heartbeat(now);
        }
        Ok(())
    }

    /// Many orphans are normal for a moment; old ones mean that the node has lost requests, and
    /// their ids with them.
    fn check_orphans(&mut self, now: Instant) -> Result<(), Error> {
        if now >= self.orphans_due {
            let limit = now.saturating_sub(self.limits.orphan_age);
            if self.streams.orphans_older_than(limit) > usize::from(self.orphans_max) {
                return Err(Error::new(ErrorKind::Limit(LimitField::Orphans)));
            }
            self.orphans_due = Instant::FAR_FUTURE;
        }
        self.watch_orphans(now);
        Ok(())
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn watch_orphans(&mut self, now: Instant) {
        if self.streams.orphans() > self.orphans_max && self.orphans_due == Instant::FAR_FUTURE {
            // One microsecond more, so that they are older than the limit then.
            let due = now.saturating_add(self.limits.orphan_age).as_micros();
            self.orphans_due = Instant::from_micros(due.saturating_add(1));
        }
    }

    fn put_heartbeat(&mut self, now: Instant) {
        let give_up_at = now.saturating_add(self.limits.heartbeat_timeout);
        // An id that was granted belongs to its waiter.
        let key = if self.streams.available() > self.granted() {
            self.streams
                .allocate(Owner::Heartbeat, self.queued, give_up_at)
        } else {
            None
        };
        let Some(key) = key else {
            // All ids are taken: the deadlines of those requests will tell.
            self.heard_at = now;
            return;
        };
        let header = FrameHeader {
            version: self.version,
            flags: Flags::NONE,
            stream: i16::try_from(key.stream_id()).unwrap_or(i16::MAX),
            opcode: Opcode::Options,
            body_len: 0,
        };
        let before = self.output.len();
        if header.put_request(&mut self.output).is_ok() {
            self.count_queued(before);
            self.heartbeat = Some(key);
        }
    }

    const fn heartbeat_due(&self) -> Instant {
        let due = self.heard_at.as_micros();
        Instant::from_micros(due.saturating_add(self.heartbeat_micros))
    }

    /// When [`Connection::handle_timeout`] wants to be called next; may be early, never late.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn poll_timeout(&self) -> Instant {
        if self.over.is_some() {
            return Instant::FAR_FUTURE;
        }
        let heartbeat = match self.heartbeat {
            Some(_) => Instant::FAR_FUTURE,
            None => self.heartbeat_due(),
        };
        let repeats = match self.repeats_until {
            until if HAS_EARLY_REQUESTS && self.draining && until > Instant::ZERO => until,
            _ => Instant::FAR_FUTURE,
        };
        let mut callers = self.streams.earliest();
        if WAITING {
            callers = callers.min(self.waiters.earliest());
        }
        callers.min(heartbeat).min(self.orphans_due).min(repeats)
    }
}
