//! Foreign drivers against `messina sim`, and one against Apache Cassandra.
//!
//! Each kind of cluster is started once and visited by one driver after the other, each in
//! keyspaces of its own. TLS and a login are tried with one driver and fewer rows; so is a wrong
//! password, which must let nobody in.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    command::Messina,
    foreign::{Account, Call, Driver, Offer, Programs, Scenario, Simulator, Visits},
    probe::Credentials,
    report::{self, Report},
    target::Target,
};

/// What every visit needs.
pub(super) struct Strangers<'a> {
    pub(super) target: &'a Target,
    pub(super) programs: Programs,
    pub(super) scenario: Scenario,
}

impl Strangers<'_> {
    /// Every kind of simulated cluster, with the drivers that it is for.
    pub(super) fn meet_simulator(
        &self,
        report: &mut Report,
        visits: &mut Visits,
        messina: &Messina,
    ) {
        for offer in Offer::all() {
            let drivers = drivers(offer.cluster);
            report.part(&format!(
                "foreign drivers against messina sim, {}",
                offer.cluster
            ));
            let simulator = report.step("start the simulator", || {
                let folder = self.target.run_folder(&format!("sim-{}", offer.cluster))?;
                let simulator = Simulator::start(messina, &folder, offer)?;
                let saw = simulator.describe();
                Ok((simulator, saw))
            });
            let Some(simulator) = simulator else {
                continue;
            };
            for driver in drivers {
                let base = simulator.stats().ok();
                if !self.meet(report, visits, *driver, &simulator.call(), base.as_ref()) {
                    report::say(simulator.output_tail(30));
                }
            }
            if simulator.call().credentials.is_some() {
                report.step("a wrong password", || {
                    self.wrong_password(&simulator.call())
                });
            }
            report.step("stop the simulator", || {
                simulator.stop().map(|stopped| ((), stopped.to_string()))
            });
        }
    }

    /// One driver's way through the scenario; whether its program came to the end. `base` holds
    /// the simulator's counters from before.
    pub(super) fn meet(
        &self,
        report: &mut Report,
        visits: &mut Visits,
        driver: Driver,
        call: &Call<'_>,
        base: Option<&Value>,
    ) -> bool {
        let name = driver.name();
        let visit = report.step(&format!("{name} goes through"), || {
            let account = self.programs.run(self.target, driver, call)?;
            let visit = self.scenario.judge(driver, call.cluster, &account, base)?;
            let saw = format!("version {}, {:.1} s", visit.version, visit.seconds);
            Ok((visit, saw))
        });
        let Some(visit) = visit else {
            return false;
        };
        visits.add(&visit);
        for verdict in visit.verdicts {
            let step = format!("{name}: {}", verdict.name);
            report.step(&step, || verdict.result.map(|saw| ((), saw)));
        }
        true
    }

    fn wrong_password(&self, call: &Call<'_>) -> Result<((), String)> {
        let right = call.credentials.context("no login is demanded")?;
        let wrong = Credentials::new(&right.user, "not-the-Password");
        let call = Call {
            credentials: Some(&wrong),
            ..*call
        };
        let account: Account = self.programs.run(self.target, Driver::Python, &call)?;
        let error = match account.saw("connect", "") {
            Ok(saw) => anyhow::bail!("it was let in: {saw}"),
            Err(error) => error.to_string(),
        };
        ensure!(
            error.contains("AuthenticationFailed"),
            "the error is {error}"
        );
        ensure!(
            !error.contains(&wrong.password),
            "the password is in the error"
        );
        Ok(((), "refused as AuthenticationFailed".to_owned()))
    }
}

/// A driver that knows no tablets has nothing to say of their first version, nor all of them of TLS
/// and logins.
fn drivers(cluster: &str) -> &'static [Driver] {
    match cluster {
        "v1" => &[Driver::Python, Driver::Rust],
        "tls" | "login" => &[Driver::Python],
        _ => &Driver::ALL,
    }
}
