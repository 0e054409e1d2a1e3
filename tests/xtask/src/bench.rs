//! What a request costs: heap calls and instructions, which gate, and throughput, which informs.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;

/// Heap calls and instructions (callgrind) of warm requests, held against the stored figures.
pub(crate) fn counts(context: &Context) -> Outcome {
    if !system::need(context, system::VALGRIND, "instruction counts")? {
        return Ok(());
    }
    run(context, "counts")
}

/// Requests per second beside another driver on the same server.
pub(crate) fn throughput(context: &Context) -> Outcome {
    run(context, "throughput")
}

fn run(context: &Context, what: &str) -> Outcome {
    context
        .cargo([
            "run",
            "--locked",
            "-p",
            "messina-bench",
            "--profile",
            "bench",
            "--",
            what,
        ])
        .run()
}
