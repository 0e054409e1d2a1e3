//! Recorded protocol traces, replayed through core: what comes from the network and what the application asks
//! for, with times, goes in; bytes, decisions and deadlines come out as a log.
//!
//! The log of a trace is the same text on every target, to the byte. [`replay_all`] is all that a target has to
//! call; `tests/digests.rs` compares with the digests that are stored, and `cargo xtask embedded` compares a
//! host, a WASM module, a Cortex-M4 and a RISC-V core with each other.
//!
//! | module | what it is |
//! |---|---|
//! | [`step`] | the lines of a trace |
//! | [`log`] | what comes out, and its digest |
//! | [`player`] | what a trace is replayed through |
//! | [`machine`] | replays through the whole driver for small images |
//! | [`connection`] | replays through one connection, its handshake, and the planner |
//! | [`answer`] | answers as text |
//! | [`library`] | the traces that are kept |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod answer;
pub mod connection;
pub mod library;
pub mod log;
pub mod machine;
pub mod player;
pub mod routes;
pub mod step;

use core::fmt;

use crate::library::{TRACES, Trace};
use crate::log::Log;

/// Replays one trace. The log ends with the cause if a line of it cannot be read.
#[must_use]
pub fn replay(trace: &Trace<'_>) -> Log {
    let mut log = Log::new();
    let mut player = player::Player::new();
    for (number, line) in (1_u32..).zip(trace.text.lines()) {
        let step = match step::parse(line) {
            Ok(Some(step)) => step,
            Ok(None) => continue,
            Err(error) => {
                log.line(format_args!("line {number} cannot be read: {error}"));
                return log;
            }
        };
        player.apply(&step, &mut log);
    }
    log
}

/// Replays every trace: for each its log if `is_whole`, then a line with its name, the digest and the
/// length of the log.
///
/// # Errors
///
/// Those of the sink.
pub fn replay_all(sink: &mut dyn fmt::Write, is_whole: bool) -> fmt::Result {
    for trace in TRACES {
        let log = replay(trace);
        if is_whole {
            writeln!(sink, "# {}", trace.name)?;
            sink.write_str(log.as_str())?;
        }
        writeln!(sink, "{}", Line(trace, &log))?;
    }
    Ok(())
}

/// The line by which the log of a trace is known: name, digest, length.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a view")]
pub struct Line<'a>(pub &'a Trace<'a>, pub &'a Log);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(trace, log) = self;
        let len = log.as_str().len();
        write!(f, "{} {:016x} {len}", trace.name, log.digest())
    }
}
