//! The traces that are kept.

/// A trace: the lines of [`step`](crate::step).
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a table")]
pub struct Trace {
    /// The name of its file.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// All traces, by name.
pub const TRACES: &[Trace] = &[
    trace(
        "cassandra-errors",
        include_str!("../traces/cassandra-errors.txt"),
    ),
    trace(
        "cassandra-handshake",
        include_str!("../traces/cassandra-handshake.txt"),
    ),
    trace(
        "cassandra-rows",
        include_str!("../traces/cassandra-rows.txt"),
    ),
    trace(
        "cassandra-types",
        include_str!("../traces/cassandra-types.txt"),
    ),
    trace("errors", include_str!("../traces/errors.txt")),
    trace("events", include_str!("../traces/events.txt")),
    trace("leaders", include_str!("../traces/leaders.txt")),
    trace("login", include_str!("../traces/login.txt")),
    trace("malformed", include_str!("../traces/malformed.txt")),
    trace("paging", include_str!("../traces/paging.txt")),
    trace("queueing", include_str!("../traces/queueing.txt")),
    trace("ring", include_str!("../traces/ring.txt")),
    trace("tablets-v1", include_str!("../traces/tablets-v1.txt")),
    trace("tablets-v2", include_str!("../traces/tablets-v2.txt")),
    trace("timeouts", include_str!("../traces/timeouts.txt")),
    trace("unprepared", include_str!("../traces/unprepared.txt")),
];

const fn trace(name: &'static str, text: &'static str) -> Trace {
    Trace { name, text }
}
