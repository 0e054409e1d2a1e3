//! Checks that only a release needs: every feature alone, the oldest compiler, what a package holds.

use core::time::Duration;
use std::fs;

use crate::command::{Failure, Outcome, Run};
use crate::context::Context;

/// Crates whose features are each built alone before a release.
const FEATURED: [&str; 3] = ["core", "transports/tokio", "bindings-wasm"];

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

/// The libraries build with the oldest compiler that they claim to.
pub(crate) fn msrv(context: &Context) -> Outcome {
    let manifest = fs::read_to_string(context.path("Cargo.toml"))?;
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.map(|version| version.trim_matches('"'));
    let version = version.ok_or_else(|| Failure::new("the root names no rust-version"))?;
    let is_there = || {
        with(context.run("rustc"), version)
            .arg("-V")
            .ask()
            .is_some_and(|rustc| rustc.contains(version))
    };
    if !is_there() && !context.options.no_install {
        let install = [
            "toolchain",
            "install",
            version,
            "--profile",
            "minimal",
            "--no-self-update",
        ];
        // Whether it worked is asked below.
        let _ = context
            .run("rustup")
            .args(install)
            .limit(Duration::from_secs(300))
            .run();
    }
    if !is_there() {
        return context.skip(
            "build with the oldest compiler",
            format!("needs `rustup toolchain install {version}`"),
        );
    }
    with(context.run("cargo"), version)
        .args([
            "check",
            "--locked",
            "-p",
            "messina-core",
            "-p",
            "messina-tokio",
        ])
        .env_unshown("CARGO_TARGET_DIR", context.target_dir.join("msrv"))
        .run()
}

/// The command by another toolchain than the one that runs this program.
fn with<'a>(run: Run<'a>, version: &str) -> Run<'a> {
    run.env("RUSTUP_TOOLCHAIN", version).env_remove("CARGO")
}

/// What would be published contains what it needs.
pub(crate) fn packaging(context: &Context) -> Outcome {
    context
        .cargo([
            "package",
            "--locked",
            "--no-verify",
            "-p",
            "messina-derive",
            "-p",
            "messina-core",
        ])
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
