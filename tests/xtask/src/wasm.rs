//! The WASM build: `bindings-wasm` for `wasm32-unknown-unknown` as plain exports, its size together with the
//! JavaScript shell, and its tests under Node.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "wasm32-unknown-unknown";
const FOLDER: &str = "bindings-wasm";
const TESTS: &str = "bindings-wasm/tests/run.mjs";

/// Module and shell, each compressed. This only goes down: lower it whenever a build leaves room.
const GZIP_BYTES_MAX: u64 = 35 * 1024;

/// Prints a file's size and its size after gzip, line by line, for the files named.
const SIZES: &str = "const fs = require('fs'), zlib = require('zlib');
for (const path of process.argv.slice(1)) {
  const bytes = fs.readFileSync(path);
  console.log(path.split('/').pop(), bytes.length, zlib.gzipSync(bytes, { level: 9 }).length);
}";

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&["bindings-wasm/Cargo.toml", TESTS])?;
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
    if !system::need(context, system::NODE, "WASM under Node")? {
        return Ok(());
    }
    let module = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("wasm/messina_wasm.wasm");
    check_sizes(context, &module)?;
    context
        .run("node")
        .arg(TESTS)
        .env("MESSINA_WASM", &module)
        .run()
}

fn check_sizes(context: &Context, module: &Path) -> Outcome {
    let shell = shell_files(&context.path(FOLDER))?;
    let sizes = context
        .run("node")
        .args(["-e", SIZES])
        .arg(module)
        .args(shell)
        .ask();
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

/// What a user of the package loads beside the module: every script outside the tests.
fn shell_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_foreign = ["tests", "node_modules", "target"]
            .iter()
            .any(|name| path.ends_with(name));
        if path.is_dir() && !is_foreign {
            files.extend(shell_files(&path)?);
        } else if path
            .extension()
            .is_some_and(|found| found == "js" || found == "mjs")
        {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
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
