//! Requests on the connection: submitted in order, and what becomes of each. The rules of what is
//! tried again are core's.

use alloc::rc::Rc;
use alloc::string::String;

use bytes::BytesMut;
use messina_core::conn::extensions::Agreed;
use messina_core::conn::{
    Answer, Connection, Outcome, Refused, RequestHead, SlotKey, is_too_early,
};
use messina_core::error::{Applied, Error, ErrorKind, TimeoutKind};
use messina_core::exec::retry::{Decision, Failure, decide};
use messina_core::time::Instant;
use messina_core::wire::request::{Query, QueryParameters, RequestBody as _};
use messina_core::wire::response::ErrorDetail;
use messina_core::wire::{Consistency, EncodeError, Opcode};

use super::answer::{check_keyspace, check_prepared_again, server_error, statement};
use super::link::Link;
use super::request::{Held, Request, Statement};
use super::session::{Keyspace, Serving, Session};
use crate::message::Effect;
use crate::outbox::Outbox;

impl Session {
    /// Hands requests to the connection while it takes some.
    pub(super) fn submit(&mut self, outbox: &mut Outbox) {
        self.expire_queue(outbox);
        let Some(serving) = &mut self.serving else {
            if self.contact.has_failed && !self.queue.is_empty() {
                let text = "no connection is open; they are being opened again";
                let error = Error::with_text(ErrorKind::Unreachable, text);
                self.fail_queue(&error, outbox);
            }
            return;
        };
        if serving.keyspace == Keyspace::ToAsk {
            let give_up_at = self.now.saturating_add(self.config.timeouts.control);
            let name = self.config.keyspace.as_deref().unwrap_or_default();
            serving.ask_for_keyspace(name, give_up_at);
        }
        while serving.keyspace == Keyspace::Set
            && let Some(&number) = self.queue.front()
        {
            let link = &mut serving.link;
            let is_early = link.is_in_handshake();
            let (Some(connection), Some(agreed)) = (&mut link.connection, &link.agreed) else {
                return;
            };
            let Some(Some(request)) = self.requests.get_mut(number) else {
                self.queue.pop_front();
                continue;
            };
            let (head, give_up_at) = (request.head(), request.deadline);
            let submitted = submit(connection, number, give_up_at, head, &mut |sink| {
                request.put(agreed.version, agreed.metadata_id, sink)
            });
            match submitted {
                Ok(key) => {
                    (request.key, request.is_early) = (Some(key), is_early);
                    self.under_way = self.under_way.saturating_add(1);
                    self.queue.pop_front();
                }
                Err(Refused::Encode(_, error)) => {
                    self.queue.pop_front();
                    self.refused.push((number, error.into()));
                }
                Err(_) => break,
            }
        }
        while self.queue.len() > self.config.limits.connection.waiting
            && let Some(number) = self.queue.pop_back()
        {
            self.refused.push((number, Error::new(ErrorKind::Busy)));
        }
        for (number, error) in core::mem::take(&mut self.refused) {
            self.fail(number, &error, outbox);
        }
    }

    /// Gives up requests whose time is over before they were sent.
    fn expire_queue(&mut self, outbox: &mut Outbox) {
        if self.now < self.queue_due {
            return;
        }
        self.queue_due = Instant::FAR_FUTURE;
        for _ in 0..self.queue.len() {
            let Some(number) = self.queue.pop_front() else {
                return;
            };
            let deadline = match self.requests.get(number) {
                Some(Some(request)) => request.deadline,
                _ => continue,
            };
            if deadline <= self.now {
                self.fail(number, &timed_out(Applied::No), outbox);
            } else {
                self.queue_due = self.queue_due.min(deadline);
                self.queue.push_back(number);
            }
        }
    }

    /// The connection has something for a request.
    pub(super) fn handle_told(&mut self, number: u32, link: &mut Link, outbox: &mut Outbox) {
        let (Some(Some(request)), Some(agreed)) = (self.requests.get_mut(number), link.agreed)
        else {
            return;
        };
        let Some(outcome) = take_outcome(&mut request.key, link) else {
            return;
        };
        self.under_way = self.under_way.saturating_sub(1);
        self.at_point = Some(link.point);
        match request.judge(outcome, &agreed, self.now) {
            Verdict::Finish(answer) => self.finish(number, &answer, &agreed, outbox),
            Verdict::Again => {
                self.queue_due = self.queue_due.min(request.deadline);
                self.again.push(number);
            }
            Verdict::Fail(error) => self.fail(number, &error, outbox),
        }
    }

    fn finish(&mut self, number: u32, answer: &Answer, agreed: &Agreed, outbox: &mut Outbox) {
        let Some(Some(mut request)) = self.requests.remove(number) else {
            return;
        };
        self.put_node(outbox);
        let told = match request.written.opcode {
            Opcode::Prepare => {
                let text = core::mem::take(&mut request.written.text);
                self.put_prepared(number, text, answer, agreed, outbox)
            }
            _ => {
                let executed = request.written.executed.as_ref();
                let held = executed.and_then(|(number, statement)| {
                    let held = self.statements.get_mut(*number)?;
                    Rc::ptr_eq(&held.statement, statement).then_some((*number, held))
                });
                outbox.put_answer(number, &request, answer, agreed, held)
            }
        };
        // What cannot be read belongs to a request that was answered well.
        if let Err(error) = told {
            let attempt = request.attempts.saturating_sub(1);
            let error = error.with_applied(Applied::Unknown);
            outbox.put_failure(number, &error.at(Some(0), shard(agreed), attempt));
        }
    }

    fn put_prepared(
        &mut self,
        number: u32,
        text: String,
        answer: &Answer,
        agreed: &Agreed,
        outbox: &mut Outbox,
    ) -> Result<(), Error> {
        let (statement, bits) = statement(text, answer, agreed)?;
        let statement = Rc::new(statement);
        let held = Held {
            statement: statement.clone(),
            told: None,
        };
        let kept = self.statements.insert(held);
        let kept = kept.map_err(|_| Error::new(ErrorKind::Busy))?;
        outbox.put(Effect::Prepared, number);
        outbox.put_word(kept);
        outbox.put_word(bits);
        outbox.put_words(&statement.markers);
        Ok(())
    }
}

/// What follows for a request.
enum Verdict {
    Finish(Answer),
    /// It is to be submitted again.
    Again,
    Fail(Error),
}

impl Request {
    fn judge(&mut self, outcome: Result<Answer, Error>, agreed: &Agreed, now: Instant) -> Verdict {
        let has_time = now < self.deadline;
        let preparing = self.preparing.take();
        let mut error = match (outcome, &preparing) {
            (Ok(answer), None) if answer.opcode != Opcode::Error => {
                self.attempts = self.attempts.saturating_add(1);
                return Verdict::Finish(answer);
            }
            (Ok(answer), Some(statement)) if answer.opcode != Opcode::Error => {
                match check_prepared_again(statement, &answer, agreed) {
                    Ok(()) if has_time => return Verdict::Again,
                    Ok(()) => timed_out(Applied::No),
                    Err(error) => error,
                }
            }
            (Ok(answer), _) => server_error(&answer, agreed),
            (Err(error), _) => error,
        };
        if core::mem::take(&mut self.is_early) && is_too_early(&error) && has_time {
            // Once more, behind the end of the handshake.
            self.preparing = preparing;
            return Verdict::Again;
        }
        let made = self.attempts;
        if preparing.is_some() {
            // The request itself was refused, whatever became of the PREPARE.
            error = error.with_applied(Applied::No);
        } else if was_sent(&error) {
            self.attempts = self.attempts.saturating_add(1);
            if let Some(lost) = self.lost_statement(&error)
                && has_time
            {
                self.prepared_again = self.prepared_again.saturating_add(1);
                self.preparing = Some(lost);
                return Verdict::Again;
            }
            self.failed = self.failed.saturating_add(1);
        }
        self.may_be_applied |= error.may_have_been_applied();
        let is_lost = is_lost(&error);
        let failure = Failure {
            error: &error,
            is_idempotent: self.written.is_idempotent,
            same_target_retries: self.retries,
        };
        match decide(&failure) {
            Decision::SameTarget if has_time => {
                self.retries = self.retries.saturating_add(1);
                Verdict::Again
            }
            // There is no other node, but perhaps another connection.
            Decision::NextTarget if is_lost && has_time && self.failed < ATTEMPTS_MAX => {
                Verdict::Again
            }
            _ => Verdict::Fail(error.at(Some(0), shard(agreed), made)),
        }
    }

    fn lost_statement(&self, error: &Error) -> Option<Rc<Statement>> {
        let Some(ErrorDetail::Unprepared { id }) = error.server().map(|server| &server.detail)
        else {
            return None;
        };
        let statements = &self.written.statements;
        if self.prepared_again >= statements.len() {
            return None;
        }
        let found = statements.iter().find(|statement| *statement.id == **id);
        found.cloned()
    }
}

impl Serving {
    /// Asks for the keyspace, if the connection takes requests.
    fn ask_for_keyspace(&mut self, name: &str, give_up_at: Instant) {
        let (Some(connection), Some(agreed)) = (&mut self.link.connection, &self.link.agreed)
        else {
            return;
        };
        let text = ["USE \"", name, "\""].concat();
        let query = Query {
            text: &text,
            parameters: QueryParameters::new(Consistency::One),
        };
        let head = RequestHead::new(Opcode::Query);
        let submitted = submit(connection, KEYSPACE, give_up_at, head, &mut |sink| {
            query.put(agreed.version, sink)
        });
        if let Ok(key) = submitted {
            self.keyspace = Keyspace::Asked(key);
        }
    }

    pub(super) fn keyspace_answer(&mut self, key: SlotKey) -> Result<(), Error> {
        let answer = take_outcome(&mut Some(key), &mut self.link);
        let answer = answer.unwrap_or_else(|| Err(timed_out(Applied::No)))?;
        match &self.link.agreed {
            Some(agreed) => check_keyspace(&answer, agreed),
            None => Err(Error::bug("an answer before the handshake")),
        }
    }
}

/// One function for all bodies.
#[inline(never)]
fn submit(
    connection: &mut Connection<u32>,
    caller: u32,
    give_up_at: Instant,
    head: RequestHead,
    body: &mut dyn FnMut(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<SlotKey, Refused<u32, EncodeError>> {
    connection.submit(caller, give_up_at, head, body)
}

/// What the connection has for this request; none leaves the key.
fn take_outcome(key: &mut Option<SlotKey>, link: &mut Link) -> Option<Result<Answer, Error>> {
    let outcome = match link.connection.as_mut()?.poll_answer((*key)?, |_| ()) {
        Outcome::Pending(_) => return None,
        Outcome::Done(outcome) => outcome,
        // The bytes may be on their way still.
        _ => Err(timed_out(Applied::Unknown)),
    };
    *key = None;
    Some(outcome)
}

fn timed_out(applied: Applied) -> Error {
    Error::new(ErrorKind::Timeout(TimeoutKind::Request)).with_applied(applied)
}

fn shard(agreed: &Agreed) -> Option<u16> {
    agreed.shard().map(|shard| shard.value())
}

/// Whether a connection was lost with the request on it.
fn is_lost(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_)
    )
}

/// Whether a failed attempt left us at all.
fn was_sent(error: &Error) -> bool {
    !is_lost(error) || error.may_have_been_applied()
}

/// The caller of the question for the keyspace; no request has that number.
pub(super) const KEYSPACE: u32 = u32::MAX;

/// Attempts of one request that may fail.
const ATTEMPTS_MAX: u8 = 5;
