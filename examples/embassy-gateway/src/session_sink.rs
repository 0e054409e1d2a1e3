//! Batches as UNLOGGED BATCH requests of a [`Session`].

use messina_core::compact::{Batch, Options, Prepared, Session};
use messina_core::error::{ApiMisuse, Error, ErrorKind};
use messina_core::time::UnixMicros;
use messina_core::wire::request::BatchKind;

use crate::batch::Entry;
use crate::reading::{CLOCK, HISTORY, LATEST, Reading, day};
use crate::sink::{Sink, SinkError};

/// Writes to the tables of [`TABLES`](crate::TABLES), which are there already.
#[derive(Debug)]
pub struct SessionSink {
    session: Session,
    gateway: i32,
    statements: Option<(Prepared, Prepared)>,
    /// Its memory is kept.
    batch: Batch,
    is_over: bool,
}

impl SessionSink {
    /// Writes the readings of this gateway through a session that somebody runs.
    pub fn new(session: Session, gateway: i32) -> Self {
        Self {
            session,
            gateway,
            statements: None,
            batch: Batch::new(BatchKind::Unlogged).with(Options::new().idempotent()),
            is_over: false,
        }
    }

    /// A session that could not begin is over.
    async fn ready(&mut self) -> Result<(), Error> {
        let outcome = self.session.ready().await;
        self.is_over |= outcome.is_err();
        outcome
    }

    async fn statements(&mut self) -> Result<(Prepared, Prepared), Error> {
        if let Some(statements) = self.statements {
            return Ok(statements);
        }
        self.ready().await?;
        let history = self.session.prepare(HISTORY).await?;
        let latest = self.session.prepare(LATEST).await?;
        Ok(*self.statements.insert((history, latest)))
    }

    async fn run(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let (history, latest) = self.statements().await?;
        let (session, gateway) = (&self.session, self.gateway);
        self.batch.clear();
        for entry in entries {
            let Some(Reading { sensor, celsius }) = Reading::parse(&entry.payload) else {
                return Err(Error::new(ErrorKind::Bug));
            };
            let (at, certainty) = (entry.micros, entry.certainty.code().cast_signed());
            let row = (gateway, day(at), at, sensor, celsius, certainty, at);
            self.batch.push(session, &history, row)?;
            let row = (gateway, sensor, at, celsius, certainty, at);
            self.batch.push(session, &latest, row)?;
        }
        session.batch(&self.batch).await?;
        Ok(())
    }

    async fn ask(&mut self) -> Result<UnixMicros, Error> {
        self.ready().await?;
        let answer = self.session.query(CLOCK, ()).await?;
        let (millis,): (i64,) = answer.single_row()?;
        Ok(UnixMicros(millis.saturating_mul(1000)))
    }

    fn failed(&mut self, error: &Error) -> SinkError {
        let closed = ErrorKind::ApiMisuse(ApiMisuse::SessionClosed);
        self.is_over |= error.kind() == closed;
        if error.kind() == ErrorKind::ApiMisuse(ApiMisuse::StaleStatement) {
            // The table was made anew; prepared again by the next attempt.
            self.statements = None;
        }
        SinkError {
            is_refused: !error.is_transient() && !self.is_over && self.statements.is_some(),
            may_have_been_applied: error.may_have_been_applied(),
            is_over: self.is_over,
        }
    }
}

impl Sink for SessionSink {
    async fn write(&mut self, entries: &[Entry]) -> Result<(), SinkError> {
        let outcome = self.run(entries).await;
        outcome.map_err(|error| self.failed(&error))
    }

    async fn wall_clock(&mut self) -> Result<UnixMicros, SinkError> {
        let outcome = self.ask().await;
        outcome.map_err(|error| self.failed(&error))
    }
}
