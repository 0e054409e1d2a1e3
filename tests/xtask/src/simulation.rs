//! The whole driver under virtual time: seeds with drops, splits and resets, each run twice with the same hash,
//! and scripts; the simulated nodes by themselves. On an optimised build that keeps the debug build's assertions.

use crate::command::Outcome;
use crate::context::Context;

/// Seeds in `test` and `test --quick`.
pub(crate) const SEEDS: u32 = 200;

/// Seeds before a release.
pub(crate) const SEEDS_FULL: u32 = 20_000;

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["tests/sim/tests/seeds/main.rs"])?;
    seeds(context, &[])?;
    if context.options.seed.is_some() {
        return Ok(());
    }
    // The nodes by themselves, their TCP shell, and scripted runs of the driver.
    context
        .cargo(["test", "-p", "messina-sim", "--profile", "sim", "--locked"])
        .args(["--lib", "--tests", "--no-fail-fast"])
        .env("MESSINA_SEEDS", "1")
        .run_tests()?;
    if context.options.quick {
        return Ok(());
    }
    // The same seeds and scripts over the single-threaded lock backend.
    seeds(context, &["--no-default-features", "--test", "driver"])
}

fn seeds(context: &Context, more: &[&str]) -> Outcome {
    let run = context
        .cargo([
            "test",
            "-p",
            "messina-sim",
            "--profile",
            "sim",
            "--locked",
            "--test",
            "seeds",
        ])
        .args(more)
        .env("MESSINA_SEEDS", context.options.seeds.to_string());
    match context.options.seed {
        Some(seed) => run.env("MESSINA_SEED", seed.to_string()),
        None => run,
    }
    .args(["--", "--nocapture"])
    .run_tests()
}
