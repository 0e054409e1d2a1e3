//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown`, its size, and its tests under Node.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;
use crate::toolchain::{Library, Toolchain};

const TARGET: &str = "wasm32-unknown-unknown";

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["bindings-wasm/Cargo.toml", "bindings-wasm/tests/run.mjs"])?;
    let Some(toolchain) = Toolchain::for_target(context, TARGET, Library::Std)? else {
        return Ok(());
    };
    toolchain
        .cargo(
            context,
            [
                "build",
                "--locked",
                "-p",
                "messina-wasm",
                "--profile",
                "wasm",
            ],
        )
        .args(["--target", TARGET])
        .run()?;
    if !system::need(context, system::NODE, "WASM under Node")? {
        return Ok(());
    }
    let module = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("wasm/messina_wasm.wasm");
    context
        .run("node")
        .arg("bindings-wasm/tests/run.mjs")
        .env("MESSINA_WASM", module)
        .run()
}
