//! INSERT, UPDATE and DELETE as statements of their own.

use super::super::cluster::Cluster;
use super::super::codec::Consistency;
use super::super::error::CqlError;
use super::super::plan::ModifyPlan;
use super::super::route::Request;
use super::super::schema::TableId;
use super::write::{Write, writes};
use super::{Executed, Execution, Outcome, Result};

impl Cluster {
    pub(super) fn modify(
        &mut self,
        plan: &ModifyPlan,
        run: &Execution,
        key_bound: bool,
    ) -> Result<Executed> {
        let conditional = plan.condition.is_some();
        check_levels(&run.levels(), plan.table.is_counter(), conditional)?;
        let strong = self.is_strong(&plan.table);
        let is_quorum = matches!(
            run.consistency,
            Consistency::Quorum | Consistency::LocalQuorum
        );
        if strong && !is_quorum {
            return Err(CqlError::invalid(
                "Strongly consistent writes must use QUORUM/LOCAL_QUORUM consistency level",
            ));
        }
        // Strongly consistent and conditional writes and counters are stamped by the server.
        let stamped = strong || conditional || plan.table.is_counter();
        let default = match run.timestamp.filter(|_| !stamped) {
            Some(given) => given,
            None => self.stamp(run.caller.now),
        };
        let mut writes = writes(plan, &run.values, default, run.caller.now)?;
        let request = Request {
            write: true,
            conditional,
            key_bound,
            consistency: run.consistency,
        };
        if writes.len() != 1 {
            return self.modify_many(plan, run, writes, request);
        }
        let write = writes.remove(0);
        let route = self.route(&plan.table, write.key.0);
        self.classify(&plan.table, &run.caller, &route, request);
        self.limit_rate(&plan.table, &run.caller, &route, request)?;
        self.check_available(&run.caller, &route, request)?;
        let outcome = match &plan.condition {
            Some(condition) => {
                self.check_serial(&run.caller, &route, run.serial_consistency)?;
                let items = [(plan, run.values.as_slice())];
                let rows = self.apply_if(&items, vec![write], &condition.shown, run.caller.now)?;
                Outcome::Rows(rows)
            }
            None => {
                let mut write = write;
                self.settle(&plan.table, &mut write, run.caller.now)?;
                self.apply(plan.table.id, write);
                Outcome::Void
            }
        };
        // As on a real node the write stands when this fails.
        self.check_hazard(&plan.table, &run.caller, &route, request)?;
        let payload = self.payload(&plan.table, &run.caller, &route, request);
        Ok(Executed {
            outcome,
            payload,
            warnings: Vec::new(),
        })
    }

    /// One statement for several partitions, or for none: nothing about routing is told.
    fn modify_many(
        &mut self,
        plan: &ModifyPlan,
        run: &Execution,
        mut writes: Vec<Write>,
        request: Request,
    ) -> Result<Executed> {
        if self.is_strong(&plan.table) {
            return Err(CqlError::invalid(
                "Strongly consistent queries can only target a single partition",
            ));
        }
        for write in &mut writes {
            let route = self.route(&plan.table, write.key.0);
            self.check_available(&run.caller, &route, request)?;
            self.settle(&plan.table, write, run.caller.now)?;
        }
        for write in writes {
            self.apply(plan.table.id, write);
        }
        Ok(Outcome::Void.into())
    }

    pub(super) fn apply(&mut self, table: TableId, write: Write) {
        let rows = self.store.table_mut(table);
        for change in write.changes {
            rows.apply(write.key.clone(), &write.components, write.stamp, change);
        }
    }
}

/// The levels of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) consistency: Consistency,
    /// SERIAL where the request does not say.
    pub(super) serial: Option<Consistency>,
}

/// Which levels which kind of write may have.
pub(super) fn check_levels(levels: &Levels, counter: bool, conditional: bool) -> Result<()> {
    let Levels {
        consistency,
        serial,
    } = levels;
    let refuse = |text: &str| Err(CqlError::invalid(text));
    if conditional {
        if serial.is_some_and(|level| !level.is_serial()) {
            return refuse(
                "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
            );
        }
        if consistency.is_serial() {
            return Err(CqlError::Invalid(format!(
                "{consistency} is not supported as conditional update commit consistency. Use ANY \
                 if you mean \"make sure it is accepted but I don't care how many replicas commit \
                 it for non-SERIAL reads\""
            )));
        }
        return Ok(());
    }
    match (counter, consistency) {
        (true, Consistency::Any) => {
            refuse("Consistency level ANY is not yet supported for counter tables")
        }
        (true, Consistency::Serial | Consistency::LocalSerial) => {
            refuse("Counter operations are inherently non-serializable")
        }
        (false, Consistency::Serial | Consistency::LocalSerial) => {
            refuse("You must use conditional updates for serializable writes")
        }
        _ => Ok(()),
    }
}
