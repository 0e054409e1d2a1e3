//! The whole driver under virtual time: seeds with drops, splits and resets, each run twice with the same hash,
//! on an optimised build that keeps the debug build's assertions.

use crate::command::Outcome;
use crate::context::Context;

/// Seeds in `test` and `test --quick`.
pub(crate) const SEEDS: u32 = 200;

/// Seeds before a release.
pub(crate) const SEEDS_FULL: u32 = 20_000;

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["tests/sim/tests/seeds.rs"])?;
    seeds(context, &[])?;
    if context.options.quick || context.options.seed.is_some() {
        return Ok(());
    }
    // The same seeds over the single-threaded lock backend.
    seeds(context, &["--no-default-features"])?;
    context
        .cargo([
            "test",
            "-p",
            "messina-sim",
            "--profile",
            "sim",
            "--locked",
            "--lib",
        ])
        .run_tests()
}

fn seeds(context: &Context, features: &[&str]) -> Outcome {
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
        .args(features)
        .env("MESSINA_SEEDS", context.options.seeds.to_string());
    match context.options.seed {
        Some(seed) => run.env("MESSINA_SEED", seed.to_string()),
        None => run,
    }
    .args(["--", "--nocapture"])
    .run_tests()
}
