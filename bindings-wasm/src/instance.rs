//! What the exports do: one session, its tasks, and the buffers between them and the shell.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;
use core::convert::Infallible;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use bytes::BytesMut;
use messina_core::drive::{Batch, Driver, Prepared, QueryResult, Session, Statement, start};
use messina_core::error::{ApiMisuse, Error, ErrorKind};

use crate::batch::take_batch;
use crate::executor::{Executor, Spawned, Task};
use crate::finished::Finished;
use crate::input::{Input, batch_kind};
use crate::message::link_error;
use crate::options::RunOptions;
use crate::outbox::Outbox;
use crate::route::Route;
use crate::settings;
use crate::transport::ShellTransport;
use crate::values::BoundValues;

/// A driver and everything around it.
#[derive(Debug)]
pub(crate) struct Instance {
    transport: ShellTransport,
    executor: Executor,
    session: Option<Session>,
    shared: Rc<Shared>,
    input: Input,
    outbox: Outbox,
}

/// What tasks leave for the shell.
#[derive(Debug)]
struct Shared {
    finished: RefCell<Finished>,
    driver: RefCell<DriverState>,
}

/// Whether the driver still runs, and who waits for its end.
#[derive(Debug, Default)]
struct DriverState {
    is_over: bool,
    waker: Option<Waker>,
}

/// What a request is to do.
enum Command {
    Ready,
    Prepare(Statement<'static>),
    Query(Statement<'static>),
    Execute {
        number: u32,
        prepared: Prepared,
        count: u16,
        values: BytesMut,
    },
    Batch(Batch),
    Close,
}

/// What a request brought.
enum Answer {
    Nothing,
    Prepared(Prepared),
    Result(QueryResult),
    Executed(u32, QueryResult),
}

impl Instance {
    pub(crate) fn new() -> Self {
        Self {
            transport: ShellTransport::new(),
            executor: Executor::default(),
            session: None,
            shared: Rc::new(Shared {
                finished: RefCell::new(Finished::new()),
                driver: RefCell::default(),
            }),
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

    /// Moves the clock: milliseconds since some start, and since 1970.
    pub(crate) fn tick(&mut self, now: f64, wall: f64) {
        self.transport.time.tick(now, wall);
    }

    /// Begins a session with the settings in the input. The request ends when it can be used.
    pub(crate) fn start(&mut self, len: usize, seed: u64) -> u32 {
        let input = self.input.take(len);
        let started = settings::parse(&input).and_then(|settings| {
            self.transport.steering = settings.steering;
            self.transport.security = settings.security;
            let shell = self.transport.clone();
            let (route, carrier) = match settings.has_tunnel {
                true => Route::tunnel(shell),
                false => Route::direct(shell),
            };
            let (session, driver) = start(settings.config, route, &mut Seed(seed))?;
            Ok((session, driver, carrier))
        });
        match started {
            Ok((session, driver, carrier)) => {
                if let Some(carrier) = carrier {
                    self.executor.spawn(|_| carrier);
                }
                let (shared, spawned) = (Rc::clone(&self.shared), self.executor.spawned());
                self.executor
                    .spawn(|_| Box::pin(run_driver(driver, spawned, shared)));
                self.session = Some(session);
                self.request(Ok(Command::Ready))
            }
            Err(error) => self.request(Err(error)),
        }
    }

    /// Prepares the text in the input.
    pub(crate) fn prepare(&mut self, len: usize) -> u32 {
        let text = text(&self.input.take(len));
        self.request(text.map(|text| Command::Prepare(Statement::new(text))))
    }

    /// Runs the text in the input, without values.
    pub(crate) fn query(&mut self, len: usize, options: RunOptions) -> u32 {
        let mut input = self.input.take(len);
        let options = options.take(&mut input);
        let command = text(&input)
            .map(|text| Command::Query(options.apply_to_statement(Statement::new(text))));
        self.request(command)
    }

    /// Executes a prepared statement with the values in the input.
    pub(crate) fn execute(
        &mut self,
        len: usize,
        statement: u32,
        count: u16,
        options: RunOptions,
    ) -> u32 {
        let mut values = self.input.take(len);
        let options = options.take(&mut values);
        let found = self.shared.finished.borrow().statement(statement);
        let command = found.map(|prepared| Command::Execute {
            number: statement,
            prepared: options.apply_to_prepared(prepared),
            count,
            values,
        });
        self.request(command)
    }

    /// Runs the statements in the input as a batch; `kind` is the protocol's number.
    pub(crate) fn batch(&mut self, len: usize, kind: u32, options: RunOptions) -> u32 {
        let kind = batch_kind(kind);
        let mut input = self.input.take(len);
        let options = options.take(&mut input);
        let batch = take_batch(kind, &input, &self.shared.finished.borrow());
        self.request(batch.map(|batch| Command::Batch(options.apply_to_batch(batch))))
    }

    /// Forgets a prepared statement.
    pub(crate) fn release(&mut self, statement: u32) {
        let released = self.shared.finished.borrow_mut().release(statement);
        drop(released);
    }

    /// Gives a request up; nothing more is heard of it.
    pub(crate) fn cancel(&mut self, request: u32) {
        self.executor.cancel(request);
    }

    /// Ends the session: requests under way finish. The request ends when all links are closed.
    pub(crate) fn close(&mut self) -> u32 {
        self.request(Ok(Command::Close))
    }

    pub(crate) fn handle_opened(&mut self, link: u32) {
        self.transport.links.handle_opened(link);
    }

    /// A link failed, for a reason by its number.
    pub(crate) fn handle_failed(&mut self, link: u32, reason: usize) {
        let error = link_error(reason);
        self.transport.links.handle_failed(link, error);
    }

    pub(crate) fn handle_closed(&mut self, link: u32) {
        self.transport.links.handle_closed(link);
    }

    pub(crate) fn handle_sent(&mut self, link: u32, len: usize) -> bool {
        self.transport.links.handle_sent(link, len)
    }

    /// The incoming bytes are of this link.
    pub(crate) fn feed(&mut self, link: u32) {
        let bytes = self.input.take_incoming();
        if !bytes.is_empty() {
            self.transport.links.handle_bytes(link, bytes);
        }
    }

    /// Runs every task that can go on, then tells what the shell has to do: the time of the next
    /// tick in milliseconds, then the outputs. Valid until the next call.
    pub(crate) fn outputs(&mut self) -> &[u8] {
        let is_quiet = self.executor.run(POLLS_MAX);
        let deadline = if is_quiet {
            self.transport.time.next_deadline()
        } else {
            0.0
        };
        self.shared.finished.borrow_mut().take(&mut self.outbox);
        self.outbox.set_deadline(deadline);
        self.transport.links.put_effects(&mut self.outbox);
        self.outbox.as_bytes()
    }

    /// What a later session may begin with: at most `len_max` bytes, empty if nothing is known.
    pub(crate) fn warm_start(&mut self, len_max: usize) -> &[u8] {
        self.outbox.clear();
        if let Some(session) = &self.session {
            self.outbox.set(session.warm_start(len_max));
        }
        self.outbox.as_bytes()
    }

    /// What is known of the cluster, `tablets_max` tablets of each table included; empty before
    /// the session has begun and after its end.
    pub(crate) fn cluster(&mut self, tablets_max: usize) -> &[u8] {
        self.outbox.clear();
        if let Some(session) = &self.session {
            let finished = self.shared.finished.borrow();
            self.outbox
                .put_cluster(session, &finished.tally, tablets_max);
        }
        self.outbox.as_bytes()
    }

    /// The length of what `outputs`, `warm_start` or `cluster` told last.
    pub(crate) fn outputs_len(&self) -> usize {
        self.outbox.len()
    }

    fn request(&mut self, command: Result<Command, Error>) -> u32 {
        let session = self
            .session
            .clone()
            .ok_or_else(|| Error::new(ErrorKind::ApiMisuse(ApiMisuse::SessionClosed)));
        let shared = Rc::clone(&self.shared);
        let is_close = matches!(command, Ok(Command::Close));
        if is_close {
            self.session = None;
        }
        self.executor.spawn(|number| {
            let task: Task = Box::pin(async move {
                match (command, session) {
                    (Ok(command), Ok(session)) => {
                        let outcome = carry_out(command, &session, &shared).await;
                        shared.finish(number, outcome, Some(&session));
                    }
                    (Err(error), _) | (_, Err(error)) => shared.finish(number, Err(error), None),
                }
            });
            task
        })
    }
}

impl Shared {
    /// Tells the shell how a request ended.
    fn finish(&self, request: u32, outcome: Result<Answer, Error>, session: Option<&Session>) {
        let mut finished = self.finished.borrow_mut();
        let told = outcome.and_then(|answer| match answer {
            Answer::Nothing => {
                finished.put_done(request);
                Ok(())
            }
            Answer::Prepared(prepared) => finished.put_prepared(request, &prepared),
            Answer::Result(result) => finished.put_result(request, None, &result, session),
            Answer::Executed(number, result) => {
                finished.put_result(request, Some(number), &result, session)
            }
        });
        if let Err(error) = told {
            finished.put_failure(request, &error, session);
        }
    }

    fn set_driver_over(&self) {
        let mut driver = self.driver.borrow_mut();
        driver.is_over = true;
        if let Some(waker) = driver.waker.take() {
            waker.wake();
        }
    }

    async fn driver_over(&self) {
        poll_fn(|cx| {
            let mut driver = self.driver.borrow_mut();
            if driver.is_over {
                return Poll::Ready(());
            }
            driver.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

async fn carry_out(command: Command, session: &Session, shared: &Shared) -> Result<Answer, Error> {
    Ok(match command {
        Command::Ready => {
            session.ready().await?;
            Answer::Nothing
        }
        Command::Prepare(statement) => Answer::Prepared(session.prepare(statement).await?),
        Command::Query(statement) => {
            Answer::Result(session.query(statement, BoundValues::NONE).await?)
        }
        Command::Execute {
            number,
            prepared,
            count,
            values,
        } => {
            let bytes = &values[..];
            let result = session.execute(&prepared, BoundValues { count, bytes });
            Answer::Executed(number, result.await?)
        }
        Command::Batch(batch) => Answer::Result(session.batch(&batch).await?),
        Command::Close => {
            session.close().await;
            shared.driver_over().await;
            Answer::Nothing
        }
    })
}

/// Hands every connection to the executor until the session has ended.
async fn run_driver(mut driver: Driver<Route>, spawned: Spawned, shared: Rc<Shared>) {
    while let Some(connection) = driver.next_connection().await {
        spawned.borrow_mut().push(Box::pin(connection));
    }
    shared.set_driver_over();
}

fn text(input: &[u8]) -> Result<String, Error> {
    let text = core::str::from_utf8(input).map_err(|_| Error::bug("a text is not UTF-8"))?;
    Ok(String::from(text))
}

/// The seed that the shell draws.
struct Seed(u64);

impl rand_core::TryRng for Seed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        Ok(u32::from_le_bytes([a, b, c, d]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for (byte, seed) in bytes
            .iter_mut()
            .zip(self.0.to_le_bytes().into_iter().cycle())
        {
            *byte = seed;
        }
        Ok(())
    }
}

/// Polls of one call; if there is more to do, the shell calls again at once.
const POLLS_MAX: u32 = 100_000;
