//! Checks that need no test run: formatting, lints, documentation, the tree's own rules (`tests/tidy`), and
//! licences and sources of the whole dependency graph (`cargo deny`).
//!
//! `cargo deny` is built into the target folder's `tools`, without optimisation: about one minute on two cores
//! and one second to run. Its advisories are not asked for, their database is no package.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;

/// Workspaces of their own beside the main one: formatted and audited here, linted where they are built.
const OTHER_WORKSPACES: [&str; 4] = [
    "examples/embassy-qemu/Cargo.toml",
    "tests/fuzz/Cargo.toml",
    "tests/footprint/Cargo.toml",
    "tests/trace/device/Cargo.toml",
];

pub(crate) fn run(context: &Context) -> Outcome {
    context.cargo(["fmt", "--all", "--check"]).run()?;
    for manifest in other_workspaces(context) {
        context
            .cargo(["fmt", "--all", "--check", "--manifest-path", manifest])
            .run()?;
    }
    context
        .cargo([
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ])
        .run()?;
    context
        .cargo(["test", "-p", "messina-tidy", "--locked"])
        .run_tests()?;
    if context.options.quick {
        return Ok(());
    }
    context
        .cargo(["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    context
        .cargo(["test", "--workspace", "--doc", "--locked"])
        .run_tests()?;
    deny(context)
}

/// Licences, banned crates and sources, as `deny.toml` says.
fn deny(context: &Context) -> Outcome {
    let Some(deny) = system::cargo_deny(context)? else {
        return Ok(());
    };
    for manifest in ["Cargo.toml"].into_iter().chain(other_workspaces(context)) {
        context
            .run(&deny)
            .args([
                "--locked",
                "--config",
                "deny.toml",
                "--manifest-path",
                manifest,
            ])
            .args(["check", "licenses", "bans", "sources"])
            .run()?;
    }
    Ok(())
}

/// Manifests of the other workspaces that the tree has.
fn other_workspaces(context: &Context) -> impl Iterator<Item = &'static str> {
    OTHER_WORKSPACES
        .into_iter()
        .filter(|manifest| context.path(manifest).exists())
}
