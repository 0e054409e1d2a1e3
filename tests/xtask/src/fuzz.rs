//! Fuzz targets of `tests/conformance` over their corpora and bent copies of them, each for a fixed time, on an
//! optimised build that keeps the debug build's assertions.
//!
//! The commit decides the bent copies: a run can be repeated, and the next commit tries others.

use crate::command::Outcome;
use crate::context::Context;

/// Seconds for each target in `test`, and before a release.
const SECONDS: u32 = 20;
const SECONDS_FULL: u32 = 120;

pub(crate) fn run(context: &Context) -> Outcome {
    targets(context, SECONDS)
}

pub(crate) fn long(context: &Context) -> Outcome {
    targets(context, SECONDS_FULL)
}

fn targets(context: &Context, seconds: u32) -> Outcome {
    context.require(&["tests/conformance/tests/fuzz.rs"])?;
    context
        .cargo([
            "test",
            "-p",
            "messina-conformance",
            "--profile",
            "sim",
            "--locked",
            "--test",
            "fuzz",
        ])
        .env("MESSINA_FUZZ_SECONDS", seconds.to_string())
        .env("MESSINA_FUZZ_SEED", seed(context).to_string())
        .args(["--", "--nocapture"])
        .run_tests()
}

/// The first digits of the commit's hash; 0 outside a repository.
fn seed(context: &Context) -> u64 {
    let hash = context.run("git").args(["rev-parse", "HEAD"]).ask();
    let digits = hash.as_deref().and_then(|hash| hash.get(..12));
    digits.map_or(0, |digits| u64::from_str_radix(digits, 16).unwrap_or(0))
}
