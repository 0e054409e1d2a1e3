//! The server's trace of a request, as it stands in the system tables.
//!
//! Nodes write traces in the background, the duration last: a trace that was just asked for is
//! there in parts, or not at all. Nothing here waits; who wants the whole of it asks again, with
//! pauses of the platform's timer in between.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use uuid::Uuid;

use super::session::Session;
use super::statement::Statement;
use crate::error::Error;
use crate::types::CqlTimestamp;
use crate::wire::Consistency;

/// The trace of a request, as far as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// How long the request took; `None` while the trace is not complete.
    pub duration: Option<Duration>,
    /// What was asked for.
    pub request: Option<String>,
    /// The node that coordinated it.
    pub coordinator: Option<IpAddr>,
    /// When it began.
    pub started_at: Option<CqlTimestamp>,
    /// What happened, in the order of the servers' clocks.
    pub events: Vec<TraceEvent>,
}

/// Something that a node did for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// What.
    pub activity: Option<String>,
    /// The node.
    pub source: Option<IpAddr>,
    /// Since that node began.
    pub source_elapsed: Option<Duration>,
    /// The thread or shard that did it.
    pub thread: Option<String>,
}

impl Session {
    /// Reads the trace that a result's [`tracing_id`](super::QueryResult::tracing_id) names, as far
    /// as it is written: once its duration is there it is complete. Two statements, read at ONE.
    pub async fn trace(&self, id: Uuid) -> Result<Trace, Error> {
        let found = self.query(statement(SESSION), (id,)).await?;
        type Head<'a> = (
            Option<i32>,
            Option<String>,
            Option<IpAddr>,
            Option<CqlTimestamp>,
        );
        let Some((duration, request, coordinator, started_at)) = found.maybe_row::<Head<'_>>()?
        else {
            return Ok(Trace::default());
        };
        let mut trace = Trace {
            duration: duration.map(micros),
            request,
            coordinator,
            started_at,
            events: Vec::new(),
        };
        let events = self.prepare(statement(EVENTS)).await?;
        let mut pages = self.pages(&events, (id,))?;
        while let Some(page) = pages.next_page().await? {
            for row in page.rows()? {
                let (activity, source, source_elapsed, thread) = row?;
                let source_elapsed: Option<i32> = source_elapsed;
                trace.events.push(TraceEvent {
                    activity,
                    source,
                    source_elapsed: source_elapsed.map(micros),
                    thread,
                });
            }
        }
        Ok(trace)
    }
}

/// Traces are kept on few nodes, and one that is not complete is asked for again.
fn statement(text: &'static str) -> Statement<'static> {
    Statement::new(text)
        .with_consistency(Consistency::One)
        .idempotent()
}

fn micros(micros: i32) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

const SESSION: &str = "SELECT duration, request, coordinator, started_at \
    FROM system_traces.sessions WHERE session_id = ?";
const EVENTS: &str = "SELECT activity, source, source_elapsed, thread \
    FROM system_traces.events WHERE session_id = ?";
