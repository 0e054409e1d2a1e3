//! Rows of `system_traces`, from the traces that the cluster keeps.

use super::super::cluster::Cluster;
use super::super::route::Caller;
use super::super::schema::Table;
use super::super::tracing::Trace;
use super::super::value::{bigint, inet, int, text, text_map};
use super::{Fill, Row, uuid};

/// Where `table` is `sessions`.
pub(super) fn sessions(cluster: &Cluster, caller: &Caller, table: &Table) -> Vec<Row> {
    let traces = cluster.traces.all();
    traces
        .map(|trace| session(trace, caller.now, table))
        .collect()
}

fn session(trace: &Trace, now: i64, table: &Table) -> Row {
    let size = |size: usize| int(i32::try_from(size).unwrap_or(i32::MAX));
    let micros = |micros: i64| int(i32::try_from(micros).unwrap_or(i32::MAX));
    let parameters = trace.parameters.iter();
    let parameters = parameters.map(|(key, value)| (key.as_str(), value.as_str()));
    Fill::new(table)
        .set("session_id", uuid(&trace.id))
        .set("client", inet(trace.client))
        .set("command", text("QUERY"))
        .set("coordinator", inet(trace.coordinator))
        .set("duration", trace.duration_at(now).map(micros))
        .set("parameters", text_map(parameters))
        .set("request", text(trace.request))
        .set("request_size", size(trace.request_size))
        .set("response_size", size(trace.response_size))
        .set("started_at", bigint(trace.started_at / 1000))
        .set("username", text(&trace.username))
        .done()
}

/// Where `table` is `events`.
pub(super) fn events(cluster: &Cluster, table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    for trace in cluster.traces.all() {
        for (at, activity) in trace.events.iter().enumerate() {
            let (id, elapsed) = trace.event(at);
            rows.push(
                Fill::new(table)
                    .set("session_id", uuid(&trace.id))
                    .set("event_id", uuid(&id))
                    .set("activity", text(activity))
                    .set("scylla_parent_id", bigint(0))
                    .set("scylla_span_id", bigint(1))
                    .set("source", inet(trace.coordinator))
                    .set(
                        "source_elapsed",
                        int(i32::try_from(elapsed).unwrap_or(i32::MAX)),
                    )
                    .set("thread", text(&format!("shard {}", trace.shard)))
                    .done(),
            );
        }
    }
    rows
}
