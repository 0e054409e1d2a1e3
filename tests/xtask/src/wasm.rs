//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown` as plain exports, the npm package around it,
//! its tests under Node, which print the sizes of both and hold them to the package's own budget, one suite in every
//! JavaScript host, and the examples that use it.
//!
//! The module that ships holds no texts of panics: with Debian's compiler the library is built too, for size, and
//! a panic is a trap at once. With `--messages`, or by a compiler whose library is built already, a panic tells
//! what it is, in a module that is larger; nothing holds that one to the budget.

use std::fs;
use std::path::PathBuf;

use crate::command::{Failure, Outcome, Run};
use crate::context::Context;
use crate::examples;
use crate::hosts;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const FOLDER: &str = "bindings-wasm";

pub(crate) fn run(context: &Context) -> Outcome {
    let Some(toolchain) = package(context)? else {
        return Ok(());
    };
    npm(context, &["run", "check"]).run()?;
    let mut test = npm(context, &["test"]);
    if !is_small(context, &toolchain) {
        test = test.env("MESSINA_SIZE", "any");
    }
    test.run()?;
    hosts::run(context)?;
    examples::run(context)
}

/// Builds `bindings-wasm/dist`, as examples need it: without checks and tests.
pub(crate) fn package_alone(context: &Context) -> Outcome {
    package(context).map(|_| ())
}

/// The examples, on a package that is built for them.
pub(crate) fn examples_alone(context: &Context) -> Outcome {
    match package(context)? {
        Some(_) => examples::run(context),
        None => Ok(()),
    }
}

/// Builds the module and the package around it, and tells by what; `None` after a skip that was noted.
fn package(context: &Context) -> Outcome<Option<Toolchain>> {
    let needed = [
        "Cargo.toml",
        "package-lock.json",
        "build.mjs",
        "tests/run.mjs",
    ];
    let needed = needed.map(|name| format!("{FOLDER}/{name}"));
    context.require(&needed.each_ref().map(String::as_str))?;
    let Some(toolchain) = Toolchain::building_library(context, TARGET)? else {
        return Ok(None);
    };
    let package = [
        "--locked",
        "-p",
        "messina-wasm",
        "--profile",
        "wasm",
        "--target",
        TARGET,
    ];
    // Debian's packages hold no clippy.
    if matches!(toolchain, Toolchain::Active) {
        toolchain
            .cargo(context, ["clippy"])
            .args(package)
            .args(["--", "-D", "warnings"])
            .run()?;
    }
    // The module of the lite entry first: both have one name.
    let lite = build(context, &toolchain, &package, &["--no-default-features"])?;
    let kept = lite.with_file_name("messina_lite.wasm");
    fs::copy(&lite, &kept).map_err(|error| Failure::new(format!("{}: {error}", kept.display())))?;
    let module = build(context, &toolchain, &package, &[])?;
    for program in [system::NODE, system::NPM] {
        if !system::need(context, program, "WASM package and its tests under Node")? {
            return Ok(None);
        }
    }
    if context.options.no_install {
        context.require(&["bindings-wasm/node_modules"])?;
    } else {
        npm(context, &["ci", "--no-audit", "--no-fund"]).run()?;
    }
    npm(context, &["run", "build", "--"])
        .arg(module)
        .arg(kept)
        .run()?;
    Ok(Some(toolchain))
}

/// Builds the module and tells where it is.
fn build(
    context: &Context,
    toolchain: &Toolchain,
    package: &[&str],
    features: &[&str],
) -> Outcome<PathBuf> {
    let mut build = toolchain
        .cargo(context, ["build"])
        .args(package)
        .args(features);
    if is_small(context, toolchain) {
        build = build
            .arg(SMALL_LIBRARY)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", SMALL_CODE)
            // It would take the other's place.
            .env_remove("RUSTFLAGS");
    }
    build.run()?;
    let folder = toolchain.target_dir(context).join(TARGET);
    Ok(folder.join("wasm/messina_wasm.wasm"))
}

fn npm<'a>(context: &'a Context, arguments: &[&str]) -> Run<'a> {
    context
        .run("npm")
        .args(["--prefix", FOLDER])
        .args(arguments)
}

/// Whether this is the build that ships.
fn is_small(context: &Context, toolchain: &Toolchain) -> bool {
    matches!(toolchain, Toolchain::Debian { .. }) && !context.options.messages
}

/// How the library is made, by Debian's compiler.
const SMALL_LIBRARY: &str = "-Zbuild-std-features=optimize_for_size";

/// A panic is a trap: nothing formats its text, so no text is kept. Copies of more than one word are one
/// instruction, in place of a load and a store for each word.
const SMALL_CODE: &str = "-Zunstable-options -Cpanic=immediate-abort -Cllvm-args=--max-store-memcpy=1 \
     -Cllvm-args=--max-store-memmove=1 -Cllvm-args=--max-store-memset=1";
