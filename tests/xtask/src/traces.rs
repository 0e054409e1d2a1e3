//! The recorded protocol traces of `tests/trace`, replayed on this machine, in a WASM module under Node.js, on a
//! Cortex-M4 and on a 32-bit RISC-V core in QEMU. All logs, of bytes, decisions and deadlines, must be the same
//! to the byte; `cargo test` compares those of this machine with stored digests.
//!
//! In all builds overflowing arithmetic ends the program.

use core::time::Duration;

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system::{self, Program};
use crate::toolchain::Toolchain;

const MANIFEST: &str = "tests/trace/device/Cargo.toml";
const RUN_WASM: &str = "tests/trace/device/run.mjs";

/// A replay takes less than a second.
const RUN_MAX: Duration = Duration::from_secs(60);

/// A build of the replays, and what runs it.
struct Device {
    target: &'static str,
    /// Behind `trace-device`.
    suffix: &'static str,
    libraries: &'static str,
    runner: Program,
    arguments: &'static [&'static str],
}

const EMULATED: [&str; 8] = [
    "-display",
    "none",
    "-monitor",
    "none",
    "-serial",
    "null",
    "-semihosting-config",
    "enable=on,target=native",
];

const DEVICES: [Device; 3] = [
    Device {
        target: "wasm32-unknown-unknown",
        suffix: ".wasm",
        libraries: "std,panic_abort",
        runner: system::NODE,
        arguments: &[RUN_WASM],
    },
    Device {
        target: "thumbv7em-none-eabihf",
        suffix: "",
        libraries: "core,alloc",
        runner: system::QEMU_ARM,
        arguments: &["-M", "mps2-an386"],
    },
    Device {
        target: "riscv32imc-unknown-none-elf",
        suffix: "",
        libraries: "core,alloc",
        runner: system::QEMU_RISCV,
        arguments: &["-M", "virt", "-bios", "none"],
    },
];

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&[MANIFEST, RUN_WASM])?;
    let host = context
        .cargo(["run", "--locked", "-p", "messina-trace"])
        .read()?;
    let (traces, len) = (digests(&host), host.len());
    if traces == 0 {
        return Err(Failure::new("no trace was replayed"));
    }
    for device in &DEVICES {
        let Some(log) = device.replay(context)? else {
            continue;
        };
        compare(&host, &log).map_err(|text| Failure::new(format!("{}: {text}", device.target)))?;
        println!(
            "{}: {traces} traces, {len} bytes of logs, the same",
            device.target
        );
    }
    Ok(())
}

impl Device {
    /// The logs; `None` after a skip that was noted.
    fn replay(&self, context: &Context) -> Outcome<Option<String>> {
        let Some(toolchain) = Toolchain::for_target(context, self.target)? else {
            return Ok(None);
        };
        for subcommand in ["clippy", "build"] {
            let build = toolchain.cargo_for(context, self.libraries, [subcommand]);
            let build = build.args(["--locked", "--release", "--target", self.target]);
            let build = build.args(["--manifest-path", MANIFEST]);
            if subcommand == "build" {
                build.run()?;
            } else if matches!(toolchain, Toolchain::Active) {
                // Debian's packages hold no clippy.
                build.args(["--", "-D", "warnings"]).run()?;
            }
        }
        let what = format!("traces replayed for {}", self.target);
        if !system::need(context, self.runner, &what)? {
            return Ok(None);
        }
        let folder = toolchain.target_dir(context).join(self.target);
        let program = folder.join(format!("release/trace-device{}", self.suffix));
        let mut run = context.run(self.runner.name).args(self.arguments);
        if self.suffix.is_empty() {
            run = run.args(EMULATED).arg("-kernel");
        }
        run.arg(program).limit(RUN_MAX).read().map(Some)
    }
}

/// How many traces were replayed, by their last lines: name, digest, length.
fn digests(logs: &str) -> usize {
    let is_digest = |line: &&str| {
        let words: Vec<_> = line.split(' ').collect();
        matches!(words[..], [_, digest, len]
            if digest.len() == 16 && u64::from_str_radix(digest, 16).is_ok() && len.parse::<usize>().is_ok())
    };
    logs.lines().filter(is_digest).count()
}

/// The first difference, with the trace in which it is.
fn compare(host: &str, device: &str) -> Result<(), String> {
    let mut trace = "";
    let mut lines = device.lines();
    for expected in host.lines() {
        if let Some(name) = expected.strip_prefix("# ") {
            trace = name;
        }
        let found = lines.next();
        if found != Some(expected) {
            let found = found.unwrap_or("nothing more");
            return Err(format!(
                "trace {trace}\n  here:  {expected}\n  there: {found}"
            ));
        }
    }
    match lines.next() {
        None => Ok(()),
        Some(line) => Err(format!("more than here: {line}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGS: &str =
        "# a\n> 0 04\na 0123456789abcdef 7\n# b\nnext never\nb 00000000000000ff 11\n";

    #[test]
    fn traces_are_counted_by_their_digests() {
        assert_eq!(digests(LOGS), 2);
        assert_eq!(digests("panicked at somewhere\n"), 0);
    }

    #[test]
    fn the_first_difference_is_told_with_its_trace() {
        assert_eq!(compare(LOGS, LOGS), Ok(()));
        let other = LOGS.replace("never", "7");
        let told = compare(LOGS, &other).expect_err("a difference");
        assert!(
            told.contains("trace b") && told.contains("next never"),
            "{told}"
        );
        let ended = compare(LOGS, "# a\n").expect_err("less");
        assert!(ended.contains("nothing more"), "{ended}");
        assert!(compare("# a\n", LOGS).is_err());
    }
}
