//! The server's trace of a request.

use core::time::Duration;

use messina_core::types::CqlValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::connect::Connected;
use crate::value::to_json;

/// Servers write traces in the background: how often to look, and how long to wait between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

const SESSION: &str = "SELECT duration FROM system_traces.sessions WHERE session_id = ?";
const EVENTS: &str = "SELECT source, source_elapsed, activity FROM system_traces.events \
    WHERE session_id = ?";

/// The trace as JSON; `events` is null if it cannot be read, and `error` says why.
pub(super) async fn read(connected: &Connected, id: Uuid) -> Value {
    match try_read(connected, id).await {
        Ok(events) => json!({ "id": id.to_string(), "events": events }),
        Err(error) => json!({ "id": id.to_string(), "events": null, "error": error }),
    }
}

async fn try_read(connected: &Connected, id: Uuid) -> Result<Vec<Value>, String> {
    let session = &connected.session;
    for _ in 0..TRIES {
        let found = session
            .query(SESSION, (id,))
            .await
            .map_err(|error| error.to_string())?;
        let mut rows = found
            .rows::<Vec<CqlValue>>()
            .map_err(|error| error.to_string())?
            .flatten();
        // The duration is written last.
        if rows.any(|row| row.first().is_some_and(|duration| !duration.is_null())) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let found = session
        .query(EVENTS, (id,))
        .await
        .map_err(|error| error.to_string())?;
    let rows = found
        .rows::<Vec<CqlValue>>()
        .map_err(|error| error.to_string())?;
    let event = |row: Vec<CqlValue>| {
        let cell = |at: usize| row.get(at).map_or(Value::Null, to_json);
        json!({ "source": cell(0), "elapsed_us": cell(1), "activity": cell(2) })
    };
    Ok(rows.flatten().map(event).collect())
}
