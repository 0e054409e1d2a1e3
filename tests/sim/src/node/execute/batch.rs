//! Batches of both kinds: all values are judged before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use super::super::cluster::Cluster;
use super::super::codec::Consistency;
use super::super::cql::BatchKind;
use super::super::error::CqlError;
use super::super::plan::{ModifyPlan, Shown};
use super::super::route::{Caller, Request};
use super::super::schema::TableId;
use super::super::store::PartitionKey;
use super::condition::Item;
use super::modify::{Levels, check_levels};
use super::write::{Write, writes};
use super::{Executed, Outcome, Result};

/// Partitions that an unlogged batch may cover before a plain node warns.
const UNLOGGED_PARTITIONS: usize = 10;

/// A batch to run.
#[derive(Debug)]
pub(crate) struct BatchRun<'a> {
    pub(crate) kind: BatchKind,
    pub(crate) items: Vec<Item<'a>>,
    /// Of a conditional batch.
    pub(crate) shown: Option<&'a Shown>,
    pub(crate) caller: Caller,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Option<Consistency>,
    pub(crate) timestamp: Option<i64>,
}

impl Cluster {
    pub(crate) fn batch(&mut self, run: &BatchRun<'_>) -> Result<Executed> {
        let strong = run
            .items
            .iter()
            .filter(|(plan, _)| self.is_strong(&plan.table))
            .count();
        if strong > 0 && strong < run.items.len() {
            return Err(CqlError::invalid(
                "Cannot mix strongly consistent and eventually consistent statements in a batch",
            ));
        }
        let counter = run.items.iter().any(|(plan, _)| plan.table.is_counter());
        let conditional = run.shown.is_some();
        let levels = Levels {
            consistency: run.consistency,
            serial: run.serial_consistency,
        };
        check_levels(&levels, counter, conditional)?;
        let stamped = strong > 0 || counter || conditional;
        let default = match run.timestamp.filter(|_| !stamped) {
            Some(given) => given,
            None => self.stamp(run.caller.now),
        };
        let writes: Result<Vec<Vec<Write>>> = run
            .items
            .iter()
            .map(|(plan, values)| writes(plan, values, default, run.caller.now))
            .collect();
        let writes = writes?;
        let touched: Vec<(&ModifyPlan, &Write)> = run
            .items
            .iter()
            .zip(&writes)
            .flat_map(|((plan, _), writes)| writes.iter().map(|write| (*plan, write)))
            .collect();
        if strong > 0 {
            check_strong(run.kind, &touched)?;
        }
        let warnings = self.check_size(run, &touched)?;
        self.locate(run, &touched)?;
        let outcome = match run.shown {
            Some(shown) => {
                if !Self::same_partition(touched.iter().map(|(_, write)| &write.key)) {
                    return Err(CqlError::invalid(
                        "BATCH with conditions cannot span multiple partitions",
                    ));
                }
                let writes = writes.into_iter().flatten().collect();
                Outcome::Rows(self.apply_if(&run.items, writes, shown, run.caller.now)?)
            }
            None => {
                let mut writes = writes;
                for ((plan, _), writes) in run.items.iter().zip(&mut writes) {
                    for write in writes {
                        self.settle(&plan.table, write, run.caller.now)?;
                    }
                }
                for ((plan, _), writes) in run.items.iter().zip(writes) {
                    for write in writes {
                        self.apply(plan.table.id, write);
                    }
                }
                Outcome::Void
            }
        };
        Ok(Executed {
            outcome,
            payload: None,
            warnings,
        })
    }

    /// Counts the batch as a request for its first partition; all partitions must be available.
    fn locate(&mut self, run: &BatchRun<'_>, touched: &[(&ModifyPlan, &Write)]) -> Result<()> {
        let request = Request {
            write: true,
            conditional: run.shown.is_some(),
            key_bound: false,
            consistency: run.consistency,
        };
        if let Some((plan, write)) = touched.first() {
            let route = self.route(&plan.table, write.key.0);
            self.classify(&plan.table, &run.caller, &route, request);
        }
        for (plan, write) in touched {
            let route = self.route(&plan.table, write.key.0);
            self.check_available(&run.caller, &route, request)?;
            if request.conditional {
                self.check_serial(&run.caller, &route, run.serial_consistency)?;
            }
        }
        Ok(())
    }

    /// Refuses batches that are far too large, warns of large and of scattered ones.
    fn check_size(
        &self,
        run: &BatchRun<'_>,
        touched: &[(&ModifyPlan, &Write)],
    ) -> Result<Vec<String>> {
        let mut partitions: BTreeSet<(TableId, &PartitionKey)> = BTreeSet::new();
        let mut tables: BTreeMap<TableId, String> = BTreeMap::new();
        for (plan, write) in touched {
            let table = &plan.table;
            partitions.insert((table.id, &write.key));
            tables
                .entry(table.id)
                .or_insert_with(|| format!("{}.{}", table.keyspace, table.name));
        }
        if partitions.len() <= 1 {
            return Ok(Vec::new());
        }
        let plain = self.is_plain(run.caller.node);
        // ScyllaDB's thresholds are 128 and 1024 KiB, Cassandra's 5 and 50.
        let (warn, fail) = if plain {
            (5 << 10, 50 << 10)
        } else {
            (128 << 10, 1024 << 10)
        };
        let size: usize = touched.iter().map(|(_, write)| write.size()).sum();
        let names: Vec<&str> = tables.values().map(String::as_str).collect();
        let names = names.join(", ");
        if size > fail {
            return Err(CqlError::invalid("Batch too large"));
        }
        let mut warnings = Vec::new();
        if size > warn {
            warnings.push(format!(
                "Batch modifying {} partitions in {names} is of size {size} bytes, exceeding \
                 specified WARN threshold of {warn} by {}.",
                partitions.len(),
                size - warn
            ));
        }
        if plain && run.kind == BatchKind::Unlogged && partitions.len() > UNLOGGED_PARTITIONS {
            warnings.push(format!(
                "Unlogged batch covering {} partitions detected against table [{names}]. You \
                 should use a logged batch for atomicity, or asynchronous writes for performance.",
                partitions.len()
            ));
        }
        Ok(warnings)
    }
}

fn check_strong(kind: BatchKind, touched: &[(&ModifyPlan, &Write)]) -> Result<()> {
    if kind == BatchKind::Counter {
        return Err(CqlError::invalid(
            "Strongly consistent tables do not support counter batches",
        ));
    }
    let one_table = touched
        .windows(2)
        .all(|pair| pair[0].0.table.id == pair[1].0.table.id);
    if one_table && Cluster::same_partition(touched.iter().map(|(_, write)| &write.key)) {
        return Ok(());
    }
    Err(CqlError::invalid(
        "Strongly consistent batches must target a single partition of one table",
    ))
}
