//! Nodes, data centres and racks: an immutable snapshot, and how the next one follows from it.
//!
//! Nodes are known by a two-byte [`NodeIdx`], interned by host id. An index means the same node
//! for as long as the session lives: an address change keeps it, a replaced node (new host id)
//! gets another one, and the index of a node that left stays retired until its owner says that
//! nothing refers to it any more. There are never more indexes than `nodes_max`.

use super::ShardMap;
use crate::gather::Gather;
use crate::sorted::{SortedMap, sort_by};
use crate::sync::Shared;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::ops::Range;
use uuid::Uuid;

/// A node of the cluster, by its place in the session's table of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(u16);

impl NodeIdx {
    /// The first place, and the only one of a session that knows one node.
    pub(crate) const FIRST: Self = Self(0);

    /// Stands for "no node" where a node is stored in two bytes.
    pub(super) const NONE: u16 = u16::MAX;

    /// The node at a place of the table, be it in use or not; `None` for the place that no node
    /// can have.
    pub const fn from_value(value: u16) -> Option<Self> {
        if value == Self::NONE {
            None
        } else {
            Some(Self(value))
        }
    }

    /// Its place in the table.
    pub const fn value(self) -> u16 {
        self.0
    }

    pub(crate) fn at(place: usize) -> Option<Self> {
        u16::try_from(place).ok().and_then(Self::from_value)
    }

    fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A data centre of one [`Topology`]; another snapshot may number them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DcIdx(u16);

/// A rack, that is a name within a data centre, of one [`Topology`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RackIdx(u16);

impl DcIdx {
    /// Its place among the data centres.
    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }
}

impl RackIdx {
    /// Its place among all racks.
    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A node as discovery found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "built by the control plane field by field"
)]
pub struct NodeSpec {
    /// Its identity.
    pub host_id: Uuid,
    /// Where clients reach it.
    pub address: SocketAddr,
    /// Its data centre.
    pub dc: Box<str>,
    /// Its rack.
    pub rack: Box<str>,
    /// Its tokens on the vnode ring; none for a node that owns no data.
    pub tokens: Box<[i64]>,
    /// Whether it is believed to be up.
    pub is_up: bool,
    /// Whether the session's own filter lets it be contacted.
    pub is_enabled: bool,
}

/// A node of a snapshot.
#[derive(Clone, Debug)]
pub struct Node {
    idx: NodeIdx,
    host_id: Uuid,
    address: SocketAddr,
    dc: DcIdx,
    rack: RackIdx,
    shard_map: Option<ShardMap>,
    tokens: Shared<[i64]>,
    is_up: bool,
    is_enabled: bool,
}

impl Node {
    /// Its index.
    pub const fn idx(&self) -> NodeIdx {
        self.idx
    }

    /// Its identity.
    pub const fn host_id(&self) -> Uuid {
        self.host_id
    }

    /// Where clients reach it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its data centre, in the same snapshot.
    pub const fn dc(&self) -> DcIdx {
        self.dc
    }

    /// Its rack, in the same snapshot.
    pub const fn rack(&self) -> RackIdx {
        self.rack
    }

    /// How it divides tokens over shards, once a connection has told.
    pub const fn shard_map(&self) -> Option<ShardMap> {
        self.shard_map
    }

    /// Its tokens on the vnode ring.
    pub fn tokens(&self) -> &[i64] {
        &self.tokens
    }

    /// Whether it is believed to be up.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the session's own filter lets it be contacted.
    pub const fn is_enabled(&self) -> bool {
        self.is_enabled
    }
}

/// What a refresh changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodesChange {
    /// Nodes that were not there before.
    pub added: Vec<NodeIdx>,
    /// Nodes that are gone. Their indexes stay retired until they are released.
    pub removed: Vec<NodeIdx>,
    /// Nodes left out because the table of nodes is full.
    pub refused: usize,
}

/// The nodes of the cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    slots: Box<[Slot]>,
    by_host_id: SortedMap<Uuid, NodeIdx>,
    /// Sorted by name.
    dcs: Box<[Dc]>,
    /// Sorted by data centre, then name.
    racks: Box<[Rack]>,
    /// Present nodes sorted by data centre, rack and index, so that each of these is a slice.
    order: Box<[NodeIdx]>,
}

#[derive(Clone, Debug)]
enum Slot {
    Free,
    Present(Shared<Node>),
    /// The node left, but something may still refer to its index.
    Retired(Uuid),
}

#[derive(Clone, Debug)]
struct Dc {
    name: Box<str>,
    nodes: Range<usize>,
    racks: Range<usize>,
}

#[derive(Clone, Debug)]
struct Rack {
    name: Box<str>,
    nodes: Range<usize>,
}

impl Topology {
    /// A cluster without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// One node of which nothing else is known, under the index [`NodeIdx::FIRST`].
    pub(crate) fn of_one(host_id: Uuid, address: SocketAddr) -> Self {
        let node = Node {
            idx: NodeIdx::FIRST,
            host_id,
            address,
            dc: DcIdx(0),
            rack: RackIdx(0),
            shard_map: None,
            tokens: Shared::from(Vec::new()),
            is_up: true,
            is_enabled: true,
        };
        let mut by_host_id = SortedMap::new();
        by_host_id.insert(host_id, NodeIdx::FIRST);
        Self {
            slots: Box::from([Slot::Present(Shared::new(node))]),
            by_host_id,
            dcs: Box::from([Dc {
                name: Box::default(),
                nodes: 0..1,
                racks: 0..1,
            }]),
            racks: Box::from([Rack {
                name: Box::default(),
                nodes: 0..1,
            }]),
            order: Box::from([NodeIdx::FIRST]),
        }
    }

    /// The node of an index, unless it left.
    pub fn node(&self, idx: NodeIdx) -> Option<&Node> {
        match self.slots.get(idx.place()) {
            Some(Slot::Present(node)) => Some(node),
            _ => None,
        }
    }

    /// The index of a host.
    pub fn node_by_host_id(&self, host_id: Uuid) -> Option<NodeIdx> {
        self.by_host_id.get(&host_id).copied()
    }

    /// All nodes, sorted by data centre and rack.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.order.iter().filter_map(|&idx| self.node(idx))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// One more than the highest index in use: the length of a table by index.
    pub fn idx_end(&self) -> usize {
        self.slots.len()
    }

    /// The data centre of a name.
    pub fn dc_by_name(&self, name: &str) -> Option<DcIdx> {
        let place = self.dcs.binary_search_by(|dc| (*dc.name).cmp(name)).ok()?;
        u16::try_from(place).ok().map(DcIdx)
    }

    /// The rack of a name in a data centre.
    pub fn rack_by_name(&self, dc: DcIdx, name: &str) -> Option<RackIdx> {
        let places = self.dcs.get(dc.place())?.racks.clone();
        let racks = self.racks.get(places.clone())?;
        let place = racks.binary_search_by(|rack| (*rack.name).cmp(name)).ok()?;
        u16::try_from(places.start.saturating_add(place))
            .ok()
            .map(RackIdx)
    }

    /// The name of a data centre.
    pub fn dc_name(&self, dc: DcIdx) -> &str {
        self.dcs.get(dc.place()).map_or("", |dc| &dc.name)
    }

    /// The name of a rack.
    pub fn rack_name(&self, rack: RackIdx) -> &str {
        self.racks.get(rack.place()).map_or("", |rack| &rack.name)
    }

    pub(super) fn all_in_order(&self) -> &[NodeIdx] {
        &self.order
    }

    pub(super) fn dc_in_order(&self, dc: DcIdx) -> &[NodeIdx] {
        let nodes = self.dcs.get(dc.place()).map(|dc| dc.nodes.clone());
        nodes
            .and_then(|nodes| self.order.get(nodes))
            .unwrap_or_default()
    }

    pub(super) fn rack_in_order(&self, rack: RackIdx) -> &[NodeIdx] {
        let nodes = self.racks.get(rack.place()).map(|rack| rack.nodes.clone());
        nodes
            .and_then(|nodes| self.order.get(nodes))
            .unwrap_or_default()
    }

    pub(super) fn dc_count(&self) -> usize {
        self.dcs.len()
    }

    pub(super) fn rack_count(&self) -> usize {
        self.racks.len()
    }

    /// Whether tokens are owned by the same nodes in the same places, so that a ring of one
    /// holds for the other.
    pub(super) fn has_same_ring(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.nodes(), other.nodes());
        let same = |(a, b): (&Node, &Node)| {
            a.idx == b.idx
                && self.dc_name(a.dc) == other.dc_name(b.dc)
                && self.rack_name(a.rack) == other.rack_name(b.rack)
                && (Shared::ptr_eq(&a.tokens, &b.tokens) || a.tokens == b.tokens)
        };
        self.len() == other.len() && ours.zip(theirs).all(same)
    }
}

/// The control plane's side: each call gives the next snapshot.
impl Topology {
    /// The snapshot in which exactly these nodes are present. Known hosts keep their index and
    /// shard map; of several with one host id the first counts; when the table of nodes
    /// (`nodes_max` places, at most 65,535) is full, the rest is refused.
    pub(super) fn with_nodes(&self, specs: &[NodeSpec], nodes_max: usize) -> (Self, NodesChange) {
        let mut change = NodesChange::default();
        let mut slots = self.slots.to_vec();
        let mut by_host_id = SortedMap::new();
        let mut placed: Vec<(NodeIdx, &NodeSpec)> = Vec::new();
        for spec in specs {
            if by_host_id.contains_key(&spec.host_id) {
                continue;
            }
            // A known host keeps its place, so a newcomer cannot take it.
            let place = self.place_of(spec.host_id);
            match place.or_else(|| free_slot(&mut slots, nodes_max)) {
                Some(idx) => {
                    // Holds the place until the nodes are built below.
                    if let Some(slot) = slots.get_mut(idx.place()) {
                        *slot = Slot::Retired(spec.host_id);
                    }
                    by_host_id.insert(spec.host_id, idx);
                    placed.push((idx, spec));
                }
                None => change.refused = change.refused.saturating_add(1),
            }
        }
        for node in self.nodes() {
            if !by_host_id.contains_key(&node.host_id) {
                change.removed.push(node.idx);
                if let Some(slot) = slots.get_mut(node.idx.place()) {
                    *slot = Slot::Retired(node.host_id);
                }
            }
        }
        change.added = placed.iter().map(|&(idx, _)| idx).gather();
        change.added.retain(|&idx| self.node(idx).is_none());
        let next = Self {
            slots: slots.into_boxed_slice(),
            by_host_id,
            ..Self::default()
        };
        (next.arranged(self, placed), change)
    }

    /// Fills in the nodes and sorts them into data centres and racks.
    fn arranged(mut self, before: &Self, mut placed: Vec<(NodeIdx, &NodeSpec)>) -> Self {
        sort_by(&mut placed, |(a_idx, a), (b_idx, b)| {
            (&a.dc, &a.rack, a_idx).cmp(&(&b.dc, &b.rack, b_idx))
        });
        let (mut dcs, mut racks): (Vec<Dc>, Vec<Rack>) = (Vec::new(), Vec::new());
        for (at, (idx, spec)) in placed.iter().enumerate() {
            let end = at.saturating_add(1);
            let new_dc = dcs.last().is_none_or(|dc| dc.name != spec.dc);
            if new_dc || racks.last().is_none_or(|rack| rack.name != spec.rack) {
                racks.push(Rack {
                    name: spec.rack.clone(),
                    nodes: at..end,
                });
            }
            if new_dc {
                let first_rack = racks.len().saturating_sub(1);
                let racks = first_rack..racks.len();
                dcs.push(Dc {
                    name: spec.dc.clone(),
                    nodes: at..end,
                    racks,
                });
            }
            if let (Some(dc), Some(rack)) = (dcs.last_mut(), racks.last_mut()) {
                (dc.nodes.end, rack.nodes.end) = (end, end);
            }
            let rack_end = racks.len();
            if let Some(dc) = dcs.last_mut() {
                dc.racks.end = rack_end;
            }
            let (dc, rack) = (last_place(dcs.len()), last_place(racks.len()));
            let node = before.next_node(*idx, spec, DcIdx(dc), RackIdx(rack));
            if let Some(slot) = self.slots.get_mut(idx.place()) {
                *slot = Slot::Present(Shared::new(node));
            }
        }
        self.dcs = dcs.into_boxed_slice();
        self.racks = racks.into_boxed_slice();
        self.order = placed.into_iter().map(|(idx, _)| idx).collect();
        self
    }

    fn next_node(&self, idx: NodeIdx, spec: &NodeSpec, dc: DcIdx, rack: RackIdx) -> Node {
        let before = self.node(idx);
        let tokens = match before {
            Some(before) if *before.tokens == *spec.tokens => before.tokens.clone(),
            _ => Shared::from(&*spec.tokens),
        };
        Node {
            idx,
            host_id: spec.host_id,
            address: spec.address,
            dc,
            rack,
            shard_map: before.and_then(Node::shard_map),
            tokens,
            is_up: spec.is_up,
            is_enabled: spec.is_enabled,
        }
    }

    /// The snapshot in which one node is changed. Data centre and rack cannot change this way.
    pub(super) fn with_changed(
        &self,
        idx: NodeIdx,
        change: impl FnOnce(NodeFlags) -> NodeFlags,
    ) -> Self {
        let mut next = self.clone();
        if let Some(Slot::Present(node)) = next.slots.get_mut(idx.place()) {
            let NodeFlags {
                is_up,
                is_enabled,
                shard_map,
            } = change(NodeFlags {
                is_up: node.is_up,
                is_enabled: node.is_enabled,
                shard_map: node.shard_map,
            });
            *node = Shared::new(Node {
                is_up,
                is_enabled,
                shard_map,
                ..(**node).clone()
            });
        }
        next
    }

    /// The snapshot in which the index of a node that left may be given to another one.
    pub(super) fn with_released(&self, idx: NodeIdx) -> Self {
        let mut next = self.clone();
        if let Some(slot @ Slot::Retired(_)) = next.slots.get_mut(idx.place()) {
            *slot = Slot::Free;
        }
        next
    }

    /// The index that belongs to a host, also if it left and may come back.
    fn place_of(&self, host_id: Uuid) -> Option<NodeIdx> {
        let retired = |slot: &Slot| matches!(slot, Slot::Retired(gone) if *gone == host_id);
        self.node_by_host_id(host_id)
            .or_else(|| NodeIdx::at(self.slots.iter().position(retired)?))
    }
}

/// What may change of a node between two refreshes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeFlags {
    pub(super) is_up: bool,
    pub(super) is_enabled: bool,
    pub(super) shard_map: Option<ShardMap>,
}

/// The lowest free place; the table grows to `nodes_max`.
fn free_slot(slots: &mut Vec<Slot>, nodes_max: usize) -> Option<NodeIdx> {
    let free = slots.iter().position(|slot| matches!(slot, Slot::Free));
    let place = free.unwrap_or(slots.len());
    if place >= nodes_max {
        return None;
    }
    let idx = NodeIdx::at(place)?;
    if free.is_none() {
        slots.push(Slot::Free);
    }
    Some(idx)
}

/// The place of the last of `len`. There are at most as many as nodes, so it fits.
fn last_place(len: usize) -> u16 {
    u16::try_from(len.saturating_sub(1)).unwrap_or(u16::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::string::String;
    use std::{format, vec};

    /// A node `n` in the given places, up and enabled.
    pub(in crate::routing) fn spec(n: u8, dc: &str, rack: &str, tokens: &[i64]) -> NodeSpec {
        NodeSpec {
            host_id: Uuid::from_u128(u128::from(n)),
            address: SocketAddr::from(([127, 0, 0, n], 9042)),
            dc: dc.into(),
            rack: rack.into(),
            tokens: tokens.into(),
            is_up: true,
            is_enabled: true,
        }
    }

    fn idx(topology: &Topology, n: u8) -> Option<u16> {
        topology
            .node_by_host_id(Uuid::from_u128(u128::from(n)))
            .map(NodeIdx::value)
    }

    fn summary(topology: &Topology) -> Vec<String> {
        let place = |node: &Node| {
            let (dc, rack) = (topology.dc_name(node.dc()), topology.rack_name(node.rack()));
            format!("{}={dc}/{rack}", node.idx().value())
        };
        topology.nodes().map(place).collect()
    }

    #[test]
    fn indexes_last_and_are_not_reused_before_release() {
        let start = Topology::new();
        let specs = [
            spec(1, "a", "r", &[]),
            spec(2, "a", "r", &[]),
            spec(3, "b", "r", &[]),
        ];
        let (first, change) = start.with_nodes(&specs, 4);
        assert_eq!(
            (change.added.len(), change.removed.len(), change.refused),
            (3, 0, 0)
        );
        assert_eq!(
            [idx(&first, 1), idx(&first, 2), idx(&first, 3)],
            [Some(0), Some(1), Some(2)]
        );

        // 2 left, 9 came: the place of 2 is not taken.
        let specs = [
            spec(9, "a", "r", &[]),
            spec(3, "b", "r", &[]),
            spec(1, "a", "r", &[]),
        ];
        let (second, change) = first.with_nodes(&specs, 4);
        assert_eq!(change.removed, [NodeIdx(1)]);
        assert_eq!(change.added, [NodeIdx(3)]);
        assert!(second.node(NodeIdx(1)).is_none());
        assert_eq!(
            [idx(&second, 1), idx(&second, 3), idx(&second, 9)],
            [Some(0), Some(2), Some(3)]
        );

        // 2 came back to its own place.
        let specs = [spec(1, "a", "r", &[]), spec(2, "a", "r", &[])];
        let (third, _) = second.with_nodes(&specs, 4);
        assert_eq!(idx(&third, 2), Some(1));

        // The table is full of retired indexes: refused until one is released.
        let specs = [
            spec(1, "a", "r", &[]),
            spec(2, "a", "r", &[]),
            spec(8, "a", "r", &[]),
        ];
        let (full, change) = third.with_nodes(&specs, 4);
        assert_eq!((change.refused, idx(&full, 8)), (1, None));
        let (after, change) = third.with_released(NodeIdx(2)).with_nodes(&specs, 4);
        assert_eq!((change.refused, idx(&after, 8)), (0, Some(2)));
        // A present node is not released.
        assert!(after.with_released(NodeIdx(2)).node(NodeIdx(2)).is_some());
    }

    #[test]
    fn newcomers_take_no_place_and_first_rows_count() {
        let (first, _) = Topology::new().with_nodes(&[spec(1, "a", "r", &[])], 1);
        let specs = [
            spec(5, "a", "r", &[]),
            spec(1, "a", "q", &[]),
            spec(1, "x", "x", &[]),
        ];
        let (second, change) = first.with_nodes(&specs, 1);
        assert_eq!(
            (change.refused, summary(&second)),
            (1, vec![String::from("0=a/q")])
        );
    }

    #[test]
    fn nodes_stand_by_data_centre_and_rack() {
        let specs = [
            spec(1, "b", "r2", &[]),
            spec(2, "a", "r1", &[]),
            spec(3, "b", "r1", &[]),
            spec(4, "a", "r1", &[]),
            spec(5, "b", "r2", &[]),
        ];
        let (topology, _) = Topology::new().with_nodes(&specs, 100);
        assert_eq!(
            summary(&topology),
            ["1=a/r1", "3=a/r1", "2=b/r1", "0=b/r2", "4=b/r2"]
        );
        let numbers = |nodes: &[NodeIdx]| nodes.iter().map(|n| n.value()).collect::<Vec<_>>();
        let (a, b) = (
            topology.dc_by_name("a").unwrap(),
            topology.dc_by_name("b").unwrap(),
        );
        assert_eq!(numbers(topology.dc_in_order(a)), [1, 3]);
        assert_eq!(numbers(topology.dc_in_order(b)), [2, 0, 4]);
        let rack = topology.rack_by_name(b, "r2").unwrap();
        assert_eq!(numbers(topology.rack_in_order(rack)), [0, 4]);
        assert_ne!(
            topology.rack_by_name(a, "r1"),
            topology.rack_by_name(b, "r1")
        );
        assert_eq!(topology.rack_by_name(a, "r2"), None);
        assert_eq!(topology.dc_by_name("c"), None);
    }

    #[test]
    fn changes_of_liveness_keep_the_ring_and_shards_survive_refreshes() {
        let specs = [spec(1, "a", "r", &[1, 5]), spec(2, "a", "r", &[3])];
        let (first, _) = Topology::new().with_nodes(&specs, 9);
        let map = ShardMap::new(4, 12).ok();
        let down = first.with_changed(NodeIdx(1), |flags| NodeFlags {
            is_up: false,
            shard_map: map,
            ..flags
        });
        assert!(down.has_same_ring(&first));
        let node = down.node(NodeIdx(1)).unwrap();
        assert_eq!(
            (node.is_up(), node.is_enabled(), node.shard_map()),
            (false, true, map)
        );

        let mut moved = specs.clone();
        moved[1].address = SocketAddr::from(([127, 0, 0, 77], 9042));
        let (second, change) = down.with_nodes(&moved, 9);
        assert_eq!(change, NodesChange::default());
        let node = second.node(NodeIdx(1)).unwrap();
        assert_eq!((node.address(), node.shard_map()), (moved[1].address, map));
        assert!(second.has_same_ring(&first));
        for change in [
            spec(2, "a", "r", &[4]),
            spec(2, "a", "q", &[3]),
            spec(2, "b", "r", &[3]),
        ] {
            let (other, _) = down.with_nodes(&[specs[0].clone(), change], 9);
            assert!(!other.has_same_ring(&first));
        }
    }
}
