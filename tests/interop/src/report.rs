//! The readable report of a run: a line a step, and a plain closing line.

use core::fmt::Display;
use std::{
    io::{self, Write as _},
    time::Instant,
};

use anyhow::Result;

/// Counts steps and prints each as it ends.
#[derive(Debug, Default)]
pub struct Report {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    /// Prints a heading.
    pub fn part(&mut self, title: &str) {
        say(format_args!("\n{title}"));
    }

    /// Does one step. It passes with a value and what it saw, or fails with a reason; the value is
    /// given on, and `None` says that the steps which need it cannot be done.
    pub fn step<T>(
        &mut self,
        name: &str,
        action: impl FnOnce() -> Result<(T, String)>,
    ) -> Option<T> {
        self.step_unless_listed(name, |_| false, action)
    }

    /// The same, but a failure whose reason is `listed` as known is skipped instead of counted.
    pub fn step_unless_listed<T>(
        &mut self,
        name: &str,
        listed: impl FnOnce(&str) -> bool,
        action: impl FnOnce() -> Result<(T, String)>,
    ) -> Option<T> {
        let start = Instant::now();
        let result = action();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok((value, saw)) => {
                self.passed += 1;
                say(format_args!("  ok    {seconds:6.1} s  {name}: {saw}"));
                Some(value)
            }
            Err(error) => {
                let reason = format!("{error:#}");
                let word = if listed(&reason) {
                    self.skipped += 1;
                    "skip"
                } else {
                    self.failed += 1;
                    "FAIL"
                };
                let reason = reason.replace('\n', "\n        ");
                say(format_args!("  {word}  {seconds:6.1} s  {name}: {reason}"));
                None
            }
        }
    }

    /// Prints the closing line and says whether nothing failed.
    #[must_use]
    pub fn close(self) -> bool {
        let skipped = match self.skipped {
            0 => String::new(),
            count => format!(", {count} skipped"),
        };
        say(format_args!(
            "\n{} passed, {} failed{skipped}",
            self.passed, self.failed
        ));
        self.failed == 0
    }
}

/// One line on standard output; that nobody reads it is no reason to fail.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn one_failure_makes_the_whole_fail() {
        let mut report = Report::default();
        assert_eq!(report.step("good", || Ok((7, "seen".to_owned()))), Some(7));
        let listed = report.step_unless_listed(
            "left out",
            |reason| reason == "known",
            || -> Result<((), String)> { bail!("known") },
        );
        assert_eq!(listed, None);
        assert_eq!(
            report.step("bad", || -> Result<((), String)> { bail!("two\nlines") }),
            None
        );
        assert_eq!((report.passed, report.failed, report.skipped), (1, 1, 1));
        assert!(!report.close());
        assert!(Report::default().close());
    }
}
