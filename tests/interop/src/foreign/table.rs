//! What came of all visits: a table for people, a file of JSON lines for machines.

use core::fmt;
use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};

use super::judge::{Shares, Visit};
use crate::{compare::Comparison, target::Target};

/// The visits so far, shown as a table.
pub struct Visits {
    table: Table,
    lines: Vec<String>,
}

const HEADING: [&str; 10] = [
    "driver",
    "version",
    "cluster",
    "checks",
    "rows",
    "owner node",
    "owner shard",
    "leader",
    "payloads",
    "errors",
];

impl Visits {
    /// Adds what came of a visit.
    pub fn add(&mut self, visit: &Visit) {
        self.lines.push(visit.to_json().to_string());
        self.table.add_row([
            visit.driver.clone(),
            visit.version.clone(),
            visit.cluster.clone(),
            format!("{}/{}", visit.passed(), visit.verdicts.len()),
            visit.rows.to_string(),
            lowest(visit, |shares| Some(shares.owner_node)),
            lowest(visit, |shares| Some(shares.owner_shard)),
            lowest(visit, |shares| shares.leader),
            count(visit.waste.map(|waste| waste.payloads)),
            count(visit.waste.map(|waste| waste.error_answers)),
        ]);
    }

    /// Adds the lines of a comparison to the file.
    pub fn compare(&mut self, comparison: &Comparison) {
        let lines = comparison.to_json().map(|line| line.to_string());
        self.lines.extend(lines);
    }

    /// Writes `report.json` into the harness's folder, a line for each visit
    /// and for each driver and part of a comparison.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn write(&self, target: &Target) -> Result<PathBuf> {
        let file = target.interop("report.json");
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }
}

impl Default for Visits {
    fn default() -> Self {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_header(HEADING);
        for column in table.column_iter_mut().skip(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Self {
            table,
            lines: Vec::new(),
        }
    }
}

impl fmt::Debug for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Visits").field(&self.lines).finish()
    }
}

impl fmt::Display for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

/// The lowest of the tables' shares: a mean would hide a table behind the others.
fn lowest(visit: &Visit, share: impl Fn(&Shares) -> Option<f64>) -> String {
    let shares = visit.shares.iter().filter_map(|(_, shares)| share(shares));
    let lowest = shares.reduce(f64::min);
    lowest.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_share_and_what_is_not_counted_are_shown() {
        let share = |owner_node: f64, leader: Option<f64>| Shares {
            owner_node,
            owner_shard: 0.25,
            leader,
        };
        let mut visit = Visit {
            driver: "d".to_owned(),
            version: "1".to_owned(),
            cluster: "v2".to_owned(),
            verdicts: Vec::new(),
            rows: 7,
            shares: vec![
                ("a".to_owned(), share(1.0, None)),
                ("b".to_owned(), share(0.5, Some(0.75))),
            ],
            waste: None,
            seconds: 1.5,
        };
        let cells = |visit: &Visit| {
            let mut visits = Visits::default();
            visits.add(visit);
            let text = visits.to_string();
            let last = text.lines().last().unwrap_or_default().to_owned();
            last.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(cells(&visit), "d 1 v2 0/0 7 50.0 % 25.0 % 75.0 % - -");
        visit.shares.clear();
        assert_eq!(cells(&visit), "d 1 v2 0/0 7 - - - - -");
    }
}
