//! The figures: a table with the bars that they are to reach, and the budgets that they keep.
//!
//! Budgets stand in a file of the firmware. What is worse than its budget by more than its noise fails the run;
//! what is better should be written down there, and the table says so.

use core::fmt;
use std::collections::BTreeMap;
use std::fs;

use crate::command::{Failure, Outcome};
use crate::context::Context;

const BUDGETS: &str = "examples/embassy-qemu/budgets.json";

/// Which way is good, and how far is enough.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bar {
    AtMost(u64),
    AtLeast(u64),
    /// Told, and held to its budget alone.
    LowerIsBetter,
}

#[derive(Debug)]
struct Figure {
    key: &'static str,
    value: u64,
    bar: Bar,
    /// Per cent by which two runs may differ; none where there is no budget.
    noise: Option<u64>,
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<Figure>);

impl Figures {
    /// A figure that repeats to the digit, or nearly: of another version of the compiler.
    pub(super) fn exact(&mut self, key: &'static str, value: u64, bar: Bar) {
        self.add(key, value, bar, 1);
    }

    /// A figure that differs from run to run by up to so many per cent.
    pub(super) fn noisy(&mut self, key: &'static str, value: u64, bar: Bar, noise: u64) {
        self.add(key, value, bar, noise);
    }

    /// A time of this machine's clock, which says little about the next run: held to its bar alone.
    pub(super) fn bounded(&mut self, key: &'static str, value: u64, at_most: u64) {
        self.0.push(Figure {
            key,
            value,
            bar: Bar::AtMost(at_most),
            noise: None,
        });
    }

    fn add(&mut self, key: &'static str, value: u64, bar: Bar, noise: u64) {
        self.0.push(Figure {
            key,
            value,
            bar,
            noise: Some(noise),
        });
    }

    /// Prints the table and fails if a figure is worse than its budget.
    pub(super) fn judge(&self, context: &Context) -> Outcome {
        let file_failed = |error: &dyn fmt::Display| Failure::new(format!("{BUDGETS}: {error}"));
        let path = context.path(BUDGETS);
        let text = fs::read_to_string(&path).map_err(|error| file_failed(&error))?;
        let mut budgets: BTreeMap<String, u64> =
            serde_json::from_str(&text).map_err(|error| file_failed(&error))?;
        println!();
        println!(
            "{:<34} {:>10} {:>12} {:>10}  verdict",
            "figure", "measured", "bar", "budget"
        );
        let mut worse = Vec::new();
        for figure in &self.0 {
            let budget = budgets.get(figure.key).copied();
            let verdict = figure.verdict(budget);
            let is_missing =
                budget.is_none() && figure.noise.is_some() && !context.options.lower_budgets;
            if verdict == Verdict::Worse || is_missing {
                worse.push(figure.key);
            }
            println!(
                "{:<34} {:>10} {:>12} {:>10}  {}",
                figure.key,
                figure.value,
                figure.bar_text(),
                budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string()),
                figure.verdict_text(verdict),
            );
        }
        println!();
        if context.options.lower_budgets {
            for figure in self.0.iter().filter(|figure| figure.noise.is_some()) {
                let budget = budgets.entry(figure.key.to_owned()).or_insert(figure.value);
                if figure.verdict(Some(*budget)) == Verdict::Better {
                    *budget = figure.value;
                }
            }
            let text =
                serde_json::to_string_pretty(&budgets).map_err(|error| file_failed(&error))?;
            fs::write(&path, text + "\n").map_err(|error| file_failed(&error))?;
        }
        if worse.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "worse than {BUDGETS} allows, or not in it: {}",
            worse.join(", ")
        )))
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Verdict {
    Better,
    Kept,
    Worse,
}

impl Figure {
    fn verdict(&self, budget: Option<u64>) -> Verdict {
        let Some(noise) = self.noise else {
            return match self.bar {
                Bar::AtMost(bar) if self.value > bar => Verdict::Worse,
                _ => Verdict::Kept,
            };
        };
        let budget = budget.unwrap_or(self.value);
        let slack = budget * noise / 100;
        let (better, worse) = match self.bar {
            Bar::AtMost(_) | Bar::LowerIsBetter => {
                (self.value + slack < budget, self.value > budget + slack)
            }
            Bar::AtLeast(_) => (self.value > budget + slack, self.value + slack < budget),
        };
        match (better, worse) {
            (_, true) => Verdict::Worse,
            (true, _) => Verdict::Better,
            _ => Verdict::Kept,
        }
    }

    fn bar_text(&self) -> String {
        match self.bar {
            Bar::AtMost(bar) => format!("<= {bar}"),
            Bar::AtLeast(bar) => format!(">= {bar}"),
            Bar::LowerIsBetter => String::new(),
        }
    }

    fn verdict_text(&self, verdict: Verdict) -> String {
        let bar = match self.bar {
            Bar::AtMost(bar) if self.value <= bar => "met",
            Bar::AtLeast(bar) if self.value >= bar => "met",
            Bar::LowerIsBetter => "told",
            _ => "NOT MET",
        };
        match verdict {
            Verdict::Kept => bar.to_owned(),
            Verdict::Better => format!("{bar}; set the budget to {}", self.value),
            Verdict::Worse => format!("{bar}; WORSE than its budget"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: u64, bar: Bar, noise: u64) -> Figure {
        Figure {
            key: "key",
            value,
            bar,
            noise: Some(noise),
        }
    }

    #[test]
    fn budgets_hold_in_both_directions_within_the_noise() {
        let size = |value| figure(value, Bar::AtMost(500), 1).verdict(Some(1000));
        assert_eq!(size(1010), Verdict::Kept);
        assert_eq!(size(1011), Verdict::Worse);
        assert_eq!(size(990), Verdict::Kept);
        assert_eq!(size(989), Verdict::Better);
        let share = |value| figure(value, Bar::AtLeast(60), 10).verdict(Some(60));
        assert_eq!(share(54), Verdict::Kept);
        assert_eq!(share(53), Verdict::Worse);
        assert_eq!(share(67), Verdict::Better);
        let calls = |value| figure(value, Bar::AtMost(0), 1).verdict(Some(0));
        assert_eq!((calls(0), calls(1)), (Verdict::Kept, Verdict::Worse));
    }

    #[test]
    fn times_have_a_bar_and_no_budget() {
        let mut figures = Figures::default();
        figures.bounded("key", 7, 8);
        figures.bounded("key", 9, 8);
        let verdicts = figures.0.iter().map(|figure| figure.verdict(None));
        assert!(verdicts.eq([Verdict::Kept, Verdict::Worse]));
    }

    #[test]
    fn bars_are_judged_apart_from_budgets() {
        let text = |figure: Figure| figure.verdict_text(Verdict::Kept);
        assert_eq!(text(figure(61, Bar::AtMost(60), 1)), "NOT MET");
        assert_eq!(text(figure(60, Bar::AtMost(60), 1)), "met");
        assert_eq!(text(figure(59, Bar::AtLeast(60), 1)), "NOT MET");
        assert_eq!(text(figure(59, Bar::LowerIsBetter, 1)), "told");
    }
}
