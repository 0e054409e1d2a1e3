//! `messina demo`: the driver at work, with figures that the nodes have counted.
//!
//! Three tables (eventually consistent on tablets, strongly consistent, on vnodes) are written and
//! read by prepared statements. Half way a tablet and a leader move. What counts as "after
//! learning" begins when the driver knows where every tablet lives; what happens while it learns
//! of a move is counted on its own, as the cost of the move.

mod load;
mod moves;
mod report;
mod table;
mod tally;
mod world;

use core::time::Duration;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Common, Format};
use crate::connect::Connected;
use crate::failure::Failure;
use crate::interrupt::interrupted;
use crate::table_kind::Kind;
use load::Load;
use report::{Report, Skipped};
use table::Table;
use world::World;

/// Options of `messina demo`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArguments {
    /// Nodes of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=50))]
    nodes: u16,
    /// Shards of each node
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: u32,
    /// Rows of each table; each is written once and read once
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    rows: u32,
    /// Requests in flight
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    common: Common,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina demo
  messina demo --nodes 6 --shards 8 --rows 100000
  messina demo --contact 127.0.0.1                makes three keyspaces, and drops them again";

/// Runs the demonstration.
pub(crate) async fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let format = arguments.common.output();
    if format == Format::Csv {
        return Err(Failure::usage("demo prints table or json"));
    }
    let started = Instant::now();
    let world = World::start(arguments).await?;
    let connected = world.connect(&arguments.common).await;
    let outcome = match &connected {
        Ok(connected) => {
            tokio::select! {
                outcome = demonstrate(arguments, &world, connected) => outcome,
                () = interrupted() => Err(Failure::new("interrupted", "interrupted")),
            }
        }
        Err(failure) => Err(failure.clone()),
    };
    if let Ok(connected) = &connected {
        connected.session.close().await;
    }
    world.stop().await;
    let report = outcome?;
    let text = match format {
        Format::Json => report.to_json().to_string(),
        _ => report.draw(started.elapsed()),
    };
    writeln!(std::io::stdout().lock(), "{text}").map_err(|error| Failure::stdout(&error))?;
    match report.first_failure() {
        Some(failure) => Err(failure),
        None => Ok(ExitCode::SUCCESS),
    }
}

async fn demonstrate(
    arguments: &DemoArguments,
    world: &World,
    connected: &Connected,
) -> Result<Report, Failure> {
    let status = connected.settled_status(Duration::from_secs(2)).await;
    let mut report = Report::new(world, status);
    for kind in Kind::ALL {
        let progress = progress_bar(kind, arguments);
        let table = match Table::create(kind, connected, world).await {
            Ok(table) => table,
            Err(failure) if world.is_embedded() => return Err(failure),
            Err(failure) => {
                let what = format!("{} table", kind.adjective());
                report.skipped.push(Skipped::new(what, failure.message()));
                continue;
            }
        };
        let load = Load::new(connected, world, &table, arguments.concurrency, progress);
        exercise(&load, arguments.rows, &mut report).await?;
        load.progress().finish_and_clear();
        if !world.is_embedded() {
            table.drop(connected).await?;
        }
    }
    report.complete(connected, world);
    Ok(report)
}

/// Learn, first half, move, second half.
async fn exercise(load: &Load, rows: u32, report: &mut Report) -> Result<(), Failure> {
    let keys: Vec<i64> = (0..i64::from(rows)).collect();
    let (first, second) = keys.split_at(keys.len() / 2);
    load.say("learns");
    let before = load.learn(&keys).await?;
    load.say("writes and reads");
    let mut measured = load.write_and_read(first).await?;
    load.say("moves");
    match moves::make(load, first).await? {
        moves::Outcome::Moved(cost) => report.moves.push(*cost),
        moves::Outcome::Skipped(what, why) => report.skipped.push(Skipped::new(what, why)),
        moves::Outcome::NothingToMove => {}
    }
    load.say("writes and reads");
    measured.add(load.write_and_read(second).await?);
    report.add_table(load.table(), before, measured);
    Ok(())
}

/// On standard error, if that is a terminal.
fn progress_bar(kind: Kind, arguments: &DemoArguments) -> ProgressBar {
    let template = "{prefix:>10.bold}  {bar:32.cyan/238} {human_pos}/{human_len}  {msg:.dim}";
    let bar =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(u64::from(arguments.rows) * 2)
        .with_style(bar.progress_chars("━╸─"))
        .with_prefix(kind.name())
}
