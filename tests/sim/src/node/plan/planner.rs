//! What planning of every statement shares: names, terms, types of bind variables.

use std::sync::Arc;

use super::super::codec::Bound;
use super::super::cql::{Comparison, Literal, Statement, TableName, Term, TypeName, Unsupported};
use super::super::error::CqlError;
use super::super::schema::{Catalogue, Column, Table};
use super::super::value::{CqlType, Native, duration};
use super::expression::{Expression, Place};
use super::{Operand, Plan, Result, Test, Values, Variable};

pub(super) struct Planner<'a> {
    pub(super) catalogue: &'a Catalogue,
    keyspace: Option<&'a str>,
    pub(super) plain: bool,
    names: &'a [Option<String>],
    pub(super) variables: Vec<Option<Variable>>,
    computed: Vec<Expression>,
    /// Timeouts that are known only with the values.
    timeouts: Vec<Operand>,
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
            timeouts: Vec::new(),
        }
    }

    /// What the values of the statement are, if every bind variable got a type.
    pub(super) fn into_values(self) -> Option<Values> {
        let variables: Option<Vec<Variable>> = self.variables.into_iter().collect();
        Some(Values {
            variables: variables?,
            computed: self.computed,
            timeouts: self.timeouts,
        })
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
            Statement::Truncate(name, using) => {
                let table = self.writable(&name)?;
                self.timeout(&table, using.timeout)?;
                Ok(Plan::Truncate(table))
            }
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
                Ok(self.computed(expression))
            }
        }
    }

    /// An expression among the values that the statement computes.
    pub(super) fn computed(&mut self, expression: Expression) -> Operand {
        self.computed.push(expression);
        Operand::Computed(self.names.len() + self.computed.len() - 1)
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

    /// A timeout must be good, and may be bound.
    pub(super) fn timeout(&mut self, table: &Table, term: Option<Term>) -> Result<()> {
        let Some(term) = term else {
            return Ok(());
        };
        let ty = CqlType::Native(Native::Duration);
        let operand = self.operand(table, term, "[timeout]", &ty)?;
        if let Operand::Fixed(Bound::Value(bytes)) = &operand {
            check_timeout(bytes)?;
        }
        self.timeouts.push(operand);
        Ok(())
    }

    /// What the variable of an IN list is called.
    fn in_name(&self, column: &Column) -> String {
        let word = if self.plain { "in" } else { "IN" };
        format!("{word}({})", column.name)
    }

    pub(super) fn comparison(
        &mut self,
        table: &Table,
        column: &Column,
        comparison: Comparison,
    ) -> Result<Test> {
        match comparison {
            Comparison::Compare(operator, term) => self
                .operand(table, term, &column.name, &column.ty)
                .map(|operand| Test::Compare(operator, operand)),
            Comparison::In(terms) => {
                let name = self.in_name(column);
                let operands: Result<Vec<Operand>> = terms
                    .into_iter()
                    .map(|term| self.operand(table, term, &name, &column.ty))
                    .collect();
                operands.map(Test::In)
            }
            Comparison::InMarker(marker) => {
                let name = self.in_name(column);
                self.describe(table, marker, &name, &CqlType::list(column.ty.clone()));
                Ok(Test::InMarker(marker))
            }
            Comparison::Contains(term) => {
                let ty = match column.ty.thawed() {
                    CqlType::List(element) | CqlType::Set(element) => element,
                    CqlType::Map(_, value) => value,
                    _ => return Err(no_collection("CONTAINS", column)),
                };
                let name = format!("value({})", column.name);
                let operand = self.operand(table, term, &name, ty)?;
                Ok(Test::Contains(operand, CqlType::clone(ty)))
            }
            Comparison::ContainsKey(term) => {
                let CqlType::Map(ty, _) = column.ty.thawed() else {
                    return Err(no_collection("CONTAINS KEY", column));
                };
                let name = format!("key({})", column.name);
                let operand = self.operand(table, term, &name, ty)?;
                Ok(Test::ContainsKey(operand, CqlType::clone(ty)))
            }
        }
    }
}

/// Whole milliseconds, nothing below, nothing that a calendar would have to tell.
pub(crate) fn check_timeout(bytes: &[u8]) -> Result<()> {
    let refuse = |text: &str| Err(CqlError::invalid(text));
    match duration::parse(bytes) {
        None => refuse("Invalid timeout value"),
        Some(timeout) if timeout.months != 0 || timeout.days != 0 => {
            refuse("Timeout values cannot be expressed in days/months")
        }
        Some(timeout) if timeout.nanos % 1_000_000 != 0 => {
            refuse("Timeout values cannot have granularity finer than milliseconds")
        }
        Some(timeout) if timeout.nanos < 0 => refuse("Timeout values must be non-negative"),
        Some(_) => Ok(()),
    }
}

fn no_collection(what: &str, column: &Column) -> CqlError {
    CqlError::Invalid(format!(
        "Cannot use {what} on non-collection column {}",
        column.name
    ))
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
