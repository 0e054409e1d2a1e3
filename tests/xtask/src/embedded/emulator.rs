//! One run of an image in QEMU: its command line, the console's questions, the cable.

use core::time::Duration;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, process, thread};

use crate::command::{Failure, Outcome};
use crate::context::Context;

/// What one run is.
#[derive(Debug)]
pub(super) struct Emulation<'a> {
    pub(super) image: &'a Path,
    pub(super) machine: String,
    /// `key=value` words for the firmware.
    pub(super) words: Vec<String>,
    /// Whether the guest's clock counts instructions, eight nanoseconds each.
    pub(super) counts_instructions: bool,
    pub(super) limit: Duration,
}

/// What a run printed.
#[derive(Debug)]
pub(super) struct Printed {
    values: HashMap<String, String>,
}

impl Printed {
    /// The number behind a key.
    pub(super) fn number(&self, key: &str) -> Outcome<u64> {
        self.values
            .get(key)
            .and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| Failure::new(format!("the firmware printed no number for {key}")))
    }

    fn read(output: &str) -> Self {
        let lines = output.lines().filter_map(|line| line.split_once(' '));
        let values = lines.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self {
            values: values.collect(),
        }
    }
}

impl<'a> Emulation<'a> {
    /// A Cortex-M4F that has a minute.
    pub(super) fn new(image: &'a Path, words: impl IntoIterator<Item = String>) -> Self {
        Self {
            image,
            machine: "mps2-an386".to_owned(),
            words: words.into_iter().collect(),
            counts_instructions: false,
            limit: Duration::from_secs(60),
        }
    }

    /// Runs to the end. Lines `event WORDS` are answered when `happen` has done what they say; those about
    /// the cable and resets are done here. Nobody answers after a reset.
    pub(super) fn run(
        mut self,
        context: &Context,
        mut happen: impl FnMut(&str) -> Outcome,
    ) -> Outcome<Printed> {
        let limit = self.limit.as_secs().saturating_sub(5).max(5);
        let machine = self.machine.trim_start_matches("mps2-");
        let own = [format!("limit={limit}"), format!("machine={machine}")];
        self.words.splice(0..0, own);
        let words: String = self
            .words
            .iter()
            .map(|word| format!(",arg={word}"))
            .collect();
        let monitor = MonitorPath::new();
        let mut run = context
            .run("qemu-system-arm")
            .args([
                "-M",
                &self.machine,
                "-display",
                "none",
                "-serial",
                "stdio",
                "-monitor",
            ])
            .arg(format!("unix:{},server=on,wait=off", monitor.0.display()))
            .args(["-nic", "user,model=lan9118", "-semihosting-config"])
            .arg(format!("enable=on,target=native,arg=fw{words}"));
        if self.counts_instructions {
            run = run.args(["-icount", "shift=3"]);
        }
        let run = run.arg("-kernel").arg(self.image).limit(self.limit);
        let output = run.converse(|line| {
            let Some(event) = line.strip_prefix("event ") else {
                return Ok(None);
            };
            if let Some(after) = event.strip_prefix("reset_after ") {
                let after = after
                    .trim()
                    .parse()
                    .map_err(|_| Failure::new(format!("`{event}` names no time")))?;
                thread::sleep(Duration::from_millis(after));
                monitor.set_link("on")?;
                monitor.command("system_reset")?;
                // The boot that would read an answer is over.
                return Ok(None);
            }
            match event {
                "cable_off" => monitor.set_link("off")?,
                "cable_on" => monitor.set_link("on")?,
                _ => happen(event)?,
            }
            Ok(Some("\n".to_owned()))
        })?;
        if output.lines().last() != Some("done ok") {
            return Err(Failure::new("the firmware did not end with `done ok`"));
        }
        Ok(Printed::read(&output))
    }

    /// The same for a run that asks for nothing.
    pub(super) fn run_alone(self, context: &Context) -> Outcome<Printed> {
        self.run(context, |event| {
            Err(Failure::new(format!("nobody answers `{event}` here")))
        })
    }
}

/// Where QEMU's monitor listens; removed when dropped.
#[derive(Debug)]
struct MonitorPath(PathBuf);

impl MonitorPath {
    fn new() -> Self {
        let name = format!("messina-monitor-{}", process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Pulls the cable or puts it back in.
    fn set_link(&self, state: &str) -> Outcome {
        self.command(&format!("set_link lan9118.0 {state}"))
    }

    fn command(&self, command: &str) -> Outcome {
        let mut monitor = UnixStream::connect(&self.0)?;
        monitor.set_read_timeout(Some(Duration::from_secs(5)))?;
        read_prompt(&mut monitor)?;
        writeln!(monitor, "{command}")?;
        read_prompt(&mut monitor)
    }
}

/// Reads on until the monitor asks for the next command.
fn read_prompt(monitor: &mut UnixStream) -> Outcome {
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(b"(qemu) ") {
        if monitor.read(&mut byte)? == 0 || heard.len() > 1 << 16 {
            return Err(Failure::new("QEMU's monitor does not ask for a command"));
        }
        heard.extend(byte);
    }
    Ok(())
}

impl Drop for MonitorPath {
    fn drop(&mut self) {
        // QEMU removes it itself when it ends well.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_whole_key() {
        let printed = Printed::read("flash_bytes_max 7\nflash_bytes 61440\nheap_calls none\n");
        assert_eq!(printed.number("flash_bytes").expect("a number"), 61440);
        assert!(printed.number("heap_calls").is_err());
        assert!(printed.number("stack_peak_bytes").is_err());
    }
}
