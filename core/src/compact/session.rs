//! The handle of a session that one runner drives: statements prepared, executed, read in pieces.
//!
//! A request is written and handed to the machine when its method is called; its future waits for the
//! end and nothing else. Dropping a future at any time gives its request up: what was sent may have
//! been applied, an answer that comes later is dropped, and its stream id is used again only then.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::batch::Batch;
use super::binding::{ToCells, bind};
use super::desk::{Held, Outcome};
use super::ending::session_closed;
use super::hub::{Hub, stale};
use super::options::Options;
use super::reply::Reply;
use super::request::RequestOptions;
use super::runner::Runner;
use super::status::Status;
#[cfg(any(test, feature = "streams"))]
use super::stream::RowStream;
use crate::config::Config;
use crate::digits::put_number;
use crate::drive::{Clock, Transport};
use crate::error::{EncodeFailure, Error, ErrorKind};
#[cfg(any(test, feature = "streams"))]
use crate::exec::paging::PagingState;
use crate::sync::Local;
use crate::target::{Security, SteeringKind};
use crate::wire::Values;
use crate::words::{explain, put};

/// Makes a session and its runner. Nothing happens until the runner is polled; then
/// [`Session::ready`] tells when the session can be used, or why it cannot.
///
/// `seed` drives every choice: the same seed on the same transport means the same run. It must not
/// be the same in all devices.
pub fn start<T: Transport>(config: Config, transport: T, seed: u64) -> (Session, Runner<T>) {
    let (limits, close) = (config.limits, config.timeouts.close);
    let clock: Local<dyn Clock> = Local::new(transport.clock());
    let hub = hub(
        config,
        clock,
        seed,
        transport.steering(),
        transport.security(),
    );
    let runner = Runner::new(transport, Local::clone(&hub), limits.read_chunk, close);
    let handle = Handle {
        hub,
        #[cfg(any(test, feature = "streams"))]
        window_len: limits.row_window,
    };
    let session = Session {
        handle: Local::new(handle),
    };
    (session, runner)
}

/// One function for all transports, whose stack has room for one hub and no second one.
#[inline(never)]
fn hub(
    config: Config,
    clock: Local<dyn Clock>,
    seed: u64,
    steering: SteeringKind,
    security: Security,
) -> Local<Hub> {
    let (now, wall) = (clock.now(), clock.wall_clock());
    let hub = Local::new(Hub::new(clock, config, seed, steering, security));
    hub.with(|state| {
        state.machine.set_time(now, wall);
        state.desk.beginning = state.machine.start();
    });
    hub
}

/// A handle of a cluster. Cheap to clone; `Send + Sync` with feature `std`. When the last handle is
/// dropped the session ends; requests under way finish.
#[derive(Clone)]
pub struct Session {
    handle: Local<Handle>,
}

/// Ends the session when the last handle is gone.
struct Handle {
    hub: Local<Hub>,
    #[cfg(any(test, feature = "streams"))]
    window_len: usize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.hub.stir(|state| state.machine.close());
    }
}

/// A statement that was prepared: a number, and how it is to be run. Small and `Copy`; clones may be
/// run in different ways.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    pub(super) number: u32,
    pub(super) serial: u32,
    pub(super) options: Options,
}

impl Prepared {
    /// The same statement, to be run like this.
    #[must_use]
    pub const fn with(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How it is to be run.
    pub const fn options(&self) -> &Options {
        &self.options
    }
}

impl Session {
    pub(super) fn hub(&self) -> &Hub {
        &self.handle.hub
    }

    /// Waits until the session can be used. Dropping the future changes nothing.
    ///
    /// Fails when no contact point could be reached, or with a setting that cannot work.
    pub fn ready(&self) -> impl Future<Output = Result<(), Error>> {
        poll_fn(|cx| self.hub().poll_life(false, cx))
    }

    /// Prepares a statement on one node; others are given it when they are asked to execute it and
    /// do not know it. Statements are kept: preparing the same text again costs nothing.
    ///
    /// Fails with [`Busy`](ErrorKind::Busy) beyond `Limits::prepared_statements`;
    /// [`release`](Self::release) makes room. Dropping the future gives up waiting.
    pub fn prepare(&self, text: &str) -> Preparing<'_> {
        let known = self.hub().with(|state| state.desk.find(text)).flatten();
        let begun = match known {
            Some(_) => Err(session_closed()),
            None => self
                .hub()
                .submit(false, &mut |state| state.machine.prepare(text)),
        };
        Preparing {
            known,
            pending: Pending::new(self.hub(), begun),
        }
    }

    /// Forgets a statement; requests that execute it go on.
    pub fn release(&self, statement: &Prepared) {
        let held = self.hub().with(|state| {
            let held = state.desk.held_at(statement.number)?;
            if held.serial != statement.serial {
                return None;
            }
            state.machine.release(statement.number);
            state.desk.release(statement.number)
        });
        drop(held);
    }

    /// Executes a prepared statement with values for all of its markers. What it brings is kept
    /// whole, up to `Limits::frame`; without a [page size](Options::with_page_size) all rows come.
    ///
    /// Dropping the future gives the request up; if it was sent it may have been applied.
    pub fn execute(&self, statement: &Prepared, values: impl ToCells) -> Executing<'_> {
        self.begin_execute(statement, &values, None)
    }

    /// The same from where a page before [ended](Reply::paging_state), or from the beginning.
    pub fn execute_paged(
        &self,
        statement: &Prepared,
        values: impl ToCells,
        paging_state: Option<&[u8]>,
    ) -> Executing<'_> {
        self.begin_execute(statement, &values, paging_state)
    }

    #[cfg(any(test, feature = "streams"))]
    /// Executes a prepared statement and reads the rows of one page as they come: it may be of any
    /// length up to `Limits::frame` (with what may be skipped), the memory that it takes stays the
    /// same. The next page is read by [`stream_paged`](Self::stream_paged).
    ///
    /// Dropping the stream gives the rest up.
    pub fn stream(&self, statement: &Prepared, values: impl ToCells) -> RowStream<'_> {
        self.begin_stream(statement, &values, None)
    }

    #[cfg(any(test, feature = "streams"))]
    /// The same from where a page before [ended](RowStream::paging_state).
    pub fn stream_paged(
        &self,
        statement: &Prepared,
        values: impl ToCells,
        paging_state: Option<&PagingState>,
    ) -> RowStream<'_> {
        let state = paging_state.map(|state| &**state.as_bytes());
        self.begin_stream(statement, &values, state)
    }

    /// Runs a statement by its text. With values it is prepared first, so that they are checked
    /// against their types and the request finds its replica.
    ///
    /// Dropping the future gives the request up; if it was sent it may have been applied.
    pub async fn query(&self, text: &str, values: impl ToCells) -> Result<Reply, Error> {
        self.query_with(text, values, &Options::default()).await
    }

    /// The same, to be run like this.
    pub async fn query_with(
        &self,
        text: &str,
        values: impl ToCells,
        options: &Options,
    ) -> Result<Reply, Error> {
        let mut is_bare = true;
        values.cells(&mut |_| is_bare = false);
        if is_bare {
            return self.query_unprepared(text, options).await;
        }
        let statement = self.prepare(text).await?.with(*options);
        self.execute(&statement, values).await
    }

    /// Runs a text without values, and without preparing it where nodes allow that: reads and writes of
    /// strongly consistent tables have to be prepared.
    pub fn query_unprepared(&self, text: &str, options: &Options) -> Executing<'_> {
        let options = options.for_request(None, false);
        let begun = self.hub().submit(false, &mut |state| {
            state.machine.query(text, Values::EMPTY, &options)
        });
        Executing(Pending::new(self.hub(), begun))
    }

    /// Runs the statements of a batch.
    ///
    /// Dropping the future gives the request up; if it was sent it may have been applied.
    pub fn batch(&self, batch: &Batch) -> Executing<'_> {
        let begun = batch.submit(self.hub());
        Executing(Pending::new(self.hub(), begun))
    }

    /// What is known of the session at this moment.
    pub fn status(&self) -> Status {
        let status = self.hub().with(|state| Status::of(state));
        status.unwrap_or_default()
    }

    /// Ends the session: no new requests, those under way finish, connections close. Returns when
    /// the runner has ended. What is not done within that time is given up.
    ///
    /// Fails with what has ended the session otherwise. Dropping the future changes nothing of that.
    pub fn close(&self, within: Duration) -> impl Future<Output = Result<(), Error>> {
        let by = self.hub().clock.now().saturating_add(within);
        self.hub().stir(|state| {
            state.close_by = by;
            if state.machine.is_open() {
                state.machine.close();
            }
        });
        poll_fn(|cx| self.hub().poll_life(true, cx))
    }

    /// One function for values of all kinds.
    #[inline(never)]
    fn begin_execute(
        &self,
        statement: &Prepared,
        values: &dyn ToCells,
        paging_state: Option<&[u8]>,
    ) -> Executing<'_> {
        let options = statement.options.for_request(paging_state, false);
        let begun = begin(self.hub(), statement, values, &options);
        Executing(Pending::new(self.hub(), begun.map(|(ticket, _)| ticket)))
    }

    #[cfg(any(test, feature = "streams"))]
    #[inline(never)]
    fn begin_stream(
        &self,
        statement: &Prepared,
        values: &dyn ToCells,
        paging_state: Option<&[u8]>,
    ) -> RowStream<'_> {
        let options = statement.options.for_request(paging_state, true);
        let (begun, held) = match begin(self.hub(), statement, values, &options) {
            Ok((ticket, held)) => (Ok(ticket), Some(held)),
            Err(error) => (Err(error), None),
        };
        RowStream::new(self.hub(), begun, held, self.handle.window_len)
    }
}

fn begin(
    hub: &Hub,
    statement: &Prepared,
    values: &dyn ToCells,
    options: &RequestOptions<'_>,
) -> Result<(u32, Local<Held>), Error> {
    let (held, mut binder) = hub.held(statement.number, statement.serial)?;
    let bound = bind(&held.statement, &held.type_numbers, values, &mut binder);
    bound.map_err(|index| does_not_fit(index, held.type_numbers.len()))?;
    let ticket = hub.submit(options.is_streamed, &mut |state| {
        let request = match state.desk.has(statement.number, statement.serial) {
            true => state
                .machine
                .execute_bound(statement.number, &mut binder, options),
            false => state.machine.refuse(stale()),
        };
        state.desk.buffer = core::mem::take(&mut binder.bytes);
        request
    })?;
    Ok((ticket, held))
}

#[cold]
#[inline(never)]
pub(super) fn does_not_fit(index: usize, markers: usize) -> Error {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let text = explain(|text| {
        put(text, "value ");
        put_number(text, u64::from(number(index)).saturating_add(1));
        put(text, " does not fit one of ");
        put_number(text, u64::from(number(markers)));
        put(text, " markers");
    });
    Error::with_text(ErrorKind::Encode(EncodeFailure::Value), text)
}

const fn prepared(number: u32, serial: u32) -> Prepared {
    Prepared {
        number,
        serial,
        options: Options::new(),
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Waits for the end of a request.
pub(super) struct Pending<'a> {
    hub: &'a Hub,
    ticket: Option<u32>,
    refused: Option<Error>,
}

impl<'a> Pending<'a> {
    fn new(hub: &'a Hub, begun: Result<u32, Error>) -> Self {
        let (ticket, refused) = match begun {
            Ok(ticket) => (Some(ticket), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            hub,
            ticket,
            refused,
        }
    }
}

impl Future for Pending<'_> {
    type Output = Result<Outcome, Error>;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            let error = self.refused.take();
            return Poll::Ready(Err(error.unwrap_or_else(session_closed)));
        };
        let outcome = core::task::ready!(self.hub.poll_outcome(ticket, cx));
        self.ticket = None;
        Poll::Ready(outcome)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.hub.cancel(ticket);
        }
    }
}

/// The future of a prepared statement; dropping it gives up waiting.
#[must_use = "nobody has the statement otherwise"]
pub struct Preparing<'a> {
    /// Number and serial of a statement that was prepared before.
    known: Option<(u32, u32)>,
    pending: Pending<'a>,
}

impl Future for Preparing<'_> {
    type Output = Result<Prepared, Error>;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((number, serial)) = self.known {
            return Poll::Ready(Ok(prepared(number, serial)));
        }
        Poll::Ready(
            match core::task::ready!(Pin::new(&mut self.pending).poll(cx))? {
                Outcome::Prepared(number, serial) => Ok(prepared(number, serial)),
                _ => Err(Error::bug("an answer to no PREPARE")),
            },
        )
    }
}

impl fmt::Debug for Preparing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preparing")
    }
}

/// The future of a request's outcome; dropping it gives the request up.
#[must_use = "a request whose future is dropped is given up"]
pub struct Executing<'a>(Pending<'a>);

impl Future for Executing<'_> {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match core::task::ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(Outcome::Reply(reply)) => Poll::Ready(Ok(reply)),
            Ok(_) => Poll::Ready(Err(Error::bug("an end without an answer"))),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for Executing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executing")
    }
}
