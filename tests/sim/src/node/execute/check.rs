//! Tests with their values filled in, and what they say of a row.

use bytes::Bytes;

use super::super::codec::Bound;
use super::super::cql::Operator;
use super::super::error::CqlError;
use super::super::plan::{Filter, Operand, Test, TupleFilter};
use super::super::schema::{Column, Table};
use super::super::value::{CqlType, elements, entries, fields, list_elements};
use super::functions::RowView;
use super::{Result, key_value, resolve};

/// A test with its values filled in, as keys that compare as values do.
pub(super) enum Check {
    Compare(Operator, Option<Vec<u8>>),
    In(Vec<Option<Vec<u8>>>),
    Contains(Vec<u8>),
    ContainsKey(Vec<u8>),
}

impl Check {
    fn new(test: &Test, values: &[Bound], column: &Column) -> Result<Self> {
        Ok(match test {
            Test::Compare(operator, operand) => {
                let value = match resolve(operand, values) {
                    Bound::Value(bytes) => {
                        column.ty.check(&bytes, &column.name)?;
                        Some(column.ty.sort_key(&bytes))
                    }
                    Bound::Null => None,
                    Bound::Unset => return Err(unset(column)),
                };
                Self::Compare(*operator, value)
            }
            Test::In(_) | Test::InMarker(_) => {
                let elements = in_values(test, values, column)?;
                let key = |bytes: &Bytes| Some(column.ty.sort_key(bytes));
                Self::In(elements.iter().map(key).collect())
            }
            Test::Contains(operand, ty) => Self::Contains(part_key(operand, ty, values, column)?),
            Test::ContainsKey(operand, ty) => {
                Self::ContainsKey(part_key(operand, ty, values, column)?)
            }
        })
    }

    /// As a condition: a list may name null, which is the absence of a value.
    pub(super) fn of_condition(test: &Test, values: &[Bound], column: &Column) -> Result<Self> {
        let Test::In(operands) = test else {
            return Self::new(test, values, column);
        };
        let elements: Result<Vec<Option<Vec<u8>>>> = operands
            .iter()
            .map(|operand| match resolve(operand, values) {
                Bound::Null => Ok(None),
                _ => {
                    let bytes = key_value(operand, values, column)?;
                    Ok(Some(column.ty.sort_key(&bytes)))
                }
            })
            .collect();
        elements.map(Self::In)
    }

    /// `nulls_match`: in conditions `= null` tests for absence, in WHERE nothing equals null.
    pub(super) fn holds(&self, value: Option<&Bytes>, ty: &CqlType, nulls_match: bool) -> bool {
        match self {
            Self::Contains(key) => value.is_some_and(|bytes| contains(bytes, ty, key)),
            Self::ContainsKey(key) => value.is_some_and(|bytes| contains_key(bytes, ty, key)),
            _ => self.holds_key(value.map(|bytes| ty.sort_key(bytes)), nulls_match),
        }
    }

    fn holds_key(&self, value: Option<Vec<u8>>, nulls_match: bool) -> bool {
        match self {
            Self::Compare(operator, expected) => match (value, expected) {
                (Some(value), Some(expected)) => match operator {
                    Operator::Equal => value == *expected,
                    Operator::NotEqual => value != *expected,
                    Operator::Less => value < *expected,
                    Operator::LessOrEqual => value <= *expected,
                    Operator::Greater => value > *expected,
                    Operator::GreaterOrEqual => value >= *expected,
                },
                (None, None) => nulls_match && *operator == Operator::Equal,
                _ => nulls_match && *operator == Operator::NotEqual,
            },
            Self::In(expected) => (nulls_match || value.is_some()) && expected.contains(&value),
            Self::Contains(_) | Self::ContainsKey(_) => false,
        }
    }
}

fn unset(column: &Column) -> CqlError {
    CqlError::Invalid(format!("Invalid unset value for column {}", column.name))
}

/// The key of what a collection is to contain.
fn part_key(operand: &Operand, ty: &CqlType, values: &[Bound], column: &Column) -> Result<Vec<u8>> {
    let part = Column {
        ty: ty.clone(),
        ..column.clone()
    };
    key_value(operand, values, &part).map(|bytes| ty.sort_key(&bytes))
}

fn contains(bytes: &[u8], ty: &CqlType, key: &[u8]) -> bool {
    match ty.thawed() {
        CqlType::List(element) | CqlType::Set(element) => elements(bytes)
            .is_some_and(|parts| parts.iter().any(|part| element.sort_key(part) == key)),
        CqlType::Map(_, value) => entries(bytes)
            .is_some_and(|parts| parts.iter().any(|[_, part]| value.sort_key(part) == key)),
        _ => false,
    }
}

fn contains_key(bytes: &[u8], ty: &CqlType, key: &[u8]) -> bool {
    match ty.thawed() {
        CqlType::Map(of, _) => entries(bytes)
            .is_some_and(|parts| parts.iter().any(|[part, _]| of.sort_key(part) == key)),
        _ => false,
    }
}

/// All tests of a SELECT that rows must pass one by one.
pub(super) struct RowChecks {
    columns: Vec<(usize, Check)>,
    tuples: Vec<(Vec<usize>, Check)>,
}

impl RowChecks {
    pub(super) fn new(
        table: &Table,
        filters: &[Filter],
        tuples: &[TupleFilter],
        values: &[Bound],
    ) -> Result<Self> {
        let columns: Result<Vec<_>> = filters
            .iter()
            .map(|filter| {
                let column = &table.columns[filter.column];
                Ok((filter.column, Check::new(&filter.test, values, column)?))
            })
            .collect();
        let tuples: Result<Vec<_>> = tuples
            .iter()
            .map(|filter| Ok((filter.columns.clone(), tuple_check(filter, values)?)))
            .collect();
        Ok(Self {
            columns: columns?,
            tuples: tuples?,
        })
    }

    pub(super) fn pass(&self, table: &Table, row: &dyn RowView) -> bool {
        let single = self.columns.iter().all(|(column, check)| {
            let ty = &table.columns[*column].ty;
            check.holds(row.value(*column).as_ref(), ty, false)
        });
        single
            && self.tuples.iter().all(|(columns, check)| {
                let parts: Option<Vec<Bytes>> =
                    columns.iter().map(|column| row.value(*column)).collect();
                let key = parts.map(|parts| {
                    let types = columns.iter().map(|column| &table.columns[*column].ty);
                    tuple_key(types.zip(parts.iter().map(|part| &part[..])))
                });
                check.holds_key(key, false)
            })
    }
}

/// A test of several columns, whose parts must all be there.
fn tuple_check(filter: &TupleFilter, values: &[Bound]) -> Result<Check> {
    let column = &filter.tuple;
    let key = |bytes: &Bytes| {
        let types = column.ty.inner();
        let parts: Option<Vec<&[u8]>> = fields(bytes)
            .filter(|parts| parts.len() == types.len())
            .and_then(|parts| parts.into_iter().collect());
        let parts = parts.ok_or_else(|| {
            CqlError::Invalid(format!(
                "Invalid null value in condition for columns {}",
                column.name
            ))
        })?;
        Ok(tuple_key(types.into_iter().zip(parts)))
    };
    let keys: Result<Vec<Vec<u8>>> = in_values(&filter.test, values, column)?
        .iter()
        .map(key)
        .collect();
    let mut keys = keys?;
    Ok(match (&filter.test, keys.len()) {
        (Test::Compare(operator, _), 1) => Check::Compare(*operator, keys.pop()),
        _ => Check::In(keys.into_iter().map(Some).collect()),
    })
}

/// Compares as tuples do, whatever order the columns are stored in.
fn tuple_key<'a>(parts: impl Iterator<Item = (&'a CqlType, &'a [u8])>) -> Vec<u8> {
    let mut key = Vec::new();
    for (ty, part) in parts {
        ty.put_sort_key(part, false, &mut key);
    }
    key
}

/// The values of an equality or an IN.
pub(super) fn in_values(test: &Test, values: &[Bound], column: &Column) -> Result<Vec<Bytes>> {
    match test {
        Test::Compare(_, operand) => Ok(vec![key_value(operand, values, column)?]),
        Test::In(operands) => operands
            .iter()
            .map(|operand| key_value(operand, values, column))
            .collect(),
        Test::InMarker(at) => {
            let refuse =
                || CqlError::Invalid(format!("Invalid null value for IN({})", column.name));
            let Some(Bound::Value(list)) = values.get(*at) else {
                return Err(refuse());
            };
            let elements = list_elements(list).ok_or_else(refuse)?;
            let elements: Option<Vec<Bytes>> = elements.into_iter().collect();
            let elements = elements.ok_or_else(refuse)?;
            for element in &elements {
                column.ty.check(element, &column.name)?;
            }
            Ok(elements)
        }
        Test::Contains(..) | Test::ContainsKey(..) => Err(CqlError::invalid(
            "Cannot use CONTAINS on a column of the key",
        )),
    }
}
