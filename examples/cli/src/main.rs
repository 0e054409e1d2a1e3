//! The `messina` command: the first thing a person runs, the tool an operator keeps, and the black
//! box that tests drive from outside.
//!
//! Standard output carries results, standard error everything else. Exit code 0: done; 1: the
//! cluster or the driver said no to anything; 2: wrong usage.

#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod bind;
mod connect;
mod demo;
mod failure;
mod figures;
mod inspect;
mod interrupt;
mod latency;
mod query;
mod relay;
mod route;
mod sim;
mod split;
mod table_kind;
mod value;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let as_json = arguments::wants_json_errors();
    let outcome = match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command),
        Err(help) if !help.use_stderr() => {
            // Help and version; nobody is left to tell if standard output is gone.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = help.print();
            return ExitCode::from(2);
        }
        Err(error) => Err(arguments::usage_failure(&error)),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            failure.report(as_json);
            failure.exit_code()
        }
    }
}

/// Runs a subcommand on a runtime of its own.
fn run(command: Command) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start", &error))?;
    runtime.block_on(async {
        match command {
            Command::Demo(arguments) => demo::run(&arguments).await,
            Command::Sim(arguments) => sim::run(&arguments).await.map(|()| ExitCode::SUCCESS),
            Command::Relay(arguments) => relay::run(*arguments).await.map(|()| ExitCode::SUCCESS),
            Command::Query(arguments) => query::run(arguments).await,
            Command::Route(arguments) => route::run(&arguments).await,
            Command::Bench(arguments) => bench::run(&arguments).await,
            Command::Inspect(arguments) => inspect::run(&arguments).await,
        }
    })
}
