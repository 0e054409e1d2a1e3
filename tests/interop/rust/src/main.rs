//! Crate `scylla` goes through `scenario.json` and prints one JSON line for each check.
//!
//! It reports what it saw, values in the scenario's own notation; whether that is right is decided
//! by the harness. A check that fails is reported with the error, and the next one is done. It uses
//! nothing of messina.

#![forbid(unsafe_code)]

mod features;
mod options;
mod output;
mod row;
mod rows;
mod values;
mod visit;

use std::process::ExitCode;

use serde_json::json;

use crate::{options::Options, visit::Visit};

fn main() -> ExitCode {
    let run = || -> anyhow::Result<()> {
        let options = Options::parse(std::env::args().skip(1))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        output::say(&json!({ "driver": "scylla", "version": version() }));
        runtime.block_on(async {
            if let Some(visit) = Visit::connect(&options).await {
                visit.run().await;
            }
        });
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Of the crate, as the lock file has it: it does not say itself.
fn version() -> &'static str {
    let lock = include_str!("../../../../Cargo.lock");
    let after_name = lock.split("name = \"scylla\"\nversion = \"").nth(1);
    after_name
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("?")
}
