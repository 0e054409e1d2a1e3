//! What planning of every statement shares: names, terms, types of bind variables.

use std::sync::Arc;

use super::super::codec::Bound;
use super::super::cql::{
    Comparison, Literal, Statement, TableName, Term, TypeName, Unsupported, Using,
};
use super::super::error::CqlError;
use super::super::schema::{Catalogue, Table};
use super::super::value::CqlType;
use super::expression::{Expression, Place};
use super::{Operand, Plan, Result, Test, Variable};

pub(super) struct Planner<'a> {
    pub(super) catalogue: &'a Catalogue,
    keyspace: Option<&'a str>,
    pub(super) plain: bool,
    names: &'a [Option<String>],
    pub(super) variables: Vec<Option<Variable>>,
    computed: Vec<Expression>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        catalogue: &'a Catalogue,
        keyspace: Option<&'a str>,
        plain: bool,
        names: &'a [Option<String>],
    ) -> Self {
        Self {
            catalogue,
            keyspace,
            plain,
            names,
            variables: vec![None; names.len()],
            computed: Vec::new(),
        }
    }

    /// The bind variables, if every one of them got a type, and the computed values.
    pub(super) fn into_values(self) -> Option<(Vec<Variable>, Vec<Expression>)> {
        let variables: Option<Vec<Variable>> = self.variables.into_iter().collect();
        Some((variables?, self.computed))
    }

    /// The type that a text means beside a table.
    pub(super) fn resolve(&self, table: &Table, ty: &TypeName) -> Result<CqlType> {
        match self.catalogue.keyspace(&table.keyspace) {
            Some(keyspace) => keyspace.resolve(ty),
            None => CqlType::resolve(ty, &table.keyspace, &|_| None),
        }
    }

    pub(super) fn statement(&mut self, statement: Statement) -> Result<Plan> {
        match statement {
            Statement::Select(select) => self.select(select).map(|plan| Plan::Select(plan.into())),
            Statement::Modify(modify) => self.modify(modify).map(|plan| Plan::Modify(plan.into())),
            Statement::Batch(batch) => self.batch(batch),
            Statement::Use(name) => Ok(Plan::Use(name)),
            Statement::Truncate(name) => Ok(Plan::Truncate(self.writable(&name)?)),
            Statement::Schema(statement) => Ok(Plan::Schema(
                statement.into(),
                self.keyspace.map(str::to_owned),
            )),
            Statement::Unsupported(what) => Err(unsupported(what)),
        }
    }

    pub(super) fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        let keyspace = name.keyspace.as_deref().or(self.keyspace).ok_or_else(|| {
            CqlError::invalid(
                "No keyspace has been specified. USE a keyspace, or explicitly specify \
                 keyspace.tablename",
            )
        })?;
        let table = self.catalogue.table(keyspace, &name.name)?;
        if self.plain && table.is_virtual && table.is_scylla_only() {
            return Err(CqlError::Invalid(format!(
                "unconfigured table {}",
                name.name
            )));
        }
        Ok(table)
    }

    pub(super) fn writable(&self, name: &TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        if table.is_virtual {
            let text = format!("{} keyspace is not user-modifiable.", table.keyspace);
            return Err(CqlError::Unauthorized(text));
        }
        if table.view.is_some() {
            return Err(CqlError::invalid(
                "Cannot directly modify a materialized view",
            ));
        }
        Ok(table)
    }

    pub(super) fn column(table: &Table, name: &str) -> Result<usize> {
        table.position(name).ok_or_else(|| {
            CqlError::Invalid(format!("Unrecognized name {name} in table {}", table.name))
        })
    }

    /// A term of the type of a column.
    pub(super) fn operand(
        &mut self,
        table: &Table,
        term: Term,
        name: &str,
        ty: &CqlType,
    ) -> Result<Operand> {
        match term {
            Term::Marker(at) => {
                self.describe(table, at, name, ty);
                Ok(Operand::Marker(at))
            }
            Term::Literal(Literal::Null) => Ok(Operand::Fixed(Bound::Null)),
            Term::Literal(literal) => ty
                .literal(&literal, name)
                .map(|value| Operand::Fixed(Bound::Value(value))),
            term => {
                let expression = self.expression(Place { table, name }, term, ty)?;
                self.computed.push(expression);
                Ok(Operand::Computed(
                    self.names.len() + self.computed.len() - 1,
                ))
            }
        }
    }

    pub(super) fn describe(&mut self, table: &Table, at: usize, name: &str, ty: &CqlType) {
        let given = self.names.get(at).and_then(Option::as_deref);
        if let Some(slot) = self.variables.get_mut(at)
            && slot.is_none()
        {
            *slot = Some(Variable {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                name: given.unwrap_or(name).to_owned(),
                ty: ty.clone(),
            });
        }
    }

    pub(super) fn attribute(
        &mut self,
        table: &Table,
        term: Option<Term>,
        name: &str,
        ty: &CqlType,
    ) -> Result<Option<Operand>> {
        term.map(|term| self.operand(table, term, name, ty))
            .transpose()
    }

    /// Milliseconds only, nothing below.
    pub(super) fn timeout(using: &Using) -> Result<()> {
        let Some(Term::Literal(Literal::Duration(text))) = &using.timeout else {
            return match using.timeout {
                None => Ok(()),
                Some(_) => Err(CqlError::invalid("USING TIMEOUT takes a duration constant")),
            };
        };
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        if matches!(unit, "ms" | "s" | "m" | "h") {
            return Ok(());
        }
        Err(CqlError::invalid(
            "Timeout values must be expressed in milliseconds or greater",
        ))
    }

    pub(super) fn comparison(
        &mut self,
        table: &Table,
        at: usize,
        comparison: Comparison,
    ) -> Result<Test> {
        let column = &table.columns[at];
        match comparison {
            Comparison::Compare(operator, term) => self
                .operand(table, term, &column.name, &column.ty)
                .map(|operand| Test::Compare(operator, operand)),
            Comparison::In(terms) => {
                let name = format!("IN({})", column.name);
                let operands: Result<Vec<Operand>> = terms
                    .into_iter()
                    .map(|term| self.operand(table, term, &name, &column.ty))
                    .collect();
                operands.map(Test::In)
            }
            Comparison::InMarker(marker) => {
                let name = format!("IN({})", column.name);
                self.describe(table, marker, &name, &CqlType::list(column.ty.clone()));
                Ok(Test::InMarker(marker))
            }
        }
    }
}

fn unsupported(what: Unsupported) -> CqlError {
    match what {
        Unsupported::Access => CqlError::Unauthorized(
            "You have to be logged in and not anonymous to perform this request".to_owned(),
        ),
        Unsupported::UserFunction => CqlError::invalid(
            "User defined functions are disabled. Set enable_user_defined_functions and \
             experimental_features:udf to enable them",
        ),
        Unsupported::Describe => CqlError::invalid("DESCRIBE is not supported by this node"),
        Unsupported::Other => CqlError::invalid("this statement is not supported by this node"),
    }
}
