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
                self.failed += 1;
                let reason = format!("{error:#}").replace('\n', "\n        ");
                say(format_args!("  FAIL  {seconds:6.1} s  {name}: {reason}"));
                None
            }
        }
    }

    /// Notes a part that is left out for a reason that the repository lists.
    pub fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        say(format_args!("  skip            {name}: {reason}"));
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
        report.skip("left out", "listed");
        assert_eq!(
            report.step("bad", || -> Result<((), String)> { bail!("two\nlines") }),
            None
        );
        assert_eq!((report.passed, report.failed, report.skipped), (1, 1, 1));
        assert!(!report.close());
        assert!(Report::default().close());
    }
}
