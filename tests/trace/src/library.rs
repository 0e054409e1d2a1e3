//! The traces that are kept.

/// A trace: the lines of [`step`](crate::step).
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a table")]
pub struct Trace<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// The file.
    pub text: &'a str,
}

/// All traces, by name.
pub const TRACES: &[Trace<'static>] = &[
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
    trace(
        "driver-cassandra",
        include_str!("../traces/driver-cassandra.txt"),
    ),
    trace(
        "driver-cluster",
        include_str!("../traces/driver-cluster.txt"),
    ),
    trace("driver-errors", include_str!("../traces/driver-errors.txt")),
    trace(
        "driver-leaders",
        include_str!("../traces/driver-leaders.txt"),
    ),
    trace(
        "driver-malformed",
        include_str!("../traces/driver-malformed.txt"),
    ),
    trace("driver-nodes", include_str!("../traces/driver-nodes.txt")),
    trace(
        "driver-refused",
        include_str!("../traces/driver-refused.txt"),
    ),
    trace("driver-ring", include_str!("../traces/driver-ring.txt")),
    trace("driver-single", include_str!("../traces/driver-single.txt")),
    trace(
        "driver-streamed",
        include_str!("../traces/driver-streamed.txt"),
    ),
    trace(
        "driver-tablets-v1",
        include_str!("../traces/driver-tablets-v1.txt"),
    ),
    trace(
        "driver-tablets-v2",
        include_str!("../traces/driver-tablets-v2.txt"),
    ),
    trace(
        "driver-timeouts",
        include_str!("../traces/driver-timeouts.txt"),
    ),
    trace("driver-writes", include_str!("../traces/driver-writes.txt")),
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

const fn trace(name: &'static str, text: &'static str) -> Trace<'static> {
    Trace { name, text }
}
