//! The public handle of a cluster: prepare, execute, query, pages.
//!
//! One request goes like this: values are encoded and hashed when the method is called; the plan
//! names targets; the request is written into the first target's connection at the future's first
//! poll; the caller's own task decodes the answer. Dropping a future at any time is safe: an answer
//! that comes later is dropped, and its stream id is reused only then.

use alloc::boxed::Box;
use core::fmt;
use core::future::{Future, poll_fn};
use core::net::SocketAddr;

use uuid::Uuid;

use super::hub::Hub;
use super::inbox::Report;
use super::outgoing::{Content, Outgoing};
use super::pager::Pager;
use super::pools::Pools;
use super::route::Route;
use super::rows::QueryResult;
use super::statement::{Prepared, Statement, StatementOptions};
use super::status::{ShardAwareStats, Status};
use crate::cluster::kind::StatementKind;
use crate::cluster::naming::TableName;
use crate::error::{EncodeFailure, Error, ErrorKind};
use crate::exec::paging::PagingState;
use crate::routing::{KeyError, KeyspaceConsistency, Node, NodeIdx, TableRef, View};
use crate::sync::Shared;
use crate::target::Endpoint;
use crate::types::{BindError, EncodeRow};
use crate::wire::{EncodedValues, SmallBuffer, Values, ValuesBuilder};

/// Values of most statements fit here; larger ones go to the heap.
const VALUES_INLINE: usize = 256;

/// Keyspaces of the servers themselves, which no user can make strongly consistent.
const SYSTEM_KEYSPACES: [&str; 7] = [
    "system",
    "system_auth",
    "system_distributed",
    "system_distributed_everywhere",
    "system_schema",
    "system_traces",
    "system_views",
];

pub(super) type EncodedRow = EncodedValues<SmallBuffer<VALUES_INLINE>>;

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

    pub(super) fn hub(&self) -> &Hub {
        &self.handle.hub
    }

    /// Waits until the session can be used: one connection is open and the topology is known.
    ///
    /// Fails when no contact point could be reached, within `Timeouts::connect`.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut watch = self.hub().life().watch();
        poll_fn(|cx| watch.poll_ready(cx)).await
    }

    /// Prepares a statement on every connected node and returns when the first has answered and
    /// the others have too, have failed, or are late by a second. Statements are kept: preparing the
    /// same text again, for the same keyspace, costs nothing, unless values did not fit its markers since, as where a column has
    /// become one of another type.
    pub async fn prepare(&self, statement: impl Into<Statement<'_>>) -> Result<Prepared, Error> {
        let statement = statement.into();
        let options = statement.options().clone();
        let found = self
            .hub()
            .prepared()
            .with(|cache| cache.find(statement.text(), options.keyspace.as_deref()));
        if let Ok(Some(inner)) = found
            && !inner.is_doubtful()
        {
            return Ok(Prepared::new(inner, options));
        }
        let idempotent = StatementOptions {
            is_idempotent: true,
            ..options.clone()
        };
        let text = statement.text();
        let content = Content::Prepare { text };
        let request = Outgoing::new(self.hub(), content, &idempotent, None, None, None);
        let inner = request
            .prepare_anew(text, options.keyspace.as_deref())
            .await?;
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
        Ok(Pager::new(self, prepared, values))
    }

    /// Runs a statement by its text.
    ///
    /// With values it is prepared first, so that they are checked against their types and the
    /// request finds its replica. The same goes for reads and writes of strongly consistent tables,
    /// and of those that the session does not know yet: nodes that speak the second tablets extension
    /// answer such statements with an error after they have applied them, unless they come prepared.
    ///
    /// A USE statement concerns the one connection that it comes to, so the next request may find its
    /// keyspace or not: name keyspaces, or set [`Config::keyspace`](crate::config::Config::keyspace).
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

    /// Runs a statement by its text, without values and without preparing it: what reads or writes
    /// strongly consistent tables may be answered with an error after it was applied, as
    /// [`query`](Self::query) says.
    pub async fn query_unprepared(
        &self,
        statement: impl Into<Statement<'_>>,
    ) -> Result<QueryResult, Error> {
        let statement = statement.into();
        self.query_with(statement.text(), Values::EMPTY, statement.options(), None)
            .await
    }

    /// Runs the text of a prepared statement with values by QUERY: preparing has only told their
    /// types. For tools that look at servers: the request finds no replica, and may be answered
    /// with an error after it was applied, as [`query`](Self::query) says.
    pub async fn execute_unprepared(
        &self,
        prepared: &Prepared,
        values: impl EncodeRow,
    ) -> Result<QueryResult, Error> {
        let encoded = encode(prepared, &values)?;
        // Known for what the answer may tell of its tablets; the request goes anywhere.
        let inner = prepared.inner();
        let table = self.hub().view().with(|view| inner.table(view));
        self.query_with(inner.text(), encoded.values(), prepared.options(), table)
            .await
    }

    async fn query_with(
        &self,
        text: &str,
        values: Values<'_>,
        options: &StatementOptions,
        table: Option<TableRef>,
    ) -> Result<QueryResult, Error> {
        let content = Content::Query { text, values };
        let request = Outgoing::new(self.hub(), content, options, table, None, None);
        let ran = request.run().await?;
        let result = request.decode(ran)?;
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
        Ok(Route::new(&request, prepared.inner()))
    }

    /// What is known of the cluster and how it is connected.
    pub fn status(&self) -> Status {
        Status::of(self.hub())
    }

    /// What planning knows at this moment: nodes, tables and learned tablets. It does not change any
    /// more, but for tablets that are learned.
    pub fn view(&self) -> Shared<View> {
        self.hub().view().load()
    }

    /// Identity and address of a node, as its cluster tells them: what stands under an index may
    /// be another node by now. `None` for a node that has left.
    pub fn identity(&self, node: NodeIdx) -> Option<(Uuid, SocketAddr)> {
        let view = self.hub().view();
        view.with(|view| {
            let node = view.topology().node(node)?;
            Some((node.host_id(), node.address()))
        })
    }

    /// Where a node is reached: its address, or the name that it is known by where the transport
    /// resolves names. `None` for a node that has left.
    pub fn endpoint(&self, node: NodeIdx) -> Option<Endpoint> {
        let summary = self.hub().summary();
        let known = summary.nodes.iter().find(|known| known.node == node)?;
        Some(known.reach.endpoint.clone())
    }

    /// Whether any node has told how it shards, so that requests go to the shard of their partition
    /// where it has a connection.
    pub fn is_shard_aware(&self) -> bool {
        let shards = |node: &Node| node.shard_map().is_some();
        self.hub()
            .view()
            .with(|view| view.topology().nodes().any(shards))
    }

    /// How many shards of each node have a connection, and how many requests reached theirs.
    pub fn shard_aware_stats(&self) -> ShardAwareStats {
        ShardAwareStats::of(self.hub())
    }

    /// Ends the session: no new requests, those under way finish, connections close. Returns when
    /// the driver has begun to.
    pub async fn close(&self) {
        if self.hub().over().is_some() {
            return;
        }
        self.hub().report(Report::Shutdown);
        let mut watch = self.hub().life().watch();
        let _ = poll_fn(|cx| watch.poll_over(cx)).await;
    }

    /// Whether a node may answer this text with an error after it has applied it: for all that is
    /// known it may read or write a strongly consistent table.
    fn must_prepare(&self, text: &str) -> bool {
        let hub = self.hub();
        !hub.is_single()
            && StatementKind::of(text).is_data()
            && hub.pools().with(Pools::speaks_v2)
            && !self.names_eventual_table(text)
    }

    /// Whether a text names a table of the system, or one that is known not to be strongly
    /// consistent. What was made of late, or since an earlier session saved what this one knows,
    /// is not known.
    fn names_eventual_table(&self, text: &str) -> bool {
        let Some(name) = TableName::of(text) else {
            return false;
        };
        let default = self.hub().config().keyspace.as_deref();
        let Some(keyspace) = name.keyspace.as_deref().or(default) else {
            return false;
        };
        let is_eventual = |view: &View| {
            let table = view.table_by_name(keyspace, &name.table);
            table.is_some_and(|table| table.consistency() == KeyspaceConsistency::Eventual)
        };
        SYSTEM_KEYSPACES.contains(&keyspace) || self.hub().view().with(is_eventual)
    }

    pub(super) async fn execute_encoded(
        &self,
        prepared: &Prepared,
        values: &EncodedRow,
        page: Option<&PagingState>,
    ) -> Result<QueryResult, Error> {
        let request = self.execution(prepared, values, page)?;
        #[cfg(feature = "lwt-learning")]
        if let Some(wanted) = self.claim_learning(&request) {
            // On the heap, for it is rare and would make every request's future larger.
            Box::pin(self.learn_before(&request, wanted)).await;
        }
        let ran = request.run().await?;
        let result = request.decode(ran)?;
        if result.info().schema_changed {
            return Ok(self.settle_after(result).await);
        }
        Ok(result)
    }

    /// A change of the schema settles. The statement was applied all the same if that fails: the
    /// session has ended, and says so to whoever asks next.
    async fn settle_after(&self, result: QueryResult) -> QueryResult {
        // On the heap, for it is rare and would make every request's future larger.
        let _ = Box::pin(self.settle()).await;
        result
    }

    pub(super) fn execution<'a>(
        &'a self,
        prepared: &'a Prepared,
        values: &'a EncodedRow,
        page: Option<&'a PagingState>,
    ) -> Result<Outgoing<'a>, Error> {
        let (inner, values) = (prepared.inner(), values.values());
        let (mut table, mut token) = (None, None);
        if !self.hub().is_single() {
            let located = self.hub().view().with(|view| {
                (table, token) = (inner.table(view), inner.token(view, values)?);
                Ok::<_, KeyError>(())
            });
            located.map_err(|_| key_too_long())?;
        }
        let content = Content::Execute {
            statement: inner,
            values,
        };
        let options = prepared.options();
        Ok(Outgoing::new(
            self.hub(),
            content,
            options,
            table,
            token,
            page,
        ))
    }
}

fn encode(prepared: &Prepared, values: &impl EncodeRow) -> Result<EncodedRow, Error> {
    let mut builder = ValuesBuilder::new(SmallBuffer::new());
    prepared
        .inner()
        .bind(values, &mut builder)
        .map_err(|error| does_not_fit(prepared, error))?;
    Ok(builder.finish())
}

/// Whether a row has no values: it fits a statement without markers.
fn is_empty_row(values: &impl EncodeRow) -> bool {
    let mut builder = ValuesBuilder::new(SmallBuffer::<VALUES_INLINE>::new());
    values.encode_row(&[], &mut builder).is_ok()
}

/// Values that do not fit the markers of a statement.
#[cold]
#[inline(never)]
pub(super) fn does_not_fit(prepared: &Prepared, error: BindError) -> Error {
    prepared.inner().doubt();
    Error::bind(error)
}

pub(super) fn key_too_long() -> Error {
    Error::with_text(
        ErrorKind::Encode(EncodeFailure::Value),
        "a component of the partition key is longer than 65535 bytes",
    )
}
