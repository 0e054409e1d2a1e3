//! What planning reads: an immutable snapshot of nodes, tables and rings.
//!
//! A [`View`] never changes, but for the tablets of its tables, which are learned one by one into
//! snapshots of their own. It is small to make: what did not change is shared with the one before.
//! Tables stand in it by place and generation, so the handle of a dropped table finds nothing,
//! also when a table of the same name was made again.

use super::ring::{ReplicationStrategy, RingReplicas};
use super::tablet_table::TabletTable;
use super::{KeyspaceSpec, LearnedTablet, Partitioner, TabletStats, Token, Topology, VersionBlock};
use crate::sync::Shared;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use uuid::Uuid;

/// A table of a session: its place among all, and which of the tables that stood there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableRef {
    place: u32,
    generation: u32,
}

impl TableRef {
    pub(crate) const fn new(place: u32, generation: u32) -> Self {
        Self { place, generation }
    }

    pub(crate) const fn place(self) -> usize {
        self.place as usize
    }

    pub(crate) const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for TableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}.{}", self.place, self.generation)
    }
}

/// Who coordinates the requests of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyspaceConsistency {
    /// Any replica.
    #[default]
    Eventual,
    /// The Raft leader of each tablet; its first replica, where the server told the version.
    Strong,
}

/// A table or view as routing knows it.
#[derive(Debug)]
pub struct Table {
    pub(super) handle: TableRef,
    pub(super) keyspace: Shared<str>,
    pub(super) name: Box<str>,
    pub(super) id: Uuid,
    pub(super) partitioner: Option<Partitioner>,
    pub(super) placement: Placement,
}

#[derive(Debug)]
pub(super) enum Placement {
    /// By the ring: the place of the strategy among the view's.
    Ring(usize),
    Tablets(Shared<TabletTable>, KeyspaceConsistency),
}

impl Table {
    /// Its handle.
    pub const fn handle(&self) -> TableRef {
        self.handle
    }

    /// The name of its keyspace.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id: a table made anew under the same name has another one.
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// How its keys become tokens. `None`: in a way that we do not know, so it has no tokens.
    pub const fn partitioner(&self) -> Option<Partitioner> {
        self.partitioner
    }

    /// Whether it is divided into tablets.
    pub const fn has_tablets(&self) -> bool {
        matches!(self.placement, Placement::Tablets(..))
    }

    /// Figures of its learned tablets; `None` if it has none by nature.
    pub fn tablet_stats(&self) -> Option<TabletStats> {
        match &self.placement {
            Placement::Tablets(tablets, _) => Some(tablets.stats()),
            Placement::Ring(_) => None,
        }
    }

    /// Who coordinates its requests.
    pub const fn consistency(&self) -> KeyspaceConsistency {
        match self.placement {
            Placement::Tablets(_, consistency) => consistency,
            Placement::Ring(_) => KeyspaceConsistency::Eventual,
        }
    }
}

/// The tables of a cluster.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// By place.
    pub(super) tables: Box<[Option<Shared<Table>>]>,
    /// Sorted by keyspace and name.
    pub(super) by_name: Box<[Shared<Table>]>,
    pub(super) strategies: Box<[ReplicationStrategy]>,
    /// Sorted by name.
    pub(super) keyspaces: Box<[Shared<KeyspaceSpec>]>,
}

/// What planning reads.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) topology: Shared<Topology>,
    pub(super) schema: Shared<Schema>,
    /// One for each strategy of the schema; `None` where tokens say nothing.
    pub(super) rings: Box<[Option<Shared<RingReplicas>>]>,
}

impl View {
    /// Nodes without any table.
    pub(crate) fn of_nodes(topology: Topology) -> Self {
        Self {
            topology: Shared::new(topology),
            schema: Shared::new(Schema::default()),
            rings: Box::default(),
        }
    }

    /// The nodes.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The table of a handle, unless it was dropped or made anew.
    pub fn table(&self, handle: TableRef) -> Option<&Table> {
        let table = self.schema.tables.get(handle.place())?.as_deref()?;
        (table.handle == handle).then_some(table)
    }

    /// The table or view of a name. For building a statement's route once, not for each request.
    pub fn table_by_name(&self, keyspace: &str, name: &str) -> Option<&Table> {
        let tables = &self.schema.by_name;
        let place = tables
            .binary_search_by(|table| (table.keyspace(), table.name()).cmp(&(keyspace, name)))
            .ok()?;
        tables.get(place).map(|table| &**table)
    }

    /// All tables and views, sorted by keyspace and name.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.schema.by_name.iter().map(|table| &**table)
    }

    /// All keyspaces, sorted by name.
    pub fn keyspaces(&self) -> impl Iterator<Item = &KeyspaceSpec> {
        self.schema.keyspaces.iter().map(|spec| &**spec)
    }

    /// The learned tablets of a table in the order of their tokens, and whether each was looked up
    /// of late.
    pub fn tablets(&self, handle: TableRef) -> Vec<(LearnedTablet, bool)> {
        match self.table(handle).map(|table| &table.placement) {
            Some(Placement::Tablets(tablets, _)) => tablets.all(&self.topology),
            _ => Vec::new(),
        }
    }

    /// The learned tablet that owns a token, for explaining a route.
    pub fn tablet(&self, handle: TableRef, token: Token) -> Option<LearnedTablet> {
        match &self.table(handle)?.placement {
            Placement::Tablets(tablets, _) => tablets.describe(token, &self.topology),
            Placement::Ring(_) => None,
        }
    }

    /// The last token of the learned tablet that owns a token.
    #[cfg(feature = "lwt-learning")]
    pub(crate) fn tablet_end(&self, handle: TableRef, token: Token) -> Option<i64> {
        match &self.table(handle)?.placement {
            Placement::Tablets(tablets, _) => tablets.find(token).map(|hit| hit.last),
            Placement::Ring(_) => None,
        }
    }

    /// Whether exactly this tablet of the table was learned.
    pub(super) fn holds(&self, handle: TableRef, learned: &LearnedTablet) -> bool {
        match self.table(handle).map(|table| &table.placement) {
            Some(Placement::Tablets(tablets, _)) => tablets.holds(learned, &self.topology),
            _ => false,
        }
    }

    pub(super) fn ring(&self, strategy: usize) -> Option<&RingReplicas> {
        self.rings.get(strategy)?.as_deref()
    }
}

/// The version block for a request, where the second routing extension was agreed. Draws the next
/// position of the tablet; a request without a learned tablet shows what `entropy` says.
pub fn probe(
    view: &View,
    table: Option<TableRef>,
    token: Option<Token>,
    entropy: u64,
) -> VersionBlock {
    let known = || match &view.table(table?)?.placement {
        Placement::Tablets(tablets, _) => tablets.probe(token?),
        Placement::Ring(_) => None,
    };
    known().unwrap_or_else(|| VersionBlock::unknown(entropy))
}
