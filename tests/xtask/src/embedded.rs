//! The firmware: `examples/embassy-qemu` built for a Cortex-M4, run in QEMU against a simulated cluster on
//! loopback, its closing line checked and its flash and RAM printed.
//!
//! Run twice: booted only, and with a query. The difference of the two size cards is what the driver costs.

use core::time::Duration;
use std::path::Path;

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;
use crate::toolchain::Toolchain;

const TARGET: &str = "thumbv7em-none-eabihf";
const MANIFEST: &str = "examples/embassy-qemu/Cargo.toml";

/// Lines `key value` that the firmware prints and that make up its size card.
const SIZES: [&str; 5] = [
    "flash_bytes",
    "static_bytes",
    "heap_peak_bytes",
    "heap_calls",
    "stack_peak_bytes",
];

/// An emulated run, boot to exit, takes seconds.
const RUN_MAX: Duration = Duration::from_secs(60);

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&[MANIFEST])?;
    let Some(toolchain) = Toolchain::for_target(context, TARGET)? else {
        return Ok(());
    };
    for subcommand in ["clippy", "build"] {
        let build = toolchain.cargo(context, [subcommand, "--locked", "--release"]);
        let build = build.args(["--target", TARGET, "--manifest-path", MANIFEST]);
        if subcommand == "clippy" {
            // Debian's packages hold no clippy.
            if matches!(toolchain, Toolchain::Active) {
                build.args(["--", "-D", "warnings"]).run()?;
            }
        } else {
            build.run()?;
        }
    }
    if !system::need(context, system::QEMU_ARM, "firmware in QEMU")? {
        return Ok(());
    }
    let firmware = toolchain
        .target_dir(context)
        .join(TARGET)
        .join("release/fw");
    let boot = emulate(context, &firmware, &["mode=boot"])?;
    let query = query(context, &firmware)?;
    println!("{:<18} {:>8} {:>8} {:>8}", "", "boot", "query", "driver");
    for key in SIZES {
        let [boot, query] = [&boot, &query].map(|output| value(output, key));
        let (boot, query) = (boot?, query?);
        println!("{key:<18} {boot:>8} {query:>8} {:>8}", query - boot);
    }
    Ok(())
}

/// Connects, prepares, executes and prints a row of a simulated cluster with one node.
fn query(context: &Context, firmware: &Path) -> Outcome<String> {
    context
        .cargo([
            "build",
            "--locked",
            "-p",
            "messina-sim",
            "--example",
            "serve",
        ])
        .run()?;
    let server = context.target_dir.join("debug/examples/serve");
    // One node with two shards, the newest extensions, ports of its choice.
    let mut server = context
        .run(server)
        .args(["1", "2", "v2", "0", "0"])
        .start()?;
    let ready = server.first_line(Duration::from_secs(20))?;
    let port = contact_port(&ready)
        .ok_or_else(|| Failure::new(format!("the simulated cluster is not ready: {ready}")))?;
    let output = emulate(context, firmware, &["mode=query", &format!("port={port}")])?;
    if output.lines().any(|line| line.starts_with("row ")) {
        return Ok(output);
    }
    Err(Failure::new("the firmware printed no row"))
}

/// The port in `"contact":["127.0.0.1:PORT"` of a server's ready line.
fn contact_port(ready: &str) -> Option<u16> {
    let contact = ready.split_once("\"contact\":[\"")?.1.split('"').next()?;
    contact.rsplit_once(':')?.1.parse().ok()
}

fn emulate(context: &Context, firmware: &Path, parameters: &[&str]) -> Outcome<String> {
    let arguments: String = parameters
        .iter()
        .map(|parameter| format!(",arg={parameter}"))
        .collect();
    let output = context
        .run("qemu-system-arm")
        .args([
            "-M",
            "mps2-an386",
            "-display",
            "none",
            "-monitor",
            "none",
            "-serial",
            "stdio",
        ])
        .args(["-nic", "user,model=lan9118", "-semihosting-config"])
        .arg(format!("enable=on,target=native,arg=fw{arguments}"))
        .arg("-kernel")
        .arg(firmware)
        .limit(RUN_MAX)
        .run_and_read()?;
    if output.lines().last() != Some("done ok") {
        return Err(Failure::new("the firmware did not end with `done ok`"));
    }
    Ok(output)
}

/// The number behind a key in the firmware's output.
fn value(output: &str, key: &str) -> Outcome<i64> {
    output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(found, _)| *found == key)
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("the firmware printed no number for {key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_ready_line() {
        let ready =
            r#"{"ready":true,"contact":["127.0.0.1:40123","127.0.0.2:1"],"control":"127.0.0.1:9"}"#;
        assert_eq!(contact_port(ready), Some(40123));
        assert_eq!(contact_port("error: address in use"), None);
    }

    #[test]
    fn values_are_read_by_their_whole_key() {
        let output = "flash_bytes_max 7\nflash_bytes 61440\nheap_calls none\n";
        assert_eq!(value(output, "flash_bytes").expect("a number"), 61440);
        assert!(value(output, "heap_calls").is_err());
        assert!(value(output, "stack_peak_bytes").is_err());
    }
}
