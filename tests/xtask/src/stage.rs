//! The table of stages and its runner.
//!
//! Each stage has a budget in minutes on two cores from a clean clone; one that takes more than twice its
//! budget fails, and its running command is stopped. All stages of a plan run even after one failed, so that
//! one run tells everything; the summary at the end has one line per stage.

use core::time::Duration;
use std::process::ExitCode;
use std::time::Instant;

use crate::command::Outcome;
use crate::context::Context;
use crate::{
    bench, checks, embedded, fuzz, interop, release, simulation, system, targets, tests_on_host,
    wasm, web,
};

/// The whole run may take this long in CI, whatever the stages' own budgets are.
const TOTAL_MAX: Duration = Duration::from_secs(80 * 60);

#[derive(Debug, Clone, Copy)]
struct Stage {
    name: &'static str,
    budget_minutes: u64,
    quick: bool,
    run: fn(&Context) -> Outcome,
}

/// In the order in which they run: what fails soonest and cheapest first.
const STAGES: &[Stage] = &[
    stage("set-up", 9, system::set_up),
    quick("checks", 8, checks::run),
    quick("tests", 8, tests_on_host::run),
    quick("simulation", 6, simulation::run),
    stage("fuzz", 4, fuzz::run),
    stage("targets", 3, targets::run),
    stage("interop", 8, interop::run),
    stage("wasm", 8, wasm::run),
    stage("embedded", 7, embedded::run),
    stage("counts", 4, bench::counts),
];

/// What `full` runs on top.
const RELEASE_STAGES: &[Stage] = &[
    stage("features", 20, release::features),
    stage("msrv", 10, release::msrv),
    stage("packaging", 10, release::packaging),
    stage("web", 5, web::run),
    stage("long fuzz", 15, fuzz::long),
    stage("throughput", 20, bench::throughput),
];

const fn stage(name: &'static str, budget_minutes: u64, run: fn(&Context) -> Outcome) -> Stage {
    Stage {
        name,
        budget_minutes,
        quick: false,
        run,
    }
}

const fn quick(name: &'static str, budget_minutes: u64, run: fn(&Context) -> Outcome) -> Stage {
    Stage {
        name,
        budget_minutes,
        quick: true,
        run,
    }
}

/// The names of all stages, those of a release last.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().chain(RELEASE_STAGES).map(|stage| stage.name)
}

/// The stages of one run.
#[derive(Debug)]
pub(crate) struct Plan(Vec<Stage>);

impl Plan {
    pub(crate) fn all() -> Self {
        Self(STAGES.to_vec())
    }

    pub(crate) fn quick() -> Self {
        Self(STAGES.iter().filter(|stage| stage.quick).copied().collect())
    }

    pub(crate) fn full() -> Self {
        Self([STAGES, RELEASE_STAGES].concat())
    }

    pub(crate) fn named(names: &[String]) -> Self {
        let chosen = |stage: &&Stage| names.iter().any(|name| name == stage.name);
        Self(
            STAGES
                .iter()
                .chain(RELEASE_STAGES)
                .filter(chosen)
                .copied()
                .collect(),
        )
    }

    /// A single command, without a budget to keep.
    pub(crate) fn one(name: &'static str, run: fn(&Context) -> Outcome) -> Self {
        Self(vec![stage(name, 60, run)])
    }

    pub(crate) fn run(self, context: &Context) -> ExitCode {
        let start = Instant::now();
        println!("target folder: {}", context.target_dir.display());
        let reports: Vec<Report> = self
            .0
            .iter()
            .map(|stage| stage.report(context, start))
            .collect();
        println!("\n{:<12} {:>8} {:>8}  result", "stage", "minutes", "budget");
        for report in &reports {
            println!(
                "{:<12} {:>8.1} {:>8}  {}",
                report.stage.name,
                report.time.as_secs_f64() / 60.0,
                report.stage.budget_minutes,
                report
                    .result
                    .as_ref()
                    .map_or_else(Clone::clone, |()| "ok".to_owned()),
            );
            for skip in &report.skips {
                println!("{:<30}  not run: {skip}", "");
            }
        }
        let failed = reports
            .iter()
            .filter(|report| report.result.is_err())
            .count();
        println!(
            "{:<12} {:>8.1}",
            "total",
            start.elapsed().as_secs_f64() / 60.0
        );
        println!("stages: {} passed, {failed} failed", reports.len() - failed);
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Report {
    stage: Stage,
    time: Duration,
    skips: Vec<String>,
    result: Result<(), String>,
}

impl Stage {
    fn report(self, context: &Context, run_start: Instant) -> Report {
        println!("\n=== {} (budget {} min)", self.name, self.budget_minutes);
        let start = Instant::now();
        let hard_limit = Duration::from_secs(2 * 60 * self.budget_minutes);
        let left = TOTAL_MAX.saturating_sub(run_start.elapsed());
        let limit = if context.ci {
            hard_limit.min(left)
        } else {
            hard_limit
        };
        context.allow(limit);
        let mut result = (self.run)(context).map_err(|failure| failure.to_string());
        let time = start.elapsed();
        if result.is_ok() && time > limit {
            result = Err("took more than twice its budget".to_owned());
        }
        let minutes = time.as_secs_f64() / 60.0;
        match &result {
            Ok(()) => println!("=== {}: ok, {minutes:.1} min", self.name),
            Err(why) => println!("=== {}: FAILED, {minutes:.1} min: {why}", self.name),
        }
        let skips = context.take_skips();
        let skips = skips
            .into_iter()
            .map(|skip| format!("{}: {}", skip.what, skip.why))
            .collect();
        Report {
            stage: self,
            time,
            skips,
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_leave_room_below_the_hard_limit() {
        let minutes =
            |stages: &[Stage]| stages.iter().map(|stage| stage.budget_minutes).sum::<u64>();
        assert!(minutes(STAGES) <= 65, "{}", minutes(STAGES));
        assert!(STAGES.iter().all(|stage| stage.budget_minutes > 0));
    }

    #[test]
    fn plans_pick_what_they_say() {
        let names = |plan: Plan| plan.0.iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert_eq!(names(Plan::quick()), ["checks", "tests", "simulation"]);
        assert_eq!(
            names(Plan::named(&["wasm".to_owned(), "checks".to_owned()])),
            ["checks", "wasm"]
        );
        assert_eq!(names(Plan::named(&["msrv".to_owned()])), ["msrv"]);
        assert_eq!(names(Plan::all()).len(), STAGES.len());
        assert_eq!(
            names(Plan::full()).len(),
            STAGES.len() + RELEASE_STAGES.len()
        );
    }

    #[test]
    fn a_failing_stage_and_a_slow_stage_are_reported() {
        let context = Context::new(crate::Options::default()).expect("the tree is here");
        let failing = stage("failing", 1, |_| Err(crate::command::Failure::new("no")));
        let report = failing.report(&context, Instant::now());
        assert_eq!(report.result, Err("no".to_owned()));
        let slow = stage("slow", 0, |_| Ok(()));
        assert!(slow.report(&context, Instant::now()).result.is_err());
    }
}
