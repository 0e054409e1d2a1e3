//! What is sent: a request with everything that its attempts share, and how one attempt writes it.
//!
//! A request is made once and written anew for each connection that it is tried on, because what
//! the connection agreed (metadata id, tablet version block) shifts the body. Writing runs under
//! the connection's lock, so it copies bytes and decides nothing else.

use bytes::BytesMut;

use super::batch::Batch;
use super::exchange::FrameBody;
use super::hub::Hub;
use super::statement::StatementOptions;
use crate::cluster::kind::StatementKind;
use crate::cluster::prepared::{PreparedStatement, ResultShape};
use crate::config::HAS_TOPOLOGY;
use crate::conn::RequestHead;
use crate::conn::extensions::{Agreed, TabletsRouting};
use crate::error::Error;
use crate::exec::paging::PagingState;
use crate::routing::{RouteRequest, TableRef, Token, probe};
use crate::sync::Shared;
use crate::time::Instant;
use crate::wire::request::{Execute, Prepare, Query, QueryParameters, RequestBody};
use crate::wire::{self, EncodeError, Flags, Opcode, Values};

/// What is sent.
#[derive(Clone)]
pub(super) enum Content<'a> {
    Query {
        text: &'a str,
        values: Values<'a>,
    },
    Prepare {
        text: &'a str,
    },
    Execute {
        statement: &'a PreparedStatement,
        values: Values<'a>,
    },
    Batch(&'a Batch),
}

impl<'a> Content<'a> {
    fn is_lwt(&self) -> bool {
        match self {
            Self::Query { .. } | Self::Prepare { .. } => false,
            Self::Execute { statement, .. } => statement.is_lwt(),
            Self::Batch(batch) => batch.is_lwt(),
        }
    }

    /// The statement that a node says it does not know, if it is one of this request's.
    pub(super) fn lost_statement(&self, error: &Error) -> Option<&'a PreparedStatement> {
        let id = error.server()?.unprepared_id()?;
        match *self {
            Self::Query { .. } | Self::Prepare { .. } => None,
            Self::Execute { statement, .. } => Some(statement),
            Self::Batch(batch) => batch.statement(id),
        }
    }

    /// How many statements a node may have lost.
    pub(super) fn statements(&self) -> usize {
        match self {
            Self::Query { .. } | Self::Prepare { .. } => 0,
            Self::Execute { .. } => 1,
            Self::Batch(batch) => batch.distinct_statements(),
        }
    }
}

/// A request with everything that its attempts share.
pub(super) struct Outgoing<'a> {
    pub(super) hub: &'a Hub,
    pub(super) content: Content<'a>,
    pub(super) route: RouteRequest,
    page_size: Option<i32>,
    page: Option<&'a PagingState>,
    timestamp: Option<i64>,
    /// Of QUERY, PREPARE and BATCH.
    keyspace: Option<&'a str>,
    now_in_seconds: Option<i32>,
    is_traced: bool,
    pub(super) is_idempotent: bool,
    pub(super) deadline: Instant,
    pub(super) entropy: u64,
    /// The only target it may go to.
    #[cfg(feature = "targeting")]
    pub(super) only: Option<super::targeting::StatementTarget>,
}

impl<'a> Outgoing<'a> {
    /// What the options leave open comes from the configuration; the time limit begins now.
    pub(super) fn new(
        hub: &'a Hub,
        content: Content<'a>,
        options: &'a StatementOptions,
        table: Option<TableRef>,
        token: Option<Token>,
        page: Option<&'a PagingState>,
    ) -> Self {
        let config = hub.config();
        let consistency = options.consistency.unwrap_or(config.consistency);
        let is_lwt = content.is_lwt();
        // What says nothing of a statement costs bytes in each of its requests.
        let (kind, has_no_condition) = match &content {
            Content::Execute { statement, .. } => (statement.kind(), statement.has_no_condition()),
            _ => (StatementKind::Other, false),
        };
        let is_idempotent = match &content {
            Content::Batch(batch) => batch.is_idempotent(),
            _ => options.is_idempotent,
        };
        let timeout = options.timeout.unwrap_or(config.timeouts.request);
        Self {
            hub,
            content,
            route: RouteRequest {
                table,
                token,
                consistency,
                is_lwt,
                serial_consistency: (!has_no_condition).then(|| {
                    let level = options.serial_consistency;
                    level.unwrap_or(config.serial_consistency)
                }),
            },
            page_size: options
                .page_size
                .or(config.page_size)
                .filter(|&rows| rows > 0 && kind != StatementKind::Write),
            page: page.or(options.paging_state.as_ref()),
            timestamp: options.timestamp.or_else(|| match kind {
                StatementKind::Read => None,
                _ => hub.timestamp(),
            }),
            keyspace: options.keyspace.as_deref(),
            now_in_seconds: options.now_in_seconds,
            is_traced: options.is_traced,
            is_idempotent,
            deadline: hub.clock().now().saturating_add(timeout),
            entropy: hub.draw(),
            #[cfg(feature = "targeting")]
            only: options.target,
        }
    }

    /// The PREPARE of a statement that was prepared before, sent as this request is.
    pub(super) fn preparing(&self, statement: &'a PreparedStatement) -> Self {
        let text = statement.text();
        Self {
            content: Content::Prepare { text },
            keyspace: statement.keyspace(),
            ..*self
        }
    }
}

impl Outgoing<'_> {
    pub(super) fn head(&self) -> RequestHead {
        let opcode = match self.content {
            Content::Query { .. } => Opcode::Query,
            Content::Prepare { .. } => Opcode::Prepare,
            Content::Execute { .. } => Opcode::Execute,
            Content::Batch(_) => Opcode::Batch,
        };
        let flags = if self.is_traced {
            Flags::TRACING
        } else {
            Flags::NONE
        };
        RequestHead { opcode, flags }
    }

    /// Bytes of the body that are known before it is written.
    pub(super) fn least_len(&self) -> usize {
        match &self.content {
            Content::Query { text, values } => text.len().saturating_add(values.as_bytes().len()),
            Content::Prepare { text } => text.len(),
            Content::Execute { values, .. } => values.as_bytes().len(),
            Content::Batch(batch) => batch.wire_len(),
        }
    }

    fn parameters<'v>(&'v self, values: Values<'v>, skip_metadata: bool) -> QueryParameters<'v> {
        QueryParameters {
            values,
            skip_metadata,
            page_size: self.page_size,
            paging_state: self.page.map(|state| &state.as_bytes()[..]),
            serial_consistency: self.route.serial_consistency,
            timestamp: self.timestamp,
            now_in_seconds: self.now_in_seconds,
            ..QueryParameters::new(self.route.consistency)
        }
    }

    /// The version block, where the connection wants one. Drawn when the request is written, so
    /// that a tablet's probe positions are used up by requests that carry them only.
    fn version_block(&self, agreed: &Agreed) -> Option<u8> {
        (HAS_TOPOLOGY && agreed.tablets == TabletsRouting::V2).then(|| {
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
pub(super) struct Body<'a> {
    request: &'a Outgoing<'a>,
    pub(super) shape: Option<Shared<ResultShape>>,
}

impl<'a> Body<'a> {
    pub(super) fn new(request: &'a Outgoing<'a>) -> Self {
        let shape = match &request.content {
            Content::Execute { statement, .. } => Some(statement.result()),
            Content::Query { .. } | Content::Prepare { .. } | Content::Batch(_) => None,
        };
        Self { request, shape }
    }
}

impl FrameBody for Body<'_> {
    fn put(&self, agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError> {
        let version = agreed.version;
        let request = self.request;
        match &request.content {
            Content::Query { text, values } => Query {
                text,
                parameters: QueryParameters {
                    keyspace: request.keyspace,
                    ..request.parameters(*values, false)
                },
            }
            .put(version, sink),
            Content::Prepare { text } => Prepare {
                text,
                keyspace: request.keyspace,
            }
            .put(version, sink),
            Content::Execute { statement, values } => {
                let shape = self.shape.as_deref();
                let skip_metadata = shape.is_some_and(|shape| shape.may_skip_metadata(agreed));
                let metadata_id = shape
                    .filter(|_| !statement.brings_no_rows())
                    .and_then(|shape| shape.metadata_id.as_deref())
                    .unwrap_or_default();
                let execute = Execute {
                    id: statement.id(),
                    result_metadata_id: agreed.metadata_id.then_some(metadata_id),
                    parameters: request.parameters(*values, skip_metadata),
                    tablet_version_block: request.version_block(agreed),
                };
                execute.put(version, sink)
            }
            Content::Batch(batch) => wire::request::Batch {
                kind: batch.kind(),
                statements: batch.statements(),
                consistency: request.route.consistency,
                serial_consistency: request.route.serial_consistency,
                timestamp: request.timestamp,
                keyspace: request.keyspace,
                now_in_seconds: request.now_in_seconds,
            }
            .put(version, sink),
        }
    }
}

impl FrameBody for &Body<'_> {
    fn put(&self, agreed: &Agreed, sink: &mut BytesMut) -> Result<(), EncodeError> {
        (**self).put(agreed, sink)
    }
}
