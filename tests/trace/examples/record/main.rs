//! Records the traces: a player that asks, and the simulated cluster, or captured frames, that answer.
//!
//! `cargo run -p messina-trace --example record` writes `tests/trace/traces` and the digests of what their replays
//! put out. To be run when a scenario is added, or when the driver asks or decides otherwise than before: then
//! old answers do not fit any more. What changed shows in the difference.

mod captured;
mod driver;
mod recorder;
mod simulated;

use std::path::Path;
use std::{fs, io};

use messina_trace::library::{TRACES, Trace};
use messina_trace::{Line, replay};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut traces = [captured::all(), simulated::all(), driver::all()].concat();
    traces.sort();
    let mut digests = String::new();
    for (name, text) in &traces {
        fs::write(folder.join(format!("traces/{name}.txt")), text)?;
        let trace = Trace { name, text };
        digests.push_str(&format!("{}\n", Line(&trace, &replay(&trace))));
        if !TRACES.iter().any(|known| known.name == *name) {
            eprintln!("{name} is missing in src/library.rs");
        }
    }
    fs::write(folder.join("digests.txt"), digests)
}
