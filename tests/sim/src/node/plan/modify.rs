//! Planning of INSERT, UPDATE and DELETE.

use std::sync::Arc;

use super::super::cql::{
    Assignment, Condition, Modify, ModifyKind, Operator, Part, Relation, Subject, Term,
};
use super::super::error::CqlError;
use super::super::schema::Table;
use super::super::value::CqlType;
use super::planner::Planner;
use super::{Action, Bounds, Filter, If, Metadata, ModifyPlan, Operand, Result, Test};

/// An operand for the column at a position.
type Keyed = (usize, Operand);

impl Planner<'_> {
    pub(super) fn modify(&mut self, modify: Modify) -> Result<ModifyPlan> {
        let Modify {
            table,
            kind,
            using,
            relations,
            condition,
        } = modify;
        Self::timeout(&using)?;
        let table = self.writable(&table)?;
        let strong = self
            .catalogue
            .keyspace(&table.keyspace)
            .is_some_and(|k| k.is_strong());
        if strong && using.timestamp.is_some() {
            return Err(CqlError::invalid(
                "Strongly consistent queries don't support user-provided timestamps",
            ));
        }
        if strong && condition != Condition::None {
            return Err(CqlError::invalid(
                "Strongly consistent updates don't support data prefetch",
            ));
        }
        let is_insert = matches!(kind, ModifyKind::Insert(_));
        if is_insert && table.is_counter() {
            return Err(CqlError::invalid(
                "INSERT statements are not allowed on counter tables, use UPDATE instead",
            ));
        }
        if !table.static_columns().is_empty() {
            return Err(CqlError::invalid("static columns cannot be written yet"));
        }
        // Markers are described in the order of the text, so that types are known whatever fails.
        let timestamp = self.attribute(&table, using.timestamp, "[timestamp]", &CqlType::BIGINT)?;
        let ttl = self.attribute(&table, using.ttl, "[ttl]", &CqlType::INT)?;
        let (action, mut keys) = self.action(&table, kind)?;
        let range = self.where_clause(&table, relations, &action, &mut keys)?;
        let (key, prefix) = split_key(&table, keys)?;
        let wants_row = !matches!(action, Action::DeleteRows);
        if (wants_row || is_insert) && prefix.len() < table.clustering_len {
            let missing = &table.clustering_columns()[prefix.len()].name;
            let text = format!("Missing mandatory PRIMARY KEY part {missing}");
            return Err(CqlError::Invalid(text));
        }
        let range = bounds_after(&table, prefix.len(), range)?;
        let (condition, metadata) = self.condition(&table, condition)?;
        if condition.is_some() && prefix.len() < table.clustering_len {
            return Err(CqlError::invalid(
                "IN on the clustering key columns or a missing one is not supported with \
                 conditional deletions",
            ));
        }
        Ok(ModifyPlan {
            table,
            key,
            prefix,
            range,
            action,
            timestamp,
            ttl,
            condition,
            metadata,
        })
    }

    /// Equalities go to `keys`, other bounds (DELETE only) are given back by column.
    fn where_clause(
        &mut self,
        table: &Table,
        relations: Vec<Relation>,
        action: &Action,
        keys: &mut Vec<Keyed>,
    ) -> Result<Vec<(usize, Operator, Operand)>> {
        let may_range = matches!(action, Action::DeleteRows);
        let mut range = Vec::new();
        for Relation {
            subject,
            comparison,
        } in relations
        {
            let Subject::Column(name) = subject else {
                return Err(CqlError::invalid(
                    "The token function cannot be used in WHERE clauses for UPDATE and DELETE",
                ));
            };
            let column = Self::column(table, &name)?;
            if column >= table.key_len() {
                let text = format!("Non PRIMARY KEY {name} found in where clause");
                return Err(CqlError::Invalid(text));
            }
            match self.comparison(table, column, comparison)? {
                Test::Compare(Operator::Equal, operand) => keys.push((column, operand)),
                Test::Compare(operator, operand) if may_range && column >= table.partition_len => {
                    range.push((column, operator, operand));
                }
                _ => {
                    return Err(CqlError::Invalid(format!(
                        "Unsupported relation on {name} in UPDATE or DELETE"
                    )));
                }
            }
        }
        Ok(range)
    }

    fn action(&mut self, table: &Table, kind: ModifyKind) -> Result<(Action, Vec<Keyed>)> {
        let is_insert = matches!(kind, ModifyKind::Insert(_));
        match kind {
            ModifyKind::Insert(_) | ModifyKind::Update(_) => {
                let pairs = match kind {
                    ModifyKind::Insert(pairs) => pairs,
                    ModifyKind::Update(assignments) => whole(assignments)?,
                    ModifyKind::Delete(_) => Vec::new(),
                };
                let (mut sets, mut keys) = (Vec::new(), Vec::new());
                for (name, term) in pairs {
                    let at = Self::column(table, &name)?;
                    if at < table.key_len() && !is_insert {
                        let text = format!("PRIMARY KEY part {name} found in SET part");
                        return Err(CqlError::Invalid(text));
                    }
                    if table.columns[at].is_counter() {
                        return Err(CqlError::Invalid(format!(
                            "Cannot set the value of counter column {name} (counters can only be \
                             incremented/decremented, not set)"
                        )));
                    }
                    let ty = table.columns[at].ty.clone();
                    let operand = self.operand(table, term, &name, &ty)?;
                    let target = if at < table.key_len() {
                        &mut keys
                    } else {
                        &mut sets
                    };
                    if target.iter().any(|(known, _)| *known == at) {
                        let text = format!("Multiple definitions found for column {name}");
                        return Err(CqlError::Invalid(text));
                    }
                    target.push((at, operand));
                }
                let action = if is_insert {
                    Action::Insert(sets)
                } else {
                    Action::Update(sets)
                };
                Ok((action, keys))
            }
            ModifyKind::Delete(columns) if columns.is_empty() => {
                Ok((Action::DeleteRows, Vec::new()))
            }
            ModifyKind::Delete(columns) => {
                let mut positions = Vec::new();
                for (name, part) in columns {
                    let at = Self::column(table, &name)?;
                    if part != Part::Whole {
                        return Err(CqlError::invalid("parts of values cannot be deleted yet"));
                    }
                    if at < table.key_len() {
                        let text =
                            format!("Invalid identifier {name} for deletion (PRIMARY KEY part)");
                        return Err(CqlError::Invalid(text));
                    }
                    positions.push(at);
                }
                Ok((Action::DeleteCells(positions), Vec::new()))
            }
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "the two halves of ModifyPlan it fills"
    )]
    fn condition(
        &mut self,
        table: &Table,
        condition: Condition,
    ) -> Result<(Option<If>, Option<(Arc<Metadata>, Vec<usize>)>)> {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let (condition, shown) = match condition {
            Condition::None => return Ok((None, None)),
            Condition::NotExists => (If::NotExists, all),
            Condition::Exists => (If::Exists, all),
            Condition::Columns(relations) => {
                let mut filters = Vec::new();
                for Relation {
                    subject,
                    comparison,
                } in relations
                {
                    let Subject::Column(name) = subject else {
                        return Err(CqlError::invalid("token() cannot be used in conditions"));
                    };
                    let column = Self::column(table, &name)?;
                    if column < table.key_len() {
                        return Err(CqlError::Invalid(format!(
                            "PRIMARY KEY column '{name}' cannot have IF conditions"
                        )));
                    }
                    let test = self.comparison(table, column, comparison)?;
                    filters.push(Filter { column, test });
                }
                let mut shown: Vec<usize> = filters.iter().map(|filter| filter.column).collect();
                shown.sort_unstable();
                shown.dedup();
                (If::Columns(filters), shown)
            }
        };
        let applied = ("[applied]".to_owned(), CqlType::BOOLEAN);
        let columns = shown.iter().map(|at| {
            let column = &table.columns[*at];
            (column.name.clone(), column.ty.clone())
        });
        let metadata = Metadata::new(table, core::iter::once(applied).chain(columns).collect());
        Ok((Some(condition), Some((metadata, shown))))
    }
}

/// Assignments that set whole columns.
fn whole(assignments: Vec<(String, Assignment)>) -> Result<Vec<(String, Term)>> {
    assignments
        .into_iter()
        .map(|(name, assignment)| match assignment {
            Assignment::Set(Part::Whole, term) => Ok((name, term)),
            _ => Err(CqlError::Invalid(format!(
                "Invalid operation for non counter column {name}"
            ))),
        })
        .collect()
}

/// Bounds, all of the clustering column that comes after the `given` ones.
fn bounds_after(
    table: &Table,
    given: usize,
    range: Vec<(usize, Operator, Operand)>,
) -> Result<Bounds> {
    let next = table.partition_len + given;
    range
        .into_iter()
        .map(|(column, operator, operand)| {
            if column == next {
                return Ok((operator, operand));
            }
            let name = &table.columns[column].name;
            Err(CqlError::Invalid(format!(
                "PRIMARY KEY column \"{name}\" cannot be restricted"
            )))
        })
        .collect()
}

/// Key values in the order of the key; clustering ones may end early but not have gaps.
fn split_key(table: &Table, mut keys: Vec<Keyed>) -> Result<(Vec<Operand>, Vec<Operand>)> {
    keys.sort_by_key(|(at, _)| *at);
    if let Some(pair) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let name = &table.columns[pair[0].0].name;
        return Err(CqlError::Invalid(format!(
            "{name} cannot be restricted by more than one relation if it includes an Equal"
        )));
    }
    for at in 0..table.partition_len.max(keys.len()) {
        if keys.get(at).map(|(column, _)| *column) != Some(at) {
            let name = &table.columns[at].name;
            return Err(CqlError::Invalid(format!(
                "Missing mandatory PRIMARY KEY part {name}"
            )));
        }
    }
    let mut key: Vec<Operand> = keys.into_iter().map(|(_, operand)| operand).collect();
    let prefix = key.split_off(table.partition_len);
    Ok((key, prefix))
}
