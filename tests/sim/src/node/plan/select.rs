//! Planning of SELECT: its clauses one by one, and which of them go together.

use super::super::cql::{Comparison, Operator, Relation, Select, Subject, Term};
use super::super::error::CqlError;
use super::super::schema::{Column, Role, Table};
use super::super::value::CqlType;
use super::expression::{Expression, Place};
use super::planner::Planner;
use super::restrict::restrict;
use super::{Bounds, Filter, Operand, Output, Result, SelectPlan, Test, TupleFilter};

impl Planner<'_> {
    pub(super) fn select(&mut self, select: Select) -> Result<SelectPlan> {
        let table = self.table(&select.table)?;
        let (outputs, metadata) = self.outputs(&table, select.selectors)?;
        let Relations {
            filters,
            tuples,
            token_range,
        } = self.relations(&table, select.relations)?;
        let limit = self.attribute(&table, select.limit, "[limit]", &CqlType::INT)?;
        let per_partition_limit = self.attribute(
            &table,
            select.per_partition_limit,
            "[per_partition_limit]",
            &CqlType::INT,
        )?;
        self.timeout(&table, select.using.timeout)?;
        let mut plan = SelectPlan {
            reversed: reversed(&table, &select.order)?,
            ordered: !select.order.is_empty(),
            distinct: select.distinct,
            group: Vec::new(),
            filtering: false,
            tuples,
            table,
            outputs,
            metadata,
            key: None,
            token_range,
            prefix: Vec::new(),
            filters,
            limit,
            per_partition_limit,
        };
        if !plan.table.is_virtual {
            restrict(&mut plan, select.allow_filtering)?;
            if plan.ordered && plan.key.is_none() {
                return Err(CqlError::invalid(
                    "ORDER BY is only supported when the partition key is restricted by an EQ or \
                     an IN.",
                ));
            }
        }
        plan.group = group(&plan, &select.group)?;
        check_distinct(&plan)?;
        if plan.per_partition_limit.is_some() && plan.aggregates() {
            return Err(CqlError::invalid(
                "PER PARTITION LIMIT is not allowed with aggregate queries.",
            ));
        }
        Ok(plan)
    }

    fn relations(&mut self, table: &Table, relations: Vec<Relation>) -> Result<Relations> {
        let mut out = Relations::default();
        for Relation {
            subject,
            comparison,
        } in relations
        {
            match subject {
                Subject::Column(name) => {
                    let column = Self::column(table, &name)?;
                    let test = self.comparison(table, &table.columns[column], comparison)?;
                    check_operator(&test, &name)?;
                    out.filters.push(Filter { column, test });
                }
                Subject::Tuple(names) => {
                    let filter = self.tuple_filter(table, &names, comparison)?;
                    check_operator(&filter.test, &filter.tuple.name)?;
                    out.tuples.push(filter);
                }
                Subject::Part(name, _) => {
                    return Err(CqlError::Invalid(format!(
                        "Parts of {name} cannot be tested in WHERE by this node"
                    )));
                }
                Subject::Token(columns) => {
                    check_token_columns(table, &columns)?;
                    let Comparison::Compare(operator, term) = comparison else {
                        return Err(CqlError::invalid("IN cannot be used with token()"));
                    };
                    let name = "partition key token";
                    let operand = self.operand(table, term, name, &CqlType::BIGINT)?;
                    out.token_range.push((operator, operand));
                }
            }
        }
        Ok(out)
    }

    /// `(a, b) > (1, 2)`: the columns are compared as one tuple.
    pub(super) fn tuple_filter(
        &mut self,
        table: &Table,
        names: &[String],
        comparison: Comparison,
    ) -> Result<TupleFilter> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = Self::column(table, name)?;
            if !table.is_clustering(column) {
                return Err(CqlError::Invalid(format!(
                    "Multi-column relations can only be applied to clustering columns but was \
                     applied to: {name}"
                )));
            }
            columns.push(column);
        }
        let types = columns
            .iter()
            .map(|column| table.columns[*column].ty.clone());
        let tuple = Column {
            name: format!("({})", names.join(",")),
            ty: CqlType::Tuple(types.collect()),
            ..table.columns[columns[0]].clone()
        };
        let test = match comparison {
            Comparison::Compare(operator, term) => {
                Test::Compare(operator, self.tuple_operand(table, &columns, &tuple, term)?)
            }
            Comparison::In(terms) => {
                let operands: Result<Vec<Operand>> = terms
                    .into_iter()
                    .map(|term| self.tuple_operand(table, &columns, &tuple, term))
                    .collect();
                Test::In(operands?)
            }
            other => self.comparison(table, &tuple, other)?,
        };
        Ok(TupleFilter {
            columns,
            tuple,
            test,
        })
    }

    /// A tuple written out has its parts named by their columns.
    fn tuple_operand(
        &mut self,
        table: &Table,
        columns: &[usize],
        tuple: &Column,
        term: Term,
    ) -> Result<Operand> {
        let Term::Tuple(terms) = term else {
            return self.operand(table, term, &tuple.name, &tuple.ty);
        };
        if terms.len() != columns.len() {
            return Err(CqlError::Invalid(format!(
                "Expected {} elements in value tuple for {}, but got {}",
                columns.len(),
                tuple.name,
                terms.len()
            )));
        }
        let parts: Result<Vec<Expression>> = columns
            .iter()
            .zip(terms)
            .map(|(column, term)| {
                let Column { name, ty, .. } = &table.columns[*column];
                self.expression(Place { table, name }, term, ty)
            })
            .collect();
        Ok(self.computed(Expression::Fields(parts?)))
    }
}

/// The tests of a WHERE clause by kind.
#[derive(Default)]
struct Relations {
    filters: Vec<Filter>,
    tuples: Vec<TupleFilter>,
    token_range: Bounds,
}

fn check_operator(test: &Test, name: &str) -> Result<()> {
    if matches!(test, Test::Compare(Operator::NotEqual, _)) {
        let text = format!("Unsupported \"!=\" relation: {name} != ...");
        return Err(CqlError::Invalid(text));
    }
    Ok(())
}

/// Positions of the columns of GROUP BY: key columns in their order, of which those that have one
/// value anyway may be left out.
fn group(plan: &SelectPlan, names: &[String]) -> Result<Vec<usize>> {
    let table = &plan.table;
    let single = |column: usize| match column.checked_sub(table.partition_len) {
        Some(at) => at < plan.prefix.len(),
        None => plan.single_key().is_some(),
    };
    let mut next = 0;
    let mut group = Vec::with_capacity(names.len());
    for name in names {
        let column = Planner::column(table, name)?;
        if column >= table.key_len() {
            return Err(CqlError::Invalid(format!(
                "Group by is currently only supported on the columns of the PRIMARY KEY, got {name}"
            )));
        }
        while next < column && single(next) {
            next += 1;
        }
        if next != column {
            return Err(CqlError::Invalid(format!(
                "Group by currently only support groups of columns following their declared order \
                 in the PRIMARY KEY, got {name}"
            )));
        }
        next = column + 1;
        group.push(column);
    }
    if !group.is_empty() && next < table.partition_len && !(next..table.partition_len).all(single) {
        return Err(CqlError::invalid(
            "Group by must name all columns of the partition key",
        ));
    }
    Ok(group)
}

/// SELECT DISTINCT is about partitions.
fn check_distinct(plan: &SelectPlan) -> Result<()> {
    if !plan.distinct {
        return Ok(());
    }
    let table = &plan.table;
    let shared = |column: &usize| {
        matches!(
            table.columns[*column].role,
            Role::PartitionKey | Role::Static
        )
    };
    let shown = plan.outputs.iter().map(|output| match output {
        Output::Value(Expression::Column(column)) => Some(column),
        _ => None,
    });
    for column in shown {
        match column {
            Some(column) if shared(column) => {}
            Some(column) => {
                return Err(CqlError::Invalid(format!(
                    "SELECT DISTINCT queries must only request partition key columns and/or \
                     static columns (not {})",
                    table.columns[*column].name
                )));
            }
            None => {
                return Err(CqlError::invalid(
                    "SELECT DISTINCT queries must only request partition key columns and/or \
                     static columns",
                ));
            }
        }
    }
    let restricted = !plan.prefix.is_empty()
        || !plan.tuples.is_empty()
        || plan.filters.iter().any(|filter| !shared(&filter.column));
    if restricted {
        return Err(CqlError::invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or \
             static columns.",
        ));
    }
    if plan.per_partition_limit.is_some() {
        return Err(CqlError::invalid(
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ));
    }
    Ok(())
}

/// Whether ORDER BY asks for the opposite of the stored order.
fn reversed(table: &Table, order: &[(String, bool)]) -> Result<bool> {
    let mut reversed = None;
    for (at, (name, descending)) in order.iter().enumerate() {
        let column = table
            .clustering_columns()
            .get(at)
            .filter(|column| column.name == *name);
        let Some(column) = column else {
            return Err(CqlError::Invalid(format!(
                "Order by currently only supports the ordering of clustering columns, in their \
                 order; got {name}"
            )));
        };
        let opposite = column.role
            != (Role::Clustering {
                descending: *descending,
            });
        if *reversed.get_or_insert(opposite) != opposite {
            return Err(CqlError::invalid("Unsupported order by relation"));
        }
    }
    Ok(reversed.unwrap_or(false))
}

fn check_token_columns(table: &Table, columns: &[String]) -> Result<()> {
    let key = table.partition_columns().iter().map(|column| &column.name);
    if key.eq(columns.iter()) {
        return Ok(());
    }
    Err(CqlError::invalid(
        "The token() function must contain all partition key components in their order",
    ))
}
