//! `messina bench`: load of a fixed shape on one table, and what it cost.
//!
//! Requests begin as soon as one of those in flight has ended or, with `--rate`, at a fixed rate
//! whatever becomes of those before them; then a latency counts from the moment at which its
//! request was due, so that a cluster that falls behind cannot hide it. Rows have known contents,
//! and what is read is compared.

mod arguments;
mod histogram;
mod load;
mod report;
mod rows;
mod schedule;
mod table;
mod tally;
mod usage;

use core::time::Duration;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::arguments::{BenchArguments, EXAMPLES};
use crate::arguments::{Format, wants_json_errors};
use crate::connect::Connected;
use crate::failure::Failure;
use crate::interrupt::interrupted;
use load::Load;
use report::Report;
use schedule::Schedule;
use table::Table;
use usage::Usage;

/// Makes the table if need be, puts load on it, and reports.
pub(crate) async fn run(arguments: &BenchArguments) -> Result<ExitCode, Failure> {
    let format = arguments.common.output();
    if format == Format::Csv {
        return Err(Failure::usage("bench prints table or json"));
    }
    let name = arguments.table()?;
    let connected = Connected::open(&arguments.common).await?;
    connected.settled_status(SETTLE_LIMIT).await;
    let table = tokio::select! {
        table = Table::ready(arguments, name, &connected) => table,
        () = interrupted() => Err(Failure::new("interrupted", "interrupted before the load began")),
    };
    let outcome = match table {
        Ok(table) => measure(arguments, &connected, table).await,
        Err(failure) => Err(failure),
    };
    connected.session.close().await;
    let report = outcome?;
    for failure in report.failures() {
        failure.report(wants_json_errors());
    }
    let text = match format {
        Format::Json => report.to_json().to_string(),
        _ => report.draw(),
    };
    writeln!(std::io::stdout().lock(), "{text}").map_err(|error| Failure::stdout(&error))?;
    if report.was_interrupted {
        let message = format!("interrupted after {} requests", report.requests());
        return Err(Failure::new("interrupted", message));
    }
    Ok(if report.has_errors() {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// The load itself. After an interrupt no more requests begin, and those in flight are waited for.
async fn measure(
    arguments: &BenchArguments,
    connected: &Connected,
    table: Table,
) -> Result<Report, Failure> {
    let may_tell_misrouted = table.tells_misrouted(connected);
    let schedule = Arc::new(Schedule::new(arguments));
    let load = Load::new(arguments, connected, table, &schedule);
    let progress = progress_bar(arguments);
    let shards_before = connected.session.status().shard_tally;
    let before = Usage::now();
    schedule.start()?;
    let mut workers = load.spawn();
    let mut ticks = tokio::time::interval(TICK);
    let mut signal = core::pin::pin!(interrupted());
    let mut was_interrupted = false;
    loop {
        tokio::select! {
            ended = workers.join_next() => match ended {
                Some(ended) => ended.map_err(|error| Failure::new("bug", error.to_string()))?,
                None => break,
            },
            _ = ticks.tick(), if !progress.is_hidden() => show(&progress, &schedule, &load),
            () = &mut signal, if !was_interrupted => {
                was_interrupted = true;
                schedule.stop();
            }
        }
    }
    let seconds = schedule.elapsed().as_secs_f64();
    let usage = Usage::now().since(before);
    progress.finish_and_clear();
    let shards = connected.session.status().shard_tally;
    let on_shard = shards.reached.saturating_sub(shards_before.reached);
    let off_shard = shards.missed.saturating_sub(shards_before.missed);
    let tally = load.tally();
    Ok(Report {
        workload: arguments.workload,
        shape: arguments.shape(),
        misrouted: may_tell_misrouted.then_some(tally.taught),
        on_shard,
        off_shard,
        not_begun: schedule.not_begun(),
        tally,
        seconds,
        usage,
        was_interrupted,
    })
}

/// How long the pools may take to fill before the load begins.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// Between two live figures.
const TICK: Duration = Duration::from_millis(500);

/// On standard error, if that is a terminal.
fn progress_bar(arguments: &BenchArguments) -> ProgressBar {
    let template = "{prefix:.bold}  {bar:24.cyan/238}  {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(schedule::STEPS)
        .with_style(style.progress_chars("━╸─"))
        .with_prefix(arguments.workload.name())
}

fn show(progress: &ProgressBar, schedule: &Schedule, load: &Load) {
    progress.set_position(schedule.steps_done(load.requests()));
    progress.set_message(load.live(schedule.elapsed()));
}
