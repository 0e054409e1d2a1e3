//! What the exports do: requests and news of links are kept, until `outputs` goes on with them.

use messina_core::error::{Error, LinkError};
use messina_core::time::Instant;

use super::request::{self, Written};
use super::session::Session;
use crate::input::{Input, batch_kind};
use crate::message::link_error;
use crate::options::{Options, RunOptions};
use crate::outbox::Outbox;
use crate::settings;

/// Writes a request from the input, behind its options, with the time that it would have.
type Write<'a> = dyn Fn(&Session, &[u8], &Options, Option<i64>) -> Result<Written, Error> + 'a;

/// A session, and the buffers between it and the shell.
#[derive(Debug)]
pub(crate) struct Instance {
    session: Session,
    input: Input,
    outbox: Outbox,
}

impl Instance {
    pub(crate) fn new() -> Self {
        Self {
            session: Session::new(),
            input: Input::new(),
            outbox: Outbox::new(),
        }
    }

    /// Room for what later calls read, for at least `len` bytes; keeps what was written.
    pub(crate) fn input(&mut self, len: usize) -> &mut [u8] {
        self.input.room(len)
    }

    /// Room for bytes that came from a link.
    pub(crate) fn incoming(&mut self, len: usize) -> &mut [u8] {
        self.input.room_for_incoming(len)
    }

    /// Moves the clock: milliseconds since some start, and since 1970. It never goes back.
    pub(crate) fn tick(&mut self, now: f64, wall: f64) {
        let now = Instant::from_micros((now * 1000.0) as u64);
        self.session.now = self.session.now.max(now);
        self.session.wall = (wall * 1000.0) as i64;
    }

    /// Begins a session with the settings in the input. The request ends when it can be used.
    pub(crate) fn start(&mut self, len: usize, seed: u64) -> u32 {
        let input = self.input.take(len);
        let settings = settings::parse(&input);
        self.session.start(settings, seed)
    }

    /// Prepares the text in the input.
    pub(crate) fn prepare(&mut self, len: usize) -> u32 {
        let text = self.input.take(len);
        let written = request::prepare(&text, &self.session.config);
        self.session.request(written)
    }

    /// Runs the text in the input, without values.
    pub(crate) fn query(&mut self, len: usize, options: RunOptions) -> u32 {
        self.run(len, options, &|session, text, options, timestamp| {
            request::query(text, options, &session.config, timestamp)
        })
    }

    /// Executes a prepared statement with the values in the input.
    pub(crate) fn execute(
        &mut self,
        len: usize,
        number: u32,
        count: u16,
        options: RunOptions,
    ) -> u32 {
        self.run(len, options, &|session, values, options, timestamp| {
            let statement = request::statement(&session.statements, number)?.clone();
            let values = (count, values);
            request::execute(
                number,
                statement,
                values,
                options,
                &session.config,
                timestamp,
            )
        })
    }

    /// Runs the statements in the input as a batch; `kind` is the protocol's number.
    pub(crate) fn batch(&mut self, len: usize, kind: u32, options: RunOptions) -> u32 {
        let kind = batch_kind(kind);
        self.run(len, options, &|session, input, options, timestamp| {
            let held = &session.statements;
            request::batch(kind, input, held, options, &session.config, timestamp)
        })
    }

    /// One function for all three.
    #[inline(never)]
    fn run(&mut self, len: usize, options: RunOptions, write: &Write<'_>) -> u32 {
        let mut input = self.input.take(len);
        let options = options.take(&mut input);
        let timestamp = options.timestamp().or_else(|| self.session.timestamp());
        let written = write(&self.session, &input, &options, timestamp);
        self.session.request(written)
    }

    /// Forgets a prepared statement.
    pub(crate) fn release(&mut self, statement: u32) {
        self.session.statements.remove(statement);
    }

    /// Gives a request up; nothing more is heard of it.
    pub(crate) fn cancel(&mut self, request: u32) {
        self.session.cancel(request);
    }

    /// Ends the session: requests under way finish. The request ends when the link is closed.
    pub(crate) fn close(&mut self) -> u32 {
        self.session.close()
    }

    pub(crate) fn handle_opened(&mut self, link: u32) {
        self.session.handle_opened(link);
    }

    /// A link failed, for a reason by its number.
    pub(crate) fn handle_failed(&mut self, link: u32, reason: usize) {
        let error = link_error(reason);
        self.session.handle_ended(link, error);
    }

    pub(crate) fn handle_closed(&mut self, link: u32) {
        self.session.handle_ended(link, LinkError::CLOSED_BY_PEER);
    }

    /// 1 if somebody waited for that.
    pub(crate) fn handle_sent(&mut self, link: u32, len: usize) -> bool {
        let link = self.session.link(link);
        link.is_some_and(|link| link.handle_sent(len))
    }

    /// The incoming bytes are of this link.
    pub(crate) fn feed(&mut self, link: u32) {
        let bytes = self.input.take_incoming();
        if let Some(link) = self.session.link(link) {
            link.handle_bytes(bytes);
        }
    }

    /// Goes on with everything, then tells what the shell has to do: the time of the next tick in
    /// milliseconds, then the outputs. Valid until the next call.
    pub(crate) fn outputs(&mut self) -> &[u8] {
        self.outbox.clear();
        self.outbox.put_number(0.0);
        let deadline = self.session.run(&mut self.outbox);
        let millis = match deadline {
            Instant::FAR_FUTURE => f64::INFINITY,
            at => at.as_micros() as f64 / 1000.0,
        };
        self.outbox.set_deadline(millis);
        self.outbox.as_bytes()
    }

    /// Nothing is kept for later sessions.
    pub(crate) fn warm_start(&mut self, _: usize) -> &[u8] {
        self.outbox.clear();
        self.outbox.as_bytes()
    }

    /// Nothing is known of the cluster.
    pub(crate) fn cluster(&mut self, _: usize) -> &[u8] {
        self.warm_start(0)
    }

    /// The length of what `outputs`, `warm_start` or `cluster` told last.
    pub(crate) fn outputs_len(&self) -> usize {
        self.outbox.len()
    }
}
