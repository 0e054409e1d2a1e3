//! Writes of collections and user types that are stored in parts: from an update with its values to
//! the parts it writes.

use bytes::Bytes;

use super::super::cluster::Cluster;
use super::super::codec::Bound;
use super::super::error::CqlError;
use super::super::plan::PartsUpdate;
use super::super::schema::{Column, Table};
use super::super::store::{CellChange, Change, Clear, ListChange, Part, PartitionKey, PartsChange};
use super::super::value::{CqlType, elements, entries, fields};
use super::write::Write;
use super::{Result, resolve};

/// The change of a column, none if a value is unset.
pub(super) fn parts_change(
    column: &Column,
    update: &PartsUpdate,
    values: &[Bound],
) -> Result<Option<PartsChange>> {
    let ty = &column.ty;
    let operand = match update {
        PartsUpdate::Element(key, value) => {
            return element_change(column, &resolve(key, values), resolve(value, values));
        }
        PartsUpdate::Whole(operand)
        | PartsUpdate::Add(operand)
        | PartsUpdate::Prepend(operand)
        | PartsUpdate::Remove(operand)
        | PartsUpdate::Field(_, operand) => operand,
    };
    let value = match resolve(operand, values) {
        Bound::Unset => return Ok(None),
        Bound::Null => None,
        Bound::Value(bytes) => Some(bytes),
    };
    let mut change = PartsChange::default();
    match (update, value) {
        (PartsUpdate::Whole(_), None) => change.clear = Clear::With,
        (PartsUpdate::Whole(_), Some(bytes)) => {
            change = added(ty, &bytes).ok_or_else(|| misfit(column))?;
            change.clear = Clear::Before;
        }
        (PartsUpdate::Field(at, _), value) => change.parts.push(field(*at, value)),
        // Adding or taking away nothing.
        (_, None) => {}
        (PartsUpdate::Prepend(_), Some(bytes)) => {
            let elements = owned(&bytes).ok_or_else(|| misfit(column))?;
            change.list = Some(ListChange::Prepend(elements));
        }
        (PartsUpdate::Remove(_), Some(bytes)) => {
            change = removed(ty, &bytes).ok_or_else(|| misfit(column))?;
        }
        (_, Some(bytes)) => change = added(ty, &bytes).ok_or_else(|| misfit(column))?,
    }
    Ok(Some(change))
}

fn misfit(column: &Column) -> CqlError {
    CqlError::Invalid(format!(
        "Invalid value for {} of type {}",
        column.name, column.ty
    ))
}

fn element_change(column: &Column, key: &Bound, value: Bound) -> Result<Option<PartsChange>> {
    let value = match value {
        Bound::Unset => return Ok(None),
        Bound::Null => None,
        Bound::Value(bytes) => Some(bytes),
    };
    let what = match &column.ty {
        CqlType::Map(..) => "map key",
        _ => "list index",
    };
    let key = match key {
        Bound::Value(key) => key,
        Bound::Null => return Err(CqlError::Invalid(format!("Invalid null value for {what}"))),
        Bound::Unset => return Err(CqlError::Invalid(format!("Invalid unset value for {what}"))),
    };
    let mut change = PartsChange::default();
    match &column.ty {
        CqlType::Map(key_type, _) => change.parts.push(Part {
            order: key_type.sort_key(key),
            path: key.clone(),
            value,
        }),
        _ => {
            let index = <[u8; 4]>::try_from(&key[..]).map(i32::from_be_bytes);
            let index = index.map_err(|_| CqlError::invalid("Invalid list index"))?;
            change.list = Some(ListChange::At(index, value));
        }
    }
    Ok(Some(change))
}

fn field(at: usize, value: Option<Bytes>) -> Part {
    let path = u16::try_from(at).unwrap_or(u16::MAX).to_be_bytes();
    Part {
        order: path.to_vec(),
        path: Bytes::copy_from_slice(&path),
        value,
    }
}

fn owned(list: &[u8]) -> Option<Vec<Bytes>> {
    Some(
        elements(list)?
            .into_iter()
            .map(Bytes::copy_from_slice)
            .collect(),
    )
}

/// What a serialized value adds.
fn added(ty: &CqlType, bytes: &[u8]) -> Option<PartsChange> {
    let mut change = PartsChange::default();
    match ty {
        CqlType::Set(element) => {
            for bytes in elements(bytes)? {
                change.parts.push(Part {
                    order: element.sort_key(bytes),
                    path: Bytes::copy_from_slice(bytes),
                    value: Some(Bytes::new()),
                });
            }
        }
        CqlType::Map(key_type, _) => {
            for [key, value] in entries(bytes)? {
                change.parts.push(Part {
                    order: key_type.sort_key(key),
                    path: Bytes::copy_from_slice(key),
                    value: Some(Bytes::copy_from_slice(value)),
                });
            }
        }
        CqlType::User(_) => {
            for (at, value) in fields(bytes)?.into_iter().enumerate() {
                if let Some(value) = value {
                    change
                        .parts
                        .push(field(at, Some(Bytes::copy_from_slice(value))));
                }
            }
        }
        _ => change.list = Some(ListChange::Append(owned(bytes)?)),
    }
    Some(change)
}

/// What a serialized value takes away: of a map it is a set of keys.
fn removed(ty: &CqlType, bytes: &[u8]) -> Option<PartsChange> {
    let mut change = PartsChange::default();
    match ty {
        CqlType::Set(element) | CqlType::Map(element, _) => {
            for bytes in elements(bytes)? {
                change.parts.push(Part {
                    order: element.sort_key(bytes),
                    path: Bytes::copy_from_slice(bytes),
                    value: None,
                });
            }
        }
        _ => change.list = Some(ListChange::Without(owned(bytes)?)),
    }
    Some(change)
}

impl Cluster {
    /// Turns what depends on a list as it stands into parts. Nothing is written yet.
    pub(super) fn settle(&self, table: &Table, write: &mut Write, now: i64) -> Result<()> {
        let key = write.key.clone();
        for change in &mut write.changes {
            let (row, cells) = match change {
                Change::Row { key, cells, .. } => (Some(&*key), cells),
                Change::Statics(cells) => (None, cells),
                _ => continue,
            };
            for (column, change) in cells {
                let CellChange::Parts(change) = change else {
                    continue;
                };
                if let Some(list) = change.list.take() {
                    let elements = self.list_elements(table, (&key, row), *column, now);
                    change.parts.extend(self.list_parts(list, &elements)?);
                }
            }
        }
        Ok(())
    }

    /// The elements of a list in their order.
    fn list_elements(
        &self,
        table: &Table,
        (key, row): (&PartitionKey, Option<&Vec<u8>>),
        column: u16,
        now: i64,
    ) -> Vec<Part> {
        let elements = || {
            let partition = self.store.table(&table.id)?.partitions.get(key)?;
            let live = match row {
                Some(row) => partition.row(row, now)?,
                None => partition.statics(now)?,
            };
            live.parts(table, column)
        };
        elements().unwrap_or_default()
    }

    fn list_parts(&self, list: ListChange, known: &[Part]) -> Result<Vec<Part>> {
        let part = |order: Vec<u8>, value| Part {
            path: Bytes::copy_from_slice(&order),
            order,
            value,
        };
        Ok(match list {
            ListChange::Append(values) => {
                let group = self.next_number().cast_signed();
                let parts = (0u32..).zip(values);
                parts
                    .map(|(at, value)| part(order(group, at), Some(value)))
                    .collect()
            }
            ListChange::Prepend(values) => {
                let group = self.next_number().cast_signed().wrapping_neg();
                let parts = (0u32..).zip(values);
                parts
                    .map(|(at, value)| part(order(group, at), Some(value)))
                    .collect()
            }
            ListChange::At(index, value) => {
                if known.is_empty() {
                    return Err(CqlError::invalid(
                        "Attempted to set an element on a list which is null",
                    ));
                }
                let found = usize::try_from(index).ok().and_then(|at| known.get(at));
                let found = found.ok_or_else(|| {
                    CqlError::Invalid(format!(
                        "List index {index} out of bound, list has size {}",
                        known.len()
                    ))
                })?;
                vec![part(found.order.clone(), value)]
            }
            ListChange::Without(values) => known
                .iter()
                .filter(|part| {
                    part.value
                        .as_ref()
                        .is_some_and(|value| values.contains(value))
                })
                .map(|known| part(known.order.clone(), None))
                .collect(),
        })
    }
}

/// Groups are in the order of their writes, elements in that of the text.
fn order(group: i64, at: u32) -> Vec<u8> {
    let flipped = (group ^ i64::MIN).to_be_bytes();
    [&flipped[..], &at.to_be_bytes()].concat()
}
