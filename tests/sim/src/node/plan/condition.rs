//! IF clauses, and the columns that a conditional statement answers with.
//!
//! A ScyllaDB node shows the same columns whether a statement was applied or not; a plain node
//! shows `[applied]` alone when it was, or when there is no row to show.

use std::sync::Arc;

use super::super::cql::{Condition, Part, Relation, Selector, Subject};
use super::super::error::CqlError;
use super::super::schema::{Column, Role, Table};
use super::super::value::CqlType;
use super::expression::Expression;
use super::planner::Planner;
use super::{Metadata, ModifyPlan, Result, Test};

#[derive(Clone, Debug)]
pub(crate) enum If {
    NotExists,
    Exists,
    Columns(Vec<Tested>),
}

/// A condition on a column, or on a part of its value.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    pub(crate) column: usize,
    /// How to come by the part, and the part as if it were a column.
    pub(crate) part: Option<(Expression, Column)>,
    pub(crate) test: Test,
}

/// The IF clause of a statement.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) test: If,
    pub(crate) shown: Shown,
}

impl Conditional {
    /// Whether a column of the role is tested.
    pub(crate) fn tests(&self, table: &Table, role: Role) -> bool {
        match &self.test {
            If::Columns(filters) => filters
                .iter()
                .any(|filter| table.columns[filter.column].role == role),
            If::NotExists | If::Exists => false,
        }
    }
}

/// `[applied]` and the columns after it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) columns: Vec<usize>,
    pub(crate) metadata: Arc<Metadata>,
    /// Metadata of `[applied]` alone, on plain nodes.
    pub(crate) plain: Option<Arc<Metadata>>,
}

impl Shown {
    fn new(table: &Table, mut columns: Vec<usize>, plain: bool) -> Self {
        columns.sort_unstable();
        columns.dedup();
        let applied = || ("[applied]".to_owned(), CqlType::BOOLEAN);
        let shown = columns.iter().map(|at| {
            let column = &table.columns[*at];
            (column.name.clone(), column.ty.clone())
        });
        let metadata = Metadata::new(table, core::iter::once(applied()).chain(shown).collect());
        Self {
            columns,
            metadata,
            plain: plain.then(|| Metadata::new(table, vec![applied()])),
        }
    }

    /// Of a batch: the whole key and what its statements show.
    pub(super) fn of_batch(statements: &[&ModifyPlan]) -> Self {
        let table = &statements[0].table;
        let conditions = || {
            statements
                .iter()
                .filter_map(|plan| plan.condition.as_ref())
                .map(|condition| &condition.shown)
        };
        let columns = conditions().flat_map(|shown| shown.columns.iter().copied());
        let plain = conditions().any(|shown| shown.plain.is_some());
        Self::new(table, (0..table.key_len()).chain(columns).collect(), plain)
    }

    /// The metadata, if it is the same for every answer.
    pub(super) fn fixed(&self) -> Option<&Arc<Metadata>> {
        self.plain.is_none().then_some(&self.metadata)
    }
}

impl Planner<'_> {
    pub(super) fn condition(
        &mut self,
        table: &Table,
        condition: Condition,
    ) -> Result<Option<Conditional>> {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let (test, shown) = match condition {
            Condition::None => return Ok(None),
            Condition::NotExists => (If::NotExists, all),
            Condition::Exists => (If::Exists, all),
            Condition::Columns(relations) => {
                let filters: Result<Vec<Tested>> = relations
                    .into_iter()
                    .map(|relation| self.condition_on_column(table, relation))
                    .collect();
                let filters = filters?;
                let shown = filters.iter().map(|filter| filter.column).collect();
                (If::Columns(filters), shown)
            }
        };
        Ok(Some(Conditional {
            test,
            shown: Shown::new(table, shown, self.plain),
        }))
    }

    fn condition_on_column(&mut self, table: &Table, relation: Relation) -> Result<Tested> {
        let (name, part) = match relation.subject {
            Subject::Column(name) => (name, Part::Whole),
            Subject::Part(name, part) => (name, part),
            Subject::Tuple(_) | Subject::Token(_) => {
                return Err(CqlError::invalid("Conditions are about single columns"));
            }
        };
        let column = Self::column(table, &name)?;
        if column < table.key_len() {
            return Err(CqlError::Invalid(format!(
                "PRIMARY KEY column '{name}' cannot have IF conditions"
            )));
        }
        let part = self.tested_part(table, &name, part)?;
        let tested = part
            .as_ref()
            .map_or(&table.columns[column], |(_, part)| part);
        let test = self.comparison(table, tested, relation.comparison)?;
        Ok(Tested { column, part, test })
    }

    fn tested_part(
        &mut self,
        table: &Table,
        name: &str,
        part: Part,
    ) -> Result<Option<(Expression, Column)>> {
        let of = Box::new(Selector::Column(name.to_owned()));
        let selector = match part {
            Part::Whole => return Ok(None),
            Part::Element(key) => Selector::Element(of, key),
            Part::Field(field) => Selector::Field(of, field),
        };
        let (expression, ty, shown) = self.selected(table, selector)?;
        let column = Column {
            id: 0,
            name: shown,
            ty,
            role: Role::Regular,
        };
        Ok(Some((expression, column)))
    }
}
