//! The server's trace of a request.

use core::time::Duration;

use messina_core::drive::{Trace, TraceEvent};
use messina_core::error::Error;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::connect::Connected;

/// Servers write traces in the background: how long to wait for one, and how often to look.
const WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// The trace as JSON; `events` is null if it cannot be read, and `error` says why.
pub(super) async fn read(connected: &Connected, id: Uuid) -> Value {
    match try_read(connected, id).await {
        Ok(trace) => to_json(id, &trace),
        Err(error) => json!({ "id": id.to_string(), "events": null, "error": error.to_string() }),
    }
}

/// As much as is there when it is complete, or when the wait is over.
async fn try_read(connected: &Connected, id: Uuid) -> Result<Trace, Error> {
    let give_up_at = Instant::now() + WAIT;
    loop {
        let trace = connected.session.trace(id).await?;
        if trace.duration.is_some() || Instant::now() >= give_up_at {
            return Ok(trace);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn to_json(id: Uuid, trace: &Trace) -> Value {
    let event = |event: &TraceEvent| {
        json!({
            "source": event.source.map(|source| source.to_string()),
            "elapsed_us": event.source_elapsed.map(micros),
            "activity": event.activity,
            "thread": event.thread,
        })
    };
    json!({
        "id": id.to_string(),
        "complete": trace.duration.is_some(),
        "duration_us": trace.duration.map(micros),
        "coordinator": trace.coordinator.map(|coordinator| coordinator.to_string()),
        "events": trace.events.iter().map(event).collect::<Value>(),
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
