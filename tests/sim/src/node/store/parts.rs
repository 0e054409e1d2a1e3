//! Columns that are stored in parts: collections and user types that are not frozen.
//!
//! Every part is a cell of its own, with its own timestamp and end, so that writes of different
//! parts do not undo each other. A deletion of the whole is remembered beside them; setting the
//! whole deletes just before it sets, as a node does.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::codec::Writer;
use super::super::value::CqlType;
use super::{Cell, Stamp};

/// The parts of one column of one row.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    dead_at: i64,
    /// By a key that orders them.
    cells: BTreeMap<Vec<u8>, (Bytes, Cell)>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            dead_at: i64::MIN,
            cells: BTreeMap::new(),
        }
    }
}

/// A part to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Orders the parts of a column.
    pub(crate) order: Vec<u8>,
    /// The element of a set, the key of a map, the position of a field.
    pub(crate) path: Bytes,
    /// None deletes the part.
    pub(crate) value: Option<Bytes>,
}

/// What a write does to the parts of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartsChange {
    pub(crate) clear: Clear,
    pub(crate) parts: Vec<Part>,
    /// What is still to become parts, once the list as it stands is known.
    pub(crate) list: Option<ListChange>,
}

/// Whether the parts that are there are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clear {
    #[default]
    No,
    /// Just before the parts of the same write.
    Before,
    /// With the write.
    With,
}

/// Changes of a list that depend on where its elements stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListChange {
    Append(Vec<Bytes>),
    Prepend(Vec<Bytes>),
    /// Sets or deletes the element at an index.
    At(i32, Option<Bytes>),
    /// Deletes all elements of these values.
    Without(Vec<Bytes>),
}

impl PartsChange {
    /// Roughly the bytes it carries.
    pub(crate) fn size(&self) -> usize {
        let values = |values: &[Bytes]| values.iter().map(|value| value.len() + 24).sum();
        let listed = match &self.list {
            Some(ListChange::Append(added) | ListChange::Prepend(added)) => values(added),
            Some(ListChange::At(..) | ListChange::Without(_)) | None => 0,
        };
        let parts = self.parts.iter();
        let size = |part: &Part| part.path.len() + part.value.as_ref().map_or(0, Bytes::len) + 8;
        parts.map(size).sum::<usize>() + listed
    }
}

impl Parts {
    pub(super) fn apply(&mut self, change: PartsChange, stamp: Stamp) {
        debug_assert!(change.list.is_none(), "lists are settled before");
        match change.clear {
            Clear::No => {}
            Clear::Before => self.dead_at = self.dead_at.max(stamp.timestamp.saturating_sub(1)),
            Clear::With => self.dead_at = self.dead_at.max(stamp.timestamp),
        }
        for Part { order, path, value } in change.parts {
            let cell = Cell {
                timestamp: stamp.timestamp,
                expires: stamp.expires.filter(|_| value.is_some()),
                value,
            };
            match self.cells.get(&order) {
                Some((_, old)) if !cell.beats(old) => {}
                _ => {
                    self.cells.insert(order, (path, cell));
                }
            }
        }
    }

    /// Order, path and value of what is alive.
    pub(super) fn live(
        &self,
        dead_at: i64,
        now: i64,
    ) -> impl Iterator<Item = (&Vec<u8>, &Bytes, &Bytes)> {
        let dead_at = dead_at.max(self.dead_at);
        self.cells.iter().filter_map(move |(order, (path, cell))| {
            let value = cell.value.as_ref().filter(|_| cell.live(dead_at, now))?;
            Some((order, path, value))
        })
    }

    /// The serialized whole, none if no part is alive.
    pub(super) fn value(&self, ty: &CqlType, dead_at: i64, now: i64) -> Option<Bytes> {
        let live: Vec<(&Bytes, &Bytes)> = self
            .live(dead_at, now)
            .map(|(_, path, value)| (path, value))
            .collect();
        if live.is_empty() {
            return None;
        }
        let mut out = Writer::default();
        if let CqlType::User(user) = ty {
            for at in 0..user.fields.len() {
                let path = u16::try_from(at).unwrap_or(u16::MAX).to_be_bytes();
                let field = live.iter().find(|(found, _)| ***found == path);
                out.value(field.map(|(_, value)| *value));
            }
            return Some(out.into_bytes().into());
        }
        out.count(live.len());
        for (path, value) in live {
            match ty {
                CqlType::Set(_) => out.bytes(path),
                CqlType::Map(..) => {
                    out.bytes(path);
                    out.bytes(value);
                }
                _ => out.bytes(value),
            }
        }
        Some(out.into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::value::hex;
    use super::*;

    fn part(key: u8, value: Option<u8>) -> Part {
        Part {
            order: vec![key],
            path: Bytes::copy_from_slice(&[key]),
            value: value.map(|value| Bytes::copy_from_slice(&[value])),
        }
    }

    fn change(clear: Clear, parts: Vec<Part>) -> PartsChange {
        PartsChange {
            clear,
            parts,
            list: None,
        }
    }

    fn tinyint_map() -> CqlType {
        let tinyint = || Box::new(CqlType::Native(super::super::super::value::Native::TinyInt));
        CqlType::Map(tinyint(), tinyint())
    }

    #[test]
    fn parts_are_written_one_by_one_in_any_order() {
        // Changes with their timestamps, then the map as it reads.
        let set = |key, value| change(Clear::No, vec![part(key, Some(value))]);
        let cases = [
            (
                vec![(1, set(2, 20)), (1, set(1, 10))],
                Some("00000002 00000001 01 00000001 0a 00000001 02 00000001 14"),
            ),
            (
                vec![(2, set(1, 11)), (1, set(1, 10))],
                Some("00000001 00000001 01 00000001 0b"),
            ),
            // The whole set at 2 leaves what is later and removes what is earlier.
            (
                vec![
                    (3, set(1, 10)),
                    (1, set(2, 20)),
                    (2, change(Clear::Before, vec![part(3, Some(30))])),
                ],
                Some("00000002 00000001 01 00000001 0a 00000001 03 00000001 1e"),
            ),
            (
                vec![(2, change(Clear::With, vec![])), (2, set(1, 10))],
                None,
            ),
            (
                vec![(1, set(1, 10)), (2, change(Clear::No, vec![part(1, None)]))],
                None,
            ),
        ];
        for (writes, expected) in cases {
            let mut parts = Parts::default();
            for (timestamp, change) in writes.clone() {
                let expires = None;
                parts.apply(change, Stamp { timestamp, expires });
            }
            let found = parts.value(&tinyint_map(), i64::MIN, 0);
            let found = found.map(|bytes| hex(&bytes));
            assert_eq!(
                found,
                expected.map(|text| text.replace(' ', "")),
                "{writes:?}"
            );
        }
    }

    #[test]
    fn parts_expire_and_die_with_their_row() {
        let mut parts = Parts::default();
        let stamp = Stamp {
            timestamp: 5,
            expires: Some(100),
        };
        parts.apply(change(Clear::No, vec![part(1, Some(1))]), stamp);
        assert!(parts.value(&tinyint_map(), 4, 99).is_some());
        assert!(parts.value(&tinyint_map(), 4, 100).is_none());
        assert!(parts.value(&tinyint_map(), 5, 99).is_none());
    }
}
