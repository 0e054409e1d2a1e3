//! Counts of what the relay does, in Prometheus' text form. Nothing here names a client or a token.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use messina_websocket::tunnel::Reason;

/// The relay's counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections: AtomicU64,
    pub(crate) connections_open: Gauge,
    /// By status of HTTP, in the order of [`STATUSES`].
    refused: [AtomicU64; STATUSES.len()],
    pub(crate) channels: AtomicU64,
    pub(crate) channels_open: Gauge,
    /// By reason, in the order of [`REASONS`].
    closed: [AtomicU64; REASONS.len()],
    pub(crate) bytes_to_node: AtomicU64,
    pub(crate) bytes_to_client: AtomicU64,
    dials: AtomicU64,
    dial_us: AtomicU64,
    pub(crate) steered: AtomicU64,
    pub(crate) logins: AtomicU64,
    pub(crate) violations: AtomicU64,
    pub(crate) throttled: AtomicU64,
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    pub(crate) fn refuse(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status);
        if let Some(count) = self.refused.get(at.unwrap_or(0)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn close(&self, reason: Reason) {
        let at = REASONS.iter().position(|(known, _)| *known == reason);
        if let Some(count) = self.closed.get(at.unwrap_or(0)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn dialled(&self, took: Duration) {
        self.dials.fetch_add(1, Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.dial_us.fetch_add(us, Relaxed);
    }

    /// All of them as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(4096);
        let mut put = |name: &str, kind: &str, help: &str, rows: &[(&str, u64)]| {
            let _ = writeln!(text, "# HELP messina_relay_{name} {help}");
            let _ = writeln!(text, "# TYPE messina_relay_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "messina_relay_{name}{labels} {value}");
            }
        };
        let one = |count: &AtomicU64| [("", count.load(Relaxed))];
        let counter = "counter";
        put(
            "connections_total",
            counter,
            "WebSockets accepted.",
            &one(&self.connections),
        );
        put(
            "connections",
            "gauge",
            "WebSockets open.",
            &one(&self.connections_open.0),
        );
        let refused = STATUSES.iter().zip(&self.refused);
        let refused: Vec<_> = refused
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), count.load(Relaxed)))
            .collect();
        put(
            "refused_total",
            counter,
            "Requests refused before they became WebSockets.",
            &borrowed(&refused),
        );
        put(
            "channels_total",
            counter,
            "Connections to nodes asked for.",
            &one(&self.channels),
        );
        put(
            "channels",
            "gauge",
            "Connections to nodes open or being opened.",
            &one(&self.channels_open.0),
        );
        let closed = REASONS.iter().zip(&self.closed);
        let closed: Vec<_> = closed
            .map(|((_, name), count)| (format!("{{reason=\"{name}\"}}"), count.load(Relaxed)))
            .collect();
        put(
            "channels_closed_total",
            counter,
            "Connections to nodes that ended.",
            &borrowed(&closed),
        );
        let bytes = [
            ("{to=\"node\"}", self.bytes_to_node.load(Relaxed)),
            ("{to=\"client\"}", self.bytes_to_client.load(Relaxed)),
        ];
        put("bytes_total", counter, "Bytes of CQL carried.", &bytes);
        put(
            "dials_total",
            counter,
            "Connections to nodes opened.",
            &one(&self.dials),
        );
        put(
            "dial_microseconds_total",
            counter,
            "Time that opening them took.",
            &one(&self.dial_us),
        );
        put(
            "steered_total",
            counter,
            "Connections opened from a port of the wished shard.",
            &one(&self.steered),
        );
        put(
            "logins_total",
            counter,
            "Connections logged in by the relay.",
            &one(&self.logins),
        );
        put(
            "violations_total",
            counter,
            "WebSockets ended because they broke the tunnel's rules.",
            &one(&self.violations),
        );
        put(
            "throttled_total",
            counter,
            "Times that a connection had to wait for its byte rate.",
            &one(&self.throttled),
        );
        text
    }
}

fn borrowed(rows: &[(String, u64)]) -> Vec<(&str, u64)> {
    rows.iter()
        .map(|(labels, value)| (labels.as_str(), *value))
        .collect()
}

/// The first stands for all that are not listed.
const STATUSES: [u16; 9] = [400, 401, 403, 404, 405, 426, 429, 431, 503];

/// The first stands for all that are not listed.
const REASONS: [(Reason, &str); 14] = [
    (Reason::Other, "other"),
    (Reason::Abandoned, "finished"),
    (Reason::Refused, "refused"),
    (Reason::Unreachable, "unreachable"),
    (Reason::TimedOut, "timed_out"),
    (Reason::Resolve, "resolve"),
    (Reason::Reset, "reset"),
    (Reason::Forbidden, "forbidden"),
    (Reason::TooMany, "too_many"),
    (Reason::Draining, "draining"),
    (Reason::Idle, "idle"),
    (Reason::NotCql, "not_cql"),
    (Reason::Limit, "limit"),
    (Reason::Lost, "lost"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_the_text_format() {
        let metrics = Metrics::default();
        metrics.refuse(403);
        metrics.close(Reason::Forbidden);
        metrics.dialled(Duration::from_micros(7));
        let text = metrics.text();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("messina_relay_"), "{line}");
            assert!(value.parse::<u64>().is_ok(), "{line}");
        }
        for line in [
            "messina_relay_refused_total{status=\"403\"} 1",
            "messina_relay_channels_closed_total{reason=\"forbidden\"} 1",
            "messina_relay_dial_microseconds_total 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}");
        }
    }
}
