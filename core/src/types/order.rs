//! Which value of a row goes to which marker, for rows whose values go by name.
//!
//! Worked out once for a prepared statement and a row type, and kept with the statement: binding a
//! row then compares no names. A marker takes the value of its name; so do several markers of one
//! name, as where a statement names a marker twice.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::{BindError, ColumnSpec};
use crate::sync::Once;

/// What a value of a row goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written out by the derive macros"
)]
pub struct FieldName {
    /// The name of its column or marker, or of the field of a user-defined type.
    pub name: &'static str,
    /// The field of the struct, as `Struct.field`, for errors.
    pub field: &'static str,
}

/// The names of a row's values.
#[derive(Clone, Copy)]
pub struct ValueNames {
    at: fn(usize) -> Option<FieldName>,
    may_be_unused: bool,
}

impl ValueNames {
    /// Names by position: `None` after the last. If values `may_be_unused`, those that no marker has
    /// the name of are left out, else they are an error.
    #[must_use]
    pub const fn new(at: fn(usize) -> Option<FieldName>, may_be_unused: bool) -> Self {
        Self { at, may_be_unused }
    }

    /// The name of the value at a position.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<FieldName> {
        (self.at)(index)
    }

    fn iter(self) -> impl Iterator<Item = FieldName> {
        (0..).map_while(move |index| self.at(index))
    }

    /// Whether both are made by the same code, and so are the same names. Code may stand in a program
    /// more than once: the same names may also be said not to be.
    fn is_same(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.at, other.at) && self.may_be_unused == other.may_be_unused
    }
}

impl fmt::Debug for ValueNames {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// For each marker of a statement the position of its value in the row.
#[derive(Clone, Debug)]
pub struct MarkerOrder {
    names: ValueNames,
    values: Box<[usize]>,
}

impl MarkerOrder {
    /// Works it out.
    ///
    /// Fails with the first marker that no value has the name of, or value that no marker has the
    /// name of.
    pub fn of(names: ValueNames, markers: &[ColumnSpec]) -> Result<Self, BindError> {
        let mut values = Vec::new();
        let mut expected = 0_usize;
        for (index, marker) in markers.iter().enumerate() {
            let has_name = |value: &usize| {
                let found = names.at(*value);
                found.is_some_and(|found| *found.name == *marker.name)
            };
            let value = Some(expected).filter(has_name).or_else(|| {
                let mut all = names.iter();
                all.position(|value| *value.name == *marker.name)
            });
            let Some(value) = value else {
                let name = marker.name.clone();
                return Err(BindError::NoValue { index, name });
            };
            expected = value.saturating_add(1);
            values.push(value);
        }
        let unused = names
            .iter()
            .enumerate()
            .find(|(value, _)| !values.contains(value));
        match unused {
            Some((_, FieldName { name, field })) if !names.may_be_unused => {
                Err(BindError::NoMarker { field, name })
            }
            _ => Ok(Self {
                names,
                values: values.into_boxed_slice(),
            }),
        }
    }

    /// The position of each marker's value.
    #[must_use]
    pub fn values(&self) -> &[usize] {
        &self.values
    }
}

/// The orders worked out for one statement, one for each row type bound to it.
#[derive(Debug, Default)]
pub(crate) struct MarkerOrders {
    first: Once<Box<Entry>>,
}

#[derive(Debug)]
struct Entry {
    order: MarkerOrder,
    next: Once<Box<Self>>,
}

/// Row types beyond these are worked out each time.
const ORDERS_MAX: usize = 8;

impl MarkerOrders {
    /// Runs `bind` with the order of these names among the markers, which are always the same ones.
    pub(crate) fn with<R>(
        &self,
        names: ValueNames,
        markers: &[ColumnSpec],
        bind: impl FnOnce(&MarkerOrder) -> Result<R, BindError>,
    ) -> Result<R, BindError> {
        let mut place = &self.first;
        for _ in 0..ORDERS_MAX {
            let entry = match place.get() {
                Some(entry) => entry,
                None => {
                    let order = MarkerOrder::of(names, markers)?;
                    let next = Once::new();
                    // Another thread may have put another type here.
                    place.get_or_set(Box::new(Entry { order, next }))
                }
            };
            if entry.order.names.is_same(&names) {
                return bind(&entry.order);
            }
            place = &entry.next;
        }
        bind(&MarkerOrder::of(names, markers)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ColumnType;
    use crate::types::testing::columns;
    use std::string::ToString;
    use std::vec::Vec;

    fn names(index: usize) -> Option<FieldName> {
        let all = [("id", "A.id"), ("Name", "A.name"), ("at", "A.at")];
        let (name, field) = *all.get(index)?;
        Some(FieldName { name, field })
    }

    fn order(markers: &[&str], may_be_unused: bool) -> Result<Vec<usize>, BindError> {
        let markers: Vec<_> = markers
            .iter()
            .map(|name| (*name, ColumnType::Int))
            .collect();
        let order = MarkerOrder::of(ValueNames::new(names, may_be_unused), &columns(&markers))?;
        Ok(order.values().to_vec())
    }

    #[test]
    fn markers_find_their_values_by_name() {
        assert_eq!(
            order(&["id", "Name", "at"], false),
            Ok(Vec::from([0, 1, 2]))
        );
        assert_eq!(
            order(&["at", "id", "Name"], false),
            Ok(Vec::from([2, 0, 1]))
        );
        // One name at several markers: the same value.
        let twice = order(&["at", "id", "at", "Name"], false);
        assert_eq!(twice, Ok(Vec::from([2, 0, 2, 1])));
        assert_eq!(order(&["at"], true), Ok(Vec::from([2])));
        assert_eq!(order(&[], true), Ok(Vec::new()));
    }

    #[test]
    fn what_finds_no_counterpart_is_named() {
        let error = order(&["id", "name"], false).unwrap_err();
        assert_eq!(error.to_string(), "no field is named as marker 1 (name)");
        let error = order(&["id", "at"], false).unwrap_err();
        assert_eq!(error.to_string(), "field A.name: no marker is named Name");
        assert!(order(&["id", "name"], true).is_err());
        assert!(order(&[], false).is_err());
    }

    /// Each of them has names of its own: `id0`, `id1` and so on.
    fn numbered<const N: usize>(index: usize) -> Option<FieldName> {
        let all = [
            "id0", "id1", "id2", "id3", "id4", "id5", "id6", "id7", "id8", "id9",
        ];
        let name = *all.get(N)?;
        (index == 0).then_some(FieldName { name, field: name })
    }

    #[test]
    fn an_order_is_worked_out_once_and_few_are_kept() {
        let orders = MarkerOrders::default();
        let addresses = |names, name: &str| {
            let markers = columns(&[(name, ColumnType::Int)]);
            let address = || {
                let names = ValueNames::new(names, false);
                let with = orders.with(names, &markers, |order| {
                    assert_eq!(order.values(), [0]);
                    Ok(order.values().as_ptr())
                });
                with.unwrap()
            };
            let (first, second) = (address(), address());
            first == second
        };
        assert!(addresses(numbered::<0>, "id0"));
        assert!(addresses(numbered::<1>, "id1"));
        assert!(addresses(numbered::<0>, "id0"));
        let markers = columns(&[("id2", ColumnType::Int)]);
        let none = orders.with(ValueNames::new(numbered::<0>, true), &markers, |_| Ok(()));
        assert!(none.is_err());
        for (names, name) in [
            (numbered::<2> as fn(usize) -> Option<FieldName>, "id2"),
            (numbered::<3>, "id3"),
            (numbered::<4>, "id4"),
            (numbered::<5>, "id5"),
            (numbered::<6>, "id6"),
            (numbered::<7>, "id7"),
            (numbered::<8>, "id8"),
            (numbered::<9>, "id9"),
        ] {
            addresses(names, name);
        }
        let mut kept = 0;
        let mut place = &orders.first;
        while let Some(entry) = place.get() {
            kept += 1;
            place = &entry.next;
        }
        assert_eq!(kept, ORDERS_MAX);
    }
}
