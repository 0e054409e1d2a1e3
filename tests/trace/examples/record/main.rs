//! Records the traces: a player that asks, and the simulated cluster, or captured frames, that answer.
//!
//! `cargo run -p messina-trace --example record` writes `tests/trace/traces`. To be run when a scenario is
//! added, or when what the driver sends has changed so that old answers do not fit any more; what changed
//! shows in the difference.

mod captured;
mod recorder;
mod simulated;

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    for (name, text) in captured::all().into_iter().chain(simulated::all()) {
        fs::write(folder.join(format!("{name}.txt")), text)?;
    }
    Ok(())
}
