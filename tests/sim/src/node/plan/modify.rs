//! Planning of INSERT, UPDATE and DELETE.

use super::super::codec::Bound;
use super::super::cql::{
    Assignment, Comparison, Condition, Modify, ModifyKind, Operator, Part, Relation, Subject, Term,
    Using,
};
use super::super::error::CqlError;
use super::super::schema::{Role, Table};
use super::super::value::CqlType;
use super::planner::Planner;
use super::restrict::{MIXED, check_tuple};
use super::{Action, Bounds, ModifyPlan, Operand, Result, Test, TupleFilter, Update, single};

/// A test of the key column at a position.
type Keyed = (usize, Test);

impl Planner<'_> {
    pub(super) fn modify(&mut self, modify: Modify) -> Result<ModifyPlan> {
        let Modify {
            table,
            kind,
            using,
            relations,
            condition,
        } = modify;
        let table = self.writable(&table)?;
        self.check_attributes(&table, &using, &condition)?;
        let verb = match kind {
            ModifyKind::Insert(_) => "INSERT",
            ModifyKind::Update(_) => "UPDATE",
            ModifyKind::Delete(_) => "DELETE",
        };
        if verb == "INSERT" && table.is_counter() {
            return Err(CqlError::invalid(
                "INSERT statements are not allowed on counter tables, use UPDATE instead",
            ));
        }
        // Markers are described in the order of the text, so that types are known whatever fails.
        let timestamp = self.attribute(&table, using.timestamp, "[timestamp]", &CqlType::BIGINT)?;
        let ttl = self.attribute(&table, using.ttl, "[ttl]", &CqlType::INT)?;
        self.timeout(&table, using.timeout)?;
        let (action, mut keys) = self.action(&table, kind)?;
        let mut tuples = Vec::new();
        let relations = relations
            .into_iter()
            .filter_map(|relation| match relation.subject {
                Subject::Tuple(names) => {
                    tuples.push((names, relation.comparison));
                    None
                }
                _ => Some(relation),
            })
            .collect();
        let range = self.where_clause(&table, relations, &action, &mut keys)?;
        let tuples = self.tuple_bounds(&table, tuples, &action)?;
        let (key, prefix) = split_key(&table, keys)?;
        let range = bounds_after(&table, prefix.len(), range)?;
        let condition = self.condition(&table, condition)?;
        let plan = ModifyPlan {
            table,
            key,
            prefix,
            range,
            tuples,
            action,
            timestamp,
            ttl,
            condition,
        };
        let by_column = !plan.prefix.is_empty() || !plan.range.is_empty();
        if by_column && !plan.tuples.is_empty() {
            return Err(CqlError::invalid(MIXED));
        }
        check_rows(&plan, verb)?;
        check_conditional(&plan)?;
        Ok(plan)
    }

    /// What USING and IF may not be given together with, and with which tables.
    fn check_attributes(&self, table: &Table, using: &Using, condition: &Condition) -> Result<()> {
        let strong = self
            .catalogue
            .keyspace(&table.keyspace)
            .is_some_and(|keyspace| keyspace.is_strong());
        let conditional = *condition != Condition::None;
        let refusals = [
            (
                strong && using.timestamp.is_some(),
                "Strongly consistent queries don't support user-provided timestamps",
            ),
            (
                strong && conditional,
                "Strongly consistent updates don't support data prefetch",
            ),
            (
                conditional && using.timestamp.is_some(),
                "Cannot provide custom timestamp for conditional updates",
            ),
            (
                conditional && table.is_counter(),
                "Conditional updates are not supported on counter tables",
            ),
            (
                table.is_counter() && using.timestamp.is_some(),
                "Cannot provide custom timestamp for counter updates",
            ),
            (
                table.is_counter() && using.ttl.is_some(),
                "Cannot provide custom TTL for counter updates",
            ),
        ];
        match refusals.into_iter().find(|(refused, _)| *refused) {
            Some((_, text)) => Err(CqlError::invalid(text)),
            None => Ok(()),
        }
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
            match self.comparison(table, &table.columns[column], comparison)? {
                test @ (Test::Compare(Operator::Equal, _) | Test::In(_) | Test::InMarker(_)) => {
                    keys.push((column, test));
                }
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

    /// Bounds of several columns: DELETE only, and a range only where all are stored in one
    /// direction.
    fn tuple_bounds(
        &mut self,
        table: &Table,
        tuples: Vec<(Vec<String>, Comparison)>,
        action: &Action,
    ) -> Result<Vec<TupleFilter>> {
        let mut bounds = Vec::with_capacity(tuples.len());
        for (names, comparison) in tuples {
            let filter = self.tuple_filter(table, &names, comparison)?;
            check_tuple(table, &filter)?;
            let roles = filter.columns.iter().map(|at| table.columns[*at].role);
            let one_way = roles.clone().all(|role| Some(role) == roles.clone().next());
            let is_bound = match &filter.test {
                Test::Compare(Operator::Equal, _) => true,
                Test::Compare(operator, _) => *operator != Operator::NotEqual && one_way,
                _ => false,
            };
            if !matches!(action, Action::DeleteRows) || !is_bound {
                return Err(CqlError::Invalid(format!(
                    "Unsupported relation on {} in UPDATE or DELETE",
                    filter.tuple.name
                )));
            }
            bounds.push(filter);
        }
        Ok(bounds)
    }

    fn action(&mut self, table: &Table, kind: ModifyKind) -> Result<(Action, Vec<Keyed>)> {
        let (mut updates, mut keys) = (Vec::new(), Vec::new());
        let mark = matches!(kind, ModifyKind::Insert(_));
        match kind {
            ModifyKind::Insert(pairs) => {
                for (name, term) in pairs {
                    let at = Self::column(table, &name)?;
                    check_repeated(&name, keys.iter().any(|(known, _)| *known == at))?;
                    if at < table.key_len() {
                        let ty = table.columns[at].ty.clone();
                        let operand = self.operand(table, term, &name, &ty)?;
                        keys.push((at, Test::Compare(Operator::Equal, operand)));
                        continue;
                    }
                    check_repeated(&name, updates.iter().any(|(known, _)| *known == at))?;
                    let assignment = Assignment::Set(Part::Whole, term);
                    updates.push((at, self.update(table, at, assignment)?));
                }
            }
            ModifyKind::Update(assignments) => {
                for (name, assignment) in assignments {
                    let at = value_column(table, &name, "found in SET part")?;
                    let whole = matches!(assignment, Assignment::Set(Part::Whole, _));
                    let known = updates.iter().any(|(known, _)| *known == at);
                    check_repeated(&name, whole && known)?;
                    updates.push((at, self.update(table, at, assignment)?));
                }
            }
            ModifyKind::Delete(columns) if columns.is_empty() => {
                return Ok((Action::DeleteRows, Vec::new()));
            }
            ModifyKind::Delete(columns) => {
                for (name, part) in columns {
                    let at = value_column(table, &name, "cannot be deleted")?;
                    let column = &table.columns[at];
                    let update = if column.ty.is_multi_cell() {
                        Update::Parts(self.parts_deletion(table, column, part)?)
                    } else if part == Part::Whole {
                        Update::Set(Operand::Fixed(Bound::Null))
                    } else {
                        return Err(CqlError::Invalid(format!(
                            "Invalid deletion operation for column {name} of type {}",
                            column.ty
                        )));
                    };
                    updates.push((at, update));
                }
            }
        }
        Ok((Action::Cells { mark, updates }, keys))
    }

    /// What an assignment does to the column at a position.
    fn update(&mut self, table: &Table, at: usize, assignment: Assignment) -> Result<Update> {
        let column = &table.columns[at];
        let name = &column.name;
        if column.ty.is_multi_cell() {
            return self
                .parts_update(table, column, assignment)
                .map(Update::Parts);
        }
        // A counter's marker has its type; what is written out is a bigint.
        let mut operand = |term| match (&term, column.is_counter()) {
            (Term::Marker(_), _) | (_, false) => self.operand(table, term, name, &column.ty),
            (_, true) => self.operand(table, term, name, &CqlType::BIGINT),
        };
        match (assignment, column.is_counter()) {
            (Assignment::Add(term), true) => Ok(Update::Count {
                delta: operand(term)?,
                down: false,
            }),
            (Assignment::Subtract(term), true) => Ok(Update::Count {
                delta: operand(term)?,
                down: true,
            }),
            (_, true) => Err(CqlError::Invalid(format!(
                "Cannot set the value of counter column {name} (counters can only be \
                 incremented/decremented, not set)"
            ))),
            (Assignment::Set(Part::Whole, term), false) => Ok(Update::Set(operand(term)?)),
            _ => Err(CqlError::Invalid(format!(
                "Invalid operation for non counter column {name}"
            ))),
        }
    }
}

fn check_repeated(name: &str, repeated: bool) -> Result<()> {
    if repeated {
        let text = format!("Multiple definitions found for column {name}");
        return Err(CqlError::Invalid(text));
    }
    Ok(())
}

/// The position of a column that is not of the key.
fn value_column(table: &Table, name: &str, refusal: &str) -> Result<usize> {
    let at = Planner::column(table, name)?;
    if at < table.key_len() {
        return Err(CqlError::Invalid(format!(
            "PRIMARY KEY part {name} {refusal}"
        )));
    }
    Ok(at)
}

/// Which part of the clustering key each kind of change needs.
fn check_rows(plan: &ModifyPlan, verb: &str) -> Result<()> {
    let table = &plan.table;
    let Action::Cells { updates, .. } = &plan.action else {
        return Ok(());
    };
    let is_static = |(at, _): &(usize, Update)| table.columns[*at].role == Role::Static;
    let only_statics = !updates.is_empty() && updates.iter().all(is_static);
    if only_statics && (plan.prefix.is_empty() || verb != "INSERT") {
        let tests_rows = plan
            .condition
            .as_ref()
            .is_some_and(|condition| condition.tests(table, Role::Regular));
        if !plan.prefix.is_empty() && !tests_rows {
            return Err(CqlError::Invalid(format!(
                "Invalid restrictions on clustering columns since the {verb} statement modifies \
                 only static columns"
            )));
        }
        return Ok(());
    }
    match table.clustering_columns().get(plan.prefix.len()) {
        Some(missing) => Err(CqlError::Invalid(format!(
            "Missing mandatory PRIMARY KEY part {}",
            missing.name
        ))),
        None => Ok(()),
    }
}

/// A condition is about one row, or about the static values of one partition.
fn check_conditional(plan: &ModifyPlan) -> Result<()> {
    let Some(condition) = &plan.condition else {
        return Ok(());
    };
    let tests_rows = condition.tests(&plan.table, Role::Regular)
        || (matches!(plan.action, Action::DeleteRows)
            && !condition.tests(&plan.table, Role::Static));
    if tests_rows && (plan.prefix.len() < plan.table.clustering_len || !plan.range.is_empty()) {
        return Err(CqlError::invalid(
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in \
             order to use IF conditions on non static columns",
        ));
    }
    if plan.key.iter().any(|test| single(test).is_none()) {
        return Err(CqlError::invalid(
            "IN on the partition key is not supported with conditional updates",
        ));
    }
    if plan.prefix.iter().any(|test| single(test).is_none()) {
        return Err(CqlError::invalid(
            "IN on the clustering key columns is not supported with conditional updates",
        ));
    }
    Ok(())
}

/// Bounds, all of the clustering column that comes after the `given` ones.
///
/// A range has one start and one end.
fn bounds_after(
    table: &Table,
    given: usize,
    range: Vec<(usize, Operator, Operand)>,
) -> Result<Bounds> {
    let next = table.partition_len + given;
    for (what, operators) in [
        ("start", [Operator::Greater, Operator::GreaterOrEqual]),
        ("end", [Operator::Less, Operator::LessOrEqual]),
    ] {
        let same = range
            .iter()
            .filter(|(_, operator, _)| operators.contains(operator));
        if same.count() > 1 {
            let name = &table.columns[next].name;
            return Err(CqlError::Invalid(format!(
                "More than one restriction was found for the {what} bound on {name}"
            )));
        }
    }
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
fn split_key(table: &Table, mut keys: Vec<Keyed>) -> Result<(Vec<Test>, Vec<Test>)> {
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
    let mut key: Vec<Test> = keys.into_iter().map(|(_, test)| test).collect();
    let prefix = key.split_off(table.partition_len);
    Ok((key, prefix))
}
