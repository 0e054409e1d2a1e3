//! The SELECT clause: what each column of the result is made from.

use std::sync::Arc;

use super::super::cql::{Literal, Selector, Term};
use super::super::error::CqlError;
use super::super::schema::{Role, Table};
use super::super::value::{CqlType, Native};
use super::expression::{Expression, Place};
use super::function::{Aggregate, Argument, cast};
use super::planner::Planner;
use super::{Metadata, Result};

/// One column of a result.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// Of a row.
    Value(Expression),
    /// How many rows there are.
    CountRows,
    /// Over all rows.
    Aggregate(Aggregate, Expression, CqlType),
}

impl Output {
    pub(crate) fn is_aggregate(&self) -> bool {
        !matches!(self, Self::Value(_))
    }
}

/// An expression with its type and the name of its column.
type Named = (Expression, CqlType, String);

impl Planner<'_> {
    pub(super) fn outputs(
        &mut self,
        table: &Table,
        selectors: Vec<(Selector, Option<String>)>,
    ) -> Result<(Vec<Output>, Arc<Metadata>)> {
        let (mut outputs, mut columns) = (Vec::new(), Vec::new());
        if selectors.is_empty() {
            for (at, column) in table.columns.iter().enumerate() {
                outputs.push(Output::Value(Expression::Column(at)));
                columns.push((column.name.clone(), column.ty.clone()));
            }
        }
        for (selector, alias) in selectors {
            let (output, name, ty) = self.output(table, selector)?;
            outputs.push(output);
            columns.push((alias.unwrap_or(name), ty));
        }
        Ok((outputs, Metadata::new(table, columns)))
    }

    fn output(&mut self, table: &Table, selector: Selector) -> Result<(Output, String, CqlType)> {
        match selector {
            Selector::CountRows => Ok((Output::CountRows, "count".to_owned(), CqlType::BIGINT)),
            Selector::Call(function, arguments) if Aggregate::named(&function).is_some() => {
                let aggregate = Aggregate::named(&function).unwrap_or(Aggregate::Count);
                let Ok([argument]) = <[Selector; 1]>::try_from(arguments) else {
                    return Err(CqlError::Invalid(format!(
                        "Invalid number of arguments in call to function system.{function}: 1 \
                         required"
                    )));
                };
                let (expression, ty, name) = self.selected(table, argument)?;
                let result = aggregate.result(&function, &ty)?;
                let name = format!("system.{function}({name})");
                Ok((Output::Aggregate(aggregate, expression, ty), name, result))
            }
            other => {
                let (expression, ty, name) = self.selected(table, other)?;
                Ok((Output::Value(expression), name, ty))
            }
        }
    }

    pub(super) fn selected(&mut self, table: &Table, selector: Selector) -> Result<Named> {
        match selector {
            Selector::Column(name) => {
                let at = Self::column(table, &name)?;
                Ok((Expression::Column(at), table.columns[at].ty.clone(), name))
            }
            Selector::CountRows => Err(nested_aggregate()),
            Selector::Cast(of, ty) => {
                let (of, from, name) = self.selected(table, *of)?;
                let to = self.resolve(table, &ty)?;
                let function = cast(&from, &to)?;
                let name = format!("cast({name} as {to})");
                Ok((Expression::Call(function, vec![of]), to, name))
            }
            Selector::Field(of, field) => {
                let (of, ty, name) = self.selected(table, *of)?;
                let found = ty
                    .user()
                    .and_then(|user| Some((user, user.position(&field)?)));
                let Some((user, at)) = found else {
                    return Err(CqlError::Invalid(format!(
                        "Invalid field selection: {name} of type {ty} has no field {field}"
                    )));
                };
                let of = Expression::Field(Box::new(of), at);
                Ok((of, user.fields[at].1.clone(), format!("{name}.{field}")))
            }
            Selector::Element(of, key) => self.element(table, *of, key),
            Selector::Term(term) => self.constant(table, term),
            Selector::Call(function, arguments) => self.called(table, function, arguments),
        }
    }

    fn element(&mut self, table: &Table, of: Selector, key: Term) -> Result<Named> {
        let (of, ty, name) = self.selected(table, of)?;
        let (key_type, result) = match ty.thawed() {
            CqlType::Map(key, value) => (CqlType::clone(key), CqlType::clone(value)),
            CqlType::Set(element) => (CqlType::clone(element), CqlType::clone(element)),
            CqlType::List(element) => (CqlType::INT, CqlType::clone(element)),
            _ => {
                return Err(CqlError::Invalid(format!(
                    "Invalid element selection: {name} is of type {ty} is not a collection"
                )));
            }
        };
        let shown = match &key {
            Term::Literal(literal @ Literal::Text(_)) => format!("'{}'", literal.text()),
            Term::Literal(literal) => literal.text(),
            _ => "?".to_owned(),
        };
        let place = Place { table, name: &name };
        let key = self.part(place, "key", key, &key_type)?;
        let element = Expression::Element(Box::new(of), ty.thawed().clone(), Box::new(key));
        Ok((element, result, format!("{name}[{shown}]")))
    }

    /// A value that no column has: its type must be plain from what it is.
    fn constant(&mut self, table: &Table, term: Term) -> Result<Named> {
        let (name, ty) = match &term {
            Term::Hint(hint, _) => (format!("({hint})"), self.resolve(table, hint)?),
            Term::Literal(literal) => {
                let native = match literal {
                    Literal::Text(_) => Native::Text,
                    Literal::Boolean(_) => Native::Boolean,
                    Literal::Blob(_) => Native::Blob,
                    Literal::Uuid(_) => Native::Uuid,
                    Literal::Duration(_) => Native::Duration,
                    Literal::Float(_) => Native::Double,
                    Literal::Integer(text) if text.parse::<i32>().is_ok() => Native::Int,
                    Literal::Integer(_) => Native::BigInt,
                    Literal::Null => return Err(untyped("NULL")),
                };
                (literal.text(), CqlType::Native(native))
            }
            _ => return Err(untyped("term")),
        };
        let place = Place {
            table,
            name: "[selection]",
        };
        Ok((self.expression(place, term, &ty)?, ty, name))
    }

    fn called(
        &mut self,
        table: &Table,
        function: String,
        arguments: Vec<Selector>,
    ) -> Result<Named> {
        if Aggregate::named(&function).is_some() {
            return Err(nested_aggregate());
        }
        if matches!(function.as_str(), "writetime" | "ttl") {
            return self.cell_function(table, &function, &arguments);
        }
        let (mut planned, mut names) = (Vec::new(), Vec::new());
        for argument in arguments {
            planned.push(match argument {
                Selector::Term(term) => {
                    names.push(match &term {
                        Term::Literal(literal) => literal.text(),
                        _ => "?".to_owned(),
                    });
                    Argument::Term(term)
                }
                other => {
                    let (expression, ty, name) = self.selected(table, other)?;
                    names.push(name);
                    Argument::Typed(expression, ty)
                }
            });
        }
        if function == "token" {
            check_token(table, &planned)?;
        }
        let place = Place {
            table,
            name: "[selection]",
        };
        let (call, ty) = self.call(place, &function, planned)?;
        Ok((call, ty, format!("system.{function}({})", names.join(", "))))
    }

    /// `writetime(column)` and `ttl(column)`.
    fn cell_function(
        &mut self,
        table: &Table,
        function: &str,
        arguments: &[Selector],
    ) -> Result<Named> {
        let [Selector::Column(column)] = arguments else {
            return Err(CqlError::Invalid(format!(
                "{function} selects one column by its name"
            )));
        };
        let at = Self::column(table, column)?;
        let found = &table.columns[at];
        if matches!(found.role, Role::PartitionKey | Role::Clustering { .. }) {
            return Err(CqlError::Invalid(format!(
                "Cannot use selection function {function} on PRIMARY KEY part {column}"
            )));
        }
        if found.ty.is_multi_cell() {
            return Err(CqlError::Invalid(format!(
                "Cannot use selection function {function} on non-frozen collections and UDTs"
            )));
        }
        let name = format!("{function}({column})");
        Ok(match function {
            "ttl" => (Expression::TimeToLive(at), CqlType::INT, name),
            _ => (Expression::WriteTime(at), CqlType::BIGINT, name),
        })
    }
}

/// Columns given to `token` must be the partition key, in its order.
fn check_token(table: &Table, arguments: &[Argument]) -> Result<()> {
    let columns: Vec<usize> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Argument::Typed(Expression::Column(at), _) => Some(*at),
            _ => None,
        })
        .collect();
    if columns.is_empty() || columns.iter().copied().eq(0..table.partition_len) {
        return Ok(());
    }
    Err(CqlError::invalid(
        "The token() function must contain all partition key components in their order",
    ))
}

fn nested_aggregate() -> CqlError {
    CqlError::invalid("aggregate functions cannot be used as arguments of aggregate functions")
}

fn untyped(what: &str) -> CqlError {
    CqlError::Invalid(format!(
        "Cannot infer type for {what} in selection clause (try using a cast to force a type)"
    ))
}
