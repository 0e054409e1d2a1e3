//! What the load came to: for people, and for programs.

use console::style;
use serde_json::{Map, Value, json};

use super::arguments::Workload;
use super::histogram;
use super::tally::Tally;
use super::usage::Usage;
use crate::failure::Failure;
use crate::figures::{bytes, grouped, micros};

/// Everything that is told.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) workload: Workload,
    /// One line about the load.
    pub(super) shape: String,
    pub(super) tally: Tally,
    pub(super) seconds: f64,
    pub(super) usage: Usage,
    /// Answers that taught the driver a tablet, where answers can.
    pub(super) misrouted: Option<u64>,
    /// Requests sent on a connection to the shard they were meant for.
    pub(super) on_shard: u64,
    /// Requests sent on another connection of the node.
    pub(super) off_shard: u64,
    /// With a rate: requests that were due and for which nobody was free.
    pub(super) not_begun: Option<u64>,
    pub(super) was_interrupted: bool,
}

/// Quantiles that are told, with their names in the contract and for people.
const QUANTILES: [(f64, &str, &str); 5] = [
    (0.5, "p50", "p50"),
    (0.9, "p90", "p90"),
    (0.99, "p99", "p99"),
    (0.999, "p999", "p99.9"),
    (1.0, "max", "max"),
];

impl Report {
    /// The first failure of each kind.
    pub(super) fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.tally.errors.iter().map(|(failure, _)| failure)
    }

    pub(super) const fn has_errors(&self) -> bool {
        !self.tally.errors.is_empty()
    }

    pub(super) fn requests(&self) -> u64 {
        self.tally.requests()
    }

    pub(super) fn to_json(&self) -> Value {
        let latency_us = QUANTILES.iter().map(|(quantile, name, _)| {
            let value = self.tally.latency_us.value_at_quantile(*quantile);
            ((*name).to_owned(), self.answered().map(|_| value).into())
        });
        let errors = self.tally.errors.iter();
        let errors = errors.map(|(failure, count)| (failure.kind().to_owned(), (*count).into()));
        let (user, system) = self.cpu_us_per_request().unzip();
        let mut object = json!({
            "workload": self.workload.name(),
            "requests": self.requests(),
            "errors": Value::Object(errors.collect::<Map<_, _>>()),
            "rows": self.tally.rows,
            "seconds": self.seconds,
            "throughput": self.throughput(),
            "latency_us": Value::Object(latency_us.collect::<Map<_, _>>()),
            "cpu_user_us_per_request": user,
            "cpu_sys_us_per_request": system,
            "misrouted": self.misrouted,
            "on_shard": self.on_shard,
            "off_shard": self.off_shard,
            "rss_bytes": self.usage.resident_bytes,
            "not_begun": self.not_begun,
        });
        if self.was_interrupted {
            object["interrupted"] = true.into();
        }
        object
    }

    pub(super) fn draw(&self) -> String {
        let title = format!("messina bench {}", self.workload.name());
        let mut lines = vec![
            style(title).bold().cyan().to_string(),
            style(&self.shape).dim().to_string(),
            String::new(),
        ];
        lines.push(line("requests", &self.requests_text()));
        lines.push(line("errors", &self.errors_text()));
        if let Some(not_begun) = self.not_begun.filter(|count| *count > 0) {
            let text = format!("{} were due, nobody was free", grouped(not_begun));
            lines.push(line("not begun", &style(text).yellow().to_string()));
        }
        if self.answered().is_some() {
            lines.push(line("latency", &self.latency_text()));
        }
        if let Some((user, system)) = self.cpu_us_per_request() {
            let text = format!("{user:.1} µs user, {system:.1} µs system a request");
            lines.push(line("processor", &text));
        }
        if let Some(resident) = self.usage.resident_bytes {
            lines.push(line("memory", &format!("{} resident", bytes(resident))));
        }
        if let Some(misrouted) = self.misrouted {
            let note = style("answers that taught the driver a tablet").dim();
            lines.push(line(
                "misrouted",
                &format!("{}  {note}", grouped(misrouted)),
            ));
        }
        let meant = self.on_shard.saturating_add(self.off_shard);
        if meant > 0 {
            let text = format!("{} of {}", grouped(self.on_shard), grouped(meant));
            let note = style("requests on the shard they were meant for").dim();
            lines.push(line("shards", &format!("{text}  {note}")));
        }
        if self.answered().is_some() {
            lines.push(format!("\n{}", style("Latency").bold()));
            lines.extend(histogram::draw(&self.tally.latency_us));
        }
        lines.join("\n")
    }

    fn requests_text(&self) -> String {
        format!(
            "{} in {:.1} s, {} a second",
            grouped(self.requests()),
            self.seconds,
            style(grouped(rounded(self.throughput()))).bold()
        )
    }

    fn errors_text(&self) -> String {
        if !self.has_errors() {
            return style("none").green().to_string();
        }
        let errors = self.tally.errors.iter();
        let errors =
            errors.map(|(failure, count)| format!("{} {}", grouped(*count), failure.kind()));
        style(errors.collect::<Vec<_>>().join(", "))
            .red()
            .to_string()
    }

    fn latency_text(&self) -> String {
        let quantiles = QUANTILES.iter().map(|(quantile, _, name)| {
            let value = micros(self.tally.latency_us.value_at_quantile(*quantile));
            format!("{} {}", style(name).dim(), style(value).bold())
        });
        quantiles.collect::<Vec<_>>().join("  ")
    }

    /// Requests that were answered well, if there were any.
    fn answered(&self) -> Option<u64> {
        Some(self.tally.latency_us.len()).filter(|count| *count > 0)
    }

    /// Requests answered well in a second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn throughput(&self) -> f64 {
        self.tally.latency_us.len() as f64 / self.seconds.max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn cpu_us_per_request(&self) -> Option<(f64, f64)> {
        let requests = self.requests().max(1) as f64;
        let each = |time: core::time::Duration| time.as_secs_f64() * 1e6 / requests;
        let (user, system) = self.usage.cpu?;
        Some((each(user), each(system)))
    }
}

fn line(name: &str, text: &str) -> String {
    format!("  {}  {text}", style(format!("{name:<9}")).dim())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure for people, never negative"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}
