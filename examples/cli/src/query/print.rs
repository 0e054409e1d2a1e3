//! Results in the order of the list: as tables, JSON objects, or CSV.

use std::collections::BTreeMap;
use std::io::{self, Write};

use console::style;
use messina_core::types::CqlValue;
use serde_json::{Map, Value, json};

use super::execute::Executed;
use super::job::Job;
use super::{QueryArguments, Summary, draw, trace};
use crate::arguments::Format;
use crate::connect::Connected;
use crate::failure::Failure;
use crate::figures::{counted, micros};
use crate::value::{to_json, to_text};

/// Prints outcomes in order, however they come.
pub(super) struct Printer {
    format: Format,
    connected: Connected,
    prints_each: bool,
    is_many: bool,
    next: u64,
    early: BTreeMap<u64, Option<Executed>>,
    csv_columns: Option<Vec<(String, String)>>,
}

impl Printer {
    pub(super) fn new(arguments: &QueryArguments, job: &Job, connected: Connected) -> Self {
        Self {
            format: arguments.common.output(),
            connected,
            prints_each: job.executions() <= arguments.print_limit,
            is_many: job.executions() > 1,
            next: 0,
            early: BTreeMap::new(),
            csv_columns: None,
        }
    }

    /// Whether results will be printed at all.
    pub(super) const fn wants_rows(&self) -> bool {
        self.prints_each
    }

    /// Takes an outcome; prints it as soon as those before it are.
    pub(super) fn outcome(
        &mut self,
        index: u64,
        outcome: Result<Executed, Failure>,
    ) -> Result<(), Failure> {
        if !self.prints_each {
            return Ok(());
        }
        self.early.insert(index, outcome.ok());
        let mut out = io::stdout().lock();
        while let Some(executed) = self.early.remove(&self.next) {
            self.next += 1;
            if let Some(executed) = executed {
                self.print(&mut out, &executed).map_err(stdout_failed)?;
            }
        }
        out.flush().map_err(stdout_failed)
    }

    /// What all of it came to; what an interrupt left out of order comes before.
    pub(super) fn summary(&mut self, summary: &Summary) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        for executed in core::mem::take(&mut self.early).into_values().flatten() {
            self.print(&mut out, &executed).map_err(stdout_failed)?;
        }
        match self.format {
            Format::Json => writeln!(out, "{}", summary_json(summary)),
            Format::Table if self.is_many || summary.ok == 0 => {
                writeln!(out, "{}", style(summary_line(summary)).bold())
            }
            Format::Table | Format::Csv => Ok(()),
        }
        .and_then(|()| out.flush())
        .map_err(stdout_failed)
    }

    fn print(&mut self, out: &mut impl Write, executed: &Executed) -> io::Result<()> {
        match self.format {
            Format::Json => writeln!(out, "{}", self.object(executed)),
            Format::Csv => self.csv(out, executed),
            Format::Table => self.table(out, executed),
        }
    }

    fn object(&self, executed: &Executed) -> Value {
        let columns = executed
            .columns
            .iter()
            .map(|(name, ty)| json!({ "name": name, "type": ty }));
        let rows = executed
            .rows
            .iter()
            .map(|row| row.iter().map(to_json).collect::<Value>());
        let node = self.connected.node(executed.node);
        let mut object = json!({
            "columns": columns.collect::<Value>(),
            "rows": rows.collect::<Value>(),
            "pages": executed.pages,
            "lwt_applied": executed.lwt_applied,
            "warnings": executed.warnings,
            "node": {
                "host_id": node.as_ref().map(|node| node.host_id.to_string()),
                "address": node.as_ref().map(|node| node.address.to_string()),
                "shard": executed.shard,
            },
            "attempts": executed.attempts,
            "speculative": 0,
            "tablet_learned": executed.tablet_learned,
            "schema_changed": executed.schema_changed,
            "latency_us": u64::try_from(executed.latency.as_micros()).unwrap_or(u64::MAX),
        });
        let traces = self.traces(executed);
        if !traces.is_empty() {
            object["traces"] = traces.into();
        }
        object
    }

    fn csv(&mut self, out: &mut impl Write, executed: &Executed) -> io::Result<()> {
        if !executed.is_rows {
            return Ok(());
        }
        let mut writer = csv::Writer::from_writer(out);
        if self.csv_columns.as_ref() != Some(&executed.columns) {
            writer.write_record(executed.columns.iter().map(|(name, _)| name))?;
            self.csv_columns = Some(executed.columns.clone());
        }
        for row in &executed.rows {
            let text = |value: &CqlValue| match value {
                CqlValue::Null => String::new(),
                value => to_text(value),
            };
            writer.write_record(row.iter().map(text))?;
        }
        writer.flush()
    }

    fn table(&self, out: &mut impl Write, executed: &Executed) -> io::Result<()> {
        if executed.is_rows {
            writeln!(out, "{}", draw::rows(executed))?;
        }
        for warning in &executed.warnings {
            writeln!(out, "{} {warning}", style("warning:").yellow())?;
        }
        for trace in self.traces(executed) {
            print_trace(out, &trace)?;
        }
        writeln!(out, "{}", style(self.footer(executed)).dim())
    }

    fn footer(&self, executed: &Executed) -> String {
        let mut parts = Vec::new();
        if executed.is_rows {
            parts.push(counted(executed.row_count, "row"));
        }
        if executed.pages > 1 {
            parts.push(counted(u64::from(executed.pages), "page"));
        }
        if let Some(applied) = executed.lwt_applied {
            parts.push(if applied { "applied" } else { "not applied" }.to_owned());
        }
        if executed.schema_changed {
            parts.push("schema changed".to_owned());
        }
        if let Some(node) = self.connected.node(executed.node) {
            parts.push(match executed.shard {
                Some(shard) => format!("{} shard {shard}", node.address),
                None => node.address.to_string(),
            });
        }
        if executed.tablet_learned {
            parts.push("tablet learned".to_owned());
        }
        if executed.attempts > 1 {
            parts.push(format!("{} attempts", executed.attempts));
        }
        parts.push(format!("{:.2} ms", executed.latency.as_secs_f64() * 1000.0));
        parts.join(" · ")
    }

    /// Reading a trace is a request of its own, made here because few ask for it and only those
    /// that are printed count.
    fn traces(&self, executed: &Executed) -> Vec<Value> {
        let ids = executed.tracing_ids.iter();
        tokio::task::block_in_place(|| {
            let runtime = tokio::runtime::Handle::current();
            ids.map(|id| runtime.block_on(trace::read(&self.connected, *id)))
                .collect()
        })
    }
}

fn print_trace(out: &mut impl Write, trace: &Value) -> io::Result<()> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let title = match (&trace["duration_us"], trace["error"].as_str()) {
        (_, Some(error)) => format!("cannot be read: {error}"),
        (Value::Null, None) => "not complete after two seconds".to_owned(),
        (duration, None) => micros(duration.as_u64().unwrap_or(0)),
    };
    writeln!(
        out,
        "{} {}  {title}",
        style("trace").bold(),
        word(&trace["id"])
    )?;
    for event in trace["events"].as_array().into_iter().flatten() {
        let [source, elapsed, activity] =
            ["source", "elapsed_us", "activity"].map(|name| word(&event[name]));
        let (elapsed, source) = (format!("{elapsed:>8} µs"), format!("{source:<15}"));
        writeln!(
            out,
            "  {}  {}  {activity}",
            style(elapsed).cyan(),
            style(source).dim()
        )?;
    }
    Ok(())
}

fn summary_json(summary: &Summary) -> Value {
    let errors = summary
        .errors
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), (*count).into()));
    let mut fields = json!({
        "executed": summary.executed,
        "ok": summary.ok,
        "errors": Value::Object(errors.collect::<Map<_, _>>()),
        "rows": summary.rows,
        "seconds": summary.seconds,
    });
    if summary.interrupted {
        fields["interrupted"] = true.into();
    }
    json!({ "summary": fields })
}

fn summary_line(summary: &Summary) -> String {
    let errors: Vec<_> = summary
        .errors
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let mut line = format!("{} executed, {} ok", summary.executed, summary.ok);
    if !errors.is_empty() {
        line.push_str(&format!(" ({})", errors.join(", ")));
    }
    line.push_str(&format!(
        ", {} in {:.2} s",
        counted(summary.rows, "row"),
        summary.seconds
    ));
    line
}

fn stdout_failed(error: io::Error) -> Failure {
    Failure::stdout(&error)
}
