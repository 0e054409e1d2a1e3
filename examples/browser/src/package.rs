//! The npm package that the page imports: found, or built by `cargo xtask package`.

use core::error::Error;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where the package stands when it is built.
pub(crate) fn dist() -> PathBuf {
    root().join("bindings-wasm/dist")
}

/// Builds the package if it is not there, or in any case if `anew`.
pub(crate) async fn ensure(anew: bool) -> Result<(), Box<dyn Error>> {
    if !anew && dist().join("messina.wasm").is_file() {
        return Ok(());
    }
    println!(
        "building bindings-wasm/dist by `cargo xtask package`; the first time takes some minutes"
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["xtask", "package"])
        .current_dir(root())
        .status()
        .await?;
    if status.success() && dist().join("messina.wasm").is_file() {
        return Ok(());
    }
    Err("the npm package could not be built; see above, then run `cargo xtask package`".into())
}
