//! Batches as UNLOGGED BATCH requests of a [`Session`] of `messina_core::drive`.

use messina_core::drive::{Batch, Prepared, Session};
use messina_core::error::{ApiMisuse, Error, ErrorKind};
use messina_core::time::UnixMicros;

use crate::batch::Entry;
use crate::reading::{CLOCK, HISTORY, LATEST, Reading, day};
use crate::sink::{Sink, SinkError};

/// Writes to the tables of [`TABLES`](crate::TABLES), which are there already.
#[derive(Debug)]
pub struct DriveSink {
    session: Session,
    gateway: i32,
    statements: Option<(Prepared, Prepared)>,
    /// Its memory is kept.
    batch: Batch,
    is_over: bool,
}

impl DriveSink {
    /// Writes the readings of this gateway through a session that somebody runs.
    pub fn new(session: Session, gateway: i32) -> Self {
        Self {
            session,
            gateway,
            statements: None,
            batch: Batch::unlogged().idempotent(),
            is_over: false,
        }
    }

    /// A session that could not begin is over.
    async fn ready(&mut self) -> Result<(), Error> {
        let outcome = self.session.ready().await;
        self.is_over |= outcome.is_err();
        outcome
    }

    async fn run(&mut self, entries: &[Entry]) -> Result<(), Error> {
        if self.statements.is_none() {
            self.ready().await?;
            let history = self.session.prepare(HISTORY).await?;
            let latest = self.session.prepare(LATEST).await?;
            self.statements = Some((history, latest));
        }
        let Some((history, latest)) = &self.statements else {
            return Ok(());
        };
        let gateway = self.gateway;
        self.batch.clear();
        for entry in entries {
            let Some(Reading { sensor, celsius }) = Reading::parse(&entry.payload) else {
                return Err(Error::new(ErrorKind::Bug));
            };
            let (at, certainty) = (entry.micros, entry.certainty.code().cast_signed());
            let row = (gateway, day(at), at, sensor, celsius, certainty, at);
            self.batch.push(history, row)?;
            let row = (gateway, sensor, at, celsius, certainty, at);
            self.batch.push(latest, row)?;
        }
        self.session.batch(&self.batch).await?;
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
        SinkError {
            is_refused: !error.is_transient() && !self.is_over,
            may_have_been_applied: error.may_have_been_applied(),
            is_over: self.is_over,
        }
    }
}

impl Sink for DriveSink {
    async fn write(&mut self, entries: &[Entry]) -> Result<(), SinkError> {
        let outcome = self.run(entries).await;
        outcome.map_err(|error| self.failed(&error))
    }

    async fn wall_clock(&mut self) -> Result<UnixMicros, SinkError> {
        let outcome = self.ask().await;
        outcome.map_err(|error| self.failed(&error))
    }
}
