//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown` as plain exports, the npm package around it, the
//! size of both, and their tests under Node.

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const FOLDER: &str = "bindings-wasm";

/// What the package's build makes and a user loads.
const SHIPPED: [&str; 2] = [
    "bindings-wasm/dist/messina.wasm",
    "bindings-wasm/dist/index.js",
];

/// Module and shell, each compressed. This only goes down: lower it whenever a build leaves room.
const GZIP_BYTES_MAX: u64 = 35 * 1024;

/// Prints a file's size and its size after gzip, line by line, for the files named.
const SIZES: &str = "const fs = require('fs'), zlib = require('zlib');
for (const path of process.argv.slice(1)) {
  const bytes = fs.readFileSync(path);
  console.log(path.split('/').pop(), bytes.length, zlib.gzipSync(bytes, { level: 9 }).length);
}";

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
    check_sizes(context)?;
    npm(&["run", "check"]).run()?;
    npm(&["test"]).run()
}

fn check_sizes(context: &Context) -> Outcome {
    let sizes = context.run("node").args(["-e", SIZES]).args(SHIPPED).ask();
    let sizes = sizes.ok_or_else(|| Failure::new("the sizes could not be read"))?;
    println!("file, bytes, bytes after gzip:\n{sizes}");
    let sum = compressed_sum(&sizes).ok_or_else(|| Failure::new("the sizes could not be read"))?;
    println!("sum after gzip: {sum} of {GZIP_BYTES_MAX} bytes");
    if sum > GZIP_BYTES_MAX {
        return Err(Failure::new(format!(
            "{sum} bytes after gzip, {GZIP_BYTES_MAX} allowed"
        )));
    }
    Ok(())
}

/// The sum of the last column; `None` if a line has no number there or nothing was printed.
fn compressed_sum(sizes: &str) -> Option<u64> {
    let numbers = sizes
        .lines()
        .map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    let numbers: Option<Vec<u64>> = numbers.collect();
    numbers
        .filter(|numbers| !numbers.is_empty())
        .map(|numbers| numbers.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_summed_by_their_last_column() {
        assert_eq!(
            compressed_sum("messina_wasm.wasm 90000 30000\nshell.js 9000 2500"),
            Some(32500)
        );
        assert_eq!(compressed_sum("messina_wasm.wasm 90000 none"), None);
        assert_eq!(compressed_sum(""), None);
    }
}
