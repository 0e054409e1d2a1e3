//! Values that are more than a constant or a bind variable: built of parts, or computed.
//!
//! An expression is typed when it is planned; evaluating it only moves bytes. Those of a statement's
//! own values are evaluated once per execution and then stand among the bound values, those of a
//! SELECT clause once per row.

use bytes::Bytes;

use super::super::cql::{Literal, Term};
use super::super::error::CqlError;
use super::super::schema::Table;
use super::super::value::CqlType;
use super::Result;
use super::function::{Argument, Function};
use super::planner::Planner;

/// How to come by a value.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Constant(Option<Bytes>),
    /// A bind variable by its number.
    Variable(usize),
    /// A column of the row by its position.
    Column(usize),
    WriteTime(usize),
    TimeToLive(usize),
    List(Vec<Self>),
    Set(CqlType, Vec<Self>),
    /// With the type of the whole map.
    Map(CqlType, Vec<(Self, Self)>),
    /// A tuple or a value of a user type.
    Fields(Vec<Self>),
    Vector(CqlType, Vec<Self>),
    /// What a collection of a type has at a key.
    Element(Box<Self>, CqlType, Box<Self>),
    Field(Box<Self>, usize),
    Call(Function, Vec<Self>),
}

/// Which column, or part of one, a term is for.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) table: &'a Table,
    pub(crate) name: &'a str,
}

impl Planner<'_> {
    /// A term as a value of a type.
    pub(super) fn expression(
        &mut self,
        place: Place<'_>,
        term: Term,
        ty: &CqlType,
    ) -> Result<Expression> {
        let Place { table, name } = place;
        match term {
            Term::Marker(at) => {
                self.describe(table, at, name, ty);
                Ok(Expression::Variable(at))
            }
            Term::Literal(Literal::Null) => Ok(Expression::Constant(None)),
            Term::Literal(literal) => ty
                .literal(&literal, name)
                .map(|value| Expression::Constant(Some(value))),
            Term::Call(function, arguments) => {
                let arguments = arguments.into_iter().map(Argument::Term).collect();
                let (call, found) = self.call(place, &function, arguments)?;
                if found.thawed() == ty.thawed() {
                    return Ok(call);
                }
                Err(CqlError::Invalid(format!(
                    "Type error: cannot assign result of function system.{function} (type \
                     {found}) to {name} (type {ty})"
                )))
            }
            Term::Hint(hint, term) => {
                let hinted = self.resolve(table, &hint)?;
                if hinted.thawed() != ty.thawed() {
                    return Err(CqlError::Invalid(format!(
                        "Cannot assign value of type {hinted} to {name} of type {ty}"
                    )));
                }
                self.expression(place, *term, ty)
            }
            Term::List(elements) => self.list(place, elements, ty),
            Term::Set(elements) => self.set(place, elements, ty),
            Term::Map(entries) => self.map(place, entries, ty),
            Term::Fields(fields) => self.fields(place, fields, ty),
            Term::Tuple(elements) => self.tuple(place, elements, ty),
        }
    }

    fn list(&mut self, place: Place<'_>, elements: Vec<Term>, ty: &CqlType) -> Result<Expression> {
        match ty.thawed() {
            CqlType::List(element) => {
                let elements = self.parts(place, "value", elements, element)?;
                Ok(Expression::List(elements))
            }
            CqlType::Vector(element, len) => {
                if elements.len() != usize::from(*len) {
                    return Err(CqlError::Invalid(format!(
                        "Invalid vector literal for {} of type {ty}: expected {len} elements, got \
                         {}",
                        place.name,
                        elements.len()
                    )));
                }
                let elements = self.parts(place, "value", elements, element)?;
                Ok(Expression::Vector(CqlType::clone(element), elements))
            }
            _ => Err(misfit("list", place.name, ty)),
        }
    }

    fn set(&mut self, place: Place<'_>, elements: Vec<Term>, ty: &CqlType) -> Result<Expression> {
        match ty.thawed() {
            CqlType::Set(element) => {
                let elements = self.parts(place, "value", elements, element)?;
                Ok(Expression::Set(CqlType::clone(element), elements))
            }
            // Nothing in braces is an empty set, or an empty map, or a user type without values.
            CqlType::Map(..) if elements.is_empty() => {
                Ok(Expression::Map(ty.thawed().clone(), Vec::new()))
            }
            CqlType::User(_) if elements.is_empty() => self.fields(place, Vec::new(), ty),
            _ => Err(misfit("set", place.name, ty)),
        }
    }

    fn map(
        &mut self,
        place: Place<'_>,
        entries: Vec<(Term, Term)>,
        ty: &CqlType,
    ) -> Result<Expression> {
        let CqlType::Map(key, value) = ty.thawed() else {
            return Err(misfit("map", place.name, ty));
        };
        let mut planned = Vec::with_capacity(entries.len());
        for (k, v) in entries {
            let k = self.part(place, "key", k, key)?;
            planned.push((k, self.part(place, "value", v, value)?));
        }
        Ok(Expression::Map(ty.thawed().clone(), planned))
    }

    fn fields(
        &mut self,
        place: Place<'_>,
        fields: Vec<(String, Term)>,
        ty: &CqlType,
    ) -> Result<Expression> {
        let Some(user) = ty.user() else {
            return Err(misfit("user type", place.name, ty));
        };
        let mut planned = vec![Expression::Constant(None); user.fields.len()];
        for (field, term) in fields {
            let at = user.position(&field).ok_or_else(|| {
                CqlError::Invalid(format!(
                    "Unknown field '{field}' in value of user defined type {}",
                    user.name
                ))
            })?;
            let name = format!("{}.{field}", place.name);
            let place = Place {
                name: &name,
                ..place
            };
            planned[at] = self.expression(place, term, &user.fields[at].1)?;
        }
        Ok(Expression::Fields(planned))
    }

    fn tuple(&mut self, place: Place<'_>, elements: Vec<Term>, ty: &CqlType) -> Result<Expression> {
        let CqlType::Tuple(types) = ty.thawed() else {
            // Parentheses around one value.
            return match <[Term; 1]>::try_from(elements) {
                Ok([only]) => self.expression(place, only, ty),
                Err(_) => Err(misfit("tuple", place.name, ty)),
            };
        };
        if elements.len() > types.len() {
            return Err(CqlError::Invalid(format!(
                "Invalid tuple literal for {}: too many elements. Type {ty} expects {} but got {}",
                place.name,
                types.len(),
                elements.len()
            )));
        }
        let mut planned = Vec::with_capacity(types.len());
        for (at, (term, ty)) in elements.into_iter().zip(types).enumerate() {
            let name = format!("{}[{at}]", place.name);
            let place = Place {
                name: &name,
                ..place
            };
            planned.push(self.expression(place, term, ty)?);
        }
        Ok(Expression::Fields(planned))
    }

    fn parts(
        &mut self,
        place: Place<'_>,
        what: &str,
        terms: Vec<Term>,
        ty: &CqlType,
    ) -> Result<Vec<Expression>> {
        terms
            .into_iter()
            .map(|term| self.part(place, what, term, ty))
            .collect()
    }

    /// An element of a collection, which its variable names `value(column)` or `key(column)`.
    pub(super) fn part(
        &mut self,
        place: Place<'_>,
        what: &str,
        term: Term,
        ty: &CqlType,
    ) -> Result<Expression> {
        let name = format!("{what}({})", place.name);
        let place = Place {
            name: &name,
            ..place
        };
        self.expression(place, term, ty)
    }
}

fn misfit(what: &str, name: &str, ty: &CqlType) -> CqlError {
    CqlError::Invalid(format!("Invalid {what} literal for {name} of type {ty}"))
}
