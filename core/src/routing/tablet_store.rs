//! Where callers put the tablets that their answers bring.
//!
//! The control plane makes tables and nodes known; whoever reads an answer stores its tablet at
//! once, so that the very next request is routed by it: a queue to the control plane would let a
//! caller's next request go wrong before it was served. Planning never comes here, it reads the
//! chunks' snapshots. A tablet that is stored already, as others in flight have learned it, is seen
//! without the lock.

use super::tablet_cache::{Learned, TabletCache, TabletStats};
use super::tablet_table::TabletTable;
use super::{LearnedTablet, TableRef, Topology, View};
use crate::sync::{Mutex, Shared};

/// The learned tablets of a session, for those who learn them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TabletStore {
    tablets: Shared<Mutex<Tablets>>,
}

#[derive(Debug)]
struct Tablets {
    cache: TabletCache,
    /// The nodes as the control plane knew them last.
    topology: Shared<Topology>,
}

impl TabletStore {
    pub(crate) fn new(bytes_max: usize, topology: Shared<Topology>) -> Self {
        let cache = TabletCache::new(bytes_max);
        Self {
            tablets: Shared::new(Mutex::new(Tablets { cache, topology })),
        }
    }

    /// Stores a tablet that the answer to a statement on this table brought, in place of all that
    /// it overlaps. Readers of all views that have the table see it at once. Costs one allocation;
    /// other learners wait meanwhile, readers do not.
    pub fn learn(&self, view: &View, table: TableRef, learned: &LearnedTablet) -> Learned {
        if view.holds(table, learned) {
            return Learned::Unchanged;
        }
        self.tablets
            .with(|tablets| tablets.cache.insert(table, learned, &tablets.topology))
            .unwrap_or(Learned::UnknownTable)
    }

    /// Figures of the tablets.
    pub fn stats(&self) -> TabletStats {
        self.tablets
            .with(|tablets| tablets.cache.stats())
            .unwrap_or_default()
    }

    /// An empty table under this handle.
    pub(super) fn add_table(&self, handle: TableRef) -> Shared<TabletTable> {
        self.tablets
            .with(|tablets| tablets.cache.add_table(handle))
            .unwrap_or_else(|_| Shared::new(TabletTable::new()))
    }

    /// Drops a table and its tablets.
    pub(super) fn remove_table(&self, place: usize) {
        self.change(|tablets| tablets.cache.remove_table(place));
    }

    /// Drops the tablets of a table, which stays.
    pub(super) fn clear_table(&self, place: usize) {
        self.change(|tablets| tablets.cache.clear_table(place));
    }

    /// Other nodes are there: drops tablets of those that left, resolves those that have come.
    pub(super) fn set_topology(&self, topology: &Shared<Topology>) {
        self.change(|tablets| {
            tablets.topology = Shared::clone(topology);
            tablets.cache.refresh(topology);
        });
    }

    /// After a panic inside the lock, which is a fault of this crate, nothing is learned any more.
    fn change(&self, change: impl FnOnce(&mut Tablets)) {
        let _poisoned = self.tablets.with(change);
    }
}
