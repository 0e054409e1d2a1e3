//! What a request costs: heap calls and instructions, which gate, and throughput, which informs.
//!
//! The package is built alone, so that no other one turns on features of core.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;

/// Heap calls and instructions (callgrind) of warm requests, held against the stored figures; first
/// that 20,000 reads are answered once each, optimised.
pub(crate) fn counts(context: &Context) -> Outcome {
    if !system::need(context, system::VALGRIND, "instruction counts")? {
        return Ok(());
    }
    context
        .cargo(["test", "--locked", "-p", PACKAGE, "--profile", "bench"])
        .run_tests()?;
    run(context, "counts")?;
    run(context, "tablets")
}

/// Requests per second beside another driver on the same server.
pub(crate) fn throughput(context: &Context) -> Outcome {
    run(context, "throughput")
}

const PACKAGE: &str = "messina-bench";

fn run(context: &Context, what: &str) -> Outcome {
    context
        .cargo([
            "run",
            "--locked",
            "-p",
            PACKAGE,
            "--profile",
            "bench",
            "--",
            what,
        ])
        .run()
}
