//! The public handle of a cluster: prepare, execute, query, pages.
//!
//! One request goes like this: values are encoded and hashed when the method is called; the plan
//! names targets; the request is written into the first target's connection at the future's first
//! poll; the caller's own task decodes the answer. Dropping a future at any time is safe: an answer
//! that comes later is dropped, and its stream id is reused only then.

use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

use bytes::BytesMut;

use super::cell::Cell;
use super::exchange::{Exchange, Exchanged, FrameBody};
use super::hub::{Hub, Report};
use super::rows::{Decoded, QueryResult, RequestInfo};
use super::statement::{Prepared, Statement, StatementOptions};
use super::status::Status;
use crate::cluster::LearnedTablet;
use crate::cluster::prepared::{PreparedStatement, ResultShape};
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::conn::{Answer, RequestHead, check_request_len};
use crate::error::{Applied, Error, ErrorKind, PeerMisbehaved};
use crate::exec::paging::{Paging, PagingState};
use crate::exec::retry::{Decision, Failure, decide};
use crate::routing::{
    KeyspaceConsistency, Plan, RouteRequest, TableRef, Target, Token, plan, probe,
};
use crate::sync::Shared;
use crate::time::Instant;
use crate::types::EncodeRow;
use crate::wire::request::{Execute, Prepare, Query, QueryParameters, RequestBody};
use crate::wire::response::{ErrorCode, Extras, ResultBody, ServerError};
use crate::wire::{
    EncodeError, EncodedValues, Flags, Opcode, Reader, SerialConsistency, SmallBuffer, Values,
    ValuesBuilder,
};

/// Values of most statements fit here; larger ones go to the heap.
const VALUES_INLINE: usize = 256;

type EncodedRow = EncodedValues<SmallBuffer<VALUES_INLINE>>;

/// A handle of a cluster. Cheap to clone; `Send + Sync` with feature `std`. When the last handle
/// is dropped the session ends; requests under way finish.
#[derive(Clone, Debug)]
pub struct Session {
    handle: Shared<Handle>,
}

/// Ends the session when the last handle is gone.
struct Handle {
    hub: Shared<Hub>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.hub.report(Report::Shutdown);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hub.fmt(f)
    }
}

impl Session {
    pub(super) fn new(hub: Shared<Hub>) -> Self {
        Self {
            handle: Shared::new(Handle { hub }),
        }
    }

    fn hub(&self) -> &Hub {
        &self.handle.hub
    }

    /// Waits until the session can be used: one connection is open and the topology is known.
    ///
    /// Fails when no contact point could be reached, within `Timeouts::connect`.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut watch = self.hub().watch();
        poll_fn(|cx| watch.poll_ready(cx)).await
    }

    /// Prepares a statement on every connected node and returns when the first has answered and
    /// the others have too, or have failed. Statements are kept: preparing the same text again
    /// costs nothing.
    pub async fn prepare(&self, statement: impl Into<Statement<'_>>) -> Result<Prepared, Error> {
        let statement = statement.into();
        let options = statement.options().clone();
        let found = self
            .hub()
            .prepared()
            .with(|cache| cache.find(statement.text()));
        if let Ok(Some(inner)) = found {
            return Ok(Prepared::new(inner, options));
        }
        let inner = self.prepare_anew(statement.text(), &options).await?;
        let evicted = self
            .hub()
            .prepared()
            .with(|cache| cache.insert(Shared::clone(&inner)));
        drop(evicted);
        Ok(Prepared::new(inner, options))
    }

    /// Executes a prepared statement with values for all of its markers.
    ///
    /// The values are encoded at once, before the future is polled.
    pub fn execute<'a, V: EncodeRow>(
        &'a self,
        prepared: &'a Prepared,
        values: V,
    ) -> impl Future<Output = Result<QueryResult, Error>> + use<'a, V> {
        let encoded = encode(prepared, &values);
        drop(values);
        async move {
            // By reference: moved out, the values would lie in the future twice.
            match &encoded {
                Ok(values) => self.execute_encoded(prepared, values, None).await,
                Err(error) => Err(error.clone()),
            }
        }
    }

    /// Reads the pages of a prepared statement one after the other.
    pub fn pages<'a>(
        &'a self,
        prepared: &'a Prepared,
        values: impl EncodeRow,
    ) -> Result<Pager<'a>, Error> {
        let values = encode(prepared, &values)?;
        let paging = match &prepared.options().paging_state {
            Some(state) => Paging::More(state.clone()),
            None => Paging::Start,
        };
        Ok(Pager {
            session: self,
            prepared,
            values,
            paging,
        })
    }

    /// Runs a statement by its text.
    ///
    /// With values it is prepared first, so that they are checked against their types and the
    /// request finds its replica. The same goes for reads and writes while the cluster has
    /// strongly consistent keyspaces: nodes that speak the second tablets extension answer such
    /// statements with an error after they have applied them, unless they come prepared.
    pub async fn query(
        &self,
        statement: impl Into<Statement<'_>>,
        values: impl EncodeRow,
    ) -> Result<QueryResult, Error> {
        let statement = statement.into();
        let bare = is_empty_row(&values);
        if !bare || self.must_prepare(statement.text()) {
            let prepared = self.prepare(statement).await?;
            return self.execute(&prepared, values).await;
        }
        self.query_unprepared(statement).await
    }

    /// Runs a statement by its text, without values and without preparing it.
    pub async fn query_unprepared(
        &self,
        statement: impl Into<Statement<'_>>,
    ) -> Result<QueryResult, Error> {
        let statement = statement.into();
        let options = statement.options();
        let content = Content::Query {
            text: statement.text(),
        };
        let request = self.outgoing(content, options, None, None, None);
        let ran = self.run(&request).await?;
        let result = self.decode(ran, None)?;
        if result.info().schema_changed {
            return Ok(self.settle_after(result).await);
        }
        Ok(result)
    }

    /// Waits until all nodes agree on the schema and this session knows it; `false` if they did
    /// not within `Timeouts::schema_agreement`. Statements that change the schema do this by
    /// themselves.
    pub async fn settle(&self) -> Result<bool, Error> {
        let mut settling = self.hub().settle()?;
        poll_fn(|cx| settling.poll(cx)).await
    }

    /// Explains where a prepared statement with these values would go, without sending it.
    pub fn route(&self, prepared: &Prepared, values: impl EncodeRow) -> Result<Route, Error> {
        let encoded = encode(prepared, &values)?;
        let request = self.execution(prepared, &encoded, None)?;
        Ok(Route {
            token: request.route.token,
            plan: self.plan(&request, self.hub().draw(), 0),
        })
    }

    /// What is known of the cluster and how it is connected.
    pub fn status(&self) -> Status {
        Status::of(self.hub())
    }

    /// Ends the session: no new requests, those under way finish, connections close. Returns when
    /// the driver has begun to.
    pub async fn close(&self) {
        if self.hub().over().is_some() {
            return;
        }
        self.hub().report(Report::Shutdown);
        let mut watch = self.hub().watch();
        let _ = poll_fn(|cx| watch.poll_over(cx)).await;
    }

    /// Reads and writes must be prepared while there are strongly consistent keyspaces.
    fn must_prepare(&self, text: &str) -> bool {
        let strong =
            |table: &crate::routing::Table| table.consistency() == KeyspaceConsistency::Strong;
        is_data_statement(text) && self.hub().view().with(|view| view.tables().any(strong))
    }

    async fn execute_encoded(
        &self,
        prepared: &Prepared,
        values: &EncodedRow,
        page: Option<&PagingState>,
    ) -> Result<QueryResult, Error> {
        let request = self.execution(prepared, values, page)?;
        let ran = self.run(&request).await?;
        let result = self.decode(ran, Some(&request))?;
        if result.info().schema_changed {
            return Ok(self.settle_after(result).await);
        }
        Ok(result)
    }

    /// A change of the schema settles. The statement was applied all the same if that fails: the
    /// session has ended, and says so to whoever asks next.
    async fn settle_after(&self, result: QueryResult) -> QueryResult {
        let _ = self.settle().await;
        result
    }

    fn execution<'a>(
        &'a self,
        prepared: &'a Prepared,
        values: &'a EncodedRow,
        page: Option<&'a PagingState>,
    ) -> Result<Outgoing<'a>, Error> {
        let (inner, values) = (prepared.inner(), values.values());
        let located = self.hub().view().with(|view| {
            Ok::<_, crate::routing::KeyError>((inner.table(view), inner.token(view, values)?))
        });
        let (table, token) = located.map_err(|_| key_too_long())?;
        let content = Content::Execute {
            statement: inner,
            values,
        };
        Ok(self.outgoing(content, prepared.options(), table, token, page))
    }

    fn outgoing<'a>(
        &'a self,
        content: Content<'a>,
        options: &'a StatementOptions,
        table: Option<TableRef>,
        token: Option<Token>,
        page: Option<&'a PagingState>,
    ) -> Outgoing<'a> {
        let (hub, config) = (self.hub(), self.hub().config());
        let consistency = options.consistency.unwrap_or(config.consistency);
        let is_lwt = matches!(&content, Content::Execute { statement, .. } if statement.is_lwt());
        let timeout = options.timeout.unwrap_or(config.timeouts.request);
        Outgoing {
            hub,
            content,
            route: RouteRequest {
                table,
                token,
                consistency,
                is_lwt,
            },
            serial_consistency: options
                .serial_consistency
                .unwrap_or(config.serial_consistency),
            page_size: options
                .page_size
                .or(config.page_size)
                .filter(|&rows| rows > 0),
            page: page.or(options.paging_state.as_ref()),
            timestamp: options.timestamp.or_else(|| hub.timestamp()),
            is_traced: options.is_traced,
            is_idempotent: options.is_idempotent,
            deadline: hub.clock().now().saturating_add(timeout),
            entropy: hub.draw(),
        }
    }

    fn plan(&self, request: &Outgoing<'_>, entropy: u64, skip: usize) -> Plan {
        let policy = &self.hub().config().policy;
        self.hub().view().with(|view| {
            self.hub()
                .pools()
                .with(|pools| plan(view, &request.route, policy, pools, entropy, skip))
        })
    }

    /// Makes attempts until one is answered or the error is the caller's. Rounds are bounded: each
    /// further one follows an attempt that was lost while it waited, and attempts are.
    async fn run(&self, request: &Outgoing<'_>) -> Result<Ran, Error> {
        // Here too, so that a connection's output never grows by what it will refuse.
        let max = self.hub().config().limits.connection.request_len_max;
        check_request_len(request.least_len(), max)?;
        let mut attempts = Attempts::default();
        loop {
            let (target, cell) = match self.try_targets(request, &mut attempts).await? {
                Round::Answered(ran) => return Ok(ran),
                Round::Full(target, cell) => (target, cell),
                Round::NoTarget => return Err(self.exhausted(attempts)),
            };
            let waited = self.attempt(request, &mut attempts, target, &cell, true);
            if let Some(ran) = waited.await? {
                return Ok(ran);
            }
        }
    }

    /// Tries the targets of the plan, none of which is waited for.
    async fn try_targets(
        &self,
        request: &Outgoing<'_>,
        attempts: &mut Attempts,
    ) -> Result<Round, Error> {
        let (mut skip, mut first_full) = (0, None);
        loop {
            let plan = self.plan(request, request.entropy, skip);
            for target in plan.targets() {
                let Some(cell) = self.pick(target, request.entropy) else {
                    continue;
                };
                let attempt = self.attempt(request, attempts, *target, &cell, false);
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

    fn pick(&self, target: &Target, entropy: u64) -> Option<Shared<Cell>> {
        let pools = self.hub().pools();
        pools.with(|pools| {
            pools
                .pick(target.node, target.shard, entropy)
                .map(Shared::clone)
        })
    }

    /// One target: `None` means that the next one is to be tried.
    async fn attempt(
        &self,
        request: &Outgoing<'_>,
        attempts: &mut Attempts,
        target: Target,
        cell: &Shared<Cell>,
        wait: bool,
    ) -> Result<Option<Ran>, Error> {
        let (mut same_target_retries, mut prepared_again) = (0, false);
        attempts.was_full = false;
        loop {
            let shard = cell.agreed().shard();
            let body = Body::new(request);
            let exchange = Exchange::new(
                Shared::clone(cell),
                request.head(),
                request.deadline,
                wait,
                &body,
            );
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
                match self.prepare_again(request, cell).await {
                    Ok(()) => continue,
                    // The request itself was refused, whatever became of the PREPARE.
                    Err(cause) => error = cause.with_applied(Applied::No),
                }
            }
            let place = shard.map(crate::routing::ShardIdx::value);
            let error = error.at(Some(target.node.value()), place, made);
            attempts.saw(&error);
            let failure = Failure {
                error: &error,
                is_idempotent: request.is_idempotent,
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

    /// The node has lost the statement: gives it back on the same connection.
    async fn prepare_again(
        &self,
        request: &Outgoing<'_>,
        cell: &Shared<Cell>,
    ) -> Result<(), Error> {
        let Content::Execute { statement, .. } = &request.content else {
            return Err(PeerMisbehaved::UnexpectedFrame.into());
        };
        let content = Content::Prepare {
            text: statement.text(),
        };
        let prepare = Outgoing {
            content,
            ..request.clone_head()
        };
        let answer = self.ask(&prepare, cell).await?;
        let mut changed = false;
        with_prepared(&answer, cell.agreed(), |body| {
            changed = body.id != statement.id();
            match changed {
                true => Ok(()),
                false => statement.handle_prepared(body),
            }
        })?;
        if changed {
            return Err(Error::with_text(
                ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody),
                "the statement got another id when it was prepared again",
            ));
        }
        Ok(())
    }

    /// One exchange without retries; an ERROR answer is an error.
    async fn ask(&self, request: &Outgoing<'_>, cell: &Shared<Cell>) -> Result<Answer, Error> {
        let exchange = Exchange::new(
            Shared::clone(cell),
            request.head(),
            request.deadline,
            true,
            Body::new(request),
        );
        match exchange.await {
            Exchanged::Answer(answer) if answer.opcode == Opcode::Error => {
                Err(server_error(&answer, cell.agreed()))
            }
            Exchanged::Answer(answer) => Ok(answer),
            Exchanged::Failed(error) => Err(error),
            Exchanged::Full => Err(Error::new(ErrorKind::Busy)),
        }
    }

    /// Prepares on one node, then on all others at once; their failures do not matter, since a
    /// node that lacks the statement asks for it.
    async fn prepare_anew(
        &self,
        text: &str,
        options: &StatementOptions,
    ) -> Result<Shared<PreparedStatement>, Error> {
        let options = StatementOptions {
            is_idempotent: true,
            ..options.clone()
        };
        let request = self.outgoing(Content::Prepare { text }, &options, None, None, None);
        let ran = self.run(&request).await?;
        let mut prepared = None;
        with_prepared(&ran.answer, ran.cell.agreed(), |body| {
            prepared = Some(PreparedStatement::parse(text, body, ran.cell.agreed())?);
            Ok(())
        })?;
        let prepared = prepared.ok_or_else(|| Error::bug("a prepared statement got lost"))?;
        let mut others: Vec<_> = self
            .hub()
            .pools()
            .with(|pools| pools.one_of_each_node(request.entropy))
            .into_iter()
            .filter(|(node, _)| *node != ran.target.node)
            .map(|(_, cell)| {
                let body = Body::new(&request);
                Exchange::new(cell, request.head(), request.deadline, true, body)
            })
            .collect();
        poll_fn(|cx| {
            others.retain_mut(|exchange| Pin::new(exchange).poll(cx).is_pending());
            if others.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        Ok(Shared::new(prepared))
    }

    fn decode(&self, ran: Ran, request: Option<&Outgoing<'_>>) -> Result<QueryResult, Error> {
        let info = RequestInfo {
            node: ran.target.node,
            shard: ran.cell.agreed().shard(),
            attempts: ran.attempts,
            tablet_learned: false,
            schema_changed: false,
        };
        let prepared = request.and_then(|request| match &request.content {
            Content::Execute { statement, .. } => Some((*statement, &ran.shape.as_ref()?.columns)),
            _ => None,
        });
        let decoded = QueryResult::decode(ran.answer, ran.cell.agreed(), prepared, info);
        // A response that cannot be read belongs to a request that was answered well.
        let Decoded { result, payload } = decoded.map_err(|error| {
            let shard = info.shard.map(crate::routing::ShardIdx::value);
            let attempt = info.attempts.saturating_sub(1);
            error
                .with_applied(Applied::Unknown)
                .at(Some(info.node.value()), shard, attempt)
        })?;
        let table = request.and_then(|request| request.route.table);
        if let (Some(payload), Some(table)) = (payload, table) {
            let (is_v2, payload) = (payload.is_v2, payload.value);
            self.hub().learn(LearnedTablet {
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
        if let Some(error) = self.hub().over() {
            return error;
        }
        Error::with_text(
            ErrorKind::Unreachable,
            "no connection is open; they are being opened again",
        )
    }
}

/// Reads the pages of a statement one after the other; each is a request of its own with a time
/// limit of its own.
#[derive(Debug)]
pub struct Pager<'a> {
    session: &'a Session,
    prepared: &'a Prepared,
    values: EncodedRow,
    paging: Paging,
}

impl Pager<'_> {
    /// The next page, or `None` after the last one. A page may be empty and more may follow. After
    /// an error the same page is asked for again. Dropping the future leaves the pager where it is.
    pub async fn next_page(&mut self) -> Result<Option<QueryResult>, Error> {
        let Some(state) = self.paging.next() else {
            return Ok(None);
        };
        let page = self
            .session
            .execute_encoded(self.prepared, &self.values, state)
            .await?;
        self.paging.advance(page.paging_state().cloned());
        Ok(Some(page))
    }

    /// How far it has come.
    pub const fn paging(&self) -> &Paging {
        &self.paging
    }
}

/// Where a request would go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// The token of its partition.
    pub token: Option<Token>,
    /// The targets, best first, and what told them.
    pub plan: Plan,
}

/// What is sent.
#[derive(Clone)]
enum Content<'a> {
    Query {
        text: &'a str,
    },
    Prepare {
        text: &'a str,
    },
    Execute {
        statement: &'a PreparedStatement,
        values: Values<'a>,
    },
}

/// A request with everything that its attempts share.
struct Outgoing<'a> {
    hub: &'a Hub,
    content: Content<'a>,
    route: RouteRequest,
    serial_consistency: SerialConsistency,
    page_size: Option<i32>,
    page: Option<&'a PagingState>,
    timestamp: Option<i64>,
    is_traced: bool,
    is_idempotent: bool,
    deadline: Instant,
    entropy: u64,
}

impl Outgoing<'_> {
    fn head(&self) -> RequestHead {
        let opcode = match self.content {
            Content::Query { .. } => Opcode::Query,
            Content::Prepare { .. } => Opcode::Prepare,
            Content::Execute { .. } => Opcode::Execute,
        };
        let flags = if self.is_traced {
            Flags::TRACING
        } else {
            Flags::NONE
        };
        RequestHead { opcode, flags }
    }

    /// Bytes of the body that are known before it is written.
    fn least_len(&self) -> usize {
        match &self.content {
            Content::Query { text } | Content::Prepare { text } => text.len(),
            Content::Execute { values, .. } => values.as_bytes().len(),
        }
    }

    /// The same without its content.
    fn clone_head(&self) -> Self {
        Self {
            content: Content::Prepare { text: "" },
            ..*self
        }
    }

    fn parameters<'v>(&'v self, values: Values<'v>, skip_metadata: bool) -> QueryParameters<'v> {
        QueryParameters {
            values,
            skip_metadata,
            page_size: self.page_size,
            paging_state: self.page.map(|state| &state.as_bytes()[..]),
            serial_consistency: Some(self.serial_consistency),
            timestamp: self.timestamp,
            ..QueryParameters::new(self.route.consistency)
        }
    }

    /// The version block, where the connection wants one. Drawn when the request is written, so
    /// that a tablet's probe positions are used up by requests that carry them only.
    fn version_block(&self, agreed: &Agreed) -> Option<u8> {
        (agreed.tablets == TabletsRouting::V2).then(|| {
            let RouteRequest { table, token, .. } = self.route;
            self.hub
                .view()
                .with(|view| probe(view, table, token, self.entropy))
                .byte()
        })
    }
}

/// What one attempt writes: the request, and the result's columns that its answer is decoded by.
/// Each attempt looks at the statement afresh, since preparing again may have changed them.
struct Body<'a> {
    request: &'a Outgoing<'a>,
    shape: Option<Shared<ResultShape>>,
}

impl<'a> Body<'a> {
    fn new(request: &'a Outgoing<'a>) -> Self {
        let shape = match &request.content {
            Content::Execute { statement, .. } => Some(statement.result()),
            Content::Query { .. } | Content::Prepare { .. } => None,
        };
        Self { request, shape }
    }
}

impl FrameBody for Body<'_> {
    fn put(&self, agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError> {
        let version = agreed.version;
        let request = self.request;
        match &request.content {
            Content::Query { text } => Query {
                text,
                parameters: request.parameters(Values::EMPTY, false),
            }
            .put(version, sink),
            Content::Prepare { text } => Prepare {
                text,
                keyspace: None,
            }
            .put(version, sink),
            Content::Execute { statement, values } => {
                let shape = self.shape.as_deref();
                let skip_metadata = shape.is_some_and(|shape| shape.may_skip_metadata(agreed));
                let metadata_id = shape.and_then(|shape| shape.metadata_id.as_deref());
                let metadata_id = metadata_id.unwrap_or_default();
                let execute = Execute {
                    id: statement.id(),
                    result_metadata_id: agreed.metadata_id.then_some(metadata_id),
                    parameters: request.parameters(*values, skip_metadata),
                    tablet_version_block: request.version_block(agreed),
                };
                execute.put(version, sink)
            }
        }
    }
}

impl FrameBody for &Body<'_> {
    fn put(&self, agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError> {
        (**self).put(agreed, sink)
    }
}

/// An answer, and who gave it.
struct Ran {
    answer: Answer,
    cell: Shared<Cell>,
    target: Target,
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

fn encode(prepared: &Prepared, values: &impl EncodeRow) -> Result<EncodedRow, Error> {
    let mut builder = ValuesBuilder::new(SmallBuffer::new());
    values
        .encode_row(prepared.markers(), &mut builder)
        .map_err(Error::bind)?;
    Ok(builder.finish())
}

/// Whether a row has no values: it fits a statement without markers.
fn is_empty_row(values: &impl EncodeRow) -> bool {
    let mut builder = ValuesBuilder::new(SmallBuffer::<0>::new());
    values.encode_row(&[], &mut builder).is_ok()
}

fn server_error(answer: &Answer, agreed: &Agreed) -> Error {
    let mut reader = Reader::new(answer.body.as_slice());
    let parsed = Extras::parse(answer.flags, &mut reader)
        .and_then(|_extras| ServerError::parse(&agreed.dialect(), &mut reader));
    match parsed {
        Ok(error) => Error::from_server(error),
        Err(error) => Error::from(error).with_applied(Applied::Unknown),
    }
}

/// Reads a PREPARED answer.
fn with_prepared(
    answer: &Answer,
    agreed: &Agreed,
    read: impl FnOnce(&crate::wire::response::Prepared<'_>) -> Result<(), crate::wire::ParseError>,
) -> Result<(), Error> {
    let mut reader = Reader::new(answer.body.as_slice());
    Extras::parse(answer.flags, &mut reader)?;
    match ResultBody::parse(&agreed.dialect(), &mut reader)? {
        ResultBody::Prepared(body) => Ok(read(&body)?),
        _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
}

/// Whether a statement reads or writes rows, by its first word.
fn is_data_statement(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    ["select", "insert", "update", "delete"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

fn key_too_long() -> Error {
    Error::with_text(
        ErrorKind::Encode(crate::error::EncodeFailure::Value),
        "a component of the partition key is longer than 65535 bytes",
    )
}

/// Attempts of one request on different targets.
const ATTEMPTS_MAX: u8 = 5;
