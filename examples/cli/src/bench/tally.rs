//! Counting what requests came to.

use core::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::latency;

/// Figures of many requests.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Of requests that were answered well, in microseconds.
    pub(super) latency_us: Histogram<u64>,
    pub(super) rows: u64,
    /// Answers that taught the driver a tablet.
    pub(super) taught: u64,
    /// By kind, in order of first appearance, with the first of each.
    pub(super) errors: Vec<(Failure, u64)>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            latency_us: latency::histogram(),
            rows: 0,
            taught: 0,
            errors: Vec::new(),
        }
    }

    /// A request that was answered with so many rows.
    pub(super) fn answered(&mut self, latency: Duration, rows: u64, taught: bool) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latency_us.saturating_record(micros);
        self.rows += rows;
        self.taught += u64::from(taught);
    }

    /// A request that failed, or brought what it must not.
    pub(super) fn failed(&mut self, failure: Failure) {
        self.add_errors(failure, 1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        // Both have the same bounds, so that adding cannot fail.
        let _ = self.latency_us.add(&other.latency_us);
        self.rows += other.rows;
        self.taught += other.taught;
        for (failure, count) in &other.errors {
            self.add_errors(failure.clone(), *count);
        }
    }

    /// All requests.
    pub(super) fn requests(&self) -> u64 {
        self.latency_us.len() + self.errors.iter().map(|(_, count)| count).sum::<u64>()
    }

    fn add_errors(&mut self, failure: Failure, more: u64) {
        let mut known = self.errors.iter_mut();
        match known.find(|(known, _)| known.kind() == failure.kind()) {
            Some((_, count)) => *count += more,
            None => self.errors.push((failure, more)),
        }
    }
}
