//! Runs a target for a time over its corpus and bent copies of it.
//!
//! Not guided by coverage: which copies are made depends on the seed alone, so two runs with one
//! seed differ only in how far they get.

use core::time::Duration;
use std::env;
use std::fmt;
use std::panic::{catch_unwind, resume_unwind};
use std::time::Instant;

use super::Target;
use super::mutate::{Sequence, bent};
use crate::hex::hex;

/// How to run targets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// For this long, the corpus at least once.
    For {
        /// How long.
        time: Duration,
        /// Decides the bent copies.
        seed: u64,
    },
    /// One input, to see a finding again.
    Replay(Vec<u8>),
}

impl Plan {
    /// From `MESSINA_FUZZ_INPUT` (hexadecimal), or else `MESSINA_FUZZ_SECONDS` and
    /// `MESSINA_FUZZ_SEED`.
    ///
    /// # Panics
    ///
    /// If one of them cannot be read.
    #[must_use]
    pub fn from_environment() -> Self {
        if let Some(input) = variable::<String>("MESSINA_FUZZ_INPUT") {
            return Self::Replay(hex(&input));
        }
        let seconds = variable("MESSINA_FUZZ_SECONDS").unwrap_or(DEFAULT_SECONDS);
        Self::For {
            time: Duration::from_secs_f64(seconds),
            seed: variable("MESSINA_FUZZ_SEED").unwrap_or_default(),
        }
    }
}

fn variable<T: core::str::FromStr>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    let parsed = value.parse();
    Some(parsed.unwrap_or_else(|_| panic!("{name}={value} cannot be read")))
}

/// What was run.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// The target's name.
    pub target: &'static str,
    /// Inputs run.
    pub runs: u64,
    /// How long that took.
    pub time: Duration,
    /// Inputs in the corpus.
    pub corpus_len: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fuzz {}: {} runs in {:.1} s, corpus {}",
            self.target,
            self.runs,
            self.time.as_secs_f64(),
            self.corpus_len
        )
    }
}

/// Runs a target.
///
/// # Panics
///
/// With the body's own panic, after the command that replays its input was printed.
pub fn run(target: &Target, plan: &Plan) -> Summary {
    let corpus = (target.corpus)();
    assert!(!corpus.is_empty(), "{} has no corpus", target.name);
    let start = Instant::now();
    let mut runs = 0;
    let mut take = |bytes: &[u8]| {
        runs += 1;
        run_one(target, bytes);
    };
    match plan {
        Plan::Replay(bytes) => take(bytes),
        Plan::For { time, seed } => {
            corpus.iter().for_each(|bytes| take(bytes));
            let mut sequence = Sequence::new(*seed);
            while start.elapsed() < *time {
                take(&bent(&mut sequence, &corpus));
            }
        }
    }
    Summary {
        target: target.name,
        runs,
        time: start.elapsed(),
        corpus_len: corpus.len(),
    }
}

fn run_one(target: &Target, bytes: &[u8]) {
    let Err(panic) = catch_unwind(|| (target.body)(bytes)) else {
        return;
    };
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    eprintln!(
        "MESSINA_FUZZ_INPUT={digits} cargo test -p messina-conformance --test fuzz {}",
        target.name
    );
    resume_unwind(panic);
}

const DEFAULT_SECONDS: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;

    const PICKY: Target = Target {
        name: "picky",
        body: |bytes| assert!(!bytes.contains(&0x80)),
        corpus: || vec![vec![1, 2, 3]],
    };

    #[test]
    fn a_finding_comes_out_and_comes_back() {
        let plan = Plan::For {
            time: Duration::from_secs(60),
            seed: 0,
        };
        assert!(catch_unwind(|| run(&PICKY, &plan)).is_err());
        let replay = |bytes: &[u8]| {
            let plan = Plan::Replay(bytes.to_vec());
            catch_unwind(|| run(&PICKY, &plan).runs)
        };
        assert_eq!(replay(&[1, 0]).unwrap(), 1);
        assert!(replay(&[1, 0x80]).is_err());
    }
}
