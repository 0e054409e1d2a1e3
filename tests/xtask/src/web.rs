//! The links of `messina-websocket` on the web: a Rust program compiled to WASM and made usable for JavaScript
//! by wasm-bindgen's own library, run in Node.js against endpoints in a test's process.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const MANIFEST: &str = "tests/web/Cargo.toml";

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&[MANIFEST, "tests/web/run.mjs"])?;
    let Some(toolchain) = Toolchain::for_target(context, TARGET)? else {
        return Ok(());
    };
    if !system::need(context, system::NODE, "links on the web")? {
        return Ok(());
    }
    let at = ["--locked", "--manifest-path", MANIFEST];
    toolchain
        .cargo_for(context, "std,panic_abort", ["build"])
        .args(at)
        .args(["--lib", "--target", TARGET])
        .run()?;
    let library = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("debug/messina_web_program.wasm");
    let folder = context.target_dir.join("web-program");
    context
        .cargo(["run"])
        .args(at)
        .args(["--bin", "bindgen", "--"])
        .arg(&library)
        .arg(&folder)
        .run()?;
    context
        .cargo(["test", "--locked", "-p", "messina-contract"])
        .args(["--test", "web"])
        .env("MESSINA_WEB_PROGRAM", folder.display().to_string())
        .run()
}
