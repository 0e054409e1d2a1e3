//! A histogram of latencies, drawn with characters.

use console::style;
use hdrhistogram::Histogram;

use crate::figures::{micros, percent};

/// Cells of the longest bar.
const WIDTH: u64 = 40;

/// A line for each bucket from the fastest to the slowest; each bucket is twice as wide as the one
/// before. Buckets of less than a thousandth at either end are drawn as one.
pub(super) fn draw(latency_us: &Histogram<u64>) -> Vec<String> {
    let buckets = buckets(latency_us);
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let width = |end: &dyn Fn(&Bucket) -> String| {
        let texts = buckets.iter().map(|bucket| end(bucket).chars().count());
        texts.max().unwrap_or(0)
    };
    let until = |bucket: &Bucket| micros(bucket.until);
    let (until_width, all) = (width(&until), latency_us.len().max(1));
    let line = |bucket: &Bucket| {
        format!(
            "  {} {:>until_width$}  {}  {}",
            style("<").dim(),
            until(bucket),
            style(bar(bucket.count, most)).cyan(),
            style(share(bucket.count, all)).dim()
        )
    };
    buckets.iter().map(line).collect()
}

/// Latencies below `until` that are in no bucket before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    until: u64,
    count: u64,
}

/// Buckets from the first to the last that is not empty.
fn buckets(latency_us: &Histogram<u64>) -> Vec<Bucket> {
    let mut buckets = Vec::new();
    if latency_us.is_empty() {
        return buckets;
    }
    let mut until = UNTIL_MIN;
    let mut counted = 0;
    while counted < latency_us.len() {
        let below = latency_us.count_between(0, until - 1);
        if below > 0 {
            buckets.push(Bucket {
                until,
                count: below.saturating_sub(counted),
            });
        }
        counted = counted.max(below);
        if until == u64::MAX {
            break;
        }
        until = next_until(until);
    }
    buckets
}

/// Where the first bucket ends, in microseconds.
const UNTIL_MIN: u64 = 10;

/// 10, 20, 50, 100, 200, 500, …
fn next_until(until: u64) -> u64 {
    let mut power = 1_u64;
    while until / power >= 10 {
        power = power.saturating_mul(10);
    }
    match until / power {
        2 => power.saturating_mul(5),
        _ => until.saturating_mul(2),
    }
}

/// Whole cells, and one in eighths.
fn bar(count: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(count) * u128::from(WIDTH * 8) / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    if bar.is_empty() && count > 0 {
        bar.push('▏');
    }
    bar
}

#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
fn share(count: u64, all: u64) -> String {
    match count {
        0 => String::new(),
        _ if count * 1000 < all => "< 0.1 %".to_owned(),
        _ => percent(count as f64 / all as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_in_three_steps_for_each_power_of_ten() {
        let mut until = UNTIL_MIN;
        let ends: Vec<u64> = core::iter::repeat_with(|| {
            let end = until;
            until = next_until(until);
            end
        })
        .take(8)
        .collect();
        assert_eq!(ends, [10, 20, 50, 100, 200, 500, 1000, 2000]);
        assert_eq!(next_until(u64::MAX), u64::MAX);
    }

    #[test]
    fn all_latencies_are_in_one_bucket() {
        let mut latencies = crate::latency::histogram();
        assert_eq!(buckets(&latencies), []);
        for latency in [1, 45, 99, 100, 100, 3000] {
            latencies.record(latency).unwrap();
        }
        let count = |until, count| Bucket { until, count };
        assert_eq!(
            buckets(&latencies),
            [
                count(10, 1),
                count(20, 0),
                count(50, 1),
                count(100, 1),
                count(200, 2),
                count(500, 0),
                count(1000, 0),
                count(2000, 0),
                count(5000, 1),
            ]
        );
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        for (count, most, expected) in [
            (0, 10, ""),
            (1, 1_000_000, "▏"),
            (1, 320, "▏"),
            (2, 320, "▎"),
            (10, 320, "█▎"),
        ] {
            assert_eq!(bar(count, most), expected, "{count} of {most}");
        }
        assert_eq!(bar(7, 7).chars().count(), 40);
    }
}
