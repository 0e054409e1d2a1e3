//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown` as plain exports, the npm package around it, and
//! its tests under Node, which print the sizes of both and hold them to the package's own budget.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const FOLDER: &str = "bindings-wasm";

pub(crate) fn run(context: &Context) -> Outcome {
    let needed = [
        "Cargo.toml",
        "package-lock.json",
        "build.mjs",
        "tests/run.mjs",
    ];
    let needed = needed.map(|name| format!("{FOLDER}/{name}"));
    context.require(&needed.each_ref().map(String::as_str))?;
    let Some(toolchain) = Toolchain::for_target(context, TARGET)? else {
        return Ok(());
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
            return Ok(());
        }
    }
    let npm = |arguments: &[&str]| {
        context
            .run("npm")
            .args(["--prefix", FOLDER])
            .args(arguments)
    };
    if context.options.no_install {
        context.require(&["bindings-wasm/node_modules"])?;
    } else {
        npm(&["ci", "--no-audit", "--no-fund"]).run()?;
    }
    let module = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("wasm/messina_wasm.wasm");
    npm(&["run", "build", "--"]).arg(module).run()?;
    npm(&["run", "check"]).run()?;
    npm(&["test"]).run()
}
