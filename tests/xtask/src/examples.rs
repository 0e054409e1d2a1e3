//! The examples that run in a browser and in a Worker, by tests of their own, on the package that was built.

use crate::command::Outcome;
use crate::context::Context;
use crate::hosts;
use crate::system;

const FOLDERS: [&str; 2] = ["examples/edge-worker", "examples/browser"];

/// Runs both. The package must have been built.
pub(crate) fn run(context: &Context) -> Outcome {
    let what = "the examples in a browser and in a Worker";
    for program in [system::NODE, system::NPM, system::CHROMIUM] {
        if !system::need(context, program, what)? {
            return Ok(());
        }
    }
    for folder in FOLDERS {
        if !hosts::install(context, folder, what)? {
            return Ok(());
        }
    }
    context
        .cargo([
            "build",
            "--locked",
            "-p",
            "messina-cli",
            "-p",
            "messina-browser-example",
        ])
        .run()?;
    context
        .run("npm")
        .args(["--prefix", "examples/edge-worker", "run", "check"])
        .run()?;
    for folder in FOLDERS {
        context
            .run("node")
            .arg(format!("{folder}/test.mjs"))
            .env("MESSINA", context.target_dir.join("debug/messina"))
            .env_unshown("CARGO_TARGET_DIR", &context.target_dir)
            .run()?;
    }
    Ok(())
}
