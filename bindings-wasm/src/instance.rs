//! What the exports do: requests and news of links are handed to the machine, and `outputs` alone
//! goes on with everything.

use alloc::vec::Vec;

use messina_core::compact::{BatchPart, Machine, RequestOptions};
use messina_core::error::{EncodeFailure, Error, ErrorKind, LinkError};
use messina_core::time::{Instant, UnixMicros};
use messina_core::wire::Values;

use crate::host::Shell;
use crate::input::{Input, batch_kind, take_bytes, take_word};
use crate::message::link_error;
use crate::options::RunOptions;
use crate::outbox::NONE;
use crate::points::parse_points;
use crate::settings::{self, Settings, broken_input, defaults};
#[cfg(feature = "full")]
use crate::tunnel::{Carriers, TOO_MANY};

/// Runs a request from the input, behind its options.
type Run<'a> = dyn Fn(&mut Machine, &[u8], &RequestOptions<'_>) -> Result<u32, Error> + 'a;

/// A machine, and the buffers between it and the shell.
#[derive(Debug)]
pub(crate) struct Instance {
    machine: Machine,
    shell: Shell,
    input: Input,
    now: Instant,
    wall: Option<UnixMicros>,
}

impl Instance {
    pub(crate) fn new() -> Self {
        Self {
            machine: Machine::new(defaults(), 0),
            shell: Shell::new(),
            input: Input::new(),
            now: Instant::ZERO,
            wall: None,
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
        self.now = self.now.max(now);
        let wall = (wall * 1000.0) as i64;
        self.wall = (wall > 0).then_some(UnixMicros(wall));
        self.machine.set_time(self.now, self.wall);
    }

    /// Begins a session with the settings in the input. The request ends when it can be used.
    pub(crate) fn start(&mut self, len: usize, seed: u64) -> u32 {
        let input = self.input.take(len);
        match settings::parse(&input).and_then(|settings| self.set(settings, seed)) {
            Ok(()) => self.machine.start(),
            Err(error) => self.machine.refuse(error),
        }
    }

    /// Makes the machine that the settings ask for.
    fn set(&mut self, settings: Settings, seed: u64) -> Result<(), Error> {
        let mut config = settings.config;
        config.contact_points = parse_points(&settings.contact_points)?;
        // The one before has not begun: there is little to drop, and that would be much code.
        let before = core::mem::replace(&mut self.machine, Machine::new(config, seed));
        core::mem::forget(before);
        self.machine.set_time(self.now, self.wall);
        self.shell.steering = settings.steering;
        self.shell.security = settings.security;
        #[cfg(feature = "full")]
        {
            self.machine.restore(&settings.warm_start);
            self.shell.carriers = settings.has_tunnel.then(Carriers::new);
        }
        Ok(())
    }

    /// Prepares the text in the input.
    pub(crate) fn prepare(&mut self, len: usize) -> u32 {
        let text = self.input.take(len);
        match text_of(&text) {
            Ok(text) => self.machine.prepare(text),
            Err(error) => self.machine.refuse(error),
        }
    }

    /// Runs the text in the input, without values.
    pub(crate) fn query(&mut self, len: usize, options: RunOptions) -> u32 {
        self.run(len, options, &|machine, text, options| {
            Ok(machine.query(text_of(text)?, Values::EMPTY, options))
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
        self.run(len, options, &|machine, values, options| {
            Ok(machine.execute(number, values_of(count, values)?, options))
        })
    }

    /// Runs the statements in the input as a batch; `kind` is the protocol's number. See
    /// [`message`](crate::message) for how they stand there.
    pub(crate) fn batch(&mut self, len: usize, kind: u32, options: RunOptions) -> u32 {
        self.run(len, options, &|machine, mut input, options| {
            let mut parts = Vec::new();
            while !input.is_empty() {
                let number = take_word(&mut input)?;
                let count = u16::try_from(take_word(&mut input)?).map_err(|_| broken_input())?;
                let bytes = take_bytes(&mut input)?;
                parts.push(match number {
                    NONE => BatchPart::Text(text_of(bytes)?, Values::EMPTY),
                    _ => BatchPart::Statement(number, values_of(count, bytes)?),
                });
            }
            Ok(machine.batch(batch_kind(kind), &parts, options))
        })
    }

    /// One function for all three.
    #[inline(never)]
    fn run(&mut self, len: usize, options: RunOptions, run: &Run<'_>) -> u32 {
        let mut input = self.input.take(len);
        let options = options.take(&mut input);
        match run(&mut self.machine, &input, &options.as_request()) {
            Ok(number) => number,
            Err(error) => self.machine.refuse(error),
        }
    }

    /// Forgets a prepared statement.
    pub(crate) fn release(&mut self, statement: u32) {
        self.machine.release(statement);
        self.shell.forget_columns(statement);
    }

    /// Gives a request up; nothing more is heard of it.
    pub(crate) fn cancel(&mut self, request: u32) {
        self.machine.cancel(request);
    }

    /// Ends the session: requests under way finish. The request ends when the link is closed.
    pub(crate) fn close(&mut self) -> u32 {
        self.machine.close()
    }

    pub(crate) fn handle_opened(&mut self, link: u32) {
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut self.shell.carriers {
            return carriers.handle_opened(link);
        }
        self.machine.handle_opened(link);
    }

    /// A link failed, for a reason by its number.
    pub(crate) fn handle_failed(&mut self, link: u32, reason: usize) {
        self.handle_ended(link, link_error(reason));
    }

    pub(crate) fn handle_closed(&mut self, link: u32) {
        self.handle_ended(link, LinkError::CLOSED_BY_PEER);
    }

    fn handle_ended(&mut self, link: u32, error: LinkError) {
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut self.shell.carriers {
            carriers.read(&mut self.machine);
            return carriers.handle_ended(link, error, &mut self.machine);
        }
        self.machine.handle_ended(link, error);
    }

    /// 1 if somebody waited for that.
    pub(crate) fn handle_sent(&mut self, link: u32, len: usize) -> bool {
        self.shell.handle_sent(link, len)
    }

    /// The incoming bytes are of this link.
    pub(crate) fn feed(&mut self, link: u32) {
        let bytes = self.input.take_incoming();
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut self.shell.carriers {
            return carriers.handle_bytes(link, &bytes);
        }
        if let Some(input) = self.machine.input(link) {
            match input.is_empty() {
                true => *input = bytes,
                false => input.extend_from_slice(&bytes),
            }
        }
    }

    /// Goes on with everything, then tells what the shell has to do: the time of the next tick in
    /// milliseconds, then the outputs. Valid until the next call.
    pub(crate) fn outputs(&mut self) -> &[u8] {
        let Self { machine, shell, .. } = self;
        shell.outbox.clear();
        shell.outbox.put_number(0.0);
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut shell.carriers {
            carriers.read(machine);
        }
        let mut deadline = machine.run(self.now, self.wall, shell);
        #[cfg(feature = "full")]
        for link in core::mem::take(&mut shell.refused) {
            machine.handle_ended(link, TOO_MANY);
            deadline = self.now;
        }
        shell.write(machine);
        if machine.is_closing() {
            deadline = machine.run(self.now, self.wall, shell);
            shell.write(machine);
        }
        let millis = match deadline {
            Instant::FAR_FUTURE => f64::INFINITY,
            at => at.as_micros() as f64 / 1000.0,
        };
        shell.outbox.set_deadline(millis);
        shell.outbox.as_bytes()
    }

    /// What a later session may begin with: at most `len_max` bytes, empty if nothing is known.
    pub(crate) fn warm_start(&mut self, len_max: usize) -> &[u8] {
        self.shell.outbox.clear();
        #[cfg(feature = "full")]
        if self.machine.is_open() {
            self.shell.outbox.set(self.machine.save(len_max));
        }
        let _ = len_max;
        self.shell.outbox.as_bytes()
    }

    /// What is known of the cluster, `tablets_max` tablets of each table included; empty before
    /// the session has begun and after its end.
    pub(crate) fn cluster(&mut self, tablets_max: usize) -> &[u8] {
        self.shell.outbox.clear();
        #[cfg(feature = "full")]
        if self.machine.is_open() {
            let Shell { outbox, tally, .. } = &mut self.shell;
            outbox.put_cluster(&self.machine, tally, tablets_max);
        }
        let _ = tablets_max;
        self.shell.outbox.as_bytes()
    }

    /// The length of what `outputs`, `warm_start` or `cluster` told last.
    pub(crate) fn outputs_len(&self) -> usize {
        self.shell.outbox.len()
    }
}

fn text_of(input: &[u8]) -> Result<&str, Error> {
    core::str::from_utf8(input).map_err(|_| Error::bug("a text is not UTF-8"))
}

fn values_of(count: u16, bytes: &[u8]) -> Result<Values<'_>, Error> {
    let kind = ErrorKind::Encode(EncodeFailure::Value);
    Values::parse(count, false, bytes).map_err(|_| Error::with_text(kind, "values end too early"))
}
