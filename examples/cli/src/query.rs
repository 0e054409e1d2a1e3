//! `messina query`: runs statements and prints what they bring.

mod draw;
mod execute;
mod hazard;
mod job;
mod print;
mod trace;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use messina_core::wire::request::BatchKind;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::arguments::{Common, wants_json_errors};
use crate::connect::Connected;
use crate::failure::Failure;
use crate::interrupt::interrupted;
use execute::{Executed, Runner};
use job::Job;
use print::Printer;

/// Options of `messina query`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct QueryArguments {
    /// Statements; several may stand in one text, each ending with `;`. None: standard input
    #[arg(value_name = "CQL", conflicts_with = "file")]
    statements: Vec<String>,
    /// Read the statements from a file
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
    /// Prepare the statement and execute it with these values; may repeat
    #[arg(long, value_name = "JSON_ARRAY", conflicts_with = "bind_file")]
    bind: Vec<String>,
    /// Read values from a file, one JSON array a line
    #[arg(long, value_name = "F")]
    bind_file: Option<PathBuf>,
    /// Values come as JSON objects keyed by marker name
    #[arg(long)]
    named: bool,
    /// Run the whole list N times
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    repeat: u64,
    /// Executions in flight
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=16_384))]
    concurrency: u16,
    /// Send QUERY, do not prepare
    #[arg(long)]
    unprepared: bool,
    /// Send QUERY even where the server would fail after applying it
    #[arg(long, requires = "unprepared")]
    force: bool,
    /// Print the server's trace
    #[arg(long)]
    trace: bool,
    /// Ask for no paging
    #[arg(long)]
    unpaged: bool,
    /// Stop after N rows
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
    /// Send all statements as one batch
    #[arg(long, value_name = "KIND", value_enum)]
    batch: Option<BatchType>,
    /// Print results only if there are at most N executions
    #[arg(long, value_name = "N", default_value_t = 100)]
    print_limit: u64,
    #[command(flatten)]
    common: Common,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina query --contact 127.0.0.1 \"SELECT cluster_name FROM system.local\"
  messina query --contact 127.0.0.1 --bind '[1,\"a\"]' --bind '[2,null]' \"INSERT INTO ks.t (k, v) VALUES (?, ?)\"
  messina query --contact 127.0.0.1 --file schema.cql
  messina query --contact 127.0.0.1 --repeat 1000 --concurrency 16 \"SELECT v FROM ks.t WHERE k = 1\"

Values in JSON, both ways:
  integers, float, double   1, -0.5, \"NaN\", \"Infinity\"; varint and decimal as strings
  text, inet, uuid          \"...\"                 blob       \"0x00ff\"
  date, time                \"2026-11-29\", \"12:00:00.000000000\"
  timestamp                 \"2026-11-29T12:00:00.000Z\"       duration   \"1mo2d3ns\"
  list, set, vector, tuple  [1, 2]                map        [[\"key\", 1]]
  user-defined type         {\"field\": 1}          null       null
  not set, empty            {\"unset\": true}, {\"empty\": true}";

/// Kinds of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BatchType {
    // All or nothing.
    Logged,
    // No promise beyond one partition.
    Unlogged,
    // Updates of counters.
    Counter,
}

impl BatchType {
    const fn kind(self) -> BatchKind {
        match self {
            Self::Logged => BatchKind::Logged,
            Self::Unlogged => BatchKind::Unlogged,
            Self::Counter => BatchKind::Counter,
        }
    }
}

/// What all executions came to.
#[derive(Clone, Debug, Default)]
struct Summary {
    executed: u64,
    ok: u64,
    rows: u64,
    /// By kind, in order of first appearance.
    errors: Vec<(&'static str, u64)>,
    seconds: f64,
    interrupted: bool,
}

impl Summary {
    fn count(&mut self, outcome: &Result<Executed, Failure>) -> bool {
        self.executed += 1;
        match outcome {
            Ok(executed) => {
                self.ok += 1;
                self.rows += executed.row_count;
                false
            }
            Err(failure) => {
                let known = self
                    .errors
                    .iter_mut()
                    .find(|(kind, _)| *kind == failure.kind());
                match known {
                    Some((_, count)) => *count += 1,
                    None => self.errors.push((failure.kind(), 1)),
                }
                known_is_new(&self.errors, failure.kind())
            }
        }
    }
}

/// Whether this was the first error of its kind.
fn known_is_new(errors: &[(&'static str, u64)], kind: &str) -> bool {
    errors
        .iter()
        .any(|(known, count)| *known == kind && *count == 1)
}

/// Runs everything and says how it went.
pub(crate) async fn run(mut arguments: QueryArguments) -> Result<ExitCode, Failure> {
    if arguments.unpaged {
        arguments.common.page_size = 0;
    }
    let job = Job::new(&arguments)?;
    let connected = Connected::open(&arguments.common).await?;
    if job.is_unprepared && job.batch.is_none() && !arguments.force {
        let texts = job.statements.iter();
        let texts = texts.map(|statement| statement.text.as_str());
        if let Err(failure) = hazard::check(&connected, texts, !job.binds.is_empty()).await {
            connected.session.close().await;
            return Err(failure);
        }
    }
    let ctrl_c = Arc::new(AtomicBool::new(false));
    let printer = Printer::new(&arguments, &job, connected.clone());
    let runner = Runner::new(job, connected.clone(), printer.wants_rows());
    let summary = run_all(runner, printer, arguments.concurrency, ctrl_c).await;
    connected.session.close().await;
    let summary = summary?;
    if summary.interrupted {
        let message = format!("interrupted after {} executions", summary.executed);
        return Err(Failure::new("interrupted", message));
    }
    let is_good = summary.errors.is_empty();
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Keeps `concurrency` executions in flight and prints each outcome in the order of the list. After
/// an interrupt no more are begun, and those in flight are waited for.
async fn run_all(
    runner: Runner,
    mut printer: Printer,
    concurrency: u16,
    ctrl_c: Arc<AtomicBool>,
) -> Result<Summary, Failure> {
    let total = runner.executions();
    let progress = progress_bar(total);
    let mut signal = core::pin::pin!(interrupted());
    let started = Instant::now();
    let mut outcomes = spawn_workers(runner, concurrency, &ctrl_c);
    let mut summary = Summary::default();
    loop {
        let (index, outcome) = tokio::select! {
            received = outcomes.1.recv() => match received {
                Some(received) => received,
                None => break,
            },
            () = &mut signal, if !summary.interrupted => {
                summary.interrupted = true;
                ctrl_c.store(true, Ordering::Relaxed);
                continue;
            }
        };
        progress.inc(1);
        let is_new_error = summary.count(&outcome);
        progress.suspend(|| {
            if let Err(failure) = &outcome
                && (is_new_error || printer.wants_rows())
            {
                failure.report(wants_json_errors());
            }
            printer.outcome(index, outcome)
        })?;
    }
    progress.finish_and_clear();
    while let Some(ended) = outcomes.0.join_next().await {
        ended.map_err(|error| Failure::new("bug", error.to_string()))?;
    }
    summary.seconds = started.elapsed().as_secs_f64();
    printer.summary(&summary)?;
    Ok(summary)
}

type Outcome = (u64, Result<Executed, Failure>);

/// Workers that take the next execution each, until there are no more.
fn spawn_workers(
    runner: Runner,
    concurrency: u16,
    stop: &Arc<AtomicBool>,
) -> (JoinSet<()>, mpsc::Receiver<Outcome>) {
    let total = runner.executions();
    let (runner, next) = (Arc::new(runner), Arc::new(AtomicU64::new(0)));
    let (tx, rx) = mpsc::channel(OUTCOMES_QUEUED);
    let mut workers = JoinSet::new();
    for _ in 0..total.min(u64::from(concurrency)) {
        let (runner, next) = (Arc::clone(&runner), Arc::clone(&next));
        let (tx, stop) = (tx.clone(), Arc::clone(stop));
        workers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= total {
                    return;
                }
                let outcome = runner.execute(index).await;
                if tx.send((index, outcome)).await.is_err() {
                    return;
                }
            }
        });
    }
    (workers, rx)
}

/// Outcomes that wait to be printed.
const OUTCOMES_QUEUED: usize = 1024;

/// Shown on a terminal only, and only for what takes a while.
fn progress_bar(total: u64) -> ProgressBar {
    if total < 1000 {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let template = "{bar:30.cyan/238} {human_pos}/{human_len}  {per_sec}  {eta} left";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style.progress_chars("━╸─"))
}
