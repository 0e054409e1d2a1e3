//! Unit, scenario, contract and conformance tests on the host, with both lock backends, and the loom models.
//!
//! A workspace build unifies features, so the backend without `std` gets a build of its own, and that `std` is
//! really off there is read from the dependency tree instead of believed.

use crate::command::{Failure, Outcome};
use crate::context::Context;

/// Ours, but run by other stages: optimised, against servers, or already run among the checks.
const ELSEWHERE: [&str; 10] = [
    "--exclude=messina-sim",
    "--exclude=messina-tidy",
    "--exclude=messina-bench",
    "--exclude=messina-foreign-scylla",
    "--exclude=messina-interop",
    "--lib",
    "--bins",
    "--tests",
    "--locked",
    "--no-fail-fast",
];

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["tests/contract/Cargo.toml", "tests/conformance/Cargo.toml"])?;
    context
        .cargo(["test", "--workspace"])
        .args(ELSEWHERE)
        .run_tests()?;
    without_std(context)?;
    if context.options.quick {
        Ok(())
    } else {
        loom(context)
    }
}

/// The single-threaded backend: core alone, and core below the simulator.
fn without_std(context: &Context) -> Outcome {
    for package in ["messina-core", "messina-sim", "messina-scenario"] {
        let tree = context.cargo([
            "tree",
            "--locked",
            "--no-default-features",
            "-e",
            "normal,dev,features",
        ]);
        let tree = tree.args(["-p", package, "-i", "messina-core"]).ask();
        let tree = tree.ok_or_else(|| Failure::new(format!("cargo tree -p {package} failed")))?;
        if tree.contains("messina-core feature \"std\"") {
            return Err(Failure::new(format!(
                "{package} --no-default-features turns on std of core"
            )));
        }
    }
    context
        .cargo([
            "test",
            "--locked",
            "--no-default-features",
            "--lib",
            "-p",
            "messina-core",
        ])
        .run_tests()?;
    // Scenarios over the same backend; `--workspace` has run them over the other one.
    let scenarios = [
        "test",
        "--locked",
        "--no-default-features",
        "-p",
        "messina-scenario",
    ];
    context.cargo(scenarios).run_tests()
}

/// Models of the hand-overs between threads: core alone, since loom's own cfg switches parts of tokio off.
fn loom(context: &Context) -> Outcome {
    context
        .cargo([
            "test",
            "--locked",
            "-p",
            "messina-core",
            "--release",
            "--lib",
            "loom",
        ])
        .env("RUSTFLAGS", "--cfg messina_loom")
        .env("CARGO_TARGET_DIR", context.target_dir.join("loom"))
        .run_tests()
}
