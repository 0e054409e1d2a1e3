//! Updates of columns that are stored in parts.

use super::super::codec::Bound;
use super::super::cql::{Assignment, Part, Term};
use super::super::error::CqlError;
use super::super::schema::{Column, Table};
use super::super::value::CqlType;
use super::planner::Planner;
use super::{Operand, Result};

/// What an update does to a column that is stored in parts.
#[derive(Clone, Debug)]
pub(crate) enum PartsUpdate {
    Whole(Operand),
    /// More elements; of a list at its end.
    Add(Operand),
    Prepend(Operand),
    /// Fewer elements: values of a list, elements of a set, keys of a map.
    Remove(Operand),
    /// The value at a key or an index.
    Element(Operand, Operand),
    Field(usize, Operand),
}

impl Planner<'_> {
    /// An assignment to a column of which the type is stored in parts.
    pub(super) fn parts_update(
        &mut self,
        table: &Table,
        column: &Column,
        assignment: Assignment,
    ) -> Result<PartsUpdate> {
        let Column { name, ty, .. } = column;
        let refuse = |what: &str| {
            CqlError::Invalid(format!(
                "Invalid operation ({what}) for {name} of type {ty}"
            ))
        };
        Ok(match assignment {
            Assignment::Set(Part::Whole, term) => {
                PartsUpdate::Whole(self.operand(table, term, name, ty)?)
            }
            Assignment::Set(Part::Element(key), term) => {
                let (key_type, value_type) = match ty {
                    CqlType::Map(key, value) => (CqlType::clone(key), value),
                    CqlType::List(element) => (CqlType::INT, element),
                    _ => return Err(refuse("[] =")),
                };
                let what = if *ty == CqlType::list(CqlType::clone(value_type)) {
                    "idx"
                } else {
                    "key"
                };
                let key = self.operand(table, key, &format!("{what}({name})"), &key_type)?;
                let value_name = format!("value({name})");
                let value = self.operand(table, term, &value_name, value_type)?;
                PartsUpdate::Element(key, value)
            }
            Assignment::Set(Part::Field(field), term) => {
                let CqlType::User(user) = ty else {
                    return Err(refuse(".field ="));
                };
                let at = user.position(&field).ok_or_else(|| {
                    CqlError::Invalid(format!(
                        "UDT column {name} does not have a field named {field}"
                    ))
                })?;
                let operand =
                    self.operand(table, term, &format!("{name}.{field}"), &user.fields[at].1)?;
                PartsUpdate::Field(at, operand)
            }
            Assignment::Add(_) | Assignment::Subtract(_) if ty.user().is_some() => {
                return Err(refuse("+ or -"));
            }
            Assignment::Add(term) => PartsUpdate::Add(self.operand(table, term, name, ty)?),
            Assignment::Prepend(term) if matches!(ty, CqlType::List(_)) => {
                PartsUpdate::Prepend(self.operand(table, term, name, ty)?)
            }
            Assignment::Prepend(_) => return Err(refuse("prepend")),
            Assignment::Subtract(term) => {
                let removed = match ty {
                    CqlType::Map(key, _) => CqlType::Set(key.clone()),
                    other => other.clone(),
                };
                PartsUpdate::Remove(self.operand(table, term, name, &removed)?)
            }
        })
    }

    /// DELETE of a column or a part of it.
    pub(super) fn parts_deletion(
        &mut self,
        table: &Table,
        column: &Column,
        part: Part,
    ) -> Result<PartsUpdate> {
        let null = || Operand::Fixed(Bound::Null);
        Ok(match (part, &column.ty) {
            (Part::Whole, _) => PartsUpdate::Whole(null()),
            (Part::Element(key), CqlType::Set(element)) => {
                // The one element, as a set to take away.
                let set = CqlType::Set(element.clone());
                let set = self.operand(table, Term::Set(vec![key]), &column.name, &set)?;
                PartsUpdate::Remove(set)
            }
            (part, _) => {
                let null = Term::Literal(super::super::cql::Literal::Null);
                self.parts_update(table, column, Assignment::Set(part, null))?
            }
        })
    }
}
