//! One request and its attempts: rounds over the targets of its plan, retries, statements that a
//! node has lost, and the answer that ends it.
//!
//! The first round waits for nobody. If a target had no room, a second one queues where it must;
//! when all queues are full the request fails as busy. Only attempts that left us count, and none
//! is begun after the time limit. What each failure leads to is decided by
//! [`exec::retry`](crate::exec::retry); here it is done.

use alloc::boxed::Box;

use super::barred::why_all_are_barred;
use super::cell::Cell;
use super::exchange::{Exchange, Exchanged};
use super::outgoing::{Body, Content, Outgoing};
use super::rows::{Decoded, QueryResult, RequestInfo};
use crate::cluster::prepared::ResultShape;
use crate::conn::Answer;
use crate::error::{Applied, Error, ErrorKind, TimeoutKind};
use crate::exec::retry::{Decision, Failure, decide};
use crate::routing::{NodeIdx, Plan, ShardIdx, TableRef, Target, View, plan};
use crate::sync::Shared;
use crate::wire::Opcode;
use crate::wire::check_request_len;

impl Outgoing<'_> {
    /// Where it may go: the targets behind the first `skip`.
    pub(super) fn plan(&self, skip: usize) -> Plan {
        self.hub.view().with(|view| self.plan_in(view, skip))
    }

    /// The same with a view that the caller holds.
    pub(super) fn plan_in(&self, view: &View, skip: usize) -> Plan {
        if self.hub.is_single() {
            return Plan::only(NodeIdx::FIRST);
        }
        #[cfg(feature = "targeting")]
        if let Some(plan) = self.aimed_plan(view, skip) {
            return plan;
        }
        let (policy, pools) = (&self.hub.config().policy, self.hub.pools());
        pools.with(|pools| plan(view, &self.route, policy, pools, self.entropy, skip))
    }

    /// Makes attempts until one is answered or the error is the caller's.
    pub(super) async fn run(&self) -> Result<Ran, Error> {
        // Here too, so that a connection's output never grows by what it will refuse.
        let max = self.hub.config().limits.connection.request_len_max;
        check_request_len(self.least_len(), max)?;
        let mut attempts = Attempts::default();
        let mut wait = false;
        for _ in 0..ROUNDS_MAX {
            match self.round(&mut attempts, wait).await? {
                Round::Answered(ran) => return Ok(ran),
                Round::Full if wait => attempts.keep(Error::new(ErrorKind::Busy)),
                Round::Full => {
                    wait = true;
                    continue;
                }
                Round::Lost => {
                    wait = false;
                    continue;
                }
                Round::NoTarget => {}
            }
            break;
        }
        Err(self.exhausted(attempts))
    }

    /// Tries the targets of the plan in turn. With `wait` it queues where there is no room.
    async fn round(&self, attempts: &mut Attempts, wait: bool) -> Result<Round, Error> {
        let (mut skip, mut was_full, mut was_lost) = (0, false, false);
        loop {
            let plan = self.plan(skip);
            for target in plan.targets() {
                let (mut next, mut is_own) = (self.pick(target), true);
                while let Some(cell) = next.take() {
                    match self.attempt(attempts, *target, &cell, wait).await? {
                        Tried::Answered(ran) => return Ok(Round::Answered(ran)),
                        Tried::Full => {
                            was_full = true;
                            if core::mem::take(&mut is_own) && !wait {
                                next = self.pick_other(target, &cell);
                            }
                        }
                        // A closed connection stands in the pool until the control plane has heard
                        // of it: going on is right, beginning anew would only meet it again.
                        Tried::Failed => was_lost = wait,
                    }
                }
            }
            skip = skip.saturating_add(plan.listed());
            if !plan.may_go_on() {
                break;
            }
        }
        Ok(match (was_full, was_lost) {
            (true, _) => Round::Full,
            (false, true) => Round::Lost,
            (false, false) => Round::NoTarget,
        })
    }

    pub(super) fn pick(&self, target: &Target) -> Option<Shared<Cell>> {
        let picked = self.hub.pick(target, self.entropy);
        // Its connection may have gone since the plan was made, and another one been picked.
        #[cfg(feature = "targeting")]
        let picked = picked.filter(|cell| {
            self.only.is_none() || target.shard.is_none() || cell.agreed().shard() == target.shard
        });
        picked
    }

    /// Another connection of a node in place of a full one, if the policy allows.
    fn pick_other(&self, target: &Target, full: &Cell) -> Option<Shared<Cell>> {
        #[cfg(feature = "targeting")]
        if self.only.is_some() {
            return None;
        }
        if !self.hub.config().policy.other_shards_when_full {
            return None;
        }
        let pools = self.hub.pools();
        pools.with(|pools| pools.pick_other(target.node, full).map(Shared::clone))
    }

    /// One target, until it has answered or the next one is to be tried.
    async fn attempt(
        &self,
        attempts: &mut Attempts,
        target: Target,
        cell: &Shared<Cell>,
        wait: bool,
    ) -> Result<Tried, Error> {
        let (mut same_target_retries, mut prepared_again) = (0, 0_usize);
        loop {
            let body = Body::new(self);
            let exchange =
                Exchange::new(Shared::clone(cell), self.head(), self.deadline, wait, &body)
                    .meant_for(target.shard);
            let mut error = match exchange.await {
                Exchanged::Full => return Ok(Tried::Full),
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
                    return Ok(Tried::Answered(ran));
                }
                Exchanged::Answer(answer) => answer.server_error(cell.agreed()),
            };
            let (made, was_sent) = (attempts.made, was_sent(&error));
            if was_sent {
                attempts.count();
            }
            let lost = self.content.lost_statement(&error);
            if let Some(statement) = lost.filter(|_| prepared_again < self.content.statements()) {
                prepared_again = prepared_again.saturating_add(1);
                // On the heap, for it is rare and would make every request's future larger.
                match Box::pin(self.prepare_again(statement, cell)).await {
                    Ok(()) if self.has_time() => continue,
                    Ok(()) => error = Error::new(ErrorKind::Timeout(TimeoutKind::Request)),
                    // The request itself was refused, whatever became of the PREPARE.
                    Err(cause) => error = cause.with_applied(Applied::No),
                }
            }
            let shard = cell.agreed().shard().map(ShardIdx::value);
            let error = error.at(Some(target.node.value()), shard, made);
            attempts.saw(&error, was_sent);
            let failure = Failure {
                error: &error,
                is_idempotent: self.is_idempotent,
                same_target_retries,
            };
            match decide(&failure) {
                Decision::SameTarget if self.has_time() => {
                    same_target_retries = same_target_retries.saturating_add(1);
                }
                Decision::NextTarget if attempts.failed < ATTEMPTS_MAX && self.has_time() => {
                    attempts.keep(error);
                    return Ok(Tried::Failed);
                }
                _ => return Err(error.with_applied(attempts.applied)),
            }
        }
    }

    /// Whether a further attempt may be written. The first one needs no look at the clock.
    fn has_time(&self) -> bool {
        self.hub.clock().now() < self.deadline
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
                ran.shape.as_deref().map(|shape| (*statement, shape))
            }
            Content::Query { .. } | Content::Prepare { .. } | Content::Batch(_) => None,
        };
        let decoded = QueryResult::decode(ran.answer, ran.cell.agreed(), prepared, info);
        // A response that cannot be read belongs to a request that was answered well.
        let Decoded { result, tablet } = decoded.map_err(|error| {
            let shard = info.shard.map(ShardIdx::value);
            let attempt = info.attempts.saturating_sub(1);
            error
                .with_applied(Applied::Unknown)
                .at(Some(info.node.value()), shard, attempt)
        })?;
        if let (Some(tablet), Some(table)) = (tablet, self.learns_for()) {
            self.hub.learn(table, tablet);
        }
        Ok(result)
    }

    /// The table that a tablet in the answer would belong to. A batch gets none by what servers
    /// document; if one came it would be of the only table there is.
    fn learns_for(&self) -> Option<TableRef> {
        match &self.content {
            Content::Batch(batch) => self.hub.view().with(|view| batch.only_table(view)),
            _ => self.route.table,
        }
    }

    /// No target is left.
    fn exhausted(&self, attempts: Attempts) -> Error {
        if let Some(error) = attempts.last {
            return error.with_applied(attempts.applied);
        }
        if let Some(error) = self.hub.over() {
            return error;
        }
        #[cfg(feature = "targeting")]
        if let Some(error) = self.target_problem() {
            return error;
        }
        let policy = &self.hub.config().policy;
        let barred = self
            .hub
            .view()
            .with(|view| why_all_are_barred(view, policy));
        let text = barred.as_deref();
        let text = text.unwrap_or("no connection is open; they are being opened again");
        Error::with_text(ErrorKind::Unreachable, text)
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
    /// No target is left, and one of them had no room.
    Full,
    /// The request was lost where it waited; others may have room by now.
    Lost,
    NoTarget,
}

/// How it went at one target.
enum Tried {
    Answered(Ran),
    /// It has no room: not even in its queue, if waiting was allowed.
    Full,
    /// The next target may be tried.
    Failed,
}

/// What the attempts of one request left behind.
struct Attempts {
    /// Written and answered or lost, those included that ended in preparing again.
    made: u8,
    /// Those that ended in an error.
    failed: u8,
    applied: Applied,
    last: Option<Error>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            made: 0,
            failed: 0,
            applied: Applied::No,
            last: None,
        }
    }
}

impl Attempts {
    fn count(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    fn saw(&mut self, error: &Error, was_sent: bool) {
        self.failed = self.failed.saturating_add(u8::from(was_sent));
        if error.may_have_been_applied() {
            self.applied = Applied::Unknown;
        }
    }

    /// Keeps an error in case no further target answers. Being busy hides no other one.
    fn keep(&mut self, error: Error) {
        if error.kind() != ErrorKind::Busy || self.last.is_none() {
            self.last = Some(error);
        }
    }
}

/// Whether a failed attempt left us at all. One that a closed connection refused, or that was
/// still ours when its link broke, tells nothing about its node and counts as none.
fn was_sent(error: &Error) -> bool {
    let is_lost = matches!(
        error.kind(),
        ErrorKind::Link(_) | ErrorKind::PeerMisbehaved(_) | ErrorKind::Busy
    );
    !is_lost || error.may_have_been_applied()
}

/// Attempts of one request that may fail.
const ATTEMPTS_MAX: u8 = 5;

/// Rounds over the targets: a bound beside the time limit for requests that are lost where they
/// wait, again and again.
const ROUNDS_MAX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{LinkError, PeerMisbehaved};
    use crate::wire::response::ErrorCode;

    /// What a closed connection refused, or never wrote, is no attempt; what a node said is one.
    #[test]
    fn only_what_left_us_counts() {
        let timeout = ErrorKind::Timeout(TimeoutKind::Request);
        for (error, applied, counts) in [
            (Error::from(LinkError::CLOSED_BY_PEER), Applied::No, false),
            (
                Error::from(LinkError::CLOSED_BY_PEER),
                Applied::Unknown,
                true,
            ),
            (Error::from(PeerMisbehaved::BadHeader), Applied::No, false),
            (
                Error::from(PeerMisbehaved::BadHeader),
                Applied::Unknown,
                true,
            ),
            (Error::new(ErrorKind::Busy), Applied::No, false),
            (
                Error::new(ErrorKind::Server(ErrorCode::Overloaded)),
                Applied::No,
                true,
            ),
            (
                Error::new(ErrorKind::Server(ErrorCode::Server)),
                Applied::Unknown,
                true,
            ),
            (Error::new(timeout), Applied::Unknown, true),
        ] {
            let error = error.with_applied(applied);
            assert_eq!(was_sent(&error), counts, "{error:?}");
        }
    }

    #[test]
    fn being_busy_hides_no_other_error() {
        let (busy, lost) = (
            Error::new(ErrorKind::Busy),
            Error::from(LinkError::CLOSED_BY_PEER),
        );
        for (first, second) in [(&busy, &lost), (&lost, &busy)] {
            let mut attempts = Attempts::default();
            attempts.keep(first.clone());
            assert_eq!(attempts.last.as_ref(), Some(first));
            attempts.keep(second.clone());
            assert_eq!(attempts.last.as_ref(), Some(&lost));
        }
    }
}
