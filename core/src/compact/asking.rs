//! Requests made: texts, values and parameters written, and told where their rows live.

use alloc::boxed::Box;

use super::binding::Binder;
use super::machine::{HAS_WARM_STARTS, Machine};
use super::request::{BatchPart, HAS_DATA_TEXTS, Request, RequestOptions, put_prepare};
use super::statement::Statement;
use super::text::is_users_data;
use crate::error::{ApiMisuse, Error, ErrorKind};
use crate::sync::Local;
use crate::wire::request::{
    Batch, BatchKind, BatchStatement, BatchStatementKind, QueryParameters, RequestBody as _,
};
use crate::wire::{Opcode, Sink as _, Values};
use crate::words::boxed;

impl Machine {
    /// Prepares a text; ends as [`Done::Prepared`](super::Done::Prepared). One that an earlier session
    /// has saved is there at once.
    pub fn prepare(&mut self, text: &str) -> u32 {
        if HAS_WARM_STARTS {
            let saved = self.saved.iter().find(|saved| *saved.text == *text);
            if let Some(statement) = saved.cloned() {
                return self.give_statement(statement);
            }
        }
        let mut request = self.new_request(Opcode::Prepare, &RequestOptions::default());
        request.is_idempotent = true;
        let written = put_prepare(text, self.config.protocol.first(), &mut request.body);
        request.text = boxed(text);
        self.begin(request, written.map_err(Error::from))
    }

    /// Runs a text with values for its markers. In a session that makes use of the whole cluster, and
    /// without feature `data-texts`, one that reads or writes rows fails as
    /// [`ApiMisuse::ValuesUnprepared`]: nodes may take those as prepared statements only.
    pub fn query(&mut self, text: &str, values: Values<'_>, options: &RequestOptions<'_>) -> u32 {
        let mut request = self.new_request(Opcode::Query, options);
        request.is_data = self.is_full() && is_users_data(text);
        let written = match request.is_data && !HAS_DATA_TEXTS {
            true => Err(to_be_prepared()),
            false => request
                .body
                .put_long_string("statement", text)
                .map_err(Error::from)
                .and_then(|()| self.put_parameters(&mut request, values, options, false)),
        };
        self.begin(request, written)
    }

    /// Executes a prepared statement with values for its markers.
    pub fn execute(
        &mut self,
        statement: u32,
        values: Values<'_>,
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Execute, options);
        let written = self.aim(&mut request, statement, values);
        let written =
            written.and_then(|is_read| self.put_parameters(&mut request, values, options, is_read));
        self.begin(request, written)
    }

    /// The same with values that stand where they are sent from, in a buffer that is exchanged for an
    /// empty one.
    pub(super) fn execute_bound(
        &mut self,
        statement: u32,
        binder: &mut Binder,
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Execute, options);
        let written = self.put_bound(&mut request, statement, binder, options);
        self.begin(request, written)
    }

    fn put_bound(
        &mut self,
        request: &mut Request,
        statement: u32,
        binder: &mut Binder,
        options: &RequestOptions<'_>,
    ) -> Result<(), Error> {
        let is_read = self.aim(request, statement, binder.values())?;
        let parameters = self.parameters(request, options, is_read);
        let with_values = QueryParameters {
            values: binder.values(),
            ..parameters
        };
        let head = with_values.head(self.config.protocol.first())?;
        binder.put_head(&head);
        parameters.put_tail(&mut binder.bytes)?;
        core::mem::swap(&mut request.body, &mut binder.bytes);
        Ok(())
    }

    /// Notes what is executed and where its row lives; whether it only reads.
    fn aim(&self, request: &mut Request, number: u32, values: Values<'_>) -> Result<bool, Error> {
        let statement = self.held(number)?.clone();
        statement.check_count(values)?;
        request.table = statement.table;
        if self.is_full() {
            request.token = statement.token(&self.plane, values);
        }
        let is_read = statement.is_read;
        request.executed = Some((number, statement));
        Ok(is_read)
    }

    /// Runs statements as a batch.
    pub fn batch(
        &mut self,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        options: &RequestOptions<'_>,
    ) -> u32 {
        let mut request = self.new_request(Opcode::Batch, options);
        let written = self.put_batch(&mut request, kind, parts, options);
        self.begin(request, written)
    }

    fn put_batch(
        &mut self,
        request: &mut Request,
        kind: BatchKind,
        parts: &[BatchPart<'_>],
        options: &RequestOptions<'_>,
    ) -> Result<(), Error> {
        for part in parts {
            if let BatchPart::Statement(number, values) = part {
                let statement = self.held(*number)?;
                statement.check_count(*values)?;
                request.batched.push(statement.clone());
            }
        }
        // A batch goes where its first statement's row lives.
        if self.is_full()
            && let Some(BatchPart::Statement(_, values)) = parts.first()
            && let Some(first) = request.batched.first()
        {
            request.table = first.table;
            request.token = first.token(&self.plane, *values);
        }
        let timestamp = options.timestamp.or_else(|| self.timestamp());
        let batch = Batch {
            kind,
            statements: parts.iter().map(|part| match part {
                BatchPart::Statement(number, values) => BatchStatement {
                    kind: BatchStatementKind::Prepared(match self.statements.get(*number) {
                        Some(statement) => statement.id(),
                        None => &[],
                    }),
                    values: *values,
                },
                BatchPart::Text(text, values) => BatchStatement {
                    kind: BatchStatementKind::Text(text),
                    values: *values,
                },
            }),
            consistency: request.consistency,
            serial_consistency: request.serial_consistency,
            timestamp,
            keyspace: None,
            now_in_seconds: None,
        };
        Ok(batch.put(self.config.protocol.first(), &mut request.body)?)
    }

    fn held(&self, number: u32) -> Result<&Local<Statement>, Error> {
        match self.statements.get(number) {
            Some(statement) => Ok(statement),
            None => Err(Error::bug("a statement that was released")),
        }
    }

    /// A request that is not written yet; one that has ended is used again.
    fn new_request(&mut self, opcode: Opcode, options: &RequestOptions<'_>) -> Box<Request> {
        let mut request = self.spare_request();
        let config = &self.config;
        let timeout = options.timeout.unwrap_or(config.timeouts.request);
        let serial = options.serial_consistency;
        request.opcode = opcode;
        request.is_traced = options.is_traced;
        request.is_idempotent = options.is_idempotent;
        request.is_streamed = options.is_streamed;
        request.deadline = self.now.saturating_add(timeout);
        request.consistency = options.consistency.unwrap_or(config.consistency);
        request.serial_consistency = serial.or(Some(config.serial_consistency));
        request
    }

    fn put_parameters(
        &mut self,
        request: &mut Request,
        values: Values<'_>,
        options: &RequestOptions<'_>,
        is_read: bool,
    ) -> Result<(), Error> {
        let parameters = QueryParameters {
            values,
            ..self.parameters(request, options, is_read)
        };
        Ok(parameters.put(self.config.protocol.first(), &mut request.body)?)
    }

    /// All but the values.
    fn parameters<'a>(
        &mut self,
        request: &Request,
        options: &RequestOptions<'a>,
        is_read: bool,
    ) -> QueryParameters<'a> {
        let timestamp = match options.timestamp {
            None if !is_read => self.timestamp(),
            given => given,
        };
        let page_size = options.page_size.or(self.config.page_size);
        QueryParameters {
            page_size: page_size.filter(|rows| *rows > 0),
            paging_state: options.paging_state,
            serial_consistency: request.serial_consistency,
            timestamp,
            ..QueryParameters::new(request.consistency)
        }
    }
}

#[cold]
fn to_be_prepared() -> Error {
    let kind = ErrorKind::ApiMisuse(ApiMisuse::ValuesUnprepared);
    Error::with_text(kind, "texts that read or write rows are to be prepared")
}
