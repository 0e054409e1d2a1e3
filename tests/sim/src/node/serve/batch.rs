//! BATCH: its statements, by text and by id, become one run.
//!
//! Neither a metadata id nor a tablet byte is read, whatever the connection has agreed on, and no
//! payload is answered.

use std::sync::Arc;

use super::super::cluster::Cluster;
use super::super::codec::{BatchEntry, BatchRequest, Bound, Reader};
use super::super::connection::Connection;
use super::super::cql::BatchKind;
use super::super::error::CqlError;
use super::super::execute::BatchRun;
use super::super::plan::{BatchPlan, ModifyPlan, Prepared};
use super::super::reply::{Reply, Wish, result};
use super::{Result, caller};

impl Cluster {
    pub(super) fn batch_request(
        &mut self,
        connection: &Connection,
        reader: &mut Reader<'_>,
        now: i64,
    ) -> Result<Reply> {
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.batches += 1;
        }
        let batch = BatchRequest::parse(reader, connection.version_or_newest())?;
        let mut items: Vec<(Arc<Prepared>, Vec<Bound>)> = Vec::new();
        for entry in batch.entries {
            let (prepared, values) = match entry {
                BatchEntry::Query { text, values } => {
                    (Arc::new(self.plan_for(connection, &text)?), values)
                }
                BatchEntry::Prepared { id, values } => (self.known(connection, &id)?, values),
            };
            if prepared.modification().is_none() {
                return Err(CqlError::invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are \
                     allowed.",
                ));
            }
            let (markers, given) = (prepared.variables.len(), values.len());
            if markers != given {
                return Err(CqlError::Invalid(format!(
                    "There were {markers} markers(?) in CQL but {given} bound variables"
                )));
            }
            let values = self.complete(&prepared, &values, now)?;
            items.push((prepared, values));
        }
        let items: Vec<(&ModifyPlan, &[Bound])> = items
            .iter()
            .filter_map(|(prepared, values)| Some((prepared.modification()?, values.as_slice())))
            .collect();
        let kind = BatchKind::from_code(batch.kind);
        let plans: Vec<&ModifyPlan> = items.iter().map(|(plan, _)| *plan).collect();
        let shown = BatchPlan::check(kind, &plans, false)?;
        self.injected(connection)?;
        let executed = self.batch(&BatchRun {
            kind,
            items,
            shown: shown.as_ref(),
            caller: caller(connection, now, false, None),
            consistency: batch.consistency,
            serial_consistency: batch.serial_consistency,
            timestamp: batch.timestamp,
        })?;
        let mut reply = result(&executed.outcome, Wish::Full);
        reply.warnings = executed.warnings;
        self.warn(connection, &mut reply);
        Ok(reply)
    }
}
