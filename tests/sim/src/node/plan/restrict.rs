//! Which tests of a SELECT lead to rows, which only filter what is read, and whether that is
//! allowed.

use std::sync::Arc;

use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::schema::{IndexTarget, Table};
use super::{Filter, Result, SelectPlan, Test, TupleFilter};

const REFUSAL: &str = "Cannot execute this query as it might involve data filtering and thus may \
                       have unpredictable performance. If you want to execute this query despite \
                       the performance unpredictability, use ALLOW FILTERING";

/// Moves the tests that lead to rows out of the filters; the rest must be allowed.
pub(super) fn restrict(plan: &mut SelectPlan, allow_filtering: bool) -> Result<()> {
    let table = Arc::clone(&plan.table);
    check_tuples(plan)?;
    let key: Option<Vec<usize>> = (0..table.partition_len)
        .map(|column| {
            plan.filters
                .iter()
                .position(|filter| filter.column == column && names_values(&filter.test))
        })
        .collect();
    let mut refusal = None;
    if let Some(positions) = key {
        let tests = positions.iter().map(|at| plan.filters[*at].test.clone());
        plan.key = Some(tests.collect());
        remove(&mut plan.filters, positions);
        take_prefix(plan);
        refusal = refusal.or_else(|| gap(plan));
    } else if !plan.filters.is_empty() || !plan.tuples.is_empty() {
        refusal = Some(key_refusal(plan));
    }
    let is_value = |filter: &Filter| filter.column >= table.key_len();
    if plan.filters.iter().any(is_value) {
        refusal = refusal.or_else(|| Some(REFUSAL.to_owned()));
    }
    let Some(refusal) = refusal else {
        return Ok(());
    };
    if is_by_index(plan, &table) {
        return Ok(());
    }
    plan.filtering = true;
    if allow_filtering {
        return Ok(());
    }
    Err(CqlError::Invalid(refusal))
}

pub(super) const MIXED: &str = "Mixing single column relations and multi column relations on \
                                clustering columns is not allowed";

fn check_tuples(plan: &SelectPlan) -> Result<()> {
    for filter in &plan.tuples {
        check_tuple(&plan.table, filter)?;
    }
    let single = |filter: &Filter| plan.table.is_clustering(filter.column);
    if !plan.tuples.is_empty() && plan.filters.iter().any(single) {
        return Err(CqlError::invalid(MIXED));
    }
    Ok(())
}

/// A test of several columns begins at the first clustering column and has no gaps.
pub(super) fn check_tuple(table: &Table, filter: &TupleFilter) -> Result<()> {
    let expected = table.partition_len..table.partition_len + filter.columns.len();
    if expected.eq(filter.columns.iter().copied()) {
        return Ok(());
    }
    Err(CqlError::Invalid(format!(
        "Clustering columns may not be skipped in multi-column relations. They should appear in \
         the PRIMARY KEY order. Got {}",
        filter.tuple.name
    )))
}

fn names_values(test: &Test) -> bool {
    matches!(
        test,
        Test::Compare(Operator::Equal, _) | Test::In(_) | Test::InMarker(_)
    )
}

/// Equalities of the leading clustering columns become the prefix.
fn take_prefix(plan: &mut SelectPlan) {
    let mut used = Vec::new();
    for column in plan.table.partition_len..plan.table.key_len() {
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
}

/// What is wrong with tests of clustering columns that do not follow each other: only behind
/// columns that are given by their values may another one be tested.
fn gap(plan: &SelectPlan) -> Option<String> {
    let table = &plan.table;
    let tests = |column: usize| plan.filters.iter().filter(move |f| f.column == column);
    let mut before: Option<String> = None;
    for column in table.partition_len + plan.prefix.len()..table.key_len() {
        let name = &table.columns[column].name;
        let is_tested = tests(column).next().is_some();
        if let Some(refusal) = before.as_ref().filter(|_| is_tested) {
            return Some(format!("\"{name}\" cannot be restricted {refusal}"));
        }
        if !is_tested {
            before
                .get_or_insert_with(|| format!("as preceding column \"{name}\" is not restricted"));
        } else if !tests(column).any(|filter| names_values(&filter.test)) {
            before.get_or_insert_with(|| {
                format!("(preceding column \"{name}\" is restricted by a non-EQ relation)")
            });
        }
    }
    None
}

/// Why a partition key does not name partitions.
fn key_refusal(plan: &SelectPlan) -> String {
    let table = &plan.table;
    let ranged = plan
        .filters
        .iter()
        .any(|filter| filter.column < table.partition_len && !names_values(&filter.test));
    if ranged {
        return "Only EQ and IN relation are supported on the partition key (unless you use the \
                token() function or allow filtering)"
            .to_owned();
    }
    REFUSAL.to_owned()
}

/// One test of an indexed column needs no filtering.
fn is_by_index(plan: &SelectPlan, table: &Table) -> bool {
    let [filter] = plan.filters.as_slice() else {
        return false;
    };
    let fits = |target| match filter.test {
        Test::Compare(Operator::Equal, _) => {
            matches!(target, IndexTarget::Value | IndexTarget::Full)
        }
        Test::Contains(..) => target == IndexTarget::Values,
        Test::ContainsKey(..) => target == IndexTarget::Keys,
        _ => false,
    };
    let mut indexes = table.indexes_of(filter.column);
    plan.tuples.is_empty() && indexes.any(|index| fits(index.target))
}

fn remove(filters: &mut Vec<Filter>, mut positions: Vec<usize>) {
    positions.sort_unstable();
    for at in positions.into_iter().rev() {
        filters.remove(at);
    }
}
