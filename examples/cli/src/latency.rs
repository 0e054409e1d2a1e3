//! Where latencies are collected.

use hdrhistogram::Histogram;

/// For microseconds, with three digits. Reaches to a minute at first and grows if it must.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3)
        .unwrap_or_else(|_| unreachable!("the bounds are good"));
    histogram.auto(true);
    histogram
}
