//! Requests per second and the client's CPU time per request, on both runtimes, with and without
//! the deferred write, beside the other driver.
//!
//! The candidates take turns (A B C, A B C, …) on the same server, and the median of the rounds is
//! printed with the spread: a machine that others use too disturbs them alike. The CPU time is
//! that of this process alone; the server's is not in it.

use core::time::Duration;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use comfy_table::Table;
use tokio::runtime::{Builder, Runtime};

use crate::ours::{Ours, fill};
use crate::server::Server;
use crate::theirs::Theirs;
use crate::workload::{Shape, Work, run as run_requests};

/// Reads of one round.
const READS: u32 = 20_000;

/// Rounds of each candidate.
const ROUNDS: usize = 5;

/// Requests at a time.
const IN_FLIGHT: [u32; 3] = [16, 256, 1024];

/// One row each.
const SHAPE: Shape = Shape::new(READS, 1);

/// Both kinds of runtime; two workers, as many as the reference machine has cores.
fn runtimes() -> [(&'static str, Builder); 2] {
    let mut multi_thread = Builder::new_multi_thread();
    multi_thread.worker_threads(2);
    [
        ("current-thread", Builder::new_current_thread()),
        ("multi-thread", multi_thread),
    ]
}

/// A driver with its settings.
#[derive(Clone, Debug)]
enum Candidate {
    Ours(Ours),
    Theirs(Theirs),
}

/// What one round took.
#[derive(Clone, Copy, Debug)]
struct Round {
    wall: Duration,
    cpu: Duration,
}

/// Measures and prints.
pub fn run(program: &Path, mut out: impl Write) -> Result<()> {
    let server = Server::start(program)?;
    let contacts = server.contacts();
    let mut table = Table::new();
    table.set_header([
        "runtime",
        "in flight",
        "driver",
        "reads/s",
        "spread",
        "CPU µs/read",
        "spread",
    ]);
    for (name, mut builder) in runtimes() {
        let runtime = builder.enable_all().build()?;
        runtime.block_on(fill(&contacts, SHAPE))?;
        let candidates = runtime.block_on(connect(&contacts))?;
        for in_flight in IN_FLIGHT {
            let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); candidates.len()];
            for _ in 0..ROUNDS {
                for ((_, candidate), rounds) in candidates.iter().zip(&mut rounds) {
                    rounds.push(round(&runtime, candidate, in_flight)?);
                }
            }
            for ((driver, _), rounds) in candidates.iter().zip(rounds) {
                let rates = spread(&rounds, |round| f64::from(READS) / round.wall.as_secs_f64());
                let cpu = spread(&rounds, |round| {
                    round.cpu.as_secs_f64() * 1e6 / f64::from(READS)
                });
                table.add_row([
                    name.to_owned(),
                    in_flight.to_string(),
                    (*driver).to_owned(),
                    format!("{:.0}", rates.1),
                    format!("{:.0} – {:.0}", rates.0, rates.2),
                    format!("{:.1}", cpu.1),
                    format!("{:.1} – {:.1}", cpu.0, cpu.2),
                ]);
            }
        }
    }
    writeln!(out, "{table}")?;
    Ok(())
}

async fn connect(contacts: &str) -> Result<[(&'static str, Candidate); 3]> {
    Ok([
        (
            "messina, write deferred",
            Candidate::Ours(Ours::connect(contacts, Some(true)).await?),
        ),
        (
            "messina, write at once",
            Candidate::Ours(Ours::connect(contacts, Some(false)).await?),
        ),
        (
            "scylla",
            Candidate::Theirs(Theirs::connect(contacts).await?),
        ),
    ])
}

fn round(runtime: &Runtime, candidate: &Candidate, in_flight: u32) -> Result<Round> {
    let (started, cpu) = (Instant::now(), cpu_time()?);
    let outcome = match candidate {
        Candidate::Ours(driver) => {
            runtime.block_on(run_requests(driver, Work::Select, SHAPE, READS, in_flight))
        }
        Candidate::Theirs(driver) => {
            runtime.block_on(run_requests(driver, Work::Select, SHAPE, READS, in_flight))
        }
    }?;
    let round = Round {
        wall: started.elapsed(),
        cpu: cpu_time()?.saturating_sub(cpu),
    };
    outcome.check()?;
    Ok(round)
}

/// CPU time of all threads of this process that still live.
fn cpu_time() -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let ran = text.split_whitespace().next().unwrap_or_default();
        nanoseconds += ran.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Least, median, most.
fn spread(rounds: &[Round], figure: impl Fn(&Round) -> f64) -> (f64, f64, f64) {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    let at = |place: usize| figures.get(place).copied().unwrap_or(f64::NAN);
    (at(0), at(figures.len() / 2), at(figures.len() - 1))
}
