//! The control plane's side of routing: takes what was discovered, gives the next view.
//!
//! It owns the handles of tables and the tablet cache. A table keeps its handle, and its learned
//! tablets, for as long as its id stays the same and its keyspace is not changed in a way that
//! makes them wrong; a table that was made anew gets another generation. Everything is bounded by
//! [`RoutingLimits`]; what does not fit is left out and counted.

use super::ring::{ReplicationStrategy, Ring, RingReplicas};
use super::tablet_cache::{Learned, TabletStats};
use super::tablet_store::TabletStore;
use super::topology::NodeFlags;
use super::view::{KeyspaceConsistency, Placement, Schema, Table, TableRef, View};
use super::{LearnedTablet, NodeIdx, NodeSpec, NodesChange, Partitioner, ShardMap, Topology};
use crate::gather::Gather;
use crate::sorted::{SortedMap, sort_by};
use crate::sync::Shared;
use alloc::boxed::Box;
use alloc::vec::Vec;
use uuid::Uuid;

/// Bounds of what routing remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "filled in from the session's limits"
)]
pub struct RoutingLimits {
    /// Nodes, those that left and are still referred to included. At most 65,535 count.
    pub nodes_max: usize,
    /// Tables and views; those beyond are used without token routing.
    pub tables_max: usize,
    /// Bytes of learned tablets; above it the least used are dropped.
    pub tablet_bytes_max: usize,
    /// Replica entries (two bytes each) of one strategy on the vnode ring; above it the lists
    /// are cut.
    pub ring_entries_max: usize,
}

impl Default for RoutingLimits {
    fn default() -> Self {
        Self {
            nodes_max: 4096,
            tables_max: 65_536,
            tablet_bytes_max: 64 << 20,
            ring_entries_max: 4 << 20,
        }
    }
}

/// A keyspace as discovery found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the control plane field by field"
)]
pub struct KeyspaceSpec {
    /// Its name.
    pub name: Box<str>,
    /// How it places replicas.
    pub strategy: ReplicationStrategy,
    /// Whether its tables are divided into tablets.
    pub has_tablets: bool,
    /// Who coordinates its requests. Counts for tablets only.
    pub consistency: KeyspaceConsistency,
}

/// A table or view as discovery found it. Views count as tables: they have tablets of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the control plane field by field"
)]
pub struct TableSpec {
    /// Its name.
    pub name: Box<str>,
    /// Its id: another one under the same name is another table.
    pub id: Uuid,
    /// How its keys become tokens; `None` if we do not know.
    pub partitioner: Option<Partitioner>,
}

/// Owns what routing knows and publishes views of it.
#[derive(Debug)]
pub struct ViewWriter {
    limits: RoutingLimits,
    topology: Shared<Topology>,
    ring: Shared<Ring>,
    keyspaces: SortedMap<Box<str>, Keyspace>,
    slots: Vec<TableSlot>,
    free_slots: Vec<u32>,
    tablets: TabletStore,
    refused_tables: usize,
    /// What was published last, with the changes since then not in it.
    published: View,
    is_schema_dirty: bool,
}

#[derive(Debug)]
struct Keyspace {
    name: Shared<str>,
    spec: Shared<KeyspaceSpec>,
    tables: SortedMap<Box<str>, (u32, TableSpec)>,
}

#[derive(Debug, Default)]
struct TableSlot {
    generation: u32,
    /// The tablets of the table, if its keyspace has them.
    tablets: Option<Shared<super::tablet_table::TabletTable>>,
}

impl ViewWriter {
    /// Knows nothing yet.
    pub fn new(limits: RoutingLimits) -> Self {
        let topology = Shared::new(Topology::new());
        let tablets = TabletStore::new(limits.tablet_bytes_max, topology.clone());
        let published = View {
            topology: topology.clone(),
            schema: Shared::new(Schema::default()),
            rings: Box::default(),
        };
        Self {
            limits,
            topology,
            ring: Shared::new(Ring::default()),
            keyspaces: SortedMap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            tablets,
            refused_tables: 0,
            published,
            is_schema_dirty: false,
        }
    }

    /// From now on exactly these nodes are there. Tablets of nodes that left are dropped, hosts
    /// that were named by tablets before they were known are resolved.
    pub fn set_nodes(&mut self, specs: &[NodeSpec]) -> NodesChange {
        let (topology, change) = self.topology.with_nodes(specs, self.limits.nodes_max);
        if !topology.has_same_ring(&self.topology) {
            self.ring = Shared::new(Ring::new(&topology));
        }
        self.topology = Shared::new(topology);
        if !(change.added.is_empty() && change.removed.is_empty()) {
            self.tablets.set_topology(&self.topology);
        }
        change
    }

    /// Notes whether a node is believed to be up.
    pub fn set_up(&mut self, idx: NodeIdx, is_up: bool) {
        self.change_node(idx, |flags| NodeFlags { is_up, ..flags });
    }

    /// Notes whether the session's own filter lets a node be contacted.
    pub fn set_enabled(&mut self, idx: NodeIdx, is_enabled: bool) {
        self.change_node(idx, |flags| NodeFlags {
            is_enabled,
            ..flags
        });
    }

    /// Notes what a connection told about the shards of a node.
    pub fn set_shard_map(&mut self, idx: NodeIdx, shard_map: Option<ShardMap>) {
        self.change_node(idx, |flags| NodeFlags { shard_map, ..flags });
    }

    /// Lets the index of a node that left be given to another one. To be called when its
    /// connections are gone and requests that knew it have ended.
    pub fn release_node(&mut self, idx: NodeIdx) {
        self.topology = Shared::new(self.topology.with_released(idx));
    }

    fn change_node(&mut self, idx: NodeIdx, change: impl FnOnce(NodeFlags) -> NodeFlags) {
        self.topology = Shared::new(self.topology.with_changed(idx, change));
    }

    /// From now on exactly these keyspaces are there, each with exactly these tables and views.
    pub fn set_schema(&mut self, keyspaces: Vec<(KeyspaceSpec, Vec<TableSpec>)>) {
        self.refused_tables = 0;
        let listed = sorted_names(keyspaces.iter().map(|(spec, _)| &*spec.name));
        let gone = self
            .keyspaces
            .keys()
            .filter(|name| listed.binary_search(&&***name).is_err());
        let gone: Vec<Box<str>> = gone.cloned().gather();
        gone.iter().for_each(|name| self.remove_keyspace(name));
        for (spec, tables) in keyspaces {
            self.put_keyspace(spec, tables);
        }
    }

    /// One keyspace with exactly these tables and views.
    pub fn put_keyspace(&mut self, spec: KeyspaceSpec, tables: Vec<TableSpec>) {
        let name = spec.name.clone();
        self.note_keyspace(spec);
        let listed = sorted_names(tables.iter().map(|spec| &*spec.name));
        let known = self
            .keyspaces
            .get(&name)
            .into_iter()
            .flat_map(|known| known.tables.keys());
        let gone = known.filter(|table| listed.binary_search(&&***table).is_err());
        let gone: Vec<Box<str>> = gone.cloned().gather();
        gone.iter()
            .for_each(|table| self.remove_table(&name, table));
        for table in tables {
            self.put_table(&name, table);
        }
    }

    /// Takes the properties of a keyspace; its tables stay. Where they make learned tablets
    /// wrong, or the tables other ones for routing, these are forgotten.
    fn note_keyspace(&mut self, spec: KeyspaceSpec) {
        let Some(keyspace) = self.keyspaces.get_mut(&spec.name) else {
            let name = Shared::from(&*spec.name);
            let place = spec.name.clone();
            let keyspace = Keyspace {
                name,
                spec: Shared::new(spec),
                tables: SortedMap::new(),
            };
            self.keyspaces.insert(place, keyspace);
            self.is_schema_dirty = true;
            return;
        };
        if *keyspace.spec == spec {
            return;
        }
        self.is_schema_dirty = true;
        let is_same_kind = keyspace.spec.has_tablets == spec.has_tablets
            && keyspace.spec.consistency == spec.consistency;
        keyspace.spec = Shared::new(spec);
        let (name, has_tablets) = (keyspace.spec.name.clone(), keyspace.spec.has_tablets);
        let tables: Vec<(u32, TableSpec)> = keyspace.tables.values().cloned().gather();
        for (place, table) in tables {
            if !is_same_kind {
                self.remove_table(&name, &table.name);
                self.put_table(&name, table);
            } else if has_tablets {
                self.tablets.clear_table(place as usize);
            }
        }
    }

    /// Forgets a keyspace and its tables.
    pub fn remove_keyspace(&mut self, name: &str) {
        if let Some(keyspace) = self.keyspaces.remove(name) {
            keyspace
                .tables
                .values()
                .for_each(|&(place, _)| self.free_slot(place));
            self.is_schema_dirty = true;
        }
    }

    /// A table or view of a known keyspace. With the id it had before it keeps its tablets.
    pub fn put_table(&mut self, keyspace: &str, spec: TableSpec) {
        let Some(owner) = self.keyspaces.get_mut(keyspace) else {
            return;
        };
        let has_tablets = owner.spec.has_tablets;
        if let Some((_, known)) = owner.tables.get_mut(&spec.name) {
            if *known == spec {
                return;
            }
            if known.id == spec.id {
                *known = spec;
                self.is_schema_dirty = true;
                return;
            }
        }
        self.remove_table(keyspace, &spec.name);
        let Some(place) = self.take_slot(has_tablets) else {
            self.refused_tables = self.refused_tables.saturating_add(1);
            return;
        };
        if let Some(owner) = self.keyspaces.get_mut(keyspace) {
            owner.tables.insert(spec.name.clone(), (place, spec));
        }
        self.is_schema_dirty = true;
    }

    /// Forgets a table or view and its tablets.
    pub fn remove_table(&mut self, keyspace: &str, name: &str) {
        let owner = self.keyspaces.get_mut(keyspace);
        if let Some((place, _)) = owner.and_then(|owner| owner.tables.remove(name)) {
            self.free_slot(place);
            self.is_schema_dirty = true;
        }
    }

    /// Stores a tablet; see [`TabletStore::learn`].
    pub fn learn(&self, table: TableRef, learned: &LearnedTablet) -> Learned {
        self.tablets.learn(&self.published, table, learned)
    }

    /// Where callers put the tablets that their answers bring.
    pub const fn tablets(&self) -> &TabletStore {
        &self.tablets
    }

    /// The view of all that was told so far.
    pub fn view(&mut self) -> View {
        if self.is_schema_dirty {
            self.published.schema = Shared::new(self.make_schema());
            self.is_schema_dirty = false;
        }
        let schema = &self.published.schema;
        let rings = schema
            .strategies
            .iter()
            .map(|strategy| self.ring_of(strategy))
            .collect();
        self.published = View {
            topology: self.topology.clone(),
            schema: schema.clone(),
            rings,
        };
        self.published.clone()
    }

    /// The nodes as of now, which may be newer than the last view.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Figures of the tablet cache.
    pub fn tablet_stats(&self) -> TabletStats {
        self.tablets.stats()
    }

    /// Tables left out at the last schema because there were too many.
    pub const fn refused_tables(&self) -> usize {
        self.refused_tables
    }

    /// The replica lists of a strategy, walked anew only if the ring changed.
    fn ring_of(&self, strategy: &ReplicationStrategy) -> Option<Shared<RingReplicas>> {
        if !strategy.routes_by_token() {
            return None;
        }
        let ready = self.published.rings.iter().flatten();
        let ready = ready
            .into_iter()
            .find(|ring| ring.is_of(&self.ring, strategy));
        Some(ready.cloned().unwrap_or_else(|| {
            let entries_max = self.limits.ring_entries_max;
            Shared::new(RingReplicas::new(
                &self.ring,
                &self.topology,
                strategy,
                entries_max,
            ))
        }))
    }

    fn make_schema(&self) -> Schema {
        let mut strategies: Vec<ReplicationStrategy> = Vec::new();
        let mut tables: Vec<Option<Shared<Table>>> = Vec::new();
        tables.resize_with(self.slots.len(), || None);
        let mut by_name = Vec::new();
        // Both maps are sorted, so the list comes out sorted by keyspace and name.
        for keyspace in self.keyspaces.values() {
            let known = strategies
                .iter()
                .position(|known| *known == keyspace.spec.strategy);
            let strategy = known.unwrap_or(strategies.len());
            if known.is_none() && !keyspace.spec.has_tablets {
                strategies.push(keyspace.spec.strategy.clone());
            }
            for (place, spec) in keyspace.tables.values() {
                let Some(slot) = self.slots.get(*place as usize) else {
                    continue;
                };
                let placement = match &slot.tablets {
                    Some(tablets) => Placement::Tablets(tablets.clone(), keyspace.spec.consistency),
                    None => Placement::Ring(strategy),
                };
                let table = Shared::new(Table {
                    handle: TableRef::new(*place, slot.generation),
                    keyspace: keyspace.name.clone(),
                    name: spec.name.clone(),
                    id: spec.id,
                    partitioner: spec.partitioner,
                    placement,
                });
                by_name.push(table.clone());
                if let Some(entry) = tables.get_mut(*place as usize) {
                    *entry = Some(table);
                }
            }
        }
        Schema {
            tables: tables.into_boxed_slice(),
            by_name: by_name.into_boxed_slice(),
            strategies: strategies.into_boxed_slice(),
            keyspaces: self
                .keyspaces
                .values()
                .map(|keyspace| Shared::clone(&keyspace.spec))
                .collect(),
        }
    }

    /// A place for a new table, with a generation that no table had there before.
    fn take_slot(&mut self, has_tablets: bool) -> Option<u32> {
        let place = match self.free_slots.pop() {
            Some(place) => place,
            None if self.slots.len() < self.limits.tables_max => {
                let place = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(TableSlot::default());
                place
            }
            None => return None,
        };
        let slot = self.slots.get_mut(place as usize)?;
        slot.generation = slot.generation.wrapping_add(1);
        let handle = TableRef::new(place, slot.generation);
        slot.tablets = has_tablets.then(|| self.tablets.add_table(handle));
        Some(place)
    }

    fn free_slot(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            slot.tablets = None;
            self.free_slots.push(place);
        }
        self.tablets.remove_table(place as usize);
    }
}

fn sorted_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.gather();
    sort_by(&mut names, Ord::cmp);
    names
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::spec;
    use super::super::{LearnedReplica, Token, VersionBlock, probe};
    use super::*;
    use std::{format, vec};

    fn keyspace(name: &str, has_tablets: bool) -> KeyspaceSpec {
        KeyspaceSpec {
            name: name.into(),
            strategy: ReplicationStrategy::Simple { factor: 1 },
            has_tablets,
            consistency: KeyspaceConsistency::Eventual,
        }
    }

    fn table(name: &str, id: u128) -> TableSpec {
        let partitioner = Some(Partitioner::Murmur3);
        TableSpec {
            name: name.into(),
            id: Uuid::from_u128(id),
            partitioner,
        }
    }

    fn writer() -> ViewWriter {
        let mut writer = ViewWriter::new(RoutingLimits::default());
        writer.set_nodes(&[spec(1, "a", "r", &[10]), spec(2, "a", "r", &[20])]);
        writer
    }

    fn tablet() -> LearnedTablet {
        let replica = LearnedReplica {
            host_id: Uuid::from_u128(1),
            shard: 0,
        };
        LearnedTablet::new(0, 100, None, Box::new([replica])).unwrap()
    }

    fn knows(view: &View, handle: TableRef) -> bool {
        view.tablet(handle, Token::new(5)).is_some()
    }

    fn handle(view: &View, keyspace: &str, name: &str) -> Option<TableRef> {
        view.table_by_name(keyspace, name).map(Table::handle)
    }

    #[test]
    fn tables_and_views_keep_their_tablets_over_refreshes() {
        let mut writer = writer();
        let schema = || {
            vec![
                (
                    keyspace("k", true),
                    vec![table("t", 1), table("mv", 2), table("t_cdc_log", 3)],
                ),
                (keyspace("v", false), vec![table("t", 4)]),
            ]
        };
        writer.set_schema(schema());
        let view = writer.view();
        let names: Vec<_> = view.tables().map(|t| (t.keyspace(), t.name())).collect();
        assert_eq!(
            names,
            [("k", "mv"), ("k", "t"), ("k", "t_cdc_log"), ("v", "t")]
        );
        let handles = ["t", "mv", "t_cdc_log"].map(|name| handle(&view, "k", name).unwrap());
        for table in handles {
            assert_eq!(writer.learn(table, &tablet()), Learned::Added);
            // The view that stands already sees it.
            assert!(knows(&view, table));
        }
        let vnode = handle(&view, "v", "t").unwrap();
        assert_eq!(writer.learn(vnode, &tablet()), Learned::UnknownTable);
        writer.set_schema(schema());
        let view = writer.view();
        for (name, table) in ["t", "mv", "t_cdc_log"].into_iter().zip(handles) {
            assert_eq!(handle(&view, "k", name), Some(table));
            assert!(knows(&view, table));
        }
    }

    #[test]
    fn a_table_made_anew_is_another_one() {
        let mut writer = writer();
        writer.set_schema(vec![(keyspace("k", true), vec![table("t", 1)])]);
        let old_view = writer.view();
        let old = handle(&old_view, "k", "t").unwrap();
        writer.learn(old, &tablet());
        writer.put_table("k", table("t", 2));
        let view = writer.view();
        let new = handle(&view, "k", "t").unwrap();
        assert_ne!(old, new);
        assert!(view.table(old).is_none() && !knows(&view, new) && !knows(&view, old));
        assert_eq!(writer.learn(old, &tablet()), Learned::UnknownTable);
        assert_eq!(writer.learn(new, &tablet()), Learned::Added);
        // Dropped, and another table takes its place.
        writer.remove_table("k", "t");
        writer.put_table("k", table("u", 3));
        let view = writer.view();
        assert_eq!(handle(&view, "k", "t"), None);
        assert!(view.table(new).is_none());
        assert_eq!(writer.tablet_stats().cached, 0);
        writer.remove_keyspace("k");
        assert_eq!(writer.view().tables().count(), 0);
    }

    #[test]
    fn changes_of_a_keyspace_forget_what_they_make_wrong() {
        type Change = fn(&mut KeyspaceSpec);
        let more: Change = |k| k.strategy = ReplicationStrategy::Simple { factor: 2 };
        let strong: Change = |k| k.consistency = KeyspaceConsistency::Strong;
        let vnodes: Change = |k| k.has_tablets = false;
        // Change, whether handles last, whether tablets last.
        let table_rows: [(Change, bool, bool); 4] = [
            (|_| {}, true, true),
            (more, true, false),
            (strong, false, false),
            (vnodes, false, false),
        ];
        for (change, keeps_handle, keeps_tablets) in table_rows {
            let mut writer = writer();
            let mut spec = keyspace("k", true);
            writer.put_keyspace(spec.clone(), vec![table("t", 1)]);
            let old = handle(&writer.view(), "k", "t").unwrap();
            writer.learn(old, &tablet());
            change(&mut spec);
            writer.put_keyspace(spec.clone(), vec![table("t", 1)]);
            let view = writer.view();
            let new = view.table_by_name("k", "t").unwrap();
            assert_eq!(
                (new.handle() == old, knows(&view, old)),
                (keeps_handle, keeps_tablets)
            );
            assert_eq!(new.has_tablets(), spec.has_tablets);
            assert_eq!(new.consistency(), spec.consistency);
        }
    }

    #[test]
    fn views_share_what_did_not_change() {
        let mut writer = writer();
        writer.put_keyspace(keyspace("a", false), vec![table("t", 1)]);
        writer.put_keyspace(keyspace("b", false), vec![table("t", 2)]);
        let local = KeyspaceSpec {
            strategy: ReplicationStrategy::Local,
            ..keyspace("c", false)
        };
        writer.put_keyspace(local, vec![table("t", 3)]);
        let first = writer.view();
        // Two strategies, one of which says nothing about tokens.
        assert_eq!(first.rings.len(), 2);
        assert!(first.rings[0].is_some() && first.rings[1].is_none());
        let idx = first
            .topology()
            .node_by_host_id(Uuid::from_u128(1))
            .unwrap();
        writer.set_up(idx, false);
        let second = writer.view();
        assert!(!second.topology().node(idx).unwrap().is_up());
        assert!(first.topology().node(idx).unwrap().is_up());
        assert!(Shared::ptr_eq(&first.schema, &second.schema));
        let ring = |view: &View| view.rings[0].clone().unwrap();
        assert!(Shared::ptr_eq(&ring(&first), &ring(&second)));
        writer.set_nodes(&[spec(1, "a", "r", &[10]), spec(2, "a", "r", &[21])]);
        assert!(!Shared::ptr_eq(&ring(&first), &ring(&writer.view())));
    }

    #[test]
    fn tables_beyond_the_bound_are_left_out() {
        let limits = RoutingLimits {
            tables_max: 2,
            ..RoutingLimits::default()
        };
        let mut writer = ViewWriter::new(limits);
        let tables = || vec![table("a", 1), table("b", 2), table("c", 3)];
        for _ in 0..2 {
            writer.set_schema(vec![(keyspace("k", true), tables())]);
            assert_eq!(
                (writer.view().tables().count(), writer.refused_tables()),
                (2, 1)
            );
        }
        writer.remove_table("k", "a");
        writer.put_table("k", table("c", 3));
        assert!(handle(&writer.view(), "k", "c").is_some());
    }

    #[test]
    fn probes_follow_the_tablet_or_chance() {
        let mut writer = writer();
        writer.put_keyspace(keyspace("k", true), vec![table("t", 1)]);
        writer.put_keyspace(keyspace("v", false), vec![table("t", 2)]);
        let view = writer.view();
        let tablets = handle(&view, "k", "t");
        let token = Some(Token::new(5));
        let unknown = VersionBlock::new(0, 9);
        assert_eq!(probe(&view, tablets, token, 9), unknown);
        let mut learned = tablet();
        learned.version = Some(super::super::TabletVersion::new(0xa3a6_be5f_3d49_8142));
        writer.learn(tablets.unwrap(), &learned);
        let blocks = [0x02, 0x14, 0x21].map(|byte: u8| VersionBlock::new(byte >> 4, byte));
        for block in blocks {
            assert_eq!(probe(&view, tablets, token, 9), block);
        }
        assert_eq!(probe(&view, tablets, None, 9), unknown);
        assert_eq!(probe(&view, tablets, Some(Token::new(101)), 9), unknown);
        assert_eq!(probe(&view, handle(&view, "v", "t"), token, 9), unknown);
        assert_eq!(probe(&view, None, token, 9), unknown);
    }

    /// Tablets go with their table, by whatever way it goes.
    #[test]
    fn tablets_are_dropped_with_their_table() {
        type Drop = fn(&mut ViewWriter);
        let ways: [Drop; 3] = [
            |writer| writer.remove_table("ks", "t"),
            |writer| writer.remove_keyspace("ks"),
            |writer| writer.set_schema(vec![]),
        ];
        for drop_table in ways {
            let mut writer = writer();
            writer.put_keyspace(keyspace("ks", true), vec![table("t", 1)]);
            let handle = handle(&writer.view(), "ks", "t").unwrap();
            assert_eq!(writer.learn(handle, &tablet()), Learned::Added);
            assert_eq!(writer.tablets().stats().cached, 1);
            drop_table(&mut writer);
            let stats = writer.tablets().stats();
            assert_eq!((stats.cached, stats.bytes), (0, 0));
        }
    }

    #[test]
    fn a_view_tells_of_its_tables_and_their_tablets() {
        let mut writer = writer();
        writer.put_keyspace(keyspace("ks", true), vec![table("t", 1)]);
        writer.put_keyspace(keyspace("vnode", false), vec![table("t", 2)]);
        let view = writer.view();
        let handle = handle(&view, "ks", "t").unwrap();
        assert_eq!(format!("{handle:?}").get(..6), Some("table "));
        writer.learn(handle, &tablet());
        let stats = view.table(handle).and_then(Table::tablet_stats).unwrap();
        assert_eq!(stats.cached, 1);
        assert_eq!(view.tablets(handle).len(), 1);
        assert!(view.holds(handle, &tablet()));
        #[cfg(feature = "lwt-learning")]
        for (token, end) in [(5, Some(100)), (100, Some(100)), (101, None)] {
            assert_eq!(view.tablet_end(handle, Token::new(token)), end, "{token}");
        }
        let ring = view.table_by_name("vnode", "t").unwrap();
        assert_eq!(ring.tablet_stats(), None);
    }

    /// A full table of nodes has no place for a new one until that of a node which left is released.
    #[test]
    fn a_released_place_is_given_again() {
        let mut writer = ViewWriter::new(RoutingLimits {
            nodes_max: 1,
            ..RoutingLimits::default()
        });
        assert!(writer.topology().is_empty());
        let first = writer.set_nodes(&[spec(1, "a", "r", &[10])]).added[0];
        assert!(!writer.topology().is_empty());
        let second = [spec(2, "a", "r", &[20])];
        assert!(writer.set_nodes(&second).added.is_empty());
        writer.release_node(first);
        assert_eq!(writer.set_nodes(&second).added[..], [first]);
    }
}
