//! One request and its attempts: rounds over the targets of its plan, retries, statements that a
//! node has lost, and the answer that ends it.
//!
//! Rounds are bounded: each further one follows an attempt that was lost while it waited, and
//! attempts are. What each failure leads to is decided by [`exec::retry`](crate::exec::retry); here
//! it is done.

use alloc::boxed::Box;

use super::cell::Cell;
use super::exchange::{Exchange, Exchanged};
use super::outgoing::{Body, Content, Outgoing};
use super::rows::{Decoded, QueryResult, RequestInfo};
use crate::cluster::LearnedTablet;
use crate::cluster::prepared::ResultShape;
use crate::conn::extensions::Agreed;
use crate::conn::{Answer, check_request_len};
use crate::error::{Applied, Error, ErrorKind};
use crate::exec::retry::{Decision, Failure, decide};
use crate::routing::{Plan, ShardIdx, Target, View, plan};
use crate::sync::Shared;
use crate::wire::response::{ErrorCode, Extras, ServerError};
use crate::wire::{Opcode, Reader};

impl Outgoing<'_> {
    /// Where it may go: the targets behind the first `skip`.
    pub(super) fn plan(&self, skip: usize) -> Plan {
        self.hub.view().with(|view| self.plan_in(view, skip))
    }

    /// The same with a view that the caller holds.
    pub(super) fn plan_in(&self, view: &View, skip: usize) -> Plan {
        let (policy, pools) = (&self.hub.config().policy, self.hub.pools());
        pools.with(|pools| plan(view, &self.route, policy, pools, self.entropy, skip))
    }

    /// Makes attempts until one is answered or the error is the caller's.
    pub(super) async fn run(&self) -> Result<Ran, Error> {
        // Here too, so that a connection's output never grows by what it will refuse.
        let max = self.hub.config().limits.connection.request_len_max;
        check_request_len(self.least_len(), max)?;
        let mut attempts = Attempts::default();
        loop {
            let (target, cell) = match self.try_targets(&mut attempts).await? {
                Round::Answered(ran) => return Ok(ran),
                Round::Full(target, cell) => (target, cell),
                Round::NoTarget => return Err(self.exhausted(attempts)),
            };
            let waited = self.attempt(&mut attempts, target, &cell, true);
            if let Some(ran) = waited.await? {
                return Ok(ran);
            }
        }
    }

    /// Tries the targets of the plan, none of which is waited for.
    async fn try_targets(&self, attempts: &mut Attempts) -> Result<Round, Error> {
        let (mut skip, mut first_full) = (0, None);
        loop {
            let plan = self.plan(skip);
            for target in plan.targets() {
                let Some(cell) = self.pick(target) else {
                    continue;
                };
                let attempt = self.attempt(attempts, *target, &cell, false);
                match attempt.await? {
                    Some(ran) => return Ok(Round::Answered(ran)),
                    None if attempts.was_full => first_full = first_full.or(Some((*target, cell))),
                    None => {}
                }
            }
            skip = skip.saturating_add(plan.targets().len());
            if !plan.may_go_on() {
                break;
            }
        }
        Ok(match first_full {
            Some((target, cell)) => Round::Full(target, cell),
            None => Round::NoTarget,
        })
    }

    fn pick(&self, target: &Target) -> Option<Shared<Cell>> {
        let pools = self.hub.pools();
        pools.with(|pools| {
            pools
                .pick(target.node, target.shard, self.entropy)
                .map(Shared::clone)
        })
    }

    /// One target: `None` means that the next one is to be tried.
    async fn attempt(
        &self,
        attempts: &mut Attempts,
        target: Target,
        cell: &Shared<Cell>,
        wait: bool,
    ) -> Result<Option<Ran>, Error> {
        let (mut same_target_retries, mut prepared_again) = (0, false);
        attempts.was_full = false;
        loop {
            let shard = cell.agreed().shard();
            let body = Body::new(self);
            let exchange =
                Exchange::new(Shared::clone(cell), self.head(), self.deadline, wait, &body);
            let error = match exchange.await {
                Exchanged::Full => {
                    attempts.was_full = true;
                    return Ok(None);
                }
                Exchanged::Failed(error) => error,
                Exchanged::Answer(answer) if answer.opcode != Opcode::Error => {
                    attempts.count();
                    let ran = Ran {
                        answer,
                        cell: Shared::clone(cell),
                        target,
                        attempts: attempts.made,
                        shape: body.shape,
                    };
                    return Ok(Some(ran));
                }
                Exchanged::Answer(answer) => server_error(&answer, cell.agreed()),
            };
            let mut error = error;
            let made = attempts.made;
            attempts.count();
            if error.kind() == ErrorKind::Server(ErrorCode::Unprepared) && !prepared_again {
                prepared_again = true;
                // On the heap, for it is rare and would make every request's future larger.
                match Box::pin(self.prepare_again(cell)).await {
                    Ok(()) => continue,
                    // The request itself was refused, whatever became of the PREPARE.
                    Err(cause) => error = cause.with_applied(Applied::No),
                }
            }
            let place = shard.map(ShardIdx::value);
            let error = error.at(Some(target.node.value()), place, made);
            attempts.saw(&error);
            let failure = Failure {
                error: &error,
                is_idempotent: self.is_idempotent,
                same_target_retries,
            };
            match decide(&failure) {
                Decision::SameTarget => same_target_retries = same_target_retries.saturating_add(1),
                Decision::NextTarget if attempts.made < ATTEMPTS_MAX => {
                    attempts.last = Some(error);
                    return Ok(None);
                }
                Decision::NextTarget | Decision::Fail => {
                    return Err(error.with_applied(attempts.applied));
                }
            }
        }
    }

    /// Decodes the answer, and passes a tablet that came with it on to those who keep them.
    pub(super) fn decode(&self, ran: Ran) -> Result<QueryResult, Error> {
        let info = RequestInfo {
            node: ran.target.node,
            shard: ran.cell.agreed().shard(),
            attempts: ran.attempts,
            tablet_learned: false,
            schema_changed: false,
        };
        let prepared = match &self.content {
            Content::Execute { statement, .. } => {
                ran.shape.as_ref().map(|shape| (*statement, &shape.columns))
            }
            Content::Query { .. } | Content::Prepare { .. } => None,
        };
        let decoded = QueryResult::decode(ran.answer, ran.cell.agreed(), prepared, info);
        // A response that cannot be read belongs to a request that was answered well.
        let Decoded { result, payload } = decoded.map_err(|error| {
            let shard = info.shard.map(ShardIdx::value);
            let attempt = info.attempts.saturating_sub(1);
            error
                .with_applied(Applied::Unknown)
                .at(Some(info.node.value()), shard, attempt)
        })?;
        if let (Some(payload), Some(table)) = (payload, self.route.table) {
            let (is_v2, payload) = (payload.is_v2, payload.value);
            self.hub.learn(LearnedTablet {
                table,
                is_v2,
                payload,
            });
        }
        Ok(result)
    }

    /// No target is left.
    fn exhausted(&self, attempts: Attempts) -> Error {
        if let Some(error) = attempts.last {
            return error.with_applied(attempts.applied);
        }
        if let Some(error) = self.hub.over() {
            return error;
        }
        Error::with_text(
            ErrorKind::Unreachable,
            "no connection is open; they are being opened again",
        )
    }
}

/// An answer, and who gave it.
pub(super) struct Ran {
    pub(super) answer: Answer,
    pub(super) cell: Shared<Cell>,
    pub(super) target: Target,
    attempts: u8,
    /// What an EXECUTE was written by.
    shape: Option<Shared<ResultShape>>,
}

/// How a round over the targets of a plan ended.
enum Round {
    Answered(Ran),
    /// None took the request; this one had no room.
    Full(Target, Shared<Cell>),
    NoTarget,
}

/// What the attempts of one request left behind.
struct Attempts {
    made: u8,
    applied: Applied,
    last: Option<Error>,
    was_full: bool,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            made: 0,
            applied: Applied::No,
            last: None,
            was_full: false,
        }
    }
}

impl Attempts {
    fn count(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    fn saw(&mut self, error: &Error) {
        if error.may_have_been_applied() {
            self.applied = Applied::Unknown;
        }
    }
}

pub(super) fn server_error(answer: &Answer, agreed: &Agreed) -> Error {
    let mut reader = Reader::new(answer.body.as_slice());
    let parsed = Extras::parse(answer.flags, &mut reader)
        .and_then(|_extras| ServerError::parse(&agreed.dialect(), &mut reader));
    match parsed {
        Ok(error) => Error::from_server(error),
        Err(error) => Error::from(error).with_applied(Applied::Unknown),
    }
}

/// Attempts of one request on different targets.
const ATTEMPTS_MAX: u8 = 5;
