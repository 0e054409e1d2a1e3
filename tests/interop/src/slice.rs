//! What CI runs: our command against a server of others, a driver of others against our simulator.
//!
//! Each half is counted by the other side: Cassandra counts and adds up what `messina query` wrote
//! and a foreign driver compares the values; the simulator's counters say where the foreign
//! driver's requests arrived. A step that fails leaves out those that need it, and the report says
//! so by what it does not list.

mod doubles;
mod foreign_driver;
mod our_command;

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    command::Messina,
    maven::{self, Jars},
    python::Python,
    report::Report,
    target::Target,
};

/// Rows that each half writes and reads.
pub const ROWS: usize = 1_000;

/// What to run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// A `messina` command that is built already; else cargo builds it.
    pub messina: Option<PathBuf>,
    /// Only this half.
    pub only: Option<Half>,
}

/// The halves of the slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Half {
    /// `messina query` against Apache Cassandra.
    Cassandra,
    /// A foreign driver against `messina sim`.
    Foreign,
}

/// Sets up what is missing, runs the slice, prints the report and says whether nothing failed.
#[must_use]
pub fn run(target: &Target, settings: &Settings) -> bool {
    let mut report = Report::default();
    report.part("set-up");
    let ready = set_up(target, settings, &mut report);
    if let Some((messina, python)) = ready {
        let wants = |half| settings.only.is_none_or(|only| only == half);
        if wants(Half::Cassandra) {
            cassandra(target, &mut report, &messina, &python);
        }
        if wants(Half::Foreign) {
            foreign_driver::run(target, &mut report, &messina, &python);
        }
    }
    report.close()
}

fn set_up(target: &Target, settings: &Settings, report: &mut Report) -> Option<(Messina, Python)> {
    let python = report.step("foreign driver and data (pip)", || {
        Ok((Python::prepare(target)?, "ready".to_owned()))
    });
    let messina = report.step("messina command (cargo)", || -> Result<_> {
        let messina = match &settings.messina {
            Some(binary) => Messina::at(binary.clone())?,
            None => Messina::build(target)?,
        };
        Ok((messina, "ready".to_owned()))
    });
    messina.zip(python)
}

/// Fetches the jars and runs the half that needs them; leaves it out where `absent.md` lists why.
fn cassandra(target: &Target, report: &mut Report, messina: &Messina, python: &Python) {
    report.part("messina query against Apache Cassandra");
    let jars = report.step_unless_listed("Cassandra's jars (mvn)", maven::is_listed_absent, || {
        let version = maven::CASSANDRA_VERSION;
        Ok((
            Jars::fetch(target, version)?,
            format!("{version} and what it needs"),
        ))
    });
    if jars.is_some() {
        our_command::run(target, report, messina, python);
    }
}
