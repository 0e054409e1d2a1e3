//! What CI runs: our command and our driver against a server of others, drivers of others against
//! our simulator.
//!
//! Each half is judged by the other side: Cassandra counts and adds up what `messina query` wrote
//! and a foreign driver compares the values, Cassandra's own JSON, bytes and tokens judge the
//! driver; the simulator's counters say where the foreign drivers' requests arrived. A step that
//! fails leaves out those that need it, and the report says so by what it does not list.

mod doubles;
mod foreign_driver;
mod our_command;
mod our_driver;

pub(crate) use doubles::mix;

use core::time::Duration;
use std::path::PathBuf;

use anyhow::Result;

use self::foreign_driver::Strangers;
use crate::{
    cassandra::{Cassandra, Options},
    command::Messina,
    compare,
    foreign::{Call, Driver, Programs, Scenario, Visits},
    maven::{self, Jars},
    probe,
    python::Python,
    report::{self, Report},
    target::Target,
};

/// Rows that our command writes and reads.
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
    /// `messina query` and our driver against Apache Cassandra.
    Cassandra,
    /// Of that half, our driver alone.
    Driver,
    /// Foreign drivers against `messina sim`.
    Foreign,
}

/// Sets up what is missing, runs the slice, prints the report and says whether nothing failed.
#[must_use]
pub fn run(target: &Target, settings: &Settings) -> bool {
    let mut report = Report::default();
    if settings.only == Some(Half::Driver) {
        cassandra(target, &mut report, |_, _| ());
        return report.close();
    }
    report.part("set-up");
    let ready = set_up(target, settings, &mut report);
    if let Some((messina, python, strangers)) = ready {
        let mut visits = Visits::default();
        let wants = |half| settings.only.is_none_or(|only| only == half);
        if wants(Half::Cassandra) {
            cassandra(target, &mut report, |report, node| {
                report.part("messina query against Apache Cassandra");
                our_command::run(report, &messina, &python, node);
                report.part("a foreign driver against Apache Cassandra");
                meet_cassandra(report, &mut visits, &strangers, node);
            });
        }
        if wants(Half::Foreign) {
            strangers.meet_simulator(&mut report, &mut visits, &messina);
            let programs = &strangers.programs;
            visits.compare(&compare::run(&mut report, target, &messina, programs));
        }
        report.part("what the foreign drivers did");
        report::say(&visits);
        report.step("the same for machines", || {
            Ok(((), visits.write(target)?.display().to_string()))
        });
    }
    report.close()
}

/// Our driver's comparison with others, by itself.
#[must_use]
pub fn compare(target: &Target, messina: Option<PathBuf>) -> bool {
    let mut report = Report::default();
    report.part("set-up");
    let settings = Settings {
        messina,
        only: None,
    };
    if let Some((messina, _, strangers)) = set_up(target, &settings, &mut report) {
        let mut visits = Visits::default();
        let programs = &strangers.programs;
        visits.compare(&compare::run(&mut report, target, &messina, programs));
        report.step("the same for machines", || {
            Ok(((), visits.write(target)?.display().to_string()))
        });
    }
    report.close()
}

fn set_up<'a>(
    target: &'a Target,
    settings: &Settings,
    report: &mut Report,
) -> Option<(Messina, Python, Strangers<'a>)> {
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
    let python = python?;
    let strangers = report.step("the other foreign drivers (npm, cargo)", || {
        let strangers = Strangers {
            target,
            programs: Programs::prepare(target, &python)?,
            scenario: Scenario::read()?,
        };
        Ok((strangers, "ready".to_owned()))
    });
    Some((messina?, python, strangers?))
}

/// Fetches the jars and runs the half that needs them; leaves it out where `absent.md` lists why.
/// One node serves the `others` and then the driver, which restarts it at its end.
fn cassandra(target: &Target, report: &mut Report, others: impl FnOnce(&mut Report, &Cassandra)) {
    report.part("Apache Cassandra");
    let jars = report.step_unless_listed("Cassandra's jars (mvn)", maven::is_listed_absent, || {
        let version = maven::CASSANDRA_VERSION;
        Ok((
            Jars::fetch(target, version)?,
            format!("{version} and what it needs"),
        ))
    });
    if jars.is_none() {
        return;
    }
    let Some(mut node) = report.step("start Cassandra", || start(target)) else {
        return;
    };
    others(report, &node);
    our_driver::run(report, &mut node);
    report.part("Apache Cassandra afterwards");
    if report.step("it is well", || health(&node)).is_none() {
        report::say(node.log_tail(30));
    }
    report.step("stop Cassandra", || {
        node.stop().map(|stopped| ((), stopped.to_string()))
    });
}

fn meet_cassandra(
    report: &mut Report,
    visits: &mut Visits,
    strangers: &Strangers<'_>,
    node: &Cassandra,
) {
    let (contact, credentials) = (node.address().to_string(), node.credentials());
    let mut call = Call::new("cassandra", &contact);
    call.credentials = credentials.as_ref();
    strangers.meet(report, visits, Driver::Python, &call, None);
}

fn start(target: &Target) -> Result<(Cassandra, String)> {
    let options = Options {
        auth: true,
        ..Options::default()
    };
    let node = Cassandra::start(target, options)?;
    let saw = format!(
        "{} in {:.1} s, login demanded",
        node.address(),
        node.start_seconds()
    );
    Ok((node, saw))
}

fn health(node: &Cassandra) -> Result<((), String)> {
    probe::supported(node.address(), Duration::from_secs(5))?;
    let memory = node.peak_memory_bytes().map_or_else(
        || "memory unknown here".to_owned(),
        |bytes| format!("{} MB resident at most", bytes / 1_000_000),
    );
    Ok(((), memory))
}
