//! Statements judged against the schema: names found, types known, bind variables described.
//!
//! A plan holds the table it was made for; the catalogue's change drops it from the caches. Nothing
//! is read or written here.

mod batch;
mod collections;
mod condition;
mod expression;
mod function;
mod modify;
mod planner;
mod restrict;
mod select;
mod selection;

use std::sync::Arc;

use sha2::{Digest, Sha256};

pub(crate) use self::batch::BatchPlan;
pub(crate) use self::collections::PartsUpdate;
pub(crate) use self::condition::{Conditional, If, Shown};
pub(crate) use self::expression::Expression;
pub(crate) use self::function::{Aggregate, Function};
pub(crate) use self::selection::Output;

use self::planner::Planner;
pub(crate) use self::planner::check_timeout;
use super::codec::{Bound, Writer};
use super::cql::{Operator, Parsed, SchemaStatement, parse};
use super::error::CqlError;
use super::schema::{Catalogue, Column, Table};
use super::value::CqlType;

type Result<T> = core::result::Result<T, CqlError>;

/// A value to be.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Fixed(Bound),
    /// A bind variable by its number.
    Marker(usize),
    /// A computed value by its number, which goes on after those of the bind variables.
    Computed(usize),
}

/// Comparisons of one subject.
pub(crate) type Bounds = Vec<(Operator, Operand)>;

/// A bind variable as PREPARED describes it.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) ty: CqlType,
}

/// Result columns, all of one table.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) columns: Vec<(String, CqlType)>,
    pub(crate) id: [u8; 16],
}

impl Metadata {
    fn new(table: &Table, columns: Vec<(String, CqlType)>) -> Arc<Self> {
        let id = metadata_id(&columns);
        Arc::new(Self {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            columns,
            id,
        })
    }

    /// Puts keyspace, table and columns.
    pub(crate) fn put(&self, out: &mut Writer) {
        out.string(&self.keyspace);
        out.string(&self.table);
        for (name, ty) in &self.columns {
            out.string(name);
            ty.put_option(out);
        }
    }
}

/// SHA-256 over names and Java type names, cut to 16 bytes.
pub(crate) fn metadata_id(columns: &[(String, CqlType)]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for (name, ty) in columns {
        for text in [name.as_str(), &ty.java_name()] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id
}

/// A test of one column.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) column: usize,
    pub(crate) test: Test,
}

/// What a value must satisfy.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Compare(Operator, Operand),
    In(Vec<Operand>),
    InMarker(usize),
    /// With the type of what the collection is to contain.
    Contains(Operand, CqlType),
    ContainsKey(Operand, CqlType),
}

/// A test of several clustering columns together.
#[derive(Clone, Debug)]
pub(crate) struct TupleFilter {
    pub(crate) columns: Vec<usize>,
    /// The columns as if they were one.
    pub(crate) tuple: Column,
    pub(crate) test: Test,
}

#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) metadata: Arc<Metadata>,
    /// Tests that fix the partition key, in its order; none for a scan.
    pub(crate) key: Option<Vec<Test>>,
    pub(crate) token_range: Bounds,
    /// Values of the leading clustering columns.
    pub(crate) prefix: Vec<Operand>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) tuples: Vec<TupleFilter>,
    /// Rows are read that the result does not show.
    pub(crate) filtering: bool,
    /// One row per partition.
    pub(crate) distinct: bool,
    /// Key columns whose values tell groups apart.
    pub(crate) group: Vec<usize>,
    /// There is an ORDER BY.
    pub(crate) ordered: bool,
    pub(crate) reversed: bool,
    pub(crate) limit: Option<Operand>,
    pub(crate) per_partition_limit: Option<Operand>,
}

impl SelectPlan {
    /// Whether many rows become one.
    pub(crate) fn aggregates(&self) -> bool {
        !self.group.is_empty() || self.outputs.iter().any(Output::is_aggregate)
    }

    /// Whether at most one row can come.
    pub(crate) fn is_single_row(&self) -> bool {
        self.single_key().is_some()
            && (self.distinct || self.prefix.len() == self.table.clustering_len)
    }

    /// The values of the partition key, if it is one partition.
    pub(crate) fn single_key(&self) -> Option<Vec<&Operand>> {
        self.key.as_ref()?.iter().map(single).collect()
    }
}

fn single(test: &Test) -> Option<&Operand> {
    match test {
        Test::Compare(Operator::Equal, operand) => Some(operand),
        Test::In(operands) => match operands.as_slice() {
            [operand] => Some(operand),
            _ => None,
        },
        _ => None,
    }
}

/// What a modification does to the rows it names.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Cells {
        /// INSERT: rows exist even without cells.
        mark: bool,
        updates: Vec<(usize, Update)>,
    },
    DeleteRows,
}

/// What a modification does to a column.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    Set(Operand),
    /// Of a column that is stored in parts.
    Parts(PartsUpdate),
    /// Of a counter.
    Count {
        delta: Operand,
        /// Subtracts.
        down: bool,
    },
}

#[derive(Debug)]
pub(crate) struct ModifyPlan {
    pub(crate) table: Arc<Table>,
    /// Equality or IN, one per partition key column.
    pub(crate) key: Vec<Test>,
    /// Equality or IN of the leading clustering columns.
    pub(crate) prefix: Vec<Test>,
    /// Bounds on the clustering column after the prefix (DELETE only).
    pub(crate) range: Bounds,
    /// Bounds on the leading clustering columns together, instead of prefix and range.
    pub(crate) tuples: Vec<TupleFilter>,
    pub(crate) action: Action,
    pub(crate) timestamp: Option<Operand>,
    pub(crate) ttl: Option<Operand>,
    pub(crate) condition: Option<Conditional>,
}

impl ModifyPlan {
    /// Whether nothing of the clustering key is tested.
    pub(crate) fn names_partitions(&self) -> bool {
        self.prefix.is_empty() && self.range.is_empty() && self.tuples.is_empty()
    }

    /// The values of the partition key, if it is one partition.
    fn single_key(&self) -> Option<Vec<&Operand>> {
        self.key.iter().map(single).collect()
    }
}

#[derive(Debug)]
pub(crate) enum Plan {
    Select(Box<SelectPlan>),
    Modify(Box<ModifyPlan>),
    Batch(Box<BatchPlan>),
    Use(String),
    Truncate(Arc<Table>),
    Schema(Box<SchemaStatement>, Option<String>),
}

/// What planning found out about the values of a statement.
struct Values {
    variables: Vec<Variable>,
    computed: Vec<Expression>,
    timeouts: Vec<Operand>,
}

/// A planned statement with everything PREPARED tells about it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    pub(crate) plan: Plan,
    pub(crate) variables: Vec<Variable>,
    /// Values that the statement computes, to stand after the bound ones.
    pub(crate) computed: Vec<Expression>,
    /// Its timeouts, to be judged with the bound values.
    pub(crate) timeouts: Vec<Operand>,
    /// Positions of the markers that bind the partition key; empty unless all of it is bound.
    pub(crate) key_markers: Vec<u16>,
}

impl Prepared {
    pub(crate) fn metadata(&self) -> Option<&Arc<Metadata>> {
        match &self.plan {
            Plan::Select(select) => Some(&select.metadata),
            Plan::Modify(modify) => modify.condition.as_ref()?.shown.fixed(),
            Plan::Batch(batch) => batch.shown.as_ref()?.fixed(),
            _ => None,
        }
    }

    /// An INSERT, UPDATE or DELETE.
    pub(crate) fn modification(&self) -> Option<&ModifyPlan> {
        match &self.plan {
            Plan::Modify(plan) => Some(plan),
            _ => None,
        }
    }

    /// INSERT, UPDATE or DELETE with IF.
    pub(crate) fn is_conditional(&self) -> bool {
        matches!(&self.plan, Plan::Modify(modify) if modify.condition.is_some())
    }

    /// A SELECT from a table that the node serves from its own state.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(&self.plan, Plan::Select(plan) if plan.table.is_virtual)
    }

    /// Whether it depends on the table.
    pub(crate) fn uses(&self, keyspace: &str, table: Option<&str>) -> bool {
        let is = |found: &Table| {
            found.keyspace == keyspace && table.is_none_or(|table| found.name == table)
        };
        match &self.plan {
            Plan::Select(plan) => is(&plan.table),
            Plan::Modify(plan) => is(&plan.table),
            Plan::Batch(batch) => batch.statements.iter().any(|plan| is(&plan.table)),
            Plan::Truncate(table) => is(table),
            Plan::Use(_) | Plan::Schema(..) => false,
        }
    }
}

/// Parses and plans `text` for a connection whose keyspace is `keyspace`.
///
/// A plain node does not have the tables that only ScyllaDB has.
pub(crate) fn plan(
    catalogue: &Catalogue,
    keyspace: Option<&str>,
    plain: bool,
    text: &str,
) -> Result<Prepared> {
    let Parsed { statement, markers } = parse(text)?;
    let mut planner = Planner::new(catalogue, keyspace, plain, &markers);
    let plan = planner.statement(statement)?;
    let Values {
        variables,
        computed,
        timeouts,
    } = planner
        .into_values()
        .ok_or_else(|| CqlError::invalid("a bind variable stands where none is supported"))?;
    let key_markers = key_markers(&plan);
    Ok(Prepared {
        text: text.to_owned(),
        plan,
        variables,
        computed,
        timeouts,
        key_markers,
    })
}

fn key_markers(plan: &Plan) -> Vec<u16> {
    let markers = |key: Vec<&Operand>| -> Option<Vec<u16>> {
        key.into_iter()
            .map(|operand| match operand {
                Operand::Marker(at) => u16::try_from(*at).ok(),
                Operand::Fixed(_) | Operand::Computed(_) => None,
            })
            .collect()
    };
    let found = match plan {
        Plan::Select(select) => select.single_key().and_then(markers),
        Plan::Modify(modify) => modify.single_key().and_then(markers),
        Plan::Batch(batch) => batch
            .only_table()
            .and_then(|_| batch.statements.first()?.single_key())
            .and_then(markers),
        _ => None,
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::value::{Native, hex};
    use super::*;

    #[test]
    fn metadata_ids_are_those_of_a_real_node() {
        let column = |name: &str, native| (name.to_owned(), CqlType::Native(native));
        let mut columns = vec![column("pk", Native::Int), column("v", Native::Text)];
        assert_eq!(
            hex(&metadata_id(&columns)),
            "7fd77f07d5d660ea5a14242ae564b4d0"
        );
        columns.push(column("w", Native::BigInt));
        assert_eq!(
            hex(&metadata_id(&columns)),
            "50f36f50f1143fcde847b99928cb8f62"
        );
        assert_eq!(hex(&metadata_id(&[])), "e3b0c44298fc1c149afbf4c8996fb924");
        let applied = [
            column("[applied]", Native::Boolean),
            column("pk", Native::Int),
            column("v", Native::Text),
        ];
        assert_eq!(
            hex(&metadata_id(&applied)),
            "0bad9ccf245e8f8d31c347b63462c520"
        );
    }
}
