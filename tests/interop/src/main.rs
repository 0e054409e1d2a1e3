//! Runs the interop harness by hand or in CI.
//!
//! `cargo run -p messina-interop -- cassandra --keep` starts a node to play with;
//! `cargo run -p messina-interop -- slice` is what CI runs.

#![forbid(unsafe_code)]

use core::{net::SocketAddr, time::Duration};
use std::{io::Read as _, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use messina_interop::{
    capture::{Capture, exchange},
    cassandra::{Cassandra, Options},
    foreign::{Call, Driver, Programs, Scenario},
    maven, probe, process,
    python::Python,
    report::say,
    slice,
    target::Target,
};
use serde_json::json;

/// Real servers for messina, foreign drivers for its simulator.
#[derive(Debug, Parser)]
#[command(name = "messina-interop")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Start one Apache Cassandra node, print one JSON line when it is ready, and stop it.
    Cassandra(CassandraArguments),
    /// Record what drivers and a server say to each other, until the end of standard input.
    Capture(CaptureArguments),
    /// Fetch and build what the others need (Cassandra's jars, the foreign drivers) and end.
    Setup,
    /// Foreign drivers against a cluster that runs already.
    Foreign(ForeignArguments),
    /// Our command against Cassandra, foreign drivers against `messina sim`.
    Slice(SliceArguments),
    /// Of the slice, only the same workload by our driver and by others.
    Compare(CompareArguments),
}

#[derive(Debug, Args)]
struct CassandraArguments {
    /// Keep it running until Ctrl-C or the end of standard input.
    #[arg(long)]
    keep: bool,
    /// Demand a login (user and password `cassandra`).
    #[arg(long)]
    auth: bool,
    /// When it was ready, stop it and start it again with its data.
    #[arg(long)]
    restart: bool,
    /// The native port; a free one if not given.
    #[arg(long)]
    port: Option<u16>,
    /// The version of the jars.
    #[arg(long, default_value = maven::CASSANDRA_VERSION)]
    cassandra: String,
    /// The largest heap, in MiB.
    #[arg(long, default_value_t = 768)]
    heap: u32,
}

#[derive(Debug, Args)]
struct CaptureArguments {
    /// The server, ADDRESS:PORT.
    #[arg(long)]
    server: SocketAddr,
    /// The file to write.
    #[arg(long)]
    out: PathBuf,
    /// Let our own driver have its exchange with the server, then end.
    #[arg(long)]
    ours: bool,
}

#[derive(Debug, Args)]
struct ForeignArguments {
    /// One node, HOST:PORT.
    #[arg(long)]
    contact: String,
    /// What it is, by the name that the scenario has for it.
    #[arg(long, default_value = "cassandra")]
    cluster: String,
    /// The control port of a simulated cluster.
    #[arg(long)]
    control: Option<String>,
    /// Only this driver.
    #[arg(long)]
    driver: Option<Program>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Program {
    Python,
    Rust,
    Javascript,
}

#[derive(Debug, Args)]
struct SliceArguments {
    /// A `messina` command that is built already; cargo builds one if not given.
    #[arg(long)]
    messina: Option<PathBuf>,
    /// Only one half.
    #[arg(long)]
    only: Option<Half>,
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// A `messina` command that is built already; cargo builds one if not given.
    #[arg(long)]
    messina: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Half {
    Cassandra,
    Driver,
    Foreign,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<bool> {
    process::stop_all_on_interrupt()?;
    let target = Target::find()?;
    match arguments.task {
        Task::Cassandra(arguments) => cassandra(&target, &arguments).map(|()| true),
        Task::Capture(arguments) => capture(&arguments).map(|()| true),
        Task::Setup => {
            maven::Jars::fetch(&target, maven::CASSANDRA_VERSION)?;
            Programs::prepare(&target, &Python::prepare(&target)?)?;
            Ok(true)
        }
        Task::Foreign(arguments) => foreign(&target, &arguments),
        Task::Compare(arguments) => Ok(slice::compare(&target, arguments.messina)),
        Task::Slice(arguments) => {
            let mut settings = slice::Settings::default();
            settings.messina = arguments.messina;
            settings.only = arguments.only.map(|half| match half {
                Half::Cassandra => slice::Half::Cassandra,
                Half::Driver => slice::Half::Driver,
                Half::Foreign => slice::Half::Foreign,
            });
            Ok(slice::run(&target, &settings))
        }
    }
}

fn foreign(target: &Target, arguments: &ForeignArguments) -> Result<bool> {
    let programs = Programs::prepare(target, &Python::prepare(target)?)?;
    let scenario = Scenario::read()?;
    let drivers = match arguments.driver {
        None => Driver::ALL.to_vec(),
        Some(Program::Python) => vec![Driver::Python],
        Some(Program::Rust) => vec![Driver::Rust],
        Some(Program::Javascript) => vec![Driver::JavaScript],
    };
    let mut call = Call::new(&arguments.cluster, &arguments.contact);
    call.control = arguments.control.as_deref();
    let mut good = true;
    for driver in drivers {
        let account = programs.run(target, driver, &call)?;
        let visit = scenario.judge(driver, &arguments.cluster, &account, None)?;
        good &= visit.passed() == visit.verdicts.len();
        say(visit.to_json());
    }
    Ok(good)
}

fn cassandra(target: &Target, arguments: &CassandraArguments) -> Result<()> {
    let mut options = Options::default();
    options.version.clone_from(&arguments.cassandra);
    options.auth = arguments.auth;
    options.port = arguments.port;
    options.heap_max_mib = arguments.heap;
    let mut node = Cassandra::start(target, options)?;
    if arguments.restart {
        say(json!({ "first_start_seconds": node.start_seconds() }));
        say(json!({ "first_stop_seconds": node.stop()?.seconds }));
        node.start_again()?;
    }
    say(json!({
        "ready": true,
        "contact": [node.address().to_string()],
        "pid": node.process_id(),
        "folder": node.folder(),
        "start_seconds": node.start_seconds(),
        "supported": probe::supported(node.address(), Duration::from_secs(5))?,
    }));
    if arguments.keep {
        wait_for_end_of_input();
    }
    let memory = node.peak_memory_bytes();
    let stopped = node.stop()?;
    let ended = json!({ "stop_seconds": stopped.seconds, "killed": stopped.killed,
        "peak_memory_bytes": memory });
    say(ended);
    Ok(())
}

fn capture(arguments: &CaptureArguments) -> Result<()> {
    let capture = Capture::start(arguments.server, &arguments.out)?;
    say(json!({ "ready": true, "contact": [capture.address().to_string()] }));
    if arguments.ours {
        return exchange::run(capture.address());
    }
    wait_for_end_of_input();
    Ok(())
}

/// Ctrl-C needs no look here: its handler stops the node and ends the process.
fn wait_for_end_of_input() {
    let mut buffer = [0; 1024];
    while std::io::stdin()
        .lock()
        .read(&mut buffer)
        .is_ok_and(|len| len > 0)
    {}
}
