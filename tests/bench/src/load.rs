//! One measured run in a process of its own: connect, warm up, make requests, say what they cost.
//!
//! Heap calls are counted by the process itself. Instructions are counted by callgrind, which
//! collects only while `measured_window` runs: the current-thread runtime does all the driver's
//! work inside it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::heap::Heap;
use crate::ours::Ours;
use crate::theirs::Theirs;
use crate::workload::{Driver, Shape, Work, run};

/// Rows that the measured requests are about: a SELECT reads ten.
pub const SHAPE: Shape = Shape::new(64, 10);

/// Requests before anything is counted: connections and tablets are warm after them, and so are the
/// output buffers, which grow until they have met the largest burst.
const WARM_UP: u32 = 8 * SHAPE.len();

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Whether by this driver or by the other.
    pub is_ours: bool,
    /// Which request.
    pub work: Work,
    /// How many at a time.
    pub in_flight: u32,
}

impl Load {
    /// A driver, a request, how many at a time.
    pub const fn new(is_ours: bool, work: Work, in_flight: u32) -> Self {
        Self {
            is_ours,
            work,
            in_flight,
        }
    }

    /// The name of the driver.
    pub const fn driver(self) -> &'static str {
        if self.is_ours { "messina" } else { "scylla" }
    }

    /// The arguments by which a child process is told; [`Load::run`] takes them.
    fn arguments(self, contacts: &str, requests: u32) -> [String; 6] {
        [
            "load".to_owned(),
            self.driver().to_owned(),
            self.work.name().to_owned(),
            self.in_flight.to_string(),
            requests.to_string(),
            contacts.to_owned(),
        ]
    }

    /// Heap calls of `requests` requests, in a process of its own.
    pub fn heap(self, program: &Path, contacts: &str, requests: u32) -> Result<Heap> {
        let mut command = Command::new(program);
        command.args(self.arguments(contacts, requests));
        let (stdout, _) = output(&mut command)?;
        let said: serde_json::Value = serde_json::from_str(&stdout)?;
        let number = |key: &str| said[key].as_u64().context("no number");
        Ok(Heap {
            calls: number("calls")?,
            bytes: number("bytes")?,
        })
    }

    /// Instructions of `requests` requests, under callgrind.
    pub fn instructions(self, program: &Path, contacts: &str, requests: u32) -> Result<u64> {
        instructions(program, &self.arguments(contacts, requests))
    }
}

/// Instructions that a program takes inside a function named `measured_window`, under callgrind.
pub fn instructions(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*measured_window*"])
        .arg(program)
        .args(arguments);
    let (_, stderr) = output(&mut command)?;
    let collected = stderr
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, number)| number.trim().parse().ok());
    collected.with_context(|| format!("callgrind gave no count:\n{stderr}"))
}

/// The child's side: `driver work in_flight requests contacts`.
pub fn main(arguments: &[String]) -> Result<String> {
    let [driver, work, in_flight, requests, contacts] = arguments else {
        bail!("load takes five arguments");
    };
    let work = Work::named(work).context("no such work")?;
    let load = Load::new(driver == "messina", work, in_flight.parse()?);
    let requests = requests.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let heap = if load.is_ours {
        let driver = runtime.block_on(Ours::connect(contacts, None))?;
        measure(&runtime, &driver, load, requests)?
    } else {
        let driver = runtime.block_on(Theirs::connect(contacts))?;
        measure(&runtime, &driver, load, requests)?
    };
    Ok(json!({ "calls": heap.calls, "bytes": heap.bytes }).to_string())
}

fn measure(runtime: &Runtime, driver: &impl Driver, load: Load, requests: u32) -> Result<Heap> {
    runtime.block_on(run(driver, load.work, SHAPE, WARM_UP, load.in_flight))?;
    let before = Heap::now();
    measured_window(runtime, driver, load, requests)?;
    let after = Heap::now();
    Ok(Heap {
        calls: after.calls - before.calls,
        bytes: after.bytes - before.bytes,
    })
}

/// Callgrind finds this function by its name.
#[inline(never)]
fn measured_window(
    runtime: &Runtime,
    driver: &impl Driver,
    load: Load,
    requests: u32,
) -> Result<()> {
    runtime
        .block_on(run(driver, load.work, SHAPE, requests, load.in_flight))?
        .check()
}

fn output(command: &mut Command) -> Result<(String, String)> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{command:?} failed:\n{stderr}");
    }
    Ok((String::from_utf8(output.stdout)?, stderr))
}
