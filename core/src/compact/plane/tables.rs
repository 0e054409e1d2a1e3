//! The tables that statements use, and what must be known of their keyspaces.
//!
//! A table is known by its names and has one number for as long as the session lives; its tablets
//! go when it is dropped or made anew. Nothing is read of tables that no statement uses.

use super::Plane;
use alloc::boxed::Box;
use uuid::Uuid;

use crate::routing::Partitioner;
use crate::words::{append, boxed};

/// A table that a statement uses, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableKey(pub(super) u16);

/// What a keyspace is for routing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyspaceKind {
    /// It was not read yet.
    #[default]
    Unknown,
    /// Its tables are placed by the ring.
    Vnodes,
    /// Its tables are divided into tablets, any replica coordinates.
    Tablets,
    /// The same, and the leader of each tablet coordinates.
    StrongTablets,
}

/// A keyspace of a table that is used.
#[derive(Debug)]
pub(super) struct Keyspace {
    pub(super) name: Box<str>,
    pub(super) kind: KeyspaceKind,
    pub(super) is_due: bool,
    #[cfg(any(test, feature = "compact-ring"))]
    pub(super) strategy: super::ring::Strategy,
    #[cfg(any(test, feature = "compact-ring"))]
    pub(super) is_strategy_due: bool,
}

/// A table or view that is used.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) keyspace: u16,
    pub(super) name: Box<str>,
    pub(super) id: Option<Uuid>,
    pub(super) is_due: bool,
}

impl Plane {
    /// The number of a table that a statement uses. What is to be known of it becomes due. `None` if
    /// there are too many: the statement is used without routing, and that is counted.
    pub fn table(&mut self, keyspace: &str, name: &str) -> Option<TableKey> {
        let owner = self.keyspace_named(keyspace);
        let is_it =
            |table: &Table| Some(usize::from(table.keyspace)) == owner && *table.name == *name;
        let known = self.tables.iter().position(is_it);
        let place = known.unwrap_or(self.tables.len());
        let key = u16::try_from(place)
            .ok()
            .filter(|place| *place < self.limits.tables);
        let Some(key) = key else {
            let left_out = &mut self.reading.tables_left_out;
            *left_out = left_out.saturating_add(1);
            return None;
        };
        if known.is_none() {
            let owner = owner.unwrap_or_else(|| {
                let mut keyspace = Keyspace {
                    name: boxed(keyspace),
                    kind: KeyspaceKind::Unknown,
                    is_due: false,
                    #[cfg(any(test, feature = "compact-ring"))]
                    strategy: super::ring::Strategy::None,
                    #[cfg(any(test, feature = "compact-ring"))]
                    is_strategy_due: false,
                };
                keyspace.demand(self.reading.is_scylla);
                append(&mut self.keyspaces, keyspace);
                self.keyspaces.len().saturating_sub(1)
            });
            let mut table = Table {
                // There are not more keyspaces than tables.
                keyspace: u16::try_from(owner).unwrap_or(u16::MAX),
                name: boxed(name),
                id: None,
                is_due: false,
            };
            table.demand(self.reading.is_scylla);
            append(&mut self.tables, table);
        }
        Some(TableKey(key))
    }

    /// How keys of a table become tokens; `None` if that is not known, so that it has none.
    pub fn partitioner(&self, table: TableKey) -> Option<Partitioner> {
        let table = self.tables.get(usize::from(table.0))?;
        if self.reading.is_foreign {
            return None;
        }
        // The server takes the name from everybody else.
        Some(if table.name.ends_with("_scylla_cdc_log") {
            Partitioner::Cdc
        } else {
            Partitioner::Murmur3
        })
    }

    #[inline(never)]
    fn keyspace_named(&self, name: &str) -> Option<usize> {
        let is_it = |keyspace: &Keyspace| *keyspace.name == *name;
        self.keyspaces.iter().position(is_it)
    }

    pub(super) fn keyspace_of(&self, table: TableKey) -> Option<&Keyspace> {
        let table = self.tables.get(usize::from(table.0))?;
        self.keyspaces.get(usize::from(table.keyspace))
    }

    /// The schema changed, as an event or an answer tells: in the whole keyspace, or only for one
    /// table of it. What is known of it is read again; tablets of what is gone are forgotten.
    pub fn note_schema_change(&mut self, keyspace: &str, table: Option<&str>, is_dropped: bool) {
        let Some(owner) = self.keyspace_named(keyspace) else {
            return;
        };
        if table.is_none()
            && let Some(keyspace) = self.keyspaces.get_mut(owner)
        {
            keyspace.demand(self.reading.is_scylla);
        }
        for (number, known) in (0..).zip(&mut self.tables) {
            let is_meant = table.is_none_or(|name| *known.name == *name);
            if usize::from(known.keyspace) == owner && is_meant {
                known.demand(self.reading.is_scylla);
                // Other replicas, or none at all.
                if table.is_none() || is_dropped {
                    known.id = None;
                    self.tablets.doom_table(number);
                }
            }
        }
        self.tablets.sweep();
    }
}

impl Table {
    /// It is to be read again. What has no tablets has nothing to forget.
    pub(super) fn demand(&mut self, is_scylla: Option<bool>) {
        self.is_due = HAS_TABLE_IDS && is_scylla == Some(true);
    }

    /// Whether it is to be read; nothing is, where ids are not.
    pub(super) const fn is_due(&self) -> bool {
        HAS_TABLE_IDS && self.is_due
    }
}

impl Keyspace {
    /// It is to be read again, as far as the product has something to say.
    pub(super) fn demand(&mut self, is_scylla: Option<bool>) {
        self.is_due = is_scylla == Some(true);
        if is_scylla == Some(false) {
            self.kind = KeyspaceKind::Vnodes;
        }
        #[cfg(any(test, feature = "compact-ring"))]
        {
            self.is_strategy_due = is_scylla.is_some();
        }
    }

    pub(super) const fn is_anything_due(&self) -> bool {
        #[cfg(any(test, feature = "compact-ring"))]
        if self.is_strategy_due {
            return true;
        }
        self.is_due
    }
}

/// Whether tables are told from those that had their names before.
pub(super) const HAS_TABLE_IDS: bool = cfg!(any(test, feature = "table-ids"));
