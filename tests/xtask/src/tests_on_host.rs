//! Unit, scenario, contract and conformance tests on the host, with both lock backends, and the loom models.
//!
//! A workspace build unifies features, so the backend without `std` gets a build of its own, and that `std` is
//! really off there is read from the dependency tree instead of believed.

use std::env;

use crate::command::{Failure, Outcome};
use crate::context::Context;

/// All packages but those that other stages run: optimised, against servers, or already among the checks.
const PACKAGES: [&str; 7] = [
    "--workspace",
    "--exclude=messina-sim",
    "--exclude=messina-tidy",
    "--exclude=messina-bench",
    "--exclude=messina-foreign-scylla",
    "--exclude=messina-interop",
    "--locked",
];

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["tests/contract/Cargo.toml", "tests/conformance/Cargo.toml"])?;
    context
        .cargo(["test"])
        .args(PACKAGES)
        .args(["--lib", "--bins", "--tests", "--no-fail-fast"])
        .run_tests()?;
    over_tap(context)?;
    without_std(context)?;
    if context.options.quick {
        Ok(())
    } else {
        loom(context)
    }
}

/// The transport of embassy-net against the kernel, in a network namespace that is made for it and gone with
/// it. Nothing of the host's network is touched. The test was built by the run before.
fn over_tap(context: &Context) -> Outcome {
    const NAMESPACE: [&str; 2] = ["--map-root-user", "--net"];
    let probe = context.run("unshare").args(NAMESPACE);
    let device = ["ip", "tuntap", "add", "dev", "messina0", "mode", "tap"];
    if probe.args(device).ask().is_none() {
        let why = "a TAP device in a network namespace is not allowed here";
        return context.skip("messina-embassy over TAP", why);
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    context
        .run("unshare")
        .args(NAMESPACE)
        .arg(cargo)
        .arg("test")
        .args(PACKAGES)
        .args(["--offline", "--test=embassy_tap"])
        .env_unshown("CARGO_TARGET_DIR", &context.target_dir)
        .env("MESSINA_NAMESPACE", "1")
        .run()
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
    // What has no optional feature, which unit tests all have.
    context
        .cargo(["test", "--locked", "-p", "messina-core"])
        .args(["--no-default-features", "--features", "topology"])
        .args(["--test", "small_images"])
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
