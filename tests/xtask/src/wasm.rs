//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown` as plain exports, the npm package around it, and
//! its tests under Node, which print the sizes of both and hold them to the package's own budget.

use crate::command::{Outcome, Run};
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const FOLDER: &str = "bindings-wasm";

pub(crate) fn run(context: &Context) -> Outcome {
    if !package(context)? {
        return Ok(());
    }
    npm(context, &["run", "check"]).run()?;
    npm(context, &["test"]).run()
}

/// Builds `bindings-wasm/dist`, as examples need it: without checks and tests.
pub(crate) fn package_alone(context: &Context) -> Outcome {
    package(context).map(drop)
}

/// Builds the module and the package around it; `false` after a skip that was noted.
fn package(context: &Context) -> Outcome<bool> {
    let needed = [
        "Cargo.toml",
        "package-lock.json",
        "build.mjs",
        "tests/run.mjs",
    ];
    let needed = needed.map(|name| format!("{FOLDER}/{name}"));
    context.require(&needed.each_ref().map(String::as_str))?;
    let Some(toolchain) = Toolchain::for_target(context, TARGET)? else {
        return Ok(false);
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
    toolchain.cargo(context, ["build"]).args(package).run()?;
    for program in [system::NODE, system::NPM] {
        if !system::need(context, program, "WASM package and its tests under Node")? {
            return Ok(false);
        }
    }
    if context.options.no_install {
        context.require(&["bindings-wasm/node_modules"])?;
    } else {
        npm(context, &["ci", "--no-audit", "--no-fund"]).run()?;
    }
    let module = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("wasm/messina_wasm.wasm");
    npm(context, &["run", "build", "--"]).arg(module).run()?;
    Ok(true)
}

fn npm<'a>(context: &'a Context, arguments: &[&str]) -> Run<'a> {
    context
        .run("npm")
        .args(["--prefix", FOLDER])
        .args(arguments)
}
