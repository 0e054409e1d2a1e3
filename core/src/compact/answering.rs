//! Requests answered: what an attempt came to, what is learned from it, and whom it is told.

use alloc::boxed::Box;

use super::control::CONTROL;
use super::exchange::{KEYSPACE, load_of};
use super::giving::{GIVEN, HAS_GIVING};
use super::host::{Answered, Done, Host};
use super::link::Keyspace;
use super::machine::{HAS_KEYSPACES, Machine, is_full};
use super::request::Request;
use super::statement::Statement;
use super::verdict::was_sent;
use crate::config::HAS_TOPOLOGY;
use crate::conn::Answer;
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::error::{Applied, Error, ErrorKind};
use crate::routing::PayloadKind;
use crate::sync::Local;
use crate::wire::response::Extras;
use crate::wire::{Flags, Opcode, Reader};

impl Machine {
    /// A link has something for a caller of its.
    #[inline(never)]
    pub(super) fn handle_told(&mut self, number: u32, at: usize, host: &mut impl Host) {
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        let key = match number {
            KEYSPACE if HAS_KEYSPACES => match link.keyspace {
                Keyspace::Asked(key) => Some(key),
                _ => None,
            },
            CONTROL if HAS_TOPOLOGY => self.control.asked(link.number),
            GIVEN if HAS_GIVING => link.giving.take(),
            _ => match self.requests.get(number) {
                Some(request) => request.on.map(|(_, key)| key),
                _ => None,
            },
        };
        let Some(outcome) = key.and_then(|key| link.take_outcome(key)) else {
            return;
        };
        match number {
            KEYSPACE if HAS_KEYSPACES => return self.handle_keyspace(at, outcome, host),
            CONTROL if HAS_TOPOLOGY => return self.handle_control(at, outcome),
            _ => {}
        }
        // Whatever comes of what was given is nobody's concern.
        let (Some(request), Some(agreed)) = (self.requests.get_mut(number), link.agreed) else {
            return;
        };
        request.on = None;
        self.under_way = self.under_way.saturating_sub(1);
        let from = (link.number, link.member);
        let outcome = match outcome {
            Ok(answer) if request.preparing.is_none() => {
                request.attempts = request.attempts.saturating_add(1);
                let node = self.node_of(at, host);
                return self.answered(number, answer, &agreed, (from.0, node), host);
            }
            outcome => outcome,
        };
        let has_time = self.now < request.deadline;
        let (plane, links, is_full) = (&self.plane, &self.links, is_full(&self.config));
        let failure = request.judge(outcome, &agreed, from, has_time, &mut |request| {
            let load = |member, shard| load_of(links, member, shard);
            // Said here too, so that planning is no part of sessions that cannot know nodes.
            HAS_TOPOLOGY && is_full && plane.has_more(&request.route(), &request.tried, &load)
        });
        match failure {
            None => {
                self.queue_due = self.queue_due.min(request.deadline);
                self.again.push(number);
            }
            Some(error) => {
                let made = request.attempts;
                let node = self.node_of(at, host);
                let shard = agreed.shard().map(|shard| shard.value());
                let made = made.saturating_sub(u8::from(was_sent(&error)));
                self.fail(number, error.at(Some(node), shard, made), host);
            }
        }
    }

    #[inline(never)]
    fn answered(
        &mut self,
        number: u32,
        answer: Answer,
        agreed: &Agreed,
        (link, node): (u32, u16),
        host: &mut impl Host,
    ) {
        let Some(mut request) = self.requests.remove(number) else {
            return;
        };
        if answer.flags.contains(Flags::CUSTOM_PAYLOAD) && self.is_full() {
            self.learn(&request, &answer, agreed);
        }
        let outcome = match request.opcode {
            Opcode::Prepare => {
                let text = core::mem::take(&mut request.text);
                self.keep_statement(text, &answer, agreed, link)
            }
            _ => Ok(NOT_PREPARED),
        };
        let done = match &outcome {
            Ok(NOT_PREPARED) => Ok(Done::Answer(Answered {
                answer,
                agreed,
                executed: request
                    .executed
                    .as_ref()
                    .map(|(number, statement)| (*number, statement)),
                attempts: request.attempts,
                node,
            })),
            Ok(kept) => match self.statements.get(*kept) {
                Some(statement) => Ok(Done::Prepared(*kept, statement)),
                None => Err(Error::bug("a statement that was not kept")),
            },
            // What cannot be read belongs to a request that was answered well.
            Err(error) => {
                let shard = agreed.shard().map(|shard| shard.value());
                let attempt = request.attempts.saturating_sub(1);
                let error = error.clone().with_applied(Applied::Unknown);
                Err(error.at(Some(node), shard, attempt))
            }
        };
        host.done(number, done);
        self.recycle(request);
    }

    /// Takes note of where a row lives, if the answer tells.
    fn learn(&mut self, request: &Request, answer: &Answer, agreed: &Agreed) {
        let kind = match agreed.tablets {
            TabletsRouting::V2 => PayloadKind::V2,
            _ => PayloadKind::V1,
        };
        let mut reader = Reader::new(answer.body.as_slice());
        if let Some(table) = request.table
            && let Ok(extras) = Extras::parse(answer.flags, &mut reader)
            && let Some(payload) = extras.custom_payload.get(kind.key())
        {
            self.plane.learn(table, kind, payload);
        }
    }

    fn keep_statement(
        &mut self,
        text: Box<str>,
        answer: &Answer,
        agreed: &Agreed,
        link: u32,
    ) -> Result<u32, Error> {
        let is_full = self.is_full();
        let plane = &mut self.plane;
        let mut statement = Statement::new(text, answer, agreed, &mut |keyspace, table| {
            (HAS_TOPOLOGY && is_full)
                .then(|| plane.table(keyspace, table))
                .flatten()
        })?;
        statement.prepared_on = Some(link);
        let too_many = self.statements.len() >= self.config.limits.prepared_statements;
        let kept = match too_many {
            true => None,
            false => self.statements.insert(Local::new(statement)),
        };
        kept.ok_or_else(|| Error::new(ErrorKind::Busy))
    }
}

/// What `keep_statement` is not asked for.
const NOT_PREPARED: u32 = u32::MAX;
