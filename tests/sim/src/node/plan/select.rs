//! Planning of SELECT: result columns, which tests lead to rows and which only filter them.

use std::sync::Arc;

use super::super::cql::{Comparison, Operator, Relation, Select, Subject};
use super::super::error::CqlError;
use super::super::schema::{Role, Table};
use super::super::value::CqlType;
use super::planner::Planner;
use super::{Bounds, Filter, Result, SelectPlan, Test};

impl Planner<'_> {
    pub(super) fn select(&mut self, select: Select) -> Result<SelectPlan> {
        Self::timeout(&select.using)?;
        let table = self.table(&select.table)?;
        let (outputs, metadata) = self.outputs(&table, select.selectors)?;
        let (filters, token_range) = self.relations(&table, select.relations)?;
        let limit = self.attribute(&table, select.limit, "[limit]", &CqlType::INT)?;
        let per_partition_limit = self.attribute(
            &table,
            select.per_partition_limit,
            "[per_partition_limit]",
            &CqlType::INT,
        )?;
        let mut plan = SelectPlan {
            reversed: reversed(&table, &select.order)?,
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
            if !select.order.is_empty() && plan.key.is_none() {
                return Err(CqlError::invalid(
                    "ORDER BY is only supported when the partition key is restricted by an EQ or \
                     an IN.",
                ));
            }
        }
        Ok(plan)
    }

    fn relations(
        &mut self,
        table: &Table,
        relations: Vec<Relation>,
    ) -> Result<(Vec<Filter>, Bounds)> {
        let (mut filters, mut token_range) = (Vec::new(), Vec::new());
        for Relation {
            subject,
            comparison,
        } in relations
        {
            match subject {
                Subject::Column(name) => {
                    let column = Self::column(table, &name)?;
                    let test = self.comparison(table, column, comparison)?;
                    if matches!(test, Test::Compare(Operator::NotEqual, _)) {
                        let text = format!("Unsupported \"!=\" relation: {name} != ...");
                        return Err(CqlError::Invalid(text));
                    }
                    filters.push(Filter { column, test });
                }
                Subject::Token(columns) => {
                    check_token_columns(table, &columns)?;
                    let Comparison::Compare(operator, term) = comparison else {
                        return Err(CqlError::invalid("IN cannot be used with token()"));
                    };
                    let name = "partition key token";
                    let operand = self.operand(table, term, name, &CqlType::BIGINT)?;
                    token_range.push((operator, operand));
                }
            }
        }
        Ok((filters, token_range))
    }
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

/// Moves the tests that lead to rows out of the filters; the rest must be allowed.
fn restrict(plan: &mut SelectPlan, allow_filtering: bool) -> Result<()> {
    const REFUSAL: &str = "Cannot execute this query as it might involve data filtering and thus \
                           may have unpredictable performance. If you want to execute this query \
                           despite the performance unpredictability, use ALLOW FILTERING";
    let table = Arc::clone(&plan.table);
    let selects = |filter: &Filter, column: usize| {
        filter.column == column
            && matches!(
                filter.test,
                Test::Compare(Operator::Equal, _) | Test::In(_) | Test::InMarker(_)
            )
    };
    let key: Option<Vec<usize>> = (0..table.partition_len)
        .map(|column| {
            plan.filters
                .iter()
                .position(|filter| selects(filter, column))
        })
        .collect();
    let mut key_filters = false;
    if let Some(positions) = key {
        plan.key = Some(
            positions
                .iter()
                .map(|at| plan.filters[*at].test.clone())
                .collect(),
        );
        remove(&mut plan.filters, positions);
        let mut used = Vec::new();
        for column in table.partition_len..table.key_len() {
            let at = plan.filters.iter().position(|filter| {
                filter.column == column && matches!(filter.test, Test::Compare(Operator::Equal, _))
            });
            let Some(at) = at else { break };
            if let Test::Compare(_, operand) = &plan.filters[at].test {
                plan.prefix.push(operand.clone());
                used.push(at);
            }
        }
        remove(&mut plan.filters, used);
    } else {
        key_filters = !plan.filters.is_empty();
    }
    // An IN lets the next clustering column be restricted as well.
    let listed = |column: usize| {
        plan.filters.iter().any(|filter| {
            filter.column == column && matches!(filter.test, Test::In(_) | Test::InMarker(_))
        })
    };
    let mut last = table.partition_len + plan.prefix.len();
    while listed(last) {
        last += 1;
    }
    let beyond = plan
        .filters
        .iter()
        .any(|filter| filter.column > last || filter.column >= table.key_len());
    let is_indexed = |filter: &Filter| {
        table.index_of(filter.column).is_some()
            && matches!(filter.test, Test::Compare(Operator::Equal, _))
    };
    let by_index = plan.filters.iter().any(is_indexed) && plan.filters.len() == 1;
    if (key_filters || beyond) && !by_index && !allow_filtering {
        return Err(CqlError::invalid(REFUSAL));
    }
    Ok(())
}

fn remove(filters: &mut Vec<Filter>, mut positions: Vec<usize>) {
    positions.sort_unstable();
    for at in positions.into_iter().rev() {
        filters.remove(at);
    }
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
