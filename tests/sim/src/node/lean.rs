//! Fixed answers, for benchmarks of clients: statements that bind the whole partition key are
//! routed and counted as ever and get their routing payload, but rows are neither stored nor read.
//!
//! A read gives one row with the same values each time, made once for each set of columns. What is
//! not so simple (conditions, aggregates, literals in the key, scans, batches) goes the usual way.

use std::collections::HashMap;
use std::sync::Arc;

use super::cluster::Cluster;
use super::codec::{Bound, Writer};
use super::error::CqlError;
use super::execute::{Executed, Execution, Outcome, Rows};
use super::plan::{Metadata, Plan, Prepared};
use super::route::Request;
use super::schema::Table;
use super::token::{partition_key, token_of};
use super::value::{CqlType, Native};

/// Sets of columns whose row is kept.
const KEPT_MAX: usize = 10_000;

/// Rows that are given as answers, by metadata id.
pub(crate) type LeanRows = HashMap<[u8; 16], Writer>;

impl Cluster {
    /// The fixed answer, or none where the usual way is taken.
    pub(super) fn execute_lean(
        &mut self,
        prepared: &Prepared,
        run: &Execution,
    ) -> Option<Result<Executed, CqlError>> {
        if !self.options.lean || prepared.key_markers.is_empty() {
            return None;
        }
        let (table, metadata) = match &prepared.plan {
            Plan::Select(plan) if !plan.table.is_virtual && !plan.aggregates() => {
                (&plan.table, Some(&plan.metadata))
            }
            Plan::Modify(plan) if plan.condition.is_none() => (&plan.table, None),
            _ => return None,
        };
        let token = token(prepared, &run.values)?;
        let request = Request {
            write: metadata.is_none(),
            conditional: false,
            key_bound: true,
            consistency: run.consistency,
        };
        Some(self.answer_lean(table, metadata, token, request, run))
    }

    fn answer_lean(
        &mut self,
        table: &Arc<Table>,
        metadata: Option<&Arc<Metadata>>,
        token: i64,
        request: Request,
        run: &Execution,
    ) -> Result<Executed, CqlError> {
        let route = self.route(table, token);
        self.classify(table, &run.caller, &route, request);
        self.limit_rate(table, &run.caller, &route, request)?;
        self.check_available(&run.caller, &route, request)?;
        let outcome = match metadata {
            Some(metadata) => Outcome::Rows(Rows {
                metadata: Arc::clone(metadata),
                count: 1,
                cells: self.lean_row(metadata),
                paging_state: None,
            }),
            None => Outcome::Void,
        };
        Ok(Executed {
            outcome,
            payload: self.payload(table, &run.caller, &route, request),
            warnings: Vec::new(),
        })
    }

    fn lean_row(&mut self, metadata: &Metadata) -> Writer {
        if self.lean_rows.len() >= KEPT_MAX {
            self.lean_rows.clear();
        }
        let make = || {
            let mut cells = Writer::default();
            for (_, ty) in &metadata.columns {
                put_sample(ty, &mut cells);
            }
            cells
        };
        self.lean_rows
            .entry(metadata.id)
            .or_insert_with(make)
            .clone()
    }
}

/// The token of the key that the markers bind; none where a value is missing.
fn token(prepared: &Prepared, values: &[Bound]) -> Option<i64> {
    if prepared.variables.len() != values.len() {
        return None;
    }
    let mut components = Vec::with_capacity(prepared.key_markers.len());
    for at in &prepared.key_markers {
        match values.get(usize::from(*at)) {
            Some(Bound::Value(bytes)) if !bytes.is_empty() => components.push(&bytes[..]),
            _ => return None,
        }
    }
    partition_key(components.into_iter()).map(|key| token_of(&key))
}

/// Puts a value of a type, length first.
fn put_sample(ty: &CqlType, out: &mut Writer) {
    let value: &[u8] = match ty {
        CqlType::Frozen(inner) => return put_sample(inner, out),
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => &[0; 4],
        CqlType::Native(native) => sample(*native),
        CqlType::Tuple(elements) => {
            let mut fields = Writer::default();
            elements.iter().for_each(|ty| put_sample(ty, &mut fields));
            return out.bytes(fields.as_slice());
        }
        CqlType::User(user) => {
            let mut fields = Writer::default();
            let types = user.fields.iter().map(|(_, ty)| ty);
            types.for_each(|ty| put_sample(ty, &mut fields));
            return out.bytes(fields.as_slice());
        }
        // Its elements may stand without lengths; a null is one as well.
        CqlType::Vector(..) => return out.value(None),
    };
    out.bytes(value);
}

const fn sample(native: Native) -> &'static [u8] {
    match native {
        Native::Ascii | Native::Text => b"the same for everybody",
        Native::Blob => &[0xa5; 32],
        Native::BigInt | Native::Counter | Native::Timestamp | Native::Time | Native::Double => {
            &[0, 0, 0, 0, 0, 0, 0, 42]
        }
        Native::Int | Native::Float => &[0, 0, 0, 42],
        Native::Date => &[0x80, 0, 0, 42],
        Native::SmallInt => &[0, 42],
        Native::TinyInt | Native::Varint => &[42],
        Native::Boolean => &[1],
        Native::Decimal => &[0, 0, 0, 1, 42],
        Native::Inet => &[127, 0, 0, 1],
        // Months, days and nanoseconds, each zigzag.
        Native::Duration => &[2, 2, 2],
        Native::Uuid => b"\x00\x00\x00\x00\x00\x00\x40\x00\x80\x00\x00\x00\x00\x00\x00\x2a",
        Native::TimeUuid => b"\x13\x81\x40\x00\x1d\xd2\x11\xb2\x80\x00\x00\x00\x00\x00\x00\x2a",
    }
}
