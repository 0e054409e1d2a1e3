//! Limits on the requests for one partition: `WITH per_partition_rate_limit = {…}`.
//!
//! A limit holds for each whole second: what comes beyond it is refused until the next one. (A real
//! node estimates and refuses at random; a test needs to know.) Conditional statements and counters
//! are not limited.

use std::collections::HashMap;

use super::cluster::Cluster;
use super::cql::OptionValue;
use super::error::CqlError;
use super::route::{Caller, Request, Route};
use super::schema::{Table, TableId};

/// The option's name.
pub(crate) const OPTION: &str = "per_partition_rate_limit";

const MICROS: i64 = 1_000_000;

/// Partitions counted at a time; beyond it counting begins anew.
const COUNTED_MAX: usize = 100_000;

/// Requests of the current second, by table, token and whether they write.
#[derive(Debug, Default)]
pub(crate) struct RateCounters {
    second: i64,
    counts: HashMap<(TableId, i64, bool), u64>,
}

impl RateCounters {
    /// The number of this request among those of its second, from 1.
    fn count(&mut self, key: (TableId, i64, bool), now: i64) -> u64 {
        let second = now.div_euclid(MICROS);
        if second != self.second || self.counts.len() >= COUNTED_MAX {
            self.counts.clear();
            self.second = second;
        }
        let count = self.counts.entry(key).or_default();
        *count += 1;
        *count
    }
}

/// Refuses what a node does not take as the option's value.
pub(crate) fn check(entries: &[(String, String)]) -> Result<(), CqlError> {
    for (key, value) in entries {
        if !matches!(
            key.as_str(),
            "max_reads_per_second" | "max_writes_per_second"
        ) {
            return Err(CqlError::Config(format!(
                "Unknown key in map for {OPTION} option: {key}"
            )));
        }
        if value.parse::<u32>().is_err() {
            return Err(CqlError::Config(format!(
                "Invalid value for {key} in {OPTION}: {value}"
            )));
        }
    }
    Ok(())
}

/// The table's limit for reads or writes.
fn limit(table: &Table, write: bool) -> Option<u64> {
    let (_, value) = table.options.iter().find(|(name, _)| name == OPTION)?;
    let OptionValue::Map(entries) = value else {
        return None;
    };
    let wanted = if write {
        "max_writes_per_second"
    } else {
        "max_reads_per_second"
    };
    let (_, value) = entries.iter().find(|(key, _)| key == wanted)?;
    value.parse().ok()
}

impl Cluster {
    /// Counts a request for a partition, and refuses it if it is one too many.
    pub(crate) fn limit_rate(
        &mut self,
        table: &Table,
        caller: &Caller,
        route: &Route,
        request: Request,
    ) -> Result<(), CqlError> {
        let Some(limit) = limit(table, request.write) else {
            return Ok(());
        };
        let counters = table.columns.iter().any(|column| column.is_counter());
        if request.conditional || request.consistency.is_serial() || counters {
            return Ok(());
        }
        let key = (table.id, route.token, request.write);
        if self.rates.count(key, caller.now) <= limit {
            return Ok(());
        }
        Err(CqlError::RateLimit {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            write: request.write,
            by_coordinator: route.replicas.contains(&caller.at()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_partitions_and_kinds_are_counted_apart() {
        let mut rates = RateCounters::default();
        let (one, two) = ([1; 16], [2; 16]);
        for (expected, key, now) in [
            (1, (one, 7, true), 0),
            (2, (one, 7, true), MICROS - 1),
            (1, (one, 7, false), MICROS - 1),
            (1, (one, 8, true), MICROS - 1),
            (1, (two, 7, true), MICROS - 1),
            (1, (one, 7, true), MICROS),
        ] {
            assert_eq!(rates.count(key, now), expected, "{key:?} at {now}");
        }
    }

    #[test]
    fn only_known_keys_and_whole_numbers_are_taken() {
        for (key, value, good) in [
            ("max_reads_per_second", "1", true),
            ("max_writes_per_second", "0", true),
            ("max_writes_per_second", "-1", false),
            ("max_writes_per_second", "x", false),
            ("max_per_second", "1", false),
        ] {
            let entries = [(key.to_owned(), value.to_owned())];
            assert_eq!(check(&entries).is_ok(), good, "{key} {value}");
        }
    }
}
