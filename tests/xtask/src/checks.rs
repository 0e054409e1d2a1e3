//! Checks that need no test run: formatting, lints, documentation, the tree's own rules (`tests/tidy`), and
//! licences and sources of the whole dependency graph (`cargo deny`).
//!
//! `cargo deny` is built into the target folder's `tools`, without optimisation: about one minute on two cores
//! and one second to run. Its advisories are not asked for, their database is no package.

use std::fs;

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;

/// Workspaces of their own beside the main one: formatted and audited here, linted where they are built.
const OTHER_WORKSPACES: [&str; 3] = [
    "examples/embassy-qemu/Cargo.toml",
    "tests/fuzz/Cargo.toml",
    "tests/footprint/Cargo.toml",
];

/// Crates whose features are each built alone before a release.
const FEATURED: [&str; 3] = ["core", "transports/tokio", "bindings-wasm"];

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
        let run = context
            .run(&deny)
            .args(["--locked", "--manifest-path", manifest, "check"]);
        run.args(["--config", "deny.toml", "licenses", "bans", "sources"])
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

/// Every feature of a crate alone, and none.
pub(crate) fn features(context: &Context) -> Outcome {
    for folder in FEATURED {
        let manifest = context.path(folder).join("Cargo.toml");
        let text = fs::read_to_string(&manifest)
            .map_err(|error| Failure::new(format!("{}: {error}", manifest.display())))?;
        let check = |features: &str| {
            let run = context.cargo(["check", "--locked", "--no-default-features"]);
            run.args(["--features", features, "--manifest-path"])
                .arg(&manifest)
                .run()
        };
        check("")?;
        feature_names(&text).into_iter().try_for_each(check)?;
    }
    Ok(())
}

/// What would be published contains what it needs.
pub(crate) fn packaging(context: &Context) -> Outcome {
    context
        .cargo(["package", "--locked", "--no-verify", "-p", "messina-core"])
        .run()
}

/// The keys of the table `[features]`, without `default`.
fn feature_names(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .filter(|&name| name != "default")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_names_are_the_keys_of_their_table() {
        let manifest = "[package]\nname = \"a\"\n\n[features]\ndefault = [\"std\"]\n## Words.\nstd = []\n\
                        test-util = [\n  \"x\",\n]\n\n[dependencies]\nbytes = \"1\"\n";
        assert_eq!(feature_names(manifest), ["std", "test-util"]);
        assert!(feature_names("[package]\nname = \"a\"\n").is_empty());
    }
}
