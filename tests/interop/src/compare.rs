//! The same workload by three drivers that know tablets of version 2, counted by the servers.
//!
//! Each driver meets a simulated cluster of its own that was made from the same seed, with the same
//! `workload`: the same requests in the same order, so many at once, while tablets move and
//! leaders change at the same points (`conductor`). What is counted (`figures`) is taken from
//! the nodes: requests that came to the wrong place, routing that was sent, bytes. Ours may be worse
//! in none of it.
//!
//! A change of a tablet is found by one of the 16 nibbles of its version, and a nibble may stay the
//! same by chance. So that luck has no part, the versions are turned after each change: either all
//! nibbles tell of it, or exactly one does.

mod conductor;
mod figures;
mod ours;
mod workload;

use core::time::Duration;
use std::{fs, net::TcpListener, path::Path, thread};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use self::{conductor::Conductor, workload::Workload};
use crate::{
    command::Messina,
    foreign::{Driver, Offer, Programs, Simulator},
    process::Process,
    report::{self, Report},
    target::Target,
};

pub use figures::{Comparison, Counts, Visit};

/// The drivers of others that are compared.
const OTHERS: [Driver; 2] = [Driver::Rust, Driver::Python];

/// Lets all drivers do the workload, prints the table, judges it and gives it back.
pub fn run(
    report: &mut Report,
    target: &Target,
    messina: &Messina,
    programs: &Programs,
) -> Comparison {
    report.part("the same workload by three drivers against messina sim, v2");
    let setting = Setting {
        target,
        messina,
        workload: Workload::new(),
    };
    let mut comparison = Comparison::default();
    let mut visit = |name: &str, player: &dyn Fn(&Stage<'_>) -> Result<String>| {
        let visit = report.step(name, || {
            let visit = setting.visit(name, player)?;
            let saw = visit.describe();
            Ok((visit, saw))
        });
        comparison.extend(visit);
    };
    visit("messina", &|stage| stage.ours());
    for driver in OTHERS {
        visit(driver.name(), &|stage| stage.other(programs, driver));
    }
    report::say(&comparison);
    for (name, result) in comparison.judge(1 + OTHERS.len()) {
        report.step(&name, || result.map(|saw| ((), saw)));
    }
    comparison
}

/// What is the same for all drivers.
struct Setting<'a> {
    target: &'a Target,
    messina: &'a Messina,
    workload: Workload,
}

/// What one driver meets.
struct Stage<'a> {
    workload: &'a Workload,
    simulator: &'a Simulator,
    conductor: core::cell::RefCell<Conductor<'a>>,
    listener: TcpListener,
    folder: &'a Path,
}

impl Setting<'_> {
    /// A cluster of its own for the driver that `player` lets do the workload; it gives the version.
    fn visit(&self, name: &str, player: &dyn Fn(&Stage<'_>) -> Result<String>) -> Result<Visit> {
        let folder = self.target.run_folder(&format!("compare-{name}"))?;
        let simulator = Simulator::start(self.messina, &folder, Offer::v2())?;
        let stage = Stage {
            workload: &self.workload,
            simulator: &simulator,
            conductor: Conductor::new(&simulator, &self.workload).into(),
            listener: TcpListener::bind("127.0.0.1:0")?,
            folder: &folder,
        };
        let version = player(&stage)?;
        let looks = stage.conductor.into_inner().into_looks();
        simulator.stop()?;
        fs::remove_dir_all(&folder)?;
        Visit::new(name, version, &self.workload, &looks)
    }
}

impl Stage<'_> {
    fn ours(&self) -> Result<String> {
        let (contact, conductor) = (self.simulator.call().contact, self.listener.local_addr()?);
        thread::scope(|scope| {
            let player = scope.spawn(|| ours::perform(contact, conductor, self.workload));
            let conducted = self.conductor.borrow_mut().conduct(&self.listener, || {
                ensure!(!player.is_finished(), "it did not come to the conductor");
                Ok(())
            });
            let performed = player.join();
            performed.map_err(|_| anyhow::anyhow!("its thread panicked"))??;
            conducted
        })?;
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn other(&self, programs: &Programs, driver: Driver) -> Result<String> {
        let file = self.folder.join("workload.json");
        fs::write(&file, self.workload.to_json().to_string())?;
        let mut command = programs.comparing(driver)?;
        command
            .arg("--workload")
            .arg(&file)
            .args(["--contact", self.simulator.call().contact])
            .args(["--conductor", &self.listener.local_addr()?.to_string()]);
        let mut process = Process::spawn(&mut command, self.folder, "compare")?;
        let conducted = self.conductor.borrow_mut().conduct(&self.listener, || {
            ensure!(
                process.poll_exit()?.is_none(),
                "it did not come to the conductor"
            );
            Ok(())
        });
        let finished = process
            .wait(Duration::from_secs(20))?
            .success(&format!("the program of {}", driver.name()))?;
        conducted?;
        let said: Value = serde_json::from_str(finished.stdout.trim())?;
        let version = said["version"].as_str();
        Ok(version.context("it names no version")?.to_owned())
    }
}
