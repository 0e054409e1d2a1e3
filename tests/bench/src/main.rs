//! Benchmarks of messina beside crate `scylla`, against the simulated cluster of this repository.
//!
//! ```text
//! cargo run -p messina-bench --profile bench -- counts           heap calls and instructions; gates
//! cargo run -p messina-bench --profile bench -- counts --lower   the same; lowers the stored figures
//! cargo run -p messina-bench --profile bench -- throughput       requests per second; informs
//! cargo run -p messina-bench --profile bench -- tablets          memory and time of 100,000 tablets; gates
//! cargo test -p messina-bench --profile bench                    20,000 reads, none lost or doubled
//! ```
//!
//! `counts` needs valgrind. It fails when a figure is above the one stored in `counts.json` beside
//! this crate: heap calls must be equal to the hundredth, instructions within three in a hundred. Figures
//! only go down: `--lower` writes those that are lower now, nothing else.
//!
//! `counts` also holds a row that is a struct against one that is a tuple, see `row_types`.
//!
//! The server (3 nodes of 4 shards) is a process of its own, so that nothing of it is counted;
//! every count is taken in a fresh client process on a current-thread runtime. The package is built
//! alone (`-p`), because a build with others would turn on features that nobody asked for; the
//! program refuses to count then.
//!
//! Not for every day: `serve` is the server (it ends with its standard input), `fill` makes its rows,
//! `load` is one measured client, `rows` binds or reads rows in memory: run them under any profiler.
#![expect(clippy::print_stdout, reason = "printing is the point")]

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use messina_bench::heap::Counting;
use messina_bench::{counts, load, ours, row_types, server, tablets, throughput};

#[global_allocator]
static HEAP: Counting = Counting::new();

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let (command, rest) = arguments
        .split_first()
        .map_or(("", &[][..]), |(command, rest)| (command.as_str(), rest));
    match (command, rest) {
        ("serve", []) => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(server::serve(std::io::stdout())),
        ("load", rest) => {
            println!("{}", load::main(rest)?);
            Ok(())
        }
        ("rows", rest) => row_types::main(rest),
        ("fill", [contacts]) => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(ours::fill(contacts, load::SHAPE)),
        ("counts", []) => {
            no_optional_feature()?;
            row_types::run(&std::env::current_exe()?, std::io::stdout())?;
            counts::run(&std::env::current_exe()?, false, std::io::stdout())
        }
        ("counts", [lower]) if lower == "--lower" => {
            no_optional_feature()?;
            counts::run(&std::env::current_exe()?, true, std::io::stdout())
        }
        ("tablets", []) => {
            no_optional_feature()?;
            tablets::run(std::io::stdout())
        }
        ("throughput", []) => {
            no_optional_feature()?;
            throughput::run(&std::env::current_exe()?, std::io::stdout())
        }
        _ => bail!("usage: messina-bench counts [--lower] | tablets | throughput"),
    }
}

/// Figures of a build with optional features would not be those of the driver.
fn no_optional_feature() -> Result<()> {
    // What `messina-tokio` turns on is part of what is measured.
    let expected = [
        "std",
        "data-texts",
        "early-requests",
        "error-texts",
        "keyspaces",
        "login",
        "names",
        "prepare-ahead",
        "table-ids",
        "topology",
        "protocol-v5",
        "client-routes",
        "driver-config",
        "targeting",
        "lwt-learning",
    ];
    let features = messina_core::FEATURES;
    ensure!(
        features == expected,
        "messina-core was built with {features:?}: build this package alone, with -p messina-bench"
    );
    ensure!(
        !cfg!(debug_assertions),
        "not an optimised build: add --profile bench"
    );
    Ok(())
}
