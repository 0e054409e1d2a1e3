//! The firmware: `examples/embassy-qemu` built for a Cortex-M4, run in QEMU against a simulated cluster on
//! loopback, its closing line checked and its flash and RAM printed.
//!
//! Run twice: booted only, and with a query. The difference of the two size cards is what the driver costs.

use core::time::Duration;
use std::net::TcpListener;
use std::path::Path;

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;
use crate::toolchain::{Library, Toolchain};

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
    let Some(toolchain) = Toolchain::for_target(context, TARGET, Library::Core)? else {
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
        .cargo(["build", "--locked", "-p", "messina-cli"])
        .run()?;
    let [port, shard_aware_port] = free_ports()?.map(|port| port.to_string());
    let mut server = context
        .run(context.target_dir.join("debug/messina"))
        .args(["sim", "--nodes", "1", "--shards", "2", "--port", &port])
        .args(["--shard-aware-port", &shard_aware_port])
        .start()?;
    let ready = server.first_line(Duration::from_secs(20))?;
    if !ready.contains("\"ready\":true") {
        return Err(Failure::new(format!(
            "the simulated cluster is not ready: {ready}"
        )));
    }
    emulate(context, firmware, &["mode=query", &format!("port={port}")])
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

/// Two ports that were free a moment ago.
fn free_ports() -> Outcome<[u16; 2]> {
    let [first, second] = [
        TcpListener::bind(("127.0.0.1", 0))?,
        TcpListener::bind(("127.0.0.1", 0))?,
    ];
    Ok([first.local_addr()?.port(), second.local_addr()?.port()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_whole_key() {
        let output = "flash_bytes_max 7\nflash_bytes 61440\nheap_calls none\n";
        assert_eq!(value(output, "flash_bytes").expect("a number"), 61440);
        assert!(value(output, "heap_calls").is_err());
        assert!(value(output, "stack_peak_bytes").is_err());
    }
}
